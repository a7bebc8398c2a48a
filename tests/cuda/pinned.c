// SPDX-License-Identifier: MIT
/*
 * A registered page of ready words stays what it was, even if its group has another owner, and so
 * another page. The fake driver keeps the page (tests/fakecuda/kept.c), like a real one.
 */
#include <pthread.h>
#include <signal.h>

#include "scene.h"

static uint32_t group_of(struct xmem_buffer *buffer)
{
	return xm_token_slot(xmem_token(buffer)) / XMEM_GROUP_SLOTS;
}

/* Once nothing of the writer is left, its group is idle and has got another page. */
static void end_by_kill(struct scene *scene)
{
	kill_child(scene->writer);
	EVENTUALLY(!stat_of(scene->pool).attached);
	xmem_unsubscribe(scene->sub);
}

/* The stream waits for a word of that writer's page. */
static uint32_t register_its_page(struct scene *scene, struct work *work)
{
	struct xmem_buffer *buffer;
	uint32_t group;

	order_writer(scene, TELL(FILL, 1));
	buffer = receive_next(scene);
	group = group_of(buffer);
	WORKED(xmem_wait_on(buffer, work->stream));
	WORKED(xmem_release_on(buffer, work->stream));
	order_writer(scene, OPEN_GATE);
	must(xl_cuda()->stream_synchronize(work->stream));
	return group;
}

/*
 * The stream gets contents that come while it waits, or while the thread does. Which of them waited
 * is not known on a real driver, so there some rounds must do.
 */
static bool get_by_stream(struct scene *scene, struct work *work, uint32_t group, uint64_t stamp)
{
	unsigned long before = driver_calls("cuStreamWaitValue64");
	struct xmem_buffer *buffer;
	pthread_t thread;
	size_t i;

	order_writer(scene, TELL(FILL, stamp));
	buffer = receive_next(scene);
	SAME(group_of(buffer), group);
	SAME(pthread_create(&thread, NULL, open_later, scene), 0);
	WORKED(xmem_wait_on(buffer, work->stream));
	WORKED(xmem_copy_to_host(work->got, buffer, 0, WORK_BYTES, work->stream));
	WORKED(xmem_release_on(buffer, work->stream));
	must(xl_cuda()->stream_synchronize(work->stream));
	SAME(pthread_join(thread, NULL), 0);
	for (i = 0; i < WORK_BYTES / 8; i++)
		SAME(work->got[i], stamp_word(stamp, i));
	return on_fake() ? driver_calls("cuStreamWaitValue64") > before : stamp >= 10;
}

/* The next owner's words are in another page, which must be registered. */
TEST(P8_a_stream_sees_the_words_of_a_groups_next_owner)
{
	struct scene first, next;
	uint64_t stamp = 2;
	struct work work;
	uint32_t group;

	spawn_writer(&first, new_name(), 2, 0);
	spawn_writer(&next, first.name, 2, 0);
	start_writer(&first, NULL);
	begin_work(&work);
	group = register_its_page(&first, &work);
	end_by_kill(&first);
	start_writer(&next, first.pool);
	EVENTUALLY(get_by_stream(&next, &work, group, stamp++));
	end_scene(&next);
}

/*
 * The stream gets to the wait after the writer has ended and no client has the contents any more:
 * the group is idle, and has another page. The stream sees the words that the host has written
 * last.
 */
static void wait_for_what_is_gone(bool taken_again)
{
	struct scene first, next;
	struct xmem_buffer *buffer;
	struct work work;

	if (on_fake())
		daemon_only("the fake driver keeps no page of a device's mappings");
	spawn_writer(&first, new_name(), 1, 0);
	spawn_writer(&next, first.name, 1, 0);
	start_writer(&first, NULL);
	begin_work(&work);
	close_gate(&work);
	order_writer(&first, TELL(FILL, 1));
	buffer = receive_next(&first);
	WORKED(xmem_wait_on(buffer, work.stream));
	xmem_release(buffer);
	if (taken_again)
		EVENTUALLY(writer_finds_one(&first));
	end_by_kill(&first);
	start_writer(&next, first.pool);
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	end_scene(&next);
}

TEST(P9_a_stream_waits_for_a_dropped_buffer_of_a_dead_writer)
{
	wait_for_what_is_gone(false);
}

TEST(P9_a_stream_waits_for_a_buffer_that_its_dead_writer_had_again)
{
	wait_for_what_is_gone(true);
}

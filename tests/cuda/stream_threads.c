// SPDX-License-Identifier: MIT
/*
 * Threads that work on streams of one process: a wait of one thread delays no other, and only one
 * of them drops a handle.
 */
#include <pthread.h>
#include <semaphore.h>

#include "core/protocol.h"
#include "core/step.h"
#include "scene.h"

/* ---- a page of ready words that has another owner ---- */

/* A wait in a thread of its own. */
struct wait {
	struct xmem_buffer *buffer;
	CUstream stream;
	pthread_t thread;
	bool over;			/* atomic */
};

static void *wait_for_it(void *argument)
{
	struct wait *wait = argument;

	WORKED(xmem_wait_on(wait->buffer, wait->stream));
	__atomic_store_n(&wait->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void begin_wait(struct wait *wait, struct xmem_buffer *buffer, CUstream stream)
{
	*wait = (struct wait){ .buffer = buffer, .stream = stream };
	SAME(pthread_create(&wait->thread, NULL, wait_for_it, wait), 0);
}

static bool is_over(struct wait *wait)
{
	return __atomic_load_n(&wait->over, __ATOMIC_ACQUIRE);
}

/* The stream has waited for a word of the writer, which ends. Then the group becomes free. */
static uint32_t wait_for_one_that_ends(struct scene *scene, struct work *work)
{
	struct xmem_buffer *buffer;
	uint32_t slot;

	order_writer(scene, TELL(FILL, 1));
	buffer = receive_next(scene);
	slot = xm_token_slot(xmem_token(buffer));
	WORKED(xmem_wait_on(buffer, work->stream));
	order_writer(scene, OPEN_GATE);
	must(xl_cuda()->stream_synchronize(work->stream));
	xmem_release(buffer);
	end_writer(scene);
	return slot / XMEM_GROUP_SLOTS;
}

/* Is the stream told to wait for the writer's next contents, and not the thread? */
static bool waits_in_stream(struct scene *scene, struct work *work, uint64_t stamp)
{
	unsigned long before = driver_calls("cuStreamWaitValue64");
	struct xmem_buffer *buffer;
	struct wait wait;

	order_writer(scene, TELL(FILL, stamp));
	buffer = receive_next(scene);
	begin_wait(&wait, buffer, work->stream);
	order_writer(scene, OPEN_GATE);
	SAME(pthread_join(wait.thread, NULL), 0);
	must(xl_cuda()->stream_synchronize(work->stream));
	cuda_check(buffer, stamp);
	xmem_release(buffer);
	return !on_fake() || driver_calls("cuStreamWaitValue64") > before;
}

/*
 * The group's next owner may have another page at that address, and the old one is registered as
 * long as a stream may wait there. Meanwhile the stream stands at a gate.
 */
TEST(CUDA_a_stream_holds_up_no_wait_for_another_page)
{
	struct scene first, next, other;
	struct xmem_buffer *its, *others;
	struct work work;
	struct wait wait;
	unsigned long before;
	uint32_t group;
	uint64_t stamp = 4;

	spawn_writer(&first, new_name(), 2, 0);
	spawn_writer(&next, first.name, 2, 0);
	spawn_writer(&other, first.name, 2, 0);
	start_writer(&first, NULL);
	start_writer(&other, first.pool);
	begin_work(&work);
	group = wait_for_one_that_ends(&first, &work);
	EVENTUALLY(stat_of(first.pool).attached == 2);
	start_writer(&next, first.pool);
	close_gate(&work);
	order_writer(&next, TELL(FILL, 2));
	order_writer(&other, TELL(FILL, 3));
	its = receive_next(&next);
	others = receive_next(&other);
	SAME(xm_token_slot(xmem_token(its)) / XMEM_GROUP_SLOTS, group);
	before = driver_calls("cuCtxSynchronize");
	begin_wait(&wait, its, work.stream);
	if (on_fake())
		EVENTUALLY(is_over(&wait) || driver_calls("cuCtxSynchronize") > before);
	else
		give_time();
	WORKED(xmem_wait_on(others, work.stream));
	order_writer(&next, OPEN_GATE);
	SAME(pthread_join(wait.thread, NULL), 0);
	order_writer(&other, OPEN_GATE);
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	cuda_check(its, 2);
	cuda_check(others, 3);
	xmem_release(its);
	xmem_release(others);
	EVENTUALLY(waits_in_stream(&next, &work, stamp++));
	end_writer(&next);
	end_scene(&other);
}

/* ---- a handle that two threads could drop ---- */

static struct {
	struct xmem_buffer *buffer, *other;
	struct work work;
	pthread_t thread;
	sem_t drops, goes_on;
} lost;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

/* The other thread is in the middle of dropping this one's handle. */
static void stand_while_dropping(int step)
{
	(void)step;
	sem_post(&lost.drops);
	await(&lost.goes_on);
}

static void *release_other(void *unused)
{
	SAME(xmem_release_on(lost.other, lost.work.stream), -EIO);
	return unused;
}

/* The driver has refused this thread's host function, and nothing else has been done. */
static void let_other_meet_the_loss(int step)
{
	(void)step;
	at_step(XM_STEP_CUDA_REACHED, 0, STEP_CALL, stand_while_dropping);
	SAME(pthread_create(&lost.thread, NULL, release_other, NULL), 0);
	await(&lost.drops);
}

TEST(CUDA_a_lost_context_drops_a_handle_once)
{
	struct fake fake = fake_only("it loses a context on demand");
	struct scene scene;

	steps_only();
	begin_scene(&scene, 2);
	begin_work(&lost.work);
	order_writer(&scene, TELL(FILL, 1));
	order_writer(&scene, OPEN_GATE);
	order_writer(&scene, TELL(FILL, 2));
	order_writer(&scene, OPEN_GATE);
	lost.buffer = receive_next(&scene);
	lost.other = receive_next(&scene);
	WORKED(xmem_wait_contents(lost.other, patience_ns()));
	SAME(sem_init(&lost.drops, 0, 0), 0);
	SAME(sem_init(&lost.goes_on, 0, 0), 0);
	fake.sticky(700);
	at_step(XM_STEP_CUDA_LEFT, 0, STEP_CALL, let_other_meet_the_loss);
	SAME(xmem_release_on(lost.buffer, lost.work.stream), -EIO);
	REFUSED(xmem_cuda_ptr(lost.buffer), EBADF);	/* this thread may not drop it */
	sem_post(&lost.goes_on);
	SAME(pthread_join(lost.thread, NULL), 0);
	EVENTUALLY(writer_finds_one(&scene));
	xmem_release(lost.other);	/* it is as before */
	SAME(stat_of(scene.pool).held, 0);
	fake.sticky(0);
	end_scene(&scene);
}

// SPDX-License-Identifier: MIT
/*
 * Order on streams: contents that are published before a stream has written them, and handles that
 * a stream drops when it gets there.
 */
#include <pthread.h>
#include <stdlib.h>

#include "scene.h"

#define BYTES	WORK_BYTES
#define LINK	1	/* descriptors for a child that has ended, until the test ends */

/* ---- waiting ---- */

TEST(CUDA_a_thread_waits_for_what_a_stream_has_yet_to_write)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	int i;

	begin_scene(&scene, 4);
	for (i = 1; i <= 5; i++) {
		order_writer(&scene, TELL(FILL, i));
		buffer = receive_next(&scene);
		SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
		SAME(xmem_wait_contents(buffer, MS), -ETIMEDOUT);
		order_writer(&scene, OPEN_GATE);
		WORKED(xmem_wait_contents(buffer, patience_ns()));
		cuda_check(buffer, i);
		xmem_release(buffer);
	}
	end_scene(&scene);
}

TEST(CUDA_the_first_look_waits_by_itself)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	pthread_t thread;
	int i;

	begin_scene(&scene, 4);
	for (i = 1; i <= 20; i++) {
		order_writer(&scene, TELL(FILL, i));
		buffer = receive_next(&scene);
		SAME(pthread_create(&thread, NULL, open_later, &scene), 0);
		cuda_check(buffer, i);
		SAME(pthread_join(thread, NULL), 0);
		xmem_release(buffer);
	}
	end_scene(&scene);
}

/*
 * A stream waits for a stream of the other process, which has already written a part of the
 * contents.
 */
static void streams_wait(void)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;
	size_t i, j;

	begin_scene(&scene, 4);
	begin_work(&work);
	for (i = 1; i <= 20; i++) {
		order_writer(&scene, TELL(FILL, i));
		buffer = receive_next(&scene);
		if (i % 4 == 0) {
			order_writer(&scene, OPEN_GATE);
			WORKED(xmem_wait_contents(buffer, patience_ns()));
		}
		WORKED(xmem_wait_on(buffer, work.stream));
		must(xl_cuda()->memcpy_dtoh_async(work.got, (CUdeviceptr)xmem_cuda_ptr(buffer),
						  BYTES, work.stream));
		WORKED(xmem_release_on(buffer, work.stream));
		if (i % 4)
			order_writer(&scene, OPEN_GATE);
		must(xl_cuda()->stream_synchronize(work.stream));
		for (j = 0; j < BYTES / 8; j++)
			SAME(work.got[j], stamp_word(i, j));
	}
	end_scene(&scene);
}

TEST(CUDA_a_stream_waits_for_another_process)
{
	streams_wait();
}

/* Without 64-bit memory operations a host function writes the word, and the thread waits. */
static void thread_waits_for_a_host_function(const char *attributes)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;
	pthread_t thread;
	int i;

	use_attributes(attributes);
	begin_scene(&scene, 4);
	begin_work(&work);
	for (i = 1; i <= 20; i++) {
		order_writer(&scene, TELL(FILL, i));
		buffer = receive_next(&scene);
		SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
		SAME(pthread_create(&thread, NULL, open_later, &scene), 0);
		WORKED(xmem_wait_on(buffer, work.stream));
		SAME(xmem_wait_contents(buffer, 0), 0);
		SAME(pthread_join(thread, NULL), 0);
		cuda_check(buffer, i);
		WORKED(xmem_release_on(buffer, work.stream));
	}
	CALLS(driver_calls("cuStreamWaitValue64"), 0);
	end_scene(&scene);
}

TEST(CUDA_host_functions_keep_the_order_where_words_cannot)
{
	thread_waits_for_a_host_function("122=0");
}

TEST(CUDA_host_functions_keep_the_order_where_pages_are_not_registered)
{
	not_with_hip("all of AMD's GPUs register pages");
	thread_waits_for_a_host_function("99=0");
}

/* ---- publishing with options ---- */

TEST(CUDA_what_a_stream_has_yet_to_write_is_published_to_one_alone)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, WORK_BYTES, 0);
	struct xmem_pool *one = xmem_pool_reopen(pool), *two = xmem_pool_reopen(pool);
	struct xmem_subscription *to, *past;
	struct xmem_buffer *buffer, *got;
	struct work work;

	CHECK(one && two);
	to = follow(one, xmem_pool_client(pool), 0);
	past = follow(two, xmem_pool_client(pool), 0);
	begin_work(&work);
	buffer = cuda_acquire(pool, WORK_BYTES);
	close_gate(&work);
	fill_on(buffer, 5, &work);
	WORKED(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = work.stream,
			    .flags = XMEM_PUBLISH_KEEP | XMEM_PUBLISH_CLIENT,
			    .client = xmem_pool_client(one)), NULL));
	REFUSED(xmem_receive(past, 0), EAGAIN);
	got = xmem_receive(to, patience_ns());
	CHECK(got);
	SAME(xmem_wait_contents(got, 0), -EAGAIN);
	SAME(publish_on(buffer, work.stream), -EPERM);		/* another client holds it now */
	SAYS(EPERM, "stream", "held for reading");
	open_gate(&work);
	WORKED(xmem_wait_contents(got, XMEM_FOREVER));
	cuda_check(got, 5);
	xmem_release(got);
	xmem_release(buffer);
	xmem_unsubscribe(past);
	xmem_unsubscribe(to);
	xmem_pool_close(two);
	xmem_pool_close(one);
	xmem_pool_close(pool);
}

TEST(CUDA_what_is_not_published_puts_nothing_into_the_stream)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, WORK_BYTES, 0);
	struct xmem_buffer *buffer;
	uint64_t token;
	struct work work;

	begin_work(&work);
	buffer = cuda_acquire(pool, WORK_BYTES);
	cuda_fill(buffer, 6);
	SAME(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = work.stream,
			  .offset = WORK_BYTES + 1), NULL), -ERANGE);
	SAME(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = work.stream,
			  .flags = XMEM_PUBLISH_CLIENT, .client = 1000), NULL), -EINVAL);
	CALLS(driver_calls("cuStreamWriteValue64"), 0);
	WORKED(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
			    .flags = XMEM_PUBLISH_KEEP, .stream = CU_STREAM_LEGACY), &token));
	CALLS(driver_calls("cuStreamWriteValue64"), 1);
	WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
	cuda_check(buffer, 6);
	xmem_release(buffer);
	xmem_pool_close(pool);
}

/* ---- dropping ---- */

TEST(CUDA_a_stream_drops_a_handle_when_it_has_got_there)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	begin_scene(&scene, 1);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	order_writer(&scene, OPEN_GATE);
	buffer = receive_next(&scene);
	close_gate(&work);
	WORKED(xmem_release_on(buffer, work.stream));
	SAME(xmem_release_on(buffer, work.stream), -EBADF);
	REFUSED(xmem_cuda_ptr(buffer), EBADF);
	CHECK(!writer_finds_one(&scene));
	open_gate(&work);
	EVENTUALLY(writer_finds_one(&scene));
	end_scene(&scene);
}

TEST(CUDA_a_pool_lives_until_its_last_stream_has_got_there)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	unsigned int files = own_files();
	struct work work;

	begin_scene(&scene, 1);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	order_writer(&scene, OPEN_GATE);
	buffer = receive_next(&scene);
	CHECK(xmem_cuda_ptr(buffer));
	close_gate(&work);
	WORKED(xmem_release_on(buffer, work.stream));
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
	CHECK(!writer_finds_one(&scene));
	open_gate(&work);
	EVENTUALLY(writer_finds_one(&scene));
	tell(scene.writer, LEAVE);
	finish_child(scene.writer);
	EVENTUALLY(own_files() == files + LINK);	/* a thread destroys the pool */
	must(xl_cuda()->stream_synchronize(work.stream));
	no_violations();
}

TEST(CUDA_a_lost_context_drops_what_its_streams_were_to_drop)
{
	struct fake fake = fake_only("it loses a context on demand");
	struct xmem_buffer *buffer, *other;
	struct scene scene;
	struct work work;

	begin_scene(&scene, 2);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	order_writer(&scene, OPEN_GATE);
	order_writer(&scene, TELL(FILL, 2));
	order_writer(&scene, OPEN_GATE);
	buffer = receive_next(&scene);
	other = receive_next(&scene);
	WORKED(xmem_wait_contents(other, patience_ns()));
	close_gate(&work);
	WORKED(xmem_release_on(buffer, work.stream));
	fake.sticky(700);
	SAME(xmem_release_on(other, work.stream), -EIO);
	EVENTUALLY(writer_finds_one(&scene));
	xmem_release(other);		/* it is as before */
	fake.sticky(0);
	open_gate(&work);
	end_scene(&scene);
}

TEST(CUDA_memory_of_the_CPU_is_dropped_by_a_stream_too)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *buffer;
	struct work work;

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	begin_work(&work);
	buffer = xmem_acquire(pool, BYTES, 0);
	SAME(xmem_release_on(buffer, work.stream), -EPERM);
	SAME(publish_on(buffer, work.stream), -EMEDIUMTYPE);
	SAME(xmem_wait_on(buffer, work.stream), -EMEDIUMTYPE);
	SAME(xmem_wait_contents(buffer, 0), -EMEDIUMTYPE);
	WORKED(xmem_publish(buffer, &keep, NULL));
	close_gate(&work);
	WORKED(xmem_release_on(buffer, work.stream));
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	open_gate(&work);
	EVENTUALLY((buffer = xmem_acquire(pool, BYTES, 0)));
	xmem_release(buffer);
	SAME(xmem_release_on(buffer, work.stream), -EBADF);
	SAME(xmem_release_on(NULL, work.stream), -EINVAL);
	let_streams_end();
	xmem_pool_close(pool);
}

/* ---- the end of a writer ---- */

TEST(P9_who_waits_for_a_dead_writers_stream_gets_an_error)
{
	struct xmem_buffer *buffer, *other;
	unsigned int files = own_files();
	struct scene scene;
	struct work work;

	begin_scene(&scene, 2);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	order_writer(&scene, TELL(FILL, 2));
	buffer = receive_next(&scene);
	other = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	kill_child(scene.writer);
	REFUSED(xmem_cuda_ptr(other), EOWNERDEAD);
	must(xl_cuda()->stream_synchronize(work.stream));
	SAME(xmem_wait_contents(buffer, 0), -EOWNERDEAD);
	SAME(xmem_wait_on(other, work.stream), -EOWNERDEAD);
	SAME(xmem_wait_contents(other, XMEM_FOREVER), -EOWNERDEAD);
	WORKED(xmem_release_on(buffer, work.stream));
	xmem_release(other);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
	EVENTUALLY(own_files() == files + LINK);
	no_violations();
}

TEST(P8_what_a_stream_has_finished_outlives_its_writer)
{
	struct xmem_buffer *buffer;
	struct scene scene;

	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 7));
	order_writer(&scene, OPEN_GATE);
	buffer = receive_next(&scene);
	WORKED(xmem_wait_contents(buffer, patience_ns()));
	kill_child(scene.writer);
	cuda_check(buffer, 7);
	xmem_release(buffer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
}

/* A host function has written the word. */
TEST(P8_what_a_host_function_has_completed_outlives_its_writer)
{
	struct xmem_buffer *buffer;
	struct scene scene;

	use_attributes("122=0");
	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 7));
	order_writer(&scene, OPEN_GATE);
	buffer = receive_next(&scene);
	WORKED(xmem_wait_contents(buffer, patience_ns()));
	kill_child(scene.writer);
	WORKED(xmem_wait_contents(buffer, 0));
	cuda_check(buffer, 7);
	xmem_release(buffer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
}

TEST(CUDA_closing_the_pool_waits_for_own_streams)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	
	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 3));
	buffer = receive_next(&scene);
	order_writer(&scene, OPEN_GATE);
	order_writer(&scene, CLOSE_POOL);
	cuda_check(buffer, 3);
	xmem_release(buffer);
	end_scene(&scene);
}

/* ---- copies ---- */

/* From a stream of one GPU to a stream of another, directly or through memory of the CPU. */
static void copies_between(const char *peers)
{
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *from, *to;
	struct xmem_pool *pool;
	struct work here, there;
	uint64_t word[BYTES / 8];
	pthread_t thread;
	size_t i;

	need_gpus(2);
	setenv("FAKECUDA_PEERS", peers, 1);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	WORKED(make_on_gpu(pool, BYTES, 1, 1, 0));
	begin_work_on(&here, 0);
	begin_work_on(&there, 1);
	for (i = 0; i < BYTES / 8; i++)
		word[i] = stamp_word(9, i);
	from = xmem_acquire_cuda(pool, BYTES, 0, 0);
	to = xmem_acquire_cuda(pool, BYTES, 1, 0);
	close_gate(&here);
	WORKED(xmem_copy_from_host(from, 0, word, BYTES, here.stream));
	WORKED(publish_kept_on(from, here.stream));
	SAME(xmem_wait_contents(from, 0), -EAGAIN);
	SAME(pthread_create(&thread, NULL, open_soon, &here), 0);
	WORKED(xmem_copy_range(to, 0, from, 0, BYTES, there.stream));
	WORKED(xmem_copy_to_host(there.got, to, 0, BYTES, there.stream));
	WORKED(xmem_release_on(from, there.stream));
	must(xl_cuda()->stream_synchronize(there.stream));
	SAME(pthread_join(thread, NULL), 0);
	CHECK(!memcmp(there.got, word, BYTES));
	xmem_release(to);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_copies_between_peers_keep_the_order_of_streams)
{
	copies_between("0-1");
}

TEST(CUDA_copies_through_the_CPU_keep_the_order_of_streams)
{
	copies_between("none");
}

/* ---- the owner's own memory ---- */

/* A published buffer that no client needs stays until its stream has written it. */
static void gives_back_behind_streams(void)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct work work;
	int i;

	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	begin_work(&work);
	for (i = 0; i < 2; i++) {
		buffer = cuda_acquire(pool, BYTES);
		WORKED(xmem_wait_on(buffer, work.stream));
		if (!i)
			close_gate(&work);
		fill_on(buffer, 1, &work);
		WORKED(publish_on(buffer, work.stream));
		SAME(trim_pool(pool, 0), 0);
	}
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	CHECK(trim_pool(pool, 0) > 0);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_what_a_stream_has_yet_to_write_is_not_given_back)
{
	gives_back_behind_streams();
}

static void note_done(void *done)
{
	*(bool *)done = true;
}

TEST(CUDA_memory_is_not_done_before_its_stream_is)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct xmem_pool_info info;
	struct work work;
	bool done = false;
	CUdeviceptr at;
	int i;

	begin_work(&work);
	must(xl_cuda()->mem_alloc(&at, 2 << 20));
	buffer = xmem_attach_cuda(pool, (void *)at, BYTES, 0, note_done, &done);
	CHECK(buffer);
	close_gate(&work);
	WORKED(publish_on(buffer, work.stream));
	for (i = 0; i < 3; i++) {
		info = (struct xmem_pool_info){ .size = sizeof(info) };
		WORKED(xmem_pool_stat(pool, &info));
		WORKED(xmem_collect(pool, XMEM_KEEP_ALL, NULL));
		CHECK(trim_pool(pool, 0) >= 0);
		CHECK(!done);
	}
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	EVENTUALLY(trim_pool(pool, 0) >= 0 && done);
	must(xl_cuda()->mem_free(at));
	xmem_pool_close(pool);
}

/* ---- reads without a stream ---- */

/* A stream has been told to wait. The thread copies without it, so the thread waits itself. */
TEST(CUDA_a_copy_without_a_stream_waits_whatever_streams_do)
{
	uint64_t word[1];
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;
	pthread_t thread;

	begin_scene(&scene, 2);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 3));
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	SAME(pthread_create(&thread, NULL, open_later, &scene), 0);
	cuda_check(buffer, 3);
	SAME(pthread_join(thread, NULL), 0);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_release(buffer);
	order_writer(&scene, TELL(FILL, 4));
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	WORKED(xmem_cancel(scene.pool));
	/* This waits. */
	SAME(xmem_copy_to_host(word, buffer, 0, sizeof(word), NULL), -ECANCELED);
	order_writer(&scene, OPEN_GATE);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_release(buffer);
	end_scene(&scene);
}

TEST(CUDA_waits_for_a_lost_context_end)
{
	struct fake fake = fake_only("it loses a context on demand");
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct work work;

	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	begin_work(&work);
	buffer = cuda_acquire(pool, BYTES);
	close_gate(&work);
	WORKED(publish_kept_on(buffer, work.stream));
	fake.sticky(719);
	REFUSED(xmem_cuda_ptr(buffer), EIO);
	SAME(xmem_wait_contents(buffer, XMEM_FOREVER), -EIO);
	xmem_release(buffer);
	open_gate(&work);	/* the stream's work does not run, because the context is lost */
	xmem_pool_close(pool);
	fake.end();			/* registered memory stays registered until then */
}

/* ---- costs ---- */

TEST(CUDA_a_hand_over_on_streams_takes_two_calls_of_the_driver_each)
{
	unsigned long before;
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;
	int i;

	begin_scene(&scene, 4);
	begin_work(&work);
	for (i = 1; i <= 8; i++) {
		order_writer(&scene, TELL(FILL, i));
		buffer = receive_next(&scene);
		before = driver_calls(NULL);
		WORKED(xmem_wait_on(buffer, work.stream));
		CHECK(xmem_cuda_ptr(buffer));
		WORKED(xmem_release_on(buffer, work.stream));
		if (i > 4)		/* every buffer has been opened */
			CALLS(driver_calls(NULL) - before, 4);
		order_writer(&scene, OPEN_GATE);
	}
	must(xl_cuda()->stream_synchronize(work.stream));	/* it has dropped all of them */
	end_scene(&scene);
}

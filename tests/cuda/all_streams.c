// SPDX-License-Identifier: MIT
/* Handles that are dropped behind all streams of a GPU: lib/gpu/all.h. */
#include <stdlib.h>

#include "graphs.h"
#include "lib/gpu/passed.h"
#include "scene.h"

/* This driver records no event of a context, as before CUDA 12.5. */
static void use_old_driver(void)
{
	setenv("FAKECUDA_MISSING", "cuCtxRecordEvent", 1);
	fake_only("it lacks functions on demand");
}

/* This driver records events of a context, whatever settings.sh has chosen. */
static void use_new_driver(void)
{
	unsetenv("FAKECUDA_MISSING");
	not_with_hip("events of a context");
}

/* A pool of one buffer on a GPU, whose contents are held by two handles. */
static struct xmem_pool *hold_two(struct xmem_buffer *handle[2])
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, WORK_BYTES, 0);

	cuda_publish(pool, WORK_BYTES, 1, &handle[0]);
	handle[1] = xmem_clone(handle[0]);
	CHECK(handle[1]);
	return pool;
}

static unsigned int holds(struct xmem_pool *pool, uint64_t token)
{
	return xmem_pool_holds(pool, xmem_pool_client(pool), xm_token_slot(token));
}

/* Let all streams and threads do what they can, and look at the result. */
static unsigned int settled_holds(struct xmem_pool *pool, uint64_t token)
{
	if (on_fake())
		EVENTUALLY(others_sleep());
	else
		give_time();
	xl_passed_look();
	return holds(pool, token);
}

/* ---- which work it follows ---- */

static void follows_a_stream(bool destroyed)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool = hold_two(handle);
	uint64_t token = xmem_token(handle[0]);
	struct work work;

	begin_work(&work);			/* its stream is non-blocking */
	close_gate(&work);
	if (destroyed)
		must(xl_cuda()->stream_destroy(work.stream));
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	SAME(xmem_release_on(handle[0], XMEM_ALL_STREAMS), -EBADF);
	SAME(settled_holds(pool, token), 2);
	open_gate(&work);
	EVENTUALLY(holds(pool, token) == 1);
	WORKED(xmem_release_on(handle[1], XMEM_ALL_STREAMS));
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_a_release_on_all_streams_follows_a_non_blocking_one)
{
	follows_a_stream(false);
}

TEST(CUDA_a_release_on_all_streams_follows_a_destroyed_one)
{
	follows_a_stream(true);
}

TEST(CUDA_an_old_driver_follows_all_streams_in_a_thread)
{
	use_old_driver();
	follows_a_stream(false);
}

TEST(CUDA_an_old_driver_follows_a_destroyed_stream)
{
	use_old_driver();
	follows_a_stream(true);
}

TEST(CUDA_host_functions_follow_all_streams_where_words_cannot)
{
	fake_only("it has no memory operations on demand");
	use_attributes("122=0");
	follows_a_stream(false);
}

TEST(CUDA_a_release_on_all_streams_does_not_follow_later_work)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool;
	struct work work;

	use_new_driver();
	pool = hold_two(handle);
	begin_work(&work);
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	WORKED(xmem_release_on(handle[1], XMEM_ALL_STREAMS));
	close_gate(&work);
	EVENTUALLY(!stat_of(pool).held);
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));	/* the gate goes with this stack */
	xmem_pool_close(pool);
	no_violations();
}

/*
 * A thread waits for one stream when another handle is dropped, behind later work. This wait does
 * not cover the later work.
 */
TEST(CUDA_all_streams_in_a_thread_cover_no_later_work)
{
	struct xmem_buffer *handle[2];
	struct work work, later;
	struct xmem_pool *pool;
	uint64_t token;

	use_old_driver();
	pool = hold_two(handle);
	token = xmem_token(handle[0]);
	begin_work(&work);
	begin_work(&later);
	later.got[0] = 0;
	close_gate(&work);
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	SAME(settled_holds(pool, token), 2);
	/* The fake driver runs one host function at a time, so this gate is a word. */
	must(xl_cuda()->stream_wait_value64(later.stream, (CUdeviceptr)later.got, 1,
					    CU_STREAM_WAIT_VALUE_GEQ));
	WORKED(xmem_release_on(handle[1], XMEM_ALL_STREAMS));
	SAME(settled_holds(pool, token), 2);
	open_gate(&work);
	EVENTUALLY(holds(pool, token) == 1);
	SAME(settled_holds(pool, token), 1);
	xm_store_release(&later.got[0], 1);
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- captures ---- */

/* A capture of a blocking stream can be seen beforehand. */
static void waits_for_a_capture(void)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool = hold_two(handle);
	uint64_t token = xmem_token(handle[0]);
	struct xl_gpu_scope scope;
	CUstream blocking;
	CUgraph graph;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	xl_capture_restore(scope.mode);
	must(xl_cuda()->stream_create(&blocking, 0));
	must(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	SAME(settled_holds(pool, token), 2);
	must(cuStreamEndCapture(blocking, &graph));
	must(cuGraphDestroy(graph));
	EVENTUALLY(holds(pool, token) == 1);
	xmem_release(handle[1]);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_all_streams_wait_for_the_end_of_a_capture)
{
	waits_for_a_capture();
}

TEST(CUDA_an_old_driver_waits_for_the_end_of_a_capture)
{
	use_old_driver();
	waits_for_a_capture();
}

/* Only the driver knows of this capture, and makes it invalid. */
TEST(CUDA_all_streams_beside_a_capture_lose_no_handle)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool = hold_two(handle);
	uint64_t token = xmem_token(handle[0]);
	struct work work;
	CUgraph graph;

	begin_work(&work);
	must(cuStreamBeginCapture(work.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	CALLS(settled_holds(pool, token), 2);
	CALLS(cuStreamEndCapture(work.stream, &graph), 901);
	if (!on_fake())
		cuStreamEndCapture(work.stream, &graph);
	EVENTUALLY(holds(pool, token) == 1);
	xmem_release(handle[1]);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- failures ---- */

static void lost_context_drops(int second)
{
	struct fake fake = fake_only("it loses a context on demand");
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool = hold_two(handle);
	uint64_t token = xmem_token(handle[0]);
	struct work work;

	begin_work(&work);
	close_gate(&work);
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	SAME(settled_holds(pool, token), 2);
	fake.sticky(700);
	SAME(xmem_release_on(handle[1], XMEM_ALL_STREAMS), second);
	open_gate(&work);
	EVENTUALLY(holds(pool, token) == (second ? 1 : 0));
	if (second)
		xmem_release(handle[1]);	/* it is as before */
	SAME(stat_of(pool).held, 0);
	fake.sticky(0);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_pool_close(pool);
}

TEST(CUDA_a_lost_context_drops_what_all_streams_were_to_drop)
{
	use_new_driver();
	lost_context_drops(-EIO);
}

TEST(CUDA_a_thread_drops_handles_after_the_loss_of_the_context)
{
	use_old_driver();
	lost_context_drops(0);
}

TEST(CUDA_all_streams_are_no_stream_for_other_calls)
{
	struct xmem_buffer *handle[2], *to;
	static uint64_t word[1];
	struct xmem_pool *pool = hold_two(handle), *other;

	other = cuda_writer(new_name(), 1, WORK_BYTES, 0);
	to = cuda_acquire(other, WORK_BYTES);
	SAME(xmem_wait_on(handle[0], XMEM_ALL_STREAMS), -EINVAL);
	SAYS(EINVAL, "wait_on", "needs one stream");
	SAME(xmem_copy(to, handle[0], XMEM_ALL_STREAMS), -EINVAL);
	SAME(xmem_copy_from_host(to, 0, word, 8, XMEM_ALL_STREAMS), -EINVAL);
	SAME(xmem_copy_to_host(word, handle[0], 0, 8, XMEM_ALL_STREAMS), -EINVAL);
	SAME(publish_on(to, XMEM_ALL_STREAMS), -EINVAL);
	xmem_release(to);
	xmem_release(handle[0]);
	xmem_release(handle[1]);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	no_violations();
}

static void fails_and_keeps(struct xmem_pool *pool, struct xmem_buffer *handle, const char *rules)
{
	uint64_t token = xmem_token(handle);

	driver_fails(rules);
	SAME(xmem_release_on(handle, XMEM_ALL_STREAMS), -ENOMEM);
	driver_fails(NULL);
	SAME(settled_holds(pool, token), 2);
	CHECK(xmem_cuda_ptr(handle));		/* it is as before */
}

TEST(CUDA_all_streams_that_the_driver_refuses_leave_the_handle)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool;

	use_new_driver();
	fake_only("it fails on demand");
	pool = hold_two(handle);
	fails_and_keeps(pool, handle[0], "cuEventCreate:1:2");
	fails_and_keeps(pool, handle[0], "cuStreamCreate:1:2");
	fails_and_keeps(pool, handle[0], "cuCtxRecordEvent:1:2");
	fails_and_keeps(pool, handle[0], "cuStreamWaitEvent:1:2");
	fails_and_keeps(pool, handle[0], "cuStreamWriteValue64_v2:1:2");
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	WORKED(xmem_release_on(handle[1], XMEM_ALL_STREAMS));
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_memory_of_the_CPU_is_dropped_behind_all_streams_too)
{
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct work work;

	WORKED(xmem_preallocate(pool, WORK_BYTES, 1, NULL));
	begin_work(&work);
	buffer = xmem_acquire(pool, WORK_BYTES, 0);
	SAME(xmem_release_on(buffer, XMEM_ALL_STREAMS), -EPERM);
	WORKED(xmem_publish(buffer, &keep, NULL));
	close_gate(&work);
	WORKED(xmem_release_on(buffer, XMEM_ALL_STREAMS));
	REFUSED(xmem_acquire(pool, WORK_BYTES, 0), EAGAIN);
	open_gate(&work);
	EVENTUALLY((buffer = xmem_acquire(pool, WORK_BYTES, 0)));
	xmem_release(buffer);
	SAME(xmem_release_on(NULL, XMEM_ALL_STREAMS), -EINVAL);
	xmem_pool_close(pool);
}

/* Its parent's thread and streams are not its own. */
static void drop_in_child(void *handle)
{
	SAME(xmem_release_on(handle, XMEM_ALL_STREAMS), -ECHILD);
}

static void child_drops_nothing(void)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool = hold_two(handle);
	uint64_t token = xmem_token(handle[0]);
	struct work work;

	begin_work(&work);
	close_gate(&work);
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));
	SAME(settled_holds(pool, token), 2);
	in_child(drop_in_child, handle[1]);
	SAME(settled_holds(pool, token), 2);
	open_gate(&work);
	EVENTUALLY(holds(pool, token) == 1);
	xmem_release(handle[1]);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_a_forked_child_releases_nothing_on_all_streams)
{
	child_drops_nothing();
}

TEST(CUDA_a_forked_child_has_no_thread_that_waits_for_all_streams)
{
	use_old_driver();
	child_drops_nothing();
}

/* ---- the end of the process ---- */

/* A reader whose stream does not get to its end. */
static void read_for_ever(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer = xmem_get(pool, hear_parent());
	struct work work;

	CHECK(buffer);
	begin_work(&work);
	close_gate(&work);
	WORKED(xmem_release_on(buffer, XMEM_ALL_STREAMS));
	SAME(settled_holds(pool, hear_parent()), 1);
	tell_parent(1);
	hear_parent();			/* and leave the gate closed */
}

static void ends_with_work(void (*end)(struct child *child))
{
	const char *name = new_name();
	struct child *reader = spawn(read_for_ever, (void *)name);
	struct xmem_pool *pool = cuda_writer(name, 1, WORK_BYTES, 0);
	struct xmem_buffer *buffer;
	uint64_t token;

	cuda_publish(pool, WORK_BYTES, 1, &buffer);
	token = xmem_token(buffer);
	tell(reader, token);
	tell(reader, token);
	SAME(hear(reader), 1);
	xmem_release(buffer);
	REFUSED(xmem_acquire_cuda(pool, WORK_BYTES, 0, 0), EAGAIN);
	end(reader);
	buffer = xmem_acquire_cuda(pool, WORK_BYTES, 0, patience_ns());
	CHECK(buffer);
	xmem_release(buffer);
	xmem_pool_close(pool);
	no_violations();
}

static void exits(struct child *child)
{
	tell(child, 1);
	finish_child(child);
}

TEST(CUDA_all_streams_of_a_killed_process_keep_nothing)
{
	ends_with_work(kill_child);
}

TEST(CUDA_an_old_driver_keeps_nothing_of_a_killed_process)
{
	use_old_driver();
	ends_with_work(kill_child);
}

TEST(CUDA_an_old_driver_lets_a_process_exit)
{
	use_old_driver();
	ends_with_work(exits);
}

/* ---- costs ---- */

/* Two for the mode of captures, two for the context, four for the work. */
TEST(CUDA_a_release_on_all_streams_takes_seven_calls_of_the_driver)
{
	struct xmem_buffer *handle[2];
	struct xmem_pool *pool;
	unsigned long before;
	struct work work;

	use_new_driver();
	pool = hold_two(handle);
	begin_work(&work);
	WORKED(xmem_release_on(handle[0], XMEM_ALL_STREAMS));	/* makes the event */
	before = driver_calls(NULL);
	WORKED(xmem_release_on(handle[1], XMEM_ALL_STREAMS));
	CALLS(driver_calls(NULL) - before, 7);
	EVENTUALLY(!stat_of(pool).held);
	xmem_pool_close(pool);
	no_violations();
}

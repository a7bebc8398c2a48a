// SPDX-License-Identifier: MIT
/*
 * Streams that the program captures: the library puts nothing into them, and its own work spoils no
 * capture, whatever the mode of the capture and whichever thread has begun it.
 */
#include <stdlib.h>

#include "graphs.h"
#include "scene.h"

static const CUstreamCaptureMode modes[] = {
	CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
	CU_STREAM_CAPTURE_MODE_RELAXED,
};

static int status_of(CUstream stream)
{
	CUstreamCaptureStatus status;

	must(xl_cuda()->stream_is_capturing(stream, &status));
	return status;
}

/* End a capture that nothing has spoilt; the number of its nodes. */
static size_t end_capture(CUstream stream)
{
	size_t count = 0;
	CUgraph graph;

	SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	must(cuStreamEndCapture(stream, &graph));
	must(cuGraphGetNodes(graph, NULL, &count));
	must(cuGraphDestroy(graph));
	return count;
}

#define CAPTURED(call)	do {							\
	SAME(call, -EPERM);							\
	SAYS(EPERM, "captured", "cuGraphLaunch");				\
} while (0)

/* ---- calls with the captured stream ---- */

static void refuses_a_writer(struct xmem_pool *pool, struct work *work)
{
	struct xmem_buffer *buffer = cuda_acquire(pool, WORK_BYTES);
	static uint64_t word[WORK_BYTES / 8];

	CAPTURED(xmem_wait_on(buffer, work->stream));
	CAPTURED(xmem_copy_from_host(buffer, 0, word, WORK_BYTES, work->stream));
	CAPTURED(xmem_copy_to_host(work->got, buffer, 0, WORK_BYTES, work->stream));
	CAPTURED(publish_on(buffer, work->stream));
	CAPTURED(publish_kept_on(buffer, work->stream));
	xmem_release(buffer);
}

static void refuses_a_reader(struct xmem_pool *pool, struct xmem_buffer *held, struct work *work)
{
	struct xmem_buffer *to = cuda_acquire(pool, WORK_BYTES);

	CAPTURED(xmem_wait_on(held, work->stream));
	CAPTURED(xmem_copy(to, held, work->stream));
	CAPTURED(xmem_copy_range(to, 0, held, 0, 8, work->stream));
	CAPTURED(xmem_copy_to_host(work->got, held, 0, 8, work->stream));
	CAPTURED(xmem_release_on(held, work->stream));
	SAME(xmem_wait_contents(held, 0), -EAGAIN);		/* the handle is as before */
	xmem_release(to);
}

static void refuses_memory_of_the_CPU(struct xmem_pool *pool, struct work *work)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, WORK_BYTES, 0);
	static uint64_t word[1];

	CHECK(buffer);
	CAPTURED(xmem_copy_from_host(buffer, 0, word, 8, work->stream));
	WORKED(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
			    .flags = XMEM_PUBLISH_KEEP), NULL));
	CAPTURED(xmem_release_on(buffer, work->stream));
	xmem_release(buffer);
}

/* Contents that are not complete, so that each of these calls had work for the stream. */
TEST(CUDA_a_captured_stream_takes_no_call_of_the_library)
{
	struct xmem_buffer *buffer;
	struct xmem_pool *own;
	struct scene scene;
	struct work work;
	unsigned int i;

	begin_scene(&scene, 2);
	own = cuda_writer(new_name(), 2, WORK_BYTES, 0);
	WORKED(xmem_preallocate(own, WORK_BYTES, 1, NULL));
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	for (i = 0; i < 3; i++) {
		must(cuStreamBeginCapture(work.stream, modes[i]));
		refuses_a_writer(own, &work);
		refuses_a_reader(own, buffer, &work);
		refuses_memory_of_the_CPU(own, &work);
		SAME(end_capture(work.stream), 0);
	}
	WORKED(xmem_wait_on(buffer, work.stream));
	CHECK(xmem_cuda_ptr(buffer));
	WORKED(xmem_release_on(buffer, work.stream));
	order_writer(&scene, OPEN_GATE);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_pool_close(own);
	end_scene(&scene);
}

/* A blocking stream is captured, with which the default stream is ordered. */
TEST(CUDA_the_default_stream_is_not_used_beside_a_capture)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 2, WORK_BYTES, 0);
	static uint64_t word[WORK_BYTES / 8];
	struct xmem_buffer *buffer, *held;
	struct work work;
	CUstream blocking;

	begin_work(&work);
	must(xl_cuda()->stream_create(&blocking, 0));
	cuda_publish(pool, WORK_BYTES, 1, &held);
	buffer = cuda_acquire(pool, WORK_BYTES);
	must(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
	SAME(xmem_wait_on(held, NULL), -EPERM);
	SAYS(EPERM, "default stream", "CU_STREAM_NON_BLOCKING");
	SAME(publish_on(buffer, CU_STREAM_LEGACY), -EPERM);
	SAME(xmem_copy_from_host(buffer, 0, word, 8, NULL), -EPERM);
	SAME(xmem_release_on(held, CU_STREAM_LEGACY), -EPERM);
	WORKED(publish_on(buffer, work.stream));
	SAME(end_capture(blocking), 0);
	cuda_check(held, 1);
	WORKED(xmem_release_on(held, NULL));
	must(xl_cuda()->stream_synchronize(work.stream));
	must(xl_cuda()->stream_synchronize(CU_STREAM_LEGACY));
	xmem_pool_close(pool);
}

/* ---- work beside a capture ---- */

/* A capture of this thread, or of another one that lasts as long. */
struct capture {
	CUstream stream;
	CUstreamCaptureMode mode;
	bool elsewhere;
	pthread_t thread;
	sem_t begun, enough;
	size_t nodes;
};

static void *capture_elsewhere(void *argument)
{
	struct capture *capture = argument;

	must(cuStreamBeginCapture(capture->stream, capture->mode));
	sem_post(&capture->begun);
	while (sem_wait(&capture->enough))
		;
	capture->nodes = end_capture(capture->stream);
	return NULL;
}

static void begin_capture(struct capture *capture)
{
	must(xl_cuda()->stream_create(&capture->stream, CU_STREAM_NON_BLOCKING));
	if (!capture->elsewhere) {
		must(cuStreamBeginCapture(capture->stream, capture->mode));
		return;
	}
	sem_init(&capture->begun, 0, 0);
	sem_init(&capture->enough, 0, 0);
	SAME(pthread_create(&capture->thread, NULL, capture_elsewhere, capture), 0);
	while (sem_wait(&capture->begun))
		;
}

static void finish_capture(struct capture *capture)
{
	if (!capture->elsewhere) {
		SAME(end_capture(capture->stream), 0);
		return;
	}
	sem_post(&capture->enough);
	SAME(pthread_join(capture->thread, NULL), 0);
	SAME(capture->nodes, 0);
}

/*
 * Make memory and give it back, open memory of another process, register a page, put work into
 * another stream, and wait for it.
 */
static void works_beside(struct capture *capture, uint32_t memory)
{
	struct xmem_buffer *buffer, *cpu, *own;
	struct xmem_pool *pool;
	struct scene scene;
	struct work work;

	spawn_writer(&scene, new_name(), 2, memory);
	start_writer(&scene, NULL);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(pool, WORK_BYTES, 1, NULL));
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 7));
	buffer = receive_next(&scene);
	begin_capture(capture);
	WORKED(make_on_gpu(pool, WORK_BYTES, 1, 0, memory));
	WORKED(xmem_wait_on(buffer, work.stream));
	CHECK(xmem_cuda_ptr(buffer));
	order_writer(&scene, OPEN_GATE);
	cuda_check(buffer, 7);
	own = cuda_acquire(pool, WORK_BYTES);
	fill_on(own, 8, &work);
	WORKED(publish_kept_on(own, work.stream));
	CHECK(xmem_cuda_ptr(own));
	WORKED(xmem_wait_contents(own, XMEM_FOREVER));
	cpu = xmem_acquire(pool, WORK_BYTES, 0);
	CHECK(cpu);
	/* On the CPU the thread copies, after the stream's work. */
	WORKED(xmem_copy_from_host(cpu, 0, work.got, 8, work.stream));
	WORKED(xmem_release_on(buffer, work.stream));
	xmem_release(cpu);
	xmem_release(own);
	CHECK(trim_pool(pool, 0) > 0);
	finish_capture(capture);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_pool_close(pool);
	end_scene(&scene);
}

TEST(CUDA_work_beside_a_capture_of_this_thread_spoils_nothing)
{
	works_beside(&(struct capture){ .mode = CU_STREAM_CAPTURE_MODE_GLOBAL }, 0);
}

TEST(CUDA_work_beside_a_capture_for_this_thread_alone_spoils_nothing)
{
	works_beside(&(struct capture){ .mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL }, 0);
}

TEST(CUDA_work_beside_a_capture_of_another_thread_spoils_nothing)
{
	works_beside(&(struct capture){ .elsewhere = true }, 0);
}

TEST(CUDA_handles_beside_a_capture_spoil_nothing)
{
	works_beside(&(struct capture){ .mode = CU_STREAM_CAPTURE_MODE_GLOBAL },
		     XMEM_MEMORY_LEGACY);
}

/* A thread that waits for its own GPU asks from time to time whether the GPU still works. */
TEST(CUDA_a_thread_that_waits_asks_no_captured_stream)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, WORK_BYTES, 0);
	struct xmem_buffer *buffer = cuda_acquire(pool, WORK_BYTES);
	struct work work;

	begin_work(&work);
	close_gate(&work);
	WORKED(publish_kept_on(buffer, work.stream));
	must(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	CAPTURED(xmem_release_on(buffer, CU_STREAM_PER_THREAD));
	/* Before the wait ends, it asks once. */
	SAME(xmem_wait_contents(buffer, 1), -ETIMEDOUT);
	SAME(end_capture(CU_STREAM_PER_THREAD), 0);
	open_gate(&work);
	WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
	xmem_release(buffer);
	xmem_pool_close(pool);
}

static int mode_of_thread(void)
{
	CUstreamCaptureMode mode = xl_capture_relax();

	xl_capture_restore(mode);
	return mode;
}

TEST(CUDA_a_scope_restores_the_mode_for_captures)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	struct xl_gpu_scope scope;

	SAME(mode_of_thread(), CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(xl_cuda()->thread_exchange_stream_capture_mode(&mode));
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	SAME(mode_of_thread(), CU_STREAM_CAPTURE_MODE_RELAXED);
	xl_gpu_leave(&scope);
	SAME(mode_of_thread(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

/* Such a driver captures nothing. */
TEST(CUDA_a_driver_without_captures_is_not_asked)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	setenv("FAKECUDA_MISSING", "cuStreamIsCapturing,cuThreadExchange*", 1);
	fake_only("it lacks functions on demand");
	begin_scene(&scene, 2);
	begin_work(&work);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	CHECK(xmem_cuda_ptr(buffer));
	WORKED(xmem_release_on(buffer, work.stream));
	order_writer(&scene, OPEN_GATE);
	EVENTUALLY(!stat_of(scene.pool).held);
	end_scene(&scene);
}

// SPDX-License-Identifier: MIT
/*
 * Threads that open, read, pass on, drop and make buffers on a GPU at one time.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bytes.h"

#define BYTES	50000
#define THREADS	4

static struct {
	struct xmem_pool *writer, *reader;
	uint64_t token;
	pthread_barrier_t barrier;
	const void *address[THREADS];
} all;

static void run(void *(*body)(void *number))
{
	pthread_t thread[THREADS];
	uintptr_t i;

	for (i = 0; i < THREADS; i++)
		SAME(pthread_create(&thread[i], NULL, body, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		SAME(pthread_join(thread[i], NULL), 0);
}

/* ---- all threads open one allocation at once ---- */

static void *open_together(void *number)
{
	struct xmem_buffer *buffer = xmem_get(all.reader, all.token);

	CHECK(buffer);
	pthread_barrier_wait(&all.barrier);
	all.address[(uintptr_t)number] = xmem_cuda_ptr(buffer);
	cuda_check(buffer, 8);
	xmem_release(buffer);
	return NULL;
}

static void publish_and_stay(void *argument)
{
	struct xmem_pool *pool = cuda_writer(argument, 1, BYTES, XMEM_MEMORY_READERS);
	struct xmem_buffer *kept;

	tell_parent(cuda_publish(pool, BYTES, 8, &kept));
	hear_parent();
}

TEST(CUDA_threads_that_open_together_open_once)
{
	const char *name = new_name();
	struct child *child = spawn(publish_and_stay, (void *)name);
	int i;

	all.token = hear(child);
	all.reader = OPEN(name, .flags = 0);
	pthread_barrier_init(&all.barrier, NULL, THREADS);
	run(open_together);
	for (i = 0; i < THREADS; i++)
		CHECK(all.address[i] && all.address[i] == all.address[0]);
	CALLS(driver_calls("cuMemImportFromShareableHandle"), 1);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(all.reader);
	USED(0);
	no_violations();
}

/* ---- all threads do everything ---- */

static void *work(void *number)
{
	unsigned int i, count = scaled(200);
	struct xmem_buffer *buffer, *other;

	for (i = 0; i < count; i++) {
		uint64_t stamp = ((uintptr_t)number << 32) + i, token;

		buffer = xmem_acquire_cuda(all.writer, BYTES, 0, patience_ns());
		CHECK(buffer);
		cuda_fill(buffer, stamp);
		WORKED(xmem_publish(buffer, &(struct xmem_publish_options){
			.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
		}, &token));
		other = xmem_get(all.reader, token);
		CHECK(other);
		xmem_release(buffer);
		cuda_check(other, stamp);
		xmem_release(other);
		if (i % 50 == 7) {
			WORKED(make_on_gpu(all.writer, 2 * BYTES, 1, 0,
					   i & 1 ? XMEM_MEMORY_LEGACY : 0));
			stat_of(all.reader);
		}
		if (i % 50 == 30)
			WORKED(trim_pool(all.writer, 4 << 20));
	}
	return NULL;
}

TEST_WITHIN(CUDA_threads_do_everything_at_once, 60)
{
	const char *name = new_name();

	all.writer = cuda_writer(name, 2 * THREADS, BYTES, 0);
	all.reader = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(make_on_gpu(all.writer, 4 << 20, THREADS, 0, XMEM_MEMORY_LEGACY));
	run(work);
	SAME(stat_of(all.writer).held, 0);
	xmem_pool_close(all.reader);
	xmem_pool_close(all.writer);
	USED(0);
	no_violations();
}

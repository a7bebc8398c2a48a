// SPDX-License-Identifier: MIT
/*
 * A call of the driver may wait for a stream that waits for another thread of the program. So no
 * thread has a lock of the library then. Builds for tests check this in each call (xl_cuda); here
 * one thread is in such a call, and the others go on.
 */
#include <pthread.h>

#include "core/step.h"
#include "tests/conform/attached.h"
#include "work.h"

#define BYTES	100000
#define MINE	(XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS)

/* The thread is in the driver, which waits for the stream. */
static void wait_for_call(const char *name, unsigned long before)
{
	EVENTUALLY(driver_calls(name) > before);
	give_time();
}

/* Memory of the program, for do_everything. */
static CUdeviceptr mine[2];

static void make_mine(void)
{
	uint64_t word[BYTES / 8];
	struct xl_gpu_scope scope;
	unsigned int i;

	for (i = 0; i < BYTES / 8; i++)
		word[i] = stamp_word(1, i);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	for (i = 0; i < 2; i++) {
		must(xl_cuda()->mem_alloc(&mine[i], 4 << 20));
		must(xl_cuda()->memcpy_htod(mine[i], word, BYTES));
	}
	xl_gpu_leave(&scope);
}

static void free_mine(void)
{
	struct xl_gpu_scope scope;
	int i;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	for (i = 0; i < 2; i++)
		must(xl_cuda()->mem_free(mine[i]));
	xl_gpu_leave(&scope);
}

/* All that may need a lock which a call of the driver could have been made under. */
static void do_everything(struct xmem_pool *pool, CUdeviceptr at)
{
	struct xmem_buffer *buffer;

	stat_of(pool);
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	WORKED(make_on_gpu(pool, BYTES, 1, 0, XMEM_MEMORY_LEGACY));
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	buffer = cuda_acquire(pool, BYTES);
	cuda_fill(buffer, 3);
	xmem_release(buffer);
	buffer = xmem_acquire(pool, BYTES, 0);
	CHECK(buffer);
	xmem_release(buffer);
	xmem_release(attach_stamp(pool, 4));
	buffer = xmem_attach_cuda(pool, (void *)at, BYTES, 0, NULL, NULL);
	CHECK(buffer);
	xmem_release(buffer);
}

/* ---- memory is freed ---- */

static void *collect_all(void *pool)
{
	WORKED(trim_pool(pool, 0));
	return NULL;
}

TEST(CUDA_a_free_that_waits_for_a_stream_holds_up_no_other_thread)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, XMEM_MEMORY_LEGACY), *other;
	unsigned long before;
	struct work work;
	pthread_t thread;

	fake_only("its counts show that the thread is in the driver");
	other = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 256);
	make_mine();
	begin_work(&work);
	close_gate(&work);
	before = driver_calls("cuMemFree");
	SAME(pthread_create(&thread, NULL, collect_all, pool), 0);
	wait_for_call("cuMemFree", before);
	do_everything(other, mine[0]);
	do_everything(pool, mine[1]);
	xmem_pool_close(OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 64));
	open_gate(&work);
	SAME(pthread_join(thread, NULL), 0);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	free_mine();
	no_violations();
}

/* ---- memory of another process is closed ---- */

/* Publishes two buffers, frees the first one when it is told to, and leaves when it is told to. */
static void own_two(void *name)
{
	struct xmem_pool *pool = cuda_writer(name, 1, BYTES, MINE);
	struct xmem_buffer *first, *second;

	tell_parent(cuda_publish(pool, BYTES, 1, &first));
	WORKED(make_on_gpu(pool, BYTES, 1, 0, MINE));
	tell_parent(cuda_publish(pool, BYTES, 2, &second));
	hear_parent();
	xmem_release(first);
	WORKED(trim_pool(pool, 0));
	tell_parent(1);
	hear_parent();
	xmem_release(second);
	xmem_pool_close(pool);
	no_violations();
}

static void *stat_once(void *pool)
{
	stat_of(pool);
	return NULL;
}

TEST(CUDA_a_close_that_waits_for_a_stream_holds_up_no_other_thread)
{
	struct child *child;
	struct xmem_pool *pool;
	struct xmem_buffer *buffer;
	uint64_t token[2];
	unsigned long before;
	struct work work;
	pthread_t thread;
	const char *name = new_name();

	child = spawn(own_two, (void *)name);
	token[0] = hear(child);
	token[1] = hear(child);
	fake_only("its counts show that the thread is in the driver");
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 256);
	buffer = xmem_get(pool, token[0]);
	cuda_check(buffer, 1);
	xmem_release(buffer);
	make_mine();
	begin_work(&work);
	close_gate(&work);
	tell(child, 1);
	SAME(hear(child), 1);
	before = driver_calls("cuIpcCloseMemHandle");
	SAME(pthread_create(&thread, NULL, stat_once, pool), 0);
	wait_for_call("cuIpcCloseMemHandle", before);
	buffer = xmem_get(pool, token[1]);
	CHECK(buffer && xmem_cuda_ptr(buffer));
	do_everything(pool, mine[1]);
	open_gate(&work);
	SAME(pthread_join(thread, NULL), 0);
	cuda_check(buffer, 2);
	xmem_release(buffer);
	tell(child, 1);
	xmem_pool_close(pool);
	finish_child(child);
	free_mine();
	no_violations();
}

/* ---- two threads want one allocation ---- */

static void count_given_back(void *count)
{
	++*(unsigned int *)count;
}

/*
 * Attaches one allocation twice. The second buffer stays when the first one has gone. The memory is
 * freed when both are given back, because the test may still have it open before that.
 */
static void attach_twice(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *buffer[2];
	unsigned int given_back = 0;
	uint64_t token[2];
	int i;

	make_mine();
	for (i = 0; i < 2; i++) {
		buffer[i] = xmem_attach_cuda(pool, (void *)mine[0], BYTES, XMEM_MEMORY_READERS,
					     count_given_back, &given_back);
		CHECK(buffer[i]);
		WORKED(xmem_publish(buffer[i], &keep, &token[i]));
		tell_parent(token[i]);
	}
	hear_parent();
	xmem_release(buffer[0]);
	WORKED(trim_pool(pool, 0));
	tell_parent(1);
	hear_parent();
	xmem_release(buffer[1]);
	EVENTUALLY(trim_pool(pool, 0) >= 0 && given_back == 2);
	xmem_pool_close(pool);
	free_mine();
	no_violations();
}

static struct work closing;

static void let_it_close(int step)
{
	(void)step;
	open_gate(&closing);
}

TEST(CUDA_memory_that_a_thread_closes_is_opened_afterwards)
{
	struct child *child;
	struct xmem_pool *pool;
	struct xmem_buffer *buffer;
	uint64_t token[2];
	unsigned long before;
	pthread_t thread;
	const char *name = new_name();

	steps_only();
	child = spawn(attach_twice, (void *)name);
	token[0] = hear(child);
	token[1] = hear(child);
	fake_only("its counts show that the thread is in the driver");
	pool = OPEN(name, .flags = 0);
	buffer = xmem_get(pool, token[0]);
	cuda_check(buffer, 1);
	xmem_release(buffer);
	begin_work(&closing);
	close_gate(&closing);
	tell(child, 1);
	SAME(hear(child), 1);
	before = driver_calls("cuIpcCloseMemHandle");
	SAME(pthread_create(&thread, NULL, stat_once, pool), 0);
	wait_for_call("cuIpcCloseMemHandle", before);
	buffer = xmem_get(pool, token[1]);
	at_step(XM_STEP_WAIT, 0, STEP_CALL, let_it_close);
	CHECK(buffer && xmem_cuda_ptr(buffer));
	no_step();
	cuda_check(buffer, 1);
	SAME(pthread_join(thread, NULL), 0);
	xmem_release(buffer);
	tell(child, 1);
	xmem_pool_close(pool);
	finish_child(child);
	no_violations();
}

/* ---- two threads open one payload ---- */

static struct {
	struct xmem_buffer *buffer;
	pthread_t thread;
	sem_t waits;
	bool opened;			/* atomic */
} second;

static void say_that_it_waits(int step)
{
	(void)step;
	sem_post(&second.waits);
}

static void *open_second(void *unused)
{
	CHECK(xmem_cuda_ptr(second.buffer));
	__atomic_store_n(&second.opened, true, __ATOMIC_RELEASE);
	sem_post(&second.waits);
	return unused;
}

/* This thread has opened the memory, and no other thread can find it yet. */
static void let_second_come(int step)
{
	(void)step;
	at_step(XM_STEP_WAIT, 0, STEP_CALL, say_that_it_waits);
	SAME(pthread_create(&second.thread, NULL, open_second, NULL), 0);
	while (sem_wait(&second.waits))
		;
	CHECK(!__atomic_load_n(&second.opened, __ATOMIC_ACQUIRE));
}

TEST(CUDA_a_payload_that_a_thread_opens_is_waited_for)
{
	struct child *child;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	const char *name = new_name();
	uint64_t token;

	steps_only();
	child = spawn(own_two, (void *)name);
	hear(child);
	token = hear(child);
	pool = OPEN(name, .flags = 0);
	buffer = xmem_get(pool, token);
	second.buffer = xmem_get(pool, token);
	CHECK(buffer && second.buffer);
	SAME(sem_init(&second.waits, 0, 0), 0);
	at_step(XM_STEP_CUDA_OPENED, 0, STEP_CALL, let_second_come);
	CHECK(xmem_cuda_ptr(buffer));
	SAME(pthread_join(second.thread, NULL), 0);
	no_step();
	CHECK(xmem_cuda_ptr(buffer) == xmem_cuda_ptr(second.buffer));
	cuda_check(buffer, 2);
	xmem_release(second.buffer);
	xmem_release(buffer);
	tell(child, 1);
	SAME(hear(child), 1);
	tell(child, 1);
	xmem_pool_close(pool);
	finish_child(child);
	no_violations();
}

// SPDX-License-Identifier: MIT
/*
 * Copies that the writer itself puts into a stream, into the buffer that it is writing or out of
 * it. They are work of the slot until they have run. Whatever the program does with the buffer
 * meanwhile, they do not reach other contents, and the memory stays. A gate holds a stream up: a
 * host function that waits until the test has made its checks.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "bytes.h"

#define BYTES	4096
#define WORDS	(BYTES / 8)

static const struct xmem_publish_options keep = {
	.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
};

/* ---- streams and gates ---- */

struct work {
	CUstream stream;
	sem_t gate;
	const char *after;		/* the gate opens after another call of this function */
	unsigned long calls;
	bool opened;			/* atomic: by then */
	uint64_t *got;			/* BYTES, registered: the words that the stream has read */
};

static void must(CUresult result)
{
	if (result)
		FAIL("the driver returned %d", result);
}

/* Streams may use it until the test ends. It stays reachable then, so it is no leak. */
static struct work *new_work(void)
{
	static struct work *kept[8];
	static unsigned int count;
	struct xl_gpu_scope scope;
	struct work *work = calloc(1, sizeof(*work));

	CHECK(work && count < sizeof(kept) / sizeof(*kept));
	kept[count++] = work;
	work->got = aligned_alloc(4096, BYTES);
	CHECK(work->got);
	SAME(sem_init(&work->gate, 0, 0), 0);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	must(xl_cuda()->mem_host_register(work->got, BYTES, 0));
	must(xl_cuda()->stream_create(&work->stream, CU_STREAM_NON_BLOCKING));
	xl_gpu_leave(&scope);
	return work;
}

static void pass(void *gate)
{
	while (sem_wait(gate))
		;
}

/* Work that is put into the stream from now on waits for open_gate. */
static void close_gate(struct work *work)
{
	must(xl_cuda()->launch_host_func(work->stream, pass, &work->gate));
}

static void open_gate(struct work *work)
{
	sem_post(&work->gate);
}

static void *open_after(void *argument)
{
	struct work *work = argument;

	if (on_fake())
		EVENTUALLY(driver_calls(work->after) > work->calls);
	else
		give_time();
	__atomic_store_n(&work->opened, true, __ATOMIC_SEQ_CST);
	open_gate(work);
	return NULL;
}

/*
 * A thread opens the gate once the library has called the driver's function, if the driver counts.
 */
static pthread_t open_gate_after(struct work *work, const char *name)
{
	pthread_t thread;

	work->after = name;
	work->calls = driver_calls(name);
	SAME(pthread_create(&thread, NULL, open_after, work), 0);
	return thread;
}

/* Wait until all work in the stream has run. */
static void finish(struct work *work)
{
	open_gate(work);
	must(xl_cuda()->stream_synchronize(work->stream));
}

static bool is_working(const struct work *work)
{
	CUresult result = xl_cuda()->stream_query(work->stream);

	if (result != CUDA_ERROR_NOT_READY)
		must(result);
	return result;
}

/*
 * The library has waited: the stream had done all its work before this call, after open_gate_after
 * let it. A driver may report that only a moment after it has written the last word.
 */
static void was_waited_for(struct work *work)
{
	CHECK(__atomic_load_n(&work->opened, __ATOMIC_SEQ_CST));
	ON_FAKE(CHECK(!is_working(work)));
}

/* ---- contents ---- */

/* The contents of cuda_fill. They stay until the test ends, because a stream copies them. */
static const uint64_t *words_of(uint64_t stamp)
{
	static uint64_t word[8][WORDS];
	size_t i;

	CHECK(stamp < 8);
	for (i = 0; i < WORDS; i++)
		word[stamp][i] = stamp * 0x9e3779b97f4a7c15ULL + i;
	return word[stamp];
}

static void copy_in(struct xmem_buffer *buffer, uint64_t stamp, struct work *work)
{
	WORKED(xmem_copy_from_host(buffer, 0, words_of(stamp), BYTES, work->stream));
}

/* The copy is behind a closed gate. */
static struct xmem_buffer *acquire_and_copy(struct xmem_pool *pool, uint64_t stamp,
					    struct work *work)
{
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);

	close_gate(work);
	copy_in(buffer, stamp, work);
	return buffer;
}

static void end(struct xmem_pool *pool)
{
	xmem_pool_close(pool);
	no_violations();
}

/* ---- a buffer that is released ---- */

TEST(CUDA_what_a_copy_has_yet_to_write_is_not_given_back)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();

	xmem_release(acquire_and_copy(pool, 1, work));
	SAME(trim_pool(pool, 0), 0);
	finish(work);
	CHECK(trim_pool(pool, 0) > 0);
	end(pool);
}

/* Write the next contents of that memory: @second gives the stream, and the way is the argument. */
static void writes_again(struct work *(*second)(struct work *first))
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *first = new_work(), *other = second ? second(first) : NULL;
	struct xmem_buffer *buffer;
	pthread_t thread;

	xmem_release(acquire_and_copy(pool, 1, first));
	buffer = cuda_acquire(pool, BYTES);
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	if (other) {
		copy_in(buffer, 2, other);
		WORKED(publish_kept_on(buffer, other->stream));
		SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
		finish(first);
	} else {
		thread = open_gate_after(first, "cuStreamQuery");
		cuda_fill(buffer, 2);		/* this waits */
		SAME(pthread_join(thread, NULL), 0);
		WORKED(xmem_publish(buffer, &keep, NULL));
	}
	must(xl_cuda()->stream_synchronize(first->stream));
	cuda_check(buffer, 2);
	xmem_release(buffer);
	end(pool);
}

static struct work *the_same(struct work *first)
{
	return first;
}

static struct work *another(struct work *first)
{
	(void)first;
	return new_work();
}

TEST(CUDA_a_late_copy_does_not_reach_what_a_thread_writes_next)
{
	writes_again(NULL);
}

TEST(CUDA_a_late_copy_does_not_reach_what_its_stream_writes_next)
{
	writes_again(the_same);
}

TEST(CUDA_a_late_copy_does_not_reach_what_another_stream_writes_next)
{
	writes_again(another);
}

TEST(CUDA_a_late_copy_does_not_reach_what_is_written_where_words_cannot_be)
{
	use_attributes("122=0");
	writes_again(NULL);
}

TEST(CUDA_closing_the_pool_waits_for_copies)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 2, BYTES, 0);
	struct work *work = new_work();
	pthread_t thread;

	xmem_release(acquire_and_copy(pool, 1, work));
	thread = open_gate_after(work, "cuStreamQuery");
	xmem_pool_close(pool);
	was_waited_for(work);
	SAME(pthread_join(thread, NULL), 0);
	no_violations();
}

/* ---- a buffer that is published ---- */

/* The contents that a subscriber receives are checked without a stream. */
static void is_received(struct xmem_subscription *sub, uint64_t stamp, struct work *work)
{
	struct xmem_buffer *buffer = xmem_receive(sub, patience_ns());

	CHECK(buffer);
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	SAME(xmem_wait_contents(buffer, 20 * MS), -ETIMEDOUT);
	finish(work);
	WORKED(xmem_wait_contents(buffer, patience_ns()));
	cuda_check(buffer, stamp);
	xmem_release(buffer);
}

enum way { PLAINLY, WITH_OPTIONS, ON_ANOTHER, AFTER_ITS_STREAM };

static void publish(struct xmem_buffer *buffer, enum way way, struct work *work)
{
	unsigned long waits = driver_calls("cuStreamWaitValue64");

	switch (way) {
	case AFTER_ITS_STREAM:	/* the driver lets it work on, but no call may name it again */
		must(xl_cuda()->stream_destroy(work->stream));
		/* fall through */
	case PLAINLY:
		WORKED(xmem_publish(buffer, NULL, NULL));
		break;
	case WITH_OPTIONS:
		WORKED(xmem_publish(buffer, &keep, NULL));
		SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
		xmem_release(buffer);
		break;
	case ON_ANOTHER:
		WORKED(publish_on(buffer, new_work()->stream));
		/* A stream that did not wait might come to its own write late, too. */
		CALLS(driver_calls("cuStreamWaitValue64"), waits + 1);
		break;
	}
}

static void publishes(enum way way)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 2, BYTES, 0);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(other, xmem_pool_client(pool), 0);
	struct work *work = new_work();

	publish(acquire_and_copy(pool, 1, work), way, work);
	if (way == AFTER_ITS_STREAM)
		work->stream = new_work()->stream;
	is_received(sub, 1, work);
	xmem_unsubscribe(sub);
	xmem_pool_close(other);
	end(pool);
}

TEST(CUDA_what_is_published_under_a_copy_is_waited_for)
{
	publishes(PLAINLY);
}

TEST(CUDA_what_is_published_and_kept_under_a_copy_is_waited_for)
{
	publishes(WITH_OPTIONS);
}

TEST(CUDA_what_another_stream_publishes_waits_for_the_copy)
{
	publishes(ON_ANOTHER);
}

TEST(CUDA_a_copy_outlives_its_stream)
{
	publishes(AFTER_ITS_STREAM);
}

TEST(CUDA_counting_waits_for_a_running_copy)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer = acquire_and_copy(pool, 1, work);

	WORKED(xmem_set_ref_count(buffer, 1, 50 * SECOND));
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	finish(work);
	cuda_check(buffer, 1);
	xmem_release(buffer);
	end(pool);
}

/* Two streams copy a half each: the contents are complete when both have run. */
TEST(CUDA_copies_on_two_streams_are_both_waited_for)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *first = new_work(), *second = new_work();
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);
	const uint64_t *word = words_of(3);

	close_gate(first);
	WORKED(xmem_copy_from_host(buffer, 0, word, BYTES / 2, first->stream));
	WORKED(xmem_copy_from_host(buffer, BYTES / 2, word + WORDS / 2, BYTES / 2,
				    second->stream));
	WORKED(xmem_publish(buffer, &keep, NULL));
	CHECK(is_working(second));
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	finish(first);
	cuda_check(buffer, 3);
	xmem_release(buffer);
	end(pool);
}

/* A program that waits for its stream itself publishes complete contents. */
TEST(CUDA_what_is_published_behind_its_copy_is_complete)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer = acquire_and_copy(pool, 4, work);

	finish(work);
	WORKED(xmem_publish(buffer, &keep, NULL));
	SAME(xmem_wait_contents(buffer, 0), 0);
	SAME(xmem_metadata_ptr(buffer)->order_kind, XMEM_ORDER_NONE);
	cuda_check(buffer, 4);
	xmem_release(buffer);
	end(pool);
}

/*
 * The host checks for running copies when the writer ends: only without one may another owner get
 * its words.
 */
TEST(CUDA_the_host_is_told_of_a_copy_before_it_is_published)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer = acquire_and_copy(pool, 4, work);
	const struct xmem_metadata *metadata = xmem_metadata_ptr(buffer);

	SAME(metadata->order_kind, XMEM_ORDER_READY);
	SAME(metadata->order_value, 1);
	finish(work);
	xmem_release(buffer);
	end(pool);
}

/* After a whole copy, the metadata do not mean that no stream has work left. */
TEST(CUDA_the_host_is_told_of_a_whole_copy_before_it_is_published)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 2, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *from = cuda_acquire(pool, BYTES), *to = cuda_acquire(pool, BYTES);

	cuda_fill(from, 5);
	close_gate(work);
	WORKED(xmem_copy(to, from, work->stream));
	SAME(xmem_metadata_ptr(to)->order_kind, XMEM_ORDER_READY);
	WORKED(xmem_publish(to, &keep, NULL));
	SAME(xmem_wait_contents(to, 0), -EAGAIN);
	finish(work);
	cuda_check(to, 5);
	xmem_release(from);
	xmem_release(to);
	end(pool);
}

/* ---- copies out of a buffer that is being written ---- */

TEST(CUDA_a_copy_out_of_a_buffer_reads_what_was_there)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work(), *second = new_work();
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);

	cuda_fill(buffer, 5);
	close_gate(work);
	WORKED(xmem_copy_to_host(work->got, buffer, 0, BYTES, work->stream));
	xmem_release(buffer);
	SAME(trim_pool(pool, 0), 0);
	buffer = cuda_acquire(pool, BYTES);
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	copy_in(buffer, 6, second);
	CHECK(is_working(second));
	finish(work);
	CHECK(!memcmp(work->got, words_of(5), BYTES));
	xmem_release(buffer);
	end(pool);
}

TEST(CUDA_both_buffers_of_a_copy_are_in_use_until_it_has_run)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 2, BYTES, 0);
	struct xmem_buffer *from = cuda_acquire(pool, BYTES), *to = cuda_acquire(pool, BYTES);
	struct work *work = new_work();

	cuda_fill(from, 5);
	close_gate(work);
	WORKED(xmem_copy_range(to, 0, from, 0, BYTES, work->stream));
	SAME(xmem_wait_contents(from, 0), -EAGAIN);
	SAME(xmem_wait_contents(to, 0), -EAGAIN);
	xmem_release(from);
	WORKED(xmem_publish(to, &keep, NULL));
	SAME(xmem_wait_contents(to, 0), -EAGAIN);
	finish(work);
	cuda_check(to, 5);
	xmem_release(to);
	end(pool);
}

/* The copy runs on the GPU of its target, which waits there for the source. */
TEST(CUDA_a_copy_on_the_default_stream_waits_for_another_gpu)
{
	struct xmem_buffer *from, *to;
	struct xmem_pool *pool;
	struct work *work;

	need_gpus(2);
	setenv("FAKECUDA_PEERS", "0-1", 1);
	pool = cuda_writer(new_name(), 1, BYTES, 0);
	WORKED(make_on_gpu(pool, BYTES, 1, 1, 0));
	work = new_work();
	from = acquire_and_copy(pool, 1, work);
	to = xmem_acquire_cuda(pool, BYTES, 1, 0);
	CHECK(to);
	WORKED(xmem_copy_range(to, 0, from, 0, BYTES, CU_STREAM_LEGACY));
	xmem_release(from);
	WORKED(xmem_publish(to, &keep, NULL));
	SAME(xmem_wait_contents(to, 100 * MS), -ETIMEDOUT);
	finish(work);
	cuda_check(to, 1);
	xmem_release(to);
	end(pool);
}

static void note_done(void *done)
{
	*(bool *)done = true;
}

TEST(CUDA_attached_memory_is_not_done_before_a_copy_out_of_it)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct work *work = new_work();
	struct xmem_buffer *buffer;
	struct xl_gpu_scope scope;
	bool done = false;
	CUdeviceptr at;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	must(xl_cuda()->mem_alloc(&at, 2 << 20));
	buffer = xmem_attach_cuda(pool, (void *)at, BYTES, 0, note_done, &done);
	CHECK(buffer);
	close_gate(work);
	WORKED(xmem_copy_to_host(work->got, buffer, 0, BYTES, work->stream));
	xmem_release(buffer);
	CHECK(trim_pool(pool, 0) >= 0);
	CHECK(!done);
	finish(work);
	EVENTUALLY(trim_pool(pool, 0) >= 0 && done);
	must(xl_cuda()->mem_free(at));
	xl_gpu_leave(&scope);
	end(pool);
}

/* ---- contents that are written in place ---- */

/* Its ready word is another client's, so the copy has run when the call returns. */
TEST(CUDA_a_copy_into_what_is_written_in_place_is_waited_for)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 2, BYTES, 0);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(other, xmem_pool_client(pool), 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer;
	pthread_t thread;

	cuda_publish(pool, BYTES, 1, NULL);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer);
	WORKED(xmem_get_mut(buffer));
	close_gate(work);
	thread = open_gate_after(work, "cuStreamSynchronize");
	copy_in(buffer, 2, work);
	was_waited_for(work);
	SAME(pthread_join(thread, NULL), 0);
	WORKED(xmem_publish(buffer, &keep, NULL));
	cuda_check(buffer, 2);
	xmem_release(buffer);
	xmem_unsubscribe(sub);
	xmem_pool_close(other);
	end(pool);
}

/* ---- streams that wait ---- */

/* Each stream that is told to wait does so, not only the first one. */
TEST(CUDA_every_stream_of_a_writer_waits_that_is_told_to)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *first = new_work(), *second = new_work(), *third = new_work();
	struct xmem_buffer *buffer;
	pthread_t thread;

	xmem_release(acquire_and_copy(pool, 1, first));
	buffer = cuda_acquire(pool, BYTES);
	WORKED(xmem_wait_on(buffer, second->stream));
	WORKED(xmem_wait_on(buffer, third->stream));
	CHECK(is_working(second));
	CHECK(is_working(third));
	/* The thread waits for none of the streams: if it did, its query would open the gate. */
	thread = open_gate_after(first, "cuStreamQuery");
	CHECK(xmem_cuda_ptr_mut(buffer));
	ON_FAKE(CHECK(!__atomic_load_n(&first->opened, __ATOMIC_SEQ_CST)));
	is_working(first);
	SAME(pthread_join(thread, NULL), 0);
	must(xl_cuda()->stream_synchronize(third->stream));
	xmem_release(buffer);
	end(pool);
}

static void *copy_in_elsewhere(void *buffer)
{
	unsigned long before = driver_calls("cuStreamWaitValue64");

	WORKED(xmem_copy_from_host(buffer, 0, words_of(2), BYTES, CU_STREAM_PER_THREAD));
	ON_FAKE(CHECK(driver_calls("cuStreamWaitValue64") > before));
	SAME(xmem_wait_contents(buffer, 20 * MS), -ETIMEDOUT);
	return NULL;
}

/* One name stands for another stream in each thread. */
TEST(CUDA_the_stream_of_another_thread_waits_for_a_copy)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);
	CUstream stream = work->stream;
	struct xl_gpu_scope scope;
	pthread_t thread;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	work->stream = CU_STREAM_PER_THREAD;
	close_gate(work);
	copy_in(buffer, 1, work);
	SAME(pthread_create(&thread, NULL, copy_in_elsewhere, buffer), 0);
	SAME(pthread_join(thread, NULL), 0);
	finish(work);
	WORKED(xmem_publish(buffer, &keep, NULL));
	cuda_check(buffer, 2);
	xmem_release(buffer);
	work->stream = stream;
	xl_gpu_leave(&scope);
	end(pool);
}

/* ---- refusals of the driver, and costs ---- */

/* The copy is already in the stream, so the call waits for it. */
TEST(CUDA_a_copy_is_waited_for_if_its_stream_takes_no_word)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);
	pthread_t thread;

	fake_only("it fails on demand");
	CHECK(xmem_cuda_ptr_mut(buffer));
	driver_fails("cuStreamWriteValue64:1:1");
	close_gate(work);
	thread = open_gate_after(work, "cuStreamSynchronize");
	copy_in(buffer, 1, work);
	was_waited_for(work);
	driver_fails(NULL);
	SAME(pthread_join(thread, NULL), 0);
	WORKED(xmem_publish(buffer, &keep, NULL));
	cuda_check(buffer, 1);
	xmem_release(buffer);
	end(pool);
}

/*
 * One call asks whether the stream is captured, one asks for the context, two change the thread's
 * mode for captures, one copies, and one writes the word.
 */
TEST(CUDA_a_copy_on_a_stream_takes_six_calls_of_the_driver)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct work *work = new_work();
	struct xmem_buffer *buffer;
	struct xl_gpu_scope scope;
	unsigned long before;
	int i;

	fake_only("its calls are counted");
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	for (i = 0; i < 4; i++) {
		buffer = cuda_acquire(pool, BYTES);
		CHECK(xmem_cuda_ptr_mut(buffer));
		close_gate(work);
		before = driver_calls(NULL);
		copy_in(buffer, 1, work);
		if (i)			/* the page of the word has been registered */
			SAME(driver_calls(NULL) - before, 6);
		before = driver_calls(NULL);
		WORKED(xmem_wait_on(buffer, work->stream));
		CHECK(xmem_cuda_ptr_mut(buffer));
		if (i % 2) {
			WORKED(xmem_publish(buffer, NULL, NULL));
			SAME(driver_calls(NULL) - before, 1);
		} else {
			WORKED(publish_on(buffer, work->stream));
			SAME(driver_calls(NULL) - before, 3);
		}
		finish(work);
	}
	xl_gpu_leave(&scope);
	end(pool);
}

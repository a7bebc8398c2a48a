// SPDX-License-Identifier: MIT
/*
 * Contents that a stream has not written yet, at a client that does not read them. Contents that
 * are passed on are complete, or the call says that they are not; and each wait for them can be
 * ended.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "core/step.h"
#include "scene.h"

#define LINK	1	/* descriptors for a child that has ended, until the test ends */

static const struct xmem_publish_options kept = {
	.size = sizeof(kept), .flags = XMEM_PUBLISH_KEEP,
};

/* ---- buffers that are to be written in place ---- */

enum { PUBLISH, SEND, COUNT, PUBLISH_ON, WAYS };

static int send_within(struct xmem_buffer *buffer, struct xmem_pool *to, int64_t timeout_ns,
		       uint64_t *ret_token)
{
	return xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
			    .flags = XMEM_PUBLISH_CLIENT, .client = xmem_pool_client(to),
			    .timeout_ns = timeout_ns), ret_token);
}

static int hand_on(struct xmem_buffer *buffer, int way, struct xmem_pool *to, struct work *work,
		   uint64_t *ret_token)
{
	int err = 0;

	switch (way) {
	case PUBLISH:
		return xmem_publish(buffer, NULL, ret_token);
	case SEND:
		return send_within(buffer, to, XMEM_FOREVER, ret_token);
	case PUBLISH_ON:
		return xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
				    .stream = work->stream), ret_token);
	}
	err = xmem_set_ref_count(buffer, 2, 0);
	if (!err)
		*ret_token = xmem_token(buffer);
	return err;
}

/*
 * A stage that writes in place what a writer's stream has not written yet, and a reader behind it.
 */
struct stages {
	struct scene scene;
	struct work work;
	struct xmem_pool *next;
	struct xmem_subscription *sub;
	struct xmem_buffer *buffer;
};

static void begin_stages(struct stages *it, uint64_t stamp)
{
	spawn_writer(&it->scene, new_name(), 1, 0);
	start_writer(&it->scene, NULL);
	begin_work(&it->work);
	it->next = OPEN(it->scene.name, .flags = XMEM_OPEN_WRITER);
	it->sub = follow(it->next, xmem_pool_client(it->scene.pool), 0);
	order_writer(&it->scene, TELL(FILL, stamp));
	it->buffer = receive_next(&it->scene);
	WORKED(xmem_get_mut(it->buffer));
}

static void end_stages(struct stages *it)
{
	xmem_unsubscribe(it->sub);
	xmem_pool_close(it->next);
	end_scene(&it->scene);
}

static void hand_on_untouched(int way)
{
	struct xmem_buffer *handed;
	uint64_t token = 0;
	struct stages it;
	pthread_t thread;

	begin_stages(&it, 1);
	SAME(pthread_create(&thread, NULL, open_later, &it.scene), 0);
	WORKED(hand_on(it.buffer, way, it.next, &it.work, &token));
	handed = way == COUNT ? xmem_get(it.next, token) : xmem_receive(it.sub, patience_ns());
	CHECK(handed);
	SAME(xmem_wait_contents(handed, 0), 0);
	cuda_check(handed, 1);
	SAME(pthread_join(thread, NULL), 0);
	xmem_release(handed);
	if (way == COUNT)
		xmem_release(it.buffer);
	end_stages(&it);
}

TEST(CUDA_who_publishes_in_place_waits_for_what_was_there)
{
	hand_on_untouched(PUBLISH);
}

TEST(CUDA_who_sends_in_place_waits_for_what_was_there)
{
	hand_on_untouched(SEND);
}

TEST(CUDA_counting_in_place_waits_for_a_copy)
{
	hand_on_untouched(COUNT);
}

TEST(CUDA_who_publishes_in_place_on_a_stream_waits_for_what_was_there)
{
	hand_on_untouched(PUBLISH_ON);
}

/* After each of them the buffer is as it was. */
TEST(CUDA_waits_to_hand_on_in_place_end_when_they_are_cancelled)
{
	uint64_t token = 0;
	struct stages it;
	int way;

	begin_stages(&it, 2);
	SAME(send_within(it.buffer, it.next, 0, NULL), -EAGAIN);
	SAME(send_within(it.buffer, it.next, MS, NULL), -ETIMEDOUT);
	WORKED(xmem_cancel(it.scene.pool));
	for (way = 0; way < WAYS; way++)
		SAME(hand_on(it.buffer, way, it.next, &it.work, &token), -ECANCELED);
	order_writer(&it.scene, OPEN_GATE);
	EVENTUALLY(!xmem_wait_contents(it.buffer, 0));
	WORKED(xmem_publish(it.buffer, &kept, &token));
	cuda_check(it.buffer, 2);
	xmem_release(it.buffer);
	end_stages(&it);
}

TEST(P9_nobody_hands_on_in_place_what_its_dead_writer_has_not_finished)
{
	uint64_t token = 0;
	struct stages it;
	int way;

	begin_stages(&it, 3);
	kill_child(it.scene.writer);
	SAME(xmem_wait_contents(it.buffer, XMEM_FOREVER), -EOWNERDEAD);
	for (way = 0; way < WAYS; way++)
		SAME(hand_on(it.buffer, way, it.next, &it.work, &token), -EOWNERDEAD);
	REFUSED(xmem_receive(it.sub, 0), EAGAIN);
	xmem_release(it.buffer);
	xmem_unsubscribe(it.sub);
	xmem_unsubscribe(it.scene.sub);
	xmem_pool_close(it.next);
	xmem_pool_close(it.scene.pool);
	no_violations();
}

/* ---- waits that are ended ---- */

static void *close_soon(void *pool)
{
	xmem_pool_close(pool);
	return NULL;
}

static struct {
	struct xmem_pool *pool;
	pthread_t thread;
} closing;

/* A thread waits. */
static void let_another_close(int step)
{
	(void)step;
	SAME(pthread_create(&closing.thread, NULL, close_soon, closing.pool), 0);
}

TEST(CUDA_the_close_of_a_pool_ends_waits_for_contents)
{
	struct xmem_buffer *buffer;
	struct scene scene;

	steps_only();
	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	xmem_unsubscribe(scene.sub);
	closing.pool = scene.pool;
	at_step(XM_STEP_CUDA_LOOKED, 0, STEP_CALL, let_another_close);
	REFUSED(xmem_cuda_ptr(buffer), ECANCELED);
	SAME(pthread_join(closing.thread, NULL), 0);
	SAME(xmem_wait_contents(buffer, MS), -ETIMEDOUT);	/* the handle is still good */
	order_writer(&scene, OPEN_GATE);
	WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
	cuda_check(buffer, 1);
	xmem_release(buffer);
	tell(scene.writer, LEAVE);
	finish_child(scene.writer);
	no_violations();
}

static void do_nothing(int signal)
{
	(void)signal;
}

static void let_a_signal_come(int step)
{
	(void)step;
	SAME(raise(SIGUSR1), 0);
}

/* The signal comes while the thread checks, and does not come again. */
TEST(CUDA_a_signal_between_two_naps_ends_the_wait)
{
	struct sigaction action = { .sa_handler = do_nothing };
	struct xmem_buffer *buffer;
	struct scene scene;

	steps_only();
	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	SAME(sigaction(SIGUSR1, &action, NULL), 0);
	at_step(XM_STEP_CUDA_LOOKED, 0, STEP_CALL, let_a_signal_come);
	SAME(xmem_wait_contents(buffer, XMEM_FOREVER), -EINTR);
	order_writer(&scene, OPEN_GATE);
	WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
	xmem_release(buffer);
	end_scene(&scene);
}

TEST(CUDA_a_look_at_contents_does_not_notice_that_waits_are_cancelled)
{
	struct xmem_buffer *buffer;
	struct scene scene;

	begin_scene(&scene, 2);
	order_writer(&scene, TELL(FILL, 1));
	buffer = receive_next(&scene);
	WORKED(xmem_cancel(scene.pool));
	SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
	SAME(xmem_wait_contents(buffer, 1), -ECANCELED);
	order_writer(&scene, OPEN_GATE);
	EVENTUALLY(!xmem_wait_contents(buffer, 0));
	SAME(xmem_wait_contents(buffer, XMEM_FOREVER), -ECANCELED);
	xmem_release(buffer);
	end_scene(&scene);
}

TEST(CUDA_an_acquire_that_would_succeed_is_cancelled)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;

	WORKED(make_on_gpu(pool, WORK_BYTES, 1, 0, 0));
	xmem_release(cuda_acquire(pool, WORK_BYTES));
	WORKED(xmem_cancel(pool));
	REFUSED(xmem_acquire_cuda(pool, WORK_BYTES, 0, 1), ECANCELED);
	REFUSED(xmem_acquire_cuda(pool, WORK_BYTES, 0, XMEM_FOREVER), ECANCELED);
	CHECK((buffer = xmem_acquire_cuda(pool, WORK_BYTES, 0, 0)));
	xmem_release(buffer);
	xmem_pool_close(pool);
}

/* This process is the writer, through another handle of the pool. */
TEST(CUDA_waits_for_a_lost_context_end_whatever_handle_they_use)
{
	struct fake fake = fake_only("it loses a context on demand");
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER), *other;
	int fd = xmem_pool_fd(pool);
	struct xmem_buffer *buffer;
	struct work work;
	uint64_t token;

	other = open_by_fd(fd, 0);
	CHECK(other);
	close(fd);
	WORKED(make_on_gpu(pool, WORK_BYTES, 1, 0, 0));
	begin_work(&work);
	buffer = cuda_acquire(pool, WORK_BYTES);
	close_gate(&work);
	WORKED(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = work.stream),
			    &token));
	buffer = xmem_get(other, token);
	CHECK(buffer);
	fake.sticky(719);
	SAME(xmem_wait_contents(buffer, XMEM_FOREVER), -EIO);
	xmem_release(buffer);
	open_gate(&work);	/* the stream's work does not run, because the context is lost */
	xmem_pool_close(other);
	xmem_pool_close(pool);
	fake.end();		/* only then the driver releases a page of the lost context */
}

/* ---- waits for a stream ---- */

/* Complete contents, to be written in place, and a stream that is busy. */
static void begin_busy(struct stages *it)
{
	begin_stages(it, 1);
	order_writer(&it->scene, OPEN_GATE);
	WORKED(xmem_wait_contents(it->buffer, XMEM_FOREVER));
	close_gate(&it->work);
}

static void end_busy(struct stages *it)
{
	open_gate(&it->work);
	must(xl_cuda()->stream_synchronize(it->work.stream));
	WORKED(publish_kept_on(it->buffer, it->work.stream));
	cuda_check(it->buffer, 1);
	xmem_release(it->buffer);
	end_stages(it);
}

TEST(CUDA_a_wait_for_a_stream_ends_when_it_is_cancelled)
{
	struct stages it;

	begin_busy(&it);
	WORKED(xmem_cancel(it.scene.pool));
	SAME(publish_on(it.buffer, it.work.stream), -ECANCELED);
	end_busy(&it);
}

/* A signal may come before the wait, so signals come again and again. */
static void let_signals_come(long microseconds)
{
	struct itimerval when = {
		.it_interval.tv_usec = microseconds, .it_value.tv_usec = microseconds,
	};
	struct sigaction action = { .sa_handler = do_nothing };

	SAME(sigaction(SIGALRM, &action, NULL), 0);
	SAME(setitimer(ITIMER_REAL, &when, NULL), 0);
}

TEST(CUDA_a_wait_for_a_stream_ends_when_a_signal_comes)
{
	struct stages it;

	begin_busy(&it);
	let_signals_come(1000);
	SAME(publish_on(it.buffer, it.work.stream), -EINTR);
	let_signals_come(0);
	end_busy(&it);
}

TEST(CUDA_a_staged_copy_ends_before_it_begins_when_it_is_cancelled)
{
	struct xmem_buffer *from, *to;
	struct xmem_pool *pool;
	struct work work;

	fake_only("its GPUs are no peers");
	setenv("FAKECUDA_DEVICES", "2", 1);
	setenv("FAKECUDA_PEERS", "none", 1);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(make_on_gpu(pool, WORK_BYTES, 1, 0, 0));
	WORKED(make_on_gpu(pool, WORK_BYTES, 1, 1, 0));
	begin_work_on(&work, 1);
	cuda_publish(pool, WORK_BYTES, 1, &from);
	to = xmem_acquire_cuda(pool, WORK_BYTES, 1, 0);
	CHECK(to);
	cuda_fill(to, 2);
	close_gate(&work);
	WORKED(xmem_cancel(pool));
	SAME(xmem_copy_range(to, 0, from, 0, WORK_BYTES, work.stream), -ECANCELED);
	WORKED(xmem_publish(to, &kept, NULL));
	cuda_check(to, 2);
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_release(from);
	xmem_release(to);
	xmem_pool_close(pool);
	no_violations();
}

/*
 * Both sides are on the CPU, where the stream copies nothing: the thread copies, after the stream.
 */
TEST(CUDA_a_copy_on_the_cpu_waits_for_its_stream)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, WORK_BYTES);
	struct xmem_buffer *from = xmem_acquire(pool, 8, 0), *to = xmem_acquire(pool, 8, 0);
	struct work work;

	strcpy(xmem_data_mut(from), "before");
	strcpy(xmem_data_mut(to), "");
	begin_work(&work);
	close_gate(&work);
	WORKED(xmem_cancel(pool));
	SAME(xmem_copy_range(to, 0, from, 0, 8, work.stream), -ECANCELED);
	SAME(xmem_copy_from_host(to, 0, "other", 6, work.stream), -ECANCELED);
	SAME(xmem_copy_to_host(xmem_data_mut(to), from, 0, 8, work.stream), -ECANCELED);
	CHECK(!strcmp(xmem_data(to), ""));
	open_gate(&work);
	must(xl_cuda()->stream_synchronize(work.stream));
	WORKED(xmem_copy_range(to, 0, from, 0, 8, work.stream));
	CHECK(!strcmp(xmem_data(to), "before"));
	xmem_release(from);
	xmem_release(to);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- without xmemd ---- */

static void kill_the_daemon(struct xmem_pool *pool)
{
	pid_t daemon = stop_daemon();

	continue_daemon(daemon);
	CHECK(!kill(daemon, SIGKILL));
	EVENTUALLY(xmem_preallocate(pool, WORK_BYTES, 1, NULL) == -ENOTCONN);
}

static void begin_own_scene(struct scene *scene)
{
	daemon_only("the kernel does not end");
	use_own_daemon();
	begin_scene(scene, 2);
	order_writer(scene, TELL(FILL, 1));
}

TEST(P9_no_stream_waits_once_nobody_would_end_its_wait)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	begin_own_scene(&scene);
	begin_work(&work);
	buffer = receive_next(&scene);
	kill_the_daemon(scene.pool);
	SAME(xmem_wait_on(buffer, work.stream), -ENOTCONN);
	must(xl_cuda()->stream_query(work.stream));		/* the stream is empty */
	order_writer(&scene, OPEN_GATE);
	EVENTUALLY(!xmem_wait_contents(buffer, 0));
	WORKED(xmem_wait_on(buffer, work.stream));
	xmem_release(buffer);
	tell(scene.writer, LEAVE);
	finish_child(scene.writer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
}

/* No client reads the contents. The stream has been told to wait while xmemd was there. */
TEST(P9_a_close_ends_what_streams_wait_for_after_xmemd_and_the_writer)
{
	unsigned int files = own_files();
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	begin_own_scene(&scene);
	begin_work(&work);
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	WORKED(xmem_release_on(buffer, work.stream));
	kill_the_daemon(scene.pool);
	kill_child(scene.writer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
	must(xl_cuda()->stream_synchronize(work.stream));
	EVENTUALLY(own_files() == files + LINK);	/* a thread destroys the pool */
}

static void *kill_later(void *scene)
{
	kill_child(((struct scene *)scene)->writer);
	return NULL;
}

static pthread_t killer;
static struct scene *dying;

static void let_the_writer_die(int step)
{
	(void)step;
	SAME(pthread_create(&killer, NULL, kill_later, dying), 0);
}

/* The close has begun, and waits for the stream. */
TEST(P9_a_close_without_xmemd_waits_until_the_writer_has_ended)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	steps_only();
	begin_own_scene(&scene);
	begin_work(&work);
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	xmem_release(buffer);
	kill_the_daemon(scene.pool);
	xmem_unsubscribe(scene.sub);
	dying = &scene;
	at_step(XM_STEP_CUDA_LOOKED, 0, STEP_CALL, let_the_writer_die);
	xmem_pool_close(scene.pool);
	SAME(steps_seen() > 0, true);
	SAME(pthread_join(killer, NULL), 0);
	must(xl_cuda()->stream_synchronize(work.stream));
}

/*
 * Memory that could not be opened cannot be opened any more, but the stream does not stay waiting.
 */
TEST(P9_a_look_for_an_address_ends_what_streams_wait_for_in_vain)
{
	struct xmem_buffer *buffer;
	struct scene scene;
	struct work work;

	begin_own_scene(&scene);
	begin_work(&work);
	buffer = receive_next(&scene);
	WORKED(xmem_wait_on(buffer, work.stream));
	kill_the_daemon(scene.pool);
	kill_child(scene.writer);
	REFUSED(xmem_cuda_ptr(buffer), EOWNERDEAD);
	must(xl_cuda()->stream_synchronize(work.stream));
	xmem_release(buffer);
	xmem_unsubscribe(scene.sub);
	xmem_pool_close(scene.pool);
}

/* ---- two GPUs ---- */

struct two {
	struct xmem_pool *pool[2];	/* of the CPU and GPU 0, and of GPU 1 */
	struct work work[2];		/* of GPU 0 and GPU 1 */
};

static void begin_two(struct two *two)
{
	fake_only("it fails on demand, and has as many devices as one likes");
	setenv("FAKECUDA_DEVICES", "2", 1);
	two->pool[0] = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	two->pool[1] = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(two->pool[0], WORK_BYTES, 2, NULL));
	WORKED(make_on_gpu(two->pool[0], WORK_BYTES, 1, 0, 0));
	WORKED(make_on_gpu(two->pool[1], WORK_BYTES, 1, 1, 0));
	begin_work_on(&two->work[0], 0);
	begin_work_on(&two->work[1], 1);
}

/* @device: -1 is the CPU. */
static struct xmem_buffer *publish_at(struct two *two, int device)
{
	struct xmem_buffer *buffer = device < 0 ?
				     xmem_acquire(two->pool[0], WORK_BYTES, 0) :
				     xmem_acquire_cuda(two->pool[device], WORK_BYTES, device, 0);

	CHECK(buffer);
	WORKED(xmem_publish(buffer, &kept, NULL));
	return buffer;
}

static unsigned int held_in(struct two *two)
{
	return stat_of(two->pool[0]).held + stat_of(two->pool[1]).held;
}

/* A stream of GPU @reads will drop a buffer at @device when a stream of GPU @lost is lost. */
static void lose_one(int device, int reads, int lost)
{
	struct xmem_buffer *buffer, *other;
	struct two two;

	begin_two(&two);
	buffer = publish_at(&two, device);
	other = publish_at(&two, device < 0 ? -1 : !device);
	close_gate(&two.work[reads]);
	WORKED(xmem_release_on(buffer, two.work[reads].stream));
	driver_fails("cuStreamWriteValue64_v2:1:719");
	SAME(xmem_release_on(other, two.work[lost].stream), -EIO);
	driver_fails(NULL);
	SAME(held_in(&two), reads == lost ? 1 : 2);
	xmem_release(other);
	open_gate(&two.work[reads]);
	must(xl_cuda()->stream_synchronize(two.work[reads].stream));
	EVENTUALLY(!held_in(&two));
	xmem_pool_close(two.pool[0]);
	xmem_pool_close(two.pool[1]);
	no_violations();
}

TEST(CUDA_a_lost_GPU_drops_nothing_that_another_GPU_reads)
{
	lose_one(1, 1, 0);
}

TEST(CUDA_a_lost_GPU_drops_what_its_stream_reads_of_another_GPU)
{
	lose_one(1, 0, 0);
}

TEST(CUDA_a_lost_GPU_drops_no_memory_of_the_CPU_that_another_reads)
{
	lose_one(-1, 1, 0);
}

TEST(CUDA_a_lost_GPU_drops_memory_of_the_CPU_that_its_stream_reads)
{
	lose_one(-1, 1, 1);
}

/* ---- contexts that cannot be entered ---- */

TEST(CUDA_what_a_context_refuses_is_said)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 2, WORK_BYTES, 0);
	struct xmem_buffer *buffer;

	fake_only("it fails on demand");
	cuda_publish(pool, WORK_BYTES, 1, &buffer);
	driver_fails("cuCtxGetCurrent:1+:101");
	SAME(xmem_release_on(buffer, NULL), -ENODEV);
	SAME(last_result(), 101);
	driver_fails("cuCtxGetCurrent:1+:719");
	SAME(xmem_release_on(buffer, NULL), -EIO);
	SAME(last_result(), 719);
	driver_fails(NULL);
	xmem_release(buffer);
	xmem_pool_close(pool);
}

/* Then a host function writes the word. */
TEST(CUDA_a_page_that_cannot_be_registered_leaves_no_error)
{
	static const char *const refusals[] = {
		"cuCtxGetCurrent:1:801", "cuMemHostRegister:1:801",
		"cuMemHostGetDevicePointer:1:801",
	};
	struct xmem_pool *pool = cuda_writer(new_name(), 1, WORK_BYTES, 0);
	struct xmem_buffer *buffer;
	struct work work;
	unsigned int i;

	fake_only("it fails on demand");
	begin_work(&work);
	for (i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		buffer = cuda_acquire(pool, WORK_BYTES);
		cuda_fill(buffer, i);
		xmem_clear_last_error();
		driver_fails(refusals[i]);
		WORKED(publish_kept_on(buffer, work.stream));
		SAME(xmem_peek_last_error(NULL), 0);
		SAME(last_result(), 0);
		driver_fails(NULL);
		WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
		cuda_check(buffer, i);
		xmem_release(buffer);
	}
	xmem_pool_close(pool);
	no_violations();
}

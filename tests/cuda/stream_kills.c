// SPDX-License-Identifier: MIT
/*
 * Producers and consumers that work on streams are killed at each step and at random moments.
 * Contents that count as complete are whole, which a kernel checks. No buffer of a dead process is
 * lost, no memory of a GPU stays, and no rule of the driver is broken. Each round is a process of
 * its own, because a driver that was started before a fork is of no use after it.
 */
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/step.h"
#include "sums.h"

#define BYTES		65536
#define BUFFERS		4

struct round {
	char name[32];
	uint32_t flags;			/* XMEM_CUDA_* */
	int step;			/* at which the victim is killed; NO_STEP: from outside */
	unsigned int after;
	int publisher;
	uint64_t random;
};
#define NO_STEP	(-2)

static struct round new_round(uint32_t flags, int step, unsigned int after)
{
	struct round round = { .flags = flags, .step = step, .after = after };

	snprintf(round.name, sizeof(round.name), "%s", new_name());
	return round;
}

static void arm(const struct round *round)
{
	if (round->step != NO_STEP)
		at_step(round->step, round->after, STEP_KILL, NULL);
}

/* ---- both sides ---- */

/* Publish contents that the stream has not written yet. The n-th one's stamp is n, from 1 on. */
static void publish_late(struct xmem_pool *pool, struct sums *sums, uint32_t stamp)
{
	struct xmem_buffer *buffer = xmem_acquire_cuda(pool, BYTES, 0, patience_ns());

	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	WORKED(xmem_wait_on(buffer, sums->stream));
	fill_by_kernel(sums, buffer, stamp);
	WORKED(publish_on(buffer, sums->stream));
}

/*
 * If a stream always fell behind, waits for it would never end. So this waits for the stream now
 * and then.
 */
static void publish_one(struct xmem_pool *pool, struct sums *sums, uint32_t stamp)
{
	publish_late(pool, sums, stamp);
	if (stamp % BUFFERS == 0)
		SAME(xl_cuda()->stream_synchronize(sums->stream), 0);
}

/*
 * false: the publisher has ended, and all is received. Contents that count as complete are. Their
 * stamp is put into *ret_stamp, which may be NULL.
 */
static bool look_at_one(struct xmem_subscription *sub, struct sums *sums, uint32_t *ret_stamp)
{
	struct xmem_buffer *buffer = xmem_receive(sub, patience_ns());
	const void *at;
	uint64_t sum;

	if (!buffer) {
		SAME(xmem_peek_last_error(NULL), -EPIPE);
		return false;
	}
	if (xmem_wait_on(buffer, sums->stream)) {
		SAME(xmem_peek_last_error(NULL), -EOWNERDEAD);
		xmem_release(buffer);
		return true;
	}
	at = xmem_cuda_ptr(buffer);
	if (!at) {			/* the stream may still be waiting for it */
		SAME(xmem_peek_last_error(NULL), -EOWNERDEAD);
		WORKED(xmem_release_on(buffer, sums->stream));
		return true;
	}
	sum = sum_by_kernel(sums, at, BYTES);
	if (!xmem_wait_contents(buffer, 0)) {
		SAME(sum, right_sum(info_of(buffer).sequence + 1, BYTES));
		if (ret_stamp)
			*ret_stamp = info_of(buffer).sequence + 1;
	} else {
		SAME(xmem_peek_last_error(NULL), -EOWNERDEAD);
	}
	WORKED(xmem_release_on(buffer, sums->stream));
	return true;
}

static bool is_dead(const struct child *child)
{
	siginfo_t info = { .si_pid = 0 };

	SAME(waitid(P_PID, child->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid;
}

/* No client keeps a buffer of the pool: a writer gets all of them at once, and can use them. */
static void acquire_all(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer[BUFFERS];
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		buffer[i] = xmem_acquire_cuda(pool, BYTES, 0, patience_ns());
		if (!buffer[i])
			WORKED(xmem_peek_last_error(NULL));
		cuda_fill(buffer[i], i);
	}
	for (i = 0; i < BUFFERS; i++)
		cuda_check(buffer[i], i);
	for (i = 0; i < BUFFERS; i++)
		xmem_release(buffer[i]);
}

/* All that is left of the pool is its one client here, and @used bytes of the GPU's memory. */
static void nothing_is_left(struct xmem_pool *pool, size_t used)
{
	struct xmem_device_info device = { .size = sizeof(device) };

	EVENTUALLY((stat_of(pool), gpus_used() == used));
	EVENTUALLY(!stat_of(pool).attached);
	check_quiet(pool, 1);
	/* The reading process has closed it by then, and the host is told a little later. */
	EVENTUALLY(!stat_of(pool).bytes_cuda && !stat_of(pool).bytes_closing);
	if (!xmem_pool_device_info(pool, 1, &device))
		SAME(device.bytes + device.bytes_closing, 0);
	no_violations_of_all();
}

/* ---- no process is killed ---- */

static void produce_some(void *argument)
{
	const struct round *round = argument;
	struct xmem_pool *pool = OPEN(round->name, .flags = XMEM_OPEN_WRITER);
	struct sums sums;
	uint32_t stamp;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	begin_sums(&sums);
	WORKED(make_on_gpu(pool, BYTES, BUFFERS, 0, round->flags));
	for (stamp = 1; stamp <= round->after; stamp++)
		publish_one(pool, &sums, stamp);
	hear_parent();			/* the last one has been received */
	xmem_pool_close(pool);
}

static void hand_over(void *argument)
{
	struct round *round = argument;
	struct xmem_subscription *sub;
	struct xmem_pool *pool;
	struct child *child;
	uint32_t stamp = 0;
	struct sums sums;
	size_t used;

	watch_drivers();
	child = spawn(produce_some, round);
	round->publisher = hear(child);
	pool = OPEN(round->name, .flags = XMEM_OPEN_WRITER);
	sub = follow(pool, round->publisher, 0);
	begin_sums(&sums);
	used = gpus_used();
	tell(child, 1);
	while (stamp < round->after)
		CHECK(look_at_one(sub, &sums, &stamp));
	tell(child, 1);
	finish_child(child);
	SAME(xl_cuda()->stream_synchronize(sums.stream), 0);
	CHECK(!look_at_one(sub, &sums, NULL));
	xmem_unsubscribe(sub);
	nothing_is_left(pool, used);
	xmem_pool_close(pool);
}

TEST(CUDA_kernels_make_and_check_what_streams_hand_over)
{
	const uint32_t flags[] = { 0, XMEM_MEMORY_LEGACY };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct round round = new_round(flags[i], NO_STEP, scaled(200));

		in_child(hand_over, &round);
	}
}

/* ---- consumers are killed ---- */

static void consume_until_killed(void *argument)
{
	const struct round *round = argument;
	struct xmem_pool *pool = OPEN(round->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(pool, hear_parent(), 0);
	struct sums sums;
	unsigned int i;

	begin_sums(&sums);
	tell_parent(1);
	arm(round);
	for (i = 0; i < 1000; i++)
		CHECK(look_at_one(sub, &sums, NULL));
	FAIL("step %s was not reached", step_name(round->step));
}

static void kill_consumer(void *argument)
{
	struct round *round = argument;
	struct child *child;
	struct xmem_pool *pool;
	struct sums sums;
	uint32_t stamp = 0;
	size_t used;

	watch_drivers();
	child = spawn(consume_until_killed, round);
	begin_sums(&sums);
	used = gpus_used();
	pool = cuda_writer(round->name, BUFFERS, BYTES, round->flags);
	tell(child, xmem_pool_client(pool));
	SAME(hear(child), 1);
	while (!is_dead(child)) {
		if (round->step == NO_STEP && stamp == round->after)
			CHECK(!kill(child->pid, SIGKILL));
		publish_one(pool, &sums, ++stamp);
	}
	died_of_kill(child);
	SAME(xl_cuda()->stream_synchronize(sums.stream), 0);
	acquire_all(pool);
	EVENTUALLY(trim_pool(pool, 0) > 0 || !stat_of(pool).attached);
	nothing_is_left(pool, used);
	xmem_pool_close(pool);
	no_violations_of_all();
}

static const int consumer_steps[] = {
	XM_STEP_CUDA_ASK, XM_STEP_CUDA_ASKED, XM_STEP_CUDA_OPENED, XM_STEP_CUDA_WAITS,
	XM_STEP_CUDA_LEAVES, XM_STEP_CUDA_LEFT, XM_STEP_CUDA_REACHED, XM_STEP_CUDA_DROPPED,
	XM_STEP_RECEIVE_HELD, XM_STEP_RECEIVE_CURSOR,
};

static void kill_consumer_at_each_step(uint32_t flags)
{
	const unsigned int opens = 3;	/* of the steps: once for each allocation */
	unsigned int i;

	steps_only();
	setenv("FAKECUDA_DELAY_US", "300", 1);
	for (i = 0; i < sizeof(consumer_steps) / sizeof(*consumer_steps); i++) {
		struct round round = new_round(flags, consumer_steps[i], i < opens ? 0 : i % 4);

		in_child(kill_consumer, &round);
	}
}

TEST_WITHIN(P2_a_consumer_is_killed_at_each_step_of_a_stream, 90)
{
	kill_consumer_at_each_step(0);
}

TEST_WITHIN(P2_a_consumer_by_handle_is_killed_at_each_step_of_a_stream, 90)
{
	kill_consumer_at_each_step(XMEM_MEMORY_LEGACY);
}

/* ---- producers are killed ---- */

static void stand(void *gate)
{
	while (sem_wait(gate))
		;
}

/*
 * From now on the stream stands still. So the writer soon has only buffers that it has not written
 * yet, and lets the stream wait for each. The speed of a GPU does not matter.
 */
static void publish_until_it_waits(struct xmem_pool *pool, struct sums *sums, uint32_t stamp)
{
	static sem_t gate;
	uint32_t end = stamp + 100;

	SAME(sem_init(&gate, 0, 0), 0);
	SAME(xl_cuda()->launch_host_func(sums->stream, stand, &gate), 0);
	while (stamp < end)
		publish_late(pool, sums, stamp++);
}

static void produce_until_killed(void *argument)
{
	const struct round *round = argument;
	struct xmem_pool *pool = OPEN(round->name, .flags = XMEM_OPEN_WRITER);
	struct sums sums;
	uint32_t stamp;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	begin_sums(&sums);
	arm(round);
	WORKED(make_on_gpu(pool, BYTES, BUFFERS, 0, round->flags));
	/* A kill from outside may be slow; a step is reached or it is not. */
	for (stamp = 1; round->step == NO_STEP || stamp < 1000; stamp++) {
		if (round->step == XM_STEP_CUDA_WAITS && stamp > 2 * BUFFERS)
			publish_until_it_waits(pool, &sums, stamp);
		publish_one(pool, &sums, stamp);
	}
	FAIL("step %s was not reached", step_name(round->step));
}

static void kill_producer(void *argument)
{
	struct round *round = argument;
	struct xmem_subscription *sub;
	unsigned int received = 0;
	struct xmem_pool *pool;
	struct child *child;
	struct sums sums;
	size_t used;

	watch_drivers();
	child = spawn(produce_until_killed, round);
	round->publisher = hear(child);
	pool = OPEN(round->name, .flags = XMEM_OPEN_WRITER);
	sub = follow(pool, round->publisher, 0);
	begin_sums(&sums);
	used = gpus_used();
	tell(child, 1);
	while (look_at_one(sub, &sums, NULL))
		if (round->step == NO_STEP && received++ == round->after)
			CHECK(!kill(child->pid, SIGKILL));
	died_of_kill(child);
	xmem_unsubscribe(sub);
	SAME(xl_cuda()->stream_synchronize(sums.stream), 0);
	nothing_is_left(pool, used);
	/* Its slots and its id can be used again. */
	WORKED(make_on_gpu(pool, BYTES, BUFFERS, 0, round->flags));
	acquire_all(pool);
	xmem_pool_close(pool);
	no_violations_of_all();
}

static const int producer_steps[] = {
	XM_STEP_CUDA_MADE, XM_STEP_CUDA_WAITS, XM_STEP_CUDA_ORDERED, XM_STEP_PUBLISH_POSITION,
	XM_STEP_PUBLISH_ENTRY, XM_STEP_PUBLISH_TAIL,
};

static void kill_producer_at_each_step(uint32_t flags)
{
	unsigned int i;

	steps_only();
	setenv("FAKECUDA_DELAY_US", "300", 1);
	for (i = 0; i < sizeof(producer_steps) / sizeof(*producer_steps); i++) {
		struct round round = new_round(flags, producer_steps[i], i ? 3 * i : 0);

		in_child(kill_producer, &round);
	}
}

TEST_WITHIN(P2_a_producer_is_killed_at_each_step_of_a_stream, 90)
{
	kill_producer_at_each_step(0);
}

/* ---- at random moments ---- */

/* Killed by its parent, or at a random step of the protocol. */
static void kill_at_random(void *argument)
{
	struct round *round = argument;

#ifdef XMEM_STEPS
	if (random_next(&round->random) % 2) {
		round->step = ANY_STEP;
		round->after = random_next(&round->random) % 500;
	}
#endif
	if (random_next(&round->random) % 2)
		kill_consumer(round);
	else
		kill_producer(round);
}

TEST_WITHIN(P2_processes_on_streams_are_killed_at_random, 180)
{
	uint64_t state = seed();
	unsigned int i, rounds = scaled(60);
	char delay[16];

	for (i = 0; i < rounds; i++) {
		struct round round = new_round(0, NO_STEP, random_next(&state) % 40);

		round.random = random_next(&state);
		snprintf(delay, sizeof(delay), "%u", (unsigned int)(random_next(&state) % 600));
		setenv("FAKECUDA_DELAY_US", delay, 1);
		snprintf(delay, sizeof(delay), "%u", (unsigned int)(random_next(&state) % 1000));
		setenv("FAKECUDA_SEED", delay, 1);
		in_child(kill_at_random, &round);
	}
}

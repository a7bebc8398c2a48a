// SPDX-License-Identifier: MIT
/*
 * SIGKILL between any two shared stores of the protocol. It hits a consumer in receive, get and put
 * (P2) and a producer in acquire and publish (P3), at each step in turn and then at random steps.
 * After every kill nothing is held, no publication is lost, and the pool goes on.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	256
#define BUFFERS	4

/* Where the child is killed, and which client it follows or is followed by. */
struct kill {
	const char *name;
	int step;
	unsigned int after;
	int publisher;
	uint32_t flags;
	/* Shared with the child: publications begun and finished. */
	uint64_t *begun, *done;
};

static bool has_died(struct child *child)
{
	siginfo_t info = { 0 };

	CHECK(!waitid(P_PID, child->pid, &info, WEXITED | WNOHANG | WNOWAIT));
	return info.si_pid != 0;
}

/* ---- consumers ---- */

/* Do everything that a consumer does, over and over, until it is killed. */
static void consume(void *argument)
{
	struct kill *how = argument;
	struct xmem_pool *pool = open_reader(how->name);
	struct xmem_subscription *s = follow(pool, how->publisher, how->flags);

	tell_parent(1);
	at_step(how->step, how->after, STEP_KILL, NULL);
	for (;;) {
		struct xmem_buffer *b = receive_one(s), *same, *clone;

		same = xmem_get(pool, xmem_token(b));
		clone = xmem_clone(b);
		CHECK(same && clone);
		xmem_release(b);
		xmem_release(clone);
		SAME(stamp_of(same), xmem_metadata_ptr(same)->id);
		xmem_release(same);
	}
}

/* Publish for a consumer until it is dead. Then nothing of it must be left. */
static void kill_consumer(struct xmem_pool *writer, struct kill *how)
{
	struct child *child = spawn(consume, how);
	unsigned int i;

	hear(child);
	/*
	 * The end of the dead process must wake an acquire that waits for it: the acquire has 10 s,
	 * while the bound after which it stops waiting is 60 s.
	 */
	for (i = 0; !has_died(child); i++) {
		publish_stamp(writer, i);
		if (i == 100000)
			FAIL("%s: not reached", step_name(how->step));
	}
	died_of_kill(child);
	check_quiet(writer, 1);
	for (i = 0; i < 2 * BUFFERS; i++)
		publish_stamp(writer, i);
}

static struct xmem_pool *killed_consumers_writer(struct kill *how)
{
	struct xmem_pool *writer;

	how->name = new_name();
	writer = OPEN(how->name, .flags = XMEM_OPEN_WRITER, .clients = 4, .ring = 8,
		      .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(writer, BYTES, BUFFERS, NULL));
	how->publisher = xmem_pool_client(writer);
	return writer;
}

TEST_WITHIN(P2_killed_at_every_step_of_receive_get_and_put, 60)
{
	static const int steps[] = {
		XM_STEP_GET_HELD, XM_STEP_GET_DONE, XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED,
		XM_STEP_RECEIVE_READ, XM_STEP_RECEIVE_HELD, XM_STEP_RECEIVE_VALID,
		XM_STEP_RECEIVE_CURSOR,
	};
	struct kill how = { .flags = XMEM_SUBSCRIBE_WAITS };
	struct xmem_pool *writer;
	unsigned int i;

	steps_only();
	writer = killed_consumers_writer(&how);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		how.step = steps[i];
		for (how.after = 0; how.after < 6; how.after += 5)
			kill_consumer(writer, &how);
	}
	xmem_pool_close(writer);
}

TEST_WITHIN(P2_killed_at_every_step_while_it_may_lose_the_oldest, 60)
{
	static const int steps[] = {
		XM_STEP_GET_HELD, XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED, XM_STEP_RECEIVE_READ,
		XM_STEP_RECEIVE_HELD, XM_STEP_RECEIVE_VALID,
	};
	struct kill how = { .after = 2 };
	struct xmem_pool *writer;
	unsigned int i;

	steps_only();
	writer = killed_consumers_writer(&how);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		how.step = steps[i];
		/*
		 * A get that comes too late finds its contents gone, which is an error for
		 * consume(). A subscriber that is waited for keeps up.
		 */
		how.flags = XMEM_SUBSCRIBE_WAITS * (i & 1);
		kill_consumer(writer, &how);
	}
	xmem_pool_close(writer);
}

TEST_WITHIN(P2_consumers_killed_at_random_steps, 60)
{
	struct kill how = { .step = ANY_STEP, .flags = XMEM_SUBSCRIBE_WAITS };
	struct xmem_pool *writer;
	uint64_t random = seed();
	unsigned int i, rounds = scaled(100);

	steps_only();
	writer = killed_consumers_writer(&how);
	for (i = 0; i < rounds; i++) {
		how.after = random_next(&random) % 200;
		kill_consumer(writer, &how);
	}
	xmem_pool_close(writer);
}

/* ---- producers ---- */

static void produce(void *argument)
{
	struct kill *how = argument;
	struct xmem_pool *pool = OPEN(how->name, .flags = XMEM_OPEN_WRITER,
				      .wait_bound_ns = 3600 * SECOND);
	uint64_t stamp;

	WORKED(xmem_preallocate(pool, BYTES, BUFFERS, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(how->step, how->after, STEP_KILL, NULL);
	for (stamp = 0;; stamp++) {
		struct xmem_buffer *b = xmem_acquire(pool, BYTES, patience_ns());

		if (!b)
			FAIL("acquire: %d", xmem_peek_last_error(NULL));
		fill(b, stamp);
		__atomic_store_n(how->begun, stamp + 1, __ATOMIC_SEQ_CST);
		WORKED(xmem_publish(b, NULL, NULL));
		__atomic_store_n(how->done, stamp + 1, __ATOMIC_SEQ_CST);
	}
}

/* Check what a subscriber sees of a producer until the producer's end. */
static void follow_to_the_end(struct xmem_subscription *s, struct kill *how)
{
	uint64_t next = 0, received = 0, lost;
	struct xmem_buffer *b;

	while ((b = xmem_receive(s, patience_ns()))) {
		CHECK(info_of(b).sequence >= next);
		if (how->flags & XMEM_SUBSCRIBE_WAITS)
			SAME(info_of(b).sequence, next);
		SAME(stamp_of(b), info_of(b).sequence);
		next = info_of(b).sequence + 1;
		received++;
		xmem_release(b);
	}
	if (xmem_peek_last_error(NULL) != -EPIPE)
		FAIL("killed at %s: receive ended with %d", step_name(how->step),
		     xmem_peek_last_error(NULL));
	REFUSED(xmem_receive(s, 0), EPIPE);
	lost = sub_info(s).lost;
	if (how->flags & XMEM_SUBSCRIBE_WAITS) {
		/* It received all publications, and the last one if its entry was written. */
		CHECK(received >= *how->done && received <= *how->begun);
		/* Only the half-written one may count as lost. */
		CHECK(received + lost <= *how->begun);
		if (how->step == XM_STEP_PUBLISH_ENTRY || how->step == XM_STEP_PUBLISH_TAIL)
			SAME(received, *how->begun);
	} else {
		CHECK(received + lost >= *how->done && received + lost <= *how->begun);
	}
}

static void kill_producer(struct xmem_pool *reader, struct kill *how)
{
	struct xmem_subscription *s;
	struct child *child;

	*how->begun = *how->done = 0;
	child = spawn(produce, how);
	s = follow(reader, (int)hear(child), how->flags);
	tell(child, 1);
	follow_to_the_end(s, how);
	died_of_kill(child);
	xmem_unsubscribe(s);
	check_quiet(reader, 1);
	EVENTUALLY(stat_of(reader).attached == 0);
}

static struct xmem_pool *killed_producers_reader(struct kill *how)
{
	how->name = new_name();
	how->begun = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(how->begun != MAP_FAILED);
	how->done = how->begun + 1;
	return OPEN(how->name, .clients = 4, .ring = 8, .slots = 64);
}

static const int producer_steps[] = {
	XM_STEP_TAKE_WRITING, XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_VOID,
	XM_STEP_SCAN_HOLDS, XM_STEP_PUBLISH_POSITION, XM_STEP_PUBLISH_LIVE, XM_STEP_PUBLISH_OPEN,
	XM_STEP_PUBLISH_FIELDS, XM_STEP_PUBLISH_ENTRY, XM_STEP_PUBLISH_TAIL,
};

static void kill_producers_everywhere(uint32_t flags)
{
	struct kill how = { .flags = flags };
	struct xmem_pool *reader;
	unsigned int i;

	steps_only();
	reader = killed_producers_reader(&how);
	for (i = 0; i < sizeof(producer_steps) / sizeof(*producer_steps); i++) {
		how.step = producer_steps[i];
		/*
		 * It dies at the first publication, in the middle, and when the ring is full. Only
		 * the first pass takes the slots.
		 */
		for (how.after = 0; how.after < 12; how.after += how.after ? 9 : 2) {
			if (how.step == XM_STEP_TAKE_WRITING && how.after >= BUFFERS)
				break;
			kill_producer(reader, &how);
		}
	}
	xmem_pool_close(reader);
}

TEST_WITHIN(P3_publisher_killed_at_every_step_loses_nothing_published, 60)
{
	kill_producers_everywhere(XMEM_SUBSCRIBE_WAITS);
}

TEST_WITHIN(P3_publisher_killed_at_every_step_and_subscriber_may_lose, 60)
{
	kill_producers_everywhere(0);
}

TEST_WITHIN(P3_publishers_killed_at_random_steps, 60)
{
	struct kill how = { .step = ANY_STEP };
	struct xmem_pool *reader;
	uint64_t random = seed();
	unsigned int i, rounds = scaled(100);

	steps_only();
	reader = killed_producers_reader(&how);
	for (i = 0; i < rounds; i++) {
		how.after = random_next(&random) % 300;
		how.flags = random_next(&random) & 1 ? XMEM_SUBSCRIBE_WAITS : 0;
		kill_producer(reader, &how);
	}
	xmem_pool_close(reader);
}

/*
 * The ring's four entries are not received. The kill comes while the fifth publication overwrites
 * the first entry.
 */
static void die_overwriting(void *argument)
{
	struct kill *how = argument;
	struct xmem_pool *pool = OPEN(how->name, .flags = XMEM_OPEN_WRITER);
	uint64_t stamp;

	WORKED(xmem_preallocate(pool, BYTES, 12, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(how->step, 4, STEP_KILL, NULL);
	for (stamp = 0;; stamp++)
		publish_stamp(pool, stamp);
}

TEST(P3_killed_while_it_overwrites_an_entry_loses_that_one_alone)
{
	static const int steps[] = {
		XM_STEP_PUBLISH_POSITION, XM_STEP_PUBLISH_LIVE, XM_STEP_PUBLISH_OPEN,
		XM_STEP_PUBLISH_FIELDS, XM_STEP_PUBLISH_ENTRY, XM_STEP_PUBLISH_TAIL,
	};
	struct kill how = { .name = new_name() };
	struct xmem_pool *reader;
	unsigned int i;

	steps_only();
	reader = OPEN(how.name, .ring = 4);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct xmem_subscription *s;
		struct child *child;
		bool opened = steps[i] >= XM_STEP_PUBLISH_OPEN;
		bool complete = steps[i] >= XM_STEP_PUBLISH_ENTRY;
		uint64_t next;

		how.step = steps[i];
		child = spawn(die_overwriting, &how);
		s = follow(reader, (int)hear(child), 0);
		tell(child, 1);
		died_of_kill(child);
		EVENTUALLY(stat_of(reader).clients == 1);
		/*
		 * An untouched entry still gives the first publication; an opened one has lost it.
		 * A complete one is the fifth: the subscriber was overtaken, and continues where no
		 * publisher can be at work, which is one beyond the oldest entry that is left.
		 */
		for (next = opened + complete; next < 4u + complete; next++) {
			struct xmem_buffer *b = receive_one(s);

			SAME(info_of(b).sequence, next);
			SAME(stamp_of(b), next);
			xmem_release(b);
		}
		REFUSED(xmem_receive(s, 0), EPIPE);
		SAME(sub_info(s).lost, opened + complete);
		xmem_unsubscribe(s);
		check_quiet(reader, 1);
		EVENTUALLY(stat_of(reader).attached == 0);
	}
	xmem_pool_close(reader);
}

/* A producer that keeps what it publishes also does the steps of put and get. */
static void produce_and_keep(void *argument)
{
	struct kill *how = argument;
	struct xmem_pool *pool = open_writer(how->name, BUFFERS, BYTES);
	uint64_t stamp;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(how->step, how->after, STEP_KILL, NULL);
	for (stamp = 0;; stamp++) {
		struct xmem_buffer *kept;

		publish_kept(pool, stamp, &kept);
		xmem_release(kept);
	}
}

TEST(P2_publisher_killed_inside_put_holds_nothing)
{
	static const int steps[] = { XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED };
	struct kill how = { .after = 5 };
	struct xmem_pool *reader;
	unsigned int i;

	steps_only();
	reader = killed_producers_reader(&how);
	for (i = 0; i < 2; i++) {
		struct child *child;

		how.step = steps[i];
		child = spawn(produce_and_keep, &how);
		hear(child);
		tell(child, 1);
		died_of_kill(child);
		check_quiet(reader, 1);
		EVENTUALLY(stat_of(reader).attached == 0);
	}
	xmem_pool_close(reader);
}

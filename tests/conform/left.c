// SPDX-License-Identifier: MIT
/*
 * A buffer that is held after its writer's end takes one slot. The free slots of its group serve
 * later writers.
 */
#include "attached.h"
#include "polling.h"
#include "waiter.h"

#define BYTES	4096
#define SLOTS	64

/* A writer joins, publishes one buffer, and ends. @keeper still holds the buffer. */
static struct xmem_buffer *leave_one(const char *name, struct xmem_pool *keeper, uint64_t stamp)
{
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, patience_ns()), *kept;
	uint64_t token;

	CHECK(b);
	fill(b, stamp);
	WORKED(xmem_publish(b, NULL, &token));
	CHECK((kept = xmem_get(keeper, token)));
	xmem_pool_close(writer);
	return kept;
}

TEST(P10_results_of_a_thousand_short_lived_writers_are_kept)
{
	enum { WRITERS = 1000 };
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = 1024);
	struct xmem_buffer *kept[WRITERS];
	int i;

	for (i = 0; i < WRITERS; i++)
		kept[i] = leave_one(name, keeper, i);
	SAME(stat_of(keeper).limbo, WRITERS);
	for (i = 0; i < WRITERS; i++) {
		SAME(stamp_of(kept[i]), i);
		xmem_release(kept[i]);
	}
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* Later writers come and go, and use the free slots again and again. The held buffer stays. */
TEST(P1_what_is_left_stays_while_the_next_writer_reuses_its_own)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS), *writer;
	struct xmem_buffer *first = leave_one(name, keeper, 1), *second, *b;
	struct xmem_subscription *s;
	int i;

	writer = open_writer(name, SLOTS - 1, BYTES);
	s = follow(keeper, xmem_pool_client(writer), 0);
	for (i = 0; i < 3 * SLOTS; i++) {
		publish_stamp(writer, 100 + i);
		b = receive_one(s);
		SAME(stamp_of(b), 100 + i);
		SAME(stamp_of(first), 1);
		xmem_release(b);
	}
	SAME(stat_of(keeper).limbo, 1);
	publish_stamp(writer, 2);
	second = receive_one(s);
	xmem_unsubscribe(s);
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(keeper).limbo == 2 && stat_of(keeper).clients == 1);
	SAME(stamp_of(first), 1);
	SAME(stamp_of(second), 2);
	/* The first buffer is released while a third writer has the group. */
	writer = open_writer(name, SLOTS - 2, BYTES);
	xmem_release(first);
	EVENTUALLY(stat_of(keeper).limbo == 1);
	CHECK(stat_of(keeper).limbo_age_ns);
	SAME(stamp_of(second), 2);
	xmem_release(second);
	EVENTUALLY(!stat_of(keeper).limbo && !stat_of(keeper).limbo_age_ns);
	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	xmem_pool_close(writer);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* ---- waiting ---- */

/* A new writer, which sleeps until it gets a slot. */
static void begin_to_write(struct waiter *waiter, const char *name)
{
	begin_to_wait(waiter, name, OPEN(name, .flags = XMEM_OPEN_WRITER), BYTES);
}

static void gets_one(struct waiter *waiter)
{
	xmem_release(end_of_wait(waiter));
	xmem_pool_close(waiter->pool);
}

/* All slots of the group are held. One is enough for the next writer. */
TEST(P9_one_slot_that_is_let_go_serves_a_writer_that_waits)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS), *other;
	struct xmem_buffer *kept[SLOTS];
	struct waiter waiter;
	int i;

	for (i = 0; i < SLOTS; i++)
		kept[i] = leave_one(name, keeper, i);
	begin_to_write(&waiter, name);
	xmem_release(kept[7]);
	gets_one(&waiter);
	/* The poll descriptor says so, too. */
	other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	kept[7] = leave_one(name, keeper, 7);
	acquire_in_vain(other, BYTES);
	xmem_release(kept[9]);
	SAME(by_poll(fd_of(other), POLLOUT, WAIT_MS), POLLOUT);
	xmem_release(xmem_acquire(other, BYTES, patience_ns()));
	xmem_pool_close(other);
	for (i = 0; i < SLOTS; i++)
		if (i != 9)
			xmem_release(kept[i]);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* The message names the holders of slots in a left group, even if a writer has the group now. */
TEST(API_a_refusal_for_slots_says_who_keeps_those_of_the_dead)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS, .label = "keeper");
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *kept[SLOTS];
	char who[80];
	int i;

	for (i = 0; i < SLOTS; i++)
		kept[i] = leave_one(name, keeper, i);
	snprintf(who, sizeof(who), "ended are still used (client %d keeper pid %d: 64)",
		 xmem_pool_client(keeper), getpid());
	refused_slots(writer, who);
	xmem_release(kept[0]);
	EVENTUALLY(!xmem_preallocate(writer, BYTES, 1, NULL));
	SAME(xmem_preallocate(writer, BYTES, 1, NULL), -ENOSPC);
	snprintf(who, sizeof(who), "ended are still used (client %d keeper pid %d: 63)",
		 xmem_pool_client(keeper), getpid());
	error_has(ENOSPC, who);
	for (i = 1; i < SLOTS; i++)
		xmem_release(kept[i]);
	xmem_pool_close(writer);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* The writer holds one slot of the group and may still get the others. */
TEST(P9_a_writer_waits_for_others_slots_of_a_left_group)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS);
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *kept[SLOTS], *got;
	struct waiter waiter;
	int i;

	for (i = 0; i < SLOTS; i++)
		kept[i] = leave_one(name, i ? keeper : writer, i);
	begin_to_wait(&waiter, name, writer, BYTES);
	xmem_release(kept[SLOTS - 1]);
	got = end_of_wait(&waiter);
	SAME(stamp_of(kept[0]), 0);
	xmem_release(got);
	for (i = 0; i < SLOTS - 1; i++)
		xmem_release(kept[i]);
	xmem_pool_close(writer);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* Until a dead writer's ring has been received, no writer gets its group. */
TEST(P9_a_ring_that_is_over_leaves_its_group_to_a_writer_that_waits)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS);
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_subscription *s = follow(keeper, xmem_pool_client(writer), 0);
	struct xmem_buffer *kept;
	struct waiter waiter;

	publish_stamp(writer, 1);
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(keeper).limbo == 1);
	begin_to_write(&waiter, name);
	kept = receive_one(s);
	xmem_unsubscribe(s);
	gets_one(&waiter);
	SAME(stamp_of(kept), 1);
	xmem_release(kept);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* The last subscriber receives and releases, and another client holds. Nobody unsubscribes. */
TEST(P9_a_release_that_ends_a_ring_leaves_its_group)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS), *follower = open_reader(name);
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_subscription *s = follow(follower, xmem_pool_client(writer), 0);
	struct xmem_buffer *kept;
	struct waiter waiter;

	CHECK((kept = publish_and_get(writer, keeper, 1)));
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(keeper).limbo == 1);
	begin_to_write(&waiter, name);
	xmem_release(receive_one(s));
	gets_one(&waiter);
	SAME(stamp_of(kept), 1);
	xmem_release(kept);
	xmem_unsubscribe(s);
	xmem_pool_close(follower);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* The last subscriber receives, holds, and does nothing more. The next attach finds that out. */
TEST(P10_a_buffer_that_was_received_last_takes_one_slot)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS);
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_subscription *s = follow(keeper, xmem_pool_client(writer), 0);
	struct xmem_buffer *kept;

	publish_stamp(writer, 1);
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(keeper).limbo == 1);
	kept = receive_one(s);
	writer = open_writer(name, SLOTS - 1, BYTES);
	SAME(stamp_of(kept), 1);
	xmem_release(kept);
	xmem_unsubscribe(s);
	xmem_pool_close(writer);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* One writer gets all free slots of several left groups, and not one slot more. */
TEST(P10_several_groups_leave_their_slots_to_one_writer)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = 2 * SLOTS), *writer[2];
	struct xmem_buffer *kept[2];
	int i;

	for (i = 0; i < 2; i++)
		writer[i] = open_writer(name, 1, BYTES);
	for (i = 0; i < 2; i++)
		CHECK((kept[i] = publish_and_get(writer[i], keeper, i)));
	for (i = 0; i < 2; i++)
		xmem_pool_close(writer[i]);
	EVENTUALLY(stat_of(keeper).limbo == 2 && stat_of(keeper).clients == 1);
	writer[0] = OPEN(name, .flags = XMEM_OPEN_WRITER);
	SAME(xmem_preallocate(writer[0], BYTES, 2 * SLOTS - 1, NULL), -ENOSPC);
	WORKED(xmem_preallocate(writer[0], BYTES, SLOTS, NULL));
	WORKED(xmem_preallocate(writer[0], BYTES, SLOTS - 2, NULL));
	SAME(xmem_preallocate(writer[0], BYTES, 1, NULL), -ENOSPC);
	for (i = 0; i < 2; i++) {
		SAME(stamp_of(kept[i]), i);
		xmem_release(kept[i]);
	}
	xmem_pool_close(writer[0]);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* The writer holds a buffer of the dead writer. Another client has not received that ring yet. */
TEST(P9_a_writer_waits_for_a_ring_that_others_receive)
{
	const char *name = new_name();
	struct xmem_pool *keeper = OPEN(name, .slots = SLOTS);
	struct xmem_pool *next = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_subscription *s = follow(keeper, xmem_pool_client(writer), 0);
	struct xmem_buffer *held, *got;
	struct waiter waiter;

	CHECK((held = publish_and_get(writer, next, 1)));
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(keeper).limbo == 1);
	begin_to_wait(&waiter, name, next, BYTES);
	xmem_release(receive_one(s));
	got = end_of_wait(&waiter);
	SAME(stamp_of(held), 1);
	xmem_release(held);
	xmem_release(got);
	xmem_unsubscribe(s);
	xmem_pool_close(next);
	check_quiet(keeper, 1);
	xmem_pool_close(keeper);
}

/* ---- the end of the keeper ---- */

static void hold_until_killed(void *argument)
{
	struct xmem_pool *pool = open_reader(argument);

	CHECK(xmem_get(pool, hear_parent()));
	tell_parent(1);
	hear_parent();
}

TEST(P2_what_a_dead_client_held_of_a_left_group_goes)
{
	const char *name = new_name();
	struct xmem_pool *reader = OPEN(name, .slots = SLOTS);
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct child *child = spawn(hold_until_killed, (void *)name);
	struct xmem_buffer *kept;

	tell(child, publish_kept(writer, 1, &kept));
	SAME(hear(child), 1);
	xmem_release(kept);
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(reader).limbo == 1 && stat_of(reader).clients == 2);
	writer = open_writer(name, SLOTS - 1, BYTES);
	kill_child(child);
	EVENTUALLY(!stat_of(reader).limbo);
	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	xmem_pool_close(writer);
	check_quiet(reader, 1);
	xmem_pool_close(reader);
}

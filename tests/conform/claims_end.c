// SPDX-License-Identifier: MIT
/*
 * How claims end that nobody takes: producers and consumers die at any step, times pass, clients
 * leave, and a supervisor voids the claims.
 */
#include <signal.h>

#include "claims.h"
#include "polling.h"

#define SHORT	(100 * MS)

/* ---- time ---- */

TEST(P9_claims_that_nobody_takes_are_void_after_their_time)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	uint64_t soon = hand_over(writer, 1, 3, SHORT);
	uint64_t later = hand_over(writer, 2, 1, 50 * SECOND);
	struct xmem_buffer *b;

	/* The host alone wakes the waiting acquire. */
	b = xmem_acquire(writer, BYTES, patience_ns());
	CHECK(b);
	SAME(xmem_token(b), 0);
	xmem_release(b);
	REFUSED(xmem_get(writer, soon), ESTALE);
	SAME(claims_of(writer, later), 1);
	SAME(stat_of(writer).claimed, 1);
	WORKED(xmem_drop_ref(writer, later));
	xmem_pool_close(writer);
}

TEST(P9_the_time_that_ends_later_counts)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *a = counted(writer, 1, 1, SHORT), *b;
	uint64_t token = xmem_token(a);

	WORKED(xmem_set_ref_count(a, 1, 50 * SECOND));
	WORKED(xmem_forget(a));
	/* The time of these claims ends after that of the first ones. */
	hand_over(writer, 2, 1, 2 * SHORT);
	b = xmem_acquire(writer, BYTES, patience_ns());
	CHECK(b);
	SAME(claims_of(writer, token), 1);
	xmem_release(b);
	WORKED(xmem_drop_ref(writer, token));
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P9_a_writer_that_polls_hears_of_claims_that_are_void)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	int64_t start = now_ns();

	hand_over(writer, 1, 1, SHORT);
	fd_of(writer);
	CHECK(!is_free(writer) || now_ns() - start >= SHORT);
	xmem_release(acquire_by_poll(writer, BYTES, 1));
	xmem_pool_close(writer);
}

TEST(API_only_the_owner_sets_references_aside_for_long)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 1);
	uint64_t token = xmem_token(b);

	SAME(xmem_set_ref_count(b, 2, XMEM_FOREVER), -EPERM);
	SAME(xmem_set_ref_count(b, 2, 61 * SECOND), -EPERM);
	SAME(xmem_set_ref_count(b, 1, 61 * SECOND), -EPERM);
	SAME(claims_of(writer, token), 0);
	WORKED(xmem_set_ref_count(b, 2, 60 * SECOND));
	xmem_release(b);
	WORKED(xmem_drop_ref(reader, token));
	CHECK(is_free(writer));
	token = hand_over(writer, 2, 1, XMEM_FOREVER);
	WORKED(xmem_drop_ref(reader, token));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_only_the_owner_offers_for_long)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 1), *own;
	uint64_t token = xmem_token(b);

	SAME(xmem_offer(b, 1, XMEM_FOREVER), -EPERM);
	SAME(xmem_offer(b, 1, 60 * SECOND + 1), -EPERM);
	SAME(xmem_claims(reader, token), 0);
	WORKED(xmem_offer(b, 1, 60 * SECOND));
	own = xmem_clone(b);
	xmem_release(b);
	xmem_release(own);
	own = xmem_get(writer, token);
	CHECK(own);
	SAME(xmem_claims(writer, token), 0);
	WORKED(xmem_offer(own, 2, XMEM_FOREVER));
	xmem_release(own);
	SAME(xmem_claims(reader, token), 2);
	WORKED(xmem_drop_ref(reader, token));
	WORKED(xmem_drop_ref(reader, token));
	CHECK(is_free(writer));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P9_claims_are_void_after_the_later_of_their_times)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *b;
	uint64_t soon = publish_kept(writer, 1, &b), later;

	WORKED(xmem_offer(b, 3, SHORT));
	xmem_release(b);
	later = publish_kept(writer, 2, &b);
	WORKED(xmem_offer(b, 1, 50 * SECOND));
	WORKED(xmem_offer(b, 1, SHORT));
	xmem_release(b);
	/* The host alone ends the first claims. Then their buffer can be acquired. */
	b = xmem_acquire(writer, BYTES, patience_ns());
	CHECK(b);
	SAME(xmem_claims(writer, soon), -ESTALE);
	SAME(xmem_claims(writer, later), 2);
	xmem_release(b);
	WORKED(xmem_void_claims(writer, later));
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- consumers that die ---- */

struct victim {
	const char *name;
	int step;
	bool forgets;
};

static void get_and_die(void *argument)
{
	const struct victim *how = argument;
	struct xmem_pool *pool = open_reader(how->name);
	struct xmem_buffer *b;
	uint64_t token;

	tell_parent(1);
	token = hear_parent();
	if (how->step >= 0)
		at_step(how->step, 0, STEP_KILL, NULL);
	b = xmem_get(pool, token);
	CHECK(b);
	tell_parent(2);
	hear_parent();
	if (how->forgets)
		xmem_forget(b);
	else
		xmem_release(b);
	pause();
}

TEST(P2_a_consumer_that_dies_after_its_get_takes_its_reference_along)
{
	struct victim how = { .name = new_name(), .step = -1 };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES);
	struct child *child = spawn(get_and_die, &how);
	uint64_t token;

	hear(child);
	token = hand_over(writer, 1, 2, 50 * SECOND);
	tell(child, token);
	SAME(hear(child), 2);
	SAME(claims_of(writer, token), 1);
	kill_child(child);
	check_quiet(writer, 1);
	CHECK(!is_free(writer));
	xmem_release(xmem_get(writer, token));
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

/* A consumer dies at that step. The claims that it has not taken are left, and no others. */
static void die_in_get(struct xmem_pool *writer, struct victim *how, uint32_t left)
{
	struct child *child = spawn(get_and_die, how);
	uint64_t token;

	hear(child);
	token = hand_over(writer, 1, 1, 50 * SECOND);
	tell(child, token);
	died_of_kill(child);
	check_quiet(writer, 1);
	SAME(claims_of(writer, token), left);
	SAME(is_free(writer), !left);
	if (left)
		WORKED(xmem_drop_ref(writer, token));
	CHECK(is_free(writer));
}

TEST(P2_a_consumer_killed_at_every_step_of_a_get_that_takes_a_claim)
{
	struct victim how = { .name = new_name() };
	struct xmem_pool *writer;

	steps_only();
	writer = open_writer(how.name, 1, BYTES);
	how.step = XM_STEP_GET_HELD;
	die_in_get(writer, &how, 1);
	how.step = XM_STEP_GET_DONE;
	die_in_get(writer, &how, 1);
	how.step = XM_STEP_CLAIM_HELD;
	die_in_get(writer, &how, 1);
	how.step = XM_STEP_CLAIM_TAKEN;
	die_in_get(writer, &how, 0);
	xmem_pool_close(writer);
}

/* It got the buffer, and dies while it forgets it: the reference is there for another client. */
TEST(P2_a_reader_killed_while_it_forgets)
{
	struct victim how = { .name = new_name(), .step = XM_STEP_CLAIM_FORGET, .forgets = true };
	struct xmem_pool *writer;
	struct child *child;
	uint64_t token;

	steps_only();
	writer = open_writer(how.name, 1, BYTES);
	child = spawn(get_and_die, &how);
	hear(child);
	token = hand_over(writer, 1, 1, 50 * SECOND);
	tell(child, token);
	SAME(hear(child), 2);
	tell(child, 1);
	died_of_kill(child);
	check_quiet(writer, 1);
	/* It added the claim and ended. Only the owner is left, so nobody could take the claim. */
	EVENTUALLY(claims_of(writer, token) == 0);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

/* ---- producers that die ---- */

static void produce_and_die(void *argument)
{
	const struct victim *how = argument;
	struct xmem_pool *pool = open_writer(how->name, 1, BYTES);
	struct xmem_buffer *b = xmem_acquire(pool, BYTES, 0);

	fill(b, 9);
	if (how->step >= 0)
		at_step(how->step, 0, STEP_KILL, NULL);
	tell_parent(1);
	hear_parent();
	WORKED(xmem_set_ref_count(b, 2, how->forgets ? XMEM_FOREVER : 3 * SHORT));
	tell_parent(xmem_token(b));
	WORKED(xmem_forget(b));
	tell_parent(1);
	pause();
}

TEST(P8_buffers_handed_over_by_count_outlive_their_producer)
{
	struct victim how = { .name = new_name(), .step = -1, .forgets = true };
	struct xmem_pool *one = open_reader(how.name), *other = open_reader(how.name);
	struct child *child = spawn(produce_and_die, &how);
	struct xmem_buffer *a, *b;
	uint64_t token;

	hear(child);
	tell(child, 1);
	token = hear(child);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(one).limbo == 1);
	SAME(claims_of(one, token), 2);
	a = xmem_get(one, token);
	CHECK(a);
	SAME(stamp_of(a), 9);
	SAME(stat_of(one).attached, 1);
	b = xmem_get(other, XMEM_SLOT(token & 0xffff));
	CHECK(b);
	SAME(stamp_of(b), 9);
	xmem_release(a);
	SAME(stamp_of(b), 9);
	SAME(stat_of(one).attached, 1);
	xmem_release(b);
	EVENTUALLY(stat_of(one).attached == 0);
	REFUSED(xmem_get(one, token), ESTALE);
	xmem_pool_close(other);
	check_quiet(one, 1);
	xmem_pool_close(one);
}

/* Without a hold the last reference ends, and the host notices that. */
TEST(P8_the_last_reference_of_an_ended_producer_is_dropped_without_a_handle)
{
	struct victim how = { .name = new_name(), .step = -1, .forgets = true };
	struct xmem_pool *one = open_reader(how.name);
	struct child *child = spawn(produce_and_die, &how);
	uint64_t token;

	hear(child);
	tell(child, 1);
	token = hear(child);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(one).limbo == 1);
	WORKED(xmem_drop_ref(one, token));
	SAME(stat_of(one).attached, 1);
	WORKED(xmem_drop_ref(one, token));
	EVENTUALLY(stat_of(one).attached == 0);
	check_quiet(one, 1);
	xmem_pool_close(one);
}

TEST(P9_what_an_ended_producer_has_set_aside_ends_after_its_time)
{
	struct victim how = { .name = new_name(), .step = -1 };
	struct xmem_pool *one = open_reader(how.name);
	struct child *child = spawn(produce_and_die, &how);

	hear(child);
	tell(child, 1);
	hear(child);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(one).attached == 0);
	SAME(stat_of(one).claims, 0);
	check_quiet(one, 1);
	xmem_pool_close(one);
}

TEST(P3_a_producer_killed_at_every_step_of_set_ref_count_and_forget_leaks_nothing)
{
	static const int steps[] = {
		XM_STEP_CLAIM_POSITION, XM_STEP_CLAIM_LIVE, XM_STEP_CLAIM_FORGET,
		XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED,
	};
	struct victim how = { .name = new_name() };
	struct xmem_pool *reader;
	unsigned int i;

	steps_only();
	reader = open_reader(how.name);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct child *child;

		how.step = steps[i];
		child = spawn(produce_and_die, &how);
		hear(child);
		tell(child, 1);
		died_of_kill(child);
		EVENTUALLY(stat_of(reader).attached == 0);
		SAME(stat_of(reader).claims, 0);
		check_quiet(reader, 1);
	}
	xmem_pool_close(reader);
}

/* ---- clients that have left; voiding ---- */

static void add_and_leave(void *argument)
{
	const struct victim *how = argument;
	struct xmem_pool *pool = open_reader(how->name);

	tell_parent(1);
	WORKED(xmem_add_ref(pool, hear_parent()));
	xmem_pool_close(pool);
}

TEST(P9_claims_of_who_has_left_are_void_if_only_the_owner_is_there)
{
	struct victim how = { .name = new_name() };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES), *third;
	struct xmem_buffer *b;
	struct child *child;
	uint64_t token = publish_kept(writer, 1, &b);

	child = spawn(add_and_leave, &how);
	hear(child);
	tell(child, token);
	finish_child(child);
	/*
	 * The daemon handles the end before it answers any client, so the claims' time did not end
	 * them.
	 */
	EVENTUALLY(stat_of(writer).clients == 1);
	host_has_served(writer);
	if (on_kernel())
		EVENTUALLY(claims_of(writer, token) == 0);
	SAME(claims_of(writer, token), 0);

	/* Another client is there, which may take the claim, until it leaves too. */
	third = open_reader(how.name);
	child = spawn(add_and_leave, &how);
	hear(child);
	tell(child, token);
	finish_child(child);
	EVENTUALLY(stat_of(writer).clients == 2);
	SAME(claims_of(writer, token), 1);
	xmem_release(b);
	CHECK(!is_free(writer));
	xmem_pool_close(third);
	EVENTUALLY(is_free(writer));
	xmem_pool_close(writer);
}

TEST(P9_what_the_owner_has_set_aside_for_those_who_come_later_stays)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader;
	uint64_t token = hand_over(writer, 4, 1, 50 * SECOND);
	struct xmem_buffer *b;

	reader = open_reader(name);
	xmem_pool_close(reader);
	SAME(claims_of(writer, token), 1);
	reader = open_reader(name);
	b = xmem_get(reader, token);
	CHECK(b);
	SAME(stamp_of(b), 4);
	xmem_release(b);
	xmem_pool_close(reader);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

TEST(API_a_supervisor_voids_claims)
{
	struct victim how = { .name = new_name(), .step = -1, .forgets = true };
	struct xmem_pool *one = open_reader(how.name), *writer;
	struct child *child = spawn(produce_and_die, &how);
	struct xmem_buffer *b;
	uint64_t token;

	hear(child);
	tell(child, 1);
	token = hear(child);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(one).limbo == 1);
	b = xmem_get(one, token);
	CHECK(b);
	WORKED(xmem_void_claims(one, token));
	SAME(claims_of(one, token), 0);
	SAME(stamp_of(b), 9);	/* the client that holds it keeps it */
	xmem_release(b);
	EVENTUALLY(stat_of(one).attached == 0);

	writer = open_writer(how.name, 1, BYTES);
	token = hand_over(writer, 1, 9, XMEM_FOREVER);
	WORKED(xmem_void_claims(one, token));
	SAME(xmem_void_claims(one, token), -ENOENT);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
	check_quiet(one, 1);
	xmem_pool_close(one);
}

/* ---- an owner that stands still in a scan ---- */

static void scan_and_stop(void *argument)
{
	const struct victim *how = argument;
	struct xmem_pool *pool = open_writer(how->name, 1, BYTES);
	struct xmem_buffer *b;
	uint64_t token = publish_kept(pool, 6, &b);

	tell_parent(token);
	hear_parent();
	xmem_release(b);
	at_step(how->step, 0, STEP_STOP, NULL);
	b = xmem_acquire(pool, BYTES, 0);
	if (b)
		FAIL("it has taken what has a claim");
	SAME(xmem_peek_last_error(NULL), -EAGAIN);
	no_step();
	tell_parent(1);
	hear_parent();
	b = xmem_acquire(pool, BYTES, 0);
	CHECK(b);
	xmem_release(b);
	xmem_pool_close(pool);
}

TEST(P1_a_reference_is_set_aside_while_the_owner_stands_in_a_scan)
{
	static const int steps[] = {
		XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS,
	};
	struct victim how = { .name = new_name() };
	struct xmem_pool *reader;
	unsigned int i;

	steps_only();
	reader = open_reader(how.name);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct child *child;
		uint64_t token;

		how.step = steps[i];
		child = spawn(scan_and_stop, &how);
		token = hear(child);
		tell(child, 1);
		wait_stopped(child);
		WORKED(xmem_add_ref(reader, token));
		SAME(claims_of(reader, token), 1);
		continue_child(child);
		hear(child);
		WORKED(xmem_drop_ref(reader, token));
		tell(child, 1);
		finish_child(child);
		EVENTUALLY(stat_of(reader).attached == 0);
	}
	xmem_pool_close(reader);
}

/* ---- a daemon that is stopped ---- */

static void nothing(int signal)
{
}

static void interrupt(void *argument)
{
	int i;

	for (i = 0; i < 100; i++) {
		look_again_soon();
		kill(getppid(), SIGUSR1);
	}
}

TEST(API_set_ref_count_that_was_given_up_sets_nothing_aside)
{
	struct sigaction action = { .sa_handler = nothing };
	struct xmem_pool *writer;
	struct xmem_buffer *b;
	struct child *child;
	pid_t daemon;

	daemon_only("the kernel is not stopped");
	use_own_daemon();
	writer = open_writer(new_name(), 1, BYTES);
	b = xmem_acquire(writer, BYTES, 0);
	fill(b, 1);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	daemon = stop_daemon();
	child = spawn(interrupt, NULL);
	SAME(xmem_set_ref_count(b, 2, XMEM_FOREVER), -EINTR);
	finish_child(child);
	continue_daemon(daemon);
	host_has_served(writer);
	SAME(stat_of(writer).claims, 0);
	SAME(stat_of(writer).holds, 0);
	CHECK(xmem_data_mut(b));
	WORKED(xmem_set_ref_count(b, 1, 0));
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

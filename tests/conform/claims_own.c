// SPDX-License-Identifier: MIT
/*
 * The reference of a handle that xmem_set_ref_count has counted in: it ends with the handle or with
 * the process, and never takes along claims of other clients.
 */
#include "claims.h"
#include "lib/private.h"

#define SHORT	(100 * MS)

/* ---- it ends with its process ---- */

struct holder {
	const char *name;
	uint64_t token;			/* 0: it is the producer; else it gets this token */
	int step;			/* where it dies; -1: it is killed when it is done */
	enum { KEEPS, FORGETS, RELEASES } then;
};

static void count_in(void *argument)
{
	const struct holder *how = argument;
	struct xmem_pool *pool;
	struct xmem_buffer *b;

	pool = how->token ? open_reader(how->name) : open_writer(how->name, 1, BYTES);
	b = how->token ? xmem_get(pool, how->token) : xmem_acquire(pool, BYTES, 0);
	CHECK(b);
	if (!how->token)
		fill(b, 3);
	if (how->step >= 0)
		at_step(how->step, 0, STEP_KILL, NULL);
	WORKED(xmem_set_ref_count(b, 3, how->token ? 50 * SECOND : XMEM_FOREVER));
	tell_parent(xmem_token(b));
	if (how->then == FORGETS)
		WORKED(xmem_forget(b));
	if (how->then == RELEASES)
		xmem_release(b);
	tell_parent(1);
	hear_parent();
}

/* After its end @left claims of those that it set are left. */
static void ends_with(struct holder *how, uint32_t left)
{
	struct xmem_pool *one = open_reader(how->name);
	struct child *child = spawn(count_in, how);
	uint64_t token = hear(child);

	if (how->step < 0) {
		hear(child);
		kill_child(child);
	} else {
		died_of_kill(child);
	}
	EVENTUALLY(stat_of(one).clients == 1);
	SAME(claims_of(one, token), left);
	while (left--)
		xmem_release(xmem_get(one, token));
	EVENTUALLY(stat_of(one).attached == 0);
	xmem_pool_close(one);
}

TEST(P2_the_reference_of_a_counted_handle_ends_with_its_process)
{
	struct holder how = { .name = new_name(), .step = -1, .then = KEEPS };

	ends_with(&how, 2);
	how.then = FORGETS;
	ends_with(&how, 3);
	how.then = RELEASES;
	ends_with(&how, 2);
}

TEST(P2_killed_while_it_drops_the_reference_of_a_counted_handle)
{
	struct holder how = { .name = new_name() };

	steps_only();
	how.step = XM_STEP_CLAIM_DROPPED;
	how.then = RELEASES;
	ends_with(&how, 2);
	how.step = XM_STEP_CLAIM_FORGET;
	how.then = FORGETS;
	ends_with(&how, 3);
}

/* A client that does not own the buffer ends at every step of counting itself in. */
TEST(P2_a_reader_killed_at_every_step_of_set_ref_count)
{
	static const struct { int step; uint32_t left; } cases[] = {
		{ XM_STEP_CLAIM_DROPPED, 2 }, { -1, 2 },
	};
	struct holder how = { .name = new_name(), .then = RELEASES };
	struct xmem_pool *writer, *third;
	struct xmem_buffer *b;
	unsigned int i;

	steps_only();
	writer = open_writer(how.name, 1, BYTES);
	third = open_reader(how.name);	/* somebody who may take the claims */
	how.token = publish_kept(writer, 4, &b);
	WORKED(xmem_offer(b, 1, 0));
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct child *child;

		SAME(claims_of(writer, how.token), 1);
		how.step = cases[i].step;
		child = spawn(count_in, &how);
		SAME(hear(child), how.token);
		if (how.step < 0) {
			hear(child);
			kill_child(child);
		} else {
			died_of_kill(child);
		}
		EVENTUALLY(stat_of(writer).clients == 2);
		/* Its get has taken the claim that was there. */
		SAME(claims_of(writer, how.token), cases[i].left);
		WORKED(xmem_set_ref_count(b, 1, 0));
		WORKED(xmem_drop_ref(writer, how.token));
		WORKED(xmem_offer(b, 1, 0));
	}
	xmem_release(b);
	xmem_pool_close(third);
	xmem_pool_close(writer);
}

/* ---- it takes nothing of others along ---- */

TEST(API_a_release_takes_nothing_of_others_when_its_own_reference_is_void)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = counted(writer, 5, 2, 0);
	uint64_t token = xmem_token(b);

	WORKED(xmem_void_claims(writer, token));
	WORKED(xmem_add_ref(reader, token));
	xmem_release(b);
	SAME(claims_of(reader, token), 1);
	CHECK(!is_free(writer));
	WORKED(xmem_drop_ref(reader, token));

	b = counted(writer, 6, 2, SHORT);
	token = xmem_token(b);
	EVENTUALLY(claims_of(reader, token) == 0);
	WORKED(xmem_add_ref(reader, token));
	xmem_release(b);
	SAME(claims_of(reader, token), 1);
	WORKED(xmem_drop_ref(reader, token));
	CHECK(is_free(writer));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_a_release_takes_nothing_of_others_when_all_have_been_taken)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = counted(writer, 5, 1, 0), *got;
	uint64_t token = xmem_token(b);

	got = xmem_get(reader, token);
	CHECK(got);
	SAME(claims_of(reader, token), 0);
	WORKED(xmem_forget(got));
	SAME(claims_of(reader, token), 1);
	xmem_release(b);
	SAME(claims_of(reader, token), 1);
	CHECK(!is_free(writer));
	WORKED(xmem_drop_ref(reader, token));
	CHECK(is_free(writer));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* A producer may send the token before it forgets the buffer, at any speed. */
TEST(P1_consumers_that_come_before_the_producer_forgets)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = counted(writer, 5, 2, 0), *one, *two;
	uint64_t token = xmem_token(b);

	one = xmem_get(reader, token);
	two = xmem_get(reader, token);
	CHECK(one && two);
	SAME(claims_of(reader, token), 0);
	xmem_release(one);
	WORKED(xmem_forget(b));
	SAME(claims_of(reader, token), 0);
	CHECK(!is_free(writer));
	SAME(stamp_of(two), 5);
	xmem_release(two);
	CHECK(is_free(writer));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P9_claims_of_the_owner_stay_when_a_client_that_has_added_some_leaves)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	uint64_t token = hand_over(writer, 5, 2, 0);

	WORKED(xmem_add_ref(reader, token));
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	SAME(claims_of(writer, token), 3);
	WORKED(xmem_void_claims(writer, token));
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

/* ---- a handle whose reference has ended, and one that was counted in after it ---- */

static void two_countings(struct xmem_pool *writer, struct xmem_buffer **first,
			  struct xmem_buffer **second)
{
	*first = counted(writer, 5, 2, 0);
	*second = xmem_clone(*first);
	CHECK(*second);
	WORKED(xmem_void_claims(writer, xmem_token(*first)));
	WORKED(xmem_set_ref_count(*second, 2, 0));
	SAME(claims_of(writer, xmem_token(*first)), 2);
}

TEST(API_an_earlier_handle_takes_nothing_of_a_later_one)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *first, *second;
	uint64_t token;

	two_countings(writer, &first, &second);
	token = xmem_token(first);
	SAME(xmem_set_ref_count(first, 3, 0), -EBUSY);
	xmem_release(first);
	SAME(claims_of(writer, token), 2);
	xmem_release(second);
	SAME(claims_of(writer, token), 1);
	WORKED(xmem_drop_ref(writer, token));
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

static void forget_the_first(void *argument)
{
	const char *name = argument;
	struct xmem_buffer *first, *second;

	two_countings(open_writer(name, 1, BYTES), &first, &second);
	tell_parent(xmem_token(first));
	WORKED(xmem_forget(first));
	tell_parent(1);
	hear_parent();
}

TEST(P2_an_earlier_handle_forgets_nothing_of_a_later_one)
{
	const char *name = new_name();
	struct xmem_pool *one = open_reader(name);
	struct child *child = spawn(forget_the_first, (void *)name);
	uint64_t token = hear(child);

	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(one).clients == 1);
	SAME(claims_of(one, token), 1);
	xmem_release(xmem_get(one, token));
	EVENTUALLY(stat_of(one).attached == 0);
	xmem_pool_close(one);
}

/* ---- one for each client ---- */

TEST(API_of_several_handles_of_a_client_one_is_counted_in)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = counted(writer, 5, 2, 0), *other = xmem_clone(b);
	uint64_t token = xmem_token(b);

	CHECK(other);
	SAME(xmem_set_ref_count(other, 3, 0), -EBUSY);
	SAME(claims_of(writer, token), 2);
	WORKED(xmem_set_ref_count(b, 3, 0));
	SAME(claims_of(writer, token), 3);
	xmem_release(b);
	SAME(claims_of(writer, token), 2);
	WORKED(xmem_set_ref_count(other, 4, 0));
	SAME(claims_of(writer, token), 4);
	WORKED(xmem_forget(other));
	SAME(claims_of(writer, token), 4);
	WORKED(xmem_void_claims(writer, token));
	CHECK(is_free(writer));
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- with writing in place ---- */

TEST(API_a_counted_handle_that_writes_in_place_can_be_counted_in_again)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b;
	uint64_t token;

	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	b = counted(writer, 5, 1, 0);
	WORKED(xmem_drop_ref(writer, xmem_token(b)));
	WORKED(xmem_get_mut(b));
	fill(b, 6);
	WORKED(xmem_set_ref_count(b, 2, 0));
	token = xmem_token(b);
	SAME(claims_of(writer, token), 2);
	xmem_release(b);
	SAME(claims_of(writer, token), 1);
	b = xmem_get(writer, token);
	SAME(stamp_of(b), 6);
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

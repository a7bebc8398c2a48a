// SPDX-License-Identifier: MIT
/*
 * The reference of a handle whose buffer xmem_set_ref_count was called for: it ends with the handle
 * or with the process, and never takes along claims of other clients.
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

static void count(void *argument)
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
	struct child *child = spawn(count, how);
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

TEST(P2_the_reference_of_a_handle_that_was_counted_ends_with_its_process)
{
	struct holder how = { .name = new_name(), .step = -1, .then = KEEPS };

	ends_with(&how, 2);
	how.then = FORGETS;
	ends_with(&how, 3);
	how.then = RELEASES;
	ends_with(&how, 2);
}

/* The claim is there before the hold goes, so no step loses the reference. */
TEST(P2_killed_while_it_forgets_a_handle_that_was_counted)
{
	struct holder how = { .name = new_name(), .step = XM_STEP_CLAIM_FORGET, .then = FORGETS };

	steps_only();
	ends_with(&how, 3);
}

/* A client that does not own the buffer sets a count, and ends. */
TEST(P2_what_a_reader_has_counted_is_there_after_its_end)
{
	struct holder how = { .name = new_name(), .step = -1, .then = RELEASES };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES);
	struct xmem_pool *third = open_reader(how.name);	/* it may take the claims */
	struct xmem_buffer *b;
	struct child *child;

	how.token = publish_kept(writer, 4, &b);
	WORKED(xmem_offer(b, 1, 0));
	child = spawn(count, &how);
	SAME(hear(child), how.token);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(writer).clients == 2);
	/* Its get has taken the claim that was there. */
	SAME(claims_of(writer, how.token), 2);
	WORKED(xmem_void_claims(writer, how.token));
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

/*
 * A producer should forget the buffer before it sends the token. If the last consumer gets the
 * buffer before that, it finds no claim, and the one that the producer leaves ends after its time.
 */
TEST(P9_what_is_forgotten_after_its_last_consumer_came_ends_in_time)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = counted(writer, 5, 2, SHORT), *one, *two;
	uint64_t token = xmem_token(b);

	EVENTUALLY(claims_of(writer, token) == 0);
	WORKED(xmem_set_ref_count(b, 2, 2 * SECOND));
	one = xmem_get(reader, token);
	two = xmem_get(reader, token);
	CHECK(one && two);
	SAME(claims_of(reader, token), 0);
	WORKED(xmem_forget(b));
	SAME(claims_of(reader, token), 1);
	xmem_release(one);
	SAME(stamp_of(two), 5);
	xmem_release(two);
	CHECK(!is_free(writer));
	EVENTUALLY(is_free(writer));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* The time that xmem_set_ref_count gave is that of the forgotten reference too. */
TEST(API_what_is_forgotten_lasts_as_long_as_was_asked)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *a = xmem_acquire(writer, BYTES, 0), *b = xmem_acquire(writer, BYTES, 0);
	struct xmem_buffer *first, *second;
	uint64_t lasting, brief;

	/* Of claims that end at once, the host voids those of the lower slot first. */
	CHECK(a && b);
	first = xmem_slot(a) < xmem_slot(b) ? a : b;
	second = first == a ? b : a;
	WORKED(xmem_set_ref_count(first, 1, 50 * SECOND));
	WORKED(xmem_set_ref_count(second, 1, SHORT));
	lasting = xmem_token(first);
	brief = xmem_token(second);
	WORKED(xmem_forget(first));
	WORKED(xmem_forget(second));
	EVENTUALLY(claims_of(writer, brief) == 0);
	SAME(claims_of(writer, lasting), 1);
	WORKED(xmem_drop_ref(writer, lasting));
	check_quiet(writer, 1);
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

/* ---- several handles ---- */

TEST(API_each_handle_of_a_client_can_set_the_count)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = counted(writer, 5, 2, 0), *other = xmem_clone(b);
	uint64_t token = xmem_token(b);

	CHECK(other);
	WORKED(xmem_set_ref_count(other, 3, 0));
	SAME(claims_of(writer, token), 2);
	xmem_release(b);
	SAME(claims_of(writer, token), 2);
	WORKED(xmem_forget(other));
	SAME(claims_of(writer, token), 3);
	WORKED(xmem_void_claims(writer, token));
	CHECK(is_free(writer));
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- with writing in place ---- */

TEST(API_a_handle_that_was_counted_and_writes_in_place_is_counted_again)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b;
	uint64_t token;

	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	b = counted(writer, 5, 1, 0);
	WORKED(xmem_get_mut(b));
	fill(b, 6);
	WORKED(xmem_set_ref_count(b, 2, 0));
	token = xmem_token(b);
	SAME(claims_of(writer, token), 1);
	xmem_release(b);
	SAME(claims_of(writer, token), 1);
	b = xmem_get(writer, token);
	SAME(stamp_of(b), 6);
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

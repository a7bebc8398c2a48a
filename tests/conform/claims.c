// SPDX-License-Identifier: MIT
/*
 * Handing buffers over by count: a producer sets the number of references, passes the token on in a
 * way of its own, and forgets the buffer. The buffer is free after the last release, and not
 * before.
 */
#include "claims.h"
#include "lib/private.h"

/* ---- the pattern ---- */

struct consumer {
	const char *name;
	bool by_slot;
};

/* Get each buffer whose token is told, read it, and release it when the next token is told. */
static void consume(void *argument)
{
	const struct consumer *how = argument;
	struct xmem_pool *pool = open_reader(how->name);
	struct xmem_buffer *b;
	uint64_t token;

	tell_parent(1);
	while ((token = hear_parent())) {
		b = xmem_get(pool, how->by_slot ? XMEM_SLOT(token & 0xffff) : token);
		if (!b)
			FAIL("get: %d", xmem_peek_last_error(NULL));
		SAME(xmem_token(b), token);
		SAME(xmem_size(b), BYTES);
		tell_parent(stamp_of(b));
		hear_parent();
		xmem_release(b);
		tell_parent(1);
	}
	xmem_pool_close(pool);
}

static struct child *start_consumer(struct consumer *how)
{
	struct child *child = spawn(consume, how);

	hear(child);
	return child;
}

/* @child releases what it got. */
static void releases(struct child *child)
{
	tell(child, 1);
	hear(child);
}

static void pattern(bool by_slot)
{
	struct consumer how = { .name = new_name(), .by_slot = by_slot };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES);
	struct child *a = start_consumer(&how), *b = start_consumer(&how);
	uint64_t stamp, token;

	for (stamp = 1; stamp < 20; stamp++) {
		token = hand_over(writer, stamp, 2, 0);
		CHECK(!is_free(writer));
		tell(a, token);
		SAME(hear(a), stamp);
		CHECK(!is_free(writer));
		releases(a);
		CHECK(!is_free(writer));
		SAME(claims_of(writer, token), 1);
		tell(b, token);
		SAME(hear(b), stamp);
		SAME(claims_of(writer, token), 0);
		CHECK(!is_free(writer));
		releases(b);
		CHECK(is_free(writer));
		REFUSED(xmem_get(writer, token), ESTALE);
	}
	tell(a, 0);
	tell(b, 0);
	finish_child(a);
	finish_child(b);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P1_handed_over_by_count_a_buffer_is_free_with_the_last_release)
{
	pattern(false);
}

TEST(P1_handed_over_by_the_number_of_its_slot)
{
	pattern(true);
}

TEST(P1_a_writer_that_waits_is_woken_by_the_last_release)
{
	struct consumer how = { .name = new_name() };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES);
	struct child *a = start_consumer(&how);
	struct xmem_buffer *b;

	tell(a, hand_over(writer, 7, 1, 0));
	SAME(hear(a), 7);
	tell(a, 1);
	b = xmem_acquire(writer, BYTES, patience_ns());
	CHECK(b);
	xmem_release(b);
	hear(a);
	tell(a, 0);
	finish_child(a);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- what counts, and what does not ---- */

TEST(API_releasing_the_handle_that_was_counted_drops_one_reference)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = counted(writer, 5, 2, 0), *same;
	uint64_t token = xmem_token(b);

	REFUSED(xmem_data_mut(b), EPERM);
	SAME(info_of(b).publisher, xmem_pool_client(writer));
	same = xmem_clone(b);
	CHECK(same);
	xmem_release(same);
	SAME(claims_of(writer, token), 1);
	xmem_release(b);
	SAME(claims_of(writer, token), 1);
	CHECK(!is_free(writer));
	b = xmem_get(writer, token);
	CHECK(b);
	SAME(claims_of(writer, token), 0);
	same = xmem_get(writer, token);	/* there is no claim left to take: this get takes none */
	CHECK(same);
	xmem_release(same);
	CHECK(!is_free(writer));
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

TEST(API_receivers_and_clones_take_no_claims)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *kept, *b, *clone;
	uint64_t token = publish_kept(writer, 3, &kept);

	WORKED(xmem_offer(kept, 3, 0));
	xmem_release(kept);
	b = receive_one(s);
	SAME(xmem_token(b), token);
	SAME(claims_of(reader, token), 3);
	clone = xmem_clone(b);
	xmem_release(b);
	xmem_release(clone);
	SAME(claims_of(reader, token), 3);
	WORKED(xmem_drop_ref(reader, token));
	WORKED(xmem_drop_ref(reader, token));
	WORKED(xmem_add_ref(reader, token));
	SAME(claims_of(reader, token), 2);
	WORKED(xmem_drop_ref(reader, token));
	WORKED(xmem_drop_ref(reader, token));
	SAME(claims_of(reader, token), 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* A stage hands on what it has received: the reference outlives its handle. */
TEST(API_a_reader_forgets_what_it_holds_and_another_takes_it_over)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_pool *third = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 8);
	uint64_t token = xmem_token(b);

	WORKED(xmem_forget(b));
	SAME(claims_of(reader, token), 1);
	REFUSED(xmem_data(b), EBADF);
	CHECK(!is_free(writer));
	b = xmem_get(third, token);
	CHECK(b);
	SAME(stamp_of(b), 8);
	SAME(claims_of(reader, token), 0);
	CHECK(!is_free(writer));
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(third);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_the_count_of_what_is_held_can_be_set_again)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = counted(writer, 5, 7, 0);
	uint64_t token = xmem_token(b);

	WORKED(xmem_set_ref_count(b, 2, 0));
	SAME(claims_of(writer, token), 1);
	SAME(stat_of(writer).claims, 1);
	SAME(stat_of(writer).claimed, 1);
	WORKED(xmem_set_ref_count(b, 65535, 0));
	SAME(claims_of(writer, token), 65534);
	WORKED(xmem_set_ref_count(b, 65535, 0));
	WORKED(xmem_set_ref_count(b, 1, 0));
	SAME(claims_of(writer, token), 0);
	WORKED(xmem_set_ref_count(b, 1, 0));
	xmem_release(b);
	SAME(stat_of(writer).claimed, 0);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

/* Subscribers lose nothing for a slot that cannot be had. */
TEST(API_a_smaller_count_has_the_time_that_is_given_with_it)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b);
	WORKED(xmem_set_ref_count(b, 3, 50 * MS));
	WORKED(xmem_set_ref_count(b, 2, 60 * SECOND));
	xmem_release(b);
	REFUSED(xmem_acquire(writer, BYTES, 300 * MS), ETIMEDOUT);
	SAME(stat_of(writer).claims, 1);
	xmem_pool_close(writer);
}

TEST(P3_a_publication_with_claims_is_not_evicted)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b, *other;
	uint64_t token;

	token = publish_kept(writer, 1, &b);
	WORKED(xmem_offer(b, 1, 0));
	xmem_release(b);
	other = xmem_acquire(writer, BYTES, 0);
	CHECK(other);
	CHECK(!is_free(writer));
	b = receive_one(s);
	SAME(xmem_token(b), token);
	SAME(sub_info(s).lost, 0);
	xmem_release(b);
	CHECK(!is_free(writer));
	xmem_release(xmem_get(reader, token));
	CHECK(is_free(writer));
	xmem_release(other);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- misuse ---- */

TEST(API_a_count_that_would_leave_its_range_changes_nothing)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);
	uint64_t token;

	fill(b, 1);
	SAME(xmem_set_ref_count(b, 0, 0), -ERANGE);
	SAME(xmem_set_ref_count(b, 65536, 0), -ERANGE);
	SAME(xmem_set_ref_count(b, ~0u, 0), -ERANGE);
	SAME(xmem_set_ref_count(b, 1, -1), -EINVAL);
	SAME(xmem_offer(b, 1, 0), -EPERM);
	SAME(xmem_forget(b), -EPERM);
	CHECK(xmem_data_mut(b));
	SAME(stat_of(writer).holds, 0);
	WORKED(xmem_set_ref_count(b, 65535, 0));
	token = xmem_token(b);
	SAME(xmem_offer(b, 0, 0), -ERANGE);
	SAME(xmem_offer(b, 2, 0), -ERANGE);
	SAME(claims_of(writer, token), 65534);
	WORKED(xmem_offer(b, 1, 0));
	SAME(xmem_offer(b, 1, 0), -ERANGE);
	SAME(xmem_offer(b, ~0u, 0), -ERANGE);
	SAME(xmem_offer(b, 1, SECOND), -ERANGE);
	SAME(xmem_offer(b, 1, -1), -EINVAL);
	SAME(xmem_add_ref(writer, token), -ERANGE);
	SAME(xmem_forget(b), -ERANGE);
	SAME(claims_of(writer, token), 65535);
	WORKED(xmem_set_ref_count(b, 2, 0));
	WORKED(xmem_drop_ref(writer, token));
	SAME(xmem_drop_ref(writer, token), -ERANGE);
	SAME(xmem_drop_ref(writer, token), -ERANGE);
	SAME(claims_of(writer, token), 0);
	SAME(xmem_void_claims(writer, token), -ENOENT);
	SAME(stat_of(writer).holds, 1);
	xmem_release(b);
	CHECK(is_free(writer));
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P5_claims_of_contents_that_are_gone_are_ESTALE)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	uint64_t old = hand_over(writer, 1, 1, 0), token;

	xmem_release(xmem_get(reader, old));
	token = hand_over(writer, 2, 1, 0);
	SAME(token & 0xffff, old & 0xffff);
	SAME(xmem_add_ref(reader, old), -ESTALE);
	SAME(xmem_drop_ref(reader, old), -ESTALE);
	SAME(xmem_void_claims(reader, old), -ESTALE);
	SAME(xmem_add_ref(reader, ~0ULL >> 1), -ESTALE);
	SAME(xmem_drop_ref(reader, ~0ULL >> 1), -ESTALE);
	SAME(xmem_void_claims(reader, ~0ULL >> 1), -ESTALE);
	SAME(xmem_claims(reader, old), -ESTALE);
	SAME(xmem_claims(reader, ~0ULL >> 1), -ESTALE);
	SAME(xmem_claims(reader, token), 1);
	SAME(claims_of(reader, token), 1);
	WORKED(xmem_drop_ref(reader, token));
	CHECK(is_free(writer));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

static int get_and_release(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_buffer *b = xmem_get(pool, token);

	xmem_release(b);
	return b ? 0 : xmem_get_last_error(NULL);
}

/* No token is so small, so the number means the contents of that slot. */
TEST(API_a_slot_is_named_in_place_of_a_token)
{
	static int (*const by_number[])(struct xmem_pool *pool, uint64_t token) = {
		get_and_release, xmem_add_ref, xmem_drop_ref, xmem_claims, xmem_void_claims,
		xmem_retract,
	};
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b;
	uint64_t token, slot;
	size_t i;

	for (i = 0; i < sizeof(by_number) / sizeof(by_number[0]); i++) {
		b = xmem_acquire(writer, BYTES, 0);
		slot = XMEM_SLOT(xmem_slot(b));
		SAME(by_number[i](writer, slot), -ESTALE);	/* it is being written */
		xmem_release(b);
		SAME(by_number[i](writer, slot), -ESTALE);
		SAME(by_number[i](writer, slot + 1), -ESTALE);
		SAME(by_number[i](writer, XMEM_SLOT(stat_of(writer).slots)), -EINVAL);
		SAME(by_number[i](writer, XMEM_SLOT(65535)), -EINVAL);
		SAME(by_number[i](writer, 65536), -ESTALE);
		SAME(by_number[i](NULL, slot), -EINVAL);
	}
	token = publish_stamp(writer, 1);
	SAME(XMEM_SLOT(token & 0xffff), slot);
	b = xmem_get(writer, slot);		/* it has no claims */
	CHECK(b);
	SAME(xmem_token(b), token);
	SAME(stamp_of(b), 1);
	SAME(xmem_drop_ref(writer, slot), -ERANGE);
	SAME(xmem_void_claims(writer, slot), -ENOENT);
	WORKED(xmem_add_ref(writer, slot));
	WORKED(xmem_add_ref(writer, slot));
	SAME(xmem_claims(writer, slot), 2);
	xmem_release(xmem_get(writer, slot));
	SAME(xmem_claims(writer, slot), 1);
	WORKED(xmem_drop_ref(writer, slot));
	SAME(xmem_claims(writer, slot), 0);
	WORKED(xmem_add_ref(writer, slot));
	WORKED(xmem_void_claims(writer, slot));
	SAME(xmem_retract(writer, slot), -EBUSY);
	xmem_release(b);
	for (i = 0; i < sizeof(by_number) / sizeof(by_number[0]); i++) {
		xmem_clear_last_error();
		SAME(by_number[i](writer, 0), -ESTALE);		/* no token, and no slot */
	}
	WORKED(xmem_retract(writer, slot));
	REFUSED(xmem_get(writer, slot), ESTALE);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

static bool took_one(struct xmem_buffer *buffer)
{
	return info_of(buffer).flags & XMEM_BUFFER_CLAIMED;
}

/* A program that gets a buffer and then fails can put back the reference that its get took. */
TEST(API_a_handle_says_whether_its_get_has_taken_a_reference)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0), *got, *second;
	uint64_t slot = XMEM_SLOT(xmem_slot(b)), token;

	CHECK(!took_one(b));
	xmem_release(b);
	token = publish_kept(writer, 1, &b);
	CHECK(!took_one(b));
	got = xmem_get(writer, token);
	CHECK(got && !took_one(got));
	xmem_release(got);
	WORKED(xmem_offer(b, 2, 0));
	got = xmem_get(writer, token);
	second = xmem_clone(got);
	CHECK(took_one(got) && !took_one(second) && !took_one(b));
	xmem_release(second);
	xmem_release(got);
	got = xmem_get(writer, slot);
	CHECK(took_one(got));
	SAME(xmem_get_mut(got), -EBUSY);
	CHECK(took_one(got));
	SAME(xmem_claims(writer, slot), 0);
	WORKED(xmem_forget(got));
	SAME(xmem_claims(writer, slot), 1);
	got = xmem_get(writer, slot);
	xmem_release(b);
	WORKED(xmem_get_mut(got));
	CHECK(!took_one(got));
	xmem_release(got);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(API_claims_without_a_handle_or_a_pool)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = counted(writer, 1, 1, 0);

	SAME(xmem_set_ref_count(NULL, 1, 0), -EINVAL);
	SAME(xmem_offer(NULL, 1, 0), -EINVAL);
	SAME(xmem_forget(NULL), -EINVAL);
	SAME(xmem_add_ref(NULL, 1), -EINVAL);
	SAME(xmem_drop_ref(NULL, 1), -EINVAL);
	SAME(xmem_void_claims(NULL, 1), -EINVAL);
	SAME(xmem_claims(NULL, 1), -EINVAL);
	xmem_release(b);
	SAME(xmem_set_ref_count(b, 1, 0), -EBADF);
	SAME(xmem_offer(b, 1, 0), -EBADF);
	SAME(xmem_forget(b), -EBADF);
	xmem_pool_close(writer);
}

/* ---- costs ---- */

static struct xmem_backend counting;
static const struct xmem_backend *counted_host;
static unsigned int asked;

/* Taking claims needs no request to the daemon: the library takes them itself. */
static int count_request(struct xmem_link *link, unsigned int request, void *argument)
{
	const struct xmem_claim_request *claim = argument;

	asked += on_kernel() || request != XMEM_IOC_CLAIM || claim->op != XMEM_CLAIM_TAKE;
	return counted_host->request(link, request, argument);
}

static void count_requests(struct xmem_pool *pool)
{
	counted_host = pool->link.backend;
	counting = *counted_host;
	counting.request = count_request;
	pool->link.backend = &counting;
}

TEST(API_claims_ask_the_host_once_a_hand_over_and_others_not_at_all)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b, *forgotten = publish_and_get(writer, reader, 1);
	unsigned int i;

	count_requests(writer);
	count_requests(reader);
	WORKED(xmem_offer(forgotten, 1, 0));	/* other buffers have claims all the time */
	asked = 0;
	for (i = 0; i < 10; i++)
		xmem_release(publish_and_get(writer, reader, i));
	SAME(asked, 0);
	for (i = 0; i < 10; i++) {
		uint64_t token = hand_over(writer, i, 1, 0);

		SAME(asked, 1);
		b = xmem_get(reader, token);
		CHECK(b);
		SAME(asked, on_kernel() ? 2 : 1);
		xmem_release(b);
		SAME(asked, on_kernel() ? 2 : 1);
		asked = 0;
	}
	WORKED(xmem_drop_ref(reader, xmem_token(forgotten)));
	xmem_release(forgotten);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_how_many_references_are_set_aside_is_known_without_asking)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 1);
	uint64_t plain = xmem_token(b), token = hand_over(writer, 2, 65535, 0);

	count_requests(writer);
	count_requests(reader);
	asked = 0;
	SAME(xmem_claims(reader, plain), 0);
	SAME(xmem_claims(reader, token), 65535);
	SAME(xmem_claims(writer, token), 65535);
	SAME(asked, 0);
	xmem_release(b);
	b = xmem_get(reader, token);
	CHECK(b);
	SAME(xmem_claims(reader, token), 65534);
	WORKED(xmem_set_ref_count(b, 2, 0));
	SAME(xmem_claims(writer, token), 1);
	asked = 0;
	SAME(xmem_claims(reader, token), 1);
	SAME(xmem_claims(reader, plain), 0);	/* no client holds it, and it still exists */
	SAME(asked, 0);
	WORKED(xmem_drop_ref(reader, token));
	xmem_release(b);
	/* Every buffer is overwritten, and the new contents have no claims. */
	for (b = NULL; xmem_claims(writer, plain) != -ESTALE; b = NULL) {
		b = xmem_acquire(writer, BYTES, 0);
		CHECK(b);
		WORKED(xmem_publish(b, NULL, NULL));
	}
	SAME(xmem_peek_last_error(NULL), -ESTALE);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

static void ask_in_a_child(void *argument)
{
	SAME(xmem_claims(argument, 1), -ECHILD);
}

TEST(API_claims_of_a_pool_that_a_child_has_inherited)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);

	finish_child(spawn(ask_in_a_child, writer));
	xmem_pool_close(writer);
}

// SPDX-License-Identifier: MIT
/*
 * Where the ways of handing over meet: files of others, what is written in place, forwarding,
 * sending, retracting and claims, each with the others.
 */
#include "crossings.h"

/* ---- claims ---- */

TEST(P1_contents_with_claims_are_not_written_in_place)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = received(&x, 1), *got;
	uint64_t token = xmem_token(b);

	WORKED(xmem_add_ref(x.sink, token));
	SAME(xmem_get_mut(b), -EBUSY);
	got = xmem_get(x.sink, token);
	CHECK(got);
	SAME(stamp_of(got), 1);
	SAME(xmem_get_mut(b), -EBUSY);
	xmem_release(b);
	/* Who got it with the last claim has it alone. */
	WORKED(xmem_get_mut(got));
	xmem_release(got);
	crossing_end(&x);
}

/* ---- by count ---- */

/* Nobody gets these contents but by @token: two do, and then the buffer is free. */
static void take_both(struct crossing *x, uint64_t token, uint64_t stamp)
{
	struct xmem_buffer *a, *b;

	SAME(claims_of(x->sink, token), 2);
	a = xmem_get(x->sink, token);
	CHECK(a);
	SAME(stamp_of(a), stamp);
	b = xmem_get_slot(x->owner, token & 0xffff);
	CHECK(b);
	SAME(claims_of(x->sink, token), 0);
	xmem_release(a);
	SAME(stamp_of(b), stamp);
	xmem_release(b);
}

TEST(P1_an_attached_file_is_handed_over_by_count)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = attached(x.owner, 5);
	uint64_t token;

	SAME(xmem_offer(b, 1), -EPERM);
	SAME(xmem_forget(b), -EPERM);
	WORKED(xmem_set_ref_count(b, 2, 0));
	token = xmem_token(b);
	CHECK(token);
	SAME(stamp_of(b), 5);
	SAME(xmem_publisher(b), xmem_pool_client(x.owner));
	WORKED(xmem_forget(b));
	SAME(stat_of(x.owner).payloads, 2);
	take_both(&x, token, 5);
	EVENTUALLY(stat_of(x.owner).payloads == 1);
	crossing_end(&x);
}

TEST(P1_what_is_written_in_place_is_handed_over_by_count)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = upgraded(&x, 1);
	uint64_t token;

	SAME(xmem_offer(b, 1), -EPERM);
	SAME(xmem_forget(b), -EPERM);
	fill(b, 2);
	WORKED(xmem_set_ref_count(b, 2, 0));
	token = xmem_token(b);
	CHECK(token);
	SAME(stamp_of(b), 2);
	REFUSED(xmem_data_mut(b), EPERM);
	REFUSED(xmem_receive(x.second, 0), EAGAIN);	/* it is published to nobody */
	SAME(xmem_publisher(b), xmem_pool_client(x.stage));
	WORKED(xmem_forget(b));
	take_both(&x, token, 2);
	crossing_end(&x);
}

/* What is given up has no claims, whoever set them aside. */
TEST(P4_claims_end_with_what_is_written_in_place)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = upgraded(&x, 1);
	uint64_t token;

	WORKED(xmem_set_ref_count(b, 3, 0));
	token = xmem_token(b);
	WORKED(xmem_void_claims(x.stage, token));
	WORKED(xmem_get_mut(b));
	xmem_release(b);
	SAME(stat_of(x.owner).claims, 0);
	crossing_end(&x);
}

/* ---- to one subscriber ---- */

/* @b, whose contents are @stamp, is for the sink alone; the owner follows the stage too. */
static void send_to_sink(struct crossing *x, struct xmem_pool *from, struct xmem_buffer *b,
			 uint64_t stamp, bool keep)
{
	struct xmem_publish_options o = {
		.size = sizeof(o), .flags = keep ? XMEM_PUBLISH_KEEP : 0, .timestamp_ns = 9,
	};
	struct xmem_subscription *other = follow(x->stage == from ? x->owner : x->stage,
						 xmem_pool_client(from), 0);
	struct xmem_subscription *to = from == x->stage ? x->second :
				       follow(x->sink, xmem_pool_client(from), 0);
	uint64_t token = 0;
	struct xmem_buffer *got;

	WORKED(xmem_send(b, xmem_pool_client(x->sink), &o, 0, &token));
	if (keep) {
		SAME(xmem_token(b), token);
		SAME(stamp_of(b), stamp);
		xmem_release(b);
	} else {
		REFUSED(xmem_data(b), EBADF);
	}
	REFUSED(xmem_receive(other, 0), EAGAIN);
	got = receive_one(to);
	SAME(stamp_of(got), stamp);
	SAME(xmem_token(got), token);
	SAME(xmem_timestamp_ns(got), 9);
	SAME(xmem_publisher(got), xmem_pool_client(from));
	xmem_release(got);
	SAME(xmem_subscription_lost(other), 0);
	xmem_unsubscribe(other);
	if (to != x->second)
		xmem_unsubscribe(to);
}

TEST(P1_what_is_written_in_place_is_sent_to_one)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b;
	unsigned int keep;

	for (keep = 0; keep < 2; keep++) {
		b = upgraded(&x, 1);
		SAME(xmem_send(b, xmem_pool_client(x.owner), NULL, 0, NULL), -ENOENT);
		fill(b, 2);
		send_to_sink(&x, x.stage, b, 2, keep);
	}
	crossing_end(&x);
}

TEST(P1_an_attached_file_is_sent_to_one)
{
	struct crossing x = crossing_start();
	unsigned int keep;

	xmem_unsubscribe(x.first);
	for (keep = 0; keep < 2; keep++)
		send_to_sink(&x, x.owner, attached(x.owner, 3), 3, keep);
	x.first = follow(x.stage, xmem_pool_client(x.owner), 0);
	crossing_end(&x);
}

/* The reference of the handle goes with it. */
TEST(P1_forwarding_drops_the_reference_of_the_handle)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = received(&x, 1), *got;
	uint64_t token = xmem_token(b);

	WORKED(xmem_set_ref_count(b, 2, 0));
	WORKED(xmem_forward(b, NULL, 0, NULL));
	SAME(claims_of(x.sink, token), 1);
	xmem_release(receive_one(x.second));
	SAME(claims_of(x.sink, token), 1);
	got = xmem_get(x.sink, token);
	CHECK(got);
	xmem_release(got);
	b = received(&x, 2);
	WORKED(xmem_set_ref_count(b, 1, 0));
	WORKED(xmem_send(b, xmem_pool_client(x.sink), NULL, 0, NULL));
	xmem_release(receive_one(x.second));
	crossing_end(&x);
}

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

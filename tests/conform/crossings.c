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

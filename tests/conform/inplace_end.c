// SPDX-License-Identifier: MIT
/* How writing in place ends without being published: what order its steps have. */
#include "core/step.h"
#include "harness.h"

#define BYTES	4096

static struct {
	struct xmem_pool *owner, *stage;
	bool looked;
} thrown;

static void nobody_gets_it_yet(int step)
{
	no_step();
	thrown.looked = true;
	host_has_served(thrown.stage);
	REFUSED(xmem_acquire(thrown.owner, 0, 0), EAGAIN);
}

/* Else the buffer's next contents seem to have one holder more, and get_mut of them is EBUSY. */
TEST(P1_contents_written_in_place_are_thrown_away_after_their_hold)
{
	struct xmem_preallocate_options shared = {
		.size = sizeof(shared), .flags = XMEM_MEMORY_SHARED, .count = 1, .bytes = BYTES,
	};
	const char *name = new_name();
	struct xmem_buffer *b;

	steps_only();
	thrown.owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate_with(thrown.owner, &shared));
	thrown.stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	b = publish_and_get(thrown.owner, thrown.stage, 1);
	WORKED(xmem_get_mut(b));
	at_step(XM_STEP_PUT_BEFORE, 0, STEP_CALL, nobody_gets_it_yet);
	xmem_release(b);
	no_step();
	CHECK(thrown.looked);
	b = xmem_acquire(thrown.owner, 0, 10 * SECOND);
	CHECK(b);
	xmem_release(b);
	xmem_pool_close(thrown.stage);
	check_quiet(thrown.owner, 1);
	xmem_pool_close(thrown.owner);
}

// SPDX-License-Identifier: MIT
/*
 * Contents that were written in place are handed over by count: their claims exist before they are
 * LIVE. A client that ends in between leaves neither claims nor a buffer in use.
 */
#include <pthread.h>

#include "core/step.h"
#include "harness.h"

#define BYTES	4096
#define LONG	(60 * SECOND)		/* longer than any wait here */

static struct xmem_pool *open_sharing(const char *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	return pool;
}

/* The owner's only buffer is free, and has no claims. */
static void all_is_back(struct xmem_pool *owner)
{
	struct xmem_buffer *b = xmem_acquire(owner, 0, patience_ns());

	CHECK(b);
	xmem_release(b);
	SAME(stat_of(owner).claims, 0);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

/* ---- the client is killed ---- */

static const char *name_of_pool;

static void count_and_die(void *argument)
{
	struct xmem_pool *pool = OPEN(name_of_pool, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b = xmem_get(pool, hear_parent());

	CHECK(b);
	tell_parent(1);
	hear_parent();
	WORKED(xmem_get_mut(b));
	fill(b, 2);
	at_step(XM_STEP_UPGRADE_FILLED, 0, STEP_KILL, NULL);
	xmem_set_ref_count(b, 3, LONG);
}

TEST(P2_killed_between_claims_and_the_contents_written_in_place)
{
	struct xmem_pool *owner;
	struct xmem_buffer *kept;
	struct child *child;

	steps_only();
	name_of_pool = new_name();
	owner = open_sharing(name_of_pool);
	child = spawn(count_and_die, NULL);
	tell(child, publish_kept(owner, 1, &kept));
	hear(child);
	xmem_release(kept);
	tell(child, 1);
	died_of_kill(child);
	all_is_back(owner);
}

/* ---- its thread is cancelled ---- */

static bool was_cancelled;

static void cancel_this_thread(int step)
{
	no_step();
	was_cancelled = true;
	CHECK(!pthread_cancel(pthread_self()));
}

static void *count_and_end(void *argument)
{
	at_step(XM_STEP_UPGRADE_FILLED, 0, STEP_CALL, cancel_this_thread);
	WORKED(xmem_set_ref_count(argument, 2, LONG));
	pthread_testcancel();
	return NULL;
}

/* The call is complete: another thread continues with its handle. */
TEST(P9_cancelled_between_claims_and_the_contents_written_in_place)
{
	struct xmem_pool *owner, *stage;
	struct xmem_buffer *b, *other;
	pthread_t thread;
	void *end;

	steps_only();
	name_of_pool = new_name();
	owner = open_sharing(name_of_pool);
	stage = OPEN(name_of_pool, .flags = XMEM_OPEN_WRITER);
	b = publish_and_get(owner, stage, 1);
	WORKED(xmem_get_mut(b));
	fill(b, 2);
	CHECK(!pthread_create(&thread, NULL, count_and_end, b));
	CHECK(!pthread_join(thread, &end));
	CHECK(was_cancelled && end == PTHREAD_CANCELED);
	CHECK((other = xmem_get(owner, xmem_token(b))));
	SAME(stamp_of(other), 2);
	xmem_release(b);
	REFUSED(xmem_acquire(owner, 0, 0), EAGAIN);
	xmem_release(other);
	xmem_pool_close(stage);
	all_is_back(owner);
}

/* ---- the writing is taken back ---- */

static int ask(struct raw *raw, uint32_t flags, uint32_t slot, uint64_t generation)
{
	struct xmem_upgrade_request request = {
		.size = XMEM_UPGRADE_MIN, .flags = flags, .slot = slot, .generation = generation,
	};

	return raw_request(raw, XMEM_IOC_UPGRADE, &request);
}

/* Whatever ends it, the claims were for contents that never came to be. */
static void taken_back(uint32_t how)
{
	const char *name = new_name();
	struct xmem_pool *owner = open_sharing(name);
	struct xmem_claim_request claim = {
		.size = sizeof(claim), .op = XMEM_CLAIM_ADD, .count = 3, .timeout_ns = LONG,
	};
	struct xmem_buffer *kept;
	uint64_t token;
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	token = publish_kept(owner, 1, &kept);
	raw_hold(&raw, token);
	xmem_release(kept);
	claim.slot = token & 0xffff;
	claim.generation = (token >> 16) + 1;
	SAME(ask(&raw, 0, claim.slot, token >> 16), 0);
	SAME(raw_request(&raw, XMEM_IOC_CLAIM, &claim), 0);
	SAME(stat_of(owner).claims, 3);
	SAME(ask(&raw, how, claim.slot, claim.generation), 0);
	SAME(stat_of(owner).claims, 0);
	if (how == XMEM_UPGRADE_CANCEL) {	/* the contents before are there as they were */
		CHECK((kept = xmem_get(owner, token)));
		SAME(stamp_of(kept), 1);
		xmem_release(kept);
	} else {
		REFUSED(xmem_get(owner, token), ESTALE);
	}
	raw_close(&raw);
	all_is_back(owner);
}

TEST(P3_writing_in_place_is_taken_back_with_its_claims)
{
	taken_back(XMEM_UPGRADE_CANCEL);
	taken_back(XMEM_UPGRADE_GIVE_UP);
}

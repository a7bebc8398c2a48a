// SPDX-License-Identifier: MIT
/*
 * Claims that owners set aside without end. In the daemon's pools an owner does so by itself, once
 * for each contents (I10). On both hosts the claims stay until they are taken, whatever claims
 * there were before.
 */
#include "claims.h"
#include "lib/host/exchange.h"
#include "lib/private.h"

#define ROUNDS	20

/* Publish, set one claim aside without end, and release: the token. */
static uint64_t offer_stamp(struct xmem_pool *pool, uint64_t stamp)
{
	struct xmem_buffer *b;
	uint64_t token = publish_kept(pool, stamp, &b);

	WORKED(xmem_offer(b, 1, XMEM_FOREVER));
	SAME(claims_of(pool, token), 1);
	xmem_release(b);
	return token;
}

static void take(struct xmem_pool *pool, uint64_t token, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_get(pool, token);

	CHECK(b);
	SAME(stamp_of(b), stamp);
	SAME(claims_of(pool, token), 0);
	xmem_release(b);
}

/*
 * The last number of this handle's messages. The exchange comes first in the part that the link
 * keeps.
 */
static uint64_t last_number(struct xmem_pool *pool)
{
	return ((struct xl_exchange *)pool->link.private)->number;
}

TEST(P1_contents_offered_without_end_one_after_the_other)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	uint64_t asked = 0;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t token = offer_stamp(writer, i);

		CHECK(!is_free(writer));
		take(reader, token, i);
		CHECK(is_free(writer));
		if (on_kernel())
			continue;
		/* It asks the first time only. */
		if (!i)
			asked = last_number(writer);
		SAME(last_number(writer), asked);
	}
	SAME(stat_of(writer).claims, 0);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/*
 * The time of claims of earlier contents, or of earlier claims of these contents, does not end
 * later claims. A second buffer shows that the time has passed: its claims have an equal time and
 * begin later.
 */
TEST(P1_what_is_offered_without_end_outlasts_the_time_of_earlier_claims)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b, *clock;
	uint64_t token, ticks;

	take(reader, offer_stamp(writer, 1), 1);	/* now the host knows of owners */
	token = publish_kept(writer, 2, &b);
	WORKED(xmem_offer(b, 1, 100 * MS));
	take(reader, token, 2);
	WORKED(xmem_offer(b, 1, XMEM_FOREVER));
	ticks = publish_kept(writer, 3, &clock);
	WORKED(xmem_offer(clock, 1, 100 * MS));
	EVENTUALLY(claims_of(writer, ticks) == 0);
	SAME(claims_of(writer, token), 1);
	xmem_release(b);
	xmem_release(clock);
	take(reader, token, 2);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- owners that die ---- */

static void offer_and_die(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 1, BYTES);
	uint64_t token = offer_stamp(pool, 5);

	tell_parent(token);
	hear_parent();			/* it has been taken */
	at_step(XM_STEP_CLAIM_ALONE, 0, STEP_KILL, NULL);
	offer_stamp(pool, 6);
}

/* The owner told the host nothing. But no claim is lost before its time, and none is left then. */
TEST(P3_an_owner_killed_when_it_has_set_aside_by_itself)
{
	const char *name;
	struct xmem_pool *reader;
	struct xmem_buffer *b;
	struct child *child;

	daemon_only("the module's clients ask it");
	steps_only();
	name = new_name();
	reader = open_reader(name);
	child = spawn(offer_and_die, (void *)name);
	take(reader, hear(child), 5);
	tell(child, 1);
	died_of_kill(child);
	EVENTUALLY(stat_of(reader).clients == 1);
	SAME(stat_of(reader).claims, 1);
	b = xmem_get(reader, XMEM_SLOT(0));
	CHECK(b);
	SAME(stamp_of(b), 6);
	xmem_release(b);
	SAME(stat_of(reader).claims, 0);
	EVENTUALLY(stat_of(reader).attached == 0);
	check_quiet(reader, 1);
	xmem_pool_close(reader);
}

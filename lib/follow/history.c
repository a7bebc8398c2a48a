// SPDX-License-Identifier: MIT
/*
 * The history of a subscription: publications from before it began, and which of a ring's
 * publications it takes next.
 *
 * The history of a ring is found when the ring is followed, and is received before all other
 * publications of that ring (core/history.h). While some of it is left, the ring counts in `pasts`,
 * receive does not take its fast path, and a word in the client's area tells hosts that the
 * descriptors are readable. The host reads that word only for a ring that the client follows. The
 * word is set before the host is asked to follow the ring, so no wake-up is needed: after that
 * request the host looks at all descriptors.
 */
#include <string.h>

#include "lib/base/handle.h"
#include "lib/follow/subscription.h"
#include "lib/hold/token.h"
#include "lib/host/request.h"

static u64 *history_word(const struct xmem_pool *pool, u32 publisher)
{
	return &((struct xmem_cursor *)xm_cursor(&pool->map, pool->me, publisher))->history;
}

/*
 * Record the writers that exist, and the greatest incarnation. The host counts incarnations, so
 * each later client has a greater one.
 */
static void record_writers(struct xmem_subscription *subscription)
{
	const struct xm_map *map = &subscription->pool->map;
	u64 incarnation;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		if (xm_load(&row->role) == XMEM_ROLE_WRITER)
			subscription->writers[c / 64] |= 1ULL << c % 64;
		incarnation = xm_load_acquire(&row->incarnation);
		if (incarnation > subscription->since)
			subscription->since = incarnation;
	}
}

void xl_past_init(struct xmem_subscription *subscription,
		  const struct xmem_subscribe_options *options)
{
	subscription->history = options->history;
	subscription->depth = options->depth;
	subscription->since = 0;
	memset(subscription->writers, 0, sizeof(subscription->writers));
	if (options->history || subscription->lasts)
		record_writers(subscription);
}

/*
 * The number of earlier publications that are wanted of a ring. If a client became a writer after
 * the subscriber asked, all its publications count as new. So processes that all subscribe first
 * and publish then lose nothing, in whatever order they run.
 */
static u32 wanted_past(const struct xmem_subscription *subscription, u32 publisher,
		       u64 incarnation)
{
	bool is_new = incarnation > subscription->since ||
		      !xm_bit(subscription->writers, publisher);

	if (is_new && (subscription->history || subscription->lasts))
		return subscription->pool->map.ring_mask + 1;
	return subscription->history;
}

void xl_past_request(const struct xmem_subscription *subscription, u32 publisher, u64 incarnation)
{
	xm_store(history_word(subscription->pool, publisher),
		 wanted_past(subscription, publisher, incarnation) != 0);
}

void xl_past_find(const struct xmem_subscription *subscription, struct xl_ring *ring)
{
	struct xmem_pool *pool = subscription->pool;
	u32 wanted = wanted_past(subscription, ring->follow.publisher, ring->follow.incarnation);

	if (!wanted)
		return;
	ring->past = xm_past_begin(&pool->map, pool->me, &ring->follow, wanted);
	if (!xl_has_past(ring))
		xm_store(history_word(pool, ring->follow.publisher), 0);
}

void xl_past_end(struct xmem_subscription *subscription, struct xl_ring *ring)
{
	ring->past = (struct xm_past){ 0, 0 };
	subscription->pasts--;
	/* Otherwise the word belongs to a later ring, whose publisher has this id. */
	if (!ring->told)
		xm_store(history_word(subscription->pool, ring->follow.publisher), 0);
}

/*
 * Hold the next publication of the history. -ENOENT: none is left. If the owner is scanning the
 * slot, this waits for the result as get does. If the owner scans it without end, the contents
 * count as gone.
 */
static int hold_past(struct xmem_subscription *subscription, struct xl_ring *ring,
		     struct xm_publication *what, struct xm_pending *pending)
{
	struct xmem_pool *pool = subscription->pool;
	int err = xm_past_hold(&pool->map, pool->me, &ring->words, &ring->follow, &ring->past,
			       what, pending);

	if (err == -EAGAIN)
		err = xl_hold_resolve(pool, what->token, err);
	if (err != -ESTALE && err != -EAGAIN)
		return err;
	ring->past.place++;
	return -EBUSY;
}

/* The subscription wants only the latest publications of a ring: pass the older ones. */
static void pass_older(struct xmem_subscription *subscription, struct xl_ring *ring)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_pending pending = { XM_NOTHING, 0 };

	xm_receive_latest(&pool->map, pool->me, &ring->follow, &ring->past, subscription->depth,
			  &pending);
	xl_do(pool, pending);
}

int xl_hold_next(struct xmem_subscription *subscription, struct xl_ring *ring,
		 struct xm_publication *what, struct xm_pending *pending)
{
	struct xmem_pool *pool = subscription->pool;
	int err;

	if (unlikely(subscription->depth))
		pass_older(subscription, ring);
	if (unlikely(xl_has_past(ring))) {
		err = hold_past(subscription, ring, what, pending);
		if (err != -ENOENT)
			return err;
		xl_past_end(subscription, ring);
	}
	return xm_receive_hold(&pool->map, pool->me, &ring->words, &ring->follow, what, pending);
}

void xl_pass_next(struct xmem_subscription *subscription, struct xl_ring *ring,
		  struct xm_pending *pending)
{
	struct xmem_pool *pool = subscription->pool;

	if (likely(!xl_has_past(ring)))
		xm_receive_pass(&pool->map, pool->me, &ring->words, &ring->follow, pending);
	else if (++ring->past.place == ring->past.end)
		xl_past_end(subscription, ring);
}

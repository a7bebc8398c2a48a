// SPDX-License-Identifier: MIT
/*
 * The history of a subscription: what was published before it began, and which of a ring's
 * publications it takes next.
 *
 * The history of a ring is found when the ring is followed, and received before all else of
 * that ring (core/history.h). As long as some is left, the ring counts in `pasts`, receive does
 * not go its fast path, and a word in the client's area says to hosts that the descriptors are
 * readable. The host looks at it only for a ring that the client follows. It is set before the
 * host is asked to follow the ring: so nobody has to be woken for it, because the host looks at
 * all descriptors after that request.
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
 * The writers that are there, and the greatest incarnation: the host counts them, so every client
 * that joins later has more.
 */
static void note_writers(struct xmem_subscription *subscription)
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
		note_writers(subscription);
}

/*
 * All that a writer has published counts as new if it has become a writer after the subscriber
 * asked. Processes that all subscribe first and publish then lose nothing by that, in whatever
 * order they do it.
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

void xl_past_ask(const struct xmem_subscription *subscription, u32 publisher, u64 incarnation)
{
	xm_store(history_word(subscription->pool, publisher),
		 wanted_past(subscription, publisher, incarnation) != 0);
}

void xl_past_begin(const struct xmem_subscription *subscription, struct xl_ring *ring)
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
	/* Else the word is that of a later ring, whose publisher has the same id. */
	if (!ring->told)
		xm_store(history_word(subscription->pool, ring->follow.publisher), 0);
}

/*
 * -ENOENT: nothing is left. A scan that keeps the contents in doubt is waited for, as in get;
 * what its owner scans without end is as good as gone.
 */
static int hold_past(struct xmem_subscription *subscription, struct xl_ring *ring,
		     struct xm_publication *what, struct xm_pending *pending)
{
	struct xmem_pool *pool = subscription->pool;
	int err = xm_past_hold(&pool->map, pool->me, &ring->words, &ring->follow, &ring->past,
			       what, pending);

	if (err == -EAGAIN)
		err = xl_hold_resolved(pool, what->token, err);
	if (err != -ESTALE && err != -EAGAIN)
		return err;
	ring->past.place++;
	return -EBUSY;
}

/* It wants only the latest of a ring: pass the others. */
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

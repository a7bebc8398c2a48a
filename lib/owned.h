/* SPDX-License-Identifier: MIT */
/*
 * The slots that this client owns stand in lists by what it knows of them:
 *
 *   FREE -> out -> LIVE -> READY -> out ...      all goes well
 *                  LIVE -> BUSY -> READY         somebody still had it: limbo
 *
 * A slot that is out is in no list: a handle has it. One scan is done right after
 * publishing, ahead of need. All of this is under owned.lock, or where xl_handles_free
 * says that nobody else is there.
 */
#ifndef XMEM_OWNED_H
#define XMEM_OWNED_H

#include "request.h"

#define XL_MAX_BATCH	16

static inline void xl_queue_add(struct xl_queue *queue, struct xl_owned_slot *one)
{
	one->next = NULL;
	*queue->last = one;
	queue->last = &one->next;
}

/* Take out what *link points to; @link is queue->first or the one before's next. */
static inline struct xl_owned_slot *xl_queue_take(struct xl_queue *queue,
						  struct xl_owned_slot **link)
{
	struct xl_owned_slot *one = *link;

	*link = one->next;
	if (unlikely(!one->next))
		queue->last = link;
	return one;
}

/* The link to the oldest that is large enough; it points to NULL if there is none. */
static inline struct xl_owned_slot **xl_queue_find(struct xl_queue *queue, u64 bytes)
{
	struct xl_owned_slot **link;

	for (link = &queue->first; *link; link = &(*link)->next)
		if (likely((*link)->bytes >= bytes))
			break;
	return link;
}

/*
 * Something may be free now for another thread of ours. That armed its word and
 * looked in vain under owned.lock, which we have had since: so we see it (I5).
 */
static inline void xl_owned_wake(struct xmem_pool *pool)
{
	if (unlikely(xm_load(&xm_client_row(&pool->map, pool->me)->slots_waiters) &
		     XMEM_WAITERS_ARMED))
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
}

/* Each unseen entry keeps a slot: where there are no more slots than entries, those run out first.
 */
static inline bool xl_ring_is_ample(const struct xmem_pool *pool)
{
	return pool->owned.slots <= pool->map.ring_mask + 1;
}

static inline bool xl_generations_left(const struct xmem_pool *pool, u32 slot)
{
	return likely(xm_in_tenancy(xm_generation(xm_load(&xm_slot(&pool->map, slot)->state)),
				    xm_load(&xm_slot_row(&pool->map, slot)->generation_first)));
}

/* May this client write? 0, or an error, noted. */
int xl_check_writer(struct xmem_pool *pool, const char *what);

int xl_owned_init(struct xmem_pool *pool, u64 wait_bound_ns);
void xl_owned_give_up(struct xmem_pool *pool, u32 slot);

/* collect.c */
u64 xl_scan_batch(struct xmem_pool *pool, u32 list, struct xl_owned_slot ***link, u64 bytes,
		  bool evict);
bool xl_collect(struct xmem_pool *pool, u64 bytes);

/* demote.c */
void xl_forgive_demoted(struct xmem_pool *pool);
void xl_demote(struct xmem_pool *pool);
u64 xl_demote_at(struct xmem_pool *pool);
bool xl_any_demoted(const struct xl_owned *owned);
bool xl_ring_is_full(struct xmem_pool *pool);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The slots that this client owns stand in lists by what it knows of them:
 *
 *   FREE -> out -> LIVE -> READY -> out ...      nobody held it when it was scanned
 *                  LIVE -> BUSY -> READY         a client held it at the first scan
 *
 * A slot that is out is in no list, because a handle has it. One scan is done right after
 * publishing, before a buffer is needed. The lists change only under owned.lock, or if
 * xl_handles_free() says that there is no other thread.
 */
#ifndef XMEM_OWNED_H
#define XMEM_OWNED_H

#include "core/policy.h"
#include "request.h"

#define XL_MAX_BATCH	16

static inline void xl_queue_add(struct xl_queue *queue, struct xl_owned_slot *one)
{
	one->next = NULL;
	*queue->last = one;
	queue->last = &one->next;
}

/* Take out what *link points to. @link is queue->first, or `next` of the slot before it. */
static inline struct xl_owned_slot *xl_queue_take(struct xl_queue *queue,
						  struct xl_owned_slot **link)
{
	struct xl_owned_slot *one = *link;

	*link = one->next;
	if (unlikely(!one->next))
		queue->last = link;
	return one;
}

/* Find the link to the oldest slot that is large enough; *link is NULL if there is none. */
static inline struct xl_owned_slot **xl_queue_find(struct xl_queue *queue, u64 bytes)
{
	struct xl_owned_slot **link;

	for (link = &queue->first; *link; link = &(*link)->next)
		if (likely((*link)->bytes >= bytes))
			break;
	return link;
}

/*
 * Wake a thread of this process that waits for a slot. It armed the word and then looked
 * in vain under owned.lock, which this thread has taken since: so the word is seen (I5).
 */
static inline void xl_owned_wake(struct xmem_pool *pool)
{
	if (unlikely(xm_load(&xm_client_row(&pool->map, pool->me)->slots_waiters) &
		     XMEM_WAITERS_ARMED))
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
}

/*
 * Are there no more slots than ring entries? Then slots run out before the ring is full,
 * because each entry that has not been received keeps its slot.
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

/* May this client write? Returns 0, or an error, noted. */
int xl_check_writer(struct xmem_pool *pool, const char *what);

int xl_owned_init(struct xmem_pool *pool, u64 wait_bound_ns);
void xl_owned_give_up(struct xmem_pool *pool, u32 slot);

/* collect.c */
u64 xl_scan_batch(struct xmem_pool *pool, u32 list, struct xl_owned_slot ***link, u64 bytes,
		  bool evict);
bool xl_collect(struct xmem_pool *pool, u64 bytes);

/* demote.c */
void xl_demote(struct xmem_pool *pool);
u64 xl_demote_at(struct xmem_pool *pool);
bool xl_ring_is_full(struct xmem_pool *pool);

#endif

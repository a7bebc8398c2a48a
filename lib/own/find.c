// SPDX-License-Identifier: MIT
/*
 * Finding a slot to write into: a READY one, by collecting, by making one, or by eviction. Waiting
 * for one is in acquire.c.
 */
#include <string.h>

#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/find.h"
#include "lib/own/owned.h"

/*
 * Get a new range of generations, because this tenancy's are used up after 2^23 publications. If
 * such a request is given up, the host may still serve it, and change the word of a slot that is
 * being written. So the host is asked again, and its answer says that it has served the earlier
 * request too. Other threads wait for owned.lock meanwhile, so the host is only asked briefly.
 * -EINPROGRESS: it has not answered.
 */
static XL_COLD int renew(struct xmem_pool *pool, struct xl_owned_slot *slot, u64 answer_by)
{
	struct xmem_slot_request request = {
		.size = sizeof(request), .op = XMEM_OP_RENEW, .slot = slot->own.slot,
	};
	int err;

	if (xl_is_put_off(pool))
		return -EINPROGRESS;	/* `renewing` stays as it is */
	err = xl_request_briefly(pool, XMEM_IOC_SLOT, &request, answer_by);
	pool->owned.renewals -= slot->renewing;
	slot->renewing = err == -EINTR || err == -ETIMEDOUT;
	pool->owned.renewals += slot->renewing;
	xl_reset_room(&pool->owned);
	return err == -ETIMEDOUT ? -EINPROGRESS : err;
}

/*
 * Does an acquire of want->bytes look for slots as an acquire of @as bytes does? With buffers on
 * demand only if both are equal: a smaller buffer may still be made where a larger one may not.
 */
static bool is_of_size(const struct xl_owned *owned, const struct xl_want *want, u64 as)
{
	if (xl_wants_demand(want))
		return want->bytes == as;
	return xl_size_in(want->chain, want->bytes) == xl_size_in(want->chain, as);
}

bool xl_still_none(const struct xmem_pool *pool, const struct xl_want *want)
{
	const struct xl_owned *owned = &pool->owned;
	u64 vain = xm_load(&owned->words.ring->vain);

	return vain && owned->none_chain == want->chain &&
	       is_of_size(owned, want, owned->none_bytes) &&
	       xm_still_armed(&owned->words.row->slots_waiters, vain);
}

#define ANY_SIZE	(~0ULL)		/* that is large enough */

/*
 * Make a slot READY, and return its size: the smallest that is large enough, and at most @most.
 * Publications are evicted only if there is no other slot, and only with @most == ANY_SIZE.
 */
static struct xl_size *find_slot(struct xmem_pool *pool, const struct xl_want *want, u64 most)
{
	struct xl_size *size, *first = xl_size_in(want->chain, want->bytes);
	struct xm_waited waited;

	for (size = first; size && size->bytes <= most; size = size->larger) {
		if (!xl_has_ready(size) && size->free.first) {
			xm_take(&pool->map, size->free.first->own.slot);
			xl_ready_add(size, xl_queue_take(&size->free, &size->free.first));
		}
		if (xl_has_ready(size) || xl_collect_passed(pool, size) ||
		    xl_collect_busy(pool, size))
			return size;
	}
	if (most != ANY_SIZE)
		return NULL;
	xm_read_waited(&pool->map, pool->me, &waited);
	/* On demand, eviction frees small buffers for large ones too, so the bound is kept. */
	if (!xl_wants_demand(want))
		pool->owned.lent_bound = ~0ULL;
	for (size = first; size; size = size->larger)
		if (xl_evict(pool, size, &waited))
			return size;
	return NULL;
}

/*
 * Find a slot to write into: with 0, it is the next READY slot of *ret. Returns -EAGAIN if there is
 * none, -EINPROGRESS as renew(), or another error, noted. Under owned->lock.
 */
static int take_slot(struct xmem_pool *pool, const struct xl_want *want, u64 most,
		     struct xl_size **ret)
{
	struct xl_owned_slot *one;
	int err;

	if (xl_still_none(pool, want) || xl_ring_is_full(pool))
		return -EAGAIN;
	*ret = find_slot(pool, want, most);
	if (!*ret)
		return -EAGAIN;
	one = xl_ready(*ret);
	if (likely(!xl_is_spent(one) && !one->renewing))
		return 0;
	err = renew(pool, one, want->answer_by);
	if (err == -EINPROGRESS)
		return err;
	return err ? xl_fail(-err, "new generations for slot %u: %s", one->own.slot,
			     strerror(-err)) : 0;
}

u64 xl_retry_at(const struct xmem_pool *pool)
{
	u64 demote = xl_demote_at(pool), recall = xl_recall_at(pool);

	return demote < recall ? demote : recall;
}

static bool has_any(const struct xl_want *want)
{
	const struct xl_size *size;

	for (size = xl_size_in(want->chain, want->bytes); size; size = size->larger)
		if (size->slots)
			return true;
	return false;
}

/*
 * Make a buffer on demand. An acquire that does not wait asks the host only briefly, and not at all
 * while requests are put off.
 */
static int make(struct xmem_pool *pool, const struct xl_want *want, bool evict)
{
	int err;

	if (want->waits)
		return xl_demand_make(pool, want->chain, want->bytes, evict, want->answer_by);
	if (xl_is_put_off(pool))
		return -ETIMEDOUT;
	err = xl_demand_make(pool, want->chain, want->bytes, evict, want->answer_by);
	if (err != -EAGAIN)		/* with -EAGAIN the host was not asked */
		xl_ask_record(pool, err);
	return err;
}

/*
 * Find a slot where buffers are made on demand: one that is near in size, else a new one, else any
 * that is large enough, else a new one for which publications are evicted. owned->lock is left
 * while a buffer is made.
 */
static int find_or_make(struct xmem_pool *pool, const struct xl_want *want, struct xl_size **ret)
{
	struct xl_owned *owned = &pool->owned;
	bool evict = false;
	int err, made;

	if (xl_still_none(pool, want))
		return -EAGAIN;
	xl_owned_changed(owned);	/* other threads act while a buffer is made */
	owned->lent_bound = ~0ULL;
	for (;;) {
		err = take_slot(pool, want, xl_near(want->bytes), ret);
		if (err != -EAGAIN)
			return err;
		if (xl_ring_is_full(pool))
			return xl_demand_defer(want->chain, want->bytes);
		made = make(pool, want, evict);
		if (!made)
			continue;
		err = take_slot(pool, want, ANY_SIZE, ret);
		if (err != -EAGAIN || evict || made != -EAGAIN)
			break;
		evict = true;
	}
	/*
	 * A host that has not answered in time has refused nothing, so -EAGAIN, which is
	 * remembered, would be wrong.
	 */
	return err == -EAGAIN && (made == -ETIMEDOUT || !has_any(want)) ? made : err;
}

/*
 * As find_or_make, but errors of attempts that failed on the way are dropped. The caller notes
 * -EAGAIN.
 */
static XL_COLD int take_or_make(struct xmem_pool *pool, const struct xl_want *want,
				struct xl_size **ret)
{
	struct xl_error before;
	int err;

	xl_error_save(&before);
	err = find_or_make(pool, want, ret);
	if (!err || err == -EAGAIN || err == -EINPROGRESS)
		xl_error_restore(&before);
	else if (xl_is_in_vain(want, err))
		xl_record_refusal(pool, want->chain, want->bytes);
	return err;
}

static int take(struct xmem_pool *pool, const struct xl_want *want, struct xl_size **ret)
{
	if (xl_wants_demand(want))
		return take_or_make(pool, want, ret);
	return take_slot(pool, want, ANY_SIZE, ret);
}

int xl_find_slot(struct xmem_pool *pool, const struct xl_want *want, struct xl_size **ret)
{
	int err = take(pool, want, ret);
	u64 now;

	if (err != -EAGAIN)
		return err;
	xl_record_refusal(pool, want->chain, want->bytes);
	now = xl_now_ns();
	if (xl_retry_at(pool) > now)
		return err;
	if (xl_demote_at(pool) <= now)
		xl_demote(pool);
	xl_owned_changed(&pool->owned);
	err = take(pool, want, ret);
	if (err == -EAGAIN)
		xl_record_refusal(pool, want->chain, want->bytes);
	return err;
}

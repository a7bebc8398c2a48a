// SPDX-License-Identifier: MIT
/*
 * xmem_retract: this client takes back a publication that no client has received. core/retract.c
 * has the protocol.
 */
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/hold/token.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/owned.h"

/* Retract a slot of this client. 0 or -errno. Under owned->lock. */
static int retract_own(struct xmem_pool *pool, struct xl_owned_slot *one, u64 token)
{
	struct xl_owned *owned = &pool->owned;
	int err = xm_retract(&pool->map, &owned->words, &one->own, token);

	if (!err) {
		xl_collect_retracted(one);
		xl_keep_add_gap(owned, xl_tail(pool));
		xl_owned_changed(owned);
	}
	return err;
}

/* Retract a slot that this client has forwarded. 0 or -errno. Under owned->lock. */
static int retract_forwarded(struct xmem_pool *pool, u64 token)
{
	struct xl_owned *owned = &pool->owned;

	if (!owned->forwards || !xm_retract_forwarded(&pool->map, &owned->words, token))
		return xm_look(&pool->map, token) == -ESTALE ? -ESTALE : -EPERM;
	xl_do(pool, xm_put_pending(&pool->map, xm_token_slot(token)));
	return 0;
}

static int retract(struct xmem_pool *pool, u64 token)
{
	struct xl_owned *owned = &pool->owned;
	u32 slot = xm_token_slot(token);
	int err;

	if (slot >= pool->map.slots)
		return -ESTALE;
	xl_lock(&owned->lock);
	err = owned->slot[slot].size ? retract_own(pool, &owned->slot[slot], token) :
				       retract_forwarded(pool, token);
	xl_unlock(&owned->lock);
	return err;
}

static void wake(struct xmem_pool *pool)
{
	/*
	 * A subscriber may have seen the entry open for a moment, and taken it for the next
	 * publication.
	 */
	if (xm_load(&pool->owned.words.row->ring_waiters) & XMEM_WAITERS_ARMED)
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	xl_attached_sweep(pool);
	xl_owned_wake(pool);
}

XMEM_API int xmem_retract(struct xmem_pool *pool, uint64_t number)
{
	XL_CALL;
	u64 token;
	int err;
	XL_USE(pool);

	err = xl_check_writer(pool, XMEM_FOREVER);
	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	token = xl_token_of(pool, number, "retract");
	if (!token)
		return xl_last_error();
	err = retract(pool, token);
	if (err != -ESTALE && err != -EPERM)
		wake(pool);
	switch (-err) {
	case EBUSY:
		return xl_fail_fast(EBUSY, "a client has received or forwarded it, or "
					   "this client itself holds it");
	case ESTALE:
		return xl_fail_fast(ESTALE, "it is gone, or the token is another pool's");
	case EPERM:
		return xl_fail_fast(EPERM, "it is another client's, and this one's ring "
					   "does not have it");
	}
	return err;
}

// SPDX-License-Identifier: MIT
/*
 * Making buffers: payload files are made and attached, and their slots become FREE. demand.c
 * decides when an acquire needs that; make_cuda.c has memory of GPUs.
 */
#include <stdlib.h>

#include "lib/host/request.h"
#include "lib/own/demand.h"

void xl_demand_end(struct xmem_pool *pool, struct xl_chain *chain)
{
	struct xl_owned *owned = &pool->owned;
	const struct xl_chain *other;
	bool any = false;

	xl_lock(&owned->lock);
	if (chain->demand.by_default) {
		chain->demand.on = false;
		for (other = &owned->cpu; other; other = other->next)
			any |= other->demand.on;
		__atomic_store_n(&owned->on_demand, any, __ATOMIC_RELAXED);
		xl_owned_tidy(owned);	/* no size needs a fence any more */
	}
	xl_unlock(&owned->lock);
}

static void add(struct xmem_pool *pool, const u16 *slot, const struct xl_buffers *buffers)
{
	u32 i;

	XM_STEP(XM_STEP_FILE_MADE);
	xl_owned_add(pool, buffers->chain, slot, buffers->count, buffers->bytes,
		     !(buffers->flags & XMEM_MEMORY_SEALED));
	for (i = 0; buffers->ret_slots && i < buffers->count; i++)
		buffers->ret_slots[i] = slot[i];
}

int xl_slow_begin(struct xmem_pool *pool, u64 deadline_ns)
{
	int err = xl_turn_take(&pool->slow, deadline_ns);

	if (err == -EINTR)
		return xl_fail_fast(EINTR, "wait for another thread that makes buffers: a signal "
					   "handler ran");
	return err ? xl_fail(-err, "wait for another thread that makes buffers: it has not "
			     "finished in time, because the host does not answer") : 0;
}

/* owned.lock is not held while the file is made, so other acquires and publishes need not wait. */
int xl_make_slots(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	bool shared = !(buffers->flags & XMEM_MEMORY_SEALED);
	u16 *slot = calloc(buffers->count, sizeof(*slot));
	int err;

	if (!slot)
		return xl_fail(ENOMEM, "no memory for a list of %u slots", buffers->count);
	err = xl_owned_prepare(pool, buffers->chain, buffers->bytes, shared,
			       buffers->count);
	if (err)
		goto out_free;
	err = xl_payload_make(pool, buffers, slot);
	if (err)
		xl_owned_unprepare(pool);
	else
		add(pool, slot, buffers);
out_free:
	free(slot);
	return err;
}

int xl_make_buffers(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	int err, cancel;

	/*
	 * A thread that is cancelled here would keep the turn, and leak the file that it has made.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = xl_slow_begin(pool, buffers->answer_by ? buffers->answer_by : ~0ULL);
	if (!err) {
		err = xl_make_slots(pool, buffers);
		if (!err && !buffers->demand)
			xl_demand_end(pool, buffers->chain);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	return err;
}

// SPDX-License-Identifier: MIT
/*
 * Making buffers: a payload file is made and attached, and its slots become FREE.
 */
#include <stdlib.h>

#include "owned.h"
#include "payload/payload.h"
#include "request.h"

int xl_check_writer(struct xmem_pool *pool, const char *what)
{
	if (!pool)
		return xl_fail(EINVAL, "%s: no pool", what);
	if (!xl_alive(pool))
		return xl_fail_forked();
	if (pool->role != XMEM_ROLE_WRITER)
		return xl_fail(EPERM,
			       "%s: this client is a reader; open the pool with XMEM_OPEN_WRITER",
			       what);
	return 0;
}

static u32 clamp(u32 value, u32 least, u32 most)
{
	return value < least ? least : value > most ? most : value;
}

XMEM_API int xmem_preallocate(struct xmem_pool *pool, unsigned int count, size_t bytes)
{
	struct xl_owned *owned;
	u16 *slot;
	u32 i;
	int err = xl_check_writer(pool, "preallocate");

	if (err)
		return err;
	if (!count || count > pool->map.slots || !bytes || bytes > (1ULL << 46) / count)
		return xl_fail(EINVAL,
			       "preallocate %u buffers of %zu bytes: at least one of each, at most "
			       "%u buffers",
			       count, bytes, pool->map.slots);
	slot = calloc(count, sizeof(*slot));
	if (!slot)
		return xl_fail(ENOMEM, "no memory for a list of %u slots", count);
	owned = &pool->owned;
	xl_lock(&pool->slow);		/* acquire and publish must not wait for files to be made */
	err = xl_payload_make(pool, count, bytes, slot);
	xl_unlock(&pool->slow);
	if (!err) {
		xl_lock(&owned->lock);
		for (i = 0; i < count; i++) {
			owned->slot[slot[i]].bytes = bytes;
			xl_queue_add(&owned->list[XL_LIST_FREE], &owned->slot[slot[i]]);
		}
		owned->largest = bytes > owned->largest ? bytes : owned->largest;
		owned->slots += count;
		owned->batch = clamp(owned->slots / 4, 1, XL_MAX_BATCH);
		xl_unlock(&owned->lock);
		xl_owned_wake(pool);
	}
	free(slot);
	return err;
}

// SPDX-License-Identifier: MIT
/*
 * Making buffers: a payload file is made and attached, and its slots become FREE.
 */
#include <stdlib.h>

#include "died.h"
#include "owned.h"
#include "payload/payload.h"
#include "request.h"

#define MAX_BYTES	(1ULL << 46)	/* of one payload file */

int xl_check_writer(struct xmem_pool *pool, const char *what)
{
	if (!pool)
		return xl_fail(EINVAL, "%s: no pool", what);
	if (!xl_alive(pool))
		return xl_fail_not_alive(pool);
	if (pool->role != XMEM_ROLE_WRITER)
		return xl_fail(EPERM,
			       "%s: this client is a reader; open the pool with XMEM_OPEN_WRITER",
			       what);
	return 0;
}

static int bad_numbers(const struct xmem_pool *pool, u32 count, size_t bytes)
{
	if (!count || count > pool->map.slots)
		return xl_fail(EINVAL, "preallocate: count is %u, not from 1 to %u, the slots of "
				       "the pool", count, pool->map.slots);
	if (!bytes)
		return xl_fail(EINVAL, "preallocate: bytes is 0");
	return xl_fail(EINVAL, "preallocate: bytes is %zu, and all %u buffers together must not "
			       "have more than %llu bytes", bytes, count, MAX_BYTES);
}

/* Acquire and publish do not wait for files to be made. Under pool->slow. */
static int make_slots(struct xmem_pool *pool, u32 count, u64 bytes, u16 *slot)
{
	int err = xl_owned_prepare(pool, bytes, count);

	if (err)
		return err;
	err = xl_payload_make(pool, count, bytes, slot);
	if (err)
		xl_owned_unprepare(pool, bytes);
	else
		xl_owned_add(pool, slot, count, bytes);
	return err;
}

XMEM_API int xmem_preallocate(struct xmem_pool *pool, unsigned int count, size_t bytes)
{
	u16 *slot;
	int err = xl_check_writer(pool, "preallocate"), cancel;

	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (!count || count > pool->map.slots || !bytes || bytes > MAX_BYTES / count)
		return bad_numbers(pool, count, bytes);
	slot = calloc(count, sizeof(*slot));
	if (!slot)
		return xl_fail(ENOMEM, "no memory for a list of %u slots", count);
	/* A thread that is cancelled here would keep what it has made, and the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	xl_lock(&pool->slow);
	err = make_slots(pool, count, bytes, slot);
	xl_unlock(&pool->slow);
	pthread_setcancelstate(cancel, NULL);
	free(slot);
	return err;
}

/* SPDX-License-Identifier: MIT */
/* Limbo, as the library sees it: limbo.c. core/limbo.h defines it. */
#ifndef XMEM_LIB_LIMBO_H
#define XMEM_LIB_LIMBO_H

#include "lib/private.h"

/*
 * Record since when this writer wants the BUSY slots back, because it has found no buffer or has
 * collected. The ring has the time of the first of them. Under owned.lock.
 */
void xl_limbo_record(struct xmem_pool *pool);

/* Count what is in limbo now. Slow. */
void xl_limbo_count(struct xmem_pool *pool, struct xmem_limbo *ret);

/* Warn the program if it has a hook and limbo has passed a limit. Under no lock. */
void xl_limbo_notify_slow(struct xmem_pool *pool);

static inline void xl_limbo_notify(struct xmem_pool *pool)
{
	if (unlikely(__atomic_load_n(&pool->hook.call, __ATOMIC_RELAXED)))
		xl_limbo_notify_slow(pool);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Limbo, as the library sees it: limbo.c. */
#ifndef XMEM_LIB_LIMBO_H
#define XMEM_LIB_LIMBO_H

#include "lib/private.h"

/*
 * This writer has found no buffer, or has collected: since when does it want back those that
 * others hold? The ring says that of the first. Under owned.lock.
 */
void xl_limbo_note(struct xmem_pool *pool);

/* What is in limbo now. Slow. */
void xl_limbo_find(struct xmem_pool *pool, struct xmem_limbo *ret);

/* Tell the program if it wants to know and there is news. Under no lock. */
void xl_limbo_tell_slowly(struct xmem_pool *pool);

static inline void xl_limbo_tell(struct xmem_pool *pool)
{
	if (unlikely(__atomic_load_n(&pool->hook.call, __ATOMIC_RELAXED)))
		xl_limbo_tell_slowly(pool);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Calls that use a pool's handle, and their end by xmem_cancel and xmem_pool_close.
 *
 * xmem_cancel is for ever. xmem_pool_close ends the waits that are under way at that time. All
 * calls that use the pool's handle are over before it returns, for they are counted, except:
 *
 *   xmem_acquire  its short way is not counted. It looks at nothing of the pool that goes away
 *                 before it has owned.lock. Whoever closes takes that lock too, and leaves behind
 *                 that there is no READY slot (xl_owned_close): so all later calls are counted.
 *   xmem_get      its short way is not counted, and has no lock. After xmem_pool_close it finds
 *                 no slots; but it must not run in another thread meanwhile.
 *
 * A call is counted, then looks whether the handle is closed. Whoever closes says so, then looks
 * whether calls are counted. Model: tests/model/close_calls.pml.
 */
#ifndef XMEM_BASE_CALLS_H
#define XMEM_BASE_CALLS_H

#include "lib/private.h"

#define XL_CANCEL_ALWAYS	1u	/* bits of pool->calls.cancels: by xmem_cancel, for ever */
#define XL_CANCEL_CLOSE		2u	/* by xmem_pool_close */

/* Has xmem_cancel been called? Then no call of this pool may wait. */
static inline bool xl_cancelled(const struct xmem_pool *pool)
{
	return unlikely(xm_load(&pool->calls.cancels) & XL_CANCEL_ALWAYS);
}

/* Is a wait over that began when pool->calls.cancels was @before? */
static inline bool xl_wait_cancelled(const struct xmem_pool *pool, u32 before)
{
	u32 now = xm_load(&pool->calls.cancels);

	XM_STEP(XM_STEP_WAIT);
	return unlikely(now != before || now & XL_CANCEL_ALWAYS);
}

/*
 * A call that uses the pool's handle and may wait is between these two. Returns what
 * xl_wait_cancelled wants: to such a call a pool that is closed is closed for ever.
 */
u32 xl_wait_begin(struct xmem_pool *pool);
void xl_wait_end(struct xmem_pool *pool);

/* What xl_wait_begin returns, for a call that is counted already. */
static inline u32 xl_wait_cancels(const struct xmem_pool *pool)
{
	return xm_load(&pool->calls.cancels) & ~XL_CANCEL_CLOSE;
}

/* Can the pool's handle be used, or is it another process's, or closed? */
static inline bool xl_is_open(const struct xmem_pool *pool)
{
	return xl_alive(pool) &&
	       !(__atomic_load_n(&pool->calls.cancels, __ATOMIC_SEQ_CST) & XL_CANCEL_CLOSE);
}

static inline void xl_use_over(struct xmem_pool *const *pool)
{
	if (*pool)
		xl_wait_end(*pool);
}

static inline struct xmem_pool *xl_use(struct xmem_pool *pool)
{
	if (pool)
		xl_wait_begin(pool);
	return pool;
}

/*
 * A function that is called with the pool's handle, or NULL, begins with this, then asks
 * xl_is_open. It is counted until it returns, however it does.
 */
#define XL_USE(pool) \
	__attribute__((cleanup(xl_use_over), unused)) struct xmem_pool *const xl_used_ = \
		xl_use(pool)

#endif

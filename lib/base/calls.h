/* SPDX-License-Identifier: MIT */
/*
 * Calls that use a pool's handle are counted, and xmem_cancel and xmem_pool_close end their waits.
 *
 * xmem_cancel ends all waits of the pool, at once and for ever. xmem_pool_close ends the waits that
 * are under way. Before it returns, it waits until all counted calls have returned. All calls that
 * use the pool's handle are counted, except two:
 *
 *   xmem_acquire  Its fast path is not counted. Before it has owned.lock, it reads nothing of the
 *                 pool that close frees. Close takes owned.lock too, and makes sure that no slot is
 *                 READY afterwards (xl_owned_close). So all later calls take the slow path, which
 *                 is counted.
 *   xmem_get      Its fast path is not counted and takes no lock. After xmem_pool_close it finds
 *                 no slots, but it must not run in another thread during xmem_pool_close.
 *
 * A call first adds itself to the count, and then checks whether the handle is closed. Close first
 * marks the handle as closed, and then reads the count. Model: tests/model/close_calls.pml.
 */
#ifndef XMEM_BASE_CALLS_H
#define XMEM_BASE_CALLS_H

#include "lib/private.h"

#define XL_CANCEL_ALWAYS	1u	/* of cancels: set by xmem_cancel, for ever */
#define XL_CANCEL_CLOSE		2u	/* set by xmem_pool_close */

/* Has xmem_cancel been called? Then no call of this pool may wait. */
static inline bool xl_cancelled(const struct xl_calls *calls)
{
	return unlikely(xm_load(&calls->cancels) & XL_CANCEL_ALWAYS);
}

/* Has a wait been cancelled that began when calls->cancels was @before? */
static inline bool xl_wait_cancelled(const struct xl_calls *calls, u32 before)
{
	u32 now = xm_load(&calls->cancels);

	XM_STEP(XM_STEP_WAIT);
	return unlikely(now != before || now & XL_CANCEL_ALWAYS);
}

/* For a call that is counted already: the value that xl_wait_begin below would return. */
static inline u32 xl_wait_cancels(const struct xl_calls *calls)
{
	return xm_load(&calls->cancels) & ~XL_CANCEL_CLOSE;
}

/*
 * These two enclose a call that uses the pool's handle and may wait. xl_wait_begin returns the
 * value that xl_wait_cancelled takes. It leaves out XL_CANCEL_CLOSE, so the call notices a pool
 * that was closed before.
 */
static inline u32 xl_wait_begin(struct xl_calls *calls)
{
	__atomic_add_fetch(&calls->waiting, 1, __ATOMIC_SEQ_CST);
	return xl_wait_cancels(calls);
}

void xl_wait_end(struct xl_calls *calls);

/* May this process use the pool's handle? Not if it is another process's, or closed. */
static inline bool xl_is_open(const struct xmem_pool *pool)
{
	return xl_alive(pool) &&
	       !(__atomic_load_n(&pool->calls.cancels, __ATOMIC_SEQ_CST) & XL_CANCEL_CLOSE);
}

static inline void xl_use_end(struct xmem_pool *const *pool)
{
	if (*pool)
		xl_wait_end(&(*pool)->calls);
}

static inline struct xmem_pool *xl_use(struct xmem_pool *pool)
{
	if (pool)
		xl_wait_begin(&pool->calls);
	return pool;
}

/*
 * A function that is called with a pool's handle, or NULL, begins with this macro, and then asks
 * xl_is_open. The call is counted until the function returns, at whichever place.
 */
#define XL_USE(pool) \
	__attribute__((cleanup(xl_use_end), unused)) struct xmem_pool *const xl_used_ = \
		xl_use(pool)

#endif

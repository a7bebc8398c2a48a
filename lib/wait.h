/* SPDX-License-Identifier: MIT */
/*
 * Waiting for publications, and how waits are cancelled. Every wait follows I5: arm the words,
 * then look, also at whether it is cancelled, then wait.
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
#ifndef XMEM_WAIT_H
#define XMEM_WAIT_H

#include "private.h"
#include "request.h"

#define XL_CANCEL_ALWAYS	1u	/* bits of pool->cancels: by xmem_cancel, for ever */
#define XL_CANCEL_CLOSE		2u	/* by xmem_pool_close */

/* Has xmem_cancel been called? Then no call of this pool may wait. */
static inline bool xl_cancelled(const struct xmem_pool *pool)
{
	return unlikely(xm_load(&pool->cancels) & XL_CANCEL_ALWAYS);
}

/* Is a wait over that began when pool->cancels was @before? */
static inline bool xl_wait_cancelled(const struct xmem_pool *pool, u32 before)
{
	u32 now = xm_load(&pool->cancels);

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
	return xm_load(&pool->cancels) & ~XL_CANCEL_CLOSE;
}

/* Can the pool's handle be used, or is it another process's, or closed? */
static inline bool xl_is_open(const struct xmem_pool *pool)
{
	return xl_alive(pool) &&
	       !(__atomic_load_n(&pool->cancels, __ATOMIC_SEQ_CST) & XL_CANCEL_CLOSE);
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

/* End the waits of this pool; XL_CANCEL_CLOSE also waits until those that are counted are over. */
void xl_cancel(struct xmem_pool *pool, u32 how);

/* Receives of this pool's subscriptions go the slow way from now on (receive.c). */
void xl_receive_slowly(struct xmem_pool *pool);

/* Let all threads of this process that wait for publications look again. */
void xl_kick(struct xmem_pool *pool);

/*
 * The rings that a thread waits for: those that were followed when it armed their words. A thread
 * in xmem_receive_any waits for all rings that the client follows, in whatever subscription, and
 * other threads follow and drop rings meanwhile; its own look does so too. Hence this rule, which
 * tests/model/watch.pml checks:
 *
 *   Whoever changes what is followed, or the list of subscriptions, changes it first and kicks
 *   then. A kick counts, then has the host end the waits of this process, whatever ring's word
 *   they are on, followed or not. A thread notes the count of kicks, then finds the rings and arms
 *   their words, then looks; if the count is the same still it sleeps on the words and the count,
 *   or on one word alone.
 *
 * A subscription that several threads receive in counts the changes of its own rings besides, so
 * that receive_wait need not make its watch anew for those of others. A ring whose publisher has
 * ended needs no kick when it is dropped: the host has woken its word at the end, and nothing can
 * come from it any more.
 */
struct xl_watch {
	u32 kind;		/* enum xmem_poll_kind: the descriptor that stands for them */
	u32 kicks;		/* pool->kicks before the words were armed */
	u32 count;
	struct xl_armed clients;	/* of the pool, if no ring is waited for */
	struct {
		u32 publisher;
		struct xl_armed armed;
	} ring[XMEM_MAX_CLIENTS];
};

/*
 * Wait for XMEM_WAIT_CLIENTS, because there is no writer to follow. Until then this client's area
 * says so, and a terminal is told after a second, once until a writer is followed (await.c).
 */
int xl_await_writer(struct xmem_pool *pool, struct xl_armed armed, u64 deadline_ns);

void xl_watch_begin(struct xmem_pool *pool, struct xl_watch *watch, u32 kind);
/*
 * Arm a ring's word, if that is how it is waited for. -ENOENT: the host has dropped the ring, which
 * a look finds out.
 */
int xl_watch_ring(struct xmem_pool *pool, struct xl_watch *watch, u32 publisher);

/* After the rings: if there is none, arm the word that a writer wakes when it joins. */
int xl_watch_writers(struct xmem_pool *pool, struct xl_watch *watch);

/*
 * Wait until one of the rings is woken, a writer joins or xl_kick is called. It may return 0 too
 * early. -ETIMEDOUT, -EINTR, -ENOTCONN, or another error of the host.
 */
int xl_wait_rings(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns);

/* Drop what threads have waited with. The pool goes. */
void xl_pollers_drop(struct xmem_pool *pool);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The seam: all that the protocol needs of the world it is compiled in.
 *
 * Need: u16, u32, u64, bool, the errno names, READ/WRITE of shared words with named
 * ordering, an index from outside that is within bounds also under speculation,
 * a check macro, and XM_STEP, which tests turn into a place to be
 * delayed, stopped or killed. "full" = nothing passes it in either direction.
 */
#ifndef XM_PROTOCOL_ENV_H
#define XM_PROTOCOL_ENV_H

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/nospec.h>
#include <linux/types.h>

#define xm_load(p)		READ_ONCE(*(p))
#define xm_load_acquire(p)	smp_load_acquire(p)
#define xm_store(p, v)		WRITE_ONCE(*(p), (v))
#define xm_store_release(p, v)	smp_store_release(p, v)
#define xm_full_barrier()	smp_mb()
#define xm_store_barrier()	smp_wmb()
#define xm_load_barrier()	smp_rmb()
#define xm_xchg_full(p, v)	xchg(p, v)
#define xm_cas_full(p, old, new) ({ typeof(*(p)) o_ = (old), n_ = (new); cmpxchg(p, o_, n_) == o_; })
#define xm_add_full(p, v)	((u32)atomic_fetch_add((int)(v), (atomic_t *)(p)))
#define xm_check(cond)		WARN_ON_ONCE(!(cond))
#define xm_index(i, size)	array_index_nospec(i, size)

#else

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#if !defined(__LP64__)
#error "xmem is for 64-bit machines"
#endif

typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

/* On x86 a locked operation is a full barrier; elsewhere C11's is not quite (Arm). */
#if defined(__x86_64__)
#define xm_after_rmw()		((void)0)
#else
#define xm_after_rmw()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#define xm_load(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define xm_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define xm_store(p, v)		__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define xm_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define xm_full_barrier()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define xm_store_barrier()	__atomic_thread_fence(__ATOMIC_RELEASE)
#define xm_load_barrier()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define xm_xchg_full(p, v)	({ typeof(*(p)) r_ = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); xm_after_rmw(); r_; })
#define xm_cas_full(p, old, new) ({ typeof(*(p)) o_ = (old); bool r_ = __atomic_compare_exchange_n(p, &o_, new, false, \
				__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); xm_after_rmw(); r_; })
#define xm_add_full(p, v)	({ u32 r_ = __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); xm_after_rmw(); r_; })
#define xm_check(cond)		((cond) ? (void)0 : xm_check_failed(#cond, __FILE__, __LINE__))
void xm_check_failed(const char *what, const char *file, int line);
#define xm_index(i, size)	(i)

#endif

#ifdef XMEM_STEPS
void xm_step(int step);
#define XM_STEP(step)		xm_step(step)
#else
#define XM_STEP(step)		((void)0)
#endif

#endif

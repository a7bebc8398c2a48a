/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The seam: everything that the protocol needs from the world in which it is compiled.
 *
 * Need: u8, u16, u32, u64, bool and the errno names; accesses to shared words with a named
 * ordering, where a "full" access lets no other access pass it in either direction; an index from
 * outside that stays within bounds under speculation, too; and a check macro.
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
#define xm_test(p, bits)		(READ_ONCE(*(p)) & (bits))
#define xm_is_acquire(p, v)	(smp_load_acquire(p) == (v))
#define xm_store(p, v)		WRITE_ONCE(*(p), (v))
#define xm_store_release(p, v)	smp_store_release(p, v)
#define xm_full_barrier()	smp_mb()
#define xm_store_barrier()	smp_wmb()
#define xm_load_barrier()	smp_rmb()
#define xm_xchg_full(p, v)	xchg(p, v)
#define xm_cas_full(p, o, n)	({ typeof(*(p)) o_ = (o), n_ = (n); cmpxchg(p, o_, n_) == o_; })
#define xm_add_full(p, v)	((u32)atomic_fetch_add((int)(v), (atomic_t *)(p)))
#define xm_place(p)		READ_ONCE(p)
#define xm_check(cond)		WARN_ON_ONCE(!(cond))
#define xm_index(i, size)	array_index_nospec(i, size)
#define xm_inline		__always_inline

#else

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#ifndef __LP64__
#error "xmem is for 64-bit machines"
#endif
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define xm_load(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define xm_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
/*
 * xm_test: is any of these bits set (relaxed)? xm_is_acquire: is this the value (acquire, if it
 * is)? The compiler can fold these plain loads into the test, which it does not do with atomic
 * loads. Not for loops: the compiler might move the load out of the loop.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define xm_test(p, bits)	(*(p) & (bits))
#define xm_is_acquire(p, v)	(*(p) == (v) && (__atomic_signal_fence(__ATOMIC_SEQ_CST), true))
#else
#define xm_test(p, bits)	(xm_load(p) & (bits))
#define xm_is_acquire(p, v)	(xm_load_acquire(p) == (v))
#endif
#define xm_store(p, v)		__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define xm_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define xm_full_barrier()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define xm_store_barrier()	__atomic_thread_fence(__ATOMIC_RELEASE)
#define xm_load_barrier()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
/* A locked operation of x86 is a full barrier; elsewhere C11's is not quite one (Arm). */
#ifdef __x86_64__
#define xm_fenced(op)		(op)
#else
#define xm_fenced(op)		({ __auto_type r_ = (op); xm_full_barrier(); r_; })
#endif
#define xm_xchg_full(p, v)	xm_fenced(__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))
#define xm_cas_full(p, o, n)	({ typeof(*(p)) o_ = (o); \
				xm_fenced(__atomic_compare_exchange_n(p, &o_, n, false, \
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); })
#define xm_add_full(p, v)	xm_fenced(__atomic_fetch_add(p, v, __ATOMIC_SEQ_CST))
#define xm_place(p)		(p)
#define xm_check(cond)	((cond) ? (void)0 : xm_check_failed(#cond, __FILE__, __LINE__))
void xm_check_failed(const char *what, const char *file, int line);
#define xm_index(i, size)	(i)
#define xm_inline		inline __attribute__((always_inline))

#endif
#endif

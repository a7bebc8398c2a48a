/* SPDX-License-Identifier: MIT */
/*
 * The library's only kind of lock. A thread that alone takes a lock again and again gets it
 * *biased*: it then locks and unlocks with plain stores. The first other thread that wants the lock
 * revokes the bias for ever. Afterwards the lock is a mutex on one futex word. A lock whose memory
 * is zero is free.
 *
 * The words of a lock, and the rule behind them:
 *
 *   bias   XL_UNBIASED -> a thread's number -> XL_REVOKED; it never goes back
 *   held   the number of the thread that has the lock by its bias; only this thread stores it
 *   word   the mutex: 0 free, 1 taken, 2 taken and a thread sleeps
 *
 *   The biased thread stores held, and then loads bias. The revoking thread has the mutex. It
 *   stores bias, calls membarrier, and then loads held. The membarrier is a full barrier in both
 *   threads. So either the biased thread sees that its bias is revoked, undoes its store and takes
 *   the mutex like any other thread, or the revoking thread sees held and sleeps until it is 0. To
 *   unlock, the biased thread stores held = 0, and then loads bias. If the bias is revoked, it
 *   wakes the revoking thread. So no wake-up is lost, and no thread spins on a thread that is
 *   stopped.
 *
 * A thread's number is never used again, so the end of a biased thread needs no work. If the kernel
 * refuses membarrier, no lock is ever biased. A lock is not recursive. Model: tests/model/bias.pml.
 */
#ifndef XMEM_LOCK_H
#define XMEM_LOCK_H

#include "core/env.h"

#define XL_UNBIASED	0u
#define XL_REVOKED	1u
#define XL_NO_THREAD	2u		/* the number of a thread that has got none yet */
#define XL_FIRST_THREAD	3u

#define XL_BIAS_AFTER	32		/* times in a row that a thread has the lock before it
					 * gets the bias */

struct xl_lock {
	u32 bias;
	u32 held;
	u32 word;
	u32 last;			/* the thread that had the mutex last; under the mutex */
	u32 streak;			/* how many times in a row it had it; under the mutex */
};

struct xmem_buffer;

/* The state of each thread, in one struct, because finding it takes a load. */
struct xl_self {
	struct xmem_buffer *handles;	/* its magazine of free handles: handle.c */
	int room;			/* how many more fit; at -1, xl_handle_give_back is
					 * called */
	u32 thread;			/* its number */
	bool registered;		/* its handles are given back when it ends */
#ifdef XMEM_STEPS
	int locks;			/* how many locks and turns it has */
#endif
};

extern __thread struct xl_self xl_self
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/*
 * A call of the driver may wait for a stream, and the stream for another thread of the program. So
 * no thread that has a lock or a turn may call the driver. Builds for tests count both.
 */
#ifdef XMEM_STEPS
#define xl_count_lock(more)	((void)(xl_self.locks += (more)))
#define xl_forget_locks()	((void)(xl_self.locks = 0))
#define xl_check_no_lock()	xm_check(!xl_self.locks)
#else
#define xl_count_lock(more)	((void)0)
#define xl_forget_locks()	((void)0)
#define xl_check_no_lock()	((void)0)
#endif

void xl_lock_slow(struct xl_lock *lock) __attribute__((visibility("hidden")));
void xl_unlock_mutex(struct xl_lock *lock) __attribute__((visibility("hidden")));
/* Returns @ret, so that a function can end with a call of it. */
void *xl_unlock_revoked(struct xl_lock *lock, void *ret) __attribute__((visibility("hidden")));

/*
 * Plain loads, which the compiler can make part of a comparison, as it does not with atomic ones.
 * The compiler may move them or merge two of them, except across xl_compiler_barrier.
 */
#ifdef __SANITIZE_THREAD__
#define xl_peek(p)		xm_load(p)
#else
#define xl_peek(p)		(*(p))
#endif
/* Add to a word that only this thread changes, in one instruction. */
#ifdef __SANITIZE_THREAD__
#define xl_bump(p, v)		xm_store(p, xm_load(p) + (v))
#else
#define xl_bump(p, v)		(*(p) += (v))
#endif
#define xl_compiler_barrier()	__atomic_signal_fence(__ATOMIC_SEQ_CST)

/*
 * Take the lock if it is biased to this thread, whose number is @me. After false the caller must
 * call xl_lock next. It also undoes the store if the bias was revoked between the two checks.
 */
static inline bool xl_lock_biased(struct xl_lock *lock, u32 me)
{
	if (__builtin_expect(xl_peek(&lock->bias) != me, 0))
		return false;
	xm_store(&lock->held, me);
	xl_compiler_barrier();
	if (__builtin_expect(!xm_is_acquire(&lock->bias, me), 0))
		return false;
	xl_count_lock(1);
	return true;
}

/* Unlock a lock that xl_lock_biased took. After false the caller must call xl_unlock_revoked. */
static inline bool xl_unlock_biased(struct xl_lock *lock, u32 me)
{
	xl_count_lock(-1);
	xm_store_release(&lock->held, 0);
	xl_compiler_barrier();
	return __builtin_expect(xl_peek(&lock->bias) == me, 1);
}

static inline void xl_lock(struct xl_lock *lock)
{
	if (__builtin_expect(!xl_lock_biased(lock, xl_self.thread), 0))
		xl_lock_slow(lock);
}

static inline void xl_unlock(struct xl_lock *lock)
{
	u32 me = xl_self.thread;

	if (__builtin_expect(xl_peek(&lock->held) != me, 0))
		xl_unlock_mutex(lock);
	else if (__builtin_expect(!xl_unlock_biased(lock, me), 0))
		xl_unlock_revoked(lock, NULL);
}

/*
 * Does a thread have the lock now? The answer is a guess, for callers that can do without the lock.
 */
static inline bool xl_seems_locked(const struct xl_lock *lock)
{
	return xm_load(&lock->held) || xm_load(&lock->word);
}

/*
 * Register this process for membarrier. Call it in each process before the first lock that may be
 * biased. It takes some milliseconds if the process has threads already. Both functions return
 * whether membarrier works.
 */
bool xl_membarrier_register(void);
bool xl_membarrier_ready(void);

/*
 * When this returns, all threads of this process have passed a full barrier. Without membarrier, it
 * is a full barrier in this thread only.
 */
void xl_membarrier(void);

#endif

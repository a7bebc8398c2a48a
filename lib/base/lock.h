/* SPDX-License-Identifier: MIT */
/*
 * The library's one kind of lock. A thread that takes a lock again and again, and alone, gets
 * it *biased*: it then locks and unlocks with plain stores. The first other thread that wants
 * the lock takes the bias away for ever; from then on the lock is a mutex on one futex word.
 * Memory that is zero is a lock that nobody has.
 *
 * The lock's states, and the rule behind them:
 *
 *   bias   XL_UNBIASED -> a thread's number -> XL_REVOKED; it never goes back
 *   held   the number of the thread that has the lock by its bias; that thread alone stores it
 *   word   the mutex: 0 free, 1 taken, 2 taken and somebody sleeps
 *
 *   The biased thread stores held, then loads bias. Whoever revokes has the mutex; it stores
 *   bias, calls membarrier, then loads held. The membarrier is a full barrier in both threads,
 *   so either the biased thread sees that its bias has gone, steps back and takes the mutex
 *   like all others, or the revoker sees held and sleeps until it is 0. To unlock, the biased
 *   thread stores held = 0, then loads bias, and wakes the revoker if the bias has gone: so no
 *   wake-up is lost, and nobody spins on a thread that is stopped.
 *
 * A thread's number is never used again, so the end of a thread that has a bias needs no care.
 * Where the kernel refuses membarrier, no lock is ever biased. A lock is not recursive. Model:
 * tests/model/bias.pml.
 */
#ifndef XMEM_LOCK_H
#define XMEM_LOCK_H

#include "core/env.h"

#define XL_UNBIASED	0u
#define XL_REVOKED	1u
#define XL_NO_THREAD	2u		/* the number of a thread that has got none yet */
#define XL_FIRST_THREAD	3u

#define XL_BIAS_AFTER	32		/* times that one thread has the lock in turn */

struct xl_lock {
	u32 bias;
	u32 held;
	u32 word;
	u32 last;			/* who had the mutex last; under it */
	u32 streak;			/* how often in turn; likewise */
};

struct xmem_buffer;

/* What each thread has of its own, in one place, because to find it takes a load. */
struct xl_self {
	struct xmem_buffer *handles;	/* its magazine of free ones: handle.c */
	int room;			/* for how many more; -1: xl_handle_give_back is called */
	u32 thread;			/* its number */
	bool registered;		/* its handles are given back at its end */
};

extern __thread struct xl_self xl_self
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

void xl_lock_slow(struct xl_lock *lock) __attribute__((visibility("hidden")));
void xl_unlock_mutex(struct xl_lock *lock) __attribute__((visibility("hidden")));
/* Returns @ret, so that it can be the last thing that a function does. */
void *xl_unlock_revoked(struct xl_lock *lock, void *ret) __attribute__((visibility("hidden")));

/*
 * Loads that the compiler may make part of a comparison, as it does not with atomic ones. It
 * may move them, or load once for two, but for xl_compiler_barrier.
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
 * Take the lock if it is biased to this thread, which is @me. After false the caller has to call
 * xl_lock next, which also steps back if the bias has gone between the two looks.
 */
static inline bool xl_lock_biased(struct xl_lock *lock, u32 me)
{
	if (__builtin_expect(xl_peek(&lock->bias) != me, 0))
		return false;
	xm_store(&lock->held, me);
	xl_compiler_barrier();
	return __builtin_expect(xm_is_acquire(&lock->bias, me), 1);
}

/* Unlock after that. After false the caller has to call xl_unlock_revoked. */
static inline bool xl_unlock_biased(struct xl_lock *lock, u32 me)
{
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

/* Has a thread the lock now? It is a guess, for those who would rather do without it. */
static inline bool xl_seems_locked(const struct xl_lock *lock)
{
	return xm_load(&lock->held) || xm_load(&lock->word);
}

/*
 * Ask the kernel for membarrier. Call it in each process before the first lock that may be
 * biased; it takes some milliseconds if the process has threads already. Returns whether there
 * is membarrier.
 */
bool xl_membarrier_register(void);
bool xl_membarrier_ready(void);

/*
 * All threads of this process have passed a full barrier when this returns. Without membarrier
 * it only is one in this thread.
 */
void xl_membarrier(void);

#endif

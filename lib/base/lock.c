// SPDX-License-Identifier: MIT
/* The slow paths of locks: the mutex, and giving and revoking a bias. lock.h has the rules. */
#include <linux/membarrier.h>
#include <sys/mman.h>

#include "lib/base/lock.h"
#include "lib/host/futex.h"

__thread struct xl_self xl_self = { .thread = XL_NO_THREAD };

static u32 last_thread = XL_FIRST_THREAD - 1;
static bool registered;			/* atomic */

/* ---- membarrier ---- */

bool xl_membarrier_register(void)
{
	long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	bool ready = known > 0 && known & MEMBARRIER_CMD_PRIVATE_EXPEDITED &&
		     !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);

	xm_store_release(&registered, ready);
	return ready;
}

bool xl_membarrier_ready(void)
{
	return xm_load_acquire(&registered);
}

/*
 * The program has forbidden itself membarrier after it was registered (seccomp). Removing the right
 * to write a page interrupts each CPU that runs a thread of the process, which has the same effect.
 * Threads that do not run have passed a full barrier in the scheduler.
 */
static void barrier_by_page(void)
{
	size_t bytes = sysconf(_SC_PAGESIZE);
	char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = page == MAP_FAILED;

	if (!err) {
		xm_store(page, 1);
		err = mprotect(page, bytes, PROT_READ);
		munmap(page, bytes);
	}
	xm_check(!err);
}

void xl_membarrier(void)
{
	int saved = errno;

	xm_full_barrier();
	if (xl_membarrier_ready() &&
	    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		barrier_by_page();
	xm_full_barrier();
	errno = saved;
}

/* ---- the mutex ---- */

static void mutex_lock(struct xl_lock *lock)
{
	u32 free = 0;

	if (__atomic_compare_exchange_n(&lock->word, &free, 1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE))
		xl_futex_wait_private(&lock->word, 2);
}

static void mutex_unlock(struct xl_lock *lock)
{
	if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
		xl_futex_wake_private(&lock->word, 1);
}

/* ---- the bias; under the mutex ---- */

static void revoke_bias(struct xl_lock *lock)
{
	u32 held;

	xm_store_release(&lock->bias, XL_REVOKED);
	xl_membarrier();
	while ((held = xm_load_acquire(&lock->held)))
		xl_futex_wait_private(&lock->held, held);
}

static void number_this_thread(void)
{
	u32 last = xm_load(&last_thread);

	do
		if (last == ~0u)
			return;		/* a thread without a number gets no bias */
	while (!__atomic_compare_exchange_n(&last_thread, &last, last + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	xl_self.thread = last + 1;
}

/* Give this thread the bias if it has had the lock often enough, and no other thread wants it. */
static void count_turn(struct xl_lock *lock)
{
	if (xl_self.thread == XL_NO_THREAD)
		number_this_thread();
	if (lock->last != xl_self.thread || xm_load(&lock->word) != 1) {
		lock->last = xl_self.thread;
		lock->streak = 0;
	} else if (++lock->streak >= XL_BIAS_AFTER && xl_self.thread != XL_NO_THREAD &&
		   xl_membarrier_ready()) {
		xm_store_release(&lock->bias, xl_self.thread);
	}
}

void xl_lock_slow(struct xl_lock *lock)
{
	int saved = errno;

	/* The bias was revoked between the check of it and the store: undo the store. */
	if (xm_load(&lock->held) == xl_self.thread) {
		xm_store_release(&lock->held, 0);
		xl_futex_wake_private(&lock->held, 1);
	}
	mutex_lock(lock);
	xl_count_lock(1);
	if (xm_load_acquire(&lock->bias) == XL_UNBIASED)
		count_turn(lock);
	else if (xm_load(&lock->bias) != XL_REVOKED)
		revoke_bias(lock);
	errno = saved;
}

void xl_unlock_mutex(struct xl_lock *lock)
{
	int saved = errno;

	xl_count_lock(-1);
	mutex_unlock(lock);
	errno = saved;
}

/* The lock was held by its bias, which has been revoked since. The revoking thread may sleep. */
void *xl_unlock_revoked(struct xl_lock *lock, void *ret)
{
	int saved = errno;

	xl_futex_wake_private(&lock->held, 1);
	errno = saved;
	return ret;
}

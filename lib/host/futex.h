/* SPDX-License-Identifier: MIT */
/*
 * Futexes on words that several processes map, which glibc does not offer. What a waiters
 * word means is in protocol.h; here is only how to sleep on it.
 */
#ifndef XMEM_FUTEX_H
#define XMEM_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/env.h"

/*
 * Sleep while *word is @value, until @deadline of CLOCK_MONOTONIC. Returns 0, -EAGAIN if *word is
 * another value, -ETIMEDOUT or -EINTR.
 */
static inline int xm_futex_wait(u32 *word, u32 value, const struct timespec *deadline)
{
	if (!syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, deadline, NULL,
		     FUTEX_BITSET_MATCH_ANY))
		return 0;
	return -errno;
}

static inline void xm_futex_wake_all(u32 *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The same for a word that only this process has. The caller looks at the word again. */
static inline void xl_futex_wait_private(u32 *word, u32 value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static inline void xl_futex_wake_private(u32 *word, int waiters)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

#endif

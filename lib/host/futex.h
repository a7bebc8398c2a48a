/* SPDX-License-Identifier: MIT */
/*
 * Futexes on words that several processes map, which glibc does not offer. core/protocol.h says
 * what waiters words mean; this file only sleeps on them.
 */
#ifndef XMEM_FUTEX_H
#define XMEM_FUTEX_H

#include <limits.h>
#include <stdint.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/env.h"

/*
 * Sleep while *word is @value, until @deadline of CLOCK_MONOTONIC (NULL: no limit). Returns 0,
 * -EAGAIN if *word has another value, -ETIMEDOUT or -EINTR.
 */
static inline int xm_futex_wait(u32 *word, u32 value, const struct timespec *deadline)
{
	if (!syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, deadline, NULL,
		     FUTEX_BITSET_MATCH_ANY))
		return 0;
	return -errno;
}

#ifndef FUTEX_32		/* of Linux 5.16 */
#define FUTEX_32	2
struct futex_waitv {
	__u64 val;
	__u64 uaddr;
	__u32 flags;
	__u32 __reserved;
};
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv	449
#endif

static inline struct futex_waitv xm_futex_at(u32 *word, u32 value)
{
	return (struct futex_waitv){ .val = value, .uaddr = (uintptr_t)word, .flags = FUTEX_32 };
}

/*
 * Sleep while each word has its value, until @deadline_ns of CLOCK_MONOTONIC (~0: no limit).
 * Returns 0, -EAGAIN, -ETIMEDOUT, -EINTR, or -ENOSYS before Linux 5.16.
 */
static inline int xm_futex_wait_any(struct futex_waitv *words, u32 count, u64 deadline_ns)
{
	struct timespec deadline = { deadline_ns / 1000000000, deadline_ns % 1000000000 };

	if (syscall(SYS_futex_waitv, words, count, 0, deadline_ns == ~0ULL ? NULL : &deadline,
		    CLOCK_MONOTONIC) >= 0)
		return 0;
	return errno == EPERM ? -ENOSYS : -errno;	/* old seccomp filters */
}

static inline void xm_futex_wake_all(u32 *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/*
 * Sleep while *word is @value. Only threads of this process may use the word. The caller checks the
 * word again afterwards.
 */
static inline void xl_futex_wait_private(u32 *word, u32 value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* Sleep so for at most @limit. Returns 0, or -errno: ETIMEDOUT, EAGAIN, EINTR. */
static inline long xl_futex_wait_private_for(u32 *word, u32 value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0) ? -errno : 0;
}

static inline void xl_futex_wake_private(u32 *word, int waiters)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

#endif

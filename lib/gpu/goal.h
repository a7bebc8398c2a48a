/* SPDX-License-Identifier: MIT */
/*
 * The goal of a buffer: the value that its ready word must reach before its contents are complete.
 * These functions find it, check it, and find out whether it can still be reached.
 */
#ifndef XMEM_GPU_GOAL_H
#define XMEM_GPU_GOAL_H

#include "lib/gpu/order.h"

/* The goal of one buffer. */
struct xl_goal {
	u64 value;
	u64 *word;
	u32 owner;		/* the client that owns the word */
	bool mine;		/* it is a client of this process */
};

/* The order of the slot, if the buffer is written and its slot is an own one; otherwise NULL. */
struct xl_order *xl_own_order(const struct xmem_buffer *buffer);

/* Find the goal. false: the contents are complete. */
bool xl_goal_find(const struct xmem_buffer *buffer, struct xl_goal *ret);

/* 0: the goal is reached. -EAGAIN: not yet. Another error, noted: it will never be reached. */
int xl_goal_check(const struct xl_goal *goal);

/*
 * The other process that has yet to write the word. 0: it is not known. In another PID namespace
 * than the host's, the number would be that of an unrelated process.
 */
u32 xl_goal_writer(const struct xmem_pool *pool, const struct xl_goal *goal);

/*
 * When xmemd has ended, it no longer ends the words of processes that exit. So a process that finds
 * that the writer has exited ends the word here. (The module cannot end before its clients.) false:
 * as far as this process can tell, the writer has not exited.
 */
bool xl_goal_end_word(const struct xmem_pool *pool, const struct xl_goal *goal);

/* If the contents are of this process's GPU: does this GPU still work? 0, or -errno, noted. */
int xl_goal_still_works(const struct xmem_buffer *buffer, const struct xl_goal *goal);

/* Is it known that the goal will never be reached? 0: no; or -errno, noted. */
int xl_goal_is_vain(const struct xmem_buffer *buffer, const struct xl_goal *goal);

/*
 * Wait in this thread until the goal is reached. 0, or -errno, noted, which may be ETIMEDOUT, EINTR
 * or ECANCELED (wait.c).
 */
int xl_goal_wait(const struct xmem_buffer *buffer, const struct xl_goal *goal, u64 deadline_ns);

/*
 * From now on accesses to the buffer come after the wait, so no thread waits for it a second time.
 */
static inline void xl_mark_ordered(struct xmem_buffer *buffer)
{
	if (!(xm_load(&buffer->mode) & XL_UPGRADED))	/* it has no order of its own */
		xl_mode_add(buffer, XL_ORDERED);
}

#endif

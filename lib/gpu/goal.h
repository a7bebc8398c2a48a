/* SPDX-License-Identifier: MIT */
/*
 * What makes the contents of a buffer complete: the value that its ready word has to reach; and
 * whether it ever will.
 */
#ifndef XMEM_GPU_GOAL_H
#define XMEM_GPU_GOAL_H

#include "lib/gpu/order.h"

/* What makes the contents of one buffer complete. */
struct xl_goal {
	u64 value;
	u64 *word;
	u32 owner;		/* the client whose word it is */
	bool mine;		/* and that is one of this process */
};

/* What is known of the slot, if the buffer is written and that is its own; else NULL. */
struct xl_order *xl_own_order(const struct xmem_buffer *buffer);

/* false: the contents are complete. */
bool xl_goal_find(const struct xmem_buffer *buffer, struct xl_goal *ret);

/* 0: it is reached. -EAGAIN: not yet. Else an error, noted: it never will be. */
int xl_goal_look(const struct xl_goal *goal);

/*
 * Which other process has yet to write the word? 0: that is not known. In another PID namespace
 * than the host's the number would be somebody else's.
 */
u32 xl_goal_writer(const struct xmem_pool *pool, const struct xl_goal *goal);

/*
 * xmemd has ended, so nobody ends the words of a process that ends after it. Whoever finds that the
 * process has gone does it here; the module cannot end before its clients. false: it has not gone,
 * as far as one knows.
 */
bool xl_goal_end_word(const struct xmem_pool *pool, const struct xl_goal *goal);

/* Does this process's GPU still work, of which the contents are? 0, or -errno, noted. */
int xl_goal_still_works(const struct xmem_buffer *buffer, const struct xl_goal *goal);

/* Will nothing come any more? 0: that is not known; or -errno, noted. */
int xl_goal_is_vain(const struct xmem_buffer *buffer, const struct xl_goal *goal);

/*
 * Wait in this thread until the goal is reached. 0, or -errno, noted: also ETIMEDOUT, EINTR, and
 * ECANCELED (wait.c).
 */
int xl_goal_wait(const struct xmem_buffer *buffer, const struct xl_goal *goal, u64 deadline_ns);

/* From now on the buffer is looked at behind the wait, so nobody waits for it a second time. */
static inline void xl_note_ordered(struct xmem_buffer *buffer)
{
	if (!(xm_load(&buffer->mode) & XL_UPGRADED))	/* which has no order of its own */
		xl_mode_add(buffer, XL_ORDERED);
}

#endif

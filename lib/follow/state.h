/* SPDX-License-Identifier: MIT */
/* What is followed, and the threads that wait for it; rules: subscription.h, wait.h. */
#ifndef XMEM_FOLLOW_STATE_H
#define XMEM_FOLLOW_STATE_H

#include "core/label.h"
#include "lib/base/lock.h"

/* What a publisher called itself; rules: hold/publisher.c. */
struct xl_known_label {
	u64 incarnation;
	struct xm_label label;
};

struct xl_labels {
	struct xl_lock lock;		/* guards changes; each is read without it */
	struct xl_known_label of[XMEM_MAX_CLIENTS];	/* by publisher */
};

struct xl_following {
	u32 subscribing;		/* a turn: serialises requests to follow rings */
	struct xl_lock list;		/* guards: */
	struct xmem_subscription *subscriptions;
	struct xmem_subscription *turn;	/* where receive_any looks first; NULL: at the first */
	struct xl_poller *pollers;	/* threads that wait in poll() */

	/* Atomic: */
	u64 origin[XMEM_MAX_CLIENTS];	/* by publisher: the incarnation that is followed, as of
					 * the posts and answers so far */
	u32 kicks;			/* counts xl_kick; a futex */
	u32 told_waiting;		/* not 0: the terminal knows that a writer is waited for */
};

#endif

/* SPDX-License-Identifier: MIT */
/* The followed rings, and the threads that wait for them; rules: subscription.h, wait.h. */
#ifndef XMEM_FOLLOW_STATE_H
#define XMEM_FOLLOW_STATE_H

#include "core/label.h"
#include "lib/base/lock.h"

/* The label of a publisher; rules: hold/publisher.c. */
struct xl_known_label {
	u64 incarnation;
	struct xm_label label;
};

struct xl_labels {
	struct xl_lock lock;		/* guards changes of `of`, which is read without it */
	struct xl_known_label of[XMEM_MAX_CLIENTS];	/* by publisher */
};

struct xl_following {
	u32 subscribing;		/* a turn: serialises requests to follow rings */
	struct xl_lock list;		/* guards the list, `turn` and `pollers`: */
	struct xmem_subscription *subscriptions;
	struct xmem_subscription *turn;	/* where receive_any looks first; NULL: at the first one */
	struct xl_poller *pollers;	/* threads that wait in poll() */

	/* Atomic: */
	u64 origin[XMEM_MAX_CLIENTS];	/* by publisher: the followed incarnation, according to the
					 * posts and answers so far; 0: none */
	u32 kicks;			/* counts xl_kick; a futex */
	u32 told_waiting;		/* not 0: the line about waiting for a writer is printed */
};

#endif

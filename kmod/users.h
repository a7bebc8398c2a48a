/* SPDX-License-Identifier: GPL-2.0-only */
/* The structs of users, which users.c, payers.c and ends.c know, and their functions. */
#ifndef XK_USERS_H
#define XK_USERS_H

#include "xk.h"

struct xk_user {
	struct hlist_node node;		/* users_lock, like refs and used */
	u32 refs;
	u64 used[XK_USER_QUOTAS];
	kuid_t uid;			/* immutable */
	struct list_head ends;		/* ends_lock: its clients that have ended (ends.c) */
	u32 leaving;			/* ends_lock: its pools that have ended and still count */
};

struct xk_payer {
	struct kref kref;
	bool unlimited;			/* immutable, like all but refusal, asker, lock */
	bool joins;			/* for a device's file: any thread may join by it */
	spinlock_t lock;
	struct xk_refusal refusal;	/* the last one */
	struct pid *asker;		/* if @joins: the thread that was refused; or NULL */
	u32 count;			/* with all users together, who are the last */
	struct xk_user *user[];		/* [0] opened the file; the others own namespaces */
};

/* users.c */
extern spinlock_t xk_users_lock;
extern struct xk_user xk_everybody;		/* all users together */
struct xk_user *xk_user_get(kuid_t uid);	/* with a reference. NULL: no memory */
void xk_user_ref(struct xk_user *user);
void xk_user_put(struct xk_user *user);
u64 xk_user_most(const struct xk_user *user, u32 quota);
u64 xk_user_may_have(const struct xk_user *user, u32 *quota);

#endif

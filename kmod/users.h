/* SPDX-License-Identifier: GPL-2.0-only */
/* The structs of users, which users.c, payers.c, ends.c and keep.c know, and their functions. */
#ifndef XK_USERS_H
#define XK_USERS_H

#include <linux/xarray.h>

#include "xk.h"

struct xk_user {
	u32 refs;			/* the lock of xk_users, like used */
	u64 used[XK_USER_QUOTAS];
	kuid_t uid;			/* immutable */
	atomic_t owed;			/* work items that will free something of it: ends.c */
	wait_queue_head_t owed_queue;	/* requests that wait until there is no such item */
	struct xk_drops drops;		/* its work has a reference while it is queued */
};

struct xk_payer {
	struct kref kref;
	bool unlimited;			/* immutable, like all but refusal, asker, lock */
	bool joins;			/* for a device's file: any thread may join by it */
	spinlock_t lock;
	struct xk_refusal refusal;	/* the last one */
	struct pid *asker;		/* if @joins: the thread that was refused; or NULL */
	struct xk_payer *served;	/* only end_work: the next in pool->served */
	u32 count;			/* of user[]; the last entry is xk_everybody */
	u32 last;			/* in user[]: the outermost one that is not root, or 0 */
	struct xk_user *user[];		/* [0] opened the file; the others own namespaces */
};

/* The outermost user that pays, except root: its namespaces may have given it the others' uids. */
static inline struct xk_user *xk_payer_last(const struct xk_payer *payer)
{
	return payer->user[payer->last];
}

/* users.c */
extern struct xarray xk_users;			/* by uid; its lock is in the table of xk.h */
extern struct xk_user xk_everybody;		/* all users together */
extern work_func_t xk_user_drop_work;		/* keep.c sets it */
struct xk_user *xk_user_get(kuid_t uid);	/* with a reference. NULL: no memory */
void xk_user_ref(struct xk_user *user);
void xk_user_put(struct xk_user *user);
u64 xk_user_most(const struct xk_user *user, u32 quota);
u64 xk_user_may_have(const struct xk_user *user, u32 *quota);

#endif

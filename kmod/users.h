/* SPDX-License-Identifier: GPL-2.0-only */
/* The structs of users, which users.c, payers.c, shares.c and ends.c know, and their functions. */
#ifndef XK_USERS_H
#define XK_USERS_H

#include "xk.h"

struct xk_user {
	struct hlist_node node;		/* users_lock */
	u32 refs;			/* users_lock */
	kuid_t uid;			/* immutable */
	atomic64_t used[XK_USER_QUOTAS];
	atomic_t folders;		/* folders of its dead pools that sysfs still keeps */
	wait_queue_head_t folder_queue;	/* waiters until one of them is removed */
	struct list_head ends;		/* ends_lock: its clients that have ended (ends.c) */
};

struct xk_payer {
	struct kref kref;
	bool unlimited;			/* immutable, like all but refusal, asker, lock */
	bool joins;			/* for a device's file: any thread may join by it */
	spinlock_t lock;
	struct xk_refusal refusal;	/* the last one */
	struct pid *asker;		/* if @joins: the thread that was refused; or NULL */
	u32 count;
	struct xk_user *user[];		/* [0] opened the file; the others own namespaces */
};

static inline bool xk_user_is_bound(const struct xk_payer *payer, u32 level)
{
	return !payer->unlimited && !uid_eq(payer->user[level]->uid, GLOBAL_ROOT_UID);
}

/* users.c. xk_user_get returns a user with a reference, or NULL: no memory. */
struct xk_user *xk_user_get(kuid_t uid);
void xk_user_ref(struct xk_user *user);
void xk_user_put(struct xk_user *user);

/* payers.c */
/*
 * Refuse a request: remember the refusal for the payer (XMEM_IOC_QUOTA). @pool may be NULL. Returns
 * -EDQUOT.
 */
int xk_refuse_level(struct xk_payer *payer, const struct xk_pool *pool,
		    const struct xk_refusal *refusal);

#endif

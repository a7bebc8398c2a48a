// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payers: which users pay for what a process makes.
 *
 * A file of /dev/xmem has a *payer*, made when it is opened: the user that opens it, and the owners
 * of all user namespaces that it is in. Everything that is made through that file is charged to
 * each of these users, and refused if one of them has as much as it may have. So a user that has
 * thousands of uids in a namespace of its own gets no more than with one uid.
 *
 * Nobody gets the last of what users share: see shares.c. limits.c limits all users together.
 *
 * Every object that is charged has a reference to its payer, so a payer lives until nothing is
 * charged to it any more, however long another user keeps that object. root, and a process with
 * CAP_SYS_RESOURCE, are charged but not refused.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "users.h"
#include "trace.h"

static void xk_payer_release(struct kref *kref)
{
	struct xk_payer *payer = container_of(kref, struct xk_payer, kref);

	while (payer->count)
		xk_user_put(payer->user[--payer->count]);
	put_pid(payer->asker);
	kfree(payer);
}

/* Any lock may be held. */
void xk_payer_put(struct xk_payer *payer)
{
	kref_put(&payer->kref, xk_payer_release);
}

struct xk_payer *xk_payer_get(struct xk_payer *payer)
{
	kref_get(&payer->kref);
	return payer;
}

/* A user that owns several of the namespaces, or also opens the file, pays once. */
static bool xk_payer_add(struct xk_payer *payer, kuid_t uid)
{
	struct xk_user *user;
	u32 i;

	for (i = 0; i < payer->count; i++)
		if (uid_eq(payer->user[i]->uid, uid))
			return true;
	user = xk_user_get(uid);
	if (user)
		payer->user[payer->count++] = user;
	return user;
}

/* Make a payer with room for @most users, which has none yet. NULL: no memory. */
static struct xk_payer *xk_payer_alloc(u32 most)
{
	struct xk_payer *payer;

	payer = kzalloc(struct_size(payer, user, most), GFP_KERNEL_ACCOUNT);
	if (!payer)
		return NULL;
	kref_init(&payer->kref);
	spin_lock_init(&payer->lock);
	return payer;
}

/* Make a payer for a file of the device that the caller opens. NULL: no memory. */
struct xk_payer *xk_payer_new(void)
{
	struct user_namespace *ns;
	struct xk_payer *payer;
	u32 most = 1;
	bool all;

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		most++;
	payer = xk_payer_alloc(most);
	if (!payer)
		return NULL;
	payer->joins = true;
	payer->unlimited = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	all = xk_payer_add(payer, current_euid());
	for (ns = current_user_ns(); all && ns != &init_user_ns; ns = ns->parent)
		all = xk_payer_add(payer, ns->owner);
	if (all)
		return payer;
	xk_payer_put(payer);
	return NULL;
}

/*
 * Make a payer for a client that joins through a file with @payer: the same users pay, but only
 * this client is told what it was refused. NULL: no memory.
 */
struct xk_payer *xk_payer_of_client(const struct xk_payer *payer)
{
	struct xk_payer *own = xk_payer_alloc(payer->count);

	if (!own)
		return NULL;
	own->unlimited = payer->unlimited;
	for (; own->count < payer->count; own->count++) {
		own->user[own->count] = payer->user[own->count];
		xk_user_ref(own->user[own->count]);
	}
	return own;
}

/* ---- refusing ---- */

int xk_refuse_level(struct xk_payer *payer, const struct xk_pool *pool,
		    const struct xk_refusal *refusal)
{
	struct pid *before = NULL;

	trace_xmem_limit(pool ? (s32)pool->number : XK_NO_POOL, xk_quota_name(refusal->quota),
			 refusal->wanted, refusal->most);
	spin_lock(&payer->lock);
	payer->refusal = *refusal;
	if (payer->joins) {
		before = payer->asker;
		payer->asker = get_pid(task_pid(current));
	}
	spin_unlock(&payer->lock);
	put_pid(before);
	return -EDQUOT;
}

/* Refuse a request: @used are in use, and @wanted would be too many. Returns -EDQUOT. */
int xk_refuse(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 used, u64 wanted,
	      u64 most)
{
	const struct xk_refusal refusal = {
		.any = true, .quota = quota, .used = used, .wanted = wanted, .most = most,
	};

	return xk_refuse_level(payer, pool, &refusal);
}

/* The caller's last refusal, unless somebody else was refused after it. */
void xk_refused(struct xk_payer *payer, struct xk_refusal *ret)
{
	spin_lock(&payer->lock);
	*ret = payer->refusal;
	if (payer->joins && payer->asker != task_pid(current))
		ret->any = false;
	spin_unlock(&payer->lock);
}

/* A join through a file with @payer has failed, because the client was refused something. */
void xk_refused_to_join(struct xk_payer *payer, struct xk_payer *client)
{
	struct xk_refusal refusal;
	struct pid *before;

	xk_refused(client, &refusal);
	spin_lock(&payer->lock);
	payer->refusal = refusal;
	before = payer->asker;
	payer->asker = get_pid(task_pid(current));
	spin_unlock(&payer->lock);
	put_pid(before);
}

/* ---- charging ---- */

static bool xk_user_try(struct xk_user *user, u32 quota, u64 n, u64 most, u64 *ret_used)
{
	u64 used = atomic64_read(&user->used[quota]);

	do {
		*ret_used = used;
		if (used > most || n > most - used)
			return false;
	} while (!atomic64_try_cmpxchg(&user->used[quota], (s64 *)&used, used + n));
	return true;
}

/* Charge @n more in @quota to the users of the payer. -EDQUOT: one of them would have too many. */
int xk_charge(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 n)
{
	struct xk_refusal refusal = { .any = true, .quota = quota };
	u64 used = 0, most;
	u32 i;

	for (i = 0; i < payer->count; i++) {
		most = xk_user_is_bound(payer, i) ? xk_user_most(quota) : U64_MAX;
		if (!xk_user_try(payer->user[i], quota, n, most, &used))
			goto err_users;
	}
	return 0;

err_users:
	refusal.level = i;
	refusal.used = used;
	refusal.wanted = used > U64_MAX - n ? U64_MAX : used + n;
	refusal.most = most;
	while (i--)
		atomic64_sub(n, &payer->user[i]->used[quota]);
	return xk_refuse_level(payer, pool, &refusal);
}

/* Charge something that cannot be refused any more. */
void xk_charge_anyhow(struct xk_payer *payer, u32 quota, u64 n)
{
	u32 i;

	for (i = 0; i < payer->count; i++)
		atomic64_add(n, &payer->user[i]->used[quota]);
}

/* Any lock may be held. */
void xk_uncharge(struct xk_payer *payer, u32 quota, u64 n)
{
	u32 i;

	for (i = 0; i < payer->count; i++)
		WARN_ON_ONCE(atomic64_sub_return(n, &payer->user[i]->used[quota]) < 0);
}

/* ---- comparing ---- */

/* Do the payers have a user in common, other than root? */
bool xk_payers_meet(const struct xk_payer *a, const struct xk_payer *b)
{
	u32 i, j;

	for (i = 0; i < a->count; i++)
		for (j = 0; j < b->count; j++)
			if (a->user[i] == b->user[j] &&
			    !uid_eq(a->user[i]->uid, GLOBAL_ROOT_UID))
				return true;
	return false;
}

/* Do both payers have equal users, and are both unlimited or both limited? */
bool xk_payers_are_one(const struct xk_payer *a, const struct xk_payer *b)
{
	u32 i;

	if (a == b)
		return true;
	if (a->count != b->count || a->unlimited != b->unlimited)
		return false;
	for (i = 0; i < a->count; i++)
		if (a->user[i] != b->user[i])
			return false;
	return true;
}

/* ---- reading ---- */

/* Does one of the payer's users have more than it may have, or would it with @n more? */
bool xk_user_exceeds(const struct xk_payer *payer, u32 quota, u64 n)
{
	u32 i;

	for (i = 0; i < payer->count; i++)
		if (xk_user_is_bound(payer, i) &&
		    atomic64_read(&payer->user[i]->used[quota]) + n > xk_user_most(quota))
			return true;
	return false;
}

u64 xk_user_used(const struct xk_payer *payer, u32 quota)
{
	return atomic64_read(&payer->user[0]->used[quota]);
}

kuid_t xk_payer_uid(const struct xk_payer *payer, u32 level)
{
	return payer->user[min(level, payer->count - 1)]->uid;
}

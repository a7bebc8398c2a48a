// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payers: which users pay for what a process makes.
 *
 * A file of /dev/xmem has a *payer*, made when it is opened: the user that opens it, the owners of
 * all user namespaces that it is in, and all users together. Everything that is made through that
 * file is charged to each of these, and refused if one of them would have too much. So a
 * user that has thousands of uids in a namespace of its own gets no more than with one uid.
 *
 * The user that makes an object pays for it, even while others keep it. Every charged object has a
 * reference to its payer, so a payer lives until nothing is charged to it any more. root, and a
 * process with CAP_SYS_RESOURCE, are charged, but only the limits of all users together refuse
 * them something.
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

static bool xk_payer_is_bound(const struct xk_payer *payer, const struct xk_user *user)
{
	return user == &xk_everybody ||
	       (!payer->unlimited && !uid_eq(user->uid, GLOBAL_ROOT_UID));
}

/*
 * A user that owns several of the namespaces, or also opens the file, pays once. The users come
 * from the innermost one outwards.
 */
static bool xk_payer_add(struct xk_payer *payer, kuid_t uid)
{
	u32 i;

	for (i = 0; i < payer->count && !uid_eq(payer->user[i]->uid, uid); i++)
		;
	if (i == payer->count) {
		payer->user[i] = xk_user_get(uid);
		if (!payer->user[i])
			return false;
		payer->count++;
	}
	if (!uid_eq(uid, GLOBAL_ROOT_UID))
		payer->last = i;
	return true;
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
	u32 most = 2;
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
	if (!all) {
		xk_payer_put(payer);
		return NULL;
	}
	xk_user_ref(&xk_everybody);
	payer->user[payer->count++] = &xk_everybody;
	return payer;
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
	own->last = payer->last;
	for (; own->count < payer->count; own->count++) {
		own->user[own->count] = payer->user[own->count];
		xk_user_ref(own->user[own->count]);
	}
	return own;
}

/* ---- refusing ---- */

static int xk_refuse_level(struct xk_payer *payer, const struct xk_pool *pool,
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

/* Fill in the refusal if this user of the payer would have too much with @n more. */
static void xk_check_user(const struct xk_payer *payer, u32 level, u32 quota, u64 n,
			  struct xk_refusal *refusal)
{
	const struct xk_user *user = payer->user[level];
	u64 used = user->used[quota], most = xk_user_may_have(user, &quota);

	if (!xk_payer_is_bound(payer, user) || (used <= most && n <= most - used))
		return;
	*refusal = (struct xk_refusal){
		.any = true, .quota = quota, .level = user == &xk_everybody ? 0 : level,
		.used = used, .wanted = used > U64_MAX - n ? U64_MAX : used + n, .most = most,
	};
}

/*
 * Charge @n more in @quota to the users of the payer. -EDQUOT: one of them would have too much.
 * Requests at one moment are charged one after the other, so together they do not exceed a limit.
 */
int xk_charge(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 n)
{
	struct xk_refusal refusal = { .any = false };
	u32 i;

	xa_lock(&xk_users);
	for (i = 0; i < payer->count && !refusal.any; i++)
		xk_check_user(payer, i, quota, n, &refusal);
	for (i = 0; i < payer->count && !refusal.any; i++)
		payer->user[i]->used[quota] += n;
	xa_unlock(&xk_users);
	return refusal.any ? xk_refuse_level(payer, pool, &refusal) : 0;
}

/* Any lock may be held. */
void xk_uncharge(struct xk_payer *payer, u32 quota, u64 n)
{
	u32 i;

	xa_lock(&xk_users);
	for (i = 0; i < payer->count; i++) {
		WARN_ON_ONCE(payer->user[i]->used[quota] < n);
		payer->user[i]->used[quota] -= n;
	}
	xa_unlock(&xk_users);
}

/* ---- reading ---- */

/* How much the payer's user, or all users together, have in a quota of users, and may have. */
kuid_t xk_payer_quota(const struct xk_payer *payer, bool all, u32 quota, u64 *ret_used,
		      u64 *ret_most)
{
	const struct xk_user *user = all ? &xk_everybody : payer->user[0];

	*ret_used = READ_ONCE(user->used[quota]);
	*ret_most = xk_user_most(user, quota);
	return user->uid;
}

kuid_t xk_payer_uid(const struct xk_payer *payer, u32 level)
{
	return payer->user[level]->uid;
}

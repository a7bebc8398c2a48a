// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who pays: how much of what each user has, and what a user may have.
 *
 * A file of /dev/xmem has a *payer*, made when it is opened: the user who opens it, and the owners
 * of all user namespaces that it is in. Whatever is made by that file is counted at each of them,
 * and refused if one of them has as much as it may have. So a user who has thousands of uids in
 * a namespace of its own has no more than with one.
 *
 * Besides, nobody gets the last of what users share (see "shares").
 *
 * Every object that is counted has a reference to its payer, and so a payer lives until nothing is
 * counted at it any more, however long somebody else keeps that. root is counted but not refused,
 * nor is who has CAP_SYS_RESOURCE; limits.c limits all users together.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>

#include "compat.h"
#include "xk.h"
#include "trace.h"

/* ---- what a user may have ---- */

static unsigned long user_max[XK_USER_QUOTAS] = {
	[XMEM_QUOTA_USER_POOLS] = 1024,
	[XMEM_QUOTA_USER_CLIENTS] = 4096,
	[XMEM_QUOTA_USER_SLOTS] = 4 * XMEM_MAX_SLOTS,
	[XMEM_QUOTA_USER_GROUPS] = 4 * XMEM_MAX_GROUPS,
	[XMEM_QUOTA_USER_FILES] = 16384,
	[XMEM_QUOTA_USER_FILE_BYTES] = ULONG_MAX,
	[XMEM_QUOTA_USER_PAGE_BYTES] = 512UL << 20,
	[XMEM_QUOTA_USER_MAPPINGS] = 65536,
};

module_param_named(user_max_pools, user_max[XMEM_QUOTA_USER_POOLS], ulong, 0644);
MODULE_PARM_DESC(user_max_pools, "how many pools a user may have; one that has ended counts until "
		 "its clients' files are closed and its files of drivers released; and how many "
		 "of its pools that have gone may still have a folder in sysfs");
module_param_named(user_max_clients, user_max[XMEM_QUOTA_USER_CLIENTS], ulong, 0644);
MODULE_PARM_DESC(user_max_clients, "how many clients a user may have in all pools");
module_param_named(user_max_slots, user_max[XMEM_QUOTA_USER_SLOTS], ulong, 0644);
MODULE_PARM_DESC(user_max_slots, "how many slots a user may have attached in all pools");
module_param_named(user_max_groups, user_max[XMEM_QUOTA_USER_GROUPS], ulong, 0644);
MODULE_PARM_DESC(user_max_groups, "how many groups of slots a user may have in all pools");
module_param_named(user_max_files, user_max[XMEM_QUOTA_USER_FILES], ulong, 0644);
MODULE_PARM_DESC(user_max_files, "how many payloads a user may have attached in all pools");
module_param_named(user_max_file_bytes, user_max[XMEM_QUOTA_USER_FILE_BYTES], ulong, 0644);
MODULE_PARM_DESC(user_max_file_bytes, "how many bytes the payload files of a user may have; each "
		 "file counts as often as it is attached");
module_param_named(user_max_page_bytes, user_max[XMEM_QUOTA_USER_PAGE_BYTES], ulong, 0644);
MODULE_PARM_DESC(user_max_page_bytes, "how much memory the shared pages of a user may take, in "
		 "bytes: tables of its pools, areas of its clients, groups of its writers");
module_param_named(user_max_mappings, user_max[XMEM_QUOTA_USER_MAPPINGS], ulong, 0644);
MODULE_PARM_DESC(user_max_mappings, "how many mappings of shared pages a user may have");

/* ULONG_MAX: there is no limit. */
u64 xk_user_most(u32 quota)
{
	unsigned long most = READ_ONCE(user_max[quota]);

	return most == ULONG_MAX ? U64_MAX : most;
}

/* The names of all limits, of whatever scope: those of parameters where there is one. */
static const char *const names[XK_QUOTAS] = {
	[XMEM_QUOTA_USER_POOLS] = "user_max_pools",
	[XMEM_QUOTA_USER_CLIENTS] = "user_max_clients",
	[XMEM_QUOTA_USER_SLOTS] = "user_max_slots",
	[XMEM_QUOTA_USER_GROUPS] = "user_max_groups",
	[XMEM_QUOTA_USER_FILES] = "user_max_files",
	[XMEM_QUOTA_USER_FILE_BYTES] = "user_max_file_bytes",
	[XMEM_QUOTA_USER_PAGE_BYTES] = "user_max_page_bytes",
	[XMEM_QUOTA_USER_MAPPINGS] = "user_max_mappings",
	[XMEM_QUOTA_SHARE_POOLS] = "max_pools",
	[XMEM_QUOTA_SHARE_PAGE_BYTES] = "max_bytes",
	[XMEM_QUOTA_SHARE_CLIENTS] = "clients",
	[XMEM_QUOTA_SHARE_GROUPS] = "groups",
	[XMEM_QUOTA_SHARE_FILES] = "max_payloads",
	[XMEM_QUOTA_POOLS] = "max_pools",
	[XMEM_QUOTA_PAGE_BYTES] = "max_bytes",
	[XMEM_QUOTA_POOL_CLIENTS] = "clients",
	[XMEM_QUOTA_POOL_FILES] = "max_payloads",
	[XMEM_QUOTA_POOL_DEVICE_FILES] = "max_device_files",
	[XMEM_QUOTA_POOL_PAGE_BYTES] = "max_pool_bytes",
	[XMEM_QUOTA_POOL_DEVICES] = "devices",
	[XMEM_QUOTA_CLIENT_MAPPINGS] = "mappings",
	[XMEM_QUOTA_CLIENT_LIMBO] = "max_limbo_bytes",
};

const char *xk_quota_name(u32 quota)
{
	return names[xm_index(quota, XK_QUOTAS)];
}

/* ---- users ---- */

struct xk_user {
	struct hlist_node node;		/* users_lock */
	u32 refs;			/* users_lock */
	kuid_t uid;			/* immutable */
	atomic64_t used[XK_USER_QUOTAS];
	atomic_t folders;		/* of its dead pools, that sysfs has yet to let go */
	wait_queue_head_t folder_queue;	/* who waits for one of them to go */
};

#define XK_USER_BITS	6
#define XK_USER_LINE	320		/* bytes of a line that tells of one, or more */

static DEFINE_SPINLOCK(users_lock);
static struct hlist_head users[1 << XK_USER_BITS];	/* users_lock; by uid */

static struct hlist_head *xk_users_of(kuid_t uid)
{
	return &users[hash_32(__kuid_val(uid), XK_USER_BITS)];
}

static struct xk_user *xk_user_find(kuid_t uid)
{
	struct xk_user *user;

	lockdep_assert_held(&users_lock);
	hlist_for_each_entry(user, xk_users_of(uid), node)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/* With a reference. NULL: no memory. */
static struct xk_user *xk_user_get(kuid_t uid)
{
	struct xk_user *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT), *user;

	if (!new)
		return NULL;
	new->uid = uid;
	init_waitqueue_head(&new->folder_queue);
	spin_lock(&users_lock);
	user = xk_user_find(uid);
	if (!user) {
		user = new;
		hlist_add_head(&user->node, xk_users_of(uid));
		new = NULL;
	}
	user->refs++;
	spin_unlock(&users_lock);
	kfree(new);
	return user;
}

static void xk_user_put(struct xk_user *user)
{
	bool last;
	u32 i;

	spin_lock(&users_lock);
	last = !--user->refs;
	if (last)
		hlist_del(&user->node);
	spin_unlock(&users_lock);
	if (!last)
		return;
	for (i = 0; i < XK_USER_QUOTAS; i++)
		WARN(atomic64_read(&user->used[i]), "xmem: %s: %lld are left", names[i],
		     (long long)atomic64_read(&user->used[i]));
	WARN_ON(atomic_read(&user->folders));
	kfree(user);
}

bool xk_no_users(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(users); i++)
		if (!hlist_empty(&users[i]))
			return false;
	return true;
}

/* ---- payers ---- */

struct xk_payer {
	struct kref kref;
	bool unlimited;			/* immutable, as all but refusal, asker and their lock */
	bool joins;			/* of a file of the device, by which any thread may join */
	spinlock_t lock;
	struct xk_refusal refusal;	/* the last one */
	struct pid *asker;		/* if @joins: the thread that it was told; or NULL */
	u32 count;
	struct xk_user *user[];		/* [0] has opened the file; the others own namespaces */
};

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

/* Who owns several of the namespaces, or is the user itself, pays once. */
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

/* For up to @most users, and with none. NULL: no memory. */
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

/* For a file of the device that the caller opens. NULL: no memory. */
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
 * For a client that joins by a file with that payer: the same users pay, but what the client is
 * refused nobody else is told. NULL: no memory.
 */
struct xk_payer *xk_payer_of_client(const struct xk_payer *payer)
{
	struct xk_payer *own = xk_payer_alloc(payer->count);

	if (!own)
		return NULL;
	own->unlimited = payer->unlimited;
	spin_lock(&users_lock);
	for (; own->count < payer->count; own->count++) {
		own->user[own->count] = payer->user[own->count];
		own->user[own->count]->refs++;
	}
	spin_unlock(&users_lock);
	return own;
}

/* ---- refusing ---- */

/* Notes what the payer is refused, for whom it asks (XMEM_IOC_QUOTA). @pool: or NULL. */
static int xk_refuse_level(struct xk_payer *payer, const struct xk_pool *pool,
			   const struct xk_refusal *refusal)
{
	struct pid *before = NULL;

	trace_xmem_limit(pool ? (s32)pool->number : XK_NO_POOL, names[refusal->quota],
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

/* There are @used, and @wanted would be too many. -EDQUOT. */
int xk_refuse(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 used, u64 wanted,
	      u64 most)
{
	const struct xk_refusal refusal = {
		.any = true, .quota = quota, .used = used, .wanted = wanted, .most = most,
	};

	return xk_refuse_level(payer, pool, &refusal);
}

/* What the caller was refused last, if nobody else has been since then. */
void xk_refused(struct xk_payer *payer, struct xk_refusal *ret)
{
	spin_lock(&payer->lock);
	*ret = payer->refusal;
	if (payer->joins && payer->asker != task_pid(current))
		ret->any = false;
	spin_unlock(&payer->lock);
}

/* A join by a file with that payer has failed, because the client was refused something. */
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

static bool xk_user_is_bound(const struct xk_payer *payer, u32 level)
{
	return !payer->unlimited && !uid_eq(payer->user[level]->uid, GLOBAL_ROOT_UID);
}

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

/* Counts @n more of the payer's in @quota. -EDQUOT: one of its users would have too many. */
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

/* The same for what cannot be refused any more. */
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

/* ---- folders of dead pools ---- */

/*
 * The folder of a pool in sysfs goes when nobody is inside a read of it any more, and a reader that
 * a control group throttles stays there for as long as it likes. Such a pool is over and counts
 * as none, but its folder takes memory and a thread of the kernel. So its maker makes no new pool
 * while it has as many such folders as it may have pools. They have a count of their own because
 * they go a moment later than the pool: who opens a pool as soon as its last one is closed waits
 * for that moment, instead of being refused.
 */
#define XK_FOLDERS_PATIENCE	(2 * HZ)

/* The folder of a pool that the payer has made is being removed. Any lock may be held. */
void xk_folder_goes(struct xk_payer *payer)
{
	u32 i;

	for (i = 0; i < payer->count; i++)
		atomic_inc(&payer->user[i]->folders);
}

/* It has been. The caller has a reference to the payer. */
void xk_folder_gone(struct xk_payer *payer)
{
	u32 i;

	for (i = 0; i < payer->count; i++) {
		WARN_ON_ONCE(atomic_dec_return(&payer->user[i]->folders) < 0);
		wake_up_all(&payer->user[i]->folder_queue);
	}
}

/* How many there are of one of its users, if these are too many for another pool; or 0. */
static u32 xk_folders_too_many(const struct xk_payer *payer, u32 level)
{
	u32 folders = atomic_read(&payer->user[level]->folders);

	if (!xk_user_is_bound(payer, level) || folders < xk_user_most(XMEM_QUOTA_USER_POOLS))
		return 0;
	return folders;
}

/*
 * The payer's user is going to make a pool. -EDQUOT: one of its users has too many folders that are
 * being removed, and goes on to have them for a while. -EINTR: the caller is killed.
 */
int xk_folders_wait(struct xk_payer *payer)
{
	struct xk_refusal refusal = { .any = true, .quota = XMEM_QUOTA_USER_POOLS };
	long left = XK_FOLDERS_PATIENCE;
	u32 i, folders = 0;

	for (i = 0; i < payer->count && left > 0; i++)
		left = wait_event_killable_timeout(payer->user[i]->folder_queue,
						   !(folders = xk_folders_too_many(payer, i)),
						   left);
	if (left)
		return left < 0 ? -EINTR : 0;
	refusal.level = i - 1;
	refusal.used = folders;
	refusal.wanted = folders + 1ULL;
	refusal.most = xk_user_most(XMEM_QUOTA_USER_POOLS);
	return xk_refuse_level(payer, NULL, &refusal);
}

/* ---- shares ---- */

/*
 * What all users share nobody uses up alone: a user gets more of it only if afterwards as much is
 * left as it has itself. So one has at most half of it, and whoever comes later still gets some.
 */
static u64 xk_share_most(u64 has, u64 free)
{
	return has + (free > has ? (free - has) / 2 : 0);
}

/*
 * In a module for tests it takes long from the look at what a user has until that has more: so whom
 * nothing keeps from looking meanwhile will do so (exhaust K8_shares_hold_for_many_at_once).
 */
static void xk_share_slowly(void)
{
#ifdef XMEM_DEBUG
	mdelay(1);
#endif
}

/*
 * @n more of what the user has in @quota: @free are left of what all have. -EDQUOT. Who asks counts
 * them before another asks (limits.c).
 */
int xk_share(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u32 share, u64 n,
	     u64 free)
{
	u32 i;

	for (i = 0; i < payer->count; i++) {
		u64 has = atomic64_read(&payer->user[i]->used[quota]);
		const struct xk_refusal refusal = {
			.any = true, .quota = share, .level = i, .used = has, .wanted = has + n,
			.most = xk_share_most(has, free),
		};

		if (!xk_user_is_bound(payer, i))
			continue;
		if (refusal.wanted > refusal.most)
			return xk_refuse_level(payer, pool, &refusal);
		xk_share_slowly();
	}
	return 0;
}

/* Is one of its users, but root, among those of the other? */
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

/* Does each of its users pay by the other, too, and is refused by the same rules? */
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

/*
 * Is its user neither the pool's owner nor the one who has paid for it first? These are two where
 * somebody has made it by a file of the device that another user has opened.
 */
bool xk_is_guest(const struct xk_pool *pool, const struct xk_payer *payer)
{
	return xk_user_is_bound(payer, 0) && !uid_eq(payer->user[0]->uid, pool->owner) &&
	       !xk_payers_meet(pool->payer, payer);
}

/*
 * A guest that has @has wants one more of what the pool has @most of, and @taken are taken: -EDQUOT
 * if it leaves less than it has then. But everybody may have one.
 */
int xk_share_of_pool(struct xk_payer *payer, const struct xk_pool *pool, u32 share, u32 has,
		     u32 taken, u32 most)
{
	u32 left = most > taken ? most - taken : 0, limit = xk_share_most(has, left);

	if (has < max(limit, 1U))
		return 0;
	return xk_refuse(payer, pool, share, has, has + 1ULL, max(limit, 1U));
}

/* ---- looking ---- */

/* Has one of its users more than it may have, or would it with @n more? */
bool xk_user_is_over(const struct xk_payer *payer, u32 quota, u64 n)
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

static int xk_user_print(const struct xk_user *user, char *page, int at)
{
	static const char *const words[XK_USER_QUOTAS] = {
		[XMEM_QUOTA_USER_POOLS] = "pools",
		[XMEM_QUOTA_USER_CLIENTS] = "clients",
		[XMEM_QUOTA_USER_SLOTS] = "slots",
		[XMEM_QUOTA_USER_GROUPS] = "groups",
		[XMEM_QUOTA_USER_FILES] = "files",
		[XMEM_QUOTA_USER_FILE_BYTES] = "file_bytes",
		[XMEM_QUOTA_USER_PAGE_BYTES] = "page_bytes",
		[XMEM_QUOTA_USER_MAPPINGS] = "mappings",
	};
	int n = sysfs_emit_at(page, at, "uid=%u", from_kuid_munged(current_user_ns(), user->uid));
	u32 i;

	for (i = 0; i < XK_USER_QUOTAS; i++)
		n += sysfs_emit_at(page, at + n, " %s=%lld", words[i],
				   (long long)atomic64_read(&user->used[i]));
	return n + sysfs_emit_at(page, at + n, "\n");
}

/*
 * A line for the reader, or for root one for each user who has a file open or something left; as
 * many as a page of sysfs has room for.
 */
ssize_t xk_users_print(char *page)
{
	const bool all = ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
	const kuid_t me = current_euid();
	const struct xk_user *user;
	u32 i, more = 0;
	int n = 0;

	spin_lock(&users_lock);
	for (i = 0; i < ARRAY_SIZE(users); i++)
		hlist_for_each_entry(user, &users[i], node) {
			if (!all && !uid_eq(user->uid, me))
				continue;
			if (n > PAGE_SIZE - XK_USER_LINE)
				more++;
			else
				n += xk_user_print(user, page, n);
		}
	spin_unlock(&users_lock);
	if (more)
		n += sysfs_emit_at(page, n, "more=%u\n", more);
	return n;
}

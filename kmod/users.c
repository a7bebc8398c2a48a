// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: what each of them may have, and how much it has. payers.c says which users pay for what a
 * process makes, and charges them.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/wait.h>

#include "users.h"

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
MODULE_PARM_DESC(user_max_pools, "how many pools a user may have; a pool that has ended counts "
		 "until its clients' files are closed and its drivers' files released; also how "
		 "many of its dead pools may still have a folder in sysfs");
module_param_named(user_max_clients, user_max[XMEM_QUOTA_USER_CLIENTS], ulong, 0644);
MODULE_PARM_DESC(user_max_clients, "how many clients a user may have in all pools");
module_param_named(user_max_slots, user_max[XMEM_QUOTA_USER_SLOTS], ulong, 0644);
MODULE_PARM_DESC(user_max_slots, "how many slots a user may have attached in all pools");
module_param_named(user_max_groups, user_max[XMEM_QUOTA_USER_GROUPS], ulong, 0644);
MODULE_PARM_DESC(user_max_groups, "how many groups of slots a user may have in all pools");
module_param_named(user_max_files, user_max[XMEM_QUOTA_USER_FILES], ulong, 0644);
MODULE_PARM_DESC(user_max_files, "how many payloads a user may have attached in all pools");
module_param_named(user_max_file_bytes, user_max[XMEM_QUOTA_USER_FILE_BYTES], ulong, 0644);
MODULE_PARM_DESC(user_max_file_bytes, "how many bytes the payload files of a user may have; a "
		 "file counts once for each attach");
module_param_named(user_max_page_bytes, user_max[XMEM_QUOTA_USER_PAGE_BYTES], ulong, 0644);
MODULE_PARM_DESC(user_max_page_bytes, "how much memory the shared pages of a user may take, in "
		 "bytes: tables of its pools, areas of its clients, groups of its writers");
module_param_named(user_max_mappings, user_max[XMEM_QUOTA_USER_MAPPINGS], ulong, 0644);
MODULE_PARM_DESC(user_max_mappings, "how many mappings of shared pages a user may have");

/* The limit of a user in @quota. U64_MAX: there is no limit. */
u64 xk_user_most(u32 quota)
{
	unsigned long most = READ_ONCE(user_max[quota]);

	return most == ULONG_MAX ? U64_MAX : most;
}

/* The names of all limits, of every scope: the name of the parameter where there is one. */
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
};

const char *xk_quota_name(u32 quota)
{
	return names[xm_index(quota, XK_QUOTAS)];
}

/* ---- users ---- */

#define XK_USER_BITS	6
#define XK_USER_LINE	320		/* at least as long as the line of a user */

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

struct xk_user *xk_user_get(kuid_t uid)
{
	struct xk_user *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT), *user;

	if (!new)
		return NULL;
	new->uid = uid;
	init_waitqueue_head(&new->folder_queue);
	INIT_LIST_HEAD(&new->ends);
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

void xk_user_ref(struct xk_user *user)
{
	spin_lock(&users_lock);
	user->refs++;
	spin_unlock(&users_lock);
}

void xk_user_put(struct xk_user *user)
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
		WARN(atomic64_read(&user->used[i]), "xmem: %s: %lld are still charged", names[i],
		     (long long)atomic64_read(&user->used[i]));
	WARN_ON(atomic_read(&user->folders) || !list_empty(&user->ends));
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

/* ---- the list ---- */

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
 * Print a line for the reader's user, or for root a line for each user that has a file open or is
 * still charged for something; as many as a page of sysfs has room for.
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

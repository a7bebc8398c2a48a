// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: what each of them may have, what all of them may have together, and how much they have.
 * payers.c says which users pay for what a process makes, and charges them.
 *
 * The limits are parameters of the module. EDQUOT tells a caller that a limit is reached, and the
 * request quota tells which one. Parameters may change at any time, under no lock, so they are read
 * with READ_ONCE.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "users.h"

/* ---- what users may have ---- */

static unsigned long user_max[XK_USER_QUOTAS] = {
	[XMEM_QUOTA_USER_POOLS] = 1024,
	[XMEM_QUOTA_USER_FILES] = 16384,
	[XMEM_QUOTA_USER_FILE_BYTES] = ULONG_MAX,
	[XMEM_QUOTA_USER_PAGE_BYTES] = 512UL << 20,
};

module_param_named(user_max_pools, user_max[XMEM_QUOTA_USER_POOLS], ulong, 0644);
MODULE_PARM_DESC(user_max_pools, "how many pools a user may have made; a pool that has ended "
		 "counts until its folder in sysfs is removed");
module_param_named(user_max_files, user_max[XMEM_QUOTA_USER_FILES], ulong, 0644);
MODULE_PARM_DESC(user_max_files, "how many payloads a user may have attached in all pools; a file "
		 "of a GPU's driver counts until it is released");
module_param_named(user_max_file_bytes, user_max[XMEM_QUOTA_USER_FILE_BYTES], ulong, 0644);
MODULE_PARM_DESC(user_max_file_bytes, "how many bytes the payload files of a user may have; a "
		 "file counts once for each attach");
module_param_named(user_max_page_bytes, user_max[XMEM_QUOTA_USER_PAGE_BYTES], ulong, 0644);
MODULE_PARM_DESC(user_max_page_bytes, "how much memory the shared pages of a user may take, in "
		 "bytes: tables of its pools, areas of its clients, groups of its writers");

static unsigned long max_of_all[XK_USER_QUOTAS] = {
	[XMEM_QUOTA_USER_POOLS] = 4096,
	[XMEM_QUOTA_USER_FILES] = ULONG_MAX,
	[XMEM_QUOTA_USER_FILE_BYTES] = ULONG_MAX,
	[XMEM_QUOTA_USER_PAGE_BYTES] = 2048UL << 20,
};

module_param_named(max_pools, max_of_all[XMEM_QUOTA_USER_POOLS], ulong, 0644);
MODULE_PARM_DESC(max_pools, "how many pools all users together may have");
module_param_named(max_bytes, max_of_all[XMEM_QUOTA_USER_PAGE_BYTES], ulong, 0644);
MODULE_PARM_DESC(max_bytes, "how much memory the shared pages of all pools may take, in bytes");

/* The names of all limits, of every scope: the name of the parameter where there is one. */
static const char *const names[XK_QUOTAS] = {
	[XMEM_QUOTA_USER_POOLS] = "user_max_pools",
	[XMEM_QUOTA_USER_FILES] = "user_max_files",
	[XMEM_QUOTA_USER_FILE_BYTES] = "user_max_file_bytes",
	[XMEM_QUOTA_USER_PAGE_BYTES] = "user_max_page_bytes",
	[XMEM_QUOTA_SHARE_PAGE_BYTES] = "max_bytes",
	[XMEM_QUOTA_POOLS] = "max_pools",
	[XMEM_QUOTA_PAGE_BYTES] = "max_bytes",
	[XMEM_QUOTA_POOL_CLIENTS] = "clients",
	[XMEM_QUOTA_POOL_DEVICES] = "devices",
	[XMEM_QUOTA_CLIENT_MAPPINGS] = "mappings",
};

/* NULL: there is no such limit. */
const char *xk_quota_name(u32 quota)
{
	return names[xm_index(quota, XK_QUOTAS)];
}

DEFINE_XARRAY_FLAGS(xk_users, XA_FLAGS_ACCOUNT);
struct xk_user xk_everybody = { .refs = 1, .uid = INVALID_UID };

/* The limit of the user in a quota of users, or of all users together. U64_MAX: there is none. */
u64 xk_user_most(const struct xk_user *user, u32 quota)
{
	unsigned long most = READ_ONCE((user == &xk_everybody ? max_of_all : user_max)[quota]);

	return most == ULONG_MAX ? U64_MAX : most;
}

/*
 * One user must not use up the bytes that all users share. A user gets more bytes only if
 * afterwards the free bytes are at least as many as the bytes of this user. So one user has at most
 * half of all bytes, and a user that comes later still gets some.
 */
static u64 xk_user_share(const struct xk_user *user)
{
	u64 has = user->used[XMEM_QUOTA_USER_PAGE_BYTES];
	u64 all = xk_everybody.used[XMEM_QUOTA_USER_PAGE_BYTES];
	u64 most = xk_user_most(&xk_everybody, XMEM_QUOTA_USER_PAGE_BYTES);
	u64 free = most > all ? most - all : 0;

	return has + (free > has ? (free - has) / 2 : 0);
}

/* How much the user may have now. *@quota becomes the number of the limit that decides this. */
u64 xk_user_may_have(const struct xk_user *user, u32 *quota)
{
	u64 most = xk_user_most(user, *quota), share;

	lockdep_assert_held(&xk_users.xa_lock);
	if (user == &xk_everybody) {
		*quota = *quota == XMEM_QUOTA_USER_POOLS ? XMEM_QUOTA_POOLS : XMEM_QUOTA_PAGE_BYTES;
	} else if (*quota == XMEM_QUOTA_USER_PAGE_BYTES) {
		share = xk_user_share(user);
		if (share < most) {
			*quota = XMEM_QUOTA_SHARE_PAGE_BYTES;
			return share;
		}
	}
	return most;
}

/* ---- users ---- */

#define XK_USER_LINE	160		/* at least as long as the line of a user */

work_func_t xk_user_drop_work;

struct xk_user *xk_user_get(kuid_t uid)
{
	struct xk_user *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT), *user;

	if (!new)
		return NULL;
	new->uid = uid;
	init_waitqueue_head(&new->owed_queue);
	INIT_WORK(&new->drops.work, xk_user_drop_work);
	xa_lock(&xk_users);	/* an allocation gives it up meanwhile */
	user = __xa_cmpxchg(&xk_users, __kuid_val(uid), NULL, new, GFP_KERNEL);
	if (!user)
		swap(user, new);
	if (!xa_is_err(user))
		user->refs++;
	xa_unlock(&xk_users);
	kfree(new);
	return xa_is_err(user) ? NULL : user;
}

void xk_user_ref(struct xk_user *user)
{
	xa_lock(&xk_users);
	user->refs++;
	xa_unlock(&xk_users);
}

static bool xk_user_has_nothing(const struct xk_user *user)
{
	return !memchr_inv(user->used, 0, sizeof(user->used));
}

void xk_user_put(struct xk_user *user)
{
	bool last;

	xa_lock(&xk_users);
	last = !--user->refs;
	if (last)
		__xa_erase(&xk_users, __kuid_val(user->uid));
	xa_unlock(&xk_users);
	if (!last)
		return;
	WARN_ON(!xk_user_has_nothing(user) || atomic_read(&user->owed));
	kfree(user);
}

/* Has everything been uncharged? The module checks this when it is unloaded. */
bool xk_nothing_charged(void)
{
	return xa_empty(&xk_users) && xk_user_has_nothing(&xk_everybody);
}

/* ---- the list ---- */

static int xk_user_print(const struct xk_user *user, char *page, int at)
{
	static const char *const words[XK_USER_QUOTAS] = {
		[XMEM_QUOTA_USER_POOLS] = "pools",
		[XMEM_QUOTA_USER_FILES] = "files",
		[XMEM_QUOTA_USER_FILE_BYTES] = "file_bytes",
		[XMEM_QUOTA_USER_PAGE_BYTES] = "page_bytes",
	};
	int n = sysfs_emit_at(page, at, "uid=%u", from_kuid_munged(current_user_ns(), user->uid));
	u32 i;

	for (i = 0; i < XK_USER_QUOTAS; i++)
		if (words[i])
			n += sysfs_emit_at(page, at + n, " %s=%llu", words[i], user->used[i]);
	return n + sysfs_emit_at(page, at + n, "\n");
}

/*
 * Print a line for the reader's user. For root, print a line for each user that has a file open or
 * is still charged for something, as long as the page of sysfs has room, and then the number of
 * users that had no room. Others may take the lock after each user, because there may be very many.
 */
ssize_t xk_users_print(char *page)
{
	const bool all = ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
	const unsigned long me = __kuid_val(current_euid());
	unsigned long uid = all ? 0 : me;
	const struct xk_user *user;
	u32 more = 0;
	int n = 0;

	do {
		cond_resched();
		xa_lock(&xk_users);
		user = xa_find(&xk_users, &uid, all ? ULONG_MAX : me, XA_PRESENT);
		if (user && n > PAGE_SIZE - XK_USER_LINE)
			more++;
		else if (user)
			n += xk_user_print(user, page, n);
		xa_unlock(&xk_users);
		uid++;
	} while (user);
	if (more)
		n += sysfs_emit_at(page, n, "more=%u\n", more);
	return n;
}

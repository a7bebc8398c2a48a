// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resources that users share: no user gets the last of them. And the folders of a user's dead
 * pools: a user that has too many of them waits before it makes another pool.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "users.h"

/* ---- folders of dead pools ---- */

/*
 * The folder of a pool in sysfs is removed when nobody reads in it any more, and a reader that a
 * control group throttles may stay there for any time. Such a pool counts in no limit, but its
 * folder takes memory and a kernel thread. So a user makes no new pool while it has as many such
 * folders as it may have pools. They are counted separately because a folder goes a moment later
 * than its pool: a process that makes a pool as soon as its last one is closed waits for that
 * moment instead of being refused.
 */
#define XK_FOLDERS_PATIENCE	(2 * HZ)

/* A folder of a pool of the payer is being removed. Any lock may be held. */
void xk_folder_charge(struct xk_payer *payer)
{
	u32 i;

	for (i = 0; i < payer->count; i++)
		atomic_inc(&payer->user[i]->folders);
}

/* That folder has been removed. The caller has a reference to the payer. */
void xk_folder_uncharge(struct xk_payer *payer)
{
	u32 i;

	for (i = 0; i < payer->count; i++) {
		WARN_ON_ONCE(atomic_dec_return(&payer->user[i]->folders) < 0);
		wake_up_all(&payer->user[i]->folder_queue);
	}
}

/*
 * The number of such folders of one of the payer's users, if they are too many for another pool;
 * else 0.
 */
static u32 xk_folders_too_many(const struct xk_payer *payer, u32 level)
{
	u32 folders = atomic_read(&payer->user[level]->folders);

	if (!xk_user_is_bound(payer, level) || folders < xk_user_most(XMEM_QUOTA_USER_POOLS))
		return 0;
	return folders;
}

/*
 * Wait before the payer's user makes a pool. -EDQUOT: one of its users still has too many folders
 * that are being removed. -EINTR: the caller is killed.
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
 * No user uses up alone what all users share: a user gets more only if after that at least as much
 * is left as it has. So one user has at most half of it, and a user that comes later still gets
 * some.
 */
static u64 xk_share_most(u64 has, u64 free)
{
	return has + (free > has ? (free - has) / 2 : 0);
}

/*
 * In a test module there is a long time between the check of a user's share and its counting. So
 * requests that no lock keeps out will check meanwhile (exhaust K8_shares_hold_for_many_at_once).
 */
static void xk_share_slowly(void)
{
#ifdef XMEM_DEBUG
	mdelay(1);
#endif
}

/*
 * May the payer's users have @n more of what they have in @quota, while @free are left of what all
 * users share? -EDQUOT: no. The caller counts them before another caller asks (limits.c).
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

/*
 * Is the payer's user a guest, that is neither the pool's owner nor the user that pays for the
 * pool? These two differ if the owner made it through a file of the device that another user has
 * opened.
 */
bool xk_is_guest(const struct xk_pool *pool, const struct xk_payer *payer)
{
	return xk_user_is_bound(payer, 0) && !uid_eq(payer->user[0]->uid, pool->owner) &&
	       !xk_payers_meet(pool->payer, payer);
}

/*
 * A guest that has @has wants one more of what the pool has @most of, of which @taken are taken.
 * -EDQUOT: it would leave less than it then has. But every guest may have one.
 */
int xk_share_of_pool(struct xk_payer *payer, const struct xk_pool *pool, u32 share, u32 has,
		     u32 taken, u32 most)
{
	u32 left = most > taken ? most - taken : 0, limit = xk_share_most(has, left);

	if (has < max(limit, 1U))
		return 0;
	return xk_refuse(payer, pool, share, has, has + 1ULL, max(limit, 1U));
}

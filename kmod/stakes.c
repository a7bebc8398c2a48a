// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stakes: for which users a pool counts as one of theirs.
 *
 * A user that has a client's file, a file of poll_fd, or a descriptor of a pool keeps the pool, or
 * what is left of it, no matter which user made it. So the pool counts for each such user, for as
 * long as the user keeps it. For its maker it counts no longer than for others; otherwise a guest
 * could keep it at the maker's expense. One of these users pays for the pool's table; at first its
 * maker does.
 *
 * A user is known by its payer: the payer of the file of /dev/xmem through which the client was
 * made, or of the client that made the descriptor. If the user passes a file on, that file still
 * counts for it.
 */
#include <linux/slab.h>

#include "xk.h"

struct xk_stake {
	struct list_head node;		/* stakes_lock, like count */
	u32 count;			/* of what keeps the pool for the payer's user */
	struct xk_payer *payer;		/* with a reference; immutable */
};

static DEFINE_SPINLOCK(stakes_lock);

static struct xk_stake *xk_stake_of(const struct xk_pool *pool, const struct xk_payer *payer)
{
	struct xk_stake *stake;

	lockdep_assert_held(&stakes_lock);
	list_for_each_entry(stake, &pool->stakes, node)
		if (xk_payers_are_one(stake->payer, payer))
			return stake;
	return NULL;
}

static void xk_stake_free(struct xk_stake *stake)
{
	xk_uncharge(stake->payer, XMEM_QUOTA_USER_POOLS, 1);
	xk_payer_put(stake->payer);
	kfree(stake);
}

/* Make a stake that nobody knows of yet; the payer has been charged for it. NULL: no memory. */
static struct xk_stake *xk_stake_alloc(struct xk_payer *payer)
{
	struct xk_stake *stake = kzalloc(sizeof(*stake), GFP_KERNEL_ACCOUNT);

	if (!stake)
		return NULL;
	stake->payer = xk_payer_get(payer);
	stake->count = 1;
	return stake;
}

/* Make a stake, and charge the payer for it. */
static struct xk_stake *xk_stake_new(struct xk_pool *pool, struct xk_payer *payer)
{
	int err = xk_charge_stake(pool, payer);
	struct xk_stake *stake;

	if (err)
		return ERR_PTR(err);
	stake = xk_stake_alloc(payer);
	if (stake)
		return stake;
	xk_uncharge(payer, XMEM_QUOTA_USER_POOLS, 1);
	return ERR_PTR(-ENOMEM);
}

/*
 * The stake of a pool's maker, which has been charged for it (xk_charge_pool). Nobody else knows
 * the pool. NULL: no memory, and the maker is not charged any more.
 */
struct xk_stake *xk_stake_first(struct xk_pool *pool)
{
	struct xk_stake *stake = xk_stake_alloc(pool->payer);

	if (stake)
		list_add_tail(&stake->node, &pool->stakes);
	else
		xk_uncharge(pool->payer, XMEM_QUOTA_USER_POOLS, 1);
	return stake;
}

/*
 * The payer has one more thing that keeps the pool. -EDQUOT: it is the first one, and its user has
 * as many pools as it may have.
 */
struct xk_stake *xk_stake_take(struct xk_pool *pool, struct xk_payer *payer)
{
	struct xk_stake *stake, *new = NULL;

	spin_lock(&stakes_lock);
	stake = xk_stake_of(pool, payer);
	if (stake)
		stake->count++;
	spin_unlock(&stakes_lock);
	if (stake)
		return stake;
	new = xk_stake_new(pool, payer);
	if (IS_ERR(new))
		return new;
	spin_lock(&stakes_lock);
	stake = xk_stake_of(pool, payer);
	if (stake)
		stake->count++;
	else
		list_add_tail(&new->node, &pool->stakes);
	spin_unlock(&stakes_lock);
	if (!stake)
		return new;
	xk_stake_free(new);
	return stake;
}

/*
 * The user that paid for the table does not keep the pool any more; another one does, and pays from
 * now on.
 */
static void xk_stake_pass_table(struct xk_pool *pool, const struct xk_stake *left)
{
	const struct xk_stake *heir;

	if (!pool->table || !xk_payers_are_one(pool->table->payer, left->payer))
		return;
	heir = list_first_entry_or_null(&pool->stakes, struct xk_stake, node);
	if (heir)
		xk_chunk_pass(pool->table, heir->payer);
}

/*
 * Does the stake count no longer? After a pool's end it counts until files of drivers are released.
 */
static bool xk_stake_is_over(const struct xk_pool *pool, const struct xk_stake *stake)
{
	return !stake->count && (refcount_read(&pool->users) || !READ_ONCE(pool->files));
}

/* The caller has a reference to the pool. Any lock but stakes_lock may be held. */
void xk_stake_drop(struct xk_pool *pool, struct xk_stake *stake)
{
	bool over;

	spin_lock(&stakes_lock);
	stake->count--;
	over = xk_stake_is_over(pool, stake);
	if (over) {
		list_del(&stake->node);
		xk_stake_pass_table(pool, stake);
	}
	spin_unlock(&stakes_lock);
	if (over)
		xk_stake_free(stake);
}

/* Drop the stakes of a pool that have waited for files of drivers, or all when it is freed. */
void xk_stakes_sweep(struct xk_pool *pool)
{
	struct xk_stake *stake, *next;
	LIST_HEAD(over);

	spin_lock(&stakes_lock);
	list_for_each_entry_safe(stake, next, &pool->stakes, node)
		if (xk_stake_is_over(pool, stake))
			list_move(&stake->node, &over);
	spin_unlock(&stakes_lock);
	list_for_each_entry_safe(stake, next, &over, node)
		xk_stake_free(stake);
}

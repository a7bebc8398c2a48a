// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools: making them, finding them by name, counting their uses, and freeing them. leave.c empties
 * a pool that nobody uses.
 *
 * A name belongs to the user that has made the pool, in one network namespace, like the name of an
 * abstract socket. So nobody can take a name that another user wants. A pool stores the namespace's
 * number and not the namespace itself, which it would keep alive.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "core/access.h"
#include "xk.h"

struct workqueue_struct *xk_wq;
static DEFINE_SPINLOCK(pools_lock);
static DEFINE_XARRAY(pools);		/* pools_lock: all used pools, by serial */
static DEFINE_HASHTABLE(names, 8);	/* pools_lock: the pools that have a name */
static u32 names_seed __read_mostly;
static u64 last_serial;			/* pools_lock */
static DEFINE_IDA(pool_numbers);

/* ---- network namespaces ---- */

static unsigned int xk_net_id;

/* A number for each network namespace, which no other one gets. */
struct xk_net {
	u64 number;
};

static int __net_init xk_net_init(struct net *net)
{
	static atomic64_t last;
	struct xk_net *own = net_generic(net, xk_net_id);

	own->number = atomic64_inc_return(&last);
	return 0;
}

static struct pernet_operations xk_net_ops = {
	.init = xk_net_init,
	.id = &xk_net_id,
	.size = sizeof(struct xk_net),
};

/* The number of the caller's network namespace. */
static u64 xk_net_number(void)
{
	const struct xk_net *own = net_generic(current->nsproxy->net_ns, xk_net_id);

	return own->number;
}

/* ---- init and exit ---- */

int __init xk_pools_init(void)
{
	int err = register_pernet_subsys(&xk_net_ops);

	if (err)
		return err;
	names_seed = get_random_u32();
	/*
	 * For claims.c, whose items wait for nothing, not even for the lock of their pool, because
	 * the number of workers is limited for all pools together. Work that waits for others has
	 * queues of its own: sysfs.c, keep.c.
	 */
	xk_wq = alloc_workqueue("xmem", WQ_UNBOUND, 0);
	if (!xk_wq)
		goto err_net;
	/* With a rescuer (WQ_MEM_RECLAIM), because the end of a client must not wait for memory. */
	xk_end_wq = alloc_workqueue("xmem_end", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!xk_end_wq)
		goto err_wq;
	return 0;

err_wq:
	destroy_workqueue(xk_wq);
err_net:
	unregister_pernet_subsys(&xk_net_ops);
	return -ENOMEM;
}

/* No file is open any more, so no pool is used. Work items of pools may still be queued. */
void xk_pools_exit(void)
{
	/*
	 * First all pools are emptied: until then the exit of a process may ask for end_work
	 * (exited.c), and a work queue that is being destroyed accepts no more work.
	 */
	flush_workqueue(xk_end_wq);
	destroy_workqueue(xk_wq);	/* its last items may still ask for end_work */
	destroy_workqueue(xk_end_wq);
	unregister_pernet_subsys(&xk_net_ops);
	WARN_ON(!xa_empty(&pools));
}

/* ---- making and freeing ---- */

static void xk_pool_init(struct xk_pool *pool)
{
	kref_init(&pool->kref);
	refcount_set(&pool->users, 1);
	INIT_HLIST_NODE(&pool->named);
	init_waitqueue_head(&pool->end_waiters);
	pool->net = xk_net_number();
	xk_lock_prepare(pool);
	mutex_init(&pool->upgrade_lock);
	spin_lock_init(&pool->pages_lock);
	rwlock_init(&pool->look_lock);
}

/* Make the pool table: header and rows, which all clients read and only the host writes. */
static int xk_pool_lay_out(struct xk_pool *pool, const struct xmem_join_request *join)
{
	struct xmem_pool_header header;
	struct xk_chunk *table;
	int err = xm_host_layout(join, PAGE_SIZE, &header);

	if (err)
		return err;
	table = xk_chunk_new(pool, pool->payer, header.groups_offset, XK_TABLE);
	if (IS_ERR(table))
		return PTR_ERR(table);
	memcpy(table->now->view, &header, sizeof(header));
	xm_host_init(&pool->host, table->now->view);
	pool->table = table;
	return xk_look_prepare(pool);
}

/* Free a pool, which may be half made. */
static void xk_pool_free(struct xk_pool *pool)
{
	if (pool->table)
		xk_chunk_free(pool, pool->table);
	xk_look_free(pool);
	kvfree(pool->host.claims);
	kvfree(pool->host.born_ms);
	ida_free(&pool_numbers, pool->number);
	xk_access_free(pool);
	xk_payer_put(pool->payer);
	mutex_destroy(&pool->upgrade_lock);
	mutex_destroy(&pool->lock);
	kvfree(pool);
}

/* Free a pool that only the caller knows, because it could not be made ready. */
void xk_pool_discard(struct xk_pool *pool)
{
	xk_uncharge(pool->payer, XMEM_QUOTA_USER_POOLS, 1);
	xk_pool_free(pool);
}

/*
 * Make a pool with its table and one use, which is the caller's. Higher files prepare their parts
 * of it before the caller lets others find it (xk_pool_enlist).
 */
struct xk_pool *xk_pool_new(const struct xmem_join_request *join, struct xk_payer *payer)
{
	struct xk_pool *pool;
	int err = xk_charge(payer, NULL, XMEM_QUOTA_USER_POOLS, 1);

	if (err)
		return ERR_PTR(err);
	err = -ENOMEM;
	pool = kvzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		goto err_charge;
	err = ida_alloc(&pool_numbers, GFP_KERNEL);
	if (err < 0)
		goto err_struct;
	pool->number = err;
	pool->payer = xk_payer_get(payer);
	xk_pool_init(pool);
	err = xk_access_prepare(pool, join);
	if (!err)
		err = xk_pool_lay_out(pool, join);
	if (!err)
		return pool;
	xk_pool_discard(pool);
	return ERR_PTR(err);

err_struct:
	kvfree(pool);
err_charge:
	xk_uncharge(payer, XMEM_QUOTA_USER_POOLS, 1);
	return ERR_PTR(err);
}

void xk_pool_get(struct xk_pool *pool)
{
	kref_get(&pool->kref);
}

static void xk_pool_release(struct kref *kref)
{
	struct xk_pool *pool = container_of(kref, struct xk_pool, kref);

	WARN_ON(!pool->dead || pool->device);
	xk_pool_free(pool);
}

void xk_pool_put(struct xk_pool *pool)
{
	kref_put(&pool->kref, xk_pool_release);
}

/* ---- use ---- */

/* Take a use, or return -ENOENT if the pool has none left. */
struct xk_pool *xk_pool_get_used(struct xk_pool *pool)
{
	return refcount_inc_not_zero(&pool->users) ? pool : ERR_PTR(-ENOENT);
}

/* The pool has been emptied, and its folder has gone. Its struct and table may stay. */
void xk_pool_uncharge(struct xk_pool *pool)
{
	xk_uncharge(pool->payer, XMEM_QUOTA_USER_POOLS, 1);
	xk_end_left(pool);
}

/* The caller, which has a use, is going to join: if it is the owner, the pool keeps its name. */
void xk_pool_joins(struct xk_pool *pool)
{
	if (xk_access_owns(pool))
		atomic_inc(&pool->owners);
}

/* Drop a use. The last one frees the name at once; end_work then empties the pool. */
void xk_pool_unuse(struct xk_pool *pool)
{
	bool last;

	if (refcount_dec_not_one(&pool->users))
		return;
	spin_lock(&pools_lock);
	xk_end_leaves(pool);	/* before a run of end_work can find that no use is left */
	last = refcount_dec_and_test(&pool->users);
	if (last) {
		hash_del(&pool->named);
		xa_erase(&pools, pool->serial);
	} else {
		xk_end_left(pool);	/* somebody has taken a use meanwhile */
	}
	spin_unlock(&pools_lock);
	if (!last)
		return;
	xk_end_ask(pool, false);
	xk_pool_put(pool);
}

/* ---- descriptors of a pool (pool_fd.c) ---- */

/*
 * The pool of a descriptor, with a use for the caller. -ESHUTDOWN: the pool is drained, or has
 * ended. No use is taken then, not even for a moment, because many of them could keep the pool.
 */
struct xk_pool *xk_pool_of_serial(u64 serial)
{
	struct xk_pool *pool;

	spin_lock(&pools_lock);
	pool = xa_load(&pools, serial);
	if (!pool || pool->drained || !refcount_inc_not_zero(&pool->users))
		pool = ERR_PTR(-ESHUTDOWN);
	spin_unlock(&pools_lock);
	return pool;
}

/*
 * The number of a descriptor's pool. false: the pool is drained, or has ended. A reader of fdinfo
 * may be throttled at any place, so it gets neither a use of the pool nor a reference to it.
 */
bool xk_pool_number(u64 serial, u32 *ret_number)
{
	const struct xk_pool *pool;
	bool any;

	spin_lock(&pools_lock);
	pool = xa_load(&pools, serial);
	any = pool && !pool->drained;
	if (any)
		*ret_number = pool->number;
	spin_unlock(&pools_lock);
	return any;
}

/* There is one descriptor more of the pool. The caller has a use of the pool. */
void xk_pool_descriptor_add(struct xk_pool *pool)
{
	spin_lock(&pools_lock);
	if (!pool->descriptors++ && !pool->drained)
		refcount_inc(&pool->users);
	spin_unlock(&pools_lock);
}

void xk_pool_descriptor_drop(u64 serial)
{
	struct xk_pool *pool;
	bool last;

	spin_lock(&pools_lock);
	pool = xa_load(&pools, serial);
	last = pool && !--pool->descriptors && !pool->drained;
	spin_unlock(&pools_lock);
	if (last)
		xk_pool_unuse(pool);
}

/* From now on nobody joins, and no descriptor keeps the pool: it ends with its last client. */
void xk_pool_close(struct xk_pool *pool)
{
	bool kept;

	lockdep_assert_held(&pool->lock);
	spin_lock(&pools_lock);
	kept = pool->descriptors && !pool->drained;
	WRITE_ONCE(pool->drained, true);
	spin_unlock(&pools_lock);
	if (kept)
		xk_pool_unuse(pool);
}

/* The caller does not join after all, and drops its use. */
void xk_pool_unjoin(struct xk_pool *pool)
{
	if (xk_access_owns(pool))
		atomic_dec(&pool->owners);
	xk_pool_unuse(pool);
}

/* ---- all pools ---- */

/*
 * The pool with the lowest serial above @serial, with a reference but no use: listing pools must
 * not keep a pool alive, nor its name. NULL: there is none. A walk takes the lock anew for each
 * pool.
 */
static struct xk_pool *xk_pool_next(unsigned long serial)
{
	struct xk_pool *pool;

	cond_resched();
	spin_lock(&pools_lock);
	pool = xa_find_after(&pools, &serial, ULONG_MAX, XA_PRESENT);
	if (pool)
		xk_pool_get(pool);
	spin_unlock(&pools_lock);
	return pool;
}

/* Does the caller see the pool, in lists and in sysfs? Its owner does, whatever the mode is. */
bool xk_pool_is_shown(struct xk_pool *pool)
{
	return xk_access_owns(pool) || xk_access_roles(pool);
}

/* Is the pool drained, and has another one taken its name? Then it is not listed any more. */
static bool xk_pool_is_lost(const struct xk_pool *pool)
{
	return READ_ONCE(pool->drained) && xk_header(pool)->name[0] &&
	       hlist_unhashed_lockless(&pool->named);
}

/*
 * The pool with the lowest serial above @serial, in the caller's network namespace, that the caller
 * sees (xk_pool_is_shown) and that is not lost, or NULL. It gets a reference.
 */
struct xk_pool *xk_pool_after(u64 serial)
{
	u64 net = xk_net_number();
	struct xk_pool *pool;

	while ((pool = xk_pool_next(serial))) {
		if (pool->net == net && xk_pool_is_shown(pool) && !xk_pool_is_lost(pool))
			break;
		serial = pool->serial;
		xk_pool_put(pool);
	}
	return pool;
}

/* How many pools xk_pool_after finds for the caller. */
u32 xk_pools_count(void)
{
	struct xk_pool *pool;
	u64 serial = 0;
	u32 count = 0;

	while ((pool = xk_pool_after(serial))) {
		serial = pool->serial;
		count++;
		xk_pool_put(pool);
	}
	return count;
}

/* ---- by name ---- */

/* The owner of the pool that @join is about; invalid if the caller's namespace has no such user. */
static kuid_t xk_pool_owner(const struct xmem_join_request *join)
{
	if (join->flags & XMEM_JOIN_OWNER)
		return make_kuid(current_user_ns(), join->owner_uid);
	return current_fsuid();
}

/* A user that chooses its names cannot choose their numbers. */
static u32 xk_name_hash(u64 net, kuid_t owner, const u8 *name)
{
	return jhash(name, strnlen(name, XMEM_NAME_BYTES),
		     jhash_2words(net, __kuid_val(owner), names_seed));
}

static struct xk_pool *xk_pool_of_name(u64 net, kuid_t owner, const u8 *name)
{
	u64 number = xm_name_number(name);
	struct xk_pool *pool;

	lockdep_assert_held(&pools_lock);
	if (number) {
		pool = xa_load(&pools, number);
		return pool && pool->net == net && uid_eq(pool->owner, owner) ? pool : NULL;
	}
	hash_for_each_possible(names, pool, named, xk_name_hash(net, owner, name))
		if (pool->net == net && uid_eq(pool->owner, owner) &&
		    !strncmp(xk_header(pool)->name, name, XMEM_NAME_BYTES))
			return pool;
	return NULL;
}

static void xk_pool_name(struct xk_pool *pool)
{
	const u8 *name = xk_header(pool)->name;

	lockdep_assert_held(&pools_lock);
	if (name[0])
		hash_add(names, &pool->named, xk_name_hash(pool->net, pool->owner, name));
}

static struct xk_pool *xk_pool_named(const struct xmem_join_request *join)
{
	return xk_pool_of_name(xk_net_number(), xk_pool_owner(join), join->name);
}

/*
 * Does the pool keep its name when its owner wants a new one? It does while a client of the owner
 * exists, whatever else others have, including what the owner has passed on. A drained pool does
 * not, because nobody joins it.
 */
static bool xk_pool_keeps_name(const struct xk_pool *pool)
{
	return !READ_ONCE(pool->drained) && atomic_read(&pool->owners);
}

/*
 * A caller that wants a new pool finds none if xk_pool_enlist can take the name from the old one.
 *
 * A caller that may not join gets no use, not even for a moment: with many such moments it could
 * keep a pool that its users have left.
 */
static struct xk_pool *xk_pool_find_locked(const struct xmem_join_request *join, u32 *ret_roles)
{
	struct xk_pool *pool = xk_pool_named(join);
	int err;

	if (!pool)
		return NULL;
	if (join->flags & XMEM_JOIN_EXCLUSIVE)
		return xk_pool_keeps_name(pool) ? ERR_PTR(-EEXIST) : NULL;
	*ret_roles = xk_access_roles(pool);
	err = xm_role_permit(*ret_roles, join->role, xk_access_owns(pool));
	if (!err && READ_ONCE(pool->drained))
		err = -ESHUTDOWN;
	if (err)
		return ERR_PTR(err);
	/* A pool in the list has a use, unless that is going just now. */
	if (!refcount_inc_not_zero(&pool->users))
		return NULL;
	xk_pool_joins(pool);
	return pool;
}

/*
 * Find the pool that @join names, or NULL. It gets one more use, for the caller, which may join it
 * in *@ret_roles. An error says that the caller may not join in the role that it asks for. A caller
 * that does not join after all calls xk_pool_unjoin.
 */
struct xk_pool *xk_pool_find(const struct xmem_join_request *join, u32 *ret_roles)
{
	struct xk_pool *pool;

	spin_lock(&pools_lock);
	pool = xk_pool_find_locked(join, ret_roles);
	spin_unlock(&pools_lock);
	return pool;
}

/* May the caller make the pool if there is none? Nobody can make a pool of another user. */
bool xk_pool_is_callers(const struct xmem_join_request *join)
{
	return uid_eq(xk_pool_owner(join), current_fsuid());
}

/*
 * Let others find the pool, which gets a serial. 0 or -ENOMEM. The list's nodes are charged to
 * nobody: pools of several users share them, and max_pools bounds them.
 */
static int xk_pool_list(struct xk_pool *pool)
{
	u64 serial = ++last_serial;
	int err = xa_err(xa_store(&pools, serial, pool, GFP_ATOMIC));

	if (err)
		return err;
	pool->serial = serial;
	xk_pool_name(pool);
	return 0;
}

/*
 * Let others find @new by its name, and return it. If another pool has that name by now, return
 * what xk_pool_find says of that pool; but with EXCLUSIVE @new may take the name, and *@ret_old
 * becomes the other pool.
 */
struct xk_pool *xk_pool_enlist(struct xk_pool *new, const struct xmem_join_request *join,
			       u32 *ret_roles, struct xk_pool **ret_old)
{
	struct xk_pool *pool, *old;

	spin_lock(&pools_lock);
	pool = xk_pool_find_locked(join, ret_roles);
	if (!pool) {
		old = xk_pool_named(join);
		pool = ERR_PTR(xk_pool_list(new)) ?: new;
	}
	if (pool == new) {
		*ret_old = old;
		if (old) {	/* its clients go on, and its number finds it */
			hash_del(&old->named);
			xk_pool_get(old);
		}
		*ret_roles = XMEM_ROLES_ALL;
		xk_pool_joins(new);
	}
	spin_unlock(&pools_lock);
	return pool;
}

/*
 * The join that took the name of @old has failed, and its pool is gone: @old gets its name back. It
 * does not if it is gone, too, or if others have joined the new pool meanwhile, or made a third.
 */
void xk_pool_relist(struct xk_pool *old)
{
	spin_lock(&pools_lock);
	if (refcount_read(&old->users) &&
	    !xk_pool_of_name(old->net, old->owner, xk_header(old)->name))
		xk_pool_name(old);
	spin_unlock(&pools_lock);
}

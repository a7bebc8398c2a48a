// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: taking the struct in, finding the client, giving the struct back.
 * The table says what there is; what a request does is in the file of its
 * object, the shortest ones are here. Errors: the table in uapi.h.
 */
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/nospec.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "xk.h"

/* ---- subscribe, unsubscribe ---- */

static int xk_subscribe_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	int err = xk_client_lock_mapped(client);

	if (err)
		return err;
	err = xm_host_subscribe(&client->pool->host, client->id, &call->u.subscribe);
	if (!err)
		client->follows[call->u.subscribe.publisher / 64] |= 1ULL << call->u.subscribe.publisher % 64;
	mutex_unlock(&client->pool->lock);
	/* Our cursor stood at 0 for a moment and pinned all: who looked just then may sleep. */
	if (!err)
		xk_wake(client->pool, XMEM_WAIT_SLOTS, call->u.subscribe.publisher);
	return err;
}

/* Once more for poll: a publisher that is followed no longer is not looked at. */
static void xk_unfollow(struct xk_client *client, u32 publisher)
{
	const struct xm_map *map = &client->pool->host.map;

	if (publisher >= map->clients)
		return;
	publisher = xm_index(publisher, map->clients);
	if (!xm_bit(xm_client_row(map, publisher)->subscribers, client->id))
		client->follows[publisher / 64] &= ~(1ULL << publisher % 64);
}

static int xk_unsubscribe(struct xk_client *client, const struct xmem_unsubscribe_request *request)
{
	struct xk_pool *pool = client->pool;
	int err = xk_client_lock(client);

	if (err)
		return err;
	err = xm_host_unsubscribe(&pool->host, client->id, request);
	xk_unfollow(client, request->publisher);
	/* It may have been the last that a dead publisher's ring was kept for. */
	if (!err && xm_client_row(&pool->host.map, request->publisher)->state == XMEM_CLIENT_ZOMBIE)
		xk_reap(pool);
	mutex_unlock(&pool->lock);
	if (!err)
		xk_wake(pool, XMEM_WAIT_SLOTS, request->publisher);
	return err;
}

static int xk_unsubscribe_begin(struct xk_call *call)
{
	return xk_unsubscribe(call->client, &call->u.unsubscribe);
}

static void xk_subscribe_finish(struct xk_call *call, int err)
{
	struct xmem_unsubscribe_request undo = { .publisher = call->u.subscribe.publisher };

	if (err)
		xk_unsubscribe(call->client, &undo);
}

/* ---- resolve, collect, renew ---- */

/* The state word of a slot that the caller holds and believes to be SCANNING. */
static int xk_resolve_look(struct xk_client *client, const struct xmem_slot_request *request, u64 *word)
{
	const struct xm_map *map = &client->pool->host.map;
	int err = xk_client_lock(client);
	u32 slot;

	if (err)
		return err;
	slot = xm_index(request->slot, map->slots);
	if (request->slot >= map->slots || !map->group[slot / XMEM_GROUP_SLOTS]) {
		err = -EINVAL;
	} else if (!(xm_load(xm_hold(map, client->id, slot)) & XM_HOLD_COUNT)) {
		err = -EPERM;
	} else {
		*word = xm_load_acquire(&xm_slot(map, slot)->state);
		if (xm_generation(*word) != request->generation)
			err = -ESTALE;
	}
	mutex_unlock(&client->pool->lock);
	return err;
}

/* A millisecond, or until the caller is killed. */
void xk_pause(void)
{
	ktime_t pause = ms_to_ktime(1);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&pause, HRTIMER_MODE_REL);
}

static int xk_resolve_begin(struct xk_call *call)
{
	u64 word;
	int err = xk_resolve_look(call->client, &call->u.slot, &word);

	if (err)
		return err;
	if (xm_state(word) != XMEM_SLOT_SCANNING)
		return -EAGAIN;
	/* So that nobody can keep a living owner from ever finishing a scan. */
	xk_pause();
	err = xk_client_lock(call->client);
	if (err)
		return err;
	err = xm_host_resolve(&call->client->pool->host, call->client->id, call->u.slot.slot, word);
	mutex_unlock(&call->client->pool->lock);
	return err;
}

static int xk_collect_begin(struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;
	int err;

	if (call->u.slot.generation || call->u.slot.slot >= pool->host.map.slots)
		return -EINVAL;
	err = xk_client_lock(call->client);
	if (err)
		return err;
	xk_reclaim_slot(pool, xm_index(call->u.slot.slot, pool->host.map.slots));
	mutex_unlock(&pool->lock);
	return 0;
}

/* Not as fast as one likes: each takes one of the slot's 16 M tenancies. So does attach, after detach. */
static int xk_renew_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	int err;

	xk_pause();
	err = xk_client_lock(client);
	if (err)
		return err;
	err = xm_host_renew(&client->pool->host, client->id, get_random_u64(), &call->u.slot);
	mutex_unlock(&client->pool->lock);
	return err;
}

/* ---- dispatch ---- */

/*
 * begin does it, or says an errno and has changed nothing. finish, where there
 * is one, is called after a begin that succeeded, with what came of giving the
 * answer back: an error there undoes what begin did.
 */
struct xk_op {
	int (*begin)(struct xk_call *call);
	void (*finish)(struct xk_call *call, int err);
	bool unjoined;		/* also for a file that has not joined */
};

#define XK_OP(name, begin_, ...)	[_IOC_NR(XMEM_IOC_##name)] = { .begin = (begin_), __VA_ARGS__ }

/* By the number of the request; core/request.c says how its struct looks. */
static const struct xk_op xk_ops[] = {
	XK_OP(JOIN, xk_join_begin, .finish = xk_join_finish, .unjoined = true),
	XK_OP(POOL_FD, xk_pool_fd_begin),
	XK_OP(ATTACH, xk_attach_begin, .finish = xk_attach_finish),
	XK_OP(PAYLOAD, xk_payload_begin),
	XK_OP(SUBSCRIBE, xk_subscribe_begin, .finish = xk_subscribe_finish),
	XK_OP(UNSUBSCRIBE, xk_unsubscribe_begin),
	XK_OP(ARM, xk_arm_begin),
	XK_OP(WAIT, xk_wait_begin),
	XK_OP(WAKE, xk_wake_begin),
	XK_OP(RESOLVE, xk_resolve_begin),
	XK_OP(COLLECT, xk_collect_begin),
	XK_OP(RENEW, xk_renew_begin),
	XK_OP(DETACH, xk_detach_begin),
	XK_OP(QUERY, xk_query_begin, .unjoined = true),
	XK_OP(POOLS, xk_pools_begin, .unjoined = true),
};

/* The caller's struct, as long as the caller says, into ours, which is as long as we know it. */
static int xk_take_in(const struct xm_request_kind *kind, void __user *argument,
		      union xm_request *u, u32 *size)
{
	int err;

	memset(u, 0, sizeof(*u));
	if (get_user(*size, (u32 __user *)argument))
		return -EFAULT;
	err = xm_request_size(kind, *size);
	if (err)
		return err;
	err = copy_struct_from_user(u, kind->bytes, argument, *size);
	if (err)
		return err;
	u->size = *size;	/* it may have changed meanwhile */
	err = xm_request_check(kind, u);
	if (err)
		return err;
	/* Better to find out now than when there is something to undo. */
	if (kind->answers && copy_to_user(argument, u, min_t(u32, *size, kind->bytes)))
		return -EFAULT;
	return 0;
}

/* The answer is cut to what the caller knows. */
static int xk_give_back(const struct xm_request_kind *kind, struct xk_call *call,
			void __user *argument, u32 size)
{
	int fd = -1;

	if (call->give) {
		fd = xk_receive_fd(call->give);
		if (fd < 0)
			return fd;
		if (kind->request == XMEM_IOC_POOL_FD)
			call->u.pool_fd.fd = fd;
		else
			call->u.payload.fd = fd;
	}
	if (kind->answers && copy_to_user(argument, &call->u, min_t(u32, size, kind->bytes))) {
		if (fd >= 0)
			close_fd(fd);
		return -EFAULT;
	}
	return 0;
}

/* Who asks: only he who joined by this file, as long as he is there. */
static int xk_find_client(struct xk_call *call)
{
	call->client = smp_load_acquire(&call->file->client);
	if (!call->client || READ_ONCE(call->client->ended))
		return -ENOTCONN;
	return call->client->mm == current->mm ? 0 : -EPERM;
}

long xk_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *argument = (void __user *)arg;
	struct xk_call call = { .file = filp->private_data };
	const struct xm_request_kind *kind = xm_request_find(cmd);
	const struct xk_op *op;
	u32 size;
	int err;

	if (!kind || _IOC_NR(cmd) >= ARRAY_SIZE(xk_ops))
		return -ENOTTY;
	op = &xk_ops[array_index_nospec(_IOC_NR(cmd), ARRAY_SIZE(xk_ops))];
	err = xk_take_in(kind, argument, &call.u, &size);
	if (err)
		return err;
	if (!op->unjoined) {
		err = xk_find_client(&call);
		if (err)
			return err;
	}
	err = op->begin(&call);
	if (err)
		return err;
	err = xk_give_back(kind, &call, argument, size);
	if (op->finish)
		op->finish(&call, err);
	if (call.give)
		fput(call.give);
	return err;
}

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
#include "xmem_private.h"

/* ---- subscribe, unsubscribe ---- */

static int xmem_subscribe_begin(struct xmem_call *call)
{
	struct xmem_client *client = call->client;
	int err = xmem_client_lock_mapped(client);

	if (err)
		return err;
	err = xm_host_subscribe(&client->pool->host, client->id, &call->u.subscribe);
	if (!err)
		client->follows[call->u.subscribe.publisher / 64] |= 1ULL << call->u.subscribe.publisher % 64;
	mutex_unlock(&client->pool->lock);
	/* Our cursor stood at 0 for a moment and pinned all: who looked just then may sleep. */
	if (!err)
		xmem_wake(client->pool, XMEM_SLEEP_SLOTS, call->u.subscribe.publisher);
	return err;
}

/* Once more for poll: a publisher that is followed no longer is not looked at. */
static void xmem_unfollow(struct xmem_client *client, u32 publisher)
{
	const struct xm_map *map = &client->pool->host.map;

	if (publisher >= map->clients)
		return;
	publisher = xm_index(publisher, map->clients);
	if (!xm_bit(map->client[publisher].subscribers, client->id))
		client->follows[publisher / 64] &= ~(1ULL << publisher % 64);
}

static int xmem_unsubscribe(struct xmem_client *client, const struct xmem_unsubscribe *request)
{
	struct xmem_pool *pool = client->pool;
	int err = xmem_client_lock(client);

	if (err)
		return err;
	err = xm_host_unsubscribe(&pool->host, client->id, request);
	xmem_unfollow(client, request->publisher);
	/* It may have been the last that a dead publisher's ring was kept for. */
	if (!err && pool->host.map.client[request->publisher].state == XMEM_CLIENT_ZOMBIE)
		xmem_reap(pool);
	mutex_unlock(&pool->lock);
	if (!err)
		xmem_wake(pool, XMEM_SLEEP_SLOTS, request->publisher);
	return err;
}

static int xmem_unsubscribe_begin(struct xmem_call *call)
{
	return xmem_unsubscribe(call->client, &call->u.unsubscribe);
}

static void xmem_subscribe_finish(struct xmem_call *call, int err)
{
	struct xmem_unsubscribe undo = { .publisher = call->u.subscribe.publisher };

	if (err)
		xmem_unsubscribe(call->client, &undo);
}

/* ---- settle, collect, renew ---- */

/* The state word of a slot that the caller holds and believes to be SCANNING. */
static int xmem_settle_look(struct xmem_client *client, const struct xmem_slot *request, u64 *word)
{
	const struct xm_map *map = &client->pool->host.map;
	int err = xmem_client_lock(client);
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
void xmem_pause(void)
{
	ktime_t pause = ms_to_ktime(1);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&pause, HRTIMER_MODE_REL);
}

static int xmem_settle_begin(struct xmem_call *call)
{
	u64 word;
	int err = xmem_settle_look(call->client, &call->u.slot, &word);

	if (err)
		return err;
	if (xm_state(word) != XMEM_SLOT_SCANNING)
		return -EAGAIN;
	/* So that nobody can keep a living owner from ever finishing a walk. */
	xmem_pause();
	err = xmem_client_lock(call->client);
	if (err)
		return err;
	err = xm_host_settle(&call->client->pool->host, call->client->id, call->u.slot.slot, word);
	mutex_unlock(&call->client->pool->lock);
	return err;
}

static int xmem_collect_begin(struct xmem_call *call)
{
	struct xmem_pool *pool = call->client->pool;
	int err;

	if (call->u.slot.generation || call->u.slot.slot >= pool->host.map.slots)
		return -EINVAL;
	err = xmem_client_lock(call->client);
	if (err)
		return err;
	xmem_reclaim_slot(pool, xm_index(call->u.slot.slot, pool->host.map.slots));
	mutex_unlock(&pool->lock);
	return 0;
}

/* Not as fast as one likes: each takes one of the slot's 16 M tenancies. So does attach, after detach. */
static int xmem_renew_begin(struct xmem_call *call)
{
	struct xmem_client *client = call->client;
	int err;

	xmem_pause();
	err = xmem_client_lock(client);
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
struct xmem_op {
	unsigned int number;
	u32 size;
	bool answers;
	int (*begin)(struct xmem_call *call);
	void (*finish)(struct xmem_call *call, int err);
};

#define XMEM_OP(number_, type, answers_, begin_, finish_)					\
	[_IOC_NR(number_)] = { .number = (number_), .size = sizeof(struct type),		\
		.answers = (answers_), .begin = (begin_), .finish = (finish_) }

static const struct xmem_op xmem_ops[] = {
	XMEM_OP(XMEM_IOC_JOIN, xmem_join, true, xmem_join_begin, xmem_join_finish),
	XMEM_OP(XMEM_IOC_POOL_FILE, xmem_pool_file, true, xmem_pool_file_begin, NULL),
	XMEM_OP(XMEM_IOC_ATTACH, xmem_attach, true, xmem_attach_begin, xmem_attach_finish),
	XMEM_OP(XMEM_IOC_PAYLOAD, xmem_payload, true, xmem_payload_begin, NULL),
	XMEM_OP(XMEM_IOC_SUBSCRIBE, xmem_subscribe, true, xmem_subscribe_begin, xmem_subscribe_finish),
	XMEM_OP(XMEM_IOC_UNSUBSCRIBE, xmem_unsubscribe, false, xmem_unsubscribe_begin, NULL),
	XMEM_OP(XMEM_IOC_ARM, xmem_sleep, true, xmem_arm_begin, NULL),
	XMEM_OP(XMEM_IOC_WAIT, xmem_sleep, false, xmem_wait_begin, NULL),
	XMEM_OP(XMEM_IOC_WAKE, xmem_sleep, false, xmem_wake_begin, NULL),
	XMEM_OP(XMEM_IOC_SETTLE, xmem_slot, false, xmem_settle_begin, NULL),
	XMEM_OP(XMEM_IOC_COLLECT, xmem_slot, false, xmem_collect_begin, NULL),
	XMEM_OP(XMEM_IOC_RENEW, xmem_slot, true, xmem_renew_begin, NULL),
	XMEM_OP(XMEM_IOC_DETACH, xmem_slot, false, xmem_detach_begin, NULL),
};

/* The caller's struct, as long as he thinks it is, into ours. */
static int xmem_take_in(const struct xmem_op *op, void __user *argument, union xmem_request *u, u32 *size)
{
	int err;

	memset(u, 0, sizeof(*u));
	if (get_user(*size, (u32 __user *)argument))
		return -EFAULT;
	if (*size < op->size)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(u, op->size, argument, *size);
	if (err)
		return err;
	u->size = *size;	/* it may have changed meanwhile */
	/* Better to find out now than when there is something to undo. */
	if (op->answers && copy_to_user(argument, u, op->size))
		return -EFAULT;
	return 0;
}

static int xmem_give_back(const struct xmem_op *op, struct xmem_call *call, void __user *argument)
{
	int fd = -1;

	if (call->give) {
		fd = xm_receive_fd(call->give);
		if (fd < 0)
			return fd;
		if (op->number == XMEM_IOC_POOL_FILE)
			call->u.pool_file.file = fd;
		else
			call->u.payload.file = fd;
	}
	if (op->answers && copy_to_user(argument, &call->u, op->size)) {
		if (fd >= 0)
			close_fd(fd);
		return -EFAULT;
	}
	return 0;
}

/* Who asks: only he who joined by this file, as long as he is there. */
static int xmem_find_client(struct xmem_call *call)
{
	call->client = smp_load_acquire(&call->file->client);
	if (!call->client || READ_ONCE(call->client->ended))
		return -ENOTCONN;
	return call->client->mm == current->mm ? 0 : -EPERM;
}

long xmem_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *argument = (void __user *)arg;
	struct xmem_call call = { .file = filp->private_data };
	const struct xmem_op *op;
	u32 size;
	int err;

	if (_IOC_NR(cmd) >= ARRAY_SIZE(xmem_ops))
		return -ENOTTY;
	op = &xmem_ops[array_index_nospec(_IOC_NR(cmd), ARRAY_SIZE(xmem_ops))];
	if (op->number != cmd)
		return -ENOTTY;
	err = xmem_take_in(op, argument, &call.u, &size);
	if (err)
		return err;
	if (op->begin != xmem_join_begin) {
		err = xmem_find_client(&call);
		if (err)
			return err;
	}
	err = op->begin(&call);
	if (err)
		return err;
	err = xmem_give_back(op, &call, argument);
	if (op->finish)
		op->finish(&call, err);
	if (call.give)
		fput(call.give);
	return err;
}

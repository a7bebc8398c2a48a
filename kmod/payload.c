// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads: what slots are made of. One is a file that all can map (files.c), or memory of a
 * GPU: a file of its driver, a handle of the driver, or both (core/cuda.c). Here are the
 * pool's table of them, and when they go. attach.c gives slots to their owners, and opened.c
 * gives payloads to those who ask.
 *
 * With the last slot goes the file. Memory of a GPU then stays in the table, closing, until no
 * client has it open any more; so its owner knows when it may free it.
 */
#include <linux/slab.h>

#include "xk.h"
#include "trace.h"

/* ---- the table ---- */

struct xk_payload *xk_payload_by_id(struct xk_pool *pool, u32 id)
{
	struct xk_payload *payload;

	lockdep_assert_held(&pool->lock);
	hlist_for_each_entry(payload, &pool->payloads[id % XK_PAYLOAD_LISTS], node)
		if (payload->id == id)
			return payload;
	return NULL;
}

static u32 *xk_payload_count(struct xk_pool *pool, const struct xk_payload *payload)
{
	return payload->cuda ? &pool->device_count : &pool->payload_count;
}

/*
 * How much of max_device_files is in use: by payloads, or by files of drivers, which stay until
 * their ->release is over. It grows only under the pool's lock.
 */
u32 xk_payload_devices(const struct xk_pool *pool)
{
	return max(pool->device_count, READ_ONCE(pool->files));
}

/* Gives @payload the id that it has if it enters the table before the lock is let go. */
int xk_payload_number(struct xk_pool *pool, struct xk_payload *payload)
{
	u32 most = payload->cuda ? READ_ONCE(xk_max_device_files) : READ_ONCE(xk_max_payloads);
	u32 count = payload->cuda ? xk_payload_devices(pool) : pool->payload_count;

	lockdep_assert_held(&pool->lock);
	if (count >= most) {
		trace_xmem_limit(pool->number,
				 payload->cuda ? "max_device_files" : "max_payloads",
				 (u64)count + 1, most);
		return -EDQUOT;
	}
	if (pool->payload_last == U32_MAX) {
		trace_xmem_limit(pool->number, "payload ids", 1ULL << 32, U32_MAX);
		return -EDQUOT;
	}
	payload->id = pool->payload_last + 1;
	return 0;
}

/* Gives the table @payload, whose id is never used again. */
void xk_payload_enter(struct xk_pool *pool, struct xk_payload *payload)
{
	lockdep_assert_held(&pool->lock);
	pool->payload_last = payload->id;
	++*xk_payload_count(pool, payload);
	if (payload->cuda && payload->keep)
		xk_keep_count(payload->keep, pool);
	hlist_add_head(&payload->node, &pool->payloads[payload->id % XK_PAYLOAD_LISTS]);
	xm_host_payload_comes(&pool->host, payload->bytes, payload->traits);
}

static void xk_payload_forget(struct xk_pool *pool, struct xk_payload *payload)
{
	lockdep_assert_held(&pool->lock);
	hlist_del(&payload->node);
	--*xk_payload_count(pool, payload);
	xk_keep_put(payload->keep);
	kfree(payload->cuda);
	kfree(payload);
}

/* ---- how they go ---- */

/* Forgets memory of a GPU if it is closed by now, and tells its owner. */
void xk_payload_close(struct xk_pool *pool, struct xk_payload *payload)
{
	lockdep_assert_held(&pool->lock);
	if (!xm_cuda_is_closed(&pool->host, payload->cuda))
		return;
	trace_xmem_payload_close(pool->number, payload->owner, payload->id);
	if (!payload->kept)
		xk_wake(pool, XMEM_WAIT_SLOTS, payload->owner);
	xk_payload_forget(pool, payload);
}

/* Its last slot has gone. */
static void xk_payload_goes(struct xk_pool *pool, struct xk_payload *payload)
{
	xm_host_payload_goes(&pool->host, payload->bytes, payload->traits, payload->kept);
	if (!payload->cuda) {
		xk_payload_forget(pool, payload);
		return;
	}
	xk_keep_put(payload->keep);
	payload->keep = NULL;
	xm_cuda_goes(&pool->host, payload->cuda);
	xk_wake_rings(pool);
	xk_payload_close(pool, payload);
}

/* So many slots do not use payload @id any more. */
void xk_payload_drop_slots(struct xk_pool *pool, u32 id, u32 slots)
{
	struct xk_payload *payload = xk_payload_by_id(pool, id);

	if (WARN_ON(!payload || payload->slots < slots))
		return;
	payload->slots -= slots;
	if (!payload->slots)
		xk_payload_goes(pool, payload);
}

/* Before the reaping: the client @incarnation has ended. Counts what others keep of its own. */
void xk_payload_owner_ended(struct xk_pool *pool, u64 incarnation)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	lockdep_assert_held(&pool->lock);
	xk_for_each_payload(pool, i, next, payload) {
		if (payload->incarnation != incarnation)
			continue;
		payload->kept = true;
		if (payload->cuda)
			payload->cuda->ended = true;
		xm_host_payload_kept(&pool->host, payload->bytes, payload->traits);
	}
}

/* The pool has been emptied, so nobody has anything open either. */
void xk_payload_drop_all(struct xk_pool *pool)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	xk_for_each_payload(pool, i, next, payload) {
		if (payload->slots)
			xm_host_payload_goes(&pool->host, payload->bytes, payload->traits,
					     payload->kept);
		xk_payload_forget(pool, payload);
	}
}

/* ---- making one ---- */

static int xk_payload_fill(struct xk_payload *payload, struct file *file,
			   const struct xmem_attach_request *request)
{
	bool cuda = request->flags & XMEM_ATTACH_CUDA;
	u32 traits = 0;
	int err;

	if (cuda) {
		if (file && !xk_is_device_file(file))
			return -EMEDIUMTYPE;
		payload->bytes = request->bytes;
		payload->cuda = kzalloc(sizeof(*payload->cuda), GFP_KERNEL_ACCOUNT);
		if (!payload->cuda)
			return -ENOMEM;
	} else {
		err = xk_file_check(file, request->flags & XMEM_ATTACH_SHARED, &traits,
				    &payload->bytes);
		if (err)
			return err;
	}
	payload->traits = traits | xm_attach_traits(request->flags);
	if (!file)
		return 0;
	payload->keep = xk_keep_new(file);
	return payload->keep ? 0 : -ENOMEM;
}

/*
 * Not in the pool's table yet, nor in its device table. @file: or NULL. Takes over the caller's
 * reference to it only on success.
 */
struct xk_payload *xk_payload_new(const struct xk_client *client, struct file *file,
				  const struct xmem_attach_request *request)
{
	struct xk_payload *payload = kzalloc(sizeof(*payload), GFP_KERNEL_ACCOUNT);
	int err;

	if (!payload)
		return ERR_PTR(-ENOMEM);
	payload->incarnation = client->incarnation;
	payload->owner = client->id;
	err = xk_payload_fill(payload, file, request);
	if (!err)
		return payload;
	xk_payload_discard(payload);
	return ERR_PTR(err);
}

/* Frees one that has not entered the table. Its file is the caller's again. */
void xk_payload_discard(struct xk_payload *payload)
{
	xk_keep_discard(payload->keep);
	kfree(payload->cuda);
	kfree(payload);
}

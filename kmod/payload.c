// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads, which hold the contents of slots: the pool's table of them. keep.c makes payloads and
 * drops their files. The kind of a payload has all that differs between payloads (struct xk_kind).
 * attach.c gives their slots to owners, and opened.c gives clients access to them.
 */
#include "xk.h"

/* ---- the table ---- */

struct xk_payload *xk_payload_by_id(struct xk_pool *pool, u64 id)
{
	struct xk_payload *payload;

	lockdep_assert_held(&pool->lock);
	hash_for_each_possible(pool->payloads, payload, node, id)
		if (payload->id == id)
			return payload;
	return NULL;
}

static u32 *xk_payload_count(struct xk_pool *pool, const struct xk_payload *payload)
{
	return payload->kind->device ? &pool->device_count : &pool->payload_count;
}

/*
 * Put @payload into the table; its id is never used again. Its slots have been attached as @what
 * says, so its traits now have the number of the device.
 */
void xk_payload_enter(struct xk_pool *pool, struct xk_payload *payload,
		      const struct xm_payload *what, const struct xmem_attach_request *request)
{
	lockdep_assert_held(&pool->lock);
	payload->traits = what->traits;
	payload->open = payload->file;
	if (payload->open) {
		kref_get(&payload->kref);
		refcount_set(&payload->uses, 1);
	}
	pool->host.last_payload = payload->id;
	++*xk_payload_count(pool, payload);
	if (payload->kind->enter)
		payload->kind->enter(pool, payload, what, request);
	hash_add(pool->payloads, &payload->node, payload->id);
	xm_host_payload_add(&pool->host, payload->owner, payload->bytes, payload->traits);
}

/*
 * Remove it from the table. Returns it if the caller is to give up the table's use of its file
 * (keep.c), else NULL.
 */
struct xk_payload *xk_payload_forget(struct xk_pool *pool, struct xk_payload *payload)
{
	bool open = payload->open;

	lockdep_assert_held(&pool->lock);
	hlist_del(&payload->node);
	--*xk_payload_count(pool, payload);
	payload->open = false;
	xk_payload_put(payload);	/* as long as its file is open, it has another reference */
	return open ? payload : NULL;
}

/* ---- removing payloads ---- */

/* @slots slots no longer use payload @id. Returns what xk_payload_forget returns. */
struct xk_payload *xk_payload_drop_slots(struct xk_pool *pool, u64 id, u32 slots)
{
	struct xk_payload *payload = xk_payload_by_id(pool, id);

	if (WARN_ON(!payload || payload->slots < slots))
		return NULL;
	payload->slots -= slots;
	if (payload->slots)
		return NULL;
	xm_host_payload_drop(&pool->host, payload->owner, payload->incarnation, payload->bytes,
			     payload->traits);
	return payload->kind->goes(pool, payload);
}

/* The pool has been emptied, so no client has anything open either. */
void xk_payload_drop_all(struct xk_pool *pool)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	hash_for_each_safe(pool->payloads, i, next, payload, node) {
		if (payload->slots)
			xm_host_payload_drop(&pool->host, payload->owner, payload->incarnation,
					     payload->bytes, payload->traits);
		xk_keep_later(xk_payload_forget(pool, payload));
	}
}

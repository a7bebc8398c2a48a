// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads, which hold the contents of slots: the pool's table of them, and how they are made and
 * removed. Their kind has all that differs between them (struct xk_kind). attach.c gives their
 * slots to owners, and opened.c gives clients access to them.
 */
#include <linux/slab.h>

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
	pool->host.last_payload = payload->id;
	++*xk_payload_count(pool, payload);
	if (payload->kind->enter)
		payload->kind->enter(pool, payload, what, request);
	hash_add(pool->payloads, &payload->node, payload->id);
	xm_host_payload_add(&pool->host, payload->bytes, payload->traits);
}

/* Only its driver counts the bytes of GPU memory. */
static u64 xk_payload_file_bytes(const struct xk_payload *payload)
{
	return payload->kind->device ? 0 : payload->bytes;
}

static void xk_payload_free(struct xk_payload *payload)
{
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_FILE_BYTES, xk_payload_file_bytes(payload));
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_FILES, 1);
	xk_payer_put(payload->payer);
	kfree(payload);
}

/* Drop the payload's file, if it has one. A driver's file still counts until it is released. */
void xk_payload_drop_file(struct xk_payload *payload)
{
	if (payload->keep && payload->kind->device)
		xk_keep_charge(payload->keep, payload->payer);
	if (payload->truncates)
		xk_keep_truncate(payload->keep);
	else
		xk_keep_put(payload->keep);
	payload->keep = NULL;
}

void xk_payload_forget(struct xk_pool *pool, struct xk_payload *payload)
{
	lockdep_assert_held(&pool->lock);
	hash_del(&payload->node);
	--*xk_payload_count(pool, payload);
	xk_payload_drop_file(payload);
	xk_payload_free(payload);
}

/* ---- removing payloads ---- */

/* @slots slots no longer use payload @id. */
void xk_payload_drop_slots(struct xk_pool *pool, u64 id, u32 slots)
{
	struct xk_payload *payload = xk_payload_by_id(pool, id);

	if (WARN_ON(!payload || payload->slots < slots))
		return;
	payload->slots -= slots;
	if (payload->slots)
		return;
	xm_host_payload_drop(&pool->host, payload->bytes, payload->traits, payload->kept);
	payload->kind->goes(pool, payload);
}

/*
 * The client @incarnation has ended; called before reaping. Counts the payloads of that client that
 * others keep.
 */
void xk_payload_owner_ended(struct xk_pool *pool, u64 incarnation)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	lockdep_assert_held(&pool->lock);
	hash_for_each_safe(pool->payloads, i, next, payload, node) {
		if (payload->incarnation != incarnation)
			continue;
		payload->kept = true;
		xm_host_payload_kept(&pool->host, payload->bytes, payload->traits);
	}
}

/* The pool has been emptied, so no client has anything open either. */
void xk_payload_drop_all(struct xk_pool *pool)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	hash_for_each_safe(pool->payloads, i, next, payload, node) {
		if (payload->slots)
			xm_host_payload_drop(&pool->host, payload->bytes, payload->traits,
					     payload->kept);
		xk_payload_forget(pool, payload);
	}
}

/* ---- making a payload ---- */

static int xk_payload_charge(const struct xk_client *client, const struct xk_payload *payload)
{
	const struct xk_pool *pool = client->pool;
	int err = xk_charge(client->payer, pool, XMEM_QUOTA_USER_FILES, 1);

	if (err)
		return err;
	err = xk_charge(client->payer, pool, XMEM_QUOTA_USER_FILE_BYTES,
			xk_payload_file_bytes(payload));
	if (err)
		xk_uncharge(client->payer, XMEM_QUOTA_USER_FILES, 1);
	return err;
}

/*
 * Make a payload that is not in the pool's table or its device table yet. @flags: XMEM_ATTACH_*.
 * Takes over the caller's references to the files only on success.
 */
struct xk_payload *xk_payload_new(const struct xk_client *client, const struct xk_kind *kind,
				  const struct xk_offer *offer, u32 flags)
{
	struct xk_payload *payload = kzalloc(kind->bytes, GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!payload)
		return ERR_PTR(err);
	payload->kind = kind;
	payload->incarnation = client->incarnation;
	payload->owner = client->id;
	payload->bytes = offer->bytes;
	payload->traits = offer->traits | xm_attach_traits(flags);
	payload->writable = offer->writable;
	payload->truncates = xm_attach_truncates(flags, payload->traits);
	if (offer->file) {
		payload->keep = xk_keep_new(client->pool, offer);
		if (!payload->keep)
			goto err_payload;
	}
	err = xk_payload_charge(client, payload);
	if (err)
		goto err_keep;
	payload->payer = xk_payer_get(client->payer);
	return payload;

err_keep:
	xk_keep_discard(payload->keep);
err_payload:
	kfree(payload);
	return ERR_PTR(err);
}

/* Free a payload that has not entered the table. Its files are the caller's again. */
void xk_payload_discard(struct xk_payload *payload)
{
	xk_keep_discard(payload->keep);
	xk_payload_free(payload);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads, which hold the contents of slots: the pool's table of them, and how they are made and
 * removed. Their kind has all that differs between them (kinds.c). attach.c gives their slots to
 * owners, and opened.c gives clients access to them.
 */
#include <linux/slab.h>

#include "xk.h"

/* ---- the table ---- */

struct xk_payload *xk_payload_by_id(struct xk_pool *pool, u64 id)
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
	return payload->kind->device ? &pool->device_count : &pool->payload_count;
}

/*
 * How much of max_device_files is in use: by payloads, or by files of drivers, which count until
 * their ->release is over. It grows only under the pool's lock.
 */
u32 xk_payload_devices(const struct xk_pool *pool)
{
	return max(pool->device_count, READ_ONCE(pool->files));
}

/*
 * A user that has not made the pool keeps no more files in it than it leaves to others. While at
 * most half of all files are in use, nothing has to be counted.
 */
static int xk_payload_share(struct xk_pool *pool, const struct xk_payload *new, u32 count,
			    u32 most)
{
	const struct xk_payload *payload;
	u32 i, has = 0;

	if (count < most / 2 || !xk_is_guest(pool, new->payer))
		return 0;
	for (i = 0; i < XK_PAYLOAD_LISTS; i++)
		hlist_for_each_entry(payload, &pool->payloads[i], node)
			has += payload->kind->device == new->kind->device &&
			       xk_payers_meet(payload->payer, new->payer);
	return xk_share_of_pool(new->payer, pool, XMEM_QUOTA_SHARE_FILES, has, count, most);
}

/* Set the id that @payload will have if it enters the table before the lock is released. */
int xk_payload_number(struct xk_pool *pool, struct xk_payload *payload)
{
	bool device = payload->kind->device;
	u32 most = device ? READ_ONCE(xk_max_device_files) : READ_ONCE(xk_max_payloads);
	u32 count = device ? xk_payload_devices(pool) : pool->payload_count;

	lockdep_assert_held(&pool->lock);
	if (count >= most)
		return xk_refuse(payload->payer, pool, device ? XMEM_QUOTA_POOL_DEVICE_FILES :
				 XMEM_QUOTA_POOL_FILES, count, count + 1ULL, most);
	payload->id = pool->host.last_payload + 1;
	return xk_payload_share(pool, payload, count, most);
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
	hlist_add_head(&payload->node, &pool->payloads[payload->id % XK_PAYLOAD_LISTS]);
	xm_host_payload_add(&pool->host, payload->bytes, payload->traits);
}

/* Only its driver counts the bytes of GPU memory. */
static u64 xk_payload_file_bytes(const struct xk_payload *payload)
{
	return payload->kind->device ? 0 : payload->bytes;
}

static void xk_payload_free(struct xk_payload *payload)
{
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_SLOTS, payload->slots);
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_FILE_BYTES, xk_payload_file_bytes(payload));
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_FILES, 1);
	xk_payer_put(payload->payer);
	kfree(payload);
}

void xk_payload_forget(struct xk_pool *pool, struct xk_payload *payload)
{
	lockdep_assert_held(&pool->lock);
	hlist_del(&payload->node);
	--*xk_payload_count(pool, payload);
	if (payload->truncates)
		xk_keep_truncate(payload->keep);
	else
		xk_keep_put(payload->keep);
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
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_SLOTS, slots);
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
	xk_for_each_payload(pool, i, next, payload) {
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

	xk_for_each_payload(pool, i, next, payload) {
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

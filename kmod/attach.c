// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request attach, by which a client gets slots of a payload, and detaching, by which it gives a
 * slot back. payload.c has the payloads themselves.
 */
#include <linux/file.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "xk.h"
#include "trace.h"

/* Find a payload of the caller that is to get more slots. A payload without slots is closing. */
static struct xk_payload *xk_payload_owned(struct xk_client *client, u64 id)
{
	struct xk_payload *payload = xk_payload_by_id(client->pool, id);

	if (!payload || !payload->slots)
		return ERR_PTR(-ENOENT);
	return payload->incarnation == client->incarnation ? payload : ERR_PTR(-EPERM);
}

/* The work that xk_grow leaves to its caller, which does it without the pool's lock. */
struct xk_growth {
	bool left;			/* the group was left by an ended client */
	struct xk_pages *pages;		/* spare pages for such a group; NULL: allocate them */
	struct xk_chunk *spare;		/* pages for another group; NULL: allocate them */
	int group;			/* the group that has got them: unmap it; or -1 */
};

/*
 * Give the client one more group, if that makes its spare slots @count. -EAGAIN: the caller does
 * what @growth says and tries again. Until then no other thread attaches for this client, because
 * other clients may still read zeros where the group is.
 */
static int xk_grow(struct xk_client *client, u32 count, struct xk_growth *growth)
{
	struct xk_pool *pool = client->pool;
	int group = xm_host_free_group(&pool->host, client->id, count);

	if (group < 0)
		return group;
	growth->left = pool->group[group];
	if (growth->left ? !growth->pages : !growth->spare)
		return -EAGAIN;
	if (growth->left) {
		xk_chunk_lend(pool, pool->group[group], growth->pages, client);
		growth->pages = NULL;
	} else {
		xk_chunk_place(pool, &pool->group[group], growth->spare, client);
		xk_show_group(pool, group, growth->spare->now->view);
		growth->spare = NULL;
	}
	xm_host_give_group(&pool->host, group, client->id);
	growth->group = group;
	return -EAGAIN;
}

/*
 * The client gets a group only when nothing but slots is missing, so an attach that is refused
 * leaves it no group. But if it needs several groups that others have left, it may get only the
 * first.
 */
static int xk_attach_slots(struct xk_client *client, struct xm_payload *what,
			   struct xmem_attach_request *request, struct xk_growth *growth)
{
	struct xm_host *host = &client->pool->host;
	int err = xm_host_attach(host, client->id, what, get_random_u64(), request);

	if (err == -EDQUOT)
		return xk_refuse(client->payer, client->pool, XMEM_QUOTA_POOL_DEVICES,
				 XMEM_MAX_DEVICES, XMEM_MAX_DEVICES + 1, XMEM_MAX_DEVICES);
	return err == -ENOSPC ? xk_grow(client, request->count, growth) : err;
}

static int xk_attach_locked(struct xk_client *client, struct xk_payload *new,
			    struct xmem_attach_request *request, struct xk_growth *growth)
{
	struct xk_pool *pool = client->pool;
	struct xk_payload *payload = new;
	struct xm_payload what;
	int err;

	if (new) {
		new->id = pool->host.last_payload + 1;
	} else {
		payload = xk_payload_owned(client, request->payload);
		if (IS_ERR(payload))
			return PTR_ERR(payload);
	}
	what = (struct xm_payload){
		.id = payload->id, .traits = payload->traits, .bytes = payload->bytes,
		.device = new && new->kind->device ? request->device : NULL,
	};
	xk_clock_set(pool);
	err = xk_attach_slots(client, &what, request, growth);
	if (err)
		return err;
	/* Not earlier: a payload that entered and was removed again would count as gone. */
	if (new)
		xk_payload_enter(pool, new, &what, request);
	payload->slots += request->count;
	return 0;
}

/* Allocate the pages that xk_grow needs. */
static int xk_grow_begin(struct xk_client *client, struct xk_growth *growth)
{
	const u64 bytes = xk_header(client->pool)->group_stride;
	struct xk_chunk *chunk;
	struct xk_pages *pages;

	if (growth->left) {
		pages = xk_pages_new(client->pool, client->payer, bytes >> PAGE_SHIFT);
		if (IS_ERR(pages))
			return PTR_ERR(pages);
		growth->pages = pages;
		return 0;
	}
	chunk = xk_chunk_new(client->pool, client->payer, bytes, XK_GROUP);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	growth->spare = chunk;
	return 0;
}

/* Attach, called without the pool's lock; the client gets one more group if it needs one. */
static int xk_attach_unlocked(struct xk_client *client, struct xk_payload *new,
			      struct xmem_attach_request *request)
{
	struct xk_growth growth = { .group = -1 };
	struct xk_pool *pool = client->pool;
	int err;

	for (;;) {
		err = xk_client_lock_mapped(client);
		if (err)
			break;
		err = xk_attach_locked(client, new, request, &growth);
		mutex_unlock(&pool->lock);
		if (err == -EALREADY) {
			err = xk_pause();
			if (!err)
				continue;
		}
		if (err != -EAGAIN)
			break;
		if (growth.group >= 0) {
			xk_unmap_place(pool, growth.group);
			growth.group = -1;
			continue;
		}
		err = xk_grow_begin(client, &growth);
		if (err)
			break;
	}
	if (growth.spare)
		xk_chunk_free(pool, growth.spare);
	xk_pages_free(pool, growth.pages);
	return err;
}

static int xk_attach(struct xk_client *client, struct xk_payload *new,
		     struct xmem_attach_request *request)
{
	int err = mutex_lock_killable(&client->attach_lock);

	if (err)
		return err;
	err = xk_attach_unlocked(client, new, request);
	mutex_unlock(&client->attach_lock);
	if (err)
		return err;
	trace_xmem_attach(client->pool->number, client->id, request->payload, request->count);
	/* The client may poll or wait for a slot. */
	xk_wake(client->pool, XMEM_WAIT_SLOTS, client->id);
	return 0;
}

/* ---- new payloads ---- */

/* A new kind gets a file and a row here. No file has two kinds, so the order does not matter. */
static const struct xk_kind *const kinds[] = {
	&xk_kind_memfd,
	&xk_kind_hugetlb,
#ifdef CONFIG_DMA_SHARED_BUFFER
	&xk_kind_dmabuf,
#endif
	&xk_kind_cuda,
};

/*
 * Find the kind of an attach by its flag and by the caller's file. @offer: as for xk_kind.check;
 * after an error its file is still the caller's.
 */
static const struct xk_kind *xk_kind_of(const struct xmem_attach_request *request,
					struct xk_offer *offer)
{
	bool device = request->flags & XMEM_ATTACH_CUDA;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int err;

		if (kinds[i]->device != device)
			continue;
		err = kinds[i]->check(request, offer);
		if (err != -EMEDIUMTYPE)
			return err ? ERR_PTR(err) : kinds[i];
	}
	return ERR_PTR(-EMEDIUMTYPE);
}

static int xk_attach_new(struct xk_client *client, struct xmem_attach_request *request)
{
	struct xk_offer offer = { .file = NULL };
	const struct xk_kind *kind;
	struct xk_payload *new;
	int err;

	if (request->fd != -1) {
		offer.file = fget(request->fd);
		if (!offer.file)
			return -EBADF;
	}
	kind = xk_kind_of(request, &offer);
	new = IS_ERR(kind) ? ERR_CAST(kind) : xk_payload_new(client, kind, &offer, request->flags);
	err = PTR_ERR_OR_ZERO(new);
	if (!err) {
		err = xk_attach(client, new, request);
		if (!err)
			return 0;
		xk_payload_put(new);
	}
	/*
	 * The file has not been kept. A caller that has closed it meanwhile waits for its release.
	 */
	if (offer.file)
		fput(offer.file);
	if (offer.guard)
		fput(offer.guard);
	return err;
}

static int xk_attach_any(struct xk_client *client, struct xmem_attach_request *request)
{
	if (request->payload)
		return request->fd == -1 ? xk_attach(client, NULL, request) : -EINVAL;
	return xk_attach_new(client, request);
}

/* The attach lacks something: will the cleanup that is under way free some? This waits for it. */
static bool xk_attach_again(struct xk_call *call, int err, u64 done)
{
	struct xk_pool *pool = call->client->pool;

	if (err != -ENOSPC)
		return xk_ends_retry(call, err);
	if (xk_pool_lock_killable(pool))
		return false;
	xk_bury_ended(pool);
	mutex_unlock(&pool->lock);
	return xk_end_retry(pool, done);
}

int xk_attach_begin(struct xk_call *call)
{
	struct xmem_attach_request *request = &call->u.attach;
	struct xk_client *client = call->client;
	u64 done = smp_load_acquire(&client->pool->end_done);	/* pairs with xk_end_done */
	int err;

	if (client->role != XMEM_ROLE_WRITER)
		return -EPERM;
	err = xm_host_attach_check(request);
	if (err)
		return err;
	err = xk_attach_any(client, request);
	if (xk_attach_again(call, err, done))
		err = xk_attach_any(client, request);
	if (err == -ENOSPC)
		trace_xmem_limit(client->pool->number, "slots", request->count,
				 client->pool->host.map.slots);
	return err;
}

/*
 * The slot's group stays with the client until it ends, because nobody else gets pages
 * that the client could write.
 */
static int xk_detach_locked(struct xk_client *client, const struct xmem_slot_request *request,
			    struct xk_payload **ret_gone)
{
	struct xk_pool *pool = client->pool;
	u64 id = xm_host_payload_of(&pool->host, request->slot);
	const struct xk_payload *payload = xk_payload_by_id(pool, id);
	int count;

	count = xm_host_detach(&pool->host, client->id, request, payload ? payload->slots : 0,
			       &id);
	if (count > 0)
		*ret_gone = xk_payload_drop_slots(pool, id, count);
	return count < 0 ? count : 0;
}

int xk_detach(struct xk_client *client, const struct xmem_slot_request *request)
{
	struct xk_payload *gone = NULL;
	int err = xk_client_lock(client);

	if (err)
		return err;
	err = xk_detach_locked(client, request, &gone);
	mutex_unlock(&client->pool->lock);
	xk_keep_drop(gone);
	return err;
}

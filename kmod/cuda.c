// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that are memory of a GPU: a file of its driver, a handle of the driver, or both.
 * core/cuda.c says which clients may have one open, and knows which have (I8); drivers.c says which
 * drivers' files are accepted.
 *
 * A driver's file is not opened again for each client, because that would give another object: all
 * clients get the open file itself. When the last slot goes, this file is dropped. The payload then
 * stays in the table, *closing*, until no client has it open any more; so its owner learns when it
 * may free the memory. A client that has ended counts as an opener until its process has exited
 * (exited.c).
 */
#include <linux/file.h>

#include "xk.h"

struct xk_cuda {
	struct xk_payload payload;	/* must be first: see struct xk_kind */
	struct xm_cuda cuda;
};

static struct xm_cuda *xk_cuda(const struct xk_payload *payload)
{
	return &container_of(payload, struct xk_cuda, payload)->cuda;
}

/* ---- attaching one ---- */

static int xk_cuda_check(const struct xmem_attach_request *request, struct xk_offer *offer)
{
	if (offer->file && !xk_is_device_file(offer->file))
		return -EMEDIUMTYPE;
	offer->bytes = request->bytes;
	return 0;
}

static void xk_cuda_enter(struct xk_pool *pool, struct xk_payload *payload,
			  const struct xm_payload *what,
			  const struct xmem_attach_request *request)
{
	xm_cuda_init(xk_cuda(payload), what, request);
}

/* ---- the end of a payload ---- */

/* Forget the payload if it is closed by now, and wake its owner. */
static void xk_cuda_close(struct xk_pool *pool, struct xk_payload *payload)
{
	lockdep_assert_held(&pool->lock);
	if (!xm_cuda_is_closed(&pool->host, xk_cuda(payload)))
		return;
	if (xm_host_lives(&pool->host, payload->owner, payload->incarnation))
		xk_wake(pool, XMEM_WAIT_SLOTS, payload->owner);
	xk_payload_forget(pool, payload);
}

/* Clients that have it open close it when they notice. */
static struct xk_payload *xk_cuda_retire(struct xk_pool *pool, struct xk_payload *payload)
{
	if (payload->open)
		xk_keep_put(payload);
	payload->open = false;
	xm_cuda_retire(&pool->host, xk_cuda(payload));
	xk_wake_rings(pool);
	xk_cuda_close(pool, payload);
	return NULL;
}

static void xk_cuda_exited(struct xk_pool *pool, struct xk_payload *payload, u32 client)
{
	xm_cuda_unopen(&pool->host, xk_cuda(payload), client);
	xk_cuda_close(pool, payload);
}

/* ---- the request payload ---- */

static int xk_cuda_serve(struct xk_call *call, struct xk_payload *payload)
{
	struct xmem_payload_request *request = &call->u.payload;
	struct xk_pool *pool = call->client->pool;
	struct xm_asker asker = {
		.client = call->client->id, .role = call->client->role,
		.number = pool->opening_last + 1,
	};
	int err;

	xk_cuda(payload)->ended = !xm_host_lives(&pool->host, payload->owner,
						 payload->incarnation);
	err = xm_cuda_serve(&pool->host, xk_cuda(payload), &asker, request);
	if (err)
		return err;
	if (request->flags & XMEM_PAYLOAD_CLOSE) {
		xk_cuda_close(pool, payload);
		return 0;
	}
	if (!(request->flags & XMEM_PAYLOAD_OPEN))
		return 0;
	call->opening = ++pool->opening_last;
	call->keep = xk_keep_get(payload);
	call->passed = true;
	return 0;
}

static struct file *xk_cuda_open(const struct xk_call *call)
{
	return get_file(call->keep->file);
}

/* The caller has nothing open, unless other calls have opened it. */
static void xk_cuda_undo(struct xk_call *call, struct xk_payload *payload)
{
	u32 client = call->client->id;

	if (xm_cuda_is_opened_by(xk_cuda(payload), client, call->opening))
		xk_cuda_exited(call->client->pool, payload, client);
}

const struct xk_kind xk_kind_cuda = {
	.bytes = sizeof(struct xk_cuda),
	.device = true,
	.driver = true,
	.check = xk_cuda_check,
	.enter = xk_cuda_enter,
	.serve = xk_cuda_serve,
	.open = xk_cuda_open,
	.undo = xk_cuda_undo,
	.goes = xk_cuda_retire,
	.exited = xk_cuda_exited,
};

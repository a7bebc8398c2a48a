// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request payload, which gives a client access to a payload, and the end of the access of ended
 * clients. The kind of a payload decides which access a client gets (struct xk_kind). No client
 * gets a file with more access than the file was attached with.
 */
#include <linux/file.h>

#include "xk.h"

/* ---- ends: called by leave.c, in end_work ---- */

/*
 * A client has ended, and its process has exited, so it has nothing open any more. Others can take
 * the lock between two parts of the table.
 */
void xk_opened_end(struct xk_pool *pool, u32 client)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	for (i = 0; i < HASH_SIZE(pool->payloads) && pool->host.books[client].opens; i++) {
		hlist_for_each_entry_safe(payload, next, &pool->payloads[i], node)
			if (payload->kind->exited)
				payload->kind->exited(pool, payload, client);
		xk_pool_let_in(pool);
	}
}

/* ---- the request ---- */

/* Serve the request, except for the file, which is opened without the lock. */
static int xk_payload_serve(struct xk_call *call, const struct xk_kind **ret_kind)
{
	struct xk_client *client = call->client;
	struct xk_payload *payload;
	/* Only a client that has mapped its area is sure to end with its process. */
	int err = call->u.payload.flags & XMEM_PAYLOAD_OPEN ? xk_client_lock_mapped(client) :
							      xk_client_lock(client);

	if (err)
		return err;
	payload = xk_payload_by_id(client->pool, call->u.payload.payload);
	if (payload) {
		*ret_kind = payload->kind;
		err = payload->kind->serve(call, payload);
	} else {
		err = -ENOENT;
	}
	mutex_unlock(&client->pool->lock);
	return err;
}

int xk_payload_begin(struct xk_call *call)
{
	const struct xk_kind *kind;
	struct file *file;
	int err = xk_payload_serve(call, &kind);

	if (err || !call->keep)
		return err;
	file = kind->open(call);
	if (!IS_ERR(file)) {
		call->give = file;
		return 0;
	}
	xk_payload_finish(call, PTR_ERR(file));
	return PTR_ERR(file);
}

/* The answer did not reach the caller. If the caller has ended, its end undoes what it has open. */
static void xk_payload_undo(struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;
	struct xk_payload *payload;

	xk_pool_lock(pool);
	payload = xk_payload_by_id(pool, call->u.payload.payload);
	if (payload && payload->kind->undo && !READ_ONCE(call->client->ended))
		payload->kind->undo(call, payload);
	mutex_unlock(&pool->lock);
}

void xk_payload_finish(struct xk_call *call, int err)
{
	if (err && call->opening)
		xk_payload_undo(call);
	/* Last: while this reference is held, the caller is not the one that drops the file. */
	if (call->give)
		fput(call->give);
	call->give = NULL;
	xk_keep_put(call->keep);
}

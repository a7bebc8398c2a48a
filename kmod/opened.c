// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request payload: with what access a client gets a payload, and who has memory of a GPU
 * open. payload.c has the payloads.
 *
 * Nobody gets a file with more access than it was attached with. A file that all can map is
 * opened anew for each. A file of a driver is not: opened anew it would be another thing; so
 * everybody gets the open file itself, and the core says who may.
 */
#include <linux/cred.h>
#include <linux/file.h>

#include "xk.h"
#include "trace.h"

/* ---- ends ---- */

/* Has that client memory of a GPU open? */
bool xk_opened_any(struct xk_pool *pool, u32 client)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	bool any = false;
	u32 i;

	lockdep_assert_held(&pool->lock);
	if (!pool->device_count)
		return false;
	xk_for_each_payload(pool, i, next, payload)
		any |= payload->cuda && xm_bit(payload->cuda->openers, client);
	return any;
}

/* It has nothing open any more, because it has ended. */
void xk_opened_end(struct xk_pool *pool, u32 client)
{
	struct xk_payload *payload;
	struct hlist_node *next;
	u32 i;

	lockdep_assert_held(&pool->lock);
	if (!pool->device_count)
		return;
	xk_for_each_payload(pool, i, next, payload) {
		if (!payload->cuda)
			continue;
		xm_cuda_left(payload->cuda, client);
		xk_payload_close(pool, payload);
	}
}

/* ---- files that all can map ---- */

/*
 * Opens the file anew, so that neither position nor flags are shared. dentry_open checks
 * no permission; the access of the file that was attached decides.
 */
static struct file *xk_file_open(const struct xk_client *client, const struct file *file,
				 u32 traits, bool owns, bool write)
{
	bool shared = traits & XMEM_TRAIT_SHARED;

	if (!(file->f_mode & FMODE_READ) || (write && !(file->f_mode & FMODE_WRITE)))
		return ERR_PTR(-EACCES);
	/* A shared file forbids nobody to open a read-only descriptor anew for writing. */
	if (shared ? client->role != XMEM_ROLE_WRITER : write && !owns)
		return ERR_PTR(-EACCES);
	if (traits & XMEM_TRAIT_DMABUF)
		return xk_dmabuf_open(file);
	return dentry_open(&file->f_path, (write ? O_RDWR : O_RDONLY) | O_LARGEFILE,
			   current_cred());
}

/* ---- the request ---- */

/* Memory of a GPU; all is done here but for the descriptor. */
static int xk_serve_cuda(struct xk_call *call, struct xk_payload *payload)
{
	struct xmem_payload_request *request = &call->u.payload;
	struct xk_pool *pool = call->client->pool;
	struct xm_asker asker = {
		.client = call->client->id, .role = call->client->role,
		.number = pool->opening_last + 1,
	};
	int err = xm_cuda_serve(payload->cuda, &asker, request);

	if (err)
		return err;
	if (request->flags & XMEM_PAYLOAD_CLOSE) {
		xk_payload_close(pool, payload);
		return 0;
	}
	if (!(request->flags & XMEM_PAYLOAD_OPEN))
		return 0;
	call->opening = ++pool->opening_last;
	trace_xmem_payload_open(pool->number, asker.client, payload->id);
	call->keep = xk_keep_get(payload->keep);
	if (call->keep)
		call->give = get_file(call->keep->file);
	return 0;
}

/* A file that all can map; it is opened when the lock is no longer held. */
static int xk_serve_file(struct xk_call *call, struct xk_payload *payload, bool *ret_owns)
{
	struct xmem_payload_request *request = &call->u.payload;
	int err = xm_payload_file_check(request);

	if (err)
		return err;
	*ret_owns = payload->incarnation == call->client->incarnation;
	request->bytes = payload->bytes;
	request->traits = payload->traits;
	call->keep = xk_keep_get(payload->keep);
	return 0;
}

static int xk_payload_serve(struct xk_call *call, bool *ret_file, bool *ret_owns)
{
	struct xk_client *client = call->client;
	struct xk_payload *payload;
	/* Only a client that has mapped its area is sure to end with its process. */
	int err = call->u.payload.flags & XMEM_PAYLOAD_OPEN ? xk_client_lock_mapped(client) :
							      xk_client_lock(client);

	if (err)
		return err;
	payload = xk_payload_by_id(client->pool, call->u.payload.payload);
	*ret_file = payload && !payload->cuda;
	if (!payload)
		err = -ENOENT;
	else if (*ret_file)
		err = xk_serve_file(call, payload, ret_owns);
	else
		err = xk_serve_cuda(call, payload);	/* which may free it */
	mutex_unlock(&client->pool->lock);
	return err;
}

int xk_payload_begin(struct xk_call *call)
{
	struct xmem_payload_request *request = &call->u.payload;
	bool owns, is_file;
	struct file *file;
	int err = xk_payload_serve(call, &is_file, &owns);

	if (err || !is_file)
		return err;
	file = xk_file_open(call->client, call->keep->file, request->traits, owns,
			    request->flags & XMEM_PAYLOAD_WRITE);
	if (!IS_ERR(file)) {
		call->give = file;
		return 0;
	}
	xk_keep_put(call->keep);
	return PTR_ERR(file);
}

/* If the caller did not get the answer it has nothing open, unless other calls have opened it. */
static void xk_payload_undo(struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;
	u32 id = call->client->id;
	struct xk_payload *payload;

	mutex_lock(&pool->lock);
	payload = xk_payload_by_id(pool, call->u.payload.payload);
	if (payload && xm_cuda_is_opened_by(payload->cuda, id, call->opening) &&
	    !READ_ONCE(call->client->ended)) {
		xm_cuda_left(payload->cuda, id);
		xk_payload_close(pool, payload);
	}
	mutex_unlock(&pool->lock);
}

void xk_payload_finish(struct xk_call *call, int err)
{
	if (err && call->opening)
		xk_payload_undo(call);
	/* Last: as long as this is held, it is not the caller who drops the file. */
	if (call->give)
		fput(call->give);
	call->give = NULL;
	xk_keep_put(call->keep);
}

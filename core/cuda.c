// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * CUDA payloads: which clients may open one, which have it open, and when it is closed (I8). The
 * host has the files and the handles, and calls this under the pool's lock. Everything that this
 * file trusts is in the host's private memory; it only writes the device table.
 */
#include "host.h"

void xm_cuda_init(struct xm_cuda *cuda, const struct xm_payload *payload,
		  const struct xmem_attach_request *request)
{
	u32 i;

	cuda->bytes = payload->bytes;
	cuda->traits = payload->traits;
	for (i = 0; i < XMEM_UUID_BYTES; i++)
		cuda->device[i] = request->device[i];
	for (i = 0; i < XMEM_HANDLE_BYTES; i++)
		cuda->handle[i] = request->handle[i];
}

/* ---- openers ---- */

/*
 * A client that has the payload open can write it, so readers get it only if its owner permits
 * that.
 */
static int xm_cuda_may(const struct xm_cuda *cuda, const struct xm_asker *asker)
{
	if (asker->role == XMEM_ROLE_READER && !(cuda->traits & XMEM_TRAIT_READERS))
		return -EACCES;
	if (cuda->traits & XMEM_TRAIT_HANDLE && cuda->ended)
		return -EOWNERDEAD;
	return 0;
}

static void xm_cuda_open(struct xm_host *host, struct xm_cuda *cuda, const struct xm_asker *asker)
{
	bool had = xm_bit(cuda->openers, asker->client);

	cuda->opened_by[asker->client] = had ? 0 : asker->number;
	host->books[asker->client].opens += !had;
	xm_set_bit(cuda->openers, asker->client, true);
}

static void xm_cuda_answer(const struct xm_cuda *cuda, bool open,
			   struct xmem_payload_request *request)
{
	u32 i;

	request->fd = -1;
	request->bytes = cuda->bytes;
	request->traits = cuda->traits;
	for (i = 0; i < XMEM_UUID_BYTES; i++)
		request->device[i] = cuda->device[i];
	for (i = 0; i < XMEM_HANDLE_BYTES; i++)
		request->handle[i] = open ? cuda->handle[i] : 0;
}

int xm_cuda_serve(struct xm_host *host, struct xm_cuda *cuda, const struct xm_asker *asker,
		  struct xmem_payload_request *request)
{
	bool open = request->flags & XMEM_PAYLOAD_OPEN;
	int err;

	if (request->flags & (request->flags - 1))
		return -EINVAL;		/* more than one flag */
	if (request->flags & XMEM_PAYLOAD_WRITE)
		return -EMEDIUMTYPE;
	if (request->flags & XMEM_PAYLOAD_CLOSE) {
		if (!xm_bit(cuda->openers, asker->client))
			return -ENOENT;
		xm_cuda_unopen(host, cuda, asker->client);
		xm_cuda_answer(cuda, false, request);
		return 0;
	}
	if (cuda->closing)
		return open ? -ENOENT : -EBUSY;
	err = xm_cuda_may(cuda, asker);
	if (err)
		return err;
	if (open)
		xm_cuda_open(host, cuda, asker);
	xm_cuda_answer(cuda, open, request);
	return 0;
}

bool xm_cuda_is_opened_by(const struct xm_cuda *cuda, u32 client, u64 number)
{
	return number && xm_bit(cuda->openers, client) && cuda->opened_by[client] == number;
}

int xm_payload_file_check(const struct xmem_payload_request *request)
{
	return request->flags & ~XMEM_PAYLOAD_WRITE ? -EMEDIUMTYPE : 0;
}

/* ---- the end of a payload ---- */

void xm_cuda_retire(struct xm_host *host, struct xm_cuda *cuda)
{
	struct xmem_device_row *row = xm_device_row(&host->map, xm_device(cuda->traits));

	cuda->closing = true;
	xm_store(&row->closing_bytes, row->closing_bytes + cuda->bytes);
}

void xm_cuda_unopen(struct xm_host *host, struct xm_cuda *cuda, u32 client)
{
	host->books[client].opens -= xm_bit(cuda->openers, client);
	xm_set_bit(cuda->openers, client, false);
}

bool xm_cuda_is_closed(struct xm_host *host, const struct xm_cuda *cuda)
{
	struct xmem_device_row *row = xm_device_row(&host->map, xm_device(cuda->traits));
	struct xmem_pool_header *pool = host->map.pool;
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= cuda->openers[i];
	if (any || !cuda->closing)
		return false;
	xm_store(&row->bytes, row->bytes - cuda->bytes);
	xm_store(&row->closing_bytes, row->closing_bytes - cuda->bytes);
	xm_store_release(&pool->payloads_closed, pool->payloads_closed + 1);
	return true;
}

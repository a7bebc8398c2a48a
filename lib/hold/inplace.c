// SPDX-License-Identifier: MIT
/*
 * Writing in place (get_mut): the only holder of contents whose payload is shared becomes their
 * writer, and publishes the next contents of the buffer in its own ring. The host makes sure that
 * it is the only holder (core/upgrade.c). Another client owns the slot and its metadata, so the
 * host writes these.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/handle.h"
#include "lib/gpu/order.h"
#include "lib/hold/attach.h"
#include "lib/hold/inplace.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/owned.h"
#include "lib/payload/view.h"

#define TRIES	64	/* attempts; each fails because the owner was scanning the slot, and costs
			 * the owner 1 ms */

/* ---- requests ---- */

/*
 * Ask the host to begin. 0 or -errno, not noted. An owner that is stopped during a scan is not
 * waited for.
 */
static int begin(struct xmem_pool *pool, struct xmem_upgrade_request *request)
{
	int err, tries;

	for (tries = 0; tries < TRIES; tries++) {
		err = xl_request(pool, XMEM_IOC_UPGRADE, request);
		if (err != -EAGAIN)
			return err;
		err = xl_resolve(pool, xm_token(request->generation, request->slot));
		if (err && err != -EAGAIN)
			return err;
	}
	return -EAGAIN;
}

static XL_COLD int not_shared(u32 traits)
{
	if (traits & XMEM_TRAIT_ONCE)
		return xl_fail_fast(EOPNOTSUPP, "the buffer is in memory that a program "
				    "has attached; copy it");
	if (traits & XMEM_TRAIT_HANDLE)
		return xl_fail_fast(EOPNOTSUPP, "the buffer is in memory of a GPU that is "
				    "exported by the driver's IPC handles, because this GPU has "
				    "no descriptors or XMEM_MEMORY_LEGACY was used; copy it");
	return xl_fail_fast(EOPNOTSUPP, "only their own writer can write these contents, "
			    "because it made the buffer with XMEM_MEMORY_SEALED; copy it");
}

static int begin_failed(int err)
{
	switch (-err) {
	case EBUSY:
		return xl_fail_fast(EBUSY, "another client holds these contents or has "
					   "yet to receive them, there is another handle here, or "
					   "references are set aside");
	case EAGAIN:
		return xl_fail_fast(EAGAIN, "the owner keeps scanning the buffer; retry");
	case ENOSPC:
		return xl_fail_fast(ENOSPC, "the buffer has used up its numbers of "
					    "contents until its owner acquires it; copy it");
	}
	return xl_fail(-err, "%s", xl_request_error(err));
}

/* Has the host made these contents LIVE, although its answer has not come? */
static bool is_live(const struct xmem_pool *pool, u32 slot, u64 generation)
{
	u64 word = xm_load_acquire(&xm_slot(&pool->map, slot)->state);

	return xm_generation(word) == generation &&
	       (xm_state(word) == XMEM_SLOT_LIVE || xm_state(word) == XMEM_SLOT_SCANNING);
}

/*
 * A request to publish was given up. If the host has served it since, the contents are LIVE with
 * the metadata of that time, and no client knows their token. Then writing begins anew. 0 or
 * -errno, noted.
 */
static int write_anew(struct xmem_pool *pool, u32 slot, struct xl_upgrade *upgrade)
{
	struct xmem_upgrade_request request = {
		.size = XMEM_UPGRADE_MIN, .slot = slot, .generation = upgrade->generation,
	};
	int err;

	xl_drain_posts(pool);
	if (!is_live(pool, slot, upgrade->generation))
		return 0;
	err = begin(pool, &request);
	if (err)
		return begin_failed(err);
	upgrade->generation = request.generation;
	upgrade->given_up = false;
	return 0;
}

/* Make the contents LIVE. 0 or -errno, noted. */
static int end(struct xmem_pool *pool, u32 slot, struct xl_upgrade *upgrade)
{
	struct xmem_upgrade_request request = {
		.size = sizeof(request), .flags = XMEM_UPGRADE_PUBLISH, .slot = slot,
		.generation = upgrade->generation, .metadata = upgrade->metadata,
	};
	int err = xl_request(pool, XMEM_IOC_UPGRADE, &request);

	/* The host may have served it although the answer has not come. */
	if (!err || (!upgrade->given_up && is_live(pool, slot, upgrade->generation)))
		return 0;
	upgrade->given_up = true;
	return xl_fail(-err, "contents that were written in place: %s",
		       err == -ESTALE ? "the owner of the buffer has broken the rules"
				      : xl_request_error(err));
}

/* ---- the calls ---- */

static int check(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	u32 traits;
	int err;

	if (xm_load(&buffer->mode) & XL_WRITING)
		return xl_fail_fast(EPERM, "this buffer is being written already");
	err = xl_check_role(pool, XMEM_FOREVER);
	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	/* The payload is mapped below, so that xmem_data_mut does not fail later. */
	traits = xm_load(&xm_slot_row(&pool->map, buffer->slot)->traits);
	if (!(traits & XMEM_TRAIT_SHARED))
		return not_shared(traits);
	err = xl_register_stage(pool, buffer->slot);
	if (err)
		return err;
	if (traits & XMEM_TRAIT_CUDA)
		return xl_cuda_open(pool, buffer->slot);
	err = xl_payload_ahead(pool, buffer->slot);
	return err ? err : xl_payload_make_writable(pool, buffer->slot);
}

static int upgrade(struct xmem_buffer *buffer, struct xl_upgrade *new)
{
	struct xmem_pool *pool = buffer->pool;
	struct xmem_upgrade_request request = {
		.size = XMEM_UPGRADE_MIN, .slot = buffer->slot,
		.generation = xm_generation(buffer->what.token),
	};
	int err = xl_reserve_entry(pool, "get_mut");

	if (err)
		return err;
	new->metadata = *xm_metadata(&pool->map, buffer->slot);
	err = begin(pool, &request);
	if (err) {
		xl_unreserve_entry(pool);
		return begin_failed(err);
	}
	XM_STEP(XM_STEP_UPGRADE_BEGUN);
	new->generation = request.generation;
	return 0;
}

XMEM_API int xmem_get_mut(struct xmem_buffer *handle)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xl_upgrade *new;
	int err, cancel;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "get_mut");
	err = check(buffer);
	if (err)
		return err;
	xl_place_contents(buffer);
	new = calloc(1, sizeof(*new));
	if (!new)
		return xl_fail(ENOMEM, "no memory to write in place");
	/* A thread that is cancelled here would leave a slot that nobody can use. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = upgrade(buffer, new);
	pthread_setcancelstate(cancel, NULL);
	if (err) {
		free(new);
		return err;
	}
	xl_view_end(buffer);
	buffer->upgrade = new;
	buffer->what.token = 0;
	buffer->what.sequence = buffer->what.timestamp_ns = 0;
	xl_handle_use(buffer, XL_WRITING | XL_UPGRADED);
	return 0;
}

/*
 * A stream may have yet to write the contents that this client has taken over, if no client has
 * waited for them. The next contents have no order, so they would seem to be complete.
 */
int xl_upgrade_wait_until_complete(struct xmem_buffer *buffer)
{
	int err = xl_order_wait_until(buffer, XMEM_FOREVER);

	if (err || !buffer->upgrade->given_up)
		return err;
	return write_anew(buffer->pool, buffer->slot, buffer->upgrade);
}

/*
 * Make the contents LIVE as @what, readable by all clients that have the token, which is put there.
 */
static int live(struct xmem_buffer *buffer, struct xm_publication *what)
{
	struct xl_upgrade *upgrade = buffer->upgrade;
	struct xmem_pool *pool = buffer->pool;
	int err = xl_upgrade_wait_until_complete(buffer);

	if (err)
		return err;
	upgrade->metadata.size = what->length;
	upgrade->metadata.offset = what->offset;
	xl_fill_storage(buffer, &upgrade->metadata);
	XM_STEP(XM_STEP_UPGRADE_FILLED);
	err = end(pool, buffer->slot, upgrade);
	if (err)
		return err;
	XM_STEP(XM_STEP_UPGRADE_LIVE);
	what->token = xm_token(upgrade->generation, buffer->slot);
	buffer->origin = xl_origin(pool->me, pool->link.join.incarnation);
	buffer->upgrade = NULL;
	free(upgrade);
	return 0;
}

int xl_upgrade_publish(struct xmem_buffer *buffer, struct xm_publication *what, u64 addressee)
{
	int err = live(buffer, what);

	if (err)
		return err;
	xl_forward_reserved(buffer->pool, what, addressee);
	buffer->what = *what;
	xl_handle_use(buffer, XL_READING);
	return 0;
}

int xl_upgrade_make_live(struct xmem_buffer *buffer)
{
	int err = live(buffer, &buffer->what);

	if (!err)
		xl_unreserve_entry(buffer->pool);
	return err;
}

/*
 * The hold goes first: as soon as the host has served the request, the slot may have new contents,
 * which must not seem to be held here. Until then no client gets the slot.
 */
void xl_upgrade_give_up(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	struct xmem_upgrade_request request = {
		.size = XMEM_UPGRADE_MIN, .flags = XMEM_UPGRADE_GIVE_UP, .slot = buffer->slot,
		.generation = buffer->upgrade->generation,
	};

	xl_do(pool, xm_put(&pool->map, pool->me, buffer->slot));
	xl_post(pool, XMEM_IOC_UPGRADE, &request);
	xl_unreserve_entry(pool);
	free(buffer->upgrade);
	buffer->upgrade = NULL;
}

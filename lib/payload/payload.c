// SPDX-License-Identifier: MIT
/*
 * What payloads of all kinds share: they are attached to slots, found by their number, and
 * their mappings are kept. A reader maps a whole payload when it first asks for data in it
 * and keeps the mapping, so that later hand-overs map nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../handle.h"
#include "../pages.h"
#include "payload.h"
#include "../request.h"

/* ---- attaching ---- */

static void detach(struct xmem_pool *pool, const u16 *slot, u32 count)
{
	while (count--) {
		struct xmem_slot_request request = { .size = sizeof(request), .slot = slot[count] };

		xl_request(pool, XMEM_IOC_DETACH, &request);
	}
}

static u32 groups_taken(const struct xm_map *map)
{
	u32 taken = 0, g, s;

	for (g = 0; g < map->groups; g++) {
		for (s = 0; s < XMEM_GROUP_SLOTS; s++)
			if (xm_load(&xm_slot_row(map, g * XMEM_GROUP_SLOTS + s)->owner) !=
			    XMEM_OWNER_NONE)
				break;
		taken += s < XMEM_GROUP_SLOTS;
	}
	return taken;
}

/* Say why. Call this before anything is detached, so that the numbers are those that failed. */
static int attach_failed(const struct xmem_pool *pool, u32 count, int err)
{
	char space[XL_NAME_BYTES];
	const char *name = xl_pool_name(pool, space, sizeof(space));
	bool kernel = pool->link.backend == &xmem_backend_kmod;

	if (err == -EDQUOT)
		return xl_fail(EDQUOT,
			       "%s: attach buffers (%u): the host has as many payload files%s as "
			       "it may have; each preallocate makes one, so make more buffers at "
			       "a time",
			       name, count,
			       kernel ? " of this pool (max_payloads), or bytes of metadata "
					"(max_pool_bytes, max_bytes)," : "");
	if (err != -ENOSPC)
		return xl_fail(-err, "%s: attach buffers (%u): %s", name, count,
			       xl_request_error(err));
	return xl_fail(ENOSPC,
		       "%s: no slots for %u buffers: writers get slots in groups of %u, and %u of "
		       "the %u groups have owners; open the pool with more slots",
		       name, count, XMEM_GROUP_SLOTS, groups_taken(&pool->map), pool->map.groups);
}

/* Attach all or none. */
static int attach(struct xmem_pool *pool, int fd, u32 count, u64 stride, u64 bytes, u16 *ret_slot,
		  u32 *ret_payload)
{
	u32 done, payload = 0;
	int err;

	for (done = 0; done < count;) {
		struct xmem_attach_request request = {
			.size = sizeof(request), .fd = payload ? -1 : fd, .payload = payload,
			.offset = done * stride, .stride = stride, .length = bytes,
			.count = count - done < XMEM_GROUP_SLOTS ? count - done : XMEM_GROUP_SLOTS,
		};
		u32 i;

		err = xl_request(pool, XMEM_IOC_ATTACH, &request);
		if (err)
			goto err_detach;
		payload = request.payload;
		memcpy(&ret_slot[done], request.slot, request.count * sizeof(u16));
		done += request.count;
		for (i = done - request.count; i < done; i++) {
			err = pool->link.backend->map_group(&pool->link,
							    ret_slot[i] / XMEM_GROUP_SLOTS);
			if (err)
				goto err_detach;
		}
	}
	*ret_payload = payload;
	return 0;

err_detach:
	err = attach_failed(pool, count, err);
	detach(pool, ret_slot, done);
	return err;
}

int xl_payload_make(struct xmem_pool *pool, u32 count, u64 bytes, u16 *ret_slot)
{
	u64 unit = bytes >= 4096 ? 4096 : 64, stride = (bytes + unit - 1) / unit * unit;
	struct xl_mapping *mapping = calloc(1, sizeof(*mapping));
	int fd, err;

	if (!mapping)
		return xl_fail(ENOMEM, "no memory for a mapping");
	mapping->kind = &xl_payload_memfd;
	mapping->owned = true;
	fd = mapping->kind->make(mapping, stride * count);
	if (fd < 0) {
		err = fd;
		goto err_free;
	}
	err = attach(pool, fd, count, stride, bytes, ret_slot, &mapping->payload);
	close(fd);			/* the host keeps a descriptor of its own */
	if (err)
		goto err_unmap;
	xl_lock(&pool->lock);
	mapping->next = pool->mappings;
	pool->mappings = mapping;
	xl_unlock(&pool->lock);
	return 0;

err_unmap:
	mapping->kind->unmap(mapping);
err_free:
	free(mapping);
	return err;
}

/* ---- mappings ---- */

static bool still_attached(const struct xm_map *map, u32 payload)
{
	u32 s;

	for (s = 0; s < map->slots; s++)
		if (xm_load(&xm_slot_row(map, s)->payload) == payload)
			return true;
	return false;
}

static void unmap_list(struct xl_mapping *list)
{
	struct xl_mapping *mapping;

	while ((mapping = list)) {
		list = mapping->next;
		mapping->kind->unmap(mapping);
		free(mapping);
	}
}

void xl_payload_unmap_stale(struct xmem_pool *pool)
{
	struct xl_mapping **at, *mapping, *stale = NULL;

	xl_lock(&pool->lock);
	for (at = &pool->mappings; (mapping = *at);) {
		if (mapping->owned || mapping->users ||
		    still_attached(&pool->map, mapping->payload)) {
			at = &mapping->next;
			continue;
		}
		*at = mapping->next;
		mapping->next = stale;
		stale = mapping;
	}
	xl_unlock(&pool->lock);
	unmap_list(stale);
}

static struct xl_mapping *map_new(struct xmem_pool *pool, u32 payload)
{
	struct xmem_payload_request request = { .size = sizeof(request), .payload = payload };
	struct xl_mapping *mapping;
	int err;

	xl_payload_unmap_stale(pool);
	err = xl_request(pool, XMEM_IOC_PAYLOAD, &request);
	if (err) {
		xl_fail(-err, "a descriptor of payload %u: %s", payload, xl_request_error(err));
		return NULL;
	}
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping) {
		xl_fail(ENOMEM, "no memory for a mapping");
	} else {
		mapping->kind = &xl_payload_memfd;
		mapping->payload = payload;
		mapping->bytes = request.bytes;
		if (mapping->kind->map(mapping, request.fd)) {
			free(mapping);
			mapping = NULL;
		}
	}
	close(request.fd);
	return mapping;
}

/* Under pool->lock. */
static struct xl_mapping *find(struct xmem_pool *pool, u32 payload)
{
	struct xl_mapping *mapping;

	for (mapping = pool->mappings; mapping && mapping->payload != payload;
	     mapping = mapping->next)
		;
	return mapping;
}

/*
 * Keep a mapping. If another thread has mapped the same payload meanwhile, its mapping is kept
 * and *spare is to be dropped. Under pool->lock.
 */
static struct xl_mapping *add(struct xmem_pool *pool, struct xl_mapping *mapping,
			      struct xl_mapping **spare)
{
	struct xl_mapping *other = find(pool, mapping->payload);

	if (other) {
		*spare = mapping;
		return other;
	}
	mapping->next = pool->mappings;
	pool->mappings = mapping;
	return mapping;
}

/* The slot is held or being written, so its row does not change. */
int xl_payload_map(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, buffer->slot);
	u32 payload = xm_load(&row->payload);
	struct xl_mapping *mapping, *spare = NULL;
	int err = -EIO;

	xl_lock(&pool->lock);
	mapping = find(pool, payload);
	if (!mapping) {
		xl_unlock(&pool->lock);
		mapping = map_new(pool, payload);
		if (!mapping)
			return err;
		xl_lock(&pool->lock);
		mapping = add(pool, mapping, &spare);
	}
	if (buffer->mapping) {			/* another thread has done it meanwhile */
		err = 0;
		mapping = NULL;
	} else if ((row->length > mapping->bytes || row->offset > mapping->bytes - row->length)) {
		xl_fail(EIO, "slot %u lies outside payload %u", buffer->slot, payload);
		mapping = NULL;
	}
	if (mapping) {
		mapping->users++;
		buffer->mapping = mapping;
		__atomic_store_n(&buffer->data, mapping->base + row->offset + buffer->what.offset,
				 __ATOMIC_RELEASE);
		err = 0;
	}
	xl_unlock(&pool->lock);
	unmap_list(spare);
	return err;
}

void xl_payload_unmap_all(struct xmem_pool *pool)
{
	unmap_list(pool->mappings);
	pool->mappings = NULL;
}

// SPDX-License-Identifier: MIT
/*
 * Payload files. A writer makes one sealed memfd for many buffers; it alone has
 * a writable mapping, made before the seals forbid another (P6, P7). A reader
 * maps a file whole when it first asks for data in it, and keeps the mapping:
 * a hand-over in steady state maps nothing.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../private.h"

#define ALLOCATE_BYTES	(4ULL << 20)
#define SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static char *map_file(int file, u64 bytes, int protection)
{
	char *base = mmap(NULL, bytes, protection, MAP_SHARED, file, 0);

	if (base == MAP_FAILED)
		return NULL;
	madvise(base, bytes, MADV_DONTFORK);	/* a child must not read, or write, later contents */
	madvise(base, bytes, MADV_DONTDUMP);	/* a core dump delays what the host learns (P2) */
	return base;
}

/* ---- writers ---- */

/*
 * Allocated by us, now: a reader must never pay for it, nor fail (P7). In pieces,
 * since a signal undoes the one under way. 0 or an errno.
 */
static int allocate(int file, u64 bytes)
{
	u64 at, piece;
	int err;

	for (at = 0; at < bytes; at += piece) {
		piece = bytes - at < ALLOCATE_BYTES ? bytes - at : ALLOCATE_BYTES;
		do
			err = posix_fallocate(file, at, piece);
		while (err == EINTR);
		if (err)
			return err;
	}
	return 0;
}

/* A memfd of @bytes, allocated, mapped writable, then sealed. */
static int make_file(u64 bytes, char **ret_base)
{
	int file = memfd_create("xmem-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (file < 0)
		return xl_fail(errno, "memfd_create: %s", strerror(errno));
	err = ftruncate(file, bytes) ? errno : allocate(file, bytes);
	if (err) {
		err = xl_fail(err == ENOSPC ? ENOMEM : err, "allocate %llu bytes of payload: %s",
			      (unsigned long long)bytes, strerror(err));
		goto err_close;
	}
	*ret_base = map_file(file, bytes, PROT_READ | PROT_WRITE);
	if (!*ret_base) {
		err = xl_fail(ENOMEM, "map %llu bytes of payload: %s", (unsigned long long)bytes, strerror(errno));
		goto err_close;
	}
	if (fcntl(file, F_ADD_SEALS, SEALS)) {
		err = xl_fail(errno, "seal a payload: %s", strerror(errno));
		goto err_unmap;
	}
	return file;

err_unmap:
	munmap(*ret_base, bytes);
err_close:
	close(file);
	return err;
}

static void detach(struct xmem_pool *pool, const u16 *slot, u32 count)
{
	while (count--) {
		struct xmem_slot_request request = { .size = sizeof(request), .slot = slot[count] };

		xl_request(pool, XMEM_IOC_DETACH, &request);
	}
}

/* All of them or none. */
static int attach(struct xmem_pool *pool, int file, u32 count, u64 stride, u64 bytes, u16 *ret_slot, u32 *ret_payload)
{
	u32 done, payload = 0;
	int err;

	for (done = 0; done < count;) {
		struct xmem_attach_request request = {
			.size = sizeof(request), .fd = payload ? -1 : file, .payload = payload,
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
			err = pool->link.backend->map_group(&pool->link, ret_slot[i] / XMEM_GROUP_SLOTS);
			if (err)
				goto err_detach;
		}
	}
	*ret_payload = payload;
	return 0;

err_detach:
	detach(pool, ret_slot, done);
	return xl_fail(-err, err == -ENOSPC ? "attach %u buffers: the pool has too few free slots%s" :
		       "attach %u buffers: %s", count, err == -ENOSPC ? "" : strerror(-err));
}

int xl_payload_make(struct xmem_pool *pool, u32 count, u64 bytes, u16 *ret_slot)
{
	u64 unit = bytes >= 4096 ? 4096 : 64, stride = (bytes + unit - 1) / unit * unit;
	struct xl_mapping *mapping = calloc(1, sizeof(*mapping));
	int file, err;

	if (!mapping)
		return xl_fail(ENOMEM, "no memory for a mapping");
	file = make_file(stride * count, &mapping->base);
	if (file < 0) {
		err = file;
		goto err_free;
	}
	mapping->bytes = stride * count;
	mapping->writable = mapping->owned = true;
	err = attach(pool, file, count, stride, bytes, ret_slot, &mapping->payload);
	if (err)
		goto err_unmap;
	close(file);			/* the host has its own */
	xl_lock(&pool->lock);
	mapping->next = pool->mappings;
	pool->mappings = mapping;
	xl_unlock(&pool->lock);
	return 0;

err_unmap:
	munmap(mapping->base, mapping->bytes);
	close(file);
err_free:
	free(mapping);
	return err;
}

/* ---- readers ---- */

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
		munmap(mapping->base, mapping->bytes);
		free(mapping);
	}
}

void xl_payload_unmap_stale(struct xmem_pool *pool)
{
	struct xl_mapping **at, *mapping, *stale = NULL;

	xl_lock(&pool->lock);
	for (at = &pool->mappings; (mapping = *at);) {
		if (mapping->owned || mapping->users || still_attached(&pool->map, mapping->payload)) {
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
		xl_fail(-err, "a descriptor of payload %u: %s", payload, strerror(-err));
		return NULL;
	}
	mapping = calloc(1, sizeof(*mapping));
	if (mapping)
		mapping->base = map_file(request.fd, request.bytes, PROT_READ);
	if (!mapping || !mapping->base) {
		xl_fail(ENOMEM, "map payload %u, %llu bytes: %s", payload, (unsigned long long)request.bytes,
			strerror(errno));
		free(mapping);
		mapping = NULL;
	} else {
		mapping->bytes = request.bytes;
		mapping->payload = payload;
	}
	close(request.fd);
	return mapping;
}

/* Under pool->lock. */
static struct xl_mapping *find(struct xmem_pool *pool, u32 payload)
{
	struct xl_mapping *mapping;

	for (mapping = pool->mappings; mapping && mapping->payload != payload; mapping = mapping->next)
		;
	return mapping;
}

/* Of two threads that have mapped the same file one keeps it. Under pool->lock; *spare is to be dropped. */
static struct xl_mapping *add(struct xmem_pool *pool, struct xl_mapping *mapping, struct xl_mapping **spare)
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

/* Make buffer->data point at its contents. The slot is held, so its row stands still. */
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
	if (buffer->mapping) {			/* another thread has been quicker */
		err = 0;
		mapping = NULL;
	} else if ((row->length > mapping->bytes || row->offset > mapping->bytes - row->length)) {
		xl_fail(EIO, "slot %u lies outside payload %u", buffer->slot, payload);
		mapping = NULL;
	}
	if (mapping) {
		mapping->users++;
		buffer->mapping = mapping;
		__atomic_store_n(&buffer->data, mapping->base + row->offset + buffer->what.offset, __ATOMIC_RELEASE);
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

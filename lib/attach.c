// SPDX-License-Identifier: MIT
/*
 * Attaching a file that somebody else has made. Its slot is for one content: it stands in a list
 * of its own (owned->once), where no acquire looks, and is detached when nobody uses it any more.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "gpu/order.h"
#include "demand.h"
#include "died.h"
#include "handle.h"
#include "holders.h"
#include "limits.h"
#include "owned.h"
#include "pages.h"
#include "payload/payload.h"
#include "request.h"
#include "wait.h"

_Static_assert(XMEM_BUFFER_SHARED == XMEM_TRAIT_SHARED &&
	       XMEM_BUFFER_CONSTANT == XMEM_TRAIT_CONSTANT &&
	       XMEM_BUFFER_HUGE == XMEM_TRAIT_HUGE && XMEM_BUFFER_ATTACHED == XMEM_TRAIT_ONCE &&
	       XMEM_BUFFER_DMABUF == XMEM_TRAIT_DMABUF &&
	       XMEM_BUFFER_CUDA == XMEM_TRAIT_CUDA && XMEM_BUFFER_MORTAL == XMEM_TRAIT_HANDLE &&
	       XMEM_BUFFER_READERS == XMEM_TRAIT_READERS,
	       "traits and flags");

/* ---- detaching what nobody uses any more ---- */

/* READY -> FREE, and out of the list; the caller detaches it. Under owned->lock. */
static u16 take_out(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_owned_slot *one = xl_ready(owned->once);

	owned->once->ready++;
	xm_give_up(&pool->map, one->own.slot);
	xl_once_remove(pool, one);
	return one->own.slot;
}

/*
 * Unmap the file of a slot that nobody uses. The row names that file; pool->mappings.place may
 * still name one that was in the slot before. A client that has been ended reads zeros, as if
 * nobody used any slot: its mappings stay for its program.
 */
static void unmap(struct xmem_pool *pool, u16 slot)
{
	u64 payload = xm_load(&xm_slot_row(&pool->map, slot)->payload);
	struct xl_mapping *mapping;

	xl_lock(&pool->lock);
	mapping = xl_mapping_find(pool, payload);
	xl_unlock(&pool->lock);
	if (mapping && !mapping->memory && !xl_client_is_over(pool))
		xl_mapping_remove(pool, mapping);
}

/* Nobody wants to know the result: a slot of ours that is FREE can be detached. */
static void detach(struct xmem_pool *pool, const u16 *slot, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct xmem_slot_request request = { .size = sizeof(request), .slot = slot[i] };

		unmap(pool, slot[i]);
		xl_post(pool, XMEM_IOC_DETACH, &request);
		__atomic_store_n(&pool->owned.detaching, true, __ATOMIC_RELEASE);
	}
}

void xl_attached_settle(struct xmem_pool *pool)
{
	xl_attached_sweep(pool);
	if (__atomic_exchange_n(&pool->owned.detaching, false, __ATOMIC_ACQUIRE))
		xl_settle_posts(pool);
}

/* Who waits for slots, or polls for them, has some now: what is posted precedes a request. */
static void freed(struct xmem_pool *pool)
{
	xl_demand_detached(pool);
	xl_owned_wake(pool);
	xl_poll_settle(pool, POLLOUT);
}

/* Let the first READY slot be one that no stream of this process has yet to write. */
static bool bring_settled(const struct xmem_pool *pool, struct xl_size *once)
{
	struct xm_own **first = &once->circle[once->ready & once->mask], **other, *own;
	u32 at;

	for (at = once->ready; at != once->live; at++) {
		other = &once->circle[at & once->mask];
		if (!xl_order_is_settled(pool, (*other)->slot))
			continue;
		own = *first;
		*first = *other;
		*other = own;
		return true;
	}
	return false;
}

/* Make slots that nobody uses READY. false: there were none, as far as anybody knows. */
static bool collect(struct xmem_pool *pool, struct xl_size *once)
{
	u32 ready = once->live - once->ready;

	xl_collect_passed(pool, once);
	xl_collect_busy(pool, once);
	return once->live - once->ready != ready;
}

/* Take up to a batch of slots that nobody uses. Returns how many. Under owned->lock. */
static u32 take_unused(struct xmem_pool *pool, u16 *ret_slot)
{
	struct xl_size *once = pool->owned.once;
	u32 count = 0;

	while (count < XL_MAX_BATCH && once && (bring_settled(pool, once) || collect(pool, once)))
		if (bring_settled(pool, once))
			ret_slot[count++] = take_out(pool);
	return count;
}

u32 xl_attached_sweep_all(struct xmem_pool *pool)
{
	u16 slot[XL_MAX_BATCH];
	u32 count, all = 0;

	do {
		xl_lock(&pool->owned.lock);
		count = take_unused(pool, slot);
		xl_unlock(&pool->owned.lock);
		detach(pool, slot, count);
		all += count;
	} while (count == XL_MAX_BATCH);
	if (all)
		freed(pool);
	return all;
}

/* Take the oldest that subscribers may lose away from them. Returns whether there was one. */
static bool evict(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;
	bool any;

	xl_lock(&owned->lock);
	xm_look_at_waited(&pool->map, pool->me, &waited);
	any = owned->once && xl_evict(pool, owned->once, &waited);
	xl_unlock(&owned->lock);
	return any && xl_attached_sweep_all(pool);
}

void xl_attached_give_up(struct xmem_pool *pool, u32 slot)
{
	struct xl_owned *owned = &pool->owned;
	bool settled = xl_order_is_settled(pool, slot);
	struct xl_owned_slot *one = &owned->slot[slot];
	u16 number = slot;

	xl_lock(&owned->lock);
	if (settled) {
		xm_give_up(&pool->map, slot);
		xl_once_remove(pool, one);
	} else {		/* a stream still copies from it; a later sweep detaches it */
		xm_store(&one->own.word->position, 0);
		xl_ready_add(owned->once, one);
	}
	xl_unlock(&owned->lock);
	if (settled)
		detach(pool, &number, 1);
	xl_break_promise(pool);
	freed(pool);
}

/* ---- why not ---- */

static int refused_seals(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return xl_fail(ENOEXEC, "attach: this memfd is not sealed%s%s%s, so its contents could "
		       "change or vanish while others read them; F_ADD_SEALS them",
		       seals & F_SEAL_SHRINK ? "" : " F_SEAL_SHRINK",
		       seals & F_SEAL_GROW ? "" : " F_SEAL_GROW",
		       seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) ? "" : " F_SEAL_WRITE");
}

static bool is_dmabuf(int fd)
{
	static const char name[] = "/dmabuf:";
	char path[32], target[sizeof(name) - 1];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) == sizeof(target) &&
	       !memcmp(target, name, sizeof(target));
}

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFSOCK:
		return "a socket";
	case S_IFIFO:
		return "a pipe";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	case S_IFDIR:
		return "a folder";
	}
	return "a file without contents";
}

/* What cannot be a memfd, nor a dma-buf, whatever the host is. 0 or -errno, noted. */
static int check_kind(int fd, mode_t mode, u64 bytes)
{
	if (fcntl(fd, F_GETFL) & O_PATH)
		return xl_fail(EACCES, "attach: descriptor %d is not open for reading, it only "
			       "names the file (O_PATH)", fd);
	/* What is none of all these, such as a dma-buf, has no type. */
	if (S_ISREG(mode) || (!(mode & S_IFMT) && bytes))
		return 0;
	return xl_fail(EMEDIUMTYPE, "attach: descriptor %d is not a memfd but %s; read it into a "
		       "buffer", fd, kind_of(mode));
}

static int refused(struct xmem_pool *pool, int fd, const struct xmem_attach_request *request,
		   int err)
{
	char space[XL_NAME_BYTES], limit[XL_LIMIT_BYTES];
	const char *name = xl_pool_name(pool, space, sizeof(space));

	switch (-err) {
	case EMEDIUMTYPE:
		if (is_dmabuf(fd))
			return xl_fail(EMEDIUMTYPE, "attach: descriptor %d is a dma-buf, which "
				       "xmemd cannot keep others from writing; xmem.ko can", fd);
		return xl_fail(EMEDIUMTYPE, "attach: descriptor %d is not a memfd; others can "
			       "shrink or write such a file, so copy it into a buffer", fd);
	case ENOEXEC:
		return refused_seals(fd);
	case EACCES:
		return xl_fail(EACCES, "attach: descriptor %d is not open for reading", fd);
	case ERANGE:
		return xl_fail(ERANGE, "attach: %llu bytes from %llu on reach beyond the end of "
			       "the file, or the file has holes (fallocate fills them)",
			       (unsigned long long)request->length,
			       (unsigned long long)request->offset);
	case EBUSY:
		return xl_fail(EBUSY, "attach: somebody has a lease of descriptor %d's file "
			       "(F_SETLEASE), or is running it as a program", fd);
	case ENOSPC:
		return xl_fail_too_few_slots(pool, 1);
	}
	return xl_fail(-err, "attach: %s: %s", name, xl_host_error(pool, err, limit));
}

/* ---- attaching ---- */

/* What is no ordinary file may know its length too: a dma-buf says where its end is. */
static u64 bytes_of(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	return end > 0 ? end : 0;
}

/* Of what is no memfd the host says first that it is none. */
static bool is_beyond(int fd, u64 offset, u64 length, u64 bytes)
{
	return fcntl(fd, F_GET_SEALS) >= 0 && (offset > bytes || length > bytes - offset);
}

/* The contents as they are asked for, whose length may be left to the file. 0 or -errno, noted. */
static int find_length(int fd, u64 offset, u64 *length, u64 *ret_bytes)
{
	struct stat info;
	int err;

	if (fstat(fd, &info))
		return xl_fail(errno, "attach: descriptor %d: %s", fd, strerror(errno));
	*ret_bytes = info.st_size;
	if (!S_ISREG(info.st_mode) || !info.st_size)
		*ret_bytes = bytes_of(fd);
	err = check_kind(fd, info.st_mode, *ret_bytes);
	if (err)
		return err;
	if (!*length && offset < *ret_bytes)
		*length = *ret_bytes - offset;
	if (*length && !is_beyond(fd, offset, *length, *ret_bytes))
		return 0;
	if (*length)
		return xl_fail(ERANGE, "attach: %llu bytes from %llu on reach beyond the end of "
			       "the file, which has %llu bytes", (unsigned long long)*length,
			       (unsigned long long)offset, (unsigned long long)*ret_bytes);
	return xl_fail(ERANGE, "attach: offset %llu is beyond the end of the file, which has %llu "
		       "bytes", (unsigned long long)offset, (unsigned long long)*ret_bytes);
}

/* A request fails for want of slots or files, or because of the file. 0 or -errno, not noted. */
int xl_attach_request(struct xmem_pool *pool, struct xmem_attach_request *request)
{
	int err;

	do
		err = xl_request(pool, XMEM_IOC_ATTACH, request);
	while ((err == -ENOSPC || err == -EDQUOT) &&
	       (xl_cache_drop_idle(pool, true) || evict(pool)));
	return err;
}

int xl_attach_take(struct xmem_pool *pool, u16 slot, struct xl_mapping *mapping)
{
	char limit[XL_LIMIT_BYTES];
	int err = pool->link.backend->map_group(&pool->link, slot / XMEM_GROUP_SLOTS);

	if (!err)
		err = xl_once_add(pool, slot);
	if (err) {
		xl_fail(-err, "attach: %s", xl_host_error(pool, err, limit));
		detach(pool, &slot, 1);
		return err;
	}
	xl_place(pool, slot, mapping);
	xl_mapping_add(pool, mapping);
	return 0;
}

/* Map the file and make its slot ours. 0 or -errno, noted. Under pool->slow. */
static int take(struct xmem_pool *pool, int fd, u16 slot, struct xl_mapping *mapping)
{
	int err = xl_mapping_map(pool, mapping, fd);

	if (err) {
		detach(pool, &slot, 1);
		return err;
	}
	err = xl_attach_take(pool, slot, mapping);
	if (err)
		mapping->kind->unmap(mapping);
	return err;
}

/* Attach @length bytes from @offset on. 0 and *ret_slot, or -errno, noted. Under pool->slow. */
static int attach(struct xmem_pool *pool, int fd, u64 offset, u64 length, u64 bytes,
		  u16 *ret_slot)
{
	struct xl_mapping *mapping = calloc(1, sizeof(*mapping));
	struct xmem_attach_request request = {
		.size = sizeof(request), .flags = XMEM_ATTACH_ONCE, .fd = fd, .offset = offset,
		.length = length < XL_MAX_BYTES ? length : XL_MAX_BYTES, .count = 1,
	};
	int err;

	request.stride = (request.length + 63) / 64 * 64;
	if (!mapping)
		return xl_fail(ENOMEM, "no memory for a mapping");
	err = xl_attach_request(pool, &request);
	if (err) {
		err = refused(pool, fd, &request, err);
	} else {
		mapping->kind = &xl_payload_memfd;
		mapping->payload = request.payload;
		mapping->bytes = bytes;
		*ret_slot = request.slot[0];
		err = take(pool, fd, *ret_slot, mapping);
	}
	if (err)
		free(mapping);
	return err;
}

int xl_promise(struct xmem_pool *pool, const char *what)
{
	struct xl_owned *owned = &pool->owned;
	bool full;

	xl_lock(&owned->lock);
	full = xl_ring_is_full(pool);
	if (full) {
		xl_note_full(pool);
		if (xl_demote_at(pool) <= xl_now_ns())
			xl_demote(pool);
		full = xl_ring_is_full(pool);
	}
	owned->promised += !full;
	xl_unlock(&owned->lock);
	return full ? xl_fail(EAGAIN, "%s: the ring is full of what subscribers that are waited "
				      "for have yet to receive", what) : 0;
}

void xl_break_promise(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	owned->promised--;
	owned->none = false;
	xl_unlock(&owned->lock);
	xl_owned_wake(pool);
}

static int attach_promised(struct xmem_pool *pool, int fd, u64 offset, u64 length, u64 bytes,
			   u16 *ret_slot)
{
	int err = xl_promise(pool, "attach"), cancel;

	if (err)
		return err;
	/* A thread that is cancelled here would keep what it has made, and the turn. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = xl_slow_begin(pool, ~0ULL);
	if (!err) {
		err = attach(pool, fd, offset, length, bytes, ret_slot);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	if (err)
		xl_break_promise(pool);
	return err;
}

static int check(struct xmem_pool *pool, u64 offset, u32 flags)
{
	int err = xl_check_writer(pool, "attach", XMEM_FOREVER);

	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (flags)
		return xl_fail(EINVAL, "attach: flags has 0x%x, which has no meaning", flags);
	if (offset % 64)
		return xl_fail(EINVAL, "attach: offset %llu is not a multiple of 64",
			       (unsigned long long)offset);
	return 0;
}

struct xmem_buffer *xl_attach_hand_out(struct xmem_buffer *buffer, u32 slot, u64 bytes, u32 mode)
{
	buffer->slot = slot;
	buffer->own = &buffer->pool->owned.slot[slot];
	buffer->what = (struct xm_publication){ .length = bytes };
	xl_handle_use(buffer, mode);
	return xl_handle(buffer);
}

XMEM_API struct xmem_buffer *xmem_attach_fd(struct xmem_pool *pool, int fd, uint64_t offset,
					    uint64_t length, uint32_t flags)
{
	struct xmem_buffer *buffer;
	u64 bytes = 0, asked = length;
	u16 slot = 0;
	XL_USE(pool);

	if (check(pool, offset, flags) || find_length(fd, offset, &asked, &bytes))
		return NULL;
	xl_attached_sweep(pool);
	buffer = xl_handle_new(pool);
	if (!buffer)
		return NULL;
	if (attach_promised(pool, fd, offset, asked, bytes, &slot)) {
		xl_handle_unused(buffer);
		return NULL;
	}
	return xl_attach_hand_out(buffer, slot, asked, XL_WRITING | XL_FIXED);
}

// SPDX-License-Identifier: MIT
/* Makes buffers: decides how many share a file, and attaches all of them or none. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/host/pages.h"
#include "lib/host/quota.h"
#include "lib/host/request.h"
#include "lib/host/taken.h"
#include "lib/own/holders.h"
#include "lib/payload/payload.h"

/*
 * One held buffer keeps its whole file, because the seals forbid punching holes into it. So files
 * are small. But a host limits the number of files, so one call makes at most MAX_FILES.
 */
#define MAX_FILES	1024u

/* ---- attaching ---- */

/*
 * Detach slots, and wait for the host once, so that usually nothing is left on return. The host may
 * be stopped.
 */
static void detach(struct xmem_pool *pool, const u16 *slot, u32 count)
{
	if (!count)
		return;
	while (count--)
		xl_post_slot(pool, XMEM_OP_DETACH, slot[count]);
	xl_drain_posts(pool);
}

static int refused(struct xmem_pool *pool, const struct xl_buffers *buffers, int fd, int err)
{
	u32 count = buffers->count;
	char space[XL_NAME_BYTES];
	const char *name = xl_pool_name(pool, space, sizeof(space));
	char limit[XL_LIMIT_BYTES];

	if (err == -EDQUOT)
		return xl_fail(EDQUOT,
			       "%s: attach buffers (%u): %s; a file has at most %u buffers and "
			       "about %llu MB, so make fewer, or more small ones at a time",
			       name, count, xl_host_error(pool, err, limit), XMEM_GROUP_SLOTS,
			       XL_FILE_BYTES >> 20);
	if (err != -ENOSPC)
		return xl_fail(-err, "%s: attach buffers (%u): %s", name, count,
			       xl_request_error(err));
	return xl_fail_too_few_slots(pool, count);
}

/*
 * Attach @count buffers of a new file, at most as many as a group has slots. Returns 0 or -errno,
 * not noted.
 */
static int attach(struct xmem_pool *pool, int fd, const struct xl_buffers *buffers, u32 count,
		  struct xl_mapping *mapping, u16 *ret_slot)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = fd, .stride = buffers->stride,
		.length = buffers->bytes, .count = count,
		.flags = mapping->shared ? XMEM_ATTACH_SHARED : 0,
	};
	u64 answer_by = buffers->answer_by ? buffers->answer_by : ~0ULL;
	u32 i;
	int err;

	if (buffers->place->describe)
		buffers->place->describe(mapping, &request);
	else if (mapping->shared)	/* nobody else is to use a file that the library made */
		request.flags |= XMEM_ATTACH_TRUNCATE;
	err = xl_request_until(pool, XMEM_IOC_ATTACH, &request, answer_by);
	if (err)
		return err;
	mapping->payload = request.payload;
	memcpy(ret_slot, request.slot, count * sizeof(*ret_slot));
	for (i = 0; i < count && !err; i++) {
		xl_place(pool, ret_slot[i], mapping);
		err = pool->link.backend->map_group(&pool->link, ret_slot[i] / XMEM_GROUP_SLOTS);
	}
	if (err)
		detach(pool, ret_slot, count);
	return err;
}

/* ---- files ---- */

static u64 stride_of(const struct xl_buffers *buffers)
{
	u64 bytes = buffers->bytes, page = xl_page_bytes();
	u64 unit = buffers->place->alignment;

	if (!unit)
		unit = bytes >= page || bytes >= XL_AT_PAGES ? page : 64;

	return (bytes + unit - 1) / unit * unit;
}

/*
 * The most bytes for the buffers of one file. This is at least a huge page, because a file takes
 * whole huge pages, and these have 32 MB with pages of 16 KiB. On demand, the caller decides how
 * many buffers share a file.
 */
static u64 most_bytes(const struct xl_buffers *buffers, u64 stride)
{
	u64 huge = 0;

	if (buffers->demand)
		return buffers->count * stride;
	if (buffers->flags & XMEM_MEMORY_HUGE)
		huge = xl_huge_page_bytes();
	return huge > XL_FILE_BYTES ? huge : XL_FILE_BYTES;
}

/* A file beyond RLIMIT_FSIZE would not only fail: SIGXFSZ would kill the program. */
int xl_payload_shape(const struct xl_buffers *buffers, struct xl_making *ret)
{
	u64 stride = buffers->stride ? buffers->stride : stride_of(buffers);
	u64 most = most_bytes(buffers, stride) / stride;
	u32 least = (buffers->count + MAX_FILES - 1) / MAX_FILES;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (buffers->place->in_files)
		getrlimit(RLIMIT_FSIZE, &limit);
	if (stride > limit.rlim_cur)
		return xl_fail(EFBIG, "a buffer needs a file of %llu bytes, but this "
			       "process may only make files of %llu (RLIMIT_FSIZE, ulimit -f)",
			       (unsigned long long)stride, (unsigned long long)limit.rlim_cur);
	most = most < least ? least : most;
	most = most > XMEM_GROUP_SLOTS ? XMEM_GROUP_SLOTS : most;
	most = most > limit.rlim_cur / stride ? limit.rlim_cur / stride : most;
	*ret = (struct xl_making){ .buffers = *buffers, .per_file = most ? most : 1 };
	ret->buffers.stride = stride;
	return 0;
}

/* Is there memory for the rest? This is checked at first, and again after each XL_FILE_BYTES. */
static int check_room(struct xl_making *making)
{
	const struct xl_buffers *buffers = &making->buffers;
	u64 made = making->done * buffers->stride;

	if (made && made - making->looked < XL_FILE_BYTES)
		return 0;
	making->looked = made;
	return xl_room_check((buffers->count - making->done) * buffers->stride);
}

/*
 * Make a file, in huge pages if the flags want them and there are enough. A file that is made on
 * demand and is smaller than a huge page asks for none, because the kernel would take a whole one.
 * Returns a descriptor or -errno.
 */
static int new_file(struct xl_making *making, u64 bytes, struct xl_mapping *mapping)
{
	bool huge = making->buffers.flags & XMEM_MEMORY_HUGE;
	int fd = 0, err;

	mapping->advised = huge &&
			   (!making->buffers.demand || bytes >= xl_transparent_page_bytes());
	if (huge && !making->buffers.ordinary) {
		mapping->kind = &xl_payload_hugetlb;
		fd = mapping->kind->make(mapping, bytes);
	}
	if (fd) {
		mapping->advised = false;
		return fd;
	}
	err = check_room(making);
	if (err)
		return err;
	mapping->kind = &xl_payload_memfd;
	return mapping->kind->make(mapping, bytes);
}

static int make(struct xmem_pool *pool, struct xl_making *making, u64 bytes,
		struct xl_mapping *mapping, int *ret_fd)
{
	*ret_fd = new_file(making, bytes, mapping);
	return *ret_fd < 0 ? *ret_fd : 0;
}

const struct xl_buffer_place xl_place_cpu = {
	.in_files = true, .make = make, .refused = refused,
};

/* The size of a file. On demand it is whole pages, as the system counts it. */
static u64 file_bytes(const struct xl_buffers *buffers, u32 count)
{
	u64 unit = buffers->demand ? xl_page_bytes() : 1;

	return (buffers->stride * count + unit - 1) / unit * unit;
}

/* Make a file of @count buffers, attach them, and add its mapping to the list. */
static int make_file(struct xmem_pool *pool, struct xl_making *making, u32 count, u16 *ret_slot)
{
	const struct xl_buffers *buffers = &making->buffers;
	struct xl_mapping *mapping = calloc(1, sizeof(*mapping));
	int fd, err;

	if (!mapping)
		return xl_fail(ENOMEM, "no memory for a mapping");
	mapping->owned = true;
	mapping->demand = buffers->demand;
	mapping->slots = count;
	mapping->buffer_bytes = buffers->bytes;
	mapping->chain = buffers->chain;
	mapping->shared = !(buffers->flags & XMEM_MEMORY_SEALED);
	do
		err = buffers->place->make(pool, making, file_bytes(buffers, count), mapping, &fd);
	while (err && xl_payload_made_room(pool, err));
	if (err) {
		free(mapping);
		return err;
	}
	err = attach(pool, fd, buffers, count, mapping, ret_slot);
	if (err) {
		xl_mappings_unmap(mapping);
		err = buffers->place->refused(pool, buffers, fd, err);
	}
	if (fd >= 0)
		xl_file_close(fd);	/* the host has a descriptor of its own */
	if (err)
		return err;
	mapping->next = making->list;
	making->list = mapping;
	making->done += count;
	making->files++;
	return 0;
}

int xl_payload_make(struct xmem_pool *pool, const struct xl_buffers *buffers, u16 *ret_slot)
{
	struct xl_mapping *mapping;
	struct xl_making making = { .done = 0 };
	u32 left;
	int err = xl_payload_shape(buffers, &making);

	if (err)
		return err;
	while (!err && making.done < buffers->count) {
		left = buffers->count - making.done;
		err = make_file(pool, &making, left < making.per_file ? left : making.per_file,
				&ret_slot[making.done]);
	}
	if (err) {
		detach(pool, ret_slot, making.done);
		xl_mappings_unmap(making.list);
		return err;
	}
	while ((mapping = making.list)) {
		making.list = mapping->next;
		xl_mapping_add(pool, mapping);
	}
	return 0;
}

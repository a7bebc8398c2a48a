// SPDX-License-Identifier: MIT
/*
 * xmem_attach_fd: a file that the program or another process has made becomes the payload of a
 * buffer. Its slot is for one content (own/once.c). attach_cuda.c attaches memory of GPUs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/handle.h"
#include "lib/follow/wait.h"
#include "lib/gpu/order.h"
#include "lib/hold/attach.h"
#include "lib/host/died.h"
#include "lib/host/pages.h"
#include "lib/host/quota.h"
#include "lib/host/request.h"
#include "lib/host/taken.h"
#include "lib/own/demand.h"
#include "lib/own/holders.h"
#include "lib/own/owned.h"
#include "lib/payload/payload.h"

_Static_assert(XMEM_BUFFER_SHARED == XMEM_TRAIT_SHARED &&
	       XMEM_BUFFER_CONSTANT == XMEM_TRAIT_CONSTANT &&
	       XMEM_BUFFER_HUGE == XMEM_TRAIT_HUGE && XMEM_BUFFER_ATTACHED == XMEM_TRAIT_ONCE &&
	       XMEM_BUFFER_DMABUF == XMEM_TRAIT_DMABUF &&
	       XMEM_BUFFER_CUDA == XMEM_TRAIT_CUDA && XMEM_BUFFER_MORTAL == XMEM_TRAIT_HANDLE &&
	       XMEM_BUFFER_READERS == XMEM_TRAIT_READERS,
	       "traits and flags");

/* ---- refusals ---- */

static int refused_seals(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return xl_fail(ENOEXEC, "this memfd is not sealed%s%s%s, so its contents could "
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

/*
 * Refuse a descriptor that is neither a memfd nor a dma-buf, whatever the host is. 0 or -errno,
 * noted.
 */
static int check_kind(int fd, mode_t mode, u64 bytes)
{
	if (fcntl(fd, F_GETFL) & O_PATH)
		return xl_fail(EACCES, "descriptor %d is not open for reading, it only "
			       "names the file (O_PATH)", fd);
	/* A file that is of none of these types, such as a dma-buf, has no type. */
	if (S_ISREG(mode) || (!(mode & S_IFMT) && bytes))
		return 0;
	return xl_fail(EMEDIUMTYPE, "descriptor %d is not a memfd but %s; read it into a "
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
			return xl_fail(EMEDIUMTYPE, "descriptor %d is a dma-buf, which "
				       "xmemd cannot keep others from writing; xmem.ko can", fd);
		return xl_fail(EMEDIUMTYPE, "descriptor %d is not a memfd; others can "
			       "shrink or write such a file, so copy it into a buffer", fd);
	case ENOEXEC:
		return refused_seals(fd);
	case EACCES:
		return xl_fail(EACCES, "descriptor %d is not open for reading", fd);
	case ERANGE:
		return xl_fail(ERANGE, "%llu bytes from %llu on reach beyond the end of "
			       "the file, or the file has holes (fallocate fills them)",
			       (unsigned long long)request->length,
			       (unsigned long long)request->offset);
	case EBUSY:
		return xl_fail(EBUSY, "a process has a lease on the file of descriptor %d "
			       "(F_SETLEASE), or is running it as a program", fd);
	case ENOSPC:
		return xl_fail_too_few_slots(pool, 1);
	}
	return xl_fail(-err, "%s: %s", name, xl_host_error(pool, err, limit));
}

/* ---- attaching ---- */

/* The length of a file that is no ordinary file: a dma-buf reports where its end is. */
static u64 bytes_of(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	return end > 0 ? end : 0;
}

/* Only for a memfd: the host refuses any other file for its kind first. */
static bool is_beyond(int fd, u64 offset, u64 length, u64 bytes)
{
	return fcntl(fd, F_GET_SEALS) >= 0 && (offset > bytes || length > bytes - offset);
}

/*
 * Check the part of the file that is to be attached, and find its length if *length is 0. 0 or
 * -errno, noted.
 */
static int find_length(int fd, u64 offset, u64 *length, u64 *ret_bytes)
{
	struct stat info;
	int err;

	if (fstat(fd, &info))
		return xl_fail(errno, "descriptor %d: %s", fd, strerror(errno));
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
		return xl_fail(ERANGE, "%llu bytes from %llu on reach beyond the end of "
			       "the file, which has %llu bytes", (unsigned long long)*length,
			       (unsigned long long)offset, (unsigned long long)*ret_bytes);
	return xl_fail(ERANGE, "offset %llu is beyond the end of the file, which has %llu "
		       "bytes", (unsigned long long)offset, (unsigned long long)*ret_bytes);
}

int xl_attach_take(struct xmem_pool *pool, u16 slot, struct xl_mapping *mapping)
{
	char limit[XL_LIMIT_BYTES];
	int err = pool->link.backend->map_group(&pool->link, slot / XMEM_GROUP_SLOTS);

	if (!err)
		err = xl_once_add(pool, slot);
	if (err) {
		xl_fail(-err, "%s", xl_host_error(pool, err, limit));
		xl_once_detach(pool, &slot, 1);
		return err;
	}
	xl_place(pool, slot, mapping);
	xl_mapping_add(pool, mapping);
	return 0;
}

/* Map the file and make its slot this client's. 0 or -errno, noted. Under pool->slow. */
static int take(struct xmem_pool *pool, int fd, u16 slot, struct xl_mapping *mapping)
{
	int err = xl_mapping_map(pool, mapping, fd);

	if (err) {
		xl_once_detach(pool, &slot, 1);
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
		/* Otherwise a reader could open the file again, and add seals. */
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
		*ret_slot = request.slot[0];
		err = take(pool, fd, *ret_slot, mapping);
	}
	if (err)
		free(mapping);
	return err;
}

static int attach_reserved(struct xmem_pool *pool, int fd, u64 offset, u64 length, u64 bytes,
			   u16 *ret_slot)
{
	int err = xl_reserve_entry(pool, "attach"), cancel;

	if (err)
		return err;
	/*
	 * A thread that is cancelled here would keep the turn, and leak the mapping that it has
	 * made.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = xl_slow_begin(pool, ~0ULL);
	if (!err) {
		err = attach(pool, fd, offset, length, bytes, ret_slot);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	if (err)
		xl_unreserve_entry(pool);
	return err;
}

static int check(struct xmem_pool *pool, u64 offset, u32 flags)
{
	int err = xl_check_writer(pool, XMEM_FOREVER);

	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (flags)
		return xl_fail(EINVAL, "flags has 0x%x, which has no meaning", flags);
	if (offset % 64)
		return xl_fail(EINVAL, "offset %llu is not a multiple of 64",
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
	XL_CALL;
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
	if (attach_reserved(pool, fd, offset, asked, bytes, &slot)) {
		xl_handle_unused(buffer);
		return NULL;
	}
	return xl_attach_hand_out(buffer, slot, asked, XL_WRITING | XL_FIXED);
}

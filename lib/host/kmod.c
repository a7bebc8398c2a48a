// SPDX-License-Identifier: MIT
/*
 * The back end of the kernel module. A join through /dev/xmem gives the client its own file. The
 * back end uses ioctls and mappings of this file: all pages read-only, and the client's own area
 * and groups read-write.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/host.h"
#include "lib/base/files.h"
#include "lib/host/backend.h"

struct kmod_link {			/* link->private */
	char *base;			/* all pages, read-only */
	u64 total_bytes;
	void *area;			/* this client's area, writable */
	u64 area_stride, group_stride, groups_offset;
	bool group[XMEM_MAX_GROUPS];	/* this client's groups that are mapped writable */
};

static int kmod_open(struct xmem_link *link, bool start)
{
	const char *path = secure_getenv("XMEM_DEVICE");

	xl_fork_lock();
	link->file = xl_file_record(open(path && *path ? path : "/dev/xmem", O_RDWR | O_CLOEXEC));
	xl_fork_unlock();
	if (link->file >= 0)
		return 0;
	return errno == ENOENT || errno == ENXIO || errno == ENODEV ? -ENODEV : -errno;
}

/* From now on the link's file is the client's, and not the device's. */
static void kmod_joined(struct xmem_link *link, const struct xmem_join_request *join)
{
	xl_file_close(link->file);
	link->file = join->fd;
}

/*
 * The place of the descriptor in the answer to @request. NULL: the answer has none for the library.
 */
static const __s32 *fd_in(unsigned int request, const void *argument)
{
	const struct xmem_payload_request *payload = argument;
	const struct xmem_poll_fd_request *poll = argument;
	const struct xmem_join_request *join = argument;

	switch (request) {
	case XMEM_IOC_JOIN:
		return &join->fd;
	case XMEM_IOC_PAYLOAD:
		return &payload->fd;
	case XMEM_IOC_POLL_FD:
		return &poll->fd;
	}
	return NULL;
}

static int kmod_request(struct xmem_link *link, unsigned int request, void *argument)
{
	const __s32 *fd = fd_in(request, argument);
	int err;

	if (!fd)
		return ioctl(link->file, request, argument) < 0 ? -errno : 0;
	xl_fork_lock();
	err = ioctl(link->file, request, argument) < 0 ? -errno : 0;
	if (!err)
		xl_file_record(*fd);
	xl_fork_unlock();
	if (!err && request == XMEM_IOC_JOIN)
		kmod_joined(link, argument);
	return err;
}

/* An ioctl never waits for another process, so it is done before any deadline. */
static int kmod_request_until(struct xmem_link *link, unsigned int request, void *argument,
			      u64 deadline_ns)
{
	return kmod_request(link, request, argument);
}

static void kmod_post(struct xmem_link *link, unsigned int request, const void *argument)
{
	ioctl(link->file, request, argument);
}

static int kmod_map(struct xmem_link *link, struct xm_map *map)
{
	struct kmod_link *kmod = calloc(1, sizeof(*kmod));
	struct xmem_pool_header pool;
	u64 at;
	int err;

	if (!kmod)
		return -ENOMEM;
	kmod->total_bytes = link->join.total_bytes;
	kmod->base = mmap(NULL, kmod->total_bytes, PROT_READ, MAP_SHARED, link->file, 0);
	if (kmod->base == MAP_FAILED) {
		err = -errno;
		goto err_free;
	}
	err = xm_map_take(map, kmod->base, kmod->total_bytes, link->join.client, &pool);
	if (err)
		goto err_unmap;
	kmod->area_stride = pool.area_stride;
	kmod->group_stride = pool.group_stride;
	kmod->groups_offset = pool.groups_offset;
	at = pool.areas_offset + link->join.client * pool.area_stride;
	kmod->area =
		mmap(NULL, kmod->area_stride, PROT_READ | PROT_WRITE, MAP_SHARED, link->file, at);
	if (kmod->area == MAP_FAILED) {
		err = -errno;
		goto err_unmap;
	}
	map->area[link->join.client] = kmod->area;
	link->private = kmod;
	link->map = map;
	return 0;

err_unmap:
	munmap(kmod->base, kmod->total_bytes);
err_free:
	free(kmod);
	return err;
}

static int kmod_map_group(struct xmem_link *link, u32 group)
{
	struct kmod_link *kmod = link->private;
	void *pages;

	if (kmod->group[group])
		return 0;
	pages = mmap(NULL, kmod->group_stride, PROT_READ | PROT_WRITE, MAP_SHARED, link->file,
		     kmod->groups_offset + group * kmod->group_stride);
	if (pages == MAP_FAILED)
		return -errno;
	xm_store_release(&link->map->group[group], pages); /* other threads may be reading it */
	kmod->group[group] = true;
	return 0;
}

static void unmap(struct xmem_link *link, struct kmod_link *kmod)
{
	u32 g;

	for (g = 0; g < XMEM_MAX_GROUPS; g++)
		if (kmod->group[g])
			munmap(link->map->group[g], kmod->group_stride);
	munmap(kmod->area, kmod->area_stride);	/* this ends the client, if it has not ended
						 * before */
	munmap(kmod->base, kmod->total_bytes);
	free(kmod);
}

static void kmod_close(struct xmem_link *link)
{
	if (link->private)
		unmap(link, link->private);
	link->private = NULL;
	if (link->file >= 0)
		xl_file_close(link->file);
	link->file = -1;
}

/* The child has no mappings (VM_DONTCOPY), so it must not unmap anything at their addresses. */
static void kmod_forked(struct xmem_link *link)
{
	free(link->private);
	link->private = NULL;
	if (link->file >= 0)
		close(link->file);
	link->file = -1;
}

const struct xmem_backend xmem_backend_kmod = {
	.name = "kernel",
	.open = kmod_open,
	.request = kmod_request,
	.request_until = kmod_request_until,
	.post = kmod_post,
	.map = kmod_map,
	.map_group = kmod_map_group,
	.close = kmod_close,
	.forked = kmod_forked,
};

// SPDX-License-Identifier: MIT
/*
 * Payload files: which files are accepted, how long each is kept, and with what access it is handed
 * out. core/host.h is about slots and their owners.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon.h"

_Static_assert(XM_SEAL_SEAL == F_SEAL_SEAL && XM_SEAL_SHRINK == F_SEAL_SHRINK &&
	       XM_SEAL_GROW == F_SEAL_GROW && XM_SEAL_WRITE == F_SEAL_WRITE &&
	       XM_SEAL_FUTURE_WRITE == F_SEAL_FUTURE_WRITE, "seals");

/*
 * The file must be a memfd that cannot shrink. Unless it is shared, no new mapping or descriptor
 * may be able to write it or punch holes into it.
 */
static int check_seals(int fd, bool shared, u32 *ret_traits)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return errno == EINVAL ? -EMEDIUMTYPE : -errno;
	*ret_traits = (shared ? XMEM_TRAIT_SHARED : 0) |
		      (seals & F_SEAL_WRITE ? XMEM_TRAIT_CONSTANT : 0);
	return xm_seals_check(seals, shared);
}

/* Readers need to read the file, and writers of a shared file to write it. */
static int check_access(int fd, bool shared)
{
	int access = fcntl(fd, F_GETFL) & O_ACCMODE;

	return access == O_WRONLY || (shared && access != O_RDWR) ? -EACCES : 0;
}

/*
 * The file must have no holes, because a hole would be filled on the account of its readers. Huge
 * pages are an exception: they are reserved when they are mapped.
 */
static int check_filled(int fd, u64 *ret_bytes, u32 *traits)
{
	struct statfs fs;
	struct stat info;

	if (fstat(fd, &info) || fstatfs(fd, &fs))
		return -errno;
	*traits |= fs.f_type == HUGETLBFS_MAGIC ? XMEM_TRAIT_HUGE : 0;
	if (fs.f_type != HUGETLBFS_MAGIC && (u64)info.st_blocks * 512 < (u64)info.st_size)
		return -ERANGE;
	*ret_bytes = info.st_size;
	return 0;
}

/*
 * Open the file again with this access; a duplicate would have the access of @fd. The open does not
 * wait for a lease (F_SETLEASE), because all clients would have to wait with the daemon. A lease is
 * -EBUSY, and never -EAGAIN, which a receiver would take for "nothing there".
 */
static int open_anew(int fd, int access)
{
	char path[32];
	int anew;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	anew = open(path, access | O_CLOEXEC | O_NONBLOCK);
	if (anew < 0)
		return errno == EWOULDBLOCK || errno == ETXTBSY ? -EBUSY : -errno;
	fcntl(anew, F_SETFL, 0);	/* a process that gets it reads as from any file */
	return anew;
}

/*
 * Replace the caller's open file by one of the daemon's own, which is read-only as in the module
 * (xk_memfd_own in kmod/files.c says which leases it prevents). In the module a shared file has a
 * second open file for writing. It has none here, because descriptors are few and all clients
 * belong to one user. So a read lease can get in the way of its writers, which is -EBUSY.
 *
 * The first open has the caller's access, so a lease that is already there is -EBUSY, whether it is
 * in the way of readers or of the owner. The caller closes @fd, also after an error.
 */
static int make_own(int fd)
{
	int first = open_anew(fd, fcntl(fd, F_GETFL) & O_ACCMODE), own, err = 0;

	if (first < 0)
		return first;
	own = open_anew(fd, O_RDONLY);
	if (own < 0)
		err = own;
	else if (dup3(own, fd, O_CLOEXEC) < 0)
		err = -errno;
	if (own >= 0)
		close(own);
	close(first);
	return err;
}

static struct xd_payload **list_of(struct xd_pool *pool, u64 id)
{
	return &pool->payloads[id % XD_PAYLOAD_LISTS];
}

static void enter(struct xd_pool *pool, struct xd_payload *payload)
{
	struct xd_payload **list = list_of(pool, payload->id);

	payload->next = *list;
	*list = payload;
	pool->host.last_payload = payload->id;
	pool->payload_count++;
	pool->daemon->payload_count++;
	xm_host_payload_add(&pool->host, payload->owner, payload->bytes, payload->traits);
}

int xd_payload_make(struct xd_pool *pool, int fd, u64 incarnation,
		    struct xd_payload **ret_payload)
{
	struct xd_daemon *daemon = pool->daemon;
	struct xd_payload *payload;

	if (pool->payload_count >= XD_MAX_PAYLOADS)
		return xd_refuse(daemon, XMEM_QUOTA_POOL_FILES, pool->payload_count,
				 XD_MAX_PAYLOADS);
	if (daemon->payload_count >= daemon->limits.payloads)
		return xd_refuse(daemon, XMEM_QUOTA_USER_FILES, daemon->payload_count,
				 daemon->limits.payloads);
	payload = calloc(1, sizeof(*payload));
	if (!payload)
		return -ENOMEM;
	payload->id = pool->host.last_payload + 1;
	payload->fd = fd;
	payload->incarnation = incarnation;
	*ret_payload = payload;
	return 0;
}

int xd_payload_new(struct xd_pool *pool, int fd, u64 incarnation, u32 flags,
		   struct xd_payload **ret_payload)
{
	bool shared = flags & XMEM_ATTACH_SHARED;
	int err, access = fcntl(fd, F_GETFL) & O_ACCMODE;
	struct xd_payload *payload;
	u32 traits = 0;
	u64 bytes = 0;

	err = check_seals(fd, shared, &traits);
	if (!err)
		err = check_access(fd, shared);
	if (!err)
		err = check_filled(fd, &bytes, &traits);
	if (!err)
		err = make_own(fd);
	if (!err)
		err = xd_payload_make(pool, fd, incarnation, &payload);
	if (err)
		return err;
	payload->bytes = bytes;
	payload->traits = traits;
	payload->access = access;
	payload->truncates = xm_attach_truncates(flags, traits);
	*ret_payload = payload;
	return 0;
}

/*
 * A payload enters the pool with its first slots. If it entered earlier and the slots were refused,
 * it would count as gone.
 */
void xd_payload_use(struct xd_pool *pool, struct xd_payload *payload, u32 slots)
{
	if (!payload->slots)
		enter(pool, payload);
	payload->slots += slots;
}

void xd_payload_discard(struct xd_payload *payload)
{
	if (payload->fd >= 0)
		close(payload->fd);
	free(payload->cuda);
	free(payload);
}

struct xd_payload *xd_payload_find(const struct xd_pool *pool, u64 id)
{
	struct xd_payload *payload = pool->payloads[id % XD_PAYLOAD_LISTS];

	while (payload && payload->id != id)
		payload = payload->next;
	return payload;
}

/*
 * Free the pages of the file, even while processes have it open or mapped. The daemon must open the
 * file for writing, which a lease of another process can prevent (EBUSY). The pages then stay until
 * that process closes the file. All processes belong to one user here.
 */
static void truncate_file(const struct xd_payload *payload)
{
	int fd = open_anew(payload->fd, O_RDWR);
	u64 page = sysconf(_SC_PAGESIZE);

	if (fd < 0)
		return;
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		  (payload->bytes + page - 1) / page * page);
	close(fd);
}

/* Take the payload out of the pool, and free it. */
static void remove_payload(struct xd_pool *pool, struct xd_payload *payload)
{
	struct xd_payload **at = list_of(pool, payload->id);

	if (payload->truncates)
		truncate_file(payload);

	while (*at != payload)
		at = &(*at)->next;
	*at = payload->next;
	pool->payload_count--;
	pool->daemon->payload_count--;
	xd_payload_discard(payload);
}

void xd_payload_closed(struct xd_pool *pool, struct xd_payload *payload)
{
	u32 owner = payload->owner;
	bool alive = xm_host_lives(&pool->host, owner, payload->incarnation);

	if (!xm_cuda_is_closed(&pool->host, payload->cuda))
		return;
	remove_payload(pool, payload);
	if (alive)
		xd_wake(&xm_client_row(&pool->host.map, owner)->slots_waiters);
}

/*
 * If no slot names the payload any more, its file goes. Memory of a GPU stays noted until all
 * clients have closed it.
 */
static void drop_unused(struct xd_pool *pool, struct xd_payload *payload)
{
	if (payload->slots)
		return;
	xm_host_payload_drop(&pool->host, payload->owner, payload->incarnation, payload->bytes,
			     payload->traits);
	if (!payload->cuda) {
		remove_payload(pool, payload);
		return;
	}
	if (payload->fd >= 0)
		close(payload->fd);
	payload->fd = -1;
	xm_cuda_retire(&pool->host, payload->cuda);
	xd_wake_rings(pool);
	xd_payload_closed(pool, payload);
}

void xd_payload_drop_all(struct xd_pool *pool)
{
	u32 i;

	for (i = 0; i < XD_PAYLOAD_LISTS; i++) {
		while (pool->payloads[i])
			remove_payload(pool, pool->payloads[i]);
	}
}

void xd_payload_put(struct xd_pool *pool, u64 id, u32 slots)
{
	struct xd_payload *payload = xd_payload_find(pool, id);

	if (!payload || payload->slots < slots)
		return;		/* a client has changed the slot's row */
	payload->slots -= slots;
	drop_unused(pool, payload);
}

bool xd_payload_can_open(void)
{
	return !access("/proc/self/fd", X_OK);
}

int xd_payload_open(const struct xd_payload *payload, bool writable)
{
	return open_anew(payload->fd, writable ? O_RDWR : O_RDONLY);
}

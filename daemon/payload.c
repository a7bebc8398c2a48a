// SPDX-License-Identifier: MIT
/*
 * Payload files: what may be one, how long one is kept, what others get of it.
 * Slots, and who owns them, are the pool's (pool.c, core/host.h).
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon.h"

/* A memfd that can neither shrink nor be written or punched through a new mapping or descriptor. */
static int check_seals(int file)
{
	int seals = fcntl(file, F_GET_SEALS);

	if (seals < 0)
		return errno == EINVAL ? -EMEDIUMTYPE : -errno;
	if (!(seals & F_SEAL_SHRINK) || !(seals & F_SEAL_GROW) || !(seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)))
		return -ENOEXEC;
	return 0;
}

/* A hole would be filled on its readers' account. Huge pages are reserved when they are mapped. */
static int check_filled(int file, u64 *ret_bytes)
{
	struct statfs fs;
	struct stat info;

	if (fstat(file, &info) || fstatfs(file, &fs))
		return -errno;
	if (fs.f_type != HUGETLBFS_MAGIC && (u64)info.st_blocks * 512 < (u64)info.st_size)
		return -ERANGE;
	*ret_bytes = info.st_size;
	return 0;
}

int xd_payload_new(struct xd_pool *pool, int file, u64 incarnation, struct xd_payload **ret_payload)
{
	struct xd_payload *payload;
	u64 bytes = 0;
	int err;

	err = check_seals(file);
	if (!err)
		err = check_filled(file, &bytes);
	if (err)
		return err;
	if (pool->payload_count >= XD_MAX_PAYLOADS || pool->last_payload == ~0u ||
	    pool->daemon->payload_count >= pool->daemon->limits.payloads)
		return -EDQUOT;
	payload = calloc(1, sizeof(*payload));
	if (!payload)
		return -ENOMEM;
	payload->id = ++pool->last_payload;
	payload->file = file;
	payload->bytes = bytes;
	payload->incarnation = incarnation;
	payload->access = fcntl(file, F_GETFL) & O_ACCMODE;
	payload->next = pool->payloads;
	pool->payloads = payload;
	pool->payload_count++;
	pool->daemon->payload_count++;
	*ret_payload = payload;
	return 0;
}

struct xd_payload *xd_payload_find(const struct xd_pool *pool, u32 id)
{
	struct xd_payload *payload = pool->payloads;

	while (payload && payload->id != id)
		payload = payload->next;
	return payload;
}

void xd_payload_drop_unused(struct xd_pool *pool, struct xd_payload *payload)
{
	struct xd_payload **at = &pool->payloads;

	if (payload->slots)
		return;
	while (*at != payload)
		at = &(*at)->next;
	*at = payload->next;
	pool->payload_count--;
	pool->daemon->payload_count--;
	close(payload->file);
	free(payload);
}

void xd_payload_put(struct xd_pool *pool, u32 id)
{
	struct xd_payload *payload = xd_payload_find(pool, id);

	if (!payload || !payload->slots)
		return;		/* a client has written into the slot's row */
	payload->slots--;
	xd_payload_drop_unused(pool, payload);
}

/* A file of its own with the access asked for: a copy of ours would have our access. */
int xd_payload_open(const struct xd_payload *payload, bool writable)
{
	char path[32];
	int file;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", payload->file);
	file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	return file < 0 ? -errno : file;
}

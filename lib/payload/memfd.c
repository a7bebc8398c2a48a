// SPDX-License-Identifier: MIT
/*
 * Payloads in memory of the CPU are sealed memfds. A writer makes one for many buffers. Only
 * the writer has a writable mapping; it is made before the seals forbid others (P6, P7).
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "payload.h"

#define ALLOCATE_BYTES	(4ULL << 20)
#define LOOK_BYTES	(16ULL << 20)
#define SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static char *map_file(int fd, u64 bytes, int protection)
{
	char *base;

	xl_fork_lock();
	base = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
	if (base != MAP_FAILED)		/* a child must not read, or write, later contents */
		madvise(base, bytes, MADV_DONTFORK);
	xl_fork_unlock();
	if (base == MAP_FAILED)
		return NULL;
	madvise(base, bytes, MADV_DONTDUMP);	/* a core dump delays what the host learns (P2) */
	return base;
}

static int allocate_failed(u64 bytes, int err)
{
	return xl_fail(err == ENOSPC ? ENOMEM : err, "allocate %llu bytes of payload: %s",
		       (unsigned long long)bytes, strerror(err));
}

/*
 * Allocate all memory now, so that no reader pays for it or fails (P7). It is done in pieces,
 * because a signal undoes the piece in work, and because others allocate at the same time.
 * Returns 0 or a negative errno, noted.
 */
static int allocate(int fd, u64 bytes)
{
	u64 at, piece;
	int err;

	for (at = 0; at < bytes; at += piece) {
		piece = bytes - at < ALLOCATE_BYTES ? bytes - at : ALLOCATE_BYTES;
		err = at && at % LOOK_BYTES == 0 ? xl_room_check(bytes - at) : 0;
		if (err)
			return err;
		do
			err = posix_fallocate(fd, at, piece);
		while (err == EINTR);
		if (err)
			return allocate_failed(bytes, err);
	}
	return 0;
}

static int make(struct xl_mapping *mapping, u64 bytes)
{
	int fd, err;

	xl_fork_lock();
	fd = xl_file_note(memfd_create("xmem-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	xl_fork_unlock();
	if (fd < 0)
		return xl_fail(errno, "memfd_create: %s", strerror(errno));
	err = ftruncate(fd, bytes) ? allocate_failed(bytes, errno) : allocate(fd, bytes);
	if (err)
		goto err_close;
	mapping->base = map_file(fd, bytes, PROT_READ | PROT_WRITE);
	if (!mapping->base) {
		err = xl_fail(ENOMEM, "map %llu bytes of payload: %s", (unsigned long long)bytes,
			      strerror(errno));
		goto err_close;
	}
	if (fcntl(fd, F_ADD_SEALS, SEALS)) {
		err = xl_fail(errno, "seal a payload: %s", strerror(errno));
		goto err_unmap;
	}
	mapping->bytes = bytes;
	return fd;

err_unmap:
	munmap(mapping->base, bytes);
err_close:
	xl_file_close(fd);
	return err;
}

static int map(struct xl_mapping *mapping, int fd)
{
	mapping->base = map_file(fd, mapping->bytes, PROT_READ);
	if (mapping->base)
		return 0;
	return xl_fail(ENOMEM, "map payload %u, %llu bytes: %s", mapping->payload,
		       (unsigned long long)mapping->bytes, strerror(errno));
}

static void unmap(struct xl_mapping *mapping)
{
	munmap(mapping->base, mapping->bytes);
}

const struct xl_payload_kind xl_payload_memfd = {
	.storage = XMEM_STORAGE_CPU,
	.make = make,
	.map = map,
	.unmap = unmap,
};

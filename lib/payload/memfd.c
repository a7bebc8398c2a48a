// SPDX-License-Identifier: MIT
/*
 * Payloads in memory of the CPU: sealed memfds. A writer makes one file for many buffers. Unless
 * the payload is shared, only the writer has a writable mapping, which it makes before the seals
 * forbid others (P6, P7). There are two kinds: ordinary pages, and huge pages from the system's
 * pool.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/payload/payload.h"
#include "lib/payload/view.h"

#define ALLOCATE_BYTES	(4ULL << 20)
#define LOOK_BYTES	(16ULL << 20)
#define SHARED_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEALS	(SHARED_SEALS | F_SEAL_FUTURE_WRITE)

/* Does this errno stand for a lack? Locked memory has a limit of its own. */
static bool is_lack(int err)
{
	return err == ENOMEM || err == EAGAIN;
}

int xl_map_error(int err)
{
	return is_lack(err) ? ENOMEM : EIO;
}

const char *xl_map_why(int err)
{
	return err == ENOMEM ? "no memory, or this process has as many mappings or addresses as it "
			       "may have (vm.max_map_count, ulimit -v)" : strerror(err);
}

static char *try_to_map(int fd, u64 offset, u64 bytes, int protection, int flags)
{
	char *base;
	int err;

	xl_fork_lock();
	base = mmap(NULL, bytes, protection, flags, fd, offset);
	err = errno;
	if (base != MAP_FAILED)		/* a child must not read or write later contents */
		madvise(base, bytes, MADV_DONTFORK);
	xl_fork_unlock();
	if (base == MAP_FAILED) {
		errno = err;
		return NULL;
	}
	madvise(base, bytes, MADV_DONTDUMP);	/* a core dump delays the moment when the host
						 * notices a death (P2) */
	return base;
}

char *xl_map_pages(int fd, u64 offset, u64 bytes, int protection, int flags)
{
	char *base = try_to_map(fd, offset, bytes, protection, flags);
	int err = errno;

	if (base || !is_lack(err))
		return base;
	if (xl_views_drop_idle(NULL))
		return try_to_map(fd, offset, bytes, protection, flags);
	errno = err;
	return NULL;
}

static char *map_file(int fd, u64 bytes, int protection)
{
	return xl_map_pages(fd, 0, bytes, protection, MAP_SHARED);
}

static int allocate_failed(u64 bytes, int err)
{
	return xl_fail(err == ENOSPC ? ENOMEM : err, "allocate %llu bytes of payload: %s",
		       (unsigned long long)bytes, strerror(err));
}

/*
 * Allocate all memory now, so that no reader pays for it or fails (P7). This is done in pieces,
 * because a signal undoes the current piece, and because other processes allocate memory at the
 * same time. Returns 0 or a negative errno, noted.
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

/*
 * The kernel gives a file huge pages only if they are requested, by a mapping that is touched,
 * before the memory is allocated. If this fails, allocate fails afterwards, with the reason.
 */
static int touch_huge(struct xl_mapping *mapping)
{
	u64 at, piece;
	int err;

#ifdef MADV_POPULATE_WRITE
	if (madvise(mapping->base, mapping->bytes, MADV_HUGEPAGE))
		return 0;
	for (at = 0; at < mapping->bytes; at += piece) {
		piece = mapping->bytes - at < LOOK_BYTES ? mapping->bytes - at : LOOK_BYTES;
		err = at ? xl_room_check(mapping->bytes - at) : 0;
		if (err)
			return err;
		if (madvise(mapping->base + at, piece, MADV_POPULATE_WRITE))
			return 0;
	}
#endif
	return 0;
}

/* Make a memfd, which a forked child does not keep. Returns a descriptor, or -errno, not noted. */
static int new_memfd(unsigned int flags)
{
	int fd;

	xl_fork_lock();
	fd = xl_file_record(memfd_create("xmem-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
	xl_fork_unlock();
	return fd < 0 ? -errno : fd;
}

/* Map the file for writing, allocate all its bytes, and seal it. 0 or -errno, noted. */
static int map_and_seal(struct xl_mapping *mapping, int fd)
{
	u64 bytes = mapping->bytes;
	int err;

	mapping->base = map_file(fd, bytes, PROT_READ | PROT_WRITE);
	if (!mapping->base)
		return xl_fail(ENOMEM, "map %llu bytes of payload: %s", (unsigned long long)bytes,
			       xl_map_why(errno));
	err = mapping->advised ? touch_huge(mapping) : 0;
	if (!err && mapping->advised)
		err = allocate(fd, bytes);
	if (!err && fcntl(fd, F_ADD_SEALS, mapping->shared ? SHARED_SEALS : SEALS))
		err = xl_fail(errno, "seal a payload: %s", strerror(errno));
	if (err)
		munmap(mapping->base, bytes);
	return err;
}

static int make(struct xl_mapping *mapping, u64 bytes)
{
	int fd = new_memfd(0), err = 0;

	if (fd < 0)
		return xl_fail(-fd, "memfd_create: %s", strerror(-fd));
	mapping->bytes = bytes;
	if (ftruncate(fd, bytes))
		err = allocate_failed(bytes, errno);
	else if (!mapping->advised)
		err = allocate(fd, bytes);
	if (!err)
		err = map_and_seal(mapping, fd);
	if (!err)
		return fd;
	xl_file_close(fd);
	return err;
}

/* ---- huge pages ---- */

/*
 * Make the file end with a whole huge page, and take all its huge pages from the system's pool now.
 * false: there are too few, or a limit forbids it.
 */
static bool take_huge_pages(int fd, u64 bytes, u64 *ret_bytes)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct stat info;
	u64 page;

	getrlimit(RLIMIT_FSIZE, &limit);
	if (fstat(fd, &info))
		return false;
	page = info.st_blksize;
	*ret_bytes = (bytes + page - 1) / page * page;
	return *ret_bytes <= limit.rlim_cur && !ftruncate(fd, *ret_bytes) &&
	       !posix_fallocate(fd, 0, *ret_bytes);
}

u64 xl_huge_page_bytes(void)
{
	int fd = new_memfd(MFD_HUGETLB);
	struct stat info;
	u64 bytes;

	if (fd < 0)
		return 0;
	bytes = fstat(fd, &info) ? 0 : info.st_blksize;
	xl_file_close(fd);
	return bytes;
}

static int make_huge(struct xl_mapping *mapping, u64 bytes)
{
	bool advised = mapping->advised;
	int fd = new_memfd(MFD_HUGETLB), err = 0;

	if (fd < 0)			/* this kernel has no huge pages */
		return fd == -EMFILE || fd == -ENFILE ?
		       xl_fail(-fd, "memfd_create: %s", strerror(-fd)) : 0;
	if (!take_huge_pages(fd, bytes, &mapping->bytes))
		goto out_close;
	mapping->advised = false;	/* its pages are huge already */
	err = map_and_seal(mapping, fd);
	mapping->advised = advised;
	if (!err)
		return fd;
out_close:
	xl_file_close(fd);
	return err;
}

static int map(struct xl_mapping *mapping, int fd)
{
	mapping->base = map_file(fd, mapping->bytes, PROT_READ);
	if (mapping->base)
		return 0;
	return xl_fail(xl_map_error(errno), "map payload %llu, %llu bytes: %s", mapping->payload,
		       (unsigned long long)mapping->bytes, xl_map_why(errno));
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

const struct xl_payload_kind xl_payload_hugetlb = {
	.storage = XMEM_STORAGE_CPU,
	.make = make_huge,
	.map = map,
	.unmap = unmap,
};

// SPDX-License-Identifier: MIT
/*
 * A registered page stays the page that it was, as if a real driver had pinned it, even if a hole
 * is punched into its file and the address gets another page. A pipe keeps the old page: vmsplice
 * puts it there without a copy. A second mapping of the page, which no code touches, shows whether
 * the address has another page: the hole takes the page out of all mappings.
 *
 * Nobody can write a page that only a pipe has. Words that this process writes there are only seen
 * by itself.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory.h"

#define IN_MEMORY (3ull << 62)		/* of an entry of pagemap: present, or swapped */

struct fk_kept {
	size_t bytes;			/* of a page */
	char *witness;			/* the second mapping */
	int pagemap;
	int pipe[2];			/* has the page */
	uint64_t *old;			/* its contents, once the address has another one */
	bool written;			/* by this process, since then */
};

void fk_kept_put(struct fk_kept *kept)
{
	if (!kept)
		return;
	if (kept->witness != MAP_FAILED)
		munmap(kept->witness, kept->bytes);
	if (kept->pagemap >= 0)
		close(kept->pagemap);
	if (kept->pipe[0] >= 0) {
		close(kept->pipe[0]);
		close(kept->pipe[1]);
	}
	free(kept->old);
	free(kept);
}

bool fk_kept_is_replaced(const struct fk_kept *kept)
{
	off_t at = (uintptr_t)kept->witness / kept->bytes * sizeof(uint64_t);
	uint64_t entry;

	return pread(kept->pagemap, &entry, sizeof(entry), at) != sizeof(entry) ||
	       !(entry & IN_MEMORY);
}

/* The page is locked, because any other removal from the mapping would look like a hole. */
static bool keep(struct fk_kept *kept, void *at)
{
	struct iovec page;

	kept->witness = mremap(at, 0, kept->bytes, MREMAP_MAYMOVE);
	if (kept->witness == MAP_FAILED)
		return false;		/* it is not shared, or it belongs to a device driver */
	mlock(kept->witness, kept->bytes);
	kept->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (kept->pagemap < 0 || pipe2(kept->pipe, O_CLOEXEC | O_NONBLOCK))
		return false;
	page = (struct iovec){ .iov_base = kept->witness, .iov_len = kept->bytes };
	return vmsplice(kept->pipe[1], &page, 1, SPLICE_F_NONBLOCK) == (ssize_t)kept->bytes &&
	       !fk_kept_is_replaced(kept);
}

struct fk_kept *fk_kept_new(CUdeviceptr base, size_t bytes)
{
	struct fk_kept *kept;

	if (bytes != (size_t)sysconf(_SC_PAGESIZE) || base % bytes || !fk_option_number("PIN", 1))
		return NULL;
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		return NULL;
	*kept = (struct fk_kept){
		.bytes = bytes, .witness = MAP_FAILED, .pagemap = -1, .pipe = { -1, -1 },
	};
	if (keep(kept, (void *)(uintptr_t)base))
		return kept;
	fk_kept_put(kept);
	return NULL;
}

/* Read a word of the page in the pipe. The page stays there. */
static bool look(const struct fk_kept *kept, uint64_t *ret)
{
	ssize_t bytes = -1;
	int copy[2];

	if (pipe2(copy, O_CLOEXEC | O_NONBLOCK))
		return false;
	if (tee(kept->pipe[0], copy[1], kept->bytes, SPLICE_F_NONBLOCK) == (ssize_t)kept->bytes)
		bytes = read(copy[0], ret, kept->bytes);
	close(copy[0]);
	close(copy[1]);
	return bytes == (ssize_t)kept->bytes;
}

/* Other processes may have the old page, too. Streams read its present words. */
static void refresh(struct fk_kept *kept)
{
	uint64_t *now = malloc(kept->bytes);
	size_t i;

	if (!now || !look(kept, now))
		abort();
	for (i = 0; i < kept->bytes / sizeof(*now); i++)
		if (__atomic_load_n(&kept->old[i], __ATOMIC_SEQ_CST) != now[i])
			__atomic_store_n(&kept->old[i], now[i], __ATOMIC_SEQ_CST);
	free(now);
}

void *fk_kept_old(struct fk_kept *kept, enum fk_access access)
{
	if (!kept->old) {
		kept->old = calloc(1, kept->bytes);
		if (!kept->old)
			abort();
	}
	if (!kept->written)
		refresh(kept);
	kept->written |= access & FK_WRITE;
	return kept->old;
}

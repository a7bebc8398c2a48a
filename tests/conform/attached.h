/* SPDX-License-Identifier: MIT */
/* Sealed files that tests attach. */
#ifndef ATTACHED_H
#define ATTACHED_H

#include <stdlib.h>
#include <sys/mman.h>

#include "harness.h"

#define ATTACHED_BYTES	8192
#define FULL_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* A sealed memfd of @bytes whose words all are @stamp. */
static inline int stamped(size_t bytes, uint64_t stamp, unsigned int seals)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint64_t *words = calloc(1, bytes);
	size_t i;

	CHECK(file >= 0 && words);
	for (i = 0; i < bytes / sizeof(*words); i++)
		words[i] = stamp;
	SAME(write(file, words, bytes), bytes);
	free(words);
	CHECK(!fcntl(file, F_ADD_SEALS, seals));
	return file;
}

/* Attach a new file with this stamp. Afterwards only the buffer refers to the file. */
static inline struct xmem_buffer *attach_stamp(struct xmem_pool *writer, uint64_t stamp)
{
	int file = stamped(ATTACHED_BYTES, stamp, FULL_SEALS);
	struct xmem_buffer *b = xmem_attach_fd(writer, file, 0, 0, 0);

	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	close(file);
	xmem_metadata_mut(b)->id = stamp;
	return b;
}

static inline void error_has(int error, const char *words)
{
	const char *why = last_message();

	SAME(xmem_get_last_error(NULL), -error);
	if (!strstr(why, words))
		FAIL("no '%s' in: %s", words, why);
}

/* @pool finds no slot for its first buffer in any of the calls. Each message has these words. */
static inline void refused_slots(struct xmem_pool *pool, const char *words)
{
	int file = stamped(ATTACHED_BYTES, 1, FULL_SEALS);

	SAME(xmem_preallocate(pool, ATTACHED_BYTES, 1, NULL), -ENOSPC);
	error_has(ENOSPC, words);
	CHECK(!xmem_attach_fd(pool, file, 0, 0, 0));
	error_has(ENOSPC, words);
	close(file);
	CHECK(!xmem_acquire(pool, ATTACHED_BYTES, 0));
	error_has(EAGAIN, words);
	CHECK(!xmem_acquire(pool, ATTACHED_BYTES, MS));
	error_has(ETIMEDOUT, words);
}

#endif

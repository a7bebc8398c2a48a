/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of private views. */
#ifndef XMEM_CONFORM_VIEWS_H
#define XMEM_CONFORM_VIEWS_H

#include "harness.h"

#define PAGE	page_size()
#define MB	(1u << 20)
#define LARGE	(6 * MB)

/* ---- counting ---- */

/* Private writable mappings of payloads that this process has. */
static inline unsigned int private_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, " rw-p ") && strstr(line, "xmem-payload");
	fclose(file);
	return count;
}

/* Bytes of these mappings that were stored to. A sanitizer's memory for them lies elsewhere. */
static inline uint64_t stored_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long long kb, sum = 0;
	bool private = false;
	char line[512];

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx-%llx", &kb, &kb) == 2)
			private = strstr(line, " rw-p ") && strstr(line, "xmem-payload");
		else if (private && sscanf(line, "Anonymous: %llu kB", &kb) == 1)
			sum += kb;
	}
	fclose(file);
	return sum << 10;
}

static inline void check_all(const uint64_t *words, size_t bytes, uint64_t stamp)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*words); i++)
		if (words[i] != stamp)
			FAIL("word %zu of %zu bytes is %llx, not %llx", i, bytes,
			     (unsigned long long)words[i], (unsigned long long)stamp);
}

static inline void store_all(uint64_t *words, size_t bytes, uint64_t stamp)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*words); i++)
		words[i] = stamp;
}

/* The private view of @b, which must show @stamp. */
static inline uint64_t *view_of(struct xmem_buffer *b, uint64_t stamp)
{
	uint64_t *words = xmem_data_private(b);

	WORKED(words ? 0 : xmem_peek_last_error(NULL));
	check_all(words, xmem_size(b), stamp);
	return words;
}

/* ---- a writer of one buffer, and a reader ---- */

struct scene {
	const char *name;
	struct xmem_pool *writer, *reader;
	size_t bytes;
};

static inline struct scene start(size_t bytes, unsigned int buffers, uint32_t memory)
{
	struct scene s = { .name = new_name(), .bytes = bytes };

	s.writer = OPEN(s.name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(s.writer, bytes, buffers,
				XMEM_OPTIONS(xmem_preallocate_options, .flags = memory)));
	s.reader = OPEN(s.name, .flags = 0);
	return s;
}

static inline void end(struct scene *s)
{
	xmem_pool_close(s->reader);
	check_quiet(s->writer, 1);
	xmem_pool_close(s->writer);
	SAME(private_mappings(), 0);
}

/*
 * Published, and held by both. A buffer that was given up in place may become free a little later.
 */
static inline struct xmem_buffer *give(struct scene *s, uint64_t stamp,
				       struct xmem_buffer **ret_kept)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *kept = xmem_acquire(s->writer, s->bytes, patience_ns()), *b;
	uint64_t token;

	WORKED(kept ? 0 : xmem_peek_last_error(NULL));
	store_all(xmem_data_mut(kept), s->bytes, stamp);
	WORKED(xmem_publish(kept, &keep, &token));
	b = xmem_get(s->reader, token);
	CHECK(b);
	*ret_kept = kept;
	return b;
}

#endif

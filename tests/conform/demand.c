// SPDX-License-Identifier: MIT
/*
 * Memory of buffers, as its writer wants it: kinds, buffers that are made when an acquire needs
 * them, and memory that goes back to the system while its owner lives.
 */
#include <stddef.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096
#define MB	(1ULL << 20)

static struct xmem_pool *open_empty(void)
{
	return OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
}

/* ---- kinds ---- */

static int make_some(struct xmem_pool *pool, uint32_t flags, uint32_t count, uint64_t bytes)
{
	struct xmem_preallocate_options o = {
		.size = sizeof(o), .flags = flags, .count = count, .bytes = bytes,
	};

	return xmem_preallocate_with(pool, &o);
}

TEST(API_preallocate_with_refuses_what_it_does_not_know)
{
	struct xmem_pool *pool = open_empty(), *reader = OPEN(new_name(), .flags = 0);
	struct {
		struct xmem_preallocate_options known;
		unsigned char more[16];
	} o = { .known = { .count = 1, .bytes = BYTES } };

	SAME(xmem_preallocate_with(pool, NULL), -EINVAL);
	SAME(make_some(NULL, 0, 1, BYTES), -EINVAL);
	SAME(make_some(reader, 0, 1, BYTES), -EPERM);
	SAME(make_some(pool, 1u << 31, 1, BYTES), -EINVAL);
	SAME(make_some(pool, 0, 0, BYTES), -EINVAL);
	SAME(make_some(pool, 0, 1, 0), -EINVAL);
	SAME(make_some(pool, 0, 1, ~0ULL), -EINVAL);
	SAME(xmem_preallocate_with(pool, &o.known), -EINVAL);	/* no size */
	o.known.size = offsetof(struct xmem_preallocate_options, bytes);
	SAME(xmem_preallocate_with(pool, &o.known), -EINVAL);	/* 0 bytes, then */
	o.known.size = sizeof(o);
	o.more[15] = 1;
	SAME(xmem_preallocate_with(pool, &o.known), -E2BIG);
	SAME(stat_of(pool).attached, 0);
	o.more[15] = 0;
	WORKED(xmem_preallocate_with(pool, &o.known));
	SAME(stat_of(pool).attached, 1);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

/* Both ways of huge pages: stat says which one it was, and the contents arrive. */
TEST(API_huge_pages_are_used_or_asked_for)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), 0);
	struct xmem_pool_info info;
	struct xmem_buffer *b;

	WORKED(make_some(pool, XMEM_MEMORY_HUGE, 3, MB));
	info = stat_of(pool);
	SAME(info.attached, 3);
	SAME(info.payloads, 1);
	if (info.bytes_huge) {
		SAME(info.bytes_huge, 4 * MB);	/* whole huge pages of 2 MB */
		SAME(info.bytes_files, 4 * MB);
		SAME(info.bytes_advised, 0);
	} else {
		SAME(info.bytes_files, 3 * MB);
		SAME(info.bytes_advised, 3 * MB);
	}
	SAME(stat_of(reader).bytes_huge, info.bytes_huge);
	publish_stamp(pool, 7);
	b = receive_one(s);
	SAME(stamp_of(b), 7);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(pool);
	EVENTUALLY(stat_of(reader).bytes_files == 0);
	SAME(stat_of(reader).bytes_huge, 0);
	xmem_pool_close(reader);
}

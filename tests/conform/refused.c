// SPDX-License-Identifier: MIT
/*
 * P10: a request that fails changes nothing, for whatever reason it fails. An attach that fails
 * takes neither slots nor pages, and what a limit refuses is available as soon as a client gives it
 * back.
 */
#include "harness.h"

#define BYTES	4096

/* ---- attach ---- */

static int attach_with(struct raw *raw, int file, uint64_t payload, uint64_t offset)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = file, .payload = payload, .offset = offset,
		.stride = BYTES, .length = BYTES, .count = 1,
	};

	return raw_request(raw, XMEM_IOC_ATTACH, &request);
}

/* The pool has two groups of slots, of which one is free while the attaches fail. */
TEST(P10_an_attach_that_fails_takes_no_slots_from_others)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .slots = 128);
	int file = new_memfd(64 * BYTES, GOOD_SEALS);
	struct xmem_attach_request first;
	struct raw one, failing, another;

	raw_start(&one, name, XMEM_ROLE_WRITER);
	raw_start(&failing, name, XMEM_ROLE_WRITER);
	raw_start(&another, name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&one, file, 1, &first), 0);
	SAME(attach_with(&failing, file, 0, 64 * BYTES), -ERANGE);
	SAME(attach_with(&failing, -1, 777, 0), -ENOENT);
	SAME(attach_with(&failing, -1, first.payload, 0), -EPERM);
	SAME(stat_of(pool).attached, 1);
	SAME(raw_attach(&another, file, 64, NULL), 0);
	SAME(raw_attach(&failing, file, 1, NULL), -ENOSPC);
	SAME(raw_attach(&one, file, 63, NULL), 0);
	SAME(stat_of(pool).attached, 128);
	close(file);
	raw_close(&one);
	raw_close(&failing);
	raw_close(&another);
	xmem_pool_close(pool);
}

TEST(P10_an_attach_beyond_a_limit_takes_no_slots_from_others)
{
	const char *name = new_name();
	struct xmem_pool *pool;
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct raw one, another;
	char old[32];

	kernel_only("the daemon's limit is in the thousands and its own");
	pool = OPEN(name, .slots = 64);
	raw_start(&one, name, XMEM_ROLE_WRITER);
	raw_start(&another, name, XMEM_ROLE_WRITER);
	set_parameter("max_bytes", "0", old);
	SAME(raw_attach(&one, file, 1, NULL), -EDQUOT);
	set_parameter("max_bytes", old, NULL);
	SAME(raw_attach(&another, file, 1, NULL), 0);
	close(file);
	raw_close(&one);
	raw_close(&another);
	xmem_pool_close(pool);
}

/* ---- limits of memory ---- */

TEST(P10_too_many_bytes_of_all_pools_is_EDQUOT)
{
	const char *name = new_name();
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct raw writer, more;
	char old[32];

	kernel_only("the daemon leaves memory to its own limits");
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	raw_open(&more);
	set_parameter("max_bytes", "0", old);
	SAME(raw_attach(&writer, file, 1, NULL), -EDQUOT);
	SAME(raw_join(&more, name, XMEM_ROLE_READER, 0), -EDQUOT);
	SAME(raw_join(&more, new_name(), XMEM_ROLE_READER, 0), -EDQUOT);
	set_parameter("max_bytes", old, NULL);
	SAME(raw_attach(&writer, file, 1, NULL), 0);
	SAME(raw_join(&more, name, XMEM_ROLE_READER, 0), 0);
	close(file);
	raw_close(&more);
	raw_close(&writer);
}

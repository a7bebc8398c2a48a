/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of claims. */
#ifndef XMEM_CONFORM_CLAIMS_H
#define XMEM_CONFORM_CLAIMS_H

#include "harness.h"

#define BYTES	4096

static inline uint32_t claims_of(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_slot_info info = { .size = sizeof(info) };

	WORKED(xmem_pool_slot_info(pool, token & 0xffff, &info));
	return info.claims;
}

/* Acquire, fill with @stamp, and set the number of references: the handle stays. */
static inline struct xmem_buffer *counted(struct xmem_pool *pool, uint64_t stamp, uint32_t count,
				   int64_t timeout_ns)
{
	struct xmem_buffer *b = xmem_acquire(pool, BYTES, 0);

	CHECK(b);
	fill(b, stamp);
	WORKED(xmem_set_ref_count(b, count, timeout_ns));
	return b;
}

/* Set the count and forget the buffer, perhaps after its time has passed: the token. */
static inline uint64_t hand_over(struct xmem_pool *pool, uint64_t stamp, uint32_t count,
			  int64_t timeout_ns)
{
	int64_t start = now_ns();
	struct xmem_buffer *b = counted(pool, stamp, count, timeout_ns);
	uint64_t token = xmem_token(b), claims;

	CHECK(token);
	SAME(stamp_of(b), stamp);
	WORKED(xmem_forget(b));
	claims = claims_of(pool, token);
	if (timeout_ns <= 0 || now_ns() - start < timeout_ns)
		SAME(claims, count);
	return token;
}

/* Is the one buffer of this writer free? */
static inline bool is_free(struct xmem_pool *writer)
{
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);

	if (!b && xmem_peek_last_error(NULL) != -EAGAIN)
		FAIL("acquire: %d", xmem_peek_last_error(NULL));
	xmem_release(b);
	return b;
}

#endif

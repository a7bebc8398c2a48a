/* SPDX-License-Identifier: MIT */
/*
 * A hold: the handle of a buffer that a guard shares with views of its contents, which other
 * libraries own and drop in any thread, at any time, with or without the GIL. It is counted
 * atomically, touches no Python object, and the last one drops the handle.
 *
 * Libraries drop a view of a GPU's memory while kernels that read it are still in their streams.
 * Nobody knows these streams: a consumer names at most one stream, and may have destroyed it since.
 * So the handle of such a buffer is released behind all streams of the GPU (XMEM_ALL_STREAMS).
 *
 * Only a guard makes a further share, under its lock and while it has a share itself. So if the
 * guard sees a count of 1, the count stays 1. Without the guard, the number of shares can only
 * fall.
 */
#ifndef XP_HOLD_H
#define XP_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <xmem.h>

struct xp_hold {
	atomic_uint shares;
	struct xmem_buffer *buffer;
	bool on_stream;		/* set before it is shared: streams may use the contents */
};

/* NULL: no memory. */
static inline struct xp_hold *xp_hold_new(struct xmem_buffer *buffer)
{
	struct xp_hold *hold = malloc(sizeof(*hold));

	if (hold) {
		atomic_init(&hold->shares, 1);
		hold->buffer = buffer;
		hold->on_stream = false;
	}
	return hold;
}

static inline struct xp_hold *xp_hold_get(struct xp_hold *hold)
{
	atomic_fetch_add_explicit(&hold->shares, 1, memory_order_relaxed);
	return hold;
}

/* Every use of the contents comes before the release of the handle. */
void xp_hold_put(struct xp_hold *hold);

/*
 * Release a handle when all work is done that is now in the streams of its GPU (XMEM_ALL_STREAMS),
 * or in @stream and the default stream. Such a stream must exist; NULL: the default stream alone.
 * If the caller has the GIL, it is given up meanwhile, because the driver may be called.
 */
void xp_release_on(struct xmem_buffer *buffer, void *stream);

static inline bool xp_hold_is_shared(const struct xp_hold *hold)
{
	return atomic_load_explicit(&hold->shares, memory_order_acquire) > 1;
}

#endif

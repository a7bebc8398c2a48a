/* SPDX-License-Identifier: MIT */
/*
 * Private views: contents that are held for reading, as memory that the holder may write without
 * anybody seeing it.
 *
 * A view belongs to one handle. Small contents are copied, and so are those whose pages cannot be
 * mapped privately: huge pages of the system's pool, of which each view would reserve as many, and
 * dma-bufs. For others it is a private mapping (MAP_PRIVATE) of the pages of one slot, so that
 * what is stored there never shows in the view of another slot or handle, nor in the file.
 *
 * To map and to unmap pages, and to find them anew, takes longer than all else in a hand-over. So
 * a view that is dropped stays mapped, idle, for the next handle of that slot. The trap in that is
 * a page in which something was stored: it is this process's own copy, and does not show what the
 * slot has later. Others show what the file has. Which ones are copies the kernel says
 * (/proc/self/pagemap), and they are given back when the view is dropped, for their memory; and
 * looked for again when it is taken, for what may have made copies meanwhile: mlockall, or a
 * program that stores there although its handle has gone.
 */
#ifndef XMEM_VIEW_H
#define XMEM_VIEW_H

#include "lib/payload/payload.h"

/* An idle one is guarded by the lock of idle.c; else it is its handle's, or this thread's. */
struct xl_view {
	struct xl_view *next;		/* idle: of the same payload, */
	struct xl_view *older, *newer;	/* and of this process */
	struct xmem_pool *pool;
	struct xl_mapping *mapping;	/* of the same payload; NULL: it is a copy */
	u32 slot;
	char *base;			/* its pages, which the slot's bytes are in */
	u64 bytes;
	char *data;			/* where the contents are, */
	u64 length;			/* and how long */
};

/* Unmap its pages, or free them, and the view. */
void xl_view_destroy(struct xl_view *view);

/* End the view of a handle, if it has one: before its hold is put, so that the payload is there. */
void xl_view_end(struct xmem_buffer *buffer);

/* ---- idle ones (idle.c) ---- */

/* Take the idle view of a slot, whose mapping stays meanwhile; or NULL. */
struct xl_view *xl_idle_take(struct xl_mapping *mapping, u32 slot);

/* Keep one for its slot; older ones may go for it. Returns whether it is kept. */
bool xl_idle_keep(struct xl_view *view);

/* Unmap the idle views of a mapping that is in no table any more. */
void xl_views_unmap(struct xl_mapping *mapping);

/* Unmap the idle views of a pool; NULL: of all pools. Returns whether there were any. */
bool xl_views_give_up(const struct xmem_pool *pool);

/* To be called before the first view is made: a forked child has none of the pages. */
void xl_views_init(void);

#endif

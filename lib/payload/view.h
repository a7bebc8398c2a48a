/* SPDX-License-Identifier: MIT */
/*
 * Private views: contents that are held for reading, in memory that the holder may write. Its
 * stores are private.
 *
 * A view belongs to one handle. Small contents are copied. So are contents whose pages cannot be
 * mapped privately: dma-bufs, and huge pages of the system's pool, of which each view would reserve
 * as many. For other contents, a view is a private mapping (MAP_PRIVATE) of the pages of one slot.
 * So a store there is never seen in the view of another slot or handle, nor in the file.
 *
 * Mapping pages, unmapping them, and page faults take longer than the rest of a hand-over. So a
 * view that is dropped stays mapped, idle, for the next handle of its slot. A page in which the
 * program has stored something must not stay: it is this process's own copy, and does not show
 * later contents of the slot. All other pages show what the file has. The kernel says which pages
 * are copies (/proc/self/pagemap). Copies are dropped at two times: when the view is dropped, to
 * free their memory; and when an idle view is taken, because there may be new copies, made by
 * mlockall, or by a program that stores there although it has dropped its handle.
 */
#ifndef XMEM_VIEW_H
#define XMEM_VIEW_H

#include "lib/payload/payload.h"

/*
 * An idle view is guarded by the lock of idle.c. Another view belongs to its handle, or to one
 * thread.
 */
struct xl_view {
	struct xl_view *next;		/* idle: in the list of its mapping, */
	struct xl_view *older, *newer;	/* and in the list of this process */
	struct xmem_pool *pool;
	struct xl_mapping *mapping;	/* of its payload; NULL: the view is a copy */
	u32 slot;
	char *base;			/* its pages, in which the slot's bytes lie */
	u64 bytes;
	char *data;			/* the address of the contents, */
	u64 length;			/* and their length */
};

/* Unmap or free the view's pages, and free the view. */
void xl_view_destroy(struct xl_view *view);

/*
 * End the view of a handle, if it has one. Call this before its hold is put, while the payload is
 * there.
 */
void xl_view_end(struct xmem_buffer *buffer);

/* ---- idle views (idle.c) ---- */

/* Take the idle view of a slot, whose mapping stays meanwhile; or NULL. */
struct xl_view *xl_idle_take(struct xl_mapping *mapping, u32 slot);

/* Keep a view for its slot. Older ones may be unmapped instead. Returns whether it is kept. */
bool xl_idle_keep(struct xl_view *view);

/* Unmap the idle views of a mapping that is in no table any more. */
void xl_views_unmap(struct xl_mapping *mapping);

/* Unmap the idle views of a pool; NULL: of all pools. Returns whether there were any. */
bool xl_views_drop_idle(const struct xmem_pool *pool);

/*
 * Call this before the first view is made. It arranges that a forked child forgets the views,
 * because it has none of the pages.
 */
void xl_views_init(void);

#endif

// SPDX-License-Identifier: MIT
/*
 * Makes and ends private views of contents. view.h says what they are, and when a page must be
 * dropped. idle.c keeps idle ones. The view of a handle is guarded by pool->mappings.lock.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/handle.h"
#include "lib/base/uncancelled.h"
#include "lib/host/request.h"
#include "lib/payload/view.h"

#define COPY_MOST	(64u << 10)	/* contents up to this size are copied, not mapped */
#define COPY_ALIGNMENT	64u

#define PAGEMAP_ENTRIES	512u
#define PAGEMAP_FILE	(1ULL << 61)	/* the page is the file's, and no copy */
#define PAGEMAP_THERE	(3ULL << 62)	/* present or swapped */

/* ---- pages that are copies ---- */

/*
 * The kernel's description of this process's pages. A forked child does not keep it. -1: there is
 * none.
 */
static int open_pagemap(void)
{
	int fd;

	xl_fork_lock();
	fd = xl_file_record(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	xl_fork_unlock();
	return fd;
}

/*
 * Find the copies among the pages from @from to before @end: *ret_from is the first, and *ret_end
 * the page after the last. Pages that the kernel does not describe count as copies. Returns whether
 * there are any.
 */
static bool find_copies(u64 from, u64 end, u64 *ret_from, u64 *ret_end)
{
	u64 entry[PAGEMAP_ENTRIES], page, i, count;
	int fd = open_pagemap();
	ssize_t got = 0;

	*ret_from = *ret_end = end;
	for (page = from; page < end; page += count) {
		count = end - page < PAGEMAP_ENTRIES ? end - page : PAGEMAP_ENTRIES;
		got = fd < 0 ? -1 : pread(fd, entry, count * sizeof(*entry),
					  page * sizeof(*entry));
		if (got < (ssize_t)sizeof(*entry))
			break;
		count = got / sizeof(*entry);
		for (i = 0; i < count; i++) {
			if (!(entry[i] & PAGEMAP_THERE) || entry[i] & PAGEMAP_FILE)
				continue;
			if (*ret_from == end)
				*ret_from = page + i;
			*ret_end = page + i + 1;
		}
	}
	if (fd >= 0)
		xl_file_close(fd);
	if (page < end) {
		*ret_from = *ret_from < page ? *ret_from : page;
		*ret_end = end;
	}
	return *ret_from < end;
}

/*
 * Drop the copies among the pages of the contents. false: the kernel refuses, for locked memory for
 * example.
 */
static bool clean(const struct xl_view *view)
{
	u64 page = xl_page_bytes(), from, end;
	XL_UNCANCELLED;

	if (!find_copies((u64)view->data / page, ((u64)view->data + view->length - 1) / page + 1,
			 &from, &end))
		return true;
	return !madvise((void *)(from * page), (end - from) * page, MADV_DONTNEED);
}

/* ---- making and ending ---- */

/* If there is no memory, idle views may have it. */
static struct xl_view *new_view(void)
{
	struct xl_view *view = calloc(1, sizeof(*view));

	return view || !xl_views_drop_idle(NULL) ? view : calloc(1, sizeof(*view));
}

static XL_COLD void *no_memory(struct xl_view *view)
{
	free(view);
	xl_fail_fast(ENOMEM, "no memory for a private view");
	return NULL;
}

static struct xl_view *copy(const char *contents, u64 length)
{
	u64 bytes = (length + COPY_ALIGNMENT) / COPY_ALIGNMENT * COPY_ALIGNMENT;
	struct xl_view *view = new_view();

	if (view)
		view->base = aligned_alloc(COPY_ALIGNMENT, bytes);
	if (view && !view->base && xl_views_drop_idle(NULL))
		view->base = aligned_alloc(COPY_ALIGNMENT, bytes);
	if (!view || !view->base)
		return no_memory(view);
	view->data = view->base;
	memcpy(view->data, contents, length);
	return view;
}

/* Map the bytes from @first to @end of the payload of @slot. 0, -ENOTCONN, or -errno, noted. */
static int map(struct xmem_pool *pool, u32 slot, struct xl_mapping *mapping, u64 first, u64 end,
	       struct xl_view **ret_view)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .payload = mapping->payload,
	};
	struct xl_view *view = new_view();
	int err;

	if (!view) {
		no_memory(view);
		return -ENOMEM;
	}
	err = xl_request(pool, XMEM_IOC_PAYLOAD, &request);
	if (err) {
		free(view);
		return err == -ENOTCONN ? err :
		       xl_fail(-err, "a descriptor of payload %llu: %s",
			       mapping->payload, xl_request_error(err));
	}
	view->pool = pool;
	view->mapping = mapping;
	view->slot = slot;
	view->bytes = end - first;
	do {
		view->base = xl_map_pages(request.fd, first, view->bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE);
		err = errno;
	} while (!view->base && xl_payload_made_room(pool, -xl_map_error(err)));
	xl_file_close(request.fd);
	*ret_view = view;
	if (view->base)
		return 0;
	err = xl_fail(xl_map_error(err), "map %llu bytes: %s",
		      (unsigned long long)view->bytes, xl_map_why(err));
	free(view);
	return err;
}

/* ---- the view of a handle ---- */

/*
 * Make a view of @contents, which are @length bytes of a held slot: an idle view, or a new one. If
 * the host has gone, or has evicted this client, no new mapping can be made. But the contents are
 * still mapped, and can be copied.
 */
static struct xl_view *take(struct xmem_pool *pool, u32 slot, const char *contents, u64 length)
{
	const struct xl_place *place = &pool->mappings.place[slot];
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	struct xl_mapping *mapping;
	struct xl_view *view;
	u64 at, offset, end, first;
	int err;

	xl_lock(&pool->mappings.lock);
	mapping = xl_mapping_find(&pool->mappings, place->payload);
	xl_unlock(&pool->mappings.lock);
	XM_STEP(XM_STEP_VIEW_FOUND);
	at = contents - mapping->base;
	offset = xm_load(&row->offset);
	end = offset + xm_load(&row->length);
	/* An evicted client reads zeros, in one of the words or in both. */
	if (at < offset || at + length > end)
		return copy(contents, length);
	first = offset / xl_page_bytes() * xl_page_bytes();
	view = xl_idle_take(mapping, slot);
	if (view) {
		view->data = view->base + (at - first);
		view->length = length;
		if (clean(view))
			return view;
		xl_view_destroy(view);
	}
	err = map(pool, slot, mapping, first, end, &view);
	if (err)
		return err == -ENOTCONN ? copy(contents, length) : NULL;
	view->data = view->base + (at - first);
	view->length = length;
	return view;
}

static void drop(struct xl_view *view)
{
	if (!view->mapping || !clean(view) || !xl_idle_keep(view))
		xl_view_destroy(view);
}

void xl_view_end(struct xmem_buffer *buffer)
{
	struct xl_view *view = buffer->view;

	if (likely(!view))
		return;
	buffer->view = NULL;
	drop(view);
}

/* If another thread was first, its view is the handle's. */
static struct xl_view *give_view(struct xmem_buffer *buffer, struct xl_view *view)
{
	struct xmem_pool *pool = buffer->pool;
	struct xl_view *first;

	xl_lock(&pool->mappings.lock);
	first = buffer->view;
	if (!first) {
		buffer->view = view;
		xl_mode_add(buffer, XL_PRIVATE);
	}
	xl_unlock(&pool->mappings.lock);
	if (!first)
		return view;
	drop(view);
	return first;
}

static struct xl_view *view_of(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	struct xl_view *view;
	const char *contents;
	u64 length;

	xl_lock(&pool->mappings.lock);
	view = buffer->view;
	xl_unlock(&pool->mappings.lock);
	if (view)
		return view;
	contents = xl_payload_find(pool, buffer->slot);
	if (!contents)
		return NULL;
	xl_place_contents(buffer);
	contents += buffer->what.offset;
	length = buffer->what.length;
	if (length <= COPY_MOST || xl_traits(buffer) & (XMEM_TRAIT_HUGE | XMEM_TRAIT_DMABUF))
		view = copy(contents, length);
	else
		view = take(pool, buffer->slot, contents, length);
	return view ? give_view(buffer, view) : NULL;
}

XMEM_API void *xmem_data_private(struct xmem_buffer *handle)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xl_view *view;

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "data_private");
		return NULL;
	}
	if (xm_load(&buffer->mode) & XL_WRITING) {
		xl_fail_fast(EPERM, "the buffer is still being written; "
				    "xmem_data_mut gives its memory");
		return NULL;
	}
	view = view_of(buffer);
	return view ? view->data : NULL;
}

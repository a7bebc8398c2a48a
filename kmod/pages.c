// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: the pages behind one place of the layout, their replacement, and who
 * may have which. Mapping them is mmap.c's.
 *
 * A page that a client could write is never given to another: pins (io_uring,
 * RDMA, GPUs) outlive clients. So every chunk with a writer has a spare set,
 * allocated with it; when the writer ends its contents are copied there, the
 * spare takes its place, and the old pages are dropped to whoever still pins them.
 *
 * Replacing what others map, in this order:
 *
 *   1. the new pages are put in place, under pages_lock;
 *   2. each old page is locked and unlocked: a fault that had found it before
 *      holds its lock until it is mapped, one that comes later looks again;
 *   3. all mappings of the place are zapped; then nobody can reach an old page.
 *
 * Where there was nothing the old page is the pool's zero page.
 */
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "xmem_private.h"

/* ---- pages ---- */

void xmem_pages_free(struct xmem_pool *pool, struct xmem_pages *pages)
{
	u32 i;

	if (!pages)
		return;
	if (pages->view)
		vunmap(pages->view);
	for (i = 0; i < pages->count && pages->page[i]; i++)
		put_page(pages->page[i]);
	xmem_pool_uncharge(pool, pages->count);
	kvfree(pages);
}

static struct xmem_pages *xmem_pages_new(struct xmem_pool *pool, u32 count)
{
	struct xmem_pages *pages;
	int err = xmem_pool_charge(pool, count);
	u32 i;

	if (err)
		return ERR_PTR(err);
	pages = kvzalloc(struct_size(pages, page, count), GFP_KERNEL_ACCOUNT);
	if (!pages) {
		xmem_pool_uncharge(pool, count);
		return ERR_PTR(-ENOMEM);
	}
	pages->count = count;
	for (i = 0; i < count; i++) {
		pages->page[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages->page[i])
			goto err_pages;
	}
	pages->view = vmap(pages->page, count, VM_MAP, PAGE_KERNEL);
	if (!pages->view)
		goto err_pages;
	return pages;

err_pages:
	xmem_pages_free(pool, pages);
	return ERR_PTR(-ENOMEM);
}

static void xmem_page_settle(struct page *page)
{
	lock_page(page);
	unlock_page(page);
}

/* Step 2: after it no fault can still map one of these. */
void xmem_pages_settle(const struct xmem_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->count; i++)
		xmem_page_settle(pages->page[i]);
}

/* ---- chunks ---- */

void xmem_chunk_free(struct xmem_pool *pool, struct xmem_chunk *chunk)
{
	xmem_pages_free(pool, chunk->now);
	xmem_pages_free(pool, chunk->spare);
	kfree(chunk);
}

struct xmem_chunk *xmem_chunk_new(struct xmem_pool *pool, u64 bytes, bool spare)
{
	struct xmem_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);
	struct xmem_pages *pages;

	if (!chunk)
		return ERR_PTR(-ENOMEM);
	pages = xmem_pages_new(pool, bytes >> PAGE_SHIFT);
	if (IS_ERR(pages))
		goto err_chunk;
	chunk->now = pages;
	if (spare) {
		pages = xmem_pages_new(pool, bytes >> PAGE_SHIFT);
		if (IS_ERR(pages))
			goto err_chunk;
		chunk->spare = pages;
	}
	return chunk;

err_chunk:
	xmem_chunk_free(pool, chunk);
	return ERR_CAST(pages);
}

/* Where nothing was. The caller zaps what mapped the zero page there. */
void xmem_chunk_place(struct xmem_pool *pool, struct xmem_chunk **place, struct xmem_chunk *chunk,
		      struct xmem_client *writer)
{
	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	WARN_ON(*place);
	chunk->writer = writer;
	*place = chunk;
	spin_unlock(&pool->pages_lock);
	xmem_page_settle(pool->zero);
}

/* The reverse; the caller zaps, then frees the chunk. */
struct xmem_chunk *xmem_chunk_take(struct xmem_pool *pool, struct xmem_chunk **place)
{
	struct xmem_chunk *chunk = *place;

	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	chunk->writer = NULL;
	*place = NULL;
	spin_unlock(&pool->pages_lock);
	xmem_pages_settle(chunk->now);
	return chunk;
}

/* The contents as of now in the spare pages: the host goes on with these. */
void *xmem_chunk_copy(struct xmem_chunk *chunk)
{
	memcpy(chunk->spare->view, chunk->now->view, (size_t)chunk->now->count << PAGE_SHIFT);
	return chunk->spare->view;
}

/* The spare pages are what faults find from here on; the old ones, to settle, zap and free. */
struct xmem_pages *xmem_chunk_turn(struct xmem_pool *pool, struct xmem_chunk *chunk)
{
	struct xmem_pages *old = chunk->now;

	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	chunk->writer = NULL;
	chunk->now = chunk->spare;
	spin_unlock(&pool->pages_lock);
	chunk->spare = NULL;
	return old;
}

/* ---- step 3 ---- */

void xmem_zap_area(struct xmem_pool *pool, u32 client)
{
	const struct xmem_pool_header *header = xmem_header(pool);

	unmap_mapping_range(pool->inode->i_mapping, header->areas_offset + client * header->area_stride,
			    header->area_stride, 1);
}

/* One sweep over all from @first to @last: others' groups between are only faulted again. */
void xmem_zap_groups(struct xmem_pool *pool, u32 first, u32 last)
{
	const struct xmem_pool_header *header = xmem_header(pool);

	unmap_mapping_range(pool->inode->i_mapping, header->groups_offset + first * header->group_stride,
			    (last - first + 1) * header->group_stride, 1);
}

/* ---- who may have which page ---- */

/* The chunk that has byte @offset of the layout, or NULL, and the place of its page there. */
static struct xmem_chunk *xmem_chunk_at(struct xmem_pool *pool, u64 offset, u32 *page)
{
	const struct xmem_pool_header *header = xmem_header(pool);
	u64 n;

	if (offset < header->groups_offset) {
		*page = offset >> PAGE_SHIFT;
		return pool->region;
	}
	if (offset < header->areas_offset) {
		n = div64_u64_rem(offset - header->groups_offset, header->group_stride, &offset);
		*page = offset >> PAGE_SHIFT;
		return pool->group[n];
	}
	if (offset >= header->total_bytes)
		return NULL;
	n = div64_u64_rem(offset - header->areas_offset, header->area_stride, &offset);
	*page = offset >> PAGE_SHIFT;
	return pool->area[n];
}

/* May @client write all of this range? Only in its own area, or in groups that are its own. */
bool xmem_may_write(struct xmem_pool *pool, const struct xmem_client *client, u64 from, u64 to)
{
	const struct xmem_pool_header *header = xmem_header(pool);
	u64 area = header->areas_offset + client->id * header->area_stride;
	struct xmem_chunk *chunk;
	u32 page;

	lockdep_assert_held(&pool->pages_lock);
	if (from >= area && to <= area + header->area_stride)
		return true;
	if (from < header->groups_offset || to > header->areas_offset)
		return false;
	for (; from < to; from += PAGE_SIZE) {
		chunk = xmem_chunk_at(pool, from, &page);
		if (!chunk || chunk->writer != client)
			return false;
	}
	return true;
}

static struct page *xmem_page_at(struct xmem_pool *pool, const struct xmem_client *writer, u64 offset)
{
	struct xmem_chunk *chunk;
	u32 page;

	lockdep_assert_held(&pool->pages_lock);
	chunk = xmem_chunk_at(pool, offset, &page);
	if (writer && (!chunk || chunk->writer != writer))
		return NULL;
	return chunk ? chunk->now->page[page] : pool->zero;
}

/* The page for @writer, or for a reader if that is NULL. NULL: not his. A reference is taken. */
struct page *xmem_page_get(struct xmem_pool *pool, const struct xmem_client *writer, u64 offset)
{
	struct page *page;

	spin_lock(&pool->pages_lock);
	page = xmem_page_at(pool, writer, offset);
	/* Page counts are 32 bits, and anybody may map a page as often as he has memory for. */
	if (page && page_ref_count(page) > 1 << 30)
		page = NULL;
	if (page)
		get_page(page);
	spin_unlock(&pool->pages_lock);
	return page;
}

bool xmem_page_is_current(struct xmem_pool *pool, const struct xmem_client *writer, u64 offset,
			  const struct page *page)
{
	bool same;

	spin_lock(&pool->pages_lock);
	same = xmem_page_at(pool, writer, offset) == page;
	spin_unlock(&pool->pages_lock);
	return same;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: the pages behind one place of the layout, how they are replaced, and which client may use
 * which page. mmap.c maps them, unmap.c unmaps them.
 *
 * A page that a client could write is never given to another client, because pins (io_uring, RDMA,
 * GPUs) outlive clients. So every chunk with a writer has spare pages, allocated with it. When the
 * writer ends, the contents are copied into the spare pages, which replace the old ones; the old
 * ones are freed when nobody pins them any more.
 *
 * Pages that others have mapped are replaced in three steps:
 *
 *   1. the new pages are put in place, under pages_lock;
 *   2. if an old page is locked, wait until it is released once: a fault finds and locks its page
 *      under pages_lock, and holds it until the page is mapped. A fault that locks it after step 1
 *      maps it at another place, so nobody waits for more than one fault;
 *   3. all mappings of the place are zapped; from then on nobody reaches an old page.
 *
 * Steps 2 and 3 wait for locks that a client's process can hold for long if it is throttled. So
 * they are never done under pool->lock.
 *
 * Readers without the pool's lock (poll, sysfs) read through pool->look, between xk_look_begin and
 * xk_look_end. The host changes pool->look under look_lock, so after the change no reader finds the
 * old pages any more, and they are freed at once.
 *
 * At a place without a chunk each client reads its own zero page. A client that has ended reads
 * that page everywhere; and what it still maps writable shows its scratch page, so that it gets no
 * SIGBUS. unmap.c says in which order an evicted client loses its mappings. No page is mapped more
 * often than one client may map it, or all clients of a pool once, so its count fits into 32 bits.
 */
#include <linux/delay.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "xk.h"

/* ---- reading without the pool's lock ---- */

/*
 * Until xk_look_end the caller may read through pool->look, and its pages are not freed. A look is
 * never throttled, because preemption is off meanwhile (not so with PREEMPT_RT). The host waits for
 * it, so a look is short, however long the whole read is. Two looks may differ, because clients end
 * and groups are removed.
 */
void xk_look_begin(struct xk_pool *pool) __acquires(&pool->look_lock)
{
	read_lock(&pool->look_lock);
}

void xk_look_end(struct xk_pool *pool) __releases(&pool->look_lock)
{
	read_unlock(&pool->look_lock);
}

#ifdef XMEM_DEBUG
/* In a test module each poll is slow, and xk_show complains if it does not wait for that. */
void xk_look_slowly(struct xk_pool *pool)
{
	atomic_inc(&pool->slow_looks);
	udelay(100);
	atomic_dec(&pool->slow_looks);
}
#endif

/* Where there are no pages, readers find zeros, as clients do. */
static int xk_nothing_prepare(struct xk_pool *pool, const struct xmem_pool_header *header)
{
	u32 count = max(header->area_stride, header->group_stride) >> PAGE_SHIFT, i;
	struct page **page = kvmalloc_array(count, sizeof(*page), GFP_KERNEL_ACCOUNT);

	if (!page)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		page[i] = ZERO_PAGE(0);
	pool->nothing = vmap(page, count, VM_MAP, PAGE_KERNEL_RO);
	kvfree(page);
	return pool->nothing ? 0 : -ENOMEM;
}

/* The pool has its table and nothing else yet. */
int xk_look_prepare(struct xk_pool *pool)
{
	int err = xk_nothing_prepare(pool, xk_header(pool));
	u32 i;

	if (err)
		return err;
	pool->look = pool->host.map;
	for (i = 0; i < pool->look.clients; i++)
		pool->look.area[i] = pool->nothing;
	for (i = 0; i < pool->look.groups; i++)
		pool->look.group[i] = pool->nothing;
	return 0;
}

void xk_look_free(struct xk_pool *pool)
{
	vunmap(pool->nothing);
}

/* Set where readers find an area or a group. */
static void xk_show(struct xk_pool *pool, void **place, void *view)
{
	lockdep_assert_held(&pool->lock);
	write_lock(&pool->look_lock);
#ifdef XMEM_DEBUG
	WARN_ON(atomic_read(&pool->slow_looks));
#endif
	*place = view ?: pool->nothing;
	write_unlock(&pool->look_lock);
}

/* Set where the host and readers find an area or a group. NULL: there is none any more. */
void xk_show_area(struct xk_pool *pool, u32 client, void *view)
{
	pool->host.map.area[client] = view;
	xk_show(pool, &pool->look.area[client], view);
}

void xk_show_group(struct xk_pool *pool, u32 group, void *view)
{
	pool->host.map.group[group] = view;
	xk_show(pool, (void **)&pool->look.group[group], view);
}

/* ---- pages ---- */

static void xk_pages_uncharge(struct xk_pool *pool, struct xk_payer *payer, u32 count)
{
	atomic_long_sub(count, &pool->pages);
	xk_uncharge(payer, XMEM_QUOTA_USER_PAGE_BYTES, (u64)count << PAGE_SHIFT);
}

/* Free pages that are not in pool->look any more. @pages: or NULL. */
void xk_pages_free(struct xk_pool *pool, struct xk_pages *pages)
{
	u32 i;

	if (!pages)
		return;
	if (pages->view)
		vunmap(pages->view);
	for (i = 0; i < pages->count && pages->page[i]; i++)
		put_page(pages->page[i]);
	xk_pages_uncharge(pool, pages->payer, pages->count);
	xk_payer_put(pages->payer);
	kvfree(pages);
}

struct xk_pages *xk_pages_new(struct xk_pool *pool, struct xk_payer *payer, u32 count)
{
	struct xk_pages *pages;
	int err = xk_charge(payer, pool, XMEM_QUOTA_USER_PAGE_BYTES, (u64)count << PAGE_SHIFT);
	u32 i;

	if (err)
		return ERR_PTR(err);
	atomic_long_add(count, &pool->pages);
	pages = kvzalloc(struct_size(pages, page, count), GFP_KERNEL_ACCOUNT);
	if (!pages) {
		xk_pages_uncharge(pool, payer, count);
		return ERR_PTR(-ENOMEM);
	}
	pages->payer = xk_payer_get(payer);
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
	xk_pages_free(pool, pages);
	return ERR_PTR(-ENOMEM);
}

/* Step 2: after this no fault maps this page where step 1 has removed it. */
void xk_page_drain(struct page *page)
{
	folio_wait_locked(page_folio(page));
	smp_mb();	/* the lock's bit is read before the page tables (step 3) */
}

void xk_pages_drain(const struct xk_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->count; i++)
		xk_page_drain(pages->page[i]);
}

static void xk_chunk_drain(struct xk_chunk *const *place)
{
	const struct xk_chunk *chunk = READ_ONCE(*place);

	if (chunk)
		xk_pages_drain(chunk->now);
	cond_resched();
}

/* xk_pages_drain for all chunks. Only end_work calls it, because nobody else removes a chunk. */
void xk_pool_drain(struct xk_pool *pool)
{
	u32 i;

	xk_chunk_drain(&pool->table);
	for (i = 0; i < pool->host.map.groups; i++)
		xk_chunk_drain(&pool->group[i]);
	for (i = 0; i < pool->host.map.clients; i++)
		xk_chunk_drain(&pool->area[i]);
}

/* ---- chunks ---- */

/* Free a chunk that is not shown, or the table when nobody uses the pool any more. */
void xk_chunk_free(struct xk_pool *pool, struct xk_chunk *chunk)
{
	xk_pages_free(pool, chunk->now);
	xk_pages_free(pool, chunk->spare);
	xk_payer_put(chunk->payer);
	kfree(chunk);
}

static int xk_chunk_fill(struct xk_pool *pool, struct xk_chunk *chunk, u64 bytes)
{
	struct xk_pages *pages = xk_pages_new(pool, chunk->payer, bytes >> PAGE_SHIFT);

	if (IS_ERR(pages))
		return PTR_ERR(pages);
	chunk->now = pages;
	if (chunk->kind == XK_TABLE)
		return 0;
	pages = xk_pages_new(pool, chunk->payer, bytes >> PAGE_SHIFT);
	if (IS_ERR(pages))
		return PTR_ERR(pages);
	chunk->spare = pages;
	return 0;
}

struct xk_chunk *xk_chunk_new(struct xk_pool *pool, struct xk_payer *payer, u64 bytes,
			      enum xk_chunk_kind kind)
{
	struct xk_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);
	int err = 0;

	if (!chunk)
		return ERR_PTR(-ENOMEM);
	chunk->kind = kind;
	chunk->payer = xk_payer_get(payer);
	err = xk_chunk_fill(pool, chunk, bytes);
	if (!err)
		return chunk;
	xk_chunk_free(pool, chunk);
	return ERR_PTR(err);
}

/* Step 1: put @chunk where no chunk was. The caller then unmaps the zero pages there. */
void xk_chunk_place(struct xk_pool *pool, struct xk_chunk **place, struct xk_chunk *chunk,
		    struct xk_client *writer)
{
	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	WARN_ON(*place);
	chunk->writer = writer;
	WRITE_ONCE(*place, chunk);
	spin_unlock(&pool->pages_lock);
}

/*
 * @chunk belongs to the host, and no client has ever been able to write its pages. From now on
 * @writer can, and the chunk gets @spare.
 */
void xk_chunk_lend(struct xk_pool *pool, struct xk_chunk *chunk, struct xk_pages *spare,
		   struct xk_client *writer)
{
	lockdep_assert_held(&pool->lock);
	WARN_ON(chunk->spare || chunk->writer);
	spin_lock(&pool->pages_lock);
	chunk->spare = spare;
	chunk->writer = writer;
	spin_unlock(&pool->pages_lock);
}

/* Step 1: remove the chunk. The caller drains its pages, unmaps the place, and frees it. */
struct xk_chunk *xk_chunk_take(struct xk_pool *pool, struct xk_chunk **place)
{
	struct xk_chunk *chunk = *place;

	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	chunk->writer = NULL;
	WRITE_ONCE(*place, NULL);
	spin_unlock(&pool->pages_lock);
	return chunk;
}

/* Copy the contents into the spare pages and return the host's view of the copy. */
void *xk_chunk_copy(struct xk_chunk *chunk)
{
	u32 i;

	for (i = 0; i < chunk->now->count; i++)
		copy_page(chunk->spare->view + i * PAGE_SIZE, chunk->now->view + i * PAGE_SIZE);
	return chunk->spare->view;
}

/*
 * Step 1 for a chunk: faults find the spare pages from here on. Returns the old pages,
 * which the caller drains, unmaps and frees.
 */
struct xk_pages *xk_chunk_swap(struct xk_pool *pool, struct xk_chunk *chunk)
{
	struct xk_pages *old = chunk->now;

	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	chunk->writer = NULL;
	chunk->now = chunk->spare;
	spin_unlock(&pool->pages_lock);
	chunk->spare = NULL;
	return old;
}

/* ---- which client may use which page ---- */

/* The chunk at byte @offset of the layout, or NULL; *page is the index of the page in it. */
static struct xk_chunk *xk_chunk_at(struct xk_pool *pool, u64 offset, u32 *page)
{
	const struct xmem_pool_header *header = xk_header(pool);
	u64 n;

	if (offset < header->groups_offset) {
		*page = offset >> PAGE_SHIFT;
		return pool->table;
	}
	if (offset < header->areas_offset) {
		n = div64_u64_rem(offset - header->groups_offset, header->group_stride, &offset);
		*page = offset >> PAGE_SHIFT;
		return pool->group[xm_index(n, pool->host.map.groups)];
	}
	if (offset >= header->total_bytes)
		return NULL;
	n = div64_u64_rem(offset - header->areas_offset, header->area_stride, &offset);
	*page = offset >> PAGE_SHIFT;
	return pool->area[xm_index(n, pool->host.map.clients)];
}

/* May @client write all of this range? It may write its area and the groups that it owns. */
bool xk_may_write(struct xk_pool *pool, const struct xk_client *client, u64 from, u64 to)
{
	const struct xmem_pool_header *header = xk_header(pool);
	u64 area = header->areas_offset + client->id * header->area_stride;
	struct xk_chunk *chunk;
	u32 page;

	lockdep_assert_held(&pool->pages_lock);
	if (from >= area && to <= area + header->area_stride)
		return true;
	if (from < header->groups_offset || to > header->areas_offset)
		return false;
	/* a group at a time */
	for (; from < to; from += header->group_stride - ((u64)page << PAGE_SHIFT)) {
		chunk = xk_chunk_at(pool, from, &page);
		if (!chunk || chunk->writer != client)
			return false;
	}
	return true;
}

/* xk_page_get without a reference or lock. */
static struct page *xk_page_at(const struct xk_client *client, bool write, u64 offset)
{
	struct xk_chunk *chunk;
	u32 page;

	lockdep_assert_held(&client->pool->pages_lock);
	if (write && client->evicting)
		return ERR_PTR(-EAGAIN);
	if (client->ended && client->evicting != XK_EVICT_STORES)
		return write ? client->scratch : client->zero;
	chunk = xk_chunk_at(client->pool, offset, &page);
	if (write && (!chunk || chunk->writer != client))
		return NULL;
	return chunk ? chunk->now->page[xm_index(page, chunk->now->count)] : client->zero;
}

/*
 * Get the page at @offset that @client sees where it reads, or in a mapping that it can write, with
 * a reference, and locked unless *@ret_locked is false: another fault has locked it. NULL: the
 * client may not write there. -EAGAIN: the client is being evicted, and may not store meanwhile.
 */
struct page *xk_page_get(const struct xk_client *client, bool write, u64 offset, bool *ret_locked)
{
	struct page *page;

	spin_lock(&client->pool->pages_lock);
	page = xk_page_at(client, write, offset);
	if (!IS_ERR_OR_NULL(page))
		get_page(page);
	*ret_locked = !IS_ERR_OR_NULL(page) && trylock_page(page);
	spin_unlock(&client->pool->pages_lock);
	return page;
}

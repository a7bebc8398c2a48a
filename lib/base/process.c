// SPDX-License-Identifier: MIT
/*
 * The number of this process among its forks, and the list of its open pools. A client is one
 * address space: a child does not map the pages of its parent's pools (MADV_DONTFORK), so it must
 * refuse every handle before it uses it.
 *
 * The number lies in a page that the kernel wipes in every child (MADV_WIPEONFORK), even in a child
 * whose fork called no handlers of pthread_atfork.
 */
#include <string.h>
#include <sys/mman.h>

#include "lib/base/calls.h"
#include "lib/base/fork.h"
#include "lib/base/handle.h"

#define PAGE_BYTES	4096		/* a real page may be larger; it only matters that it is
					 * not smaller */

struct page {
	u64 process;			/* in the first one only */
	struct page *next;
	struct xl_live live[];
};
#define LIVES	((PAGE_BYTES - sizeof(struct page)) / sizeof(struct xl_live))

static u64 no_process; /* until the process is numbered; no handle has this number */
u64 *xl_process = &no_process;

/* These three, and the list of pages, are under the fork lock. */
static struct xmem_pool *pools;
static struct page *first_page;
static u64 number;

static void forked(void)
{
	struct xmem_pool *pool;

	if (first_page)
		memset(first_page, 0, PAGE_BYTES);	/* the links to the others as well */
	for (pool = pools; pool; pool = pool->next)
		pool->link.backend->forked(&pool->link);
	pools = NULL;			/* the memory stays, because handles point to it */
}

static struct xl_fork_hook hook = { .child = forked };

/*
 * Make a page that the kernel wipes in a child. If the kernel is too old for this, the fork handler
 * does it. Pages stay for ever; there are as many as the pools that were open at once need.
 */
static struct page *make_page(void)
{
	struct page *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED) {
		xl_fail(ENOMEM, "no memory for one page");
		return NULL;
	}
	madvise(page, PAGE_BYTES, MADV_WIPEONFORK);
	return page;
}

static int make_first_page(void)
{
	struct page *page = make_page();

	if (!page)
		return -ENOMEM;
	first_page = page;
	xl_process = &page->process;
	return 0;
}

static struct xl_live *find_live(void)
{
	struct page *page = first_page;
	u32 i;

	for (;;) {
		for (i = 0; i < LIVES; i++)
			if (!page->live[i].holds)
				return &page->live[i];
		if (!page->next)
			page->next = make_page();
		if (!page->next)
			return NULL;
		page = page->next;
	}
}

static int fill_live(struct xmem_pool *pool)
{
	struct xl_live *live = find_live();

	if (!live)
		return -ENOMEM;
	*live = (struct xl_live){
		.holds = pool->holds,
		/* A client that is not counted always takes the slow path of get. */
		.slots = xm_is_counted(&pool->map, pool->me) ? pool->map.slots : 0,
		.writes = pool->role == XMEM_ROLE_WRITER,	/* later: xl_check_role */
	};
	pool->live = live;
	return 0;
}

/* Give this process a number if it has none. pre: the fork lock is taken. 0, or -ENOMEM, noted. */
static int number_process(void)
{
	int err;

	if (xl_process == &no_process) {
		err = make_first_page();
		if (err)
			return err;
	}
	if (!*xl_process) {
		xl_fork_add(&hook);
		*xl_process = ++number;
		xl_fork_unnoticed();
		xl_membarrier_register();
	}
	return 0;
}

u64 xl_process_number(void)
{
	u64 ret;

	xl_fork_lock();
	ret = number_process() ? 0 : *xl_process;
	xl_fork_unlock();
	return ret;
}

int xl_process_register(struct xmem_pool *pool)
{
	int err;

	xl_fork_lock();
	err = number_process();
	if (!err)
		err = fill_live(pool);
	if (!err) {
		xm_store(&pool->process, *xl_process);
		pool->next = pools;
		pools = pool;
	}
	xl_fork_unlock();
	return err;
}

/*
 * From now on the pool has no slots for the fast paths. Other threads may be in them; they then
 * find the reason on the slow path (XL_USE).
 */
void xl_live_end(struct xmem_pool *pool)
{
	xm_store_release(&pool->live->slots, 0);
	xm_store_release(&pool->live->writes, 0);
}

void xl_process_unregister(struct xmem_pool *pool)
{
	struct xmem_pool **at;

	xl_fork_lock();
	xl_live_end(pool);
	pool->live->holds = NULL;	/* it can serve another pool */
	for (at = &pools; *at; at = &(*at)->next) {
		if (*at == pool) {
			*at = pool->next;
			break;
		}
	}
	xl_fork_unlock();
}

/*
 * The first open pool of a part of the list, counted; or NULL. A counted pool stays in the list,
 * because its close waits for the call. Under the fork lock.
 */
static struct xmem_pool *use_first(struct xmem_pool *pool)
{
	for (; pool; pool = pool->next) {
		xl_wait_begin(&pool->calls);
		if (xl_is_open(pool))
			return pool;
		xl_wait_end(&pool->calls);
	}
	return NULL;
}

void xl_each_pool(void (*call)(struct xmem_pool *pool, void *user), void *user)
{
	struct xmem_pool *pool, *last;

	xl_fork_lock();
	pool = use_first(pools);
	xl_fork_unlock();
	while (pool) {
		call(pool, user);
		last = pool;
		xl_fork_lock();
		pool = use_first(last->next);
		xl_fork_unlock();
		xl_wait_end(&last->calls);
	}
}

int xl_fail_not_alive(const struct xmem_pool *pool)
{
	if (xl_is_forked(pool))
		return xl_fail_forked();
	return xl_fail_fast(EBADF, "this handle of a pool has been closed: use it no more after "
				   "xmem_pool_close");
}

int xl_fail_forked(void)
{
	return xl_fail_fast(
		ECHILD, "this handle was inherited by fork and is dead here: open the pool anew");
}

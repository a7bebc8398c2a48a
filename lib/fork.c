// SPDX-License-Identifier: MIT
/*
 * Handles that a child inherits by fork. A client is one address space: no page of the
 * parent's pools is mapped in the child (MADV_DONTFORK), so every handle must be refused
 * before it is used. The child must close the parent's files at once, because they would
 * keep the parent's client alive after the parent's end.
 *
 * The number of the process is in a page that the kernel wipes in every child
 * (MADV_WIPEONFORK), also in a child whose fork did not call the handlers of
 * pthread_atfork.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handle.h"
#include "payload/view.h"

#define PAGE_BYTES	4096		/* or less than a page, which is as good */

struct page {
	u64 process;			/* in the first one only */
	struct page *next;
	struct xl_live live[];
};
#define LIVES	((PAGE_BYTES - sizeof(struct page)) / sizeof(struct xl_live))

static u64 no_process; /* until the process is numbered; no handle has this number */
u64 *xl_process = &no_process;

/* Guards the list, the making of the page, and the number. Held across fork. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xmem_pool *pools;
static struct page *first_page;
static u64 number;
static int cancelling;		/* the cancel state of the thread that has it, before that */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	xl_handles_before_fork();
}

static void after_fork_parent(void)
{
	xl_handles_after_fork();
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	struct xmem_pool *pool;

	if (first_page)
		memset(first_page, 0, PAGE_BYTES);	/* the links to the others as well */
	xl_handles_forked();
	for (pool = pools; pool; pool = pool->next)
		pool->link.backend->forked(&pool->link);
	pools = NULL;			/* the memory stays, because handles point to it */
	xl_files_forked();
	xl_views_forked();
	pthread_mutex_init(&lock, NULL);
}

/* The handlers come before the first descriptor and mapping of the library. */
static void add_handlers(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void xl_fork_lock(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	int before;

	/* A thread that is cancelled in between would leave the lock taken, and end all forks. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_once(&once, add_handlers);
	pthread_mutex_lock(&lock);
	cancelling = before;
}

void xl_fork_unlock(void)
{
	int before = cancelling;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(before, NULL);
}

/*
 * A page that the kernel wipes in a child; where the kernel is too old, the fork handler does.
 * Pages stay for ever: there are as many as the pools that were open at once need.
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
		/* A client that is not counted always gets by the long way. */
		.slots = xm_is_counted(&pool->map, pool->me) ? pool->map.slots : 0,
		.writes = pool->role == XMEM_ROLE_WRITER,	/* later: xl_check_role */
	};
	pool->live = live;
	return 0;
}

/* Give this process a number if it has none. pre: the lock is taken. 0, or -ENOMEM, noted. */
static int number_process(void)
{
	int err;

	if (xl_process == &no_process) {
		err = make_first_page();
		if (err)
			return err;
	}
	if (!*xl_process) {
		*xl_process = ++number;
		xl_handles_forked();	/* the fork may have called no handler */
		xl_views_forked();
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

/* It has no slots any more. Other threads may be looking, and then look why (XL_USE). */
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

// SPDX-License-Identifier: MIT
/*
 * The addresses of ready words on a GPU. The page of a group that has the words is registered with
 * the driver once in a process, before the first stream writes one of them or waits for one.
 *
 * When a group gets another owner, it gets other pages at the same address. The driver keeps the
 * old page while it is registered. So the old registration must be removed before a new one can be
 * made, although streams may still have waits for its words. All these waits end, because their
 * owner's process has exited. But the work before them in the streams may wait for something that
 * this process has yet to do, in this thread or in another. Therefore:
 *
 *   Nothing here waits for a stream, and nothing calls the driver under orders->lock. A page that
 *   must go is retired: no more waits for it are put into streams. A thread of its own waits until
 *   the streams have passed the existing waits, and then unregisters it. Until then, threads wait
 *   for words of the new owner themselves, as they do if the GPU cannot reach the words.
 *
 * A retired page has one such thread, so there are at most as many as groups.
 *
 * No lock is held while the driver registers a page. Another thread that needs the page meanwhile
 * does not wait, but does what it would do if the GPU could not reach the words.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/gpu/order.h"
#include "lib/payload/payload.h"

/*
 * The present owner of the group. The next owner has another page, even with xmemd. 0: the owner
 * has ended.
 */
static u64 origin_of(const struct xmem_pool *pool, u32 slot)
{
	const struct xm_map *map = &pool->map;
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);

	if (owner >= map->clients)
		return 0;
	return xl_origin(owner, xm_load(&xm_client_row(map, owner)->incarnation));
}

/* pre: no more waits are put there. false: the driver refuses. */
static bool unregister(const struct xl_ready_page *page)
{
	struct xl_gpu_scope scope;

	if (xl_gpu_enter(page->gpu, &scope))
		return false;
	/* Afterwards no stream waits for one of the words any more. */
	xl_cuda()->ctx_synchronize();
	xl_cuda()->mem_host_unregister(page->at);
	xl_gpu_leave(&scope);
	return true;
}

static void *retire(void *user)
{
	struct xl_ready_page *page = user;

	if (!unregister(page))
		return NULL;		/* it stays retired */
	xl_lock(&page->orders->lock);
	page->origin = 0;
	xl_unlock(&page->orders->lock);
	return NULL;
}

/*
 * Begin to retire a page. If no thread can be made, the next call tries again. Under orders->lock.
 */
static void start_retiring(struct xl_ready_page *page)
{
	sigset_t all, before;

	if (page->retiring)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);	/* signals are for the program's threads */
	page->retiring = !pthread_create(&page->thread, NULL, retire, page);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * Join the page's thread. pre: the page has no origin, so the thread is about to end; or no lock is
 * held.
 */
static void finish_retiring(struct xl_ready_page *page)
{
	if (page->retiring)
		pthread_join(page->thread, NULL);
	page->retiring = false;
}

static bool reaches(const struct xl_gpu *gpu, bool writable)
{
	return gpu->can.memops && gpu->can.host_register &&
	       (writable || gpu->can.host_read_only) && gpu->ordinal < XL_MAX_GPUS;
}

/* Is the page mapped for writing here? All pages of the daemon are, and each client's own. */
static bool is_writable(const struct xmem_pool *pool, u32 slot)
{
	return pool->link.backend == &xmem_backend_daemon ||
	       xm_load(&xm_slot_row(&pool->map, slot)->owner) == pool->me;
}

/* pre: the current context is one of @gpu. 0, -EOPNOTSUPP or -errno, noted. */
static int register_page(struct xl_gpu *gpu, struct xl_ready_page *page, void *at, u64 origin,
			 bool writable)
{
	unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
			     (writable ? 0 : CU_MEMHOSTREGISTER_READ_ONLY);
	CUresult result = xl_cuda()->mem_host_register(at, xl_page_bytes(), flags);

	if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE)
		return -EOPNOTSUPP;
	if (result)
		return xl_cuda_fail(result, "GPU %d does not take a page of the pool",
				    gpu->ordinal);
	*page = (struct xl_ready_page){
		.origin = origin, .gpu = gpu, .at = at, .changing = true,
		.orders = page->orders,
	};
	return 0;
}

static int find_address(struct xl_gpu *gpu, struct xl_ready_page *page)
{
	CUdeviceptr *device = &page->device[gpu->ordinal];
	CUresult result;

	if (*device)
		return 0;
	if (gpu->can.host_address) {
		*device = (CUdeviceptr)page->at;
		return 0;
	}
	result = xl_cuda()->mem_host_get_device_pointer(device, page->at, 0);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return -EOPNOTSUPP;
	return result ? xl_cuda_fail(result, "GPU %d has no address of a page of the pool",
				     gpu->ordinal) : 0;
}

static int enter_and_find(struct xl_gpu *gpu, struct xl_ready_page *page, void *at, u64 origin,
			  bool writable)
{
	struct xl_gpu_scope scope;
	CUresult result = xl_order_enter(gpu, &scope);
	int err = 0;

	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return -EOPNOTSUPP;
	if (result)
		return xl_cuda_fail(result, "GPU %d's context cannot be entered", gpu->ordinal);
	if (!page->origin) {
		finish_retiring(page);
		err = register_page(gpu, page, at, origin, writable);
	}
	if (!err)
		err = find_address(gpu, page);
	xl_gpu_leave(&scope);
	return err;
}

/* Under orders->lock. */
static struct xl_ready_page *page_of(struct xl_orders *orders, u32 group)
{
	struct xl_ready_page **page = &orders->page[group];

	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page)
		xl_fail_fast(ENOMEM, "no memory for a page of ready words");
	else
		(*page)->orders = orders;
	return *page;
}

/*
 * Find the page that has @slot's ready word, which must be registered. 0: *ret is this page.
 * -EAGAIN: the caller must first ask the driver, and page->changing is set for this. -EOPNOTSUPP,
 * or -ENOMEM, noted. Under orders->lock.
 */
static int find_page(struct xmem_pool *pool, struct xl_orders *orders, u32 slot, u64 origin,
		     struct xl_gpu *gpu, struct xl_ready_page **ret)
{
	struct xl_ready_page *page = page_of(orders, slot / XMEM_GROUP_SLOTS);

	if (!page)
		return -ENOMEM;
	if (page->changing)
		return -EOPNOTSUPP;
	if (page->origin && page->origin != origin) {
		start_retiring(page);
		return -EOPNOTSUPP;
	}
	*ret = page;
	if (likely(page->origin && page->device[gpu->ordinal]))
		return 0;
	page->changing = true;
	return -EAGAIN;
}

int xl_ready_find(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu, CUdeviceptr *ret)
{
	struct xl_orders *orders = xl_orders(pool);
	u64 word = (u64)xm_ready_word(&pool->map, slot), origin = origin_of(pool, slot);
	u64 within = word & (xl_page_bytes() - 1);
	bool writable = is_writable(pool, slot);
	struct xl_ready_page *page;
	int err;

	if (!orders)
		return -ENOMEM;
	/* When the owner has ended, the registered page may be that of an earlier owner. */
	if (!origin || !reaches(gpu, writable))
		return -EOPNOTSUPP;
	xl_lock(&orders->lock);
	err = find_page(pool, orders, slot, origin, gpu, &page);
	if (unlikely(err == -EAGAIN)) {
		xl_unlock(&orders->lock);
		err = enter_and_find(gpu, page, (void *)(word - within), origin, writable);
		xl_lock(&orders->lock);
		page->changing = false;
	}
	if (!err)
		*ret = page->device[gpu->ordinal] + within;
	xl_unlock(&orders->lock);
	return err;
}

static void drop(struct xl_ready_page *page)
{
	if (!page)
		return;
	finish_retiring(page);
	if (page->origin)
		unregister(page);
	free(page);
}

void xl_ready_drop(struct xl_orders *orders, struct xm_map *map)
{
	u32 g;

	for (g = 0; g < map->groups; g++)
		drop(orders->page[g]);
}

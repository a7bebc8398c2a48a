/* SPDX-License-Identifier: MIT */
/* A client that is evicted at a step in the middle of a call. */
#ifndef XMEM_CONFORM_EVICTED_H
#define XMEM_CONFORM_EVICTED_H

#include <sys/mman.h>

#include "harness.h"
#include "lib/base/handle.h"

static struct {
	struct xmem_pool *owner, *victim;
	struct xmem_slot_row *row;	/* as the victim sees it */
	void *page, *kept;		/* daemon: the row's page, and where it is kept */
} evicted;

static inline void *zeros(void *at, int flags)
{
	void *page = mmap(at, page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	CHECK(page != MAP_FAILED);
	return page;
}

static inline void move_page(void *from, void *to)
{
	CHECK(mremap(from, page_size(), page_size(), MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
}

/*
 * The victim reads zeros. The daemon cannot take pages from a live process, so the test takes the
 * page of the row itself.
 */
static inline void evict_the_victim(int step)
{
	struct xmem_client_info info = { .size = sizeof(info) };
	unsigned int client = xmem_pool_client(evicted.victim);

	(void)step;
	if (on_kernel()) {
		WORKED(xmem_pool_client_info(evicted.owner, client, &info));
		WORKED(xmem_pool_evict(evicted.owner, client, info.incarnation));
		EVENTUALLY(!xm_load(&evicted.row->payload));
		return;
	}
	evicted.page = (void *)((uintptr_t)evicted.row / page_size() * page_size());
	evicted.kept = zeros(NULL, 0);
	move_page(evicted.page, evicted.kept);
	CHECK(zeros(evicted.page, MAP_FIXED) == evicted.page);
	SAME(xm_load(&evicted.row->payload), 0);
}

/* So that the victim can close its pool. */
static inline void give_the_page_back(void)
{
	if (!on_kernel())
		move_page(evicted.kept, evicted.page);
}

/* Evict the victim, which has that buffer, when it reaches @step the next time. */
static inline void evict_at(int step, struct xmem_pool *owner, struct xmem_buffer *handle)
{
	const struct xmem_buffer *buffer = xl_buffer(handle);

	evicted.owner = owner;
	evicted.victim = buffer->pool;
	evicted.row = xm_slot_row(&buffer->pool->map, buffer->slot);
	at_step(step, 0, STEP_CALL, evict_the_victim);
}

#endif

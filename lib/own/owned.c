// SPDX-License-Identifier: MIT
/*
 * The slots that this client owns: this file makes their lists, adds slots, and takes back buffers
 * that were acquired and not published. owned.h has the lists and their rules; collect.c and find.c
 * move slots between them.
 */
#include <stdlib.h>

#include "lib/base/handle.h"
#include "lib/cuda/device.h"
#include "lib/hold/attach.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"

#define LEAST_PLACES	1024	/* large, so that few batches are cut in two at the end of a
				 * circle */

static void free_size(struct xl_size *size)
{
	if (size)
		free(size->circle);
	free(size);
}

/* A size without slots and without places for slots. NULL: no memory. */
static struct xl_size *new_size(struct xl_chain *chain, u64 bytes, bool shared)
{
	struct xl_size *size = calloc(1, sizeof(*size));

	if (!size)
		return NULL;
	size->bytes = bytes;
	size->chain = chain;
	size->shared = shared;
	size->free.last = &size->free.first;
	size->busy.last = &size->busy.first;
	return size;
}

int xl_owned_init(struct xmem_pool *pool, const struct xmem_pool_options *options)
{
	struct xl_owned *owned = &pool->owned;

	owned->slot = calloc(pool->map.slots, sizeof(*owned->slot));
	owned->cpu.sizes = new_size(&owned->cpu, ~0ULL, true);
	owned->cpu.ordinal = -1;
	if (!owned->slot || !owned->cpu.sizes)
		return -ENOMEM;
	owned->words = xm_publisher_words(&pool->map, pool->me);
	owned->asked = &owned->cpu;
	owned->culprit = XMEM_OWNER_NONE;
	owned->wait_bound_ns = options->wait_bound_ns;
	owned->keep = options->keep;
	owned->lent_bound = ~0ULL;
	return 0;
}

void xl_owned_close(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	owned->closed = true;
	xl_leave_fast_path(owned);
	xl_unlock(&owned->lock);
}

/* The sizes that an acquire with a closed handle finds. */
static struct xl_size no_size = { .bytes = ~0ULL };

static void free_chain(struct xl_size *sizes)
{
	struct xl_size *size, *larger;

	for (size = sizes; size; size = larger) {
		larger = size->larger;
		free_size(size);
	}
}

void xl_owned_destroy(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_chain *chain, *next;
	struct xl_size *sizes;

	xl_lock(&owned->lock);
	sizes = owned->cpu.sizes;
	chain = owned->cpu.next;
	owned->cpu = (struct xl_chain){ .sizes = &no_size, .ordinal = -1 };
	owned->asked = &owned->cpu;
	owned->closed = true;
	xl_unlock(&owned->lock);
	free_chain(sizes);
	for (; chain; chain = next) {
		next = chain->next;
		free_chain(chain->sizes);
		free(chain);
	}
	free_size(owned->once);
	free(owned->slot);
}

static bool is_size(const struct xl_size *size, u64 bytes, bool shared)
{
	return size->bytes == bytes && size->shared == shared;
}

/* The link to that size, or the link where it is to be inserted. */
static struct xl_size **find_size(struct xl_chain *chain, u64 bytes, bool shared)
{
	struct xl_size **link = &chain->sizes;

	while ((*link)->bytes < bytes || (shared && is_size(*link, bytes, false)))
		link = &(*link)->larger;
	return link;
}

/* Find that size, or make it. NULL: no memory. Under owned->lock. */
static struct xl_size *make_size(struct xl_chain *chain, u64 bytes, bool shared)
{
	struct xl_size **link = find_size(chain, bytes, shared), *size = *link;

	if (is_size(size, bytes, shared))
		return size;
	size = new_size(chain, bytes, shared);
	if (!size)
		return NULL;
	size->larger = *link;
	*link = size;
	return size;
}

/* Make the circle large enough for @slots slots. Under owned->lock. */
static bool make_places(struct xl_size *size, u32 slots)
{
	u32 places = LEAST_PLACES, at;
	struct xm_own **circle;

	while (places < slots)
		places *= 2;
	if (size->circle && places <= size->mask + 1)
		return true;
	circle = calloc(places, sizeof(*circle));
	if (!circle)
		return false;
	for (at = size->ready; at != size->end; at++)
		circle[at & (places - 1)] = size->circle[at & size->mask];
	free(size->circle);
	size->circle = circle;
	size->mask = places - 1;
	return true;
}

/* Under owned->lock. */
static struct xl_chain *find_chain(struct xl_owned *owned, const struct xl_gpu *gpu)
{
	struct xl_chain *chain = owned->cpu.next;

	while (chain && chain->gpu != gpu)
		chain = chain->next;
	return chain;
}

struct xl_chain *xl_owned_find_chain(struct xmem_pool *pool, const struct xl_gpu *gpu)
{
	struct xl_chain *chain;

	xl_lock(&pool->owned.lock);
	chain = find_chain(&pool->owned, gpu);
	xl_unlock(&pool->owned.lock);
	return chain;
}

static struct xl_chain *new_chain(struct xl_gpu *gpu)
{
	struct xl_chain *chain = calloc(1, sizeof(*chain));

	if (!chain)
		return NULL;
	chain->gpu = gpu;
	chain->ordinal = gpu->ordinal;
	chain->sizes = new_size(chain, ~0ULL, true);
	if (chain->sizes)
		return chain;
	free(chain);
	return NULL;
}

/* The options of the CPU also count for the buffers of a GPU. Under owned.lock. */
static void init_demand(struct xl_owned *owned, struct xl_chain *chain)
{
	const struct xl_demand *cpu = &owned->cpu.demand;

	chain->demand = (struct xl_demand){
		.on = cpu->option != XMEM_NO_DEMAND, .by_default = cpu->by_default,
		.option = cpu->option, .limit = cpu->option ? cpu->option : XL_UNKNOWN_LIMIT,
		.memory = cpu->memory, .cache_bytes = cpu->cache_bytes, .cache_ns = cpu->cache_ns,
	};
	if (chain->demand.on)
		__atomic_store_n(&owned->on_demand, true, __ATOMIC_RELAXED);
}

struct xl_chain *xl_owned_chain(struct xmem_pool *pool, struct xl_gpu *gpu)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_chain *chain;

	xl_lock(&owned->lock);
	chain = find_chain(owned, gpu);
	if (!chain) {
		chain = new_chain(gpu);
		if (chain) {
			init_demand(owned, chain);
			chain->next = owned->cpu.next;
			owned->cpu.next = chain;
		}
	}
	xl_unlock(&owned->lock);
	if (!chain)
		xl_fail_fast(ENOMEM, "no memory for a list of buffers");
	return chain;
}

int xl_owned_prepare(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes, bool shared,
		     u32 count)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size;
	bool made;

	xl_lock(&owned->lock);
	size = make_size(chain, bytes, shared);
	made = size && make_places(size, size->slots + count);
	/* If there is no memory for the fence, an acquire may get a larger buffer than is near. */
	if (made && chain->demand.on && xl_fence(bytes))
		make_size(chain, xl_fence(bytes), !(chain->demand.memory & XMEM_MEMORY_SEALED));
	xl_unlock(&owned->lock);
	if (made)
		return 0;
	xl_owned_unprepare(pool);
	return xl_fail(ENOMEM, "no memory for a list of buffers");
}

static bool is_fence(const struct xl_chain *chain, u64 bytes)
{
	const struct xl_size *size;

	for (size = chain->sizes; size; size = size->larger)
		if (size->slots && xl_fence(size->bytes) == bytes)
			return true;
	return false;
}

static void tidy_chain(struct xl_chain *chain, bool fences)
{
	struct xl_size **link = &chain->sizes, *size;

	while ((size = *link)->larger) {
		if (size->slots || (fences && is_fence(chain, size->bytes))) {
			link = &size->larger;
			continue;
		}
		*link = size->larger;
		free_size(size);
	}
}

void xl_owned_tidy(struct xl_owned *owned)
{
	struct xl_chain *chain;

	for (chain = &owned->cpu; chain; chain = chain->next)
		tidy_chain(chain, chain->demand.on);
}

void xl_owned_unprepare(struct xmem_pool *pool)
{
	xl_lock(&pool->owned.lock);
	xl_owned_tidy(&pool->owned);
	xl_unlock(&pool->owned.lock);
}

/* Add the file of a slot that was just made to this client's files. */
static struct xl_mapping *enter_file(struct xmem_pool *pool, u32 slot)
{
	struct xl_mapping *file = xl_mapping_of(&pool->mappings, slot);
	struct xl_owned *owned = &pool->owned;

	file->next_file = owned->files;
	owned->files = file;
	file->chain->demand.bytes += file->demand ? file->bytes : 0;
	return file;
}

/* Reset the storage in the metadata: the last user of the slot may have had it on a GPU. */
static void forget_gpu(struct xmem_metadata *metadata)
{
	metadata->storage = XMEM_STORAGE_CPU;
	metadata->device = 0;
	metadata->order_kind = XMEM_ORDER_NONE;
	metadata->order_value = 0;
}

void xl_owned_add(struct xmem_pool *pool, struct xl_chain *chain, const u16 *slot, u32 count,
		  u64 bytes, bool shared)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_mapping *file = NULL;
	struct xl_size *size;
	u32 i;

	xl_lock(&owned->lock);
	size = *find_size(chain, bytes, shared);
	if (chain->gpu)		/* only now: its first payload gives it its number */
		chain->device = xm_device(xm_load(&xm_slot_row(&pool->map, *slot)->traits));
	for (i = 0; i < count; i++) {
		if (!file || file->payload != pool->mappings.place[slot[i]].payload)
			file = enter_file(pool, slot[i]);
		owned->slot[slot[i]].size = size;
		owned->slot[slot[i]].file = file;
		/*
		 * Only now: the kernel maps the group writable at a new address when it is
		 * attached.
		 */
		owned->slot[slot[i]].own = xm_own(&pool->map, slot[i]);
		owned->slot[slot[i]].metadata = xm_metadata(&pool->map, slot[i]);
		if (!chain->gpu)
			forget_gpu(owned->slot[slot[i]].metadata);
		xl_queue_add(&size->free, &owned->slot[slot[i]]);
	}
	size->slots += count;
	owned->slots += count;
	xl_owned_changed(owned);
	if (shared)		/* other clients may end its publications without notice */
		xl_keep_add_gap(owned, ~0ULL);
	xl_unlock(&owned->lock);
	xl_owned_wake(pool);
}

/* Free the slot of a buffer that was acquired and not published. */
void xl_owned_give_up(struct xmem_pool *pool, u32 slot)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_owned_slot *one = &owned->slot[slot];

	xl_lock(&owned->lock);
	xm_give_up(&pool->map, slot);
	xl_queue_add(&one->size->free, one);
	owned->promised--;
	xl_owned_changed(owned);
	xl_unlock(&owned->lock);
	xl_owned_wake(pool);
}

/* ---- slots for one content ---- */

/*
 * Make the list of slots for one content. Its slots differ in size, which 0 stands for. Under
 * owned->lock.
 */
static bool make_once(struct xl_owned *owned)
{
	if (!owned->once)
		owned->once = new_size(NULL, 0, false);
	return owned->once && make_places(owned->once, owned->once->slots + 1);
}

static void set_once(struct xl_owned *owned, u32 slots)
{
	owned->once->slots = slots;
	__atomic_store_n(&owned->attached, slots, __ATOMIC_RELAXED);
}

int xl_once_add(struct xmem_pool *pool, u32 slot)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_owned_slot *one = &owned->slot[slot];
	bool made;

	xl_lock(&owned->lock);
	made = make_once(owned);
	if (made) {
		one->size = owned->once;
		one->own = xm_own(&pool->map, slot);
		one->metadata = xm_metadata(&pool->map, slot);
		one->held = false;
		/*
		 * The last user of this slot had other contents, so nothing in the metadata is
		 * true.
		 */
		*one->metadata = (struct xmem_metadata){ 0 };
		xm_take(&pool->map, slot);
		xm_store(&one->own.word->position, XMEM_POSITION_IN_HAND);
		set_once(owned, owned->once->slots + 1);
		owned->slots++;
	}
	xl_unlock(&owned->lock);
	return made ? 0 : -ENOMEM;
}

void xl_once_remove(struct xmem_pool *pool, struct xl_owned_slot *one)
{
	struct xl_owned *owned = &pool->owned;

	one->size = NULL;
	set_once(owned, owned->once->slots - 1);
	owned->slots--;
}

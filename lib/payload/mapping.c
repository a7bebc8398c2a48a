// SPDX-License-Identifier: MIT
/*
 * The payload files that this process has mapped. A reader maps a whole payload when it first needs
 * data in it. It keeps the mapping as long as the payload is attached to any slot, so later
 * hand-overs map nothing. payload.h says why finding data needs no lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cuda/memory.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"
#include "lib/payload/remnant.h"
#include "lib/payload/view.h"

#define FIRST_LISTS	16

/* ---- the table of mappings by payload, under pool->mappings.lock ---- */

static struct xl_mapping **list_of(const struct xl_mappings *mappings, u64 payload)
{
	return &mappings->list[payload & (mappings->lists - 1)];
}

struct xl_mapping *xl_mapping_find(const struct xl_mappings *mappings, u64 payload)
{
	struct xl_mapping *mapping = *list_of(mappings, payload);

	while (mapping && mapping->payload != payload)
		mapping = mapping->next;
	return mapping;
}

static void push(struct xl_mapping **list, struct xl_mapping *mapping)
{
	mapping->next = *list;
	__atomic_store_n(list, mapping, __ATOMIC_RELAXED);
}

/* Keep the lists short. Without memory they stay longer, which does no harm. */
static void grow(struct xl_mappings *mappings)
{
	struct xl_mapping **old = mappings->list, *mapping;
	u32 i, lists = mappings->lists;

	mappings->list = calloc(2 * (size_t)lists, sizeof(*mappings->list));
	if (!mappings->list) {
		mappings->list = old;
		return;
	}
	mappings->lists = 2 * lists;
	for (i = 0; i < lists; i++) {
		while ((mapping = old[i])) {
			old[i] = mapping->next;
			push(list_of(mappings, mapping->payload), mapping);
		}
	}
	free(old);
}

/*
 * Update the number of bytes that this client has mapped. It is in the client's area, for other
 * processes.
 */
static void count(struct xmem_pool *pool, int more, const struct xl_mapping *mapping)
{
	__atomic_store_n(&pool->mappings.count, pool->mappings.count + more, __ATOMIC_RELAXED);
	if (mapping->base)
		pool->mappings.bytes += more * mapping->bytes;
	pool->mappings.advised += mapping->advised ? more * mapping->bytes : 0;
	xm_store(&xm_ring(&pool->map, pool->me)->mapped_bytes, pool->mappings.bytes);
}

static void add(struct xmem_pool *pool, struct xl_mapping *mapping)
{
	struct xl_mappings *mappings = &pool->mappings;

	if (mappings->count >= mappings->lists)
		grow(mappings);
	push(list_of(mappings, mapping->payload), mapping);
	count(pool, 1, mapping);
}

/* Take mappings of GPUs out of one list. */
static void drop_cuda_of(struct xmem_pool *pool, struct xl_mapping **at)
{
	struct xl_mapping *mapping;

	while ((mapping = *at)) {
		if (!mapping->memory) {
			at = &mapping->next;
			continue;
		}
		*at = mapping->next;
		count(pool, -1, mapping);
		xl_cuda_drop(pool, mapping);
	}
}

void xl_mappings_drop_cuda(struct xmem_pool *pool)
{
	struct xl_mappings *mappings = &pool->mappings;
	u32 i;

	for (i = 0; mappings->list && i < mappings->lists; i++)
		drop_cuda_of(pool, &mappings->list[i]);
}

int xl_mappings_init(struct xmem_pool *pool)
{
	struct xl_mappings *mappings = &pool->mappings;

	mappings->place = calloc(pool->map.slots, sizeof(*mappings->place));
	mappings->list = calloc(FIRST_LISTS, sizeof(*mappings->list));
	mappings->lists = FIRST_LISTS;
	xl_views_init();
	if (mappings->place && mappings->list)
		return 0;
	xl_mappings_destroy(pool);
	return -ENOMEM;
}

/* Unmap the mappings of a list, which are in no table any more. */
static void unmap_list(struct xmem_pool *pool, struct xl_mapping *list)
{
	struct xl_mapping *mapping;

	while ((mapping = list)) {
		list = mapping->next;
		if (mapping->memory) {
			xl_cuda_drop(pool, mapping);
		} else {
			xl_views_unmap(mapping);
			mapping->kind->unmap(mapping);
			free(mapping);
		}
	}
}

void xl_mappings_destroy(struct xmem_pool *pool)
{
	struct xl_mappings *mappings = &pool->mappings;
	u32 i;

	for (i = 0; mappings->list && i < mappings->lists; i++)
		unmap_list(pool, mappings->list[i]);
	free(mappings->list);
	free(mappings->place);
	free(mappings->device);
	*mappings = (struct xl_mappings){ 0 };
}

void xl_mapping_add(struct xmem_pool *pool, struct xl_mapping *mapping)
{
	xl_lock(&pool->mappings.lock);
	add(pool, mapping);
	xl_unlock(&pool->mappings.lock);
}

void xl_mapping_remove(struct xmem_pool *pool, struct xl_mapping *mapping)
{
	struct xl_mapping **link;

	xl_lock(&pool->mappings.lock);
	link = list_of(&pool->mappings, mapping->payload);
	while (*link != mapping)
		link = &(*link)->next;
	*link = mapping->next;
	count(pool, -1, mapping);
	xl_unlock(&pool->mappings.lock);
	mapping->next = NULL;
	unmap_list(pool, mapping);
}

struct xl_mapping *xl_mapping_of(struct xl_mappings *mappings, u32 slot)
{
	struct xl_mapping *mapping;

	xl_lock(&mappings->lock);
	mapping = xl_mapping_find(mappings, mappings->place[slot].payload);
	xl_unlock(&mappings->lock);
	return mapping;
}

void xl_mappings_unmap(struct xl_mapping *list)
{
	struct xl_mapping *mapping;

	while ((mapping = list)) {
		list = mapping->next;
		mapping->kind->unmap(mapping);
		free(mapping);
	}
}

/* ---- payloads that have gone ---- */

/*
 * Mark the mappings that are still needed, by one look at each row. Returns the number of this
 * pass.
 */
static u32 mark_attached(struct xmem_pool *pool)
{
	u32 s, pass = ++pool->mappings.pass;
	struct xl_mapping *mapping;
	u64 payload, last = 0;

	for (s = 0; s < pool->map.slots; s++) {
		XM_STEP(XM_STEP_MAPPING_LOOK);
		payload = xm_load(&xm_slot_row(&pool->map, s)->payload);
		if (!payload || payload == last)
			continue;
		mapping = xl_mapping_find(&pool->mappings, payload);
		if (mapping)
			mapping->pass = pass;
		last = payload;
	}
	return pass;
}

/* Take the mappings out of the table that the pass has not marked. */
static struct xl_mapping *take_stale(struct xmem_pool *pool, u32 pass)
{
	struct xl_mappings *mappings = &pool->mappings;
	struct xl_mapping **at, *mapping, *stale = NULL;
	u32 i;

	for (i = 0; i < mappings->lists; i++) {
		for (at = &mappings->list[i]; (mapping = *at);) {
			XM_STEP(XM_STEP_MAPPING_LOOK);
			if (mapping->owned || mapping->pass == pass) {
				at = &mapping->next;
				continue;
			}
			*at = mapping->next;
			push(&stale, mapping);
			count(pool, -1, mapping);
		}
	}
	return stale;
}

/* Look at all rows again, if more than @most payloads have gone since the last pass. */
static void unmap_beyond(struct xmem_pool *pool, u32 most)
{
	u64 gone = xm_load_acquire(&pool->map.pool->payloads_gone);
	struct xl_mapping *stale = NULL;
	u32 pass;

	if (likely(gone - __atomic_load_n(&pool->mappings.gone, __ATOMIC_RELAXED) <= most))
		return;
	xl_lock(&pool->mappings.lock);
	pass = mark_attached(pool);
	/* A client that has ended reads zeros. Its mappings stay for its program. */
	if (!xl_client_ended(pool))
		stale = take_stale(pool, pass);
	__atomic_store_n(&pool->mappings.gone, gone, __ATOMIC_RELAXED);
	xl_unlock(&pool->mappings.lock);
	unmap_list(pool, stale);
}

void xl_payload_unmap_stale(struct xmem_pool *pool)
{
	unmap_beyond(pool, 0);
}

/* If n payloads go one by one, this looks at all rows log n times, and not n times. */
void xl_payload_unmap_some(struct xmem_pool *pool)
{
	unmap_beyond(pool, __atomic_load_n(&pool->mappings.count, __ATOMIC_RELAXED) / 8);
}

/* ---- mapping one ---- */

bool xl_payload_made_room(struct xmem_pool *pool, int err)
{
	u32 before = __atomic_load_n(&pool->mappings.count, __ATOMIC_RELAXED);

	if (err != -ENOMEM)
		return false;
	xl_payload_unmap_stale(pool);
	return __atomic_load_n(&pool->mappings.count, __ATOMIC_RELAXED) < before;
}

int xl_mapping_map(struct xmem_pool *pool, struct xl_mapping *mapping, int fd)
{
	int err;

	do
		err = mapping->kind->map(mapping, fd);
	while (err && xl_payload_made_room(pool, err));
	return err;
}

/* Make a mapping writable; its file was opened for writing. 0 or -errno, noted. */
static int let_write(struct xl_mapping *mapping)
{
	if (mprotect(mapping->base, mapping->bytes, PROT_READ | PROT_WRITE))
		return xl_fail(xl_map_error(errno), "make the mapping of payload %llu writable: %s",
			       mapping->payload, xl_map_why(errno));
	xm_store(&mapping->writable, true);
	return 0;
}

/* Ask the host for the file, and map it. NULL: *err has been noted. */
static struct xl_mapping *map_file(struct xmem_pool *pool, u64 payload, bool shared,
				   u64 deadline_ns, int *err)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .payload = payload,
		.flags = shared && pool->role != XMEM_ROLE_READER ? XMEM_PAYLOAD_WRITE : 0,
	};
	struct xl_mapping *mapping;

	*err = xl_request_until(pool, XMEM_IOC_PAYLOAD, &request, deadline_ns);
	if (*err) {
		xl_fail(-*err, "a descriptor of payload %llu: %s", payload, xl_request_error(*err));
		return NULL;
	}
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping) {
		*err = xl_fail(ENOMEM, "no memory for a mapping");
	} else {
		mapping->kind = &xl_payload_memfd;
		mapping->payload = payload;
		mapping->bytes = request.bytes;
		*err = xl_mapping_map(pool, mapping, request.fd);
		if (*err) {
			free(mapping);
			mapping = NULL;
		}
	}
	/* If this fails, the file stays mapped for reading, and a later get_mut tries again. */
	if (mapping && shared && pool->opening.options.flags & XMEM_OPEN_SHARES)
		let_write(mapping);
	xl_file_close(request.fd);
	return mapping;
}

/*
 * The mapping of a payload, which is made if necessary. The caller holds pool->mappings.lock, and
 * this function drops it in between. If another thread has mapped this payload meanwhile, its
 * mapping is used. If no slot of the payload is held, the payload may go meanwhile. The next pass
 * over the rows must notice this, even if the number in the header has changed before this mapping
 * was added.
 */
static struct xl_mapping *find_or_map(struct xmem_pool *pool, u64 payload, bool shared,
				      u64 deadline_ns, int *err)
{
	struct xl_mapping *mapping = xl_mapping_find(&pool->mappings, payload), *other;
	u64 gone;

	*err = 0;
	if (mapping)
		return mapping;
	xl_unlock(&pool->mappings.lock);
	xl_payload_unmap_some(pool);
	gone = xm_load_acquire(&pool->map.pool->payloads_gone);
	mapping = map_file(pool, payload, shared, deadline_ns, err);
	xl_lock(&pool->mappings.lock);
	if (!mapping)
		return NULL;
	other = xl_mapping_find(&pool->mappings, payload);
	if (other) {
		xl_mappings_unmap(mapping);
		return other;
	}
	add(pool, mapping);
	if (gone < pool->mappings.gone)
		__atomic_store_n(&pool->mappings.gone, gone, __ATOMIC_RELAXED);
	return mapping;
}

/* ---- places ---- */

void xl_place(struct xmem_pool *pool, u32 slot, const struct xl_mapping *mapping)
{
	struct xl_place *place = &pool->mappings.place[slot];

	if (mapping->memory)
		xl_cuda_place(pool, slot, mapping);
	__atomic_store_n(&place->base, mapping->base, __ATOMIC_RELAXED);
	__atomic_store_n(&place->payload, mapping->payload, __ATOMIC_RELEASE);
}

static bool within(const struct xmem_slot_row *row, const struct xl_mapping *mapping)
{
	return row->length <= mapping->bytes && row->offset <= mapping->bytes - row->length;
}

/*
 * Store in the place of @slot where it is in @mapping, and return its address. NULL: an error,
 * noted.
 */
static char *place_in(struct xmem_pool *pool, u32 slot, u64 payload,
		      const struct xl_mapping *mapping)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	u64 offset = xm_load_acquire(&row->offset);

	/* Check the payload once more after the offset: see xl_payload_placed. */
	if (within(row, mapping) && xm_load(&row->payload) == payload) {
		xl_place(pool, slot, mapping);
		return mapping->base + offset;
	}
	if (xl_host_died(pool))
		xl_fail_died(pool);
	else
		xl_fail(EIO, "slot %u lies outside payload %llu", slot, payload);
	return NULL;
}

/* Can a CPU read contents with these traits? 0 or -errno, noted. */
static int check_traits(u32 traits)
{
	if (traits & XMEM_TRAIT_CUDA)
		return xl_fail_fast(EMEDIUMTYPE, "the contents are in memory of a GPU: use "
				    "xmem_cuda_ptr or xmem_copy_to_host");
	return 0;
}

char *xl_payload_find(struct xmem_pool *pool, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	u64 payload = xm_load(&row->payload);
	u32 traits = xm_load(&row->traits);
	struct xl_mapping *mapping;
	char *data = NULL;
	int err;

	if (check_traits(traits))
		return NULL;
	xl_lock(&pool->mappings.lock);
	mapping = find_or_map(pool, payload, traits & XMEM_TRAIT_SHARED, ~0ULL, &err);
	if (mapping)
		data = place_in(pool, slot, payload, mapping);
	xl_unlock(&pool->mappings.lock);
	return data;
}

/* Memory of a GPU is opened only when its address is asked for. */
static int find_unopened(struct xmem_pool *pool, u32 slot, u64 payload)
{
	const struct xl_mapping unopened = { .base = NULL, .payload = payload };

	xl_place(pool, slot, &unopened);
	return 0;
}

int xl_payload_find_ahead(struct xmem_pool *pool, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);

	if (xm_load(&row->traits) & XMEM_TRAIT_CUDA)
		return find_unopened(pool, slot, xm_load(&row->payload));
	return xl_payload_find(pool, slot) ? 0 : xl_last_error();
}

int xl_payload_find_mapped(struct xmem_pool *pool, u32 slot, u64 *ret_payload, bool *ret_shared)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	u64 payload = xm_load(&row->payload);
	u32 traits = xm_load(&row->traits);
	const struct xl_mapping *mapping;
	int err = 0;

	if (traits & XMEM_TRAIT_CUDA)
		return find_unopened(pool, slot, payload);
	xl_lock(&pool->mappings.lock);
	mapping = xl_mapping_find(&pool->mappings, payload);
	if (mapping && !place_in(pool, slot, payload, mapping))
		err = xl_last_error();
	xl_unlock(&pool->mappings.lock);
	*ret_payload = payload;
	*ret_shared = traits & XMEM_TRAIT_SHARED;
	return mapping ? err : -EAGAIN;
}

int xl_payload_map(struct xmem_pool *pool, u64 payload, bool shared, u64 deadline_ns)
{
	int err;

	xl_lock(&pool->mappings.lock);
	find_or_map(pool, payload, shared, deadline_ns, &err);
	xl_unlock(&pool->mappings.lock);
	return err;
}

/*
 * The mapping stays in the table, because its slot is held. So the lock is not needed while the
 * kernel is called, and two threads may call it for one mapping.
 */
int xl_payload_make_writable(struct xmem_pool *pool, u32 slot)
{
	struct xl_mapping *mapping = xl_mapping_of(&pool->mappings, slot);

	if (!mapping)			/* the client was evicted, so the row reads as zeros */
		return xl_fail_died(pool);
	if (mapping->owned || xm_load(&mapping->writable))
		return 0;
	return let_write(mapping);
}

/* The next slot, from @slot on, in a group that @owner owns; or the number of all slots. */
static u32 slot_of(const struct xm_map *map, u32 owner, u32 slot)
{
	while (slot < map->slots && !(slot % XMEM_GROUP_SLOTS) &&
	       xm_load(&xm_slot_row(map, slot)->group_owner) != owner + 1)
		slot += XMEM_GROUP_SLOTS;
	return slot;
}

/* The slots here are not held, so no place is written, and a payload may just have gone. */
int xl_payload_ahead_all(struct xmem_pool *pool, u32 publisher, u64 deadline_ns)
{
	const struct xm_map *map = &pool->map;
	u64 payload, last = 0;
	bool shared;
	int err = 0;
	u32 s;

	for (s = slot_of(map, publisher, 0); s < map->slots; s = slot_of(map, publisher, s + 1)) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);

		XM_STEP(XM_STEP_MAPPING_LOOK);
		payload = xm_load(&row->payload);
		shared = xm_load(&row->traits) & XMEM_TRAIT_SHARED;
		if (xm_load(&row->tenant) != publisher || !payload || payload == last ||
		    xm_load(&row->traits) & XMEM_TRAIT_CUDA)
			continue;
		err = xl_payload_map(pool, payload, shared, deadline_ns);
		/* The traits may be those of a payload that had the slot before. */
		if (err && err != -ENOENT && err != -EACCES && err != -EMEDIUMTYPE)
			return err;
		last = payload;
	}
	return 0;
}

void xl_do_pending(struct xmem_pool *pool, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER) {
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	} else if (pending.what == XM_RECLAIM_SLOT) {
		xl_post_slot(pool, XMEM_OP_COLLECT, pending.who);
		xl_payload_unmap_some(pool);
	}
}

void xl_cuda_place(struct xmem_pool *pool, u32 slot, const struct xl_mapping *mapping)
{
	struct xl_place *place = &pool->mappings.device[slot];

	__atomic_store_n(&place->base, (char *)mapping->memory->address, __ATOMIC_RELAXED);
	__atomic_store_n(&place->payload, mapping->payload, __ATOMIC_RELEASE);
}

void xl_cuda_drop(struct xmem_pool *pool, struct xl_mapping *mapping)
{
	xl_lock(&pool->mappings.lock);
	push(&pool->mappings.dropped, mapping);
	xl_unlock(&pool->mappings.lock);
}

// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Slots: how one gets an owner, a payload and a tenancy of generations, and how it loses them.
 * The owner writes the state words, so the host never trusts them.
 */
#include "host.h"
#include "policy.h"

/* Has no GPU ever written a ready word of the group? A stream may wait for such a word. */
static bool xm_is_unordered(const struct xm_map *map, u32 group)
{
	const u64 *ready = (void *)((char *)map->group[group] + map->ready_offset);
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_GROUP_SLOTS; i++)
		any |= xm_load(&ready[i]);
	return !any;
}

/*
 * The owner that the rows show. Other writers can get the free slots of a group (XMEM_OWNER_LEFT)
 * once the ring of its last owner is gone. The new writer can then write the state words of slots
 * that the old one published, so both have to belong to the user that owns the pool.
 */
u32 xm_host_shown_owner(const struct xm_host *host, u32 group)
{
	u32 owner = host->group_owner[group];

	return owner == XMEM_OWNER_HOST && host->group_tenant[group] == XMEM_OWNER_NONE &&
	       host->group_user[group] == host->user && host->map.group[group] &&
	       !host->late_owner[group] && xm_is_unordered(&host->map, group) ?
	       XMEM_OWNER_LEFT : owner;
}

void xm_host_show_owner(const struct xm_host *host, u32 group)
{
	xm_store(&xm_slot_row(&host->map, group * XMEM_GROUP_SLOTS)->group_owner,
		 xm_host_shown_owner(host, group) + 1);
}

void xm_host_give_group(struct xm_host *host, u32 group, u32 me)
{
	xm_holders_give(host, group, me);
	host->group_owner[group] = me;
	if (me != XMEM_OWNER_HOST)
		host->group_tenant[group] = me;
	else
		host->limbo_ns[group] = 0;	/* limbo begins now, also of what was left before */
	xm_host_limbo_reset(host, group);
	xm_host_show_owner(host, group);
}

u32 xm_slot_of(const struct xm_host *host, u32 client, u32 slot)
{
	while (slot < host->map.slots && !(slot % XMEM_GROUP_SLOTS) &&
	       host->group_tenant[slot / XMEM_GROUP_SLOTS] != client)
		slot += XMEM_GROUP_SLOTS;
	XM_STEP(XM_STEP_ROW_LOOK);
	return slot;
}

static bool xm_all_zero(const __u8 *bytes, u32 count)
{
	__u8 any = 0;
	u32 i;

	for (i = 0; i < count; i++)
		any |= bytes[i];
	return !any;
}

static bool xm_no_device(const struct xmem_attach_request *request)
{
	return !request->bytes && xm_all_zero(request->device, XMEM_UUID_BYTES) &&
	       xm_all_zero(request->handle, XMEM_HANDLE_BYTES);
}

/* A new CUDA payload has a descriptor, a handle, or both. */
static int xm_attach_check_cuda(const struct xmem_attach_request *request)
{
	bool handle = request->flags & XMEM_ATTACH_HANDLE;

	if (request->fd < (handle ? -1 : 0))
		return -EINVAL;
	if (request->flags & XMEM_ATTACH_TRUNCATE ||
	    (handle && request->flags & XMEM_ATTACH_SHARED))
		return -EINVAL;
	if (!request->bytes || request->bytes > XMEM_MAX_DEVICE_BYTES)
		return -EINVAL;
	return xm_all_zero(request->device, XMEM_UUID_BYTES) ||
	       xm_all_zero(request->handle, XMEM_HANDLE_BYTES) ? -EINVAL : 0;
}

int xm_host_attach_check(const struct xmem_attach_request *request)
{
	u32 i;

	if (!request->count || request->count > XMEM_GROUP_SLOTS || !request->length ||
	    request->offset % 64 || request->stride % 64 || request->stride < request->length)
		return -EINVAL;
	for (i = 0; i < XMEM_GROUP_SLOTS; i++)
		if (request->slot[i])
			return -EINVAL;
	if (request->payload)
		return request->flags & ~XMEM_ATTACH_ONCE || request->fd >= 0 ||
		       !xm_no_device(request) ? -EINVAL : 0;
	if (request->flags & XMEM_ATTACH_CUDA)
		return xm_attach_check_cuda(request);
	if (request->flags & (XMEM_ATTACH_HANDLE | XMEM_ATTACH_READERS) || request->fd < 0)
		return -EINVAL;
	if (request->flags & XMEM_ATTACH_TRUNCATE && !(request->flags & XMEM_ATTACH_SHARED))
		return -EINVAL;
	return xm_no_device(request) ? 0 : -EINVAL;
}

u32 xm_attach_traits(u32 flags)
{
	return (flags & XMEM_ATTACH_SHARED ? XMEM_TRAIT_SHARED : 0) |
	       (flags & XMEM_ATTACH_CUDA ? XMEM_TRAIT_CUDA : 0) |
	       (flags & XMEM_ATTACH_HANDLE ? XMEM_TRAIT_HANDLE : 0) |
	       (flags & XMEM_ATTACH_READERS ? XMEM_TRAIT_READERS : 0);
}

/*
 * Only contents that the caller could destroy itself: with SHARED it has the file open for writing,
 * and no seal forbids to write it. Otherwise a reader that attaches what it has received could
 * destroy the contents of its publisher. A reader that touches a huge page that has gone might be
 * ended by SIGBUS, so these stay (P7).
 */
bool xm_attach_truncates(u32 flags, u32 traits)
{
	return flags & XMEM_ATTACH_TRUNCATE && flags & XMEM_ATTACH_SHARED &&
	       !(traits & XMEM_TRAIT_HUGE);
}

/*
 * The seals forbid everybody to shrink or grow the file. They also forbid writing through a new
 * mapping or descriptor; or the file is shared, and nobody can forbid others to write it.
 */
int xm_seals_check(u32 seals, bool shared)
{
	const u32 size = XM_SEAL_SHRINK | XM_SEAL_GROW;
	const u32 write = XM_SEAL_WRITE | XM_SEAL_FUTURE_WRITE;

	if ((seals & size) != size)
		return -ENOEXEC;
	if (shared)
		return seals & write || !(seals & XM_SEAL_SEAL) ? -ENOEXEC : 0;
	return seals & write ? 0 : -ENOEXEC;
}

/*
 * The number of the next tenancy, from 1. The first one of a slot depends on the host's secret; the
 * others follow one by one.
 */
static u32 xm_next_tenancy(struct xm_host *host, u32 slot, u64 random)
{
	u64 first;

	if (!host->first_tenancies)
		host->first_tenancies = random | 1;
	/* A permutation, so that the numbers of different slots look random. */
	first = host->first_tenancies + slot * 0x9e3779b97f4a7c15ULL;
	first = (first ^ first >> 30) * 0xbf58476d1ce4e5b9ULL;
	first = (first ^ first >> 27) * 0x94d049bb133111ebULL;
	return ((first >> 40) + xm_slot_row(&host->map, slot)->tenancies) % XM_TENANCIES + 1;
}

/* The first generation of a tenancy: its number, then a random start in the lower half. */
static u64 xm_tenancy_begin(u32 tenancy, u64 random)
{
	u64 half = 1ULL << (XMEM_TENANCY_SHIFT - 1);

	return (u64)tenancy << XMEM_TENANCY_SHIFT | (random & (half - 1));
}

/*
 * Has the slot's tenancy begun in this millisecond? Then the next one does not begin yet. So a slot
 * has at most 1000 tenancies a second, however many clients and threads ask (P4, P5).
 */
static bool xm_is_young(const struct xm_host *host, u32 slot)
{
	return host->born_ms && xm_slot_row(&host->map, slot)->tenancies &&
	       host->born_ms[slot] == host->now_ms;
}

static void xm_begin_tenancy(struct xm_host *host, u32 slot, u64 first)
{
	struct xmem_slot_row *row = xm_slot_row(&host->map, slot);

	if (host->born_ms)
		host->born_ms[slot] = host->now_ms;
	xm_store(&row->tenancies, row->tenancies + 1);
	xm_store_release(&row->generation_first, first);
}

static bool xm_is_spare(const struct xm_host *host, u32 slot, u32 me)
{
	const struct xmem_slot_row *row = xm_slot_row(&host->map, slot);

	return host->group_owner[slot / XMEM_GROUP_SLOTS] == me &&
	       row->owner == XMEM_OWNER_NONE && !xm_worn_out(row);
}

u32 xm_host_spare_slots(const struct xm_host *host, u32 me, bool now)
{
	u32 s, spare = 0;

	xm_each_slot_of(host, me, s)
		spare += xm_is_spare(host, s, me) && !(now && xm_is_young(host, s));
	return spare;
}

int xm_host_free_group(const struct xm_host *host, u32 me, u32 count)
{
	u32 g, more, spare = xm_host_spare_slots(host, me, false), all = spare, most = 0;
	int left = -ENOSPC;

	for (g = 0; g < host->map.groups; g++) {
		bool free = host->group_owner[g] == XMEM_OWNER_NONE;

		if (!free && xm_host_shown_owner(host, g) != XMEM_OWNER_LEFT)
			continue;
		more = xm_spare_slots(&host->map, me, g);
		if (free && spare + more >= count)
			return g;
		all += free ? 0 : more;
		if (free || more <= most)
			continue;
		most = more;
		left = g;
	}
	return all >= count ? left : -ENOSPC;
}

static bool xm_is_device(const struct xmem_device_row *row, const __u8 *uuid)
{
	bool same = true;
	u32 i;

	for (i = 0; i < XMEM_UUID_BYTES; i++)
		same &= row->uuid[i] == uuid[i];
	return same;
}

/*
 * The number of a device in the table, or a free number if it is new. -EDQUOT: there is no free
 * row. A row without payloads can become another device's: a client reads the number of a device
 * from a slot that it holds, so that device has a payload.
 */
static int xm_device_find(const struct xm_map *map, const __u8 *uuid)
{
	int unused = -EDQUOT;
	u32 device;

	for (device = XMEM_MAX_DEVICES; device; device--) {
		const struct xmem_device_row *row = xm_device_row(map, device);

		if (xm_is_device(row, uuid))
			return device;
		if (!row->bytes)
			unused = device;
	}
	return unused;
}

/* Write the device's number into the payload's traits, and the device into the table. */
static void xm_device_enter(const struct xm_map *map, u32 device, struct xm_payload *payload)
{
	struct xmem_device_row *row = xm_device_row(map, device);
	u32 i;

	for (i = 0; i < XMEM_UUID_BYTES; i++)
		xm_store(&row->uuid[i], payload->device[i]);
	payload->traits |= device << XMEM_TRAIT_DEVICE_SHIFT;
}

int xm_host_attach(struct xm_host *host, u32 me, struct xm_payload *payload, u64 random,
		   struct xmem_attach_request *request)
{
	const struct xm_map *map = &host->map;
	u64 last = (u64)(request->count - 1), bytes = payload->bytes;
	u32 s, n = 0, once = request->flags & XMEM_ATTACH_ONCE ? XMEM_TRAIT_ONCE : 0;
	int device = payload->device ? xm_device_find(map, payload->device) : 0;

	if (device < 0)
		return device;
	if (request->length > bytes || request->offset > bytes - request->length ||
	    (last && request->stride > (bytes - request->length - request->offset) / last))
		return -ERANGE;
	if (xm_host_spare_slots(host, me, false) < request->count)
		return -ENOSPC;
	if (host->born_ms && xm_host_spare_slots(host, me, true) < request->count)
		return -EALREADY;
	if (device)
		xm_device_enter(map, device, payload);
	xm_each_slot_of(host, me, s) {
		struct xmem_slot_row *row = xm_slot_row(map, s);
		u64 first;

		if (n == request->count)
			break;
		if (!xm_is_spare(host, s, me) || xm_is_young(host, s))
			continue;
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		first = xm_tenancy_begin(xm_next_tenancy(host, s, random), random);
		xm_store(&xm_slot(map, s)->position, 0);
		xm_store_release(&xm_slot(map, s)->state, xm_word(first, 0, XMEM_SLOT_FREE));
		xm_store(&row->payload, payload->id);
		row->offset = request->offset + n * request->stride;
		row->payload_bytes = bytes;
		row->traits = payload->traits | once;
		xm_store(&row->length, request->length);
		row->tenant = me;
		xm_begin_tenancy(host, s, first);
		xm_store_release(&row->owner, me);
		request->slot[n++] = s;
	}
	request->payload = payload->id;
	return 0;
}

u64 xm_free_slot(struct xm_host *host, u32 slot)
{
	const struct xm_map *map = &host->map;
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 *state = &xm_slot(map, slot)->state;
	u64 payload = row->payload;

	xm_store(state, xm_word(xm_generation(xm_load(state)), 0, XMEM_SLOT_FREE));
	row->payload_bytes = 0;
	xm_store(&row->payload, 0);
	row->traits = 0;
	xm_store(&row->upgrader, 0);
	row->offset = 0;
	xm_store(&row->length, 0);
	row->tenant = XMEM_OWNER_NONE;
	xm_claims_end(host, slot);
	xm_store(&row->generation_first, XM_NO_GENERATIONS);
	xm_store_release(&row->owner, XMEM_OWNER_NONE);
	return payload;
}

static bool xm_is_free(const struct xm_map *map, u32 slot)
{
	return !xm_slot_row(map, slot)->upgrader &&
	       xm_state(xm_load_acquire(&xm_slot(map, slot)->state)) == XMEM_SLOT_FREE;
}

/*
 * Give back the slots of @payload in @group, or with @look only check them. Returns how many there
 * are, or -EBUSY.
 */
static int xm_detach_in_group(struct xm_host *host, u32 me, u32 group, u64 payload, bool look)
{
	const struct xm_map *map = &host->map;
	u32 s, first = group * XMEM_GROUP_SLOTS, count = 0;

	for (s = first; host->group_owner[group] == me && s < first + XMEM_GROUP_SLOTS; s++) {
		XM_STEP(XM_STEP_ROW_LOOK);
		if (xm_slot_row(map, s)->payload != payload)
			continue;
		if (look && !xm_is_free(map, s))
			return -EBUSY;
		if (!look)
			xm_free_slot(host, s);
		count++;
	}
	return count;
}

/*
 * Walk over the slots of @payload, all of which @me owns; they are mostly in few groups in a row.
 * Returns how many there were, or -EBUSY.
 */
static int xm_detach_walk(struct xm_host *host, u32 me, u32 group, u64 payload, u32 slots,
			  bool look)
{
	const u32 groups = host->map.groups;
	u32 i, count = 0;
	int some;

	for (i = 0; i < groups && count < slots; i++) {
		some = xm_detach_in_group(host, me, (group + i) % groups, payload, look);
		if (some < 0)
			return some;
		count += some;
	}
	return count;
}

u64 xm_host_payload_of(const struct xm_host *host, u32 slot)
{
	if (slot >= host->map.slots)
		return 0;
	return xm_load(&xm_slot_row(&host->map, xm_index(slot, host->map.slots))->payload);
}

int xm_host_detach(struct xm_host *host, u32 me, const struct xmem_slot_request *request,
		   u32 slots, u64 *ret_payload)
{
	const struct xm_map *map = &host->map;
	u32 slot = xm_index(request->slot, map->slots), group = slot / XMEM_GROUP_SLOTS;
	int count = 1;
	u64 payload;

	if (xm_slot_row(map, slot)->owner != me)
		return -EPERM;
	payload = xm_slot_row(map, slot)->payload;
	if (request->op == XMEM_OP_DETACH_FILE)
		count = xm_detach_walk(host, me, group, payload, slots, true);
	else if (!xm_is_free(map, slot))
		count = -EBUSY;
	if (count < 0)
		return count;
	if (request->op == XMEM_OP_DETACH_FILE)
		xm_detach_walk(host, me, group, payload, count, false);
	else
		xm_free_slot(host, slot);
	*ret_payload = payload;
	return count;
}

void xm_host_payload_add(struct xm_host *host, u32 owner, u64 bytes, u32 traits)
{
	struct xmem_pool_header *pool = host->map.pool;
	struct xmem_device_row *row;

	xm_store(&pool->payloads, pool->payloads + 1);
	if (traits & XMEM_TRAIT_CUDA) {
		row = xm_device_row(&host->map, xm_device(traits));
		xm_store(&row->bytes, row->bytes + bytes);
		return;
	}
	host->books[owner].file_bytes += bytes;
	xm_store(&pool->payload_bytes, pool->payload_bytes + bytes);
	if (traits & XMEM_TRAIT_HUGE)
		xm_store(&pool->huge_bytes, pool->huge_bytes + bytes);
}

void xm_host_payload_drop(struct xm_host *host, u32 owner, u64 incarnation, u64 bytes, u32 traits)
{
	struct xmem_pool_header *pool = host->map.pool;

	if (traits & XMEM_TRAIT_CUDA)
		bytes = 0;	/* the device table counts the bytes until the payload is closed */
	xm_store(&pool->payload_bytes, pool->payload_bytes - bytes);
	if (traits & XMEM_TRAIT_HUGE)
		xm_store(&pool->huge_bytes, pool->huge_bytes - bytes);
	if (xm_host_lives(host, owner, incarnation))
		host->books[owner].file_bytes -= bytes;
	else
		xm_store(&pool->kept_bytes, pool->kept_bytes - bytes);
	/* A client that sees the new number also sees that no row names this file any more. */
	xm_store_release(&pool->payloads_gone, pool->payloads_gone + 1);
	/* A client that sees that there are fewer also sees that one has gone. */
	xm_store_release(&pool->payloads, pool->payloads - 1);
}

static void xm_update_limbo(struct xm_host *host)
{
	u64 first = 0;
	u32 g;

	for (g = 0; g < host->map.groups; g++)
		if (host->limbo_ns[g] && (!first || host->limbo_ns[g] < first))
			first = host->limbo_ns[g];
	xm_store(&host->map.pool->limbo_ns, first);
}

void xm_host_limbo(struct xm_host *host, u64 now_ns)
{
	u32 g;

	for (g = 0; g < host->map.groups; g++)
		if (host->group_owner[g] == XMEM_OWNER_HOST && !host->limbo_ns[g])
			host->limbo_ns[g] = now_ns;
	xm_update_limbo(host);
}

bool xm_host_idle_group(const struct xm_host *host, u32 group)
{
	u32 s, first = group * XMEM_GROUP_SLOTS;

	if (host->group_owner[group] != XMEM_OWNER_HOST || host->late_owner[group])
		return false;
	for (s = first; s < first + XMEM_GROUP_SLOTS; s++)
		if (xm_slot_row(&host->map, s)->owner != XMEM_OWNER_NONE)
			return false;
	return true;
}

void xm_host_limbo_reset(struct xm_host *host, u32 group)
{
	if (!xm_limbo_is_stale(host, group))
		return;
	host->limbo_ns[group] = 0;
	xm_update_limbo(host);
}

int xm_host_resolve(const struct xm_host *host, u32 me, u32 slot, u64 word)
{
	const struct xm_map *map = &host->map;
	u64 *state;

	if (slot >= map->slots)
		return -EINVAL;
	slot = xm_index(slot, map->slots);
	if (!map->group[slot / XMEM_GROUP_SLOTS])
		return -EINVAL;
	if (!xm_holds_count(map, me, slot) ||
	    !(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT))
		return -EPERM;
	state = &xm_slot(map, slot)->state;
	if (xm_state(word) != XMEM_SLOT_SCANNING ||
	    !xm_cas_full(state, word, word + XMEM_SLOT_LIVE - XMEM_SLOT_SCANNING))
		return -EAGAIN;
	return 0;
}

int xm_host_renew(struct xm_host *host, u32 me, u64 random, struct xmem_slot_request *request)
{
	const struct xm_map *map = &host->map;
	u32 slot = xm_index(request->slot, map->slots);
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 *state, word, first;

	if (row->owner != me)
		return -EPERM;
	state = &xm_slot(map, slot)->state;
	word = xm_load_acquire(state);
	if (row->upgrader ||
	    (xm_state(word) != XMEM_SLOT_WRITING && xm_state(word) != XMEM_SLOT_FREE))
		return -ESTALE;
	if (xm_worn_out(row))
		return -ENOSPC;
	if (xm_is_young(host, slot))
		return -EALREADY;
	first = xm_tenancy_begin(xm_next_tenancy(host, slot, random), random);
	if (!xm_cas_full(state, word, xm_word(first, 0, xm_state(word))))
		return -ESTALE;
	xm_claims_end(host, slot);
	xm_begin_tenancy(host, slot, first);
	request->generation = first;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host's bookkeeping, see host.h. Pure. What a client can write (areas,
 * groups) is read once and never trusted; what only the host writes (header,
 * rows) is.
 */
#include "host.h"

#define ROUND_UP(n, to)	(((n) + (to) - 1) / (to) * (to))

/* generation_first of a slot without tenant: no token is in its range, whatever the word in its page says (P5). */
#define NO_GENERATIONS	(~0ULL)
#define TENANCIES	((1u << (XMEM_GENERATION_BITS - XMEM_TENANCY_SHIFT)) - 1)

/* ---- layout ---- */

static bool xm_good_name(const __u8 *name)
{
	u32 i;

	for (i = 0; i < XMEM_NAME_BYTES; i++) {
		__u8 c = name[i];

		if (!c)
			return true;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || (c == '.' && i)))
			return false;
	}
	return false;	/* no NUL */
}

int xm_host_layout(const struct xmem_join_request *join, u64 page, struct xmem_pool_header *header)
{
	u64 slots = join->slots ? ROUND_UP((u64)join->slots, XMEM_GROUP_SLOTS) : 1024;
	u64 clients = join->clients ? join->clients : 64;
	u64 ring = join->ring_entries ? join->ring_entries : 64;
	u32 i;

	if (slots > XMEM_MAX_SLOTS || clients > XMEM_MAX_CLIENTS || !xm_good_name(join->name) ||
	    ring < 4 || ring > XMEM_MAX_RING || ring & (ring - 1))
		return -EINVAL;
	*header = (struct xmem_pool_header){
		.magic = XMEM_MAGIC, .abi = XMEM_ABI,
		.slots = slots, .clients = clients, .ring_entries = ring,
	};
	header->clients_offset = sizeof(*header);
	header->slots_offset = header->clients_offset + clients * sizeof(struct xmem_client_row);
	header->slots_offset = ROUND_UP(header->slots_offset, 64);
	header->groups_offset = ROUND_UP(header->slots_offset + slots * sizeof(struct xmem_slot_row), page);
	header->group_stride = ROUND_UP(sizeof(struct xmem_group), page);
	header->areas_offset = header->groups_offset + slots / XMEM_GROUP_SLOTS * header->group_stride;
	header->ring_offset = clients * sizeof(struct xmem_cursor);
	header->holds_offset = header->ring_offset + sizeof(struct xmem_ring) + ring * sizeof(struct xmem_entry);
	header->area_stride = ROUND_UP(header->holds_offset + 16 * 256 + slots * sizeof(u32), page);
	header->total_bytes = header->areas_offset + clients * header->area_stride;
	for (i = 0; i < XMEM_NAME_BYTES; i++)
		header->name[i] = join->name[i];
	return 0;
}

static void xm_map_pool(struct xm_map *map, struct xmem_pool_header *pool)
{
	map->pool = pool;
	map->client = (struct xmem_client_row *)((char *)pool + pool->clients_offset);
	map->row = (struct xmem_slot_row *)((char *)pool + pool->slots_offset);
	map->clients = pool->clients;
	map->slots = pool->slots;
	map->ring_mask = pool->ring_entries - 1;
	map->groups = pool->slots / XMEM_GROUP_SLOTS;
	map->ring_offset = pool->ring_offset;
	map->holds_offset = pool->holds_offset;
}

void xm_map_init(struct xm_map *map, void *base)
{
	struct xmem_pool_header *pool = base;
	u32 i;

	xm_map_pool(map, pool);
	for (i = 0; i < map->clients; i++)
		map->area[i] = (char *)base + pool->areas_offset + i * pool->area_stride;
	for (i = 0; i < map->groups; i++)
		map->group[i] = (struct xmem_group *)((char *)base + pool->groups_offset + i * pool->group_stride);
}

void xm_host_init(struct xm_host *host, struct xmem_pool_header *pool)
{
	u32 i;

	xm_map_pool(&host->map, pool);
	host->incarnations = 0;
	for (i = 0; i < host->map.slots; i++) {
		xm_slot_row(&host->map, i)->owner = XMEM_OWNER_NONE;
		xm_slot_row(&host->map, i)->tenant = XMEM_OWNER_NONE;
		xm_slot_row(&host->map, i)->generation_first = NO_GENERATIONS;
	}
	for (i = 0; i < host->map.groups; i++)
		host->group_owner[i] = XMEM_OWNER_NONE;
}

/* ---- clients ---- */

static void xm_set_bit(u64 *words, u32 bit, bool on)
{
	u64 word = xm_load(&words[bit / 64]);

	word = on ? word | 1ULL << bit % 64 : word & ~(1ULL << bit % 64);
	xm_store_release(&words[bit / 64], word);
}

int xm_host_free_client(const struct xm_host *host)
{
	u32 c;

	for (c = 0; c < host->map.clients; c++)
		if (xm_client_row(&host->map, c)->state == XMEM_CLIENT_NONE)
			return c;
	return -EUSERS;
}

static bool xm_good_label(const __u8 *label)
{
	u32 i;

	for (i = 0; i < XMEM_LABEL_BYTES; i++) {
		if (!label[i])
			return true;
		if (label[i] < ' ' || label[i] > '~')
			return false;
	}
	return false;
}

int xm_host_join(struct xm_host *host, u32 client, struct xmem_join_request *join, u32 pid, u32 uid)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	u32 i;

	if (join->role != XMEM_ROLE_READER && join->role != XMEM_ROLE_WRITER)
		return -EINVAL;
	if (!xm_good_label(join->label) || (join->role == XMEM_ROLE_READER && join->wait_bound_ns))
		return -EINVAL;
	for (i = 0; i < map->clients; i++)
		xm_store(xm_cursor(map, client, i), XMEM_CURSOR_NONE);
	row->role = join->role;
	row->pid = pid;
	row->uid = uid;
	row->wait_bound_ns = join->wait_bound_ns;
	for (i = 0; i < XMEM_LABEL_BYTES; i++)
		row->label[i] = join->label[i];
	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		xm_store(&row->subscribers[i], 0);
		xm_store(&row->waits[i], 0);
	}
	xm_store(&row->incarnation, ++host->incarnations);
	/* Counted before it can hold anything: what follows returns to the client (I1). */
	xm_set_bit(map->pool->counted, client, true);
	xm_store_release(&row->state, XMEM_CLIENT_ALIVE);
	xm_full_barrier();
	join->client = client;
	join->incarnation = row->incarnation;
	join->total_bytes = map->pool->total_bytes;
	return 0;
}

static int xm_publisher_row(const struct xm_host *host, u32 publisher, u64 incarnation, struct xmem_client_row **ret)
{
	struct xmem_client_row *row;

	if (publisher >= host->map.clients)
		return -EINVAL;
	row = xm_client_row(&host->map, xm_index(publisher, host->map.clients));
	if (incarnation ? row->incarnation != incarnation || row->state == XMEM_CLIENT_NONE : false)
		return -ESTALE;
	if (row->state == XMEM_CLIENT_NONE || row->role != XMEM_ROLE_WRITER)
		return -ENOENT;
	*ret = row;
	return 0;
}

int xm_host_subscribe(struct xm_host *host, u32 me, struct xmem_subscribe_request *request)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row;
	u64 tail;
	int err;

	if (request->flags & ~XMEM_SUBSCRIBE_WAIT || request->reserved)
		return -EINVAL;
	err = xm_publisher_row(host, request->publisher, request->incarnation, &row);
	if (err)
		return err;
	request->publisher = xm_index(request->publisher, map->clients);
	if (row->state != XMEM_CLIENT_ALIVE)
		return request->incarnation ? -ESTALE : -ENOENT;
	if (xm_bit(row->subscribers, me))
		return -EEXIST;
	if (request->flags & XMEM_SUBSCRIBE_WAIT && !row->wait_bound_ns)
		return -EOPNOTSUPP;

	/* At 0 it pins all; only when every scan sees that may it move up (I2, I3). */
	xm_store(xm_cursor(map, me, request->publisher), 0);
	xm_set_bit(row->waits, me, request->flags & XMEM_SUBSCRIBE_WAIT);
	xm_set_bit(row->subscribers, me, true);
	xm_full_barrier();
	tail = xm_load_acquire(&xm_ring(map, request->publisher)->tail);
	xm_store_release(xm_cursor(map, me, request->publisher), tail);
	request->position = tail;
	return 0;
}

static void xm_forget_subscriber(const struct xm_map *map, u32 subscriber, u32 publisher)
{
	xm_set_bit(xm_client_row(map, publisher)->subscribers, subscriber, false);
	xm_set_bit(xm_client_row(map, publisher)->waits, subscriber, false);
	if (map->area[subscriber])
		xm_store(xm_cursor(map, subscriber, publisher), XMEM_CURSOR_NONE);
}

int xm_host_unsubscribe(struct xm_host *host, u32 me, const struct xmem_unsubscribe_request *request)
{
	struct xmem_client_row *row;
	int err = xm_publisher_row(host, request->publisher, request->incarnation, &row);

	if (err)
		return err;
	if (!xm_bit(row->subscribers, me))
		return -ENOENT;
	xm_forget_subscriber(&host->map, me, xm_index(request->publisher, host->map.clients));
	xm_full_barrier();
	return 0;
}

/* ---- the end of a client ---- */

/* Only its own live ring entries stay; whoever waits for a lost one sees that it is lost. */
static void xm_repair_ring(const struct xm_map *map, u32 client)
{
	struct xmem_ring *ring = xm_ring(map, client);
	u64 entries = (u64)map->ring_mask + 1, tail = 0, i;

	/* The truth is in the entries: one may be complete and tail not yet moved over it. */
	for (i = 0; i < entries; i++) {
		u64 position = xm_load(&ring->entry[i].position) & ~XMEM_ENTRY_VOID;

		if (position > tail && ((position - 1) & map->ring_mask) == i && position < XMEM_ENTRY_VOID / 2)
			tail = position;
	}
	for (i = 0; i < entries; i++) {
		/* The one place in the last D whose entry this is. */
		u64 place = tail - 1 - ((tail - 1 - i) & map->ring_mask);
		u64 position = xm_load(&ring->entry[i].position);

		if (!tail || place >= tail)
			xm_store(&ring->entry[i].position, 0);	/* never published */
		else if ((position & ~XMEM_ENTRY_VOID) != place + 1)
			xm_store(&ring->entry[i].position, (place + 1) | XMEM_ENTRY_VOID);
	}
	xm_store_release(&ring->tail, tail);
}

static void xm_adopt_slots(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	u32 g, s;

	for (s = 0; s < map->slots; s++)
		if (xm_slot_row(map, s)->owner == client)
			xm_store(&xm_slot_row(map, s)->owner, XMEM_OWNER_HOST);
	xm_full_barrier();	/* pairs with put: hold dropped, F, look at the owner (I5) */
	for (g = 0; g < map->groups; g++)
		if (host->group_owner[g] == client)
			host->group_owner[g] = XMEM_OWNER_HOST;
}

/* What it wrote is dropped, where it looked for holders is resolved. */
static void xm_end_slots(const struct xm_map *map, u32 client)
{
	u32 s;

	for (s = 0; s < map->slots; s++) {
		u64 *state, word;

		if (xm_slot_row(map, s)->owner != XMEM_OWNER_HOST || xm_slot_row(map, s)->tenant != client)
			continue;
		state = &xm_slot(map, s)->state;
		word = xm_load(state);
		if (xm_state(word) == XMEM_SLOT_SCANNING)
			word += XMEM_SLOT_LIVE - XMEM_SLOT_SCANNING;
		else if (xm_state(word) != XMEM_SLOT_LIVE)
			word = xm_word(xm_generation(word), xm_scan_number(word), XMEM_SLOT_FREE);
		xm_store_release(state, word);
	}
}

/* At most XM_MAX_ZOMBIES dead rings on one subscriber's account; the oldest go first. */
static void xm_limit_zombies(const struct xm_map *map, u32 subscriber)
{
	u32 oldest = 0, count = 0, c;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		if (row->state != XMEM_CLIENT_ZOMBIE || !xm_bit(row->subscribers, subscriber))
			continue;
		if (!count++ || row->incarnation < xm_client_row(map, oldest)->incarnation)
			oldest = c;
	}
	if (count > XM_MAX_ZOMBIES)
		xm_forget_subscriber(map, subscriber, oldest);
}

void xm_host_end(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	u32 c;

	xm_adopt_slots(host, client);
	for (c = 0; c < map->clients; c++)
		if (xm_bit(xm_client_row(map, c)->subscribers, client))
			xm_forget_subscriber(map, client, c);
	xm_repair_ring(map, client);
	xm_end_slots(map, client);
	for (c = 0; c < map->slots; c++)
		xm_store(xm_hold(map, client, c), 0);
	xm_store_release(&row->state, XMEM_CLIENT_ZOMBIE);
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c))
			xm_limit_zombies(map, c);
	xm_full_barrier();
}

bool xm_host_bury(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	u64 tail;
	u32 c;

	if (row->state != XMEM_CLIENT_ZOMBIE)
		return false;
	tail = xm_load(&xm_ring(map, client)->tail);
	for (c = 0; c < map->clients; c++) {
		if (!xm_bit(row->subscribers, c))
			continue;
		if (xm_load_acquire(xm_cursor(map, c, client)) < tail)
			return false;
	}
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c))
			xm_forget_subscriber(map, c, client);
	for (c = 0; c < map->slots; c++)
		if (xm_slot_row(map, c)->tenant == client)
			xm_store(&xm_slot_row(map, c)->tenant, XMEM_OWNER_NONE);
	xm_set_bit(map->pool->counted, client, false);
	xm_store_release(&row->state, XMEM_CLIENT_NONE);
	return true;
}

/* ---- slots ---- */

int xm_host_free_group(const struct xm_host *host)
{
	u32 g;

	for (g = 0; g < host->map.groups; g++)
		if (host->group_owner[g] == XMEM_OWNER_NONE)
			return g;
	return -ENOSPC;
}

void xm_host_give_group(struct xm_host *host, u32 group, u32 me)
{
	host->group_owner[group] = me;
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
	return !request->payload == (request->fd < 0) ? -EINVAL : 0;
}

/*
 * A slot whose tenancies have all had their turn is not used again in this pool:
 * an owner who could make an old range come round could revive old tokens (P5).
 */
static bool xm_worn_out(const struct xmem_slot_row *row)
{
	return row->tenancies >= TENANCIES;
}

/* Number of the next tenancy; that of the first is random. */
static u32 xm_next_tenancy(const struct xmem_slot_row *row, u64 random)
{
	return (row->tenancies ? row->tenancy : random >> 40 & TENANCIES) % TENANCIES + 1;	/* from 1 */
}

/* Its generations: its number on top, a random start in the lower half below. */
static u64 xm_first_generation(u32 tenancy, u64 random)
{
	return (u64)tenancy << XMEM_TENANCY_SHIFT | (random & ((1ULL << (XMEM_TENANCY_SHIFT - 1)) - 1));
}

static void xm_begin_tenancy(struct xmem_slot_row *row, u64 first)
{
	row->tenancy = first >> XMEM_TENANCY_SHIFT;
	row->tenancies++;
	xm_store_release(&row->generation_first, first);
}

static bool xm_is_spare(const struct xm_host *host, u32 slot, u32 me)
{
	const struct xmem_slot_row *row = xm_slot_row(&host->map, slot);

	return host->group_owner[slot / XMEM_GROUP_SLOTS] == me && row->owner == XMEM_OWNER_NONE && !xm_worn_out(row);
}

u32 xm_host_spare_slots(const struct xm_host *host, u32 me)
{
	u32 s, spare = 0;

	for (s = 0; s < host->map.slots; s++)
		spare += xm_is_spare(host, s, me);
	return spare;
}

int xm_host_attach(struct xm_host *host, u32 me, u32 payload, u64 bytes, u64 random, struct xmem_attach_request *request)
{
	const struct xm_map *map = &host->map;
	u64 last = (u64)(request->count - 1);
	u32 s, n = 0;

	if (request->length > bytes || request->offset > bytes - request->length ||
	    (last && request->stride > (bytes - request->length - request->offset) / last))
		return -ERANGE;
	if (xm_host_spare_slots(host, me) < request->count)
		return -ENOSPC;
	for (s = 0; s < map->slots && n < request->count; s++) {
		struct xmem_slot_row *row = xm_slot_row(map, s);
		u64 first;

		if (!xm_is_spare(host, s, me))
			continue;
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		first = xm_first_generation(xm_next_tenancy(row, random), random);
		xm_store(&xm_slot(map, s)->position, 0);
		xm_store_release(&xm_slot(map, s)->state, xm_word(first, 0, XMEM_SLOT_FREE));
		row->payload = payload;
		row->offset = request->offset + n * request->stride;
		row->length = request->length;
		row->tenant = me;
		xm_begin_tenancy(row, first);
		xm_store_release(&row->owner, me);
		request->slot[n++] = s;
	}
	request->payload = payload;
	return 0;
}

/* No contents, no owner, no payload. Returns the payload that it had. */
static u32 xm_free_slot(const struct xm_map *map, u32 slot)
{
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 *state = &xm_slot(map, slot)->state;
	u32 payload = row->payload;

	xm_store(state, xm_word(xm_generation(xm_load(state)), 0, XMEM_SLOT_FREE));
	row->payload = 0;
	row->offset = row->length = 0;
	row->tenant = XMEM_OWNER_NONE;
	xm_store(&row->generation_first, NO_GENERATIONS);
	xm_store_release(&row->owner, XMEM_OWNER_NONE);
	return payload;
}

int xm_host_detach(struct xm_host *host, u32 me, const struct xmem_slot_request *request, u32 *ret_payload)
{
	const struct xm_map *map = &host->map;
	u32 slot;

	if (request->slot >= map->slots || request->generation)
		return -EINVAL;
	slot = xm_index(request->slot, map->slots);
	if (xm_slot_row(map, slot)->owner != me)
		return -EPERM;
	if (xm_state(xm_load_acquire(&xm_slot(map, slot)->state)) != XMEM_SLOT_FREE)
		return -EBUSY;
	*ret_payload = xm_free_slot(map, slot);
	return 0;
}

u32 xm_host_reclaim(struct xm_host *host, u32 slot)
{
	const struct xm_map *map = &host->map;
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	struct xm_scan_rules how = { .owner = row->tenant };

	if (row->owner != XMEM_OWNER_HOST)
		return 0;
	if (xm_state(xm_load_acquire(&xm_slot(map, slot)->state)) == XMEM_SLOT_LIVE && !xm_scan(map, &how, &slot, 1))
		return 0;
	return xm_free_slot(map, slot);
}

bool xm_host_idle_group(struct xm_host *host, u32 group)
{
	u32 s, first = group * XMEM_GROUP_SLOTS;

	if (host->group_owner[group] != XMEM_OWNER_HOST)
		return false;
	for (s = first; s < first + XMEM_GROUP_SLOTS; s++)
		if (xm_slot_row(&host->map, s)->owner != XMEM_OWNER_NONE)
			return false;
	host->group_owner[group] = XMEM_OWNER_NONE;
	return true;
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
	if (!(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT))
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
	struct xmem_slot_row *row;
	u64 *state, word, first;
	u32 slot;

	if (request->slot >= map->slots || request->generation)
		return -EINVAL;
	slot = xm_index(request->slot, map->slots);
	row = xm_slot_row(map, slot);
	if (row->owner != me)
		return -EPERM;
	state = &xm_slot(map, slot)->state;
	word = xm_load_acquire(state);
	if (xm_state(word) != XMEM_SLOT_WRITING && xm_state(word) != XMEM_SLOT_FREE)
		return -ESTALE;
	if (xm_worn_out(row))
		return -ENOSPC;
	first = xm_first_generation(xm_next_tenancy(row, random), random);
	if (!xm_cas_full(state, word, xm_word(first, 0, xm_state(word))))
		return -ESTALE;
	xm_begin_tenancy(row, first);
	request->generation = first;
	return 0;
}

/* ---- sleep ---- */

u32 *xm_host_waiters(const struct xm_host *host, u32 me, const struct xmem_wait_request *request, bool arm, int *err)
{
	const struct xm_map *map = &host->map;
	u32 client;

	*err = -EINVAL;
	if (request->client >= map->clients)
		return NULL;
	client = xm_index(request->client, map->clients);
	switch (request->kind) {
	case XMEM_WAIT_CLIENTS:
		return client ? NULL : &map->pool->clients_waiters;
	case XMEM_WAIT_RING:
		*err = -ENOENT;
		if (arm && !xm_bit(xm_client_row(map, client)->subscribers, me))
			return NULL;
		return &xm_client_row(map, client)->ring_waiters;
	case XMEM_WAIT_SLOTS:
		*err = -EPERM;
		if (arm && client != me)
			return NULL;
		return &xm_client_row(map, client)->slots_waiters;
	}
	return NULL;
}

/* ---- debugging ---- */

const char *xm_host_is_valid(const struct xm_host *host)
{
	const struct xm_map *map = &host->map;
	u32 c, s;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		if (row->state > XMEM_CLIENT_ZOMBIE)
			return "a client in no known state";
		if (xm_bit(map->pool->counted, c) != (row->state != XMEM_CLIENT_NONE))
			return "counted differs from the client's state";
		if (row->state != XMEM_CLIENT_NONE && !map->area[c])
			return "a client without an area";
		if (row->incarnation > host->incarnations)
			return "an incarnation that was never given";
		for (s = 0; row->state != XMEM_CLIENT_NONE && s < map->clients; s++)
			if (xm_bit(row->subscribers, s) && xm_client_row(map, s)->state != XMEM_CLIENT_ALIVE)
				return "a subscriber that is not alive";
	}
	for (s = 0; s < map->slots; s++) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);
		u32 group_owner = host->group_owner[s / XMEM_GROUP_SLOTS];

		if (row->owner == XMEM_OWNER_NONE ? row->payload != 0 : row->payload == 0)
			return "a slot whose owner and payload disagree";
		if (row->owner != XMEM_OWNER_NONE && row->owner != group_owner)
			return "a slot whose owner is not its group's";
		if (row->owner < XMEM_OWNER_HOST &&
		    (row->owner >= map->clients || xm_client_row(map, row->owner)->state != XMEM_CLIENT_ALIVE))
			return "a slot whose owner is not alive";
		if ((row->owner == XMEM_OWNER_NONE) != (row->generation_first == NO_GENERATIONS))
			return "a slot whose owner and generations disagree";
		if (row->tenant != XMEM_OWNER_NONE &&
		    (row->tenant >= map->clients || xm_client_row(map, row->tenant)->state == XMEM_CLIENT_NONE))
			return "a slot whose tenant has been forgotten";
	}
	return NULL;
}

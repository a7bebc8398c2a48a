// SPDX-License-Identifier: MIT
/*
 * fields.h describes this. For each request it has fields that may be right, and the steps after a
 * request that was accepted. It also has the values that a process can write into its own pages.
 * core/request.c says which requests there are, and how long their structs are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "fields.h"
#include "gpu.h"

#define SLOTS_LOOKED_AT	128
#define ARRAY(array)	(sizeof(array) / sizeof(*(array)))

/* ---- chance ---- */

u64 choose_seed(void)
{
	const char *given = getenv("XMEM_TEST_SEED");
	u64 seed = given ? strtoull(given, NULL, 0) : 0;

	if (!given && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = raw_now_ns();
	printf("XMEM_TEST_SEED=0x%llx\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

u64 chance(struct actor *a)
{
	/* xorshift64: never 0 from a state that is not */
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return a->random;
}

bool one_in(struct actor *a, unsigned int n)
{
	return !(chance(a) % n);
}

/* Returns a small number, an edge of the allowed range, or any number. */
u64 odd_number(struct actor *a)
{
	static const u64 edges[] = {
		0, 1, 2, 3, 63, 64, 127, 128, 255, 256, 4096, 0xffff, 0x10000, 0x7fffffff,
		0xfffffffe, 0xffffffff, 1ULL << 36, XMEM_ENTRY_VOID, ~0ULL,
		XM_HOLD_DEVICE | 1, XMEM_MAX_DEVICE_BYTES, XMEM_READY_ENDED,
	};

	switch (chance(a) % 6) {
	case 0:
		return chance(a);
	case 1:
		return edges[chance(a) % ARRAY(edges)];
	}
	return chance(a) % 20;
}

void set_word(union xm_request *r, unsigned int place, u32 word)
{
	memcpy((char *)r + place * sizeof(word), &word, sizeof(word));
}

/* ---- requests: fields that may be right ---- */

/* Prefers a slot of its own, because most requests for slots of others fail early. */
static u32 some_slot(struct actor *a)
{
	const struct xm_map *map = &a->me->map;
	u32 slot = chance(a) % map->slots, tries = one_in(a, 4) ? 0 : SLOTS_LOOKED_AT;

	while (tries-- && xm_load(&xm_slot_row(map, slot)->owner) != a->me->join.client)
		slot = (slot + 1) % map->slots;
	return slot;
}

/* Prefers a client that exists. */
static u64 some_payload(struct actor *a)
{
	return xm_load(&xm_slot_row(&a->me->map, some_slot(a))->payload);
}

/* Returns a mode that core/access.c accepts, or any bits of a mode. */
static u32 some_mode(struct actor *a)
{
	static const u32 modes[] = {
		0600, 0400, 0660, 0640, 0644, 0666, 0606, XMEM_MODE_STRICT | 0600,
		XMEM_MODE_STRICT | 0664,
	};

	return one_in(a, 8) ? chance(a) & XMEM_MODE_KNOWN : modes[chance(a) % ARRAY(modes)];
}

static void fill_join(struct actor *a, union xm_request *r)
{
	bool second = one_in(a, 2);

	r->join = raw_joining(a->pools[second],
			      XMEM_ROLE_READER + chance(a) % 3);
	if (r->join.role != XMEM_ROLE_READER && one_in(a, 2))
		r->join.wait_bound_ns = 1000;
	if (a->pool_fd >= 0 && one_in(a, 4)) {
		r->join.flags = XMEM_JOIN_FD;
		r->join.pool_fd = a->pool_fd;
		r->join.name[0] = 0;
	} else if (one_in(a, 8)) {
		r->join.name[0] = 0;
	} else if (one_in(a, 4)) {
		r->join.flags = 1U << chance(a) % 6;
	}
	if (second && a->owner && r->join.name[0] && one_in(a, 2)) {
		r->join.flags |= XMEM_JOIN_OWNER;
		r->join.owner_uid = a->owner;
	}
	if (!(r->join.flags & XMEM_JOIN_FD) && one_in(a, 4))
		r->join.mode = some_mode(a);
}

static void fill_access(struct actor *a, union xm_request *r)
{
	r->access.flags = chance(a) & (XMEM_ACCESS_MODE | XMEM_ACCESS_GROUP);
	if (r->access.flags & XMEM_ACCESS_MODE)
		r->access.mode = some_mode(a);
	if (r->access.flags & XMEM_ACCESS_GROUP)
		r->access.gid = one_in(a, 4) ? odd_number(a) : 0;
}

/* It also asks for roles that the client may not pass on. */
static void fill_pool_fd(struct actor *a, union xm_request *r)
{
	r->pool_fd.roles = one_in(a, 2) ? 0 : chance(a) % 4;
	if (a->pool_fd < 0 || one_in(a, 2))
		return;
	r->pool_fd.flags = XMEM_POOL_FD_NARROW;
	r->pool_fd.pool_fd = a->pool_fd;
}

static void fill_quota(struct actor *a, union xm_request *r)
{
	if (one_in(a, 4))
		r->quota.flags = XMEM_QUOTA_REFUSED;
	else
		r->quota.quota = chance(a) % (XMEM_QUOTA_CLIENT_POLLS + 2);
}

/* Seldom, because each one ends an actor's client, or closes its pool to newcomers. */
static void fill_evict(struct actor *a, union xm_request *r)
{
	const struct xm_map *map = &a->me->map;

	r->evict.op = chance(a) % (XMEM_OP_DRAIN_EVICT + 1);
	if (r->evict.op != XMEM_OP_EVICT) {
		r->evict.evicted = r->evict.op != XMEM_OP_WHY && !one_in(a, 16);
		return;
	}
	r->evict.client = chance(a) % (one_in(a, 2) ? 4 : 16);
	r->evict.reason = one_in(a, 2) ? XMEM_REASON_EVICTED : XMEM_REASON_LIMBO;
	r->evict.incarnation = one_in(a, 4) && r->evict.client < map->clients ?
		xm_load(&xm_client_row(map, r->evict.client)->incarnation) : 1 + chance(a) % 64;
}

/* Often for a client that exists and a slot that the caller may hold, so that many succeed. */
static void fill_grant(struct actor *a, union xm_request *r)
{
	const struct xm_map *map = &a->me->map;

	r->grant.op = chance(a) % (XMEM_OP_WRITER + 1);
	if (r->grant.op == XMEM_OP_WRITER)
		return;
	if (r->grant.op == XMEM_OP_FORWARD) {
		r->grant.slot = chance(a) % (one_in(a, 8) ? 2 * map->slots : map->slots);
		if (one_in(a, 2) && r->grant.slot < map->slots)
			xm_store(xm_hold(map, a->me->join.client, r->grant.slot), 1);
		return;
	}
	r->grant.client = chance(a) % (one_in(a, 2) ? 4 : 16);
	r->grant.incarnation = one_in(a, 2) && r->grant.client < map->clients ?
		xm_load(&xm_client_row(map, r->grant.client)->incarnation) : 1 + chance(a) % 64;
}

static void fill_pools(struct actor *a, union xm_request *r)
{
	r->pools.number = one_in(a, 2) ? 0 : odd_number(a);
}

/* More devices than one pool can have. */
static void fill_attach_gpu(struct actor *a, union xm_request *r)
{
	u32 flags = chance(a) % 2 ? 0 : XMEM_ATTACH_READERS;
	int fd = a->gpu;

	if (a->gpu < 0 || one_in(a, 2)) {
		flags |= XMEM_ATTACH_HANDLE;
		fd = one_in(a, 2) ? a->gpu : -1;
	} else if (one_in(a, 2)) {
		flags |= XMEM_ATTACH_SHARED;
	}
	r->attach = gpu_attaching(fd, flags, 1 + chance(a) % 4, 1 + chance(a) % 20, 1);
	r->attach.stride = r->attach.length = 64 * (1 + chance(a) % 4);
}

static void fill_attach(struct actor *a, union xm_request *r)
{
	if (one_in(a, 3)) {
		fill_attach_gpu(a, r);
		return;
	}
	r->attach = raw_attaching(a->memfd, 1 + chance(a) % (one_in(a, 8) ? XMEM_GROUP_SLOTS : 4));
	r->attach.stride = r->attach.length = 64 * (1 + chance(a) % 4);
	if (one_in(a, 3)) {
		r->attach.fd = -1;
		r->attach.payload = some_payload(a);
	} else if (one_in(a, 3)) {
		r->attach.fd = a->shared;
		r->attach.flags = XMEM_ATTACH_SHARED;
	}
	r->attach.flags |= one_in(a, 8) ? XMEM_ATTACH_ONCE : 0;
}

static void fill_payload(struct actor *a, union xm_request *r)
{
	static const u32 flags[] = {
		0, XMEM_PAYLOAD_WRITE, XMEM_PAYLOAD_OPEN, XMEM_PAYLOAD_OPEN, XMEM_PAYLOAD_CLOSE,
	};

	r->payload.flags = flags[chance(a) % ARRAY(flags)];
	r->payload.payload = r->payload.flags == XMEM_PAYLOAD_CLOSE && one_in(a, 2) ?
		a->opened : some_payload(a);
}

/* A hold that a client claims. With the GPU bit, the client's id stays in use for long. */
static u32 some_hold(struct actor *a)
{
	return one_in(a, 8) ? XM_HOLD_DEVICE | 1 : 1;
}

static void fill_subscribe(struct actor *a, union xm_request *r)
{
	r->subscribe.publisher = chance(a) % (one_in(a, 2) ? 4 : 16);
	r->subscribe.flags = chance(a) % 4;
}

/* A writer, and if the client follows some, one of these. */
static u32 some_writer(struct actor *a)
{
	const struct xm_map *map = &a->me->map;
	u32 first = chance(a) % map->clients, writer = first, c, i;
	const struct xmem_client_row *row;

	for (i = 0; i < map->clients; i++) {
		c = (first + i) % map->clients;
		row = xm_client_row(map, c);
		if (xm_bit(row->subscribers, a->me->join.client))
			return c;
		if (xm_load(&row->state) == XMEM_CLIENT_ALIVE && row->role == XMEM_ROLE_WRITER)
			writer = c;
	}
	return writer;
}

/* Mostly of a ring that the client follows: it begins to follow one if it follows none. */
static void fill_unsubscribe(struct actor *a, union xm_request *r)
{
	struct xmem_subscribe_request follow = { .size = sizeof(follow) };
	const struct xmem_client_row *row;

	if (one_in(a, 3)) {	/* about no ring */
		r->unsubscribe.flags = chance(a) % (2 * XMEM_UNSUBSCRIBE_LASTS);
		return;
	}
	r->unsubscribe.publisher = follow.publisher = some_writer(a);
	row = xm_client_row(&a->me->map, follow.publisher);
	if (one_in(a, 2))
		r->unsubscribe.incarnation = xm_load(&row->incarnation);
	if (!xm_bit(row->subscribers, a->me->join.client) && !one_in(a, 4))
		raw_request(a->me, XMEM_IOC_SUBSCRIBE, &follow);
}

/* A wait in half of the cases for the value that arm returned. It is never long: see process(). */
static void fill_wait(struct actor *a, union xm_request *r)
{
	r->wait.op = chance(a) % (XMEM_OP_KICK + 1);
	if (r->wait.op == XMEM_OP_KICK)
		return;
	r->wait.kind = chance(a) % 3;
	if (r->wait.kind == XMEM_WAIT_SLOTS)
		r->wait.client = a->me->join.client;
	else if (r->wait.kind == XMEM_WAIT_RING)
		r->wait.client = chance(a) % 16;
	if (r->wait.op != XMEM_OP_WAIT)
		return;
	r->size = sizeof(r->wait);
	if (one_in(a, 2))
		raw_wait(a->me, XMEM_OP_ARM, &r->wait);
	r->wait.op = XMEM_OP_WAIT;
	r->wait.deadline_ns = one_in(a, 8) ? ~0ULL : raw_now_ns() + chance(a) % 1000000;
}

/* A slot that may be SCANNING. A client that claims to hold it is a holder. */
static u32 held_slot(struct actor *a, __u64 *ret_generation)
{
	const struct raw *me = a->me;
	u32 slot = some_slot(a);
	u64 *state = &xm_slot(&me->map, slot)->state;

	if (raw_has_group(me, slot / XMEM_GROUP_SLOTS) && one_in(a, 4))
		xm_store(state, (xm_load(state) & ~7ULL) | XMEM_SLOT_SCANNING);
	*ret_generation = xm_generation(xm_load(state));
	if (me->area)
		xm_store(xm_hold(&me->map, me->join.client, slot), some_hold(a));
	return slot;
}

static void fill_slot(struct actor *a, union xm_request *r)
{
	r->slot.op = chance(a) % (XMEM_OP_DETACH_FILE + 1);
	r->slot.slot = r->slot.op == XMEM_OP_RESOLVE ? held_slot(a, &r->slot.generation) :
		some_slot(a);
}

static void fill_client(struct actor *a, union xm_request *r)
{
	r->client.client = chance(a) % 16;
	r->client.flags = one_in(a, 2) ? XMEM_CLIENT_LIMBO : 0;
}

/* Mostly a shared slot that its owner shows as LIVE. */
static void fill_upgrade(struct actor *a, union xm_request *r)
{
	const struct raw *me = a->me;
	const struct xmem_slot_row *row;
	int tries = 32;

	do {
		r->upgrade.slot = held_slot(a, &r->upgrade.generation);
		row = xm_slot_row(&me->map, r->upgrade.slot);
	} while (--tries && !(xm_load(&row->traits) & XMEM_TRAIT_SHARED));
	if (raw_has_group(me, r->upgrade.slot / XMEM_GROUP_SLOTS) && !one_in(a, 8)) {
		r->upgrade.generation = xm_load(&row->generation_first);
		xm_store(&xm_slot(&me->map, r->upgrade.slot)->state,
			 xm_word(r->upgrade.generation, 0, XMEM_SLOT_LIVE));
	}
	r->upgrade.flags = one_in(a, 8) ? 1u << chance(a) % 3 : 0;
}

static void fill_poll_fd(struct actor *a, union xm_request *r)
{
	r->poll_fd.kind = chance(a) % 3;
	if (r->poll_fd.kind != XMEM_POLL_RING)
		return;
	r->poll_fd.publisher = chance(a) % 16;
	r->poll_fd.incarnation = 1 + chance(a) % 64;
}

/* Any slot. A client that claims to hold the slot may take a claim. */
static void fill_claim(struct actor *a, union xm_request *r)
{
	const struct raw *me = a->me;
	u32 slot = one_in(a, 4) ? chance(a) % me->map.slots : some_slot(a);
	u64 *state = &xm_slot(&me->map, slot)->state;

	if (raw_has_group(me, slot / XMEM_GROUP_SLOTS) && !one_in(a, 4))
		xm_store(state, (xm_load(state) & ~7ULL) | XMEM_SLOT_LIVE);
	r->claim.slot = slot;
	r->claim.op = chance(a) % 8 ? XMEM_CLAIM_ADD + chance(a) % 2 : XMEM_CLAIM_VOID;
	r->claim.generation = xm_generation(xm_load(state));
	if (r->claim.op != XMEM_CLAIM_VOID)
		r->claim.count = 1 + chance(a) % 3;
	if (r->claim.op == XMEM_CLAIM_ADD)
		r->claim.timeout_ns = one_in(a, 16) ? ~0ULL : chance(a) % 10000000;
	if (me->area && one_in(a, 2))
		xm_store(xm_hold(&me->map, me->join.client, slot), some_hold(a));
}

/* ---- requests: the steps after a request that was accepted ---- */

static void close_join(struct actor *a, union xm_request *r)
{
	(void)a;
	close(r->join.fd);
}

static void keep_polled(struct actor *a, union xm_request *r)
{
	int *place = &a->polled[chance(a) % POLLED];

	if (*place >= 0)
		close(*place);
	*place = r->poll_fd.fd;
}

/* In half of the cases later joins use the descriptor with fewer roles. */
static void keep_pool_fd(struct actor *a, union xm_request *r)
{
	if (r->pool_fd.flags & XMEM_POOL_FD_NARROW && one_in(a, 2)) {
		close(r->pool_fd.fd);
		return;
	}
	if (a->pool_fd >= 0)
		close(a->pool_fd);
	a->pool_fd = r->pool_fd.fd;
}

static void map_groups(struct actor *a, union xm_request *r)
{
	u32 i;

	for (i = 0; i < r->attach.count; i++)
		raw_map_group(a->me, r->attach.slot[i] / XMEM_GROUP_SLOTS);
}

static void close_payload(struct actor *a, union xm_request *r)
{
	if (r->payload.flags & XMEM_PAYLOAD_OPEN)
		a->opened = r->payload.payload;
	if (r->payload.fd >= 0)
		close(r->payload.fd);
}

#define REQUEST(NUMBER, fill_, taken_) [_IOC_NR(XMEM_IOC_##NUMBER)] = { fill_, taken_ }
static const struct {
	void (*fill)(struct actor *a, union xm_request *r);
	void (*taken)(struct actor *a, union xm_request *r);
} kinds[] = {
	REQUEST(JOIN, fill_join, close_join),
	REQUEST(POOL_FD, fill_pool_fd, keep_pool_fd),
	REQUEST(ATTACH, fill_attach, map_groups),
	REQUEST(PAYLOAD, fill_payload, close_payload),
	REQUEST(SUBSCRIBE, fill_subscribe, NULL),
	REQUEST(UNSUBSCRIBE, fill_unsubscribe, NULL),
	REQUEST(WAIT, fill_wait, NULL),
	REQUEST(SLOT, fill_slot, NULL),
	REQUEST(QUERY, NULL, NULL),
	REQUEST(POOLS, fill_pools, NULL),
	REQUEST(POLL_FD, fill_poll_fd, keep_polled),
	REQUEST(CLAIM, fill_claim, NULL),
	REQUEST(UPGRADE, fill_upgrade, NULL),
	REQUEST(ACCESS, fill_access, NULL),
	REQUEST(QUOTA, fill_quota, NULL),
	REQUEST(CLIENT, fill_client, NULL),
	REQUEST(EVICT, fill_evict, NULL),
	REQUEST(GRANT, fill_grant, NULL),
};
#define KINDS	ARRAY(kinds)

/* ---- all requests ---- */

const struct xm_request_kind *fields_request(unsigned int number)
{
	return xm_request_find(_IO(XMEM_IOC_TYPE, number));
}

unsigned int fields_requests(void)
{
	static unsigned int end;
	unsigned int n;

	for (n = 0; !end && n < FIELDS_REQUESTS; n++)
		if (fields_request(FIELDS_REQUESTS - 1 - n))
			end = FIELDS_REQUESTS - n;
	return end;
}

unsigned int fields_some(struct actor *a)
{
	unsigned int number;

	do
		number = chance(a) % fields_requests();
	while (!fields_request(number));
	return number;
}

bool fields_known(unsigned int number)
{
	return fields_request(number) && number < KINDS &&
		(kinds[number].fill || kinds[number].taken ||
		 number == _IOC_NR(XMEM_IOC_QUERY));
}

/* For a request that is unknown here: values that other requests take, and small numbers. */
static void fill_unknown(struct actor *a, union xm_request *r, unsigned int words)
{
	const struct xm_map *map = &a->me->map;
	unsigned int i;
	u32 slot;

	for (i = 2; i < words; i++) {
		switch (chance(a) % (a->me->base ? 8 : 3)) {
		case 0:
			set_word(r, i, chance(a) % 4);
			break;
		case 1:
			set_word(r, i, a->me->join.client);
			break;
		case 2:
			set_word(r, i, a->pool_fd);
			break;
		case 3:
			slot = some_slot(a);
			set_word(r, i, slot);
			break;
		case 4:
			set_word(r, i, xm_load(&xm_client_row(map, chance(a) % map->clients)
					       ->incarnation));
			break;
		}
	}
}

void fields_fill(struct actor *a, unsigned int number, union xm_request *r)
{
	const struct xm_request_kind *kind = fields_request(number);

	memset(r, 0, sizeof(*r));
	if (!fields_known(number))
		fill_unknown(a, r, kind->bytes / 4);
	else if (kinds[number].fill)
		kinds[number].fill(a, r);
	if (!fields_known(number) && kind->flags)
		r->flags = one_in(a, 2) ? 0 : chance(a) & kind->flags;
	r->size = kind->bytes;
}

void fields_taken(struct actor *a, unsigned int number, union xm_request *r)
{
	if (number < KINDS && kinds[number].taken)
		kinds[number].taken(a, r);
}

/* A request with one senseless field gets further than one with many. */
void garble(struct actor *a, union xm_request *r, unsigned int words)
{
	unsigned int i;

	if (!one_in(a, 4)) {
		set_word(r, chance(a) % words, odd_number(a));
		return;
	}
	for (i = 0; i < words; i++)
		set_word(r, i, odd_number(a));
}

/* ---- pages ---- */

void scribble(struct actor *a)
{
	struct raw *me = a->me;
	u64 n, *word;
	u32 g;

	for (n = chance(a) % 64; me->area && n; n--) {
		word = (u64 *)me->area + chance(a) % (me->header.area_stride / 8);
		xm_store(word, odd_number(a));
	}
	for (g = 0; me->area && g < me->map.groups; g++) {
		for (n = raw_has_group(me, g) ? chance(a) % 64 : 0; n; n--) {
			u32 word = chance(a) % XMEM_GROUP_SLOTS;
			struct xmem_slot_word *slot = &me->map.group[g]->word[word];

			/* Mostly only the state: a wrong generation makes the slot useless. */
			xm_store(&slot->state, one_in(a, 16) ? odd_number(a) :
				 (xm_load(&slot->state) & ~7ULL) | chance(a) % 5);
			if (one_in(a, 4))
				xm_store(&slot->position, odd_number(a));
		}
	}
}

/* ---- judging ---- */

void judge(const char *name, const char *trouble)
{
	if (trouble)
		fail(name, "%s", trouble);
	else
		pass(name, "well");
}

const char *judge_pools(void)
{
	static char text[64];
	unsigned int shown = raw_pools_shown(0);

	if (shown)
		snprintf(text, sizeof(text), "%u in sysfs", shown);
	return shown ? text : NULL;
}

// SPDX-License-Identifier: MIT
/*
 * Random operations of several clients, one at a time, against a plain model of which client may
 * hold which slot. Every result must be the model's, in both directions, and clients die at random
 * steps. Repeat a failure with the seed that it printed.
 */
#include "unit.h"

#define CLIENTS		6
#define SLOTS		(12 * XMEM_GROUP_SLOTS)
#define OWN		12	/* slots of one owner, at most */
#define RING		8
#define HANDLES		24
#define LOG		4096	/* publications of one client, at most */
#define HISTORY		256
#define OPERATIONS	150000

struct slot_model {
	enum { NONE, FREE, WRITING, LIVE } state;
	u64 token;			/* of LIVE */
	u32 owner;			/* a client or XMEM_OWNER_HOST */
	u32 tenant;			/* a client, or XMEM_OWNER_NONE when it is buried */
	u64 place;			/* in the tenant's ring; ~0: never published */
	bool cuda;			/* memory of a GPU */
};

struct follow_model {
	bool open;			/* the client still has it */
	bool subscribed;		/* by the host's words */
	struct xm_follow f;
	u64 cursor, lost;
	bool demoted;			/* and the demotion still applies */
};

struct client_model {
	bool alive, zombie, writer, quarantined;
	bool device[SLOTS];		/* its hold has XM_HOLD_DEVICE */
	u32 slot[OWN], slots;
	u64 handle[HANDLES];		/* tokens, one per hold */
	u32 handles;
	struct follow_model follow[CLIENTS];
	struct { u64 token; bool gone; } log[LOG];
	u64 tail;
};

static struct fuzz {
	struct world *world;
	const struct xm_map *map;
	u64 random;
	int doom;			/* step at which the next operation's client dies, or -1 */
	struct client_model client[CLIENTS];
	struct slot_model slot[SLOTS];
	u64 history[HISTORY];
	/* counts of what has really been tested */
	u64 received, lost, taken, evicted, demoted, deaths, quarantined;
} fz;

static u32 below(u32 n)
{
	return (unit_random(&fz.random) >> 24) % n;
}

/* ---- the model ---- */

static bool held(u32 slot)
{
	u32 c, i;

	for (c = 0; c < CLIENTS; c++)
		for (i = 0; i < fz.client[c].handles; i++)
			if (xm_token_slot(fz.client[c].handle[i]) == slot)
				return true;
	return false;
}

static bool in_flight(u32 slot, bool evict, u32 depth)
{
	const struct slot_model *s = &fz.slot[slot];
	u64 place = s->place;
	u32 c;

	if (s->tenant >= CLIENTS || place >= fz.client[s->tenant].tail ||
	    place + RING < fz.client[s->tenant].tail)
		return false;
	for (c = 0; c < CLIENTS; c++) {
		const struct follow_model *f = &fz.client[c].follow[s->tenant];

		if (!f->subscribed || place < f->cursor)
			continue;
		if (!evict || (f->f.waits && !f->demoted) ||
		    place + depth >= fz.client[s->tenant].tail)
			return true;
	}
	return false;
}

static u32 reclaim(u32 slot)
{
	struct slot_model *s = &fz.slot[slot];

	if (s->owner != XMEM_OWNER_HOST ||
	    (s->state == LIVE && (held(slot) || in_flight(slot, false, 0))))
		return 0;
	*s = (struct slot_model){ .owner = XMEM_OWNER_NONE, .tenant = XMEM_OWNER_NONE };
	return 1;
}

static void bury(u32 c)
{
	u32 i;

	for (i = 0; i < CLIENTS; i++)
		if (fz.client[i].follow[c].subscribed &&
		    fz.client[i].follow[c].cursor < fz.client[c].tail)
			return;
	for (i = 0; i < CLIENTS; i++)
		fz.client[i].follow[c].subscribed = false;
	for (i = 0; i < SLOTS; i++)
		if (fz.slot[i].tenant == c)
			fz.slot[i].tenant = XMEM_OWNER_NONE;
	fz.client[c].zombie = fz.client[c].quarantined;
}

static void reap(void)
{
	u32 i, freed = 0;

	for (i = 0; i < CLIENTS; i++)
		if (fz.client[i].zombie)
			bury(i);
	for (i = 0; i < SLOTS; i++)
		freed += reclaim(i);
	ck_assert_uint_eq(world_reap(fz.world), freed);
}

/*
 * A buffer to which its GPU has a pointer stays held. The client may have died with a hold that it
 * has not recorded, or had dropped, so the pages decide.
 */
static void keep_device_handles(u32 c)
{
	struct client_model *client = &fz.client[c];
	u32 slot, kept = 0;

	for (slot = 0; slot < SLOTS; slot++)
		if (client->device[slot] && fz.slot[slot].cuda && kept < HANDLES &&
		    *xm_hold(fz.map, c, slot) & XM_HOLD_COUNT)
			client->handle[kept++] = xm_token(0, slot);
	client->handles = kept;
	client->quarantined = kept;
	fz.quarantined += kept > 0;
}

static void exit_of(u32 c)
{
	if (!fz.client[c].quarantined)
		return;
	fz.client[c].quarantined = false;
	fz.client[c].handles = 0;
	xm_host_exited(&fz.world->host, c);
	reap();
	world_is_valid(fz.world);
}

static void end(u32 c)
{
	struct client_model *client = &fz.client[c];
	u32 i;

	for (i = 0; i < SLOTS; i++)
		if (fz.slot[i].owner == c)
			fz.slot[i].owner = XMEM_OWNER_HOST;
	for (i = 0; i < CLIENTS; i++)
		client->follow[i] = (struct follow_model){ 0 };
	client->alive = false;
	client->zombie = true;
	client->slots = 0;
	keep_device_handles(c);
	xm_host_end(&fz.world->host, c);
	reap();
	world_is_valid(fz.world);
}

/* ---- running one operation, perhaps not to its end ---- */

/* True: its client died in it; the operation records what had been done, then ends it. */
static bool run(void (*what)(void *arg), void *arg)
{
	int doom = fz.doom;

	fz.doom = -1;
	if (doom < 0) {
		what(arg);
		return false;
	}
	if (!unit_dies_at(doom, 1, what, arg))
		return false;
	fz.deaths++;
	return true;
}

/* ---- the owner's operations ---- */

struct call {
	u32 me, slot[OWN], count;
	struct xm_scan_rules how;
	struct xm_publication what;
	struct xm_follow *follow;
	struct xm_pending pending;
	u64 token, mine;
	int err;
};

static void do_take(void *arg)
{
	struct call *call = arg;

	call->err = xm_take(fz.map, call->slot[0]);
}

static void op_take(u32 me, u32 slot)
{
	struct call call = { .me = me, .slot = { slot } };
	struct slot_model *s = &fz.slot[slot];

	if (run(do_take, &call)) {
		end(me);
		return;
	}
	ck_assert_int_eq(call.err, s->state == FREE ? 0 : -EBUSY);
	if (s->state == FREE)
		s->state = WRITING;
}

static void do_scan(void *arg)
{
	struct call *call = arg;

	call->mine = scan_slots(fz.map, &call->how, call->slot, call->count, NULL);
}

static void void_entry(u32 publisher, u64 place)
{
	fz.client[publisher].log[place].gone = true;
}

static void op_demote(u32 me)
{
	u64 tail = fz.client[me].tail, place = tail - below(tail < 2 ? tail + 1 : 3);
	u32 c, count = 0;

	for (c = 0; c < CLIENTS; c++) {
		struct follow_model *f = &fz.client[c].follow[me];

		if (!f->subscribed || !f->f.waits || f->demoted || f->cursor >= place)
			continue;
		f->demoted = true;
		count++;
	}
	ck_assert_uint_eq(xm_demote(fz.map, me, place), count);
	fz.demoted += count;
}

static void op_scan(u32 me)
{
	struct client_model *client = &fz.client[me];
	bool evict = below(2);
	u32 depth = below(6), doom = fz.doom, i;
	u64 expected = 0, back = 0;
	struct call call = { .me = me, .how = world_rules(fz.world, me, evict, depth) };

	for (i = 0; i < client->slots; i++)
		if (below(2))
			call.slot[call.count++] = client->slot[i];
	for (i = 0; i < call.count; i++) {
		u32 slot = call.slot[i];

		if (fz.slot[slot].state != LIVE || in_flight(slot, evict, depth))
			continue;
		if (in_flight(slot, false, 0))
			back |= 1ULL << i;
		if (!held(slot))
			expected |= 1ULL << i;
	}
	if (run(do_scan, &call)) {
		for (i = 0; doom >= XM_STEP_SCAN_VOID && i < call.count; i++)
			if (back >> i & 1)
				void_entry(me, fz.slot[call.slot[i]].place);
		end(me);
		return;
	}
	ck_assert_uint_eq(call.mine, expected);
	for (i = 0; i < call.count; i++) {
		if (back >> i & 1)
			void_entry(me, fz.slot[call.slot[i]].place);
		if (expected >> i & 1)
			fz.slot[call.slot[i]].state = WRITING;
	}
	fz.taken += expected != 0;
	fz.evicted += (expected & back) != 0;
}

static void do_publish(void *arg)
{
	struct call *call = arg;

	xm_publish(fz.map, call->me, call->slot[0], &call->what);
}

static void op_publish(u32 me, u32 slot)
{
	struct client_model *client = &fz.client[me];
	struct call call = { .me = me, .slot = { slot } };
	struct slot_model *s = &fz.slot[slot];
	u64 token = xm_token(xm_generation(xm_slot(fz.map, slot)->state), slot);
	u64 place = client->tail;
	int doom = fz.doom;
	bool died;

	if (s->state != WRITING || client->tail == LOG)
		return;
	died = run(do_publish, &call);
	if (died && doom >= XM_STEP_PUBLISH_LIVE) {
		s->state = LIVE;
		s->place = place;
	}
	if (died && doom >= XM_STEP_PUBLISH_OPEN && place >= RING)
		void_entry(me, place - RING);
	if (!died || doom >= XM_STEP_PUBLISH_ENTRY) {
		client->log[place].token = token;
		client->log[place].gone = false;
		client->tail++;
		*s = (struct slot_model){ LIVE, token, me, me, place, s->cuda };
		fz.history[below(HISTORY)] = token;
	}
	if (died) {
		end(me);
		return;
	}
	ck_assert_uint_eq(call.what.token, token);
	ck_assert_uint_eq(call.what.sequence, place);
}

static void op_give_up(u32 slot)
{
	ck_assert_int_eq(xm_give_up(fz.map, slot), fz.slot[slot].state == WRITING ? 0 : -EBUSY);
	if (fz.slot[slot].state == WRITING)
		fz.slot[slot].state = FREE;
}

static void op_detach(u32 me, u32 at)
{
	struct client_model *client = &fz.client[me];
	struct xmem_slot_request request = { .slot = client->slot[at] };
	u32 slot = client->slot[at];
	u64 payload = 0;
	bool can = fz.slot[slot].state == FREE;

	ck_assert_int_eq(xm_host_detach(&fz.world->host, me, &request, ~0u, &payload),
			 can ? 1 : -EBUSY);
	if (!can)
		return;
	ck_assert_uint_ne(payload, 0);
	fz.slot[slot] = (struct slot_model){ .owner = XMEM_OWNER_NONE, .tenant = XMEM_OWNER_NONE };
	client->slot[at] = client->slot[--client->slots];
}

static void op_renew(u32 me, u32 slot)
{
	struct xmem_slot_request request = { .slot = slot };
	bool can = fz.slot[slot].state == FREE || fz.slot[slot].state == WRITING;

	ck_assert_int_eq(xm_host_renew(&fz.world->host, me, unit_random(&fz.random), &request),
			 can ? 0 : -ESTALE);
}

static void op_attach(u32 me)
{
	struct client_model *client = &fz.client[me];
	static const u8 uuid[XMEM_UUID_BYTES] = { 1 };
	u32 count = 1 + below(4), i;

	if (client->slots + count > OWN ||
	    (xm_host_spare_slots(&fz.world->host, me, false) < count &&
	     xm_host_free_group(&fz.world->host, me, count) < 0))
		return;
	fz.world->device = below(2) ? uuid : NULL;
	world_attach(fz.world, me, count, client->slot + client->slots);
	for (i = 0; i < count; i++)
		fz.slot[client->slot[client->slots + i]] = (struct slot_model){
			FREE, 0, me, me, ~0ULL, fz.world->device,
		};
	client->slots += count;
}

/* ---- the reader's operations ---- */

static void pending(u32 slot, struct xm_pending pending, bool was_last)
{
	u32 owner = fz.slot[slot].owner;

	if (was_last && owner == XMEM_OWNER_HOST) {
		ck_assert_int_eq(pending.what, XM_RECLAIM_SLOT);
		ck_assert_uint_eq(pending.who, slot);
		ck_assert_uint_eq(world_reclaim(&fz.world->host, slot) != 0, reclaim(slot));
	} else if (was_last && owner < CLIENTS &&
		   xm_client_row(fz.map, owner)->slots_waiters & XMEM_WAITERS_ARMED) {
		ck_assert_int_eq(pending.what, XM_WAKE_OWNER);
		ck_assert_uint_eq(pending.who, owner);
		world_do(fz.world, pending);
	} else {
		ck_assert_int_eq(pending.what, XM_NOTHING);
	}
}

static u32 holds(u32 me, u32 slot)
{
	u32 i, n = 0;

	for (i = 0; i < fz.client[me].handles; i++)
		n += xm_token_slot(fz.client[me].handle[i]) == slot;
	return n;
}

static void do_put(void *arg)
{
	struct call *call = arg;

	call->pending = xm_put(fz.map, call->me, call->slot[0]);
}

static void op_put(u32 me)
{
	struct client_model *client = &fz.client[me];
	struct call call = { .me = me };
	u32 at;

	if (!client->handles)
		return;
	at = below(client->handles);
	call.slot[0] = xm_token_slot(client->handle[at]);
	if (run(do_put, &call)) {
		end(me);
		return;
	}
	client->handle[at] = client->handle[--client->handles];
	pending(call.slot[0], call.pending, !holds(me, call.slot[0]));
}

static void do_get(void *arg)
{
	struct call *call = arg;

	call->err = xm_get(fz.map, call->me, call->token);
	if (call->err == -ESTALE)
		call->pending = xm_put(fz.map, call->me, xm_token_slot(call->token));
}

static void op_get(u32 me)
{
	struct client_model *client = &fz.client[me];
	struct call call = { .me = me, .token = fz.history[below(HISTORY)] };
	u32 slot = xm_token_slot(call.token);
	bool there = call.token && fz.slot[slot].state == LIVE && fz.slot[slot].token == call.token;

	if (client->handles == HANDLES)
		return;
	if (run(do_get, &call)) {
		end(me);
		return;
	}
	ck_assert_int_eq(call.err, there ? 0 : -ESTALE);
	if (there)
		client->handle[client->handles++] = call.token;
	else
		pending(slot, call.pending, !holds(me, slot));
}

static void do_receive(void *arg)
{
	struct call *call = arg;

	memset(&call->what, 0xa5, sizeof(call->what));
	call->err = xm_receive(fz.map, call->me, call->follow, &call->what, &call->pending);
}

/* The expected result of the next receive. Moves the model's cursor; *token: what it receives. */
static int receive_model(u32 me, u32 publisher, u64 *token)
{
	struct follow_model *f = &fz.client[me].follow[publisher];
	const struct client_model *p = &fz.client[publisher];
	u64 place = f->cursor;

	if (!f->subscribed)
		return -EPIPE;		/* buried, and perhaps another client's by now */
	if (place >= p->tail)
		return p->zombie ? -EPIPE : -EAGAIN;
	f->demoted = false;
	if (place + RING < p->tail) {
		f->cursor = p->tail - RING + 1 > place + 1 ? p->tail - RING + 1 : place + 1;
	} else {
		f->cursor = place + 1;
		if (!p->log[place].gone) {
			*token = p->log[place].token;
			return 0;
		}
	}
	f->lost += f->cursor - place;
	return -EBUSY;
}

static void op_receive(u32 me, u32 publisher)
{
	struct client_model *client = &fz.client[me];
	struct follow_model *f = &client->follow[publisher];
	struct call call = { .me = me, .follow = &f->f };
	u64 token = 0;
	int err;

	if (!f->open || client->handles == HANDLES)
		return;
	if (run(do_receive, &call)) {
		end(me);
		return;
	}
	err = receive_model(me, publisher, &token);
	ck_assert_int_eq(call.err, err);
	ck_assert_uint_eq(f->f.place, f->cursor);
	ck_assert_uint_eq(f->f.lost, f->lost);
	fz.lost += err == -EBUSY;
	if (!err) {
		ck_assert_uint_eq(call.what.token, token);
		/* I3: contents that may be received are there */
		ck_assert_int_eq(fz.slot[xm_token_slot(token)].state, LIVE);
		ck_assert_uint_eq(fz.slot[xm_token_slot(token)].token, token);
		client->handle[client->handles++] = token;
		fz.received++;
	}
	world_do(fz.world, call.pending);
}

static void op_clone(u32 me)
{
	struct client_model *client = &fz.client[me];

	if (!client->handles || client->handles == HANDLES)
		return;
	client->handle[client->handles] = client->handle[below(client->handles)];
	ck_assert_int_eq(xm_hold_more(fz.map, me, xm_token_slot(client->handle[client->handles])),
			 0);
	client->handles++;
}

static void op_subscribe(u32 me, u32 publisher)
{
	struct follow_model *f = &fz.client[me].follow[publisher];
	u32 flags = below(2) ? XMEM_SUBSCRIBE_WAIT : 0;

	if (f->subscribed || !fz.client[publisher].alive || !fz.client[publisher].writer)
		return;
	*f = (struct follow_model){ .open = true, .subscribed = true };
	f->f = world_subscribe(fz.world, me, publisher, flags);
	f->cursor = f->f.place;
	ck_assert_uint_eq(f->cursor, fz.client[publisher].tail);
}

static void op_unsubscribe(u32 me, u32 publisher)
{
	struct follow_model *f = &fz.client[me].follow[publisher];
	struct xmem_unsubscribe_request request = {
		.publisher = publisher, .incarnation = f->f.incarnation,
	};

	if (!f->open)
		return;
	ck_assert_int_eq(xm_host_unsubscribe(&fz.world->host, me, &request) == 0, f->subscribed);
	*f = (struct follow_model){ 0 };
	reap();
}

/* ---- the driver ---- */

static void op_join(void)
{
	bool writer = below(2);
	int id = xm_host_free_client(&fz.world->host);
	u32 i;

	if (id < 0)
		return;
	ck_assert(!fz.client[id].alive && !fz.client[id].zombie);
	for (i = 0; i < CLIENTS; i++)
		ck_assert(!fz.client[i].follow[id].subscribed);
	memset(&fz.client[id], 0, sizeof(fz.client[id]));
	world_join(fz.world, writer ? XMEM_ROLE_WRITER : XMEM_ROLE_READER, writer ? 1000 : 0);
	fz.client[id].alive = true;
	fz.client[id].writer = writer;
}

/* Return a pointer for a GPU. */
static void op_point(u32 me)
{
	struct client_model *client = &fz.client[me];
	u32 slot;

	if (!client->handles)
		return;
	slot = xm_token_slot(client->handle[below(client->handles)]);
	if (!client->device[slot])
		xm_add_full(xm_hold(fz.map, me, slot), XM_HOLD_DEVICE);
	client->device[slot] = true;
}

static void any_of_owner(u32 me)
{
	u32 at = below(fz.client[me].slots), slot = fz.client[me].slot[at], kind = below(40);

	if (kind < 14)
		op_publish(me, slot);
	else if (kind < 22)
		op_take(me, slot);
	else if (kind < 33)
		op_scan(me);
	else if (kind < 34)
		op_demote(me);
	else if (kind < 36)
		op_give_up(slot);
	else if (kind < 37)
		op_renew(me, slot);
	else if (kind < 38)
		op_detach(me, at);
	else
		xm_arm(&xm_client_row(&fz.world->host.map, me)->slots_waiters);
}

static void any_operation(void)
{
	u32 me = below(CLIENTS), other = below(CLIENTS), kind = below(100);

	fz.doom = -1;
	if (kind < 4)
		op_join();
	if (!fz.client[me].alive && !below(20))
		exit_of(me);
	if (!fz.client[me].alive)
		return;
	if (!below(60))
		fz.doom = below(XM_CORE_STEPS);
	if (kind < 40 && fz.client[me].slots)
		any_of_owner(me);
	else if (kind < 42 && fz.client[me].writer)
		op_attach(me);
	else if (kind < 45)
		op_subscribe(me, other);
	else if (kind < 46)
		op_unsubscribe(me, other);
	else if (kind < 70)
		op_receive(me, other);
	else if (kind < 80)
		op_get(me);
	else if (kind < 82)
		op_clone(me);
	else if (kind < 96)
		op_put(me);
	else if (kind < 99)
		op_point(me);
	else if (!below(10))
		end(me);
}

START_TEST(random_operations_agree_with_the_model)
{
	u32 i;

	fz.world = world_make(SLOTS, CLIENTS, RING);
	fz.map = &fz.world->host.map;
	fz.random = unit_seed();
	for (i = 0; i < SLOTS; i++)
		fz.slot[i] = (struct slot_model){
			.owner = XMEM_OWNER_NONE, .tenant = XMEM_OWNER_NONE,
		};
	for (i = 0; i < OPERATIONS; i++) {
		any_operation();
		if (i % 1024 == 0)
			world_is_valid(fz.world);
	}
	for (i = 0; i < CLIENTS; i++)
		if (fz.client[i].alive)
			end(i);
	for (i = 0; i < CLIENTS; i++)
		exit_of(i);
	world_is_clean(fz.world);
	ck_assert_uint_eq(world_count(fz.world, XMEM_OWNER_NONE), SLOTS);
	ck_assert_msg(fz.received > 500 && fz.lost > 50 && fz.taken > 500 && fz.evicted > 20 &&
		      fz.demoted > 20 && fz.deaths > 40 && fz.quarantined > 10,
		      "too little was tried: %llu received, %llu lost, %llu taken, %llu back, "
		      "%llu demoted, %llu deaths",
		      (unsigned long long)fz.received, (unsigned long long)fz.lost,
		      (unsigned long long)fz.taken, (unsigned long long)fz.evicted,
		      (unsigned long long)fz.demoted, (unsigned long long)fz.deaths);
	world_free(fz.world);
}
END_TEST

void fuzz_tests(Suite *suite)
{
	TCase *tcase = tcase_create("fuzz");

	tcase_add_test(tcase, random_operations_agree_with_the_model);
	suite_add_tcase(suite, tcase);
}

// SPDX-License-Identifier: MIT
/*
 * reaped [NAME...]: promises that hold as soon as a parent has reaped a process (P2), while the
 * module still has much work with what others have left. The holds of that process are dropped. A
 * client that lacks a resource of that process gets it at its first request. Its pages are not
 * freed under a process that looks at them (P9). attack.h says how results are judged.
 */
#include <poll.h>

#include "attack.h"
#include "core/policy.h"

#define SLOTS		16384u
#define CROWD		40u		/* a sweep looks at so many clients for holds */
#define ROUNDS		10u

/* The pool. This process is its keeper, and also holds the slots of an ended owner. */
static struct raw keeper, crowd[CROWD];
static int pool_fd;
static struct told {
	u32 client, slot, count, polls;
	bool over;
} *told;

/* ---- the pool ---- */

/* It owns all groups but one, and its slots have contents. */
static const char *owns_most(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), XMEM_GROUP_SLOTS);
	static struct raw owner;
	bool more = true;
	u32 g;

	attach.stride = attach.length = 64;
	SAME(raw_start(&owner, &join), 0);
	for (g = 1; g < SLOTS / XMEM_GROUP_SLOTS && more; g++)
		GOES_WELL(fill_group(&owner, &attach, &more));
	WANT(more);
	return NULL;
}

static u32 count_limbo(void)
{
	u32 s, limbo = 0;

	for (s = 0; s < SLOTS; s++)
		limbo += xm_load(&xm_slot_row(&keeper.map, s)->owner) == XMEM_OWNER_HOST;
	return limbo;
}

/* From now on the end of any client starts a long sweep. */
static const char *start_pool(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct kid owner;
	u32 i;

	told = shared_memory(sizeof(*told));
	WANT(told);
	join.slots = SLOTS;
	SAME(raw_start(&keeper, &join), 0);
	pool_fd = pool_descriptor(&keeper);
	WANT(pool_fd >= 0);
	join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	for (i = 0; i < CROWD; i++)
		SAME(start_thin(&crowd[i], &join), 0);
	GOES_WELL(kid_start(&owner, owns_most, NULL));
	for (i = 0; i < SLOTS; i++)
		xm_store(xm_hold(&crowd[0].map, crowd[0].join.client, i), 1);
	kid_kill(&owner);
	kid_reap(&owner);
	WANT(EVENTUALLY(count_limbo() == SLOTS - XMEM_GROUP_SLOTS));
	return NULL;
}

/* ---- the victims ---- */

static struct raw me;			/* the client of a kid */

static const char *joins(void *role)
{
	struct xmem_join_request join = joining_by_file(pool_fd, *(enum xmem_role *)role);

	SAME(raw_start(&me, &join), 0);
	told->client = me.join.client;
	return NULL;
}

static enum xmem_role reader = XMEM_ROLE_READER, writer = XMEM_ROLE_WRITER;

/* Kills a bystander, whose end keeps the module busy for a while, and meanwhile @kid. */
static void kill_both(struct kid *bystander, struct kid *kid)
{
	kid_kill(bystander);
	kid_reap(bystander);
	kid_kill(kid);
	kid_reap(kid);
}

/* ---- its holds ---- */

/* It holds a whole group, and has received none of the keeper's publications. */
static const char *holds_and_lags(void *unused)
{
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = keeper.join.client,
	};
	u32 s;

	GOES_WELL(joins(&writer));
	SAME(raw_request(&me, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	for (s = 0; s < XMEM_GROUP_SLOTS; s++)
		xm_store(xm_hold(&me.map, told->client, told->slot + s), 1);
	return NULL;
}

static u32 count_holds(u32 client)
{
	u32 s, held = 0;

	for (s = 0; s < XMEM_GROUP_SLOTS; s++)
		held += xm_load(xm_hold(&keeper.map, client, told->slot + s)) & XM_HOLD_COUNT;
	return held;
}

static const char *the_reaped_hold_nothing(void)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(64, 1), XMEM_GROUP_SLOTS);
	struct xm_publication what = { .length = RAW_PAGE };
	struct kid bystander, victim;
	u32 i, culprit;
	u64 tail;

	GOES_WELL(start_pool());
	SAME(raw_request(&keeper, XMEM_IOC_ATTACH, &attach), 0);
	SAME(raw_map_group(&keeper, attach.slot[0] / XMEM_GROUP_SLOTS), 0);
	told->slot = attach.slot[0];
	for (i = 0; i < ROUNDS; i++) {
		GOES_WELL(kid_start(&bystander, joins, &reader));
		GOES_WELL(kid_start(&victim, holds_and_lags, NULL));
		SAME(xm_take(&keeper.map, attach.slot[i]), 0);
		xm_publish(&keeper.map, keeper.join.client, attach.slot[i], &what);
		tail = xm_load(&xm_ring(&keeper.map, keeper.join.client)->tail);
		SAME(tail, i + 1);
		SAME(xm_passed(&keeper.map, keeper.join.client, &culprit), i);
		SAME(count_holds(told->client), XMEM_GROUP_SLOTS);
		kill_both(&bystander, &victim);
		SAME(count_holds(told->client), 0);
		SAME(xm_passed(&keeper.map, keeper.join.client, &culprit), tail);
	}
	return NULL;
}

/* ---- its slots ---- */

static const char *takes_the_last_group(void *unused)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(64, 1), XMEM_GROUP_SLOTS);

	GOES_WELL(joins(&writer));
	SAME(raw_request(&me, XMEM_IOC_ATTACH, &attach), 0);
	return NULL;
}

/* Finds no free slots at first. When it is told to go on, it gets as many as the victim had. */
static const char *attaches_late(void *unused)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(64, 1), XMEM_GROUP_SLOTS);

	GOES_WELL(joins(&writer));
	SAME(raw_request(&me, XMEM_IOC_ATTACH, &attach), -ENOSPC);
	kid_pause();
	SAME(raw_request(&me, XMEM_IOC_ATTACH, &attach), 0);
	return NULL;
}

/* In each round, once the victim has been reaped, an heir gets the slots that only it had. */
static const char *heirs_get(const char *(*victims)(void *unused),
			     const char *(*heirs)(void *unused))
{
	struct kid bystander, victim, heir;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		GOES_WELL(kid_start(&bystander, joins, &reader));
		GOES_WELL(kid_start(&victim, victims, NULL));
		GOES_WELL(kid_start(&heir, heirs, NULL));
		kill_both(&bystander, &victim);
		kid_go_on(&heir);
		GOES_WELL(kid_ready(&heir));
		kid_kill(&heir);
		kid_reap(&heir);
	}
	return NULL;
}

static const char *an_attach_gets_what_the_reaped_had(void)
{
	GOES_WELL(start_pool());
	return heirs_get(takes_the_last_group, attaches_late);
}

static const char *a_join_gets_the_id_of_the_reaped(void)
{
	static struct raw others[XMEM_MAX_CLIENTS], one;
	struct xmem_join_request join;
	struct kid bystander, victim;
	u32 i;

	GOES_WELL(start_pool());
	join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	for (i = 0; i < 64 - CROWD - 3; i++)
		SAME(start_thin(&others[i], &join), 0);
	for (i = 0; i < ROUNDS; i++) {
		GOES_WELL(kid_start(&bystander, joins, &reader));
		GOES_WELL(kid_start(&victim, joins, &reader));
		SAME(raw_open(&one), 0);
		SAME(raw_join(&one, &join), -EUSERS);
		raw_end(&one);
		kill_both(&bystander, &victim);
		SAME(raw_start(&one, &join), 0);
		raw_end(&one);
	}
	return NULL;
}

/* ---- its pages ---- */

#define POLLERS		3u
#define LIVES		300u

/* Pollers look at its pages; a module for tests (XMEM_DEBUG) makes their looks slow. */
static const char *polls(void *unused)
{
	struct pollfd look = { .events = POLLIN | POLLOUT };

	GOES_WELL(joins(&writer));
	look.fd = me.file;
	kid_say_ready();
	while (!__atomic_load_n(&told->over, __ATOMIC_ACQUIRE)) {
		/* It has acquired nothing in vain, so it is writable. */
		SAME(poll(&look, 1, 0), 1);
		SAME(look.revents, POLLOUT);
		__atomic_add_fetch(&told->polls, 1, __ATOMIC_RELAXED);
	}
	kid_pause();
	return NULL;
}

/*
 * Clients come and go, so their pages are freed. A poller that stays finds no harm. A look is never
 * interrupted, so pollers look on one processor while the module works on another.
 */
static const char *polls_while_clients_end(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct kid poller[POLLERS];
	struct raw one;
	u32 i;

	told = shared_memory(sizeof(*told));
	WANT(told);
	join.clients = 8;
	SAME(raw_start(&keeper, &join), 0);
	pool_fd = pool_descriptor(&keeper);
	WANT(pool_fd >= 0);
	for (i = 0; i < POLLERS; i++)
		GOES_WELL(kid_start(&poller[i], polls, NULL));
	join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	for (i = 0; i < LIVES; i++) {
		SAME(raw_start(&one, &join), 0);
		raw_end(&one);
	}
	__atomic_store_n(&told->over, true, __ATOMIC_RELEASE);
	for (i = 0; i < POLLERS; i++)
		GOES_WELL(kid_ready(&poller[i]));
	figure("%u polls while %u clients have come and gone", told->polls, LIVES);
	WANT(told->polls > LIVES);
	return NULL;
}

static const struct attack attacks[] = {
	{ "P2_the_reaped_hold_nothing", the_reaped_hold_nothing, false },
	{ "P2_an_attach_gets_what_the_reaped_had", an_attach_gets_what_the_reaped_had, false },
	{ "P2_a_join_gets_the_id_of_the_reaped", a_join_gets_the_id_of_the_reaped, false },
	{ "P9_polls_while_clients_end", polls_while_clients_end, false },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}

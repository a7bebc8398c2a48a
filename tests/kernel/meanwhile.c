// SPDX-License-Identifier: MIT
/*
 * meanwhile [NAME...]: how long a member's request waits for the pool's lock during long work of
 * the module. This work is the rest of the end of others, which owned all 16384 slots while each of
 * 250 clients may hold them, or the expiry of claims on 32768 slots. The module works in batches
 * and drops the lock between them, so the longest wait must be a small part of the whole. Both
 * times are of one run on one machine, so other load matters little. attack.h says how results are
 * judged.
 */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "attack.h"

#define SLOTS		16384u
#define CLIENTS		256u
#define CROWD		250u
#define RING		256u
/*
 * The longest wait is at most this part of the end. The first value is for one processor, whose
 * clock counts its instructions; the second is for a machine where other load may disturb the test.
 */
#define PART		(sysconf(_SC_NPROCESSORS_ONLN) == 1 ? 8 : 4)
#define MOST_WAITS	(1u << 20)
#define GAP_NS		20000		/* between two requests */
#define POOLS		1000u

/* The pool. This process is its keeper, and has the clients of the crowd. */
static struct raw keeper, crowd[CROWD];
static int pool_fd;
static u32 keepers_groups, keepers_slot;	/* none, or one group and a slot in it */

static struct shared {
	u64 begin_ns;			/* when the end began; ~0: it has not begun */
	bool over;			/* no process makes requests any more */
	u64 end_ns;			/* how long the end took */
	u32 waits;
	u32 wait_ns[MOST_WAITS];	/* the wait of each request meanwhile */
} *shared;

/* ---- the pool ---- */

static const char *start_pool(u32 slots, u32 members, enum xmem_role role)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	u32 i;

	shared = shared_memory(sizeof(*shared));
	WANT(shared);
	shared->begin_ns = ~0ULL;
	join.slots = slots;
	join.clients = CLIENTS;
	join.ring_entries = RING;
	SAME(raw_start(&keeper, &join), 0);
	pool_fd = pool_descriptor(&keeper);
	WANT(pool_fd >= 0);
	join = joining_by_file(pool_fd, role);
	for (i = 0; i < members; i++)
		SAME(start_thin(&crowd[i], &join), 0);
	return NULL;
}

static u32 count_owned_by(u32 owner)
{
	u32 s, count = 0;

	for (s = 0; s < SLOTS; s++)
		count += xm_load(&xm_slot_row(&keeper.map, s)->owner) == owner;
	return count;
}

/* ---- requests meanwhile ---- */

static void sleep_until(u64 until)
{
	struct timespec at = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Sleeps a little, until the time that it returns. */
static u64 sleep_a_little(void)
{
	u64 until = raw_now_ns() + GAP_NS;

	sleep_until(until);
	return until;
}

/* A payload that does not exist: the request takes the pool's lock. */
static int look_for_payload(const struct raw *me)
{
	struct xmem_payload_request request = { .size = sizeof(request), .payload = 1 << 30 };

	return raw_request(me, XMEM_IOC_PAYLOAD, &request) == -ENOENT ? 0 : -EINVAL;
}

static int upgrade(const struct raw *me, u32 slot)
{
	struct xmem_upgrade_request request = { .size = sizeof(request), .slot = slot };

	return raw_request(me, XMEM_IOC_UPGRADE, &request) == -EPERM ? 0 : -EINVAL;
}

/* A slot that the client does not hold, of a writer that lives on. */
static int upgrade_of_keepers(const struct raw *me)
{
	return upgrade(me, keepers_slot);
}

/* A slot that the client does not hold; while its group moves, the request waits for that. */
static int upgrade_of_ending(const struct raw *me)
{
	return upgrade(me, keepers_slot ? 0 : SLOTS - 1);
}

static int (*asked)(const struct raw *me) = look_for_payload;

/*
 * Again and again it makes the request @asked. Each wait counts from when the request is due, even
 * if the process has no processor then. But its priority is the highest, so it waits only for the
 * module's locks, or for a holder of a lock that keeps the processor.
 */
static const char *asks(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	struct sched_param first = { .sched_priority = 1 };
	static struct raw me;
	u64 begin, end;
	int err;

	SAME(raw_start(&me, &join), 0);
	SAME(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	kid_say_ready();
	while (!__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE)) {
		begin = sleep_a_little();
		err = asked(&me);
		end = raw_now_ns();
		SAME(err, 0);
		if (begin > __atomic_load_n(&shared->begin_ns, __ATOMIC_ACQUIRE) &&
		    shared->waits < MOST_WAITS)
			shared->wait_ns[shared->waits++] = end - begin;
	}
	kid_pause();
	return NULL;
}

/* Also makes requests, as urgently, but its waits do not count. */
static const char *asks_in_vain(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	struct sched_param first = { .sched_priority = 1 };
	static struct raw me;

	SAME(raw_start(&me, &join), 0);
	SAME(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	kid_say_ready();
	while (!__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE)) {
		sleep_a_little();
		SAME(upgrade_of_ending(&me), 0);
	}
	kid_pause();
	return NULL;
}

/* ---- the clients that end ---- */

static struct raw owner;

static const char *owns_all(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), XMEM_GROUP_SLOTS);
	bool more = true;
	u32 g;

	attach.stride = attach.length = 64;
	SAME(raw_start(&owner, &join), 0);
	for (g = keepers_groups; g < keeper.map.groups && more; g++)
		GOES_WELL(fill_group(&owner, &attach, &more));
	WANT(more);
	return NULL;
}

/* Ends when it is told, by @end. A process that closes its file waits until all ends are done. */
static const char *ends_by(void (*end)(void))
{
	u64 begin;

	kid_pause();
	begin = raw_now_ns();
	__atomic_store_n(&shared->begin_ns, begin, __ATOMIC_RELEASE);
	end();
	shared->end_ns = raw_now_ns() - begin;
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void end_owner(void)
{
	raw_end(&owner);
}

static const char *owns_all_and_ends(void *unused)
{
	GOES_WELL(owns_all(NULL));
	return ends_by(end_owner);
}

#define AT_ONCE	200u

static struct raw many[AT_ONCE];

static void end_many(void)
{
	u32 i;

	for (i = 0; i < AT_ONCE; i++)
		munmap(many[i].area, many[i].header.area_stride);
	close(many[0].file);
}

static const char *many_end(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	u32 i;

	for (i = 0; i < AT_ONCE; i++)
		SAME(start_thin(&many[i], &join), 0);
	return ends_by(end_many);
}

/* ---- claims that expire ---- */

#define CLAIMED		32768u
#define CLAIMS_LAST_NS	15000000000ULL

static const char *claim(u32 slot, u64 until)
{
	struct xmem_claim_request claim = {
		.size = sizeof(claim), .op = XMEM_CLAIM_ADD, .slot = slot, .count = 1,
		.generation = xm_generation(xm_load(&xm_slot(&owner.map, slot)->state)),
	};
	u64 now = raw_now_ns();

	WANT(now < until);
	claim.timeout_ns = until - now;
	SAME(raw_request(&owner, XMEM_IOC_CLAIM, &claim), 0);
	return NULL;
}

/*
 * Measures the time from the last moment, at or after @begin, at which nearly all slots have
 * claims, until few have.
 */
static const char *look_until_few_have_claims(u64 begin, u64 *ret_ns)
{
	u64 until = begin + CLAIMS_LAST_NS, now;
	u32 left;

	do {
		now = raw_now_ns();
		left = xm_load(&owner.map.pool->claimed);
		if (left > CLAIMED - CLAIMED / 16)
			begin = now;
		usleep(500);
	} while (left > CLAIMED / 16 && now < until);
	WANT(left <= CLAIMED / 16);
	*ret_ns = now - begin;
	return NULL;
}

/*
 * The claims of all slots time out at nearly one moment. Then a request adds a claim that lasts. So
 * it is the first request that could see that the other claims have timed out.
 */
static const char *claims_all(void *unused)
{
	u64 until, begin;
	u32 s;

	GOES_WELL(owns_all(NULL));
	kid_pause();
	until = raw_now_ns() + CLAIMS_LAST_NS;
	for (s = 1; s < CLAIMED; s++)
		GOES_WELL(claim(s, until));
	sleep_until(until + 1000000);
	begin = raw_now_ns();
	__atomic_store_n(&shared->begin_ns, begin, __ATOMIC_RELEASE);
	GOES_WELL(claim(0, until + 2 * CLAIMS_LAST_NS));
	GOES_WELL(look_until_few_have_claims(begin, &shared->end_ns));
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static struct raw other[POOLS];
static u32 counted;

static void count_pools(void)
{
	struct xmem_query_request query = { .size = sizeof(query) };

	counted = raw_request(&keeper, XMEM_IOC_QUERY, &query) ? 0 : query.pools;
}

static const char *counts_pools(void *unused)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	u32 i;

	many_descriptors();
	for (i = 0; i < POOLS; i++) {
		SAME(raw_open(&other[i]), 0);
		SAME(raw_join(&other[i], &join), 0);
	}
	GOES_WELL(ends_by(count_pools));
	WANT(counted > POOLS);
	return NULL;
}

/* ---- the judgement ---- */

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static const char *judge_waits(const char *what)
{
	u32 longest, p99, p50, part = PART;

	WANT(shared->waits && shared->waits < MOST_WAITS);
	qsort(shared->wait_ns, shared->waits, sizeof(u32), compare);
	longest = shared->wait_ns[shared->waits - 1];
	p99 = shared->wait_ns[shared->waits * 99 / 100];
	p50 = shared->wait_ns[shared->waits / 2];
	figure("%s: the end takes %.3f ms; of %u requests meanwhile the longest takes 1/%.1f of "
	       "that, %.3f ms, p99 %.3f ms, p50 %.3f ms", what, shared->end_ns / 1e6,
	       shared->waits, (double)shared->end_ns / longest, longest / 1e6, p99 / 1e6,
	       p50 / 1e6);
	if ((u64)longest * part > shared->end_ns)
		return wrong("%s: a request waits for 1/%.1f of the end, more than 1/%u", what,
			     (double)shared->end_ns / longest, part);
	return NULL;
}

static const char *ends_meanwhile(const char *(*ends)(void *), const char *what)
{
	struct kid ending, asking;

	GOES_WELL(kid_start(&ending, ends, NULL));
	GOES_WELL(kid_start(&asking, asks, NULL));
	kid_go_on(&ending);
	GOES_WELL(kid_ready(&ending));
	GOES_WELL(kid_ready(&asking));
	return judge_waits(what);
}

/* ---- the work of the module ---- */

/* Each search for holders looks at all of the crowd. */
static const char *while_holds_are_looked_at(void)
{
	const struct raw *last = &crowd[CROWD - 1];
	u32 s;

	GOES_WELL(start_pool(SLOTS, CROWD, XMEM_ROLE_READER));
	for (s = 0; s < SLOTS; s++)
		xm_store(xm_hold(&last->map, last->join.client, s), 1);
	GOES_WELL(ends_meanwhile(owns_all_and_ends, "an owner of 16384 slots ends, which the last "
				 "of 250 clients holds"));
	SAME(count_owned_by(XMEM_OWNER_HOST), SLOTS);
	return NULL;
}

/*
 * Each client of the crowd has forwarded all of these slots once. Since then its ring is full of
 * entries for slot 0 that no client has yet to receive. The last client of the crowd holds slot 0.
 * No client holds the other slots.
 */
static void fill_ring(const struct raw *one)
{
	u32 me = one->join.client, s;

	for (s = 0; s < SLOTS; s++)
		xm_store(xm_hold(&one->map, me, s), XM_HOLD_FORWARDED);
	for (s = 0; s < RING; s++) {
		struct xmem_entry *entry = xm_entry(&one->map, me, s);

		xm_store(&entry->token, 0);
		xm_store(&entry->position, (s + 1) | XMEM_ENTRY_MARKED);
	}
	xm_store(&xm_ring(&one->map, me)->tail, RING);
}

static const char *while_rings_are_looked_at(void)
{
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	u32 i;

	GOES_WELL(start_pool(SLOTS, CROWD, XMEM_ROLE_WRITER));
	for (i = 0; i < CROWD; i++) {
		subscribe.publisher = crowd[i].join.client;
		subscribe.position = 0;
		SAME(raw_request(&keeper, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
		fill_ring(&crowd[i]);
	}
	GOES_WELL(ends_meanwhile(owns_all_and_ends, "an owner of 16384 slots ends, which 250 "
				 "clients with full rings have forwarded"));
	SAME(count_owned_by(XMEM_OWNER_NONE), SLOTS);
	return NULL;
}

/* One upgrade waits for a group that moves. Upgrades in other groups do not wait for it. */
static const char *while_an_upgrade_waits(void)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), XMEM_GROUP_SLOTS);
	struct kid waiting;
	bool more = true;

	attach.stride = attach.length = 64;
	GOES_WELL(start_pool(SLOTS, 0, XMEM_ROLE_READER));
	GOES_WELL(fill_group(&keeper, &attach, &more));
	WANT(more);
	keepers_groups = 1;
	keepers_slot = attach.slot[0];
	asked = upgrade_of_keepers;
	GOES_WELL(kid_start(&waiting, asks_in_vain, NULL));
	GOES_WELL(ends_meanwhile(owns_all_and_ends, "an owner of nearly all slots ends, and an "
				 "upgrade waits for that"));
	return kid_ready(&waiting);
}

static const char *while_pools_are_counted(void)
{
	GOES_WELL(start_pool(XMEM_GROUP_SLOTS, 0, XMEM_ROLE_READER));
	return ends_meanwhile(counts_pools, "a query counts 1000 pools");
}

static const char *while_many_end(void)
{
	GOES_WELL(start_pool(SLOTS, 0, XMEM_ROLE_READER));
	return ends_meanwhile(many_end, "200 clients end at once");
}

static const char *while_claims_expire(void)
{
	GOES_WELL(start_pool(CLAIMED, 0, XMEM_ROLE_READER));
	return ends_meanwhile(claims_all, "the claims of 32768 slots expire at once");
}

static const struct attack attacks[] = {
	{ "P4_requests_while_holds_are_looked_at", while_holds_are_looked_at, true },
	{ "P4_requests_while_rings_are_looked_at", while_rings_are_looked_at, true },
	{ "P4_requests_while_an_upgrade_waits", while_an_upgrade_waits, true },
	{ "P4_requests_while_pools_are_counted", while_pools_are_counted, true },
	{ "P4_requests_while_many_end", while_many_end, true },
	{ "P4_requests_while_claims_expire", while_claims_expire, true },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}

/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of the pure core. A world is a pool in plain memory; the host is in
 * the same process and a client is only an id. A "process" dies at a step of the
 * protocol: it stores nothing more, and the host ends it. Tests that need real
 * processes are in tests/conform.
 */
#ifndef XM_UNIT_H
#define XM_UNIT_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/host.h"
#include "core/policy.h"
#include "core/poll.h"
#include "core/receive.h"
#include "core/request.h"

#ifndef XMEM_STEPS
#error "the unit tests need the protocol's steps: FLAVOUR=test, asan or tsan"
#endif

#define PAGE	4096u
#define FIRST_ID	(XM_PAYLOAD_BEFORE + 1)	/* of a world's payloads */
#define POISON	0xa5a5a5a5a5a5a5a5ULL
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct world {
	struct xm_host host;	/* host.map is the view of all clients: all pages, all writable */
	void *base;
	u64 bytes;
	u64 random;
	const u8 *device;	/* attached memory is this GPU's; NULL: the CPU's */
	u32 user;		/* the user of the next client; 0: the pool's owner */
};

/* ---- world.c ---- */

/* UNIT_WIDE in the environment: every world is laid out as a newer host would do it. */
void world_widen(struct xmem_pool_header *header);
struct world *world_make(u32 slots, u32 clients, u32 ring_entries);
void world_free(struct world *world);

/* Each of these must succeed; each checks the host's invariants afterwards. */
u32 world_join(struct world *world, u32 role, u64 wait_bound_ns);
void world_attach(struct world *world, u32 me, u32 count, u32 *slot);
struct xm_follow world_subscribe(struct world *world, u32 me, u32 publisher, u32 flags);
void world_unsubscribe(struct world *world, u32 me, const struct xm_follow *follow);
void world_end(struct world *world, u32 client);	/* end, reap */

/* Do what a host does after a client's end and a last put. Returns the slots freed. */
u32 world_reap(struct world *world);
/* A sweep of one slot. Returns its payload's id if it was freed, or else 0. */
u64 world_reclaim(struct xm_host *host, u32 slot);
void world_do(struct world *world, struct xm_pending pending);

/* Publish a WRITING slot; take and publish a FREE one. Returns the token. */
u64 world_publish(struct world *world, u32 me, u32 slot);
u64 world_take_publish(struct world *world, u32 me, u32 slot);

/* Receive until there is a result: a publication, an end, or nothing. Pending wakes are done. */
int world_receive(struct world *world, u32 me, struct xm_follow *follow,
		  struct xm_publication *what);
void world_put(struct world *world, u32 me, u32 slot);

/* Rules of a scan; @evict: all except what is waited for and the last @depth publications. */
struct xm_scan_rules world_rules(struct world *world, u32 owner, bool evict, u32 depth);

/* Plain scan of one slot: is it ours now? */
/* xm_scan of slots by their numbers; @count may be 0. */
u64 scan_slots(const struct xm_map *map, const struct xm_scan_rules *how, const u32 *slot,
	       u32 count, u8 *ret_holder);
bool world_scan(struct world *world, u32 owner, u32 slot, bool evict, u32 depth);

u32 world_count(const struct world *world, u32 owner);		/* slots with that owner */
u64 world_holds(const struct world *world);			/* of all counted clients */
void world_is_valid(const struct world *world);

/* Living clients may be left; all else is as in a new pool. */
void world_is_clean(const struct world *world);

/* ---- steps ---- */

/* Called at each step of the calling thread, if set. */
extern __thread void (*unit_step)(int step, void *arg);
extern __thread void *unit_step_arg;

/* Run @what(@arg), which dies when it reaches @step for the @nth time (from 1): then true. */
bool unit_dies_at(int step, int nth, void (*what)(void *arg), void *arg);

/* Has anything reached that step since the test began? */
bool unit_step_seen(int step);
const char *unit_step_name(int step);

/* Forward a slot, so that the steps of that are seen (test_forward.c). */
void unit_forward(void);
/* Scan a shared slot, so that the steps of that are seen (test_upgrade.c). */
void unit_upgrade(void);

/* xorshift, never 0. */
u64 unit_random(u64 *state);
/*
 * Rounds of a loop: XMEM_TEST_SCALE percent of @count, at least 1. The default is all, and a tenth
 * with a sanitizer, which checks each access.
 */
u32 unit_scaled(u32 count);
u64 unit_seed(void);	/* UNIT_SEED of the environment, else from the clock; printed */

/* ---- suites ---- */

void layout_tests(Suite *suite);
void word_tests(Suite *suite);
void hold_tests(Suite *suite);
void scan_tests(Suite *suite);
void policy_tests(Suite *suite);
void ring_tests(Suite *suite);
void garbage_tests(Suite *suite);
void client_tests(Suite *suite);
void holders_tests(Suite *suite);
void left_tests(Suite *suite);
void holders_rings_tests(Suite *suite);
void strangers_tests(Suite *suite);
void slot_tests(Suite *suite);
void waiters_tests(Suite *suite);
void looks_tests(Suite *suite);
void claims_tests(Suite *suite);
void claims_alone_tests(Suite *suite);
void reclaim_tests(Suite *suite);
void race_tests(Suite *suite);
void end_tests(Suite *suite);
void fuzz_tests(Suite *suite);
void forward_tests(Suite *suite);
void upgrade_tests(Suite *suite);
void stress_tests(Suite *suite);
void lock_tests(Suite *suite);
void tensor_tests(Suite *suite);
void strings_tests(Suite *suite);
void cuda_tests(Suite *suite);
void access_tests(Suite *suite);
void limbo_tests(Suite *suite);

#endif

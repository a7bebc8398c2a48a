// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reclaiming: the host scans slots whose owner has ended. Clients can make each look at their rings
 * long, whether they forward anything or not. So a *sweep* serves many slots at once and looks at
 * each ring at most once (P4). It marks the *suspects*, the slots that perhaps nobody uses; then it
 * looks at all their holds, then at the rings. The order of these stages is the protocol (I2, I6),
 * as in xm_scan.
 *
 * Between two steps others may take the lock, so a sweep delays nobody for long. To them the host
 * is an owner that scans: a holder resolves a marked slot, and a LIVE slot may be written in place.
 * So the last stage frees only slots that are still marked, or that have no contents and no writer.
 * Slots that become suspects during a sweep wait for the next one, because this one may have passed
 * them before they were marked (tests/model/end_steps.pml). Clients end and are buried only between
 * sweeps.
 */
#include "held.h"
#include "host.h"
#include "policy.h"

void xm_host_suspect(struct xm_host *host, u32 slot)
{
	if (xm_slot_row(&host->map, slot)->owner == XMEM_OWNER_HOST)
		host->asked[slot / XMEM_GROUP_SLOTS] |= 1ULL << slot % XMEM_GROUP_SLOTS;
}

void xm_host_suspect_all(struct xm_host *host)
{
	u32 g, i;

	for (g = 0; g < host->map.groups; g++)
		for (i = 0; xm_has_limbo(host, g) && i < XMEM_GROUP_SLOTS; i++)
			xm_host_suspect(host, g * XMEM_GROUP_SLOTS + i);
}

/* A sweep begins with the slots that were asked for since the last one began. */
static void xm_sweep_begin(struct xm_host *host)
{
	u32 g;

	XM_STEP(XM_STEP_SWEEP_BEGIN);
	for (g = 0; g < host->map.groups; g++) {
		host->suspects[g] |= host->asked[g];
		host->asked[g] = 0;
	}
}

/* ---- marking ---- */

/* Can a subscriber still receive the slot from the ring of its tenant? */
static bool xm_tenant_shows(const struct xm_map *map, u32 slot, u32 tenant, u64 passed)
{
	if (tenant >= map->clients || !map->area[tenant])
		return false;
	return xm_in_flight(map, xm_load(&xm_ring(map, tenant)->tail), passed,
			    xm_load(&xm_slot(map, slot)->position));
}

/*
 * Mark the suspects of a group, which mostly have one tenant. Slots that the host does not own, or
 * that are in use, are suspects no longer; slots without contents need no mark.
 */
static void xm_sweep_mark(struct xm_host *host, u32 group)
{
	const struct xm_map *map = &host->map;
	u32 before = XMEM_OWNER_NONE, culprit;
	u64 left = host->suspects[group], passed = 0;

	for (; left; left &= left - 1) {
		u32 slot = group * XMEM_GROUP_SLOTS + __builtin_ctzll(left);
		const struct xmem_slot_row *row = xm_slot_row(map, slot);
		u64 word;

		if (row->owner == XMEM_OWNER_HOST && !row->upgrader) {
			word = xm_load_acquire(&xm_slot(map, slot)->state);
			if (xm_state(word) != XMEM_SLOT_LIVE)
				continue;
			if (row->tenant != before && row->tenant < map->clients &&
			    map->area[row->tenant])
				passed = xm_passed(map, row->tenant, &culprit);
			before = row->tenant;
			if (!xm_tenant_shows(map, slot, row->tenant, passed) &&
			    xm_cas_full(&xm_slot(map, slot)->state, word, xm_scanning(word)))
				continue;
		}
		host->suspects[group] &= ~(left & -left);
	}
}

/* ---- looking ---- */

/* Returns the suspects of @group that are marked, and not resolved for a holder meanwhile. */
static u64 xm_sweep_marked(const struct xm_host *host, u32 group)
{
	u64 left = host->suspects[group], marked = 0;

	for (; left; left &= left - 1) {
		u32 i = __builtin_ctzll(left);

		if (xm_state(xm_load(&host->map.group[group]->word[i].state)) ==
		    XMEM_SLOT_SCANNING)
			marked |= 1ULL << i;
	}
	return marked;
}

/* The slots in @used are in use: make them LIVE again; they are suspects no longer. */
static void xm_sweep_leave(struct xm_host *host, u32 group, u64 used)
{
	host->suspects[group] &= ~used;
	for (; used; used &= used - 1) {
		u64 *state = &host->map.group[group]->word[__builtin_ctzll(used)].state;
		u64 word = xm_load(state);

		if (xm_state(word) == XMEM_SLOT_SCANNING)
			xm_cas_full(state, word, word - XMEM_SLOT_SCANNING + XMEM_SLOT_LIVE);
	}
}

static void xm_sweep_holds(struct xm_host *host, struct xm_sweep *sweep, u32 group)
{
	const struct xm_map *map = &host->map;
	u64 marked = xm_sweep_marked(host, group), used;
	struct xm_held found;

	if (!marked)
		return;
	XM_STEP(XM_STEP_SWEEP_LOOK);
	found = xm_group_holds(map, group, marked, NULL);
	used = found.held | xm_group_claimed(map, group, marked & ~found.held);
	xm_sweep_leave(host, group, used);
	sweep->rings = sweep->rings || found.forwarded & ~used;
}

/* Suspects that a subscriber can still receive from this ring are in use. */
static void xm_sweep_ring(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	struct xm_walk walk;
	u32 slot;

	if (xm_client_row(map, client)->state == XMEM_CLIENT_NONE || !map->area[client])
		return;
	xm_walk_begin(map, client, 0, &walk);
	while (xm_walk_next(map, &walk, host->suspects, &slot))
		xm_sweep_leave(host, slot / XMEM_GROUP_SLOTS, 1ULL << slot % XMEM_GROUP_SLOTS);
}

/* ---- the end ---- */

/* Free a suspect that nobody uses. Returns its payload's id, or 0: it was resolved for a holder. */
static u64 xm_sweep_free(struct xm_host *host, u32 slot)
{
	u64 *state = &xm_slot(&host->map, slot)->state, word = xm_load(state), payload;

	/* It was resolved for a holder, which may even have begun to write it in place. */
	if (xm_state(word) == XMEM_SLOT_LIVE || xm_slot_row(&host->map, slot)->upgrader)
		return 0;
	/* The next generation, so that no token of these contents becomes valid again. */
	if (xm_state(word) == XMEM_SLOT_SCANNING &&
	    !xm_cas_full(state, word, word + XM_ONE_GENERATION - XMEM_SLOT_SCANNING +
			 XMEM_SLOT_FREE))
		return 0;
	xm_store(&xm_slot(&host->map, slot)->position, 0);
	payload = xm_free_slot(host, slot);
	xm_host_limbo_reset(host, slot / XMEM_GROUP_SLOTS);
	return payload;
}

static int xm_sweep_end(struct xm_host *host, u32 group, u64 *ret_payload)
{
	while (host->suspects[group]) {
		u32 i = __builtin_ctzll(host->suspects[group]);
		u32 slot = group * XMEM_GROUP_SLOTS + i;

		host->suspects[group] &= ~(1ULL << i);
		*ret_payload = xm_sweep_free(host, slot);
		if (*ret_payload)
			return slot;
	}
	return -EAGAIN;
}

/* Move on to the next group or ring, or after the last one to the next stage. */
static void xm_sweep_next(const struct xm_map *map, struct xm_sweep *sweep)
{
	if (++sweep->at < (sweep->stage == XM_SWEEP_RINGS ? map->clients : map->groups))
		return;
	sweep->at = 0;
	/* SCANNING before the holds: pairs with get's full hold before its look (I1). */
	xm_full_barrier();
	/* First all holds, then all that was forwarded (I6). */
	sweep->stage += sweep->stage == XM_SWEEP_HOLDS && !sweep->rings ? 2 : 1;
}

int xm_host_sweep(struct xm_host *host, struct xm_sweep *sweep, u64 *ret_payload)
{
	int slot = -EAGAIN;

	switch (sweep->stage) {
	case XM_SWEEP_MARK:
		if (!sweep->at)
			xm_sweep_begin(host);
		xm_sweep_mark(host, sweep->at);
		break;
	case XM_SWEEP_HOLDS:
		xm_sweep_holds(host, sweep, sweep->at);
		break;
	case XM_SWEEP_RINGS:
		xm_sweep_ring(host, sweep->at);
		break;
	case XM_SWEEP_END:
		slot = xm_sweep_end(host, sweep->at, ret_payload);
		break;
	default:
		return -ENOENT;
	}
	if (slot < 0)
		xm_sweep_next(&host->map, sweep);
	return slot;
}

// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Writing in place: a client that alone holds a slot whose payload is shared becomes its writer,
 * for one content. The host makes sure that no other client uses the slot, by a scan like the
 * owner's. Only the host knows for certain which client writes (row->upgrader), because the owner
 * can write the state word. The order of the lines is the protocol; the model is
 * tests/model/upgrade.pml.
 */
#include "host.h"
#include "policy.h"

/*
 * May a subscriber still receive the slot's last publication? Nobody can if its entry is void. An
 * entry is complete, and can be received, before the tail moves past it. Even a client that begins
 * to follow the owner then may receive it as its first publication.
 */
static bool xm_upgrade_in_flight(const struct xm_map *map, u32 tenant, u64 position)
{
	u64 tail, passed;
	u32 culprit;

	if (tenant >= map->clients || !map->area[tenant])
		return false;
	passed = xm_passed(map, tenant, &culprit);
	tail = xm_load(&xm_ring(map, tenant)->tail);
	/* If the owner has ended, its tail is past every complete entry. */
	if (position > tail && xm_client_row(map, tenant)->state == XMEM_CLIENT_ALIVE)
		return true;
	if (!xm_in_flight(map, tail, passed, position))
		return false;
	return !(xm_load_acquire(&xm_entry(map, tenant, position - 1)->position) &
		 XMEM_ENTRY_VOID);
}

/*
 * Is the slot in use: does a client other than @me hold it, does @me hold it more than once, may a
 * subscriber receive it as forwarded, or has it claims? The holds come first (I6, I7).
 */
static bool xm_upgrade_used(const struct xm_map *map, u32 me, u32 slot)
{
	return xm_others_hold(map, me, slot) ||
	       (xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT) != 1 ||
	       xm_claims_of(map, slot) ||
	       xm_group_forwarded(map, slot / XMEM_GROUP_SLOTS, 1ULL << slot % XMEM_GROUP_SLOTS,
				  0, NULL);
}

/*
 * May the slot be marked? @live is its state word. 0, or the error of the request; other users of
 * the slot are not looked for yet.
 */
static int xm_upgrade_check(const struct xm_map *map, u32 me, u32 slot, u64 live, u64 generation)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 first = xm_first_generation(xm_load(&row->generation_first));

	if (!xm_holds_count(map, me, slot) ||
	    !(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT))
		return -EPERM;
	if (!(row->traits & XMEM_TRAIT_SHARED))
		return -EOPNOTSUPP;
	if (xm_generation(live) != generation || !xm_in_tenancy(generation, first))
		return -ESTALE;
	if (row->upgrader)
		return -EBUSY;
	if (xm_state(live) == XMEM_SLOT_SCANNING)
		return -EAGAIN;
	if (xm_state(live) != XMEM_SLOT_LIVE)
		return -ESTALE;
	return xm_in_tenancy(generation + 1, first) ? 0 : -ENOSPC;
}

static int xm_upgrade_begin(const struct xm_map *map, u32 me, u32 slot,
			    struct xmem_upgrade_request *request)
{
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	struct xmem_slot_word *word = xm_slot(map, slot);
	u64 live = xm_load_acquire(&word->state), scanning = xm_scanning(live);
	int err = xm_upgrade_check(map, me, slot, live, request->generation);

	if (err)
		return err;
	/* I2: the cursors before the holds. */
	if (xm_upgrade_in_flight(map, row->tenant, xm_load(&word->position)))
		return -EBUSY;
	/* By CAS, because the owner may begin a scan at the same moment. */
	if (!xm_cas_full(&word->state, live, scanning))
		return -EAGAIN;
	/* SCANNING before the holds: pairs with get's full hold before its look (I1). */
	xm_full_barrier();
	if (xm_upgrade_used(map, me, slot)) {
		/*
		 * Restore the scan number, too: an owner that stopped in a scan must never meet its
		 * own number again, however often clients try this meanwhile.
		 */
		xm_cas_full(&word->state, scanning, live);
		return -EBUSY;
	}
	xm_store(&row->upgrader, me + 1);
	if (!xm_cas_full(&word->state, scanning,
			 scanning + XM_ONE_GENERATION - XMEM_SLOT_SCANNING + XMEM_SLOT_UPGRADED)) {
		xm_store(&row->upgrader, 0);	/* the host has resolved it for a new holder */
		return -EAGAIN;
	}
	request->generation++;
	return 0;
}

/*
 * The slot that the client gives up becomes FREE, whichever generation the request names; the
 * client has no other. If the owner has written garbage into the state word, only the upgrade ends.
 */
static int xm_upgrade_give_up(struct xm_host *host, u32 slot)
{
	u64 *state = &xm_slot(&host->map, slot)->state, word = xm_load_acquire(state);

	xm_claims_end(host, slot);	/* before the owner can take the slot */
	if (xm_state(word) == XMEM_SLOT_UPGRADED &&
	    !xm_cas_full(state, word, word - XMEM_SLOT_UPGRADED + XMEM_SLOT_FREE))
		return -ESTALE;
	xm_store(&xm_slot_row(&host->map, slot)->upgrader, 0);
	return 0;
}

static int xm_upgrade_end(struct xm_host *host, u32 me, u32 slot,
			  const struct xmem_upgrade_request *request)
{
	const struct xm_map *map = &host->map;
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 *state = &xm_slot(map, slot)->state, word = xm_load_acquire(state);
	u64 then = word - XMEM_SLOT_UPGRADED + XMEM_SLOT_LIVE;

	if (row->upgrader != me + 1)
		return -EPERM;
	if (request->flags == XMEM_UPGRADE_GIVE_UP)
		return xm_upgrade_give_up(host, slot);
	/* The word differs if the owner has written it or the caller is wrong. */
	if (xm_state(word) != XMEM_SLOT_UPGRADED || xm_generation(word) != request->generation)
		return -ESTALE;
	if (request->flags == XMEM_UPGRADE_PUBLISH) {
		*xm_metadata(map, slot) = request->metadata;
	} else {
		xm_claims_end(host, slot);	/* the claims are of contents that never came */
		then -= XM_ONE_GENERATION;
	}
	if (!xm_cas_full(state, word, then))
		return -ESTALE;
	xm_store(&row->upgrader, 0);
	return 0;
}

int xm_host_upgrade(struct xm_host *host, u32 me, struct xmem_upgrade_request *request)
{
	const struct xm_map *map = &host->map;
	u32 slot;

	if (request->slot >= map->slots || request->flags & (request->flags - 1))
		return -EINVAL;
	if (xm_client_row(map, me)->role != XMEM_ROLE_WRITER)
		return -EPERM;
	slot = xm_index(request->slot, map->slots);
	if (!map->group[slot / XMEM_GROUP_SLOTS])
		return -EPERM;
	if (request->flags)
		return xm_upgrade_end(host, me, slot, request);
	return xm_upgrade_begin(map, me, slot, request);
}

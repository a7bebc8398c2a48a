// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Would an acquire succeed? See search.h. */
#include "search.h"

/* The slots of one owner in one group, by what an acquire could do with them. */
struct xm_stock {
	u64 fits;			/* bitmap: they are large enough */
	u64 free;			/* bitmap: they are FREE, or taken ahead */
	u64 live;			/* bitmap: free if nobody holds them */
	u64 later;			/* bitmap: free then, once the subscribers that lag are
					 * demoted */
};

/* Is that slot's memory on the device that the owner wants? */
static bool xm_is_there(const struct xm_map *map, const struct xm_search *search, u32 slot)
{
	return xm_device(xm_load(&xm_slot_row(map, slot)->traits)) == search->wanted_device;
}

static void xm_count_slot(const struct xm_map *map, struct xm_search *search, u32 slot,
			  bool fits, struct xm_stock *ret)
{
	/* Small slots may make room for a large one on their device. */
	bool counts = fits || (search->lacks && xm_is_there(map, search, slot));
	const struct xm_waited *waited = &search->waited, *later = &search->later;
	const struct xmem_slot_word *word = xm_slot(map, slot);
	u64 position, bit = counts ? 1ULL << slot % XMEM_GROUP_SLOTS : 0;

	ret->fits |= fits ? bit : 0;
	switch (xm_state(xm_load_acquire(&word->state))) {
	case XMEM_SLOT_FREE:
		ret->free |= bit;
		/* Another client wrote the slot in place, and the owner has not noticed yet. */
		if (xm_load(&word->position)) {
			ret->live |= bit;
			ret->later |= search->bound ? bit : 0;
		}
		break;
	case XMEM_SLOT_WRITING:
		if (xm_load(&word->position) == XMEM_POSITION_IN_HAND)
			search->in_hand++;
		else
			ret->free |= bit;
		break;
	case XMEM_SLOT_LIVE:
	case XMEM_SLOT_SCANNING:
		position = xm_load(&word->position);
		if (!xm_in_flight(map, waited->tail, waited->evictable, position))
			ret->live |= bit;
		if (search->bound && !xm_in_flight(map, later->tail, later->evictable, position))
			ret->later |= bit;
		break;
	}
}

static bool xm_fits(const struct xmem_slot_row *row, const struct xm_search *search)
{
	u32 traits = xm_load(&row->traits);

	return xm_load(&row->length) >= search->wanted && !(traits & XMEM_TRAIT_ONCE) &&
	       xm_device(traits) == search->wanted_device;
}

/*
 * Is one of these slots in use only because it is forwarded? @holder: the client that forwarded it,
 * or holds it.
 */
static bool xm_any_lent(const struct xm_map *map, u32 group, u64 used, const u8 *holder)
{
	for (; used; used &= used - 1) {
		u32 i = __builtin_ctzll(used);

		if (!(xm_load(xm_hold(map, holder[i], group * XMEM_GROUP_SLOTS + i)) &
		      XM_HOLD_COUNT))
			return true;
	}
	return false;
}

/* The bytes of the slots of @group in the bitmap. */
static u64 xm_sum(const struct xm_map *map, u32 group, u64 slots)
{
	u64 bytes = 0;

	for (; slots; slots &= slots - 1)
		bytes += xm_load(&xm_slot_row(map, group * XMEM_GROUP_SLOTS +
						   __builtin_ctzll(slots))->length);
	return bytes;
}

/* Is the memory that nobody uses enough for the owner to make another buffer of it? */
static void xm_search_freed(const struct xm_map *map, struct xm_search *search, u32 group,
			    const struct xm_stock *stock, u64 held)
{
	search->freed += xm_sum(map, group, stock->live & ~held);
	search->freed_later += xm_sum(map, group, stock->later & ~held);
	search->found = search->found || search->freed >= search->lacks;
	search->found_later = search->found_later || search->freed_later >= search->lacks;
}

static void xm_search_group(const struct xm_map *map, u32 owner, struct xm_search *search,
			    u32 group)
{
	u32 slot = group * XMEM_GROUP_SLOTS, end = slot + XMEM_GROUP_SLOTS;
	struct xm_stock stock = { .free = 0 };
	u8 holder[XMEM_GROUP_SLOTS];
	u64 among, used, claimed;

	for (; slot < end; slot++) {
		const struct xmem_slot_row *row = xm_slot_row(map, slot);

		/*
		 * A buffer that a client writes in place goes into that client's ring, whoever owns
		 * the slot.
		 */
		search->in_hand += xm_load(&row->upgrader) == owner + 1;
		if (xm_load_acquire(&row->owner) == owner)
			xm_count_slot(map, search, slot, xm_fits(row, search), &stock);
	}
	if (stock.free & stock.fits ||
	    (search->lacks_slots && xm_spare_slots(map, owner, group)))
		search->found = search->found_later = true;
	/* Reading the holds of all clients is slow, so only slots that matter are asked for. */
	if (search->found)
		return;
	among = stock.live | (search->found_later ? 0 : stock.later);
	used = among ? xm_group_used(map, group, among, 1, holder) : 0;
	claimed = xm_group_claimed(map, group, among);
	/* The bound of a publisher that forwards does not end claims. */
	search->lent = search->lent ||
		       xm_any_lent(map, group, used & ~claimed & stock.live, holder);
	used |= claimed;
	among &= ~used & stock.fits;
	search->found = among & stock.live;
	search->found_later = search->found_later || among;
	if (search->lacks)
		xm_search_freed(map, search, group, &stock, used);
}

void xm_search_begin(const struct xm_map *map, u32 owner, struct xm_search *ret)
{
	const struct xmem_ring *ring = xm_ring(map, owner);

	*ret = (struct xm_search){
		.wanted = xm_load(&ring->wanted),
		.wanted_device = xm_load(&ring->wanted_device),
		.makes = xm_load(&ring->makes),
		.lacks = xm_load(&ring->lacks),
		.lacks_slots = xm_load(&ring->lacks_slots),
		.demote_at_ns = xm_load(&ring->demote_at_ns),
		.recall_at_ns = xm_load(&ring->recall_at_ns),
	};
	xm_read_waited(map, owner, &ret->waited);
	ret->bound = ret->waited.lagging && ret->demote_at_ns;
	ret->later = ret->waited;
	/* Once the bound has passed, the owner demotes the subscribers that lag. */
	ret->later.count -= ret->waited.lagging;
	ret->later.evictable = ret->waited.tail;
	ret->found = ret->found_later = ret->makes && ret->wanted <= ret->makes;
}

/*
 * Can another group change the answer? Buffers in hand count only where a subscriber is waited for;
 * otherwise the first free buffer is the answer.
 */
static bool xm_search_is_open(const struct xm_map *map, const struct xm_search *search)
{
	if (search->group == map->groups || (search->found && !search->waited.count))
		return false;
	if (xm_has_room(map, &search->waited, search->in_hand))
		return true;
	return search->bound && xm_has_room(map, &search->later, search->in_hand) &&
	       !(search->found_later && !search->later.count);
}

bool xm_search_step(const struct xm_map *map, u32 owner, struct xm_search *search, u32 groups)
{
	for (; groups && xm_search_is_open(map, search); groups--)
		xm_search_group(map, owner, search, search->group++);
	return xm_search_is_open(map, search);
}

bool xm_search_end(const struct xm_map *map, const struct xm_search *search, u64 now_ns,
		   u64 *ret_deadline)
{
	bool room = xm_has_room(map, &search->waited, search->in_hand);

	*ret_deadline = 0;
	if (room && (search->found || (search->recall_at_ns && now_ns >= search->recall_at_ns)))
		return true;
	if (room)
		*ret_deadline = search->recall_at_ns;
	if (!search->bound || !search->found_later ||
	    !xm_has_room(map, &search->later, search->in_hand))
		return false;
	if (now_ns >= search->demote_at_ns)
		return true;
	if (!*ret_deadline || search->demote_at_ns < *ret_deadline)
		*ret_deadline = search->demote_at_ns;
	return false;
}

bool xm_search_should_ask(const struct xm_map *map, u32 owner, const struct xm_search *search)
{
	bool waits = !search->in_hand || search->wanted;

	if (waits && search->lent && !search->recall_at_ns &&
	    xm_has_room(map, &search->waited, search->in_hand))
		return true;
	return waits && search->waited.lagging && !search->demote_at_ns &&
	       xm_load(&xm_client_row(map, owner)->wait_bound_ns);
}

bool xm_search_is_same(const struct xm_search *search, const struct xm_search *before)
{
	const struct xm_waited *now = &search->waited, *then = &before->waited;

	return search->wanted == before->wanted &&
	       search->wanted_device == before->wanted_device &&
	       search->demote_at_ns == before->demote_at_ns &&
	       search->recall_at_ns == before->recall_at_ns &&
	       search->makes == before->makes && search->lacks == before->lacks &&
	       search->lacks_slots == before->lacks_slots &&
	       now->tail == then->tail && now->evictable == then->evictable &&
	       now->count == then->count && now->lagging == then->lagging &&
	       now->demoted == then->demoted;
}

static bool xm_search_all(const struct xm_map *map, u32 owner, struct xm_search *search,
			  u64 now_ns, u64 *ret_deadline)
{
	xm_search_begin(map, owner, search);
	xm_search_step(map, owner, search, map->groups);
	return xm_search_end(map, search, now_ns, ret_deadline);
}

bool xm_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline)
{
	struct xm_search search;

	return xm_search_all(map, owner, &search, now_ns, ret_deadline);
}

bool xm_poll_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline)
{
	struct xm_search search;

	return xm_search_all(map, owner, &search, now_ns, ret_deadline) ||
	       xm_search_should_ask(map, owner, &search);
}

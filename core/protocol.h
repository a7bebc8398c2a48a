/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The data plane: what clients do in the pages without a request to the host.
 *
 * All of core/ is pure: it takes no lock, allocates nothing, opens no file, reads no clock and logs
 * nothing. The host provides the pages. env.h and struct xm_map (places.h) say how they are
 * reached. The module, the library, the daemon and the tests compile the same files.
 * docs/design.md has the words.
 *
 * A slot's state word is generation << 16 | scan number << 3 | state:
 *
 *   FREE      -> WRITING   the owner takes the slot                generation + 1
 *   WRITING   -> LIVE      the owner publishes it, or sets claims aside
 *   WRITING   -> FREE      the owner gives it up
 *   LIVE      -> SCANNING  the owner begins a scan                 scan + 1
 *   SCANNING  -> WRITING   the scan found no user; by CAS          generation + 1
 *   SCANNING  -> LIVE      the scan found a user, or the host resolved the slot; by CAS
 *
 * If the payload of a slot is shared, the host can make the only client that holds the slot its
 * writer (upgrade.c). The owner therefore begins a scan of such a slot by CAS, too, and does not
 * touch a slot that the host has marked:
 *
 *   LIVE      -> SCANNING  the host begins a scan                  scan + 1
 *   SCANNING  -> LIVE      another client holds it                 scan as before
 *   SCANNING  -> UPGRADED  no other client holds it                generation + 1
 *   UPGRADED  -> LIVE      the client publishes
 *   UPGRADED  -> FREE      the client gives it up, or has ended
 *
 * Each invariant has a model in tests/model and a mutant in tests/mutants:
 *
 *   I1 A client takes a hold, then looks at the state word (or the entry) that permits it. An
 *      owner marks the slot SCANNING (or the entry void), then looks at the holds. A full barrier
 *      separates the two steps on each side, so at least one side sees the step of the other.
 *      A scan ignores the holds of clients that are not *holders* of the slot's group. So a
 *      client that is not a holder of every group checks that it is one of this group
 *      (xm_may_hold) before it looks at the word that permits its hold.
 *   I2 A scan looks at the client table, then at the cursors, then at the holds. A reference moves
 *      in this order, too (from an entry in flight to a hold), so no scan misses it.
 *   I3 A slot is *in flight* while a subscriber may still receive its entry. It is not reclaimed
 *      before that entry is void or overwritten.
 *   I4 A cursor never moves back. The operations of one owner are serial, and so are the
 *      operations on one cursor.
 *   I5 A waker makes the condition true, then reads the waiters word. A client that is going to
 *      sleep arms the word, then tests the condition. Full barriers separate the steps.
 *   I6 Once a slot is marked SCANNING, no get of that slot completes. Receiving a forwarded entry
 *      is a get. So from then on a reference moves inside one client only, from its hold to its
 *      ring, and a bit of the hold says that the client has forwarded the slot. The scan looks
 *      at all holds, then at the rings of the clients that have forwarded the slot.
 *   I7 A client adds a claim as it takes a hold (I1): it adds the claim, then looks at the state
 *      word, unless the slot had claims already. The owner marks the slot, then looks at the
 *      claims. A get takes its hold, then uses up the claim. So while a slot is SCANNING,
 *      no reference moves from holds to claims or back, and no scan misses one.
 *   I8 A client is an *opener* of a CUDA payload before it has the handle or the descriptor, and
 *      until it has closed the payload. A payload is closed when its last slot has gone, and
 *      after that its last opener. Its owner frees the memory only then. So no client
 *      has memory open that its owner has freed.
 *   I9 A client sets XM_HOLD_DEVICE in a hold before it hands out a pointer of a GPU. When the
 *      client ends, these holds stay, and what the client has open stays open, until its process
 *      has exited and with it all work of its GPU (*quarantine*). So a slot is free only when no
 *      GPU writes or reads it for a client that has ended.
 *   I10 In the daemon's pools an owner may add claims to its own contents without the host, if it
 *      holds them, if the slot has no claims, and only once for each content. Together with
 *      the claims it stores the generation of the content in place of the first one of the
 *      tenancy. So a host that has a record of earlier claims sees by the generation that those
 *      have gone, and leaves the new ones alone. Claims that are in no list of the host
 *      belong to the owner. The owner holds the content until the claims are there, and a
 *      scan looks at the holds, then at the claims; so no scan misses them. An upgrade of that
 *      very hold can miss them, so the owner looks at the state word after it has added them.
 *
 * Threads: xm_get, xm_put and xm_hold_more may run anywhere at any time. The owner's functions
 * (xm_take, xm_scan, xm_publish, xm_give_up) are serial per client, and xm_receive is serial per
 * cursor; the caller ensures both.
 *
 * Layers. A file of core/ calls only files on earlier lines; tests/check-layers.sh reads this table
 * and checks it.
 *
 *   access.c         who may join a pool, and in which roles
 *   layout.c         where each part of the pages is
 *   map.c            a mapping of the pages as a struct xm_map
 *   request.c        the table of requests
 *   claims.c         claims: finding and taking them
 *   ring.c           publishing, forwarding and receiving
 *   history.c        publications from before a subscription began
 *   policy.c         which subscribers an owner waits for, and what it may evict
 *   owner.c          an owner demotes subscribers, and adds claims without the host
 *   forward.c        the host and scans read what clients have forwarded
 *   scan.c           an owner looks for slots that nobody uses
 *   retract.c        a publisher takes publications back
 *   poll.c           is a descriptor readable, is it writable?
 *   claims_host.c    the host adds and voids claims
 *   holders.c        whose holds count in which group
 *   ready.c          ready words of owners that have ended
 *   cuda.c           CUDA payloads: who may open them, who has
 *   slot.c           owners, payloads and tenancies of slots
 *   upgrade.c        the only holder of a slot becomes its writer
 *   client.c         clients join, subscribe and end
 *   limbo.c          limbo, counted
 *   reclaim.c        the host scans slots of ended owners
 *   check.c          the invariants of the host's words
 */
#ifndef XM_PROTOCOL_H
#define XM_PROTOCOL_H

#include "places.h"
#include "step.h"

/* ---- holding ---- */

/* The caller's duty after it has dropped a hold or moved a cursor (I5). */
struct xm_pending {
	enum { XM_NOTHING, XM_WAKE_OWNER, XM_RECLAIM_SLOT } what;
	u32 who;			/* XM_WAKE_OWNER: client; XM_RECLAIM_SLOT: slot */
};

/* Take one more hold of a slot that this client holds already. -EOVERFLOW: it has 2^28 holds. */
static inline int xm_hold_add(u32 *hold)
{
	if (__builtin_expect((xm_add_full(hold, 1) & XM_HOLD_COUNT) >= XM_HOLD_LIMIT, 0)) {
		xm_add_full(hold, -1u);
		return -EOVERFLOW;
	}
	return 0;
}

static inline int xm_hold_more(const struct xm_map *map, u32 me, u32 slot)
{
	return xm_hold_add(xm_hold(map, me, slot));
}

/* Does the owner, or the host, wait until this client drops its last hold of @slot? */
static inline struct xm_pending xm_put_pending(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);

	if (__builtin_expect(owner < map->clients, 1)) {
		if (__builtin_expect(xm_test(&xm_client_row(map, owner)->slots_waiters,
					    XMEM_WAITERS_ARMED), 0))
			return (struct xm_pending){ XM_WAKE_OWNER, owner };
	} else if (owner == XMEM_OWNER_HOST) {
		return (struct xm_pending){ XM_RECLAIM_SLOT, slot };
	}
	return (struct xm_pending){ XM_NOTHING, 0 };
}

/*
 * Drop one hold of @slot; @hold is this client's hold word. The caller must have a hold; without
 * one nothing changes.
 */
static inline struct xm_pending xm_put_at(const struct xm_map *map, u32 *hold, u32 slot)
{
	u32 old;

	XM_STEP(XM_STEP_PUT_BEFORE);
	old = xm_add_full(hold, -1u) & XM_HOLD_COUNT;
	XM_STEP(XM_STEP_PUT_DROPPED);
	if (__builtin_expect(old == 1, 1))
		return xm_put_pending(map, slot);
	if (!old)	/* The caller had no hold. The slot may look busy for a moment. */
		xm_add_full(hold, 1);
	return (struct xm_pending){ XM_NOTHING, 0 };
}

static inline struct xm_pending xm_put(const struct xm_map *map, u32 me, u32 slot)
{
	return xm_put_at(map, xm_hold(map, me, slot), slot);
}

/*
 * Are the contents that @token names still there? The caller has taken a hold before this. Returns
 * 0: they are, and they stay while the caller holds them. -ESTALE: they are gone; the caller drops
 * the hold. -EAGAIN: the owner is scanning the slot; the caller looks again, and after a while asks
 * the host to resolve the slot.
 */
int xm_look(const struct xm_map *map, u64 token);

/* The fast path of xm_look. Returns 0, or -EAGAIN: call xm_look. */
static inline int xm_look_at_once(const struct xm_map *map, u64 token)
{
	u64 slot = token & 0xffff;	/* 64 bits: fewer instructions */
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	/* If the word is LIVE and has the token's generation, this is its scan number << 3. */
	u64 scan = word + slot - XMEM_SLOT_LIVE - token;

	/* The upper bits differ also if the slot has claims. */
	if (__builtin_expect(!xm_in_tenancy(xm_generation(token),
					    xm_load(&xm_slot_row(map, slot)->generation_first)), 0))
		return -EAGAIN;
	return __builtin_expect((scan >> 3 | scan << 61) <= 0x1fff, 1) ? 0 : -EAGAIN;
}

/*
 * Do this client's holds count in every group? If they do, they do for the client's life. If they
 * do not, the client calls xm_may_hold for each get, because scans ignore its holds in groups where
 * they do not count.
 */
static inline bool xm_is_counted(const struct xm_map *map, u32 me)
{
	return xm_load_acquire(&map->pool->counted[me / 64]) >> me % 64 & 1;
}

/* Do the holds of @client in the group of @slot count? A client that does not exist has no bit. */
static inline bool xm_holds_count(const struct xm_map *map, u32 client, u32 slot)
{
	return xm_load_acquire(&xm_group_row(map, slot / XMEM_GROUP_SLOTS)->holders[client / 64]) >>
	       client % 64 & 1;
}

/*
 * May @me, whose holds do not count everywhere, hold what @token names? Returns 0: its hold counts.
 * -EACCES: it may not. -ESTALE: the contents are gone. The caller looks at the state word after
 * this call. Its hold may be taken before or after it: a scan that ran before the client's bit was
 * set has marked the slot by now, and the look at the state word sees the mark.
 */
int xm_may_hold(const struct xm_map *map, u32 me, u64 token);

/*
 * Take a hold on the contents that @token names. Returns 0: they are held. -EAGAIN: the hold is
 * taken, and xm_look says whether it is good. -EOVERFLOW: the client has 2^28 holds without this
 * one; the caller drops it. @holds: the hold words of this client, by slot. The caller has checked
 * that the slot exists.
 */
static inline int xm_get_at(const struct xm_map *map, u32 *holds, u64 token)
{
	u32 had = xm_add_full(&holds[token & 0xffff], 1) & XM_HOLD_COUNT;
	int err;

	if (__builtin_expect(had >= XM_HOLD_LIMIT, 0))
		return -EOVERFLOW;
	XM_STEP(XM_STEP_GET_HELD);
	err = xm_look_at_once(map, token);
	XM_STEP(XM_STEP_GET_DONE);
	return err;
}

/*
 * Take a hold on the contents that @token names, with the results of xm_look. The hold stays after
 * an error, except after -EOVERFLOW and -EINVAL: there is no such slot.
 */
static inline int xm_get(const struct xm_map *map, u32 me, u64 token)
{
	int err;

	if (__builtin_expect(xm_token_slot(token) >= map->slots, 0))
		return -EINVAL;
	err = xm_get_at(map, xm_hold(map, me, 0), token);
	if (__builtin_expect(err == -EAGAIN, 0))
		return xm_look(map, token);
	if (__builtin_expect(err == -EOVERFLOW, 0))
		xm_add_full(xm_hold(map, me, xm_token_slot(token)), -1u);
	return err;
}

/* ---- claims (claims.c) ---- */

static inline u32 xm_claims_of(const struct xm_map *map, u32 slot)
{
	return xm_claims(xm_load_acquire(&xm_slot_row(map, slot)->generation_first));
}

/* Does any slot have claims? A scan asks this after it has marked its slots (I7). */
static inline bool xm_any_claims(const struct xm_map *map)
{
	return __builtin_expect(xm_load_acquire(&map->pool->claimed) != 0, 0);
}

/* Returns those slots of @group in the bitmap @among that have claims. */
u64 xm_group_claimed(const struct xm_map *map, u32 group, u64 among);

/*
 * Take @count claims of a slot, if they are of generation @last or of an earlier one. The caller
 * holds the slot or has another right to its claims. -ERANGE: the slot has fewer claims; nothing
 * changes.
 */
int xm_claim_take(const struct xm_map *map, u32 slot, u64 last, u32 count);

/*
 * The owner adds @count claims without the host to contents of its own that it holds (I10). They
 * last as long as the owner lives. -EAGAIN: it cannot, and has to ask the host. This is for clients
 * that can write the rows. `claimed` may be 0 until one of their requests has told the host that
 * they add claims; until then it returns -EAGAIN.
 */
int xm_claim_alone(const struct xm_map *map, u32 me, u64 token, u32 count);

/* ---- the owner (scan.c, ring.c) ---- */

/* The ring in which the scanned slots were published, and two places in it (policy.h). */
struct xm_scan_rules {
	u64 tail;
	u64 passed;			/* nobody can still receive a publication below this */
	u64 evictable;			/* a publication below this may be evicted */
	u32 owner;			/* client id, or XMEM_OWNER_NONE: its ring is gone */
	u64 evicts;			/* 0, or 1 + the ns that the owner has waited. Then
					 * forwarded entries count only while their publisher
					 * still waits, within its bound, for a subscriber to
					 * receive them */
	bool in_order;			/* the slots are sorted by position: the scan stops at
					 * the first one that is in flight */
	bool shared;			/* the host may change their state words, too */
};

/*
 * Can a subscriber whose cursor is @from or more still receive the publication at @position (1 +
 * its place) (I3)?
 */
static inline bool xm_in_flight(const struct xm_map *map, u64 tail, u64 from, u64 position)
{
	u64 place = position - 1;

	/*
	 * Position 0: never published. Beyond the tail: the owner ended before it wrote the entry.
	 */
	if (place >= tail || place < from)
		return false;
	/* A publication one lap later completes only after this one is overwritten. */
	return place + map->ring_mask + 1 >= tail;
}

/* FREE -> WRITING with the next generation. -EBUSY: the slot is not FREE. */
int xm_take(const struct xm_map *map, u32 slot);

/* WRITING -> FREE. -EBUSY: the slot is not WRITING. */
int xm_give_up(const struct xm_map *map, u32 slot);

/*
 * Returns those slots of @group in the bitmap @among that are held, or are forwarded in a ring from
 * which a subscriber may still receive them. @evicts: as in struct xm_scan_rules. ret_holder[i],
 * unless @ret_holder is NULL, becomes a client that holds the i-th slot of the group or has
 * forwarded it.
 */
u64 xm_group_used(const struct xm_map *map, u32 group, u64 among, u64 evicts, u8 *ret_holder);

/*
 * The second half of xm_group_used (forward.c), after xm_group_holds (held.h; I6). Returns those of
 * these slots, which nobody holds, that a subscriber may still receive because a client has
 * forwarded them.
 */
u64 xm_group_forwarded(const struct xm_map *map, u32 group, u64 among, u64 evicts,
		       u8 *ret_holder);

/* A walk over the entries of a publisher's ring that forward a slot and are still in use. */
struct xm_walk {
	u32 publisher;
	u64 tail;
	u64 left;			/* at most a lap and one */
};

/* @evicts: as in struct xm_scan_rules. */
void xm_walk_begin(const struct xm_map *map, u32 publisher, u64 evicts, struct xm_walk *ret);

/*
 * Get the next slot that the ring names with its present contents and that the publisher's hold
 * word says it has forwarded. Only slots in the bitmaps @among, one for each group, count. Returns
 * false at the end.
 */
bool xm_walk_next(const struct xm_map *map, struct xm_walk *walk, const u64 *among, u32 *ret_slot);

/* An owner's record of a slot, so that a scan need not compute these fields. */
struct xm_own {
	struct xmem_slot_word *word;
	u64 bit;			/* 1 << its place in its group */
	u32 group;
	u32 slot;
};

static inline struct xm_own xm_own(const struct xm_map *map, u32 slot)
{
	return (struct xm_own){
		.word = xm_slot(map, slot),
		.bit = 1ULL << slot % XMEM_GROUP_SLOTS,
		.group = slot / XMEM_GROUP_SLOTS,
		.slot = slot,
	};
}

/*
 * The scan: take those of @count (1 to 64) slots of the owner that nobody uses. They become WRITING
 * with the next generation and position 0. Slots that are in use stay LIVE, and ret_holder[i],
 * unless @ret_holder is NULL, becomes a client that holds own[i] if there is one. Slots that are
 * not LIVE, or are in flight at or above how->evictable, are not touched. Returns a bitmap, by
 * place in @own, of the slots that were taken.
 */
u64 xm_scan(const struct xm_map *map, const struct xm_scan_rules *how,
	    struct xm_own *const *own, u32 count, u8 *ret_holder);

/* Scan one slot, for a caller that has no struct xm_own of it. */
static inline bool xm_scan_one(const struct xm_map *map, const struct xm_scan_rules *how, u32 slot)
{
	struct xm_own own = xm_own(map, slot), *one = &own;
	struct xm_scan_rules rules = *how;

	rules.shared = xm_load(&xm_slot_row(map, slot)->traits) & XMEM_TRAIT_SHARED;
	return xm_scan(map, &rules, &one, 1, NULL);
}

/* The fields of an entry, except its position. */
struct xm_publication {
	u64 token;
	u64 sequence;
	u64 timestamp_ns;
	u64 offset;			/* bytes into the slot's payload */
	u64 length;			/* bytes */
};

/*
 * Make a WRITING slot of the caller LIVE and add an entry to the caller's ring. Fills in token and
 * sequence (the place) of @what. true: a subscriber sleeps until there is an entry, and the caller
 * has to wake the ring's waiters.
 */
bool xm_publish(const struct xm_map *map, u32 me, u32 slot, struct xm_publication *what);

/*
 * Make a WRITING slot LIVE without an entry. Returns its token, without which nobody can reach the
 * contents. The caller holds the slot, or the slot has claims.
 */
u64 xm_make_live(const struct xm_own *own);

/* ---- the subscriber (ring.c) ---- */

/*
 * @position is what the entry of @place shows. Does the entry still show the publication one lap
 * before @place? Then its publisher, if it is alive, has not begun to write @place: it opens the
 * entry first and moves the tail last. So there is nothing to receive yet, and nothing is lost. An
 * open entry (position 0) proves nothing, because its publisher may have stopped there a lap later.
 */
static inline bool xm_shows_lap_before(const struct xm_map *map, u64 position, u64 place)
{
	return position && xm_position(position) + map->ring_mask == place;
}

/* One subscription, in the private memory of its subscriber. */
struct xm_follow {
	u32 publisher;			/* client id */
	bool waits;			/* the publisher waits for this subscriber */
	u64 incarnation;		/* of the publisher */
	u64 place;			/* the cursor */
	u64 lost;			/* publications that it has not received and cannot
					 * receive any more */
};

/*
 * Try once to receive the next publication. Returns 0: *what is filled in and one hold is taken.
 * -EAGAIN: there is none yet. -EPIPE: the publisher has ended and nothing is left. -EBUSY: the
 * entry has changed meanwhile, is for another subscriber, or its slot is being scanned; call again
 * (the number of calls is bounded). The caller does *pending after every result.
 */
int xm_receive(const struct xm_map *map, u32 me, struct xm_follow *follow,
	       struct xm_publication *what, struct xm_pending *pending);

/*
 * ---- waiters words: of the host, and in the daemon's pools of the library too ----
 *
 * Each wake-up raises the count by two. It is odd while a waker of the kernel wakes the waiters one
 * after the other. The word stays armed meanwhile, so others wake them, too, if that waker is
 * stopped on its way. Model: tests/model/wait.pml.
 */
#define XM_WAITERS_WAKING	XMEM_WAITERS_STEP

/* Arm the word and return the value to wait on. The caller tests its condition after this (I5). */
static inline u32 xm_arm(u32 *waiters)
{
	u32 old, armed;

	do {
		old = xm_load(waiters);
		armed = old & XM_WAITERS_WAKING ? old + XMEM_WAITERS_STEP :
						  old | XMEM_WAITERS_ARMED;
	} while (!xm_cas_full(waiters, old, armed));
	return armed;
}

/* Has nobody begun to wake the waiters since xm_arm returned @value? */
static inline bool xm_still_armed(u32 *waiters, u32 value)
{
	return !((xm_load_acquire(waiters) ^ value) & ~XMEM_WAITERS_ARMED);
}

/* true: clients sleep; the caller wakes all of them, and then calls xm_wake_end with *ret_claim. */
static inline bool xm_wake_begin(u32 *waiters, u32 *ret_claim)
{
	u32 old;

	do {
		old = xm_load(waiters);
		if (!(old & XMEM_WAITERS_ARMED))
			return false;
		*ret_claim = old | XM_WAITERS_WAKING;
	} while (old != *ret_claim && !xm_cas_full(waiters, old, *ret_claim));
	return true;
}

/* Disarm the word, unless it was armed, or disarmed, meanwhile. */
static inline void xm_wake_end(u32 *waiters, u32 claim)
{
	xm_cas_full(waiters, claim, claim + XMEM_WAITERS_STEP - XMEM_WAITERS_ARMED);
}

/* Disarm the word in one step. true: clients sleep, and the caller wakes all of them. */
static inline bool xm_disarm(u32 *waiters)
{
	u32 old;

	do {
		old = xm_load(waiters);
		if (!(old & XMEM_WAITERS_ARMED))
			return false;
	} while (!xm_cas_full(waiters, old, (old | XM_WAITERS_WAKING) + XMEM_WAITERS_STEP -
			      XMEM_WAITERS_ARMED));
	return true;
}

#endif

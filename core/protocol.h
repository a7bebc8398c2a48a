/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The data plane: what clients do in the pages without a request to the host.
 *
 * PURE: it takes no lock, allocates nothing, opens no file, reads no clock and logs
 * nothing. The host provides the pages; two seams (env.h and struct xm_map) say how
 * they are reached. xmem.ko, libxmem, xmemd and the tests compile the same files.
 *
 *   pool   a table of slots and the clients that use it
 *   slot   one place in the table; its *owner* alone publishes and reclaims it
 *   token  generation << 16 | slot; it names one content of one slot for ever
 *   hold   one client's count of its references to one slot, in that client's area
 *   ring   a publisher's log of its last publications; each subscriber has a cursor
 *   limbo  LIVE contents that their owner wants back while others still use them
 *   claim  a reference that is set aside for a client yet unknown: a number for each slot
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
 * If the slot's payload is shared, its host does more for a client that alone holds it; then the
 * owner begins a scan by CAS, too, and leaves alone what the host has marked (upgrade.c):
 *
 *   LIVE      -> SCANNING  the host begins a scan                  scan + 1
 *   SCANNING  -> LIVE      another client holds it                 scan as before
 *   SCANNING  -> UPGRADED  nobody else does                        generation + 1
 *   UPGRADED  -> LIVE      the client publishes
 *   UPGRADED  -> FREE      the client gives it up, or has ended
 *
 * Each invariant has a model in tests/model and a mutant in tests/mutants:
 *
 *   I1 A client takes a hold, then looks at the word (or the entry) that allows it.
 *      The owner marks the slot SCANNING (or the entry void), then looks at the
 *      holds. On each side a full barrier stands between the two steps, so at least
 *      one side sees what the other did. Holds of a client that is not among the *holders*
 *      of the slot's group are not looked at. So who is not so everywhere looks whether it is
 *      there (xm_may_hold) before it looks at the word by which it gets something.
 *   I2 A scan looks at the client table, then at the cursors, then at the holds. A
 *      reference moves the same way (in flight -> held), so no scan misses it.
 *   I3 A slot is in flight while a subscriber may still receive its entry. It is not
 *      reclaimed before that entry is void or overwritten.
 *   I4 A cursor never moves back. The operations of one owner are serial, and so are
 *      the operations on one cursor.
 *   I5 A waker makes the condition true, then reads the waiters word. A client that is
 *      going to sleep arms the word, then tests the condition. Full barriers stand between.
 *   I6 After the mark SCANNING nobody completes a get of that slot, and to receive a
 *      forwarded entry is a get. So from then on a reference moves inside one client
 *      only, from its hold to its ring, and the hold says that there was one. The scan
 *      looks at all holds, then at the rings of those that have forwarded the slot.
 *   I7 A claim is added as a hold is taken (I1): it is added, then the state word is looked
 *      at, unless there were claims already; and the owner marks the slot, then looks at the
 *      claims. A get takes its hold, then the claim. So while a slot is SCANNING, references
 *      move neither from holds to claims nor back, and no scan misses one.
 *
 *   I8 Who opens a CUDA payload is its opener before it has the handle or the descriptor, and
 *      until it has closed it. A payload is closed when it has no slot, and then no opener. An
 *      owner frees its memory after that. So nobody has memory open that its owner has freed.
 *   I9 A client sets XM_HOLD_DEVICE in a hold before it hands out a pointer of a GPU. At its end
 *      those holds stay, and what it has open stays open, until its process has exited, and with
 *      it all that its GPU was doing (quarantine). So a slot is free only when no GPU writes or
 *      reads it for a client that has ended.
 *
 *   I10 In the daemon's pools the owner of contents that it holds may add claims by itself: if
 *      there are none, and it has not done so for these contents. With them it stores the
 *      generation of these contents where the first of the tenancy was. So whoever has noted
 *      something of earlier claims sees by the generation that they have gone, and leaves these
 *      alone; and what is in no list is the owner's. Since the owner holds the contents until
 *      then, and a scan looks at the holds, then at the claims, no scan misses them. An upgrade
 *      with that very hold may: so the owner looks at the state word after it, as in I7.
 *
 * Threads: xm_get, xm_put and xm_hold_more may run anywhere at any time. The owner's
 * functions (xm_take, xm_scan, xm_publish, xm_give_up) are serial per client, and
 * xm_receive is serial per cursor; the caller ensures both.
 *
 * Layers. A file of core/ calls only files on earlier lines; tests/check-layers.sh reads this
 * table and checks it.
 *
 *   access.c         who may join a pool, and in which roles
 *   layout.c         where each part of the pages is
 *   request.c        the table of requests
 *   claims.c         claims: what a client does with them
 *   ring.c           publishing and receiving
 *   history.c        publications from before a subscription began
 *   policy.c         whom an owner waits for, and what it may evict
 *   forward.c        buffers of others in a client's own ring
 *   scan.c           an owner looks for slots that nobody uses
 *   retract.c        a publisher takes publications back
 *   search.c         would an acquire succeed?
 *   poll.c           is a descriptor readable, is it writable?
 *   claims_list.c    the host's list of slots with claims
 *   claims_request.c the request claim
 *   claims_end.c     the host voids claims
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

/* What the caller still has to do after it dropped a hold or moved a cursor (I5). */
struct xm_pending {
	enum { XM_NOTHING, XM_WAKE_OWNER, XM_TELL_HOST } what;
	u32 who;			/* XM_WAKE_OWNER: client; XM_TELL_HOST: slot */
};

/* Take one more hold of a slot that this client holds already. -EOVERFLOW: beyond 2^28. */
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

/* Does the owner, or the host, want to know that the last hold of this client has gone? */
static inline struct xm_pending xm_put_pending(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);

	if (__builtin_expect(owner < map->clients, 1)) {
		if (__builtin_expect(xm_test(&xm_client_row(map, owner)->slots_waiters,
					    XMEM_WAITERS_ARMED), 0))
			return (struct xm_pending){ XM_WAKE_OWNER, owner };
	} else if (owner == XMEM_OWNER_HOST) {
		return (struct xm_pending){ XM_TELL_HOST, slot };
	}
	return (struct xm_pending){ XM_NOTHING, 0 };
}

/*
 * Drop one hold; @hold is where this client counts those of @slot. The caller must have one; if
 * it has none, nothing changes.
 */
static inline struct xm_pending xm_put_at(const struct xm_map *map, u32 *hold, u32 slot)
{
	u32 old;

	XM_STEP(XM_STEP_PUT_BEFORE);
	old = xm_add_full(hold, -1u) & XM_HOLD_COUNT;
	XM_STEP(XM_STEP_PUT_DROPPED);
	if (__builtin_expect(old == 1, 1))
		return xm_put_pending(map, slot);
	if (!old)	/* The caller had none: the slot looks busy for a moment at worst. */
		xm_add_full(hold, 1);
	return (struct xm_pending){ XM_NOTHING, 0 };
}

static inline struct xm_pending xm_put(const struct xm_map *map, u32 me, u32 slot)
{
	return xm_put_at(map, xm_hold(map, me, slot), slot);
}

/*
 * Is the content that @token names still there? The caller has taken a hold before.
 * 0: it is held. -ESTALE: it is gone; the caller puts the hold. -EAGAIN: its owner is
 * scanning it; look again, and if that does not change ask the host to resolve it.
 */
int xm_look(const struct xm_map *map, u64 token);

/* The common answer of xm_look: 0. -EAGAIN: it is not certain at once, and xm_look says more. */
static inline int xm_look_at_once(const struct xm_map *map, u64 token)
{
	u64 slot = token & 0xffff;	/* 64 bits save instructions */
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	/* If the word has the token's generation and LIVE, this is its scan number << 3. */
	u64 scan = word + slot - XMEM_SLOT_LIVE - token;

	/* With claims the upper bits differ. */
	if (__builtin_expect(!xm_in_tenancy(xm_generation(token),
					    xm_load(&xm_slot_row(map, slot)->generation_first)), 0))
		return -EAGAIN;
	return __builtin_expect((scan >> 3 | scan << 61) <= 0x1fff, 1) ? 0 : -EAGAIN;
}

/*
 * Does what this client holds count whosever it is? If it does it does so for the client's life. A
 * client for which it does not asks xm_may_hold, for each get: scans do not see its hold if it may
 * not have it.
 */
static inline bool xm_is_counted(const struct xm_map *map, u32 me)
{
	return xm_load_acquire(&map->pool->counted[me / 64]) >> me % 64 & 1;
}

/* Does what @client says that it holds of @slot count? A client that is not there has no bit. */
static inline bool xm_holds_count(const struct xm_map *map, u32 client, u32 slot)
{
	return xm_load_acquire(&xm_group_row(map, slot / XMEM_GROUP_SLOTS)->holders[client / 64]) >>
	       client % 64 & 1;
}

/*
 * May @me, who is not counted, hold what @token names? 0: its hold of that counts. The caller looks
 * at the state word after this: it does not matter when it takes its hold, for a scan that has not
 * looked at it has marked the slot before this, and whoever looks sees the mark. -EACCES: no.
 * -ESTALE: it is gone.
 */
int xm_may_hold(const struct xm_map *map, u32 me, u64 token);

/*
 * Take a hold on the content that @token names. 0: it is held. -EAGAIN: the hold is taken, and
 * xm_look says whether it is good. -EOVERFLOW: there are 2^28 without it; the caller puts it.
 * @holds: this client's, by slot. The caller has made sure that there is such a slot.
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
 * The same with all answers of xm_look; after an error the hold stays, but for -EOVERFLOW and
 * -EINVAL: there is no such slot.
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

/* Does any slot have claims? A scan asks, once it has marked its slots (I7). */
static inline bool xm_any_claims(const struct xm_map *map)
{
	return __builtin_expect(xm_load_acquire(&map->pool->claimed) != 0, 0);
}

/* Which slots of @group that are in the bitmap @among have claims? */
u64 xm_group_claimed(const struct xm_map *map, u32 group, u64 among);

/*
 * Take @count claims of a slot that the caller holds, or else has the right to, if they are of the
 * generation @last or of one before it. -ERANGE: there are not so many; nothing changes.
 */
int xm_claim_take(const struct xm_map *map, u32 slot, u64 last, u32 count);

/*
 * The owner sets @count claims aside by itself, for as long as it lives, for contents of its own
 * that it holds (I10). -EAGAIN: it cannot, and has to ask the host. For clients that write the
 * rows; until one of their requests has told the host, `claimed` may be 0, and then it cannot.
 */
int xm_claim_alone(const struct xm_map *map, u32 me, u64 token, u32 count);

/* ---- the owner (scan.c, ring.c) ---- */

/* In whose ring the scanned slots were published, and two of its places (policy.h). */
struct xm_scan_rules {
	u64 tail;
	u64 passed;			/* below it nobody can still receive a publication */
	u64 evictable;			/* below it a publication may be evicted */
	u32 owner;			/* client id, or XMEM_OWNER_NONE: no ring any more */
	u64 evicts;			/* 0, or 1 + the ns that the owner has waited: what
					 * others have forwarded is in use only as long as they
					 * wait for who is to receive it, within their bound */
	bool in_order;			/* the slots are given in the order of their positions: none
					 * is looked at beyond the first that is in flight */
	bool shared;			/* the host may change their words for other clients */
};

/*
 * Can a publication of @position (1 + its place) still be received by somebody whose cursor
 * is @from or more (I3)?
 */
static inline bool xm_in_flight(const struct xm_map *map, u64 tail, u64 from, u64 position)
{
	u64 place = position - 1;

	/* Position 0: never published. Beyond the tail: the owner ended before the entry. */
	if (place >= tail || place < from)
		return false;
	/* If it is overwritten, the publication a whole ring later is complete. */
	return place + map->ring_mask + 1 >= tail;
}

/* FREE -> WRITING with the next generation. -EBUSY: the slot is not FREE. */
int xm_take(const struct xm_map *map, u32 slot);

/* WRITING -> FREE. -EBUSY: the slot is not WRITING. */
int xm_give_up(const struct xm_map *map, u32 slot);

/*
 * Which slots of @group that are in the bitmap @among are held, or forwarded in a ring in which
 * somebody may still receive them? @evicts: as in struct xm_scan_rules. ret_holder[i], unless
 * it is NULL, becomes a client that holds the i-th slot of the group, or has forwarded it.
 */
u64 xm_group_used(const struct xm_map *map, u32 group, u64 among, u64 evicts, u8 *ret_holder);

/*
 * The first half of that: which of them are held? *ret_forwarded becomes a bitmap of others, which
 * some client has noted as forwarded.
 */
u64 xm_group_held(const struct xm_map *map, u32 group, u64 among, u64 *ret_forwarded);

/*
 * The second half (forward.c), after a look at all holds (I6): which of these slots,
 * which nobody holds, may still be received as somebody has forwarded them?
 */
u64 xm_group_forwarded(const struct xm_map *map, u32 group, u64 among, u64 evicts,
		       u8 *ret_holder);

/* A walk through what a publisher's ring says that it has forwarded, and that is still in use. */
struct xm_walk {
	u32 publisher;
	u64 tail;
	u64 left;			/* at most a lap and one */
};

/* @evicts: as in struct xm_scan_rules. */
void xm_walk_begin(const struct xm_map *map, u32 publisher, u64 evicts, struct xm_walk *ret);

/*
 * The next slot that the ring names with its present contents, and that the publisher's hold says
 * it has forwarded, of those in the bitmaps @among, one for each group. false: there are no more.
 */
bool xm_walk_next(const struct xm_map *map, struct xm_walk *walk, const u64 *among, u32 *ret_slot);

/* A slot as its owner remembers it: what a scan would otherwise compute each time. */
struct xm_own {
	struct xmem_slot_word *word;
	u64 bit;			/* its place in its group, as a bitmap */
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
 * The scan: which of @count (1 to 64) slots of the owner does nobody use? Those become WRITING
 * with the next generation and position 0; the others are LIVE as before, and ret_holder[i],
 * unless @ret_holder is NULL, becomes a client that holds own[i] if there is one. Slots that
 * are not LIVE, or in flight at or above how->evictable, are left alone. Returns the bitmap
 * of the slots that are the caller's now, by their place in @own.
 */
u64 xm_scan(const struct xm_map *map, const struct xm_scan_rules *how,
	    struct xm_own *const *own, u32 count, u8 *ret_holder);

/* The same for one slot of which its owner does not remember where the word is. */
static inline bool xm_scan_one(const struct xm_map *map, const struct xm_scan_rules *how, u32 slot)
{
	struct xm_own own = xm_own(map, slot), *one = &own;
	struct xm_scan_rules rules = *how;

	rules.shared = xm_load(&xm_slot_row(map, slot)->traits) & XMEM_TRAIT_SHARED;
	return xm_scan(map, &rules, &one, 1, NULL);
}

/* What goes into an entry beside its position. */
struct xm_publication {
	u64 token;
	u64 sequence;
	u64 timestamp_ns;
	u64 offset;			/* bytes into the slot's payload */
	u64 length;			/* bytes */
};

/*
 * WRITING -> LIVE, and an entry in the ring. Fills @what's token and sequence (the
 * place). true: a subscriber sleeps until there is one, and the caller has to wake the
 * ring's waiters. The slot must be the caller's and WRITING.
 */
bool xm_publish(const struct xm_map *map, u32 me, u32 slot, struct xm_publication *what);

/*
 * WRITING -> LIVE without an entry: only those who know the token, which this returns, have a way
 * to the contents. The caller holds the slot, or it has claims.
 */
u64 xm_make_live(const struct xm_own *own);

/* ---- the subscriber (ring.c) ---- */

/*
 * Does the entry of @place, whose position this is, still show the publication a whole ring
 * before? Then its publisher, if it is alive, has not begun with @place, so there is nothing
 * yet, and nothing is lost: it opens an entry before all else and moves the tail last. An open
 * entry (0) says nothing, for its publisher may have stopped there a lap later.
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
	u64 lost;			/* publications that it can no longer receive */
};

/*
 * Try once to receive the next publication. 0: *what is filled and one hold is taken.
 * -EAGAIN: there is none yet. -EPIPE: the publisher has ended and nothing is left.
 * -EBUSY: the entry changed meanwhile, or is one for another subscriber, or its slot is being
 * scanned; call again (bounded). *pending is to be done after every result.
 */
int xm_receive(const struct xm_map *map, u32 me, struct xm_follow *follow,
	       struct xm_publication *what, struct xm_pending *pending);

/* Is there something to receive at @place, or has the publisher ended? For poll and wait. */
bool xm_ready(const struct xm_map *map, u32 publisher, u64 incarnation, u64 place);

/* ---- waiters words: of the host, and in the daemon's pools of the library too ---- */

/* Arm the word and return the value to wait on. The caller tests the condition after it (I5). */
static inline u32 xm_arm(u32 *waiters)
{
	u32 old;

	do
		old = xm_load(waiters);
	while (!xm_cas_full(waiters, old, old | XMEM_WAITERS_ARMED));
	return old | XMEM_WAITERS_ARMED;
}

/* Has nobody disarmed the word since xm_arm returned @value? */
static inline bool xm_still_armed(u32 *waiters, u32 value)
{
	return !((xm_load_acquire(waiters) ^ value) & ~XMEM_WAITERS_ARMED);
}

/* Disarm the word and count the wake-up. true: somebody sleeps, and the caller wakes all. */
static inline bool xm_disarm(u32 *waiters)
{
	u32 old;

	do {
		old = xm_load(waiters);
		if (!(old & XMEM_WAITERS_ARMED))
			return false;
	} while (!xm_cas_full(waiters, old, (old + XMEM_WAITERS_STEP) & ~XMEM_WAITERS_ARMED));
	return true;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The data plane: what clients do in the pages without asking anybody.
 *
 * PURE: no locks, no allocation, no files, no clock, no logging. The host gives
 * the pages; two seams (env.h, struct xm_map) say how they are reached.
 * Compiled unchanged into xmem.ko, libxmem, xmemd and the tests.
 *
 *   pool   a table of slots and the clients that use it
 *   slot   one place in the table; its *owner* alone publishes and reclaims it
 *   token  generation << 16 | slot: one content of one slot, for ever
 *   hold   one client's count of its references to one slot, in its own area
 *   ring   a publisher's log of its last publications; subscribers have cursors
 *   limbo  LIVE contents that their owner would have back and others still use
 *
 * A slot's state word is generation << 16 | scan number << 3 | state:
 *
 *   FREE      -> WRITING   the owner takes it                    generation + 1
 *   WRITING   -> LIVE      the owner publishes it
 *   WRITING   -> FREE      the owner gives it up
 *   LIVE      -> SCANNING  the owner's scan begins               scan + 1
 *   SCANNING  -> WRITING   nobody had it, by CAS                 generation + 1
 *   SCANNING  -> LIVE      somebody has it, or the host resolved it, by CAS
 *
 * The invariants, each with a model in tests/model and a mutant in tests/mutants:
 *
 *   I1 A hold is taken before the word (or the entry) that allows it is looked
 *      at; the owner marks SCANNING (or the entry void) before it looks at the
 *      holds; both with a full barrier between. So one of the two sees the other.
 *   I2 A scan looks at the client table, then cursors, then holds: the way that
 *      a reference moves (in flight -> held) is the way that the scan looks.
 *   I3 A slot whose entry a subscriber may still receive is in flight, and not
 *      reclaimed before the entry is void or overwritten.
 *   I4 A cursor never goes back; owner operations are serial; each cursor's are.
 *   I5 Who makes a condition true looks at the waiters word after it, who will
 *      sleep arms the word before he looks at the condition, full barriers between.
 *
 * Threads: xm_get, xm_put and xm_hold_more may run anywhere at any time. The
 * owner's functions (xm_take, xm_scan, xm_publish, xm_give_up) are serial per
 * client, xm_receive per cursor; the caller sees to that.
 */
#ifndef XM_PROTOCOL_H
#define XM_PROTOCOL_H

#include "env.h"
#include <xmem/uapi.h>

/*
 * Where the pages are, for whoever runs the protocol. Own ones writable. Strides
 * and offsets are the header's, copied once; no sizeof of this version counts.
 */
struct xm_map {
	struct xmem_pool_header *pool;
	void *client_rows;			/* the first; see xm_client_row */
	void *slot_rows;			/* the first; see xm_slot_row */
	u32 clients;
	u32 slots;
	u32 ring_mask;				/* ring entries - 1 */
	u32 groups;
	u32 client_row_stride;
	u32 slot_row_stride;
	u32 cursor_stride;
	u32 entry_stride;
	u32 metadata_stride;
	u32 metadata_offset;			/* into a group */
	u64 ring_offset;			/* these three into an area */
	u64 entries_offset;
	u64 holds_offset;
	void *area[XMEM_MAX_CLIENTS];		/* NULL only where nobody is (the kernel's view) */
	struct xmem_group *group[XMEM_MAX_GROUPS];
};

/* Where a test may delay, stop or kill a process: between any two shared stores. */
enum xm_step {
	XM_STEP_GET_HELD,		/* get: hold taken, word not yet looked at */
	XM_STEP_GET_DONE,		/* get: about to return */
	XM_STEP_PUT_BEFORE,
	XM_STEP_PUT_DROPPED,		/* put: hold dropped, nobody woken yet */
	XM_STEP_TAKE_WRITING,		/* acquire: slot WRITING */
	XM_STEP_SCAN_SCANNING,		/* scan: slots marked, nothing looked at */
	XM_STEP_SCAN_CURSORS,		/* scan: cursors read, holds not */
	XM_STEP_SCAN_VOID,		/* scan: entries evicted, holds not read */
	XM_STEP_SCAN_HOLDS,		/* scan: holds read, verdict not written */
	XM_STEP_PUBLISH_POSITION,	/* publish: position recorded, not LIVE */
	XM_STEP_PUBLISH_LIVE,		/* publish: LIVE, entry untouched */
	XM_STEP_PUBLISH_OPEN,		/* publish: entry open (position 0) */
	XM_STEP_PUBLISH_FIELDS,		/* publish: fields written */
	XM_STEP_PUBLISH_ENTRY,		/* publish: entry complete, tail not moved */
	XM_STEP_PUBLISH_TAIL,		/* publish: tail moved, nobody woken */
	XM_STEP_RECEIVE_READ,		/* receive: fields read, no hold */
	XM_STEP_RECEIVE_HELD,		/* receive: hold taken, entry not looked at again */
	XM_STEP_RECEIVE_VALID,		/* receive: valid, cursor not moved */
	XM_STEP_RECEIVE_CURSOR,		/* receive: cursor moved, nobody woken */
	XM_STEPS
};

/* ---- words ---- */

#define XM_HOLD_COUNT	0x3fffffffu	/* the rest of a hold word is reserved */
#define XM_HOLD_LIMIT	0x20000000u	/* half of it: threads that pass it at once never carry it round to 0 */

static inline u64 xm_word(u64 generation, u64 scan, u32 state)
{
	return generation << 16 | (scan & 0x1fff) << 3 | state;
}

static inline u64 xm_generation(u64 word_or_token)
{
	return word_or_token >> 16;
}

static inline u64 xm_scan_number(u64 word)
{
	return word >> 3 & 0x1fff;
}

static inline u32 xm_state(u64 word)
{
	return word & 7;
}

static inline u64 xm_token(u64 generation, u32 slot)
{
	return generation << 16 | slot;
}

static inline u32 xm_token_slot(u64 token)
{
	return token & 0xffff;
}

/* Is it one of the generations that the host gave this tenancy of the slot? */
static inline bool xm_in_tenancy(u64 generation, u64 first)
{
	return generation >= first && !((generation ^ first) >> XMEM_TENANCY_SHIFT);
}

/* ---- places ---- */

static inline struct xmem_client_row *xm_client_row(const struct xm_map *map, u32 client)
{
	return (void *)((char *)map->client_rows + (size_t)client * map->client_row_stride);
}

static inline struct xmem_slot_row *xm_slot_row(const struct xm_map *map, u32 slot)
{
	return (void *)((char *)map->slot_rows + (size_t)slot * map->slot_row_stride);
}

static inline struct xmem_slot_word *xm_slot(const struct xm_map *map, u32 slot)
{
	return &map->group[slot / XMEM_GROUP_SLOTS]->word[slot % XMEM_GROUP_SLOTS];
}

static inline struct xmem_metadata *xm_metadata(const struct xm_map *map, u32 slot)
{
	return (void *)((char *)map->group[slot / XMEM_GROUP_SLOTS] + map->metadata_offset +
			slot % XMEM_GROUP_SLOTS * map->metadata_stride);
}

/* Coloured by client, so that one slot's holds do not share one cache set. */
static inline u32 *xm_hold(const struct xm_map *map, u32 client, u32 slot)
{
	return (u32 *)((char *)map->area[client] + map->holds_offset + client % 16 * 256) + slot;
}

static inline u64 *xm_cursor(const struct xm_map *map, u32 client, u32 publisher)
{
	return &((struct xmem_cursor *)((char *)map->area[client] +
					(size_t)publisher * map->cursor_stride))->position;
}

static inline struct xmem_ring *xm_ring(const struct xm_map *map, u32 client)
{
	return (struct xmem_ring *)((char *)map->area[client] + map->ring_offset);
}

static inline struct xmem_entry *xm_entry(const struct xm_map *map, u32 client, u64 place)
{
	return (void *)((char *)map->area[client] + map->entries_offset +
			(place & map->ring_mask) * map->entry_stride);
}

static inline bool xm_bit(const u64 *words, u32 bit)
{
	return xm_load(&words[bit / 64]) >> bit % 64 & 1;
}

/* ---- holding ---- */

/* What the caller still owes after a hold was dropped or a cursor moved (I5). */
struct xm_pending {
	enum { XM_NOTHING, XM_WAKE_OWNER, XM_TELL_HOST } what;
	u32 who;			/* XM_WAKE_OWNER: client; XM_TELL_HOST: slot */
};

/* One more hold of a slot that the caller's client holds already. -EOVERFLOW past 2^29. */
static inline int xm_hold_more(const struct xm_map *map, u32 me, u32 slot)
{
	u32 *hold = xm_hold(map, me, slot);

	if (__builtin_expect((xm_add_full(hold, 1) & XM_HOLD_COUNT) >= XM_HOLD_LIMIT, 0)) {
		xm_add_full(hold, -1u);
		return -EOVERFLOW;
	}
	return 0;
}

/* Does the owner, or the host, want to know that my last hold has gone? */
static inline struct xm_pending xm_put_pending(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);

	if (__builtin_expect(owner < map->clients, 1)) {
		if (__builtin_expect(xm_load(&xm_client_row(map, owner)->slots_waiters) & XMEM_WAITERS_ARMED, 0))
			return (struct xm_pending){ XM_WAKE_OWNER, owner };
	} else if (owner == XMEM_OWNER_HOST) {
		return (struct xm_pending){ XM_TELL_HOST, slot };
	}
	return (struct xm_pending){ XM_NOTHING, 0 };
}

/* Drop one hold. The caller has one; if not, nothing changes. */
static inline struct xm_pending xm_put(const struct xm_map *map, u32 me, u32 slot)
{
	u32 *hold = xm_hold(map, me, slot);
	u32 old;

	XM_STEP(XM_STEP_PUT_BEFORE);
	old = xm_add_full(hold, -1u) & XM_HOLD_COUNT;
	XM_STEP(XM_STEP_PUT_DROPPED);
	if (__builtin_expect(old == 1, 1))
		return xm_put_pending(map, slot);
	if (!old)
		xm_add_full(hold, 1);	/* garbage of our own making: at worst a moment busy */
	return (struct xm_pending){ XM_NOTHING, 0 };
}

/*
 * Look whether the content that @token names is there, the hold being taken.
 * 0: held. -ESTALE: it is not; the caller puts. -EAGAIN: its owner is looking
 * for holders; look again, and if it stays so ask the host to resolve it.
 */
static inline int xm_look(const struct xm_map *map, u64 token)
{
	u32 slot = xm_token_slot(token);
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);

	if (__builtin_expect(xm_generation(word) != xm_generation(token) ||
			     !xm_in_tenancy(xm_generation(token), xm_load(&xm_slot_row(map, slot)->generation_first)), 0))
		return -ESTALE;
	if (__builtin_expect(xm_state(word) == XMEM_SLOT_LIVE, 1))
		return 0;
	return xm_state(word) == XMEM_SLOT_SCANNING ? -EAGAIN : -ESTALE;
}

/*
 * Take a hold on the content that @token names. 0: held. -ESTALE: gone, or
 * another pool's; put by the caller with xm_put. -EAGAIN: as xm_look, and the
 * hold stays. -EOVERFLOW, -EINVAL (no such slot): no hold is left.
 */
static inline int xm_get(const struct xm_map *map, u32 me, u64 token)
{
	u32 slot = xm_token_slot(token);
	int err;

	if (__builtin_expect(slot >= map->slots, 0))
		return -EINVAL;
	err = xm_hold_more(map, me, slot);
	if (__builtin_expect(err, 0))
		return err;
	XM_STEP(XM_STEP_GET_HELD);
	err = xm_look(map, token);
	XM_STEP(XM_STEP_GET_DONE);
	return err;
}

/* ---- the owner (scan.c, ring.c) ---- */

/* How the owner looks at its subscribers. */
struct xm_scan_rules {
	u32 owner;			/* client id */
	u32 depth;			/* last entries that an eviction spares */
	bool evict;			/* take from subscribers that may lose the oldest */
	const u64 *demoted;		/* bitmap: subscribers that waited for too long; or NULL */
};

/* FREE -> WRITING, the next generation. -EBUSY: it is not FREE. */
int xm_take(const struct xm_map *map, u32 slot);

/* WRITING -> FREE. -EBUSY: it is not WRITING. */
int xm_give_up(const struct xm_map *map, u32 slot);

/*
 * The scan: which of @count (<= 64) LIVE slots of the owner does nobody have?
 * Those become WRITING with the next generation; the others are LIVE as before.
 * Returns the bitmap of those that are the caller's now, by place in @slot.
 */
u64 xm_scan(const struct xm_map *map, const struct xm_scan_rules *how, const u32 *slot, u32 count);

/*
 * The least cursor of the subscribers for which @owner waits, at most the tail.
 * tail + writes planned - this must not pass the ring's entries.
 */
u64 xm_least_waiting(const struct xm_map *map, u32 owner, const u64 *demoted);

/* What goes into an entry beside its position. */
struct xm_publication {
	u64 token;
	u64 sequence;
	u64 timestamp_ns;
	u64 offset;			/* bytes into the slot's payload */
	u64 length;			/* bytes */
};

/*
 * WRITING -> LIVE and into the ring. Fills @what's token and sequence (the
 * place). true: somebody sleeps for it, the caller owes a wake of the ring.
 * The slot is the caller's and WRITING.
 */
bool xm_publish(const struct xm_map *map, u32 me, u32 slot, struct xm_publication *what);

/* ---- the subscriber (ring.c) ---- */

/* One subscription, in its subscriber's private memory. */
struct xm_follow {
	u32 publisher;			/* client id */
	bool waits;			/* its publisher waits for me */
	u64 incarnation;		/* of the publisher */
	u64 joined;			/* where my cursor stood at first */
	u64 place;			/* my cursor */
	u64 lost;			/* publications that I shall never see */
};

/*
 * Receive the next publication, one attempt. 0: *what is filled, one hold taken.
 * -EAGAIN: nothing there. -EPIPE: its publisher has ended and nothing is left.
 * -EBUSY: it moved under our feet, call again (bounded). *pending is owed in any case.
 */
int xm_receive(const struct xm_map *map, u32 me, struct xm_follow *follow, struct xm_publication *what,
	       struct xm_pending *pending);

/* Is there something to receive (or an end to see) at @place? For poll and wait. */
bool xm_ready(const struct xm_map *map, u32 publisher, u64 incarnation, u64 place);

/* ---- waiters words; the host's, in the daemon's pools also the library's ---- */

/* Arm, and return the value to wait on; look at the condition after it (I5). */
static inline u32 xm_arm(u32 *waiters)
{
	u32 old;

	do
		old = xm_load(waiters);
	while (!xm_cas_full(waiters, old, old | XMEM_WAITERS_ARMED));
	return old | XMEM_WAITERS_ARMED;
}

/* Has nobody woken since xm_arm gave @value? */
static inline bool xm_still_armed(u32 *waiters, u32 value)
{
	return !((xm_load_acquire(waiters) ^ value) & ~XMEM_WAITERS_ARMED);
}

/* Clear and count; true: somebody slept and is to be woken, all of them. */
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

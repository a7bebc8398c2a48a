/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The words in the pages: how each is composed, and where it is. protocol.h defines the terms. */
#ifndef XM_PLACES_H
#define XM_PLACES_H

#include "env.h"
#include <xmem/uapi.h>

/*
 * Where the pages are in the mapping of the process that runs the protocol. A client maps its own
 * pages writable. The strides and offsets are copied once from the header of the pool; they may
 * differ from the sizeof of this version's structs.
 */
struct xm_map {
	struct xmem_pool_header *pool;
	void *client_rows;			/* the first row; see xm_client_row */
	void *slot_rows;			/* the first row; see xm_slot_row */
	u32 clients;
	u32 slots;
	u32 ring_mask;				/* ring entries - 1 */
	u32 groups;
	u32 client_row_stride;
	u32 slot_row_stride;
	u32 cursor_stride;
	u32 entry_stride;
	u32 metadata_stride;
	u32 metadata_offset;			/* bytes into a group; so is ready_offset */
	u32 ready_offset;
	u32 device_row_stride;
	u64 ring_offset;			/* bytes into an area, as the next two */
	u64 entries_offset;
	u64 holds_offset;
	void *device_rows;			/* the first row; see xm_device_row */
	struct xmem_group_row *group_rows;
	void *area[XMEM_MAX_CLIENTS];		/* NULL: there is no such client (only in the
						 * kernel) */
	struct xmem_group *group[XMEM_MAX_GROUPS];
};

/* ---- words ---- */

#define XM_HOLD_COUNT	0x1fffffffu
/*
 * This client has forwarded the slot. It sets the bit before the first entry, for its whole life.
 */
#define XM_HOLD_FORWARDED 0x40000000u
/*
 * This client's library has handed out a GPU pointer to the slot. It sets the bit before it does
 * so, for the client's whole life (I9).
 */
#define XM_HOLD_DEVICE	0x80000000u
/*
 * The limit is half of the count, so that no number of threads that exceed it together can make the
 * count wrap to 0.
 */
#define XM_HOLD_LIMIT	0x10000000u

static inline u64 xm_word(u64 generation, u64 scan, u32 state)
{
	return generation << 16 | (scan & 0x1fff) << 3 | state;
}

/* The position in an entry's word, without its flags. */
static inline u64 xm_position(u64 position)
{
	return position & ~(XMEM_ENTRY_VOID | XMEM_ENTRY_MARKED);
}

/* Adding this to a state word raises its generation and keeps scan number and state. */
#define XM_ONE_GENERATION	(1ULL << 16)

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

/* LIVE -> SCANNING with the next scan number, which has 13 bits and wraps. */
static inline u64 xm_scanning(u64 live)
{
	u16 scanning = live + (1 << 3) - XMEM_SLOT_LIVE + XMEM_SLOT_SCANNING;

	return (live & ~0xffffULL) | scanning;
}

static inline u64 xm_token(u64 generation, u32 slot)
{
	return generation << 16 | slot;
}

static inline u32 xm_token_slot(u64 token)
{
	return token & 0xffff;
}

/*
 * generation_first of a slot without a tenant: no token is in its range, whatever the state word in
 * its owner's page says (P5).
 */
#define XM_NO_GENERATIONS	(~0ULL)

/* The two parts of a row's generation_first. */
static inline u64 xm_first_generation(u64 generation_first)
{
	return generation_first == XM_NO_GENERATIONS ? XM_NO_GENERATIONS :
	       generation_first & ((1ULL << XMEM_CLAIMS_SHIFT) - 1);
}

static inline u32 xm_claims(u64 generation_first)
{
	return generation_first == XM_NO_GENERATIONS ? 0 : generation_first >> XMEM_CLAIMS_SHIFT;
}

/*
 * Did the host give @generation to this tenancy of the slot? @first is the row's generation_first.
 * If that contains claims the answer is no, and xm_look then asks again without them.
 */
static inline bool xm_in_tenancy(u64 generation, u64 first)
{
	return generation >= first && !((generation ^ first) >> XMEM_TENANCY_SHIFT);
}

/*
 * A slot that has used up its tenancies is not used again in this pool: an owner that could make an
 * old range of generations return could revive old tokens (P5).
 */
#define XM_TENANCIES	((1u << (XMEM_GENERATION_BITS - XMEM_TENANCY_SHIFT)) - 1)

static inline bool xm_worn_out(const struct xmem_slot_row *row)
{
	return xm_load(&row->tenancies) >= XM_TENANCIES;
}

/* The device in a row's traits: 0 is the CPU, else 1 + the row in the device table. */
static inline u32 xm_device(u32 traits)
{
	return traits >> XMEM_TRAIT_DEVICE_SHIFT;
}

/* ---- places ---- */

/*
 * In the kernel another thread may read this pointer, without a lock, while the host replaces the
 * pages.
 */
static inline void *xm_area(const struct xm_map *map, u32 client)
{
	return xm_place(map->area[client]);
}

static inline struct xmem_group *xm_group(const struct xm_map *map, u64 group)
{
	return xm_place(map->group[group]);
}

static inline struct xmem_client_row *xm_client_row(const struct xm_map *map, u32 client)
{
	return (void *)((char *)map->client_rows + (size_t)client * map->client_row_stride);
}

static inline struct xmem_slot_row *xm_slot_row(const struct xm_map *map, u64 slot)
{
	return (void *)((char *)map->slot_rows + (size_t)slot * map->slot_row_stride);
}

static inline struct xmem_slot_word *xm_slot(const struct xm_map *map, u64 slot)
{
	return &xm_group(map, slot / XMEM_GROUP_SLOTS)->word[slot % XMEM_GROUP_SLOTS];
}

static inline struct xmem_metadata *xm_metadata(const struct xm_map *map, u32 slot)
{
	return (void *)((char *)xm_group(map, slot / XMEM_GROUP_SLOTS) + map->metadata_offset +
			slot % XMEM_GROUP_SLOTS * map->metadata_stride);
}

/* The ready word of @slot: how far the GPU of its owner has got. */
static inline u64 *xm_ready_word(const struct xm_map *map, u32 slot)
{
	return (u64 *)((char *)xm_group(map, slot / XMEM_GROUP_SLOTS) + map->ready_offset) +
	       slot % XMEM_GROUP_SLOTS;
}

/* @device: 1 to XMEM_MAX_DEVICES. */
static inline struct xmem_device_row *xm_device_row(const struct xm_map *map, u32 device)
{
	return (void *)((char *)map->device_rows + (size_t)(device - 1) * map->device_row_stride);
}

static inline struct xmem_group_row *xm_group_row(const struct xm_map *map, u64 group)
{
	return &map->group_rows[group];
}

/*
 * A client's hold word for a slot, in @area: the present area of that client, an earlier or a later
 * one. The place depends on the client, so that the hold words of one slot do not share one cache
 * set.
 */
static inline u32 *xm_hold_in(const struct xm_map *map, void *area, u32 client, u32 slot)
{
	return (u32 *)((char *)area + map->holds_offset + client % 16 * 256) + slot;
}

static inline u32 *xm_hold(const struct xm_map *map, u32 client, u32 slot)
{
	return xm_hold_in(map, xm_area(map, client), client, slot);
}

/* In the area of @client: its cursor in the ring of @other, and its demotion of @other. */
static inline struct xmem_cursor *xm_cursor_of(const struct xm_map *map, u32 client, u32 other)
{
	return (void *)((char *)xm_area(map, client) + (size_t)other * map->cursor_stride);
}

static inline u64 *xm_cursor(const struct xm_map *map, u32 client, u32 publisher)
{
	return &xm_cursor_of(map, client, publisher)->position;
}

static inline struct xmem_ring *xm_ring(const struct xm_map *map, u32 client)
{
	return (struct xmem_ring *)((char *)xm_area(map, client) + map->ring_offset);
}

/* @entries: the first entry of a ring. */
static inline struct xmem_entry *xm_entry_at(const struct xm_map *map, char *entries, u64 place)
{
	return (void *)(entries + (place & map->ring_mask) * map->entry_stride);
}

static inline struct xmem_entry *xm_entry(const struct xm_map *map, u32 client, u64 place)
{
	return xm_entry_at(map, (char *)xm_area(map, client) + map->entries_offset, place);
}

static inline bool xm_bit(const u64 *words, u32 bit)
{
	return xm_load(&words[bit / 64]) >> bit % 64 & 1;
}

/* For a bitmap with one writer. Without a change its cache line stays with its readers. */
void xm_set_bit(u64 *words, u32 bit, bool on);

#endif

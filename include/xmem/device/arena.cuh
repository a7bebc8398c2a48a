/* SPDX-License-Identifier: MIT */
/*
 * The arena: memory from which the threads of kernels allocate. It fills any memory that they can
 * write, such as an xmem buffer. No thread ever waits for another one: if some threads stop
 * anywhere, the others go on.
 *
 * Layout. The arena begins with its header, and blocks follow. Each block begins with a header of
 * 16 bytes, which the user of the block never writes. Headers have offsets and no addresses, so an
 * arena can be mapped anywhere.
 *
 * Free blocks are in lists: one list for each size and each shard. A thread uses the lists of its
 * own shard first, so that few threads meet at one word. A list's head has a tag, which each change
 * increments. When a thread has read a head and the next block, others can take the first block and
 * give it back. The tag has changed then, so the thread does not put the outdated next block into
 * the list. (It would do so only after exactly a multiple of 2^32 changes.)
 *
 * If its own list is empty, a thread takes new memory at the mark. It adds to the mark: if many
 * threads of a GPU compared and swapped this word, only one at a time would succeed. If the arena
 * ends there, the thread takes a free block of another shard, or a larger one. Blocks are never
 * divided or joined. The mark never goes back: it is the high-water mark.
 */
#ifndef XMEM_DEVICE_ARENA_CUH
#define XMEM_DEVICE_ARENA_CUH

#include "base.cuh"

namespace xmem {
namespace device {

constexpr u32 ARENA_CLASSES = 55;		/* 32, 48, 64, 96 ... 2^32 bytes with the header */
constexpr u32 ARENA_LARGER = 4;			/* classes: at most four times too large */
constexpr u32 ARENA_SHARDS = 32;
constexpr u64 ARENA_UNIT = 16;			/* bytes; offsets count units */
constexpr u64 ARENA_MAGIC = 0x31616e657261ull;	/* "arena1" */

struct block {
	u32 next;			/* in a list: offset of the next one; 0: the last one */
	u32 size_class;
	u32 back;			/* offset of this block; 0: it comes from malloc */
	u32 reserved;
};

struct arena_shard {
	u64 free[ARENA_CLASSES];	/* tag << 32 | offset of the first block; 0: none */
	u64 made, freed, failed;	/* allocations and releases by threads of this shard */
	u64 reserved[6];
};

struct arena {
	u64 magic;
	u64 bytes;			/* of the whole arena */
	u64 mark;			/* no memory from here on was ever used; in bytes */
	u64 reserved[5];
	arena_shard shard[ARENA_SHARDS];
};

static_assert(sizeof(block) == ARENA_UNIT, "a unit");
static_assert(sizeof(arena_shard) == 512 && sizeof(arena) == 64 + 32 * 512, "no holes");

struct arena_counts {
	u64 made, freed, failed;	/* allocations, releases, allocations that got nothing */
	u64 mark;			/* bytes that were ever used, with the arena's header */
};

/*
 * Make an arena. The memory is aligned to 16 bytes and at most 64 GiB of it are used. No thread
 * uses the arena meanwhile. Returns: NULL if there is no room for a block.
 */
XMEM_DEVICE arena *arena_init(void *memory, u64 bytes)
{
	u64 *word = static_cast<u64 *>(memory);
	arena *made = static_cast<arena *>(memory);

	if (!memory || reinterpret_cast<u64>(memory) % ARENA_UNIT || bytes < sizeof(arena) + 32)
		return nullptr;
	for (u64 i = 0; i < sizeof(arena) / sizeof(*word); i++)
		word[i] = 0;
	made->bytes = bytes < ARENA_UNIT << 32 ? bytes / ARENA_UNIT * ARENA_UNIT : ARENA_UNIT << 32;
	made->mark = sizeof(arena);
	made->magic = ARENA_MAGIC;
	return made;
}

/* The sums of all shards. They agree with each other if no thread uses the arena meanwhile. */
XMEM_DEVICE arena_counts arena_count(const arena *from)
{
	arena_counts sum = { 0, 0, 0, load_relaxed(&from->mark) };

	if (sum.mark > from->bytes)
		sum.mark = from->bytes;
	for (u32 i = 0; i < ARENA_SHARDS; i++) {
		sum.made += load_relaxed(&from->shard[i].made);
		sum.freed += load_relaxed(&from->shard[i].freed);
		sum.failed += load_relaxed(&from->shard[i].failed);
	}
	return sum;
}

/* ---- Sizes ---- */

XMEM_DEVICE u64 class_size(u32 size_class)
{
	return (size_class % 2 ? 48ull : 32ull) << size_class / 2;
}

/* The smallest class of blocks that have so many bytes, 2^32 at most. */
XMEM_DEVICE u32 class_of(u64 bytes)
{
	u64 last = bytes < 32 ? 31 : bytes - 1;
	u32 bit = highest_bit(last);

	return 2 * (bit - 4) + u32(last >> (bit - 1) & 1) - 1;
}

/* ---- Lists of free blocks ---- */

XMEM_DEVICE block *block_at(arena *from, u32 offset)
{
	return reinterpret_cast<block *>(reinterpret_cast<char *>(from) + ARENA_UNIT * offset);
}

XMEM_DEVICE arena *arena_of(block *part)
{
	return reinterpret_cast<arena *>(reinterpret_cast<u64>(part) - ARENA_UNIT * part->back);
}

/* The head of a list after a change. */
XMEM_DEVICE u64 next_head(u64 head, u32 offset)
{
	return ((head >> 32) + 1) << 32 | offset;
}

XMEM_DEVICE block *pop(arena *from, u64 *list)
{
	u64 head = load_acquire(list), seen;

	for (; u32(head); head = seen) {
		block *first = block_at(from, u32(head));
		u32 next = load_relaxed(&first->next);

		XMEM_DEVICE_STEP(STEP_POP_NEXT);
		seen = compare_swap_acq_rel(list, head, next_head(head, next));
		if (seen == head)
			return first;
	}
	return nullptr;
}

XMEM_DEVICE void push(u64 *list, block *freed)
{
	u64 head = load_relaxed(list), seen;

	for (;; head = seen) {
		store_relaxed(&freed->next, u32(head));
		XMEM_DEVICE_STEP(STEP_PUSH_NEXT);
		seen = compare_swap_acq_rel(list, head, next_head(head, freed->back));
		if (seen == head)
			return;
	}
}

/* ---- Allocation ---- */

XMEM_DEVICE block *make_block(arena *from, u64 at, u32 size_class)
{
	block *made = block_at(from, u32(at / ARENA_UNIT));

	store_relaxed(&made->next, 0);
	made->size_class = size_class;
	made->back = u32(at / ARENA_UNIT);
	return made;
}

/* Make free blocks of the end of an arena, which was too small for the thread that has it. */
XMEM_DEVICE void give_end(arena *from, u64 at, u32 shard)
{
	while (from->bytes - at >= class_size(0)) {
		u32 size_class = class_of(from->bytes - at);

		if (class_size(size_class) > from->bytes - at)
			size_class--;
		push(&from->shard[shard].free[size_class], make_block(from, at, size_class));
		at += class_size(size_class);
	}
}

/*
 * A block of memory that was never used. A request that does not fit leaves the mark where it is,
 * unless another thread has taken the memory since this one looked.
 */
XMEM_DEVICE block *take_new(arena *from, u32 size_class, u32 shard)
{
	u64 size = class_size(size_class), at = load_relaxed(&from->mark);

	if (at + size > from->bytes)
		return nullptr;
	XMEM_DEVICE_STEP(STEP_BUMP);
	at = fetch_add_relaxed(&from->mark, size);
	if (at + size <= from->bytes)
		return make_block(from, at, size_class);
	if (at < from->bytes)
		give_end(from, at, shard);
	return nullptr;
}

XMEM_DEVICE block *steal(arena *from, u32 size_class, u32 shard)
{
	u32 end = size_class + ARENA_LARGER + 1;
	block *found;

	for (; size_class < end && size_class < ARENA_CLASSES; size_class++)
		for (u32 i = 0; i < ARENA_SHARDS; i++) {
			u32 other = (shard + i) % ARENA_SHARDS;

			found = pop(from, &from->shard[other].free[size_class]);
			if (found)
				return found;
		}
	return nullptr;
}

/* Allocate from the heap of the C library, or from the GPU's own. */
XMEM_DEVICE void *allocate_from_heap(u64 bytes)
{
	block *made = static_cast<block *>(XMEM_DEVICE_MALLOC(sizeof(*made) + bytes));

	if (!made)
		return nullptr;
	*made = { 0, 0, 0, 0 };
	return made + 1;
}

/*
 * Allocate memory, aligned to 16 bytes and not initialised, from an arena, or from the heap if that
 * is NULL. Returns: NULL if there is none; an arena counts that. Ownership: release() it.
 */
XMEM_DEVICE_CALLED void *allocate(arena *from, u64 bytes)
{
	u32 shard = u32(thread_index() % ARENA_SHARDS), size_class;
	block *found = nullptr;

	if (bytes > (1ull << 32) - sizeof(block))
		size_class = ARENA_CLASSES;
	else
		size_class = class_of(bytes + sizeof(block));
	if (!from)
		return size_class < ARENA_CLASSES ? allocate_from_heap(bytes) : nullptr;
	if (size_class < ARENA_CLASSES) {
		found = pop(from, &from->shard[shard].free[size_class]);
		if (!found)
			found = take_new(from, size_class, shard);
		if (!found)
			found = steal(from, size_class, shard);
	}
	if (!found) {
		add_relaxed(&from->shard[shard].failed, 1);
		return nullptr;
	}
	add_relaxed(&from->shard[shard].made, 1);
	return found + 1;
}

/* Give back memory of allocate(), in any thread. NULL is allowed. */
XMEM_DEVICE void release(void *memory)
{
	arena_shard *to;
	block *freed;

	if (!memory)
		return;
	freed = static_cast<block *>(memory) - 1;
	if (!freed->back) {
		XMEM_DEVICE_FREE(freed);
		return;
	}
	to = &arena_of(freed)->shard[thread_index() % ARENA_SHARDS];
	push(&to->free[freed->size_class], freed);
	add_relaxed(&to->freed, 1);
}

} // namespace device
} // namespace xmem

#endif

// SPDX-License-Identifier: MIT
/* The arena: sizes, exhaustion and reuse, threads that stop anywhere, threads that meet. */
#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <sys/mman.h>

#include "test.hpp"

/* An arena with room for so many blocks of that size, header included, and nothing else. */
static u64 room_for(u64 blocks, u64 size)
{
	return sizeof(arena) + blocks * size;
}

static u64 mark_of(const arena *memory)
{
	return arena_count(memory).mark;
}

TEST(DEVICE_each_size_has_the_smallest_class)
{
	std::vector<u64> sizes;

	for (u64 size = 1; size < 5000; size++)
		sizes.push_back(size);
	for (u32 bit = 12; bit <= 32; bit++)
		for (u64 base : { 1ull << bit, 3ull << (bit - 1) })
			for (u64 size = base - 1; size <= base + 1; size++)
				sizes.push_back(size);
	for (u64 size : sizes) {
		u32 found = class_of(size);

		if (size > 1ull << 32)
			continue;
		CHECK(found < ARENA_CLASSES && class_size(found) >= size);
		CHECK(!found || class_size(found - 1) < size);
		SAME(class_size(found) % ARENA_UNIT, 0);
	}
	SAME(class_size(ARENA_CLASSES - 1), 1ull << 32);
}

TEST(DEVICE_an_arena_is_made_only_where_there_is_room)
{
	alignas(64) static char bytes[sizeof(arena) + 64];

	CHECK(!arena_init(nullptr, sizeof(bytes)));
	CHECK(!arena_init(bytes + 8, sizeof(bytes) - 8));
	CHECK(!arena_init(bytes, sizeof(arena) + 31));
	CHECK(arena_init(bytes, sizeof(arena) + 47));
	CHECK(allocate(reinterpret_cast<arena *>(bytes), 16));
	CHECK(!allocate(reinterpret_cast<arena *>(bytes), 0));
	SAME(mark_of(reinterpret_cast<arena *>(bytes)), sizeof(arena) + 32);
}

/* Addresses of 70 GiB, of which only a few pages are ever touched */
TEST(DEVICE_an_arena_uses_64_gib_at_most)
{
	const u64 bytes = 70ull << 30, most = 64ull << 30;
	void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	arena *made;
	char *last;

	if (memory == MAP_FAILED)
		throw skipped("this machine does not give 70 GiB of addresses");
	made = arena_init(memory, bytes);
	made->mark = most - 64;
	last = static_cast<char *>(allocate(made, 48));
	SAME(last - static_cast<char *>(memory), most - 48);
	CHECK(!allocate(made, 16));
	SAME(mark_of(made), most);
	release(last);
	SAME(static_cast<char *>(allocate(made, 48)) == last, true);
	munmap(memory, bytes);
}

TEST(DEVICE_an_exhausted_arena_says_so_and_is_used_again)
{
	const u64 blocks = 100;
	own_arena memory(room_for(blocks, 64));

	for (int round = 0; round < 3; round++) {
		std::vector<char *> all;

		for (char *one; (one = static_cast<char *>(allocate(memory, 48)));) {
			SAME(reinterpret_cast<u64>(one) % 16, 0);
			std::memset(one, round, 48);
			all.push_back(one);
		}
		SAME(all.size(), blocks);
		SAME(arena_count(memory).failed, round + 1);
		SAME(mark_of(memory), room_for(blocks, 64));
		std::sort(all.begin(), all.end());
		for (u64 i = 1; i < blocks; i++)
			CHECK(all[i] - all[i - 1] >= 64);
		for (char *one : all)
			release(one);
		SAME(arena_count(memory).made, blocks * static_cast<u64>(round + 1));
		NOTHING_LEFT(memory);
	}
}

TEST(DEVICE_a_refused_allocation_leaves_the_arena_as_it_was)
{
	own_arena memory(room_for(2, 64));
	void *one = allocate(memory, 48);

	CHECK(one);
	CHECK(!allocate(memory, 1 << 20));
	CHECK(!allocate(memory, (1ull << 32) - 15));
	CHECK(!allocate(memory, ~0ull));
	SAME(arena_count(memory).failed, 3);
	SAME(arena_count(memory).made, 1);
	SAME(mark_of(memory), room_for(1, 64));
	CHECK(allocate(memory, 48));
}

TEST(DEVICE_a_block_that_another_shard_has_freed_is_found)
{
	own_arena memory(room_for(1, 64));
	void *one = allocate(memory, 48);

	for (u64 index = 1; index < 2 * ARENA_SHARDS; index++) {
		set_thread(index, 2 * ARENA_SHARDS);
		release(one);
		set_thread(index * 7, 2 * ARENA_SHARDS);
		SAME(allocate(memory, 48) == one, true);
	}
	set_thread(0, 1);
	CHECK(!allocate(memory, 48));
	release(one);
	SAME(arena_count(memory).failed, 1);
	NOTHING_LEFT(memory);
}

TEST(DEVICE_a_larger_block_is_taken_where_nothing_else_is_left)
{
	own_arena memory(room_for(1, 256));
	void *one = allocate(memory, 240);

	release(one);
	CHECK(!allocate(memory, 1));		/* 32 bytes; 256 are eight times as many */
	SAME(allocate(memory, 48) == one, true);
	release(one);
	SAME(allocate(memory, 240) == one, true);
}

TEST(DEVICE_without_an_arena_memory_comes_from_the_heap)
{
	void *one = allocate(nullptr, 100);

	CHECK(one);
	SAME(reinterpret_cast<u64>(one) % 16, 0);
	std::memset(one, 1, 100);
	release(one);
	release(nullptr);
	CHECK(!allocate(nullptr, 1ull << 32));
	CHECK(!allocate(nullptr, ~0ull));
}

/* ---- Threads that stop between two operations ---- */

/*
 * A thread has read that y follows x. Another one takes both, and gives x back. If the first thread
 * could put y into the list then, y would have two owners.
 */
TEST(DEVICE_a_list_that_looks_unchanged_is_not_taken_for_unchanged)
{
	own_arena memory(room_for(2, 64));
	void *x = allocate(memory, 48), *y = allocate(memory, 48), *got = nullptr;

	release(y);
	release(x);
	stopped_thread other(STEP_POP_NEXT, 0, [&] { got = allocate(memory, 48); });

	SAME(allocate(memory, 48) == x, true);
	SAME(allocate(memory, 48) == y, true);
	release(x);
	other.go_on();
	SAME(got == x, true);
	CHECK(!allocate(memory, 48));		/* this thread still has y */
}

TEST(DEVICE_two_threads_at_the_mark_get_two_blocks)
{
	own_arena memory(room_for(3, 64));
	void *first = nullptr, *second = nullptr;

	{
		stopped_thread other(STEP_BUMP, 1, [&] { first = allocate(memory, 48); });

		second = allocate(memory, 48);
	}
	CHECK(first && second && first != second);
	SAME(mark_of(memory), room_for(2, 64));
	{
		stopped_thread other(STEP_BUMP, 1, [&] { first = allocate(memory, 48); });

		second = allocate(memory, 48);	/* the last one */
	}
	CHECK(!first && second);
	SAME(mark_of(memory), room_for(3, 64));
}

/* Whatever is left at the end of the arena goes to the lists, for smaller requests. */
TEST(DEVICE_the_end_of_an_arena_that_is_too_small_for_a_thread_is_not_lost)
{
	own_arena memory(room_for(1, 1024));
	void *large = nullptr, *small = nullptr;

	{
		stopped_thread other(STEP_BUMP, 1, [&] { large = allocate(memory, 1000); });

		small = allocate(memory, 48);
	}
	CHECK(small && !large);
	SAME(mark_of(memory), room_for(1, 1024));
	SAME(arena_count(memory).failed, 1);
	CHECK(allocate(memory, 752) && allocate(memory, 176));	/* 768 + 192 + 64 = 1024 */
	CHECK(!allocate(memory, 16));
}

TEST(DEVICE_a_block_that_is_given_back_beside_another_one_is_not_lost)
{
	own_arena memory(room_for(2, 64));
	void *x = allocate(memory, 48), *y = allocate(memory, 48);

	{
		stopped_thread other(STEP_PUSH_NEXT, 0, [&] { release(x); });

		release(y);
	}
	NOTHING_LEFT(memory);
	CHECK(allocate(memory, 48) && allocate(memory, 48));
}

TEST(DEVICE_no_thread_waits_for_one_that_has_stopped)
{
	for (int step : { STEP_POP_NEXT, STEP_PUSH_NEXT, STEP_BUMP, STEP_DECREF_DROPPED }) {
		own_arena memory(1 << 20);
		managed_string two[] = { make_string(memory, 8), make_string(memory, 8) };

		decref(two[0].meminfo);
		stopped_thread other(step, 0, [&] {
			decref(make_string(memory, 8).meminfo);
			decref(make_string(memory, 500).meminfo);
		});

		for (unsigned int i = 0; i < 1000; i++)
			decref(make_string(memory, i % 100).meminfo);
		decref(two[1].meminfo);
		other.go_on();
		SAME(other.said, "");
		NOTHING_LEFT(memory);
	}
}

/* ---- Threads that meet ---- */

/* A block with its size in it, and a pattern in all of its bytes. */
static u64 *filled(arena *memory, u64 bytes)
{
	u64 *made = static_cast<u64 *>(allocate(memory, bytes));

	for (u64 i = 1; made && i < bytes / 8; i++)
		made[i] = bytes * 31 + i;
	if (made)
		made[0] = bytes;
	return made;
}

static void check_and_release(u64 *block)
{
	u64 bytes = block[0];

	for (u64 i = 1; i < bytes / 8; i++)
		SAME(block[i], bytes * 31 + i);
	release(block);
}

/* The threads give their blocks to each other. The arena is too small for all that they want. */
TEST(DEVICE_threads_share_a_small_arena)
{
	const u64 steps = rows_of_a_test() / 10;
	own_arena memory(room_for(600, 256));
	std::vector<std::atomic<u64 *>> passed(1000);
	std::atomic<u64> got{0}, refused{0};

	for (auto &slot : passed)
		slot = nullptr;
	on_threads(4, [&] {
		std::mt19937_64 random(thread_index());

		for (u64 i = 0; i < steps; i++) {
			u64 *made = filled(memory, 8 + random() % 500), *other;

			(made ? got : refused)++;
			other = passed[random() % passed.size()].exchange(made);
			if (other)
				check_and_release(other);
		}
	});
	SAME(arena_count(memory).made, got.load());
	SAME(arena_count(memory).failed, refused.load());
	CHECK(got && refused);
	for (auto &slot : passed)
		if (slot.load())
			check_and_release(slot);
	NOTHING_LEFT(memory);
	CHECK(mark_of(memory) <= room_for(600, 256));
}

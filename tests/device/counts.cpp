// SPDX-License-Identifier: MIT
/* Counted objects: the last reference destroys, whatever the others do meanwhile. */
#include <atomic>
#include <cstddef>

#include "test.hpp"

struct object {
	MemInfo info;
	u64 payload;
};

static std::atomic<u64> destroyed;

/* It writes the data, so a thread that still reads them is reported by TSan. */
static void note_end(void *data, u64 size, void *dtor_info)
{
	CHECK(size == 8 && dtor_info == &destroyed);
	*static_cast<u64 *>(data) = 0;
	destroyed++;
}

static object *new_object(arena *from)
{
	object *made = static_cast<object *>(allocate(from, sizeof(*made)));

	CHECK(made);
	made->payload = 7;
	meminfo_init(&made->info, &made->payload, 8, note_end, &destroyed);
	return made;
}

static_assert(offsetof(MemInfo, refct) == 0 && offsetof(MemInfo, dtor) == 8 &&
	      offsetof(MemInfo, dtor_info) == 16 && offsetof(MemInfo, data) == 24 &&
	      offsetof(MemInfo, size) == 32, "the layout of numba-cuda");

TEST(DEVICE_a_null_object_has_no_references)
{
	SAME(incref(nullptr), 0);
	SAME(decref(nullptr), 0);
}

TEST(DEVICE_the_last_reference_destroys)
{
	own_arena memory(1 << 20);
	object *made = new_object(memory);

	destroyed = 0;
	SAME(made->info.refct, 1);
	SAME(incref(&made->info), 2);
	SAME(incref(&made->info), 3);
	SAME(decref(&made->info), 2);
	SAME(decref(&made->info), 1);
	SAME(destroyed.load(), 0);
	SAME(decref(&made->info), 0);
	SAME(destroyed.load(), 1);
	NOTHING_LEFT(memory);
}

TEST(DEVICE_an_object_without_a_destructor_is_released)
{
	own_arena memory(1 << 20);
	MemInfo *made = static_cast<MemInfo *>(allocate(memory, sizeof(*made)));

	meminfo_init(made, nullptr, 0, nullptr, nullptr);
	SAME(decref(made), 0);
	NOTHING_LEFT(memory);
}

/*
 * Two threads have a reference each. The first one has dropped its reference, and has not looked
 * further, when the second one drops the last.
 */
TEST(DEVICE_two_last_references_destroy_once)
{
	own_arena memory(1 << 20);
	object *made = new_object(memory);
	u64 left = ~0ull;

	destroyed = 0;
	incref(&made->info);
	{
		stopped_thread other(STEP_DECREF_DROPPED, 1, [&] { left = decref(&made->info); });

		SAME(destroyed.load(), 0);
		SAME(decref(&made->info), 0);
		SAME(destroyed.load(), 1);
	}
	SAME(destroyed.load(), 1);
	SAME(left, 1);
	NOTHING_LEFT(memory);
}

/* The destructor may write the data that threads have read before they dropped their references. */
TEST(DEVICE_a_destructor_comes_after_all_that_was_done_with_an_object)
{
	const u64 objects = rows_of_a_test() / 50;
	own_arena memory(sizeof(arena) + objects * 64 + (1 << 20));
	std::vector<object *> all(objects);

	destroyed = 0;
	for (object *&one : all) {
		one = new_object(memory);
		for (unsigned int i = 1; i < 4; i++)
			incref(&one->info);
	}
	on_threads(4, [&] {
		for (object *one : all) {
			SAME(one->payload, 7);
			decref(&one->info);
		}
	});
	SAME(destroyed.load(), objects);
	NOTHING_LEFT(memory);
}

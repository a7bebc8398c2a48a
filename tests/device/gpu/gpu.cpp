// SPDX-License-Identifier: MIT
/*
 * The tests of kernels, on a GPU or with the fake driver. On the latter one thread runs after
 * another, so it meets no races; those are met by the other tests of this folder, on the CPU.
 */
#include <random>

#include "driver.hpp"
#include "../kernels.h"

static const unsigned int MANY = 1 << 16;	/* threads */

/* Texts as a column has them */
struct texts {
	explicit texts(const std::vector<std::string> &from) : chars(1), offsets(1)
	{
		chars.clear();
		for (const std::string &one : from) {
			chars.insert(chars.end(), one.begin(), one.end());
			offsets.push_back(static_cast<i32>(chars.size()));
		}
	}

	std::vector<char> chars;
	std::vector<i32> offsets;
};

/* An arena on the GPU */
struct gpu_arena : gpu_memory {
	explicit gpu_arena(u64 size) : gpu_memory(size)
	{
		launch("xd_begin", 1, *this, bytes);
	}
	arena_counts counts() const
	{
		gpu_array<arena_counts> got(1);

		launch("xd_count", 1, *this, got);
		return got.get(1)[0];
	}
};

TEST(DEVICE_strings_of_a_kernel_live_as_the_document_says)
{
	const u64 rows = rows_of_a_test();
	std::vector<std::string> input;
	std::vector<u64> wanted;

	for (u64 row = 0; row < rows; row++) {
		std::string number = std::to_string(row), is = row % 3 ? "ROW" + number + "abc"
								      : "\xc3\xa9\xc3\xa9" "abc";

		input.push_back(row % 3 ? "row" + number : "\xc3\xa9");
		wanted.push_back(hash_of(view(is)));
	}

	texts column(input);
	gpu_array<char> chars(column.chars);
	gpu_array<i32> offsets(column.offsets);
	gpu_array<managed_string> output(rows);
	gpu_array<u32> counts(rows);
	gpu_array<u64> hashes(rows);
	gpu_arena memory(rows * 160 + (64 << 20));

	launch("xd_udf", MANY, memory, chars, offsets, output, counts, rows);
	for (u32 digits : counts.get(rows))
		SAME(digits, 12121);
	SAME(memory.counts().made, 4 * rows);
	SAME(memory.counts().freed, 2 * rows);
	launch("xd_hash", MANY, output, hashes, rows);
	CHECK(hashes.get(rows) == wanted);
	launch("xd_free", MANY, output, counts, rows);
	for (u32 left : counts.get(rows))
		SAME(left, 0);
	SAME(memory.counts().freed, 4 * rows);
	SAME(memory.counts().failed, 0);
}

/* Strings that a kernel makes are those that the CPU makes, which strings.cpp compares with str. */
TEST(DEVICE_operations_in_a_kernel_have_the_results_of_the_cpu)
{
	const u64 rows = rows_of_a_test() / 10 / OPERATIONS * OPERATIONS;
	const char *const characters[] = { "a", "b", "Z", " ", "\xc3\xa9", "\xc3\x9f", "\xce\xa3",
					   "\xd1\x91", "\xe3\x80\x80", "\xf0\x9f\x98\x80", "\t" };
	std::vector<std::string> input(3 * rows);
	std::vector<managed_string> strings(rows);
	std::vector<u64> hashes(rows);
	std::vector<i32> numbers(rows);
	std::mt19937_64 random(1);

	for (u64 i = 0; i < input.size(); i++)
		for (u64 n = random() % (i % 3 ? 3 : 20); n; n--)
			input[i] += characters[random() % 11];

	texts column(input);

	for (u64 row = 0; row < rows; row++) {
		strings[row] = operate(nullptr, column.chars.data(), column.offsets.data(), row,
				       &numbers[row]);
		hashes[row] = hash_of(view_of(strings[row]));
		decref(strings[row].meminfo);
	}

	gpu_array<char> chars(column.chars);
	gpu_array<i32> offsets(column.offsets), gpu_numbers(rows);
	gpu_array<managed_string> output(rows);
	gpu_array<u64> gpu_hashes(rows);
	gpu_array<u32> counts(rows);
	gpu_arena memory(rows * 512 + (1 << 20));

	launch("xd_operations", MANY, memory, chars, offsets, output, gpu_numbers, rows);
	launch("xd_hash", MANY, output, gpu_hashes, rows);
	CHECK(gpu_numbers.get(rows) == numbers);
	CHECK(gpu_hashes.get(rows) == hashes);
	launch("xd_free", MANY, output, counts, rows);
	SAME(memory.counts().made, memory.counts().freed);
	SAME(memory.counts().failed, 0);
}

TEST(DEVICE_a_kernel_without_memory_makes_null_strings)
{
	const u64 rows = 1000;

	texts column(std::vector<std::string>(rows, "text"));
	gpu_array<char> chars(column.chars);
	gpu_array<i32> offsets(column.offsets);
	gpu_array<managed_string> output(rows);
	gpu_array<u32> counts(rows);
	gpu_arena memory(sizeof(arena) + 1024 * 16);
	u64 nulls = 0;

	launch("xd_udf", 256, memory, chars, offsets, output, counts, rows);
	for (const managed_string &one : output.get(rows))
		nulls += is_null(one);
	for (u32 digits : counts.get(rows)) {
		CHECK(digits == 12121 || !digits);
		nulls -= !digits;
	}
	SAME(nulls, 0);
	CHECK(memory.counts().failed);
	launch("xd_free", 256, output, counts, rows);
	SAME(memory.counts().made, memory.counts().freed);
}

TEST(DEVICE_threads_of_a_kernel_destroy_each_object_once)
{
	const u64 objects = rows_of_a_test() / 100, references = 64;
	gpu_arena memory(objects * 64 + (1 << 20));
	gpu_array<MemInfo *> made(objects);
	gpu_array<u64> ends(std::vector<u64>{ 0 });

	launch("xd_objects", MANY, memory, made, ends, references, objects);
	launch("xd_drop", MANY, made, references, objects);
	SAME(ends.get(1)[0], objects);
	SAME(memory.counts().made, objects);
	SAME(memory.counts().freed, objects);
}

TEST(DEVICE_threads_of_a_kernel_share_a_small_arena)
{
	const u64 rounds = 20;
	const unsigned int threads = static_cast<unsigned int>(rows_of_a_test() / 100);
	gpu_arena memory(sizeof(arena) + threads * 128);
	gpu_array<u64> spoilt(std::vector<u64>{ 0 });
	arena_counts counts;

	for (unsigned int i = 0; i < 3; i++)
		launch("xd_churn", threads, memory, spoilt, rounds);
	counts = memory.counts();
	SAME(spoilt.get(1)[0], 0);
	SAME(counts.made, counts.freed);
	CHECK(counts.made + counts.failed >= 3 * rounds * threads);
	CHECK(counts.mark <= memory.bytes);
}

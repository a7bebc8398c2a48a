// SPDX-License-Identifier: MIT
/* Managed strings become a column of Arrow: each row against a model, at the edges of tiles. */
#include <cstring>

#include "test.hpp"

/* A column with room for its parts, and guards behind each part. */
struct own_column {
	own_column(u64 rows, u64 bytes) : validity((rows + 31) / 32 + 1, 0xdeadbeef),
		offsets(rows + 2, -77), chars(bytes + 1, '#')
	{
	}

	column_parts parts() { return { validity.data(), offsets.data(), &chars[0] }; }

	std::vector<u32> validity;
	std::vector<i32> offsets;
	std::string chars;
};

/* Row 7 of each ten is null, and others are empty. */
static bool is_null_row(u64 row)
{
	return row % 10 == 7;
}

static std::string string_of(u64 row)
{
	return row % 5 ? "\xc3\xa9" + std::to_string(row * row) : "";
}

static std::vector<managed_string> make_rows(arena *from, u64 rows)
{
	std::vector<managed_string> made;

	for (u64 row = 0; row < rows; row++)
		made.push_back(is_null_row(row) ? null_string() :
			       concat(from, view(string_of(row)), view_of("", 0)));
	return made;
}

static void check_row(own_column &column, u64 row)
{
	std::string want = is_null_row(row) ? "" : string_of(row);
	u64 from = u64(column.offsets[row]), to = u64(column.offsets[row + 1]);

	SAME(column.chars.substr(from, to - from), want);
	SAME(column.validity[row / 32] >> row % 32 & 1, !is_null_row(row));
}

static void check_rows(u64 rows, unsigned int threads)
{
	own_arena memory(1 << 20);
	std::vector<managed_string> strings = make_rows(memory, rows);
	std::vector<column_sum> sums(column_tiles(rows) + 1);
	column_sum total;
	u64 bytes = 0, nulls = 0;

	on_threads(threads, [&] { column_measure(strings.data(), rows, sums.data()); });
	total = column_scan(sums.data(), rows);
	own_column column(rows, total.bytes);
	on_threads(threads, [&] {
		column_offsets(strings.data(), rows, sums.data(), column.parts());
	});
	on_threads(threads, [&] {
		column_gather(strings.data(), rows, sums.data(), column.parts());
	});
	SAME(column.offsets[0], 0);
	for (u64 row = 0; row < rows; row++) {
		check_row(column, row);
		bytes += is_null_row(row) ? 0 : string_of(row).size();
		nulls += is_null_row(row);
	}
	SAME(total.bytes, bytes);
	SAME(total.nulls, nulls);
	SAME(sums.back().bytes, bytes);
	SAME(column.offsets[rows], i32(bytes));
	/* Nothing is written behind a part, and the bits behind the last row are 0. */
	SAME(column.offsets[rows + 1], -77);
	SAME(column.chars.substr(bytes), "#");
	SAME(column.validity.back(), 0xdeadbeef);
	CHECK(!(rows % 32) || !(column.validity[rows / 32] >> rows % 32));
	on_threads(threads, [&] { column_free(strings.data(), rows); });
	on_threads(threads, [&] { column_free(strings.data(), rows); });
	NOTHING_LEFT(memory);
	CHECK(rows < 2 || (is_null(strings[0]) && arena_count(memory).made));
}

TEST(DEVICE_strings_become_a_column)
{
	static const u64 edges[] = { 0, 1, 8, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1000 };

	for (u64 rows : edges)
		for (unsigned int threads = 1; threads <= 5; threads += 2)
			check_rows(rows, threads);
}

TEST(DEVICE_a_column_without_nulls_needs_no_validity)
{
	own_arena memory(1 << 20);
	std::vector<managed_string> strings = { upper(memory, view_of("ab", 2)),
						upper(memory, view_of("c", 1)) };
	std::vector<column_sum> sums(2);
	own_column column(2, 3);

	column_measure(strings.data(), 2, sums.data());
	SAME(column_scan(sums.data(), 2).nulls, 0);
	column_offsets(strings.data(), 2, sums.data(), { nullptr, column.offsets.data(), nullptr });
	column_gather(strings.data(), 2, sums.data(), column.parts());
	SAME(column.chars, std::string("ABC#"));
	SAME(column.offsets[1], 2);
	SAME(column.validity[0], 0xdeadbeef);
	column_free(strings.data(), 2);
	NOTHING_LEFT(memory);
}

/* No memory is needed for strings that nobody reads. */
TEST(DEVICE_a_column_of_too_many_bytes_is_refused)
{
	MemInfo info;
	char one = 'x';
	std::vector<managed_string> strings(600, { &info, { &one, 1 << 23, 1 << 23 } });
	std::vector<column_sum> sums(column_tiles(600) + 1);
	own_column column(600, 0);

	on_threads(3, [&] { column_measure(strings.data(), 600, sums.data()); });
	SAME(column_scan(sums.data(), 600).bytes, u64(600) << 23);
	on_threads(3, [&] {
		column_offsets(strings.data(), 600, sums.data(), column.parts());
		column_gather(strings.data(), 600, sums.data(), column.parts());
	});
	CHECK(column.offsets == std::vector<i32>(602, -77));
	/* One byte less than the limit, which is the last that offsets can count. */
	strings.resize(256);
	strings[0].udf_string.m_bytes--;
	column_measure(strings.data(), 256, sums.data());
	SAME(column_scan(sums.data(), 256).bytes, COLUMN_MAX);
	column_offsets(strings.data(), 256, sums.data(), column.parts());
	SAME(column.offsets[256], i32(COLUMN_MAX));
}

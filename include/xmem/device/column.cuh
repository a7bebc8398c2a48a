/* SPDX-License-Identifier: MIT */
/*
 * Columns: an array of managed strings becomes a column as Arrow lays it out, in a buffer that
 * other processes read (xmem_describe_strings). A column has offsets and no addresses.
 *
 * A kernel calls each function in all of its threads, except column_scan. One kernel ends before
 * the next one begins, because a thread needs what other threads have written:
 *
 *   column_measure   how many bytes the strings of each tile of rows have
 *   column_scan      one thread, or the CPU: where the strings of each tile begin, and the total
 *   column_offsets   where each string begins, and which rows are null
 *   column_gather    the characters
 *   column_free      one reference of each string is dropped
 *
 * The CPU needs the total to acquire the buffer (xmem_strings_plan), before column_offsets. The
 * strings do not change from the first kernel to the last one.
 */
#ifndef XMEM_DEVICE_COLUMN_CUH
#define XMEM_DEVICE_COLUMN_CUH

#include "string.cuh"

namespace xmem {
namespace device {

constexpr u64 COLUMN_TILE = 256;		/* rows; whole words of the validity */
constexpr u64 COLUMN_MAX = 0x7fffffff;		/* bytes that offsets of 32 bits can count */

/* Rows, summed up: those of a tile, and after column_scan those of all tiles before it. */
struct column_sum {
	u64 bytes;
	u64 nulls;
};

/* The parts of a column, at the places that xmem_strings_plan gives. */
struct column_parts {
	u32 *validity;			/* NULL: no row is null */
	i32 *offsets;
	char *chars;
};

static_assert(COLUMN_TILE % 32 == 0, "no two threads write one word of the validity");

XMEM_DEVICE u64 column_tiles(u64 rows)
{
	return rows / COLUMN_TILE + (rows % COLUMN_TILE != 0);
}

/* The first row behind a tile. */
XMEM_DEVICE u64 column_tile_end(u64 tile, u64 rows)
{
	u64 end = (tile + 1) * COLUMN_TILE;

	return end < rows ? end : rows;
}

/* Sum up the rows of each tile. @sums: column_tiles(rows) + 1 of them. */
XMEM_DEVICE void column_measure(const managed_string *strings, u64 rows, column_sum *sums)
{
	for (u64 tile = thread_index(); tile < column_tiles(rows); tile += thread_count()) {
		column_sum sum = { 0, 0 };

		for (u64 row = tile * COLUMN_TILE; row < column_tile_end(tile, rows); row++) {
			sum.bytes += u64(view_of(strings[row]).bytes);
			sum.nulls += is_null(strings[row]);
		}
		sums[tile] = sum;
	}
}

/*
 * Replace the sum of each tile by that of all tiles before it, in one thread. Returns: the sum of
 * all rows, which follows the last tile, too. More than COLUMN_MAX bytes do not fit into one
 * column: xmem_strings_plan refuses them, and the functions below then write nothing.
 */
XMEM_DEVICE column_sum column_scan(column_sum *sums, u64 rows)
{
	column_sum before = { 0, 0 };
	u64 tiles = column_tiles(rows);

	for (u64 tile = 0; tile < tiles; tile++) {
		column_sum here = sums[tile];

		sums[tile] = before;
		before.bytes += here.bytes;
		before.nulls += here.nulls;
	}
	sums[tiles] = before;
	return before;
}

/* The rows of a tile: where each string begins, and a bit of each row. */
XMEM_DEVICE void column_fill_tile(const managed_string *strings, u64 rows, u64 tile, u64 offset,
				  const column_parts *to)
{
	u64 end = column_tile_end(tile, rows);
	u32 bits = 0;

	for (u64 row = tile * COLUMN_TILE; row < end; row++) {
		to->offsets[row] = i32(offset);
		offset += u64(view_of(strings[row]).bytes);
		bits |= u32(!is_null(strings[row])) << row % 32;
		if (row % 32 == 31 || row + 1 == end) {
			if (to->validity)
				to->validity[row / 32] = bits;
			bits = 0;
		}
	}
}

/* Write offsets and validity. @sums: of column_scan. */
XMEM_DEVICE void column_offsets(const managed_string *strings, u64 rows, const column_sum *sums,
				column_parts to)
{
	u64 tiles = column_tiles(rows);

	if (sums[tiles].bytes > COLUMN_MAX)
		return;
	for (u64 tile = thread_index(); tile < tiles; tile += thread_count())
		column_fill_tile(strings, rows, tile, sums[tile].bytes, &to);
	if (thread_index() == 0)
		to.offsets[rows] = i32(sums[tiles].bytes);
}

/* Write the characters of each row to its offset. */
XMEM_DEVICE void column_gather(const managed_string *strings, u64 rows, const column_sum *sums,
			       column_parts to)
{
	if (sums[column_tiles(rows)].bytes > COLUMN_MAX)
		return;
	for (u64 row = thread_index(); row < rows; row += thread_count()) {
		string_view from = view_of(strings[row]);

		copy_bytes(to.chars + to.offsets[row], from.p, from.bytes);
	}
}

/* Drop the reference that each row has. Afterwards all rows are null. */
XMEM_DEVICE void column_free(managed_string *strings, u64 rows)
{
	for (u64 row = thread_index(); row < rows; row += thread_count()) {
		decref(strings[row].meminfo);
		strings[row] = null_string();
	}
}

} // namespace device
} // namespace xmem

#endif

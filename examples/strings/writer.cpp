/* SPDX-License-Identifier: MIT */
/*
 * writer POOL [ROWS [PTX]]: kernels make strings in an arena, gather them as a column in a buffer
 * of the pool, and free them. Then the column is published, and this program waits until somebody
 * kills it. The column stays with its readers: reader.c and reader.py.
 *
 * The arena and the kernels' other memory are buffers of the pool, too, because a pool has memory
 * of the CPU and of GPUs. With PTX, a file made of kernels.cu, GPU 0 runs the kernels, and without
 * it threads of the CPU do.
 */
#include <cstdio>
#include <unistd.h>

#include "kernels.cu"
#include "machine.hpp"

#define ALONE		true
#define TOGETHER	false
#define RUN(kernel, ...) on.run(#kernel, kernel, __VA_ARGS__)

namespace {

/* Two allocations for each string, and one more pair while it is being made. */
constexpr u64 bytes_of_a_row = 4 * 96;

/* The strings of all rows, each with one reference. */
struct strings {
	strings(machine &on_, const xmem::pool &pool, u64 rows_)
		: on(on_), rows(rows_), memory(on.acquire(pool, sizeof(arena) + (1 << 20) +
							  rows * bytes_of_a_row)),
		  made(on.acquire(pool, rows * sizeof(managed_string) + 64)),
		  sums(on.acquire(pool, (column_tiles(rows) + 1) * sizeof(column_sum)))
	{
		RUN(strings_arena, ALONE, on.address(memory), memory.size());
		RUN(strings_make, TOGETHER, on.address<arena>(memory), all(), rows);
	}

	managed_string *all() const { return on.address<managed_string>(made); }
	column_sum *tiles() const { return on.address<column_sum>(sums); }

	/* The CPU learns how much memory the column needs. */
	column_sum measure()
	{
		column_sum total;

		RUN(strings_measure, TOGETHER, all(), rows, tiles());
		RUN(strings_scan, ALONE, tiles(), rows);
		on.fetch(&total, sums, column_tiles(rows) * sizeof(total), sizeof(total));
		return total;
	}

	arena_counts count()
	{
		alignas(16) static char header[sizeof(arena)];

		on.fetch(header, memory, 0, sizeof(header));
		return arena_count(reinterpret_cast<const arena *>(header));
	}

	machine &on;
	const u64 rows;
	xmem::buffer memory, made, sums;
};

/* The strings become a column in a buffer of its own. */
xmem::buffer make_column(const xmem::pool &pool, strings &from)
{
	const column_sum total = from.measure();
	const std::uint32_t flags = total.nulls ? XMEM_STRINGS_VALIDITY : 0;
	const xmem_strings plan = xmem::strings_plan(from.rows, total.bytes, flags);
	machine &on = from.on;
	xmem::buffer column = on.acquire(pool, plan.bytes);
	i32 *const offsets = on.address<i32>(column, plan.offsets_at);

	RUN(strings_offsets, TOGETHER, from.all(), from.rows, from.tiles(),
	    on.address<u32>(column, plan.validity_at), offsets);
	RUN(strings_gather, TOGETHER, from.all(), from.rows, from.tiles(), offsets,
	    on.address(column, plan.chars_at));
	xmem::describe_strings(column, from.rows, total.bytes, flags);
	return column;
}

void write(const char *name, u64 rows, const char *ptx)
{
	xmem::pool_options options(XMEM_OPEN_WRITER);
	machine on(ptx);

	options.keep = 1;			/* for readers that come later */
	const xmem::pool pool(name, options);
	strings made(on, pool, rows);
	xmem::buffer column = make_column(pool, made);

	RUN(strings_free, TOGETHER, made.all(), rows);
	const arena_counts counts = made.count();	/* waits for the GPU */

	column.publish();
	std::printf("published %llu rows; made %llu, freed %llu, failed %llu\n",
		    static_cast<unsigned long long>(rows),
		    static_cast<unsigned long long>(counts.made),
		    static_cast<unsigned long long>(counts.freed),
		    static_cast<unsigned long long>(counts.failed));
	std::fflush(stdout);
	for (;;)
		pause();
}

} // namespace

int main(int argc, char **argv)
{
	try {
		write(argc > 1 ? argv[1] : "strings",
		      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20,
		      argc > 3 ? argv[3] : nullptr);
	} catch (const std::exception &why) {
		std::fprintf(stderr, "writer: %s\n", why.what());
	}
	return 1;
}

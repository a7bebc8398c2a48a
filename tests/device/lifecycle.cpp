// SPDX-License-Identifier: MIT
/* The life of a string in a kernel: how many references it has after each step. */
#include "test.hpp"

/* The function of design document 003: s.upper() if len(s) > 2 else s + s, and 'abc' after it. */
static managed_string udf(arena *from, string_view string)
{
	managed_string changed = length(string) > 2 ? upper(from, string)
						    : concat(from, string, string);
	managed_string result = concat(from, view_of(changed), view_of("abc", 3));

	decref(changed.meminfo);
	return result;
}

TEST(DEVICE_a_string_lives_as_the_document_says)
{
	const u64 rows = rows_of_a_test();
	own_arena memory(rows * 512 + (1 << 20));
	std::vector<managed_string> output(rows);

	on_threads(4, [&] {
		for (u64 row = thread_index(); row < rows; row += thread_count()) {
			std::string input = row % 3 ? "row" + std::to_string(row) : "\xc3\xa9";
			managed_string result = udf(memory, view(input));

			CHECK(!is_null(result));
			SAME(result.meminfo->refct, 1);			/* 3.2: just made */
			SAME(incref(result.meminfo), 2);		/* 4.1: result = udf() */
			SAME(decref(result.meminfo), 1);		/* the udf ends */
			output[row] = result;
			SAME(incref(result.meminfo), 2);		/* 4.2: ary[i] = result */
			SAME(decref(result.meminfo), 1);		/* 5.1: the kernel ends */
		}
	});
	for (u64 row = 0; row < rows; row++)
		SAME(text(view_of(output[row])), row % 3 ? "ROW" + std::to_string(row) + "abc"
							 : "\xc3\xa9\xc3\xa9" "abc");
	on_threads(4, [&] {
		for (u64 row = thread_index(); row < rows; row += thread_count())
			SAME(decref(output[row].meminfo), 0);		/* 5.2 */
	});
	SAME(arena_count(memory).failed, 0);
	SAME(arena_count(memory).made, 4 * rows);
	NOTHING_LEFT(memory);
}

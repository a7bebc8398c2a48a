// SPDX-License-Identifier: MIT
/* Columns of strings: where their parts lie, metadata that is refused, and hostile offsets. */
#include <errno.h>

#include "lib/describe/tensor.h"
#include "unit.h"

static const struct xl_says says = { "test", EBADMSG };

/* Stands for the library's function, as xl_fail of test_tensor.c does. */
int xl_fail_fast(int error, const char *message)
{
	return xl_fail(error, "%s", message);
}

static struct xmem_metadata column_of(u64 rows, u64 chars, u32 flags)
{
	struct xmem_metadata m = { 0 };

	ck_assert_int_eq(xl_strings_fill(&m, rows, chars, flags, &says), 0);
	return m;
}

/* Each part begins at the first multiple of 64 behind the part before it. */
static u64 next_part(u64 end)
{
	while (end % 64)
		end++;
	return end;
}

static void check_column(u64 rows, u64 chars, u32 flags)
{
	struct xmem_metadata m = column_of(rows, chars, flags);
	struct xmem_strings s = { .size = sizeof(s) }, seen;
	struct xmem_tensor t;
	u64 end = 0;

	ck_assert_int_eq(xmem_strings_plan(rows, chars, flags, &s), 0);
	ck_assert(s.size == sizeof(s) && !s.data && s.device_id == XMEM_CPU && s.flags == flags);
	ck_assert(s.rows == rows && s.chars == chars && !s.validity_at);
	if (flags & XMEM_STRINGS_VALIDITY)
		end = next_part(rows / 8 + !!(rows % 8));
	ck_assert_uint_eq(s.offsets_at, end);
	end = next_part(end + 4 * (rows + 1));
	ck_assert_uint_eq(s.chars_at, end);
	ck_assert_uint_eq(s.bytes, end + chars);
	seen.size = sizeof(seen);
	ck_assert_int_eq(xl_strings_measure(&m, NULL, s.bytes, &says, &seen), 0);
	seen.size = sizeof(seen);
	ck_assert_int_eq(memcmp(&s, &seen, sizeof(s)), 0);
	ck_assert_int_eq(xl_strings_measure(&m, NULL, s.bytes - 1, &says, NULL), -ERANGE);
	ck_assert_int_eq(xl_tensor_measure(&m, NULL, s.bytes, &says, &t), 0);
	ck_assert_uint_eq(t.bytes, s.bytes);
}

START_TEST(parts_follow_each_other_at_multiples_of_64)
{
	u64 rows;
	u32 flags;

	for (flags = 0; flags <= XMEM_STRINGS_VALIDITY; flags++) {
		for (rows = 0; rows < 1100; rows++)
			check_column(rows, rows * 7 % 130, flags);
		check_column(XMEM_STRINGS_MAX, XMEM_STRINGS_MAX, flags);
	}
}
END_TEST

START_TEST(numbers_out_of_range_are_refused)
{
	struct xmem_strings s = { .size = sizeof(s), .rows = 5 };

	ck_assert_int_eq(xmem_strings_plan(XMEM_STRINGS_MAX + 1ULL, 0, 0, &s), -EINVAL);
	ck_assert_int_eq(xmem_strings_plan(0, XMEM_STRINGS_MAX + 1ULL, 0, &s), -EINVAL);
	ck_assert_int_eq(xmem_strings_plan(~0ULL, ~0ULL, 0, &s), -EINVAL);
	ck_assert_int_eq(xmem_strings_plan(1, 1, 2, &s), -EINVAL);
	ck_assert_int_eq(xmem_strings_plan(1, 1, 0, NULL), -EINVAL);
	ck_assert_uint_eq(s.rows, 5);
	s.size = 3;
	ck_assert_int_eq(xmem_strings_plan(1, 1, 0, &s), -EINVAL);
}
END_TEST

START_TEST(a_column_whose_words_disagree_is_refused)
{
	struct xmem_metadata good = column_of(100, 1000, XMEM_STRINGS_VALIDITY), m;
	_Alignas(64) static char contents[64 + 448 + 1000 + 64];

	ck_assert_int_eq(xl_strings_measure(&good, contents, 64 + 448 + 1000, &says, NULL), 0);
#define WRONG(change) do { \
	m = good; \
	m.change; \
	ck_assert_int_eq(xl_strings_measure(&m, NULL, ~0ULL, &says, NULL), -EBADMSG); \
} while (0)
	WRONG(column = 0);
	WRONG(column = 2);
	WRONG(column = ~0u);
	WRONG(column_flags = 0);
	WRONG(column_flags = 3);
	WRONG(column_flags = 1u << 31);
	WRONG(column_rows = 200);
	WRONG(column_rows = 1ULL << 32 | 100);
	WRONG(column_rows = ~0ULL);
	WRONG(column_chars = 999);
	WRONG(column_chars = 1ULL << 63 | 1000);
	WRONG(column_chars = -1000);
	WRONG(dtype = XMEM_DTYPE_INT8);
	WRONG(ndim = 2);
	WRONG(shape[0] = 1000);
	WRONG(strides[0] = 0);
	/* A part would not lie as a reader's numbers must. */
	ck_assert_int_eq(xl_strings_measure(&good, contents + 32, 64 + 448 + 1000, &says, NULL),
			 -EBADMSG);
}
END_TEST

/* Rows "a", null, "", "bcd". */
static struct xmem_strings small(char *contents)
{
	static const int32_t offsets[] = { 0, 1, 1, 1, 4 };
	struct xmem_strings s = { .size = sizeof(s) };

	ck_assert_int_eq(xmem_strings_plan(4, 4, XMEM_STRINGS_VALIDITY, &s), 0);
	contents[s.validity_at] = 0xd;
	memcpy(contents + s.offsets_at, offsets, sizeof(offsets));
	memcpy(contents + s.chars_at, "abcd", 4);
	s.data = contents;
	return s;
}

START_TEST(rows_are_strings_or_null)
{
	_Alignas(64) char contents[256] = "";
	struct xmem_strings s = small(contents);
	const char *chars = NULL;

	ck_assert_int_eq(xmem_strings_get(&s, 0, &chars), 1);
	ck_assert_ptr_eq(chars, contents + s.chars_at);
	ck_assert_int_eq(xmem_strings_get(&s, 1, &chars), 0);
	ck_assert_ptr_null(chars);
	ck_assert_int_eq(xmem_strings_get(&s, 2, &chars), 0);
	ck_assert_ptr_eq(chars, contents + s.chars_at + 1);
	ck_assert_int_eq(xmem_strings_get(&s, 3, &chars), 3);
	ck_assert_int_eq(memcmp(chars, "bcd", 3), 0);
	s.flags = 0;				/* without the bits, no row is null */
	ck_assert_int_eq(xmem_strings_get(&s, 1, &chars), 0);
	ck_assert_ptr_nonnull(chars);
	ck_assert_int_eq(xmem_strings_get(&s, 4, &chars), -EINVAL);
	ck_assert_int_eq(xmem_strings_get(&s, ~0ULL, &chars), -EINVAL);
	ck_assert_int_eq(xmem_strings_get(NULL, 0, &chars), -EINVAL);
	ck_assert_int_eq(xmem_strings_get(&s, 0, NULL), -EINVAL);
	s.device_id = 0;
	ck_assert_int_eq(xmem_strings_get(&s, 0, &chars), -EMEDIUMTYPE);
	s = small(contents);
	s.data = NULL;
	ck_assert_int_eq(xmem_strings_get(&s, 0, &chars), -EINVAL);
	s = small(contents);
	s.size = offsetof(struct xmem_strings, chars_at);
	ck_assert_int_eq(xmem_strings_get(&s, 0, &chars), -EINVAL);
}
END_TEST

START_TEST(hostile_offsets_lead_nowhere)
{
	static const int32_t hostile[][2] = {
		{ 0, 5 }, { -1, 1 }, { 1, 0 }, { 0, -1 }, { INT32_MIN, INT32_MAX }, { 5, 5 },
		{ INT32_MAX, INT32_MAX }, { INT32_MIN, INT32_MIN }, { INT32_MIN, 4 }, { 4, 5 },
	};
	_Alignas(64) char contents[256] = "";
	struct xmem_strings s = small(contents);
	const char *chars = NULL;
	size_t i;

	for (i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		memcpy(contents + s.offsets_at, hostile[i], sizeof(hostile[i]));
		ck_assert_int_eq(xmem_strings_get(&s, 0, &chars), -EBADMSG);
		ck_assert_ptr_null(chars);
	}
}
END_TEST

void strings_tests(Suite *suite)
{
	TCase *tcase = tcase_create("strings");

	tcase_add_test(tcase, parts_follow_each_other_at_multiples_of_64);
	tcase_add_test(tcase, numbers_out_of_range_are_refused);
	tcase_add_test(tcase, a_column_whose_words_disagree_is_refused);
	tcase_add_test(tcase, rows_are_strings_or_null);
	tcase_add_test(tcase, hostile_offsets_lead_nowhere);
	suite_add_tcase(suite, tcase);
}

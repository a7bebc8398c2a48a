// SPDX-License-Identifier: MIT
/* Columns of strings: where their parts lie, checks of metadata, and reading one row. */
#include "lib/base/structs.h"
#include "lib/describe/tensor.h"

#define PART	64ULL		/* each part begins at a multiple of it */

static u64 rounded(u64 bytes)
{
	return (bytes + PART - 1) & ~(PART - 1);
}

/* Lay out the parts. 0, or -errno, noted; after success no number is above 2^34. */
static int make_plan(u64 rows, u64 chars, u32 flags, const struct xl_says *says,
		     struct xmem_strings *ret)
{
	if (flags & ~XMEM_STRINGS_VALIDITY)
		return xl_fail(says->impossible, "%s: flags 0x%x; there is XMEM_STRINGS_VALIDITY",
			       says->what, flags);
	if (rows > XMEM_STRINGS_MAX || chars > XMEM_STRINGS_MAX)
		return xl_fail(says->impossible, "%s: %llu rows with %llu bytes of characters; "
			       "offsets of 32 bits allow %d of each", says->what,
			       (unsigned long long)rows, (unsigned long long)chars,
			       XMEM_STRINGS_MAX);
	*ret = (struct xmem_strings){
		.flags = flags, .device_id = XMEM_CPU, .rows = rows, .chars = chars,
		.offsets_at = flags & XMEM_STRINGS_VALIDITY ? rounded((rows + 7) / 8) : 0,
	};
	ret->chars_at = ret->offsets_at + rounded((rows + 1) * sizeof(int32_t));
	ret->bytes = ret->chars_at + chars;
	return 0;
}

XMEM_API int xmem_strings_plan(uint64_t rows, uint64_t chars, uint32_t flags,
			       struct xmem_strings *ret_plan)
{
	XL_CALL;
	static const struct xl_says says = { "strings_plan", EINVAL };
	int err = xl_answer_check("xmem_strings", ret_plan);
	struct xmem_strings plan;

	if (!err)
		err = make_plan(rows, chars, flags, &says, &plan);
	if (err)
		return err;
	xl_answer_give(ret_plan, &plan, sizeof(plan));
	return 0;
}

/* ---- metadata ---- */

int xl_strings_fill(struct xmem_metadata *metadata, u64 rows, u64 chars, u32 flags,
		    const struct xl_says *says)
{
	struct xmem_strings plan;
	int err = make_plan(rows, chars, flags, says, &plan);

	if (err)
		return err;
	metadata->column = XMEM_COLUMN_STRINGS;
	metadata->column_flags = flags;
	metadata->column_rows = rows;
	metadata->column_chars = chars;
	metadata->dtype = XMEM_DTYPE_UINT8;
	metadata->ndim = 1;
	metadata->shape[0] = plan.bytes;
	metadata->strides[0] = 1;
	return 0;
}

int xl_strings_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		       const struct xl_says *says, struct xmem_strings *ret)
{
	struct xmem_strings plan;
	int err;

	if (metadata->column != XMEM_COLUMN_STRINGS)
		return xl_fail(says->impossible, "%s: there is no column of kind %u",
			       says->what, metadata->column);
	err = make_plan(metadata->column_rows, metadata->column_chars, metadata->column_flags,
			says, &plan);
	if (err)
		return err;
	if (metadata->dtype != XMEM_DTYPE_UINT8 || metadata->ndim != 1 ||
	    metadata->shape[0] != (int64_t)plan.bytes || metadata->strides[0] != 1)
		return xl_fail(says->impossible, "%s: dtype, shape or strides are not those of a "
			       "column of strings", says->what);
	if (plan.bytes > bytes)
		return xl_fail(ERANGE, "%s: the column takes %llu bytes, and there are %llu",
			       says->what, (unsigned long long)plan.bytes,
			       (unsigned long long)bytes);
	if ((uintptr_t)data % PART)
		return xl_fail(says->impossible, "%s: the contents of a column begin at a multiple "
			       "of %llu bytes, and these begin %llu bytes behind one", says->what,
			       PART, (unsigned long long)((uintptr_t)data % PART));
	if (!ret)
		return 0;
	plan.data = data;
	*ret = plan;
	return 0;
}

/* ---- one row ---- */

/* The slow path: why there is no such row. */
static XL_COLD int refuse_row(const struct xmem_strings *strings, u64 row, const char **ret)
{
	XL_CALL_AS("strings_get");

	if (!strings || !ret)
		return xl_fail_fast(EINVAL, "no column, or no place for the answer");
	if (strings->size < sizeof(*strings))
		return xl_fail_fast(EINVAL, "the column is cut: its size is too small");
	if (!strings->data)
		return xl_fail_fast(EINVAL, "this is only the plan of a column");
	if (strings->device_id != XMEM_CPU)
		return xl_fail_fast(EMEDIUMTYPE, "the column is on a GPU");
	return xl_fail(EINVAL, "there is no row %llu; the column has %llu",
		       (unsigned long long)row, (unsigned long long)strings->rows);
}

static XL_COLD int refuse_offsets(const struct xmem_strings *strings, u64 row, int32_t from,
				  int32_t to)
{
	XL_CALL_AS("strings_get");

	return xl_fail(EBADMSG, "row %llu is from %d to %d, and there are %llu bytes of characters",
		       (unsigned long long)row, from, to, (unsigned long long)strings->chars);
}

static bool has_row(const struct xmem_strings *strings, u64 row, const char **ret)
{
	return strings && ret && strings->size >= sizeof(*strings) && strings->data &&
	       strings->device_id == XMEM_CPU && row < strings->rows;
}

static bool is_null(const struct xmem_strings *strings, const char *data, u64 row)
{
	const u8 *bits = (const u8 *)data + strings->validity_at;

	return strings->flags & XMEM_STRINGS_VALIDITY && !(bits[row / 8] >> row % 8 & 1);
}

/* The publisher can change an offset at any moment, so each is read once, and then checked. */
XMEM_API int64_t xmem_strings_get(const struct xmem_strings *strings, uint64_t row,
				  const char **ret_chars)
{
	const int32_t *offsets;
	const char *data;
	int32_t from, to;

	if (unlikely(!has_row(strings, row, ret_chars)))
		return refuse_row(strings, row, ret_chars);
	data = strings->data;
	if (is_null(strings, data, row)) {
		*ret_chars = NULL;
		return 0;
	}
	offsets = (const int32_t *)(data + strings->offsets_at);
	from = xm_load(&offsets[row]);
	to = xm_load(&offsets[row + 1]);
	if (unlikely(from < 0 || to < from || (u64)to > strings->chars))
		return refuse_offsets(strings, row, from, to);
	*ret_chars = data + strings->chars_at + from;
	return to - from;
}

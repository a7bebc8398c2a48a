// SPDX-License-Identifier: MIT
/*
 * Descriptions of tensors, checked against the number of bytes. A hostile publisher chooses all the
 * numbers, so every sum and product here is checked for overflow.
 */
#include <string.h>

#include "lib/describe/tensor.h"

/* ---- the copy ---- */

#define METADATA_WORDS	(sizeof(struct xmem_metadata) / sizeof(u64))

/* May a string in metadata have this character? */
static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static void make_printable(char *field, size_t bytes)
{
	size_t i, length = strnlen(field, bytes - 1);

	for (i = 0; i < length; i++)
		if (!is_printable(field[i]))
			field[i] = '?';
	memset(field + length, 0, bytes - length);
}

void xl_metadata_read(const struct xmem_metadata *shared, struct xmem_metadata *ret)
{
	const u64 *from = (const u64 *)shared;
	u64 word[METADATA_WORDS];
	size_t i;

	for (i = 0; i < METADATA_WORDS; i++)
		word[i] = xm_load(&from[i]);
	memcpy(ret, word, sizeof(*ret));
}

void xl_metadata_take(const struct xmem_metadata *shared, struct xmem_metadata *ret)
{
	xl_metadata_read(shared, ret);
	make_printable(ret->content_type, sizeof(ret->content_type));
	make_printable(ret->producer, sizeof(ret->producer));
	make_printable(ret->clock, sizeof(ret->clock));
}

int xl_metadata_string(char *field, size_t bytes, const char *name, const char *string)
{
	size_t i, length = strnlen(string, bytes);

	if (length == bytes)
		return xl_fail(EINVAL, "the %s '%.40s...' has more than %zu characters",
			       name, string, bytes - 1);
	for (i = 0; i < length; i++)
		if (!is_printable(string[i]))
			return xl_fail(EINVAL, "byte %zu of the %s is 0x%02x, which is "
				       "not printable ASCII", i, name, (unsigned char)string[i]);
	memmove(field, string, length);		/* the two may be one */
	memset(field + length, 0, bytes - length);
	return 0;
}

/* ---- tensors ---- */

/* The bytes of one element. 0, noted: there is no such type. */
static u32 item_bytes(u32 dtype, const struct xl_says *says)
{
	u32 code = XMEM_DTYPE_CODE(dtype);
	u32 bits = XMEM_DTYPE_BITS(dtype) * XMEM_DTYPE_LANES(dtype);

	if (code < XMEM_DTYPE_CODES && code != XMEM_DTYPE_CODE_OPAQUE && bits && bits % 8 == 0)
		return bits / 8;
	xl_fail(says->impossible, "%s: dtype 0x%x (code %u, %u bits, %u lanes) is not a type of "
		"whole bytes that can be shared; see enum xmem_dtype", says->what, dtype, code,
		XMEM_DTYPE_BITS(dtype), XMEM_DTYPE_LANES(dtype));
	return 0;
}

static int too_large(const struct xl_says *says)
{
	return xl_fail(ERANGE, "%s: the shape has more bytes than 63 bits can count", says->what);
}

/*
 * The strides of a dense tensor of that shape, in which a dimension of 0 counts as 1. Afterwards,
 * all strides and the bytes of all elements are below 2^63. 0, or -errno, noted.
 */
static int dense_strides(u32 ndim, const int64_t *shape, u32 item, const struct xl_says *says,
			 int64_t *ret)
{
	int64_t bytes = item;
	u32 i;

	if (ndim > XMEM_MAX_DIMENSIONS)
		return xl_fail(says->impossible, "%s: ndim is %u, and may be %d at most",
			       says->what, ndim, XMEM_MAX_DIMENSIONS);
	for (i = ndim; i--;) {
		if (shape[i] < 0)
			return xl_fail(says->impossible, "%s: shape[%u] is %lld", says->what, i,
				       (long long)shape[i]);
		ret[i] = bytes;
		if (__builtin_mul_overflow(bytes, shape[i] ? shape[i] : 1, &bytes))
			return too_large(says);
	}
	return 0;
}

int xl_tensor_make_dense(struct xmem_metadata *metadata, const struct xl_says *says)
{
	u32 item = item_bytes(metadata->dtype, says);

	if (!item)
		return -says->impossible;
	return dense_strides(metadata->ndim, metadata->shape, item, says, metadata->strides);
}

/*
 * The number of bytes from the first element to the end of the last. pre: dense_strides accepted
 * the shape. 0, or -errno, noted.
 */
static int reach(const struct xmem_metadata *m, u32 item, const struct xl_says *says,
		 uint64_t *ret)
{
	int64_t last = 0, way;
	bool empty = false, over = false;
	u32 i;

	for (i = 0; i < m->ndim; i++) {
		if (m->strides[i] < 0)
			return xl_fail(says->impossible, "%s: strides[%u] is %lld, and strides "
				       "are not negative: copy such a view", says->what, i,
				       (long long)m->strides[i]);
		empty |= !m->shape[i];
		over |= __builtin_mul_overflow(m->shape[i] - 1, m->strides[i], &way) ||
			__builtin_add_overflow(last, way, &last);
	}
	if (empty)
		last = -(int64_t)item;
	else if (over)
		return too_large(says);
	*ret = (u64)last + item;	/* each of the two is below 2^63 */
	return 0;
}

/* The bytes of one number; 1 if C has no such numbers. */
static u32 number_bytes(u32 dtype)
{
	u32 bytes = XMEM_DTYPE_BITS(dtype) / 8;

	if (XMEM_DTYPE_CODE(dtype) == XMEM_DTYPE_CODE_COMPLEX)
		bytes /= 2;
	return bytes && !(bytes & (bytes - 1)) ? bytes : 1;
}

/*
 * Fill in the strides and what follows from them. If a dimension has one element or none, its
 * stride is never used. So it is replaced by that of a dense tensor, with which a reader can
 * calculate.
 */
static void fill_strides(const struct xmem_metadata *m, const int64_t *dense,
			 struct xmem_tensor *t)
{
	u64 unaligned = (uintptr_t)t->data;
	u32 i;

	t->flags = XMEM_TENSOR_DENSE | XMEM_TENSOR_DLPACK;
	for (i = 0; i < t->ndim; i++) {
		t->strides[i] = t->elements && t->shape[i] > 1 ? m->strides[i] : dense[i];
		t->element_strides[i] = t->strides[i] / t->item_bytes;
		unaligned |= t->strides[i];
		if (t->strides[i] != dense[i])
			t->flags &= ~XMEM_TENSOR_DENSE;
		if (t->strides[i] % t->item_bytes)
			t->flags &= ~XMEM_TENSOR_DLPACK;
	}
	if (!(t->flags & XMEM_TENSOR_DLPACK))
		memset(t->element_strides, 0, sizeof(t->element_strides));
	if (!(unaligned & (number_bytes(t->dtype) - 1)))
		t->flags |= XMEM_TENSOR_ALIGNED;
}

static void fill_tensor(const struct xmem_metadata *m, const int64_t *dense, u32 item,
			struct xmem_tensor *t)
{
	u32 i;

	t->dtype = m->dtype;
	t->ndim = m->ndim;
	t->item_bytes = item;
	t->elements = 1;
	for (i = 0; i < t->ndim; i++) {
		t->shape[i] = m->shape[i];
		t->elements *= m->shape[i];
	}
	fill_strides(m, dense, t);
}

int xl_tensor_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		      const struct xl_says *says, struct xmem_tensor *ret)
{
	struct xmem_tensor t = { .data = data };
	int64_t dense[XMEM_MAX_DIMENSIONS];
	u32 item = item_bytes(metadata->dtype, says);
	int err;

	if (!item)
		return -says->impossible;
	err = dense_strides(metadata->ndim, metadata->shape, item, says, dense);
	if (!err)
		err = reach(metadata, item, says, &t.bytes);
	if (err)
		return err;
	if (t.bytes > bytes)
		return xl_fail(ERANGE, "%s: the tensor takes %llu bytes, and there are %llu",
			       says->what, (unsigned long long)t.bytes, (unsigned long long)bytes);
	if (!ret)
		return 0;
	fill_tensor(metadata, dense, item, &t);
	*ret = t;
	return 0;
}

// SPDX-License-Identifier: MIT
/*
 * Looks at everything that views claim. It compares the addresses, and also reads the bytes, which
 * the address sanitizer checks.
 */
#include "fuzz.h"

#define MOST_ROWS	64	/* rows of a plane that it reads: the first ones, and the last */

void look_at_bytes(const void *data, size_t bytes)
{
	const volatile u8 *byte = data;
	size_t i;

	for (i = 0; i < bytes; i++)
		(void)byte[i];
}

static void look_within(const char *at, size_t length, const void *data, size_t bytes)
{
	MUST(at >= (const char *)data && length <= bytes);
	MUST((size_t)(at - (const char *)data) <= bytes - length);
	look_at_bytes(at, length < 4096 ? length : 4096);
	if (length)
		look_at_bytes(at + length - 1, 1);
}

/* Reads the corners: in each dimension the first and the last place. */
static void look_at_corners(const struct xmem_tensor *t, const void *data, size_t bytes)
{
	u32 corner, i;

	for (corner = 0; corner < 1u << t->ndim; corner++) {
		const char *at = t->data;

		for (i = 0; i < t->ndim; i++)
			if (corner >> i & 1)
				at += (t->shape[i] - 1) * t->strides[i];
		look_within(at, t->item_bytes, data, bytes);
	}
}

void look_at_tensor(const struct xmem_tensor *t, const void *data, size_t bytes)
{
	int64_t product = t->item_bytes;
	u32 i;

	MUST(t->ndim <= XMEM_MAX_DIMENSIONS && t->item_bytes && t->bytes <= bytes);
	MUST(t->data == data);
	for (i = 0; i < XMEM_MAX_DIMENSIONS; i++) {
		MUST(t->shape[i] >= 0 && t->strides[i] >= 0);
		MUST(i < t->ndim || (!t->shape[i] && !t->strides[i] && !t->element_strides[i]));
		MUST(!(t->flags & XMEM_TENSOR_DLPACK) ||
		     t->element_strides[i] * t->item_bytes == t->strides[i]);
	}
	for (i = 0; i < t->ndim; i++)
		MUST(!__builtin_mul_overflow(product, t->shape[i], &product));
	MUST((u64)product == t->elements * t->item_bytes);
	if (t->flags & XMEM_TENSOR_DENSE)
		MUST(t->bytes == (u64)product);
	if (t->elements)
		look_at_corners(t, data, bytes);
	else
		MUST(!t->bytes);
}

static void look_at_plane(const struct xmem_plane *plane, const void *data, size_t bytes)
{
	u32 row;

	MUST(plane->rows && plane->row_bytes && plane->stride >= plane->row_bytes);
	for (row = 0; row < plane->rows && row < MOST_ROWS; row++)
		look_within((const char *)plane->data + row * plane->stride, plane->row_bytes,
			    data, bytes);
	look_within((const char *)plane->data + (plane->rows - 1) * plane->stride,
		    plane->row_bytes, data, bytes);
}

void look_at_image(const struct xmem_image *image, const void *data, size_t bytes)
{
	u32 p;

	MUST(image->planes >= 1 && image->planes <= XMEM_IMAGE_MAX_PLANES);
	MUST(image->format && image->format < XMEM_IMAGE_FORMATS);
	MUST(image->width && image->width <= XMEM_IMAGE_MAX_SIDE);
	MUST(image->height && image->height <= XMEM_IMAGE_MAX_SIDE);
	for (p = 0; p < image->planes; p++)
		look_at_plane(&image->plane[p], data, bytes);
	for (; p < XMEM_IMAGE_MAX_PLANES; p++)
		MUST(!image->plane[p].data && !image->plane[p].rows);
}

/* The contents may be any bytes, so offsets may be anything; each row is looked at. */
void look_at_column(const struct xmem_strings *strings, const void *data, size_t bytes)
{
	const char *chars, *first = (const char *)data + strings->chars_at;
	int64_t length;
	u64 row;

	MUST(strings->data == data && strings->bytes <= bytes);
	MUST(strings->chars_at + strings->chars == strings->bytes);
	MUST(strings->offsets_at + (strings->rows + 1) * 4 <= strings->chars_at);
	for (row = 0; row < strings->rows; row++) {
		length = xmem_strings_get(strings, row, &chars);
		MUST(length >= 0 || length == -EBADMSG);
		if (length < 0 || !chars)
			continue;
		MUST(chars >= first && (u64)(chars - first) + length <= strings->chars);
		look_within(chars, length, data, bytes);
	}
	MUST(xmem_strings_get(strings, row, &chars) == -EINVAL);
}

static void look_at_string(const char *string, size_t bytes)
{
	size_t length = strnlen(string, bytes), i;

	MUST(length < bytes);
	for (i = 0; i < length; i++)
		MUST(string[i] >= ' ' && string[i] <= '~');
	for (; i < bytes; i++)
		MUST(!string[i]);
}

void look_at_strings(const struct xmem_metadata *m)
{
	look_at_string(m->content_type, sizeof(m->content_type));
	look_at_string(m->producer, sizeof(m->producer));
	look_at_string(m->clock, sizeof(m->clock));
}

// SPDX-License-Identifier: MIT
/*
 * Fuzz target: any metadata, over contents of any length. Metadata that the library accepts must
 * lie within the bytes, which are allocated to the byte. The library must accept metadata that it
 * has made itself, unless one byte of the contents is missing.
 */
#include "fuzz.h"

static const struct xl_says says = { "fuzz", EBADMSG };

/* Where the last byte of the last plane ends. */
static u64 end_of(const struct xmem_image *image, const char *data)
{
	const struct xmem_plane *last = &image->plane[image->planes - 1];

	return (const char *)last->data - data + (u64)last->stride * (last->rows - 1) +
	       last->row_bytes;
}

/* Metadata is read, whatever it says. */
static void read_it(const struct xmem_metadata *shared, const char *data, size_t bytes)
{
	struct xmem_metadata m, twice;
	struct xmem_tensor tensor;
	struct xmem_image image;
	struct xmem_strings column = { .size = sizeof(column) };

	xl_metadata_take(shared, &m);
	look_at_strings(&m);
	xl_metadata_take(&m, &twice);
	MUST(!memcmp(&m, &twice, sizeof(m)));
	if (!xl_tensor_measure(&m, data, bytes, &says, &tensor)) {
		look_at_tensor(&tensor, data, bytes);
		MUST(xl_tensor_measure(&m, data, tensor.bytes, &says, NULL) == 0);
		MUST(!tensor.bytes || xl_tensor_measure(&m, data, tensor.bytes - 1, &says, NULL) ==
				      -ERANGE);
	}
	if (!xl_image_measure(&m, data, bytes, &says, &image)) {
		look_at_image(&image, data, bytes);
		MUST(!xl_tensor_measure(&m, data, bytes, &says, &tensor));
		MUST(xl_image_measure(&m, data, end_of(&image, data) - 1, &says, NULL) == -ERANGE);
	}
	if (!xl_strings_measure(&m, data, bytes, &says, &column)) {
		column.size = sizeof(column);
		look_at_column(&column, data, bytes);
		MUST(!xl_tensor_measure(&m, data, bytes, &says, &tensor));
		MUST(xl_strings_measure(&m, data, column.bytes - 1, &says, NULL) == -ERANGE);
	}
}

/* All of the metadata comes from the input. */
static void read_any(struct input *in, const char *data, size_t bytes)
{
	struct xmem_metadata m;

	input_bytes(in, &m, sizeof(m));
	read_it(&m, data, bytes);
}

/* The metadata was good, and then some words changed. */
static void read_spoilt(struct input *in, const char *data, size_t bytes)
{
	struct xmem_metadata m = { 0 };
	u8 format = input_u8(in), width = input_u8(in), height = input_u8(in);
	u32 *half = (u32 *)&m, which;

	if (format & 0x80)
		xl_strings_fill(&m, width, height, format & XMEM_STRINGS_VALIDITY, &says);
	else
		xl_image_fill(&m, format % XMEM_IMAGE_FORMATS, width % 64, height % 64, 0, &says);
	while (in->at < in->end) {
		which = input_u8(in) % (sizeof(m) / sizeof(*half));
		half[which] = input_u8(in) & 1 ? half[which] + (int8_t)input_u8(in) :
						 (u32)input_u64(in);
	}
	read_it(&m, data, bytes);
}

/* The library describes an image with numbers from the input. */
static void describe_image(struct input *in, const char *data, size_t bytes)
{
	u32 format = input_u8(in);
	u64 width = input_u64(in), height = input_u64(in), stride = input_u64(in);
	struct xmem_metadata m = { 0 };
	struct xmem_image image;
	int err;

	if (xl_image_fill(&m, format, width, height, stride, &says))
		return;
	err = xl_image_measure(&m, data, bytes, &says, &image);
	MUST(!err || err == -ERANGE);
	if (err)
		return;
	look_at_image(&image, data, bytes);
	MUST(image.format == format && image.width == width && image.height == height);
	MUST(!stride || image.plane[0].stride == stride);
}

static void describe_tensor(struct input *in, const char *data, size_t bytes)
{
	struct xmem_metadata m = { .dtype = input_u64(in), .ndim = input_u8(in) };
	struct xmem_tensor tensor;
	int err;

	input_bytes(in, m.shape, sizeof(m.shape));
	if (xl_tensor_make_dense(&m, &says))
		return;
	err = xl_tensor_measure(&m, data, bytes, &says, &tensor);
	MUST(!err || err == -ERANGE);
	if (err)
		return;
	look_at_tensor(&tensor, data, bytes);
	MUST(tensor.flags & XMEM_TENSOR_DENSE && tensor.flags & XMEM_TENSOR_DLPACK);
}

/* The library describes a column with numbers from the input, whose rest is its contents. */
static void describe_strings(struct input *in, char *data, size_t bytes)
{
	struct xmem_strings column = { .size = sizeof(column) };
	u64 rows = input_u64(in), chars = input_u64(in);
	u32 flags = input_u8(in);
	struct xmem_metadata m = { 0 };
	int err;

	if (xl_strings_fill(&m, rows, chars, flags, &says))
		return;
	input_bytes(in, data, bytes);
	err = xl_strings_measure(&m, data, bytes, &says, &column);
	MUST(!err || err == -ERANGE);
	if (err)
		return;
	column.size = sizeof(column);
	look_at_column(&column, data, bytes);
	MUST(column.rows == rows && column.chars == chars && column.flags == flags);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, data + size };
	u8 kind = input_u8(&in), shift = input_u8(&in) % 16;
	size_t bytes = input_u64(&in) % 8192;
	void *memory;
	char *contents;				/* their end is that of the memory */

	if (kind % 8 == 4)			/* a column is accepted only there */
		shift = 0;
	MUST(!posix_memalign(&memory, 64, shift + bytes));
	contents = (char *)memset(memory, 0, shift + bytes) + shift;
	switch (kind % 8) {
	case 4:	describe_strings(&in, contents, bytes); break;
	case 0:	describe_image(&in, contents, bytes); break;
	case 1:
	case 5:	describe_tensor(&in, contents, bytes); break;
	case 2:
	case 6:	read_any(&in, contents, bytes); break;
	case 3:
	case 7:	read_spoilt(&in, contents, bytes); break;
	}
	free(memory);
	return 0;
}

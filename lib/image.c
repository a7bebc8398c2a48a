// SPDX-License-Identifier: MIT
/*
 * What metadata says of an image, checked: the planes of each format, and where they lie.
 */
#include <stdio.h>
#include <string.h>

#include "tensor.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define GRAY16_NAME	"GRAY16_LE"
#else
#define GRAY16_NAME	"GRAY16_BE"
#endif

/* How the planes of a format lie. */
enum family {
	NO_FAMILY = 0,
	PACKED,				/* one plane; each pixel has all of its channels */
	PAIRS,				/* one plane; two pixels share four bytes */
	TWO_PLANES,			/* luma; both chroma channels at half size */
	THREE_PLANES			/* luma; one chroma channel each at half size */
};

static const struct format {
	const char *name;		/* GStreamer's */
	enum family family;
	u32 dtype;
	u32 channels;			/* of the first plane */
} formats[XMEM_IMAGE_FORMATS] = {
	[XMEM_IMAGE_GRAY8] = { "GRAY8", PACKED, XMEM_DTYPE_UINT8, 1 },
	[XMEM_IMAGE_GRAY16] = { GRAY16_NAME, PACKED, XMEM_DTYPE_UINT16, 1 },
	[XMEM_IMAGE_RGB8] = { "RGB", PACKED, XMEM_DTYPE_UINT8, 3 },
	[XMEM_IMAGE_BGR8] = { "BGR", PACKED, XMEM_DTYPE_UINT8, 3 },
	[XMEM_IMAGE_RGBA8] = { "RGBA", PACKED, XMEM_DTYPE_UINT8, 4 },
	[XMEM_IMAGE_BGRA8] = { "BGRA", PACKED, XMEM_DTYPE_UINT8, 4 },
	[XMEM_IMAGE_YUYV] = { "YUY2", PAIRS, XMEM_DTYPE_UINT8, 2 },
	[XMEM_IMAGE_UYVY] = { "UYVY", PAIRS, XMEM_DTYPE_UINT8, 2 },
	[XMEM_IMAGE_I420] = { "I420", THREE_PLANES, XMEM_DTYPE_UINT8, 1 },
	[XMEM_IMAGE_NV12] = { "NV12", TWO_PLANES, XMEM_DTYPE_UINT8, 1 },
};

/* Where the planes are, and how many bytes they take together. */
struct plan {
	u32 planes;
	u64 bytes;
	struct {
		u64 offset, stride;
		u32 row_bytes, rows;
	} plane[XMEM_IMAGE_MAX_PLANES];
};

static void add_plane(struct plan *plan, u64 stride, u32 row_bytes, u32 rows)
{
	u32 p = plan->planes++;

	plan->plane[p].offset = p ? plan->plane[p - 1].offset +
				    plan->plane[p - 1].stride * plan->plane[p - 1].rows : 0;
	plan->plane[p].stride = stride;
	plan->plane[p].row_bytes = row_bytes;
	plan->plane[p].rows = rows;
	plan->bytes = plan->plane[p].offset + stride * (rows - 1) + row_bytes;
}

/* Bytes of pixels in a row of the first plane. In NV12 a row of the second is not shorter. */
static u32 first_row_bytes(const struct format *format, u32 width)
{
	if (format->family == PAIRS)
		return (width + 1) / 2 * 4;
	return width * format->channels * (XMEM_DTYPE_BITS(format->dtype) / 8);
}

/* The least stride, at which the rows of no plane overlap. */
static u32 least_stride(const struct format *format, u32 width)
{
	if (format->family == TWO_PLANES)
		return (width + 1) / 2 * 2;
	return first_row_bytes(format, width);
}

/* pre: the sides and the stride are within their limits, so nothing here overflows 64 bits. */
static void make_plan(const struct format *format, u32 width, u32 height, u64 stride,
		      struct plan *ret)
{
	u32 half_width = (width + 1) / 2, half_height = (height + 1) / 2;

	memset(ret, 0, sizeof(*ret));
	add_plane(ret, stride, first_row_bytes(format, width), height);
	if (format->family == TWO_PLANES) {
		add_plane(ret, stride, 2 * half_width, half_height);
	} else if (format->family == THREE_PLANES) {
		add_plane(ret, (stride + 1) / 2, half_width, half_height);
		add_plane(ret, (stride + 1) / 2, half_width, half_height);
	}
}

/* ---- the limits ---- */

#define MAX_STRIDE	(1ULL << 40)	/* times 2^20 rows of three planes: far below 2^64 */

static const struct format *find_format(u32 format, const struct xl_says *says)
{
	if (format < XMEM_IMAGE_FORMATS && formats[format].family != NO_FAMILY)
		return &formats[format];
	xl_fail(says->impossible, "%s: there is no image format %u; see enum xmem_image_format",
		says->what, format);
	return NULL;
}

static int check_numbers(const struct format *format, u64 width, u64 height, u64 stride,
			 const struct xl_says *says)
{
	if (!width || width > XMEM_IMAGE_MAX_SIDE || !height || height > XMEM_IMAGE_MAX_SIDE)
		return xl_fail(says->impossible, "%s: an image of %llu x %llu pixels; each side "
			       "has 1 to %u", says->what, (unsigned long long)width,
			       (unsigned long long)height, XMEM_IMAGE_MAX_SIDE);
	if (stride < least_stride(format, width) || stride > MAX_STRIDE)
		return xl_fail(says->impossible, "%s: a stride of %llu bytes; a row of %llu pixels "
			       "of %s has %u", says->what, (unsigned long long)stride,
			       (unsigned long long)width, format->name,
			       least_stride(format, width));
	return 0;
}

/* ---- saying ---- */

/* Say that the first plane is a tensor. */
static void fill_tensor(struct xmem_metadata *m, const struct format *format, u64 width,
			u64 height, u64 stride)
{
	u32 pixel = format->channels * (XMEM_DTYPE_BITS(format->dtype) / 8);

	m->dtype = format->dtype;
	m->ndim = format->channels > 1 ? 3 : 2;
	m->shape[0] = height;
	m->shape[1] = width;
	m->strides[0] = stride;
	m->strides[1] = pixel;
	if (m->ndim == 3) {
		m->shape[2] = format->channels;
		m->strides[2] = pixel / format->channels;
	}
}

int xl_image_fill(struct xmem_metadata *metadata, u32 format, u64 width, u64 height, u64 stride,
		  const struct xl_says *says)
{
	const struct format *known = find_format(format, says);
	int err;

	if (!known)
		return -says->impossible;
	if (!stride && width <= XMEM_IMAGE_MAX_SIDE)
		stride = least_stride(known, width);
	err = check_numbers(known, width, height, stride, says);
	if (err)
		return err;
	metadata->image = format;
	fill_tensor(metadata, known, width, height, stride);
	snprintf(metadata->content_type, sizeof(metadata->content_type), "video/x-raw,%s",
		 known->name);
	return 0;
}

/* ---- understanding ---- */

/* Does the tensor that is said beside it agree with the format? */
static bool agrees(const struct xmem_metadata *m, const struct format *format)
{
	struct xmem_metadata want = { 0 };

	fill_tensor(&want, format, m->shape[1], m->shape[0], m->strides[0]);
	return m->dtype == want.dtype && m->ndim == want.ndim &&
	       m->strides[1] == want.strides[1] &&
	       (want.ndim < 3 ||
		(m->shape[2] == want.shape[2] && m->strides[2] == want.strides[2]));
}

static void fill_image(const struct xmem_metadata *m, const char *data, const struct plan *plan,
		       struct xmem_image *ret)
{
	u32 p;

	*ret = (struct xmem_image){
		.format = m->image, .planes = plan->planes,
		.width = m->shape[1], .height = m->shape[0],
	};
	for (p = 0; p < plan->planes; p++)
		ret->plane[p] = (struct xmem_plane){
			.data = data + plan->plane[p].offset,
			.stride = plan->plane[p].stride,
			.row_bytes = plan->plane[p].row_bytes,
			.rows = plan->plane[p].rows,
		};
}

int xl_image_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		     const struct xl_says *says, struct xmem_image *ret)
{
	const struct format *format = find_format(metadata->image, says);
	struct plan plan;
	int err;

	if (!format)
		return -says->impossible;
	err = check_numbers(format, metadata->shape[1], metadata->shape[0], metadata->strides[0],
			    says);
	if (err)
		return err;
	if (!agrees(metadata, format))
		return xl_fail(says->impossible, "%s: dtype, shape or strides are not those of an "
			       "image in %s", says->what, format->name);
	make_plan(format, metadata->shape[1], metadata->shape[0], metadata->strides[0], &plan);
	if (plan.bytes > bytes)
		return xl_fail(ERANGE, "%s: the image takes %llu bytes, and there are %llu",
			       says->what, (unsigned long long)plan.bytes,
			       (unsigned long long)bytes);
	if (ret)
		fill_image(metadata, data, &plan, ret);
	return 0;
}

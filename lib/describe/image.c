// SPDX-License-Identifier: MIT
/* Descriptions of images: the planes of each format and where they lie, and checks of metadata. */
#include <stdio.h>
#include <string.h>

#include "lib/describe/tensor.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER	"LE"
#define SMALL	"le"
#else
#define ORDER	"BE"
#define SMALL	"be"
#endif

/* ---- the formats ---- */

/*
 * A plane consists of blocks of pixels. A block has one or more elements, and each one or more
 * numbers.
 */
struct form {
	u8 channels;			/* numbers in one element; 0: there is no such plane */
	u8 elements;			/* in one block, which is 2^x columns by 2^y rows */
	u8 x, y;
};

#define PACKED(channels)	{ channels, 1, 0, 0 }
#define PAIRS			{ 2, 2, 1, 0 }
#define TWO_PLANES(x, y)	PACKED(1), { 2, 1, x, y }
#define THREE_PLANES(x, y)	PACKED(1), { 1, 1, x, y }, { 1, 1, x, y }

/* The facts about a format. Sizes, strides and tensors are calculated from them. */
static const struct format {
	const char *name;
	const char *content_type;	/* GStreamer's, or with ffmpeg's name if GStreamer has
					 * none */
	u32 dtype;
	struct form plane[XMEM_IMAGE_MAX_PLANES];
} formats[XMEM_IMAGE_FORMATS] = {
#define FORMAT(name, content_type, dtype, ...) \
	[XMEM_IMAGE_ ## name] = { #name, "video/" content_type, XMEM_DTYPE_ ## dtype, \
				  { __VA_ARGS__ } }
	FORMAT(GRAY8, "x-raw,GRAY8", UINT8, PACKED(1)),
	FORMAT(GRAY16, "x-raw,GRAY16_" ORDER, UINT16, PACKED(1)),
	FORMAT(RGB8, "x-raw,RGB", UINT8, PACKED(3)),
	FORMAT(BGR8, "x-raw,BGR", UINT8, PACKED(3)),
	FORMAT(RGBA8, "x-raw,RGBA", UINT8, PACKED(4)),
	FORMAT(BGRA8, "x-raw,BGRA", UINT8, PACKED(4)),
	FORMAT(YUYV, "x-raw,YUY2", UINT8, PAIRS),
	FORMAT(UYVY, "x-raw,UYVY", UINT8, PAIRS),
	FORMAT(I420, "x-raw,I420", UINT8, THREE_PLANES(1, 1)),
	FORMAT(NV12, "x-raw,NV12", UINT8, TWO_PLANES(1, 1)),
	FORMAT(NV21, "x-raw,NV21", UINT8, TWO_PLANES(1, 1)),
	FORMAT(NV16, "x-raw,NV16", UINT8, TWO_PLANES(1, 0)),
	FORMAT(P010, "x-raw,P010_10" ORDER, UINT16, TWO_PLANES(1, 1)),
	FORMAT(P016, "x-raw,P016_" ORDER, UINT16, TWO_PLANES(1, 1)),
	FORMAT(YV12, "x-raw,YV12", UINT8, THREE_PLANES(1, 1)),
	FORMAT(I422, "x-raw,Y42B", UINT8, THREE_PLANES(1, 0)),
	FORMAT(I444, "x-raw,Y444", UINT8, THREE_PLANES(0, 0)),
	FORMAT(BAYER_BGGR8, "x-bayer,bggr", UINT8, PACKED(1)),
	FORMAT(BAYER_GBRG8, "x-bayer,gbrg", UINT8, PACKED(1)),
	FORMAT(BAYER_GRBG8, "x-bayer,grbg", UINT8, PACKED(1)),
	FORMAT(BAYER_RGGB8, "x-bayer,rggb", UINT8, PACKED(1)),
	FORMAT(BAYER_BGGR16, "x-bayer,bggr16" SMALL, UINT16, PACKED(1)),
	FORMAT(BAYER_GBRG16, "x-bayer,gbrg16" SMALL, UINT16, PACKED(1)),
	FORMAT(BAYER_GRBG16, "x-bayer,grbg16" SMALL, UINT16, PACKED(1)),
	FORMAT(BAYER_RGGB16, "x-bayer,rggb16" SMALL, UINT16, PACKED(1)),
	FORMAT(RGB48, "x-raw,rgb48" SMALL, UINT16, PACKED(3)),
	FORMAT(RGBA64, "x-raw,RGBA64_" ORDER, UINT16, PACKED(4)),
	FORMAT(RGBF32, "x-raw,rgbf32" SMALL, FLOAT32, PACKED(3)),
	FORMAT(GBRPF32, "x-raw,gbrpf32" SMALL, FLOAT32, THREE_PLANES(0, 0)),
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

/* How many groups cover @pixels? The last one may cover pixels that the image does not have. */
static u64 groups(u64 pixels, u32 shift)
{
	return (pixels + (1u << shift) - 1) >> shift;
}

static u32 element_bytes(const struct format *format, u32 plane)
{
	return format->plane[plane].channels * (XMEM_DTYPE_BITS(format->dtype) / 8);
}

static u64 row_bytes(const struct format *format, u32 plane, u64 pixels)
{
	const struct form *form = &format->plane[plane];

	return groups(pixels, form->x) * form->elements * element_bytes(format, plane);
}

/*
 * Each plane's rows have room for as many pixels as the rows of the first plane. pre: the sides and
 * the stride are within their limits, so nothing here overflows 64 bits.
 */
static void make_plan(const struct format *format, u32 width, u32 height, u64 stride,
		      struct plan *ret)
{
	u64 room = (stride + element_bytes(format, 0) - 1) / element_bytes(format, 0), end = 0;
	u32 p;

	memset(ret, 0, sizeof(*ret));
	for (p = 0; p < XMEM_IMAGE_MAX_PLANES && format->plane[p].channels; p++) {
		ret->plane[p].offset = end;
		ret->plane[p].stride = p ? row_bytes(format, p, room) : stride;
		ret->plane[p].row_bytes = row_bytes(format, p, width);
		ret->plane[p].rows = groups(height, format->plane[p].y);
		end += ret->plane[p].stride * ret->plane[p].rows;
		ret->bytes = end - ret->plane[p].stride + ret->plane[p].row_bytes;
	}
	ret->planes = p;
}

/* ---- the limits ---- */

#define MAX_STRIDE	(1ULL << 40)	/* times 2^20 rows of three planes: far below 2^63 */

static const struct format *find_format(u32 format, const struct xl_says *says)
{
	if (format < XMEM_IMAGE_FORMATS && formats[format].name)
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
	if (stride < row_bytes(format, 0, width) || stride > MAX_STRIDE)
		return xl_fail(says->impossible, "%s: a stride of %llu bytes; a row of %llu pixels "
			       "of %s has %llu", says->what, (unsigned long long)stride,
			       (unsigned long long)width, format->name,
			       (unsigned long long)row_bytes(format, 0, width));
	return 0;
}

/* ---- describing ---- */

/* Describe one plane as a tensor. */
static void fill_plane(struct xmem_metadata *m, const struct format *format, u32 plane, u64 rows,
		       u64 row_bytes, u64 stride)
{
	u32 element = element_bytes(format, plane), channels = format->plane[plane].channels;

	m->dtype = format->dtype;
	m->ndim = channels > 1 ? 3 : 2;
	m->shape[0] = rows;
	m->shape[1] = row_bytes / element;
	m->strides[0] = stride;
	m->strides[1] = element;
	if (channels > 1) {
		m->shape[2] = channels;
		m->strides[2] = element / channels;
	}
}

/*
 * Describe an image as the tensor of its only plane, or of all its bytes, so that no plane is lost.
 */
static void fill_tensor(struct xmem_metadata *m, const struct format *format,
			const struct plan *plan)
{
	if (plan->planes == 1) {
		fill_plane(m, format, 0, plan->plane[0].rows, plan->plane[0].row_bytes,
			   plan->plane[0].stride);
		return;
	}
	m->dtype = XMEM_DTYPE_UINT8;
	m->ndim = 1;
	m->shape[0] = plan->bytes;
	m->strides[0] = 1;
}

/* Find the format and the plan of an image with these numbers. 0, or -errno, noted. */
static int plan_image(u32 number, u64 width, u64 height, u64 stride, const struct xl_says *says,
		      const struct format **ret_format, struct plan *ret)
{
	const struct format *format = find_format(number, says);
	int err;

	if (!format)
		return -says->impossible;
	if (!stride && width <= XMEM_IMAGE_MAX_SIDE)
		stride = row_bytes(format, 0, width);
	err = check_numbers(format, width, height, stride, says);
	if (err)
		return err;
	make_plan(format, width, height, stride, ret);
	*ret_format = format;
	return 0;
}

int xl_image_fill(struct xmem_metadata *metadata, u32 number, u64 width, u64 height, u64 stride,
		  const struct xl_says *says)
{
	const struct format *format;
	struct plan plan;
	int err = plan_image(number, width, height, stride, says, &format, &plan);

	if (err)
		return err;
	metadata->image = number;
	metadata->image_width = width;
	metadata->image_height = height;
	metadata->image_stride = plan.plane[0].stride;
	fill_tensor(metadata, format, &plan);
	snprintf(metadata->content_type, sizeof(metadata->content_type), "%s",
		 format->content_type);
	return 0;
}

XMEM_API int64_t xmem_image_bytes(uint32_t format, uint32_t width, uint32_t height, size_t stride)
{
	XL_CALL;
	static const struct xl_says says = { "image_bytes", EINVAL };
	const struct format *found;
	struct plan plan;
	int err = plan_image(format, width, height, stride, &says, &found, &plan);

	return err ? err : (int64_t)plan.bytes;
}

/* ---- reading ---- */

/* Do the metadata describe the tensor that xl_image_fill writes for this image? */
static bool agrees(const struct xmem_metadata *m, const struct format *format,
		   const struct plan *plan)
{
	struct xmem_metadata want = { 0 };

	fill_tensor(&want, format, plan);
	return m->dtype == want.dtype && m->ndim == want.ndim &&
	       !memcmp(m->shape, want.shape, want.ndim * sizeof(*want.shape)) &&
	       !memcmp(m->strides, want.strides, want.ndim * sizeof(*want.strides));
}

static void fill_image(const struct xmem_metadata *m, const char *data, const struct plan *plan,
		       struct xmem_image *ret)
{
	u32 p;

	*ret = (struct xmem_image){
		.format = m->image, .planes = plan->planes,
		.width = m->image_width, .height = m->image_height,
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
	const struct format *format;
	struct plan plan;
	int err;

	err = plan_image(metadata->image, metadata->image_width, metadata->image_height,
			 metadata->image_stride, says, &format, &plan);
	if (err)
		return err;
	if (!agrees(metadata, format, &plan))
		return xl_fail(says->impossible, "%s: dtype, shape or strides are not those of an "
			       "image in %s", says->what, format->name);
	if (plan.bytes > bytes)
		return xl_fail(ERANGE, "%s: the image takes %llu bytes, and there are %llu",
			       says->what, (unsigned long long)plan.bytes,
			       (unsigned long long)bytes);
	if (ret)
		fill_image(metadata, data, &plan, ret);
	return 0;
}

int xl_plane_measure(const struct xmem_image *image, u32 plane, const struct xl_says *says,
		     struct xmem_tensor *ret)
{
	const struct format *format = find_format(image->format, says);
	struct xmem_metadata m = { 0 };
	const struct xmem_plane *from;

	if (!format)
		return -says->impossible;
	if (plane >= XMEM_IMAGE_MAX_PLANES || !format->plane[plane].channels)
		return xl_fail(says->impossible, "%s: an image in %s has no plane %u", says->what,
			       format->name, plane);
	from = &image->plane[plane];
	fill_plane(&m, format, plane, from->rows, from->row_bytes, from->stride);
	return xl_tensor_measure(&m, from->data, ~0ULL, says, ret);
}

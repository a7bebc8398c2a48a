// SPDX-License-Identifier: MIT
/*
 * Metadata of tensors and images, against plain models: the model visits every element and every
 * row one by one, and whatever the library accepts must lie within the bytes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/describe/tensor.h"
#include "unit.h"

static char said[512];

/* These two stand for the library's, which record the error for the thread. */
__thread const char *xl_call;

int xl_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	return -error;
}

static const struct xl_says says = { "test", EBADMSG };

static struct xmem_metadata tensor_of(u32 dtype, u32 ndim, const int64_t *shape,
				      const int64_t *strides)
{
	struct xmem_metadata m = { .dtype = dtype, .ndim = ndim };
	u32 i;

	for (i = 0; i < ndim && i < 8; i++) {
		m.shape[i] = shape[i];
		m.strides[i] = strides ? strides[i] : 0;
	}
	if (!strides)
		ck_assert_int_eq(xl_tensor_make_dense(&m, &says), 0);
	return m;
}
#define SHAPE(...)	((const int64_t[]){ __VA_ARGS__ })

/* It is refused with that errno, and the answer stays as it was. */
static void refused(const struct xmem_metadata *m, u64 bytes, int error)
{
	struct xmem_tensor t, before;

	memset(&t, 0xa5, sizeof(t));
	before = t;
	said[0] = 0;
	ck_assert_int_eq(xl_tensor_measure(m, NULL, bytes, &says, &t), -error);
	ck_assert_int_eq(memcmp(&t, &before, sizeof(t)), 0);
	ck_assert(said[0]);
}

static struct xmem_tensor measured(const struct xmem_metadata *m, const void *data, u64 bytes)
{
	struct xmem_tensor t;

	memset(&t, 0xa5, sizeof(t));
	ck_assert_msg(!xl_tensor_measure(m, data, bytes, &says, &t), "%s", said);
	return t;
}

/* ---- types ---- */

START_TEST(types_are_dlpacks)
{
	/* The bytes of a DLDataType: code, bits, lanes in the order of the machine. */
	static const u8 float32x4[] = { 2, 32, 4, 0 }, bfloat16[] = { 4, 16, 1, 0 };
	u32 a = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT, 32, 4), b = XMEM_DTYPE_BFLOAT16;

	ck_assert_int_eq(memcmp(&a, float32x4, 4), 0);
	ck_assert_int_eq(memcmp(&b, bfloat16, 4), 0);
	ck_assert_uint_eq(XMEM_DTYPE_CODE(a), 2);
	ck_assert_uint_eq(XMEM_DTYPE_BITS(a), 32);
	ck_assert_uint_eq(XMEM_DTYPE_LANES(a), 4);
}
END_TEST

START_TEST(only_types_of_whole_bytes_that_can_be_shared)
{
	static const struct { u32 dtype, item; } good[] = {
		{ XMEM_DTYPE_INT8, 1 }, { XMEM_DTYPE_INT64, 8 }, { XMEM_DTYPE_UINT16, 2 },
		{ XMEM_DTYPE_FLOAT16, 2 }, { XMEM_DTYPE_FLOAT64, 8 }, { XMEM_DTYPE_BFLOAT16, 2 },
		{ XMEM_DTYPE_COMPLEX64, 8 }, { XMEM_DTYPE_COMPLEX128, 16 },
		{ XMEM_DTYPE_BOOL, 1 }, { XMEM_DTYPE_FLOAT8_E4M3FN, 1 },
		{ XMEM_DTYPE_FLOAT4_E2M1FN_X2, 1 }, { XMEM_DTYPE(15, 6, 4), 3 },
		{ XMEM_DTYPE(1, 24, 1), 3 }, { XMEM_DTYPE(2, 32, 65535), 262140 },
		{ XMEM_DTYPE(0, 255, 8), 255 },
	};
	static const u32 bad[] = {
		0, 1, XMEM_DTYPE(17, 4, 1), XMEM_DTYPE(15, 6, 2), XMEM_DTYPE(1, 8, 0),
		XMEM_DTYPE(1, 0, 1), XMEM_DTYPE(3, 64, 1), XMEM_DTYPE(18, 8, 1),
		XMEM_DTYPE(255, 8, 1), XMEM_DTYPE(0, 1, 1), 0xa5a5a5a5, 0xffffffff,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct xmem_metadata m = tensor_of(good[i].dtype, 1, SHAPE(3), NULL);

		ck_assert_uint_eq(measured(&m, NULL, 3ULL * good[i].item).item_bytes,
				  good[i].item);
		refused(&m, 3ULL * good[i].item - 1, ERANGE);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct xmem_metadata m = { .dtype = bad[i] };

		refused(&m, 1000, EBADMSG);
	}
}
END_TEST

/* ---- shapes ---- */

START_TEST(impossible_shapes_are_refused)
{
	struct xmem_metadata m = { .dtype = XMEM_DTYPE_UINT8, .ndim = 9 };

	refused(&m, ~0ULL, EBADMSG);
	m.ndim = ~0u;
	refused(&m, ~0ULL, EBADMSG);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(4, -1), SHAPE(4, 1));
	refused(&m, ~0ULL, EBADMSG);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(INT64_MIN, 4), SHAPE(4, 1));
	refused(&m, ~0ULL, EBADMSG);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(4, 4), SHAPE(-4, 1));
	refused(&m, ~0ULL, EBADMSG);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(0, 4), SHAPE(4, INT64_MIN));
	refused(&m, ~0ULL, EBADMSG);
}
END_TEST

/* Sums and products that would become small if they were not checked. */
START_TEST(overflow_is_no_way_in)
{
	struct xmem_metadata m;

	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(1LL << 32, 1LL << 32), SHAPE(0, 0));
	refused(&m, ~0ULL, ERANGE);
	m = tensor_of(XMEM_DTYPE_UINT16, 1, SHAPE(1LL << 62), SHAPE(0));
	refused(&m, ~0ULL, ERANGE);
	m = tensor_of(XMEM_DTYPE_UINT8, 8, SHAPE(256, 256, 256, 256, 256, 256, 256, 256),
		      SHAPE(0, 0, 0, 0, 0, 0, 0, 0));
	refused(&m, ~0ULL, ERANGE);
	m = tensor_of(XMEM_DTYPE_UINT8, 3, SHAPE(0, INT64_MAX, INT64_MAX), SHAPE(0, 0, 0));
	refused(&m, ~0ULL, ERANGE);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(3, 3), SHAPE(INT64_MAX / 2 + 1, 1));
	refused(&m, ~0ULL, ERANGE);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(2, 2), SHAPE(INT64_MAX, 1));
	refused(&m, ~0ULL, ERANGE);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(2, 2), SHAPE(1LL << 40, 1));
	refused(&m, 1ULL << 40, ERANGE);
	/* and the largest that does not overflow */
	m = tensor_of(XMEM_DTYPE_UINT8, 1, SHAPE(INT64_MAX), SHAPE(1));
	ck_assert_uint_eq(measured(&m, NULL, ~0ULL).bytes, INT64_MAX);
	m = tensor_of(XMEM_DTYPE_UINT8, 2, SHAPE(2, 2), SHAPE(INT64_MAX - 1, 1));
	ck_assert_uint_eq(measured(&m, NULL, ~0ULL).bytes, 1ULL << 63);
}
END_TEST

START_TEST(empty_and_single_ones)
{
	struct xmem_metadata m = { .dtype = XMEM_DTYPE_FLOAT32 };
	struct xmem_tensor t = measured(&m, NULL, 4);

	ck_assert_uint_eq(t.elements, 1);
	ck_assert_uint_eq(t.bytes, 4);
	refused(&m, 3, ERANGE);
	m = tensor_of(XMEM_DTYPE_FLOAT32, 3, SHAPE(5, 0, 7), SHAPE(1LL << 60, 9, 1LL << 61));
	t = measured(&m, NULL, 0);
	ck_assert_uint_eq(t.elements, 0);
	ck_assert_uint_eq(t.bytes, 0);
	/* strides without an effect are those of a dense tensor */
	ck_assert_int_eq(t.strides[0], 28);
	ck_assert_int_eq(t.strides[2], 4);
	ck_assert_uint_eq(t.flags, XMEM_TENSOR_DENSE | XMEM_TENSOR_ALIGNED | XMEM_TENSOR_DLPACK);
	m = tensor_of(XMEM_DTYPE_FLOAT32, 2, SHAPE(1, 7), SHAPE(INT64_MAX, 4));
	t = measured(&m, NULL, 28);
	ck_assert_int_eq(t.strides[0], 28);
	ck_assert(t.flags & XMEM_TENSOR_DENSE);
}
END_TEST

START_TEST(flags_say_how_it_lies)
{
	_Alignas(16) static char data[512];
	struct xmem_metadata m = tensor_of(XMEM_DTYPE_FLOAT32, 2, SHAPE(3, 4), SHAPE(16, 4));
	struct xmem_tensor t = measured(&m, data, 48);

	ck_assert_uint_eq(t.flags, XMEM_TENSOR_DENSE | XMEM_TENSOR_ALIGNED | XMEM_TENSOR_DLPACK);
	ck_assert_int_eq(t.element_strides[0], 4);
	ck_assert_int_eq(t.element_strides[1], 1);
	ck_assert_ptr_eq(t.data, data);
	t = measured(&m, data + 2, 48);			/* a publisher may write offset 2 */
	ck_assert_uint_eq(t.flags, XMEM_TENSOR_DENSE | XMEM_TENSOR_DLPACK);
	m.strides[0] = 18;
	t = measured(&m, data, 52);
	ck_assert_uint_eq(t.flags, 0);
	ck_assert_int_eq(t.element_strides[0] | t.element_strides[1], 0);
	m.strides[0] = 20;
	t = measured(&m, data, 56);
	ck_assert_uint_eq(t.flags, XMEM_TENSOR_ALIGNED | XMEM_TENSOR_DLPACK);
	m = tensor_of(XMEM_DTYPE_COMPLEX64, 1, SHAPE(3), NULL);
	ck_assert(measured(&m, data + 4, 24).flags & XMEM_TENSOR_ALIGNED);
	ck_assert(!(measured(&m, data + 2, 24).flags & XMEM_TENSOR_ALIGNED));
}
END_TEST

/* The end of the element that reaches furthest, one by one; -1: the walk is too long. */
static int64_t furthest(const struct xmem_metadata *m, u32 item)
{
	int64_t index[8] = { 0 }, end = 0;
	u32 d, looked = 0;

	for (d = 0; d < m->ndim; d++)
		if (!m->shape[d])
			return 0;
	for (;;) {
		int64_t at = 0;

		if (++looked > 5000)
			return -1;
		for (d = 0; d < m->ndim; d++)
			at += index[d] * m->strides[d];
		end = at + item > end ? at + item : end;
		for (d = 0; d < m->ndim && ++index[d] == m->shape[d]; d++)
			index[d] = 0;
		if (d == m->ndim)
			return end;
	}
}

START_TEST(every_element_lies_within_the_bytes)
{
	u64 state = unit_seed();
	u32 round, i, compared = 0;

	for (round = 0; round < 20000; round++) {
		struct xmem_metadata m = { .dtype = XMEM_DTYPE_INT16 };
		struct xmem_tensor t;
		int64_t end;

		m.ndim = unit_random(&state) % 6;
		for (i = 0; i < m.ndim; i++) {
			m.shape[i] = unit_random(&state) % 6;
			m.strides[i] = unit_random(&state) % 50;
		}
		end = furthest(&m, 2);
		if (end < 0)
			continue;
		t = measured(&m, NULL, end);
		ck_assert_int_eq(t.bytes, end);
		if (end)
			refused(&m, end - 1, ERANGE);
		/* The reader's answer leads to that result, too. */
		for (i = 0; i < m.ndim; i++)
			m.strides[i] = t.strides[i];
		ck_assert_int_eq(furthest(&m, 2), end);
		if (t.flags & XMEM_TENSOR_DENSE)
			ck_assert_uint_eq(t.bytes, t.elements * 2);
		compared++;
	}
	ck_assert_uint_gt(compared, 1000);
}
END_TEST

/* ---- images ---- */

/* Bytes that an image takes, found in another way: the last byte of its last row. */
static u64 image_bytes(u32 format, u64 w, u64 h, u64 stride)
{
	u64 half_w = (w + 1) / 2, half_h = (h + 1) / 2, even = (stride + 1) / 2 * 2;

	switch (format) {
	case XMEM_IMAGE_GRAY8:
	case XMEM_IMAGE_BAYER_BGGR8:
	case XMEM_IMAGE_BAYER_GBRG8:
	case XMEM_IMAGE_BAYER_GRBG8:
	case XMEM_IMAGE_BAYER_RGGB8:	return stride * (h - 1) + w;
	case XMEM_IMAGE_GRAY16:
	case XMEM_IMAGE_BAYER_BGGR16:
	case XMEM_IMAGE_BAYER_GBRG16:
	case XMEM_IMAGE_BAYER_GRBG16:
	case XMEM_IMAGE_BAYER_RGGB16:	return stride * (h - 1) + 2 * w;
	case XMEM_IMAGE_RGB8:
	case XMEM_IMAGE_BGR8:		return stride * (h - 1) + 3 * w;
	case XMEM_IMAGE_RGBA8:
	case XMEM_IMAGE_BGRA8:		return stride * (h - 1) + 4 * w;
	case XMEM_IMAGE_RGB48:		return stride * (h - 1) + 6 * w;
	case XMEM_IMAGE_RGBA64:		return stride * (h - 1) + 8 * w;
	case XMEM_IMAGE_RGBF32:		return stride * (h - 1) + 12 * w;
	case XMEM_IMAGE_YUYV:
	case XMEM_IMAGE_UYVY:		return stride * (h - 1) + 4 * half_w;
	case XMEM_IMAGE_NV12:
	case XMEM_IMAGE_NV21:		return stride * h + even * (half_h - 1) + 2 * half_w;
	case XMEM_IMAGE_NV16:		return stride * h + even * (h - 1) + 2 * half_w;
	case XMEM_IMAGE_P010:
	case XMEM_IMAGE_P016:
		return stride * h + (stride + 3) / 4 * 4 * (half_h - 1) + 4 * half_w;
	case XMEM_IMAGE_I420:
	case XMEM_IMAGE_YV12:
		return stride * h + (stride + 1) / 2 * (2 * half_h - 1) + half_w;
	case XMEM_IMAGE_I422:
		return stride * h + (stride + 1) / 2 * (2 * h - 1) + half_w;
	case XMEM_IMAGE_I444:		return stride * (3 * h - 1) + w;
	case XMEM_IMAGE_GBRPF32:
		return stride * h + (stride + 3) / 4 * 4 * (2 * h - 1) + 4 * w;
	}
	ck_abort_msg("format %u is not known to this test", format);
	return 0;
}

/* A plane is a tensor of all bytes of its rows, and nothing else. */
static void check_plane(const struct xmem_image *image, u32 p)
{
	const struct xmem_plane *plane = &image->plane[p];
	struct xmem_tensor t;

	memset(&t, 0xa5, sizeof(t));
	ck_assert_int_eq(xl_plane_measure(image, p, &says, &t), 0);
	ck_assert_ptr_eq(t.data, plane->data);
	ck_assert_uint_eq(t.shape[0], plane->rows);
	ck_assert_uint_eq(t.elements * t.item_bytes, (u64)plane->rows * plane->row_bytes);
	ck_assert_uint_eq(t.bytes, plane->stride * (plane->rows - 1) + plane->row_bytes);
}

static void check_image(u32 format, u32 w, u32 h, u32 padding)
{
	struct xmem_metadata m = { 0 }, dense = { 0 };
	struct xmem_image image;
	struct xmem_tensor t;
	u64 bytes, stride;
	u32 p;

	ck_assert_int_eq(xl_image_fill(&dense, format, w, h, 0, &says), 0);
	stride = dense.image_stride;
	ck_assert_int_eq(xl_image_fill(&m, format, w, h, stride + padding, &says), 0);
	if (stride > 1)
		ck_assert_int_eq(xl_image_fill(&m, format, w, h, stride - 1, &says), -EBADMSG);
	ck_assert_int_eq(m.image_stride, stride + padding);
	ck_assert(!strncmp(m.content_type, "video/x-", 8) && strchr(m.content_type, ','));
	bytes = image_bytes(format, w, h, m.image_stride);
	ck_assert_int_eq(xmem_image_bytes(format, w, h, m.image_stride), bytes);
	ck_assert_int_eq(xl_image_measure(&m, NULL, bytes - 1, &says, NULL), -ERANGE);
	memset(&image, 0xa5, sizeof(image));
	ck_assert_int_eq(xl_image_measure(&m, said, bytes, &says, &image), 0);
	ck_assert_uint_eq(image.width, w);
	ck_assert_uint_eq(image.height, h);
	for (p = 0; p < image.planes; p++) {
		const struct xmem_plane *plane = &image.plane[p];
		u64 begin = (const char *)plane->data - said;

		ck_assert_uint_ge(plane->stride, plane->row_bytes);
		ck_assert_uint_le(begin + plane->stride * (plane->rows - 1) + plane->row_bytes,
				  p + 1 < image.planes ?
				  (u64)((const char *)plane[1].data - said) : bytes);
		check_plane(&image, p);
	}
	ck_assert_int_eq(xl_plane_measure(&image, p, &says, &t), -EBADMSG);
	/* It is a tensor too, of all its bytes. */
	ck_assert_uint_eq(measured(&m, said, bytes).bytes, bytes);
}

START_TEST(images_of_all_formats_and_sizes)
{
	u32 format, w, h;

	for (format = 1; format < XMEM_IMAGE_FORMATS; format++) {
		for (w = 1; w < 9; w++)
			for (h = 1; h < 9; h++)
				check_image(format, w, h, w * h % 5);
		check_image(format, 1920, 1080, 0);
		check_image(format, 1919, 1079, 64);
		check_image(format, XMEM_IMAGE_MAX_SIDE, XMEM_IMAGE_MAX_SIDE, 1);
	}
}
END_TEST

START_TEST(an_image_whose_words_disagree_is_refused)
{
	struct xmem_metadata good = { 0 }, m;

	ck_assert_int_eq(xl_image_fill(&good, XMEM_IMAGE_RGB8, 10, 5, 32, &says), 0);
	ck_assert_int_eq(xl_image_measure(&good, NULL, 158, &says, NULL), 0);
	ck_assert_int_eq(xmem_image_bytes(XMEM_IMAGE_RGB8, 10, 5, 29), -EINVAL);
	ck_assert_int_eq(xmem_image_bytes(XMEM_IMAGE_FORMATS, 10, 5, 0), -EINVAL);
	ck_assert_int_eq(xmem_image_bytes(XMEM_IMAGE_RGB8, 0, 5, 0), -EINVAL);
#define WRONG(change) do { \
	m = good; \
	m.change; \
	ck_assert_int_eq(xl_image_measure(&m, NULL, ~0ULL, &says, NULL), -EBADMSG); \
} while (0)
	WRONG(image = 0);
	WRONG(image = XMEM_IMAGE_FORMATS);
	WRONG(image = ~0u);
	WRONG(image = XMEM_IMAGE_GRAY8);
	WRONG(image = XMEM_IMAGE_RGBA8);
	WRONG(dtype = XMEM_DTYPE_INT8);
	WRONG(ndim = 2);
	WRONG(image_height = 0);
	WRONG(image_height = XMEM_IMAGE_MAX_SIDE + 1);
	WRONG(image_width = 0);
	WRONG(image_width = 11);		/* more than the stride */
	WRONG(image_width = 9);
	WRONG(image_stride = 29);
	WRONG(image_stride = 33);
	WRONG(image_stride = INT64_MAX);
	WRONG(shape[0] = -1);
	WRONG(shape[0] = 4);
	WRONG(shape[1] = 1LL << 32 | 10);
	WRONG(shape[2] = 4);
	WRONG(strides[0] = 29);
	WRONG(strides[0] = -32);
	WRONG(strides[1] = 4);
	WRONG(strides[2] = 0);
	m = good;
	m.image_stride = m.strides[0] = 1LL << 40;
	ck_assert_int_eq(xl_image_measure(&m, NULL, 1ULL << 40, &says, NULL), -ERANGE);
}
END_TEST

/* ---- strings, and the copy ---- */

START_TEST(strings_are_made_printable_and_end)
{
	_Alignas(8) struct xmem_metadata shared, m;

	memset(&shared, 0xff, sizeof(shared));
	memcpy(shared.content_type, "a\x1b[2Jb", 7);
	shared.producer[5] = 0;
	shared.producer[6] = 'x';
	xl_metadata_take(&shared, &m);
	ck_assert_str_eq(m.content_type, "a?[2Jb");
	ck_assert_str_eq(m.producer, "?????");
	ck_assert_int_eq(m.producer[6], 0);
	ck_assert_uint_eq(strlen(m.clock), sizeof(m.clock) - 1);
	ck_assert_uint_eq(m.reserved[12], ~0ULL);
}
END_TEST

START_TEST(a_string_fits_or_changes_nothing)
{
	char field[8] = "before";

	ck_assert_int_eq(xl_metadata_string(field, 8, "name", "12345678"), -EINVAL);
	ck_assert_str_eq(field, "before");
	ck_assert_int_eq(xl_metadata_string(field, 8, "name", "a\nb"), -EINVAL);
	ck_assert(strstr(said, "byte 1 of the name"));
	ck_assert_int_eq(xl_metadata_string(field, 8, "name", "\xc3\xa4"), -EINVAL);
	ck_assert_str_eq(field, "before");
	ck_assert_int_eq(xl_metadata_string(field, 8, "name", "1234567"), 0);
	ck_assert_int_eq(xl_metadata_string(field, 8, "name", "ab"), 0);
	ck_assert_int_eq(memcmp(field, "ab\0\0\0\0\0\0", 8), 0);
	ck_assert_int_eq(xl_metadata_string(field, 8, "name", ""), 0);
	ck_assert_str_eq(field, "");
}
END_TEST

void tensor_tests(Suite *suite)
{
	TCase *tcase = tcase_create("tensor");

	tcase_add_test(tcase, types_are_dlpacks);
	tcase_add_test(tcase, only_types_of_whole_bytes_that_can_be_shared);
	tcase_add_test(tcase, impossible_shapes_are_refused);
	tcase_add_test(tcase, overflow_is_no_way_in);
	tcase_add_test(tcase, empty_and_single_ones);
	tcase_add_test(tcase, flags_say_how_it_lies);
	tcase_add_test(tcase, every_element_lies_within_the_bytes);
	tcase_add_test(tcase, images_of_all_formats_and_sizes);
	tcase_add_test(tcase, an_image_whose_words_disagree_is_refused);
	tcase_add_test(tcase, strings_are_made_printable_and_end);
	tcase_add_test(tcase, a_string_fits_or_changes_nothing);
	suite_add_tcase(suite, tcase);
}

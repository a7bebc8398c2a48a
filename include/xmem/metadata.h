/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * A publisher's description of the contents of a buffer: shape, type and so on. All clients can
 * read it, and must not trust it more than they trust the publisher. Functions of
 * xmem/tensor.h write it, and check what they read.
 */
#ifndef XMEM_METADATA_H
#define XMEM_METADATA_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/* Where contents are. */
enum xmem_storage {
	XMEM_STORAGE_CPU = 0,		/* memory of the CPU */
	XMEM_STORAGE_CUDA = 1		/* memory of an NVIDIA GPU */
};

/* The event for which a receiver waits before it uses contents of a GPU. */
enum xmem_order {
	XMEM_ORDER_NONE = 0,		/* nothing: they are complete */
	XMEM_ORDER_READY = 1		/* a stream completes them: see xmem_wait_on */
};

/*
 * The type of an element, as in DLPack: the code of a kind of number, the bits of each number, and
 * the numbers (lanes) in an element. In memory this is a DLDataType. 0: no type is described.
 */
#define XMEM_DTYPE(code, bits, lanes) \
	(XMEM_AS_UINT32(code) | XMEM_AS_UINT32(bits) << 8 | XMEM_AS_UINT32(lanes) << 16)

#define XMEM_DTYPE_CODE(dtype)	(XMEM_AS_UINT32(dtype) & 0xff)
#define XMEM_DTYPE_BITS(dtype)	(XMEM_AS_UINT32(dtype) >> 8 & 0xff)
#define XMEM_DTYPE_LANES(dtype)	(XMEM_AS_UINT32(dtype) >> 16)

/* Programs in C++ may be compiled with -Wold-style-cast. */
#ifdef __cplusplus
#define XMEM_AS_UINT32(value)	static_cast<uint32_t>(value)
#else
#define XMEM_AS_UINT32(value)	((uint32_t)(value))
#endif

/* The numbers are DLPack's. */
enum xmem_dtype_code {
	XMEM_DTYPE_CODE_INT = 0,
	XMEM_DTYPE_CODE_UINT = 1,
	XMEM_DTYPE_CODE_FLOAT = 2,
	XMEM_DTYPE_CODE_OPAQUE = 3,	/* a handle of one process: refused here */
	XMEM_DTYPE_CODE_BFLOAT = 4,
	XMEM_DTYPE_CODE_COMPLEX = 5,
	XMEM_DTYPE_CODE_BOOL = 6,
	XMEM_DTYPE_CODE_FLOAT8_E3M4 = 7,
	XMEM_DTYPE_CODE_FLOAT8_E4M3 = 8,
	XMEM_DTYPE_CODE_FLOAT8_E4M3B11FNUZ = 9,
	XMEM_DTYPE_CODE_FLOAT8_E4M3FN = 10,
	XMEM_DTYPE_CODE_FLOAT8_E4M3FNUZ = 11,
	XMEM_DTYPE_CODE_FLOAT8_E5M2 = 12,
	XMEM_DTYPE_CODE_FLOAT8_E5M2FNUZ = 13,
	XMEM_DTYPE_CODE_FLOAT8_E8M0FNU = 14,
	XMEM_DTYPE_CODE_FLOAT6_E2M3FN = 15,
	XMEM_DTYPE_CODE_FLOAT6_E3M2FN = 16,
	XMEM_DTYPE_CODE_FLOAT4_E2M1FN = 17,
	XMEM_DTYPE_CODES = 18		/* the first number that has no meaning yet */
};

/* The types that most programs need; XMEM_DTYPE makes all others. */
enum xmem_dtype {
	XMEM_DTYPE_NONE = 0,
	XMEM_DTYPE_INT8 = XMEM_DTYPE(XMEM_DTYPE_CODE_INT, 8, 1),
	XMEM_DTYPE_INT16 = XMEM_DTYPE(XMEM_DTYPE_CODE_INT, 16, 1),
	XMEM_DTYPE_INT32 = XMEM_DTYPE(XMEM_DTYPE_CODE_INT, 32, 1),
	XMEM_DTYPE_INT64 = XMEM_DTYPE(XMEM_DTYPE_CODE_INT, 64, 1),
	XMEM_DTYPE_UINT8 = XMEM_DTYPE(XMEM_DTYPE_CODE_UINT, 8, 1),
	XMEM_DTYPE_UINT16 = XMEM_DTYPE(XMEM_DTYPE_CODE_UINT, 16, 1),
	XMEM_DTYPE_UINT32 = XMEM_DTYPE(XMEM_DTYPE_CODE_UINT, 32, 1),
	XMEM_DTYPE_UINT64 = XMEM_DTYPE(XMEM_DTYPE_CODE_UINT, 64, 1),
	XMEM_DTYPE_FLOAT16 = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT, 16, 1),
	XMEM_DTYPE_FLOAT32 = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT, 32, 1),
	XMEM_DTYPE_FLOAT64 = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT, 64, 1),
	XMEM_DTYPE_BFLOAT16 = XMEM_DTYPE(XMEM_DTYPE_CODE_BFLOAT, 16, 1),
	XMEM_DTYPE_COMPLEX64 = XMEM_DTYPE(XMEM_DTYPE_CODE_COMPLEX, 64, 1),
	XMEM_DTYPE_COMPLEX128 = XMEM_DTYPE(XMEM_DTYPE_CODE_COMPLEX, 128, 1),
	XMEM_DTYPE_BOOL = XMEM_DTYPE(XMEM_DTYPE_CODE_BOOL, 8, 1),
	XMEM_DTYPE_FLOAT8_E4M3FN = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT8_E4M3FN, 8, 1),
	XMEM_DTYPE_FLOAT8_E5M2 = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT8_E5M2, 8, 1),
	XMEM_DTYPE_FLOAT4_E2M1FN_X2 = XMEM_DTYPE(XMEM_DTYPE_CODE_FLOAT4_E2M1FN, 4, 2)
};

/*
 * How the pixels of an image lie in memory, the first byte first. Numbers of 16 and 32 bits have
 * the byte order of the machine (ffmpeg's names then end in "le" or "be"). Planes follow each other
 * without a gap. Chroma of half the width or height is rounded up. The comments have a format's
 * names in ffmpeg (pix_fmt), V4L2 and DRM (fourcc, always little endian); "-": none.
 */
enum xmem_image_format {
	XMEM_IMAGE_NONE = 0,		/* not an image */
	XMEM_IMAGE_GRAY8 = 1,		/* gray, GREY, R8 */
	XMEM_IMAGE_GRAY16 = 2,		/* gray16le, Y16, R16 */
	XMEM_IMAGE_RGB8 = 3,		/* R, G, B: rgb24, RGB3, BG24 */
	XMEM_IMAGE_BGR8 = 4,		/* bgr24, BGR3, RG24 */
	XMEM_IMAGE_RGBA8 = 5,		/* rgba, AB24, AB24 */
	XMEM_IMAGE_BGRA8 = 6,		/* bgra, AR24, AR24 */
	XMEM_IMAGE_YUYV = 7,		/* Y0, U, Y1, V for two pixels: yuyv422, YUYV, YUYV */
	XMEM_IMAGE_UYVY = 8,		/* U, Y0, V, Y1: uyvy422, UYVY, UYVY */
	XMEM_IMAGE_I420 = 9,		/* planes Y, U, V: yuv420p, YU12, YU12 */
	XMEM_IMAGE_NV12 = 10,		/* planes Y, and U with V by turns: nv12, NV12, NV12 */
	XMEM_IMAGE_NV21 = 11,		/* V before U: nv21, NV21, NV21 */
	XMEM_IMAGE_NV16 = 12,		/* as NV12, chroma in each row: nv16, NV16, NV16 */
	XMEM_IMAGE_P010 = 13,		/* as NV12, 10 high bits of 16: p010le, P010, P010 */
	XMEM_IMAGE_P016 = 14,		/* as NV12, 16 bits: p016le, -, P016 */
	XMEM_IMAGE_YV12 = 15,		/* planes Y, V, U: yuv420p but V first, YV12, YV12 */
	XMEM_IMAGE_I422 = 16,		/* as I420, chroma in each row: yuv422p, 422P, YU16 */
	XMEM_IMAGE_I444 = 17,		/* as I420, chroma of each pixel: yuv444p, YM24, YU24 */
	XMEM_IMAGE_BAYER_BGGR8 = 18,	/* a number for each pixel: bayer_bggr8, BA81, - */
	XMEM_IMAGE_BAYER_GBRG8 = 19,	/* bayer_gbrg8, GBRG, - */
	XMEM_IMAGE_BAYER_GRBG8 = 20,	/* bayer_grbg8, GRBG, - */
	XMEM_IMAGE_BAYER_RGGB8 = 21,	/* bayer_rggb8, RGGB, - */
	XMEM_IMAGE_BAYER_BGGR16 = 22,	/* bayer_bggr16le, BYR2, - */
	XMEM_IMAGE_BAYER_GBRG16 = 23,	/* bayer_gbrg16le, GB16, - */
	XMEM_IMAGE_BAYER_GRBG16 = 24,	/* bayer_grbg16le, GR16, - */
	XMEM_IMAGE_BAYER_RGGB16 = 25,	/* bayer_rggb16le, RG16, - */
	XMEM_IMAGE_RGB48 = 26,		/* 3 numbers of 16 bits: rgb48le, -, - */
	XMEM_IMAGE_RGBA64 = 27,		/* 4 numbers of 16 bits: rgba64le, -, AB48 */
	XMEM_IMAGE_RGBF32 = 28,		/* 3 floats: rgbf32le, -, - */
	XMEM_IMAGE_GBRPF32 = 29,	/* planes G, B, R of floats: gbrpf32le, -, - */
	XMEM_IMAGE_FORMATS = 30		/* the first number that has no meaning yet */
};

/* A column of a table, in one buffer: see xmem_describe_strings. */
enum xmem_column {
	XMEM_COLUMN_NONE = 0,		/* not a column */
	XMEM_COLUMN_STRINGS = 1		/* UTF-8, with offsets of 32 bits: Arrow's utf8 */
};

#define XMEM_MAX_DIMENSIONS	8

/*
 * All fields but size, offset and order_* are the publisher's to use as it likes. The functions of
 * tensor.h read the fields that xmem_describe_tensor and others like it have set.
 */
struct xmem_metadata {
	uint64_t id;
	uint32_t storage;		/* enum xmem_storage */
	uint32_t device;		/* 0 for the CPU, else the device's number in the pool */
	uint32_t dtype;			/* of an element: XMEM_DTYPE; 0: not described */
	uint32_t ndim;			/* valid places of shape and strides, at most 8 */
	int64_t shape[8];		/* elements */
	int64_t strides[8];		/* bytes; DLPack counts elements: see xmem_tensor_view */
	uint64_t size;			/* bytes of contents; xmem_publish sets it */
	uint64_t offset;		/* bytes before them in the buffer; xmem_publish sets it */
	char content_type[32];		/* NUL-terminated, for example "video/x-raw,GRAY8" */
	char producer[32];		/* NUL-terminated */
	uint64_t user[8];
	uint64_t timestamp_ns;		/* of the contents, by `clock`; 0: none */
	char clock[24];			/* NUL-terminated: its name, such as "CLOCK_TAI" */
	uint32_t image;			/* enum xmem_image_format */
	uint32_t order_kind;		/* enum xmem_order; xmem_publish sets these two */
	uint64_t order_value;		/* for the library; 0: the contents are complete */
	uint32_t image_width;		/* pixels */
	uint32_t image_height;
	uint64_t image_stride;		/* bytes from one row of the first plane to the next */
	uint32_t column;		/* enum xmem_column */
	uint32_t column_flags;		/* XMEM_STRINGS_* */
	uint64_t column_rows;
	uint64_t column_chars;		/* bytes of all strings */
	uint64_t reserved[16];		/* must be 0 */
};

#endif

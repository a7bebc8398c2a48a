/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of contents: tensors, images and columns of strings. A part of xmem.h.
 *
 * The functions that describe take a buffer that is being written. They replace all metadata of an
 * earlier publication, so call them before you set anything else. The contents begin at the first
 * writable byte. Errors leave the metadata as it was:
 *	EINVAL	there is no such type or format, or a number is out of its range
 *	ERANGE	the description has more bytes than were acquired
 *	EPERM	the buffer is held for reading
 *
 * A publisher can write anything into its metadata, even while other clients read it. The functions
 * that read take a copy and check it against the contents. While the buffer is held, a program that
 * reads only what the answer describes reads nothing outside the buffer.
 */
#ifndef XMEM_TENSOR_H
#define XMEM_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_buffer;

/* ---- describing ---- */

/*
 * Describe the contents as a tensor. The label of this client becomes the producer.
 * @dtype: XMEM_DTYPE_*. Its bits times its lanes must be whole bytes.
 * @ndim, @shape: number of dimensions, 0 (one element) to 8, and elements in each.
 * @strides: bytes from one element to the next in each dimension, 0 to repeat it; NULL: dense.
 * Returns: 0, -EINVAL, -ERANGE, -EPERM. Threads: one at a time describes a buffer. Since: 0.4.
 */
int xmem_describe_tensor(struct xmem_buffer *buffer, uint32_t dtype, uint32_t ndim,
			 const int64_t *shape, const int64_t *strides);

#define XMEM_IMAGE_MAX_SIDE	(1u << 20)	/* pixels */

/*
 * Describe the contents as an image of @format XMEM_IMAGE_*, and set the content type.
 * @width, @height: pixels, 1 to XMEM_IMAGE_MAX_SIDE.
 * @stride: bytes from one row to the next in the first plane; 0: no padding.
 * Returns: 0, -EINVAL, -ERANGE, -EPERM. Threads: one at a time describes a buffer. Since: 0.4.
 */
int xmem_describe_image(struct xmem_buffer *buffer, uint32_t format, uint32_t width,
			uint32_t height, size_t stride);

/* Get the number of bytes of an image. Returns: the number, at least 1, or -EINVAL. Since: 0.5. */
int64_t xmem_image_bytes(uint32_t format, uint32_t width, uint32_t height, size_t stride);

#define XMEM_STRINGS_MAX	0x7fffffff	/* rows, and bytes of all strings */

#define XMEM_STRINGS_VALIDITY	(1u << 0)	/* rows may be null: there is a bit for each */

/*
 * A column of strings has three parts, each at a multiple of 64 bytes in the contents: a bit for
 * each row (0: the row is null); rows + 1 offsets of type int32_t; and UTF-8 characters. Row i has
 * the characters from byte offset[i] to byte offset[i + 1].
 */
struct xmem_strings {
	size_t size;			/* in: sizeof(struct xmem_strings); out: valid bytes */
	uint32_t flags;			/* XMEM_STRINGS_* */
	int32_t device_id;		/* as in xmem_tensor */
	const void *data;		/* the first byte of the contents; NULL: only a plan */
	uint64_t rows;			/* at most XMEM_STRINGS_MAX */
	uint64_t chars;			/* bytes of all strings, at most XMEM_STRINGS_MAX */
	uint64_t bytes;			/* of all parts, at least 64 */
	uint64_t validity_at;		/* bytes from data to the bits; 0 without them */
	uint64_t offsets_at;		/* bytes from data to the offsets */
	uint64_t chars_at;		/* bytes from data to the characters, the last part */
};

/*
 * Compute the size and the layout of a column of @rows strings with @chars bytes in all, each at
 * most XMEM_STRINGS_MAX. Acquire that size, then write. Returns: 0, or -EINVAL. Since: 0.5.
 */
int xmem_strings_plan(uint64_t rows, uint64_t chars, uint32_t flags,
		      struct xmem_strings *ret_plan);

/*
 * Describe the contents as a column of strings that xmem_strings_plan has planned. Returns: 0,
 * -EINVAL, -ERANGE, -EPERM. Threads: one at a time describes a buffer. Since: 0.5.
 */
int xmem_describe_strings(struct xmem_buffer *buffer, uint64_t rows, uint64_t chars,
			  uint32_t flags);

/* The kind of contents, their maker and their time. Strings are printable ASCII. */
struct xmem_source {
	size_t size;			/* sizeof(struct xmem_source) */
	uint32_t flags;			/* must be 0 */
	uint32_t reserved;		/* must be 0 */
	const char *content_type;	/* a media type, at most 31 characters; NULL: unchanged */
	const char *producer;		/* at most 31 characters; NULL: unchanged */
	uint64_t timestamp_ns;		/* nanoseconds of the clock; 0: none */
	const char *clock;		/* at most 23 characters; NULL: "CLOCK_MONOTONIC" */
};

/*
 * Set the kind of the contents, their maker and their time, and no other metadata. Returns: 0,
 * -EINVAL, -EPERM, -E2BIG. Threads: one at a time describes a buffer. Since: 0.5.
 */
int xmem_describe_source(struct xmem_buffer *buffer, const struct xmem_source *source);

/* ---- reading ---- */

/*
 * Get a copy of the metadata that does not change. Its strings are printable. Its size and offset
 * are right, and on a GPU its storage and device; other fields may be wrong. Returns: 0, -EINVAL.
 * Ownership: the copy is the caller's. Since: 0.4.
 */
int xmem_metadata_view(struct xmem_buffer *buffer, struct xmem_metadata *ret_metadata);

/* In C order, without gaps: elements * item_bytes bytes in a row. */
#define XMEM_TENSOR_DENSE	(1u << 0)
/* Each number is aligned to its own size, as in C. A complex number counts as two numbers. */
#define XMEM_TENSOR_ALIGNED	(1u << 1)
#define XMEM_TENSOR_DLPACK	(1u << 2)	/* element_strides is valid */

/* A tensor that has been checked: all of its elements lie within the contents. */
struct xmem_tensor {
	size_t size;			/* in: sizeof(struct xmem_tensor); out: valid bytes */
	uint32_t flags;			/* XMEM_TENSOR_* */
	uint32_t dtype;			/* XMEM_DTYPE_* */
	uint32_t ndim;			/* valid places of the arrays, at most 8; the rest is 0 */
	uint32_t item_bytes;		/* of one element with all lanes, at least 1 */
	int32_t device_id;		/* XMEM_CPU, or this process's number of the GPU */
	uint32_t reserved;
	const void *data;		/* the first element, in xmem_data() or xmem_cuda_ptr() */
	uint64_t elements;		/* the product of shape; 1 if ndim is 0 */
	uint64_t bytes;			/* from the first element to the end of the last one */
	int64_t shape[8];		/* none negative */
	int64_t strides[8];		/* bytes; none negative */
	int64_t element_strides[8];	/* with XMEM_TENSOR_DLPACK: strides / item_bytes */
};

/* Flags of the views. */
#define XMEM_VIEW_CUDA		(1u << 0)	/* accept contents on a GPU: see device_id */

/*
 * Get the tensor that the publisher describes, checked. @flags is 0 or XMEM_VIEW_CUDA.
 * Returns: 0, or -ENODATA: the publisher has not described the contents; -EBADMSG: the description
 * is impossible; -ERANGE: the tensor reaches beyond the contents; -EINVAL; -EMEDIUMTYPE: the
 * contents are on a GPU, and XMEM_VIEW_CUDA is not set; -EIO, -ENOMEM, -EMFILE, -EINTR: as
 * xmem_data; on a GPU as xmem_cuda_ptr. Ownership: data is valid until the handle is dropped.
 * Since: 0.4.
 */
int xmem_tensor_view(struct xmem_buffer *buffer, uint32_t flags, struct xmem_tensor *ret_tensor);

#define XMEM_IMAGE_MAX_PLANES	4

/* One plane of an image. */
struct xmem_plane {
	const void *data;		/* the first row */
	size_t stride;			/* bytes from one row to the next, at least row_bytes */
	uint32_t row_bytes;		/* of pixels in each row */
	uint32_t rows;
};

/* An image that has been checked: all rows of its planes lie within the contents. */
struct xmem_image {
	size_t size;			/* in: sizeof(struct xmem_image); out: valid bytes */
	uint32_t format;		/* XMEM_IMAGE_* */
	uint32_t planes;
	uint32_t width;			/* pixels, 1 to XMEM_IMAGE_MAX_SIDE */
	uint32_t height;
	int32_t device_id;		/* as in xmem_tensor */
	uint32_t reserved;
	struct xmem_plane plane[4];	/* [planes]; the others are 0 */
};

/*
 * Get the image that the publisher describes, checked.
 * Returns, Ownership: as xmem_tensor_view. Since: 0.4.
 */
int xmem_image_view(struct xmem_buffer *buffer, uint32_t flags, struct xmem_image *ret_image);

/*
 * Get plane number @plane of an image as a tensor of rows, columns and (if an element has several
 * numbers) channels. Returns: 0, -EINVAL. Ownership: as xmem_image_view. Since: 0.5.
 */
int xmem_image_plane(const struct xmem_image *image, uint32_t plane,
		     struct xmem_tensor *ret_tensor);

/*
 * Get the column of strings that the publisher describes. Its parts lie within the contents. The
 * offsets are not checked: call xmem_strings_get for a row. Returns: as xmem_tensor_view; -EBADMSG:
 * also: the contents' address is no multiple of 64. Ownership: as xmem_tensor_view. Since: 0.5.
 */
int xmem_strings_view(struct xmem_buffer *buffer, uint32_t flags,
		      struct xmem_strings *ret_strings);

/*
 * Get one string of a column in memory of the CPU. It lies within the column, but its characters
 * may be anything, and the publisher can change them.
 * @ret_chars: the first byte, without a NUL at the end; NULL: this row is null.
 * Returns: bytes of the string, or -EBADMSG: its offsets are impossible; -EINVAL: there is no such
 * row; -EMEDIUMTYPE: the column is on a GPU. Ownership: as xmem_strings_view. Since: 0.5.
 */
int64_t xmem_strings_get(const struct xmem_strings *strings, uint64_t row,
			 const char **ret_chars);

/*
 * Check the tensor in @metadata. The contents have @bytes bytes from the first element on.
 * Returns: 0, or -EINVAL, -ENODATA, -EBADMSG, -ERANGE as xmem_tensor_view. Since: 0.4.
 */
int xmem_tensor_check(const struct xmem_metadata *metadata, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif

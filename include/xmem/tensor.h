/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of contents: functions that describe a tensor, an image or a column of strings in
 * one call, and functions that read such a description back. A part of xmem.h, whose general rules
 * apply.
 *
 * A publisher can write anything into its metadata, even while other clients read it. The functions
 * that read take a copy, each word once, and check all of it against the contents. While the buffer
 * is held, a program that stays within the answer reads nothing outside the buffer. But the answer
 * can be nonsense, because a publisher can call noise an image.
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
 * Describe the contents as a tensor whose first element is the first byte. This replaces all
 * metadata of an earlier publication, and the label of this client becomes the producer. Call it
 * before you set anything else (id, user words, xmem_describe_source).
 * @buffer: being written.
 * @dtype: XMEM_DTYPE_*; bits times lanes must be whole bytes, so that two 4-bit numbers are one
 *	element of two lanes.
 * @ndim: 0 (one element) to 8.
 * @shape: elements in each dimension, none negative; one may be 0. NULL if @ndim is 0.
 * @strides: bytes from one element to the next in each dimension, none negative; 0 repeats one
 *	element. NULL: the last dimension is dense, and the others follow in order.
 * Returns: 0, or an error, and then the metadata is as it was:
 *	-EINVAL	there is no such type, or a number is out of its range; the message says which
 *	-ERANGE	the tensor has more bytes than were acquired, or than 63 bits can count
 *	-EPERM	the buffer is held for reading
 * Threads: one thread at a time describes a buffer. Since: 0.4.
 */
int xmem_describe_tensor(struct xmem_buffer *buffer, uint32_t dtype, uint32_t ndim,
			 const int64_t *shape, const int64_t *strides);

#define XMEM_IMAGE_MAX_SIDE	(1u << 20)	/* pixels */

/*
 * Describe the contents as an image whose first row begins at the first byte. This replaces all
 * metadata, like xmem_describe_tensor, and sets the content type and the tensor that
 * xmem_tensor_view finds.
 * @buffer: being written.
 * @format: XMEM_IMAGE_*.
 * @width, @height: pixels, 1 to XMEM_IMAGE_MAX_SIDE.
 * @stride: bytes from one row to the next in the first plane; 0: no padding. The rows of other
 *	planes have room for as many pixels.
 * Returns: 0, or an error, and then the metadata is as it was:
 *	-EINVAL	there is no such format, or a number is out of its range; the message says which
 *	-ERANGE	the image has more bytes than were acquired: see xmem_image_bytes
 *	-EPERM	the buffer is held for reading
 * Threads: one thread at a time describes a buffer. Since: 0.4.
 */
int xmem_describe_image(struct xmem_buffer *buffer, uint32_t format, uint32_t width,
			uint32_t height, size_t stride);

/*
 * Get the number of bytes of an image, from its first byte to its last one, in order to acquire
 * them.
 * @format, @width, @height, @stride: as in xmem_describe_image.
 * Returns: bytes, at least 1, or -EINVAL (there is no such format, or a number is out of its range;
 * the message says which). Threads: any. Since: 0.5.
 */
int64_t xmem_image_bytes(uint32_t format, uint32_t width, uint32_t height, size_t stride);

#define XMEM_STRINGS_MAX	0x7fffffff	/* rows, and bytes of all strings */

/* Rows may be null: the contents have a bit for each row. */
#define XMEM_STRINGS_VALIDITY	(1u << 0)

/*
 * The places of a column's parts in the contents. The layout is that of Arrow's columns. Each part
 * begins at a multiple of 64 bytes, and all positions follow from rows, chars and flags.
 *
 * The string of row i is the UTF-8 from byte offset[i] to byte offset[i + 1] of the characters.
 * There are rows + 1 offsets of type int32_t. The first is 0, the last is chars, and none is less
 * than the one before it. With XMEM_STRINGS_VALIDITY, bit i % 8 of byte i / 8 of the validity is 1
 * if row i has a string, and 0 if it is null.
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
	uint64_t chars_at;		/* bytes from data to the characters, which end at bytes */
};

/*
 * Plan a column of strings, in order to acquire its bytes and to write its parts.
 * @rows: at most XMEM_STRINGS_MAX.
 * @chars: bytes of all strings, at most XMEM_STRINGS_MAX.
 * @flags: XMEM_STRINGS_*.
 * @ret_plan: its size field is set. Its data is NULL. Unchanged after an error.
 * Returns: 0, or -EINVAL: a number is out of its range, a flag has no meaning, or the size field is
 * smaller than itself; the message says which. Threads: any. Since: 0.5.
 */
int xmem_strings_plan(uint64_t rows, uint64_t chars, uint32_t flags,
		      struct xmem_strings *ret_plan);

/*
 * Describe the contents as a column of strings that begins at the first byte. This replaces all
 * metadata, like xmem_describe_tensor; xmem_tensor_view finds the bytes of all parts.
 * @buffer: being written.
 * @rows, @chars, @flags: as in xmem_strings_plan.
 * Returns: 0, or an error, and then the metadata is as it was:
 *	-EINVAL	a number is out of its range, or a flag has no meaning; the message says which
 *	-ERANGE	the column has more bytes than were acquired: see xmem_strings_plan
 *	-EPERM	the buffer is held for reading
 * Threads: one thread at a time describes a buffer. Since: 0.5.
 */
int xmem_describe_strings(struct xmem_buffer *buffer, uint64_t rows, uint64_t chars,
			  uint32_t flags);

/*
 * The kind of contents, their maker and their time. Strings have printable ASCII characters only.
 * All fields but size may be 0.
 */
struct xmem_source {
	size_t size;			/* sizeof(struct xmem_source) */
	uint32_t flags;			/* must be 0 */
	uint32_t reserved;		/* must be 0 */
	const char *content_type;	/* a media type, at most 31 characters; NULL: unchanged */
	const char *producer;		/* at most 31 characters; NULL: unchanged */
	uint64_t timestamp_ns;		/* nanoseconds of the clock; 0: none */
	const char *clock;		/* at most 23 characters: "CLOCK_REALTIME", "CLOCK_TAI",
					 * "/dev/ptp0" or a name that the programs agree on. NULL:
					 * "CLOCK_MONOTONIC". Without a timestamp, time and clock
					 * stay as they are */
};

/*
 * Set the kind of the contents, their maker and their time. This time is not that of the
 * publication, which xmem_publish takes by CLOCK_MONOTONIC.
 * @buffer: being written.
 * Returns: 0, or an error, and then the metadata is as it was:
 *	-EINVAL	a string is too long or has another character, a flag is unknown, a reserved field
 *		is not 0, or the size is below the minimum; the message says which
 *	-EPERM	the buffer is held for reading
 *	-E2BIG
 * Threads: as xmem_describe_tensor. Since: 0.5.
 */
int xmem_describe_source(struct xmem_buffer *buffer, const struct xmem_source *source);

/* ---- reading ---- */

/*
 * Get a copy of the metadata that does not change any more. In its three strings '?' replaces every
 * character that is not printable ASCII, and NULs fill the rest. size and offset are true, and so
 * are storage and device of a buffer on a GPU. All other fields may be anything.
 * @ret_metadata: unchanged after an error.
 * Returns: 0, -EINVAL. Ownership: the copy is the caller's. Threads: any. Since: 0.4.
 */
int xmem_metadata_view(struct xmem_buffer *buffer, struct xmem_metadata *ret_metadata);

/* The last dimension is dense, and the others follow: elements * item_bytes bytes in a row. */
#define XMEM_TENSOR_DENSE	(1u << 0)
/* Each number is at a multiple of its own bytes, as C wants it; a complex one is two numbers. */
#define XMEM_TENSOR_ALIGNED	(1u << 1)
/* element_strides is valid. */
#define XMEM_TENSOR_DLPACK	(1u << 2)

/* A tensor that has been checked: all of its elements lie within the contents. */
struct xmem_tensor {
	size_t size;			/* in: sizeof(struct xmem_tensor); out: valid bytes */
	uint32_t flags;			/* XMEM_TENSOR_* */
	uint32_t dtype;			/* XMEM_DTYPE_* */
	uint32_t ndim;			/* valid places of the arrays, at most 8; the rest is 0 */
	uint32_t item_bytes;		/* of one element with all lanes, at least 1 */
	int32_t device_id;		/* XMEM_CPU, or this process's number of the GPU */
	uint32_t reserved;
	const void *data;		/* the first element: an address of xmem_data() or
					 * xmem_cuda_ptr() */
	uint64_t elements;		/* the product of shape; 1 if ndim is 0 */
	uint64_t bytes;			/* from the first element to the end of the last one */
	int64_t shape[8];		/* none negative */
	int64_t strides[8];		/* bytes; none negative */
	int64_t element_strides[8];	/* strides / item_bytes, as in DLPack: valid only with
					 * XMEM_TENSOR_DLPACK, because not all strides can be
					 * divided */
};

/* Flags of the views. */
#define XMEM_VIEW_CUDA		(1u << 0)	/* accept contents on a GPU: see device_id */

/*
 * Get the tensor that the publisher describes, checked.
 * @flags: 0, or XMEM_VIEW_CUDA.
 * @ret_tensor: its size field is set. Unchanged after an error.
 * Returns: 0, or
 *	-ENODATA  the publisher has not described the contents
 *	-EBADMSG  the description is impossible; the message says why
 *	-ERANGE	the tensor reaches beyond the contents
 *	-EINVAL	the size field is smaller than itself; a flag has no meaning
 *	-EMEDIUMTYPE  the contents are on a GPU, and XMEM_VIEW_CUDA is not set
 *	-EIO, -ENOMEM, -EMFILE, -EINTR  as xmem_data; on a GPU as xmem_cuda_ptr
 * Ownership: data is valid until the handle of the buffer is dropped. Threads: any. Since: 0.4.
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
 * @flags: 0, or XMEM_VIEW_CUDA.
 * @ret_image: its size field is set. Unchanged after an error.
 * Returns, Ownership: as xmem_tensor_view. Threads: any. Since: 0.4.
 */
int xmem_image_view(struct xmem_buffer *buffer, uint32_t flags, struct xmem_image *ret_image);

/*
 * Get one plane of an image as a tensor of rows, columns and (if an element has several numbers)
 * channels. The second plane of NV12 has half the rows, half the columns, and U and V as channels.
 * @image: from xmem_image_view.
 * @plane: below image->planes.
 * @ret_tensor: its size field is set. Unchanged after an error.
 * Returns: 0, or -EINVAL: there is no such plane; no image, or one that is cut; or the size field
 * is smaller than itself. Ownership: as xmem_image_view. Threads: any. Since: 0.5.
 */
int xmem_image_plane(const struct xmem_image *image, uint32_t plane,
		     struct xmem_tensor *ret_tensor);

/*
 * Get the column of strings that the publisher describes: its parts lie within the contents. The
 * offsets are not checked, because a publisher can change contents at any moment. xmem_strings_get
 * checks those of one row. A program that reads them itself reads each offset once, and uses a row
 * only if 0 <= its begin <= its end <= chars.
 * @flags: 0, or XMEM_VIEW_CUDA.
 * @ret_strings: its size field is set. Unchanged after an error.
 * Returns: as xmem_tensor_view; also -EBADMSG if the contents do not begin at a multiple of 64.
 * Ownership: data is valid until the handle of the buffer is dropped. Threads: any. Since: 0.5.
 */
int xmem_strings_view(struct xmem_buffer *buffer, uint32_t flags,
		      struct xmem_strings *ret_strings);

/*
 * Get one string of a column in memory of the CPU. It lies within the column, even if the publisher
 * writes there meanwhile. The characters may be anything: a program that needs valid UTF-8 copies
 * them, and checks the copy.
 * @strings: from xmem_strings_view.
 * @row: below strings->rows.
 * @ret_chars: the first byte, without a NUL at the end; NULL: this row is null. Unchanged after an
 *	error.
 * Returns: bytes of the string, or
 *	-EBADMSG  its offsets are impossible; the message says why
 *	-EINVAL	there is no such row; no column, only the plan of one, or one that is cut
 *	-EMEDIUMTYPE  the column is on a GPU
 * Ownership: as xmem_strings_view. Threads: any. Since: 0.5.
 */
int64_t xmem_strings_get(const struct xmem_strings *strings, uint64_t row,
			 const char **ret_chars);

/*
 * Check the tensor of metadata against a number of bytes, for programs that fill or keep metadata
 * themselves. The metadata must not change meanwhile.
 * @bytes: from the first element to the end of the contents.
 * Returns: 0, or -EINVAL, -ENODATA, -EBADMSG, -ERANGE as xmem_tensor_view. Threads: any.
 * Since: 0.4.
 */
int xmem_tensor_check(const struct xmem_metadata *metadata, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif

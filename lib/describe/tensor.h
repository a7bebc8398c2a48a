/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of tensors, images and columns, and their checks, without buffers. The checks work
 * on a private copy of the metadata, which other processes cannot change (xl_metadata_take).
 */
#ifndef XL_TENSOR_H
#define XL_TENSOR_H

#include "lib/private.h"

/* How to report errors. */
struct xl_says {
	const char *what;		/* the public function, with which the message begins */
	int impossible;			/* the errno for garbage, such as an unknown dtype */
};

/* Copy metadata that other processes may be changing. Each word is read once. */
void xl_metadata_read(const struct xmem_metadata *shared, struct xmem_metadata *ret);

/* Like xl_metadata_read; it also makes the strings of the copy printable. */
void xl_metadata_take(const struct xmem_metadata *shared, struct xmem_metadata *ret);

/*
 * Put a string into a field of @bytes, and zeros behind it. 0, or -EINVAL, noted: the string is too
 * long, or has a character that is not printable ASCII; then the field is unchanged.
 */
int xl_metadata_string(char *field, size_t bytes, const char *name, const char *string);

/* Fill in the strides of a dense tensor from dtype, ndim and shape. 0, or -errno, noted. */
int xl_tensor_make_dense(struct xmem_metadata *metadata, const struct xl_says *says);

/*
 * Check the description of a tensor whose first element is at @data, before @bytes bytes. 0, or
 * says->impossible or ERANGE, negative and noted. If @ret is not NULL, it is written after success
 * only, all of it except its size.
 */
int xl_tensor_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		      const struct xl_says *says, struct xmem_tensor *ret);

/* Describe an image with these numbers. @stride 0: no padding. 0, or -errno, noted. */
int xl_image_fill(struct xmem_metadata *metadata, u32 format, u64 width, u64 height, u64 stride,
		  const struct xl_says *says);

/* Check the description of an image like xl_tensor_measure. */
int xl_image_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		     const struct xl_says *says, struct xmem_image *ret);

/* Find the tensor for one plane of an image. 0, or -errno, noted. */
int xl_plane_measure(const struct xmem_image *image, u32 plane, const struct xl_says *says,
		     struct xmem_tensor *ret);

/* Describe a column of strings with these numbers. 0, or -errno, noted. */
int xl_strings_fill(struct xmem_metadata *metadata, u64 rows, u64 chars, u32 flags,
		    const struct xl_says *says);

/* Check the description of a column of strings like xl_tensor_measure. */
int xl_strings_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		       const struct xl_says *says, struct xmem_strings *ret);

#endif

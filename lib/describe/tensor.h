/* SPDX-License-Identifier: MIT */
/*
 * What metadata says, checked: the part of tensors and images that knows no buffer. It works on a
 * private copy of the metadata, which nobody else can change (xl_metadata_take).
 */
#ifndef XL_TENSOR_H
#define XL_TENSOR_H

#include "lib/private.h"

/* Who is told that something is wrong, and with which errno if it is impossible in itself. */
struct xl_says {
	const char *what;		/* begins the message */
	int impossible;
};

/* Copy metadata that others may be changing, each word once. */
void xl_metadata_read(const struct xmem_metadata *shared, struct xmem_metadata *ret);

/* The same, and make the strings of the copy printable. */
void xl_metadata_take(const struct xmem_metadata *shared, struct xmem_metadata *ret);

/*
 * Put a string into a field of @bytes: zeros follow it. 0, or -EINVAL, noted (it is too long, or
 * has a character that is not printable ASCII), and then the field is as it was.
 */
int xl_metadata_string(char *field, size_t bytes, const char *name, const char *string);

/* Fill in the strides of a dense tensor from dtype, ndim and shape. 0, or -errno, noted. */
int xl_tensor_make_dense(struct xmem_metadata *metadata, const struct xl_says *says);

/*
 * Check what @metadata says of a tensor that has @bytes from its first element on, @data. 0, or
 * says->impossible or ERANGE, negative and noted. @ret may be NULL; else it is written, all but
 * its size, after 0 alone.
 */
int xl_tensor_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		      const struct xl_says *says, struct xmem_tensor *ret);

/* Fill in what metadata says of such an image. @stride 0: no padding. 0, or -errno, noted. */
int xl_image_fill(struct xmem_metadata *metadata, u32 format, u64 width, u64 height, u64 stride,
		  const struct xl_says *says);

/* The same as xl_tensor_measure for an image. */
int xl_image_measure(const struct xmem_metadata *metadata, const void *data, u64 bytes,
		     const struct xl_says *says, struct xmem_image *ret);

/* Find the tensor that a plane of such an image is. 0, or -errno, noted. */
int xl_plane_measure(const struct xmem_image *image, u32 plane, const struct xl_says *says,
		     struct xmem_tensor *ret);

#endif

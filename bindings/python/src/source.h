/* SPDX-License-Identifier: MIT */
/*
 * One description of contents that are copied into a guard, whether they are lent as a buffer or by
 * DLPack. It accepts the types of elements that have a meaning in other processes.
 */
#ifndef XP_SOURCE_H
#define XP_SOURCE_H

#include "core.h"
#include "dlpack.h"

struct xp_source {
	const void *data;
	uint32_t dtype;			/* 0: bytes of a type that xmem does not know */
	int ndim;
	Py_ssize_t item_bytes, bytes;
	Py_ssize_t shape[PyBUF_MAX_NDIM], strides[PyBUF_MAX_NDIM];
};

/*
 * Describe the elements that @from has lent. 0; or -1 with TypeError if they have no meaning in
 * other processes: objects, records, text, and numbers in the other byte order. @dtype: the type of
 * the elements, if @from lends them under another type; 0: the type that @from gives.
 */
int xp_source_buffer(struct xp_source *ret, PyObject *from, const Py_buffer *view, uint32_t dtype);
int xp_source_tensor(struct xp_source *ret, const struct dl_tensor *tensor);

/* Are its elements dense, the last index varying fastest? */
bool xp_source_is_dense(const struct xp_source *source);
/* Does it overlap these bytes? */
bool xp_source_overlaps(const struct xp_source *source, const void *data, size_t bytes);

#endif

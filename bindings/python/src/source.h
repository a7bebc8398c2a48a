/* SPDX-License-Identifier: MIT */
/*
 * What is copied into a guard, seen in one way, whether it is lent as a buffer or by DLPack; and
 * which types of elements mean the same in another process.
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
 * Look at what @from has lent. 0; or -1 with TypeError if its elements mean nothing elsewhere:
 * objects, records, text and numbers in the other byte order.
 * @dtype: of the elements, where @from lends them under another type; 0: what it says.
 */
int xp_source_buffer(struct xp_source *ret, PyObject *from, const Py_buffer *view, uint32_t dtype);
int xp_source_tensor(struct xp_source *ret, const struct dl_tensor *tensor);

/* Do its elements follow each other, the last index varying fastest? */
bool xp_source_is_dense(const struct xp_source *source);
/* Does it lie, at least in part, in these bytes? */
bool xp_source_overlaps(const struct xp_source *source, const void *data, size_t bytes);

#endif

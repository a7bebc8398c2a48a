/* SPDX-License-Identifier: MIT */
/* What xmem_copy does where memory of a GPU takes part: gpu/copy.c. */
#ifndef XMEM_COPIES_H
#define XMEM_COPIES_H

#include "private.h"

/* Is it a buffer in memory of a GPU? */
bool xl_is_cuda(const struct xmem_buffer *handle);

/* Copy the contents of @from to the beginning of @to. 0, or -errno, noted. */
int xl_copy_cuda(struct xmem_buffer *to, struct xmem_buffer *from);

#endif

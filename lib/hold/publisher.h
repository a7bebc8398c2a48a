/* SPDX-License-Identifier: MIT */
/* Which client published a buffer, and its label: publisher.c. */
#ifndef XMEM_HOLD_PUBLISHER_H
#define XMEM_HOLD_PUBLISHER_H

#include "lib/base/handle.h"

/* Remember the label of a publisher that is followed from now on. */
void xl_label_record(struct xmem_pool *pool, u32 publisher, u64 incarnation);

/*
 * The client that published the contents, with its label or an empty one. XMEM_NOBODY: it is not
 * known, and *ret has no meaning. pre: xl_place_contents.
 */
u32 xl_publisher_of(const struct xmem_buffer *buffer, struct xm_label *ret);

#endif

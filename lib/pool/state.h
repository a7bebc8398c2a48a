/* SPDX-License-Identifier: MIT */
/* How a pool was opened. */
#ifndef XMEM_POOL_STATE_H
#define XMEM_POOL_STATE_H

#include "xmem.h"

/* The arguments for xmem_pool_reopen (reopen.c). */
struct xl_opening {
	struct xmem_pool_options options;	/* its label is NULL, or points to `label` */
	char label[XMEM_LABEL_BYTES];
	char name[XMEM_NAME_BYTES];	/* empty: the pool is anonymous */
	u32 owner;			/* the pool's user; ~0: the user has no number here */
	int fd;				/* XMEM_OPEN_INHERIT: a descriptor of the pool for
					 * children; or -1 */
};

#endif

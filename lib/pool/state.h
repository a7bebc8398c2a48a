/* SPDX-License-Identifier: MIT */
/* How a pool was opened. */
#ifndef XMEM_POOL_STATE_H
#define XMEM_POOL_STATE_H

#include "xmem.h"

/* How a pool was opened, for xmem_pool_reopen (reopen.c). */
struct xl_opening {
	struct xmem_pool_options options;	/* its label is NULL or the one here: */
	char label[XMEM_LABEL_BYTES];
	char name[XMEM_NAME_BYTES];	/* empty: it is anonymous */
	u32 owner;			/* user; ~0: it has no number here */
	int fd;				/* XMEM_OPEN_INHERIT: of the pool, for children; or -1 */
};

#endif

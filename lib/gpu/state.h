/* SPDX-License-Identifier: MIT */
/* The part of a pool that is about GPUs. */
#ifndef XMEM_GPU_STATE_H
#define XMEM_GPU_STATE_H

#include "lib/base/lock.h"

struct xl_on_gpus {
	struct xl_lock opening;		/* serialises the opening of memory */
	struct xl_lock lock;		/* guards the making of `orders` */
	struct xl_orders *orders;	/* the values that streams write and wait for: order.h;
					 * or NULL */
	struct xl_remnant *remnant;	/* for memory that the pool's end must not free:
					 * pool/bury.h; or NULL; under `slow` */
};

#endif

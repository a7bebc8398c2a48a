/* SPDX-License-Identifier: MIT */
/* The part of a pool that is about GPUs. */
#ifndef XMEM_GPU_STATE_H
#define XMEM_GPU_STATE_H

#include "lib/base/lock.h"

struct xl_on_gpus {
	struct xl_opened_now *opening;	/* payloads that threads are opening; under
					 * mappings.lock */
	u32 openings;			/* how many of these have ended; a futex; atomic */
	struct xl_lock lock;		/* guards the making of `orders` */
	struct xl_orders *orders;	/* the values that streams write and wait for: order.h;
					 * or NULL */
	struct xl_remnant *remnant;	/* for memory that the pool's end must not free:
					 * pool/bury.h; or NULL; under `slow` */
	bool buries;			/* this pool was joined to free such memory, and only
					 * pool/bury.c uses it */
};

#endif

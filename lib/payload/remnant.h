/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs that others may still have open when its pool's handle is gone. What is needed
 * then is made here, with the first such memory; pool/bury.c does the rest.
 */
#ifndef XMEM_PAYLOAD_REMNANT_H
#define XMEM_PAYLOAD_REMNANT_H

#include "lib/private.h"

/* What one pool has left. */
struct xl_remnant {
	struct xl_remnant *next;
	struct xmem_pool *pool;		/* the reader that asks; NULL: it has not joined */
	struct xl_mapping *left;	/* until the pool has it */
	const struct xl_reader_calls *calls;	/* bury.h */
	int fd;				/* of the pool, to join it */
	u64 process;			/* whose it is: *xl_process */
	struct xmem_pool_header *header;	/* until it has joined: xmemd's word is there */
	u32 client;			/* whose it was, */
	u64 incarnation;
	bool stopped;			/* the host did not answer when that ended */
};

/*
 * What the pool's end will need, before it makes or takes the first memory that must not be freed
 * while others have it open. 0 or -errno, noted. Under pool->slow.
 */
int xl_cuda_bury_prepare(struct xmem_pool *pool);

/*
 * Free what others have closed since; set by bury.c as long as there is anything. Under no lock.
 */
extern void (*xl_remnants_due)(void) __attribute__((visibility("hidden")));

static inline void xl_cuda_settle_remnants(void)
{
	void (*due)(void) = __atomic_load_n(&xl_remnants_due, __ATOMIC_RELAXED);

	if (unlikely(due))
		due();
}

#endif

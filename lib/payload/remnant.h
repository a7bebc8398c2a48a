/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs that other clients may still have open when its pool has been closed. This part
 * makes what is needed then, together with the first such memory. pool/bury.c does the rest.
 */
#ifndef XMEM_PAYLOAD_REMNANT_H
#define XMEM_PAYLOAD_REMNANT_H

#include "lib/private.h"

/* The memory that one closed pool has left. */
struct xl_remnant {
	struct xl_remnant *next;
	struct xmem_pool *pool;		/* a reader that asks the host; NULL: it has not joined */
	struct xl_mapping *left;	/* the memory; the pool has it later */
	const struct xl_reader_calls *calls;	/* pool/bury.h */
	int fd;				/* a descriptor of the pool, to join it */
	u64 process;			/* the process that closed the pool: *xl_process */
	struct xmem_pool_header *header;	/* xmemd's word is there; until the reader has
						 * joined */
	u32 client;			/* the client that had the memory, and its incarnation */
	u64 incarnation;
	bool stopped;			/* the host did not answer when this client ended */
};

/*
 * Make what the pool's end needs, before it makes or takes the first memory that must not be freed
 * while other clients have it open. 0 or -errno, noted. Under pool->slow.
 */
int xl_cuda_bury_prepare(struct xmem_pool *pool);

/*
 * Free the memory that other clients have closed since. pool/bury.c sets it while there is such
 * memory. It is called under no lock.
 */
extern void (*xl_remnants_due)(void) __attribute__((visibility("hidden")));

static inline void xl_cuda_reap_remnants(void)
{
	void (*due)(void) = __atomic_load_n(&xl_remnants_due, __ATOMIC_RELAXED);

	if (unlikely(due))
		due();
}

#endif

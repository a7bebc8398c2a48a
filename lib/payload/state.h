/* SPDX-License-Identifier: MIT */
/* The payloads that a process has mapped; payload.h has the rules. */
#ifndef XMEM_PAYLOAD_STATE_H
#define XMEM_PAYLOAD_STATE_H

#include "lib/base/lock.h"

/* Where the payload of a slot is: its number, and the address at which it is mapped. */
struct xl_place {
	u64 payload;
	char *base;
};

struct xl_mappings {
	struct xl_lock lock;		/* guards the views of handles, and all fields here but
					 * the places */
	struct xl_place *place;		/* for each slot of the pool */
	struct xl_place *device;	/* for each slot, its address on a GPU; NULL: not needed
					 * yet */
	struct xl_mapping **list;	/* by payload; the number of lists, a power of two: */
	u32 lists;
	u32 count;			/* of mappings */
	u32 pass;			/* passes over all rows so far */
	u64 gone;			/* the header's payloads_gone at the last pass */
	u64 bytes;			/* of all mappings */
	u64 advised;			/* of the mappings that are `advised` */
	struct xl_mapping *dropped;	/* mappings of GPUs that this process does not use any
					 * more */
	struct xl_mapping *closing;	/* own ones that other clients may still have open */
	u64 closed;			/* the header's payloads_closed at the last check */
	bool unsure;			/* at that check, the host did not answer for all of them */
};

#endif

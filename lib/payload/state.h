/* SPDX-License-Identifier: MIT */
/* Payloads that are mapped; rules: payload.h. */
#ifndef XMEM_PAYLOAD_STATE_H
#define XMEM_PAYLOAD_STATE_H

#include "lib/base/lock.h"

/* What is known of a slot: the number of its payload, and where that is mapped. */
struct xl_place {
	u64 payload;
	char *base;
};

struct xl_mappings {
	struct xl_lock lock;		/* guards the rest, but for places, and views of handles */
	struct xl_place *place;		/* [slots of the pool] */
	struct xl_place *device;	/* the same for GPUs; NULL: none was needed yet */
	struct xl_mapping **list;	/* by payload; so many, a power of two: */
	u32 lists;
	u32 count;			/* of mappings */
	u32 pass;			/* looks at all rows so far */
	u64 gone;			/* the header's payloads_gone at the last look */
	u64 bytes;			/* of all mappings */
	u64 advised;			/* of those that are `advised` */
	struct xl_mapping *dropped;	/* of GPUs, which nobody here uses any more */
	struct xl_mapping *closing;	/* and ours, which others may still have open */
	u64 closed;			/* the header's payloads_closed at the last look, */
	bool unsure;			/* when the host did not answer for all of them */
};

#endif

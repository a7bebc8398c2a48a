/* SPDX-License-Identifier: MIT */
/*
 * The slots that this client owns, in lists; rules: owned.h. All structs here are guarded by
 * owned.lock unless a field says otherwise.
 */
#ifndef XMEM_OWN_STATE_H
#define XMEM_OWN_STATE_H

#include "core/publish.h"
#include "lib/base/lock.h"

/* One owned slot, in at most one list. */
struct xl_owned_slot {
	struct xm_own own;	/* the part that core/scan.c reads */
	struct xl_size *size;	/* NULL: this client does not own it */
	struct xl_mapping *file;	/* the file that has it */
	struct xmem_metadata *metadata;
	struct xl_owned_slot *next;
	bool renewing;		/* a request to renew it was given up, and may be served at any
				 * time */
	u64 busy_ns;		/* since when it is wanted back while BUSY; 0: it is not */
	bool held;		/* `holder` held it at the last scan */
	u8 holder;
};

/* First in, first out. */
struct xl_queue {
	struct xl_owned_slot *first;
	struct xl_owned_slot **last;	/* the link where the next one is added */
};

/*
 * Limits and counts of making on demand in one place, and of its cache; terms: demand.h. Each place
 * has the program's options anew.
 */
struct xl_demand {
	bool on;
	bool by_default;	/* making on demand ends with the first preallocation there */
	u64 option;		/* demand_bytes, as the program has given it */
	u32 memory;		/* XMEM_MEMORY_* */
	u64 huge_page;		/* bytes of one; 0: not wanted, or the system has none */
	u64 limit;		/* the most that `used` may be; ~0: not known yet */
	u64 cache_bytes;	/* bytes of idle files that stay; 0: an eighth of the peak */
	u64 cache_ns;		/* how long idle files stay */
	u64 bytes;		/* of all files made on demand */
	u64 used;		/* of those that were not idle at the last refresh */
	u64 making;		/* of `used`: memory of a GPU that threads are making */
	u64 peak;		/* the greatest `used` so far */
	bool no_slots;		/* making failed: all slots of the pool are in use */
	int failed;		/* or it failed for another reason than slots and bytes: -errno;
				 * else 0 */
};

/* The sizes of the buffers in one place: memory of the CPU, or of one device. */
struct xl_chain {
	struct xl_size *sizes;	/* the smallest first; the last is empty, and larger than all */
	struct xl_chain *next;	/* the chain of another place */
	struct xl_gpu *gpu;	/* NULL: the CPU */
	int ordinal;		/* the device's number in this process; -1: the CPU */
	u32 device;		/* the device's number in the pool, once a payload on it is
				 * attached; else 0 */
	struct xl_demand demand;
};

/* The owned slots of one size and kind; owned.h says which list is where. */
struct xl_size {
	u64 bytes;
	struct xl_chain *chain;	/* the chain that has it; NULL: none, for slots of one content */
	bool shared;		/* other clients may write these in place; after the size of sealed
				 * slots */
	struct xl_size *larger;	/* the next one */
	struct xm_own **circle;	/* [mask + 1], room for all slots of the size */
	u32 mask;
	u32 ready;		/* the first READY slot, */
	u32 live;		/* the first LIVE slot, */
	u32 end;		/* the end of LIVE; all three only grow, except `ready` */
	struct xl_queue free;
	struct xl_queue busy;
	u32 slots;
};

#define XL_CACHE_NS	10000000000ULL	/* by default */

struct xl_owned {
	struct xl_lock lock;	/* guards this struct and the lists; one operation of the owner at a
				 * time (I4) */
	struct xl_owned_slot *slot;	/* [slots of the pool] */
	struct xm_publisher_words words;	/* pointers to this client's own words in the
						 * pages */
	struct xl_chain cpu;	/* the chain of the CPU; the chains of devices follow, and stay */
	struct xl_size *once;	/* slots for one content, of any size (once.c); or NULL */
	u32 attached;		/* how many slots `once` has; also read without the lock */
	bool detaching;		/* detach requests were posted since the last wait; atomic */
	u64 promised;		/* publications so far, plus buffers in hand and reserved entries */
	u64 room_end;		/* when `promised` reaches this, the ring is read again */
	u64 fast_end;		/* acquire and publish take the fast path while `promised` is less;
				 * 0: never. Only demote.c and xl_leave_fast_path write it */
	u64 passed;		/* no subscriber can still receive a publication below it */
	u64 bound_place;	/* the tail when the bound began (demote.c) */
	u64 bound_bytes;	/* the largest size that was asked for in vain since, */
	const struct xl_chain *bound_chain;	/* and its chain */
	u64 culprit_at;		/* the cursor that keeps `passed` low, */
	u32 culprit;		/* and its client, or XMEM_OWNER_NONE */
	u32 slots;		/* that this client owns */
	u32 keep;		/* so many of the last publications stay for later subscribers */
	u64 gaps_end;		/* no place from here on is a gap (keep.c) */
	u32 renewals;		/* slots that are `renewing` */
	u64 wait_bound_ns;
	u64 recall_from;	/* since when it waits for slots in other clients' rings (demote.c);
				 * 0: it does not */
	u64 recall_bytes;	/* the largest size that was asked for in vain since */
	u64 lent_bound;		/* the shortest bound of these clients; ~0: there are none */
	bool closed;		/* the pool's handle is closed, so no acquire succeeds */
	bool forwards;		/* this client has forwarded slots that it holds */
	bool lent;		/* some BUSY slots may be kept only by other clients' rings */
	struct xl_mapping *files;	/* the payload files that this client has made */
	bool on_demand;		/* in some place buffers are made on demand; atomic */
	u64 looked_ns;		/* the time of the last refresh; atomic */
	const struct xl_chain *asked;	/* the chain of the last acquire */
	bool refused;		/* the last acquire failed */
	u64 none_bytes;		/* no buffer of this size comes free while the waiters word is armed
				 * as ring.vain says, */
	const struct xl_chain *none_chain;	/* in this chain; NULL: that is not known */
};

/* The program's hook for limbo, and its limits. */
struct xl_hook {
	struct xl_lock lock;	/* guards the fields below; `call` is also read without it */
	u64 bytes;
	u32 count;
	bool above;		/* the program has been warned, and limbo is still above a limit */
	xmem_limbo_function *call;
	void *user;
};

#endif

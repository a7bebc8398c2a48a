/* SPDX-License-Identifier: MIT */
/* The slots that this client owns, in lists; rules: owned.h. */
#ifndef XMEM_OWN_STATE_H
#define XMEM_OWN_STATE_H

#include "core/publish.h"
#include "lib/base/lock.h"

/* One owned slot, in at most one list. */
struct xl_owned_slot {
	struct xm_own own;	/* what a scan has to know */
	struct xl_size *size;	/* NULL: this client does not own it */
	struct xl_mapping *file;	/* that it is in */
	struct xmem_metadata *metadata;
	struct xl_owned_slot *next;
	bool renewing;		/* a renewal was given up, and may be served at any time */
	u64 busy_ns;		/* since when it has been missed while BUSY; 0: it has not */
	bool held;		/* a client held it when it was looked at: */
	u8 holder;
};

/* First in, first out. */
struct xl_queue {
	struct xl_owned_slot *first;
	struct xl_owned_slot **last;	/* where the next one is to be linked */
};

/* The sizes of the buffers in one place: memory of the CPU, or of one device. */
struct xl_chain {
	struct xl_size *sizes;	/* the smallest first; the last is empty, and larger than all */
	struct xl_chain *next;	/* of another place */
	struct xl_gpu *gpu;	/* NULL: the CPU */
	int ordinal;		/* this process's number of it; -1 */
	u32 device;		/* its number in the pool, once something is attached; else 0 */
};

/* The owned slots of one size and kind; which is where, and when it moves: owned.h. */
struct xl_size {
	u64 bytes;
	struct xl_chain *chain;	/* that it is in; NULL: in none */
	bool shared;		/* others may write these in place; they follow the others */
	struct xl_size *larger;	/* the next one */
	struct xm_own **circle;	/* [mask + 1], which has room for all of them: */
	u32 mask;
	u32 ready;		/* from here on there are READY slots, */
	u32 live;		/* from here on LIVE ones, */
	u32 end;		/* and from here on none; all three only grow, but for ready */
	struct xl_queue free;
	struct xl_queue busy;
	u32 slots;
};

/* What is made on demand, and what is kept of it; words: demand.h. */
struct xl_demand {
	bool on;		/* atomic */
	bool by_default;	/* it ends with the first preallocation */
	u32 memory;		/* XMEM_MEMORY_* */
	u64 huge_page;		/* bytes of one; 0: they are not wanted, or there are none */
	u64 limit;		/* of the bytes below; ~0: not known yet */
	u64 cache_bytes;	/* of idle files that stay; 0: an eighth of the peak */
	u64 cache_ns;		/* how long they stay */
	u64 bytes;		/* of all files made on demand */
	u64 used;		/* of those that were not idle at the last look */
	u64 busy;		/* of the buffers in them that were not FREE or READY then */
	u64 peak;		/* the most that was used */
	bool no_slots;		/* nothing could be made: all slots of the pool are in use */
	int failed;		/* or for another reason than these and bytes: -errno; else 0 */
	u64 looked_ns;		/* when the last look was; atomic */
};

#define XL_CACHE_NS	10000000000ULL	/* by default */

struct xl_owned {
	struct xl_lock lock;	/* guards this struct; one owner operation at a time (I4) */
	struct xl_owned_slot *slot;	/* [slots of the pool] */
	struct xm_publisher_words words;	/* where this client's own words are */
	struct xl_chain cpu;	/* and behind it the chains of devices, which stay */
	struct xl_size *once;	/* slots for one content, of any size (attach.c); or NULL */
	u32 attached;		/* how many; also read without the lock */
	bool detaching;		/* some were posted to be detached; atomic */
	u64 promised;		/* publications so far, and buffers that handles have */
	u64 room_end;		/* so many may be promised before the ring is looked at again */
	u64 fast_end;		/* acquire and publish take the fast path as long as fewer are
				 * promised; 0: they do not. Written by demote.c and
				 * xl_leave_fast_path alone */
	u64 passed;		/* nobody can still receive a publication below this place */
	u64 bound_place;	/* the tail when the bound began (demote.c) */
	u64 bound_bytes;	/* the most that was asked for in vain since, */
	const struct xl_chain *bound_chain;	/* and where */
	u64 culprit_at;		/* its cursor, which keeps `passed` low */
	u32 culprit;		/* client, or XMEM_OWNER_NONE */
	u32 slots;		/* that this client owns */
	u32 keep;		/* so many of the last publications stay for who comes later */
	u64 gaps_end;		/* from this place on nothing was sent, forwarded, taken back, or
				 * evicted (keep.c) */
	u32 renewals;		/* slots that are `renewing` */
	u64 wait_bound_ns;
	u64 recall_from;	/* since when it waits for what others forward (demote.c), or 0 */
	u64 recall_bytes;	/* the most that was asked for in vain since */
	u64 lent_bound;		/* the least bound of those that keep a slot so; ~0: none does */
	bool closed;		/* the pool's handle is: nothing is acquired any more */
	bool forwards;		/* this client has put what it holds into its ring */
	bool lent;		/* slots in BUSY may be kept by nothing but others' rings */
	struct xl_mapping *files;	/* that this client has made */
	struct xl_demand demand;
	const struct xl_chain *asked;	/* where the last acquire looked; the ring says it */
	bool refused;		/* the last acquire found nothing: the ring says what it wanted */
	bool none;		/* nothing of `none_bytes` is to be had as long as the waiters */
	u32 none_armed;		/* word is armed with this value (I5) */
	u64 none_bytes;
	const struct xl_chain *none_chain;
};

/* Whom to tell about limbo, and beyond what. */
struct xl_hook {
	struct xl_lock lock;	/* guards the rest, but `call` may be peeked at */
	u64 bytes;
	u32 count;
	bool above;		/* it has been told */
	xmem_limbo_function *call;
	void *user;
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The map of the library: its structs, which lock guards what, who is where.
 *
 *   pool.c join.c     pools: opened and closed; options checked, a host reached
 *   handle.[ch]       handles of buffers: made, reused
 *   request.[ch] time.c  requests to the host: arm, wait, wake; the clock
 *   info.c            what is in a pool
 *   owned.[ch]        the slots that a writer owns, in lists by what it knows of them:
 *     preallocate.c acquire.c publish.c   made, written, published
 *     collect.c demote.c                  found again; subscribers that are too slow
 *   subscribe.c receive.c  subscriptions
 *   buffer.c          get, clone, release, what a handle of a buffer can be asked
 *   payload/          the files with the contents, behind one table of kinds
 *   host/             both hosts, behind one table
 *   error.c fork.c    the thread's last error; handles that a fork has left behind
 *
 * Lock order: pool->slow, then a subscription's lock or owned.lock, then pool->lock.
 * Only under pool->slow is the host asked for anything that it may take long for.
 */
#ifndef XMEM_PRIVATE_H
#define XMEM_PRIVATE_H

#include <pthread.h>
#include <sys/single_threaded.h>

#include "host/backend.h"
#include "xmem.h"

#define XMEM_API	__attribute__((visibility("default")))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Ways that the hot functions leave by tail calls, so that they need not save registers. */
#define XL_SLOW		__attribute__((noinline))
#define XL_COLD		__attribute__((noinline, cold))
#define XL_INLINE	inline __attribute__((always_inline))

/* ---- locks: as long as the process has one thread they cost a load ---- */

struct xl_lock {
	pthread_mutex_t mutex;
	bool taken;		/* by its holder, which unlocks as it locked */
};

static inline void xl_lock(struct xl_lock *lock)
{
	if (likely(__libc_single_threaded))
		return;
	pthread_mutex_lock(&lock->mutex);
	lock->taken = true;
}

static inline void xl_unlock(struct xl_lock *lock)
{
	if (likely(!lock->taken))
		return;
	lock->taken = false;
	pthread_mutex_unlock(&lock->mutex);
}

/* ---- errors (error.c) ---- */

/* Note the error and return -error. The fast one takes a constant message. */
int xl_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
int xl_fail_fast(int error, const char *message);

/* ---- fork (fork.c) ---- */

/* Number of this process in its line of forks; wiped to 0 in a child until it opens a pool. */
extern u64 *xl_process __attribute__((visibility("hidden")));

int xl_process_register(struct xmem_pool *pool);
void xl_process_unregister(struct xmem_pool *pool);

/* ---- the slots that this client owns; rules: owned.h ---- */

enum xl_list {			/* where an owned slot is */
	XL_LIST_FREE,		/* FREE */
	XL_LIST_READY,		/* WRITING, reclaimed ahead of need */
	XL_LIST_LIVE,		/* published, not scanned in vain yet; oldest first */
	XL_LIST_BUSY,		/* limbo: scanned in vain; oldest first */
	XL_LISTS
};

/* One owned slot, in at most one list. */
struct xl_owned_slot {
	struct xl_owned_slot *next;
	u64 bytes;		/* of the slot; never changes while it is ours */
	u32 index;		/* of the slot in the pool */
};

/* First in, first out. */
struct xl_queue {
	struct xl_owned_slot *first;
	struct xl_owned_slot **last;	/* where the next one is to be linked */
};

struct xl_owned {
	struct xl_lock lock;	/* guards all here, and makes owner operations serial (I4) */
	struct xl_owned_slot *slot;	/* [slots of the pool] */
	struct xl_queue list[XL_LISTS];
	u64 largest;		/* bytes of the largest slot */
	u32 out;		/* slots that are in no list: WRITING, a handle has each */
	u32 slots;		/* that we own */
	u32 batch;		/* slots in one scan */
	u64 wait_bound_ns;
	u64 blocked_since_ns;	/* no slot since then; 0: not so */
	u64 demoted[XMEM_CLIENT_WORDS];		/* subscribers that we waited for in vain */
	u64 demoted_at[XMEM_MAX_CLIENTS];	/* where their cursor stood then */
};

/* ---- pools and subscriptions ---- */

struct xmem_pool {
	struct xm_map map;
	u32 me;
	u32 role;
	u64 process;			/* *xl_process when it was opened */
	struct xl_lock lock;		/* guards the fields down to the blank line */
	struct xmem_buffer *spare;	/* handles */
	struct xl_block *blocks;	/* where they come from */
	struct xl_mapping *mappings;
	u64 made;			/* handles, spare ones and those in use */
	u64 out;     /* the pool's own handle, and subscriptions; once closed: handles in use */
	bool closed; /* all of those have gone: from now on handles are counted */

	struct xl_lock slow; /* serialises preallocate, and subscribe with unsubscribe; guards: */
	struct xmem_subscription *subscriptions;

	struct xl_owned owned;
	struct xmem_link link;
	struct xmem_pool *next;		/* all pools of the process; fork.c's lock */
};

struct xmem_subscription {
	struct xmem_pool *pool;
	struct xmem_subscription *next;	/* pool->slow */
	struct xl_lock lock; /* guards all below: one cursor, one receiver at a time (I4) */
	struct xm_follow follow;
	bool ended;			/* the host has been told that we have seen the end */
};

static inline bool xl_alive(const struct xmem_pool *pool)
{
	return likely(pool->process == *xl_process);
}

/* -ECHILD, noted. */
int xl_fail_forked(void);

/* The pool goes with its last handle once it is closed (pool.c). */
void xl_pool_unshare(struct xmem_pool *pool);
void xl_pool_destroy(struct xmem_pool *pool);

#endif

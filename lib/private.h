/* SPDX-License-Identifier: MIT */
/*
 * The map of the library: its structs, which lock guards what, who is where.
 *
 *   error.c     the thread's last error
 *   fork.c      which handles are dead in this process
 *   pool.c      open, close, stat; the handles' free list
 *   payload.c   files: made and sealed for writers, mapped and kept for readers
 *   owner.c     preallocate, acquire, publish, the collector (limbo)
 *   ring.c      subscribe, receive
 *   buffer.c    get, clone, release, what a handle can be asked
 *
 * Lock order: pool->slow, then a subscription's lock or owner.lock, then pool->lock.
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
	bool taken;		/* by its holder, who unlocks as he locked */
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

/* ---- payloads (payload.c) ---- */

/* One payload file, mapped whole. Guarded by pool->lock. */
struct xl_mapping {
	struct xl_mapping *next;
	u32 payload;
	u32 users;		/* handles with a pointer into it */
	bool writable;
	bool owned;		/* made here: stays until the pool goes */
	char *base;
	u64 bytes;
};

/* ---- handles ---- */

enum xl_mode { XL_READING = 1, XL_WRITING = 2 };

/* What get and put touch is in the first of its lines. */
struct xmem_buffer {
	_Alignas(64) struct xmem_pool *pool;
	struct xmem_buffer *next;	/* in the free list; pool->lock */
	u32 slot;
	u32 mode;			/* enum xl_mode */
	struct xm_publication what;	/* token 0 while written */
	struct xl_mapping *mapping;	/* once data has been asked for; counted there; pool->lock */
	char *data;			/* into it; set once, atomically */
};

/* ---- the owner (owner.c) ---- */

enum xl_list {			/* where an own slot is */
	XL_LIST_FREE,		/* FREE */
	XL_LIST_READY,		/* WRITING, reclaimed ahead of need */
	XL_LIST_LIVE,		/* published, not scanned in vain yet; oldest first */
	XL_LIST_BUSY,		/* limbo: scanned in vain; oldest first */
	XL_LISTS
};

/* One own slot, in at most one list. */
struct xl_own {
	struct xl_own *next;
	u64 bytes;		/* of the slot; never changes while it is ours */
	u32 slot;
};

/* First in, first out. */
struct xl_queue {
	struct xl_own *first;
	struct xl_own **last;	/* where the next one is to be linked */
};

struct xl_owner {
	struct xl_lock lock;	/* guards all here, and makes owner operations serial (I4) */
	struct xl_own *own;	/* [slots] */
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
	u64 out;			/* the pool's own handle, and subscriptions; once closed: handles in use */
	bool closed;			/* all of those have gone: from now on handles are counted */

	struct xl_lock slow;		/* serialises preallocate, and subscribe with unsubscribe; guards: */
	struct xmem_subscription *subscriptions;

	struct xl_owner owner;
	struct xmem_link link;
	struct xmem_pool *next;		/* all pools of the process; fork.c's lock */
};

struct xmem_subscription {
	struct xmem_pool *pool;
	struct xmem_subscription *next;	/* pool->slow */
	struct xl_lock lock;		/* guards all below: one cursor, one receiver at a time (I4) */
	struct xm_follow follow;
	bool ended;			/* the host has been told that we have seen the end */
};

static inline bool xl_alive(const struct xmem_pool *pool)
{
	return likely(pool->process == *xl_process);
}

/* -ECHILD, noted. */
int xl_fail_forked(void);

/* Take a handle, or drop it: the pool goes with the last one once it is closed. */
struct xmem_buffer *xl_handle_new_locked(struct xmem_pool *pool);
void xl_handle_free_locked(struct xmem_buffer *buffer);
void xl_pool_unshare(struct xmem_pool *pool);

/*
 * The fast ways of the hot functions ask this: is there no other thread, so that
 * no lock is needed, and are handles not counted? Their locks come with the slow ways.
 */
static inline bool xl_handles_free(const struct xmem_pool *pool)
{
	return likely(__libc_single_threaded && !pool->closed);
}

/* ... and are there any? */
static inline bool xl_handles_ready(const struct xmem_pool *pool)
{
	return likely(xl_handles_free(pool) && pool->spare);
}

/* These two: under pool->lock, or where xl_handles_free says so. */
static inline struct xmem_buffer *xl_handle_pop(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = pool->spare;

	pool->spare = buffer->next;
	return buffer;
}

static inline void xl_handle_push(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	if (buffer->mapping) {
		buffer->mapping->users--;
		buffer->mapping = NULL;
		buffer->data = NULL;
	}
	buffer->mode = 0;
	buffer->next = pool->spare;
	pool->spare = buffer;
}

static inline struct xmem_buffer *xl_handle_new(struct xmem_pool *pool)
{
	return xl_handles_ready(pool) ? xl_handle_pop(pool) : xl_handle_new_locked(pool);
}

static inline void xl_handle_free(struct xmem_buffer *buffer)
{
	if (xl_handles_free(buffer->pool))
		xl_handle_push(buffer->pool, buffer);
	else
		xl_handle_free_locked(buffer);
}

/* ---- requests ---- */

static inline int xl_request(struct xmem_pool *pool, unsigned int request, void *argument)
{
	return pool->link.backend->request(&pool->link, request, argument);
}

/* What xm_put and xm_receive left to do (I5). */
void xl_do_pending(struct xmem_pool *pool, struct xm_pending pending);

static inline void xl_do(struct xmem_pool *pool, struct xm_pending pending)
{
	if (unlikely(pending.what != XM_NOTHING))
		xl_do_pending(pool, pending);
}

/* One waiters word: arm; wait until @deadline_ns (absolute, ~0: none); wake. 0 or -errno. */
int xl_waiters_arm(struct xmem_pool *pool, u32 kind, u32 client, u32 *ret_value);
int xl_waiters_wait(struct xmem_pool *pool, u32 kind, u32 client, u32 value, u64 deadline_ns);
void xl_waiters_wake(struct xmem_pool *pool, u32 kind, u32 client);

u64 xl_now_ns(void);
u64 xl_deadline(int64_t timeout_ns);

/* ---- payload.c ---- */

int xl_payload_make(struct xmem_pool *pool, u32 count, u64 bytes, u16 *ret_slot);
int xl_payload_map(struct xmem_buffer *buffer);

/* Mappings of payloads that are attached nowhere any more, and that no handle points into. */
void xl_payload_unmap_stale(struct xmem_pool *pool);
void xl_payload_unmap_all(struct xmem_pool *pool);

/* ---- owner.c ---- */

int xl_owner_init(struct xmem_pool *pool, u64 wait_bound_ns);
void xl_owner_give_up(struct xmem_pool *pool, u32 slot);

#endif

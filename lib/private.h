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
#define XM_SLOW		__attribute__((noinline))
#define XM_COLD		__attribute__((noinline, cold))
#define XM_INLINE	inline __attribute__((always_inline))

/* ---- locks: as long as the process has one thread they cost a load ---- */

struct xm_lock {
	pthread_mutex_t mutex;
	bool taken;		/* by its holder, who unlocks as he locked */
};

static inline void xm_lock(struct xm_lock *lock)
{
	if (likely(__libc_single_threaded))
		return;
	pthread_mutex_lock(&lock->mutex);
	lock->taken = true;
}

static inline void xm_unlock(struct xm_lock *lock)
{
	if (likely(!lock->taken))
		return;
	lock->taken = false;
	pthread_mutex_unlock(&lock->mutex);
}

/* ---- errors (error.c) ---- */

/* Note the error and return -error. The fast one takes a constant message. */
int xm_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
int xm_fail_fast(int error, const char *message);

/* ---- fork (fork.c) ---- */

/* Number of this process in its line of forks; wiped to 0 in a child until it opens a pool. */
extern u64 *xm_process __attribute__((visibility("hidden")));

int xm_process_register(struct xmem_pool *pool);
void xm_process_unregister(struct xmem_pool *pool);

/* ---- payloads (payload.c) ---- */

/* One payload file, mapped whole. Guarded by pool->lock. */
struct xm_mapping {
	struct xm_mapping *next;
	u32 payload;
	u32 users;		/* handles with a pointer into it */
	bool writable;
	bool owned;		/* made here: stays until the pool goes */
	char *base;
	u64 bytes;
};

/* ---- handles ---- */

enum xm_mode { XM_READING = 1, XM_WRITING = 2 };

/* What get and put touch is in the first of its lines. */
struct xmem_buffer {
	_Alignas(64) struct xmem_pool *pool;
	struct xmem_buffer *next;	/* in the free list; pool->lock */
	u32 slot;
	u32 mode;			/* enum xm_mode */
	struct xm_publication what;	/* token 0 while written */
	struct xm_mapping *mapping;	/* once data has been asked for; counted there; pool->lock */
	char *data;			/* into it; set once, atomically */
};

/* ---- the owner (owner.c) ---- */

enum xm_list {			/* where an own slot is */
	XM_LIST_FREE,		/* FREE */
	XM_LIST_READY,		/* WRITING, reclaimed ahead of need */
	XM_LIST_LIVE,		/* published, not walked in vain yet; oldest first */
	XM_LIST_BUSY,		/* limbo: walked in vain; oldest first */
	XM_LISTS
};

/* One own slot, in at most one list. */
struct xm_own {
	struct xm_own *next;
	u64 bytes;		/* of the slot; never changes while it is ours */
	u32 slot;
};

/* First in, first out. */
struct xm_queue {
	struct xm_own *first;
	struct xm_own **last;	/* where the next one is to be linked */
};

struct xm_owner {
	struct xm_lock lock;	/* guards all here, and makes owner operations serial (I4) */
	struct xm_own *own;	/* [slots] */
	struct xm_queue list[XM_LISTS];
	u64 largest;		/* bytes of the largest slot */
	u32 out;		/* slots that are in no list: WRITING, a handle has each */
	u32 slots;		/* that we own */
	u32 batch;		/* slots in one walk */
	u64 wait_bound_ns;
	u64 blocked_since_ns;	/* no slot since then; 0: not so */
	u64 lapsed[XMEM_CLIENT_WORDS];		/* subscribers that we waited for in vain */
	u64 lapsed_at[XMEM_MAX_CLIENTS];	/* where their cursor stood then */
};

struct xmem_pool {
	struct xm_map map;
	u32 me;
	u32 role;
	u64 process;			/* *xm_process when it was opened */
	struct xm_lock lock;		/* guards the fields down to the blank line */
	struct xmem_buffer *spare;	/* handles */
	struct xm_block *blocks;	/* where they come from */
	struct xm_mapping *mappings;
	u64 made;			/* handles, spare ones and those in use */
	u64 out;			/* the pool's own handle, and subscriptions; once closed: handles in use */
	bool closed;			/* all of those have gone: from now on handles are counted */

	struct xm_lock slow;		/* serialises preallocate, and subscribe with unsubscribe; guards: */
	struct xmem_subscription *subscriptions;

	struct xm_owner owner;
	struct xmem_link link;
	struct xmem_pool *next;		/* all pools of the process; fork.c's lock */
};

struct xmem_subscription {
	struct xmem_pool *pool;
	struct xmem_subscription *next;	/* pool->slow */
	struct xm_lock lock;		/* guards all below: one cursor, one receiver at a time (I4) */
	struct xm_follow follow;
	bool ended;			/* the host has been told that we have seen the end */
};

static inline bool xm_alive(const struct xmem_pool *pool)
{
	return likely(pool->process == *xm_process);
}

/* -ECHILD, noted. */
int xm_fail_forked(void);

/* Take a handle, or drop it: the pool goes with the last one once it is closed. */
struct xmem_buffer *xm_handle_new_locked(struct xmem_pool *pool);
void xm_handle_free_locked(struct xmem_buffer *buffer);
void xm_pool_unshare(struct xmem_pool *pool);

/*
 * The fast ways of the hot functions ask this: is there no other thread, so that
 * no lock is needed, and are handles not counted? Their locks come with the slow ways.
 */
static inline bool xm_handles_free(const struct xmem_pool *pool)
{
	return likely(__libc_single_threaded && !pool->closed);
}

/* ... and are there any? */
static inline bool xm_handles_ready(const struct xmem_pool *pool)
{
	return likely(xm_handles_free(pool) && pool->spare);
}

/* These two: under pool->lock, or where xm_handles_free says so. */
static inline struct xmem_buffer *xm_handle_pop(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = pool->spare;

	pool->spare = buffer->next;
	return buffer;
}

static inline void xm_handle_push(struct xmem_pool *pool, struct xmem_buffer *buffer)
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

static inline struct xmem_buffer *xm_handle_new(struct xmem_pool *pool)
{
	return xm_handles_ready(pool) ? xm_handle_pop(pool) : xm_handle_new_locked(pool);
}

static inline void xm_handle_free(struct xmem_buffer *buffer)
{
	if (xm_handles_free(buffer->pool))
		xm_handle_push(buffer->pool, buffer);
	else
		xm_handle_free_locked(buffer);
}

/* ---- requests ---- */

static inline int xm_request(struct xmem_pool *pool, unsigned int request, void *argument)
{
	return pool->link.backend->request(&pool->link, request, argument);
}

/* What xm_put and xm_receive left to do (I5). */
void xm_settle_todo(struct xmem_pool *pool, struct xm_todo todo);

static inline void xm_do(struct xmem_pool *pool, struct xm_todo todo)
{
	if (unlikely(todo.what != XM_NOTHING))
		xm_settle_todo(pool, todo);
}

/* One sleepers word: arm; wait until @deadline_ns (absolute, ~0: none); wake. 0 or -errno. */
int xm_sleep_arm(struct xmem_pool *pool, u32 kind, u32 client, u32 *ret_value);
int xm_sleep_wait(struct xmem_pool *pool, u32 kind, u32 client, u32 value, u64 deadline_ns);
void xm_sleep_wake(struct xmem_pool *pool, u32 kind, u32 client);

u64 xm_now_ns(void);
u64 xm_deadline(int64_t timeout_ns);

/* ---- payload.c ---- */

int xm_payload_make(struct xmem_pool *pool, u32 count, u64 bytes, u16 *ret_slot);
int xm_payload_map(struct xmem_buffer *buffer);

/* Mappings of payloads that are attached nowhere any more, and that no handle points into. */
void xm_payload_unmap_stale(struct xmem_pool *pool);
void xm_payload_unmap_all(struct xmem_pool *pool);

/* ---- owner.c ---- */

int xm_owner_init(struct xmem_pool *pool, u64 wait_bound_ns);
void xm_owner_give_up(struct xmem_pool *pool, u32 slot);

#endif

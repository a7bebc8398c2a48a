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
 * Lock order: a subscription's lock or owner.lock, then pool->lock.
 */
#ifndef XMEM_PRIVATE_H
#define XMEM_PRIVATE_H

#include <pthread.h>
#include <sys/single_threaded.h>

#include "backend.h"
#include "xmem.h"

#define XMEM_API	__attribute__((visibility("default")))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

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
extern u64 *xm_process;

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

struct xmem_buffer {
	struct xmem_pool *pool;
	struct xmem_buffer *next;	/* in the free list; pool->lock */
	u32 slot;
	u32 mode;			/* enum xm_mode */
	u64 token;			/* 0 while written */
	u64 sequence;
	u64 timestamp_ns;
	u64 offset;			/* bytes into the slot's payload */
	u64 length;
	struct xm_mapping *mapping;	/* once data has been asked for; counted there; pool->lock */
	char *data;			/* into it; set once, atomically */
};

/* ---- the owner (owner.c) ---- */

enum xm_list {			/* where an own slot is */
	XM_LIST_NONE,		/* not ours */
	XM_LIST_FREE,		/* FREE */
	XM_LIST_READY,		/* WRITING, reclaimed ahead of need */
	XM_LIST_LIVE,		/* published, not walked in vain yet; oldest first */
	XM_LIST_BUSY,		/* limbo: walked in vain; oldest first */
	XM_LIST_OUT,		/* WRITING, a handle has it */
	XM_LISTS
};

struct xm_own {
	u32 next, prev;		/* slots; XM_NO_SLOT ends */
	u32 list;		/* enum xm_list */
};
#define XM_NO_SLOT	0xffffffffu

struct xm_owner {
	struct xm_lock lock;	/* guards all here, and makes owner operations serial (I4) */
	struct xm_own *own;	/* [slots] */
	u32 head[XM_LISTS], tail[XM_LISTS], count[XM_LISTS];
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
	u64 out;			/* the pool's own handle, buffers, subscriptions */

	struct xm_owner owner;
	struct xmem_link link;
	struct xmem_pool *next;		/* all pools of the process; fork.c's lock */
};

struct xmem_subscription {
	struct xmem_pool *pool;
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
struct xmem_buffer *xm_handle_refill(struct xmem_pool *pool);
void xm_pool_drop(struct xmem_pool *pool);

static inline struct xmem_buffer *xm_handle_new(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer;

	xm_lock(&pool->lock);
	buffer = pool->spare;
	if (unlikely(!buffer))
		buffer = xm_handle_refill(pool);
	if (likely(buffer)) {
		pool->spare = buffer->next;
		pool->out++;
	}
	xm_unlock(&pool->lock);
	return buffer;
}

static inline void xm_handle_free(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	bool last;

	xm_lock(&pool->lock);
	if (buffer->mapping) {
		buffer->mapping->users--;
		buffer->mapping = NULL;
		buffer->data = NULL;
	}
	buffer->mode = 0;
	buffer->next = pool->spare;
	pool->spare = buffer;
	last = !--pool->out;
	xm_unlock(&pool->lock);
	if (unlikely(last))
		xm_pool_drop(pool);
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
void xm_payload_unmap_all(struct xmem_pool *pool);

/* ---- owner.c ---- */

int xm_owner_init(struct xmem_pool *pool, u64 wait_bound_ns);
void xm_owner_give_up(struct xmem_pool *pool, u32 slot);

/* A hold on @token, settling its owner's walk if need be. 0 or -errno, then without hold. */
int xm_hold_token(struct xmem_pool *pool, u64 token);

#endif

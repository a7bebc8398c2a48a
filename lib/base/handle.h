/* SPDX-License-Identifier: MIT */
/*
 * Handles of buffers. What a user has is not the address of the struct but its name, which is
 * another one each time that the struct is used: a handle that was dropped has a name that no
 * longer fits, and so is found out. The structs are made for the whole process and never go
 * back to the allocator (handle.c), so a stale name can be looked up without harm. A name is
 *
 *   generation << 41 | address / 128
 *
 * Each thread has some free handles of its own, so that get and put need no lock. No pool
 * knows how many handles of it are in use. That is counted once, at its end:
 *
 *   A thread that drops a handle stores mode = 0, then loads pool->share.ending. Whoever closes the
 *   pool stores pool->share.ending, calls membarrier, then looks at all handles and counts those in
 *   use, all under pool->share.lock. The membarrier is a full barrier in both threads, so a handle
 *   that is dropped without regard to the end is not counted. All that are counted say so
 *   (counted), and the last of them that is dropped destroys the pool. The same holds for a
 *   clone, which stores mode, then loads pool->share.ending. Model: tests/model/close.pml.
 */
#ifndef XMEM_HANDLE_H
#define XMEM_HANDLE_H

#include "lib/payload/payload.h"
#include "lib/private.h"

/*
 * A get by token leaves open where the contents are (XL_OPEN). The metadata say it, a cache line
 * that is only needed by those who look at the contents: see xl_place_contents. What is WRITING and
 * FIXED is to be published, too, but its contents are there already (attach.c). What is WRITING and
 * UPGRADED is held, and written in place (inplace.c). CUDA: a buffer on a GPU that is written.
 * ORDERED: a stream was told to wait for the contents or, before they are published, to write them,
 * so no thread waits by itself. LEAVING: a stream is to drop the handle (hold/release_on.c). A
 * handle on which xmem_set_ref_count was called stands for one of the claims too (XL_CLAIMS). What
 * is WRITING in memory of a GPU is CUDA, too. PRIVATE: xmem_data_private has been called, and what
 * drops the handle ends its view (payload/view.h). TOOK: the get that made the handle has taken a
 * claim (buffer.c).
 */
enum xl_mode {
	XL_FREE = 0, XL_READING = 1, XL_WRITING = 2, XL_OPEN = 4, XL_FIXED = 8, XL_CLAIMS = 16,
	XL_UPGRADED = 32, XL_CUDA = 64, XL_ORDERED = 128, XL_LEAVING = 256, XL_PRIVATE = 512,
	XL_TOOK = 1024
};

#define XL_ANYBODY	(~0ULL)		/* as an origin: the slot's row knows the publisher */
#define XL_HANDLE_BYTES		128	/* size and alignment of a handle */
#define XL_NAME_SHIFT		23	/* 64 - this are the bits of an address / 128 */
#define XL_NAME_STEP		(1ULL << 41)

struct xmem_buffer {
	_Alignas(XL_HANDLE_BYTES) u64 name;	/* if it is free: the next one; 0: in a child */
	struct xmem_pool *pool;
	u32 slot;
	u32 mode;			/* enum xl_mode, several at once; atomic */
	struct xm_publication what;	/* token 0 while written; see xl_place_contents */
	union {
		struct xmem_buffer *next;	/* while it is free */
		const void *leaves_in;		/* XL_LEAVING: hold/release_on.c; atomic */
	};
	union {				/* while it is written: */
		struct xl_owned_slot *own;	/* where to; */
		struct xl_upgrade *upgrade;	/* XL_UPGRADED: what it will be */
	};
	struct xl_view *view;		/* its private view, or NULL; under pool->share.lock */
	u64 origin;			/* whose ring it was received from; see label.c */
	u32 counting;			/* XL_CLAIMS: when it was counted in (claims.c) */
	bool counted;			/* among pool->share.out; under pool->share.lock */
};

struct xmem_buffer *xl_handle_refill(void);
/* These two return 0, so that they can be the last thing that a function does. */
int xl_handle_give_back(struct xmem_buffer *buffer);
int xl_handle_drop_late(struct xmem_buffer *buffer);
void xl_handle_cloned_late(struct xmem_buffer *buffer);

/*
 * Call @call for each handle that a stream is to drop (XL_LEAVING); others may be dropping them at
 * the same time.
 */
void xl_handles_leaving(void (*call)(struct xmem_buffer *buffer, void *user), void *user);

/* How many handles of this pool are in use? They become `counted`. Under pool->share.lock. */
u64 xl_handles_count(struct xmem_pool *pool);

/* To be called before the first handle is taken. */
void xl_handles_init(void);

/* ---- names ---- */

static inline struct xmem_buffer *xl_handle(const struct xmem_buffer *buffer)
{
	return (struct xmem_buffer *)xm_load(&buffer->name);
}

/* What does a user's handle stand for? NULL: for nothing, and xl_no_buffer says why. */
static inline struct xmem_buffer *xl_buffer(const struct xmem_buffer *handle)
{
	u64 name = (u64)handle;
	struct xmem_buffer *buffer =
		(struct xmem_buffer *)(name << XL_NAME_SHIFT >> (XL_NAME_SHIFT - 7));

	if (unlikely(!name))
		return NULL;
	if (unlikely(xl_peek(&buffer->name) != name))
		return NULL;
	if (!buffer)
		__builtin_unreachable();
	return buffer;
}

/* Note why @handle is none, and count it. Returns -EINVAL (NULL), -EBADF or -ECHILD. */
int xl_no_buffer(const struct xmem_buffer *handle, const char *what) __attribute__((cold));
/* The same for functions that take NULL without a word. */
int xl_stale_buffer(const struct xmem_buffer *handle, const char *what) __attribute__((cold));
/* How many stale handles were used in this process. */
u64 xl_stale_handles(void);

/* ---- the mode ---- */

/*
 * Threads that share a handle may change its mode at once, some of them without a lock, so each
 * changes its own bits only. What is stored before a bit is set is seen by who finds it with
 * acquire order.
 */
static inline void xl_mode_add(struct xmem_buffer *buffer, u32 bits)
{
	__atomic_fetch_or(&buffer->mode, bits, __ATOMIC_RELEASE);
}

/* Returns the mode as it was. */
static inline u32 xl_mode_clear(struct xmem_buffer *buffer, u32 bits)
{
	return __atomic_fetch_and(&buffer->mode, ~bits, __ATOMIC_ACQ_REL);
}

/* ---- contents ---- */

void xl_place_now(struct xmem_buffer *buffer);

/* Call this before anything in buffer->what is looked at but the token. */
static inline void xl_place_contents(struct xmem_buffer *buffer)
{
	if (unlikely(xm_load_acquire(&buffer->mode) & XL_OPEN))
		xl_place_now(buffer);
}

/*
 * How many bytes is it, from where it begins for its holder? That is where the buffer does; but
 * what is written in place begins at its contents, where xmem_data_mut points, and there capacity,
 * copies and what publish is told count from. The length of a slot that is held does not change.
 */
static inline u64 xl_capacity(const struct xmem_buffer *buffer)
{
	u64 bytes = xm_load(&xm_slot_row(&buffer->pool->map, buffer->slot)->length);

	if (likely(!(xm_load(&buffer->mode) & XL_UPGRADED)))
		return bytes;
	return bytes > buffer->what.offset ? bytes - buffer->what.offset : 0;
}

static inline u32 xl_traits(const struct xmem_buffer *buffer)
{
	return xm_load(&xm_slot_row(&buffer->pool->map, buffer->slot)->traits);
}

static inline bool xl_is_on_gpu(const struct xmem_buffer *buffer)
{
	return xl_traits(buffer) & XMEM_TRAIT_CUDA;
}

/* What there is to wait for before one looks at contents that are published: gpu/wait.c. */
void xl_order_note(const struct xmem_buffer *buffer, struct xmem_metadata *metadata);
/*
 * Wait in this thread until contents in memory of a GPU are complete, whatever streams have been
 * told; 0: only look. 0, or -errno, noted, as xmem_wait_contents.
 */
int xl_order_wait_until(struct xmem_buffer *buffer, int64_t timeout_ns);

/* ---- taking and dropping ---- */

/* Take the first free handle of this thread, which is @buffer. */
static inline void xl_handle_take(struct xmem_buffer *buffer, struct xmem_pool *pool)
{
	xl_self.handles = buffer->next;
	xl_self.room++;
	xm_store(&buffer->pool, pool);
}

/*
 * Take a handle for @pool, of which the caller has a share. NULL, noted: no memory. It is not in
 * use before xl_handle_use.
 */
static inline struct xmem_buffer *xl_handle_new(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = xl_self.handles;

	if (unlikely(!buffer)) {
		buffer = xl_handle_refill();
		if (!buffer)
			return NULL;
	}
	xl_handle_take(buffer, pool);
	return buffer;
}

static inline void xl_handle_use(struct xmem_buffer *buffer, u32 mode)
{
	xm_store_release(&buffer->mode, mode);
}

/* Give back one that was not used. Returns 0. */
static inline int xl_handle_unused(struct xmem_buffer *buffer)
{
	if (unlikely(--xl_self.room < 0))
		return xl_handle_give_back(buffer);
	buffer->next = xl_self.handles;
	xl_self.handles = buffer;
	return 0;
}

/* Drop a handle of @pool whose hold has been put. Returns 0. */
static inline int xl_handle_drop(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	xl_bump(&buffer->name, XL_NAME_STEP);
	xm_store_release(&buffer->mode, XL_FREE);
	xl_compiler_barrier();
	if (unlikely(xl_peek(&pool->share.ending) & (XL_ENDING_FENCED | XL_ENDING_CLOSED)))
		return xl_handle_drop_late(buffer);
	return xl_handle_unused(buffer);
}

#endif

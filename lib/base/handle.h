/* SPDX-License-Identifier: MIT */
/*
 * Handles of buffers. The handle that a program has is not the address of the struct but its name.
 * The struct gets another name each time that it is used. So a dropped handle has a name that no
 * longer fits, and the library notices its use. The structs belong to the whole process and are
 * never freed (handle.c), so a stale name can be looked up without harm. A name is
 *
 *   generation << 41 | address / 128
 *
 * Each thread has some free handles of its own, so get and put need no lock. A pool does not know
 * how many of its handles are in use. They are counted once, when the pool is closed:
 *
 *   A thread that drops a handle stores mode = 0, and then loads pool->share.ending. The thread
 *   that closes the pool stores pool->share.ending, calls membarrier, and then counts the handles
 *   in use, all under pool->share.lock. The membarrier is a full barrier in both threads. So a
 *   handle is not counted if the dropping thread did not see share.ending. Counted handles are
 *   marked (`counted`), and the drop of the last of them destroys the pool. A clone stores mode,
 *   and then loads pool->share.ending, for the same reason. Model: tests/model/close.pml.
 */
#ifndef XMEM_HANDLE_H
#define XMEM_HANDLE_H

#include "lib/payload/payload.h"
#include "lib/private.h"

/*
 * The mode of a handle.
 *
 *   FREE      The handle is not in use.
 *   READING   The handle has a reference to published contents.
 *   WRITING   The buffer is to be published.
 *   OPEN      A get by token has not read yet where the contents lie. The metadata say it, in a
 *             cache line that many programs never need: see xl_place_contents.
 *   FIXED     With WRITING: the contents are already there (hold/attach.c).
 *   COUNTED   xmem_set_ref_count was called; the handle has the time that it gave.
 *   UPGRADED  With WRITING: the buffer is held, and written in place (hold/inplace.c).
 *   CUDA      With WRITING: the buffer is in memory of a GPU.
 *   ORDERED   A stream was told to wait for the contents, or to write them before they are
 *             published. So no thread waits by itself.
 *   LEAVING   A stream drops the handle (hold/release_on.c).
 *   PRIVATE   xmem_data_private was called; dropping the handle ends its view (payload/view.h).
 *   TOOK      The get that made the handle has taken a claim (hold/buffer.c).
 */
enum xl_mode {
	XL_FREE = 0, XL_READING = 1, XL_WRITING = 2, XL_OPEN = 4, XL_FIXED = 8, XL_COUNTED = 16,
	XL_UPGRADED = 32, XL_CUDA = 64, XL_ORDERED = 128, XL_LEAVING = 256, XL_PRIVATE = 512,
	XL_TOOK = 1024
};

#define XL_ANYBODY	(~0ULL)		/* as an origin: the slot's row knows the publisher */
#define XL_HANDLE_BYTES		128	/* size and alignment of a handle */
#define XL_NAME_SHIFT		23	/* 64 - this are the bits of an address / 128 */
#define XL_NAME_STEP		(1ULL << 41)

struct xmem_buffer {
	_Alignas(XL_HANDLE_BYTES) u64 name;	/* if it is free: the name for its next use; 0 in
						 * a child */
	struct xmem_pool *pool;
	u32 slot;
	u32 mode;			/* enum xl_mode, several at once; atomic */
	struct xm_publication what;	/* token 0 while written; see xl_place_contents */
	union {
		struct xmem_buffer *next;	/* while it is free */
		const void *leaves_in;		/* XL_LEAVING: hold/release_on.c; atomic */
	};
	union {				/* while it is written: */
		struct xl_owned_slot *own;	/* the slot that is written; */
		struct xl_upgrade *upgrade;	/* XL_UPGRADED: what the slot becomes */
	};
	struct xl_view *view;		/* its private view, or NULL; under mappings.lock */
	u64 origin;			/* whose ring it was received from; see follow/label.c */
	u64 timeout_ns;			/* XL_COUNTED: how long its claims last (hold/claims.c) */
	bool counted;			/* is in pool->share.out; under pool->share.lock */
};

struct xmem_buffer *xl_handle_refill(void);
/* These two return 0, so that a function can end with a call of them. */
int xl_handle_give_back(struct xmem_buffer *buffer);
int xl_handle_drop_late(struct xmem_buffer *buffer);
void xl_handle_cloned_late(struct xmem_buffer *buffer);

/*
 * Call @call for each handle that a stream is to drop (XL_LEAVING). Streams may drop handles at the
 * same time.
 */
void xl_handles_leaving(void (*call)(struct xmem_buffer *buffer, void *user), void *user);

/*
 * Count the handles of this pool that are in use, and mark them as `counted`. Under
 * pool->share.lock.
 */
u64 xl_handles_count(struct xmem_pool *pool);

/* Call this before the first handle is taken. */
void xl_handles_init(void);

/* ---- names ---- */

static inline struct xmem_buffer *xl_handle(const struct xmem_buffer *buffer)
{
	return (struct xmem_buffer *)xm_load(&buffer->name);
}

/* The struct that a program's handle names. NULL: none; xl_no_buffer gives the reason. */
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

/*
 * Fail because @handle names no struct, and count it. @call: the name of the public function.
 * Returns -EINVAL (NULL), -EBADF or -ECHILD.
 */
int xl_no_buffer(const struct xmem_buffer *handle, const char *call) __attribute__((cold));
/* Like xl_no_buffer, but NULL is no error: it returns -EINVAL without a message. */
int xl_stale_buffer(const struct xmem_buffer *handle, const char *call) __attribute__((cold));
/* How many stale handles were used in this process. */
u64 xl_stale_handles(void);

/* ---- the mode ---- */

/*
 * Threads that share a handle may change its mode at once, some of them without a lock, so each
 * changes only its own bits. A thread that finds a bit with acquire order sees everything that was
 * stored before the bit was set.
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

static inline bool xl_must_place(const struct xmem_buffer *buffer)
{
	return unlikely(xm_load_acquire(&buffer->mode) & XL_OPEN);
}

/* Call this before you read anything in buffer->what but the token. */
static inline void xl_place_contents(struct xmem_buffer *buffer)
{
	if (xl_must_place(buffer))
		xl_place_now(buffer);
}

/*
 * The number of bytes from the place where the buffer begins for its holder. Normally this is the
 * beginning of the slot. A buffer that is written in place begins at its contents, where
 * xmem_data_mut points, and capacity, copies and the offset for publish count from there. The
 * length of a held slot does not change.
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

/*
 * Copy into @metadata what a reader must wait for before it reads published contents: gpu/wait.c.
 */
void xl_order_fill(const struct xmem_buffer *buffer, struct xmem_metadata *metadata);
/*
 * Wait in this thread until contents in memory of a GPU are complete, even if streams were told to
 * wait for them. With a timeout of 0, only check. 0, or -errno, noted, as xmem_wait_contents.
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
 * Take a handle for @pool, of which the caller has a share. NULL, noted: no memory. The handle is
 * not in use before xl_handle_use.
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

/* Give back a handle that was not used. Returns 0. */
static inline int xl_handle_unused(struct xmem_buffer *buffer)
{
	if (unlikely(--xl_self.room < 0))
		return xl_handle_give_back(buffer);
	buffer->next = xl_self.handles;
	xl_self.handles = buffer;
	return 0;
}

/* Drop a handle of @pool; its hold has already been put. Returns 0. */
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

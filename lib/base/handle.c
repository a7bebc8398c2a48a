// SPDX-License-Identifier: MIT
/*
 * Allocates handles of buffers, and frees them. Handles lie in blocks, which the process keeps for
 * ever. So it has as many handles as were ever in use at once, and some more for each thread. Free
 * handles are in a thread's magazine, or in a list for all threads (the depot). The fast paths are
 * in handle.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/handle.h"

#define BLOCK_BYTES	(64 << 10)
#define BATCH		32		/* handles that a thread and the depot exchange */
#define MOST		64		/* free handles of one thread */
#define ADDRESS_BITS	48		/* 64 - XL_NAME_SHIFT + 7 */

struct block {
	struct block *next;
	u32 made;			/* handles with a name; the others are still zero */
	struct xmem_buffer handle[];
};
#define BLOCK_HANDLES	((BLOCK_BYTES - sizeof(struct block)) / sizeof(struct xmem_buffer))

_Static_assert(sizeof(struct xmem_buffer) == XL_HANDLE_BYTES, "a name has no room for more");

static struct {
	struct xl_lock lock;		/* guards all fields here; taken after pool->share.lock */
	struct xmem_buffer *spare;
	struct block *blocks;		/* the newest first */
	pthread_key_t key;		/* its destructor empties a thread's magazine */
	enum { KEY_UNKNOWN, KEY_MADE, KEY_REFUSED } key_state;
} depot;

static u64 stale;			/* how many stale handles were used; atomic */

/* ---- the depot; under its lock ---- */

/*
 * In a child, the parent's handles are zero, so the child notices that they are not its own:
 * fork.c. The kernel wipes them (MADV_WIPEONFORK). On an older kernel, the function forked does it.
 */
static bool add_block(void)
{
	struct block *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return false;
	if ((u64)block >> ADDRESS_BITS) {
		munmap(block, BLOCK_BYTES);
		return false;
	}
	madvise(block, BLOCK_BYTES, MADV_WIPEONFORK);
	block->next = depot.blocks;
	depot.blocks = block;
	return true;
}

static struct xmem_buffer *make_one(void)
{
	struct xmem_buffer *buffer;

	if (!depot.blocks || depot.blocks->made == BLOCK_HANDLES)
		if (!add_block())
			return NULL;
	buffer = &depot.blocks->handle[depot.blocks->made];
	xm_store(&buffer->name, (u64)buffer / XL_HANDLE_BYTES);
	xm_store_release(&depot.blocks->made, depot.blocks->made + 1);
	return buffer;
}

static struct xmem_buffer *take_one(void)
{
	struct xmem_buffer *buffer = depot.spare;

	if (!buffer)
		return make_one();
	depot.spare = buffer->next;
	return buffer;
}

/* Move @count handles of this thread to the depot. */
static void move_to_depot(u32 count)
{
	struct xmem_buffer *buffer;

	while (count-- && (buffer = xl_self.handles)) {
		xl_self.handles = buffer->next;
		xl_self.room++;
		buffer->next = depot.spare;
		depot.spare = buffer;
	}
}

/* ---- magazines ---- */

static void forget_magazine(void)
{
	xl_self.handles = NULL;
	xl_self.room = 0;
	xl_self.registered = false;
}

/* Runs when a thread ends. Another destructor of the thread may use handles afterwards. */
static void empty_magazine(void *argument)
{
	xl_lock(&depot.lock);
	move_to_depot(~0u);
	xl_unlock(&depot.lock);
	forget_magazine();
}

/*
 * May this thread have a magazine? Only if the magazine is emptied when the thread ends. Under the
 * depot's lock.
 */
static bool register_thread(void)
{
	if (xl_self.registered)
		return true;
	if (depot.key_state == KEY_UNKNOWN)
		depot.key_state = pthread_key_create(&depot.key, empty_magazine) ? KEY_REFUSED
										  : KEY_MADE;
	if (depot.key_state == KEY_REFUSED || pthread_setspecific(depot.key, &xl_self))
		return false;
	xl_self.registered = true;
	xl_self.room = MOST;
	return true;
}

/* The magazine is empty. Refill it, and return its first handle. */
XL_COLD struct xmem_buffer *xl_handle_refill(void)
{
	struct xmem_buffer *buffer;
	u32 count = 1, i;

	xl_lock(&depot.lock);
	if (register_thread())
		count = BATCH;
	for (i = 0; i < count && (buffer = take_one()); i++) {
		buffer->next = xl_self.handles;
		xl_self.handles = buffer;
		xl_self.room--;
	}
	xl_unlock(&depot.lock);
	if (!xl_self.handles)
		xl_fail_fast(ENOMEM, "no memory for a buffer's handle");
	return xl_self.handles;
}

/* The magazine is full, or the thread may not have one. */
XL_COLD int xl_handle_give_back(struct xmem_buffer *buffer)
{
	xl_lock(&depot.lock);
	xl_self.room = 0;
	if (register_thread()) {
		if (!xl_self.room)
			move_to_depot(BATCH);
		buffer->next = xl_self.handles;
		xl_self.handles = buffer;
		xl_self.room--;
	} else {
		buffer->next = depot.spare;
		depot.spare = buffer;
	}
	xl_unlock(&depot.lock);
	return 0;
}

/* ---- fork: see fork.c ---- */

static void before_fork(void)
{
	xl_lock(&depot.lock);
}

static void after_fork(void)
{
	xl_unlock(&depot.lock);
}

/*
 * The child does not use its parent's blocks, because the names in them must never fit again. It
 * keeps the key.
 */
static void forked(void)
{
	struct block *block, *next;

	for (block = depot.blocks; block; block = next) {
		next = block->next;
		if (block->made)	/* it is not wiped */
			memset(block, 0, BLOCK_BYTES);
	}
	depot.blocks = NULL;
	depot.spare = NULL;
	depot.lock = (struct xl_lock){ 0 };
	xl_forget_locks();		/* the thread that forked had this one */
	forget_magazine();
}

static struct xl_fork_hook hook = {
	.before = before_fork, .after = after_fork, .child = forked, .unnoticed = forked,
};

void xl_handles_init(void)
{
	xl_fork_lock();
	xl_fork_add(&hook);
	xl_fork_unlock();
}

/* ---- handles that a stream drops ---- */

/* The lock need not be held for long: blocks are never freed, and handles stay handles. */
void xl_handles_leaving(void (*call)(struct xmem_buffer *buffer, void *user), void *user)
{
	struct block *block;
	u32 i, made;

	xl_lock(&depot.lock);
	block = depot.blocks;
	xl_unlock(&depot.lock);
	for (; block; block = block->next) {
		made = xm_load(&block->made);
		for (i = 0; i < made; i++)
			if (xm_load_acquire(&block->handle[i].mode) & XL_LEAVING)
				call(&block->handle[i], user);
	}
}

/* ---- a pool's end ---- */

u64 xl_handles_count(struct xmem_pool *pool)
{
	struct block *block;
	u64 count = 0;
	u32 i;

	xl_lock(&depot.lock);
	for (block = depot.blocks; block; block = block->next) {
		for (i = 0; i < block->made; i++) {
			struct xmem_buffer *buffer = &block->handle[i];

			if (!xm_load_acquire(&buffer->mode) || xm_load(&buffer->pool) != pool)
				continue;
			buffer->counted = true;
			count++;
		}
	}
	xl_unlock(&depot.lock);
	return count;
}

/*
 * The pool is being closed, or there is no membarrier. Then each drop needs a barrier of its own.
 */
XL_SLOW int xl_handle_drop_late(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	bool last = false;

	xm_full_barrier();
	if (xm_load(&pool->share.ending) & XL_ENDING_CLOSED) {
		xl_lock(&pool->share.lock);
		if (buffer->counted) {
			buffer->counted = false;
			last = !--pool->share.out;
		}
		xl_unlock(&pool->share.lock);
	}
	if (last)
		pool->share.destroy(pool);
	return xl_handle_unused(buffer);
}

XL_SLOW void xl_handle_cloned_late(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;

	xm_full_barrier();
	if (!(xm_load(&pool->share.ending) & XL_ENDING_CLOSED))
		return;
	xl_lock(&pool->share.lock);
	if (!buffer->counted) {
		buffer->counted = true;
		pool->share.out++;
	}
	xl_unlock(&pool->share.lock);
}

/* ---- rare work ---- */

int xl_stale_buffer(const struct xmem_buffer *handle, const char *call)
{
	XL_CALL_AS(call);
	u64 name = (u64)handle;
	struct xmem_buffer *buffer =
		(struct xmem_buffer *)(name << XL_NAME_SHIFT >> (XL_NAME_SHIFT - 7));

	if (!name)
		return -EINVAL;
	if (!xm_load(&buffer->name))
		return xl_fail_forked();
	__atomic_add_fetch(&stale, 1, __ATOMIC_RELAXED);
	return xl_fail(EBADF,
		       "this handle of a buffer has been dropped already; use it no more after "
		       "xmem_release, xmem_publish, xmem_release_on or xmem_forget");
}

int xl_no_buffer(const struct xmem_buffer *handle, const char *call)
{
	XL_CALL_AS(call);

	return handle ? xl_stale_buffer(handle, call) : xl_fail_fast(EINVAL, "no buffer");
}

u64 xl_stale_handles(void)
{
	return __atomic_load_n(&stale, __ATOMIC_RELAXED);
}

/*
 * Read offset and length from the metadata, once, because the owner can write them. Check their
 * bounds.
 */
XL_COLD void xl_place_now(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	const struct xmem_metadata *metadata = xm_metadata(&pool->map, buffer->slot);
	u64 bytes = xm_slot_row(&pool->map, buffer->slot)->length, offset, length;

	xl_lock(&pool->share.lock);		/* another thread may do this at the same time */
	if (xm_load(&buffer->mode) & XL_OPEN) {
		offset = xm_load(&metadata->offset);
		length = xm_load(&metadata->size);
		offset = offset <= bytes ? offset : 0;
		length = length <= bytes - offset ? length : bytes - offset;
		buffer->what.sequence = buffer->what.timestamp_ns = 0;
		buffer->origin = XL_ANYBODY;
		buffer->what.offset = offset;
		buffer->what.length = length;
		xl_mode_clear(buffer, XL_OPEN);
	}
	xl_unlock(&pool->share.lock);
}

void xl_pool_unshare(struct xmem_pool *pool)
{
	bool last = false;

	xl_lock(&pool->share.lock);
	if (!--pool->share.out) {
		xm_store(&pool->share.ending, pool->share.ending | XL_ENDING_CLOSED);
		xl_membarrier();
		pool->share.out = xl_handles_count(pool);
		last = !pool->share.out;
	}
	xl_unlock(&pool->share.lock);
	if (last)
		pool->share.destroy(pool);
}

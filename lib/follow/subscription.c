// SPDX-License-Identifier: MIT
/*
 * The memory of subscriptions, counting the threads inside one, and what a program can ask of one.
 * subscribe.c begins subscriptions, and unsubscribe.c drops them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/structs.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/host/futex.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

#define BLOCK	16		/* subscriptions in one block, which is never freed */

struct block {
	struct block *next;
	struct xmem_subscription subscription[BLOCK];
};

static const u64 no_joins;	/* `joins` of a subscription to one ring */

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct block *blocks;
	struct xmem_subscription *unused;
	u64 handles;		/* the number in the last handle */
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

/* ---- memory ---- */

/*
 * Reset the memory in a child. Another thread may have had the lock at the fork. The kernel wipes
 * the parent's subscriptions; if it is too old for that, this function does. base/handle.c says
 * more.
 */
static void after_fork_child(void)
{
	struct block *block, *next;

	for (block = memory.blocks; block; block = next) {
		next = block->next;
		memset(block, 0, sizeof(*block));
	}
	pthread_mutex_init(&memory.lock, NULL);
	memory.blocks = NULL;
	memory.unused = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_child);
}

static bool refill(void)
{
	struct block *block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	if (block == MAP_FAILED)
		return false;
	if ((u64)block / XL_SUBSCRIPTION_ALIGN >> XL_ADDRESS_BITS) {
		munmap(block, sizeof(*block));
		return false;
	}
	madvise(block, sizeof(*block), MADV_WIPEONFORK);
	block->next = memory.blocks;
	memory.blocks = block;
	for (i = 0; i < BLOCK; i++) {
		block->subscription[i].next = memory.unused;
		memory.unused = &block->subscription[i];
	}
	return true;
}

/* A new handle: a number above the address. The number is neither 0 nor the previous one. */
static u64 new_handle(const struct xmem_subscription *subscription)
{
	if (!(++memory.handles << XL_ADDRESS_BITS))
		memory.handles++;
	return memory.handles << XL_ADDRESS_BITS | (u64)subscription / XL_SUBSCRIPTION_ALIGN;
}

struct xmem_subscription *xl_subscription_new(struct xmem_pool *pool)
{
	struct xmem_subscription *one = NULL;
	u64 handle = 0;

	pthread_once(&memory.once, watch_forks);
	pthread_mutex_lock(&memory.lock);
	if (memory.unused || refill()) {
		one = memory.unused;
		memory.unused = one->next;
		handle = new_handle(one);
	}
	pthread_mutex_unlock(&memory.lock);
	if (!one) {
		xl_fail_fast(ENOMEM, "no memory for a subscription");
		return NULL;
	}
	xl_lock(&one->lock);
	one->handle = handle;
	xm_store(&one->process, pool->process);
	one->pool = pool;
	one->ring = NULL;
	one->rings = one->changes = one->looks = 0;
	one->origin = 0;
	one->pasts = one->history = one->depth = 0;
	one->joint = one->waits = one->old = one->ended = false;
	one->put_off = one->unmappable = one->unmapped_shared = false;
	one->unmapped = 0;
	one->dropped = XL_NOT_DROPPED;
	one->joins = &no_joins;
	one->joins_seen = no_joins;
	one->fast_joins = XL_LOOK_AGAIN;
	one->lost = 0;
	one->poll = NULL;
	one->next = NULL;
	xl_unlock(&one->lock);
	return one;
}

void xl_subscription_free(struct xmem_subscription *subscription)
{
	pthread_mutex_lock(&memory.lock);
	subscription->next = memory.unused;
	memory.unused = subscription;
	pthread_mutex_unlock(&memory.lock);
}

/* ---- threads inside ---- */

void xl_subscription_leave(struct xmem_subscription *subscription)
{
	xm_store(&subscription->inside, subscription->inside + 1);
	xl_unlock(&subscription->lock);
}

int xl_subscription_return(struct xmem_subscription *subscription)
{
	xl_lock(&subscription->lock);
	xm_store(&subscription->inside, subscription->inside - 1);
	if (likely(subscription->handle))
		return 0;
	if (!subscription->inside)
		xm_futex_wake_all(&subscription->inside);
	return -ECANCELED;
}

/* ---- what a subscription can be asked ---- */

struct xmem_subscription *xl_subscription_lock(struct xmem_subscription *handle)
{
	struct xmem_subscription *subscription = xl_subscription(handle);

	if (!subscription) {
		xl_fail_fast(EINVAL, "no subscription");
		return NULL;
	}
	if (!xl_is_ours(subscription)) {
		xl_fail_forked();
		return NULL;
	}
	xl_lock(&subscription->lock);
	if (subscription->handle == (u64)handle)
		return subscription;
	xl_unlock(&subscription->lock);
	xl_fail_fast(EBADF, "this subscription has been dropped");
	return NULL;
}

static void add_rings(const struct xmem_subscription *subscription,
		      struct xmem_subscription_info *info)
{
	const struct xmem_pool *pool = subscription->pool;
	const struct xl_ring *ring = subscription->ring;
	u64 behind;
	u32 i;

	for (i = 0; i < subscription->rings; i++, ring = ring->next) {
		info->lost += ring->follow.lost;
		behind = xl_behind(&pool->map, pool->me, ring->follow.publisher);
		/*
		 * Checked after xl_behind, because the place may have become the ring of another
		 * client.
		 */
		if (xm_followed_lives_on(&pool->map, &ring->follow))
			info->behind += behind;
	}
}

XMEM_API int xmem_subscription_stat(struct xmem_subscription *handle,
				    struct xmem_subscription_info *ret_info)
{
	XL_CALL;
	struct xmem_subscription_info info = { .size = sizeof(info), .publisher = XMEM_NOBODY };
	struct xmem_subscription *subscription;
	int err = xl_answer_check("xmem_subscription_info", ret_info);

	if (err)
		return err;
	subscription = xl_subscription_lock(handle);
	if (!subscription)
		return xl_last_error();
	if (subscription->origin)
		info.publisher = xl_origin_client(subscription->origin);
	info.follows = subscription->rings;
	info.lost = subscription->lost;
	add_rings(subscription, &info);
	xl_unlock(&subscription->lock);
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

void xl_receive_leave_fast_path(struct xmem_pool *pool)
{
	struct xmem_subscription *one;

	xl_lock(&pool->follows.list);
	for (one = pool->follows.subscriptions; one; one = one->next) {
		xl_lock(&one->lock);
		one->fast_joins = XL_LOOK_AGAIN;
		xl_unlock(&one->lock);
	}
	xl_unlock(&pool->follows.list);
}

// SPDX-License-Identifier: MIT
/*
 * xmem_acquire and xmem_acquire_cuda: their fast paths, and waiting for a slot. The search for a
 * slot is in find.c, and the words of the error messages are in holders.c.
 */
#include <string.h>

#include "lib/base/handle.h"
#include "lib/cuda/device.h"
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/host/died.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/find.h"
#include "lib/own/holders.h"
#include "lib/own/limbo.h"
#include "lib/own/owned.h"

#define LONG_LOOK	64	/* in slots: with fewer slots, each acquire looks at all of them
				 * again */

static XL_COLD int wait_failed(int err)
{
	if (err == -EINTR)
		return xl_fail_fast(EINTR, "wait for a free buffer: a signal handler ran");
	if (err == -ECANCELED)
		return xl_fail_fast(ECANCELED, "wait for a free buffer: xmem_cancel or "
					       "xmem_pool_close has ended the wait");
	if (err == -ENOTCONN)
		return xl_fail_fast(ENOTCONN, "wait for a free buffer: the host has gone, or "
					       "has ended this client");
	return xl_fail(-err, "wait for a free buffer: %s", strerror(-err));
}

/*
 * Arm the waiters word and look again. If there is still nothing, record that for later acquires,
 * and for hosts (core/poll.h).
 */
static int arm_and_look(struct xmem_pool *pool, const struct xl_want *want,
			struct xl_armed *ret_armed, struct xl_size **ret)
{
	struct xl_owned *owned = &pool->owned;
	struct xmem_ring *ring = owned->words.ring;
	bool due = xl_record_time(pool);
	int err;

	if (xl_still_none(pool, want) && !due) {
		*ret_armed = (struct xl_armed){ .value = xm_load(&ring->vain) };
		return -EAGAIN;
	}
	err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, ret_armed);
	if (err)
		return wait_failed(err);
	/*
	 * A thread that ends waits wakes this word too, so no count of kicks is needed; a
	 * remembered value would have an old count.
	 */
	ret_armed->kicks = 0;
	err = xl_find_slot(pool, want, ret);
	if (xl_is_in_vain(want, err)) {
		xl_record_vain(owned, ret_armed->value);
		owned->none_bytes = want->bytes;
		owned->none_chain = err == -EAGAIN ? want->chain : NULL;
	}
	return err;
}

/*
 * Wait for a slot: arm, look again, sleep (I5). The wait for slow subscribers ends with the
 * writer's bound. Then they are demoted, and this function looks once more.
 */
static int wait_for_slot(struct xmem_pool *pool, const struct xl_want *want, u32 cancels,
			 struct xl_size **ret)
{
	struct xl_owned *owned = &pool->owned;
	u64 deadline = want->answer_by, looked, bound;
	struct xl_armed armed;
	int err;

	for (;;) {
		looked = xl_now_ns();
		err = arm_and_look(pool, want, &armed, ret);
		if (err != -EAGAIN && err != -EINPROGRESS)
			return err;
		if (xl_wait_cancelled(&pool->calls, cancels))
			return wait_failed(-ECANCELED);
		bound = xl_retry_at(pool);
		if (bound <= looked)	/* the look did not help; a wake-up comes */
			bound = ~0ULL;
		if (err == -EINPROGRESS)
			bound = xl_sleep_until(pool, bound);
		xl_limbo_record(pool);
		xl_unlock(&owned->lock);
		xl_limbo_notify(pool);
		err = xl_waiters_wait(pool, XMEM_WAIT_SLOTS, pool->me, armed,
				      bound < deadline ? bound : deadline);
		xl_lock(&owned->lock);
		if (err == -ETIMEDOUT && bound >= deadline)
			return xl_fail_no_buffer(pool, want->chain, want->bytes, ETIMEDOUT);
		if (err && err != -ETIMEDOUT)
			return wait_failed(err);
		if (err)	/* the bound has passed: look again */
			xl_owned_changed(owned);
	}
}

static int check_writer(struct xmem_pool *pool, int64_t timeout_ns)
{
	XL_USE(pool);

	if (timeout_ns < 0 && pool)
		return xl_fail_fast(EINVAL, "a negative timeout");
	return xl_check_writer(pool, timeout_ns);
}

/* This client may not acquire, or its role is not checked yet. */
static XL_COLD struct xmem_buffer *acquire_first(struct xmem_pool *pool, size_t bytes,
						 int64_t timeout_ns)
{
	XL_CALL_AS("acquire");

	return check_writer(pool, timeout_ns) ? NULL : xmem_acquire(pool, bytes, timeout_ns);
}

static XL_COLD struct xmem_buffer *acquire_ended(struct xmem_pool *pool)
{
	XL_CALL_AS("acquire");
	XL_USE(pool);

	if (!xl_is_open(pool))
		xl_fail_not_alive(pool);
	else if (xl_host_died(pool))
		xl_fail_died(pool);
	else
		wait_failed(-ECANCELED);
	return NULL;
}

static u64 largest(const struct xl_chain *chain)
{
	const struct xl_size *size;
	u64 bytes = 0;

	for (size = chain->sizes; size; size = size->larger)
		bytes = size->slots ? size->bytes : bytes;
	return bytes;
}

/* Record and return -ENOSPC. @most: bytes of the largest buffer of this writer. */
static XL_COLD int no_such_size(const struct xmem_pool *pool, const struct xl_want *want, u64 most)
{
	bool cpu = want->chain == &pool->owned.cpu;
	char name[XL_NAME_BYTES];

	if (!most)
		return xl_fail(ENOSPC, "%s: this writer has no buffers%s; %s",
			       xl_pool_name(pool, name, sizeof(name)),
			       cpu ? "" : " on that GPU",
			       want->chain->demand.on ? "give the number of bytes" :
			       cpu ? "preallocate some" :
			       "make some by xmem_preallocate with XMEM_MEMORY_CUDA");
	return xl_fail(ENOSPC, "%s: no buffer of %llu bytes%s, the largest has %llu; preallocate "
		       "larger ones", xl_pool_name(pool, name, sizeof(name)),
		       (unsigned long long)want->bytes, cpu ? "" : " on that GPU",
		       (unsigned long long)most);
}

/* Does this writer have a buffer of that size, used or not? Returns 0, or -ENOSPC, noted. */
static int check_size(const struct xmem_pool *pool, const struct xl_want *want)
{
	u64 most = largest(want->chain);

	return likely(most && want->bytes <= most) ? 0 : no_such_size(pool, want, most);
}

static XL_COLD int host_is_silent(void)
{
	return xl_fail_fast(EAGAIN, "no buffer is available without the host, which does "
				    "not answer; is it stopped?");
}

/* The first look failed with @err: wait, or fail with the reason. Under owned.lock. */
static int no_slot_yet(struct xmem_pool *pool, const struct xl_want *want, int err, u32 cancels,
		       struct xl_size **ret)
{
	struct xl_armed armed;

	if (want->waits && (err == -EAGAIN || err == -EINPROGRESS))
		return wait_for_slot(pool, want, cancels, ret);
	/*
	 * A program that polls is told when something has changed, and a long look is repeated only
	 * then. Knowing that costs one wake-up.
	 */
	if (xm_load(&pool->polls.pool) || (err == -EAGAIN && pool->owned.slots > LONG_LOOK))
		err = arm_and_look(pool, want, &armed, ret);
	if (err == -EINPROGRESS)
		return host_is_silent();
	if (err != -EAGAIN)
		return err;
	xl_limbo_record(pool);
	return xl_fail_no_buffer(pool, want->chain, want->bytes, EAGAIN);
}

/* No slot is READY, or the ring may have no room. Under owned.lock. */
static XL_SLOW int acquire_slow(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes,
				int64_t timeout_ns, u32 cancels, struct xl_size **ret)
{
	struct xl_want want = {
		.chain = chain, .bytes = bytes,
		.answer_by = timeout_ns ? xl_deadline(timeout_ns) : xl_ask_patiently(0),
		.waits = timeout_ns,
	};
	int err = xl_wants_demand(&want) ? 0 : check_size(pool, &want);

	if (err)
		return err;
	err = xl_find_slot(pool, &want, ret);
	if ((err == -ETIMEDOUT || err == -EINPROGRESS) && !timeout_ns)
		return host_is_silent();
	if (err != -EINPROGRESS && !xl_is_in_vain(&want, err))
		return err;
	return no_slot_yet(pool, &want, err, cancels, ret);
}

/* Take the next READY slot of @size. */
static XL_INLINE struct xl_owned_slot *take_ready(struct xl_owned *owned, struct xl_size *size)
{
	struct xl_owned_slot *one = xl_ready(size);

	xm_store(&one->own.word->position, XMEM_POSITION_IN_HAND);
	size->ready++;
	owned->promised++;
	return one;
}

/* Let @buffer be the handle of this slot. */
static XL_INLINE void hand_out(struct xl_owned_slot *one, u64 bytes, u32 mode,
			       struct xmem_buffer *buffer)
{
	buffer->slot = one->own.slot;
	buffer->own = one;
	buffer->what = (struct xm_publication){
		.length = likely(bytes) ? bytes : one->size->bytes,
	};
	xl_handle_use(buffer, mode);
}

/*
 * Can the next slot of @size be handed out as it is? All other slots need a look, or the host's
 * help. @end: room_end or fast_end.
 */
static XL_INLINE bool is_fast(const struct xl_owned *owned, const struct xl_size *size, u64 end)
{
	return xl_has_ready(size) && !xl_is_spent(xl_ready(size)) && likely(owned->promised < end);
}

/*
 * Find a slot, at once or after waiting. The caller has owned->lock, and this function leaves it.
 * The caller is counted (base/calls.h), so the pool stays until this function returns.
 */
static XL_INLINE struct xmem_buffer *acquire_counted(struct xmem_pool *pool,
						     struct xl_chain *chain, u64 bytes,
						     int64_t timeout_ns)
{
	struct xmem_buffer *buffer = xl_handle_new(pool);
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size = xl_size_in(chain, bytes);
	int err = buffer ? 0 : -ENOMEM;
	bool slow = buffer && !is_fast(owned, size, owned->room_end);

	owned->asked = chain;
	if (slow)
		err = acquire_slow(pool, chain, bytes, timeout_ns,
				   xl_wait_cancels(&pool->calls), &size);
	if (likely(!err))
		hand_out(take_ready(owned, size), bytes,
			 chain == &owned->cpu ? XL_WRITING : XL_WRITING | XL_CUDA, buffer);
	if (!err && (owned->refused || xl_bound_stands(owned) || xl_is_vain(owned)))
		xl_record_success(pool, size);
	xl_unlock(&owned->lock);
	if (unlikely(err))
		xl_poll_update(pool, POLLOUT);
	xl_cache_expire(pool);
	if (buffer && err)
		xl_handle_unused(buffer);
	if (slow) {
		if (unlikely(owned->on_demand))
			xl_catch_up(pool);
		xl_attached_sweep(pool);
	}
	if (unlikely(err)) {
		xl_fail_as("acquire");
		xl_limbo_notify(pool);
	}
	return err ? NULL : xl_handle(buffer);
}

/* Is a handle at hand, and is there nothing to do after owned->lock is left? */
static bool is_fast_under_mutex(const struct xmem_pool *pool, const struct xl_size *size)
{
	const struct xl_owned *owned = &pool->owned;

	return xl_self.handles && is_fast(owned, size, owned->room_end) && !owned->refused &&
	       !xl_bound_stands(owned) && owned->asked == size->chain && !owned->on_demand;
}

/*
 * The rare cases. The caller has owned->lock, and this function leaves it. A thread that closes the
 * pool waits for that lock. It waits for the steps after the lock only if this call is counted.
 */
static XL_SLOW struct xmem_buffer *acquire_locked(struct xmem_pool *pool, u64 bytes,
						  int64_t timeout_ns)
{
	struct xl_owned *owned = &pool->owned;
	struct xmem_buffer *buffer = NULL;
	struct xl_size *size;

	if (unlikely(!xl_is_open(pool) || owned->closed || xl_host_died(pool))) {
		xl_unlock(&owned->lock);
		return acquire_ended(pool);
	}
	size = xl_size_for(owned, bytes);
	if (is_fast_under_mutex(pool, size)) {
		buffer = xl_handle_new(pool);
		hand_out(take_ready(owned, size), bytes, XL_WRITING, buffer);
		xl_unlock(&owned->lock);
		return xl_handle(buffer);
	}
	xl_wait_begin(&pool->calls);
	if (likely(xl_is_open(pool))) {
		buffer = acquire_counted(pool, &owned->cpu, bytes, timeout_ns);
	} else {
		xl_unlock(&owned->lock);
		acquire_ended(pool);
	}
	xl_wait_end(&pool->calls);
	return buffer;
}

static XL_SLOW struct xmem_buffer *acquire_with_mutex(struct xmem_pool *pool, u64 bytes,
						      int64_t timeout_ns)
{
	xl_lock(&pool->owned.lock);
	return acquire_locked(pool, bytes, timeout_ns);
}

struct xmem_buffer *xl_acquire_in(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes,
				  int64_t timeout_ns)
{
	struct xl_owned *owned = &pool->owned;

	if (xl_host_died(pool) || (timeout_ns && xl_cancelled(&pool->calls)))
		return acquire_ended(pool);
	xl_lock(&owned->lock);
	if (!owned->closed)
		return acquire_counted(pool, chain, bytes, timeout_ns);
	xl_unlock(&owned->lock);
	return acquire_ended(pool);
}

/*
 * Hand out the next slot of @size, for which is_fast() is true, and leave owned->lock. @buffer is a
 * free handle of this thread.
 */
static XL_INLINE struct xmem_buffer *take_fast(struct xmem_pool *pool, struct xl_size *size,
						  u64 bytes, u32 mode, struct xmem_buffer *buffer)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_owned_slot *one = take_ready(owned, size);

	xl_handle_take(buffer, pool);
	hand_out(one, bytes, mode, buffer);
	if (unlikely(!xl_unlock_biased(&owned->lock, xl_self.thread)))
		return xl_unlock_revoked(&owned->lock, xl_handle(buffer));
	return xl_handle(buffer);
}

/*
 * The common case is here. All other cases are tail calls, so that no registers have to be saved.
 * Another thread may be closing the pool: base/calls.h says what may be read before owned->lock is
 * taken.
 */
XMEM_API struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns)
{
	struct xmem_buffer *buffer;
	struct xl_owned *owned;
	struct xl_size *size;

	if (unlikely(!pool || !xl_peek(&pool->live->writes)))
		return acquire_first(pool, bytes, timeout_ns);
	if (timeout_ns && unlikely(timeout_ns < 0))
		return acquire_first(pool, bytes, timeout_ns);
	if (timeout_ns && xl_cancelled(&pool->calls))
		return acquire_ended(pool);
	owned = &pool->owned;
	if (unlikely(!xl_lock_biased(&owned->lock, xl_self.thread)))
		return acquire_with_mutex(pool, bytes, timeout_ns);
	size = xl_size_for(owned, bytes);
	buffer = xl_self.handles;
	if (unlikely(!buffer || !is_fast(owned, size, owned->fast_end) || xl_host_died(pool)))
		return acquire_locked(pool, bytes, timeout_ns);
	return take_fast(pool, size, bytes, XL_WRITING, buffer);
}

/* The caller has owned->lock, and this function leaves it. */
static XL_SLOW struct xmem_buffer *acquire_cuda_locked(struct xmem_pool *pool, u64 bytes,
						       int device, int64_t timeout_ns)
{
	xl_unlock(&pool->owned.lock);
	return xl_acquire_cuda_slow(pool, bytes, device, timeout_ns);
}

/*
 * The fast path of xmem_acquire, for the GPU that the last acquire was for.
 */
XMEM_API struct xmem_buffer *xmem_acquire_cuda(struct xmem_pool *pool, size_t bytes, int device,
					       int64_t timeout_ns)
{
	struct xmem_buffer *buffer;
	struct xl_owned *owned;
	struct xl_size *size;

	if (unlikely(!pool || !xl_peek(&pool->live->writes) || device < 0 || timeout_ns < 0))
		return xl_acquire_cuda_slow(pool, bytes, device, timeout_ns);
	if (timeout_ns && xl_cancelled(&pool->calls))
		return xl_acquire_cuda_slow(pool, bytes, device, timeout_ns);
	owned = &pool->owned;
	if (unlikely(!xl_lock_biased(&owned->lock, xl_self.thread)))
		return xl_acquire_cuda_slow(pool, bytes, device, timeout_ns);
	buffer = xl_self.handles;
	if (unlikely(!buffer || owned->asked->ordinal != device))
		return acquire_cuda_locked(pool, bytes, device, timeout_ns);
	size = xl_size_in(owned->asked, bytes);
	if (unlikely(!is_fast(owned, size, owned->fast_end) || xl_host_died(pool)))
		return acquire_cuda_locked(pool, bytes, device, timeout_ns);
	return take_fast(pool, size, bytes, XL_WRITING | XL_CUDA, buffer);
}

static struct xl_chain *no_buffers(const struct xl_gpu *gpu)
{
	xl_fail(ENOSPC, "this writer has no buffers on GPU %d; make some by "
		"xmem_preallocate with XMEM_MEMORY_CUDA", gpu->ordinal);
	return NULL;
}

/* The sizes of this client's buffers on @device. NULL: an error, noted. */
static struct xl_chain *chain_of(struct xmem_pool *pool, int device)
{
	struct xl_gpu *gpu = xl_gpu(device);
	struct xl_chain *chain;

	if (!gpu)
		return NULL;
	chain = xl_owned_find_chain(pool, gpu);
	if (chain)
		return chain;
	return pool->owned.cpu.demand.option == XMEM_NO_DEMAND ? no_buffers(gpu) :
								 xl_owned_chain(pool, gpu);
}

struct xmem_buffer *xl_acquire_cuda_slow(struct xmem_pool *pool, u64 bytes, int device,
					 int64_t timeout_ns)
{
	XL_CALL_AS("acquire_cuda");
	struct xl_chain *chain;
	XL_USE(pool);

	if (xl_check_writer(pool, timeout_ns))
		return NULL;
	if (timeout_ns < 0) {
		xl_fail_fast(EINVAL, "a negative timeout");
		return NULL;
	}
	chain = chain_of(pool, device);
	return chain ? xl_acquire_in(pool, chain, bytes, timeout_ns) : NULL;
}

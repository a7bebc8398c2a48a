// SPDX-License-Identifier: MIT
/*
 * Waiting in a thread until streams of this process or of others have written contents. A GPU
 * cannot wake a thread, so the thread checks the word again and again, and sleeps in between,
 * longer each time.
 */
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "lib/base/uncancelled.h"
#include "lib/follow/wait.h"
#include "lib/gpu/data.h"
#include "lib/gpu/goal.h"
#include "lib/host/died.h"
#include "lib/host/request.h"

#define SPINS		2000	/* checks of a word before the first nap */
#define FIRST_NAP_NS	20000
#define LAST_NAP_NS	1000000

/*
 * The limits of a wait. A wait for a buffer need not be counted, because the handle of the buffer
 * keeps its pool, even if the pool is closed. Only waits that are under way when the pool is closed
 * end with it.
 */
struct limit {
	u64 deadline_ns;
	u32 cancels;		/* pool->calls.cancels when the wait began */
};

static struct limit limit_of(const struct xmem_pool *pool, u64 deadline_ns)
{
	return (struct limit){ deadline_ns, xm_load(&pool->calls.cancels) };
}

/* 0, or -errno, noted. */
static int is_ended(const struct xmem_pool *pool, const struct limit *limit)
{
	if (xl_wait_cancelled(&pool->calls, limit->cancels))
		return xl_fail_fast(ECANCELED, "xmem_cancel or xmem_pool_close was called");
	if (limit->deadline_ns != ~0ULL && xl_now_ns() >= limit->deadline_ns)
		return xl_fail_fast(ETIMEDOUT, "the GPU has not finished the contents");
	return 0;
}

/*
 * Block signals, except during naps. A signal that came during a check would not end the next nap.
 */
static void block_signals(sigset_t *ret_before)
{
	/* Signals that the thread itself causes are not blocked. */
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
	sigset_t most;
	u32 i;

	sigfillset(&most);
	for (i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&most, own[i]);
	pthread_sigmask(SIG_BLOCK, &most, ret_before);
}

static void restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/*
 * A hint for the CPU between two checks, for its other hardware thread. Arm's own hint does
 * nothing.
 */
static inline void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/*
 * Take a nap, and make the next one longer by an eighth. So a wait ends at most about an eighth too
 * late, and a long wait uses little of a CPU. 0, or -EINTR, noted.
 */
static int take_nap(struct timespec *nap, const sigset_t *signals)
{
	if (ppoll(NULL, 0, nap, signals) < 0 && errno == EINTR)
		return xl_fail_fast(EINTR, "a signal came");
	nap->tv_nsec += nap->tv_nsec / 8;
	if (nap->tv_nsec > LAST_NAP_NS)
		nap->tv_nsec = LAST_NAP_NS;
	return 0;
}

int xl_goal_wait(const struct xmem_buffer *buffer, const struct xl_goal *goal, u64 deadline_ns)
{
	const struct limit limit = limit_of(buffer->pool, deadline_ns);
	struct timespec nap = { .tv_nsec = FIRST_NAP_NS };
	__attribute__((cleanup(restore_signals))) sigset_t signals;
	int err = -EAGAIN, over;
	u32 spins = SPINS;
	XL_UNCANCELLED;

	block_signals(&signals);
	while (err == -EAGAIN && spins--) {
		relax();
		err = xl_goal_check(goal);
	}
	while (err == -EAGAIN) {
		over = xl_goal_is_vain(buffer, goal);
		if (!over)
			over = is_ended(buffer->pool, &limit);
		if (!over)
			over = take_nap(&nap, &signals);
		if (over)
			return over;
		err = xl_goal_check(goal);
	}
	return err;
}

int xl_order_wait(struct xmem_buffer *buffer)
{
	struct xl_goal goal;
	int err;

	if (!xl_goal_find(buffer, &goal))
		return 0;
	err = xl_goal_wait(buffer, &goal, ~0ULL);
	if (!err)
		xl_mark_ordered(buffer);
	return err;
}

int xl_order_wait_here(struct xmem_buffer *buffer)
{
	struct xl_goal goal;

	return xl_goal_find(buffer, &goal) ? xl_goal_wait(buffer, &goal, ~0ULL) : 0;
}

/* 0, or -errno, noted: -EAGAIN, or the reason why the goal is never reached. */
static int check_once(const struct xmem_buffer *buffer, const struct xl_goal *goal)
{
	int err = xl_goal_check(goal);

	if (err != -EAGAIN)
		return err;
	err = xl_goal_is_vain(buffer, goal);
	if (!err)
		err = xl_goal_check(goal);	/* it may have been reached meanwhile */
	return err == -EAGAIN ? xl_fail_fast(EAGAIN, "the GPU has not finished the contents")
			      : err;
}

int xl_order_wait_until(struct xmem_buffer *buffer, int64_t timeout_ns)
{
	struct xl_goal goal;

	if (!xl_is_on_gpu(buffer) || !xl_goal_find(buffer, &goal))
		return 0;
	return timeout_ns ? xl_goal_wait(buffer, &goal, xl_deadline(timeout_ns)) :
			    check_once(buffer, &goal);
}

XMEM_API int xmem_wait_contents(struct xmem_buffer *handle, int64_t timeout_ns)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "wait_contents");
	if (!xl_is_on_gpu(buffer))
		return xl_fail_fast(EMEDIUMTYPE, "the buffer is in memory of the "
						 "CPU, whose contents are always complete");
	if (timeout_ns < 0)
		return xl_fail_fast(EINVAL, "the timeout is negative");
	if (timeout_ns && xl_cancelled(&buffer->pool->calls))
		return xl_fail_fast(ECANCELED, "xmem_cancel was called");
	return xl_order_wait_until(buffer, timeout_ns);
}

/*
 * A stream of this process waits for another process's word. Returns whether that process is alive;
 * if it is not, this ends the word.
 */
static bool is_awaited(struct xmem_pool *pool, u32 slot, u64 awaited)
{
	const struct xmem_buffer buffer = { .pool = pool, .slot = slot };
	struct xl_goal goal;

	if (!awaited || !xl_goal_find(&buffer, &goal))
		return false;
	/*
	 * There may be later contents. Or the slot had another owner, all of whose words have
	 * ended.
	 */
	if (goal.value > awaited)
		goal.value = awaited;
	return xl_goal_check(&goal) == -EAGAIN && xl_goal_writer(pool, &goal) &&
	       !xl_goal_end_word(pool, &goal);
}

/* Without the host, only this process ends the words for which its streams wait in vain. */
static void end_words(struct xmem_pool *pool)
{
	struct xl_orders *orders = xl_orders_if(pool);
	struct xl_error error;
	u32 s;

	if (!orders || !xl_host_died(pool))
		return;
	xl_error_save(&error);
	for (s = 0; s < pool->map.slots; s++)
		is_awaited(pool, s, xm_load(&orders->slot[s].awaited));
	xl_error_restore(&error);
}

/* 0; CUDA_ERROR_NOT_READY; or the error of a stream that has failed. */
static CUresult query(struct xl_gpu *gpu, CUstream stream)
{
	CUstreamCaptureMode mode = xl_capture_relax();
	CUresult result;

	XL_ON_STREAM(gpu, stream, result, xl_cuda()->stream_query(stream));
	xl_capture_restore(mode);
	return result;
}

int xl_order_finish(struct xmem_pool *pool, struct xl_gpu *gpu, CUstream stream)
{
	const struct limit limit = limit_of(pool, ~0ULL);
	struct timespec nap = { .tv_nsec = FIRST_NAP_NS };
	__attribute__((cleanup(restore_signals))) sigset_t signals;
	CUresult result;
	int err = 0;
	XL_UNCANCELLED;

	block_signals(&signals);
	for (;;) {
		result = query(gpu, stream);
		if (result != CUDA_ERROR_NOT_READY)
			return result ? xl_cuda_fail(result, "the stream has failed") : 0;
		err = is_ended(pool, &limit);
		if (!err)
			err = take_nap(&nap, &signals);
		if (err)
			return err;
		end_words(pool);
	}
}

/* ---- the end ---- */

/* Wait until own streams have written this slot's values, unless they never will. */
static void wait_until_idle(struct xmem_pool *pool, u32 slot)
{
	const struct xmem_buffer buffer = { .pool = pool, .slot = slot };
	const struct xl_goal goal = { .mine = true };
	struct timespec nap = { .tv_nsec = FIRST_NAP_NS };

	while (!xl_order_is_idle(pool, slot) && !xl_goal_still_works(&buffer, &goal))
		nanosleep(&nap, NULL);
}

static void await_other(struct xmem_pool *pool, u32 slot, const u64 *awaited)
{
	struct timespec nap = { .tv_nsec = LAST_NAP_NS };
	XL_UNCANCELLED;

	while (xl_host_died(pool) && is_awaited(pool, slot, xm_load(awaited))) {
		XM_STEP(XM_STEP_CUDA_LOOKED);
		nanosleep(&nap, NULL);
	}
}

/*
 * Wait for streams of this process that wait for words of other processes. When xmemd has ended,
 * only calls with this pool end such a word after its writer has exited. The streams must finish,
 * because they may keep the last handle, or the driver may wait for them. With a host, this does
 * nothing.
 */
static void await_others(struct xmem_pool *pool)
{
	struct xl_orders *orders = xl_orders_if(pool);
	struct xl_error error;
	u32 s;

	if (!orders || !xl_host_died(pool))
		return;
	xl_error_save(&error);
	for (s = 0; s < pool->map.slots; s++)
		await_other(pool, s, &orders->slot[s].awaited);
	xl_error_restore(&error);
}

void xl_orders_wait_idle(struct xmem_pool *pool)
{
	struct xl_error error;
	XL_UNCANCELLED;
	u32 s;

	if (!xl_orders_if(pool))
		return;
	xl_error_save(&error);
	for (s = 0; s < pool->map.slots; s++)
		wait_until_idle(pool, s);
	await_others(pool);
	xl_error_restore(&error);
}

// SPDX-License-Identifier: MIT
/* The goal of a buffer, the value that its ready word must reach, and whether it can: goal.h. */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/uncancelled.h"
#include "lib/gpu/data.h"
#include "lib/gpu/goal.h"
#include "lib/host/died.h"

/* The process of a client. 0: there is no such client. */
static u64 process_of(const struct xmem_pool *pool, u32 client)
{
	return client < pool->map.clients ?
	       xm_load(&xm_client_row(&pool->map, client)->process) : 0;
}

struct xl_order *xl_own_order(const struct xmem_buffer *buffer)
{
	const struct xl_orders *orders = xl_orders_if(buffer->pool);
	u32 mode = xm_load(&buffer->mode);

	return orders && mode & XL_WRITING && !(mode & XL_UPGRADED) ?
	       &orders->slot[buffer->slot] : NULL;
}

/* The metadata are another process's. Garbage counts as an order that is never fulfilled. */
static u64 find_published(const struct xmem_pool *pool, u32 slot)
{
	const struct xmem_metadata *metadata = xm_metadata(&pool->map, slot);

	return xm_load(&metadata->order_kind) == XMEM_ORDER_NONE ? 0 :
	       xm_load(&metadata->order_value);
}

bool xl_goal_find(const struct xmem_buffer *buffer, struct xl_goal *ret)
{
	const struct xmem_pool *pool = buffer->pool;
	const struct xl_order *order = xl_own_order(buffer);
	u32 mode = xm_load(&buffer->mode);
	u64 process;

	if (mode & XL_WRITING && !(mode & XL_UPGRADED))
		ret->value = order ? xm_load(&order->issued) : 0;
	else
		ret->value = find_published(pool, buffer->slot);
	ret->word = xm_ready_word(&pool->map, buffer->slot);
	ret->owner = xm_load(&xm_slot_row(&pool->map, buffer->slot)->owner);
	/* A process may have joined several times, and one GPU works for all of its clients. */
	process = process_of(pool, ret->owner);
	ret->mine = ret->owner == pool->me ||
		    (process && process == process_of(pool, pool->me));
	return ret->value;
}

static XL_COLD int never(void)
{
	return xl_fail_fast(EOWNERDEAD, "the process that wrote these contents has ended "
					"before its GPU had finished them");
}

int xl_goal_check(const struct xl_goal *goal)
{
	u64 word = xm_load_acquire(goal->word);

	if (unlikely(xl_is_ended(word)))
		return never();
	/* No GPU writes such a value, so a stream would wait for ever. */
	if (unlikely(goal->value >= XMEM_READY_OVER))
		return xl_fail_fast(EIO, "the metadata of these contents have a value "
					 "that no GPU writes");
	return xl_is_reached(word, goal->value) ? 0 : -EAGAIN;
}

/*
 * A zombie has exited. A number that is now that of a thread of another process shows that the
 * process has exited, too. But if a new process has got the number, the old process counts as
 * alive, because its start time is not recorded.
 */
static bool has_exited(u32 pid)
{
	struct pollfd poll_it = { .events = POLLIN };
	XL_UNCANCELLED;
	bool exited;

	xl_fork_lock();
	poll_it.fd = xl_file_record(syscall(SYS_pidfd_open, pid, 0));
	xl_fork_unlock();
	if (poll_it.fd < 0)
		return errno == ESRCH || errno == EINVAL || errno == ENOENT ||
		       (kill(pid, 0) && errno == ESRCH);
	exited = poll(&poll_it, 1, 0) == 1;
	xl_file_close(poll_it.fd);
	return exited;
}

/*
 * The pid in the daemon's view. With the module, rows have no pid, and the module ends words
 * itself.
 */
static u32 pid_of(const struct xmem_pool *pool, u32 client)
{
	return client < pool->map.clients ? xm_load(&xm_client_row(&pool->map, client)->pid) : 0;
}

u32 xl_goal_writer(const struct xmem_pool *pool, const struct xl_goal *goal)
{
	bool known = pid_of(pool, pool->me) == (u32)getpid();

	return known && !goal->mine ? pid_of(pool, goal->owner) : 0;
}

bool xl_goal_end_word(const struct xmem_pool *pool, const struct xl_goal *goal)
{
	u32 pid = xl_goal_writer(pool, goal);

	if (!pid || !has_exited(pid))
		return false;
	/* Contents that the stream finished before the exit are complete. */
	if (!xl_is_reached(xm_load_acquire(goal->word), goal->value))
		xm_store_release(goal->word, XMEM_READY_ENDED);
	return true;
}

static int host_died(struct xmem_pool *pool, const struct xl_goal *goal)
{
	return xl_goal_end_word(pool, goal) ? xl_goal_check(goal) : xl_fail_died(pool);
}

int xl_goal_still_works(const struct xmem_buffer *buffer, const struct xl_goal *goal)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	struct xl_gpu_scope scope;
	struct xl_gpu *gpu;
	CUresult result;
	int err;

	if (!goal->mine)
		return 0;
	gpu = xl_cuda_gpu(buffer);
	if (!gpu)
		return xl_last_error();
	err = xl_gpu_enter(gpu, &scope);
	if (err)
		return err;
	/* The program may capture this stream, and then a question would spoil the capture. */
	result = xl_cuda()->stream_is_capturing(CU_STREAM_PER_THREAD, &status);
	if (status == CU_STREAM_CAPTURE_STATUS_NONE)
		result = xl_cuda()->stream_query(CU_STREAM_PER_THREAD);
	xl_gpu_leave(&scope);
	return result && result != CUDA_ERROR_NOT_READY ?
	       xl_cuda_fail(result, "GPU %d does not finish the contents", gpu->ordinal) : 0;
}

int xl_goal_is_vain(const struct xmem_buffer *buffer, const struct xl_goal *goal)
{
	XM_STEP(XM_STEP_CUDA_LOOKED);
	return xl_host_died(buffer->pool) ? host_died(buffer->pool, goal) :
					    xl_goal_still_works(buffer, goal);
}

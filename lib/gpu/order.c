// SPDX-License-Identifier: MIT
/*
 * Publishing contents that a stream has yet to write, and telling streams to wait: order.h explains
 * it.
 */
#include <stdlib.h>

#include "lib/gpu/data.h"
#include "lib/gpu/goal.h"
#include "lib/hold/publish.h"
#include "lib/host/died.h"
#include "lib/own/owned.h"

/* ---- waiting in a stream ---- */

/* 0; -EOPNOTSUPP: this GPU cannot wait for the word; or -errno, noted. */
static int enqueue_wait(struct xmem_buffer *buffer, const struct xl_goal *goal, struct xl_gpu *gpu,
			CUstream stream)
{
	CUdeviceptr at;
	CUresult result;
	int err = xl_ready_find(buffer->pool, buffer->slot, gpu, &at);

	if (err)
		return err;
	XL_ON_STREAM(gpu, stream, result,
		     xl_cuda()->stream_wait_value64(stream, at, goal->value,
						    CU_STREAM_WAIT_VALUE_GEQ));
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return -EOPNOTSUPP;
	if (result)
		return xl_cuda_fail(result, "the stream takes no wait");
	if (!goal->mine)
		xm_store(&xl_orders_if(buffer->pool)->slot[buffer->slot].awaited, goal->value);
	return 0;
}

/*
 * Is the stream ordered after the last value already? The driver keeps a destroyed stream until all
 * its work is done, and only then can another stream get its name. But CU_STREAM_PER_THREAD is
 * another stream in each thread.
 */
static bool is_behind(const struct xl_order *order, const struct xl_gpu *gpu, CUstream stream)
{
	return xm_load(&order->gpu) == gpu && xm_load(&order->behind) == stream &&
	       stream != CU_STREAM_PER_THREAD;
}

static void set_behind(struct xl_order *order, struct xl_gpu *gpu, CUstream stream)
{
	xm_store(&order->gpu, gpu);
	xm_store(&order->behind, stream);
}

/* The goal is not reached yet: make the stream wait. 0 or -errno, noted. */
static int make_wait(struct xmem_buffer *buffer, const struct xl_goal *goal, struct xl_gpu *gpu,
		     CUstream stream)
{
	struct xl_order *order = xl_own_order(buffer);
	int err;

	if (order && is_behind(order, gpu, stream))
		return 0;
	/* Without the host, the wait of a stream might never end. */
	if (!goal->mine && xl_host_died(buffer->pool))
		return xl_goal_wait(buffer, goal, ~0ULL);
	err = enqueue_wait(buffer, goal, gpu, stream);
	if (err == -EOPNOTSUPP)
		return xl_goal_wait(buffer, goal, ~0ULL);
	if (!err && order)
		set_behind(order, gpu, stream);
	return err;
}

int xl_order_wait_on(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream)
{
	struct xl_goal goal;
	int err;

	if (!xl_goal_find(buffer, &goal))
		return 0;
	err = xl_goal_check(&goal);
	if (err == -EAGAIN && !gpu)
		gpu = xl_cuda_gpu(buffer);
	if (err == -EAGAIN) {
		err = gpu ? make_wait(buffer, &goal, gpu, stream) : xl_last_error();
		XM_STEP(XM_STEP_CUDA_WAITS);
	}
	if (!err)
		xl_mark_ordered(buffer);
	return err;
}

XMEM_API int xmem_wait_on(struct xmem_buffer *handle, struct CUstream_st *stream)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xl_gpu *gpu;
	int err;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "wait_on");
	if (unlikely(!xl_is_on_gpu(buffer)))
		return xl_fail_fast(EMEDIUMTYPE, "the buffer is in memory of the CPU, "
						 "whose contents are always complete");
	gpu = xl_cuda_gpu(buffer);
	err = gpu ? xl_order_check_capture(gpu, stream, "wait_on") : xl_last_error();
	return err ? err : xl_order_wait_on(buffer, gpu, stream);
}

/* ---- publishing ---- */

/*
 * The contents are complete when the streams have done all work that the library has put into them.
 * This is true for every kind of publish: a plain publish after a copy on a stream does not wait
 * for it.
 */
void xl_order_fill(const struct xmem_buffer *buffer, struct xmem_metadata *metadata)
{
	const struct xl_order *order = xl_own_order(buffer);

	if (!order || xl_order_is_idle(buffer->pool, buffer->slot)) {
		if (unlikely(metadata->order_kind != XMEM_ORDER_NONE))
			metadata->order_kind = XMEM_ORDER_NONE;
		if (unlikely(metadata->order_value))
			metadata->order_value = 0;
		return;
	}
	metadata->order_value = order->issued;
	metadata->order_kind = XMEM_ORDER_READY;
}

/* Make the stream write @value into the slot's ready word. 0, -EOPNOTSUPP or -errno, noted. */
static int write_word(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu, CUstream stream,
		      u64 value)
{
	CUdeviceptr at;
	CUresult result;
	int err = xl_ready_find(pool, slot, gpu, &at);

	if (err)
		return err;
	XL_ON_STREAM(gpu, stream, result,
		     xl_cuda()->stream_write_value64(stream, at, value,
						     CU_STREAM_WRITE_VALUE_DEFAULT));
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return -EOPNOTSUPP;
	return result ? xl_cuda_fail(result, "the stream takes no write of a ready word") : 0;
}

/*
 * Wait until the stream has done its work. Nothing may end this wait, because the work would go on
 * without the caller.
 */
static int synchronise(struct xl_gpu *gpu, CUstream stream)
{
	CUstreamCaptureMode mode = xl_capture_relax();
	CUresult result;

	XL_ON_STREAM(gpu, stream, result, xl_cuda()->stream_synchronize(stream));
	xl_capture_restore(mode);
	return result ? xl_cuda_fail(result, "the stream has failed") : 0;
}

/*
 * Tell the host by the metadata which value the word must reach, even for a buffer that is not
 * published. If this client ends, its streams may write the word until its process has exited, so
 * until then the host must not give the slot to another client.
 */
static void store_order(struct xmem_buffer *buffer, u64 value)
{
	struct xmem_metadata *metadata = xm_metadata(&buffer->pool->map, buffer->slot);

	xm_store(&metadata->order_value, value);
	xm_store(&metadata->order_kind, XMEM_ORDER_READY);
}

/* Make the stream write a value when it has done its work so far. 0, or -errno, noted. */
static int put_value(struct xmem_buffer *buffer, struct xl_order *order, struct xl_gpu *gpu,
		     CUstream stream)
{
	u64 value = order->issued + 1;
	int err = xl_order_wait_on(buffer, gpu, stream);

	if (err)
		return err;
	if (!order->issued)		/* the word may have a value of an earlier owner */
		xm_store_release(xm_ready_word(&buffer->pool->map, buffer->slot), 0);
	store_order(buffer, value);
	err = write_word(buffer->pool, buffer->slot, gpu, stream, value);
	if (err == -EOPNOTSUPP)
		err = xl_mark_put(buffer->pool, buffer->slot, value, gpu, stream);
	if (err)
		return err;
	set_behind(order, gpu, stream);
	xm_store(&order->issued, value);
	xl_mark_ordered(buffer);
	return 0;
}

/* Mark the end of the contents in the stream. 0, or -errno, noted. */
static int put_order(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream)
{
	struct xl_orders *orders = xl_orders(buffer->pool);

	if (!orders)
		return -ENOMEM;
	return put_value(buffer, &orders->slot[buffer->slot], gpu, stream);
}

/*
 * The value is put into the stream now, and not when the program releases or publishes the buffer.
 * By then the program may have waited for the stream and destroyed it, and the driver refuses the
 * name of a destroyed stream. So a copy costs one more call of the driver, but later calls need no
 * stream.
 */
int xl_order_work(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream)
{
	struct xl_error error;
	int err;

	/* The ready word of a buffer that is written in place is in another client's page. */
	if (xm_load(&buffer->mode) & XL_UPGRADED)
		return synchronise(gpu, stream);
	xl_error_save(&error);
	err = put_order(buffer, gpu, stream);
	if (likely(!err))
		return 0;
	xl_error_restore(&error);
	return synchronise(gpu, stream);
}

int xl_order_publish(struct xmem_buffer *buffer, struct CUstream_st *stream)
{
	struct xl_gpu *gpu = xl_cuda_gpu(buffer);
	int err;

	if (unlikely(!gpu))
		return xl_last_error();
	err = xl_order_check_capture(gpu, stream, "publish");
	if (unlikely(err))
		return err;
	err = xm_load(&buffer->mode) & XL_UPGRADED ? xl_order_finish(buffer->pool, gpu, stream) :
						     put_order(buffer, gpu, stream);
	if (likely(!err))
		XM_STEP(XM_STEP_CUDA_ORDERED);
	return err;
}

/* ---- the end ---- */

void xl_orders_close(struct xmem_pool *pool)
{
	struct xl_orders *orders = pool->gpus.orders;
	struct xl_error error;

	if (!orders)
		return;
	xl_orders_wait_idle(pool);
	xl_error_save(&error);
	xl_marks_drop(pool);
	xl_ready_drop(orders, &pool->map);
	xl_error_restore(&error);
	free(orders->page);
	free(orders->slot);
	free(orders);
	pool->gpus.orders = NULL;
}

// SPDX-License-Identifier: MIT
/*
 * xmem_release_on: dropping a handle when a stream reaches that point. The stream writes a word
 * there (gpu/passed.h). If it cannot, it calls a host function, in a thread of the driver that must
 * not call the driver. So the steps that call the driver are left to other threads: closing memory
 * is left to the program's next slow call, and destroying a pool to a thread of its own.
 *
 * After an error from which a context does not recover, the driver writes no word and calls no host
 * function any more, and no kernel runs. The handles that wait are found by their mode
 * (XL_LEAVING). The thread that clears that bit drops the handle.
 */
#include <signal.h>
#include <string.h>

#include "lib/cuda/own.h"
#include "lib/gpu/all.h"
#include "lib/gpu/data.h"
#include "lib/gpu/order.h"
#include "lib/gpu/passed.h"
#include "lib/host/request.h"

_Thread_local bool xl_in_driver;

/*
 * Put the hold without a call of the driver. Memory that has gone is closed by the next slow call
 * of the program.
 */
static void put(struct xmem_pool *pool, u32 slot)
{
	struct xm_pending pending = xm_put(&pool->map, pool->me, slot);

	if (pending.what == XM_WAKE_OWNER)
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	else if (pending.what == XM_RECLAIM_SLOT)
		xl_post_slot(pool, XMEM_OP_COLLECT, pending.who);
}

static void drop(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	bool was_in_driver = xl_in_driver;
	struct xl_error saved;

	xl_error_save(&saved);
	xl_in_driver = true;
	XM_STEP(XM_STEP_CUDA_REACHED);
	put(pool, buffer->slot);
	XM_STEP(XM_STEP_CUDA_DROPPED);
	xl_handle_drop(pool, buffer);
	xl_in_driver = was_in_driver;
	xl_error_restore(&saved);
}

/* Drop a handle, unless another thread does. */
static void drop_once(struct xmem_buffer *buffer)
{
	if (xl_mode_clear(buffer, XL_LEAVING) & XL_LEAVING)
		drop(buffer);
}

/* The host function. */
static void reached(void *user)
{
	drop_once(user);
}

static void *destroy(void *user)
{
	struct xmem_pool *pool = user;

	xl_own_begin();
	xl_own_park();
	pool->share.destroy(pool);
	xl_own_end();
	return NULL;
}

/* Without memory for a thread the pool stays until the process ends. */
void xl_destroy_elsewhere(struct xmem_pool *pool)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);	/* signals are for the program's threads */
	if (!pthread_create(&thread, NULL, destroy, pool))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- a context that is lost ---- */

/* The GPU whose primary context this is, or the context itself, which is only compared. */
static const void *place_of(CUcontext context)
{
	int i, count = xl_gpu_count();

	for (i = 0; i < count; i++)
		if (xm_load(&xl_gpu(i)->context) == context)
			return xl_gpu(i);
	return context;
}

/*
 * The place that is lost together with the stream: with one GPU that GPU, else place_of the
 * stream's context. @gpu is the GPU of a default stream, and stands for the place too if the driver
 * does not know the context.
 */
static const void *place_of_stream(const struct xl_gpu *gpu, CUstream stream)
{
	CUcontext context;

	if (XL_IS_DEFAULT(stream) || xl_gpu_count() == 1 ||
	    xl_cuda()->stream_get_ctx(stream, &context))
		return gpu;
	return place_of(context);
}

/* Drop a handle that waits for a stream of a lost place, because it would wait for ever. */
static void drop_lost(struct xmem_buffer *buffer, void *place)
{
	if (xm_load(&buffer->leaves_in) != place)
		return;
	xl_passed_forget(buffer);
	drop_once(buffer);
}

/* The driver has refused. If the error is final, drop the handles that wait for that place. */
static int failed(const void *place, CUresult result)
{
	if (xl_cuda_is_lost(result))
		xl_handles_leaving(drop_lost, (void *)place);
	return xl_cuda_fail(result, "the stream takes no more work; the buffer is "
				    "still held");
}

/* ---- leaving ---- */

/*
 * The handle is gone for the program. It may be dropped before the driver returns, so its name goes
 * now.
 */
static void leave(struct xmem_buffer *buffer, const void *place)
{
	xm_store(&buffer->leaves_in, place);
	xl_bump(&buffer->name, XL_NAME_STEP);
	xl_mode_add(buffer, XL_LEAVING);
	XM_STEP(XM_STEP_CUDA_LEAVES);
}

/* The handle is as before. false: another thread that has found the context lost has dropped it. */
static bool come_back(struct xmem_buffer *buffer)
{
	if (!(xl_mode_clear(buffer, XL_LEAVING) & XL_LEAVING))
		return false;
	xl_bump(&buffer->name, -XL_NAME_STEP);
	return true;
}

/* Let the stream drop the handle. 0, or -errno, noted. */
static int put_into(struct xl_gpu *gpu, CUstream stream, const void *place,
		    struct xmem_buffer *buffer)
{
	CUresult result;

	leave(buffer, place);
	result = xl_passed_put(gpu, stream, drop, buffer);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		XL_ON_STREAM(gpu, stream, result,
			     xl_cuda()->launch_host_func(stream, reached, buffer));
	XM_STEP(XM_STEP_CUDA_LEFT);
	xl_passed_look();
	if (likely(!result))
		return 0;
	return come_back(buffer) ? failed(place, result) :
				   xl_cuda_fail(result, "the buffer is released at once");
}

static int leave_late(struct xl_gpu *gpu, struct xmem_buffer *buffer)
{
	leave(buffer, NULL);
	if (xl_all_drop_late(gpu, drop_once, buffer))
		return 0;
	come_back(buffer);
	return xl_fail(ENOMEM, "no memory for a thread that waits for the GPU; the buffer is "
			       "still held");
}

/* The stream that follows all others is of the GPU's primary context. */
static int leave_all(struct xl_gpu *gpu, struct xmem_buffer *buffer)
{
	struct xl_gpu_scope scope;
	CUresult result = xl_order_enter(gpu, &scope);
	CUstream stream;
	int err;

	if (result)
		return failed(gpu, result);
	result = xl_all_streams(gpu, &stream);
	switch (result) {
	case CUDA_SUCCESS:
		err = put_into(gpu, stream, gpu, buffer);
		break;
	case CUDA_ERROR_NOT_SUPPORTED:
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
	case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
		err = leave_late(gpu, buffer);
		break;
	default:
		err = failed(gpu, result);
	}
	xl_gpu_leave(&scope);
	return err;
}

XMEM_API int xmem_release_on(struct xmem_buffer *handle, struct CUstream_st *stream)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xl_gpu *gpu;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "release_on");
	if (unlikely(xm_load(&buffer->mode) & XL_WRITING))
		return xl_fail_fast(EPERM, "the buffer is being written; synchronise "
					   "the stream, then use xmem_release");
	gpu = xl_is_on_gpu(buffer) ? xl_cuda_gpu(buffer) : xl_gpu(0);
	if (unlikely(!gpu))
		return xl_last_error();
	if (stream == XMEM_ALL_STREAMS)
		return leave_all(gpu, buffer);
	if (unlikely(xl_order_check_capture(gpu, stream, "release_on")))
		return xl_last_error();
	return put_into(gpu, stream, place_of_stream(gpu, stream), buffer);
}

// SPDX-License-Identifier: MIT
/* Makes the state of the order of a pool's slots on GPUs (order.h), and finds a buffer's GPU. */
#include <stdlib.h>

#include "lib/gpu/data.h"
#include "lib/gpu/order.h"
#include "lib/host/died.h"
#include "lib/payload/payload.h"

static struct xl_orders *make(const struct xmem_pool *pool)
{
	struct xl_orders *orders = calloc(1, sizeof(*orders));

	if (!orders)
		return NULL;
	orders->slot = calloc(pool->map.slots, sizeof(*orders->slot));
	orders->page = calloc(pool->map.groups, sizeof(struct xl_ready_page *));
	if (orders->slot && orders->page)
		return orders;
	free(orders->page);
	free(orders->slot);
	free(orders);
	return NULL;
}

struct xl_orders *xl_orders(struct xmem_pool *pool)
{
	struct xl_orders *orders = xl_orders_if(pool);

	if (likely(orders))
		return orders;
	xl_lock(&pool->gpus.lock);
	orders = pool->gpus.orders;
	if (!orders)
		orders = make(pool);
	__atomic_store_n(&pool->gpus.orders, orders, __ATOMIC_RELEASE);
	xl_unlock(&pool->gpus.lock);
	if (!orders)
		xl_fail_fast(ENOMEM, "no memory for the order of buffers on GPUs");
	return orders;
}

CUresult xl_order_enter(struct xl_gpu *gpu, struct xl_gpu_scope *ret_scope)
{
	struct xl_error error;
	CUresult result = CUDA_SUCCESS;

	xl_error_save(&error);
	xl_cuda_result = CUDA_SUCCESS;
	if (xl_gpu_enter(gpu, ret_scope))
		result = xl_cuda_result ? xl_cuda_result : CUDA_ERROR_INVALID_CONTEXT;
	xl_error_restore(&error);
	return result;
}

/*
 * EPERM is also the error for the driver's own refusals while a stream is captured (cuda/error.h).
 */
static XL_COLD int captured(const char *what, bool itself)
{
	if (itself)
		return xl_fail(EPERM, "%s: the stream is being captured, and the graph would "
			       "repeat this call for the present buffer: capture the program's own "
			       "work only, and make this call before or after cuGraphLaunch", what);
	return xl_fail(EPERM, "%s: the default stream cannot be used while a stream that is "
		       "ordered with it is being captured: end the capture first, or capture a "
		       "stream with CU_STREAM_NON_BLOCKING", what);
}

int xl_order_check_capture(struct xl_gpu *gpu, CUstream stream, const char *what)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult result;

	if (unlikely(stream == XMEM_ALL_STREAMS))
		return xl_fail(EINVAL, "it needs one stream; only xmem_release_on takes all");
	XL_ON_STREAM(gpu, stream, result, xl_cuda()->stream_is_capturing(stream, &status));
	if (likely(!result && status == CU_STREAM_CAPTURE_STATUS_NONE))
		return 0;
	return !result || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ?
	       captured(what, !result) : 0;
}

/* An evicted client reads zeros in the pages, so it cannot know where the contents are. */
XL_COLD u64 xl_not_cuda(struct xmem_pool *pool)
{
	if (xl_host_died(pool))
		xl_fail_died(pool);
	else
		xl_fail_fast(EMEDIUMTYPE, "the contents are in memory of the CPU: use xmem_data");
	return 0;
}

struct xl_gpu *xl_cuda_gpu(const struct xmem_buffer *buffer)
{
	u32 traits = xm_load(&xm_slot_row(&buffer->pool->map, buffer->slot)->traits);

	if (traits & XMEM_TRAIT_CUDA)
		return xl_payload_gpu(buffer->pool, traits);
	xl_not_cuda(buffer->pool);
	return NULL;
}

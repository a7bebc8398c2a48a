// SPDX-License-Identifier: MIT
/*
 * Copies from and to buffers in memory of GPUs. A copy without a stream uses the stream that is
 * ordered with all others of the program, and it is complete when the call returns. So another
 * process's GPU can read published contents without any stream of this process.
 */
#include <stdlib.h>

#include "lib/describe/copy.h"
#include "lib/gpu/data.h"
#include "lib/gpu/order.h"
#include "lib/payload/payload.h"

#define STAGE_BYTES	(4UL << 20)	/* memory of the CPU for copies that GPUs cannot make */

/* ---- the sides ---- */

static struct xmem_pool *pool_of(const struct xl_copy *copy)
{
	return copy->to.buffer ? copy->to.buffer->pool : copy->from.buffer->pool;
}

int xl_copy_check(const struct xl_copy *copy, const struct xmem_buffer *to,
		  const struct xmem_buffer *from)
{
	const struct xmem_buffer *place = to && xl_is_on_gpu(to) ? to :
					  from && xl_is_on_gpu(from) ? from : NULL;
	struct xl_gpu *gpu;

	/* Without a buffer, the caller has an invalid handle, and says so. */
	if ((!to && !from) || (!place && !copy->stream))
		return 0;
	gpu = place ? xl_cuda_gpu(place) : xl_gpu(0);
	return gpu ? xl_order_check_capture(gpu, copy->stream ? copy->stream : CU_STREAM_LEGACY,
					    copy->what) : xl_last_error();
}

int xl_copy_find(const struct xl_copy *copy, struct xl_side *side, bool writes)
{
	struct xmem_buffer *buffer = side->buffer;
	int err = copy->stream ? xl_order_wait_on(buffer, copy->to.gpu, copy->stream) :
				 xl_order_wait_here(buffer);

	if (err)
		return err;
	side->address = writes ? xl_cuda_address_mut(buffer) : xl_cuda_address(buffer);
	side->gpu = side->address ? xl_cuda_gpu(buffer) : NULL;
	return side->gpu ? 0 : xl_last_error();
}

int xl_copy_await(const struct xl_copy *copy)
{
	struct xl_gpu *gpu = xl_gpu(0);

	return gpu ? xl_order_finish(pool_of(copy), gpu, copy->stream) : xl_last_error();
}

/*
 * A copy on the stream of @gpu is queued. If the buffer is being written, no other client has its
 * memory, so it must be kept until the copy has run. A program that copies from a held buffer keeps
 * it by xmem_release_on.
 */
static int count_work(const struct xl_copy *copy, const struct xl_side *side, struct xl_gpu *gpu)
{
	return !copy->stream || !side->gpu || !side->buffer ||
	       !(xm_load(&side->buffer->mode) & XL_WRITING) ? 0 :
	       xl_order_work(side->buffer, gpu, copy->stream);
}

/* ---- the copies ---- */

/* Put a copy into a stream of a GPU. The other side is on that GPU too, or on the CPU. */
static CUresult put(const struct xl_side *to, const struct xl_side *from, u64 bytes,
		    CUstream stream)
{
	if (!from->gpu)
		return xl_cuda()->memcpy_htod_async(to->address, (const void *)from->address,
						    bytes, stream);
	if (!to->gpu)
		return xl_cuda()->memcpy_dtoh_async((void *)to->address, from->address, bytes,
						    stream);
	return xl_cuda()->memcpy_dtod_async(to->address, from->address, bytes, stream);
}

/* A copy was queued with this result. Without a stream, wait until it is complete. */
static CUresult finish(CUresult result, CUstream stream)
{
	return result || stream ? result : xl_cuda()->stream_synchronize(CU_STREAM_LEGACY);
}

static int copy_one(const struct xl_side *to, const struct xl_side *from, u64 bytes,
		    CUstream stream)
{
	struct xl_gpu *gpu = to->gpu ? to->gpu : from->gpu;
	struct xl_gpu_scope scope;
	CUresult result;
	int err = xl_gpu_enter(gpu, &scope);

	if (err)
		return err;
	result = finish(put(to, from, bytes, stream ? stream : CU_STREAM_LEGACY), stream);
	xl_gpu_leave(&scope);
	return result ? xl_cuda_fail(result, "copy %llu bytes %s GPU %d", (unsigned long long)bytes,
				     !from->gpu ? "to" : to->gpu ? "within" : "from",
				     gpu->ordinal) : 0;
}

static int copy_staged(const struct xl_copy *copy)
{
	u64 at, piece, most = copy->bytes < STAGE_BYTES ? copy->bytes : STAGE_BYTES;
	struct xl_side to = copy->to, from = copy->from, stage = { .address = (u64)malloc(most) };
	int err = 0;

	if (!stage.address)
		return xl_fail_fast(ENOMEM, "no memory of the CPU for a copy between GPUs");
	for (at = 0; at < copy->bytes && !err; at += piece) {
		piece = copy->bytes - at < most ? copy->bytes - at : most;
		err = copy_one(&stage, &from, piece, NULL);
		if (!err)
			err = copy_one(&to, &stage, piece, NULL);
		from.address += piece;
		to.address += piece;
	}
	free((void *)stage.address);
	return err;
}

static bool are_peers(const struct xl_side *to, const struct xl_side *from)
{
	int can = 0;

	return !xl_cuda()->device_can_access_peer(&can, to->gpu->device, from->gpu->device) && can;
}

/* Copy between two GPUs that can do it themselves. 0, or -errno, noted. */
static int copy_peer(const struct xl_copy *copy)
{
	CUstream stream = copy->stream ? copy->stream : CU_STREAM_LEGACY;
	const struct xl_side *to = &copy->to, *from = &copy->from;
	struct xl_gpu_scope scope, inner;
	CUresult result;
	int err = xl_gpu_enter(from->gpu, &scope);

	if (err)
		return err;
	err = xl_gpu_enter(to->gpu, &inner);
	if (!err) {
		result = finish(xl_cuda()->memcpy_peer_async(to->address, to->gpu->context,
							     from->address, from->gpu->context,
							     copy->bytes, stream), copy->stream);
		err = result ? xl_cuda_fail(result, "copy %llu bytes from GPU %d to GPU %d",
					    (unsigned long long)copy->bytes, from->gpu->ordinal,
					    to->gpu->ordinal) : 0;
		xl_gpu_leave(&inner);
	}
	xl_gpu_leave(&scope);
	return err;
}

static int copy_across(const struct xl_copy *copy)
{
	struct xl_error error;
	int err;

	if (!are_peers(&copy->to, &copy->from)) {
		/*
		 * This copy cannot be put into the stream, so wait until the stream has done its
		 * work so far.
		 */
		err = copy->stream ? xl_order_finish(pool_of(copy), copy->to.gpu, copy->stream) : 0;
		return err ? err : copy_staged(copy);
	}
	if (copy->stream)
		return copy_peer(copy);
	xl_error_save(&error);
	err = copy_peer(copy);
	xl_error_restore(&error);
	return err ? copy_staged(copy) : 0;
}

int xl_copy_gpu(const struct xl_copy *copy)
{
	const struct xl_side *to = &copy->to, *from = &copy->from;
	struct xl_gpu *gpu = to->gpu ? to->gpu : from->gpu;
	int err = to->gpu && from->gpu && to->gpu != from->gpu ?
		  copy_across(copy) : copy_one(to, from, copy->bytes, copy->stream);

	if (!err)
		err = count_work(copy, to, gpu);
	return err ? err : count_work(copy, from, gpu);
}

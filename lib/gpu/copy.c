// SPDX-License-Identifier: MIT
/*
 * Copies from and to buffers in memory of GPUs. Those without a stream go through the one that
 * orders with all others of the program, and are over when the call returns: another process's GPU
 * can look at what is published then without any stream of this one.
 */
#include <stdlib.h>

#include "../copy.h"
#include "../payload/payload.h"
#include "data.h"
#include "order.h"

#define STAGE_BYTES	(4UL << 20)	/* of the CPU's memory, for what GPUs cannot copy */

/* One side of a copy. */
struct side {
	struct xl_gpu *gpu;
	u64 address;
	u64 bytes;
};

/* In which stream the copy is, and whether that is waited for. */
struct queue {
	CUstream stream;
	bool waits;
	struct xl_gpu *gpu;	/* whose stream it is; NULL: that of the buffer's GPU */
	struct xmem_pool *pool;	/* between GPUs: the one that is written in */
};

static const struct queue at_once = { .stream = CU_STREAM_LEGACY, .waits = true };

/* ---- the sides ---- */

static int check_range(const char *what, u64 offset, u64 bytes, u64 there)
{
	if (offset <= there && bytes <= there - offset)
		return 0;
	return xl_fail(ERANGE, "%s: %llu bytes at %llu, and there are %llu", what,
		       (unsigned long long)bytes, (unsigned long long)offset,
		       (unsigned long long)there);
}

/* Where @bytes at @offset of a buffer are. 0, or -errno, noted. */
static int find(struct xmem_buffer *buffer, u64 address, u64 offset, u64 bytes, struct side *ret)
{
	if (!address)
		return xmem_peek_last_error(NULL);
	ret->gpu = xl_cuda_gpu(buffer);
	if (!ret->gpu)
		return xmem_peek_last_error(NULL);
	ret->address = address + offset;
	ret->bytes = bytes;
	return 0;
}

/* What is done with the buffer comes after what other streams have yet to do. */
static int wait_in(struct xmem_buffer *buffer, const struct queue *queue)
{
	if (!xl_is_on_gpu(buffer))
		return 0;
	return queue->waits ? xl_order_wait_here(buffer) :
	       xl_order_wait_on(buffer, queue->gpu, queue->stream);
}

/*
 * A copy on the stream of @gpu is queued. Nobody but the writer knows of the buffer yet, so nothing
 * else keeps its memory until the copy has run; who reads one holds it, and uses xmem_release_on.
 */
static int count_work(struct xmem_buffer *handle, struct xl_gpu *gpu, const struct queue *queue)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	return queue->waits || !(xm_load(&buffer->mode) & XL_WRITING) ? 0 :
	       xl_order_work(buffer, gpu, queue->stream);
}

static int find_to(struct xmem_buffer *handle, const char *what, u64 offset, u64 bytes,
		   const struct queue *queue, struct side *ret)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	u64 address;
	int err;

	if (!buffer)
		return xl_no_buffer(handle, what);
	err = wait_in(buffer, queue);
	if (err)
		return err;
	address = xl_cuda_address_mut(buffer);
	err = find(buffer, address, offset, bytes, ret);
	return err ? err : check_range(what, offset, bytes, xl_capacity(buffer));
}

static int find_from(struct xmem_buffer *handle, const char *what, u64 offset, u64 bytes,
		     const struct queue *queue, struct side *ret)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	u64 address;
	int err;

	if (!buffer)
		return xl_no_buffer(handle, what);
	err = wait_in(buffer, queue);
	if (err)
		return err;
	address = xl_cuda_address(buffer);
	err = find(buffer, address, offset, bytes, ret);
	if (err)
		return err;
	return check_range(what, offset, bytes, xm_load(&buffer->mode) & XL_WRITING ?
			   xl_capacity(buffer) : buffer->what.length);
}

/* ---- the copies ---- */

/* A copy was queued with this result: wait until it is over, if that is wanted. */
static CUresult finish(CUresult result, const struct queue *queue)
{
	return result || !queue->waits ? result : xl_cuda()->stream_synchronize(queue->stream);
}

static int copy_in(const struct side *to, const void *from, const struct queue *queue)
{
	struct xl_gpu_scope scope;
	CUresult result;
	int err = xl_gpu_enter(to->gpu, &scope);

	if (err)
		return err;
	result = finish(xl_cuda()->memcpy_htod_async(to->address, from, to->bytes, queue->stream),
			queue);
	xl_gpu_leave(&scope);
	return result ? xl_cuda_fail(result, "copy %llu bytes to GPU %d",
				     (unsigned long long)to->bytes, to->gpu->ordinal) : 0;
}

static int copy_out(void *to, const struct side *from, const struct queue *queue)
{
	struct xl_gpu_scope scope;
	CUresult result;
	int err = xl_gpu_enter(from->gpu, &scope);

	if (err)
		return err;
	result = finish(xl_cuda()->memcpy_dtoh_async(to, from->address, from->bytes,
						     queue->stream), queue);
	xl_gpu_leave(&scope);
	return result ? xl_cuda_fail(result, "copy %llu bytes from GPU %d",
				     (unsigned long long)from->bytes, from->gpu->ordinal) : 0;
}

static int copy_within(const struct side *to, const struct side *from, const struct queue *queue)
{
	struct xl_gpu_scope scope;
	CUresult result;
	int err = xl_gpu_enter(to->gpu, &scope);

	if (err)
		return err;
	result = finish(xl_cuda()->memcpy_dtod_async(to->address, from->address, to->bytes,
						     queue->stream), queue);
	xl_gpu_leave(&scope);
	return result ? xl_cuda_fail(result, "copy %llu bytes within GPU %d",
				     (unsigned long long)to->bytes, to->gpu->ordinal) : 0;
}

static int copy_staged(const struct side *to, const struct side *from)
{
	u64 at, most = to->bytes < STAGE_BYTES ? to->bytes : STAGE_BYTES;
	char *stage = malloc(most);
	int err = 0;

	if (!stage)
		return xl_fail_fast(ENOMEM, "no memory of the CPU for a copy between GPUs");
	for (at = 0; at < to->bytes && !err; at += most) {
		u64 piece = to->bytes - at < most ? to->bytes - at : most;
		struct side in = { to->gpu, to->address + at, piece };
		struct side out = { from->gpu, from->address + at, piece };

		err = copy_out(stage, &out, &at_once);
		if (!err)
			err = copy_in(&in, stage, &at_once);
	}
	free(stage);
	return err;
}

static bool are_peers(const struct side *to, const struct side *from)
{
	int can = 0;

	return !xl_cuda()->device_can_access_peer(&can, to->gpu->device, from->gpu->device) && can;
}

/* Between GPUs that can. 0, or -errno, noted. */
static int copy_peer(const struct side *to, const struct side *from, const struct queue *queue)
{
	struct xl_gpu_scope scope, inner;
	CUresult result;
	int err = xl_gpu_enter(from->gpu, &scope);

	if (err)
		return err;
	err = xl_gpu_enter(to->gpu, &inner);
	if (!err) {
		result = finish(xl_cuda()->memcpy_peer_async(to->address, to->gpu->context,
							     from->address, from->gpu->context,
							     to->bytes, queue->stream), queue);
		err = result ? xl_cuda_fail(result, "copy %llu bytes from GPU %d to GPU %d",
					    (unsigned long long)to->bytes, from->gpu->ordinal,
					    to->gpu->ordinal) : 0;
		xl_gpu_leave(&inner);
	}
	xl_gpu_leave(&scope);
	return err;
}

static int copy_across(const struct side *to, const struct side *from, const struct queue *queue)
{
	struct xl_error error;
	int err;

	if (to->gpu == from->gpu)
		return copy_within(to, from, queue);
	if (!are_peers(to, from)) {
		/* What cannot be put into the stream is done when it has done what is in it. */
		err = queue->waits ? 0 : xl_order_finish(queue->pool, to->gpu, queue->stream);
		return err ? err : copy_staged(to, from);
	}
	if (!queue->waits)
		return copy_peer(to, from, queue);
	xl_error_save(&error);
	err = copy_peer(to, from, queue);
	xl_error_restore(&error);
	return err ? copy_staged(to, from) : 0;
}

/* ---- the calls ---- */

static int to_cuda(struct xmem_buffer *to, u64 offset, const void *from, u64 bytes,
		   const struct queue *queue)
{
	struct side side;
	int err = find_to(to, "copy_to_cuda", offset, bytes, queue, &side);

	if (err || !bytes)
		return err;
	if (!from)
		return xl_fail_fast(EINVAL, "copy_to_cuda: no bytes to copy");
	err = copy_in(&side, from, queue);
	return err ? err : count_work(to, side.gpu, queue);
}

static int to_cpu(void *to, struct xmem_buffer *from, u64 offset, u64 bytes,
		  const struct queue *queue)
{
	struct side side;
	int err = find_from(from, "copy_to_cpu", offset, bytes, queue, &side);

	if (err || !bytes)
		return err;
	if (!to)
		return xl_fail_fast(EINVAL, "copy_to_cpu: no place to copy to");
	err = copy_out(to, &side, queue);
	return err ? err : count_work(from, side.gpu, queue);
}

static int to_device(struct xmem_buffer *to, u64 to_offset, struct xmem_buffer *from,
		     u64 from_offset, u64 bytes, const struct queue *queue)
{
	struct queue one = *queue;
	struct side in, out;
	int err;

	if (to && to == from)
		return xl_fail_fast(EINVAL, "copy_to_device: both buffers are the same one");
	err = find_to(to, "copy_to_device", to_offset, bytes, queue, &in);
	if (err)
		return err;
	one.gpu = in.gpu;
	one.pool = xl_buffer(to)->pool;
	err = find_from(from, "copy_to_device", from_offset, bytes, &one, &out);
	if (err || !bytes)
		return err;
	err = copy_across(&in, &out, &one);
	if (!err)
		err = count_work(to, in.gpu, &one);
	return err ? err : count_work(from, in.gpu, &one);
}

XMEM_API int xmem_copy_to_cuda(struct xmem_buffer *to, size_t offset, const void *from,
			       size_t bytes)
{
	return to_cuda(to, offset, from, bytes, &at_once);
}

XMEM_API int xmem_copy_to_cuda_on(struct xmem_buffer *to, size_t offset, const void *from,
				  size_t bytes, struct CUstream_st *stream)
{
	return to_cuda(to, offset, from, bytes, &(struct queue){ .stream = stream });
}

XMEM_API int xmem_copy_to_cpu(void *to, struct xmem_buffer *from, size_t offset, size_t bytes)
{
	return to_cpu(to, from, offset, bytes, &at_once);
}

XMEM_API int xmem_copy_to_cpu_on(void *to, struct xmem_buffer *from, size_t offset, size_t bytes,
				 struct CUstream_st *stream)
{
	return to_cpu(to, from, offset, bytes, &(struct queue){ .stream = stream });
}

XMEM_API int xmem_copy_to_device(struct xmem_buffer *to, size_t to_offset,
				 struct xmem_buffer *from, size_t from_offset, size_t bytes)
{
	return to_device(to, to_offset, from, from_offset, bytes, &at_once);
}

XMEM_API int xmem_copy_to_device_on(struct xmem_buffer *to, size_t to_offset,
				    struct xmem_buffer *from, size_t from_offset, size_t bytes,
				    struct CUstream_st *stream)
{
	return to_device(to, to_offset, from, from_offset, bytes,
			 &(struct queue){ .stream = stream });
}

/* ---- for xmem_copy ---- */

bool xl_is_cuda(const struct xmem_buffer *handle)
{
	const struct xmem_buffer *buffer = xl_buffer(handle);

	return buffer && xm_load(&xm_slot_row(&buffer->pool->map, buffer->slot)->traits) &
			 XMEM_TRAIT_CUDA;
}

int xl_copy_cuda(struct xmem_buffer *to, struct xmem_buffer *from)
{
	size_t bytes = xmem_size(from);
	const void *contents;
	void *whole;

	if (xl_is_cuda(to) && xl_is_cuda(from))
		return xmem_copy_to_device(to, 0, from, 0, bytes);
	if (xl_is_cuda(to)) {
		contents = xmem_data(from);
		return contents ? xmem_copy_to_cuda(to, 0, contents, bytes) :
				  xmem_peek_last_error(NULL);
	}
	whole = xmem_data_mut(to);
	if (!whole)
		return xmem_peek_last_error(NULL);
	if (bytes > xl_capacity(xl_buffer(to)))
		return xl_fail(ERANGE, "copy: %zu bytes do not fit into a buffer of %llu; acquire "
			       "a larger one", bytes,
			       (unsigned long long)xl_capacity(xl_buffer(to)));
	return xmem_copy_to_cpu(whole, from, 0, bytes);
}

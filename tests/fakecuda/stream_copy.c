// SPDX-License-Identifier: MIT
/*
 * Copies and fills that the fake driver's streams do. Those with unregistered CPU memory behave as
 * on a real driver: the bytes to read are taken at the call, and the call waits for the bytes that
 * they write. All others run later, in the stream's thread, and so do all that are captured.
 */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "stream.h"

struct copy {
	struct fk_op op;
	CUdeviceptr to, from;
	size_t bytes;
	struct fk_device *to_device, *from_device;
	void *staged;		/* the bytes that it reads, taken at the call */
};

/*
 * Finds both ends. They were checked at the call; memory that was freed since is an illegal
 * address.
 */
static int run_copy(struct fk_op *op)
{
	struct copy *copy = (struct copy *)op;
	struct fk_pin *to_pin = NULL, *from_pin = NULL;
	const void *from = copy->staged;
	CUresult why = FK_OK;
	void *to;

	to = fk_memory_any(copy->to, copy->bytes, copy->to_device, FK_WRITE, &to_pin, &why);
	if (!to)
		return FK_ILLEGAL_ADDRESS;
	if (!from)
		from = fk_memory_any(copy->from, copy->bytes, copy->from_device, FK_READ,
				     &from_pin, &why);
	if (from)
		memmove(to, from, copy->bytes);
	if (from_pin)
		fk_memory_done(from_pin);
	if (to_pin)
		fk_memory_done(to_pin);
	return from ? FK_OK : FK_ILLEGAL_ADDRESS;
}

static void end_copy(struct fk_op *op)
{
	free(((struct copy *)op)->staged);
}

/* May the device use these bytes? pageable: they are unregistered memory of the CPU. */
static CUresult check(CUdeviceptr at, size_t bytes, struct fk_device *device,
		      enum fk_access access, bool *ret_pageable)
{
	struct fk_pin *pin = NULL;
	CUresult why = FK_INVALID_VALUE;

	if (!at || !fk_memory_any(at, bytes, device, access, &pin, &why))
		return why == FK_ILLEGAL_ADDRESS ? FK_INVALID_VALUE : why;
	*ret_pageable = !pin;
	if (pin)
		fk_memory_done(pin);
	return FK_OK;
}

static CUresult queue_copy(struct fk_stream *stream, CUdeviceptr to, struct fk_device *to_device,
			   CUdeviceptr from, struct fk_device *from_device, size_t bytes)
{
	bool to_pageable, from_pageable;
	struct copy *copy;
	CUresult result;
	uint64_t seq;

	result = check(to, bytes, to_device, FK_WRITE, &to_pageable);
	if (!result)
		result = check(from, bytes, from_device, FK_READ, &from_pageable);
	if (result)
		return result;
	copy = fk_op_new(sizeof(*copy), run_copy);
	copy->op.end = end_copy;
	copy->op.node = FK_COPY_NODE;
	copy->to = to;
	copy->to_device = to_device;
	copy->from = from;
	copy->from_device = from_device;
	copy->bytes = bytes;
	if (from_pageable && !fk_is_captured(stream)) {
		copy->staged = malloc(bytes);
		if (!copy->staged)
			abort();
		memcpy(copy->staged, (const void *)(uintptr_t)from, bytes);
	}
	result = fk_enqueue(stream, &copy->op, &seq);
	if (result || !to_pageable)
		return result;
	fk_wait_for(stream, seq);
	return fk_sticky();
}

static CUresult copy_on(bool own, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct fk_device *device;

	if (!stream)
		return why;
	if (!bytes)
		return FK_OK;
	device = stream->context->device;
	return queue_copy(stream, to, device, from, device, bytes);
}

/* One end must be memory that a device may name. The other may be any memory of the CPU. */
static CUresult copy_known(bool own, CUdeviceptr to, CUdeviceptr from, CUdeviceptr known,
			   size_t bytes, CUstream handle)
{
	if (bytes && !fk_memory_is_known(known, bytes))
		return FK_INVALID_VALUE;
	return copy_on(own, to, from, bytes, handle);
}

static CUresult to_device(bool own, CUdeviceptr to, const void *from, size_t bytes,
			  CUstream stream)
{
	return copy_known(own, to, (uintptr_t)from, to, bytes, stream);
}

static CUresult to_cpu(bool own, void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy_known(own, (uintptr_t)to, from, from, bytes, stream);
}

static CUresult between_contexts(bool own, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
				 CUcontext from_context, size_t bytes, CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	if (!fk_context_valid(to_context) || !fk_context_valid(from_context))
		return FK_INVALID_CONTEXT;
	if (!bytes)
		return FK_OK;
	return queue_copy(stream, to, to_context->device, from, from_context->device, bytes);
}

FK_DEFINE_BOTH(cuMemcpyAsync, 4000, cuMemcpyAsync, cuMemcpyAsync_ptsz, FK_CONTEXT, copy_on,
	       (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
	       (to, from, bytes, stream))
FK_DEFINE_BOTH(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz,
	       FK_CONTEXT, to_device,
	       (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
	       (to, from, bytes, stream))
FK_DEFINE_BOTH(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz,
	       FK_CONTEXT, to_cpu, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
	       (to, from, bytes, stream))
FK_DEFINE_BOTH(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz,
	       FK_CONTEXT, copy_on,
	       (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
	       (to, from, bytes, stream))
FK_DEFINE_BOTH(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, FK_CONTEXT,
	       between_contexts,
	       (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		size_t bytes, CUstream stream),
	       (to, to_context, from, from_context, bytes, stream))

/* ---- New parameters of a node ---- */

static CUdeviceptr address_of(const struct copy_side *side)
{
	return (side->type == 1 ? (uintptr_t)side->host : side->device) + side->x;
}

static bool is_line(const struct copy_params *p)
{
	return p->height == 1 && p->depth == 1 && (p->from.type == 1 || p->from.type == 2) &&
	       (p->to.type == 1 || p->to.type == 2);
}

/* The kinds of memory on both sides must stay, and this driver has no other copies than lines. */
FK_DEFINE(cuGraphExecMemcpyNodeSetParams, 10020, cuGraphExecMemcpyNodeSetParams, FK_WORK,
	  CUgraphExec exec, CUgraphNode node, const struct copy_params *params, CUcontext context)
{
	struct copy *copy;
	CUdeviceptr to, from;
	bool pageable;
	CUresult err;

	FK_ENTER(cuGraphExecMemcpyNodeSetParams);
	copy = (struct copy *)fk_exec_find(exec, node, FK_COPY_NODE);
	if (!copy || !params || !params->bytes || !fk_context_valid(context))
		return FK_INVALID_VALUE;
	if (!is_line(params))
		return FK_NOT_SUPPORTED;
	to = address_of(&params->to);
	from = address_of(&params->from);
	if (fk_memory_is_device(to) != fk_memory_is_device(copy->to) ||
	    fk_memory_is_device(from) != fk_memory_is_device(copy->from))
		return FK_INVALID_VALUE;
	err = check(to, params->bytes, context->device, FK_WRITE, &pageable);
	if (!err)
		err = check(from, params->bytes, context->device, FK_READ, &pageable);
	if (err)
		return err;
	copy->to = to;
	copy->from = from;
	copy->to_device = copy->from_device = context->device;
	copy->bytes = params->bytes;
	return FK_OK;
}

/* ---- Fills ---- */

struct fill {
	struct fk_op op;
	CUdeviceptr to;
	size_t count;
	unsigned int width;	/* of a value, in bytes */
	uint32_t value;
};

static int run_fill(struct fk_op *op)
{
	struct fill *fill = (struct fill *)op;
	struct fk_pin *pin = NULL;
	CUresult why = FK_OK;
	char *to;
	size_t i;

	to = fk_memory_at(fill->to, fill->count * fill->width, op->stream->context->device,
			  FK_WRITE, &pin, &why);
	if (!to)
		return FK_ILLEGAL_ADDRESS;
	for (i = 0; i < fill->count; i++)
		memcpy(to + i * fill->width, &fill->value, fill->width);
	fk_memory_done(pin);
	return FK_OK;
}

static CUresult queue_fill(bool own, CUdeviceptr to, uint32_t value, unsigned int width,
			   size_t count, CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct fk_pin *pin = NULL;
	struct fill *fill;
	uint64_t seq;

	if (!stream)
		return why;
	if (!count)
		return FK_OK;
	why = FK_INVALID_VALUE;
	if (to % width || count > SIZE_MAX / width ||
	    !fk_memory_at(to, count * width, stream->context->device, FK_WRITE, &pin, &why))
		return FK_INVALID_VALUE;
	fk_memory_done(pin);
	fill = fk_op_new(sizeof(*fill), run_fill);
	fill->op.node = FK_FILL_NODE;
	fill->to = to;
	fill->count = count;
	fill->width = width;
	fill->value = value;
	return fk_enqueue(stream, &fill->op, &seq);
}

static CUresult fill8(bool own, CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return queue_fill(own, to, value, 1, count, stream);
}

static CUresult fill16(bool own, CUdeviceptr to, unsigned short value, size_t count,
		       CUstream stream)
{
	return queue_fill(own, to, value, 2, count, stream);
}

static CUresult fill32(bool own, CUdeviceptr to, unsigned int value, size_t count,
		       CUstream stream)
{
	return queue_fill(own, to, value, 4, count, stream);
}

FK_DEFINE_BOTH(cuMemsetD8Async, 3020, cuMemsetD8Async, cuMemsetD8Async_ptsz, FK_CONTEXT, fill8,
	       (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
	       (to, value, count, stream))
FK_DEFINE_BOTH(cuMemsetD16Async, 3020, cuMemsetD16Async, cuMemsetD16Async_ptsz, FK_CONTEXT, fill16,
	       (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),
	       (to, value, count, stream))
FK_DEFINE_BOTH(cuMemsetD32Async, 3020, cuMemsetD32Async, cuMemsetD32Async_ptsz, FK_CONTEXT, fill32,
	       (CUdeviceptr to, unsigned int value, size_t count, CUstream stream),
	       (to, value, count, stream))

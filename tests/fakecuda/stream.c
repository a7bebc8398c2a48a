// SPDX-License-Identifier: MIT
/*
 * Functions of the driver about streams, and functions for the fake's other half. queue.h has the
 * work itself.
 */
#include <stdlib.h>

#include "capture.h"
#include "stream.h"

#define LEGACY_HANDLE 1
#define PER_THREAD_HANDLE 2
#define GREATEST_PRIORITY (-5)

struct fk_stream *fk_stream_find(CUstream handle, bool own, CUresult *ret_why)
{
	struct fk_context *context = fk_context_current();
	struct fk_stream *stream;

	if ((uintptr_t)handle <= PER_THREAD_HANDLE) {
		*ret_why = FK_INVALID_CONTEXT;
		if (!context)
			return NULL;
		if ((uintptr_t)handle == PER_THREAD_HANDLE || (!handle && own))
			return fk_queue_per_thread(context);
		return fk_queue_legacy(context);
	}
	*ret_why = FK_INVALID_HANDLE;
	stream = fk_queue_find(handle);
	if (!stream)
		return NULL;
	*ret_why = FK_CONTEXT_IS_DESTROYED;
	return fk_context_valid(stream->context) ? stream : NULL;
}

/* ---- For the memory half ---- */

struct call {
	struct fk_op op;
	void (*what)(void *arg);
	void *arg;
};

static int run_call(struct fk_op *op)
{
	struct call *call = (struct call *)op;

	call->what(call->arg);
	return FK_OK;
}

static CUresult queue_call(CUstream handle, void (*what)(void *arg), void *arg, bool wait)
{
	struct fk_stream *stream;
	struct call *call;
	uint64_t seq;
	CUresult why;

	stream = fk_stream_find(handle, false, &why);
	if (!stream)
		return why;
	call = fk_op_new(sizeof(*call), run_call);
	call->op.always = true;		/* it may free something, or a thread waits for it */
	call->what = what;
	call->arg = arg;
	why = fk_enqueue(stream, &call->op, &seq);
	if (!why && wait)
		fk_wait_for(stream, seq);
	return why;
}

CUresult fk_stream_queue(CUstream stream, void (*what)(void *arg), void *arg)
{
	return queue_call(stream, what, arg, false);
}

CUresult fk_stream_run(CUstream stream, void (*what)(void *arg), void *arg)
{
	return queue_call(stream, what, arg, true);
}

void fk_stream_drain(struct fk_context *context)
{
	fk_wait_for_all(context);
}

void fk_stream_drain_all(void)
{
	fk_wait_for_all(NULL);
}

void fk_stream_context_gone(struct fk_context *context)
{
	fk_queue_end_context(context);
}

struct fk_context *fk_stream_context(CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, false, &why);

	return stream ? stream->context : NULL;
}

/* The threads themselves end with the process. */
void fk_stream_stop(void)
{
	fk_queue_stop();
}

/* ---- Functions of the driver ---- */

static CUresult create(CUstream *ret_stream, unsigned int flags, int priority)
{
	struct fk_stream *stream;

	if (!ret_stream || flags > 1)
		return FK_INVALID_VALUE;
	stream = fk_queue_new(fk_context_current(),
			      flags ? FK_STREAM_NON_BLOCKING : FK_STREAM_BLOCKING);
	if (priority > 0)
		priority = 0;
	stream->priority = priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
	*ret_stream = (CUstream)stream;
	return FK_OK;
}

FK_DEFINE(cuStreamCreate, 2000, cuStreamCreate, FK_CONTEXT, CUstream *ret_stream,
	  unsigned int flags)
{
	FK_ENTER(cuStreamCreate);
	return create(ret_stream, flags, 0);
}

FK_DEFINE(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority, FK_CONTEXT,
	  CUstream *ret_stream, unsigned int flags, int priority)
{
	FK_ENTER(cuStreamCreateWithPriority);
	return create(ret_stream, flags, priority);
}

FK_DEFINE(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange, FK_CONTEXT,
	  int *ret_least, int *ret_greatest)
{
	FK_ENTER(cuCtxGetStreamPriorityRange);
	if (ret_least)
		*ret_least = 0;
	if (ret_greatest)
		*ret_greatest = GREATEST_PRIORITY;
	return FK_OK;
}

static CUresult destroy(CUstream handle)
{
	struct fk_stream *stream = fk_queue_find(handle);

	if (!stream)
		return FK_INVALID_HANDLE;
	fk_capture_forget(stream);
	fk_queue_close(stream);
	return FK_OK;
}

FK_DEFINE(cuStreamDestroy, 2000, cuStreamDestroy, FK_INIT, CUstream handle)
{
	FK_ENTER(cuStreamDestroy);
	return destroy(handle);
}

FK_DEFINE(cuStreamDestroy, 4000, cuStreamDestroy_v2, FK_INIT, CUstream handle)
{
	FK_ENTER(cuStreamDestroy_v2);
	return destroy(handle);
}

static CUresult query(bool own, CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	why = fk_capture_spoil(stream);
	if (why)
		return why;
	return fk_is_idle(stream) ? FK_OK : FK_NOT_READY;
}

static int nothing(struct fk_op *op)
{
	return FK_OK;
}

/* The legacy stream's own operations may all be over while those that it waits for are not. */
static CUresult synchronize(bool own, CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct fk_op *mark;

	if (!stream)
		return why;
	why = fk_capture_spoil(stream);
	if (why)
		return why;
	if (fk_is_idle(stream))
		return fk_sticky();
	if (stream->kind == FK_STREAM_LEGACY) {
		mark = fk_op_new(sizeof(*mark), nothing);
		fk_wait_for(stream, fk_submit(stream, mark));
	} else {
		fk_wait_for(stream, fk_submitted(stream));
	}
	return fk_sticky();
}

FK_DEFINE_BOTH(cuStreamQuery, 2000, cuStreamQuery, cuStreamQuery_ptsz,
	       FK_WORK | FK_UNSAFE, query, (CUstream handle), (handle))
FK_DEFINE_BOTH(cuStreamSynchronize, 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz,
	       FK_WORK | FK_UNSAFE, synchronize, (CUstream handle), (handle))

static CUresult get_context(bool own, CUstream handle, CUcontext *ret_context)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	if (!ret_context)
		return FK_INVALID_VALUE;
	*ret_context = stream->context;
	return FK_OK;
}

static CUresult get_context_v2(bool own, CUstream handle, CUcontext *ret_context, void **ret_green)
{
	if (ret_green)
		*ret_green = NULL;
	return get_context(own, handle, ret_context);
}

FK_DEFINE_BOTH(cuStreamGetCtx, 9020, cuStreamGetCtx, cuStreamGetCtx_ptsz, FK_WORK, get_context,
	       (CUstream handle, CUcontext *ret_context), (handle, ret_context))
FK_DEFINE_BOTH(cuStreamGetCtx, 12050, cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz, FK_WORK,
	       get_context_v2, (CUstream handle, CUcontext *ret_context, void **ret_green),
	       (handle, ret_context, ret_green))

static CUresult get_device(bool own, CUstream handle, CUdevice *ret_device)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	if (!ret_device)
		return FK_INVALID_VALUE;
	*ret_device = stream->context->device->ordinal;
	return FK_OK;
}

static CUresult get_flags(bool own, CUstream handle, unsigned int *ret_flags)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	if (!ret_flags)
		return FK_INVALID_VALUE;
	*ret_flags = stream->kind == FK_STREAM_NON_BLOCKING;
	return FK_OK;
}

static CUresult get_priority(bool own, CUstream handle, int *ret_priority)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	if (!ret_priority)
		return FK_INVALID_VALUE;
	*ret_priority = stream->priority;
	return FK_OK;
}

static CUresult get_id(bool own, CUstream handle, unsigned long long *ret_id)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);

	if (!stream)
		return why;
	if (!ret_id)
		return FK_INVALID_VALUE;
	*ret_id = stream->id;
	return FK_OK;
}

FK_DEFINE_BOTH(cuStreamGetDevice, 12080, cuStreamGetDevice, cuStreamGetDevice_ptsz, FK_WORK,
	       get_device, (CUstream handle, CUdevice *ret_device), (handle, ret_device))
FK_DEFINE_BOTH(cuStreamGetFlags, 5050, cuStreamGetFlags, cuStreamGetFlags_ptsz, FK_WORK, get_flags,
	       (CUstream handle, unsigned int *ret_flags), (handle, ret_flags))
FK_DEFINE_BOTH(cuStreamGetPriority, 5050, cuStreamGetPriority, cuStreamGetPriority_ptsz, FK_WORK,
	       get_priority, (CUstream handle, int *ret_priority), (handle, ret_priority))
FK_DEFINE_BOTH(cuStreamGetId, 12000, cuStreamGetId, cuStreamGetId_ptsz, FK_WORK, get_id,
	       (CUstream handle, unsigned long long *ret_id), (handle, ret_id))

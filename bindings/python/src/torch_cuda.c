// SPDX-License-Identifier: MIT
/*
 * Tensors of GPUs between processes. Memory of xmem's allocator is already in a pool. Other memory
 * of torch is attached, and its storage is kept until no process has the memory any more
 * (later.c).
 *
 * No side waits in its thread for the work of a stream. Memory that is attached is complete when
 * the sender's stream gets there. Memory that is in a pool already goes with a *fence*: a small
 * buffer of the GPU that the sender publishes on its stream, and for which the receiver's stream
 * waits.
 */
#include "core.h"
#include "dlpack.h"
#include "torch.h"

#include <stdlib.h>
#include <xmem/stream.h>

#define FENCE_BYTES	512

static struct xt_pool *pool_at(int number)
{
	struct xt_pool *pool = xt_pool_at(number);

	if (!pool)
		PyErr_Format(PyExc_ValueError, "this process has no pool number %d", number);
	return pool;
}

/*
 * Publish to nobody what @stream has yet to write, and set one reference aside. The buffer goes in
 * any case. The token; 0: the last error says why.
 */
static uint64_t offer(struct xmem_buffer *buffer, void *stream)
{
	struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		.stream = stream ? stream : (void *)1,	/* CU_STREAM_LEGACY */
	};
	uint64_t token = 0;

	if (xmem_publish(buffer, &keep, &token) < 0 ||
	    xmem_offer(buffer, 1, xt_in_flight()) < 0)
		token = 0;
	xmem_release(buffer);
	return token;
}

/* ---- the sender ---- */

/* The calls of Python for memory that comes back belong to the interpreter. NULL: an exception. */
static struct xp_later *later(void)
{
	PyObject *module = PyImport_ImportModule("xmem._core");
	struct xp_state *state = module ? PyModule_GetState(module) : NULL;

	Py_XDECREF(module);		/* the interpreter keeps it */
	return state ? state->later : NULL;
}

PyObject *xt_cuda_share(PyObject *module, PyObject *args)
{
	unsigned long long address, stream, storage;
	struct xmem_buffer *buffer = NULL;
	struct xmem_pool *handle;
	PyObject *kept, *call;
	struct xp_later *calls;
	struct xp_done *done;
	struct xt_pool *pool;
	Py_ssize_t bytes;
	uint64_t token = 0;
	int number;

	if (!PyArg_ParseTuple(args, "iKnKOKO:cuda_share", &number, &address, &bytes, &stream,
			      &kept, &storage, &call))
		return NULL;
	pool = pool_at(number);
	calls = pool ? later() : NULL;
	done = calls ? xp_done_new(calls, call, kept, (void *)(uintptr_t)storage) : NULL;
	if (!done)
		return NULL;
	xmem_clear_last_error();
	Py_BEGIN_ALLOW_THREADS
	handle = xt_pool_handle(pool);
	if (handle)
		buffer = xmem_attach_cuda(handle, (void *)(uintptr_t)address, bytes, 0,
					  xp_done_tell, done);
	if (buffer)
		token = offer(buffer, (void *)(uintptr_t)stream);
	Py_END_ALLOW_THREADS
	if (token)
		return PyLong_FromUnsignedLongLong(token);
	xt_raise(module);
	if (!buffer)			/* otherwise the memory comes back by itself */
		xp_done_drop(done);
	return NULL;
}

/*
 * A reference without a handle lasts ten seconds only. So it becomes a handle, which sets one aside
 * for as long as it should.
 */
static bool again(struct xt_pool *pool, uint64_t token)
{
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer;
	bool offered;

	if (!handle || xmem_add_ref(handle, token))
		return false;
	buffer = xmem_get(handle, token);
	offered = buffer && !xmem_offer(buffer, 1, xt_in_flight());
	xmem_release(buffer);
	return offered;
}

PyObject *xt_cuda_again(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xt_pool *pool;
	bool offered;
	int number;

	if (!PyArg_ParseTuple(args, "iK:cuda_again", &number, &token))
		return NULL;
	pool = pool_at(number);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	offered = again(pool, token);
	xmem_clear_last_error();
	Py_END_ALLOW_THREADS
	return PyBool_FromLong(offered);
}

PyObject *xt_cuda_fence(PyObject *module, PyObject *args)
{
	struct xmem_buffer *buffer;
	unsigned long long stream;
	struct xt_pool *pool;
	uint64_t token;
	int number, device;

	if (!PyArg_ParseTuple(args, "iiK:cuda_fence", &number, &device, &stream))
		return NULL;
	pool = pool_at(number);
	if (!pool)
		return NULL;
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		buffer = xt_cuda_acquire(pool, FENCE_BYTES, device);
		token = buffer ? offer(buffer, (void *)(uintptr_t)stream) : 0;
		Py_END_ALLOW_THREADS
		if (token)
			return PyLong_FromUnsignedLongLong(token);
	} while (xt_again(module));
	return NULL;
}

PyObject *xt_cuda_collect(PyObject *module, PyObject *args)
{
	struct xmem_pool *handle;
	struct xp_later *calls;
	struct xt_pool *pool;
	int number;

	if (!PyArg_ParseTuple(args, "i:cuda_collect", &number))
		return NULL;
	pool = pool_at(number);
	calls = pool ? later() : NULL;
	if (!calls)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	handle = xt_pool_handle(pool);
	if (handle)
		xmem_collect(handle, XMEM_KEEP_ALL, NULL);
	xmem_clear_last_error();
	Py_END_ALLOW_THREADS
	xp_later_run(calls);
	Py_RETURN_NONE;
}

/*
 * torch's allocator calls this through limbo.cpp, in any thread, when it has no block that fits. It
 * holds its lock, which a thread with the GIL may wait for. So nothing here takes the GIL: @empty
 * frees the memory of storages that have come back, and their objects go later. No pool here has a
 * limbo hook, which would take the GIL. Returns whether torch has got a block.
 */
static bool make_room(bool (*empty)(void *storage))
{
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number;

	if (!xp_later_has_storages())
		return false;
	for (number = 0; (pool = xt_pool_at(number)); number++) {
		handle = xt_pool_handle(pool);
		if (handle)
			xmem_collect(handle, XMEM_KEEP_ALL, NULL);
	}
	xmem_clear_last_error();
	return xp_later_empty(empty);
}

PyObject *xt_cuda_room(PyObject *module, PyObject *unused)
{
	return PyLong_FromVoidPtr((void *)make_room);
}

/* ---- the receiver ---- */

/* The stream that a function of torch gives for a device; -1: an exception. */
static int stream_of(PyObject *streams, int device, void **ret)
{
	PyObject *number = PyObject_CallFunction(streams, "i", device);

	*ret = number ? PyLong_AsVoidPtr(number) : NULL;
	Py_XDECREF(number);
	return PyErr_Occurred() ? -1 : 0;
}

/* The buffer becomes a hold when @stream is to wait for it. NULL: the last error says why. */
static struct xt_hold *order(struct xt_pool *pool, struct xmem_buffer *buffer, int device,
			     void *stream)
{
	const void *address = xmem_wait_on(buffer, stream) ? NULL : xmem_cuda_ptr(buffer);
	struct xt_hold *hold = address ? xt_hold_new(pool, buffer, (void *)address, false) : NULL;

	if (!hold)
		return NULL;
	hold->stream = stream;
	hold->dlpack.device_type = xp_dl_gpu();
	hold->dlpack.device_id = device;
	return hold;
}

/* The buffer of a token, and its GPU. NULL with an exception. */
static struct xmem_buffer *get(PyObject *module, struct xt_pool *pool, uint64_t token,
			       int *ret_device)
{
	struct xmem_pool *handle;
	struct xmem_buffer *buffer;

	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		handle = xt_pool_handle(pool);
		buffer = handle ? xmem_get(handle, token) : NULL;
		*ret_device = buffer ? xmem_cuda_device(buffer) : -1;
		if (buffer && *ret_device < 0) {
			xmem_release(buffer);
			buffer = NULL;
		}
		Py_END_ALLOW_THREADS
		if (buffer)
			return buffer;
	} while (xt_again(module));
	return NULL;
}

PyObject *xt_cuda_get(PyObject *module, PyObject *args)
{
	struct xt_hold *hold = NULL;
	struct xmem_buffer *buffer;
	unsigned long long token;
	PyObject *streams, *capsule;
	struct xt_pool *pool;
	int number, device;
	Py_ssize_t bytes;
	void *stream;

	if (!PyArg_ParseTuple(args, "iKO:cuda_get", &number, &token, &streams))
		return NULL;
	pool = pool_at(number);
	buffer = pool ? get(module, pool, token, &device) : NULL;
	if (!buffer)
		return NULL;
	if (!stream_of(streams, device, &stream))
		do {
			xmem_clear_last_error();
			Py_BEGIN_ALLOW_THREADS
			hold = order(pool, buffer, device, stream);
			Py_END_ALLOW_THREADS
		} while (!hold && xt_again(module));
	if (!hold) {
		xp_release_on(buffer, NULL);
		return NULL;
	}
	bytes = hold->bytes;
	capsule = xt_capsule(&hold->dlpack);
	return capsule ? Py_BuildValue("Nin", capsule, device, bytes) : NULL;
}

PyObject *xt_cuda_wait(PyObject *module, PyObject *args)
{
	unsigned long long token, stream;
	struct xmem_buffer *buffer;
	struct xt_pool *pool;
	int number, device, err;

	if (!PyArg_ParseTuple(args, "iKK:cuda_wait", &number, &token, &stream))
		return NULL;
	pool = pool_at(number);
	buffer = pool ? get(module, pool, token, &device) : NULL;
	if (!buffer)
		return NULL;
	do {
		Py_BEGIN_ALLOW_THREADS
		err = xmem_wait_on(buffer, (void *)(uintptr_t)stream);
		Py_END_ALLOW_THREADS
	} while (err && xt_again(module));
	Py_BEGIN_ALLOW_THREADS
	if (xmem_release_on(buffer, (void *)(uintptr_t)stream))
		xmem_release(buffer);
	Py_END_ALLOW_THREADS
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

PyObject *xt_cuda_use(PyObject *module, PyObject *args)
{
	struct xt_pool *pool;
	int number;

	if (!PyArg_ParseTuple(args, "i:cuda_use", &number))
		return NULL;
	pool = pool_at(number);
	if (!pool)
		return NULL;
	xt_cuda_allocate_from(pool);
	Py_RETURN_NONE;
}

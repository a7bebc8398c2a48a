// SPDX-License-Identifier: MIT
/*
 * Buffers on GPUs: making and acquiring them, and where they are. Each of these calls may start the
 * driver, open memory or wait for a GPU, so none keeps the GIL.
 */
#include "core.h"

PyObject *xp_pool_cuda_preallocate(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "count", "nbytes", "device", "flags", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	uint32_t count, flags = 0;
	struct xmem_pool *pool;
	int device = 0, err;
	size_t bytes;

	if (!xp_parse(args, kwargs, "O&O&|iO&:_cuda_preallocate", names, xp_u32,
		      &count, xp_size, &bytes, &device, xp_u32, &flags))
		return NULL;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return NULL;
		XP_BEGIN_CUDA
		err = xmem_preallocate_cuda(pool, count, bytes, device, flags);
		xp_pool_end(self);
		XP_END_CUDA
		if (!err)
			Py_RETURN_NONE;
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

PyObject *xp_pool_cuda_acquire(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "nbytes", "device", "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	size_t bytes = 0;
	int device = 0;

	if (!xp_parse(args, kwargs, "|O&iO&:_cuda_acquire", names, xp_size,
		      &bytes, &device, xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	for (pool = xp_pool_begin(self); pool; pool = xp_pool_again(self, until, &timeout_ns)) {
		xmem_cuda_clear_last_result();
		XP_BEGIN_HOOKED
		buffer = xmem_acquire_cuda(pool, bytes, device, timeout_ns);
		xp_pool_end(self);
		XP_END_HOOKED
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	}
	return NULL;
}

/* ---- addresses ---- */

int xp_guard_cuda_address(struct xp_guard *self, bool mutable, const void **ret)
{
	struct xmem_buffer *buffer;

	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		XP_BEGIN_CUDA
		*ret = mutable ? xmem_cuda_ptr_mut(buffer) : xmem_cuda_ptr(buffer);
		XP_END_CUDA
		xp_guard_end(self);
		if (*ret)
			return 0;
	}
	return -1;
}

PyObject *xp_guard_get_cuda_ptr(PyObject *object, void *unused)
{
	const void *at;

	return xp_guard_cuda_address((struct xp_guard *)object, false, &at) ? NULL :
	       PyLong_FromVoidPtr((void *)at);
}

PyObject *xp_guard_get_cuda_ptr_mut(PyObject *object, void *unused)
{
	const void *at;

	return xp_guard_cuda_address((struct xp_guard *)object, true, &at) ? NULL :
	       PyLong_FromVoidPtr((void *)at);
}

PyObject *xp_guard_get_cuda_device(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_begin(self);
	int device;

	if (!buffer)
		return NULL;
	XP_BEGIN_CUDA
	device = xmem_cuda_device(buffer);
	XP_END_CUDA
	xp_guard_end(self);
	return device < 0 ? xp_raise(self->state) : PyLong_FromLong(device);
}

PyObject *xp_guard_get_is_cuda(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return xp_guard_look(self) ? PyBool_FromLong(self->cuda) : NULL;
}

// SPDX-License-Identifier: MIT
/*
 * Buffers on GPUs: acquiring them, and their addresses. Each of these calls may start the driver,
 * open memory or wait for a GPU, so all of them release the GIL.
 */
#include "core.h"

PyObject *xp_pool_cuda_acquire(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "size", "device_id", "timeout", NULL };
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
		xmem_clear_last_error();
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

PyObject *xp_guard_get_device_id(PyObject *object, void *unused)
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

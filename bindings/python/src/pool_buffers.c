// SPDX-License-Identifier: MIT
/*
 * Pool: making buffers, and acquiring them for writing.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SLOTS	(1u << 17)	/* more than any pool has */

/* On the CPU, or on a GPU with XMEM_MEMORY_CUDA. Returns a list of their slots. */
PyObject *xp_pool_preallocate(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "size", "count", "flags", "device_id", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_preallocate_options options = XMEM_INIT(options);
	PyObject *list = NULL, *slot;
	struct xmem_pool *pool;
	uint32_t count, i;
	uint64_t bytes;
	int err;

	if (!xp_parse(args, kwargs, "O&O&O&|i:_preallocate", names, xp_token, &bytes, xp_u32,
		      &count, xp_u32, &options.flags, &options.device_id))
		return NULL;
	/* The library refuses larger numbers before it uses the array. */
	options.ret_slots = calloc(count < MOST_SLOTS ? count + 1 : 1, sizeof(*options.ret_slots));
	if (!options.ret_slots)
		return PyErr_NoMemory();
	do {
		pool = xp_pool_begin(self);
		err = pool ? 0 : -1;
		if (err)
			break;
		XP_BEGIN_CUDA
		err = xmem_preallocate(pool, bytes, count, &options);
		xp_pool_end(self);
		XP_END_CUDA
	} while (err && xp_again(self->state, XMEM_FOREVER, NULL));
	list = err ? NULL : PyList_New(count);
	for (i = 0; list && i < count; i++) {
		slot = PyLong_FromUnsignedLong(options.ret_slots[i]);
		if (!slot || PyList_SetItem(list, i, slot))
			Py_CLEAR(list);
	}
	free(options.ret_slots);
	return list;
}

/*
 * Clear the description of earlier contents. A C program either describes its contents or ignores
 * descriptions; in Python each view uses the description.
 */
static void say_nothing(struct xmem_buffer *buffer)
{
	static const struct xmem_metadata nothing;
	struct xmem_metadata *metadata = xmem_metadata_mut(buffer);

	if (metadata && memcmp(metadata, &nothing, sizeof(nothing)))
		*metadata = nothing;
}

PyObject *xp_pool_acquire(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "size", "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	size_t bytes = 0;

	if (!xp_parse(args, kwargs, "|O&O&:_acquire", names, xp_size, &bytes,
		      xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	for (pool = xp_pool_begin(self); pool; pool = xp_pool_again(self, until, &timeout_ns)) {
		XP_BEGIN_HOOKED
		buffer = xmem_acquire(pool, bytes, timeout_ns);
		if (buffer)
			say_nothing(buffer);
		xp_pool_end(self);
		XP_END_HOOKED
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	}
	return NULL;
}

PyObject *xp_pool_attach_fd(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "fd", "offset", "length", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	uint64_t offset = 0, length = 0;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	int fd;

	if (!xp_parse(args, kwargs, "O&|O&O&:attach_fd", names, xp_descriptor,
		      &fd, xp_token, &offset, xp_token, &length))
		return NULL;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_attach_fd(pool, fd, offset, length, 0);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

// SPDX-License-Identifier: MIT
/*
 * Attaching memory of a GPU that the program or one of its libraries has allocated. The package
 * interprets the objects (../xmem/cuda_pool.py). This file has the parts that need C: DLPack's
 * capsules, and the object that the memory belongs to, which is kept until the library no longer
 * needs it (later.c).
 */
#include "core.h"

PyObject *xp_pool_cuda_attach(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "ptr", "nbytes", "flags", "done", "kept", "stream", NULL };
	PyObject *call = Py_None, *kept = Py_None, *stream = Py_None, *result;
	struct xp_pool *self = (struct xp_pool *)object;
	struct xp_done *done = NULL;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint64_t at = 0;
	uint32_t flags = 0;
	void *on = NULL;
	size_t bytes;

	if (!xp_parse(args, kwargs, "O&O&|O&OOO:_cuda_attach", names, xp_token,
		      &at, xp_size, &bytes, xp_u32, &flags, &call, &kept,
		      &stream) ||
	    !xp_stream(stream, &on))
		return NULL;
	if (call != Py_None && !PyCallable_Check(call)) {
		PyErr_SetString(PyExc_TypeError, "done is None or a callable");
		return NULL;
	}
	if (call != Py_None || kept != Py_None) {
		done = xp_done_new(self->state->later, call == Py_None ? NULL : call,
				   kept == Py_None ? NULL : kept, NULL);
		if (!done)
			return NULL;
	}
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			break;
		XP_BEGIN_CUDA
		buffer = xmem_attach_cuda(pool, (void *)(uintptr_t)at, bytes, flags,
					  done ? xp_done_tell : NULL, done);
		xp_pool_end(self);
		XP_END_CUDA
		if (!buffer)
			continue;
		result = xp_guard_new(self->state, object, buffer, XP_WRITING);
		if (result && stream != Py_None) {
			xp_guard_order((struct xp_guard *)result, on);
			((struct xp_guard *)result)->attached_on = true;
		}
		xp_later_run(self->state->later);
		return result;
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	xp_done_drop(done);
	return NULL;
}

/* ---- DLPack ---- */

/* The part of a capsule of DLPack 1.x that is read here. */
struct tensor {
	void *data;
	int32_t device_type, device;
	int32_t ndim;
	uint32_t dtype;			/* its bits are those of XMEM_DTYPE */
	const int64_t *shape, *strides;	/* elements; strides may be NULL */
	uint64_t byte_offset;
};

struct versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(void *self);
	uint64_t flags;
	struct tensor tensor;
};

static PyObject *numbers(const int64_t *from, int count)
{
	PyObject *tuple = PyTuple_New(count), *number;
	int i;

	for (i = 0; tuple && i < count; i++) {
		number = PyLong_FromLongLong(from[i]);
		if (number)
			PyTuple_SetItem(tuple, i, number);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

/* dlpack_look(capsule) -> (ptr, device type, device, dtype number, shape, element strides) */
PyObject *xp_dlpack_look(PyObject *module, PyObject *capsule)
{
	const struct tensor *tensor = NULL;
	PyObject *shape, *strides;

	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		const struct versioned *versioned = PyCapsule_GetPointer(capsule,
									 "dltensor_versioned");

		if (versioned->major != 1) {
			PyErr_Format(PyExc_BufferError, "DLPack %u is not known here",
				     versioned->major);
			return NULL;
		}
		tensor = &versioned->tensor;
	} else if (PyCapsule_IsValid(capsule, "dltensor")) {
		tensor = PyCapsule_GetPointer(capsule, "dltensor");
	} else {
		PyErr_SetString(PyExc_TypeError, "__dlpack__ gives no capsule of a tensor");
		return NULL;
	}
	shape = numbers(tensor->shape, tensor->ndim);
	strides = tensor->strides ? numbers(tensor->strides, tensor->ndim) : Py_NewRef(Py_None);
	if (!shape || !strides) {
		Py_XDECREF(shape);
		Py_XDECREF(strides);
		return NULL;
	}
	return Py_BuildValue("KiiINN", (unsigned long long)(uintptr_t)tensor->data +
			     tensor->byte_offset, (int)tensor->device_type, (int)tensor->device,
			     (unsigned int)tensor->dtype, shape, strides);
}

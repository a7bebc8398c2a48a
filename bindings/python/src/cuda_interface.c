// SPDX-License-Identifier: MIT
/*
 * The contents of a GPU's buffer for other libraries: __cuda_array_interface__, version 3, and the
 * checked views of tensors and images.
 *
 * A consumer of the interface keeps a reference only to the object that gave it the address. So
 * from then on the guard keeps its handle until the guard object ends, also if it is released or
 * published before that. The contents that the consumer sees stay as they are.
 */
#include <string.h>

#include "core.h"

static const char *typestr(uint32_t dtype)
{
	switch (dtype) {
	case XMEM_DTYPE_NONE: return "|u1";
	case XMEM_DTYPE_INT8: return "|i1";
	case XMEM_DTYPE_INT16: return "<i2";
	case XMEM_DTYPE_INT32: return "<i4";
	case XMEM_DTYPE_INT64: return "<i8";
	case XMEM_DTYPE_UINT8: return "|u1";
	case XMEM_DTYPE_UINT16: return "<u2";
	case XMEM_DTYPE_UINT32: return "<u4";
	case XMEM_DTYPE_UINT64: return "<u8";
	case XMEM_DTYPE_FLOAT16: return "<f2";
	case XMEM_DTYPE_FLOAT32: return "<f4";
	case XMEM_DTYPE_FLOAT64: return "<f8";
	case XMEM_DTYPE_COMPLEX64: return "<c8";
	case XMEM_DTYPE_COMPLEX128: return "<c16";
	case XMEM_DTYPE_BOOL: return "|b1";
	default: return NULL;
	}
}

/* The interface's number of the stream on which contents are ordered; None: they are complete. */
static PyObject *stream_number(const struct xp_guard *self)
{
	if (!self->ordered)
		return Py_NewRef(Py_None);
	return self->stream ? PyLong_FromVoidPtr(self->stream) : PyLong_FromLong(1);
}

PyObject *xp_guard_get_cuda_array_interface(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *shape, *strides, *stream;
	const void *at = NULL;
	const char *type;
	bool writable;

	if (!xp_guard_look(self))
		return NULL;
	if (!self->cuda) {
		PyErr_SetString(PyExc_AttributeError, "these contents are in memory of the CPU: "
				"they have no __cuda_array_interface__");
		return NULL;
	}
	writable = self->mode == XP_WRITING &&
		   !(self->flags & XMEM_BUFFER_ATTACHED);
	if (xp_guard_cuda_address(self, writable, &at) || !xp_guard_look(self) ||
	    xp_guard_cuda_view(self))
		return NULL;
	writable = writable && self->mode == XP_WRITING;	/* it may have been published */
	self->lent = true;
	type = typestr(self->view.dtype);
	if (!type) {
		PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__ has no type of "
			     "elements for number %u: use DLPack", self->view.dtype);
		return NULL;
	}
	if (!self->view.bytes)
		at = NULL;		/* as the interface requires without elements */
	shape = xp_tuple(self->view.shape, self->view.ndim);
	strides = self->view.dense ? Py_NewRef(Py_None) :
		  xp_tuple(self->view.strides, self->view.ndim);
	stream = stream_number(self);
	if (!shape || !strides || !stream) {
		Py_XDECREF(shape);
		Py_XDECREF(strides);
		Py_XDECREF(stream);
		return NULL;
	}
	return Py_BuildValue("{s:N,s:s,s:(KO),s:N,s:N,s:i}", "shape", shape, "typestr", type,
			     "data", (unsigned long long)(uintptr_t)at,
			     writable ? Py_False : Py_True, "strides", strides, "stream", stream,
			     "version", 3);
}

/* ---- the checked views ---- */

PyObject *xp_guard_cuda_tensor_view(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	Py_ssize_t shape[XMEM_MAX_DIMENSIONS], strides[XMEM_MAX_DIMENSIONS];
	struct xmem_buffer *buffer;
	uint32_t i;
	int err;

	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		XP_BEGIN_CUDA
		err = xmem_cuda_device(buffer);		/* EMEDIUMTYPE on the CPU */
		if (err >= 0)
			err = xmem_tensor_view(buffer, XMEM_VIEW_CUDA, &tensor);
		XP_END_CUDA
		xp_guard_end(self);
		if (!err)
			break;
	}
	if (!buffer)
		return NULL;
	for (i = 0; i < tensor.ndim; i++) {
		shape[i] = tensor.shape[i];
		strides[i] = tensor.strides[i];
	}
	return Py_BuildValue("KINN", (unsigned long long)(uintptr_t)tensor.data, tensor.dtype,
			     xp_tuple(shape, tensor.ndim),
			     xp_tuple(strides, tensor.ndim));
}

static PyObject *planes(const struct xmem_image *image)
{
	PyObject *list = PyTuple_New(image->planes), *plane;
	uint32_t i;

	for (i = 0; list && i < image->planes; i++) {
		plane = Py_BuildValue("KnII",
				      (unsigned long long)(uintptr_t)image->plane[i].data,
				      (Py_ssize_t)image->plane[i].stride,
				      image->plane[i].row_bytes, image->plane[i].rows);
		if (plane)
			PyTuple_SetItem(list, i, plane);
		else
			Py_CLEAR(list);
	}
	return list;
}

PyObject *xp_guard_cuda_image_view(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_buffer *buffer;
	int err;

	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		XP_BEGIN_CUDA
		err = xmem_cuda_device(buffer);
		if (err >= 0)
			err = xmem_image_view(buffer, XMEM_VIEW_CUDA, &image);
		XP_END_CUDA
		xp_guard_end(self);
		if (!err)
			return Py_BuildValue("IIIN", image.format, image.width, image.height,
					     planes(&image));
	}
	return NULL;
}

// SPDX-License-Identifier: MIT
/*
 * What the contents of a guard are, and the buffer protocol. Contents that nobody has described are
 * bytes. The look at them is checked by the library and made once: views share its arrays, which
 * stay as they are while one of them is alive.
 */
#include "core.h"

const char *xp_format(uint32_t dtype)
{
	switch (dtype) {
	case XMEM_DTYPE_NONE: return "B";
	case XMEM_DTYPE_INT8: return "b";
	case XMEM_DTYPE_INT16: return "h";
	case XMEM_DTYPE_INT32: return "i";
	case XMEM_DTYPE_INT64: return "l";
	case XMEM_DTYPE_UINT8: return "B";
	case XMEM_DTYPE_UINT16: return "H";
	case XMEM_DTYPE_UINT32: return "I";
	case XMEM_DTYPE_UINT64: return "L";
	case XMEM_DTYPE_FLOAT16: return "e";
	case XMEM_DTYPE_FLOAT32: return "f";
	case XMEM_DTYPE_FLOAT64: return "d";
	case XMEM_DTYPE_COMPLEX64: return "Zf";
	case XMEM_DTYPE_COMPLEX128: return "Zd";
	case XMEM_DTYPE_BOOL: return "?";
	default: return NULL;
	}
}

void xp_guard_view_changed(struct xp_guard *self)
{
	self->view.data = NULL;
}

static void look_at_bytes(struct xp_view *view, size_t bytes)
{
	view->dtype = XMEM_DTYPE_NONE;
	view->ndim = 1;
	view->item_bytes = 1;
	view->bytes = view->shape[0] = bytes;
	view->strides[0] = 1;
	view->dense = true;
}

static void look_at_tensor(struct xp_view *view, const struct xmem_tensor *tensor)
{
	uint32_t i;

	view->dtype = tensor->dtype;
	view->ndim = tensor->ndim;
	view->item_bytes = tensor->item_bytes;
	view->bytes = tensor->elements * tensor->item_bytes;
	view->dense = tensor->flags & XMEM_TENSOR_DENSE;
	for (i = 0; i < tensor->ndim; i++) {
		view->shape[i] = tensor->shape[i];
		view->strides[i] = tensor->strides[i];
	}
}

/*
 * The first look maps the payload, which may ask the host; a later one does neither. So the GIL is
 * kept: a receive has mapped it already.
 */
int xp_guard_view(struct xp_guard *self)
{
	struct xmem_buffer *buffer = xp_guard_look(self);
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	const void *data;
	int err;

	if (!buffer)
		return -1;
	if (self->view.data)
		return 0;
	if (self->exports) {
		PyErr_SetString(PyExc_BufferError, "this guard has views from before its contents "
				"were described or published anew");
		return -1;
	}
	err = xmem_tensor_view(buffer, &tensor);
	if (err && err != -ENODATA)
		goto raise;
	data = self->mode == XP_WRITING ? xmem_data_mut(buffer) : NULL;
	if (!data)		/* an attached file is written by nobody, not even its writer */
		data = xmem_data(buffer);
	if (!data)
		goto raise;
	if (err)
		look_at_bytes(&self->view, xmem_size(buffer));
	else
		look_at_tensor(&self->view, &tensor);
	self->view.data = data;
	return 0;
raise:
	xp_raise(self->state);
	return -1;
}

/* ---- the buffer protocol ---- */

static int refuse(const char *why)
{
	PyErr_SetString(PyExc_BufferError, why);
	return -1;
}

int xp_guard_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct xp_guard *self = (struct xp_guard *)object;
	const struct xp_view *of = &self->view;
	bool readonly;
	const char *format;

	view->obj = NULL;
	if (xp_guard_view(self))
		return -1;
	readonly = self->mode != XP_WRITING ||
		   xmem_buffer_flags(self->buffer) & XMEM_BUFFER_ATTACHED;
	if (readonly && flags & PyBUF_WRITABLE)
		return refuse("these contents are read-only");
	format = xp_format(of->dtype);
	if (!format && flags & PyBUF_FORMAT)
		return refuse("Python has no format for this type of elements: use DLPack");
	if (!of->dense && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
		return refuse("the elements do not lie in one row, and the caller takes no strides");
	view->buf = (void *)of->data;
	view->len = of->bytes;
	view->itemsize = of->item_bytes;
	view->readonly = readonly;
	view->format = flags & PyBUF_FORMAT ? (char *)format : NULL;
	view->ndim = flags & PyBUF_ND ? of->ndim : 1;
	view->shape = flags & PyBUF_ND ? (Py_ssize_t *)of->shape : NULL;
	view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? (Py_ssize_t *)of->strides : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	Py_INCREF(object);
	view->obj = object;
	self->exports++;
	return 0;
}

void xp_guard_releasebuffer(PyObject *object, Py_buffer *view)
{
	struct xp_guard *self = (struct xp_guard *)object;

	self->users++;		/* the end below drops the handle if this was the last view */
	self->exports--;
	xp_guard_end(self);
}

/* ---- as properties ---- */

static PyObject *tuple(const Py_ssize_t *numbers, int count)
{
	PyObject *tuple = PyTuple_New(count), *number;
	int i;

	for (i = 0; tuple && i < count; i++) {
		number = PyLong_FromSsize_t(numbers[i]);
		if (number)
			PyTuple_SetItem(tuple, i, number);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

PyObject *xp_guard_get_shape(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return xp_guard_view(self) ? NULL : tuple(self->view.shape, self->view.ndim);
}

PyObject *xp_guard_get_strides(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return xp_guard_view(self) ? NULL : tuple(self->view.strides, self->view.ndim);
}

PyObject *xp_guard_get_dtype(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return xp_guard_view(self) ? NULL : PyLong_FromUnsignedLong(self->view.dtype);
}

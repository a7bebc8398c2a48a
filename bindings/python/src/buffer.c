// SPDX-License-Identifier: MIT
/*
 * Guard: the buffer protocol, which lends the contents as they lie.
 */
#include "core.h"

static int refuse(const char *why)
{
	PyErr_SetString(PyExc_BufferError, why);
	return -1;
}

/* A consumer that takes no strides also needs dense elements. */
static bool wants_c_order(int flags)
{
	return (flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
	       (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
	       (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
}

static bool is_f_order(const struct xp_view *view)
{
	Py_ssize_t bytes = view->item_bytes;
	int i;

	for (i = 0; i < view->ndim; i++) {
		if (view->shape[i] > 1 && view->strides[i] != bytes)
			return !view->bytes;
		bytes *= view->shape[i];
	}
	return true;
}

int xp_guard_lend(struct xp_guard *self, PyObject *owner, const struct xp_view *of, size_t offset,
		  Py_buffer *view, int flags)
{
	bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
	const char *format = xp_format(of->dtype);
	bool readonly = xp_guard_readonly(self);
	void *contents = (void *)self->view.data;

	if (readonly && flags & PyBUF_WRITABLE) {
		self->distrust = true;
		return refuse("these contents are read-only");
	}
	if (!format && flags & PyBUF_FORMAT)
		return refuse("Python has no format for this type of elements: use DLPack, "
			      "or tobytes()");
	if (!of->dense && wants_c_order(flags))
		return refuse("the elements are not contiguous, and the caller wants them so");
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_f_order(of))
		return refuse("the first index does not vary fastest, and the caller wants it so");
	view->len = of->bytes;
	view->itemsize = of->item_bytes;
	view->readonly = readonly;
	view->format = flags & PyBUF_FORMAT ? (char *)format : NULL;
	view->ndim = flags & PyBUF_ND ? of->ndim : 1;
	view->shape = flags & PyBUF_ND && of->ndim ? (Py_ssize_t *)of->shape : NULL;
	view->strides = strided && of->ndim ? (Py_ssize_t *)of->strides : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	if (readonly && self->distrust && flags == PyBUF_SIMPLE) {
		view->obj = xp_guard_private_capsule(self, &contents);
	} else {
		view->obj = Py_NewRef(owner);
		self->exports++;
	}
	view->buf = (char *)contents + offset;
	return view->obj ? 0 : -1;
}

static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
	struct xp_guard *self = (struct xp_guard *)object;

	view->obj = NULL;
	if (self->mode != XP_GONE && self->cuda)
		return refuse("these contents are on a GPU: use __cuda_array_interface__, DLPack "
			      "or copy_to_host()");
	if (xp_guard_view(self))
		return -1;
	return xp_guard_lend(self, object, &self->view, 0, view, flags);
}

int xp_guard_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	int err;

	XP_LOCK(self)
	err = get_buffer(self, view, flags);
	XP_UNLOCK
	return err;
}

void xp_guard_releasebuffer(PyObject *object, Py_buffer *view)
{
	struct xp_guard *self = (struct xp_guard *)object;

	XP_LOCK(self)
	self->users++;		/* the end drops the handle if this was the last view */
	self->exports--;
	xp_guard_end(self);
	XP_UNLOCK
}

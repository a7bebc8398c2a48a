// SPDX-License-Identifier: MIT
/*
 * Guard: numpy's array interface, version 3, for consumers that take no buffers, such as Pillow.
 *
 * If the interface gave an address, its consumer would keep the guard object alive, but the guard
 * could still be released. So it gives a Span, an object that has the bytes as a buffer. The Span
 * has a share of the hold, and the consumer keeps the Span.
 *
 * numpy asks for the interface after the buffer protocol has refused, and drops that error. The
 * user sees the error that is raised here.
 */
#include "core.h"

#include <string.h>

struct span {
	PyObject_HEAD
	struct xp_hold *hold;
	void *data;
	Py_ssize_t bytes;
	bool readonly;
};

static void span_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = PyType_GetSlot(type, Py_tp_free);
	struct xp_hold *hold = ((struct span *)object)->hold;

	if (hold) {			/* the last handle of a closed pool asks the host */
		Py_BEGIN_ALLOW_THREADS
		xp_hold_put(hold);
		Py_END_ALLOW_THREADS
	}
	free_object(object);
	Py_DECREF(type);
}

static int span_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct span *self = (struct span *)object;

	return PyBuffer_FillInfo(view, object, self->data, self->bytes, self->readonly, flags);
}

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, span_dealloc },
	{ Py_bf_getbuffer, span_getbuffer },
	{ Py_tp_doc, "Bytes of contents, which it holds." },
	{ 0, NULL }
};

PyType_Spec xp_span_spec = {
	.name = "xmem._core.Span",
	.basicsize = sizeof(struct span),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

/* All bytes from the first element to the end of the last one. */
static Py_ssize_t reach(const struct xp_view *view)
{
	Py_ssize_t bytes = view->item_bytes;
	int i;

	if (!view->bytes)
		return 0;
	for (i = 0; i < view->ndim; i++)
		bytes += (view->shape[i] - 1) * view->strides[i];
	return bytes;
}

PyObject *xp_guard_span(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct span *span = (struct span *)PyType_GenericAlloc(self->state->span, 0);

	if (!span)
		return NULL;
	/*
	 * This comes after a call that may let other threads change the guard, and before a look at
	 * it.
	 */
	span->hold = xp_guard_view(self) ? NULL : xp_guard_share(self);
	if (!span->hold) {
		Py_DECREF(span);
		return NULL;
	}
	span->data = (void *)self->view.data;
	span->bytes = reach(&self->view);
	span->readonly = xp_guard_readonly(self);
	return (PyObject *)span;
}

/* The byte order, the kind and the bytes of an element, as "<f4"; empty: numpy has no such type. */
static bool type_string(uint32_t dtype, Py_ssize_t item_bytes, char text[16])
{
	static const char kinds[] = {
		[XMEM_DTYPE_CODE_INT] = 'i', [XMEM_DTYPE_CODE_UINT] = 'u',
		[XMEM_DTYPE_CODE_FLOAT] = 'f', [XMEM_DTYPE_CODE_COMPLEX] = 'c',
		[XMEM_DTYPE_CODE_BOOL] = 'b',
	};

	if (!xp_format(dtype))
		return false;
	PyOS_snprintf(text, 16, "%c%c%d", item_bytes == 1 ? '|' : '<',
		      dtype ? kinds[XMEM_DTYPE_CODE(dtype)] : 'u', (int)item_bytes);
	return true;
}

PyObject *xp_guard_get_array_interface(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *shape, *strides, *span;
	char text[16];

	if (xp_guard_view(self))
		return NULL;
	/* After an AttributeError, numpy tries __array__, which knows more types. */
	if (!type_string(self->view.dtype, self->view.item_bytes, text)) {
		PyErr_SetString(PyExc_AttributeError, "numpy has no such type of elements");
		return NULL;
	}
	span = xp_guard_span(object, NULL);
	if (!span)
		return NULL;
	shape = xp_tuple(self->view.shape, self->view.ndim);
	if (!self->view.dense) {
		strides = xp_tuple(self->view.strides, self->view.ndim);
	} else {
		strides = Py_None;
		Py_INCREF(strides);
	}
	return Py_BuildValue("{sNsNsssNsi}", "shape", shape, "strides", strides, "typestr", text,
			     "data", span, "version", 3);
}

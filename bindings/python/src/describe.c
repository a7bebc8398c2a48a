// SPDX-License-Identifier: MIT
/*
 * Guard: what a writer says of the contents. The view of them is looked at anew afterwards, so
 * none may be alive.
 */
#include "core.h"

/* The handle of a guard that may be described; NULL with an exception. */
static struct xmem_buffer *describable(struct xp_guard *self)
{
	struct xmem_buffer *buffer = xp_guard_write(self);

	if (buffer && self->exports) {
		PyErr_SetString(PyExc_BufferError, "this guard has views of its contents as they "
				"were described before");
		return NULL;
	}
	return buffer;
}

static PyObject *described(struct xp_guard *self, int err)
{
	if (err)
		return xp_raise(self->state);
	xp_guard_view_changed(self);
	Py_RETURN_NONE;
}

PyObject *xp_guard_describe_tensor(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "dtype", "shape", "strides", NULL };
	int64_t dimensions[XMEM_MAX_DIMENSIONS], steps[XMEM_MAX_DIMENSIONS];
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *shape, *strides = Py_None;
	struct xmem_buffer *buffer;
	uint32_t dtype;
	int ndim;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O|O:describe_tensor", names, xp_u32,
					 &dtype, &shape, &strides))
		return NULL;
	buffer = describable(self);
	if (!buffer)
		return NULL;
	ndim = xp_dimensions(shape, dimensions);
	if (ndim < 0)
		return NULL;
	if (strides != Py_None) {
		int count = xp_dimensions(strides, steps);

		if (count < 0)
			return NULL;
		if (count != ndim) {
			PyErr_Format(PyExc_ValueError, "there are %d strides for %d dimensions",
				     count, ndim);
			return NULL;
		}
	}
	return described(self, xmem_describe_tensor(buffer, dtype, ndim, dimensions,
						    strides == Py_None ? NULL : steps));
}

PyObject *xp_guard_describe_image(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "format", "width", "height", "stride", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	uint32_t format, width, height;
	struct xmem_buffer *buffer;
	size_t stride = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&O&|O&:describe_image", names, xp_u32,
					 &format, xp_u32, &width, xp_u32, &height, xp_size,
					 &stride))
		return NULL;
	buffer = describable(self);
	return buffer ? described(self, xmem_describe_image(buffer, format, width, height, stride)) :
			NULL;
}

PyObject *xp_guard_describe_content(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "content_type", "producer", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	const char *content_type = NULL, *producer = NULL;
	struct xmem_buffer *buffer;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zz:describe_content", names, &content_type,
					 &producer))
		return NULL;
	buffer = xp_guard_write(self);
	return buffer ? xp_done(self->state,
				xmem_describe_content(buffer, content_type, producer)) : NULL;
}

PyObject *xp_guard_describe_time(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timestamp_ns", "clock", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer;
	const char *clock = NULL;
	uint64_t timestamp_ns;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|z:describe_time", names, xp_token,
					 &timestamp_ns, &clock))
		return NULL;
	buffer = xp_guard_write(self);
	return buffer ? xp_done(self->state, xmem_describe_time(buffer, timestamp_ns, clock)) :
			NULL;
}

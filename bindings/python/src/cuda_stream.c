// SPDX-License-Identifier: MIT
/*
 * Streams of GPUs: the objects that a program may give for a stream, and the order of a guard with
 * streams. None means no stream, and 0 the default stream of the buffer's GPU.
 */
#include "core.h"

/*
 * The attributes by which libraries give the handle of a stream. cuda.core has a method instead.
 * The handle may itself be an object (ctypes, cuda.bindings).
 */
static const char *const attributes[] = { "ptr", "cuda_stream", "handle", "value" };

static PyObject *attribute(PyObject *object, const char *name)
{
	PyObject *found = PyObject_GetAttrString(object, name);

	if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
		PyErr_Clear();
	return found;
}

/* (version, handle) of __cuda_stream__; NULL without an exception: it is no such object. */
static PyObject *by_protocol(PyObject *object)
{
	PyObject *method = attribute(object, "__cuda_stream__"), *pair, *handle = NULL;

	if (!method)
		return NULL;
	pair = PyCallable_Check(method) ? PyObject_CallNoArgs(method) : Py_NewRef(method);
	Py_DECREF(method);
	if (!pair)
		return NULL;
	if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2)
		handle = Py_NewRef(PyTuple_GetItem(pair, 1));
	else
		PyErr_SetString(PyExc_TypeError, "__cuda_stream__ gives no pair of a version and a "
				"stream");
	Py_DECREF(pair);
	return handle;
}

/* Is it a handle of bindings of the driver? Strings and fractions are not. */
static bool is_handle(PyObject *object, bool inner)
{
	PyObject *pointer = NULL;

	if (!PyType_GetSlot(Py_TYPE(object), Py_nb_int) || PyFloat_Check(object))
		return false;
	if (!inner)
		pointer = attribute(object, "getPtr");
	Py_XDECREF(pointer);
	return inner || pointer;
}

static int address(PyObject *object, void *ret, bool inner)
{
	size_t count = inner ? 1 : sizeof(attributes) / sizeof(attributes[0]), i;
	PyObject *found = inner ? NULL : by_protocol(object);
	uint64_t value = 0;
	int good;

	for (i = 0; !found && !PyErr_Occurred() && i < count; i++)
		found = attribute(object, inner ? "value" : attributes[i]);
	if (!found && !PyErr_Occurred() && is_handle(object, inner))
		found = PyNumber_Long(object);
	if (!found) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "a stream is an address, or an object with "
				     "__cuda_stream__, ptr, cuda_stream or handle, not %R",
				     object);
		return 0;
	}
	if (found == Py_None) {		/* ctypes gives None for NULL */
		good = 1;
	} else if (PyIndex_Check(found)) {
		good = xp_token(found, &value);
		*(void **)ret = (void *)(uintptr_t)value;
	} else {
		good = inner ? 0 : address(found, ret, true);
		if (inner)
			PyErr_Format(PyExc_TypeError, "%R is no address of a stream", found);
	}
	Py_DECREF(found);
	return good;
}

int xp_stream(PyObject *object, void *ret)
{
	uint64_t value = 0;

	*(void **)ret = NULL;
	if (object == Py_None)
		return 1;
	if (!PyIndex_Check(object))
		return address(object, ret, false);
	if (!xp_token(object, &value))
		return 0;
	*(void **)ret = (void *)(uintptr_t)value;
	return 1;
}

/* Convert a stream that must not be None: 1, or 0 with an exception. */
static int some_stream(PyObject *object, void *ret)
{
	if (object != Py_None)
		return xp_stream(object, ret);
	PyErr_SetString(PyExc_TypeError, "a stream is needed; 0 is the default stream");
	return 0;
}

void xp_guard_order(struct xp_guard *self, void *stream)
{
	if (self->attached_on)		/* the library does not know of that stream */
		return;
	self->stream = stream;
	self->ordered = true;
}

/* ---- waiting for contents ---- */

PyObject *xp_guard_wait(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timeout", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	int err;

	if (!xp_parse(args, kwargs, "|O&:wait", names, xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	do {
		buffer = xp_guard_begin(self);
		if (!buffer)
			return NULL;
		XP_BEGIN_CUDA
		err = xmem_wait_contents(buffer, timeout_ns);
		XP_END_CUDA
		xp_guard_end(self);
		if (!err)
			Py_RETURN_NONE;
	} while (xp_again(self->state, until, &timeout_ns));
	return NULL;
}

PyObject *xp_guard_wait_on(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer;
	void *stream;
	int err;

	if (!xp_parse(args, kwargs, "O&:wait_on", names, some_stream, &stream))
		return NULL;
	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		XP_BEGIN_CUDA
		err = xmem_wait_on(buffer, stream);
		XP_END_CUDA
		if (!err)
			xp_guard_order(self, stream);
		xp_guard_end(self);
		if (!err)
			Py_RETURN_NONE;
	}
	return NULL;
}

/* ---- releasing ---- */

/*
 * Views keep the guard's handle. So the stream drops a second handle, and the buffer is held until
 * both have gone.
 */
static PyObject *release_on(struct xp_guard *self, PyObject *object)
{
	struct xmem_buffer *buffer, *clone = NULL;
	bool viewed;
	void *stream;
	int err;

	if (!xp_stream(object, &stream))
		return NULL;
	buffer = xp_guard_take(self, &viewed);
	if (!buffer)
		return NULL;
	if (viewed && self->mode == XP_READING) {
		clone = xmem_clone(buffer);
		if (!clone) {
			xp_guard_back(self);
			return xp_raise(self->state);
		}
	}
	XP_BEGIN_CUDA
	err = xmem_release_on(clone ? clone : buffer, stream);
	XP_END_CUDA
	if (!err) {
		xp_guard_gone(self, viewed);
		Py_RETURN_NONE;
	}
	xp_guard_back(self);
	xp_raise(self->state);
	Py_BEGIN_ALLOW_THREADS
	xmem_release(clone);
	Py_END_ALLOW_THREADS
	return NULL;
}

/*
 * release(stream=None). With a stream, the handle is dropped once the stream has done its work so
 * far.
 */
PyObject *xp_guard_release(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *stream = Py_None;

	if ((PyTuple_Size(args) || kwargs) &&
	    !xp_parse(args, kwargs, "|$O:release", names, &stream))
		return NULL;
	if (self->lost)			/* there is nothing to release */
		Py_RETURN_NONE;
	return stream == Py_None ? xp_guard_release_now(self) :
	       release_on(self, stream);
}

// SPDX-License-Identifier: MIT
/*
 * Copies between buffers on GPUs and memory of the CPU. A copy in new memory of the CPU is a
 * memoryview of an object that has the shape and type of the contents.
 */
#include <stdlib.h>

#include "core.h"

/* ---- new memory of the CPU ---- */

struct copy {
	PyObject_HEAD
	void *data;
	struct xp_view view;
};

static void copy_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = PyType_GetSlot(type, Py_tp_free);

	free(((struct copy *)object)->data);
	free_object(object);
	Py_DECREF(type);
}

static int copy_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	const struct xp_view *of = &((struct copy *)object)->view;
	bool strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
	int order = PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS;

	view->obj = NULL;
	if (!of->dense && (!strides || flags & order & ~PyBUF_STRIDES)) {
		PyErr_SetString(PyExc_BufferError, "the elements are not contiguous");
		return -1;
	}
	*view = (Py_buffer){
		.buf = (void *)of->data, .len = of->bytes, .itemsize = of->item_bytes,
		.format = flags & PyBUF_FORMAT ? (char *)xp_format(of->dtype) : NULL,
		.ndim = flags & PyBUF_ND ? of->ndim : 1,
		.shape = flags & PyBUF_ND ? (Py_ssize_t *)of->shape : NULL,
		.strides = strides ? (Py_ssize_t *)of->strides : NULL,
		.obj = Py_NewRef(object),
	};
	return 0;
}

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, copy_dealloc },
	{ Py_bf_getbuffer, copy_getbuffer },
	{ 0, NULL }
};

PyType_Spec xp_copy_spec = {
	.name = "xmem._core.Copy",
	.basicsize = sizeof(struct copy),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

/* @view: the layout of the memory; its data becomes the new memory. */
static struct copy *copy_new(struct xp_state *state, const struct xp_view *view, size_t bytes)
{
	allocfunc alloc = PyType_GetSlot(state->copy, Py_tp_alloc);
	struct copy *copy = (struct copy *)alloc(state->copy, 0);

	if (!copy)
		return NULL;
	copy->view = *view;
	copy->data = malloc(bytes ? bytes : 1);
	copy->view.data = copy->data;
	if (copy->data)
		return copy;
	Py_DECREF(copy);
	PyErr_NoMemory();
	return NULL;
}

/* ---- copies between a guard and memory of the CPU ---- */

struct copying {
	Py_ssize_t offset;
	void *memory;
	size_t bytes;
	bool on_stream;
	void *stream;		/* NULL: the default one, if it is on a stream */
};

/* The stream for the library, in which NULL means no stream. */
static void *stream_of(const struct copying *copying)
{
	void *legacy = (void *)1;	/* CU_STREAM_LEGACY */

	return !copying->on_stream ? NULL : copying->stream ? copying->stream : legacy;
}

typedef int copy_function(struct xmem_buffer *buffer, const struct copying *copying);

static int from_host(struct xmem_buffer *buffer, const struct copying *copying)
{
	return xmem_copy_from_host(buffer, copying->offset, copying->memory, copying->bytes,
				   stream_of(copying));
}

static int to_host(struct xmem_buffer *buffer, const struct copying *copying)
{
	return xmem_copy_to_host(copying->memory, buffer, copying->offset, copying->bytes,
				 stream_of(copying));
}

static int copy(struct xp_guard *self, copy_function *call, const struct copying *copying)
{
	struct xmem_buffer *buffer;
	int err;

	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		XP_BEGIN_CUDA
		err = call(buffer, copying);
		XP_END_CUDA
		if (!err && copying->on_stream)
			xp_guard_order(self, copying->stream);
		xp_guard_end(self);
		if (!err)
			return 0;
	}
	return -1;
}

PyObject *xp_guard_copy_from_host(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "source", "offset", "stream", NULL };
	PyObject *source, *stream = Py_None;
	struct copying copying = { 0 };
	size_t offset = 0;
	Py_buffer from;
	int err;

	if (!xp_parse(args, kwargs, "O|O&$O:copy_from_host", names, &source,
		      xp_size, &offset, &stream) ||
	    !xp_stream(stream, &copying.stream) ||
	    PyObject_GetBuffer(source, &from, PyBUF_SIMPLE))
		return NULL;
	copying.on_stream = stream != Py_None;
	copying.offset = offset;
	copying.memory = from.buf;
	copying.bytes = from.len;
	err = copy((struct xp_guard *)object, from_host, &copying);
	PyBuffer_Release(&from);
	if (!err)
		Py_RETURN_NONE;
	xp_raised_by("copy_from_host");
	return NULL;
}

static int copy_out(struct xp_guard *self, const struct copying *copying)
{
	if (!copy(self, to_host, copying))
		return 0;
	xp_raised_by("copy_to_host");
	return -1;
}

/* Copy the contents into memory of the caller. */
static PyObject *fill(struct xp_guard *self, PyObject *out, PyObject *nbytes,
		      struct copying *copying)
{
	Py_buffer to;
	int err = -1;

	if (PyObject_GetBuffer(out, &to, PyBUF_WRITABLE))
		return NULL;
	copying->memory = to.buf;
	copying->bytes = to.len;
	if (nbytes != Py_None && !xp_size(nbytes, &copying->bytes))
		goto release;
	if (copying->bytes > (size_t)to.len)
		PyErr_Format(PyExc_ValueError, "out has %zd bytes, and %zu are to be copied",
			     to.len, copying->bytes);
	else
		err = copy_out(self, copying);
release:
	PyBuffer_Release(&to);
	if (err)
		return NULL;
	Py_INCREF(out);
	return out;
}

/* Copy the contents into new memory: all of them with their shape and type, or a part as bytes. */
static PyObject *fill_new(struct xp_guard *self, PyObject *nbytes, struct copying *copying)
{
	PyObject *result = NULL;
	struct xp_view view;
	struct copy *made;
	size_t size;

	if (!xp_guard_look(self) || (self->cuda ? xp_guard_cuda_view(self) : xp_guard_view(self)))
		return NULL;
	size = xp_contents(self->buffer);
	view = self->view;
	copying->bytes = (size_t)copying->offset < size ? size - copying->offset : 0;
	if (nbytes != Py_None && !xp_size(nbytes, &copying->bytes))
		return NULL;
	if (copying->offset || copying->bytes != size || !xp_format(view.dtype))
		xp_view_bytes(&view, copying->bytes, NULL);
	made = copy_new(self->state, &view, copying->bytes);
	if (!made)
		return NULL;
	copying->memory = made->data;
	if (!copy_out(self, copying))
		result = PyMemoryView_FromObject((PyObject *)made);
	Py_DECREF(made);
	return result;
}

PyObject *xp_guard_copy_to_host(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "out", "offset", "nbytes", "stream", NULL };
	PyObject *out = Py_None, *nbytes = Py_None, *stream = Py_None;
	struct xp_guard *self = (struct xp_guard *)object;
	struct copying copying = { 0 };
	size_t offset = 0;

	if (!xp_parse(args, kwargs, "|OO&O$O:copy_to_host", names, &out, xp_size,
		      &offset, &nbytes, &stream) ||
	    !xp_stream(stream, &copying.stream))
		return NULL;
	copying.on_stream = stream != Py_None;
	copying.offset = offset;
	if (out != Py_None)
		return fill(self, out, nbytes, &copying);
	if (!copying.on_stream)
		return fill_new(self, nbytes, &copying);
	PyErr_SetString(PyExc_TypeError, "a copy on a stream needs out, which the caller keeps "
			"until the stream has got there");
	return NULL;
}

/* ---- into a new guard ---- */

PyObject *xp_pool_copy_of(PyObject *object, PyObject *args)
{
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer, *made = NULL;
	struct xmem_pool *pool;
	PyObject *from;
	int device;

	if (!PyArg_ParseTuple(args, "O!iO&:_copy_of", self->state->guard, &from, &device,
			      xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	for (pool = xp_pool_begin(self); pool; pool = xp_pool_again(self, until, &timeout_ns)) {
		XP_LOCK(from)
		buffer = xp_guard_begin((struct xp_guard *)from);
		XP_UNLOCK
		if (!buffer) {
			xp_pool_end(self);
			return NULL;
		}
		xmem_clear_last_error();
		XP_BEGIN_HOOKED
		made = xmem_copy_to(buffer, device, timeout_ns);
		xp_pool_end(self);
		XP_END_HOOKED
		XP_LOCK(from)
		xp_guard_end((struct xp_guard *)from);
		XP_UNLOCK
		if (made)
			return xp_guard_new(self->state, object, made, XP_WRITING);
	}
	return NULL;
}

/* ---- between two guards ---- */

/* The caller has the lock of @from. */
static int between(struct xp_guard *to, size_t to_offset, struct xp_guard *from, size_t offset,
		   const struct copying *copying)
{
	struct xmem_buffer *target = NULL, *source = xp_guard_begin(from);
	int err = -1;

	if (source)
		target = xp_guard_begin_other(from, to);
	if (!target)
		goto end;
	XP_BEGIN_CUDA
	err = xmem_copy_range(target, to_offset, source, offset, copying->bytes,
			      stream_of(copying));
	XP_END_CUDA
	if (!err && copying->on_stream) {
		XP_LOCK(to)
		xp_guard_order(to, copying->stream);
		XP_UNLOCK
		xp_guard_order(from, copying->stream);
	}
	xp_guard_end_other(from, to);
end:
	if (source)
		xp_guard_end(from);
	return err;
}

PyObject *xp_guard_copy_to(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "to", "to_offset", "offset", "nbytes", "stream", NULL };
	PyObject *nbytes = Py_None, *stream = Py_None, *to;
	struct xp_guard *self = (struct xp_guard *)object;
	struct copying copying = { 0 };
	size_t to_offset = 0, offset = 0, size;
	struct xmem_buffer *buffer;
	int err;

	if (!xp_parse(args, kwargs, "O!|O&O&O$O:copy_to", names,
		      self->state->guard, &to, xp_size, &to_offset, xp_size,
		      &offset, &nbytes, &stream) ||
	    !xp_stream(stream, &copying.stream))
		return NULL;
	copying.on_stream = stream != Py_None;
	buffer = xp_guard_look(self);
	if (!buffer)
		return NULL;
	size = xmem_size(buffer);
	copying.bytes = offset < size ? size - offset : 0;
	if (nbytes != Py_None && !xp_size(nbytes, &copying.bytes))
		return NULL;
	do {
		err = between((struct xp_guard *)to, to_offset, self, offset, &copying);
		if (!err)
			Py_RETURN_NONE;
	} while (!PyErr_Occurred() && xp_again(self->state, XMEM_FOREVER, NULL));
	xp_raised_by("copy_to");
	return NULL;
}

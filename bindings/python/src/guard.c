// SPDX-License-Identifier: MIT
/*
 * Guard: a handle of a buffer. This file says when the handle goes: release() drops it, and so does
 * the end of the guard, unless views of the contents are alive. They keep it, and the last one
 * drops it.
 *
 * Two kinds of views keep it. Those of the buffer protocol hold the guard itself and are counted in
 * exports; the others share an xp_hold. A guard that is gone has neither of them in its care any
 * more than that: its last export, or the last share, drops the handle.
 */
#include "core.h"

PyObject *xp_guard_new(struct xp_state *state, PyObject *pool, struct xmem_buffer *buffer,
		       enum xp_guard_state mode)
{
	PyTypeObject *type = state->guard_class ? state->guard_class : state->guard;
	struct xp_guard *self = (struct xp_guard *)PyType_GenericAlloc(type, 0);

	if (!self) {
		xmem_release(buffer);
		return NULL;
	}
	self->state = state;
	self->buffer = buffer;
	Py_INCREF(pool);
	self->pool = pool;
	self->mode = mode;
	return (PyObject *)self;
}

/* Drop the guard's share of the handle. pre: no export is alive. */
static void drop(struct xp_guard *self)
{
	struct xmem_buffer *buffer = self->buffer;
	struct xp_hold *hold = self->hold;
	bool slow = self->counted || self->mode == XP_WRITING ||
		    xmem_buffer_flags(buffer) & XMEM_BUFFER_CUDA;
	PyThreadState *thread;

	self->buffer = NULL;
	self->hold = NULL;
	if (!buffer)
		return;
	thread = slow ? PyEval_SaveThread() : NULL;
	if (hold)
		xp_hold_put(hold);
	else
		xmem_release(buffer);
	if (slow)
		PyEval_RestoreThread(thread);
}

static void drop_unless_used(struct xp_guard *self)
{
	if (!self->exports && !self->users && self->buffer)
		drop(self);
}

/* ---- who may use the handle ---- */

static PyObject *refuse(struct xp_guard *self)
{
	if (self->mode == XP_GONE)
		return xp_raise_errno(self->state, EBADF, "this guard has been released, "
				      "published or forgotten");
	return xp_raise_errno(self->state, EBUSY, "another thread is publishing or changing this "
			      "guard");
}

struct xmem_buffer *xp_guard_look(struct xp_guard *self)
{
	if (self->mode == XP_GONE || self->busy) {
		refuse(self);
		return NULL;
	}
	return self->buffer;
}

struct xmem_buffer *xp_guard_write(struct xp_guard *self)
{
	if (!xp_guard_look(self))
		return NULL;
	if (self->mode == XP_WRITING)
		return self->buffer;
	xp_raise_errno(self->state, EPERM, "this guard is for reading: what is published is not "
		       "written any more");
	return NULL;
}

struct xmem_buffer *xp_guard_begin(struct xp_guard *self)
{
	struct xmem_buffer *buffer = xp_guard_look(self);

	if (buffer)
		self->users++;
	return buffer;
}

void xp_guard_end(struct xp_guard *self)
{
	self->users--;
	if (self->mode == XP_GONE)
		drop_unless_used(self);
}

struct xmem_buffer *xp_guard_take(struct xp_guard *self, bool *ret_keep)
{
	if (!xp_guard_look(self))
		return NULL;
	if (self->users) {
		xp_raise_errno(self->state, EBUSY, "another thread is using this guard");
		return NULL;
	}
	self->busy = true;
	*ret_keep = self->exports || (self->hold && xp_hold_is_shared(self->hold));
	return self->buffer;
}

void xp_guard_back(struct xp_guard *self)
{
	self->busy = false;
}

void xp_guard_gone(struct xp_guard *self, bool kept)
{
	self->busy = false;
	if (!kept) {
		free(self->hold);	/* nobody shares it, or it would have been kept */
		self->hold = NULL;
		self->buffer = NULL;
	}
	self->mode = XP_GONE;
	drop_unless_used(self);
}

struct xp_hold *xp_guard_share(struct xp_guard *self)
{
	if (!xp_guard_look(self))
		return NULL;
	if (!self->hold) {
		self->hold = xp_hold_new(self->buffer);
		if (!self->hold) {
			PyErr_NoMemory();
			return NULL;
		}
	}
	return xp_hold_get(self->hold);
}

/* ---- release ---- */

static PyObject *guard_release(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	if (self->mode == XP_GONE || self->busy)
		return refuse(self);
	if (!self->exports && !self->users)
		drop(self);
	self->mode = XP_GONE;
	Py_RETURN_NONE;
}

static PyObject *guard_enter(PyObject *object, PyObject *unused)
{
	if (!xp_guard_look((struct xp_guard *)object))
		return NULL;
	Py_INCREF(object);
	return object;
}

/* What the block has published or released itself is gone already. */
static PyObject *guard_exit(PyObject *object, PyObject *args)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *done;

	if (self->mode != XP_GONE) {
		done = guard_release(object, NULL);
		if (!done)
			return NULL;
		Py_DECREF(done);
	}
	Py_RETURN_NONE;
}

static void guard_dealloc(PyObject *object)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	if (self->buffer)
		drop(self);
	Py_CLEAR(self->pool);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

static int guard_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(((struct xp_guard *)object)->pool);
	Py_VISIT(Py_TYPE(object));
	return 0;
}

static int guard_clear(PyObject *object)
{
	Py_CLEAR(((struct xp_guard *)object)->pool);
	return 0;
}

static PyObject *guard_clone(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self), *clone;

	if (!buffer)
		return NULL;
	clone = xmem_clone(buffer);
	if (!clone)
		return xp_raise(self->state);
	return xp_guard_new(self->state, self->pool ? self->pool : Py_None, clone, XP_READING);
}

/* ---- what it says of itself ---- */

#define NUMBER(name, type, make)							\
static PyObject *get_ ## name(PyObject *object, void *unused)				\
{											\
	struct xmem_buffer *buffer = xp_guard_look((struct xp_guard *)object);		\
											\
	return buffer ? make(xmem_ ## name(buffer)) : NULL;				\
}

NUMBER(token, uint64_t, PyLong_FromUnsignedLongLong)
NUMBER(size, size_t, PyLong_FromSize_t)
NUMBER(capacity, size_t, PyLong_FromSize_t)
NUMBER(sequence, uint64_t, PyLong_FromUnsignedLongLong)
NUMBER(timestamp_ns, uint64_t, PyLong_FromUnsignedLongLong)
NUMBER(buffer_flags, uint32_t, PyLong_FromUnsignedLong)

static PyObject *get_meta_index(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);
	uint64_t token = buffer ? xmem_token(buffer) : 0;

	if (!buffer)
		return NULL;
	if (!token)
		return xp_raise_errno(self->state, EPERM, "a buffer that is being written has no "
				      "token, and no index, yet");
	return PyLong_FromUnsignedLongLong(token & 0xffff);
}

static PyObject *get_publisher(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);
	int client = buffer ? xmem_publisher(buffer) : 0;

	if (!buffer)
		return NULL;
	return client < 0 ? xp_raise(self->state) : PyLong_FromLong(client);
}

static PyObject *get_publisher_label(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);
	char label[16];

	if (!buffer)
		return NULL;
	if (xmem_publisher_label(buffer, label) < 0)
		return xp_raise(self->state);
	return PyUnicode_FromString(label);
}

static PyObject *get_readonly(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return xp_guard_look(self) ? PyBool_FromLong(self->mode == XP_READING) : NULL;
}

static PyObject *get_gone(PyObject *object, void *unused)
{
	return PyBool_FromLong(((struct xp_guard *)object)->mode == XP_GONE);
}

static PyObject *get_pool(PyObject *object, void *unused)
{
	PyObject *pool = ((struct xp_guard *)object)->pool;

	if (!pool)
		pool = Py_None;
	Py_INCREF(pool);
	return pool;
}

static PyObject *get_cpu_ptr(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);
	const void *data;

	if (!buffer)
		return NULL;
	data = self->mode == XP_WRITING ? xmem_data_mut(buffer) : NULL;
	if (!data)		/* an attached file is written by nobody, not even its writer */
		data = xmem_data(buffer);
	return data ? PyLong_FromVoidPtr((void *)data) : xp_raise(self->state);
}

#define KEYWORDS(function) (PyCFunction)(void *)(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
	{ "release", guard_release, METH_NOARGS, "Drop the handle." },
	{ "__enter__", guard_enter, METH_NOARGS, NULL },
	{ "__exit__", guard_exit, METH_VARARGS, NULL },
	{ "clone", guard_clone, METH_NOARGS, "Make another handle of the buffer, for reading." },
	{ "publish", KEYWORDS(xp_guard_publish), NULL },
	{ "send", KEYWORDS(xp_guard_send), NULL },
	{ "forward", KEYWORDS(xp_guard_forward), NULL },
	{ "get_mut", xp_guard_get_mut, METH_NOARGS, NULL },
	{ "forget", xp_guard_forget, METH_NOARGS, NULL },
	{ "set_ref_count", KEYWORDS(xp_guard_set_ref_count), NULL },
	{ "offer", KEYWORDS(xp_guard_offer), NULL },
	{ "describe_tensor", KEYWORDS(xp_guard_describe_tensor), NULL },
	{ "describe_image", KEYWORDS(xp_guard_describe_image), NULL },
	{ "describe_content", KEYWORDS(xp_guard_describe_content), NULL },
	{ "describe_time", KEYWORDS(xp_guard_describe_time), NULL },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	{ "token", get_token, NULL, "What names these contents for ever; 0: not published.", NULL },
	{ "meta_index", get_meta_index, NULL, "The number of the slot in the pool.", NULL },
	{ "nbytes", get_size, NULL, "Bytes of contents.", NULL },
	{ "capacity", get_capacity, NULL, "Bytes of the whole buffer.", NULL },
	{ "sequence", get_sequence, NULL, "Its publisher's number of the publication.", NULL },
	{ "timestamp_ns", get_timestamp_ns, NULL, "CLOCK_MONOTONIC nanoseconds; 0: none.", NULL },
	{ "flags", get_buffer_flags, NULL, "What the memory is like.", NULL },
	{ "publisher", get_publisher, NULL, "The client that published the contents.", NULL },
	{ "publisher_label", get_publisher_label, NULL, "What it calls itself.", NULL },
	{ "readonly", get_readonly, NULL, "Is it for reading, and not being written?", NULL },
	{ "gone", get_gone, NULL, "Has it been released, published or forgotten?", NULL },
	{ "pool", get_pool, NULL, "The pool that it came from.", NULL },
	{ "cpu_ptr", get_cpu_ptr, NULL, "The address of the contents.", NULL },
	{ "shape", xp_guard_get_shape, NULL, "Elements in each dimension.", NULL },
	{ "strides", xp_guard_get_strides, NULL, "Bytes between elements.", NULL },
	{ "dtype_number", xp_guard_get_dtype, NULL, "XMEM_DTYPE of the elements.", NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, guard_dealloc },
	{ Py_tp_traverse, guard_traverse },
	{ Py_tp_clear, guard_clear },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, properties },
	{ Py_bf_getbuffer, xp_guard_getbuffer },
	{ Py_bf_releasebuffer, xp_guard_releasebuffer },
	{ 0, NULL }
};

PyType_Spec xp_guard_spec = {
	.name = "xmem._core.Guard",
	.basicsize = sizeof(struct xp_guard),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

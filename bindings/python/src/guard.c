// SPDX-License-Identifier: MIT
/*
 * Guard: a handle of a buffer. This file says when the handle goes: release() drops it, and so does
 * the end of the guard, unless views of the contents are alive. They keep it, and the last one
 * drops it.
 *
 * Two kinds of views keep it. Those of the buffer protocol hold the guard itself and are counted in
 * exports; the others share an xp_hold. A guard that is gone has neither of them in its care any
 * more than that: its last export, or the last share, drops the handle. A third kind cannot be
 * counted: consumers of __cuda_array_interface__ only keep the guard itself. Once it is lent to
 * them, its own end drops the handle, and on the legacy default stream: what they have put into
 * blocking streams comes before that.
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
	self->cuda = xmem_buffer_flags(buffer) & XMEM_BUFFER_CUDA;
	Py_INCREF(pool);
	self->pool = pool;
	self->mode = mode;
	self->forks = xp_forks;
	return (PyObject *)self;
}

/* The last handle of a pool that is closed takes leave of the host, for which it waits. */
static bool is_of_closed_pool(const struct xp_guard *self)
{
	return !self->pool || !PyObject_TypeCheck(self->pool, self->state->pool) ||
	       !((struct xp_pool *)self->pool)->pool;
}

/*
 * Drop the guard's share of the handle. pre: no export is alive. post: it is gone for all threads,
 * and was so before another one could look at it.
 */
static void drop(struct xp_guard *self)
{
	struct xmem_buffer *buffer = self->buffer;
	struct xp_hold *hold = self->hold;
	bool slow = self->slow || self->counted || self->mode == XP_WRITING || self->cuda ||
		    is_of_closed_pool(self);
	PyThreadState *thread;

	self->mode = XP_GONE;
	self->buffer = NULL;
	self->hold = NULL;
	if (!buffer)
		return;
	thread = slow ? PyEval_SaveThread() : NULL;
	if (hold) {
		hold->on_stream |= self->lent;
		xp_hold_put(hold);
	} else if (!self->lent || xmem_release_on(buffer, NULL)) {
		xmem_release(buffer);
	}
	if (slow)
		PyEval_RestoreThread(thread);
}

static void drop_unless_used(struct xp_guard *self)
{
	if (!self->exports && !self->users && !self->lent && self->buffer)
		drop(self);
}

/* ---- who may use the handle ---- */

static PyObject *refuse(struct xp_guard *self)
{
	if (self->mode == XP_GONE)
		return xp_raise_errno(self->state, EBADF, "this guard has been released, "
				      "published or forgotten");
	if (self->forks != xp_forks)
		return xp_raise_forked(self->state, "guard");
	return xp_raise_errno(self->state, EBUSY, "another thread is publishing or changing this "
			      "guard");
}

struct xmem_buffer *xp_guard_look(struct xp_guard *self)
{
	if (self->mode == XP_GONE || self->busy || self->forks != xp_forks) {
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
	*ret_keep = self->exports || self->lent || (self->hold && xp_hold_is_shared(self->hold));
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

static PyObject *release(struct xp_guard *self)
{
	/* A call that was going on when this child was forked goes on in the parent only. */
	if (self->mode == XP_GONE || (self->busy && self->forks == xp_forks))
		return refuse(self);
	self->slow = self->counted || self->mode == XP_WRITING;
	self->mode = XP_GONE;		/* first: what drops the handle may let other threads run */
	drop_unless_used(self);
	Py_RETURN_NONE;
}

/* release(stream=None): with a stream, once that has got so far. */
static PyObject *guard_release(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *stream = Py_None;

	if ((PyTuple_Size(args) || kwargs) &&
	    !xp_parse(args, kwargs, "|$O:release", names, &stream))
		return NULL;
	return stream == Py_None ? release(self) : xp_guard_release_on(self, stream);
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
		done = release(self);
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
NUMBER(capacity, size_t, PyLong_FromSize_t)
NUMBER(sequence, uint64_t, PyLong_FromUnsignedLongLong)
NUMBER(timestamp_ns, uint64_t, PyLong_FromUnsignedLongLong)
NUMBER(buffer_flags, uint32_t, PyLong_FromUnsignedLong)

static PyObject *get_nbytes(PyObject *object, void *unused)
{
	struct xmem_buffer *buffer = xp_guard_look((struct xp_guard *)object);

	return buffer ? PyLong_FromSize_t(xp_contents(buffer)) : NULL;
}

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
	{ "release", KEYWORDS(guard_release), XP_DOC_guard_release },
	{ "__enter__", guard_enter, METH_NOARGS, XP_DOC_guard_enter },
	{ "__exit__", guard_exit, METH_VARARGS, XP_DOC_guard_exit },
	{ "clone", guard_clone, METH_NOARGS, XP_DOC_guard_clone },
	{ "publish", KEYWORDS(xp_guard_publish), XP_DOC_guard_publish },
	{ "send", KEYWORDS(xp_guard_send), XP_DOC_guard_send },
	{ "forward", KEYWORDS(xp_guard_forward), XP_DOC_guard_forward },
	{ "get_mut", xp_guard_get_mut, METH_NOARGS, XP_DOC_guard_get_mut },
	{ "forget", xp_guard_forget, METH_NOARGS, XP_DOC_guard_forget },
	{ "set_ref_count", KEYWORDS(xp_guard_set_ref_count), XP_DOC_guard_set_ref_count },
	{ "offer", KEYWORDS(xp_guard_offer), XP_DOC_guard_offer },
	{ "describe_tensor", KEYWORDS(xp_guard_describe_tensor), XP_DOC_guard_describe_tensor },
	{ "describe_image", KEYWORDS(xp_guard_describe_image), XP_DOC_guard_describe_image },
	{ "describe_content", KEYWORDS(xp_guard_describe_content), XP_DOC_guard_describe_content },
	{ "describe_time", KEYWORDS(xp_guard_describe_time), XP_DOC_guard_describe_time },
	{ "describe_user", KEYWORDS(xp_guard_describe_user), XP_DOC_guard_describe_user },
	{ "_image_view", xp_guard_image_view, METH_NOARGS, XP_DOC_guard_image_view },
	{ "_copy_from", KEYWORDS(xp_guard_copy_from), XP_DOC_guard_copy_from },
	{ "_tobytes", xp_guard_tobytes, METH_NOARGS, XP_DOC_guard_tobytes },
	{ "_span", xp_guard_span, METH_NOARGS, XP_DOC_guard_span },
	{ "__dlpack__", KEYWORDS(xp_guard_dlpack), XP_DOC_guard_dlpack },
	{ "__dlpack_device__", xp_guard_dlpack_device, METH_NOARGS, XP_DOC_guard_dlpack_device },
	{ "__arrow_c_schema__", xp_guard_arrow_schema, METH_NOARGS, XP_DOC_guard_arrow_schema },
	{ "__arrow_c_array__", KEYWORDS(xp_guard_arrow_array), XP_DOC_guard_arrow_array },
	{ "__arrow_c_device_array__", KEYWORDS(xp_guard_arrow_device_array),
	  XP_DOC_guard_arrow_device_array },
	{ "copy_to_cuda", KEYWORDS(xp_guard_copy_to_cuda), XP_DOC_guard_copy_to_cuda },
	{ "copy_to_cpu", KEYWORDS(xp_guard_copy_to_cpu), XP_DOC_guard_copy_to_cpu },
	{ "copy_to_device", KEYWORDS(xp_guard_copy_to_device), XP_DOC_guard_copy_to_device },
	{ "wait", KEYWORDS(xp_guard_wait), XP_DOC_guard_wait },
	{ "wait_on", KEYWORDS(xp_guard_wait_on), XP_DOC_guard_wait_on },
	{ "_cuda_tensor_view", xp_guard_cuda_tensor_view, METH_NOARGS,
	  XP_DOC_guard_cuda_tensor_view },
	{ "_cuda_image_view", xp_guard_cuda_image_view, METH_NOARGS, XP_DOC_guard_cuda_image_view },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	{ "token", get_token, NULL, XP_DOC_guard_token, NULL },
	{ "meta_index", get_meta_index, NULL, XP_DOC_guard_meta_index, NULL },
	{ "nbytes", get_nbytes, NULL, XP_DOC_guard_nbytes, NULL },
	{ "capacity", get_capacity, NULL, XP_DOC_guard_capacity, NULL },
	{ "sequence", get_sequence, NULL, XP_DOC_guard_sequence, NULL },
	{ "timestamp_ns", get_timestamp_ns, NULL, XP_DOC_guard_timestamp_ns, NULL },
	{ "flags", get_buffer_flags, NULL, XP_DOC_guard_flags, NULL },
	{ "publisher", get_publisher, NULL, XP_DOC_guard_publisher, NULL },
	{ "publisher_label", get_publisher_label, NULL, XP_DOC_guard_publisher_label, NULL },
	{ "readonly", get_readonly, NULL, XP_DOC_guard_readonly, NULL },
	{ "gone", get_gone, NULL, XP_DOC_guard_gone, NULL },
	{ "pool", get_pool, NULL, XP_DOC_guard_pool, NULL },
	{ "cpu_ptr", get_cpu_ptr, NULL, XP_DOC_guard_cpu_ptr, NULL },
	{ "cuda_ptr", xp_guard_get_cuda_ptr, NULL, XP_DOC_guard_cuda_ptr, NULL },
	{ "cuda_ptr_mut", xp_guard_get_cuda_ptr_mut, NULL, XP_DOC_guard_cuda_ptr_mut, NULL },
	{ "cuda_device", xp_guard_get_cuda_device, NULL, XP_DOC_guard_cuda_device, NULL },
	{ "is_cuda", xp_guard_get_is_cuda, NULL, XP_DOC_guard_is_cuda, NULL },
	{ "__cuda_array_interface__", xp_guard_get_cuda_array_interface, NULL,
	  XP_DOC_guard_cuda_array_interface, NULL },
	{ "shape", xp_guard_get_shape, NULL, XP_DOC_guard_shape, NULL },
	{ "strides", xp_guard_get_strides, NULL, XP_DOC_guard_strides, NULL },
	{ "metadata", xp_guard_metadata, NULL, XP_DOC_guard_metadata, NULL },
	{ "__array_interface__", xp_guard_get_array_interface, NULL,
	  XP_DOC_guard_array_interface, NULL },
	{ "dtype_number", xp_guard_get_dtype, NULL, XP_DOC_guard_dtype_number, NULL },
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

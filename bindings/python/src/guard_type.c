// SPDX-License-Identifier: MIT
/*
 * Guard: its methods and properties. Each is called under the guard's lock (core.h, "Locks"), so
 * the functions below need not take it. The buffer protocol takes the lock itself (buffer.c).
 */
#include "core.h"

/* ---- what it says of itself ---- */

/* Get the library's information about the buffer of a guard; false: an exception is set. */
static bool look(struct xp_guard *self, struct xmem_buffer_info *ret)
{
	struct xmem_buffer *buffer = xp_guard_look(self);

	if (!buffer)
		return false;
	if (!xmem_buffer_stat(buffer, ret))
		return true;
	xp_raise(self->state);
	return false;
}

#define NUMBER(name, make)								\
static PyObject *get_ ## name(PyObject *object, void *unused)				\
{											\
	struct xmem_buffer_info info = XMEM_INIT(info);					\
											\
	return look((struct xp_guard *)object, &info) ? make(info.name) : NULL;		\
}

NUMBER(capacity, PyLong_FromUnsignedLongLong)
NUMBER(sequence, PyLong_FromUnsignedLongLong)
NUMBER(timestamp_ns, PyLong_FromUnsignedLongLong)
NUMBER(flags, PyLong_FromUnsignedLong)

static PyObject *get_nbytes(PyObject *object, void *unused)
{
	struct xmem_buffer *buffer = xp_guard_look((struct xp_guard *)object);

	return buffer ? PyLong_FromSize_t(xp_contents(buffer)) : NULL;
}

static PyObject *get_token(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);

	if (!buffer || xp_guard_note_number(self, buffer))
		return NULL;
	return PyLong_FromUnsignedLongLong(xmem_token(buffer));
}

static PyObject *get_meta_index(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);

	if (!buffer || xp_guard_note_number(self, buffer))
		return NULL;
	return PyLong_FromLong(xmem_slot(buffer));
}

static PyObject *get_publisher(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer_info info = XMEM_INIT(info);

	if (!look(self, &info))
		return NULL;
	return info.publisher != XMEM_NOBODY ? PyLong_FromUnsignedLong(info.publisher) :
		xp_raise_errno(self->state, ENOENT, "publisher: it has ended, and nothing of it is "
			       "left");
}

static PyObject *get_publisher_label(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer_info info = XMEM_INIT(info);

	if (!look(self, &info))
		return NULL;
	return *info.label ? PyUnicode_FromString(info.label) :
		xp_raise_errno(self->state, ENOENT, "publisher_label: the publisher has none, or "
			       "has ended and its label is not known any more");
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
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *pool = self->pool;

	if (!pool && xp_raise_lost(self->state, self->lost))
		return NULL;
	if (!pool)
		pool = Py_None;
	Py_INCREF(pool);
	return pool;
}

static PyObject *get_cpu_ptr(PyObject *object, void *unused)
{
	const void *data = xp_guard_data((struct xp_guard *)object);

	return data ? PyLong_FromVoidPtr((void *)data) : NULL;
}

/* ---- the tables ---- */

#define METHODS(KEYED, PLAIN)								\
	KEYED("release", xp_guard_release, XP_DOC_guard_release)			\
	PLAIN("__enter__", xp_guard_enter, METH_NOARGS, XP_DOC_guard_enter)		\
	PLAIN("__exit__", xp_guard_exit, METH_VARARGS, XP_DOC_guard_exit)		\
	PLAIN("clone_ref", xp_guard_clone_ref, METH_NOARGS,				\
	      XP_DOC_guard_clone_ref)							\
	KEYED("publish", xp_guard_publish, XP_DOC_guard_publish)			\
	KEYED("send", xp_guard_send, XP_DOC_guard_send)					\
	KEYED("forward", xp_guard_forward, XP_DOC_guard_forward)			\
	PLAIN("get_mut", xp_guard_get_mut, METH_NOARGS, XP_DOC_guard_get_mut)		\
	PLAIN("forget", xp_guard_forget, METH_NOARGS, XP_DOC_guard_forget)		\
	KEYED("set_ref_count", xp_guard_set_ref_count, XP_DOC_guard_set_ref_count)	\
	KEYED("offer", xp_guard_offer, XP_DOC_guard_offer)				\
	KEYED("describe_tensor", xp_guard_describe_tensor, XP_DOC_guard_describe_tensor)\
	KEYED("describe_image", xp_guard_describe_image, XP_DOC_guard_describe_image)	\
	KEYED("describe_strings", xp_guard_describe_strings,				\
	      XP_DOC_guard_describe_strings)						\
	PLAIN("_strings_view", xp_guard_strings_view, METH_NOARGS,			\
	      XP_DOC_guard_strings_view)						\
	KEYED("describe_content", xp_guard_describe_content,				\
	      XP_DOC_guard_describe_content)						\
	KEYED("describe_time", xp_guard_describe_time, XP_DOC_guard_describe_time)	\
	KEYED("describe_user", xp_guard_describe_user, XP_DOC_guard_describe_user)	\
	PLAIN("_image_view", xp_guard_image_view, METH_NOARGS, XP_DOC_guard_image_view)	\
	KEYED("_copy_from", xp_guard_copy_from, XP_DOC_guard_copy_from)			\
	PLAIN("_tobytes", xp_guard_tobytes, METH_NOARGS, XP_DOC_guard_tobytes)		\
	PLAIN("_span", xp_guard_span, METH_NOARGS, XP_DOC_guard_span)			\
	KEYED("__dlpack__", xp_guard_dlpack, XP_DOC_guard_dlpack)			\
	PLAIN("__dlpack_device__", xp_guard_dlpack_device, METH_NOARGS,			\
	      XP_DOC_guard_dlpack_device)						\
	PLAIN("__arrow_c_schema__", xp_guard_arrow_schema, METH_NOARGS,			\
	      XP_DOC_guard_arrow_schema)						\
	KEYED("__arrow_c_array__", xp_guard_arrow_array, XP_DOC_guard_arrow_array)	\
	KEYED("__arrow_c_device_array__", xp_guard_arrow_device_array,			\
	      XP_DOC_guard_arrow_device_array)						\
	KEYED("copy_from_host", xp_guard_copy_from_host, XP_DOC_guard_copy_from_host)	\
	KEYED("copy_to_host", xp_guard_copy_to_host, XP_DOC_guard_copy_to_host)		\
	KEYED("copy_to", xp_guard_copy_to, XP_DOC_guard_copy_to)			\
	KEYED("wait", xp_guard_wait, XP_DOC_guard_wait)					\
	KEYED("wait_on", xp_guard_wait_on, XP_DOC_guard_wait_on)			\
	PLAIN("_cuda_tensor_view", xp_guard_cuda_tensor_view, METH_NOARGS,		\
	      XP_DOC_guard_cuda_tensor_view)						\
	PLAIN("_cuda_image_view", xp_guard_cuda_image_view, METH_NOARGS,		\
	      XP_DOC_guard_cuda_image_view)

#define PROPERTIES(GET)									\
	GET("token", get_token, XP_DOC_guard_token)					\
	GET("meta_index", get_meta_index, XP_DOC_guard_meta_index)			\
	GET("nbytes", get_nbytes, XP_DOC_guard_nbytes)					\
	GET("capacity", get_capacity, XP_DOC_guard_capacity)				\
	GET("sequence", get_sequence, XP_DOC_guard_sequence)				\
	GET("timestamp_ns", get_timestamp_ns, XP_DOC_guard_timestamp_ns)		\
	GET("flags", get_flags, XP_DOC_guard_flags)				\
	GET("publisher", get_publisher, XP_DOC_guard_publisher)				\
	GET("publisher_label", get_publisher_label, XP_DOC_guard_publisher_label)	\
	GET("readonly", get_readonly, XP_DOC_guard_readonly)				\
	GET("gone", get_gone, XP_DOC_guard_gone)					\
	GET("pool", get_pool, XP_DOC_guard_pool)					\
	GET("_lost", xp_guard_get_lost, XP_DOC_lost)					\
	GET("cpu_ptr", get_cpu_ptr, XP_DOC_guard_cpu_ptr)				\
	GET("cuda_ptr", xp_guard_get_cuda_ptr, XP_DOC_guard_cuda_ptr)			\
	GET("cuda_ptr_mut", xp_guard_get_cuda_ptr_mut, XP_DOC_guard_cuda_ptr_mut)	\
	GET("device_id", xp_guard_get_device_id, XP_DOC_guard_device_id)		\
	GET("is_cuda", xp_guard_get_is_cuda, XP_DOC_guard_is_cuda)			\
	GET("__cuda_array_interface__", xp_guard_get_cuda_array_interface,		\
	      XP_DOC_guard_cuda_array_interface)					\
	GET("shape", xp_guard_get_shape, XP_DOC_guard_shape)				\
	GET("strides", xp_guard_get_strides, XP_DOC_guard_strides)			\
	GET("metadata", xp_guard_metadata, XP_DOC_guard_metadata)			\
	GET("__array_interface__", xp_guard_get_array_interface,			\
	      XP_DOC_guard_array_interface)						\
	GET("dtype_number", xp_guard_get_dtype, XP_DOC_guard_dtype_number)

/* With a GIL the functions are called as they are. */
#ifdef Py_GIL_DISABLED
#define UNDER_LOCK(function)	locked_ ## function

#define LOCKED(function, parameters, call)						\
static PyObject *UNDER_LOCK(function) parameters					\
{											\
	PyObject *result;								\
											\
	XP_LOCK(self)									\
	result = function call;								\
	XP_UNLOCK									\
	return result;									\
}
#define LOCKED_KEYED(name, function, doc)						\
	LOCKED(function, (PyObject *self, PyObject *args, PyObject *kwargs),		\
	       (self, args, kwargs))
#define LOCKED_PLAIN(name, function, flags, doc)					\
	LOCKED(function, (PyObject *self, PyObject *argument), (self, argument))
#define LOCKED_GET(name, function, doc)							\
	LOCKED(function, (PyObject *self, void *unused), (self, unused))

METHODS(LOCKED_KEYED, LOCKED_PLAIN)
PROPERTIES(LOCKED_GET)
#else
#define UNDER_LOCK(function)	function
#endif

#define KEYED_ROW(name, function, doc)							\
	{ name, (PyCFunction)(void *)UNDER_LOCK(function), METH_VARARGS | METH_KEYWORDS, doc },
#define PLAIN_ROW(name, function, flags, doc)						\
	{ name, UNDER_LOCK(function), flags, doc },
#define GET_ROW(name, function, doc)							\
	{ name, UNDER_LOCK(function), NULL, doc, NULL },

static PyMethodDef methods[] = {
	METHODS(KEYED_ROW, PLAIN_ROW)
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	PROPERTIES(GET_ROW)
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, xp_guard_dealloc },
	{ Py_tp_traverse, xp_guard_traverse },
	{ Py_tp_clear, xp_guard_clear },
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

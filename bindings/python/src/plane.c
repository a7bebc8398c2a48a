// SPDX-License-Identifier: MIT
/*
 * Plane: one plane of an image, which image() of a guard gives. It has no memory of its own: each
 * time it is lent as a buffer, the image of its guard is checked again, under the guard's lock. Its
 * buffers count as buffers of the guard, so they keep the contents.
 */
#include "core.h"

struct plane {
	PyObject_HEAD
	struct xp_guard *guard;		/* constant */
	uint32_t number;		/* constant: which plane it is */
	struct xmem_plane said;		/* constant; data is NULL */
	Py_ssize_t offset;		/* constant: bytes of the contents before it */
	struct xp_view view;		/* the guard's lock for data, the rest is constant.
					 * Buffers use its arrays */
};

/* Find the image of a guard; -1 with an exception. Under the guard's lock. */
static int find_image(struct xp_guard *guard, struct xmem_image *ret)
{
	*ret = (struct xmem_image){ .size = sizeof(*ret) };
	if (!xp_guard_look(guard) || (!guard->cuda && xp_guard_view(guard)))
		return -1;
	if (!xmem_image_view(guard->buffer, 0, ret))
		return 0;
	xp_raise(guard->state);
	return -1;
}

static Py_ssize_t offset_of(const struct xmem_image *image, uint32_t number)
{
	return (const char *)image->plane[number].data - (const char *)image->plane[0].data;
}

/* The plane in the guard's own mapping, because a writer's mapping is not the one of readers. */
static int find_view(struct xp_guard *guard, const struct xmem_image *image, uint32_t number,
		     struct xp_view *ret)
{
	struct xmem_tensor tensor = { .size = sizeof(tensor) };

	if (xmem_image_plane(image, number, &tensor)) {
		xp_raise(guard->state);
		return -1;
	}
	xp_view_tensor(ret, &tensor, (const char *)guard->view.data + offset_of(image, number));
	return 0;
}

static PyObject *new_plane(struct xp_guard *guard, const struct xmem_image *image, uint32_t number)
{
	struct plane *self = (struct plane *)PyType_GenericAlloc(guard->state->plane, 0);

	if (!self)
		return NULL;
	Py_INCREF((PyObject *)guard);
	self->guard = guard;
	self->number = number;
	self->offset = offset_of(image, number);
	self->said = image->plane[number];
	self->said.data = NULL;
	if (!find_view(guard, image, number, &self->view))
		return (PyObject *)self;
	Py_DECREF((PyObject *)self);
	return NULL;
}

PyObject *xp_guard_image_view(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *planes, *plane;
	struct xmem_image image;
	uint32_t i;

	if (find_image(self, &image))
		return NULL;
	planes = PyTuple_New(image.planes);
	for (i = 0; planes && i < image.planes; i++) {
		plane = new_plane(self, &image, i);
		if (plane)
			PyTuple_SetItem(planes, i, plane);
		else
			Py_CLEAR(planes);
	}
	return planes ? Py_BuildValue("IIIN", image.format, image.width, image.height, planes) :
			NULL;
}

/* ---- the buffer protocol ---- */

static int refuse(const char *why)
{
	PyErr_SetString(PyExc_BufferError, why);
	return -1;
}

/* Views of this plane use its arrays, so the description of the guard must not have changed. */
static int look(struct plane *self)
{
	struct xmem_image image;
	struct xp_view now;

	if (find_image(self->guard, &image))
		return -1;
	if (self->number >= image.planes)
		return refuse("this image has been described anew, and lacks this plane");
	if (find_view(self->guard, &image, self->number, &now))
		return -1;
	if (offset_of(&image, self->number) != self->offset || !xp_view_is_same(&self->view, &now))
		return refuse("this image has been described anew: call image() again");
	self->view.data = now.data;
	self->view.divisible = now.divisible;
	return 0;
}

static int get_buffer(struct plane *self, Py_buffer *view, int flags)
{
	view->obj = NULL;
	if (look(self))
		return -1;
	return xp_guard_lend(self->guard, (PyObject *)self, &self->view, self->offset, view, flags);
}

static int plane_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct plane *self = (struct plane *)object;
	int err;

	XP_LOCK(self->guard)
	err = get_buffer(self, view, flags);
	XP_UNLOCK
	return err;
}

static void plane_releasebuffer(PyObject *object, Py_buffer *view)
{
	xp_guard_releasebuffer((PyObject *)((struct plane *)object)->guard, view);
}

/* ---- what it says of itself ---- */

#define NUMBER(name, value)								\
static PyObject *get_ ## name(PyObject *object, void *unused)				\
{											\
	return PyLong_FromSize_t(((struct plane *)object)->value);			\
}

NUMBER(offset, offset)
NUMBER(stride, said.stride)
NUMBER(row_bytes, said.row_bytes)
NUMBER(rows, said.rows)

static PyObject *get_shape(PyObject *object, void *unused)
{
	const struct xp_view *view = &((struct plane *)object)->view;

	return xp_tuple(view->shape, view->ndim);
}

static PyObject *get_strides(PyObject *object, void *unused)
{
	const struct xp_view *view = &((struct plane *)object)->view;

	return xp_tuple(view->strides, view->ndim);
}

static PyObject *get_dtype(PyObject *object, void *unused)
{
	char name[XP_DTYPE_NAME];

	xp_dtype_name(((struct plane *)object)->view.dtype, name);
	return PyUnicode_FromString(name);
}

/*
 * numpy.asarray() drops the error of the buffer protocol, asks for this attribute, and then makes
 * an array of one object. So a plane that is gone raises its error here; any other plane is a
 * buffer and has no such attribute.
 */
static PyObject *get_array_interface(PyObject *object, void *unused)
{
	struct plane *self = (struct plane *)object;
	int err;

	XP_LOCK(self->guard)
	err = look(self);
	XP_UNLOCK
	if (!err)
		PyErr_SetString(PyExc_AttributeError, "a plane is a buffer, which needs no "
				"__array_interface__");
	return NULL;
}

static PyObject *plane_repr(PyObject *object)
{
	struct plane *self = (struct plane *)object;
	PyObject *shape = get_shape(object, NULL), *text = NULL;
	char name[XP_DTYPE_NAME];

	xp_dtype_name(self->view.dtype, name);
	if (shape)
		text = PyUnicode_FromFormat("<xmem.Plane %u, %s %R, from byte %zd on>",
					    (unsigned int)self->number, name, shape, self->offset);
	Py_XDECREF(shape);
	return text;
}

/* ---- the type ---- */

static int plane_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	Py_VISIT(((struct plane *)object)->guard);
	return 0;
}

static int plane_clear(PyObject *object)
{
	return 0;		/* the guard is constant; the cycle is broken at another object */
}

static void plane_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	Py_XDECREF((PyObject *)((struct plane *)object)->guard);
	free_object(object);
	Py_DECREF(type);
}

static PyGetSetDef properties[] = {
	{ "offset", get_offset, NULL, "Of the first row, in bytes of the contents.", NULL },
	{ "stride", get_stride, NULL, "Bytes from one row to the next.", NULL },
	{ "row_bytes", get_row_bytes, NULL, "Bytes of pixels in each row.", NULL },
	{ "rows", get_rows, NULL, "How many rows the plane has.", NULL },
	{ "shape", get_shape, NULL, "Rows, columns and, if there are several, channels.", NULL },
	{ "strides", get_strides, NULL, "Bytes from one element to the next, in each dimension.",
	  NULL },
	{ "dtype", get_dtype, NULL, "The name of the type of the numbers.", NULL },
	{ "__array_interface__", get_array_interface, NULL, "The error of a plane that is no more.",
	  NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, plane_dealloc },
	{ Py_tp_traverse, plane_traverse },
	{ Py_tp_clear, plane_clear },
	{ Py_tp_repr, plane_repr },
	{ Py_tp_getset, properties },
	{ Py_bf_getbuffer, plane_getbuffer },
	{ Py_bf_releasebuffer, plane_releasebuffer },
	{ Py_tp_doc, XP_DOC_plane },
	{ 0, NULL }
};

PyType_Spec xp_plane_spec = {
	.name = "xmem._core.Plane",
	.basicsize = sizeof(struct plane),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

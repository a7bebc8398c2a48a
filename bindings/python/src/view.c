// SPDX-License-Identifier: MIT
/*
 * The layout of a guard's contents. Contents without a description are bytes. The library checks
 * their layout once. Views share its arrays, which do not change while a view is alive.
 */
#include "core.h"

#include <string.h>

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

void xp_view_bytes(struct xp_view *ret, size_t bytes, const void *data)
{
	*ret = (struct xp_view){
		.data = data, .dtype = XMEM_DTYPE_NONE, .ndim = 1, .item_bytes = 1, .bytes = bytes,
		.dense = true, .divisible = true, .shape = { bytes }, .strides = { 1 },
		.steps = { 1 },
	};
}

/* Is each number of an element at a multiple of its own size? */
static bool is_aligned(const struct xp_view *view)
{
	size_t bytes = XMEM_DTYPE_BITS(view->dtype) / 8;

	if (XMEM_DTYPE_CODE(view->dtype) == XMEM_DTYPE_CODE_COMPLEX)
		bytes /= 2;
	return bytes < 2 || (uintptr_t)view->data % bytes == 0;
}

/* In a dimension of one element or none, the stride may be any number. */
static bool divide(struct xp_view *view)
{
	int i;

	for (i = 0; i < view->ndim; i++) {
		if (view->strides[i] % view->item_bytes && view->shape[i] > 1)
			return false;
		view->steps[i] = view->strides[i] / view->item_bytes;
	}
	return is_aligned(view);
}

void xp_view_tensor(struct xp_view *ret, const struct xmem_tensor *tensor, const void *data)
{
	uint32_t i;

	*ret = (struct xp_view){
		.data = data, .dtype = tensor->dtype, .ndim = tensor->ndim,
		.item_bytes = tensor->item_bytes, .bytes = tensor->elements * tensor->item_bytes,
		.dense = tensor->flags & XMEM_TENSOR_DENSE,
	};
	for (i = 0; i < tensor->ndim; i++) {
		ret->shape[i] = tensor->shape[i];
		ret->strides[i] = tensor->strides[i];
	}
	ret->divisible = divide(ret);
}

size_t xp_contents(struct xmem_buffer *buffer)
{
	size_t bytes = xmem_size(buffer);
	struct xmem_metadata metadata;
	uint32_t i;

	if (xmem_metadata_view(buffer, &metadata) || !metadata.dtype ||
	    xmem_tensor_check(&metadata, bytes))
		return bytes;
	for (i = 0; i < metadata.ndim; i++)
		if (!metadata.shape[i])
			return 0;
	return bytes;
}

/* Views that are alive use the arrays of @old, and read them without the lock. */
bool xp_view_is_same(const struct xp_view *old, const struct xp_view *now)
{
	return old->dtype == now->dtype && old->ndim == now->ndim &&
	       old->item_bytes == now->item_bytes && old->bytes == now->bytes &&
	       !memcmp(old->shape, now->shape, sizeof(old->shape)) &&
	       !memcmp(old->strides, now->strides, sizeof(old->strides));
}

/* Nobody writes an attached file, not even its writer. */
static const void *data_of(struct xmem_buffer *buffer, bool writing)
{
	const void *data = writing ? xmem_data_mut(buffer) : NULL;

	return data ? data : xmem_data(buffer);
}

const void *xp_guard_data(struct xp_guard *self)
{
	struct xmem_buffer *buffer;
	const void *data;
	bool writing;

	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		writing = self->mode == XP_WRITING;
		Py_BEGIN_ALLOW_THREADS
		data = data_of(buffer, writing);
		Py_END_ALLOW_THREADS
		xp_guard_end(self);
		if (data)
			return xp_guard_look(self) ? data : NULL;
	}
	return NULL;
}

/* The first look finds the contents, with the GIL released, so the guard may change meanwhile. */
int xp_guard_view(struct xp_guard *self)
{
	struct xmem_buffer *buffer = xp_guard_look(self);
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	struct xp_view view;
	const void *data;
	int err;

	if (!buffer)
		return -1;
	if (self->view.data)
		return 0;
	data = xp_guard_data(self);
	if (!data)
		return -1;
	err = xmem_tensor_view(self->buffer, 0, &tensor);
	if (err && err != -ENODATA) {
		xp_raise(self->state);
		return -1;
	}
	if (err)
		xp_view_bytes(&view, xmem_size(self->buffer), data);
	else
		xp_view_tensor(&view, &tensor, data);
	if (self->exports && !xp_view_is_same(&self->view, &view)) {
		PyErr_SetString(PyExc_BufferError, "this guard has views of its contents as they "
				"were before they were described or published anew");
		return -1;
	}
	if (self->exports) {
		self->view.divisible = view.divisible;
		self->view.data = view.data;
	} else {
		self->view = view;
	}
	return 0;
}

/*
 * The description of the contents is checked without opening the memory: opening it may take long,
 * and this client may not be allowed to.
 */
int xp_guard_cuda_view(struct xp_guard *self)
{
	struct xmem_tensor tensor = { .flags = XMEM_TENSOR_DENSE, .elements = 1 };
	struct xmem_buffer *buffer = self->buffer;
	struct xmem_metadata metadata;
	int64_t dense;
	uint32_t i;
	int err = xmem_metadata_view(buffer, &metadata);

	if (!err)
		err = xmem_tensor_check(&metadata, xmem_size(buffer));
	if (err == -ENODATA) {
		xp_view_bytes(&self->view, xmem_size(buffer), NULL);
		return 0;
	}
	if (err) {
		xp_raise(self->state);
		return -1;
	}
	tensor.dtype = metadata.dtype;
	tensor.ndim = metadata.ndim;
	tensor.item_bytes = XMEM_DTYPE_BITS(metadata.dtype) * XMEM_DTYPE_LANES(metadata.dtype) / 8;
	for (i = 0; i < tensor.ndim; i++)
		tensor.elements *= metadata.shape[i];
	dense = tensor.item_bytes;
	for (i = tensor.ndim; i--; ) {		/* the strides are those of xmem_tensor_view */
		tensor.shape[i] = metadata.shape[i];
		tensor.strides[i] = tensor.elements && metadata.shape[i] > 1 ? metadata.strides[i] :
				    dense;
		if (tensor.strides[i] != dense)
			tensor.flags = 0;
		dense *= metadata.shape[i] ? metadata.shape[i] : 1;
	}
	xp_view_tensor(&self->view, &tensor, NULL);
	return 0;
}

bool xp_guard_readonly(struct xp_guard *self)
{
	return self->mode != XP_WRITING ||
	       self->flags & XMEM_BUFFER_ATTACHED;
}

/* ---- as properties ---- */

/* The shape and type of contents on a GPU are known without their address. */
static int look(struct xp_guard *self)
{
	if (!xp_guard_look(self))
		return -1;
	return self->cuda ? xp_guard_cuda_view(self) : xp_guard_view(self);
}

PyObject *xp_tuple(const Py_ssize_t *numbers, int count)
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

PyObject *xp_shape(const struct xmem_metadata *metadata)
{
	Py_ssize_t shape[XMEM_MAX_DIMENSIONS];
	uint32_t i;

	for (i = 0; i < metadata->ndim && i < XMEM_MAX_DIMENSIONS; i++)
		shape[i] = metadata->shape[i];
	return xp_tuple(shape, i);
}

PyObject *xp_guard_get_shape(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return look(self) ? NULL : xp_tuple(self->view.shape, self->view.ndim);
}

PyObject *xp_guard_get_strides(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return look(self) ? NULL : xp_tuple(self->view.strides, self->view.ndim);
}

PyObject *xp_guard_get_dtype(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;

	return look(self) ? NULL : PyLong_FromUnsignedLong(self->view.dtype);
}

// SPDX-License-Identifier: MIT
/*
 * Guard: copies into a guard that is being written, from a buffer, from a tensor by DLPack, or from
 * another guard. Memory that another library has allocated cannot become a buffer of a pool without
 * a copy, except files (attach_fd) and memory of GPUs.
 *
 * The bytes are copied without the GIL, dense, the last index varying fastest. They may fill the
 * contents of this guard and no more, whatever room its buffer has beyond them. A guard that is
 * described takes only contents of that description, or bytes.
 */
#include "source.h"

/* Copy; 0, or -errno of the library, or -ENOMEM. Without the GIL. */
static int copy(struct xmem_buffer *to, size_t offset, const struct xp_source *source)
{
	bool on_gpu = xp_flags(to) & XMEM_BUFFER_CUDA, dense = xp_source_is_dense(source);
	char *data = on_gpu ? NULL : xmem_data_mut(to);
	size_t bytes = source->bytes;
	bool overlaps;
	void *memory;
	int err;

	/*
	 * A view of this guard may be copied into it, also in reverse order. That copy goes through
	 * other memory.
	 */
	overlaps = data && xp_source_overlaps(source, data + offset, bytes);
	if (dense && !overlaps)
		return xmem_copy_from_host(to, offset, source->data, bytes, NULL);
	if (data && !overlaps) {
		xp_copy_dense(data + offset, source->data, source->ndim, source->shape,
			      source->strides, source->item_bytes);
		return 0;
	}
	memory = xp_memory(bytes);
	if (!memory)
		return -ENOMEM;
	xp_copy_dense(memory, source->data, source->ndim, source->shape, source->strides,
		      source->item_bytes);
	err = xmem_copy_from_host(to, offset, memory, bytes, NULL);
	free(memory);
	return err;
}

/* ---- what fits ---- */

static int metadata_of(struct xp_guard *self, struct xmem_buffer *buffer,
		       struct xmem_metadata *ret)
{
	if (!xmem_metadata_view(buffer, ret))
		return 0;
	xp_raise(self->state);
	return -1;
}

static int check_room(struct xp_guard *self, size_t offset, size_t bytes)
{
	size_t room = xp_contents(self->buffer);

	if (offset <= room && bytes <= room - offset)
		return 0;
	xp_raise_errno(self->state, ERANGE, "a copy of %zu bytes to offset %zu does not fit into "
		       "this guard, which has %zu bytes: acquire as many as are copied", bytes,
		       offset, room);
	return -1;
}

static int check_type(const struct xmem_metadata *metadata, uint32_t dtype)
{
	char own[XP_DTYPE_NAME], other[XP_DTYPE_NAME];

	if (dtype == metadata->dtype)
		return 0;
	xp_dtype_name(metadata->dtype, own);
	xp_dtype_name(dtype, other);
	PyErr_Format(PyExc_TypeError, "the elements of this guard are %s, and those that are "
		     "copied %s: convert them first, or give their bytes", own, other);
	return -1;
}

static bool is_shape(const struct xmem_metadata *metadata, int ndim, const Py_ssize_t *shape)
{
	int i;

	if (metadata->ndim != (uint32_t)ndim || ndim > XMEM_MAX_DIMENSIONS)
		return false;
	for (i = 0; i < ndim; i++)
		if (metadata->shape[i] != shape[i])
			return false;
	return true;
}

static int refuse_shape(const struct xmem_metadata *metadata, int ndim, const Py_ssize_t *shape)
{
	PyObject *own = xp_shape(metadata), *other = xp_tuple(shape, ndim);

	if (own && other)
		PyErr_Format(PyExc_ValueError, "the shape of this guard is %R, and that of the "
			     "source %R: they must be equal, unless the source is contiguous bytes",
			     own, other);
	Py_XDECREF(own);
	Py_XDECREF(other);
	return -1;
}

/*
 * Numbers of another type or shape are refused; dense bytes are accepted for anything. If the
 * description of the guard has gaps, a dense copy is wrong.
 */
static int check(struct xp_guard *self, size_t offset, const struct xp_source *source)
{
	struct xmem_metadata metadata;

	if (metadata_of(self, self->buffer, &metadata))
		return -1;
	if (!metadata.dtype || (source->dtype == XMEM_DTYPE_UINT8 && source->ndim == 1))
		return check_room(self, offset, source->bytes);
	if (!self->cuda) {
		if (xp_guard_view(self))
			return -1;
		if (!self->view.dense) {
			PyErr_SetString(PyExc_BufferError, "there are gaps between the elements of "
					"this guard: write numpy.asarray(guard)[...] instead");
			return -1;
		}
	}
	if (check_type(&metadata, source->dtype) || check_room(self, offset, source->bytes))
		return -1;
	/*
	 * An image of several planes is taken as its bytes, because libraries give them many
	 * shapes.
	 */
	if (metadata.image && metadata.ndim == 1 && source->bytes == metadata.shape[0])
		return 0;
	return is_shape(&metadata, source->ndim, source->shape) ? 0 :
	       refuse_shape(&metadata, source->ndim, source->shape);
}

static PyObject *copy_source(struct xp_guard *self, size_t offset,
			     const struct xp_source *source)
{
	struct xmem_buffer *to;
	int err;

	if (!xp_guard_write(self) || check(self, offset, source))
		return NULL;
	to = xp_guard_begin(self);
	if (!to)
		return NULL;
	XP_BEGIN_CUDA
	err = copy(to, offset, source);
	XP_END_CUDA
	xp_guard_end(self);
	if (err == -ENOMEM && xmem_peek_last_error(NULL) != -ENOMEM)
		return PyErr_NoMemory();
	return err ? xp_raise(self->state) : PyLong_FromSsize_t(source->bytes);
}

/* ---- where it comes from ---- */

static PyObject *copy_buffer(struct xp_guard *self, size_t offset, PyObject *from, uint32_t dtype)
{
	struct xp_source source;
	PyObject *done = NULL;
	Py_buffer view;

	if (PyObject_GetBuffer(from, &view, PyBUF_FULL_RO))
		return NULL;
	if (!xp_source_buffer(&source, from, &view, dtype))
		done = copy_source(self, offset, &source);
	PyBuffer_Release(&view);
	return done;
}

/*
 * Are these images of different format or size? With equally many bytes, their planes would still
 * differ.
 */
static bool are_unlike(const struct xmem_metadata *a, const struct xmem_metadata *b)
{
	return a->image && b->image &&
	       (a->image != b->image || a->image_width != b->image_width ||
		a->image_height != b->image_height);
}

/*
 * Can a guard be copied with its description? 1; 0: only its elements or bytes; -1 with an
 * exception.
 */
static int check_guard(struct xp_guard *self, struct xmem_buffer *to, struct xp_guard *from,
		       struct xmem_buffer *buffer)
{
	size_t bytes = xmem_size(buffer), room = xmem_size(to);
	struct xmem_metadata own, other;
	Py_ssize_t shape[XMEM_MAX_DIMENSIONS];
	uint32_t i;

	if (metadata_of(self, to, &own) || metadata_of(self, buffer, &other))
		return -1;
	if (own.dtype && !other.dtype)
		return 0;
	if (own.dtype) {
		if (are_unlike(&own, &other)) {
			PyErr_SetString(PyExc_ValueError, "this guard and the one that is copied "
					"are images of two formats or sizes");
			return -1;
		}
		if (check_type(&own, other.dtype))
			return -1;
		for (i = 0; i < other.ndim && i < XMEM_MAX_DIMENSIONS; i++)
			shape[i] = other.shape[i];
		if (!is_shape(&own, i, shape))
			return refuse_shape(&own, i, shape);
		if (bytes > room && !self->cuda && !from->cuda)
			return 0;
	}
	return bytes <= room || !check_room(self, 0, bytes) ? 1 : -1;
}

static PyObject *copy_whole(struct xp_guard *self, struct xp_guard *from, struct xmem_buffer *to,
			    struct xmem_buffer *buffer)
{
	int err = check_guard(self, to, from, buffer);
	size_t bytes = xp_contents(buffer);

	if (err <= 0)
		return err ? NULL : copy_buffer(self, 0, (PyObject *)from, 0);
	XP_BEGIN_CUDA
	err = xmem_copy(to, buffer, NULL);
	XP_END_CUDA
	xp_guard_view_changed(self);
	return err ? xp_raise(self->state) : PyLong_FromSize_t(bytes);
}

/*
 * Copy the whole of another guard, with its description, or only its bytes. Both guards are in use
 * until the end: neither is released meanwhile.
 */
static PyObject *copy_guard(struct xp_guard *self, size_t offset, struct xp_guard *from)
{
	struct xmem_buffer *to, *buffer;
	PyObject *done = NULL;

	if (self == from) {
		PyErr_SetString(PyExc_ValueError, "a guard is not copied into itself");
		return NULL;
	}
	if (offset)
		return copy_buffer(self, offset, (PyObject *)from, 0);
	if (!xp_guard_write(self))
		return NULL;
	to = xp_guard_begin(self);
	if (!to)
		return NULL;
	buffer = xp_guard_begin_other(self, from);
	if (buffer && self->exports)
		PyErr_SetString(PyExc_BufferError, "this guard has views of its contents as they "
				"were described before");
	else if (buffer)
		done = copy_whole(self, from, to, buffer);
	if (buffer)
		xp_guard_end_other(self, from);
	xp_guard_end(self);
	return done;
}

/* The capsule that an array gives for a call with these keywords; NULL with an exception. */
static PyObject *call_dlpack(PyObject *method, PyObject *kwargs)
{
	PyObject *nothing = PyTuple_New(0), *capsule;

	capsule = nothing && kwargs ? PyObject_Call(method, nothing, kwargs) : NULL;
	Py_XDECREF(nothing);
	Py_XDECREF(kwargs);
	return capsule;
}

/* Producers before version 1 of the protocol do not know the keyword. */
static PyObject *capsule_of(PyObject *from)
{
	PyObject *method = PyObject_GetAttrString(from, "__dlpack__"), *capsule;

	if (!method) {
		if (!PyErr_ExceptionMatches(PyExc_AttributeError))
			return NULL;
		PyErr_Clear();
		PyErr_Format(PyExc_TypeError, "a guard copies from buffers, arrays that have "
			     "__dlpack__, and guards, but not from %R: give numpy.asarray() "
			     "of it", (PyObject *)Py_TYPE(from));
		return NULL;
	}
	capsule = call_dlpack(method, Py_BuildValue("{s(ii)s(ii)}", "max_version", DL_MAJOR,
						    DL_MINOR, "dl_device", DL_CPU, 0));
	if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		capsule = PyObject_CallNoArgs(method);
	}
	Py_DECREF(method);
	return capsule;
}

/* NULL with an exception. The capsule is only read: its tensor goes with it. */
static const struct dl_tensor *tensor_in(PyObject *capsule)
{
	const struct dl_versioned *versioned;
	const struct dl_legacy *legacy;

	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		if (versioned->version.major == DL_MAJOR)
			return &versioned->tensor;
		PyErr_Format(PyExc_BufferError, "this tensor is of version %u of DLPack, which "
			     "xmem does not know", (unsigned int)versioned->version.major);
		return NULL;
	}
	legacy = PyCapsule_GetPointer(capsule, "dltensor");
	return legacy ? &legacy->tensor : NULL;
}

static PyObject *copy_dlpack(struct xp_guard *self, size_t offset, PyObject *from)
{
	PyObject *capsule = capsule_of(from), *done = NULL;
	const struct dl_tensor *tensor = capsule ? tensor_in(capsule) : NULL;
	struct xp_source source;

	if (tensor && !xp_source_tensor(&source, tensor))
		done = copy_source(self, offset, &source);
	Py_XDECREF(capsule);
	return done;
}

/*
 * The object has the buffer protocol but did not lend a buffer. An array whose type the struct
 * module has no name for, such as bfloat16, may have DLPack. If it has not, the first error stays.
 */
static PyObject *try_dlpack(struct xp_guard *self, size_t offset, PyObject *from)
{
	PyObject *type, *value, *traceback;

	if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
		return NULL;
	PyErr_Fetch(&type, &value, &traceback);		/* the next call would clear the error */
	if (self->mode != XP_WRITING || !PyObject_HasAttrString(from, "__dlpack__")) {
		PyErr_Restore(type, value, traceback);
		return NULL;
	}
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return copy_dlpack(self, offset, from);
}

/* tobytes() copies elements of any type, because bytes need no format. */
PyObject *xp_guard_tobytes(PyObject *object, PyObject *unused)
{
	PyObject *bytes;
	Py_buffer view;
	char *to;

	if (PyObject_GetBuffer(object, &view, PyBUF_STRIDED_RO))
		return NULL;
	bytes = PyBytes_FromStringAndSize(NULL, view.len);
	to = bytes ? PyBytes_AsString(bytes) : NULL;
	if (to) {
		Py_BEGIN_ALLOW_THREADS
		xp_copy_dense(to, view.buf, view.ndim, view.shape, view.strides, view.itemsize);
		Py_END_ALLOW_THREADS
	}
	PyBuffer_Release(&view);
	return bytes;
}

PyObject *xp_guard_copy_from(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "source", "offset", "dtype", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *from, *done;
	uint32_t dtype = 0;
	size_t offset = 0;

	if (!xp_parse(args, kwargs, "O|O&O&:_copy_from", names, &from, xp_size,
		      &offset, xp_u32, &dtype) || !xp_guard_write(self))
		return NULL;
	if (xp_is_guard(from))
		return copy_guard(self, offset, (struct xp_guard *)from);
	if (!PyObject_CheckBuffer(from))
		return copy_dlpack(self, offset, from);
	done = copy_buffer(self, offset, from, dtype);
	return done ? done : try_dlpack(self, offset, from);
}

// SPDX-License-Identifier: MIT
/*
 * Guard: the writer's description of the contents, and columns of strings. The view is computed
 * again after a description, so no view may be alive.
 */
#include "core.h"

#include <stdio.h>

void xp_dtype_name(uint32_t dtype, char ret[XP_DTYPE_NAME])
{
	static const char *const kinds[] = {
		[XMEM_DTYPE_CODE_INT] = "int", [XMEM_DTYPE_CODE_UINT] = "uint",
		[XMEM_DTYPE_CODE_FLOAT] = "float", [XMEM_DTYPE_CODE_BFLOAT] = "bfloat",
		[XMEM_DTYPE_CODE_COMPLEX] = "complex",
	};
	static const char *const bytes[] = {
		[XMEM_DTYPE_CODE_BOOL] = "bool",
		[XMEM_DTYPE_CODE_FLOAT8_E3M4] = "float8_e3m4",
		[XMEM_DTYPE_CODE_FLOAT8_E4M3] = "float8_e4m3",
		[XMEM_DTYPE_CODE_FLOAT8_E4M3B11FNUZ] = "float8_e4m3b11fnuz",
		[XMEM_DTYPE_CODE_FLOAT8_E4M3FN] = "float8_e4m3fn",
		[XMEM_DTYPE_CODE_FLOAT8_E4M3FNUZ] = "float8_e4m3fnuz",
		[XMEM_DTYPE_CODE_FLOAT8_E5M2] = "float8_e5m2",
		[XMEM_DTYPE_CODE_FLOAT8_E5M2FNUZ] = "float8_e5m2fnuz",
		[XMEM_DTYPE_CODE_FLOAT8_E8M0FNU] = "float8_e8m0fnu",
	};
	uint32_t code = XMEM_DTYPE_CODE(dtype), bits = XMEM_DTYPE_BITS(dtype);
	bool scalar = XMEM_DTYPE_LANES(dtype) == 1;

	if (!dtype)
		snprintf(ret, XP_DTYPE_NAME, "no numbers");
	else if (dtype == XMEM_DTYPE_FLOAT4_E2M1FN_X2)
		snprintf(ret, XP_DTYPE_NAME, "float4_e2m1fn_x2");
	else if (scalar && code < sizeof(kinds) / sizeof(*kinds) && kinds[code])
		snprintf(ret, XP_DTYPE_NAME, "%s%u", kinds[code], (unsigned int)bits);
	else if (scalar && code < sizeof(bytes) / sizeof(*bytes) && bytes[code] && bits == 8)
		snprintf(ret, XP_DTYPE_NAME, "%s", bytes[code]);
	else
		snprintf(ret, XP_DTYPE_NAME, "dtype 0x%x", (unsigned int)dtype);
}

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

	if (!xp_parse(args, kwargs, "O&O|O:describe_tensor", names, xp_u32,
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

PyObject *xp_image_bytes(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "format", "width", "height", "stride", NULL };
	uint32_t format, width, height;
	size_t stride = 0;
	int64_t bytes;

	if (!xp_parse(args, kwargs, "O&O&O&|O&:image_bytes", names, xp_u32, &format, xp_u32,
		      &width, xp_u32, &height, xp_size, &stride))
		return NULL;
	bytes = xmem_image_bytes(format, width, height, stride);
	return bytes < 0 ? xp_raise(PyModule_GetState(module)) : PyLong_FromLongLong(bytes);
}

PyObject *xp_guard_describe_image(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "format", "width", "height", "stride", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	uint32_t format, width, height;
	struct xmem_buffer *buffer;
	size_t stride = 0;

	if (!xp_parse(args, kwargs, "O&O&O&|O&:describe_image", names, xp_u32,
		      &format, xp_u32, &width, xp_u32, &height, xp_size,
		      &stride))
		return NULL;
	buffer = describable(self);
	if (!buffer)
		return NULL;
	return described(self, xmem_describe_image(buffer, format, width, height, stride));
}

/* ---- columns of strings ---- */

static PyObject *strings_tuple(const struct xmem_strings *strings)
{
	PyObject *bits = strings->flags & XMEM_STRINGS_VALIDITY ?
			 PyLong_FromUnsignedLongLong(strings->validity_at) : Py_NewRef(Py_None);

	return Py_BuildValue("KKKNKK", (unsigned long long)strings->rows,
			     (unsigned long long)strings->chars,
			     (unsigned long long)strings->bytes, bits,
			     (unsigned long long)strings->offsets_at,
			     (unsigned long long)strings->chars_at);
}

PyObject *xp_strings_plan(PyObject *module, PyObject *args)
{
	struct xmem_strings plan = { .size = sizeof(plan) };
	uint64_t rows, chars;
	int validity;

	if (!PyArg_ParseTuple(args, "O&O&p:strings_plan", xp_token, &rows, xp_token, &chars,
			      &validity))
		return NULL;
	if (xmem_strings_plan(rows, chars, validity ? XMEM_STRINGS_VALIDITY : 0, &plan))
		return xp_raise(PyModule_GetState(module));
	return strings_tuple(&plan);
}

PyObject *xp_guard_describe_strings(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "rows", "chars", "validity", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer;
	uint64_t rows, chars;
	int validity = 0;

	if (!xp_parse(args, kwargs, "O&O&|p:describe_strings", names, xp_token, &rows, xp_token,
		      &chars, &validity))
		return NULL;
	buffer = describable(self);
	if (!buffer)
		return NULL;
	return described(self, xmem_describe_strings(buffer, rows, chars,
						     validity ? XMEM_STRINGS_VALIDITY : 0));
}

/* The contents of a GPU are opened, and may be waited for, so the GIL is released. */
int xp_guard_strings(struct xp_guard *self, struct xmem_strings *ret)
{
	struct xmem_buffer *buffer;
	int err;

	*ret = (struct xmem_strings){ .size = sizeof(*ret) };
	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		XP_BEGIN_CUDA
		err = xmem_strings_view(buffer, XMEM_VIEW_CUDA, ret);
		XP_END_CUDA
		xp_guard_end(self);
		if (!err)
			return xp_guard_look(self) ? 0 : -1;
		if (err == -ENODATA)
			return xp_guard_look(self) ? 1 : -1;
	}
	return -1;
}

PyObject *xp_guard_strings_view(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_strings strings;
	int found = xp_guard_strings(self, &strings);

	if (found > 0)
		return xp_raise_errno(self->state, ENODATA, "the contents are no column of "
				      "strings: their writer uses describe_strings()");
	return found ? NULL : strings_tuple(&strings);
}

/* ---- kind, maker, time ---- */

static PyObject *describe_source(struct xp_guard *self, const struct xmem_source *source)
{
	struct xmem_buffer *buffer = xp_guard_write(self);

	return buffer ? xp_done(self->state, xmem_describe_source(buffer, source)) : NULL;
}

PyObject *xp_guard_describe_content(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "content_type", "producer", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_source source = XMEM_INIT(source);

	if (!xp_parse(args, kwargs, "|zz:describe_content", names, &source.content_type,
		      &source.producer))
		return NULL;
	return describe_source(self, &source);
}

PyObject *xp_guard_describe_time(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timestamp_ns", "clock", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_source source = XMEM_INIT(source);

	if (!xp_parse(args, kwargs, "O&|z:describe_time", names, xp_token,
		      &source.timestamp_ns, &source.clock))
		return NULL;
	if (!source.clock)
		source.clock = "CLOCK_MONOTONIC";
	return describe_source(self, &source);
}

// SPDX-License-Identifier: MIT
/*
 * Python objects of the structs that the library fills in. No struct is known here: the tables of
 * layouts.h give the place and type of each field.
 */
#include "layout.h"

#include <string.h>
#include <xmem.h>

enum xp_kind {
	XP_UNSIGNED,
	XP_SIGNED,
	XP_CHARS,			/* text, up to its NUL */
	XP_BYTES,
};

struct xp_field {
	const char *name, *doc;
	size_t offset;
	size_t bytes;			/* of the whole field */
	size_t count;			/* of an array; 0: it is none */
	enum xp_kind kind;
};

struct xp_layout {
	const char *name, *doc;
	const struct xp_field *fields;
	size_t count;
};

#define XP_FIELD(type, field, kind, count, doc) \
	{ #field, doc, offsetof(struct type, field), sizeof(((struct type *)0)->field), count, \
	  kind }
#define XP_LAYOUT(type, name, doc) \
	{ name, doc, type##_fields, sizeof(type##_fields) / sizeof(type##_fields[0]) }

#define XP_LAYOUT_TABLES
#include "layouts.h"

static PyObject *number(const char *at, size_t bytes, enum xp_kind kind)
{
	uint64_t wide = 0;
	uint32_t middle;
	uint16_t narrow;

	switch (bytes) {
	case 1:
		wide = *(const uint8_t *)at;
		break;
	case 2:
		memcpy(&narrow, at, 2);
		wide = narrow;
		break;
	case 4:
		memcpy(&middle, at, 4);
		wide = middle;
		break;
	case 8:
		memcpy(&wide, at, 8);
		break;
	default:
		PyErr_Format(PyExc_SystemError, "a number of %zu bytes", bytes);
		return NULL;
	}
	if (kind == XP_UNSIGNED)
		return PyLong_FromUnsignedLongLong(wide);
	/* Extend the sign from the top bit of the field to the whole word. */
	return PyLong_FromLongLong((int64_t)(wide << (64 - 8 * bytes)) >> (64 - 8 * bytes));
}

static PyObject *numbers(const char *at, const struct xp_field *field)
{
	size_t bytes = field->bytes / field->count, i;
	PyObject *tuple = PyTuple_New((Py_ssize_t)field->count), *each;

	for (i = 0; tuple && i < field->count; i++) {
		each = number(at + i * bytes, bytes, field->kind);
		if (!each) {
			Py_DECREF(tuple);
			return NULL;
		}
		PyTuple_SetItem(tuple, (Py_ssize_t)i, each);
	}
	return tuple;
}

/* Text of other clients need not be UTF-8: an invalid byte becomes U+FFFD. */
static PyObject *text(const char *at, size_t bytes)
{
	return PyUnicode_DecodeUTF8(at, (Py_ssize_t)strnlen(at, bytes), "replace");
}

static PyObject *value(const char *data, const struct xp_field *field, size_t valid)
{
	const char *at = data + field->offset;

	if (field->offset + field->bytes > valid)
		Py_RETURN_NONE;
	if (field->kind == XP_CHARS)
		return text(at, field->bytes);
	if (field->kind == XP_BYTES)
		return PyBytes_FromStringAndSize(at, (Py_ssize_t)field->bytes);
	return field->count ? numbers(at, field) : number(at, field->bytes, field->kind);
}

PyObject *xp_layout_object(PyTypeObject *type, enum xp_layout_id id, const void *data,
			   size_t valid)
{
	const struct xp_layout *layout = &xp_layouts[id];
	PyObject *object = PyStructSequence_New(type), *each;
	size_t i;

	for (i = 0; object && i < layout->count; i++) {
		each = value(data, &layout->fields[i], valid);
		if (!each) {
			Py_DECREF(object);
			return NULL;
		}
		PyStructSequence_SetItem(object, (Py_ssize_t)i, each);
	}
	return object;
}

static PyTypeObject *make_type(const struct xp_layout *layout)
{
	PyStructSequence_Field *fields = PyMem_Calloc(layout->count + 1, sizeof(*fields));
	PyStructSequence_Desc desc = { layout->name, layout->doc, fields, (int)layout->count };
	PyTypeObject *type;
	size_t i;

	if (!fields)
		return (PyTypeObject *)PyErr_NoMemory();
	for (i = 0; i < layout->count; i++) {
		fields[i].name = layout->fields[i].name;
		fields[i].doc = layout->fields[i].doc;
	}
	type = PyStructSequence_NewType(&desc);		/* it keeps pointers to the texts, but
							 * copies the array */
	PyMem_Free(fields);
	return type;
}

int xp_layout_types(PyTypeObject *ret_types[XP_LAYOUTS])
{
	int id;

	for (id = 0; id < XP_LAYOUTS; id++) {
		ret_types[id] = make_type(&xp_layouts[id]);
		if (ret_types[id])
			continue;
		while (id)
			Py_CLEAR(ret_types[--id]);
		return -1;
	}
	return 0;
}

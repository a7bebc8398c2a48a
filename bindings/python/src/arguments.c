// SPDX-License-Identifier: MIT
/*
 * Converters for arguments: times in seconds, sizes, tokens, dimensions. The exception of a
 * converter says which values it takes. The parser, which knows the names, adds the name of the
 * argument.
 */
#include "core.h"

#include <math.h>
#include <string.h>

/* ---- whose value a converter has refused ---- */

static _Thread_local const PyObject *refused;	/* it is compared, and not looked at */

static int note(const PyObject *given, int good)
{
	refused = good ? NULL : given;
	return good;
}

/* NULL: it is none of them, or more than one. An empty name does not count. */
static const char *name_of_refused(PyObject *args, PyObject *kwargs, char **names)
{
	PyObject *key, *value;
	const char *name = NULL;
	Py_ssize_t i, at = 0;
	int count = 0;

	for (i = 0; i < PyTuple_Size(args) && names[i]; i++) {
		if (!*names[i] || PyTuple_GetItem(args, i) != refused)
			continue;
		name = names[i];
		count++;
	}
	while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
		if (value != refused)
			continue;
		name = PyUnicode_AsUTF8AndSize(key, NULL);
		count++;
	}
	return count == 1 ? name : NULL;
}

void xp_name_argument(PyObject *args, PyObject *kwargs, char **names)
{
	const char *name = refused ? name_of_refused(args, kwargs, names) : NULL, *said;
	PyObject *type, *error, *trace, *text;

	if (!name)
		return;
	PyErr_Fetch(&type, &error, &trace);
	PyErr_NormalizeException(&type, &error, &trace);
	text = error ? PyObject_Str(error) : NULL;
	said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	if (said && (type == PyExc_TypeError || type == PyExc_ValueError) && !strstr(said, name)) {
		Py_XDECREF(error);
		error = PyObject_CallFunction(type, "N", PyUnicode_FromFormat("%s: %U", name,
									      text));
		Py_CLEAR(trace);
	}
	Py_XDECREF(text);
	if (!error)
		Py_XDECREF(type);
	else
		PyErr_Restore(type, error, trace);
}

int xp_parse(PyObject *args, PyObject *kwargs, const char *format, char **names, ...)
{
	va_list list;
	int good;

	refused = NULL;
	va_start(list, names);
	good = PyArg_VaParseTupleAndKeywords(args, kwargs, format, names, list);
	va_end(list);
	if (!good)
		xp_name_argument(args, kwargs, names);
	return good;
}

/* ---- converters ---- */

/* @what says which value is wanted; @or_0: 0 is allowed as well. */
static int seconds(PyObject *given, bool or_0, const char *what, int64_t *ret_ns)
{
	double value;

	if (given == Py_None) {
		*ret_ns = XMEM_FOREVER;
		return 1;
	}
	value = PyFloat_AsDouble(given);
	if (value == -1.0 && PyErr_Occurred())
		return 0;
	if (isnan(value) || value < 0 || (!value && !or_0)) {
		PyErr_Format(PyExc_ValueError, "%s, not %R", what, given);
		return 0;
	}
	*ret_ns = value >= 9.2e9 ? XMEM_FOREVER : (int64_t)(value * 1e9);
	if (!*ret_ns && value > 0)
		*ret_ns = 1;
	return 1;
}

int xp_timeout(PyObject *given, void *ret_ns)
{
	return note(given, seconds(given, true, "a timeout is None or a number of seconds that is "
				   "not negative", ret_ns));
}

/* A duration that is not a wait. 0, which means the library's default, is not allowed here. */
int xp_lasts(PyObject *given, void *ret_ns)
{
	return note(given, seconds(given, false, "lasts is None, which is for ever, or a number of "
				   "seconds that is more than 0", ret_ns));
}

static int integer(PyObject *number, uint64_t most, const char *what, uint64_t *ret)
{
	PyObject *index = PyNumber_Index(number);
	unsigned long long value;

	if (!index)
		return 0;
	value = PyLong_AsUnsignedLongLong(index);
	Py_DECREF(index);
	if (value == (unsigned long long)-1 && PyErr_Occurred()) {
		if (!PyErr_ExceptionMatches(PyExc_OverflowError))
			return 0;
		PyErr_Clear();
		PyErr_Format(PyExc_ValueError, "%s is out of its range: %R", what, number);
		return 0;
	}
	if (value > most) {
		PyErr_Format(PyExc_ValueError, "%s is out of its range: %R", what, number);
		return 0;
	}
	*ret = value;
	return 1;
}

int xp_size(PyObject *number, void *ret)
{
	uint64_t value;

	if (!note(number, integer(number, PY_SSIZE_T_MAX, "a number of bytes", &value)))
		return 0;
	*(size_t *)ret = value;
	return 1;
}

int xp_token(PyObject *number, void *ret)
{
	return note(number, integer(number, UINT64_MAX, "a number of 64 bits", ret));
}

int xp_u32(PyObject *number, void *ret)
{
	uint64_t value;

	if (!note(number, integer(number, UINT32_MAX, "a number of 32 bits", &value)))
		return 0;
	*(uint32_t *)ret = value;
	return 1;
}

int xp_slot(PyObject *number, void *ret)
{
	uint64_t value;

	if (!xp_token(number, &value))
		return 0;
	*(uint32_t *)ret = value & 0xffff;
	return 1;
}

/*
 * PyLong_AsLongLong and PyObject_AsFileDescriptor raise OverflowError for a number that is too
 * large.
 */
static void say_range(const char *what, PyObject *given)
{
	if (!PyErr_ExceptionMatches(PyExc_OverflowError))
		return;
	PyErr_Clear();
	PyErr_Format(PyExc_ValueError, "%s is out of its range: %R", what, given);
}

int xp_signed(PyObject *number, const char *what, int64_t *ret)
{
	*ret = PyLong_AsLongLong(number);
	if (*ret != -1 || !PyErr_Occurred())
		return 1;
	say_range(what, number);
	return 0;
}

int xp_descriptor(PyObject *file, void *ret)
{
	int fd = PyObject_AsFileDescriptor(file);

	if (fd < 0)
		say_range("a descriptor", file);
	*(int *)ret = fd;
	return note(file, fd >= 0);
}

int xp_dimensions(PyObject *sequence, int64_t *ret)
{
	Py_ssize_t count, i;
	PyObject *item;
	int good;

	if (!PyTuple_Check(sequence) && !PyList_Check(sequence)) {
		PyErr_Format(PyExc_TypeError, "a shape, or strides, are a tuple or list of "
			     "integers, such as (2, 3), not %R", sequence);
		return -1;
	}
	count = PySequence_Size(sequence);
	if (count < 0)
		return -1;
	if (count > XMEM_MAX_DIMENSIONS) {
		PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions, not %zd",
			     XMEM_MAX_DIMENSIONS, count);
		return -1;
	}
	for (i = 0; i < count; i++) {
		item = PySequence_GetItem(sequence, i);
		if (!item)
			return -1;
		good = xp_signed(item, "a number of a shape, or of strides,", &ret[i]);
		Py_DECREF(item);
		if (!good)
			return -1;
	}
	return count;
}

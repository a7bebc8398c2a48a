// SPDX-License-Identifier: MIT
/*
 * What callers give: times in seconds, sizes, tokens, dimensions. Each converter says in its
 * exception what it takes.
 */
#include "core.h"

#include <math.h>

int xp_timeout(PyObject *seconds, void *ret_ns)
{
	int64_t *ns = ret_ns;
	double value;

	if (seconds == Py_None) {
		*ns = XMEM_FOREVER;
		return 1;
	}
	value = PyFloat_AsDouble(seconds);
	if (value == -1.0 && PyErr_Occurred())
		return 0;
	if (isnan(value) || value < 0) {
		PyErr_Format(PyExc_ValueError, "a timeout is None or a number of seconds that is "
			     "not negative, not %R", seconds);
		return 0;
	}
	*ns = value >= 9.2e9 ? XMEM_FOREVER : (int64_t)(value * 1e9);
	if (!*ns && value > 0)
		*ns = 1;
	return 1;
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

	if (!integer(number, PY_SSIZE_T_MAX, "a number of bytes", &value))
		return 0;
	*(size_t *)ret = value;
	return 1;
}

int xp_token(PyObject *number, void *ret)
{
	return integer(number, UINT64_MAX, "a number of 64 bits", ret);
}

int xp_u32(PyObject *number, void *ret)
{
	uint64_t value;

	if (!integer(number, UINT32_MAX, "a number of 32 bits", &value))
		return 0;
	*(uint32_t *)ret = value;
	return 1;
}

int xp_stream(PyObject *number, void *ret)
{
	uint64_t value = 0;

	if (number != Py_None && !integer(number, UINTPTR_MAX, "the address of a stream", &value))
		return 0;
	*(void **)ret = (void *)(uintptr_t)value;
	return 1;
}

int xp_dimensions(PyObject *sequence, int64_t *ret)
{
	Py_ssize_t count = PySequence_Size(sequence), i;
	PyObject *item;

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
		ret[i] = PyLong_AsLongLong(item);
		Py_DECREF(item);
		if (ret[i] == -1 && PyErr_Occurred())
			return -1;
	}
	return count;
}

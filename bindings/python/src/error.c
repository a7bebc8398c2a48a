// SPDX-License-Identifier: MIT
/*
 * Errors: the thread's last error of the library becomes an exception of the class that the Python
 * package has registered for its errno (../xmem/errors.py).
 */
#include "core.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

static PyObject *raise_as(struct xp_state *state, int err, PyObject *message)
{
	PyObject *number = PyLong_FromLong(err), *class = NULL, *error;

	if (!number || !message)
		goto out;
	if (state->errors) {
		class = PyDict_GetItemWithError(state->errors, number);
		if (!class && !PyErr_Occurred())
			class = PyDict_GetItemWithError(state->errors, Py_None);
	}
	if (PyErr_Occurred())
		goto out;
	if (!class)
		class = PyExc_OSError;
	error = PyObject_CallFunctionObjArgs(class, number, message, NULL);
	if (error)
		PyErr_SetObject(class, error);
	Py_XDECREF(error);
out:
	Py_XDECREF(number);
	Py_XDECREF(message);
	return NULL;
}

PyObject *xp_raise(struct xp_state *state)
{
	const char *message;
	int err = -xmem_get_last_error(&message);

	return raise_as(state, err, PyUnicode_DecodeUTF8(message, strlen(message), "replace"));
}

PyObject *xp_raise_errno(struct xp_state *state, int err, const char *format, ...)
{
	PyObject *message;
	va_list args;

	va_start(args, format);
	message = PyUnicode_FromFormatV(format, args);
	va_end(args);
	return raise_as(state, err, message);
}

PyObject *xp_done(struct xp_state *state, int err)
{
	if (err < 0)
		return xp_raise(state);
	Py_RETURN_NONE;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t xp_until(int64_t timeout_ns)
{
	int64_t now;

	if (timeout_ns <= 0 || timeout_ns == XMEM_FOREVER)
		return timeout_ns;
	now = now_ns();
	return timeout_ns < XMEM_FOREVER - now ? now + timeout_ns : XMEM_FOREVER;
}

bool xp_again(struct xp_state *state, int64_t until, int64_t *timeout_ns)
{
	int64_t left;

	if (xmem_peek_last_error(NULL) != -EINTR) {
		xp_raise(state);
		return false;
	}
	if (PyErr_CheckSignals())
		return false;
	if (until != XMEM_FOREVER && until > 0) {
		left = until - now_ns();
		*timeout_ns = left > 0 ? left : 1;	/* so that it is ETIMEDOUT */
	}
	return true;
}

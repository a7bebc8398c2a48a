// SPDX-License-Identifier: MIT
/*
 * Errors: the thread's last error of the library becomes an exception of the class that the Python
 * package has registered for its errno (../xmem/errors.py).
 */
#include "core.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

/*
 * Can a call of the driver be the cause of this errno? All other errors come from the library
 * itself.
 */
static bool may_be_cuda(int err)
{
	switch (err) {
	case EPERM: case EIO: case ENOMEM: case ENODEV: case EINVAL: case ECHILD: case EOPNOTSUPP:
	case EOWNERDEAD: case ESHUTDOWN: case EMEDIUMTYPE: case EMFILE:
		return true;
	default:
		return false;
	}
}

/*
 * Add the driver's last result to the error: calls that may end with a result clear it before. -1
 * with another exception.
 */
static int add_cuda_result(PyObject *error, const struct xmem_error *last)
{
	PyObject *text;
	int err;

	if (!may_be_cuda(-last->error) || !last->cuda_result)
		return 0;
	text = PyUnicode_FromString(last->cuda_name);
	err = text ? PyObject_SetAttrString(error, "cuda_result", text) : -1;
	Py_XDECREF(text);
	return err;
}

/* The class of an errno; NULL with an exception. A program may have changed the dict. */
static PyObject *class_of(struct xp_state *state, PyObject *number)
{
	PyObject *class = NULL;

	if (state->errors) {
		class = PyObject_GetItem(state->errors, number);
		if (!class && PyErr_ExceptionMatches(PyExc_KeyError)) {
			PyErr_Clear();
			class = PyObject_GetItem(state->errors, Py_None);
			if (!class && PyErr_ExceptionMatches(PyExc_KeyError))
				PyErr_Clear();
		}
	}
	if (!class && !PyErr_Occurred())
		class = Py_NewRef(PyExc_OSError);
	return class;
}

/*
 * @last: an error of the library, so the driver may be the cause; NULL: an error of this extension.
 */
static PyObject *raise_as(struct xp_state *state, int err, PyObject *message,
			  const struct xmem_error *last)
{
	PyObject *number = PyLong_FromLong(err), *class = NULL, *error;

	if (!number || !message)
		goto out;
	class = class_of(state, number);
	if (!class)
		goto out;
	error = PyObject_CallFunctionObjArgs(class, number, message, NULL);
	if (error && !(last && add_cuda_result(error, last)))
		PyErr_SetObject(class, error);
	Py_XDECREF(error);
out:
	Py_XDECREF(class);
	Py_XDECREF(number);
	Py_XDECREF(message);
	return NULL;
}

/*
 * Does a message name something that only C programs know? Most do not, and need no call of Python
 * code.
 */
static bool speaks_c(const char *message)
{
	return strstr(message, "xmem_") || strstr(message, "XMEM_") || strstr(message, "_ns") ||
	       strstr(message, "wait_contents") || strstr(message, "NULL") ||
	       !strncmp(message, "pool_", 5);
}

/* A message of the library, with its C names replaced by Python's (../xmem/words.py). */
static PyObject *in_words(struct xp_state *state, const char *message)
{
	PyObject *text = PyUnicode_DecodeUTF8(message, strlen(message), "replace"), *said;

	if (!text || !state->words || !speaks_c(message))
		return text;
	said = PyObject_CallFunctionObjArgs(state->words, text, NULL);
	Py_DECREF(text);
	return said;
}

PyObject *xp_raise(struct xp_state *state)
{
	struct xmem_error last = XMEM_INIT(last);
	int err = -xmem_get_last_error(&last);

	return raise_as(state, err, in_words(state, last.message), &last);
}

/*
 * The message of another function in the name of this method. NULL: it names no other function, or
 * an exception is set.
 */
static PyObject *renamed(PyObject *text, const char *other, const char *method)
{
	PyObject *prefix = PyUnicode_FromString(other), *rest = NULL, *now = NULL;
	Py_ssize_t length = prefix ? PyUnicode_GetLength(prefix) : 0;

	if (prefix && PyUnicode_Tailmatch(text, prefix, 0, length, -1) == 1)
		rest = PyUnicode_Substring(text, length, PyUnicode_GetLength(text));
	if (rest)
		now = PyUnicode_FromFormat("%s: %U", method, rest);
	Py_XDECREF(rest);
	Py_XDECREF(prefix);
	return now;
}

void xp_raised_by(const char *method)
{
	static const char *const others[] = {
		"cuda_ptr: ", "cuda_ptr_mut: ", "data: ", "data_mut: ", "copy_range: ",
	};
	PyObject *type, *error, *trace, *number, *text, *args, *now = NULL;
	size_t i;

	PyErr_Fetch(&type, &error, &trace);
	PyErr_NormalizeException(&type, &error, &trace);
	number = error ? PyObject_GetAttrString(error, "errno") : NULL;
	text = number ? PyObject_GetAttrString(error, "strerror") : NULL;
	for (i = 0; text && PyUnicode_Check(text) && !now && i < Py_ARRAY_LENGTH(others); i++)
		now = renamed(text, others[i], method);
	args = now ? PyTuple_Pack(2, number, now) : NULL;
	if (args && !PyObject_SetAttrString(error, "strerror", now))
		PyObject_SetAttrString(error, "args", args);
	Py_XDECREF(args);
	Py_XDECREF(now);
	Py_XDECREF(text);
	Py_XDECREF(number);
	PyErr_Restore(type, error, trace);	/* the handler's exception counts, not an error
						 * of these calls */
}

PyObject *xp_raise_errno(struct xp_state *state, int err, const char *format, ...)
{
	PyObject *message;
	va_list args;

	va_start(args, format);
	message = PyUnicode_FromFormatV(format, args);
	va_end(args);
	return raise_as(state, err, message, NULL);
}

PyObject *xp_raise_forked(struct xp_state *state, const char *what)
{
	return xp_raise_errno(state, ECHILD, "this %s was inherited by fork, and is the parent's: "
			      "reopen() the pool in this process", what);
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

bool xp_raise_lost(struct xp_state *state, PyObject *lost)
{
	PyObject *text;
	int err;

	if (!lost)
		return false;
	if (PyArg_ParseTuple(lost, "iU", &err, &text))
		xp_raise_errno(state, err, "%U", text);
	return true;
}

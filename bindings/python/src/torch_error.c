// SPDX-License-Identifier: MIT
/*
 * Errors of the module xmem._torch, and calls that a signal has ended.
 */
#include "torch_message.h"

PyObject *xt_raise_errno(PyObject *module, int err, const char *message)
{
	struct xt_state *state = PyModule_GetState(module);
	PyObject *number = PyLong_FromLong(err), *class = NULL, *error = NULL;

	if (!number)
		return NULL;
	if (state->errors) {
		class = PyObject_GetItem(state->errors, number);
		if (!class && PyErr_ExceptionMatches(PyExc_KeyError)) {
			PyErr_Clear();
			class = PyObject_GetItem(state->errors, Py_None);
		}
	} else {
		class = Py_NewRef(PyExc_OSError);
	}
	if (class)
		error = PyObject_CallFunction(class, "Os", number, message);
	if (error)
		PyErr_SetObject(class, error);
	Py_XDECREF(error);
	Py_XDECREF(class);
	Py_DECREF(number);
	return NULL;
}

bool xt_is_error(PyObject *module)
{
	struct xt_state *state = PyModule_GetState(module);
	PyObject *type, *value, *trace, *class = PyExc_OSError;
	bool is;

	PyErr_Fetch(&type, &value, &trace);
	if (state->errors)
		class = PyDict_GetItemWithError(state->errors, Py_None);
	is = type && class && PyErr_GivenExceptionMatches(type, class);
	PyErr_Restore(type, value, trace);
	return is;
}

PyObject *xt_raise(PyObject *module)
{
	struct xmem_error last = XMEM_INIT(last);
	int err = -xmem_get_last_error(&last);

	if (!err)			/* the failure is this extension's own: no memory */
		return PyErr_NoMemory();
	return xt_raise_errno(module, err, last.message);
}

bool xt_again(PyObject *module)
{
	if (xmem_peek_last_error(NULL) == -EINTR)
		return !PyErr_CheckSignals();
	xt_raise(module);
	return false;
}

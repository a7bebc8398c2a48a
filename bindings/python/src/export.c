// SPDX-License-Identifier: MIT
/*
 * A capsule for other extensions: the library's table, and two functions that make guards of
 * handles and exceptions of errors (../xmem/include/xmem_python.h).
 *
 * All interpreters of the process share the capsule. So the functions look up the module of their
 * interpreter, which is already imported.
 */
#include "core.h"

#include "../xmem/include/xmem_python.h"

/*
 * The state of this interpreter's module. It is valid until the caller drops the reference
 * *ret_module.
 */
static struct xp_state *state_of(PyObject **ret_module)
{
	*ret_module = PyImport_ImportModule("xmem._core");
	return *ret_module ? PyModule_GetState(*ret_module) : NULL;
}

static const struct xmem_api *get_api(uint32_t version)
{
	const struct xmem_api *api = xmem_get_api(version);
	struct xmem_error last = XMEM_INIT(last);

	if (!api) {
		xmem_get_last_error(&last);
		PyErr_SetString(PyExc_ImportError, last.message);
	}
	return api;
}

/* Without an error, there was no memory for a handle of C++ (xmem/handles.hpp). */
static PyObject *raise_last_error(void)
{
	struct xp_state *state;
	PyObject *module;

	if (!xmem_peek_last_error(NULL))
		return PyErr_NoMemory();
	state = state_of(&module);
	if (state)
		xp_raise(state);
	Py_XDECREF(module);
	return NULL;
}

/*
 * It is not known how the C code has got the handle. So the guard releases the GIL wherever the
 * library may have to make a request for such a handle.
 */
static PyObject *as_py(struct xmem_buffer *buffer)
{
	bool writing = !xmem_token(buffer);
	struct xp_state *state;
	PyObject *module, *guard;

	if (!buffer)
		return raise_last_error();
	state = state_of(&module);
	if (!state) {
		xmem_release(buffer);
		return NULL;
	}
	guard = xp_guard_new(state, Py_None, buffer, writing ? XP_WRITING : XP_READING);
	if (guard) {
		((struct xp_guard *)guard)->counted = true;
		((struct xp_guard *)guard)->in_place = writing;
	}
	Py_DECREF(module);
	return guard;
}

static const struct xmem_python exported = {
	.size = sizeof(exported),
	.get_api = get_api,
	.as_py = as_py,
	.raise_last_error = raise_last_error,
};

int xp_export(PyObject *module)
{
	PyObject *capsule = PyCapsule_New((void *)&exported, XMEM_PYTHON_CAPSULE, NULL);
	int err = capsule ? PyModule_AddObjectRef(module, "capi", capsule) : -1;

	Py_XDECREF(capsule);
	return err;
}

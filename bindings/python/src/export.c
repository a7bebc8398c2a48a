// SPDX-License-Identifier: MIT
/*
 * A capsule for other extensions: the library's table, and two functions that make guards of
 * handles and exceptions of errors (../xmem/include/xmem_python.h).
 *
 * The capsule is the same for all interpreters of the process. So the functions ask for the module
 * of theirs; it is imported already, and that only looks it up.
 */
#include "core.h"

#include "../xmem/include/xmem_python.h"

/* The state of this interpreter's module, which is in *ret_module until that is let go. */
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

/* No error means that there was no memory for a handle of C++ (xmem/handles.hpp). */
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
 * How C has come by the handle is not known. So the guard lets go of the GIL where that may have
 * been in a way after which the library asks the host.
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

// SPDX-License-Identifier: MIT
/*
 * A module with one function, for tests/check-bindings.sh: make(id, bytes, valid) makes an object
 * of the struct whose bytes these are.
 */
#include "bindings/python/src/layout.h"

static PyTypeObject *types[XP_LAYOUTS];

static PyObject *make(PyObject *module, PyObject *args)
{
	const char *bytes;
	Py_ssize_t length, valid;
	int id;

	if (!PyArg_ParseTuple(args, "iy#n", &id, &bytes, &length, &valid))
		return NULL;
	return xp_layout_object(types[id], (enum xp_layout_id)id, bytes, (size_t)valid);
}

static PyMethodDef methods[] = {
	{ "make", make, METH_VARARGS, NULL },
	{ 0 }
};

static int start(PyObject *module)
{
	return xp_layout_types(types);
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, start },
	{ 0 }
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, .m_name = "try_layout", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit_try_layout(void);
PyMODINIT_FUNC PyInit_try_layout(void)
{
	return PyModuleDef_Init(&definition);
}

// SPDX-License-Identifier: MIT
/*
 * The module xmem._core: its state and its functions. It is initialised in several phases, and
 * each interpreter that imports it has types and state of its own.
 */
#include "core.h"

static void replace(void *slot, void *object)
{
	PyObject **at = slot, *old = *at;

	Py_INCREF((PyObject *)object);
	*at = object;
	Py_XDECREF(old);
}

/* set_types(guard, subscription): the subclasses that calls of this module make. */
static PyObject *set_types(PyObject *module, PyObject *args)
{
	struct xp_state *state = PyModule_GetState(module);
	PyTypeObject *guard, *subscription;

	if (!PyArg_ParseTuple(args, "O!O!:set_types", &PyType_Type, &guard, &PyType_Type,
			      &subscription))
		return NULL;
	if (!PyType_IsSubtype(guard, state->guard) ||
	    !PyType_IsSubtype(subscription, state->subscription)) {
		PyErr_SetString(PyExc_TypeError, "set_types wants a Guard and a Subscription");
		return NULL;
	}
	replace(&state->guard_class, guard);
	replace(&state->subscription_class, subscription);
	Py_RETURN_NONE;
}

/* set_errors(classes): a dict from errno to the class that is raised; None: of all others. */
static PyObject *set_errors(PyObject *module, PyObject *classes)
{
	struct xp_state *state = PyModule_GetState(module);

	if (!PyDict_Check(classes)) {
		PyErr_SetString(PyExc_TypeError, "set_errors wants a dict");
		return NULL;
	}
	replace(&state->errors, classes);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "pool_open", (PyCFunction)(void *)xp_pool_open, METH_VARARGS | METH_KEYWORDS, NULL },
	{ "set_types", set_types, METH_VARARGS, NULL },
	{ "set_errors", set_errors, METH_O, NULL },
	{ NULL, NULL, 0, NULL }
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

	if (type && PyModule_AddObjectRef(module, name, type))
		Py_CLEAR(type);
	return (PyTypeObject *)type;
}

static int execute(PyObject *module)
{
	struct xp_state *state = PyModule_GetState(module);

	state->pool = add_type(module, &xp_pool_spec, "Pool");
	state->guard = add_type(module, &xp_guard_spec, "Guard");
	state->subscription = add_type(module, &xp_subscription_spec, "Subscription");
	if (!state->pool || !state->guard || !state->subscription)
		return -1;
	return PyModule_AddStringConstant(module, "version", XMEM_VERSION);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct xp_state *state = PyModule_GetState(module);

	Py_VISIT(state->pool);
	Py_VISIT(state->guard);
	Py_VISIT(state->subscription);
	Py_VISIT(state->guard_class);
	Py_VISIT(state->subscription_class);
	Py_VISIT(state->errors);
	return 0;
}

static int clear(PyObject *module)
{
	struct xp_state *state = PyModule_GetState(module);

	Py_CLEAR(state->pool);
	Py_CLEAR(state->guard);
	Py_CLEAR(state->subscription);
	Py_CLEAR(state->guard_class);
	Py_CLEAR(state->subscription_class);
	Py_CLEAR(state->errors);
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
	{ 0, NULL }
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "xmem._core",
	.m_doc = "The extension of xmem; use the package.",
	.m_size = sizeof(struct xp_state),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
};

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&definition);
}

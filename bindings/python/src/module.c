// SPDX-License-Identifier: MIT
/*
 * The module xmem._core: its state and its functions. It is initialised in several phases, and
 * each interpreter that imports it has types and state of its own.
 */
#include "core.h"

/*
 * The package sets these once, when it is imported, and they are read without a lock. The old value
 * is not released, because another thread may be using it.
 */
static void set(void *slot, void *object)
{
	Py_INCREF((PyObject *)object);
	__atomic_store_n((PyObject **)slot, object, __ATOMIC_RELEASE);
}

/* set_types(guard, subscription): the subclasses of which this module makes instances. */
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
	set(&state->guard_class, guard);
	set(&state->subscription_class, subscription);
	Py_RETURN_NONE;
}

/*
 * set_errors(classes, words): a dict from errno to the class that is raised, with the key None for
 * all other errnos; and a function that puts a message into Python's words.
 */
static PyObject *set_errors(PyObject *module, PyObject *args)
{
	struct xp_state *state = PyModule_GetState(module);
	PyObject *classes, *words;

	if (!PyArg_ParseTuple(args, "OO:set_errors", &classes, &words))
		return NULL;
	if (!PyDict_Check(classes) || !PyCallable_Check(words)) {
		PyErr_SetString(PyExc_TypeError, "set_errors wants a dict and a function");
		return NULL;
	}
	set(&state->errors, classes);
	set(&state->words, words);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "pool_open", xp_pool_open, METH_VARARGS, XP_DOC_pool_open },
	{ "narrow_fd", xp_narrow_fd, METH_VARARGS, XP_DOC_narrow_fd },
	{ "host", xp_host, METH_NOARGS, XP_DOC_host },
	{ "pools", xp_pools, METH_NOARGS, XP_DOC_pools },
	{ "limits", xp_limits, METH_NOARGS, XP_DOC_limits },
	{ "image_bytes", (PyCFunction)(void *)xp_image_bytes, METH_VARARGS | METH_KEYWORDS,
	  XP_DOC_image_bytes },
	{ "strings_plan", xp_strings_plan, METH_VARARGS, XP_DOC_strings_plan },
	{ "lost_guard", xp_lost_guard, METH_VARARGS, XP_DOC_lost_guard },
	{ "lost_pool", xp_lost_pool, METH_VARARGS, XP_DOC_lost_pool },
	{ "set_types", set_types, METH_VARARGS, XP_DOC_set_types },
	{ "set_errors", set_errors, METH_VARARGS, XP_DOC_set_errors },
	{ "cuda_query", xp_cuda_query, METH_NOARGS, XP_DOC_cuda_query },
	{ "cuda_device_query", xp_cuda_device_query, METH_O, XP_DOC_cuda_device_query },
	{ "cuda_last_result", xp_cuda_last_result, METH_NOARGS, XP_DOC_cuda_last_result },
	{ "clear_last_error", xp_clear_last_error, METH_NOARGS, XP_DOC_clear_last_error },
	{ "dlpack_look", xp_dlpack_look, METH_O, XP_DOC_dlpack_look },
	{ "end_later", xp_end_later, METH_NOARGS, XP_DOC_end_later },
	{ NULL, NULL, 0, NULL }
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

	if (type && PyModule_AddObjectRef(module, name, type))
		Py_CLEAR(type);
	return (PyTypeObject *)type;
}

/* The type of an answer, by the last part of its name. */
static int add_layout(PyObject *module, PyTypeObject *type)
{
	PyObject *name = PyObject_GetAttrString((PyObject *)type, "__name__");
	int err = name ? PyObject_SetAttr(module, name, (PyObject *)type) : -1;

	Py_XDECREF(name);
	return err;
}

static int execute(PyObject *module)
{
	struct xp_state *state = PyModule_GetState(module);
	int i;

	state->pool = add_type(module, &xp_pool_spec, "Pool");
	state->guard = add_type(module, &xp_guard_spec, "Guard");
	state->subscription = add_type(module, &xp_subscription_spec, "Subscription");
	state->span = (PyTypeObject *)PyType_FromModuleAndSpec(module, &xp_span_spec, NULL);
	state->plane = add_type(module, &xp_plane_spec, "Plane");
	state->copy = (PyTypeObject *)PyType_FromModuleAndSpec(module, &xp_copy_spec, NULL);
	state->later = xp_later_new();
	if (!state->pool || !state->guard || !state->subscription || !state->span ||
	    !state->plane || !state->copy || !state->later || xp_dlpack_add_table(state->guard))
		return -1;
	xp_count_forks();
	if (xp_export(module) || xp_layout_types(state->layouts))
		return -1;
	for (i = 0; i < XP_LAYOUTS; i++) {
		if (add_layout(module, state->layouts[i]))
			return -1;
	}
	return PyModule_AddStringConstant(module, "version", XMEM_VERSION);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct xp_state *state = PyModule_GetState(module);
	int i;

	Py_VISIT(state->pool);
	Py_VISIT(state->guard);
	Py_VISIT(state->subscription);
	Py_VISIT(state->span);
	Py_VISIT(state->plane);
	Py_VISIT(state->guard_class);
	Py_VISIT(state->subscription_class);
	Py_VISIT(state->errors);
	Py_VISIT(state->words);
	Py_VISIT(state->copy);
	for (i = 0; i < XP_LAYOUTS; i++)
		Py_VISIT(state->layouts[i]);
	return 0;
}

static int clear(PyObject *module)
{
	struct xp_state *state = PyModule_GetState(module);
	int i;

	Py_CLEAR(state->pool);
	Py_CLEAR(state->guard);
	Py_CLEAR(state->subscription);
	Py_CLEAR(state->span);
	Py_CLEAR(state->plane);
	Py_CLEAR(state->guard_class);
	Py_CLEAR(state->subscription_class);
	Py_CLEAR(state->errors);
	Py_CLEAR(state->words);
	Py_CLEAR(state->copy);
	for (i = 0; i < XP_LAYOUTS; i++)
		Py_CLEAR(state->layouts[i]);
	return 0;
}

static void free_state(void *module)
{
	struct xp_state *state = PyModule_GetState(module);

	clear(module);
	xp_later_put(state->later);
	state->later = NULL;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
#ifdef Py_mod_gil
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },	/* core.h, "Locks" */
#endif
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
	.m_free = free_state,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&definition);
}

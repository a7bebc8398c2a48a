// SPDX-License-Identifier: MIT
/*
 * The module xmem._torch: the table of its functions, which take numbers and give capsules. Only
 * ../xmem/torch calls it.
 */
#include "torch_message.h"
#include "doc_torch.h"

#include <string.h>

static PyObject *set_errors(PyObject *module, PyObject *classes)
{
	struct xt_state *state = PyModule_GetState(module);
	PyObject *before = state->errors;

	if (!PyDict_Check(classes)) {
		PyErr_SetString(PyExc_TypeError, "set_errors wants a dict");
		return NULL;
	}
	Py_INCREF(classes);
	state->errors = classes;
	Py_XDECREF(before);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "set_errors", set_errors, METH_O, XT_DOC_set_errors },
	{ "join", xt_call_join, METH_VARARGS, XT_DOC_join },
	{ "make", xt_call_make, METH_VARARGS, XT_DOC_make },
	{ "get", xt_call_get, METH_VARARGS, XT_DOC_get },
	{ "get_tensor", xt_call_get_tensor, METH_VARARGS, XT_DOC_get_tensor },
	{ "find", xt_call_find, METH_O, XT_DOC_find },
	{ "offer", xt_call_offer, METH_O, XT_DOC_offer },
	{ "drop", xt_call_drop, METH_VARARGS, XT_DOC_drop },
	{ "claims", xt_call_claims, METH_VARARGS, XT_DOC_claims },
	{ "set_in_flight", xt_call_set_in_flight, METH_O, XT_DOC_set_in_flight },
	{ "stat", xt_call_pool_stat, METH_VARARGS, XT_DOC_stat },
	{ "set_messages", xt_call_set_messages, METH_O, XT_DOC_set_messages },
	{ "set_weak", xt_call_set_weak, METH_VARARGS, XT_DOC_set_weak },
	{ "set_known", xt_call_set_known, METH_VARARGS, XT_DOC_set_known },
	{ "set_installed", xt_call_set_installed, METH_O, XT_DOC_set_installed },
	{ "reduce", xt_call_reduce, METH_O, XT_DOC_reduce },
	{ "rebuild", xt_call_rebuild, METH_O, XT_DOC_rebuild },
	{ "swap", xt_swap, METH_VARARGS, XT_DOC_swap },
	{ "guard_capsule", xt_guard_capsule, METH_VARARGS, XT_DOC_guard_capsule },
	{ "cuda_share", xt_cuda_share, METH_VARARGS, XT_DOC_cuda_share },
	{ "cuda_get", xt_cuda_get, METH_VARARGS, XT_DOC_cuda_get },
	{ "cuda_wait", xt_cuda_wait, METH_VARARGS, XT_DOC_cuda_wait },
	{ "cuda_again", xt_cuda_again, METH_VARARGS, XT_DOC_cuda_again },
	{ "cuda_fence", xt_cuda_fence, METH_VARARGS, XT_DOC_cuda_fence },
	{ "cuda_collect", xt_cuda_collect, METH_VARARGS, XT_DOC_cuda_collect },
	{ "cuda_room", xt_cuda_room, METH_NOARGS, XT_DOC_cuda_room },
	{ "cuda_use", xt_cuda_use, METH_VARARGS, XT_DOC_cuda_use },
	{ "holds", xt_call_holds, METH_NOARGS, XT_DOC_holds },
	{ "fork_offer", xt_call_fork_offer, METH_NOARGS, XT_DOC_fork_offer },
	{ "fork_restore", xt_call_fork_restore, METH_NOARGS, XT_DOC_fork_restore },
	{ "gone", xt_call_gone, METH_O, XT_DOC_gone },
	{ "allocate_from", xt_call_allocate_from, METH_VARARGS, XT_DOC_allocate_from },
	{ "allocator", xt_call_allocator, METH_NOARGS, XT_DOC_allocator },
	{ NULL, NULL, 0, NULL }
};

static int execute(PyObject *module)
{
	struct xt_state *state = PyModule_GetState(module);
	int err;

	if (xt_messages_make(&state->messages) < 0 ||
	    xt_weak_make(module, &state->messages) < 0)
		return -1;
	err = xt_fork_register();
	if (err)
		xt_raise_errno(module, -err, strerror(-err));
	return err ? -1 : 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct xt_state *state = PyModule_GetState(module);

	Py_VISIT(state->errors);
	return xt_messages_traverse(&state->messages, visit, arg);
}

static int clear(PyObject *module)
{
	struct xt_state *state = PyModule_GetState(module);

	Py_CLEAR(state->errors);
	xt_messages_clear(&state->messages);
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
#ifdef Py_mod_gil
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },	/* the functions here have locks of their own */
#endif
	{ 0, NULL }
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "xmem._torch",
	.m_doc = "Memory of pools for storages of torch; use xmem.torch.",
	.m_size = sizeof(struct xt_state),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
};

PyMODINIT_FUNC PyInit__torch(void);

PyMODINIT_FUNC PyInit__torch(void)
{
	return PyModuleDef_Init(&definition);
}

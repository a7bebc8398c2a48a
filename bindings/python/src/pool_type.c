// SPDX-License-Identifier: MIT
/*
 * Pool: the type, with its methods and properties.
 */
#include "core.h"

static PyObject *get_backend(PyObject *object, void *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_begin(self);
	const char *name;		/* a constant of the library */

	if (!pool)
		return NULL;
	name = xmem_pool_backend(pool);
	xp_pool_end(self);
	return PyUnicode_FromString(name);
}

static PyObject *get_forked(PyObject *object, void *unused)
{
	return PyBool_FromLong(((struct xp_pool *)object)->forks != xp_forks);
}

static PyObject *get_closed(PyObject *object, void *unused)
{
	return PyBool_FromLong(xp_pool_is_closed((struct xp_pool *)object));
}

#define KEYWORDS(function) (PyCFunction)(void *)(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
	{ "reopen", xp_pool_reopen, METH_NOARGS, XP_DOC_pool_reopen },
	{ "close", xp_pool_close, METH_NOARGS, XP_DOC_pool_close },
	{ "_preallocate", KEYWORDS(xp_pool_preallocate), XP_DOC_pool_preallocate },
	{ "_acquire", KEYWORDS(xp_pool_acquire), XP_DOC_pool_acquire },
	{ "attach_fd", KEYWORDS(xp_pool_attach_fd), XP_DOC_pool_attach_fd },
	{ "_cuda_acquire", KEYWORDS(xp_pool_cuda_acquire), XP_DOC_pool_cuda_acquire },
	{ "_copy_of", xp_pool_copy_of, METH_VARARGS, XP_DOC_pool_copy_of },
	{ "_cuda_attach", KEYWORDS(xp_pool_cuda_attach), XP_DOC_pool_cuda_attach },
	{ "get", xp_pool_get, METH_O, XP_DOC_pool_get },
	{ "claims", xp_pool_claims, METH_O, XP_DOC_pool_claims },
	{ "add_ref", xp_pool_add_ref, METH_O, XP_DOC_pool_add_ref },
	{ "release", xp_pool_release, METH_O, XP_DOC_pool_release },
	{ "void_claims", xp_pool_void_claims, METH_O, XP_DOC_pool_void_claims },
	{ "_keep", xp_pool_keep, METH_NOARGS, XP_DOC_pool_keep },
	{ "_give_back", xp_pool_give_back, METH_O, XP_DOC_pool_give_back },
	{ "retract", xp_pool_retract, METH_O, XP_DOC_pool_retract },
	{ "collect", xp_pool_collect, METH_NOARGS, XP_DOC_pool_collect },
	{ "trim", KEYWORDS(xp_pool_trim), XP_DOC_pool_trim },
	{ "limbo_hook", KEYWORDS(xp_pool_limbo_hook), XP_DOC_pool_limbo_hook },
	{ "cancel", xp_pool_cancel, METH_NOARGS, XP_DOC_pool_cancel },
	{ "fileno", xp_pool_fileno, METH_NOARGS, XP_DOC_pool_fileno },
	{ "subscribers_fileno", xp_pool_subscribers_fileno, METH_NOARGS,
	  XP_DOC_pool_subscribers_fileno },
	{ "fd", xp_pool_fd, METH_NOARGS, XP_DOC_pool_fd },
	{ "_set_mode", xp_pool_set_mode, METH_VARARGS, XP_DOC_pool_set_mode },
	{ "_evict", xp_pool_evict, METH_VARARGS, XP_DOC_pool_evict },
	{ "_grant", xp_pool_grant, METH_VARARGS, XP_DOC_pool_grant },
	{ "_drain", xp_pool_drain, METH_VARARGS, XP_DOC_pool_drain },
	{ "stat", xp_pool_stat, METH_NOARGS, XP_DOC_pool_stat },
	{ "client_info", xp_pool_client_info, METH_O, XP_DOC_pool_client_info },
	{ "_subscribers", xp_pool_subscribers, METH_NOARGS, XP_DOC_pool_subscribers },
	{ "_wait_for_subscribers", KEYWORDS(xp_pool_wait_for_subscribers),
	  XP_DOC_pool_wait_for_subscribers },
	{ "slot_info", xp_pool_slot_info, METH_O, XP_DOC_pool_slot_info },
	{ "device_info", xp_pool_device_info, METH_O, XP_DOC_pool_device_info },
	{ "limits", xp_pool_limits, METH_NOARGS, XP_DOC_pool_limits },
	{ "holds", xp_pool_holds, METH_VARARGS, XP_DOC_pool_holds },
	{ "_subscribe", KEYWORDS(xp_pool_subscribe), XP_DOC_pool_subscribe },
	{ "receive", KEYWORDS(xp_pool_receive), XP_DOC_pool_receive },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	{ "client", xp_pool_get_client, NULL, XP_DOC_pool_client, NULL },
	{ "backend", get_backend, NULL, XP_DOC_pool_backend, NULL },
	{ "closed", get_closed, NULL, XP_DOC_pool_closed, NULL },
	{ "_lost", xp_pool_get_lost, NULL, XP_DOC_lost, NULL },
	{ "_numbered", xp_pool_get_numbered, NULL, XP_DOC_pool_numbered, NULL },
	{ "forked", get_forked, NULL, XP_DOC_pool_forked, NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, xp_pool_dealloc },
	{ Py_tp_traverse, xp_pool_traverse },
	{ Py_tp_clear, xp_pool_clear },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, properties },
	{ 0, NULL }
};

PyType_Spec xp_pool_spec = {
	.name = "xmem._core.Pool",
	.basicsize = sizeof(struct xp_pool),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

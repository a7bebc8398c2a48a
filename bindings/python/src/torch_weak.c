// SPDX-License-Identifier: MIT
/*
 * The type xmem._torch.WeakRef: a weak reference to a storage, which torch counts in the storage
 * itself. It keeps the object in C++, and not the memory.
 */
#include "doc_torch.h"
#include "torch_message.h"

struct weak {
	PyObject_HEAD
	PyObject *cdata;	/* the number by which torch knows the reference */
};

static struct xt_messages *messages_of(PyTypeObject *type)
{
	return &((struct xt_state *)PyType_GetModuleState(type))->messages;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct weak *weak;
	PyObject *storage;

	if (kwargs && PyDict_Size(kwargs)) {
		PyErr_SetString(PyExc_TypeError, "WeakRef takes no words");
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "O:WeakRef", &storage))
		return NULL;
	weak = (struct weak *)allocate(type, 0);
	if (!weak)
		return NULL;
	weak->cdata = xt_say(messages_of(type), storage, XT_W_WEAK_REF);
	if (weak->cdata)
		return (PyObject *)weak;
	Py_DECREF((PyObject *)weak);
	return NULL;
}

/* The result of a function of torch for the reference. NULL with an exception. */
static PyObject *ask(struct weak *weak, enum xt_weak what)
{
	PyObject *function = messages_of(Py_TYPE((PyObject *)weak))->weak[what];

	if (function)
		return PyObject_CallFunctionObjArgs(function, weak->cdata, NULL);
	PyErr_SetString(PyExc_RuntimeError, "set_weak() has not been called");
	return NULL;
}

/* The interpreter may be ending: then the storage is kept, like everything that still exists. */
static void drop(PyObject *self)
{
	struct weak *weak = (struct weak *)self;
	PyTypeObject *type = Py_TYPE(self);
	PyObject *class, *error, *trace, *done = NULL;

	if (weak->cdata && messages_of(type)->weak[XT_WEAK_FREE]) {
		PyErr_Fetch(&class, &error, &trace);
		done = ask(weak, XT_WEAK_FREE);
		if (!done)
			PyErr_WriteUnraisable(NULL);
		Py_XDECREF(done);
		PyErr_Restore(class, error, trace);
	}
	Py_XDECREF(weak->cdata);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

int xt_weak_is_expired(struct xt_messages *is, PyObject *ref)
{
	PyObject *said;
	int expired;

	if ((PyObject *)Py_TYPE(ref) != is->weak_type) {
		PyErr_SetString(PyExc_TypeError, "the known storage of a token is no WeakRef");
		return -1;
	}
	said = ask((struct weak *)ref, XT_WEAK_EXPIRED);
	expired = said ? PyObject_IsTrue(said) : -1;
	Py_XDECREF(said);
	return expired;
}

static PyObject *expired(PyObject *self, PyObject *unused)
{
	return ask((struct weak *)self, XT_WEAK_EXPIRED);
}

static PyObject *storage(PyObject *self, PyObject *unused)
{
	return ask((struct weak *)self, XT_WEAK_STORAGE);
}

static PyMethodDef methods[] = {
	{ "expired", expired, METH_NOARGS, XT_DOC_expired },
	{ "storage", storage, METH_NOARGS, XT_DOC_storage },
	{ NULL, NULL, 0, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, XT_DOC_WeakRef },
	{ Py_tp_new, make },
	{ Py_tp_dealloc, drop },
	{ Py_tp_methods, methods },
	{ 0, NULL }
};

static PyType_Spec spec = {
	.name = "xmem._torch.WeakRef",
	.basicsize = sizeof(struct weak),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int xt_weak_make(PyObject *module, struct xt_messages *is)
{
	is->weak_type = PyType_FromModuleAndSpec(module, &spec, NULL);
	return is->weak_type ? PyModule_AddObjectRef(module, "WeakRef", is->weak_type) : -1;
}

PyObject *xt_weak_of(struct xt_messages *is, PyObject *storage)
{
	return PyObject_CallFunctionObjArgs(is->weak_type, storage, NULL);
}

PyObject *xt_call_set_weak(PyObject *module, PyObject *args)
{
	struct xt_messages *is = &((struct xt_state *)PyModule_GetState(module))->messages;
	PyObject *given[XT_WEAKS], *before;
	int i;

	if (!PyArg_ParseTuple(args, "OOO:set_weak", &given[XT_WEAK_FREE],
			      &given[XT_WEAK_EXPIRED], &given[XT_WEAK_STORAGE]))
		return NULL;
	for (i = 0; i < XT_WEAKS; i++) {
		before = is->weak[i];
		is->weak[i] = Py_NewRef(given[i]);
		Py_XDECREF(before);
	}
	Py_RETURN_NONE;
}

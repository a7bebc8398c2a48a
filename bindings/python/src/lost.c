// SPDX-License-Identifier: MIT
/*
 * Guards and pools that are lost from the start: loading a message gives them if its buffer or pool
 * is gone. The code that loads messages is often not part of the program: the threads of
 * multiprocessing.Pool take an OSError there for the end of their pipe, and end. So loading raises
 * nothing, but each use of the loaded object raises the error.
 *
 * A lost object never had a handle. It has the errno and the text of its error instead, as a tuple.
 */
#include "core.h"

/* The tuple of errno and text; NULL with an exception. */
static PyObject *why(int err, PyObject *text)
{
	return Py_BuildValue("(iO)", err, text);
}

PyObject *xp_lost_guard(PyObject *module, PyObject *args)
{
	struct xp_state *state = PyModule_GetState(module);
	PyTypeObject *type = state->guard_class ? state->guard_class : state->guard;
	PyObject *pool, *text;
	struct xp_guard *self;
	int err;

	if (!PyArg_ParseTuple(args, "OiU:lost_guard", &pool, &err, &text))
		return NULL;
	self = (struct xp_guard *)PyType_GenericAlloc(type, 0);
	if (!self)
		return NULL;
	self->state = state;
	self->forks = xp_forks;
	self->pool = pool == Py_None ? NULL : Py_NewRef(pool);
	self->lost = why(err, text);
	if (!self->lost)
		Py_CLEAR(self);
	return (PyObject *)self;
}

PyObject *xp_lost_pool(PyObject *module, PyObject *args)
{
	struct xp_state *state = PyModule_GetState(module);
	PyObject *class, *text;
	struct xp_pool *self;
	int err;

	if (!PyArg_ParseTuple(args, "O!iU:lost_pool", &PyType_Type, &class, &err, &text))
		return NULL;
	if (!PyType_IsSubtype((PyTypeObject *)class, state->pool)) {
		PyErr_SetString(PyExc_TypeError, "lost_pool: the class is no Pool");
		return NULL;
	}
	self = xp_pool_new(state, (PyTypeObject *)class);
	if (!self)
		return NULL;
	self->users = XP_CLOSED;
	self->lost = why(err, text);
	if (!self->lost)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static PyObject *or_none(PyObject *lost)
{
	return Py_NewRef(lost ? lost : Py_None);
}

PyObject *xp_guard_get_lost(PyObject *self, void *unused)
{
	return or_none(((struct xp_guard *)self)->lost);
}

PyObject *xp_pool_get_lost(PyObject *self, void *unused)
{
	return or_none(((struct xp_pool *)self)->lost);
}

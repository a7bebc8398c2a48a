// SPDX-License-Identifier: MIT
/*
 * Pool: calls that name contents by their token or by the index of their slot: getting a buffer,
 * references that are set aside for the next get, and taking a publication back.
 */
#include "core.h"

/* A number below 65536 is the index of a slot. */
static int token_or_index(PyObject *given, uint64_t *ret)
{
	if (!xp_token(given, ret))
		return 0;
	if (*ret < 65536)
		*ret = XMEM_SLOT(*ret);
	return 1;
}

PyObject *xp_pool_get(PyObject *object, PyObject *given)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint64_t number;

	if (!token_or_index(given, &number))
		return NULL;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS		/* a get that takes a claim makes a request */
		buffer = xmem_get(pool, number);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_READING);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

/* ---- references, and taking back ---- */

typedef int token_function(struct xmem_pool *pool, uint64_t token);

/* Returns the result of @call, which is not negative, or -1 with an exception. */
static int call_by(PyObject *object, PyObject *given, token_function *call)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t number;
	int result;

	if (!token_or_index(given, &number))
		return -1;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return -1;
		Py_BEGIN_ALLOW_THREADS
		result = call(pool, number);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (result >= 0)
			return result;
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return -1;
}

static PyObject *none_by(PyObject *self, PyObject *given, token_function *call)
{
	return call_by(self, given, call) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *xp_pool_add_ref(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_add_ref);
}

PyObject *xp_pool_release(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_drop_ref);
}

PyObject *xp_pool_void_claims(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_void_claims);
}

PyObject *xp_pool_retract(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_retract);
}

PyObject *xp_pool_claims(PyObject *self, PyObject *number)
{
	int claims = call_by(self, number, xmem_claims);

	return claims < 0 ? NULL : PyLong_FromLong(claims);
}

/* ---- guards by number ---- */

/*
 * A program that names a buffer to its pool has read the number from a guard. The pool finds this
 * guard again, because one of the references that its set_ref_count() sets is the guard's. The pool
 * does not keep the guard.
 */
int xp_guard_note_number(struct xp_guard *self, struct xmem_buffer *buffer)
{
	PyObject *slot, *ref;
	int err = -1;

	if (!self->pool || !PyObject_TypeCheck(self->pool, self->state->pool))
		return 0;
	slot = PyLong_FromLong(xmem_slot(buffer));
	ref = slot ? PyWeakref_NewRef((PyObject *)self, NULL) : NULL;
	if (ref)
		err = PyDict_SetItem(((struct xp_pool *)self->pool)->numbered, slot, ref);
	Py_XDECREF(ref);
	Py_XDECREF(slot);
	return err;
}

PyObject *xp_pool_get_numbered(PyObject *self, void *unused)
{
	return Py_NewRef(((struct xp_pool *)self)->numbered);
}

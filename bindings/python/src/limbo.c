// SPDX-License-Identifier: MIT
/*
 * Pool: limbo_hook(), which sets a Python function that the library calls when too much is in
 * limbo; hook.c says how it is called.
 *
 * The function must not close the pool in whose call it runs, because closing waits for that call.
 * So close() refuses that (xp_is_hooked).
 */
#include "core.h"

/*
 * The previous function may still run in another thread, which has a reference of its own. The
 * library's @user is the pool, which every caller of the library keeps alive. The lock makes sure
 * that, of two threads that set a hook, the same one comes last in the library and here.
 */
static PyObject *set_hook(struct xp_pool *self, PyObject *call, uint64_t bytes, uint32_t count)
{
	struct xmem_pool *pool = xp_pool_begin(self);
	PyObject *old = NULL;
	int err;

	if (!pool)
		return NULL;
	XP_LOCK(self)
	err = xmem_limbo_hook(pool, bytes, count, call ? xp_hook : NULL, self);
	if (!err) {
		old = self->limbo;
		Py_XINCREF(call);
		self->limbo = call;
	}
	XP_UNLOCK
	xp_pool_end(self);
	if (err)
		return xp_raise(self->state);
	Py_XDECREF(old);
	Py_RETURN_NONE;
}

PyObject *xp_pool_limbo_hook(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "call", "nbytes", "count", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	uint64_t bytes = UINT64_MAX;
	uint32_t count = UINT32_MAX;
	PyObject *call, *limit = Py_None, *most = Py_None;

	if (!xp_parse(args, kwargs, "O|$OO:limbo_hook", names, &call, &limit,
		      &most))
		return NULL;
	if ((limit != Py_None && !xp_token(limit, &bytes)) ||
	    (most != Py_None && !xp_u32(most, &count)))
		return NULL;
	if (call != Py_None && limit == Py_None && most == Py_None) {
		PyErr_SetString(PyExc_TypeError, "limbo_hook wants nbytes, count or both: how much "
				"is too much");
		return NULL;
	}
	if (call != Py_None && !PyCallable_Check(call)) {
		PyErr_Format(PyExc_TypeError, "limbo_hook wants a function or None, not %R", call);
		return NULL;
	}
	return set_hook(self, call == Py_None ? NULL : call, bytes, count);
}

// SPDX-License-Identifier: MIT
/*
 * Pool: a function of Python's that the library calls when too much is in limbo. It calls it in the
 * middle of an acquire, collect, trim or stat, in the thread that is in there, without the GIL.
 * That thread has noted its state (away) when it let go of the GIL, and takes it back for as long
 * as the function runs: so this works in every interpreter.
 *
 * The function must not close the pool in whose call it runs, because closing waits for that call.
 * close() refuses it there (xp_is_hooked).
 */
#include "core.h"

/* The state of this thread while it is in the library without the GIL; NULL: it is not. */
static _Thread_local PyThreadState *away;

/* The pools whose functions this thread runs, the innermost first. */
struct running {
	const struct xp_pool *pool;
	struct running *outer;
};

static _Thread_local struct running *running;

PyThreadState *xp_hooked_begin(void)
{
	PyThreadState *outer = away;

	away = PyEval_SaveThread();
	return outer;
}

void xp_hooked_end(PyThreadState *outer)
{
	PyEval_RestoreThread(away);
	away = outer;
}

bool xp_is_hooked(const struct xp_pool *self)
{
	const struct running *each;

	for (each = running; each; each = each->outer)
		if (each->pool == self)
			return true;
	return false;
}

/* ---- what the function is given ---- */

static PyObject *limbo_object(struct xp_state *state, const struct xmem_limbo *limbo)
{
	return xp_layout_object(state->layouts[XP_LIMBO], XP_LIMBO, limbo, sizeof(*limbo));
}

/* ---- calling it ---- */

/* What it raises goes to sys.unraisablehook: the acquire that runs it goes on. */
static void call_python(struct xp_pool *self, const struct xmem_limbo *limbo)
{
	struct running here = { .pool = self, .outer = running };
	PyObject *call, *argument, *result = NULL;

	XP_LOCK(self)
	call = self->limbo;
	Py_XINCREF(call);
	XP_UNLOCK
	if (!call)
		return;
	running = &here;
	argument = limbo_object(self->state, limbo);
	if (argument)
		result = PyObject_CallFunctionObjArgs(call, argument, NULL);
	if (!result)
		PyErr_WriteUnraisable(call);
	Py_XDECREF(result);
	Py_XDECREF(argument);
	Py_DECREF(call);
	running = here.outer;
}

static void hook(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *user)
{
	PyThreadState *thread = away;
	PyGILState_STATE state;

	if (thread) {
		away = NULL;
		PyEval_RestoreThread(thread);
		call_python(user, limbo);
		away = PyEval_SaveThread();
	} else {
		state = PyGILState_Ensure();
		call_python(user, limbo);
		PyGILState_Release(state);
	}
}

/*
 * The function that was there before may still run in another thread; it has a reference of its
 * own. The library's @user is the pool, which whoever calls the library keeps. Of two threads that
 * set one, the same comes last there and here.
 */
static PyObject *set_hook(struct xp_pool *self, PyObject *call, uint64_t bytes, uint32_t count)
{
	struct xmem_pool *pool = xp_pool_begin(self);
	PyObject *old = NULL;
	int err;

	if (!pool)
		return NULL;
	XP_LOCK(self)
	err = xmem_limbo_hook(pool, bytes, count, call ? hook : NULL, self);
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

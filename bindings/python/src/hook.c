// SPDX-License-Identifier: MIT
/*
 * Limbo hooks: Python functions that the library calls in the middle of an acquire, collect, trim
 * or stat, in the calling thread, without the GIL. That thread has stored its state (away) when it
 * released the GIL, and takes the GIL again while the hook runs. So this works in every
 * interpreter. limbo.c sets the hook.
 */
#include "core.h"

/* The state of this thread while it is in the library without the GIL; otherwise NULL. */
static _Thread_local PyThreadState *away;

/* The pools whose hooks this thread is running, the innermost first. */
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

/* An exception of the hook goes to sys.unraisablehook, and the acquire continues. */
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

void xp_hook(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *user)
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

// SPDX-License-Identifier: MIT
/*
 * What the library tells when it is done with memory that was attached: a Python callable is
 * called, and the object that the memory belongs to is let go.
 *
 * The library tells it in any thread, with or without the GIL, in the middle of a call. If that has
 * a lock, a wait for the GIL would be a deadlock: who has it may want the lock. And a thread that
 * waits for the GIL when the interpreter ends never comes back. So what is told is only
 * noted, and run a moment later by a thread that has the GIL anyway: at the end of a call of this
 * extension, or by CPython's main thread, which is asked to. Nothing is run once the interpreter
 * has begun to end: what is noted then stays, and so does the memory.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core.h"

/* What one interpreter has to run; `lock` below guards it, and the GIL nothing. */
struct xp_later {
	PyInterpreterState *interpreter;
	struct xp_done *first, **last;
	unsigned int users;		/* the module, each xp_done, a call that is pending */
	bool pending;			/* the main thread has been asked */
	bool ended;
};

struct xp_done {
	struct xp_done *next;
	struct xp_later *later;
	pid_t process;			/* a forked child has neither the memory nor the duty */
	PyObject *call, *kept;		/* may be NULL */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all of them */

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void give_lock(void) { pthread_mutex_unlock(&lock); }

/* Where there is no GIL: not under the lock (ask). */
#ifdef Py_GIL_DISABLED
static void unlocked_begin(void) { give_lock(); }
static void unlocked_end(void) { take_lock(); }
#else
static void unlocked_begin(void) { }
static void unlocked_end(void) { }
#endif

struct xp_later *xp_later_new(void)
{
	static bool known;		/* under the lock */
	struct xp_later *later = calloc(1, sizeof(*later));

	if (!later) {
		PyErr_NoMemory();
		return NULL;
	}
	later->interpreter = PyInterpreterState_Get();
	later->last = &later->first;
	later->users = 1;
	take_lock();
	if (!known && !pthread_atfork(take_lock, give_lock, give_lock))
		known = true;
	give_lock();
	return later;
}

/* Under the lock. */
static void drop(struct xp_later *later)
{
	if (!--later->users)
		free(later);
}

void xp_later_put(struct xp_later *later)
{
	if (!later)
		return;
	take_lock();
	drop(later);
	give_lock();
}

void xp_later_end(struct xp_later *later)
{
	xp_later_run(later);
	take_lock();
	later->ended = true;
	give_lock();
}

/* ---- one duty ---- */

struct xp_done *xp_done_new(struct xp_later *later, PyObject *call, PyObject *kept)
{
	struct xp_done *done = calloc(1, sizeof(*done));

	if (!done) {
		PyErr_NoMemory();
		return NULL;
	}
	done->process = getpid();
	done->later = later;
	Py_XINCREF(call);
	done->call = call;
	Py_XINCREF(kept);
	done->kept = kept;
	take_lock();
	later->users++;
	give_lock();
	return done;
}

void xp_done_drop(struct xp_done *done)
{
	if (!done)
		return;
	Py_XDECREF(done->call);
	Py_XDECREF(done->kept);
	xp_later_put(done->later);
	free(done);
}

/* With the GIL; an exception that is being raised stays. */
static void run(struct xp_done *done)
{
	PyObject *type, *value, *trace, *result;

	PyErr_Fetch(&type, &value, &trace);
	if (done->call) {
		result = PyObject_CallNoArgs(done->call);
		if (!result)
			PyErr_WriteUnraisable(done->call);
		Py_XDECREF(result);
	}
	xp_done_drop(done);
	PyErr_Restore(type, value, trace);
}

void xp_later_run(struct xp_later *later)
{
	struct xp_done *done;

	for (;;) {
		take_lock();
		done = later->ended ? NULL : later->first;
		if (done) {
			later->first = done->next;
			if (!later->first)
				later->last = &later->first;
		}
		give_lock();
		if (!done)
			return;
		if (done->process == getpid())
			run(done);
	}
}

/* ---- asking the main thread ---- */

static int run_pending(void *argument)
{
	struct xp_later *later = argument;

	take_lock();
	later->pending = false;
	give_lock();
	if (later->interpreter == PyInterpreterState_Get())
		xp_later_run(later);
	xp_later_put(later);
	return 0;
}

/*
 * If CPython has too many calls pending, the next call of this extension runs what has been told.
 *
 * With a GIL this is called under the lock, so that xp_later_end comes before it or after it: there
 * CPython 3.11 has no list any more when the interpreter has ended. Without one the list is there
 * until the process ends, and has a mutex for which the thread may have to let go of its state;
 * so the lock is given back first.
 */
static void ask(struct xp_later *later)
{
	int full;

	unlocked_begin();
	full = Py_AddPendingCall(run_pending, later);
	unlocked_end();
	if (full) {
		later->pending = false;
		drop(later);
	}
}

/* Called by the library. */
void xp_done_tell(void *user)
{
	struct xp_done *done = user;
	struct xp_later *later = done->later;

	take_lock();
	done->next = NULL;
	*later->last = done;
	later->last = &done->next;
	if (!later->ended && !later->pending) {
		later->users++;
		later->pending = true;
		ask(later);
	}
	give_lock();
}

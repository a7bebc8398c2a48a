// SPDX-License-Identifier: MIT
/*
 * Calls to make when the library no longer needs attached memory: a Python callable is called, and
 * the object that the memory belongs to is released.
 *
 * The library tells this in any thread, with or without the GIL, in the middle of a call. If that
 * call holds a lock, waiting for the GIL would be a deadlock, because the thread with the GIL may
 * want the lock. A thread that waits for the GIL when the interpreter ends never returns. So the
 * call is only noted, and a thread with the GIL makes it a moment later: at the end of a call of
 * this extension, or the main thread, which CPython is asked to interrupt. Once the interpreter has
 * begun to end, noted calls are never made, and their memory stays.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core.h"

/*
 * The calls that one interpreter has to make. `lock` below guards them; the GIL guards nothing
 * here.
 */
struct xp_later {
	struct xp_later *next;		/* in the list `all` */
	PyInterpreterState *interpreter;
	struct xp_done *first, **last;
	unsigned int users;		/* references: the module, each xp_done, a pending call */
	bool pending;			/* the main thread has been asked */
	bool ended;
};

struct xp_done {
	struct xp_done *next;
	struct xp_later *later;
	pid_t process;			/* a forked child has neither the memory nor the calls to
					 * make */
	PyObject *call, *kept;		/* may be NULL */
	void *storage;			/* of torch, in C++, whose object is @kept; or NULL */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all of them */
static struct xp_later *all;
static unsigned int storages;	/* calls that have one; atomic */

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void give_lock(void) { pthread_mutex_unlock(&lock); }

/* Without a GIL this is not called under the lock (see ask). */
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
	later->next = all;
	all = later;
	give_lock();
	return later;
}

/* Under the lock. */
static void drop(struct xp_later *later)
{
	struct xp_later **each = &all;

	if (--later->users)
		return;
	while (*each != later)
		each = &(*each)->next;
	*each = later->next;
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

struct xp_done *xp_done_new(struct xp_later *later, PyObject *call, PyObject *kept, void *storage)
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
	done->storage = storage;
	__atomic_add_fetch(&storages, storage != NULL, __ATOMIC_RELAXED);
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
	__atomic_sub_fetch(&storages, done->storage != NULL, __ATOMIC_RELAXED);
	xp_later_put(done->later);
	free(done);
}

/* With the GIL. The current exception stays. */
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

/* ---- memory of torch's storages ---- */

bool xp_later_has_storages(void) { return __atomic_load_n(&storages, __ATOMIC_RELAXED); }

/*
 * A reference count of 1 is the call's own. Without the GIL that is safe to rely on: no thread can
 * take a further reference from nowhere, and a storage's Python object is in no other object then.
 */
bool xp_later_empty(bool (*empty)(void *storage))
{
	struct xp_later *later;
	struct xp_done *done;
	bool any = false;

	take_lock();
	for (later = all; later; later = later->next)
		for (done = later->ended ? NULL : later->first; done; done = done->next)
			if (done->storage && done->process == getpid() &&
			    Py_REFCNT(done->kept) == 1 && empty(done->storage))
				any = true;
	give_lock();
	return any;
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
 * If CPython has too many pending calls, the next call of this extension makes the noted calls.
 *
 * With a GIL this is called under the lock, so xp_later_end comes before or after it: CPython 3.11
 * has no list of pending calls after the end of the interpreter. Without a GIL the list exists
 * until the process ends, and its mutex may make the thread detach from the interpreter; so the
 * lock is released first.
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

// SPDX-License-Identifier: MIT
/*
 * Pool: a handle of a pool. close() closes it, or the end of the object.
 *
 * Each call that uses the handle counts itself (users), from before the check whether the pool is
 * closed until the library has returned. close() first marks the pool as closed, then cancels
 * waits, then waits for the remaining calls. The library also does that for most calls, once they
 * are inside. But a call that has not entered the library yet could meet another pool, opened at
 * the same address meanwhile.
 *
 * A parcel keeps the handle longer, for a call of its own (parcel.c). The last share of the handle
 * closes it.
 */
#include "core.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- who uses the handle ---- */

static void count(struct xp_pool *self)
{
	__atomic_add_fetch(&self->users, 1, __ATOMIC_ACQUIRE);
}

bool xp_pool_is_closed(struct xp_pool *self)
{
	return __atomic_load_n(&self->users, __ATOMIC_RELAXED) & XP_CLOSED;
}

void xp_pool_end(struct xp_pool *self)
{
	if (__atomic_fetch_sub(&self->users, 1, __ATOMIC_RELEASE) == (XP_CLOSED | 1))
		syscall(SYS_futex, &self->users, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

struct xmem_pool *xp_pool_begin(struct xp_pool *self)
{
	bool closed;

	count(self);
	closed = xp_pool_is_closed(self);
	if (!closed && self->forks == xp_forks)
		return self->pool;
	xp_pool_end(self);
	if (!closed)
		xp_raise_forked(self->state, "pool");
	else if (!xp_raise_lost(self->state, self->lost))
		xp_raise_errno(self->state, EBADF, "this pool has been closed");
	return NULL;
}

bool xp_pool_still(struct xp_pool *self)
{
	bool closed = xp_pool_is_closed(self);

	if (closed)
		xp_raise_errno(self->state, ECANCELED, "close() of the pool has ended the wait");
	return !closed;
}

struct xmem_pool *xp_pool_again(struct xp_pool *self, int64_t until, int64_t *timeout_ns)
{
	return xp_again(self->state, until, timeout_ns) && xp_pool_still(self) ?
	       xp_pool_begin(self) : NULL;
}

/* Call this once XP_CLOSED is set, without the GIL. */
static void wait_for_users(struct xp_pool *self)
{
	unsigned int users;

	while ((users = __atomic_load_n(&self->users, __ATOMIC_ACQUIRE)) != XP_CLOSED)
		syscall(SYS_futex, &self->users, FUTEX_WAIT_PRIVATE, users, NULL, NULL, 0);
}

/* ---- opening ---- */

struct xp_pool *xp_pool_new(struct xp_state *state, PyTypeObject *class)
{
	allocfunc alloc = PyType_GetSlot(class, Py_tp_alloc);
	struct xp_pool *self = (struct xp_pool *)alloc(class, 0);

	if (!self)
		return NULL;
	self->state = state;
	self->forks = xp_forks;
	self->shares = 1;
	self->numbered = PyDict_New();
	if (!self->numbered)
		Py_CLEAR(self);
	return self;
}

PyObject *xp_pool_open(PyObject *module, PyObject *args)
{
	static char *names[] = { "", "name", "", "flags", "slots", "clients", "ring_entries",
				 "wait_bound", "label", "demand_bytes", "cache_bytes", "cache_time",
				 "memory", "keep", "mode", "group", NULL };
	struct xmem_pool_options options = { .size = sizeof(options) };
	struct xp_state *state = PyModule_GetState(module);
	const char *name;
	PyObject *class;
	struct xp_pool *self;
	int fd;

	if (!PyArg_ParseTuple(args, "OziO&O&O&O&O&zO&O&O&O&O&O&O&:pool_open", &class, &name, &fd,
			      xp_u32, &options.flags, xp_u32, &options.slots, xp_u32,
			      &options.clients, xp_u32, &options.ring_entries, xp_timeout,
			      &options.wait_bound_ns, &options.label, xp_token,
			      &options.demand_bytes, xp_token, &options.cache_bytes, xp_timeout,
			      &options.cache_ns, xp_u32, &options.memory, xp_u32, &options.keep,
			      xp_u32, &options.mode, xp_u32, &options.gid)) {
		xp_name_argument(args, NULL, names);
		return NULL;
	}
	if (!PyType_Check(class) ||
	    !PyType_IsSubtype((PyTypeObject *)class, state->pool)) {
		PyErr_SetString(PyExc_TypeError, "pool_open: the class is no Pool");
		return NULL;
	}
	self = xp_pool_new(state, (PyTypeObject *)class);
	if (!self)
		return NULL;
	if (fd >= 0) {
		options.flags |= XMEM_OPEN_FD;
		options.fd = fd;
	}
	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		self->pool = xmem_pool_open(name, &options);
		Py_END_ALLOW_THREADS
		if (self->pool)
			return (PyObject *)self;
		if (!xp_again(state, XMEM_FOREVER, NULL))
			break;
	}
	Py_DECREF(self);
	return NULL;
}

/* A child may also reopen a handle that it has inherited by fork. */
PyObject *xp_pool_reopen(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object, *other;
	bool closed;

	if (xp_raise_lost(self->state, self->lost))
		return NULL;
	other = xp_pool_new(self->state, Py_TYPE(object));
	if (!other)
		return NULL;
	do {
		count(self);
		closed = xp_pool_is_closed(self);
		if (!closed) {
			Py_BEGIN_ALLOW_THREADS
			other->pool = xmem_pool_reopen(self->pool);
			xp_pool_end(self);
			Py_END_ALLOW_THREADS
		} else {
			xp_pool_end(self);
			xp_raise_errno(self->state, EBADF, "this pool has been closed");
		}
		if (other->pool)
			return (PyObject *)other;
	} while (!closed && xp_again(self->state, XMEM_FOREVER, NULL));
	Py_DECREF(other);
	return NULL;
}

/* ---- closing ---- */

/* Waits in the library end at once. A child of fork has none of its parent's threads. */
static void end_users(struct xp_pool *self)
{
	PyThreadState *thread;

	if (self->forks != xp_forks)
		return;
	thread = PyEval_SaveThread();
	if (__atomic_load_n(&self->users, __ATOMIC_ACQUIRE) != XP_CLOSED ||
	    __atomic_load_n(&self->shares, __ATOMIC_ACQUIRE) != 1)
		xmem_cancel(self->pool);
	wait_for_users(self);
	PyEval_RestoreThread(thread);
}

void xp_pool_put(struct xp_pool *self)
{
	if (__atomic_sub_fetch(&self->shares, 1, __ATOMIC_ACQ_REL))
		return;
	Py_BEGIN_ALLOW_THREADS
	xmem_pool_close(self->pool);
	Py_END_ALLOW_THREADS
}

PyObject *xp_pool_close(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;

	if (!xp_pool_is_closed(self) && xp_is_hooked(self))
		return xp_raise_errno(self->state, EDEADLK, "a limbo hook cannot close the pool in "
				      "whose call it runs");
	if (!(__atomic_fetch_or(&self->users, XP_CLOSED, __ATOMIC_ACQ_REL) & XP_CLOSED)) {
		end_users(self);
		xp_pool_put(self);
	}
	xp_later_run(self->state->later);
	Py_RETURN_NONE;
}

int xp_pool_clear(PyObject *object)
{
	Py_CLEAR(((struct xp_pool *)object)->limbo);
	return 0;
}

void xp_pool_dealloc(PyObject *object)
{
	struct xp_pool *self = (struct xp_pool *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	Py_CLEAR(self->lost);
	if (self->pool && self->shares) {
		Py_BEGIN_ALLOW_THREADS		/* no thread can be using it */
		xmem_pool_close(self->pool);
		Py_END_ALLOW_THREADS
	}
	Py_CLEAR(self->numbered);
	xp_pool_clear(object);
	free_object(object);
	Py_DECREF(type);
}

int xp_pool_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(((struct xp_pool *)object)->limbo);
	Py_VISIT(Py_TYPE(object));
	return 0;
}

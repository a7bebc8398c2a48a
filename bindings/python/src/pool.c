// SPDX-License-Identifier: MIT
/*
 * Pool: a handle of a pool. It is closed by close(), or when it and nobody needs it any more.
 *
 * Each call that uses the handle counts itself (users), from before it looks whether the pool is
 * closed until the library has returned. close() first says that it is, ends what waits, and waits
 * for the rest. The library does that too, for most calls and once they are inside; what has not
 * got there yet could meet a pool that has been opened at the same address meanwhile.
 *
 * A parcel keeps the handle longer, for a call of its own (parcel.c): the last of those that have a
 * share of it closes it.
 */
#include "core.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_SLOTS	(1u << 17)	/* more than any pool has */

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

/* Once XP_CLOSED is set. Without the GIL. */
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
				 "memory", "keep", "mode", "group",
				 "limbo_bytes", NULL };
	struct xmem_pool_options options = { .size = sizeof(options) };
	struct xp_state *state = PyModule_GetState(module);
	const char *name;
	PyObject *class;
	struct xp_pool *self;
	int fd;

	if (!PyArg_ParseTuple(args, "OziO&O&O&O&O&zO&O&O&O&O&O&O&O&:pool_open", &class, &name, &fd,
			      xp_u32, &options.flags, xp_u32, &options.slots, xp_u32,
			      &options.clients, xp_u32, &options.ring_entries, xp_timeout,
			      &options.wait_bound_ns, &options.label, xp_token,
			      &options.demand_bytes, xp_token, &options.cache_bytes, xp_timeout,
			      &options.cache_ns, xp_u32, &options.memory, xp_u32, &options.keep,
			      xp_u32, &options.mode, xp_u32, &options.gid, xp_token,
			      &options.limbo_bytes)) {
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

/* Of a handle that a child has inherited by fork, which may well reopen it. */
static PyObject *pool_reopen(PyObject *object, PyObject *unused)
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

/* What waits in the library ends at once. A child of fork has none of its parent's threads. */
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

static PyObject *pool_close(PyObject *object, PyObject *unused)
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

static int pool_clear(PyObject *object)
{
	Py_CLEAR(((struct xp_pool *)object)->limbo);
	return 0;
}

static void pool_dealloc(PyObject *object)
{
	struct xp_pool *self = (struct xp_pool *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	Py_CLEAR(self->lost);
	if (self->pool && self->shares) {
		Py_BEGIN_ALLOW_THREADS		/* nobody can be using it */
		xmem_pool_close(self->pool);
		Py_END_ALLOW_THREADS
	}
	Py_CLEAR(self->numbered);
	pool_clear(object);
	free_object(object);
	Py_DECREF(type);
}

static int pool_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(((struct xp_pool *)object)->limbo);
	Py_VISIT(Py_TYPE(object));
	return 0;
}

/* ---- making and acquiring buffers ---- */

/* Of the CPU, or of a GPU with XMEM_MEMORY_CUDA. A list of their slots. */
static PyObject *pool_preallocate(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "size", "count", "flags", "device_id", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_preallocate_options options = XMEM_INIT(options);
	PyObject *list = NULL, *slot;
	struct xmem_pool *pool;
	uint32_t count, i;
	uint64_t bytes;
	int err;

	if (!xp_parse(args, kwargs, "O&O&O&|i:_preallocate", names, xp_token, &bytes, xp_u32,
		      &count, xp_u32, &options.flags, &options.device_id))
		return NULL;
	/* The library refuses larger numbers before it looks at this. */
	options.ret_slots = calloc(count < MOST_SLOTS ? count + 1 : 1, sizeof(*options.ret_slots));
	if (!options.ret_slots)
		return PyErr_NoMemory();
	do {
		pool = xp_pool_begin(self);
		err = pool ? 0 : -1;
		if (err)
			break;
		XP_BEGIN_CUDA
		err = xmem_preallocate(pool, bytes, count, &options);
		xp_pool_end(self);
		XP_END_CUDA
	} while (err && xp_again(self->state, XMEM_FOREVER, NULL));
	list = err ? NULL : PyList_New(count);
	for (i = 0; list && i < count; i++) {
		slot = PyLong_FromUnsignedLong(options.ret_slots[i]);
		if (!slot || PyList_SetItem(list, i, slot))
			Py_CLEAR(list);
	}
	free(options.ret_slots);
	return list;
}

/*
 * What was said of earlier contents of this buffer is not said of these. In C a program says all or
 * nothing of its contents; in Python each view of them goes by it.
 */
static void say_nothing(struct xmem_buffer *buffer)
{
	static const struct xmem_metadata nothing;
	struct xmem_metadata *metadata = xmem_metadata_mut(buffer);

	if (metadata && memcmp(metadata, &nothing, sizeof(nothing)))
		*metadata = nothing;
}

static PyObject *pool_acquire(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "size", "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	size_t bytes = 0;

	if (!xp_parse(args, kwargs, "|O&O&:_acquire", names, xp_size, &bytes,
		      xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	for (pool = xp_pool_begin(self); pool; pool = xp_pool_again(self, until, &timeout_ns)) {
		XP_BEGIN_HOOKED
		buffer = xmem_acquire(pool, bytes, timeout_ns);
		if (buffer)
			say_nothing(buffer);
		xp_pool_end(self);
		XP_END_HOOKED
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	}
	return NULL;
}

static PyObject *pool_attach_fd(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "fd", "offset", "length", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	uint64_t offset = 0, length = 0;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	int fd;

	if (!xp_parse(args, kwargs, "O&|O&O&:attach_fd", names, xp_descriptor,
		      &fd, xp_token, &offset, xp_token, &length))
		return NULL;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_attach_fd(pool, fd, offset, length, 0);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

static PyObject *pool_wait_for_subscribers(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "count", "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_pool *pool;
	uint32_t count = 1;
	int found;

	if (!xp_parse(args, kwargs, "|O&O&:_wait_for_subscribers", names, xp_u32, &count,
		      xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	for (pool = xp_pool_begin(self); pool; pool = xp_pool_again(self, until, &timeout_ns)) {
		Py_BEGIN_ALLOW_THREADS
		found = xmem_wait_subscribers(pool, count, timeout_ns);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (found >= 0)
			return PyLong_FromLong(found);
	}
	return NULL;
}

/* ---- the pool as a whole ---- */

/* As xmem_collect, which may call a hook of the program's: how many were found, or -1. */
static int collect(struct xp_pool *self, uint64_t keep, uint64_t *ret_bytes)
{
	struct xmem_pool *pool = xp_pool_begin(self);
	int found;

	if (!pool)
		return -1;
	XP_BEGIN_HOOKED
	found = xmem_collect(pool, keep, ret_bytes);
	xp_pool_end(self);
	XP_END_HOOKED
	xp_later_run(self->state->later);
	if (found < 0)
		xp_raise(self->state);
	return found;
}

static PyObject *pool_collect(PyObject *self, PyObject *unused)
{
	int found = collect((struct xp_pool *)self, XMEM_KEEP_ALL, NULL);

	return found < 0 ? NULL : PyLong_FromLong(found);
}

static PyObject *pool_trim(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep", NULL };
	uint64_t keep = 0, given;

	if (!xp_parse(args, kwargs, "|O&:trim", names, xp_token, &keep))
		return NULL;
	return collect((struct xp_pool *)self, keep, &given) < 0 ? NULL :
	       PyLong_FromUnsignedLongLong(given);
}

static PyObject *pool_cancel(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_begin(self);
	int err;

	if (!pool)
		return NULL;
	err = xmem_cancel(pool);
	xp_pool_end(self);
	return xp_done(self->state, err);
}

static PyObject *descriptor(PyObject *object, int (*call)(struct xmem_pool *pool))
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_begin(self);
	int fd;

	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	fd = call(pool);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	return fd < 0 ? xp_raise(self->state) : PyLong_FromLong(fd);
}

static PyObject *pool_fileno(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_pool_poll_fd);
}

static PyObject *pool_subscribers_fileno(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_subscribers_poll_fd);
}

static PyObject *pool_fd(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_pool_fd);
}

PyObject *xp_narrow_fd(PyObject *module, PyObject *args)
{
	int fd, narrower;
	uint32_t roles;

	if (!PyArg_ParseTuple(args, "O&O&:narrow_fd", xp_descriptor, &fd, xp_u32, &roles))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	narrower = xmem_pool_fd_narrow(fd, roles);
	Py_END_ALLOW_THREADS
	return narrower < 0 ? xp_raise(PyModule_GetState(module)) : PyLong_FromLong(narrower);
}

static PyObject *pool_set_mode(PyObject *object, PyObject *args)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint32_t mode, gid;
	int err;

	if (!PyArg_ParseTuple(args, "O&O&:_set_mode", xp_u32, &mode, xp_u32, &gid))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = xmem_pool_set_mode(pool, mode, gid);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	if (err)
		return xp_raise(self->state);
	Py_RETURN_NONE;
}

static PyObject *pool_evict(PyObject *object, PyObject *args)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t incarnation;
	uint32_t client;
	int err;

	if (!PyArg_ParseTuple(args, "O&O&:_evict", xp_u32, &client, xp_token, &incarnation))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = xmem_pool_evict(pool, client, incarnation);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	if (err)
		return xp_raise(self->state);
	Py_RETURN_NONE;
}

static PyObject *pool_grant(PyObject *object, PyObject *args)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t incarnation;
	uint32_t client;
	int err;

	if (!PyArg_ParseTuple(args, "O&O&:_grant", xp_u32, &client, xp_token, &incarnation))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = xmem_pool_grant(pool, client, incarnation);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	if (err)
		return xp_raise(self->state);
	Py_RETURN_NONE;
}

static PyObject *pool_drain(PyObject *object, PyObject *args)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint32_t flags;
	int evicted;

	if (!PyArg_ParseTuple(args, "O&:_drain", xp_u32, &flags))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	evicted = xmem_pool_drain(pool, flags);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	return evicted < 0 ? xp_raise(self->state) : PyLong_FromLong(evicted);
}

static PyObject *get_client(PyObject *object, void *unused)
{
	return descriptor(object, xmem_pool_client);
}

static PyObject *get_backend(PyObject *object, void *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_begin(self);
	const char *name;		/* a constant of the library's */

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
	{ "reopen", pool_reopen, METH_NOARGS, XP_DOC_pool_reopen },
	{ "close", pool_close, METH_NOARGS, XP_DOC_pool_close },
	{ "_preallocate", KEYWORDS(pool_preallocate), XP_DOC_pool_preallocate },
	{ "_acquire", KEYWORDS(pool_acquire), XP_DOC_pool_acquire },
	{ "attach_fd", KEYWORDS(pool_attach_fd), XP_DOC_pool_attach_fd },
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
	{ "collect", pool_collect, METH_NOARGS, XP_DOC_pool_collect },
	{ "trim", KEYWORDS(pool_trim), XP_DOC_pool_trim },
	{ "limbo_hook", KEYWORDS(xp_pool_limbo_hook), XP_DOC_pool_limbo_hook },
	{ "cancel", pool_cancel, METH_NOARGS, XP_DOC_pool_cancel },
	{ "fileno", pool_fileno, METH_NOARGS, XP_DOC_pool_fileno },
	{ "subscribers_fileno", pool_subscribers_fileno, METH_NOARGS,
	  XP_DOC_pool_subscribers_fileno },
	{ "fd", pool_fd, METH_NOARGS, XP_DOC_pool_fd },
	{ "_set_mode", pool_set_mode, METH_VARARGS, XP_DOC_pool_set_mode },
	{ "_evict", pool_evict, METH_VARARGS, XP_DOC_pool_evict },
	{ "_grant", pool_grant, METH_VARARGS, XP_DOC_pool_grant },
	{ "_drain", pool_drain, METH_VARARGS, XP_DOC_pool_drain },
	{ "stat", xp_pool_stat, METH_NOARGS, XP_DOC_pool_stat },
	{ "client_info", xp_pool_client_info, METH_O, XP_DOC_pool_client_info },
	{ "_subscribers", xp_pool_subscribers, METH_NOARGS, XP_DOC_pool_subscribers },
	{ "_wait_for_subscribers", KEYWORDS(pool_wait_for_subscribers),
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
	{ "client", get_client, NULL, XP_DOC_pool_client, NULL },
	{ "backend", get_backend, NULL, XP_DOC_pool_backend, NULL },
	{ "closed", get_closed, NULL, XP_DOC_pool_closed, NULL },
	{ "_lost", xp_pool_get_lost, NULL, XP_DOC_lost, NULL },
	{ "_numbered", xp_pool_get_numbered, NULL, XP_DOC_pool_numbered, NULL },
	{ "forked", get_forked, NULL, XP_DOC_pool_forked, NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, pool_dealloc },
	{ Py_tp_traverse, pool_traverse },
	{ Py_tp_clear, pool_clear },
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

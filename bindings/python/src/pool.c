// SPDX-License-Identifier: MIT
/*
 * Pool: a handle of a pool. It is closed by close(), or when it and nobody needs it any more.
 *
 * xmem_get must not run while another thread closes the handle, as xmem_pool_close says. Where it
 * keeps the GIL it cannot: close() takes the handle away first. Where it may ask the host, because
 * references are set aside, it runs without the GIL and is counted in users; the last of them
 * closes the handle then.
 */
#include "core.h"

#include <string.h>

struct xmem_pool *xp_pool_of(struct xp_pool *self)
{
	if (!self->pool) {
		xp_raise_errno(self->state, EBADF, "this pool has been closed");
	} else if (self->forks != xp_forks) {
		xp_raise_forked(self->state, "pool");
		return NULL;
	}
	return self->pool;
}

bool xp_pool_still(struct xp_pool *self)
{
	if (!self->pool)
		xp_raise_errno(self->state, ECANCELED, "close() of the pool has ended the wait");
	return self->pool;
}

/* An object of that class without a handle. */
static struct xp_pool *pool_new(struct xp_state *state, PyTypeObject *class)
{
	allocfunc alloc = PyType_GetSlot(class, Py_tp_alloc);
	struct xp_pool *self = (struct xp_pool *)alloc(class, 0);

	if (self) {
		self->state = state;
		self->forks = xp_forks;
	}
	return self;
}

PyObject *xp_pool_open(PyObject *module, PyObject *args)
{
	static char *names[] = { "", "name", "", "flags", "slots", "clients", "ring_entries",
				 "wait_bound", "label", "demand_bytes", "cache_bytes", "cache_time",
				 "memory", "keep", NULL };
	struct xmem_pool_options options = { .size = sizeof(options) };
	struct xp_state *state = PyModule_GetState(module);
	const char *name;
	PyObject *class;
	struct xp_pool *self;
	int fd;

	if (!PyArg_ParseTuple(args, "OziO&O&O&O&O&zO&O&O&O&O&:pool_open", &class, &name, &fd,
			      xp_u32, &options.flags, xp_u32, &options.slots, xp_u32,
			      &options.clients, xp_u32, &options.ring_entries, xp_timeout,
			      &options.wait_bound_ns, &options.label, xp_token,
			      &options.demand_bytes, xp_token, &options.cache_bytes, xp_timeout,
			      &options.cache_ns, xp_u32, &options.memory, xp_u32, &options.keep)) {
		xp_name_argument(args, NULL, names);
		return NULL;
	}
	if (!PyType_Check(class) ||
	    !PyType_IsSubtype((PyTypeObject *)class, state->pool)) {
		PyErr_SetString(PyExc_TypeError, "pool_open: the class is no Pool");
		return NULL;
	}
	self = pool_new(state, (PyTypeObject *)class);
	if (!self)
		return NULL;
	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		self->pool = fd < 0 ? xmem_pool_open(name, &options) :
				      xmem_pool_open_fd(fd, &options);
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

	if (!self->pool)
		return xp_raise_errno(self->state, EBADF, "this pool has been closed");
	other = pool_new(self->state, Py_TYPE(object));
	if (!other)
		return NULL;
	while (self->pool) {
		struct xmem_pool *pool = self->pool;

		Py_BEGIN_ALLOW_THREADS
		other->pool = xmem_pool_reopen(pool);
		Py_END_ALLOW_THREADS
		if (other->pool)
			return (PyObject *)other;
		if (!xp_again(self->state, XMEM_FOREVER, NULL))
			break;
	}
	if (!PyErr_Occurred())
		xp_raise_errno(self->state, EBADF, "this pool has been closed");
	Py_DECREF(other);
	return NULL;
}

/* ---- closing ---- */

static void close_handle(struct xmem_pool *pool)
{
	PyThreadState *thread;

	if (!pool)
		return;
	thread = PyEval_SaveThread();
	xmem_pool_close(pool);
	PyEval_RestoreThread(thread);
}

void xp_pool_close_if_last(struct xp_pool *self)
{
	struct xmem_pool *pool = self->closing;

	if (!pool || self->users || xp_is_hooked(self))
		return;
	self->closing = NULL;
	close_handle(pool);
}

static PyObject *pool_close(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = self->pool;

	if (pool && xp_is_hooked(self))
		return xp_raise_errno(self->state, EDEADLK, "a limbo hook cannot close the pool in "
				      "whose call it runs");
	self->pool = NULL;
	if (pool && self->users && self->forks == xp_forks) {
		self->closing = pool;
		xmem_cancel(pool);	/* what waits ends now, and not with the last user */
	} else {
		close_handle(pool);
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
	close_handle(self->pool);
	close_handle(self->closing);
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

static PyObject *pool_preallocate(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "count", "nbytes", "flags", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_preallocate_options options = { .size = sizeof(options) };
	struct xmem_pool *pool;
	int err;

	if (!xp_parse(args, kwargs, "O&O&O&:_preallocate", names, xp_u32,
		      &options.count, xp_token, &options.bytes, xp_u32,
		      &options.flags))
		return NULL;
	do {
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		err = xmem_preallocate_with(pool, &options);
		Py_END_ALLOW_THREADS
	} while (err < 0 && xp_again(self->state, XMEM_FOREVER, NULL));
	if (err < 0)
		return NULL;
	Py_RETURN_NONE;
}

/*
 * What was said of earlier contents of this buffer is not said of these. In C a program says all or
 * nothing of its contents; in Python each view of them goes by it.
 */
static void say_nothing(struct xmem_buffer *buffer)
{
	static const struct xmem_metadata nothing;
	struct xmem_metadata *metadata = xmem_buffer_metadata_mut(buffer);

	if (metadata && memcmp(metadata, &nothing, sizeof(nothing)))
		*metadata = nothing;
}

static PyObject *pool_acquire(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "nbytes", "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	size_t bytes = 0;

	if (!xp_parse(args, kwargs, "|O&O&:_acquire", names, xp_size, &bytes,
		      xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	do {
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		XP_BEGIN_HOOKED
		buffer = xmem_acquire(pool, bytes, timeout_ns);
		if (buffer)
			say_nothing(buffer);
		XP_END_HOOKED
		xp_pool_close_if_last(self);
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	} while (xp_again(self->state, until, &timeout_ns) && xp_pool_still(self));
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
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_attach_fd(pool, fd, offset, length, 0);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

/* ---- getting by token ---- */

/* The calls of xmem_get that may ask the host. */
static struct xmem_buffer *get_slowly(struct xp_pool *self, struct xmem_pool *pool, uint64_t token)
{
	struct xmem_buffer *buffer;

	self->users++;
	Py_BEGIN_ALLOW_THREADS
	buffer = xmem_get(pool, token);
	Py_END_ALLOW_THREADS
	self->users--;
	xp_pool_close_if_last(self);
	return buffer;
}

/*
 * A get that takes no claim asks nobody, and costs less than letting go of the GIL. If a claim
 * comes in between, the call asks the host with the GIL, once.
 */
static PyObject *pool_get(PyObject *object, PyObject *token)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint64_t number;

	if (!xp_token(token, &number))
		return NULL;
	do {
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		buffer = xmem_claims(pool, number) > 0 ? get_slowly(self, pool, number) :
							 xmem_get(pool, number);
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_READING);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

static PyObject *pool_get_slot(PyObject *object, PyObject *slot)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint32_t number;

	if (!xp_u32(slot, &number))
		return NULL;
	do {
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_get_slot(pool, number);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_READING);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

/* ---- calls that name a token ---- */

static PyObject *with_token(PyObject *object, PyObject *token,
			    int (*call)(struct xmem_pool *pool, uint64_t token))
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t number;
	int err;

	if (!xp_token(token, &number))
		return NULL;
	do {
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		err = call(pool, number);
		Py_END_ALLOW_THREADS
		if (err >= 0)
			Py_RETURN_NONE;
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

static PyObject *pool_add_ref(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_add_ref);
}

static PyObject *pool_drop_ref(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_drop_ref);
}

static PyObject *pool_void_claims(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_void_claims);
}

static PyObject *pool_claims(PyObject *object, PyObject *token)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_of(self);
	uint64_t number;
	int claims;

	if (!pool || !xp_token(token, &number))
		return NULL;
	claims = xmem_claims(pool, number);
	return claims < 0 ? xp_raise(self->state) : PyLong_FromLong(claims);
}

static PyObject *pool_retract(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_retract);
}

/* ---- the pool as a whole ---- */

static PyObject *pool_collect(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_of(self);
	int found;

	if (!pool)
		return NULL;
	XP_BEGIN_HOOKED
	found = xmem_collect(pool);
	XP_END_HOOKED
	xp_later_run(self->state->later);
	return found < 0 ? xp_raise(self->state) : PyLong_FromLong(found);
}

static PyObject *pool_trim(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_of(self);
	uint64_t keep = 0;
	int64_t given;

	if (!pool || !xp_parse(args, kwargs, "|O&:trim", names, xp_token, &keep))
		return NULL;
	XP_BEGIN_HOOKED
	given = xmem_trim(pool, keep);
	XP_END_HOOKED
	xp_later_run(self->state->later);
	return given < 0 ? xp_raise(self->state) : PyLong_FromLongLong(given);
}

static PyObject *pool_cancel(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_of(self);

	return pool ? xp_done(self->state, xmem_cancel(pool)) : NULL;
}

static PyObject *descriptor(PyObject *object, int (*call)(struct xmem_pool *pool))
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_of(self);
	int fd;

	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	fd = call(pool);
	Py_END_ALLOW_THREADS
	return fd < 0 ? xp_raise(self->state) : PyLong_FromLong(fd);
}

static PyObject *pool_fileno(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_pool_poll_fd);
}

static PyObject *pool_fd(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_pool_fd);
}

static PyObject *get_client(PyObject *object, void *unused)
{
	return descriptor(object, xmem_pool_client);
}

static PyObject *get_backend(PyObject *object, void *unused)
{
	struct xmem_pool *pool = xp_pool_of((struct xp_pool *)object);

	return pool ? PyUnicode_FromString(xmem_pool_backend(pool)) : NULL;
}

static PyObject *get_forked(PyObject *object, void *unused)
{
	return PyBool_FromLong(((struct xp_pool *)object)->forks != xp_forks);
}

static PyObject *get_closed(PyObject *object, void *unused)
{
	return PyBool_FromLong(!((struct xp_pool *)object)->pool);
}

#define KEYWORDS(function) (PyCFunction)(void *)(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
	{ "reopen", pool_reopen, METH_NOARGS, XP_DOC_pool_reopen },
	{ "close", pool_close, METH_NOARGS, XP_DOC_pool_close },
	{ "_preallocate", KEYWORDS(pool_preallocate), XP_DOC_pool_preallocate },
	{ "_acquire", KEYWORDS(pool_acquire), XP_DOC_pool_acquire },
	{ "attach_fd", KEYWORDS(pool_attach_fd), XP_DOC_pool_attach_fd },
	{ "_cuda_preallocate", KEYWORDS(xp_pool_cuda_preallocate), XP_DOC_pool_cuda_preallocate },
	{ "_cuda_acquire", KEYWORDS(xp_pool_cuda_acquire), XP_DOC_pool_cuda_acquire },
	{ "_cuda_attach", KEYWORDS(xp_pool_cuda_attach), XP_DOC_pool_cuda_attach },
	{ "get", pool_get, METH_O, XP_DOC_pool_get },
	{ "get_slot", pool_get_slot, METH_O, XP_DOC_pool_get_slot },
	{ "claims", pool_claims, METH_O, XP_DOC_pool_claims },
	{ "add_ref", pool_add_ref, METH_O, XP_DOC_pool_add_ref },
	{ "drop_ref", pool_drop_ref, METH_O, XP_DOC_pool_drop_ref },
	{ "void_claims", pool_void_claims, METH_O, XP_DOC_pool_void_claims },
	{ "retract", pool_retract, METH_O, XP_DOC_pool_retract },
	{ "collect", pool_collect, METH_NOARGS, XP_DOC_pool_collect },
	{ "trim", KEYWORDS(pool_trim), XP_DOC_pool_trim },
	{ "limbo_hook", KEYWORDS(xp_pool_limbo_hook), XP_DOC_pool_limbo_hook },
	{ "cancel", pool_cancel, METH_NOARGS, XP_DOC_pool_cancel },
	{ "fileno", pool_fileno, METH_NOARGS, XP_DOC_pool_fileno },
	{ "fd", pool_fd, METH_NOARGS, XP_DOC_pool_fd },
	{ "stat", xp_pool_stat, METH_NOARGS, XP_DOC_pool_stat },
	{ "client_info", xp_pool_client_info, METH_O, XP_DOC_pool_client_info },
	{ "slot_info", xp_pool_slot_info, METH_O, XP_DOC_pool_slot_info },
	{ "device_info", xp_pool_device_info, METH_O, XP_DOC_pool_device_info },
	{ "holds", xp_pool_holds, METH_VARARGS, XP_DOC_pool_holds },
	{ "_subscribe", KEYWORDS(xp_pool_subscribe), XP_DOC_pool_subscribe },
	{ "receive", KEYWORDS(xp_pool_receive), XP_DOC_pool_receive },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	{ "client", get_client, NULL, XP_DOC_pool_client, NULL },
	{ "backend", get_backend, NULL, XP_DOC_pool_backend, NULL },
	{ "closed", get_closed, NULL, XP_DOC_pool_closed, NULL },
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

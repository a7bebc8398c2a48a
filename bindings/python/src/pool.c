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

struct xmem_pool *xp_pool_of(struct xp_pool *self)
{
	if (!self->pool)
		xp_raise_errno(self->state, EBADF, "this pool has been closed");
	return self->pool;
}

PyObject *xp_pool_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "cls", "name", "fd", "flags", "slots", "clients", "ring_entries",
				 "wait_bound", "label", "demand_bytes", "cache_bytes", "cache_time",
				 "memory", "keep", NULL };
	struct xmem_pool_options options = { .size = sizeof(options) };
	struct xp_state *state = PyModule_GetState(module);
	const char *name;
	PyObject *class;
	struct xp_pool *self;
	allocfunc alloc;
	int fd;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OziO&O&O&O&O&zO&O&O&O&O&:pool_open", names,
					 &class, &name, &fd, xp_u32, &options.flags, xp_u32,
					 &options.slots, xp_u32, &options.clients, xp_u32,
					 &options.ring_entries, xp_timeout, &options.wait_bound_ns,
					 &options.label, xp_token, &options.demand_bytes, xp_token,
					 &options.cache_bytes, xp_timeout, &options.cache_ns,
					 xp_u32, &options.memory, xp_u32, &options.keep))
		return NULL;
	if (!PyType_Check(class) ||
	    !PyType_IsSubtype((PyTypeObject *)class, state->pool)) {
		PyErr_SetString(PyExc_TypeError, "pool_open: the class is no Pool");
		return NULL;
	}
	alloc = PyType_GetSlot((PyTypeObject *)class, Py_tp_alloc);
	self = (struct xp_pool *)alloc((PyTypeObject *)class, 0);
	if (!self)
		return NULL;
	self->state = state;
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

static void close_handle(struct xmem_pool *pool)
{
	PyThreadState *thread;

	if (!pool)
		return;
	thread = PyEval_SaveThread();
	xmem_pool_close(pool);
	PyEval_RestoreThread(thread);
}

static PyObject *pool_close(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = self->pool;

	self->pool = NULL;
	if (self->users)
		self->closing = pool;
	else
		close_handle(pool);
	Py_RETURN_NONE;
}

static void pool_dealloc(PyObject *object)
{
	struct xp_pool *self = (struct xp_pool *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	close_handle(self->pool);
	free_object(object);
	Py_DECREF(type);
}

static int pool_traverse(PyObject *object, visitproc visit, void *arg)
{
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

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&O&:preallocate", names, xp_u32,
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

static PyObject *pool_acquire(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "nbytes", "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	size_t bytes = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&O&:acquire", names, xp_size, &bytes,
					 xp_timeout, &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	do {
		pool = xp_pool_of(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_acquire(pool, bytes, timeout_ns);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_WRITING);
	} while (xp_again(self->state, until, &timeout_ns));
	return NULL;
}

static PyObject *pool_attach_fd(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "fd", "offset", "length", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	uint64_t offset = 0, length = 0;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	PyObject *file;
	int fd;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&O&:attach_fd", names, &file, xp_token,
					 &offset, xp_token, &length))
		return NULL;
	fd = PyObject_AsFileDescriptor(file);
	if (fd < 0)
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
	if (!--self->users && self->closing) {
		pool = self->closing;
		self->closing = NULL;
		close_handle(pool);
	}
	return buffer;
}

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
		buffer = get_slowly(self, pool, number);
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
	Py_BEGIN_ALLOW_THREADS
	found = xmem_collect(pool);
	Py_END_ALLOW_THREADS
	return found < 0 ? xp_raise(self->state) : PyLong_FromLong(found);
}

static PyObject *pool_trim(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_of(self);
	uint64_t keep = 0;
	int64_t given;

	if (!pool || !PyArg_ParseTupleAndKeywords(args, kwargs, "|O&:trim", names, xp_token, &keep))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	given = xmem_trim(pool, keep);
	Py_END_ALLOW_THREADS
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

static PyObject *get_closed(PyObject *object, void *unused)
{
	return PyBool_FromLong(!((struct xp_pool *)object)->pool);
}

#define KEYWORDS (METH_VARARGS | METH_KEYWORDS)

static PyMethodDef methods[] = {
	{ "close", pool_close, METH_NOARGS, "Drop the handle; buffers and subscriptions stay." },
	{ "preallocate", (PyCFunction)(void *)pool_preallocate, KEYWORDS, NULL },
	{ "acquire", (PyCFunction)(void *)pool_acquire, KEYWORDS, NULL },
	{ "attach_fd", (PyCFunction)(void *)pool_attach_fd, KEYWORDS, NULL },
	{ "get", pool_get, METH_O, "Get the buffer that a token names, and hold it, for reading." },
	{ "get_slot", pool_get_slot, METH_O, NULL },
	{ "add_ref", pool_add_ref, METH_O, NULL },
	{ "drop_ref", pool_drop_ref, METH_O, NULL },
	{ "void_claims", pool_void_claims, METH_O, NULL },
	{ "retract", pool_retract, METH_O, NULL },
	{ "collect", pool_collect, METH_NOARGS, NULL },
	{ "trim", (PyCFunction)(void *)pool_trim, KEYWORDS, NULL },
	{ "cancel", pool_cancel, METH_NOARGS, NULL },
	{ "fileno", pool_fileno, METH_NOARGS, NULL },
	{ "fd", pool_fd, METH_NOARGS, NULL },
	{ "subscribe", (PyCFunction)(void *)xp_pool_subscribe, KEYWORDS, NULL },
	{ "receive", (PyCFunction)(void *)xp_pool_receive, KEYWORDS, NULL },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	{ "client", get_client, NULL, "The id of this client in the pool.", NULL },
	{ "backend", get_backend, NULL, "The host: \"kernel\" or \"daemon\".", NULL },
	{ "closed", get_closed, NULL, "Has the handle been dropped?", NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, pool_dealloc },
	{ Py_tp_traverse, pool_traverse },
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

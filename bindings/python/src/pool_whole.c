// SPDX-License-Identifier: MIT
/*
 * Pool: calls about the pool as a whole: its subscribers, collecting, its descriptors, and the
 * right to use it.
 */
#include "core.h"

PyObject *xp_pool_wait_for_subscribers(PyObject *object, PyObject *args, PyObject *kwargs)
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

/* As xmem_collect, which may call a limbo hook. Returns how many buffers were found, or -1. */
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

PyObject *xp_pool_collect(PyObject *self, PyObject *unused)
{
	int found = collect((struct xp_pool *)self, XMEM_KEEP_ALL, NULL);

	return found < 0 ? NULL : PyLong_FromLong(found);
}

PyObject *xp_pool_trim(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep", NULL };
	uint64_t keep = 0, given;

	if (!xp_parse(args, kwargs, "|O&:trim", names, xp_token, &keep))
		return NULL;
	return collect((struct xp_pool *)self, keep, &given) < 0 ? NULL :
	       PyLong_FromUnsignedLongLong(given);
}

PyObject *xp_pool_cancel(PyObject *object, PyObject *unused)
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

PyObject *xp_pool_fileno(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_pool_poll_fd);
}

PyObject *xp_pool_subscribers_fileno(PyObject *self, PyObject *unused)
{
	return descriptor(self, xmem_subscribers_poll_fd);
}

PyObject *xp_pool_fd(PyObject *self, PyObject *unused)
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

PyObject *xp_pool_set_mode(PyObject *object, PyObject *args)
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

PyObject *xp_pool_evict(PyObject *object, PyObject *args)
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

PyObject *xp_pool_grant(PyObject *object, PyObject *args)
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

PyObject *xp_pool_drain(PyObject *object, PyObject *args)
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

PyObject *xp_pool_get_client(PyObject *object, void *unused)
{
	return descriptor(object, xmem_pool_client);
}

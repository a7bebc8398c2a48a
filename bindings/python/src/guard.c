// SPDX-License-Identifier: MIT
/*
 * Guard: a handle of a buffer. This file decides when the handle is dropped: by release(), or by
 * the end of the guard object. If views of the contents are alive, they keep the handle, and the
 * last view drops it.
 *
 * Two kinds of views keep the handle. Views by the buffer protocol keep the guard object and are
 * counted in exports; the others share an xp_hold. When the guard is gone, its last export or the
 * last share drops the handle. A third kind cannot be counted: consumers of
 * __cuda_array_interface__ only keep the guard object. Once it is lent to them, the end of the
 * guard object drops the handle, after the work that they have put into any stream of the GPU.
 */
#include "core.h"

PyObject *xp_guard_new(struct xp_state *state, PyObject *pool, struct xmem_buffer *buffer,
		       enum xp_guard_state mode)
{
	PyTypeObject *type = state->guard_class ? state->guard_class : state->guard;
	struct xp_guard *self = (struct xp_guard *)PyType_GenericAlloc(type, 0);

	if (!self) {
		xmem_release(buffer);
		return NULL;
	}
	self->state = state;
	self->buffer = buffer;
	self->flags = xp_flags(buffer);
	self->cuda = self->flags & XMEM_BUFFER_CUDA;
	Py_INCREF(pool);
	self->pool = pool;
	self->mode = mode;
	self->forks = xp_forks;
	return (PyObject *)self;
}

/* Dropping the last handle of a closed pool makes a request to the host and waits for it. */
static bool is_of_closed_pool(const struct xp_guard *self)
{
	return !self->pool || !PyObject_TypeCheck(self->pool, self->state->pool) ||
	       xp_pool_is_closed((struct xp_pool *)self->pool);
}

/*
 * Drop the guard's share of the handle. pre: no export is alive. post: the guard is gone. It was
 * marked so before any other thread could look at it.
 */
static void drop(struct xp_guard *self)
{
	struct xmem_buffer *buffer = self->buffer;
	struct xp_hold *hold = self->hold;
	bool slow = self->slow || self->counted || self->mode == XP_WRITING || self->cuda ||
		    is_of_closed_pool(self);
	PyThreadState *thread;

	self->mode = XP_GONE;
	self->buffer = NULL;
	self->hold = NULL;
	if (!buffer)
		return;
	thread = slow ? PyEval_SaveThread() : NULL;
	if (hold && self->lent)
		hold->on_stream = true;
	if (hold)
		xp_hold_put(hold);
	else if (self->lent)
		xp_release_on(buffer, XMEM_ALL_STREAMS);
	else
		xmem_release(buffer);
	if (slow)
		PyEval_RestoreThread(thread);
}

static void drop_unless_used(struct xp_guard *self)
{
	if (!self->exports && !self->users && !self->lent && self->buffer)
		drop(self);
}

/* ---- who may use the handle ---- */

static PyObject *refuse(struct xp_guard *self)
{
	if (xp_raise_lost(self->state, self->lost))
		return NULL;
	if (self->mode == XP_GONE)
		return xp_raise_errno(self->state, EBADF, self->forgotten ?
				      "this guard has been forgotten: get() gets the buffer" :
				      "this guard has been released, or published");
	if (self->forks != xp_forks)
		return xp_raise_forked(self->state, "guard");
	return xp_raise_errno(self->state, EBUSY, "another thread is publishing or changing this "
			      "guard");
}

struct xmem_buffer *xp_guard_look(struct xp_guard *self)
{
	if (self->mode == XP_GONE || self->busy || self->forks != xp_forks) {
		refuse(self);
		return NULL;
	}
	return self->buffer;
}

struct xmem_buffer *xp_guard_write(struct xp_guard *self)
{
	if (!xp_guard_look(self))
		return NULL;
	if (self->mode == XP_WRITING)
		return self->buffer;
	xp_raise_errno(self->state, EPERM, "this guard is for reading: what is published is not "
		       "written any more");
	return NULL;
}

struct xmem_buffer *xp_guard_begin(struct xp_guard *self)
{
	struct xmem_buffer *buffer = xp_guard_look(self);

	if (buffer)
		self->users++;
	return buffer;
}

struct xmem_buffer *xp_guard_again(struct xp_guard *self)
{
	return xp_again(self->state, XMEM_FOREVER, NULL) ? xp_guard_begin(self) : NULL;
}

void xp_guard_end(struct xp_guard *self)
{
	self->users--;
	if (self->mode == XP_GONE)
		drop_unless_used(self);
}

struct xmem_buffer *xp_guard_begin_other(struct xp_guard *self, struct xp_guard *other)
{
	struct xmem_buffer *buffer;

	if (self == other)
		return xp_guard_begin(other);
	XP_LOCK(other)
	buffer = xp_guard_begin(other);
	XP_UNLOCK
	return buffer;
}

void xp_guard_end_other(struct xp_guard *self, struct xp_guard *other)
{
	if (self == other) {
		xp_guard_end(other);
	} else {
		XP_LOCK(other)
		xp_guard_end(other);
		XP_UNLOCK
	}
}

struct xmem_buffer *xp_guard_take(struct xp_guard *self, bool *ret_keep)
{
	if (!xp_guard_look(self))
		return NULL;
	if (self->users) {
		xp_raise_errno(self->state, EBUSY, "another thread is using this guard");
		return NULL;
	}
	self->busy = true;
	*ret_keep = self->exports || self->lent || (self->hold && xp_hold_is_shared(self->hold));
	return self->buffer;
}

void xp_guard_back(struct xp_guard *self)
{
	self->busy = false;
}

void xp_guard_gone(struct xp_guard *self, bool kept)
{
	self->busy = false;
	if (!kept) {
		free(self->hold);	/* the hold is not shared, or kept would be set */
		self->hold = NULL;
		self->buffer = NULL;
	}
	self->mode = XP_GONE;
	drop_unless_used(self);
}

struct xp_hold *xp_guard_share(struct xp_guard *self)
{
	if (!xp_guard_look(self))
		return NULL;
	if (!self->hold) {
		self->hold = xp_hold_new(self->buffer);
		if (!self->hold) {
			PyErr_NoMemory();
			return NULL;
		}
	}
	return xp_hold_get(self->hold);
}

/* ---- release ---- */

PyObject *xp_guard_release_now(struct xp_guard *self)
{
	/* If this child was forked during a call, the call continues only in the parent. */
	if (self->mode == XP_GONE || (self->busy && self->forks == xp_forks))
		return refuse(self);
	self->slow = self->counted || self->mode == XP_WRITING;
	self->mode = XP_GONE;		/* first, because dropping the handle may let other
					 * threads run */
	drop_unless_used(self);
	Py_RETURN_NONE;
}

PyObject *xp_guard_enter(PyObject *object, PyObject *unused)
{
	if (!xp_guard_look((struct xp_guard *)object))
		return NULL;
	Py_INCREF(object);
	return object;
}

/* If the block has published or released the guard, it is gone already. */
PyObject *xp_guard_exit(PyObject *object, PyObject *args)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *done;

	if (self->mode != XP_GONE) {
		done = xp_guard_release_now(self);
		if (!done)
			return NULL;
		Py_DECREF(done);
	}
	Py_RETURN_NONE;
}

void xp_guard_dealloc(PyObject *object)
{
	struct xp_guard *self = (struct xp_guard *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	if (self->buffer)
		drop(self);
	Py_CLEAR(self->pool);
	Py_CLEAR(self->lost);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

int xp_guard_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(((struct xp_guard *)object)->pool);
	Py_VISIT(Py_TYPE(object));
	return 0;
}

int xp_guard_clear(PyObject *object)
{
	Py_CLEAR(((struct xp_guard *)object)->pool);
	return 0;
}

PyObject *xp_guard_clone_ref(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self), *clone;

	if (!buffer)
		return NULL;
	clone = xmem_clone(buffer);
	if (!clone)
		return xp_raise(self->state);
	return xp_guard_new(self->state, self->pool ? self->pool : Py_None, clone, XP_READING);
}

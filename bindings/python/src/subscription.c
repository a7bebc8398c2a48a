// SPDX-License-Identifier: MIT
/*
 * Subscription: receiving.
 *
 * Any threads may receive from a subscription, and close it meanwhile. They need no lock here: the
 * library ends the waits of other threads (ECANCELED) and refuses their later calls, because it
 * recognises a dropped handle. A thread that closes the subscription takes the handle out
 * atomically.
 */
#include "core.h"

struct xp_subscription {
	PyObject_HEAD
	struct xp_state *state;		/* constant */
	struct xmem_subscription *subscription;	/* atomic; NULL: closed */
	PyObject *pool;			/* constant */
	unsigned int forks;		/* constant: xp_forks when it was made */
};

static struct xmem_subscription *subscription_of(struct xp_subscription *self)
{
	struct xmem_subscription *subscription = __atomic_load_n(&self->subscription,
								 __ATOMIC_RELAXED);

	if (!subscription) {
		xp_raise_errno(self->state, EBADF, "this subscription has been closed");
	} else if (self->forks != xp_forks) {
		xp_raise_forked(self->state, "subscription");
		return NULL;
	}
	return subscription;
}

/* An object that owns @subscription; if this fails, the subscription is closed. */
static PyObject *new_subscription(struct xp_pool *pool, struct xmem_subscription *subscription)
{
	struct xp_state *state = pool->state;
	PyTypeObject *class = state->subscription_class ? state->subscription_class :
							  state->subscription;
	struct xp_subscription *self = (struct xp_subscription *)PyType_GenericAlloc(class, 0);

	if (!self) {
		xmem_unsubscribe(subscription);
		return NULL;
	}
	self->state = state;
	self->subscription = subscription;
	self->forks = xp_forks;
	self->pool = Py_NewRef((PyObject *)pool);
	return (PyObject *)self;
}

PyObject *xp_pool_subscribe(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "flags", "publisher", "timeout", "history", "depth", "label",
				 NULL };
	struct xmem_subscribe_options options = { .size = sizeof(options) };
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_subscription *subscription;
	struct xmem_pool *pool;
	int64_t until;

	if (!xp_parse(args, kwargs, "|O&O&O&O&O&z:_subscribe", names, xp_u32,
		      &options.flags, xp_u32, &options.publisher, xp_timeout,
		      &options.timeout_ns, xp_u32, &options.history, xp_u32,
		      &options.depth, &options.label))
		return NULL;
	until = xp_until(options.timeout_ns);
	for (pool = xp_pool_begin(self); pool;
	     pool = xp_pool_again(self, until, &options.timeout_ns)) {
		Py_BEGIN_ALLOW_THREADS
		subscription = xmem_subscribe(pool, &options);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (subscription)
			return new_subscription(self, subscription);
	}
	return NULL;
}

/* ---- receiving ---- */

/*
 * The subscription after a wait that a signal has ended; NULL with an exception. @open: the pool
 * was open when the wait began, so closing the pool ends the wait.
 */
static struct xmem_subscription *still(struct xp_subscription *self, bool open)
{
	return open && !xp_pool_still((struct xp_pool *)self->pool) ? NULL : subscription_of(self);
}

static bool is_pool_open(const struct xp_subscription *self)
{
	return !xp_pool_is_closed((struct xp_pool *)self->pool);
}

/*
 * NULL with an exception, or if @iterates and the publishers have ended. The GIL is released even
 * for a timeout of 0, because a receive may ask the host to map a file or to follow another writer.
 */
static struct xmem_buffer *receive(struct xp_subscription *self, int64_t timeout_ns, bool iterates)
{
	struct xmem_subscription *subscription = subscription_of(self);
	int64_t until = xp_until(timeout_ns);
	bool open = is_pool_open(self);
	struct xmem_buffer *buffer;

	while (subscription) {
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_receive(subscription, timeout_ns);
		Py_END_ALLOW_THREADS
		if (buffer)
			return buffer;
		if (iterates && xmem_peek_last_error(NULL) == -EPIPE) {
			xmem_clear_last_error();
			return NULL;
		}
		if (!xp_again(self->state, until, &timeout_ns))
			return NULL;
		subscription = still(self, open);
	}
	return NULL;
}

static PyObject *subscription_receive(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timeout", NULL };
	struct xp_subscription *self = (struct xp_subscription *)object;
	int64_t timeout_ns = XMEM_FOREVER;
	struct xmem_buffer *buffer;

	if ((PyTuple_Size(args) || kwargs) &&
	    !xp_parse(args, kwargs, "|O&:receive", names, xp_timeout,
		      &timeout_ns))
		return NULL;
	buffer = receive(self, timeout_ns, false);
	return buffer ? xp_guard_new(self->state, self->pool, buffer, XP_READING) : NULL;
}

/* If the publishers have ended, the iteration ends without an error. */
static PyObject *subscription_next(PyObject *object)
{
	struct xp_subscription *self = (struct xp_subscription *)object;
	struct xmem_buffer *buffer = receive(self, XMEM_FOREVER, true);

	return buffer ? xp_guard_new(self->state, self->pool, buffer, XP_READING) : NULL;
}

PyObject *xp_pool_receive(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timeout", NULL };
	struct xp_pool *self = (struct xp_pool *)object;
	int64_t timeout_ns = XMEM_FOREVER, until;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;

	if (!xp_parse(args, kwargs, "|O&:receive", names, xp_timeout,
		      &timeout_ns))
		return NULL;
	until = xp_until(timeout_ns);
	for (pool = xp_pool_begin(self); pool; pool = xp_pool_again(self, until, &timeout_ns)) {
		Py_BEGIN_ALLOW_THREADS
		buffer = xmem_receive_any(pool, timeout_ns, NULL);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_READING);
	}
	return NULL;
}

/* ---- its end ---- */

static void unsubscribe(struct xp_subscription *self)
{
	struct xmem_subscription *subscription = __atomic_exchange_n(&self->subscription, NULL,
								     __ATOMIC_ACQ_REL);
	PyThreadState *thread;

	if (!subscription)
		return;
	thread = PyEval_SaveThread();
	xmem_unsubscribe(subscription);
	PyEval_RestoreThread(thread);
}

static PyObject *subscription_close(PyObject *object, PyObject *unused)
{
	unsubscribe((struct xp_subscription *)object);
	Py_RETURN_NONE;
}

static void subscription_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	unsubscribe((struct xp_subscription *)object);
	Py_CLEAR(((struct xp_subscription *)object)->pool);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

static int subscription_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(((struct xp_subscription *)object)->pool);
	Py_VISIT(Py_TYPE(object));
	return 0;
}

/* ---- what it says of itself ---- */

static PyObject *subscription_fileno(PyObject *object, PyObject *unused)
{
	struct xp_subscription *self = (struct xp_subscription *)object;
	struct xmem_subscription *subscription = subscription_of(self);
	int fd;

	if (!subscription)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	fd = xmem_subscription_poll_fd(subscription);
	Py_END_ALLOW_THREADS
	return fd < 0 ? xp_raise(self->state) : PyLong_FromLong(fd);
}

/* Get the library's information about a subscription; false: an exception is set. */
static bool look(struct xp_subscription *self, struct xmem_subscription_info *ret)
{
	struct xmem_subscription *subscription = subscription_of(self);

	if (!subscription)
		return false;
	if (!xmem_subscription_stat(subscription, ret))
		return true;
	xp_raise(self->state);
	return false;
}

static PyObject *get_lost(PyObject *object, void *unused)
{
	struct xmem_subscription_info info = XMEM_INIT(info);

	return look((struct xp_subscription *)object, &info) ?
		PyLong_FromUnsignedLongLong(info.lost) : NULL;
}

static PyObject *get_publisher(PyObject *object, void *unused)
{
	struct xp_subscription *self = (struct xp_subscription *)object;
	struct xmem_subscription_info info = XMEM_INIT(info);

	if (!look(self, &info))
		return NULL;
	return info.publisher != XMEM_NOBODY ? PyLong_FromUnsignedLong(info.publisher) :
		xp_raise_errno(self->state, ENOENT, "publisher: none has come yet");
}

static PyObject *get_pool(PyObject *object, void *unused)
{
	PyObject *pool = ((struct xp_subscription *)object)->pool;

	Py_INCREF(pool);
	return pool;
}

static PyObject *get_closed(PyObject *object, void *unused)
{
	return PyBool_FromLong(!__atomic_load_n(&((struct xp_subscription *)object)->subscription,
						__ATOMIC_RELAXED));
}

#define KEYWORDS(function) (PyCFunction)(void *)(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
	{ "receive", KEYWORDS(subscription_receive), XP_DOC_subscription_receive },
	{ "close", subscription_close, METH_NOARGS, XP_DOC_subscription_close },
	{ "fileno", subscription_fileno, METH_NOARGS, XP_DOC_subscription_fileno },
	{ NULL, NULL, 0, NULL }
};

static PyGetSetDef properties[] = {
	{ "lost", get_lost, NULL, XP_DOC_subscription_lost, NULL },
	{ "publisher", get_publisher, NULL, XP_DOC_subscription_publisher, NULL },
	{ "pool", get_pool, NULL, XP_DOC_subscription_pool, NULL },
	{ "closed", get_closed, NULL, XP_DOC_subscription_closed, NULL },
	{ NULL, NULL, NULL, NULL, NULL }
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, subscription_dealloc },
	{ Py_tp_traverse, subscription_traverse },
	{ Py_tp_iter, PyObject_SelfIter },
	{ Py_tp_iternext, subscription_next },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, properties },
	{ 0, NULL }
};

PyType_Spec xp_subscription_spec = {
	.name = "xmem._core.Subscription",
	.basicsize = sizeof(struct xp_subscription),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

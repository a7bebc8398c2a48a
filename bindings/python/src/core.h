/* SPDX-License-Identifier: MIT */
/*
 * The extension xmem._core: the types that all of its files share. It is small C on the limited API
 * of CPython 3.11; comfort is Python's, in ../xmem.
 *
 *	module.c	the module: its state, its functions, what Python registers with it
 *	error.c		the library's last error as an exception
 *	arguments.c	times, sizes and buffers that callers give
 *	pool.c		Pool: a handle of a pool
 *	guard.c		Guard: a handle of a buffer, and when it goes
 *	publish.c	Guard: what hands a buffer over
 *	describe.c	Guard: what it says of its contents
 *	view.c		Guard: the buffer protocol
 *	hold.h		a handle that views share, which any thread drops without the GIL
 *	subscription.c	Subscription: receiving
 *
 * Locks. The GIL guards every field of the types below, but for struct xp_hold, which is atomic.
 * Where a build of CPython has no GIL, XP_BEGIN and XP_END stand for the object's own lock; this
 * file defines them, and each method that looks at a guard's state is between them or calls only
 * functions that are.
 *
 * The GIL is released around what can wait or calls a driver. An object that such a call uses
 * counts it (users) or belongs to it alone (busy), so that no other thread drops the handle
 * meanwhile.
 */
#ifndef XP_CORE_H
#define XP_CORE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <xmem.h>

#include "hold.h"

/* What the module has; each interpreter has its own. */
struct xp_state {
	PyTypeObject *pool, *guard, *subscription;	/* of this extension */
	/* What is made of them, by the Python package: subclasses (set_types). */
	PyTypeObject *guard_class, *subscription_class;
	PyObject *errors;		/* dict: errno -> class; None: the class of all others */
};

/* ---- error.c ---- */

/* Raise what the library says was the thread's last error. Always NULL. */
PyObject *xp_raise(struct xp_state *state);
/* Raise @err, a positive errno, with a text of this extension. Always NULL. */
PyObject *xp_raise_errno(struct xp_state *state, int err, const char *format, ...);
/* None after 0; NULL after -errno, raised. */
PyObject *xp_done(struct xp_state *state, int err);
/*
 * A call has failed. Is it to be made again? After EINTR the handlers of signals run, and if they
 * raise nothing and @until has not passed, it is: *timeout_ns becomes what is left. Otherwise the
 * error is raised. @until: of xp_until.
 */
bool xp_again(struct xp_state *state, int64_t until, int64_t *timeout_ns);
/* When a wait of @timeout_ns ends, by CLOCK_MONOTONIC. */
int64_t xp_until(int64_t timeout_ns);

/* ---- arguments.c ---- */

/* Converters for PyArg_Parse: 1, or 0 with an exception. */
int xp_timeout(PyObject *seconds, void *ret_ns);	/* None: for ever; int64_t */
int xp_size(PyObject *number, void *ret);		/* size_t */
int xp_token(PyObject *number, void *ret);		/* uint64_t */
int xp_u32(PyObject *number, void *ret);		/* uint32_t */
int xp_stream(PyObject *number, void *ret);		/* void *; None and 0: NULL */
/* A tuple or list of at most 8 integers; -1 with an exception. */
int xp_dimensions(PyObject *sequence, int64_t *ret);

/* ---- Pool ---- */

struct xp_pool {
	PyObject_HEAD
	struct xp_state *state;
	struct xmem_pool *pool;		/* NULL: closed */
	unsigned int users;		/* calls of xmem_get that run without the GIL */
	struct xmem_pool *closing;	/* the last of them closes it */
};

/* The handle, or NULL with an exception. */
struct xmem_pool *xp_pool_of(struct xp_pool *self);

/* ---- Guard ---- */

enum xp_guard_state {
	XP_GONE = 0,			/* released, published, forgotten */
	XP_READING,
	XP_WRITING,
};

/* What the contents are, for the buffer protocol and others; it is filled at the first look. */
struct xp_view {
	const void *data;		/* NULL: not looked at yet */
	uint32_t dtype;			/* XMEM_DTYPE_NONE: bytes */
	int ndim;
	Py_ssize_t item_bytes;
	Py_ssize_t bytes;		/* of all elements, each counted */
	bool dense;
	Py_ssize_t shape[XMEM_MAX_DIMENSIONS];
	Py_ssize_t strides[XMEM_MAX_DIMENSIONS];	/* bytes */
};

struct xp_guard {
	PyObject_HEAD
	struct xp_state *state;
	struct xmem_buffer *buffer;	/* NULL: dropped */
	struct xp_hold *hold;		/* if views share the handle; see hold.h */
	PyObject *pool;			/* the Pool it came from, for programs to ask */
	enum xp_guard_state mode;
	bool busy;			/* a call without the GIL may drop or change the handle */
	bool counted;			/* releasing it asks the host */
	unsigned int users;		/* calls without the GIL that need the handle */
	unsigned int exports;		/* memoryviews and others by the buffer protocol */
	struct xp_view view;
};

/* A guard for @buffer, which becomes its own; if that fails the buffer is released. */
PyObject *xp_guard_new(struct xp_state *state, PyObject *pool, struct xmem_buffer *buffer,
		       enum xp_guard_state mode);

/* The handle for a look; NULL with an exception if the guard is gone or busy. */
struct xmem_buffer *xp_guard_look(struct xp_guard *self);
/* The same, of one that is being written (EPERM). */
struct xmem_buffer *xp_guard_write(struct xp_guard *self);

/*
 * Around a call without the GIL that needs the handle: begin gives it, as xp_guard_look, and end
 * drops it if the guard was released meanwhile.
 */
struct xmem_buffer *xp_guard_begin(struct xp_guard *self);
void xp_guard_end(struct xp_guard *self);

/*
 * Around a call that takes the handle, or changes what it is for: no other call may use it. Views
 * that are alive keep it: then *ret_keep is set.
 */
struct xmem_buffer *xp_guard_take(struct xp_guard *self, bool *ret_keep);
/* The call has failed, and all is as before. */
void xp_guard_back(struct xp_guard *self);
/* It has dropped the handle; @kept: it has not, and the guard's own share of it goes. */
void xp_guard_gone(struct xp_guard *self, bool kept);

/* The handle shared with a view that any thread may drop; NULL with an exception. */
struct xp_hold *xp_guard_share(struct xp_guard *self);

/* What the contents are; -1 with an exception. The GIL is kept. */
int xp_guard_view(struct xp_guard *self);
/* The struct module's format of a type, in numpy's way where that has none; NULL: there is none. */
const char *xp_format(uint32_t dtype);
/* What is said of the contents has changed: it is looked at anew. */
void xp_guard_view_changed(struct xp_guard *self);

/* ---- methods and types, in tables that module.c puts together ---- */

extern PyType_Spec xp_pool_spec, xp_guard_spec, xp_subscription_spec;

/* pool.c, guard.c: module functions that make the objects. */
PyObject *xp_pool_open(PyObject *module, PyObject *args, PyObject *kwargs);

/* publish.c, describe.c */
PyObject *xp_guard_publish(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_send(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_forward(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_get_mut(PyObject *self, PyObject *unused);
PyObject *xp_guard_forget(PyObject *self, PyObject *unused);
PyObject *xp_guard_set_ref_count(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_offer(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_tensor(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_image(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_content(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_time(PyObject *self, PyObject *args, PyObject *kwargs);

/* view.c */
int xp_guard_getbuffer(PyObject *self, Py_buffer *view, int flags);
void xp_guard_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *xp_guard_get_shape(PyObject *self, void *unused);
PyObject *xp_guard_get_strides(PyObject *self, void *unused);
PyObject *xp_guard_get_dtype(PyObject *self, void *unused);

/* subscription.c */
PyObject *xp_pool_subscribe(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_receive(PyObject *self, PyObject *args, PyObject *kwargs);

#endif

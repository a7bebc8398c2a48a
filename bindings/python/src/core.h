/* SPDX-License-Identifier: MIT */
/*
 * The extension xmem._core: the types that all of its files share. It is small C on the limited API
 * of CPython 3.11; comfort is Python's, in ../xmem.
 *
 *	module.c	the module: its state, its functions, what Python registers with it
 *	error.c		the library's last error as an exception
 *	fork.c		how often the process has forked: whose a handle is
 *	arguments.c	times, sizes and tokens that callers give
 *	pool.c		Pool: a handle of a pool; limbo.c: what it calls about limbo
 *	guard.c		Guard: a handle of a buffer, and when it goes
 *	publish.c	Guard: what hands a buffer over
 *	describe.c	Guard: what it says of its contents
 *	view.c		Guard: what its contents are, and the buffer protocol
 *	dlpack.c	Guard: DLPack's capsules; dlpack_table.c: its table of C functions
 *	arrow.c		Guard: Arrow's C interfaces
 *	array_interface.c  Guard: numpy's interface, for those that take no buffers
 *	copy.c		Guard: copies of what others have into it; source.c: what, dense.c: how
 *	cuda*.c		Pool, Guard: buffers on GPUs
 *	later.c		what the library tells in any thread, run by one that has the GIL
 *	hold.h		a handle that views share, which any thread drops without the GIL
 *	subscription.c	Subscription: receiving
 *	info.c		what is known of hosts, pools, clients, slots and contents
 *	layout.c	structs of answers as objects; layouts.h is made from the C headers
 *	doc.h		docstrings; doc_guard.h: those of Guard
 *	torch*.c	the module xmem._torch, which torch.h is about
 *
 * Locks. The GIL guards every field of the types below, but for struct xp_hold, which is atomic.
 * Objects have no locks of their own, so the module tells a build of CPython that can do without
 * the GIL to keep it (Py_mod_gil in module.c).
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

#include "doc.h"
#include "doc_guard.h"
#include "hold.h"
#include "layout.h"

/* What the module has; each interpreter has its own. */
struct xp_state {
	PyTypeObject *pool, *guard, *subscription, *span;	/* of this extension */
	/* What is made of them, by the Python package: subclasses (set_types). */
	PyTypeObject *guard_class, *subscription_class;
	PyObject *errors;		/* dict: errno -> class; None: the class of all others */
	PyObject *words;		/* a function: a message, in Python's words */
	PyTypeObject *layouts[XP_LAYOUTS];	/* of the library's answers; see layout.h */
	PyTypeObject *copy;		/* memory that copy_to_cpu makes */
	struct xp_later *later;
};

/* ---- error.c ---- */

/* Raise what the library says was the thread's last error. Always NULL. */
PyObject *xp_raise(struct xp_state *state);
/* An error was raised: this method was called, and not the one by which the library did it. */
void xp_raised_by(const char *method);
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
/* Raise that the object was inherited by fork. Always NULL. */
PyObject *xp_raise_forked(struct xp_state *state, const char *what);
/* When a wait of @timeout_ns ends, by CLOCK_MONOTONIC. */
int64_t xp_until(int64_t timeout_ns);

/* ---- fork.c ---- */

/* How often this process and those that it was forked from have forked, and been the child. */
extern unsigned int xp_forks;
void xp_count_forks(void);

/* ---- arguments.c ---- */

/* Converters for PyArg_Parse: 1, or 0 with an exception. */
int xp_timeout(PyObject *seconds, void *ret_ns);	/* None: for ever; int64_t */
int xp_lasts(PyObject *seconds, void *ret_ns);		/* the same, and more than 0 */
#define XP_LASTS_NS 10000000000				/* what is said of it otherwise */
int xp_size(PyObject *number, void *ret);		/* size_t */
int xp_token(PyObject *number, void *ret);		/* uint64_t */
int xp_u32(PyObject *number, void *ret);		/* uint32_t */
int xp_descriptor(PyObject *file, void *ret);		/* int; also of what has a fileno() */
int xp_signed(PyObject *number, const char *what, int64_t *ret);
int xp_stream(PyObject *object, void *ret);		/* void *; None and 0: NULL */
/*
 * As PyArg_ParseTupleAndKeywords, and an exception of the converters above names the argument. The
 * second one does that part alone, after another way to parse has failed.
 */
int xp_parse(PyObject *args, PyObject *kwargs, const char *format, char **names, ...);
void xp_name_argument(PyObject *args, PyObject *kwargs, char **names);
/* A tuple or list of at most 8 integers; -1 with an exception. */
int xp_dimensions(PyObject *sequence, int64_t *ret);

/* ---- Pool ---- */

struct xp_pool {
	PyObject_HEAD
	struct xp_state *state;
	struct xmem_pool *pool;		/* NULL: closed */
	unsigned int users;		/* calls of xmem_get that run without the GIL */
	struct xmem_pool *closing;	/* the last of them closes it */
	unsigned int forks;		/* xp_forks when it was opened */
	PyObject *limbo;		/* what limbo_hook() was given; NULL: nothing */
};

/* The handle, or NULL with an exception. */
struct xmem_pool *xp_pool_of(struct xp_pool *self);
/*
 * After a wait that a signal has ended, and that is to go on: has its handler closed the pool? Then
 * false, and Canceled is raised, as close() in another thread would have it.
 */
bool xp_pool_still(struct xp_pool *self);
/* Close what close() has left to a call that was going on, unless another one still is. */
void xp_pool_close_if_last(struct xp_pool *self);

/*
 * Around a call of the library that may call a limbo hook: the GIL is released, and the hook knows
 * how to get it back. No return may leave the block.
 */
#define XP_BEGIN_HOOKED {						\
	PyThreadState *xp_outer = xp_hooked_begin();
#define XP_END_HOOKED							\
	xp_hooked_end(xp_outer);					\
}
PyThreadState *xp_hooked_begin(void);
void xp_hooked_end(PyThreadState *outer);
/* Does this thread run a limbo hook of that pool? */
bool xp_is_hooked(const struct xp_pool *self);
PyObject *xp_pool_limbo_hook(PyObject *self, PyObject *args, PyObject *kwargs);

/* ---- Guard ---- */

enum xp_guard_state {
	XP_GONE = 0,			/* released, published, forgotten */
	XP_READING,
	XP_WRITING,
};

/* What the contents are, for the buffer protocol and others; it is filled at the first look. */
struct xp_view {
	const void *data;		/* NULL: not looked at yet, or on a GPU */
	uint32_t dtype;			/* XMEM_DTYPE_NONE: bytes */
	int ndim;
	Py_ssize_t item_bytes;
	Py_ssize_t bytes;		/* of all elements, each counted */
	bool dense;
	bool divisible;			/* steps is valid, and the numbers are aligned */
	Py_ssize_t shape[XMEM_MAX_DIMENSIONS];
	Py_ssize_t strides[XMEM_MAX_DIMENSIONS];	/* bytes */
	int64_t steps[XMEM_MAX_DIMENSIONS];		/* elements, as DLPack counts */
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
	unsigned int forks;		/* xp_forks when it was made */
	bool slow;			/* it was being written when it was released */
	unsigned int users;		/* calls without the GIL that need the handle */
	unsigned int exports;		/* memoryviews and others by the buffer protocol */
	bool cuda;			/* on a GPU, as the library says in no child of fork */
	bool lent;			/* consumers of an interface keep this object, and the
					 * handle goes with it */
	bool ordered;			/* the contents are complete on this stream */
	bool attached_on;		/* and publish is to be told of it */
	void *stream;
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
/* The same of a tensor that has been looked at, wherever it is; and of @bytes of contents. */
void xp_view_tensor(struct xp_view *ret, const struct xmem_tensor *tensor, const void *data);
void xp_view_bytes(struct xp_view *ret, size_t bytes, const void *data);
/* May nobody write through a view of this guard? */
bool xp_guard_readonly(struct xp_guard *self);
/* The numbers as a tuple. */
PyObject *xp_tuple(const Py_ssize_t *numbers, int count);
/* The struct module's format of a type, in numpy's way where that has none; NULL: there is none. */
const char *xp_format(uint32_t dtype);
/* How many bytes the contents have for who looks at them: none, if they are an empty tensor. */
size_t xp_contents(struct xmem_buffer *buffer);
/* The shape that metadata has, as a tuple; NULL with an exception. */
PyObject *xp_shape(const struct xmem_metadata *metadata);
#define XP_DTYPE_NAME	24
/* The name of a type for messages, as xmem.dtypes has it. */
void xp_dtype_name(uint32_t dtype, char ret[XP_DTYPE_NAME]);
/* What is said of the contents has changed: it is looked at anew. */
void xp_guard_view_changed(struct xp_guard *self);

/* ---- methods and types, in tables that module.c puts together ---- */

extern PyType_Spec xp_pool_spec, xp_guard_spec, xp_subscription_spec;

/* pool.c, guard.c: module functions that make the objects. */
PyObject *xp_pool_open(PyObject *module, PyObject *args);

/* info.c */
PyObject *xp_host(PyObject *module, PyObject *unused);
PyObject *xp_pools(PyObject *module, PyObject *unused);
PyObject *xp_pool_stat(PyObject *self, PyObject *unused);
PyObject *xp_pool_client_info(PyObject *self, PyObject *client);
PyObject *xp_pool_slot_info(PyObject *self, PyObject *slot);
PyObject *xp_pool_device_info(PyObject *self, PyObject *device);
PyObject *xp_pool_holds(PyObject *self, PyObject *args);
PyObject *xp_guard_metadata(PyObject *self, void *unused);
PyObject *xp_guard_describe_user(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_image_view(PyObject *self, PyObject *unused);

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

/* dlpack.c, dlpack_table.c, arrow.c, array_interface.c, copy.c */
PyObject *xp_guard_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_dlpack_device(PyObject *self, PyObject *unused);
PyObject *xp_guard_arrow_schema(PyObject *self, PyObject *unused);
PyObject *xp_guard_arrow_array(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_arrow_device_array(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_copy_from(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_tobytes(PyObject *self, PyObject *unused);
PyObject *xp_guard_span(PyObject *self, PyObject *unused);
PyObject *xp_guard_get_array_interface(PyObject *self, void *unused);
int xp_dlpack_add_table(PyTypeObject *guard);	/* the type's attribute; -1 with an exception */
extern PyType_Spec xp_span_spec;

/* subscription.c */
PyObject *xp_pool_subscribe(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_receive(PyObject *self, PyObject *args, PyObject *kwargs);

/* ---- GPUs ---- */

/* Around a call that may call the driver: an exception that follows has the result of this one. */
#define XP_BEGIN_CUDA	Py_BEGIN_ALLOW_THREADS xmem_cuda_clear_last_result();
#define XP_END_CUDA	Py_END_ALLOW_THREADS

/* later.c: what is run a moment later by a thread that has the GIL. */
struct xp_later *xp_later_new(void);			/* NULL with an exception */
void xp_later_put(struct xp_later *later);
/* Run what has been told. With the GIL. */
void xp_later_run(struct xp_later *later);
/* The same, and nothing that is told after this. */
void xp_later_end(struct xp_later *later);
/* One thing to run: @call is called and @kept let go; both may be NULL. NULL with an exception. */
struct xp_done *xp_done_new(struct xp_later *later, PyObject *call, PyObject *kept);
/* It is not to be run. */
void xp_done_drop(struct xp_done *done);
/* It is. For the library: in any thread, with the GIL or without. */
void xp_done_tell(void *done);

/* cuda.c, cuda_attach.c */
PyObject *xp_pool_cuda_preallocate(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_cuda_acquire(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_cuda_attach(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_dlpack_look(PyObject *module, PyObject *capsule);
/* The device address, for writing or not; -1 with an exception. The GIL is released. */
int xp_guard_cuda_address(struct xp_guard *self, bool mutable, const void **ret);
PyObject *xp_guard_get_cuda_ptr(PyObject *self, void *unused);
PyObject *xp_guard_get_cuda_ptr_mut(PyObject *self, void *unused);
PyObject *xp_guard_get_cuda_device(PyObject *self, void *unused);
PyObject *xp_guard_get_is_cuda(PyObject *self, void *unused);

/* cuda_copy.c */
extern PyType_Spec xp_copy_spec;
PyObject *xp_guard_copy_to_cuda(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_copy_to_cpu(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_copy_to_device(PyObject *self, PyObject *args, PyObject *kwargs);

/* cuda_stream.c */
/* What is put into this stream from now on comes after the contents. */
void xp_guard_order(struct xp_guard *self, void *stream);
PyObject *xp_guard_wait(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_wait_on(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_release_on(struct xp_guard *self, PyObject *stream);

/* cuda_interface.c, cuda_info.c */
int xp_guard_cuda_view(struct xp_guard *self);		/* of a buffer on a GPU, without data */
PyObject *xp_guard_get_cuda_array_interface(PyObject *self, void *unused);
PyObject *xp_guard_cuda_tensor_view(PyObject *self, PyObject *unused);
PyObject *xp_guard_cuda_image_view(PyObject *self, PyObject *unused);
PyObject *xp_cuda_query(PyObject *module, PyObject *unused);
PyObject *xp_cuda_device_query(PyObject *module, PyObject *device);
PyObject *xp_cuda_get_last_result(PyObject *module, PyObject *unused);
PyObject *xp_cuda_peek_last_result(PyObject *module, PyObject *unused);
PyObject *xp_cuda_clear_last_result(PyObject *module, PyObject *unused);
PyObject *xp_end_later(PyObject *module, PyObject *unused);

#endif

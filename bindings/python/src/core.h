/* SPDX-License-Identifier: MIT */
/*
 * The extension xmem._core: the types that all of its files share. It uses the limited API of
 * CPython 3.11 (capi.h) and is small: everything for convenience is in Python, in ../xmem. torch.h
 * is about the module xmem._torch, which is in the same shared object.
 *
 * doc.h and doc_guard.h have the docstrings, and layouts.h is made from the C headers. hold.h is
 * about a handle that views share, which any thread drops without the GIL.
 *
 * Layers. A file calls only files in the lines above its own or, in its own line, further left.
 *
 *   hold.c                     a handle that views share, dropped by any thread
 *   arguments.c fork.c         times, sizes and tokens that callers give; how often the process
 *                              has forked, which tells whose a handle is
 *   error.c                    the library's last error as an exception
 *   layout.c                   structs of answers as objects
 *   hook.c later.c             calls of Python by the library: of limbo hooks; of what any thread
 *                              tells, run later by a thread that has the GIL
 *   pool.c guard.c             a handle of a pool, a handle of a buffer: made, used and dropped
 *   lost.c                     guards and pools of messages whose buffer or pool is gone
 *   view.c private.c           Guard: what its contents are; memory for programs that write
 *                              contents which are for reading
 *   buffer.c                   Guard: the buffer protocol
 *   dense.c source.c           how elements are copied; the contents that a copy is made of
 *   describe.c                 Guard: what it says of its contents
 *   plane.c                    Plane: one plane of an image, as a buffer
 *   dlpack.c dlpack_table.c    Guard: DLPack's capsules, and its table of C functions
 *   arrow.c                    Guard: Arrow's C interfaces
 *   array_interface.c          Guard: numpy's interface, for consumers that take no buffers
 *   copy.c                     Guard: copies of other contents into it
 *   cuda.c cuda_stream.c       Pool, Guard: buffers on GPUs; the order of contents with streams
 *   cuda_attach.c              Pool: memory that other libraries have made on GPUs
 *   cuda_copy.c                Guard: copies to and from GPUs
 *   cuda_info.c                what is known of GPUs
 *   cuda_interface.c           Guard: __cuda_array_interface__, checked views on GPUs
 *   publish.c                  Guard: calls that hand a buffer over
 *   info.c                     what is known of hosts, pools, clients, slots and contents
 *   token.c                    Pool: buffers that a token names: getting, references, retracting
 *   guard_type.c               Guard: its methods and properties, each under its lock
 *   limbo.c parcel.c           Pool: its limbo hook; what parcels need of it
 *   subscription.c             Subscription: receiving
 *   pool_buffers.c             Pool: making buffers and acquiring them
 *   pool_whole.c               Pool: its subscribers, its descriptors, the right to use it
 *   pool_type.c                Pool: its methods and properties
 *   export.c                   the capsule by which other extensions reach libxmem
 *   module.c                   the module: its state, its functions, what Python registers with it
 *   torch_table.c              xmem._torch, see torch.h: the table of holds
 *   torch_pool.c               pools that this process has joined, which stay joined
 *   torch_offer.c              references set aside for messages
 *   torch_hold.c               holds: the buffers that storages lie in
 *   torch_alloc.c              allocators for torch: CPU and CUDA
 *   torch_error.c              errors
 *   torch_capsule.c            capsules, from which torch takes memory
 *   torch_guard.c              tensors of guards
 *   torch_fork.c               children by fork: holds and addresses of their own
 *   torch_message.c            messages of whole tensors, without Python code
 *   torch_calls.c              functions on pools and buffers
 *   torch_cuda.c               memory of GPUs that other processes are to see
 *   torch_weak.c               weak references to storages
 *   torch_rebuild.c            a message becomes a tensor
 *   torch_reduce.c             a tensor becomes a message
 *   torch_swap.c               the memory of two storages, exchanged
 *   torch_module.c             the module: the table of its functions
 *
 * Locks. A comment beside each field says what guards it, in one of these words:
 *
 *	lock		the lock of its object (XP_LOCK); with a GIL, that is the GIL
 *	atomic		no lock: atomic functions
 *	constant	set before another thread can have the object, or the module
 *
 *	a guard		its methods, properties and buffers run under its lock (guard_type.c,
 *			buffer.c); functions that C code calls take it themselves
 *			(dlpack_table.c, torch_guard.c). No other thread has an object that ends.
 *	a pool		has a lock only for its limbo hook. Calls that use the handle count
 *			themselves, and close() waits for them (users).
 *	a subscription	has no lock: the library allows handles that are dropped meanwhile.
 *	a hold		is atomic (hold.h), later.c has a mutex, torch*.c have theirs.
 *	the module	is constant once the package is imported.
 *
 * The lock is a critical section of CPython. As with the GIL, a thread gives it up while it is
 * detached from the interpreter, by Py_BEGIN_ALLOW_THREADS or in a call of Python code, and takes
 * it again before that returns. So after such a call all state must be checked again, with the GIL
 * or without. A call that detaches its thread counts itself in the guard (users), or has the guard
 * for itself (busy), so that no other thread drops the handle meanwhile.
 *
 * The locks of two guards are held together only while the users of the second one are counted,
 * because taking the second lock may give up the first one (xp_guard_begin_other). A thread that
 * holds a mutex of C neither detaches from the interpreter nor calls Python code: CPython stops all
 * threads from time to time, and a thread that waits for a mutex cannot be stopped.
 */
#ifndef XP_CORE_H
#define XP_CORE_H

#include "capi.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <xmem.h>

#include "doc.h"
#include "doc_guard.h"
#include "hold.h"
#include "layout.h"

/* Around code that needs the lock of an object. No return may leave the block. */
#ifdef Py_GIL_DISABLED
#define XP_LOCK(object)	Py_BEGIN_CRITICAL_SECTION(object);
#define XP_UNLOCK	Py_END_CRITICAL_SECTION();
#else
#define XP_LOCK(object)	{
#define XP_UNLOCK	}
#endif

/* The state of the module; each interpreter has its own. */
struct xp_state {
	PyTypeObject *pool, *guard, *subscription, *span, *plane;	/* of this extension */
	/*
	 * The subclasses that the Python package makes of them (set_types). These four fields are
	 * constant once the package is imported.
	 */
	PyTypeObject *guard_class, *subscription_class;
	PyObject *errors;		/* dict: errno -> class; key None: the class of all other
					 * errnos */
	PyObject *words;		/* a function that puts a message into Python's words */
	PyTypeObject *layouts[XP_LAYOUTS];	/* of the library's answers; see layout.h */
	PyTypeObject *copy;		/* memory that copy_to_host makes */
	struct xp_later *later;
};

/* ---- error.c ---- */

/* Raise the thread's last error of the library. Always NULL. */
PyObject *xp_raise(struct xp_state *state);
/*
 * An error was raised: name this method in it, and not the function of the library that the method
 * called.
 */
void xp_raised_by(const char *method);
/* Raise @err, a positive errno, with a text of this extension. Always NULL. */
PyObject *xp_raise_errno(struct xp_state *state, int err, const char *format, ...);
/* None after 0; NULL after -errno, raised. */
PyObject *xp_done(struct xp_state *state, int err);
/*
 * A call has failed. Is it to be made again? After EINTR the handlers of signals run. If they raise
 * nothing and @until (of xp_until) has not passed, the answer is yes, and *timeout_ns becomes the
 * time that is left. Otherwise the error is raised.
 */
bool xp_again(struct xp_state *state, int64_t until, int64_t *timeout_ns);
/* Raise Forked: the object was inherited by fork. Always NULL. */
PyObject *xp_raise_forked(struct xp_state *state, const char *what);
/*
 * Raise why an object never had a handle. False, without an exception: @lost is NULL, so it had
 * one.
 */
bool xp_raise_lost(struct xp_state *state, PyObject *lost);
/* The time of CLOCK_MONOTONIC at which a wait of @timeout_ns ends. */
int64_t xp_until(int64_t timeout_ns);

/* ---- fork.c ---- */

/* The number of forks between this process and the first one that loaded this module. */
extern unsigned int xp_forks;
void xp_count_forks(void);

/* ---- arguments.c ---- */

/* Converters for PyArg_Parse: 1, or 0 with an exception. */
int xp_timeout(PyObject *seconds, void *ret_ns);	/* None: for ever; int64_t */
int xp_lasts(PyObject *seconds, void *ret_ns);		/* as xp_timeout, but more than 0 */
#define XP_LASTS_NS 10000000000				/* the time if none is given */
int xp_size(PyObject *number, void *ret);		/* size_t */
int xp_token(PyObject *number, void *ret);		/* uint64_t */
int xp_u32(PyObject *number, void *ret);		/* uint32_t */
int xp_slot(PyObject *number, void *ret);		/* uint32_t; of a token its slot */
int xp_descriptor(PyObject *file, void *ret);		/* int; also of an object with fileno() */
int xp_signed(PyObject *number, const char *what, int64_t *ret);
int xp_stream(PyObject *object, void *ret);		/* void *; None and 0: NULL */
/*
 * The stream for options in which NULL stands for no stream: a NULL stream becomes
 * CU_STREAM_LEGACY.
 */
static inline struct CUstream_st *xp_some_stream(void *stream)
{
	return stream ? stream : (struct CUstream_st *)1;
}
/*
 * As PyArg_ParseTupleAndKeywords, but an exception of the converters above names the argument.
 * xp_name_argument adds only the name, after another way to parse has failed.
 */
int xp_parse(PyObject *args, PyObject *kwargs, const char *format, char **names, ...);
void xp_name_argument(PyObject *args, PyObject *kwargs, char **names);
/* A tuple or list of at most 8 integers; -1 with an exception. */
int xp_dimensions(PyObject *sequence, int64_t *ret);

/* ---- Pool ---- */

#define XP_CLOSED	0x80000000u

struct xp_pool {
	PyObject_HEAD
	struct xp_state *state;		/* constant */
	struct xmem_pool *pool;		/* constant once it is open; see xp_pool_begin */
	unsigned int users;		/* atomic: calls that use the handle; and XP_CLOSED */
	unsigned int shares;		/* atomic: shares of the handle: one of the open pool,
					 * and one of each parcel; the last closes it */
	unsigned int forks;		/* constant: xp_forks when it was opened */
	PyObject *limbo;		/* lock: the function of limbo_hook(); NULL: none */
	PyObject *lost;			/* constant: see lost.c */
	PyObject *numbered;		/* constant, a dict: by slot a weak reference to the last
					 * guard whose number was read; see token.c */
};

/*
 * The handle, for one call of the library; NULL with an exception. The thread that calls
 * xp_pool_begin also calls xp_pool_end, without the GIL if the call was without it. Closing waits
 * for that, so no Python code runs in between, except limbo hooks.
 */
struct xmem_pool *xp_pool_begin(struct xp_pool *self);
void xp_pool_end(struct xp_pool *self);
/*
 * A wait has failed, and xp_pool_end has ended it. If a signal was the cause, begin again for the
 * rest of the time (xp_again). NULL with an exception: ECANCELED if the pool was closed meanwhile.
 */
struct xmem_pool *xp_pool_again(struct xp_pool *self, int64_t until, int64_t *timeout_ns);
bool xp_pool_is_closed(struct xp_pool *self);
/*
 * A signal has ended a wait that is to go on. False if the signal's handler has closed the pool:
 * Canceled is raised, as after close() in another thread.
 */
bool xp_pool_still(struct xp_pool *self);
/* An object of that class without a handle. */
struct xp_pool *xp_pool_new(struct xp_state *state, PyTypeObject *class);
/* Drop a share of the handle. */
void xp_pool_put(struct xp_pool *self);

/*
 * Around a call of the library that may call a limbo hook. The GIL is released, and the hook can
 * take it again. No return may leave the block.
 */
#define XP_BEGIN_HOOKED {						\
	PyThreadState *xp_outer = xp_hooked_begin();
#define XP_END_HOOKED							\
	xp_hooked_end(xp_outer);					\
}
PyThreadState *xp_hooked_begin(void);
void xp_hooked_end(PyThreadState *outer);
/* Is this thread running a limbo hook of that pool? */
bool xp_is_hooked(const struct xp_pool *self);
/* The hook that the library calls: @user is the pool. */
void xp_hook(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *user);
PyObject *xp_pool_limbo_hook(PyObject *self, PyObject *args, PyObject *kwargs);

/* ---- Guard ---- */

enum xp_guard_state {
	XP_GONE = 0,			/* released, published, forgotten */
	XP_READING,
	XP_WRITING,
};

/* The layout of the contents, for the buffer protocol and others; filled at the first look. */
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

/* The lock guards all fields that are not constant. */
struct xp_guard {
	PyObject_HEAD
	struct xp_state *state;		/* constant */
	struct xmem_buffer *buffer;	/* NULL: dropped */
	struct xp_hold *hold;		/* set if views share the handle; see hold.h */
	PyObject *pool;			/* constant: where it came from, for programs to ask */
	enum xp_guard_state mode;
	bool busy;			/* a call without the GIL may drop or change the handle */
	bool counted;			/* releasing it asks the host */
	unsigned int forks;		/* constant: xp_forks when it was made */
	bool slow;			/* it was being written when it was released */
	bool in_place;			/* it is being written since get_mut */
	unsigned int users;		/* calls without the GIL that need the handle */
	unsigned int exports;		/* memoryviews and others by the buffer protocol */
	uint32_t flags;			/* XMEM_BUFFER_*; constant */
	bool cuda;			/* constant: on a GPU; noted because the library does not
					 * tell a child of fork */
	bool lent;			/* consumers of an interface keep this object, and the
					 * handle goes with it */
	bool distrust;			/* a consumer has asked to write read-only contents */
	bool ordered;			/* the contents are complete on this stream */
	bool attached_on;		/* the memory was attached on this stream, of which
					 * publish is to be told */
	void *stream;
	bool forgotten;			/* it is gone because of forget() */
	PyObject *lost;			/* constant: see lost.c */
	struct xp_view view;		/* while there are exports, its shape and strides are
					 * lent and do not change */
};

/* A guard that owns @buffer; if this fails, the buffer is released. */
PyObject *xp_guard_new(struct xp_state *state, PyObject *pool, struct xmem_buffer *buffer,
		       enum xp_guard_state mode);

/*
 * The following functions on guards are called under the lock of the guard, except
 * xp_guard_*_other, which take the lock of the other guard.
 */

/* XMEM_BUFFER_* of a handle. */
static inline uint32_t xp_flags(struct xmem_buffer *buffer)
{
	struct xmem_buffer_info info = XMEM_INIT(info);

	return xmem_buffer_stat(buffer, &info) ? 0 : info.flags;
}

/* The handle for a look; NULL with an exception if the guard is gone or busy. */
struct xmem_buffer *xp_guard_look(struct xp_guard *self);
/* As xp_guard_look, for a guard that is being written; EPERM otherwise. */
struct xmem_buffer *xp_guard_write(struct xp_guard *self);

/*
 * Around a call without the GIL that needs the handle. xp_guard_begin gives the handle, as
 * xp_guard_look does, and xp_guard_end drops it if the guard was released meanwhile. If the call
 * has failed because of a signal, xp_guard_again begins again after xp_guard_end (xp_again);
 * otherwise it raises the error and returns NULL.
 */
struct xmem_buffer *xp_guard_begin(struct xp_guard *self);
struct xmem_buffer *xp_guard_again(struct xp_guard *self);
void xp_guard_end(struct xp_guard *self);
/* As xp_guard_begin and xp_guard_end for @other, which may be @self, under the lock of @self. */
struct xmem_buffer *xp_guard_begin_other(struct xp_guard *self, struct xp_guard *other);
void xp_guard_end_other(struct xp_guard *self, struct xp_guard *other);

/*
 * Around a call that takes the handle or changes its purpose: no other call may use it. If views
 * are alive, they keep the handle, and *ret_keep is set.
 */
struct xmem_buffer *xp_guard_take(struct xp_guard *self, bool *ret_keep);
/* The call has failed: everything is as before. */
void xp_guard_back(struct xp_guard *self);
/*
 * The call has dropped the handle. @kept: views keep the handle, and only the guard's share goes.
 */
void xp_guard_gone(struct xp_guard *self, bool kept);

/* A share of the handle for a view that any thread may drop; NULL with an exception. */
struct xp_hold *xp_guard_share(struct xp_guard *self);

/*
 * The address of the contents; NULL with an exception. The GIL is released, because the host may be
 * asked to map them.
 */
const void *xp_guard_data(struct xp_guard *self);
/* Fill self->view; -1 with an exception. The first look releases the GIL. */
int xp_guard_view(struct xp_guard *self);
/*
 * Private memory of contents on the CPU that are for reading (private.c). It belongs to a new
 * handle that only the returned hold has. NULL with an exception. The GIL is released.
 */
struct xp_hold *xp_guard_private(struct xp_guard *self, void **ret_memory);
/* Private memory that goes with a new object, its owner. NULL with an exception. */
PyObject *xp_guard_private_capsule(struct xp_guard *self, void **ret_memory);
/* Make a view of a checked tensor, or of @bytes bytes. */
void xp_view_tensor(struct xp_view *ret, const struct xmem_tensor *tensor, const void *data);
void xp_view_bytes(struct xp_view *ret, size_t bytes, const void *data);
/* Are the elements, their shape and strides equal? The addresses do not count. */
bool xp_view_is_same(const struct xp_view *old, const struct xp_view *now);
/*
 * Fill in a buffer that belongs to @owner: the guard, or its plane. Its elements begin @offset
 * bytes into the contents, and its arrays are those of @of. The guard has been viewed. -1 with
 * BufferError: the caller wants another layout, or wants to write contents that are for reading.
 */
int xp_guard_lend(struct xp_guard *self, PyObject *owner, const struct xp_view *of, size_t offset,
		  Py_buffer *ret, int flags);
/* The column of strings; 1: the contents are none; -1 with an exception. The GIL is released. */
int xp_guard_strings(struct xp_guard *self, struct xmem_strings *ret);
/* As xp_guard_view, for a buffer on a GPU, which has no address here. */
int xp_guard_cuda_view(struct xp_guard *self);
/* Are views of this guard read-only? */
bool xp_guard_readonly(struct xp_guard *self);
/* The numbers as a tuple. */
PyObject *xp_tuple(const Py_ssize_t *numbers, int count);
/* The struct module's format of a type, in numpy's way where that has none; NULL: there is none. */
const char *xp_format(uint32_t dtype);
/* The number of bytes of the contents: 0 if they are an empty tensor. */
size_t xp_contents(struct xmem_buffer *buffer);
/* The shape in the metadata, as a tuple; NULL with an exception. */
PyObject *xp_shape(const struct xmem_metadata *metadata);
#define XP_DTYPE_NAME	24
/* The name of a type for messages, as xmem.dtypes has it. */
void xp_dtype_name(uint32_t dtype, char ret[XP_DTYPE_NAME]);
/* The description of the contents has changed: forget the view. */
void xp_guard_view_changed(struct xp_guard *self);

/* ---- lost.c, parcel.c ---- */

PyObject *xp_lost_guard(PyObject *module, PyObject *args);
PyObject *xp_lost_pool(PyObject *module, PyObject *args);
PyObject *xp_guard_get_lost(PyObject *self, void *unused);
PyObject *xp_pool_get_lost(PyObject *self, void *unused);
PyObject *xp_pool_keep(PyObject *self, PyObject *unused);
PyObject *xp_pool_give_back(PyObject *self, PyObject *token);

/* ---- export.c ---- */

/* Add the capsule to the module; -1 with an exception. */
int xp_export(PyObject *module);

/* ---- methods and types, in tables that module.c puts together ---- */

extern PyType_Spec xp_pool_spec, xp_guard_spec, xp_subscription_spec;

/* pool.c */
PyObject *xp_pool_open(PyObject *module, PyObject *args);
PyObject *xp_pool_reopen(PyObject *self, PyObject *unused);
PyObject *xp_pool_close(PyObject *self, PyObject *unused);
void xp_pool_dealloc(PyObject *self);
int xp_pool_traverse(PyObject *self, visitproc visit, void *arg);
int xp_pool_clear(PyObject *self);

/* pool_buffers.c */
PyObject *xp_pool_preallocate(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_acquire(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_attach_fd(PyObject *self, PyObject *args, PyObject *kwargs);

/* pool_whole.c */
PyObject *xp_pool_wait_for_subscribers(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_collect(PyObject *self, PyObject *unused);
PyObject *xp_pool_trim(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_cancel(PyObject *self, PyObject *unused);
PyObject *xp_pool_fileno(PyObject *self, PyObject *unused);
PyObject *xp_pool_subscribers_fileno(PyObject *self, PyObject *unused);
PyObject *xp_pool_fd(PyObject *self, PyObject *unused);
PyObject *xp_narrow_fd(PyObject *module, PyObject *args);
PyObject *xp_pool_set_mode(PyObject *self, PyObject *args);
PyObject *xp_pool_evict(PyObject *self, PyObject *args);
PyObject *xp_pool_grant(PyObject *self, PyObject *args);
PyObject *xp_pool_drain(PyObject *self, PyObject *args);
PyObject *xp_pool_get_client(PyObject *self, void *unused);

/* token.c */
PyObject *xp_pool_get(PyObject *self, PyObject *token);
PyObject *xp_pool_claims(PyObject *self, PyObject *token);
PyObject *xp_pool_add_ref(PyObject *self, PyObject *token);
PyObject *xp_pool_release(PyObject *self, PyObject *token);
PyObject *xp_pool_void_claims(PyObject *self, PyObject *token);
PyObject *xp_pool_retract(PyObject *self, PyObject *token);
PyObject *xp_pool_get_numbered(PyObject *self, void *unused);
/* The guard's number is being read: let its pool find it by the number. -1 with an exception. */
int xp_guard_note_number(struct xp_guard *self, struct xmem_buffer *buffer);

/* guard.c */
PyObject *xp_guard_release_now(struct xp_guard *self);	/* None; NULL with an exception */
PyObject *xp_guard_enter(PyObject *self, PyObject *unused);
PyObject *xp_guard_exit(PyObject *self, PyObject *args);
PyObject *xp_guard_clone_ref(PyObject *self, PyObject *unused);
void xp_guard_dealloc(PyObject *self);
int xp_guard_traverse(PyObject *self, visitproc visit, void *arg);
int xp_guard_clear(PyObject *self);

/* info.c */
PyObject *xp_host(PyObject *module, PyObject *unused);
PyObject *xp_pools(PyObject *module, PyObject *unused);
PyObject *xp_limits(PyObject *module, PyObject *unused);
PyObject *xp_pool_limits(PyObject *self, PyObject *unused);
PyObject *xp_pool_stat(PyObject *self, PyObject *unused);
PyObject *xp_pool_client_info(PyObject *self, PyObject *client);
PyObject *xp_pool_subscribers(PyObject *self, PyObject *unused);
PyObject *xp_pool_slot_info(PyObject *self, PyObject *slot);
PyObject *xp_pool_device_info(PyObject *self, PyObject *device);
PyObject *xp_pool_holds(PyObject *self, PyObject *args);
PyObject *xp_guard_metadata(PyObject *self, void *unused);
PyObject *xp_guard_describe_user(PyObject *self, PyObject *args, PyObject *kwargs);

/* publish.c, describe.c */
PyObject *xp_guard_publish(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_send(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_forward(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_get_mut(PyObject *self, PyObject *unused);
PyObject *xp_guard_forget(PyObject *self, PyObject *unused);
PyObject *xp_guard_set_ref_count(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_offer(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_tensor(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_image_bytes(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_image(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_strings_plan(PyObject *module, PyObject *args);
PyObject *xp_guard_describe_strings(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_strings_view(PyObject *self, PyObject *unused);
PyObject *xp_guard_describe_content(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_describe_time(PyObject *self, PyObject *args, PyObject *kwargs);

/* buffer.c */
int xp_guard_getbuffer(PyObject *self, Py_buffer *view, int flags);
void xp_guard_releasebuffer(PyObject *self, Py_buffer *view);

/* view.c */
PyObject *xp_guard_get_shape(PyObject *self, void *unused);
PyObject *xp_guard_get_strides(PyObject *self, void *unused);
PyObject *xp_guard_get_dtype(PyObject *self, void *unused);

/* plane.c */
extern PyType_Spec xp_plane_spec;
PyObject *xp_guard_image_view(PyObject *self, PyObject *unused);

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

/*
 * Around a call that may call the driver. A following exception then has the result of this call,
 * not of an earlier one.
 */
#define XP_BEGIN_CUDA	Py_BEGIN_ALLOW_THREADS xmem_clear_last_error();
#define XP_END_CUDA	Py_END_ALLOW_THREADS

/* later.c: calls that a thread with the GIL runs a moment later. */
struct xp_later *xp_later_new(void);			/* NULL with an exception */
void xp_later_put(struct xp_later *later);
/* Run the calls that have been told. With the GIL. */
void xp_later_run(struct xp_later *later);
/* As xp_later_run, for the last time: later calls are never run. */
void xp_later_end(struct xp_later *later);
/*
 * One call to run: @call is called and @kept released; both may be NULL. @storage: the storage of
 * torch that @kept is the object of; or NULL. NULL with an exception.
 */
struct xp_done *xp_done_new(struct xp_later *later, PyObject *call, PyObject *kept, void *storage);
/* The call is not to be run. */
void xp_done_drop(struct xp_done *done);
/* The call is to be run. The library calls this in any thread, with the GIL or without. */
void xp_done_tell(void *done);
/* Has any call a storage? Any thread, with the GIL or without, as the next one. */
bool xp_later_has_storages(void);
/*
 * Empty the storages of all calls that have been told and not run, unless anybody else has their
 * objects. @empty is called under a lock, and may refuse. Returns whether it has emptied any.
 */
bool xp_later_empty(bool (*empty)(void *storage));

/* cuda.c, cuda_attach.c */
PyObject *xp_pool_cuda_acquire(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_pool_copy_of(PyObject *self, PyObject *args);
PyObject *xp_pool_cuda_attach(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_dlpack_look(PyObject *module, PyObject *capsule);
/* The device address, for writing or not; -1 with an exception. The GIL is released. */
int xp_guard_cuda_address(struct xp_guard *self, bool mutable, const void **ret);
PyObject *xp_guard_get_cuda_ptr(PyObject *self, void *unused);
PyObject *xp_guard_get_cuda_ptr_mut(PyObject *self, void *unused);
PyObject *xp_guard_get_device_id(PyObject *self, void *unused);
PyObject *xp_guard_get_is_cuda(PyObject *self, void *unused);

/* cuda_copy.c */
extern PyType_Spec xp_copy_spec;
PyObject *xp_guard_copy_from_host(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_copy_to_host(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_copy_to(PyObject *self, PyObject *args, PyObject *kwargs);

/* cuda_stream.c */
/* Note that work which is put into this stream from now on runs after the contents are complete. */
void xp_guard_order(struct xp_guard *self, void *stream);
PyObject *xp_guard_wait(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_wait_on(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *xp_guard_release(PyObject *self, PyObject *args, PyObject *kwargs);

/* cuda_interface.c, cuda_info.c */
PyObject *xp_guard_get_cuda_array_interface(PyObject *self, void *unused);
PyObject *xp_guard_cuda_tensor_view(PyObject *self, PyObject *unused);
PyObject *xp_guard_cuda_image_view(PyObject *self, PyObject *unused);
PyObject *xp_cuda_query(PyObject *module, PyObject *unused);
PyObject *xp_cuda_device_query(PyObject *module, PyObject *device);
PyObject *xp_cuda_last_result(PyObject *module, PyObject *unused);
PyObject *xp_clear_last_error(PyObject *module, PyObject *unused);
PyObject *xp_end_later(PyObject *module, PyObject *unused);

#endif

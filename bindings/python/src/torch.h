/* SPDX-License-Identifier: MIT */
/*
 * The module xmem._torch, in the same file as xmem._core: memory of pools for PyTorch's storages.
 * It knows nothing of torch's C++; torch takes memory from it by DLPack capsules, or through the
 * allocators below.
 *
 * core.h says which file has which job, and which file may call which. doc_torch.h says what each
 * function of the module is for, and torch_message.h is about messages of whole tensors.
 *
 * All state here belongs to the process, not to an interpreter: any thread drops storages, with or
 * without the GIL, also while Python ends. So the state is static, and has no Python object.
 */
#ifndef XT_TORCH_H
#define XT_TORCH_H

#include "capi.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <xmem.h>

/* ---- DLPack, as far as it is needed: the legacy capsule, which all versions of torch take ---- */

#define XT_DLPACK_CPU	1
#define XT_DLPACK_INT	0
#define XT_DLPACK_UINT	1
#define XT_DLPACK_COMPLEX 5

struct xt_dlpack {
	void *data;
	int32_t device_type, device_id;
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;	/* strides NULL: dense */
	uint64_t byte_offset;
	void *context;
	void (*deleter)(struct xt_dlpack *self);
};

/* ---- torch_pool.c ---- */

#define XT_POOLS	64		/* that one process can join */

struct xt_pool {
	char name[200];			/* maybe with its user: "USER:NAME" */
	struct xmem_pool *handle;	/* NULL: this process has not joined it yet, or anew */
	struct xmem_pool *inherited;	/* of the parent, in a child that has not joined it yet */
	bool gone;			/* its host has ended, and only the pages are left;
					 * atomic */
};

/*
 * The pool of that name, joined now if need be. With @options the pool is made if it does not
 * exist. The caller must have released the GIL. NULL: the library's last error says why.
 */
struct xt_pool *xt_pool_join(const char *name, const struct xmem_pool_options *options);
/* The pool's handle; a child of fork joins again first. NULL: the last error says why. */
struct xmem_pool *xt_pool_handle(struct xt_pool *pool);
/* The pool of a number that xt_pool_number gave; NULL: there is none. */
struct xt_pool *xt_pool_at(int number);
int xt_pool_number(const struct xt_pool *pool);
/*
 * The number of the pool of that name; -1 if there is none, or if its host is known to have ended.
 */
int xt_pool_named(const char *name);
/*
 * Has the host of the pool ended? Then another pool may have its name. It looks, but makes no
 * request.
 */
bool xt_pool_is_gone(struct xt_pool *pool);
/* Before a fork: look whether the hosts of all pools are there. */
void xt_pools_look(void);
/* In a child: all pools must be joined again, except those whose hosts have ended. */
void xt_pools_forked(void);

/* ---- torch_hold.c ---- */

#define XT_DIMENSIONS	8	/* of a tensor that is made at once */

/* A buffer that storages lie in. Only `shares` and `next` change, except by a fork. */
struct xt_hold {
	struct xt_hold *next;		/* with the same hash; xt_lock guards it */
	unsigned int shares;		/* storages, and calls that use it now; xt_lock guards it */
	struct xt_pool *pool;
	struct xmem_buffer *buffer;	/* NULL: lost by a fork */
	char *address;
	size_t bytes;
	uint64_t token;
	bool own;			/* this process made the buffer */
	bool gpu;			/* in memory of a GPU, which no child by fork has */
	void *stream;			/* of the GPU, on which a receiver uses it; constant */
	bool sent;			/* a message of it has been made; atomic */
	unsigned int credits;		/* references set aside ahead; xt_lock guards these two */
	bool ahead;			/* credits have been set aside before */
	bool allocated;			/* an allocator has a share; xt_lock guards it */
	bool moved_in;			/* its pages were put at `address` after a fork; xt_lock */
	bool copied;			/* its pages are this child's own, not the pool's;
					 * xt_lock */
	bool prepared;			/* for the next fork; xt_lock guards it */
	struct xt_dlpack dlpack;
	int64_t shape[XT_DIMENSIONS];
};

/*
 * Put @buffer, whose contents are published, into the table. NULL: no memory; the caller keeps
 * @buffer.
 */
struct xt_hold *xt_hold_new(struct xt_pool *pool, struct xmem_buffer *buffer, void *address,
			    bool own);
/* Drop a share; the last one releases the buffer. Any thread, without the GIL. */
void xt_hold_put(struct xt_hold *hold);
/*
 * As xt_hold_put, for memory of a GPU: it is released when @stream and the legacy default stream
 * have done the work that is in them.
 */
void xt_hold_put_on(struct xt_hold *hold, void *stream);
/*
 * A new buffer of @bytes, held and published to nobody, with a copy of @contents unless that is
 * NULL. NULL: the last error says why.
 */
struct xt_hold *xt_hold_make(struct xt_pool *pool, size_t bytes, const void *contents);
/* The buffer that a token names. NULL: the last error says why. */
struct xt_hold *xt_hold_get(struct xt_pool *pool, uint64_t token);
/* Before the capsule is made: describe the buffer as a dense tensor. @type: code << 8 | bits. */
void xt_hold_describe(struct xt_hold *hold, unsigned int type, int dimensions,
		      const int64_t *shape);

/* ---- torch_table.c ---- */

/* Guards the table of holds. Held across fork. */
extern pthread_mutex_t xt_lock;

/* Put a hold into the table. false: no memory. */
bool xt_hold_insert(struct xt_hold *hold);
/* Drop a share. Was it the last one, so that the hold is out of the table? */
bool xt_hold_drop_share(struct xt_hold *hold);
/*
 * The hold of the buffer that begins at @address, with a share for the caller; or NULL. A copy that
 * a fork has left is not found: it is ordinary memory of this process.
 */
struct xt_hold *xt_hold_find(const void *address);
/*
 * An allocator drops its share by the address alone, which must not find the hold of another
 * storage in the same buffer. So it marks its hold; xt_hold_unmark finds the marked hold, and the
 * share becomes the caller's.
 */
void xt_hold_mark(struct xt_hold *hold);
struct xt_hold *xt_hold_unmark(const void *address);
/* Call for each hold while xt_lock is held. */
void xt_holds_each(void (*call)(struct xt_hold *hold, void *user), void *user);
size_t xt_holds_count(void);

/* ---- torch_offer.c ---- */

/* Set a reference aside for the receiver of the token. 0 or -errno. */
int xt_hold_offer(struct xt_hold *hold);
/*
 * Use a reference that was set aside ahead, if there is one. It makes no request and does not wait.
 */
bool xt_hold_spend(struct xt_hold *hold);
/* Before the hold goes: take back the references that no message has used. */
void xt_hold_settle(struct xt_hold *hold);
/* How long references last for messages that nobody reads; XMEM_FOREVER at first. */
void xt_set_in_flight(int64_t timeout_ns);
int64_t xt_in_flight(void);

/* ---- torch_fork.c ---- */

/*
 * Before fork, by the thread that forks: set references aside for the child, for all holds that
 * have none yet. Holds that other threads make between the last of these calls and the fork are
 * unknown to the child, and are not counted as lost.
 */
void xt_fork_offer(void);
/*
 * In the child, later: get all buffers, and put their pages where they were. Returns how many are
 * lost, and in @ret_copied how many are copies of this child's own, because it cannot join their
 * pool.
 */
size_t xt_fork_restore(size_t *ret_copied);
/* Register functions for every fork of the C library. 0 or -errno. */
int xt_fork_register(void);

/* ---- torch_guard.c ---- */

/*
 * Around fork, while xt_lock is held. Contents of tensors of guards are copied before it, if the
 * child will not have their pages. The child puts the copies where the tensors point; the parent
 * drops them.
 */
void xt_guards_before_fork(void);
void xt_guards_after_fork(bool child);

/* ---- torch_alloc.c ---- */

/* A C++ allocator of torch calls this. NULL: the caller must use another allocator. */
void *xt_allocate(size_t bytes);
/* If it is memory of a pool, drop it. false: it is not. */
bool xt_free(void *address);
/* From now on memory comes from this pool, at most so many buffers at a time; NULL: from none. */
void xt_allocate_from(struct xt_pool *pool, size_t most_buffers);
/* A small buffer of a GPU to write into, made if need be. NULL: the last error says why. */
struct xmem_buffer *xt_cuda_acquire(struct xt_pool *pool, size_t bytes, int device);
/* From now on memory of GPUs comes from this pool. */
void xt_cuda_allocate_from(struct xt_pool *pool);

/* ---- functions of the module, by file ---- */

/* torch_calls.c */
PyObject *xt_call_join(PyObject *module, PyObject *args);
PyObject *xt_call_gone(PyObject *module, PyObject *number);
PyObject *xt_call_make(PyObject *module, PyObject *args);
PyObject *xt_call_get(PyObject *module, PyObject *args);
PyObject *xt_call_get_tensor(PyObject *module, PyObject *args);
PyObject *xt_call_find(PyObject *module, PyObject *address);
PyObject *xt_call_offer(PyObject *module, PyObject *address);
PyObject *xt_call_drop(PyObject *module, PyObject *args);
PyObject *xt_call_claims(PyObject *module, PyObject *args);
PyObject *xt_call_pool_stat(PyObject *module, PyObject *args);
PyObject *xt_call_set_in_flight(PyObject *module, PyObject *ns);
PyObject *xt_call_holds(PyObject *module, PyObject *unused);
PyObject *xt_call_fork_offer(PyObject *module, PyObject *unused);
PyObject *xt_call_fork_restore(PyObject *module, PyObject *unused);
PyObject *xt_call_allocate_from(PyObject *module, PyObject *args);
PyObject *xt_call_allocator(PyObject *module, PyObject *unused);
/* The hold of a token, with a share for the caller; or NULL and an exception. */
struct xt_hold *xt_get(PyObject *module, int number, unsigned long long token);

/* torch_cuda.c */
PyObject *xt_cuda_share(PyObject *module, PyObject *args);
PyObject *xt_cuda_get(PyObject *module, PyObject *args);
PyObject *xt_cuda_wait(PyObject *module, PyObject *args);
PyObject *xt_cuda_again(PyObject *module, PyObject *args);
PyObject *xt_cuda_fence(PyObject *module, PyObject *args);
PyObject *xt_cuda_collect(PyObject *module, PyObject *args);
PyObject *xt_cuda_room(PyObject *module, PyObject *unused);
PyObject *xt_cuda_use(PyObject *module, PyObject *args);

/* torch_guard.c, torch_swap.c */
PyObject *xt_guard_capsule(PyObject *module, PyObject *args);
PyObject *xt_swap(PyObject *module, PyObject *args);

/* ---- torch_capsule.c ---- */

/* A capsule for torch's from_dlpack, which owns a share of the hold. NULL with an exception. */
PyObject *xt_capsule(struct xt_dlpack *dlpack);

/* ---- torch_error.c ---- */

/* Raise @err, a positive errno. Always NULL. */
PyObject *xt_raise_errno(PyObject *module, int err, const char *message);
/* Raise the library's last error. Always NULL. */
PyObject *xt_raise(PyObject *module);
/* Is the current exception an error of the library? It may also be of a signal handler. */
bool xt_is_error(PyObject *module);
/* Is the call to be made again, because a signal has ended it? Otherwise its error is raised. */
bool xt_again(PyObject *module);

#endif

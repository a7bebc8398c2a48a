/* SPDX-License-Identifier: MIT */
/*
 * The fast path for messages of whole tensors. It is for plain tensors of a type that all versions
 * of torch take from DLPack, which are as large as their storage and have been sent before. All
 * other tensors take the slow path, ../xmem/torch/reductions.py, which makes and reads messages of
 * all kinds.
 *
 *	torch_message.c	what of Python both ends use, and whether a mode of torch is active
 *	torch_reduce.c	the sender's end: a tensor becomes a message
 *	torch_rebuild.c	the receiver's end: a message becomes a tensor
 *	torch_weak.c	weak references to storages, by which both know what is alive here
 *
 * A message consists of the head, the sizes of the dimensions, 8 bytes each, and the name of the
 * pool without a NUL. It is in the byte order of this machine, because no other machine reads it.
 */
#ifndef XT_TORCH_MESSAGE_H
#define XT_TORCH_MESSAGE_H

#include "torch.h"

struct xt_head {
	uint64_t token;
	uint16_t type;		/* code << 8 | bits, as DLPack has them */
	uint8_t flags;
	uint8_t dimensions;
} __attribute__((packed));

/* reductions.py has the same numbers. */
#define XT_REQUIRES_GRAD	1
#define XT_PARAMETER		2
#define XT_KEPT			4	/* its sender has not installed, or has uninstalled */
#define XT_CONJ			8
#define XT_NEG			16

/* The arguments of set_messages(), by these names; torch_message.c has the list. */
enum xt_given {
	XT_REDUCE,		/* the slow path from a tensor to a message */
	XT_REBUILD,		/* the slow path from a message to a tensor */
	XT_FUNCTION,		/* the function that a message tells its receiver to call */
	XT_FINISH,		/* gives a tensor the flags of its message */
	XT_ADOPT,		/* installs the pool of a message, or recognises it */
	XT_FUNCTION_MODES,	/* these two count the modes of torch in this thread */
	XT_DISPATCH_MODES,
	XT_TENSOR,		/* torch.Tensor and torch.nn.Parameter */
	XT_PARAMETERS,
	XT_STRIDED,		/* the layout */
	XT_TYPES,		/* a dict: dtype -> code << 8 | bits */
	XT_UNTYPED,		/* gives the storage of a tensor */
	XT_HAS_NAMES,		/* has a tensor names of dimensions? */
	XT_FROM_CAPSULE,
	XT_LOCK,		/* a lock that is held while a token becomes a storage */
	XT_GIVEN,
};

/* The functions of torch for weak references: the arguments of set_weak(). */
enum xt_weak {
	XT_WEAK_FREE,
	XT_WEAK_EXPIRED,
	XT_WEAK_STORAGE,	/* the storage, or None */
	XT_WEAKS,
};

/* Words that are looked up in objects; torch_message.c has the list. */
enum xt_word {
	XT_W_ACQUIRE, XT_W_RELEASE, XT_W_BACKWARD_HOOKS, XT_W_DATA_PTR, XT_W_DTYPE,
	XT_W_IS_CONJ, XT_W_IS_LEAF, XT_W_IS_NEG, XT_W_IS_NESTED, XT_W_LAYOUT, XT_W_REQUIRES_GRAD,
	XT_W_SIZE, XT_W_STORAGE_OFFSET, XT_W_STRIDE, XT_W_WEAK_REF,
	XT_WORDS,
};

struct xt_messages {
	PyObject *given[XT_GIVEN];	/* all NULL until set_messages() has been called */
	PyObject *words[XT_WORDS];
	PyObject *weak[XT_WEAKS];	/* all NULL until set_weak() has been called */
	PyObject *weak_type;
	/*
	 * By the number of a pool: its dict token -> weak reference, and the function that adds to
	 * it.
	 */
	PyObject *known[XT_POOLS];
	PyObject *remember[XT_POOLS];
};

/* The state of the module; torch_module.c makes it. */
struct xt_state {
	PyObject *errors;	/* dict: errno -> class; key None: the class of all other errnos */
	struct xt_messages messages;
};

/* ---- torch_message.c ---- */

/* 0, or -1 and an exception. */
int xt_messages_make(struct xt_messages *is);
int xt_messages_traverse(struct xt_messages *is, visitproc visit, void *arg);
void xt_messages_clear(struct xt_messages *is);
/* object.word() */
PyObject *xt_say(struct xt_messages *is, PyObject *object, enum xt_word word);
/*
 * Can this thread take the fast path? It cannot if a mode of torch sees and changes calls of torch.
 * Or -1.
 */
int xt_may_be_short(struct xt_messages *is);
/* Is this the pool that this process has installed? NULL: is there one? */
bool xt_is_installed(const char *name);
/*
 * Does a dense tensor of this shape and these strides, from the first byte on, fill @bytes? @item:
 * bytes of an element.
 */
bool xt_is_whole(const int64_t *shape, const int64_t *strides, Py_ssize_t dimensions,
		 int64_t item, int64_t bytes);
/* The numbers of a tuple, at most @room of them. How many there are, or -1 and an exception. */
Py_ssize_t xt_numbers(PyObject *tuple, int64_t *ret, Py_ssize_t room);

PyObject *xt_call_set_messages(PyObject *module, PyObject *given);
PyObject *xt_call_set_known(PyObject *module, PyObject *args);
PyObject *xt_call_set_installed(PyObject *module, PyObject *name);

/* ---- torch_weak.c ---- */

/* Make the type, and put it into the module. 0, or -1 and an exception. */
int xt_weak_make(PyObject *module, struct xt_messages *is);
/* A weak reference to a storage. NULL with an exception. */
PyObject *xt_weak_of(struct xt_messages *is, PyObject *storage);
/* Is the storage of a weak reference gone? Or -1. */
int xt_weak_is_expired(struct xt_messages *is, PyObject *ref);

PyObject *xt_call_set_weak(PyObject *module, PyObject *args);

/* ---- torch_reduce.c, torch_rebuild.c ---- */

PyObject *xt_call_reduce(PyObject *module, PyObject *tensor);
PyObject *xt_call_rebuild(PyObject *module, PyObject *message);

#endif

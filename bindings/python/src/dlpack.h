/* SPDX-License-Identifier: MIT */
/*
 * DLPack's structs, by its specification 1.3, and what this extension makes of them. Their layout
 * is an ABI that other libraries share, so the order and types of the fields are not ours.
 */
#ifndef XP_DLPACK_H
#define XP_DLPACK_H

#include <stdint.h>
#include <xmem.h>

#define DL_MAJOR	1
#define DL_MINOR	3

enum dl_device_type {		/* the types of DLPack that xmem has */
	DL_CPU = 1,
	DL_CUDA = 2,
	DL_CUDA_HOST = 3,	/* pinned: the CPU reads it as well */
	DL_ROCM = 10,		/* of AMD */
};

/* The type of this process's GPUs. pre: the driver has been found. */
static inline int32_t xp_dl_gpu(void)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };

	return !xmem_cuda_query(&info) && info.hip ? DL_ROCM : DL_CUDA;
}

#define DL_READ_ONLY	(UINT64_C(1) << 0)	/* the consumer must not write */
#define DL_IS_COPIED	(UINT64_C(1) << 1)	/* the memory belongs to the consumer alone */

struct dl_device {
	int32_t type;
	int32_t id;
};

struct dl_tensor {
	void *data;
	struct dl_device device;
	int32_t ndim;
	struct dl_dtype {	/* the 32 bits of an XMEM_DTYPE */
		uint8_t code;
		uint8_t bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape;
	int64_t *strides;	/* elements; NULL: dense, the last index first */
	uint64_t byte_offset;
};

/* The contents of a capsule "dltensor". */
struct dl_legacy {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_legacy *self);
};

struct dl_version {
	uint32_t major;
	uint32_t minor;
};

/* The contents of a capsule "dltensor_versioned". */
struct dl_versioned {
	struct dl_version version;
	void *context;
	void (*deleter)(struct dl_versioned *self);
	uint64_t flags;
	struct dl_tensor tensor;
};

/*
 * The contents of the capsule "dlpack_exchange_api": the type's attribute
 * __dlpack_c_exchange_api__.
 */
struct dl_exchange {
	struct dl_version version;
	const struct dl_exchange *previous;
	int (*allocate)(struct dl_tensor *prototype, struct dl_versioned **ret, void *context,
			void (*error)(void *context, const char *kind, const char *message));
	int (*from_object)(void *object, struct dl_versioned **ret);
	int (*to_object)(struct dl_versioned *tensor, void **ret_object);
	int (*borrow)(void *object, struct dl_tensor *ret);
	int (*current_stream)(int32_t device_type, int32_t device_id, void **ret_stream);
};

/*
 * One exported tensor: the struct that the consumer gets, its arrays, and a share of a hold or
 * memory of its own. Its deleter is pure C for any thread, and needs neither the GIL nor an
 * interpreter, because it may run after the interpreter has ended.
 */
struct xp_dlpack {
	union {
		struct dl_versioned versioned;
		struct dl_legacy legacy;
	};
	struct xp_hold *hold;
	void *memory;
	int64_t shape[XMEM_MAX_DIMENSIONS];
	int64_t strides[XMEM_MAX_DIMENSIONS];
};

/*
 * Make an exported tensor. The arrays of @view are copied, and its data is ignored. @data: the
 * memory, for writing unless @flags has DL_READ_ONLY. The tensor takes over the share of @hold, and
 * @memory of malloc, also if this fails. NULL: no memory; no exception is raised.
 */
struct xp_dlpack *xp_dlpack_new(const struct xp_view *view, void *data, struct dl_device device,
				uint64_t flags, bool legacy, struct xp_hold *hold, void *memory);
/*
 * A capsule that owns the tensor until a consumer takes it. NULL with an exception: the tensor is
 * dropped.
 */
PyObject *xp_dlpack_capsule(struct xp_dlpack *dlpack, bool legacy);
/* Drop the tensor, as its consumer does. */
void xp_dlpack_drop(struct xp_dlpack *dlpack);

/* A versioned tensor of a guard, without a copy and without looking at streams. */
struct xp_dlpack *xp_dlpack_of(struct xp_guard *guard);

#define XP_NO_STREAM	((void *)-1)
/*
 * Describe contents on their GPU. @stream waits for them, or this thread if there is no stream. The
 * GIL is released, so the guard may be released meanwhile. -1 with an exception.
 */
int xp_guard_gpu_view(struct xp_guard *guard, void *stream, struct xp_view *ret);
/* The device of the contents, without a look at them; -1 with an exception. */
int xp_guard_device(struct xp_guard *guard, struct dl_device *ret);
/* Is it a Guard of this extension, or of a class made of it? */
bool xp_is_guard(PyObject *object);

/* ---- dense.c ---- */

/* A dense copy at @to of elements at @from, whose strides are bytes and may be negative. */
void xp_copy_dense(char *to, const char *from, int ndim, const Py_ssize_t *shape,
		   const Py_ssize_t *strides, Py_ssize_t item_bytes);
/* Fresh memory for @bytes, aligned for any use; NULL: there is none. free() drops it. */
void *xp_memory(size_t bytes);
/* Make @view describe a dense copy of itself. */
void xp_view_densify(struct xp_view *view);

#endif

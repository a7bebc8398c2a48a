// SPDX-License-Identifier: MIT
/*
 * Guard: DLPack's table of C functions, by which extensions get tensors without calling Python
 * code. Each process has one table, which is never freed. Its functions are called with the GIL,
 * except allocate.
 */
#include "core.h"
#include "dlpack.h"

#include <string.h>

/* Only Guard and its subclasses have this slot. */
bool xp_is_guard(PyObject *object)
{
	return PyType_GetSlot(Py_TYPE(object), Py_bf_getbuffer) == (void *)xp_guard_getbuffer;
}

static struct xp_guard *guard_of(PyObject *object)
{
	if (xp_is_guard(object))
		return (struct xp_guard *)object;
	PyErr_Format(PyExc_TypeError, "this is no guard, but %R", (PyObject *)Py_TYPE(object));
	return NULL;
}

/* A dense view for @prototype; false: the prototype makes no sense. */
static bool lay_out(const struct dl_tensor *prototype, struct xp_view *view)
{
	uint32_t bits = prototype->dtype.bits * prototype->dtype.lanes;
	Py_ssize_t step = 1;
	int i;

	if (prototype->ndim < 0 || prototype->ndim > XMEM_MAX_DIMENSIONS || !bits || bits % 8)
		return false;
	*view = (struct xp_view){
		.dtype = XMEM_DTYPE(prototype->dtype.code, prototype->dtype.bits,
				    prototype->dtype.lanes),
		.ndim = prototype->ndim, .item_bytes = bits / 8, .dense = true, .divisible = true,
	};
	view->bytes = view->item_bytes;
	for (i = view->ndim; i--;) {
		if (prototype->shape[i] < 0)
			return false;
		view->shape[i] = prototype->shape[i];
		view->steps[i] = step;
		if (__builtin_mul_overflow(view->bytes, view->shape[i], &view->bytes) ||
		    (view->shape[i] &&
		     __builtin_mul_overflow(step, view->shape[i], &step)))
			return false;
	}
	return true;
}

/* Ordinary memory, and not of a pool: there is no argument for the pool to acquire in. */
static int allocate(struct dl_tensor *prototype, struct dl_versioned **ret, void *context,
		    void (*error)(void *context, const char *kind, const char *message))
{
	struct xp_dlpack *dlpack = NULL;
	struct xp_view view;
	void *memory;

	if (prototype->device.type != DL_CPU || !lay_out(prototype, &view)) {
		error(context, "BufferError", "xmem allocates memory of the CPU here, of at most 8 "
		      "dimensions and elements of whole bytes");
		return -1;
	}
	memory = xp_memory(view.bytes);
	if (memory)
		dlpack = xp_dlpack_new(&view, memory, prototype->device, 0, false, NULL, memory);
	if (!dlpack) {
		error(context, "MemoryError", "there is no memory for this tensor");
		return -1;
	}
	*ret = &dlpack->versioned;
	return 0;
}

static int from_object(void *object, struct dl_versioned **ret)
{
	struct xp_guard *self = guard_of(object);
	struct xp_dlpack *dlpack;

	if (!self)
		return -1;
	XP_LOCK(self)
	dlpack = xp_dlpack_of(self);
	XP_UNLOCK
	if (!dlpack)
		return -1;
	*ret = &dlpack->versioned;
	return 0;
}

/* After an error the tensor still belongs to the caller. */
static int to_object(struct dl_versioned *tensor, void **ret_object)
{
	PyErr_SetString(PyExc_BufferError, "memory that others have allocated is no buffer of a "
			"pool: acquire one, and guard.copy_from() it");
	return -1;
}

/*
 * The tensor is valid only while the caller holds the guard and does not release it. Like a legacy
 * capsule, a dl_tensor cannot say that it is read-only.
 */
static int borrow_from(struct xp_guard *self, struct dl_tensor *ret)
{
	const struct xp_view *view;
	struct dl_device device;
	_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "the shape is lent as it is");

	if (xp_guard_device(self, &device))
		return -1;
	if (device.type == DL_CPU && xp_guard_view(self))
		return -1;
	view = &self->view;
	if (device.type != DL_CPU || !view->divisible || xp_guard_readonly(self)) {
		PyErr_SetString(PyExc_BufferError, "these contents cannot be lent: they are "
				"read-only, on a GPU, or laid out as DLPack does not allow");
		return -1;
	}
	*ret = (struct dl_tensor){
		.data = view->bytes ? (void *)view->data : NULL, .device = device,
		.ndim = view->ndim, .shape = (int64_t *)view->shape,
		.strides = (int64_t *)view->steps,
	};
	memcpy(&ret->dtype, &(uint32_t){ view->dtype ? view->dtype : XMEM_DTYPE_UINT8 },
	       sizeof(ret->dtype));
	return 0;
}

static int borrow(void *object, struct dl_tensor *ret)
{
	struct xp_guard *self = guard_of(object);
	int err;

	if (!self)
		return -1;
	XP_LOCK(self)
	err = borrow_from(self, ret);
	XP_UNLOCK
	return err;
}

/* A guard belongs to no stream: its consumers have waited for its contents. */
static int current_stream(int32_t device_type, int32_t device_id, void **ret_stream)
{
	*ret_stream = NULL;
	return 0;
}

static const struct dl_exchange table = {
	.version = { DL_MAJOR, DL_MINOR },
	.allocate = allocate,
	.from_object = from_object,
	.to_object = to_object,
	.borrow = borrow,
	.current_stream = current_stream,
};

int xp_dlpack_add_table(PyTypeObject *guard)
{
	PyObject *capsule = PyCapsule_New((void *)&table, "dlpack_exchange_api", NULL);
	int err;

	if (!capsule)
		return -1;
	err = PyObject_SetAttrString((PyObject *)guard, "__dlpack_c_exchange_api__", capsule);
	Py_DECREF(capsule);
	return err;
}

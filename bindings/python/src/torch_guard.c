// SPDX-License-Identifier: MIT
/*
 * A tensor of torch of a guard, in memory of the CPU. torch does not know memory that is read-only:
 * it ignores what DLPack says about that, and stores end the process by SIGSEGV. So contents that
 * are held for reading become memory of xmem_data_private, which the tensor may write and nobody
 * else sees. A guard that is being written gives the contents themselves.
 */
#include "core.h"
#include "torch.h"

#include <stdlib.h>

struct tensor {
	struct xt_dlpack dlpack;
	struct xp_hold *hold;
	int64_t shape[XMEM_MAX_DIMENSIONS];
	int64_t strides[XMEM_MAX_DIMENSIONS];	/* elements */
};

static void delete(struct xt_dlpack *dlpack)
{
	struct tensor *tensor = dlpack->context;

	xp_hold_put(tensor->hold);
	free(tensor);
}

/* The memory, which does not move; NULL with an exception. The host may be asked for it. */
static void *memory_of(struct xp_guard *guard)
{
	struct xmem_buffer *buffer;
	bool writing;
	void *memory;

	do {
		buffer = xp_guard_begin(guard);
		if (!buffer)
			return NULL;
		writing = guard->mode == XP_WRITING;
		Py_BEGIN_ALLOW_THREADS
		memory = writing ? xmem_data_mut(buffer) : xmem_data_private(buffer);
		Py_END_ALLOW_THREADS
		xp_guard_end(guard);
	} while (!memory && xp_again(guard->state, XMEM_FOREVER, NULL));
	return memory;
}

/* DLPack counts in elements. */
static int fill(struct tensor *tensor, const struct xp_view *view, void *memory)
{
	uint32_t dtype = view->dtype ? view->dtype : XMEM_DTYPE_UINT8;
	int i;

	for (i = 0; i < view->ndim; i++) {
		if (view->strides[i] % view->item_bytes) {
			PyErr_SetString(PyExc_BufferError, "a stride of these contents is no "
					"multiple of the size of an element, as torch wants it");
			return -1;
		}
		tensor->shape[i] = view->shape[i];
		tensor->strides[i] = view->strides[i] / view->item_bytes;
	}
	tensor->dlpack = (struct xt_dlpack){
		.data = memory, .device_type = XT_DLPACK_CPU, .ndim = view->ndim,
		.code = XMEM_DTYPE_CODE(dtype), .bits = XMEM_DTYPE_BITS(dtype),
		.lanes = XMEM_DTYPE_LANES(dtype), .shape = tensor->shape,
		.strides = tensor->strides, .context = tensor, .deleter = delete,
	};
	return 0;
}

/* Under the guard's lock. */
static PyObject *capsule_of(struct xp_guard *guard)
{
	struct tensor *tensor;
	void *memory;

	memory = memory_of(guard);
	if (!memory || xp_guard_view(guard) < 0)
		return NULL;
	tensor = calloc(1, sizeof(*tensor));
	if (!tensor)
		return PyErr_NoMemory();
	if (fill(tensor, &guard->view, memory) < 0)
		goto free;
	tensor->hold = xp_guard_share(guard);
	if (tensor->hold)
		return xt_capsule(&tensor->dlpack);
free:
	free(tensor);
	return NULL;
}

/* guard_capsule(guard) -> capsule */
PyObject *xt_guard_capsule(PyObject *module, PyObject *object)
{
	PyObject *capsule;

	if (PyType_GetSlot(Py_TYPE(object), Py_bf_getbuffer) != (void *)xp_guard_getbuffer) {
		PyErr_Format(PyExc_TypeError, "a BufferGuard is wanted, not %R", Py_TYPE(object));
		return NULL;
	}
	XP_LOCK(object)
	capsule = capsule_of((struct xp_guard *)object);
	XP_UNLOCK
	return capsule;
}

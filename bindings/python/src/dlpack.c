// SPDX-License-Identifier: MIT
/*
 * Guard: DLPack. The consumer gets the contents, and a share of the hold that keeps them: they stay
 * as they are after the guard is released, the pool closed and the interpreter gone, until the
 * consumer calls the deleter.
 *
 * Contents that are held for reading must not be written. A legacy capsule cannot say that, and
 * PyTorch ignores a versioned capsule that says it. The arguments do not show which consumer asks,
 * so all consumers get private memory (private.c). A GPU has no such memory: its contents go into
 * versioned capsules only.
 */
#include "core.h"
#include "dlpack.h"

#include <string.h>

/* ---- exported tensors ---- */

void xp_dlpack_drop(struct xp_dlpack *dlpack)
{
	if (dlpack->hold)
		xp_hold_put(dlpack->hold);
	free(dlpack->memory);
	free(dlpack);
}

static void delete_versioned(struct dl_versioned *versioned)
{
	xp_dlpack_drop(versioned->context);
}

static void delete_legacy(struct dl_legacy *legacy)
{
	xp_dlpack_drop(legacy->context);
}

/* DLPack requires that a tensor without elements has no address. */
static void fill(struct dl_tensor *tensor, const struct xp_view *view, void *data,
		 struct dl_device device, int64_t *shape, int64_t *strides)
{
	uint32_t dtype = view->dtype ? view->dtype : XMEM_DTYPE_UINT8;

	*tensor = (struct dl_tensor){
		.data = view->bytes ? data : NULL, .device = device, .ndim = view->ndim,
		.dtype = { XMEM_DTYPE_CODE(dtype), XMEM_DTYPE_BITS(dtype),
			   XMEM_DTYPE_LANES(dtype) },
		.shape = shape, .strides = strides,
	};
}

struct xp_dlpack *xp_dlpack_new(const struct xp_view *view, void *data, struct dl_device device,
				uint64_t flags, bool legacy, struct xp_hold *hold, void *memory)
{
	struct xp_dlpack *dlpack = malloc(sizeof(*dlpack));
	struct dl_tensor *tensor;
	int i;

	if (!dlpack) {
		if (hold)
			xp_hold_put(hold);
		free(memory);
		return NULL;
	}
	dlpack->hold = hold;
	dlpack->memory = memory;
	for (i = 0; i < view->ndim; i++) {
		dlpack->shape[i] = view->shape[i];
		dlpack->strides[i] = view->steps[i];
	}
	if (legacy) {
		dlpack->legacy.context = dlpack;
		dlpack->legacy.deleter = delete_legacy;
		tensor = &dlpack->legacy.tensor;
	} else {
		dlpack->versioned.version = (struct dl_version){ DL_MAJOR, DL_MINOR };
		dlpack->versioned.context = dlpack;
		dlpack->versioned.deleter = delete_versioned;
		dlpack->versioned.flags = flags;
		tensor = &dlpack->versioned.tensor;
	}
	fill(tensor, view, data, device, dlpack->shape, dlpack->strides);
	return dlpack;
}

#define LEGACY		"dltensor"
#define VERSIONED	"dltensor_versioned"

/* A consumer that takes the tensor gives the capsule another name. */
static void drop_capsule(PyObject *capsule)
{
	const char *name = PyCapsule_GetName(capsule);
	struct xp_dlpack *dlpack;

	if (!name || (strcmp(name, LEGACY) && strcmp(name, VERSIONED)))
		return;
	dlpack = PyCapsule_GetPointer(capsule, name);
	Py_BEGIN_ALLOW_THREADS		/* the last handle of a closed pool asks the host */
	xp_dlpack_drop(dlpack);
	Py_END_ALLOW_THREADS
}

PyObject *xp_dlpack_capsule(struct xp_dlpack *dlpack, bool legacy)
{
	PyObject *capsule = PyCapsule_New(dlpack, legacy ? LEGACY : VERSIONED, drop_capsule);

	if (!capsule)
		xp_dlpack_drop(dlpack);
	return capsule;
}

/* ---- contents of a GPU ---- */

static int raise(struct xp_guard *self)
{
	xp_raise(self->state);
	return -1;
}

int xp_guard_device(struct xp_guard *self, struct dl_device *ret)
{
	struct xmem_buffer *buffer = xp_guard_look(self);
	int device = 0;

	if (!buffer)
		return -1;
	if (!self->cuda) {
		*ret = (struct dl_device){ DL_CPU, 0 };
		return 0;
	}
	device = xmem_cuda_device(buffer);
	if (device < 0)
		return raise(self);
	*ret = (struct dl_device){ xp_dl_gpu(), device };
	return 0;
}

/*
 * Describe contents on their GPU. @stream waits for them, or this thread if there is no stream. The
 * driver may be called, so the GIL is released, and the guard may be released meanwhile.
 */
int xp_guard_gpu_view(struct xp_guard *self, void *stream, struct xp_view *ret)
{
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	struct xmem_buffer *buffer = xp_guard_begin(self);
	bool writing = self->mode == XP_WRITING;
	const void *data = NULL;
	int err = 0;

	if (!buffer)
		return -1;
	XP_BEGIN_CUDA
	if (stream != XP_NO_STREAM)
		err = xmem_wait_on(buffer, stream);
	if (!err)
		data = writing ? xmem_cuda_ptr_mut(buffer) : NULL;
	if (!err && !data)
		data = xmem_cuda_ptr(buffer);
	if (data)
		err = xmem_tensor_view(buffer, XMEM_VIEW_CUDA, &tensor);
	XP_END_CUDA
	if (data && err == -ENODATA)
		xp_view_bytes(ret, xmem_size(buffer), data);
	else if (data && !err)
		xp_view_tensor(ret, &tensor, data);
	else
		raise(self);
	xp_guard_end(self);
	return data && (!err || err == -ENODATA) ? 0 : -1;
}

/* ---- the protocol ---- */

/* The arguments of a consumer. */
struct wish {
	bool legacy;
	bool copy, no_copy;
	bool to_cpu;		/* from a GPU */
	void *stream;
};

static PyObject *refuse(const char *why)
{
	PyErr_SetString(PyExc_BufferError, why);
	return NULL;
}

static int pair(PyObject *tuple, const char *what, int64_t *ret)
{
	PyObject *item;
	int i, good;

	if (PySequence_Size(tuple) != 2) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "%s is a tuple of two numbers, not %R", what,
				     tuple);
		return -1;
	}
	for (i = 0; i < 2; i++) {
		item = PySequence_GetItem(tuple, i);
		good = item && xp_signed(item, what, &ret[i]);
		Py_XDECREF(item);
		if (!good)
			return -1;
	}
	return 0;
}

/*
 * By the protocol, None is the legacy default stream; 1 and 2 are CUDA's names of the two default
 * streams. On AMD's GPUs, 0 is the default stream.
 */
static int wish_stream(PyObject *stream, struct dl_device device, void **ret)
{
	int64_t number;

	*ret = (void *)1;
	if (stream == Py_None)
		return 0;
	if (!xp_signed(stream, "a stream", &number))
		return -1;
	*ret = (void *)(intptr_t)number;
	if (number == -1)
		return 0;
	if (device.type == DL_CPU) {
		refuse("contents in memory of the CPU have no stream");
		return -1;
	}
	if (!number && device.type == DL_ROCM) {
		*ret = (void *)1;
	} else if (number <= 0) {
		PyErr_Format(PyExc_ValueError, "a stream is -1, 1, 2 or an address, not %R: which "
			     "default stream 0 is, nobody can tell", stream);
		return -1;
	}
	return 0;
}

static int wish_device(PyObject *wanted, struct dl_device device, bool *ret_to_cpu)
{
	int64_t numbers[2];

	*ret_to_cpu = false;
	if (wanted == Py_None)
		return 0;
	if (pair(wanted, "dl_device", numbers))
		return -1;
	if (numbers[0] == device.type && numbers[1] == device.id)
		return 0;
	if (numbers[0] == DL_CPU && !numbers[1]) {
		*ret_to_cpu = true;
		return 0;
	}
	PyErr_Format(PyExc_BufferError, "these contents are on device (%d, %d), and a guard gives "
		     "them there or copies them to the CPU, (1, 0), but not to %R",
		     (int)device.type, (int)device.id, wanted);
	return -1;
}

static int wish_for(PyObject *args, PyObject *kwargs, struct dl_device device, struct wish *ret)
{
	static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
	PyObject *stream = Py_None, *version = Py_None, *wanted = Py_None, *copy = Py_None;
	long numbers[2];
	int truth;

	if (!xp_parse(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
		      &version, &wanted, &copy))
		return -1;
	ret->legacy = version == Py_None;
	if (!ret->legacy) {
		if (pair(version, "max_version", numbers))
			return -1;
		ret->legacy = numbers[0] < DL_MAJOR;
	}
	truth = copy == Py_None ? -1 : PyObject_IsTrue(copy);
	if (truth < 0 && copy != Py_None)
		return -1;
	ret->copy = truth == 1;
	ret->no_copy = truth == 0;
	if (wish_stream(stream, device, &ret->stream))
		return -1;
	return wish_device(wanted, device, &ret->to_cpu);
}

/* A copy of contents on the CPU, or from a GPU to the CPU, in memory of its own. */
static struct xp_dlpack *copied(struct xp_guard *self, struct xp_view *view, bool legacy)
{
	const struct dl_device cpu = { DL_CPU, 0 };
	struct xmem_buffer *buffer = xp_guard_begin(self);
	void *memory = xp_memory(view->bytes), *raw = NULL;
	bool gpu = buffer && self->cuda;
	struct xp_dlpack *dlpack = NULL;
	size_t bytes = gpu ? xmem_size(buffer) : 0;
	int err = 0;

	if (gpu)
		raw = xp_memory(bytes);
	if (!buffer)
		goto out;
	if (!memory || (gpu && !raw)) {
		PyErr_NoMemory();
		goto end;
	}
	XP_BEGIN_CUDA
	if (gpu)
		err = xmem_copy_to_host(raw, buffer, 0, bytes, NULL);
	if (!err)
		xp_copy_dense(memory, gpu ? raw : view->data, view->ndim, view->shape,
			      view->strides, view->item_bytes);
	XP_END_CUDA
	if (err) {
		raise(self);
		goto end;
	}
	xp_view_densify(view);
	dlpack = xp_dlpack_new(view, memory, cpu, DL_IS_COPIED, legacy, NULL, memory);
	memory = NULL;
	if (!dlpack)
		PyErr_NoMemory();
end:
	xp_guard_end(self);
out:
	free(memory);
	free(raw);
	return dlpack;
}

static struct xp_dlpack *shared(struct xp_guard *self, const struct xp_view *view,
				struct dl_device device, bool legacy)
{
	bool readonly = xp_guard_readonly(self);
	void *data = (void *)view->data;
	struct xp_dlpack *dlpack;
	struct xp_hold *hold;

	if (!view->divisible) {
		refuse("a stride of these contents, or their address, is no multiple of the size "
		       "of an element, as DLPack requires: use numpy.asarray(guard), or "
		       "copy=True");
		return NULL;
	}
	if (readonly && device.type != DL_CPU && legacy) {
		refuse("these contents are read-only and on a GPU, and a capsule of DLPack before "
		       "1.0 cannot say so: use a newer consumer, or copy_to_host()");
		return NULL;
	}
	hold = readonly && device.type == DL_CPU ? xp_guard_private(self, &data) :
						   xp_guard_share(self);
	if (!hold)
		return NULL;
	if (device.type != DL_CPU)
		hold->on_stream = true;
	dlpack = xp_dlpack_new(view, data, device, readonly ? DL_READ_ONLY : 0, legacy, hold,
			       NULL);
	if (!dlpack)
		PyErr_NoMemory();
	return dlpack;
}

PyObject *xp_guard_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xp_dlpack *dlpack;
	struct dl_device device;
	struct xp_view other;
	struct wish wish;

	if (xp_guard_device(self, &device) || wish_for(args, kwargs, device, &wish))
		return NULL;
	if (device.type == DL_CPU ? xp_guard_view(self) :
				    xp_guard_gpu_view(self, wish.stream, &other))
		return NULL;
	if (wish.to_cpu && wish.no_copy)
		return refuse("these contents are on a GPU, and get to the CPU only by a copy");
	if (wish.copy && device.type != DL_CPU && !wish.to_cpu)
		return refuse("a guard copies to the CPU only: give dl_device=(1, 0), or copy "
			      "what this gives without copy=True");
	if (device.type == DL_CPU && (wish.copy || wish.to_cpu))
		other = self->view;
	if (wish.copy || wish.to_cpu)
		dlpack = copied(self, &other, wish.legacy);
	else
		dlpack = shared(self, device.type == DL_CPU ? &self->view : &other, device,
				wish.legacy);
	return dlpack ? xp_dlpack_capsule(dlpack, wish.legacy) : NULL;
}

PyObject *xp_guard_dlpack_device(PyObject *object, PyObject *unused)
{
	struct dl_device device;

	if (xp_guard_device((struct xp_guard *)object, &device))
		return NULL;
	return Py_BuildValue("ii", (int)device.type, (int)device.id);
}

struct xp_dlpack *xp_dlpack_of(struct xp_guard *self)
{
	struct dl_device device;
	struct xp_view other;

	if (xp_guard_device(self, &device))
		return NULL;
	if (device.type == DL_CPU)
		return xp_guard_view(self) ? NULL : shared(self, &self->view, device, false);
	if (xp_guard_gpu_view(self, XP_NO_STREAM, &other))
		return NULL;
	return shared(self, &other, device, false);
}

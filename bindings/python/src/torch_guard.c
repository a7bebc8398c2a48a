// SPDX-License-Identifier: MIT
/*
 * Tensors of guards, in memory of the CPU. torch does not know read-only memory: it ignores the
 * flag of DLPack, and a store would end the process by SIGSEGV. So contents that are held for
 * reading become memory of xmem_data_private, which the tensor may write and nobody else sees. A
 * guard that is being written gives the contents themselves.
 *
 * The library leaves a child by fork no page of a pool, because no host knows the child as a user
 * of them. So the child gets a copy of the contents that each tensor had at the fork, as with all
 * other memory of its parent. The copy is made before the fork, because the child no longer has the
 * contents. Small contents that are held for reading are on the heap, which the child has
 * inherited.
 */
#include "core.h"
#include "torch.h"
#include "torch_pages.h"

#include <stdlib.h>
#include <string.h>

struct tensor {
	struct xt_dlpack dlpack;
	struct xp_hold *hold;
	struct tensor *next, **before;	/* the list of all; xt_lock guards it and what follows */
	bool direct;			/* the contents themselves */
	uintptr_t begin, end;		/* of its pages */
	void *copy;			/* of these, during a fork; NULL: there is no memory */
	bool copied;			/* in a child: the pages are such a copy */
	int64_t shape[XMEM_MAX_DIMENSIONS];
	int64_t strides[XMEM_MAX_DIMENSIONS];	/* elements */
};

static struct tensor *all;

static void enlist(struct tensor *tensor, void *memory, size_t bytes, bool direct)
{
	tensor->direct = direct;
	tensor->begin = xt_page_down((uintptr_t)memory);
	tensor->end = xt_page_up((uintptr_t)memory + bytes);
	pthread_mutex_lock(&xt_lock);
	tensor->next = all;
	tensor->before = &all;
	if (all)
		all->before = &tensor->next;
	all = tensor;
	pthread_mutex_unlock(&xt_lock);
}

/* Does another tensor use some of these pages? pre: xt_lock */
static bool is_used(uintptr_t begin, uintptr_t end)
{
	struct tensor *tensor;

	for (tensor = all; tensor; tensor = tensor->next)
		if (tensor->begin < end && begin < tensor->end)
			return true;
	return false;
}

/*
 * Pages at the ends of a copy may also belong to another tensor; those stay until the process ends.
 */
static void strike(struct tensor *tensor)
{
	uintptr_t begin = tensor->begin + xt_page_bytes();
	uintptr_t end = tensor->end - xt_page_bytes();

	pthread_mutex_lock(&xt_lock);
	*tensor->before = tensor->next;
	if (tensor->next)
		tensor->next->before = tensor->before;
	if (tensor->copied && begin < end && !is_used(begin, end))
		munmap((void *)begin, end - begin);
	pthread_mutex_unlock(&xt_lock);
}

static void delete(struct xt_dlpack *dlpack)
{
	struct tensor *tensor = dlpack->context;

	strike(tensor);
	xp_hold_put(tensor->hold);
	free(tensor);
}

/* ---- fork ---- */

void xt_guards_before_fork(void)
{
	struct tensor *tensor;
	size_t bytes;

	for (tensor = all; tensor; tensor = tensor->next) {
		if (tensor->copied)
			continue;	/* a child inherits private memory */
		bytes = tensor->end - tensor->begin;
		tensor->copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (tensor->copy == MAP_FAILED)
			tensor->copy = NULL;
		else
			memcpy(tensor->copy, (void *)tensor->begin, bytes);
	}
}

/* If nothing is mapped at the tensor's pages, map memory there. */
static bool take_pages(const struct tensor *tensor)
{
	size_t bytes = tensor->end - tensor->begin;
	void *there = mmap((void *)tensor->begin, bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			   0);

	if (there != MAP_FAILED && there != (void *)tensor->begin)
		munmap(there, bytes);		/* an old kernel takes the flag for a wish */
	return there == (void *)tensor->begin;
}

/*
 * Private memory has pages of its own, or is on the heap, and is not changed. The contents
 * themselves may begin or end in a page of other contents; then the copies agree. If the pool also
 * has storages of torch, such a page may become theirs (xt_fork_restore), and all processes see it.
 */
static bool move_in(const struct tensor *tensor)
{
	size_t bytes = tensor->end - tensor->begin;

	return (tensor->direct || take_pages(tensor)) &&
	       mremap(tensor->copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		      (void *)tensor->begin) == (void *)tensor->begin;
}

/*
 * If there was no memory for a copy, the pages stay reserved: a use of them is SIGSEGV, and cannot
 * read or write other memory.
 */
static void settle_child(struct tensor *tensor)
{
	tensor->copied = tensor->copy && move_in(tensor);
	if (tensor->copied)
		tensor->copy = NULL;
	else
		take_pages(tensor);
}

void xt_guards_after_fork(bool child)
{
	struct tensor *tensor;

	for (tensor = all; tensor; tensor = tensor->next) {
		if (child && !tensor->copied)
			settle_child(tensor);
		if (tensor->copy)
			munmap(tensor->copy, tensor->end - tensor->begin);
		tensor->copy = NULL;
	}
}

/* ---- the capsule ---- */

/* DLPack counts in elements. */
static int fill(struct tensor *tensor, const struct xp_view *view, void *memory, bool integers)
{
	uint32_t dtype = view->dtype ? view->dtype : XMEM_DTYPE_UINT8;
	int i;

	for (i = 0; i < view->ndim; i++) {
		if (view->strides[i] % view->item_bytes) {
			PyErr_SetString(PyExc_BufferError, "a stride of these contents is no "
					"multiple of the size of an element, as torch requires");
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
	if (integers) {
		tensor->dlpack.code = view->item_bytes == 1 ? XT_DLPACK_UINT : XT_DLPACK_INT;
		tensor->dlpack.bits = 8 * view->item_bytes;
		tensor->dlpack.lanes = 1;
	}
	return 0;
}

/* Called under the guard's lock. */
static PyObject *capsule_of(struct xp_guard *guard, int integers)
{
	struct tensor *tensor;
	struct xp_hold *hold;
	bool direct;
	void *memory;

	if (xp_guard_view(guard) < 0)
		return NULL;
	direct = !xp_guard_readonly(guard);
	memory = (void *)guard->view.data;
	hold = direct ? xp_guard_share(guard) : xp_guard_private(guard, &memory);
	if (!hold)
		return NULL;
	tensor = calloc(1, sizeof(*tensor));
	if (!tensor) {
		PyErr_NoMemory();
		goto put;
	}
	tensor->hold = hold;
	if (fill(tensor, &guard->view, memory, integers) < 0)
		goto free;
	enlist(tensor, memory, xmem_size(tensor->hold->buffer), direct);
	return xt_capsule(&tensor->dlpack);
free:
	free(tensor);
put:
	xp_hold_put(hold);
	return NULL;
}

PyObject *xt_guard_capsule(PyObject *module, PyObject *args)
{
	PyObject *object, *capsule;
	int integers;

	if (!PyArg_ParseTuple(args, "Op:guard_capsule", &object, &integers))
		return NULL;
	if (PyType_GetSlot(Py_TYPE(object), Py_bf_getbuffer) != (void *)xp_guard_getbuffer) {
		PyErr_Format(PyExc_TypeError, "a BufferGuard is wanted, not %R", Py_TYPE(object));
		return NULL;
	}
	XP_LOCK(object)
	capsule = capsule_of((struct xp_guard *)object, integers);
	XP_UNLOCK
	return capsule;
}

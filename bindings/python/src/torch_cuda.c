// SPDX-License-Identifier: MIT
/*
 * Tensors of GPUs between processes. Memory of xmem's allocator is already in a pool. Other memory
 * of torch is attached for each message, and its storage is kept until no process has the memory
 * any more. The library tells that in any thread, without the GIL, so the storages to be dropped
 * wait in a list for Python (drain).
 */
#include "torch.h"

#include <stdlib.h>
#include <xmem/stream.h>

/* A storage that is lent to other processes. */
struct lent {
	struct lent *next;
	PyObject *storage;
};

static struct lent *returned;		/* an atomic stack, which needs no GIL */

static void come_back(void *user)
{
	struct lent *lent = user;

	lent->next = __atomic_load_n(&returned, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&returned, &lent->next, lent, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

PyObject *xt_cuda_drain(PyObject *module, PyObject *unused)
{
	struct lent *lent = __atomic_exchange_n(&returned, NULL, __ATOMIC_ACQUIRE), *next;
	long count = 0;

	for (; lent; lent = next, count++) {
		next = lent->next;
		Py_DECREF(lent->storage);
		free(lent);
	}
	return PyLong_FromLong(count);
}

/* Attach, publish to nobody, and set one reference aside. The token; 0: the last error says why. */
static uint64_t attach(struct xt_pool *pool, void *address, size_t bytes, void *stream,
		       struct lent *lent, bool *ret_kept)
{
	struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		.stream = stream ? stream : (void *)1,	/* CU_STREAM_LEGACY */
	};
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer;
	uint64_t token = 0;

	*ret_kept = false;
	if (!handle)
		return 0;
	buffer = xmem_attach_cuda(handle, address, bytes, 0, come_back, lent);
	if (!buffer)
		return 0;
	*ret_kept = true;
	if (xmem_publish(buffer, &keep, &token) < 0 ||
	    xmem_offer(buffer, 1, xt_in_flight()) < 0)
		token = 0;
	xmem_release(buffer);
	return token;
}

PyObject *xt_cuda_share(PyObject *module, PyObject *args)
{
	unsigned long long address, stream;
	PyObject *storage, *drained;
	struct xt_pool *pool;
	struct lent *lent;
	Py_ssize_t bytes;
	uint64_t token;
	int number;
	bool kept;

	if (!PyArg_ParseTuple(args, "iKnKO:cuda_share", &number, &address, &bytes, &stream,
			      &storage))
		return NULL;
	pool = xt_pool_at(number);
	if (!pool)
		return PyErr_Format(PyExc_ValueError, "this process has no pool number %d", number);
	drained = xt_cuda_drain(module, NULL);
	Py_XDECREF(drained);
	lent = malloc(sizeof(*lent));
	if (!lent)
		return PyErr_NoMemory();
	Py_INCREF(storage);
	lent->storage = storage;
	xmem_clear_last_error();
	Py_BEGIN_ALLOW_THREADS
	token = attach(pool, (void *)(uintptr_t)address, bytes, (void *)(uintptr_t)stream, lent,
		       &kept);
	Py_END_ALLOW_THREADS
	if (token)
		return PyLong_FromUnsignedLongLong(token);
	xt_raise(module);
	if (!kept) {		/* otherwise the memory comes back by itself */
		Py_DECREF(storage);
		free(lent);
	}
	return NULL;
}

/* The hold of contents on a GPU, for which this thread waits. NULL: the last error says why. */
static struct xt_hold *get(struct xt_pool *pool, uint64_t token, int *ret_device)
{
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer = handle ? xmem_get(handle, token) : NULL;
	const void *address = buffer ? xmem_cuda_ptr(buffer) : NULL;
	struct xt_hold *hold = NULL;

	*ret_device = address ? xmem_cuda_device(buffer) : -1;
	if (*ret_device >= 0)
		hold = xt_hold_new(pool, buffer, (void *)address, false);
	if (!hold)
		xmem_release(buffer);
	return hold;
}

PyObject *xt_cuda_get(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xt_pool *pool;
	struct xt_hold *hold;
	PyObject *capsule;
	Py_ssize_t bytes;
	int number, device;

	if (!PyArg_ParseTuple(args, "iK:cuda_get", &number, &token))
		return NULL;
	pool = xt_pool_at(number);
	if (!pool)
		return PyErr_Format(PyExc_ValueError, "this process has no pool number %d", number);
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		hold = get(pool, token, &device);
		Py_END_ALLOW_THREADS
		if (!hold && !xt_again(module))
			return NULL;
	} while (!hold);
	bytes = hold->bytes;
	hold->dlpack.device_type = XT_DLPACK_CUDA;
	hold->dlpack.device_id = device;
	capsule = xt_capsule(&hold->dlpack);
	return capsule ? Py_BuildValue("Nin", capsule, device, bytes) : NULL;
}

PyObject *xt_cuda_use(PyObject *module, PyObject *args)
{
	struct xt_pool *pool;
	int number;

	if (!PyArg_ParseTuple(args, "i:cuda_use", &number))
		return NULL;
	pool = xt_pool_at(number);
	if (!pool)
		return PyErr_Format(PyExc_ValueError, "this process has no pool number %d", number);
	xt_cuda_allocate_from(pool);
	Py_RETURN_NONE;
}

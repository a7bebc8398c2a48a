// SPDX-License-Identifier: MIT
/*
 * Exchange the memory of two storages in place, for versions of torch that have no function for it.
 * All tensors of a storage move with it: tensors of Python, tensors that only C++ knows, and
 * tensors that autograd has saved.
 *
 * A storage of torch 1.13 is a C++ object. It begins with three words: its virtual functions and
 * its two reference counts. These belong to the object and stay. The next seven words describe its
 * memory: the address, the function that frees it and the argument of that function, the device,
 * the size, whether it can be resized, and the allocator for that. torch's own share_memory_()
 * exchanges these seven words. ../xmem/torch/versions.py proves this layout before the first use,
 * and refuses a torch that has another one.
 */
#include "torch.h"

#define HEADER_WORDS	3
#define MEMORY_WORDS	7

PyObject *xt_swap(PyObject *module, PyObject *args)
{
	unsigned long long storage, other;
	uintptr_t *one, *two, word;
	int i;

	if (!PyArg_ParseTuple(args, "KK:swap", &storage, &other))
		return NULL;
	if (!storage || !other) {
		PyErr_SetString(PyExc_ValueError, "swap wants two storages");
		return NULL;
	}
	one = (uintptr_t *)(uintptr_t)storage + HEADER_WORDS;
	two = (uintptr_t *)(uintptr_t)other + HEADER_WORDS;
	for (i = 0; i < MEMORY_WORDS; i++) {
		word = one[i];
		one[i] = two[i];
		two[i] = word;
	}
	Py_RETURN_NONE;
}

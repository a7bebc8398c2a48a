// SPDX-License-Identifier: MIT
/*
 * The memory of two storages, exchanged in place, for versions of torch that have no function for
 * it. All tensors of a storage move with it, whoever has them: those of Python, those that only
 * C++ knows, and what autograd has saved.
 *
 * A storage of torch 1.13 is an object of C++. Three words begin it: its virtual functions and the
 * two counts of who uses it. These belong to the object and stay. The seven that follow say what
 * its memory is: the address, the function that frees it and what that is given, the device, the
 * size, whether it can be resized, and by which allocator. torch's own share_memory_() exchanges
 * the same seven. ../xmem/torch/versions.py proves this layout before the first use, and refuses a
 * torch that has another one.
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

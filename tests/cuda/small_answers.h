/* SPDX-License-Identifier: MIT */
/* Shared by the two files of a small driver. */
#ifndef XMEM_CUDA_SMALL_ANSWERS_H
#define XMEM_CUDA_SMALL_ANSWERS_H

#include "lib/cuda/types.h"
#include "small.h"

#define EXPORT	__attribute__((visibility("default")))

extern struct small *small;

static inline CUresult small_called(unsigned long *count)
{
	__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

#endif

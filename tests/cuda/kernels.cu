// SPDX-License-Identifier: MIT
/*
 * The kernels that tests launch. A GPU runs them after `nvcc -ptx`. The fake driver runs this
 * source compiled as C++ (see kernels.h). Threads of a block must not wait for each other.
 */
#include "kernels.h"

/* Set each of count words to the value. */
KERNEL xm_fill(unsigned int *to, unsigned int value, unsigned long long count)
{
	for (unsigned long long i = FIRST; i < count; i += STEP)
		to[i] = value;
}

/* Add the value to each word. */
KERNEL xm_add(unsigned int *to, unsigned int value, unsigned long long count)
{
	for (unsigned long long i = FIRST; i < count; i += STEP)
		to[i] += value;
}

KERNEL xm_copy(unsigned int *to, const unsigned int *from, unsigned long long count)
{
	for (unsigned long long i = FIRST; i < count; i += STEP)
		to[i] = from[i];
}

/* Add to *sum each word times its place, counted from 1. */
KERNEL xm_checksum(unsigned long long *sum, const unsigned int *from, unsigned long long count)
{
	unsigned long long own = 0;

	for (unsigned long long i = FIRST; i < count; i += STEP)
		own += from[i] * (i + 1);
	atomicAdd(sum, own);
}

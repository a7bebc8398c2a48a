/* SPDX-License-Identifier: MIT */
/*
 * Definitions for the kernels of the tests, with nvcc and with a C++ compiler. With the latter a
 * kernel is a plain function, which is called once for each thread.
 */
#ifndef TESTS_CUDA_KERNELS_H
#define TESTS_CUDA_KERNELS_H

#ifndef __CUDACC__

#define __global__

struct fk_place {
	unsigned int x, y, z;
};

static thread_local struct fk_place gridDim, blockDim, blockIdx, threadIdx;

static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value)
{
	return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

#endif

#define KERNEL extern "C" __global__ void

/*
 * A thread's first element, and the distance to its next one. All threads together visit each
 * element once.
 */
#define FIRST ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((unsigned long long)gridDim.x * blockDim.x)

#endif

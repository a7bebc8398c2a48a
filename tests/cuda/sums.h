/* SPDX-License-Identifier: MIT */
/*
 * Contents that kernels make and check, on a GPU and in a stream: every word is the stamp, and the
 * sum shows whether all of them are. The kernels are those of kernels.cu; the fake driver has them
 * as functions of the CPU.
 */
#ifndef XMEM_CUDA_SUMS_H
#define XMEM_CUDA_SUMS_H

#include "bytes.h"

/* The state of a process for that, on GPU 0. Its context is this thread's from then on. */
struct sums {
	CUstream stream;
	CUdeviceptr sum;
	void *fill, *add;		/* kernels */
};

void begin_sums(struct sums *sums);
/* For that GPU instead. */
void begin_sums_on(struct sums *sums, int gpu);
/* Needed where the process must keep no memory of a GPU. pre: the context is still current. */
void end_sums(struct sums *sums);

/* Put work into the stream: each word of the acquired buffer becomes @stamp. */
void fill_by_kernel(struct sums *sums, struct xmem_buffer *buffer, uint32_t stamp);

/* Let the stream sum up the words, and wait for it. */
uint64_t sum_by_kernel(struct sums *sums, const void *at, size_t bytes);

/* The sum of contents that are whole. */
uint64_t right_sum(uint32_t stamp, size_t bytes);

/*
 * From now on the drivers of this process and its children write broken rules into one file, and
 * gpus_used counts the memory of all of them. pre: none has used a driver. A real driver does
 * neither.
 */
void watch_drivers(void);
/* No process has broken a rule since then. */
void no_violations_of_all(void);
/* Bytes of the first GPU that these processes and their descriptors use; real driver: 0. */
size_t gpus_used(void);

#endif

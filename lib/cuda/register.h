/* SPDX-License-Identifier: MIT */
/* What memory.c and take.c share: the register of all memory of GPUs in this process. */
#ifndef XMEM_CUDA_REGISTER_H
#define XMEM_CUDA_REGISTER_H

#include "lib/cuda/memory.h"

void xl_register_lock(void);
void xl_register_unlock(void);

/* Enter it with one user; the first of all. Under the lock. */
void xl_register_add(struct xl_memory *memory);
struct xl_memory *xl_register_first(void);

/* One that is not entered yet. NULL: no memory, noted. */
struct xl_memory *xl_memory_new(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes);
/* Give it a name that no other allocation has. 0, or -errno, noted. */
int xl_memory_make_name(struct xl_memory *memory);
/* A descriptor for others, or -errno, noted. */
int xl_memory_export(CUmemGenericAllocationHandle allocation);

#endif

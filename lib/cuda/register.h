/* SPDX-License-Identifier: MIT */
/* The register of all memory of GPUs in this process: the part of memory.c that take.c uses too. */
#ifndef XMEM_CUDA_REGISTER_H
#define XMEM_CUDA_REGISTER_H

#include "lib/cuda/memory.h"

void xl_register_lock(void);
void xl_register_unlock(void);

/* Enter memory with one user; get the first entry. Under the lock. */
void xl_register_add(struct xl_memory *memory);
struct xl_memory *xl_register_first(void);

/* Make a struct that is not in the register yet. NULL: no memory, noted. */
struct xl_memory *xl_memory_new(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes);
/* Give it a name that no other allocation has. 0, or -errno, noted. */
int xl_memory_make_name(struct xl_memory *memory);
/* Make a descriptor for other processes. Or -errno, noted. */
int xl_memory_export(CUmemGenericAllocationHandle allocation);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The register of all memory of GPUs in this process. Its lock guards the list only: no call of the
 * driver is made under it. Memory that a thread opens by its name, or closes, is *changing*. It
 * stays in the register meanwhile, so that another thread that wants it waits, without the lock.
 */
#ifndef XMEM_CUDA_REGISTER_H
#define XMEM_CUDA_REGISTER_H

#include "lib/cuda/memory.h"

void xl_register_lock(void);
void xl_register_unlock(void);

/* Enter memory with one user; remove it; get the first entry. Under the lock. */
void xl_register_add(struct xl_memory *memory);
void xl_register_remove(const struct xl_memory *memory);
struct xl_memory *xl_register_first(void);

/*
 * Find the memory that has the name of @memory, and become one more user of it. NULL: no thread has
 * it, and @memory is entered as changing. Then the caller opens it, and calls xl_register_changed.
 */
struct xl_memory *xl_register_find_or_add(struct xl_memory *memory);
/* The driver has opened or closed the memory; without @stays, it leaves the register. */
void xl_register_changed(struct xl_memory *memory, bool stays);

/* Make a struct that is not in the register yet. NULL: no memory, noted. */
struct xl_memory *xl_memory_new(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes);
/* Give it a name that no other allocation has. 0, or -errno, noted. */
int xl_memory_make_name(struct xl_memory *memory);
/* Make a descriptor for other processes. Or -errno, noted. */
int xl_memory_export(CUmemGenericAllocationHandle allocation);

#endif

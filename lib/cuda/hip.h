/* SPDX-License-Identifier: MIT */
/*
 * AMD's HIP runtime behind the table of NVIDIA's driver (driver.h). HIP's functions were made after
 * those of CUDA. Most of them have the parameters of their counterparts, and most numbers of errors
 * agree, so they go into the table as they are. hip.c has the others.
 *
 * Differences that the rest of the library sees:
 *	A context stands for a device, and a thread always has one. There is no stack of contexts.
 *	Nothing is known about an address except its GPU and whether it is managed memory. So memory
 *	of the program is shared by handle, or not at all (take.c).
 */
#ifndef XMEM_CUDA_HIP_H
#define XMEM_CUDA_HIP_H

#include "lib/cuda/driver.h"

/* The driver is HIP. Written before the driver's first call, and then constant. */
extern bool xl_hip __attribute__((visibility("hidden")));

/* For messages. */
#define XL_API	(xl_hip ? "HIP" : "CUDA")

/* Turn a table of HIP's functions, as entries.h names them, into a table of CUDA's. */
void xl_hip_adapt(struct xl_cuda *table, void *library);

/* The name of a result, from HIP itself: a constant. A forked child may call this too. */
const char *xl_hip_error_name(CUresult result);

/*
 * A thread has a last error of HIP's, which the program's own checks read (hipGetLastError). An
 * error of the library's calls is none of the program's, so it must be taken back.
 */
void xl_hip_forget_error(void);

/*
 * Is this library HIP? One with functions of CUDA's is not, even if HIP is among the libraries that
 * it needs, because the program's streams are CUDA's then.
 */
bool xl_hip_is(void *library);

#endif

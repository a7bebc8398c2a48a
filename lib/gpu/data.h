/* SPDX-License-Identifier: MIT */
/* The addresses of contents in memory of GPUs: data.c. */
#ifndef XMEM_GPU_DATA_H
#define XMEM_GPU_DATA_H

#include "lib/base/handle.h"
#include "lib/cuda/device.h"

/* The device address of the contents; 0: the error is noted. */
u64 xl_cuda_address(struct xmem_buffer *buffer);
/* The device address of contents that may be written; 0: the error is noted. */
u64 xl_cuda_address_mut(struct xmem_buffer *buffer);

/* Note EMEDIUMTYPE: the contents are in memory of the CPU; or ENOTCONN. Returns 0. */
u64 xl_not_cuda(struct xmem_pool *pool) __attribute__((cold));

/* The GPU that has a buffer. NULL: the error is noted. */
struct xl_gpu *xl_cuda_gpu(const struct xmem_buffer *buffer);

#endif

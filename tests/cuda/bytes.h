/* SPDX-License-Identifier: MIT */
/* What the tests of buffers on GPUs share: contents that are known, and what the driver counts. */
#ifndef XMEM_CUDA_BYTES_H
#define XMEM_CUDA_BYTES_H

#include "gpus.h"

/* A writer with @count buffers of @bytes on the first GPU. */
struct xmem_pool *cuda_writer(const char *name, unsigned int count, size_t bytes, uint32_t flags);

/* Acquire on the first GPU; fails the test if it cannot. */
struct xmem_buffer *cuda_acquire(struct xmem_pool *pool, size_t bytes);

/* Fill what is acquired, and look whether contents are so: bytes that follow from @stamp. */
void cuda_fill(struct xmem_buffer *buffer, uint64_t stamp);
void cuda_check(struct xmem_buffer *buffer, uint64_t stamp);

/* Acquire, fill, publish; the token. With @ret_kept the handle is kept. */
uint64_t cuda_publish(struct xmem_pool *pool, size_t bytes, uint64_t stamp,
		      struct xmem_buffer **ret_kept);

/* A call of the driver that the library does not use. */
void *driver_call(const char *name);

/* A function of the fake driver (tests/fakecuda/tests.h); skips on a real one. */
void *fake(const char *name);
/* How often the driver's function was called; NULL: all of them together. */
unsigned long driver_calls(const char *name);
/* Errors to give; NULL: none. */
void driver_fails(const char *rules);
/* Bytes of the first GPU in use, by this process. */
size_t gpu_used(void);
/* No rule was broken by this process. On a real driver nothing is known. */
void no_violations(void);

#endif

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

/* Publish what the stream has yet to write, and keep the handle or not. */
int publish_on(struct xmem_buffer *buffer, CUstream stream);
int publish_kept_on(struct xmem_buffer *buffer, CUstream stream);

/* Acquire, fill, publish; the token. With @ret_kept the handle is kept. */
uint64_t cuda_publish(struct xmem_pool *pool, size_t bytes, uint64_t stamp,
		      struct xmem_buffer **ret_kept);

/* A call of the driver that the library does not use. */
void *driver_call(const char *name);

/*
 * A function of the fake driver (tests/fakecuda/tests.h). On a real one the test fails: what can
 * be asked only here is for ON_FAKE, or for a test that has begun with fake_only.
 */
void *fake(const char *name);
/* How often the driver's function was called; NULL: all of them together. 0 on a real driver. */
unsigned long driver_calls(const char *name);
/* The driver's function has been called so often, as far as that is known. */
#define CALLS(got, want)	ON_FAKE(SAME(got, want))
/*
 * Let other threads come to where the test wants them. What the fake driver's counts would show is
 * not known on a real one: nothing may be taken to have happened after this.
 */
void give_time(void);
/* Errors to give; NULL: none. */
void driver_fails(const char *rules);

/* This process has so many bytes of the first GPU in use, as far as that is known. */
#define USED(bytes)		ON_FAKE(SAME(gpu_used(), bytes))
/* The same for EVENTUALLY: true on a real driver. */
bool gpu_uses(size_t bytes);
/*
 * Calls of @pool until the library has freed all but so many bytes; on a real driver until nothing
 * of the pool's is on a GPU.
 */
void until_used(struct xmem_pool *pool, size_t bytes);
/* What the fake driver knows of that. */
size_t gpu_used(void);

/* No rule was broken by this process. On a real driver nothing is known. */
void no_violations(void);

#endif

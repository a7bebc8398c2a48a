/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of buffers on GPUs: known contents, and the driver's counts. */
#ifndef XMEM_CUDA_BYTES_H
#define XMEM_CUDA_BYTES_H

#include "gpus.h"

/* A writer with @count buffers of @bytes on the first GPU. */
struct xmem_pool *cuda_writer(const char *name, unsigned int count, size_t bytes, uint32_t flags);

/* Acquire on the first GPU. Fails the test if it cannot. */
struct xmem_buffer *cuda_acquire(struct xmem_pool *pool, size_t bytes);

/* Fill what is acquired, and check contents: bytes that count up from @stamp. */
void cuda_fill(struct xmem_buffer *buffer, uint64_t stamp);
void cuda_check(struct xmem_buffer *buffer, uint64_t stamp);

/* Publish contents that the stream has not written yet. The handle may be kept. */
int publish_on(struct xmem_buffer *buffer, CUstream stream);
int publish_kept_on(struct xmem_buffer *buffer, CUstream stream);

/* Acquire, fill, publish; the token. With @ret_kept the handle is kept. */
uint64_t cuda_publish(struct xmem_pool *pool, size_t bytes, uint64_t stamp,
		      struct xmem_buffer **ret_kept);

/*
 * Memory of a memory pool on the first GPU, which can be exported. The context is current. Nothing
 * frees it.
 */
CUdeviceptr make_in_pool(size_t bytes);

/* A call of the driver that the library does not use. */
void *driver_call(const char *name);

/*
 * A function of the fake driver (tests/fakecuda/tests.h). On a real driver the test fails, so such
 * a call belongs into ON_FAKE, or into a test that begins with fake_only.
 */
void *fake(const char *name);
/* How often the driver's function was called; NULL: all of them together. 0 on a real driver. */
unsigned long driver_calls(const char *name);
/* The driver's function must have been called so often, if the driver counts. */
#define CALLS(got, want)	ON_FAKE(SAME(got, want))
/*
 * Let other threads get to where the test wants them. The fake driver's counts would show when they
 * are there, but a real one has none. So a test may not assume that anything has happened after
 * this.
 */
void give_time(void);
/* Errors to inject; NULL: none. */
void driver_fails(const char *rules);

/* This process uses this many bytes of the first GPU, if the driver counts them. */
#define USED(bytes)		ON_FAKE(SAME(gpu_used(), bytes))
/* The condition of USED, for EVENTUALLY; true on a real driver. */
bool gpu_uses(size_t bytes);
/*
 * Make calls for @pool until the library has freed all but this many bytes; on a real driver, until
 * nothing of the pool is on a GPU.
 */
void until_used(struct xmem_pool *pool, size_t bytes);
/* The count of the fake driver. */
size_t gpu_used(void);

/* This process has broken no rule. A real driver does not check that. */
void no_violations(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The demo's own use of a GPU: a stream, copies on it, memory of its own. The driver is the library
 * that XMEM_CUDA_DRIVER names, or libcuda.so.1, as for xmem itself; it is opened when the program
 * runs. So the demo is built without anything of CUDA, and starts without a GPU.
 *
 * All use device 0, in its primary context, and one stream. One thread calls these functions.
 */
#ifndef DEMO_GPU_H
#define DEMO_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

#define GPU_DEVICE	0
#define GPU_NAME	80

/* Open the driver, if that has not been done yet. false: gpu_why() tells why there is no GPU. */
bool gpu_open(void);

/* Why the last call failed: a sentence without an end. */
const char *gpu_why(void);

/* The device's name; "" before gpu_open. */
const char *gpu_name(void);

struct CUstream_st *gpu_stream(void);

/*
 * Memory of the device, and of the CPU: page-locked, so that copies from and to it do not keep
 * the calling thread. NULL: gpu_why(). It stays until the process ends.
 */
void *gpu_memory(size_t bytes);
uint8_t *gpu_host_memory(size_t bytes);

/* Put copies into the stream. */
bool gpu_upload(void *to, const uint8_t *from, size_t bytes);
bool gpu_download(uint8_t *to, const void *from, size_t bytes);
bool gpu_copy(void *to, const void *from, size_t bytes);

/* Wait until the stream has done all its work. */
bool gpu_finish(void);

/*
 * A place in the stream's work: mark the work so far, wait until that is done. *@place is NULL the
 * first time; a wait without a mark returns at once.
 */
struct CUevent_st;
bool gpu_mark(struct CUevent_st **place);
bool gpu_wait(struct CUevent_st *place);

/* The bytes of the device's memory that all processes have allocated. */
bool gpu_bytes_in_use(uint64_t *ret_bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The driver of GPUs, which the benchmark also calls itself: the library that XMEM_CUDA_DRIVER
 * names, or libcuda.so.1. Its types are declared here, so that no toolkit is needed.
 */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
struct CUevent_st;

#define DRIVER_HANDLE	64	/* bytes of a handle for other processes */

struct driver_handle {
	uint8_t byte[DRIVER_HANDLE];
};

/* X(field, symbol, parameters); all return 0 or an error. */
#define DRIVER_CALLS(X) \
	X(init, cuInit, (unsigned int flags)) \
	X(retain, cuDevicePrimaryCtxRetain, (void **ret_context, int device)) \
	X(set_current, cuCtxSetCurrent, (void *context)) \
	X(alloc, cuMemAlloc_v2, (unsigned long long *ret, size_t bytes)) \
	X(memset, cuMemsetD8Async, (unsigned long long at, unsigned char value, size_t bytes, \
				    struct CUstream_st *stream)) \
	X(host_register, cuMemHostRegister_v2, (void *at, size_t bytes, unsigned int flags)) \
	X(write_value, cuStreamWriteValue64_v2, \
	  (struct CUstream_st *stream, unsigned long long at, uint64_t value, \
	   unsigned int flags)) \
	X(wait_value, cuStreamWaitValue64_v2, \
	  (struct CUstream_st *stream, unsigned long long at, uint64_t value, \
	   unsigned int flags)) \
	X(stream_create, cuStreamCreate, (struct CUstream_st **ret, unsigned int flags)) \
	X(stream_sync, cuStreamSynchronize, (struct CUstream_st *stream)) \
	X(stream_wait, cuStreamWaitEvent, \
	  (struct CUstream_st *stream, struct CUevent_st *event, unsigned int flags)) \
	X(launch_host, cuLaunchHostFunc, \
	  (struct CUstream_st *stream, void (*call)(void *user), void *user)) \
	X(event_create, cuEventCreate, (struct CUevent_st **ret, unsigned int flags)) \
	X(event_record, cuEventRecord, (struct CUevent_st *event, struct CUstream_st *stream)) \
	X(event_destroy, cuEventDestroy_v2, (struct CUevent_st *event)) \
	X(get_memory, cuIpcGetMemHandle, (struct driver_handle *ret, unsigned long long at)) \
	X(open_memory, cuIpcOpenMemHandle_v2, \
	  (unsigned long long *ret, struct driver_handle handle, unsigned int flags)) \
	X(close_memory, cuIpcCloseMemHandle, (unsigned long long at)) \
	X(get_event, cuIpcGetEventHandle, (struct driver_handle *ret, struct CUevent_st *event)) \
	X(open_event, cuIpcOpenEventHandle, \
	  (struct CUevent_st **ret, struct driver_handle handle))

struct driver {
#define DRIVER_FIELD(field, symbol, parameters) int (*field) parameters;
	DRIVER_CALLS(DRIVER_FIELD)
#undef DRIVER_FIELD
	unsigned long (*calls)(const char *name);	/* NULL: it is not the fake driver */
};

/* Opens it, and makes the first GPU's context current in this thread. Dies if it cannot. */
const struct driver *driver_open(void);

/* Dies if a call has failed. */
void driver_must(int result, const char *what);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The driver's calls that the demo makes itself; see gpu.h. Names and numbers are those of the
 * driver's interface; a name has the suffix of the form that is declared here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"

typedef unsigned long long address;	/* CUdeviceptr */
typedef struct CUctx_st context;

#define STREAM_NON_BLOCKING	1	/* CU_STREAM_NON_BLOCKING */
#define EVENT_DISABLE_TIMING	2	/* CU_EVENT_DISABLE_TIMING */

/* X(field, name, parameters): every call returns 0, or the number of an error. */
#define DRIVER(X) \
	X(init, "cuInit", (unsigned int flags)) \
	X(error_name, "cuGetErrorName", (int error, const char **ret_name)) \
	X(device, "cuDeviceGet", (int *ret_device, int ordinal)) \
	X(device_name, "cuDeviceGetName", (char *ret_name, int bytes, int device)) \
	X(retain, "cuDevicePrimaryCtxRetain", (context **ret_context, int device)) \
	X(enter, "cuCtxSetCurrent", (context *context)) \
	X(stream, "cuStreamCreate", (struct CUstream_st **ret_stream, unsigned int flags)) \
	X(finish, "cuStreamSynchronize", (struct CUstream_st *stream)) \
	X(event, "cuEventCreate", (struct CUevent_st **ret_event, unsigned int flags)) \
	X(record, "cuEventRecord", (struct CUevent_st *event, struct CUstream_st *stream)) \
	X(wait, "cuEventSynchronize", (struct CUevent_st *event)) \
	X(memory, "cuMemAlloc_v2", (address *ret_address, size_t bytes)) \
	X(host_memory, "cuMemHostAlloc", (void **ret_memory, size_t bytes, unsigned int flags)) \
	X(memory_info, "cuMemGetInfo_v2", (size_t *ret_free, size_t *ret_total)) \
	X(upload, "cuMemcpyHtoDAsync_v2", \
	  (address to, const void *from, size_t bytes, struct CUstream_st *stream)) \
	X(download, "cuMemcpyDtoHAsync_v2", \
	  (void *to, address from, size_t bytes, struct CUstream_st *stream)) \
	X(copy, "cuMemcpyDtoDAsync_v2", \
	  (address to, address from, size_t bytes, struct CUstream_st *stream))

#define FIELD(field, name, parameters)	int (*field) parameters;
static struct { DRIVER(FIELD) } driver;

static struct CUstream_st *stream;
static char name[GPU_NAME];
static char why[400];

const char *gpu_why(void)
{
	return why;
}

const char *gpu_name(void)
{
	return name;
}

struct CUstream_st *gpu_stream(void)
{
	return stream;
}

static bool good(int error, const char *call)
{
	const char *words = NULL;

	if (!error)
		return true;
	if (!driver.error_name || driver.error_name(error, &words) || !words)
		words = "an error without a name";
	snprintf(why, sizeof(why), "%s: %s (%d)", call, words, error);
	return false;
}

static bool find(void *library, const char *symbol, void *ret_call)
{
	void *call = dlsym(library, symbol);

	if (!call)
		snprintf(why, sizeof(why), "the driver has no %s", symbol);
	*(void **)ret_call = call;
	return call;
}

#define FIND(field, symbol, parameters)	&& find(library, symbol, &driver.field)

static bool open_driver(void)
{
	const char *file = getenv("XMEM_CUDA_DRIVER");
	void *library = dlopen(file && *file ? file : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		snprintf(why, sizeof(why), "there is no CUDA driver: %s", dlerror());
	return library DRIVER(FIND);
}

bool gpu_open(void)
{
	context *primary;
	int device;

	if (stream)
		return true;
	return open_driver() &&
	       good(driver.init(0), "cuInit") &&
	       good(driver.device(&device, GPU_DEVICE), "cuDeviceGet") &&
	       good(driver.device_name(name, sizeof(name), device), "cuDeviceGetName") &&
	       good(driver.retain(&primary, device), "cuDevicePrimaryCtxRetain") &&
	       good(driver.enter(primary), "cuCtxSetCurrent") &&
	       good(driver.stream(&stream, STREAM_NON_BLOCKING), "cuStreamCreate");
}

void *gpu_memory(size_t bytes)
{
	address at = 0;

	return good(driver.memory(&at, bytes), "cuMemAlloc") ? (void *)(uintptr_t)at : NULL;
}

uint8_t *gpu_host_memory(size_t bytes)
{
	void *at = NULL;

	return good(driver.host_memory(&at, bytes, 0), "cuMemHostAlloc") ? at : NULL;
}

bool gpu_upload(void *to, const uint8_t *from, size_t bytes)
{
	return good(driver.upload((uintptr_t)to, from, bytes, stream), "cuMemcpyHtoDAsync");
}

bool gpu_download(uint8_t *to, const void *from, size_t bytes)
{
	return good(driver.download(to, (uintptr_t)from, bytes, stream), "cuMemcpyDtoHAsync");
}

bool gpu_copy(void *to, const void *from, size_t bytes)
{
	return good(driver.copy((uintptr_t)to, (uintptr_t)from, bytes, stream),
		    "cuMemcpyDtoDAsync");
}

bool gpu_finish(void)
{
	return good(driver.finish(stream), "cuStreamSynchronize");
}

bool gpu_mark(struct CUevent_st **place)
{
	return (*place || good(driver.event(place, EVENT_DISABLE_TIMING), "cuEventCreate")) &&
	       good(driver.record(*place, stream), "cuEventRecord");
}

bool gpu_wait(struct CUevent_st *place)
{
	return !place || good(driver.wait(place), "cuEventSynchronize");
}

bool gpu_bytes_in_use(uint64_t *ret_bytes)
{
	size_t left, all;

	if (!good(driver.memory_info(&left, &all), "cuMemGetInfo"))
		return false;
	*ret_bytes = all - left;
	return true;
}

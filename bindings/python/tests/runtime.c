// SPDX-License-Identifier: MIT
/*
 * The functions of CUDA's runtime by which the allocator of torch for GPUs gets and frees memory,
 * on top of the driver in XMEM_CUDA_DRIVER. NVIDIA's own runtime needs functions of the driver that
 * are not documented, so it refuses the fake driver. With this library in LD_PRELOAD, torch has
 * tensors on the fake driver's GPUs, and hands them over. It cannot launch kernels.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS		16
#define PROPERTIES	728		/* bytes of them that every release of CUDA has */

/* Where these properties are, in each release of CUDA. */
#define TOTAL_BYTES	288
#define WARP_SIZE	308
#define BLOCK_THREADS	320
#define MAJOR		360

static void *primary[GPUS];		/* contexts, retained for ever */
static _Thread_local int device, last;
static _Thread_local bool entered;

/* A function of the driver. */
static void *driver(const char *name)
{
	static void *library;
	void *function;

	if (!library)
		library = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW);
	function = library ? dlsym(library, name) : NULL;
	if (function)
		return function;
	fprintf(stderr, "runtime.c: no %s: %s\n", name, dlerror());
	abort();
}

#define CALL(name, ...)	(((int (*)())driver(#name))(__VA_ARGS__))

/* The numbers of errors are the driver's. */
static int result(int err)
{
	if (err)
		last = err;
	return err;
}

static int enter(int number)
{
	int err = CALL(cuInit, 0);

	if (!err && !primary[number])
		err = CALL(cuDevicePrimaryCtxRetain, &primary[number], number);
	if (!err)
		err = CALL(cuCtxSetCurrent, primary[number]);
	if (err)
		return err;
	device = number;
	entered = true;
	return 0;
}

/* A function of the runtime that calls one of the driver in the context of the thread's GPU. */
#define IN_CONTEXT(name, parameters, call, ...)					\
	int name parameters							\
	{									\
		int err = entered ? 0 : enter(device);				\
										\
		return result(err ? err : CALL(call, __VA_ARGS__));		\
	}

IN_CONTEXT(cudaMalloc, (void **ret, size_t bytes), cuMemAlloc_v2, ret, bytes)
IN_CONTEXT(cudaMemGetInfo, (size_t *left, size_t *all), cuMemGetInfo_v2, left, all)
IN_CONTEXT(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind), cuMemcpy,
	   to, from, bytes)
IN_CONTEXT(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, void *stream),
	   cuMemcpyAsync, to, from, bytes, stream)
IN_CONTEXT(cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream),
	   cuMemsetD8Async, to, value, bytes, stream)
IN_CONTEXT(cudaDeviceSynchronize, (void), cuCtxSynchronize)
IN_CONTEXT(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
	   cuCtxGetStreamPriorityRange, least, greatest)
IN_CONTEXT(cudaStreamCreateWithPriority, (void **ret, unsigned int flags, int priority),
	   cuStreamCreateWithPriority, ret, flags, priority)
IN_CONTEXT(cudaStreamSynchronize, (void *stream), cuStreamSynchronize, stream)
IN_CONTEXT(cudaStreamQuery, (void *stream), cuStreamQuery, stream)
IN_CONTEXT(cudaStreamIsCapturing, (void *stream, int *ret), cuStreamIsCapturing, stream, ret)
IN_CONTEXT(cudaStreamGetCaptureInfo, (void *stream, int *ret), cuStreamIsCapturing, stream, ret)
IN_CONTEXT(cudaStreamGetCaptureInfo_v2, (void *stream, int *ret), cuStreamIsCapturing, stream, ret)
IN_CONTEXT(cudaStreamWaitEvent, (void *stream, void *event, unsigned int flags),
	   cuStreamWaitEvent, stream, event, flags)
IN_CONTEXT(cudaThreadExchangeStreamCaptureMode, (int *mode),
	   cuThreadExchangeStreamCaptureMode, mode)
IN_CONTEXT(cudaEventCreateWithFlags, (void **ret, unsigned int flags), cuEventCreate, ret, flags)
IN_CONTEXT(cudaEventRecord, (void *event, void *stream), cuEventRecord, event, stream)
IN_CONTEXT(cudaEventQuery, (void *event), cuEventQuery, event)
IN_CONTEXT(cudaEventSynchronize, (void *event), cuEventSynchronize, event)
IN_CONTEXT(cudaEventDestroy, (void *event), cuEventDestroy_v2, event)
IN_CONTEXT(cudaDeviceCanAccessPeer, (int *ret, int one, int other),
	   cuDeviceCanAccessPeer, ret, one, other)
IN_CONTEXT(cudaDeviceGetAttribute, (int *ret, int attribute, int number),
	   cuDeviceGetAttribute, ret, attribute, number)
IN_CONTEXT(cudaDriverGetVersion, (int *ret), cuDriverGetVersion, ret)

int cudaFree(void *at)
{
	int err = entered ? 0 : enter(device);

	return result(err || !at ? err : CALL(cuMemFree_v2, at));
}

/* The first part of cudaPointerAttributes, which is all that torch reads. */
struct attributes {
	int type, device;
	const void *on_gpu, *on_cpu;
};

#define ON_GPU		2		/* cudaMemoryTypeDevice */
#define ORDINAL		9		/* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */

int cudaPointerGetAttributes(struct attributes *ret, const void *at)
{
	int err = entered ? 0 : enter(device);

	*ret = (struct attributes){ .type = ON_GPU, .on_gpu = at };
	return result(err ? err : CALL(cuPointerGetAttribute, &ret->device, ORDINAL, at));
}

int cudaGetDeviceCount(int *ret)
{
	int err = CALL(cuInit, 0);

	return result(err ? err : CALL(cuDeviceGetCount, ret));
}

int cudaSetDevice(int number)
{
	return result(enter(number));
}

int cudaGetDevice(int *ret)
{
	*ret = device;
	return 0;
}

/* This makes no context, and torch relies on that. */
int cudaGetDeviceProperties(char *ret, int number)
{
	int err = CALL(cuInit, 0);

	memset(ret, 0, PROPERTIES);
	*(int *)(ret + WARP_SIZE) = 32;
	*(int *)(ret + BLOCK_THREADS) = 1024;
	*(int *)(ret + MAJOR) = 8;		/* which every release of torch has kernels for */
	if (!err)
		err = CALL(cuDeviceGetName, ret, 256, number);
	if (!err)
		err = CALL(cuDeviceTotalMem_v2, ret + TOTAL_BYTES, number);
	return result(err);
}

int cudaGetDeviceProperties_v2(char *ret, int number)
{
	return cudaGetDeviceProperties(ret, number);
}

int cudaPeekAtLastError(void)
{
	return last;
}

int cudaGetLastError(void)
{
	int err = last;

	last = 0;
	return err;
}

const char *cudaGetErrorName(int err)
{
	const char *name = NULL;

	return CALL(cuGetErrorName, err, &name) ? "an unknown error" : name;
}

const char *cudaGetErrorString(int err)
{
	const char *text = NULL;

	return CALL(cuGetErrorString, err, &text) ? "an unknown error" : text;
}

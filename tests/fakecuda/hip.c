// SPDX-License-Identifier: MIT
/*
 * AMD's HIP runtime over the fake driver: build/FLAVOUR/fakecuda/libamdhip64.so.6 shows these
 * functions in place of the driver's. Names, parameters and numbers are HIP's. The rules below are
 * those of HIP's source (ROCm/clr), and each function has the rules of the one that it calls.
 *
 *   A thread always has a device, which is device 0 at first. There are no contexts.
 *   An error becomes the thread's last error, which stays until it is asked for.
 *   FAKECUDA_HIP_VERSION (60300000) is what hipDriverGetVersion returns. Versions before 6.0 number
 *   the types of memory otherwise, those before 6.2 export no memory, and those before 7.1 import
 *   the descriptor to which an address points. Stream 1 is no stream.
 *   Of an address HIP knows the type, the device, and whether it is managed memory.
 *   FAKECUDA_UUID=XX: the GPUs have no UUIDs of their own.
 *
 * A number of CUDA's that HIP does not have becomes hipErrorUnknown.
 */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "vmm.h"

typedef struct { char reserved[64]; } hipIpcMemHandle;

/* ---- errors ---- */

static const struct { int number; const char *name; } errors[] = {
	{ 0, "hipSuccess" }, { 1, "hipErrorInvalidValue" }, { 2, "hipErrorOutOfMemory" },
	{ 3, "hipErrorNotInitialized" }, { 4, "hipErrorDeinitialized" },
	{ 17, "hipErrorInvalidDevicePointer" }, { 35, "hipErrorInsufficientDriver" },
	{ 100, "hipErrorNoDevice" }, { 101, "hipErrorInvalidDevice" },
	{ 200, "hipErrorInvalidImage" }, { 201, "hipErrorInvalidContext" },
	{ 205, "hipErrorMapFailed" }, { 206, "hipErrorUnmapFailed" },
	{ 208, "hipErrorAlreadyMapped" }, { 211, "hipErrorNotMapped" },
	{ 214, "hipErrorECCNotCorrectable" }, { 217, "hipErrorPeerAccessUnsupported" },
	{ 304, "hipErrorOperatingSystem" }, { 400, "hipErrorInvalidHandle" },
	{ 401, "hipErrorIllegalState" }, { 500, "hipErrorNotFound" }, { 600, "hipErrorNotReady" },
	{ 700, "hipErrorIllegalAddress" }, { 702, "hipErrorLaunchTimeOut" },
	{ 704, "hipErrorPeerAccessAlreadyEnabled" }, { 705, "hipErrorPeerAccessNotEnabled" },
	{ 709, "hipErrorContextIsDestroyed" }, { 710, "hipErrorAssert" },
	{ 712, "hipErrorHostMemoryAlreadyRegistered" }, { 713, "hipErrorHostMemoryNotRegistered" },
	{ 719, "hipErrorLaunchFailure" }, { 801, "hipErrorNotSupported" },
	{ 900, "hipErrorStreamCaptureUnsupported" }, { 901, "hipErrorStreamCaptureInvalidated" },
	{ 906, "hipErrorStreamCaptureImplicit" }, { 908, "hipErrorStreamCaptureWrongThread" },
	{ FK_UNKNOWN, "hipErrorUnknown" }, { 1052, "hipErrorRuntimeMemory" },
	{ 1053, "hipErrorRuntimeOther" },
};

static __thread int last_error;

static const char *name_of(int error)
{
	for (unsigned int i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].number == error)
			return errors[i].name;
	return NULL;
}

/* The result for the caller. */
static int done(int error)
{
	if (error)
		last_error = name_of(error) ? error : FK_UNKNOWN;
	return error ? last_error : 0;
}

FK_API const char *hipGetErrorName(int error);
FK_API const char *hipGetErrorName(int error)
{
	return name_of(error) ? name_of(error) : "hipErrorUnknown";
}

FK_API int hipGetLastError(void);
FK_API int hipGetLastError(void)
{
	int error = last_error;

	last_error = 0;
	return error;
}

/* ---- the thread's device ---- */

int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuCtxSetCurrent(CUcontext context);
int cuCtxGetCurrent(CUcontext *context);

static long version(void)
{
	return fk_option_number("HIP_VERSION", 60300000);
}

/* The context of a device, which lives from its first use on. */
static int context_of(int device, CUcontext *ret)
{
	if (!fk_alive())
		return fk_device(device) ? FK_NOT_INITIALIZED : FK_INVALID_DEVICE;
	if (!fk_device(device))
		return FK_INVALID_DEVICE;
	*ret = &fk_device(device)->primary;
	return fk_context_valid(*ret) ? 0 : cuDevicePrimaryCtxRetain(ret, device);
}

static int use(int device)
{
	CUcontext context;
	int err = context_of(device, &context);

	return err ? err : cuCtxSetCurrent(context);
}

/* Before each call that needs a device. Errors are left to the call itself. */
static void begin(void)
{
	if (fk_alive() && !fk_in_host_function && !fk_context_current())
		use(0);
}

/*
 * SAME(hip's name, parameters, the driver's name, its parameters, arguments): a function that
 * differs from the driver's by its name only, or by the form of some arguments.
 */
#define SAME(name, parameters, call, call_parameters, arguments)	\
	int call call_parameters;					\
	FK_API int name parameters;					\
	int name parameters						\
	{								\
		begin();						\
		return done(call arguments);				\
	}								\
	_Static_assert(1, "")

#define FORM(name, call, parameters, arguments)	SAME(name, parameters, call, parameters, arguments)

static bool is_one(CUstream stream)
{
	return stream == (CUstream)1;
}

/* A function with a stream. */
#define ON(name, call, parameters, arguments)				\
	int call parameters;						\
	FK_API int name parameters;					\
	int name parameters						\
	{								\
		begin();						\
		return done(is_one(stream) ? FK_CONTEXT_IS_DESTROYED : call arguments); \
	}								\
	_Static_assert(1, "")

FK_API int hipGetDevice(int *ret);
int hipGetDevice(int *ret)
{
	CUcontext context;
	int err = cuCtxGetCurrent(&context);

	if (!err)
		*ret = context ? context->device->ordinal : 0;
	return done(err);
}

FK_API int hipSetDevice(int device);
int hipSetDevice(int device)
{
	return done(use(device));
}

/* ---- the driver and its devices ---- */

int cuInit(unsigned int flags);
FK_API int hipInit(unsigned int flags);
int hipInit(unsigned int flags)
{
	return done(cuInit(flags));
}

FK_API int hipDriverGetVersion(int *ret);
int hipDriverGetVersion(int *ret)
{
	*ret = version();
	return 0;
}

#define PLAIN(name, call, parameters, arguments)			\
	int call parameters;						\
	FK_API int name parameters;					\
	int name parameters						\
	{								\
		return done(call arguments);				\
	}								\
	_Static_assert(1, "")

PLAIN(hipGetDeviceCount, cuDeviceGetCount, (int *ret), (ret));
PLAIN(hipDeviceGet, cuDeviceGet, (int *ret, int ordinal), (ret, ordinal));
PLAIN(hipDeviceGetName, cuDeviceGetName, (char *ret, int bytes, int device), (ret, bytes, device));
PLAIN(hipDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *ret, int device), (ret, device));
PLAIN(hipDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int *ret, int device, int peer),
      (ret, device, peer));
PLAIN(hipDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *ret, int bytes, int device),
      (ret, bytes, device));
PLAIN(hipDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState,
      (int device, unsigned int *ret_flags, int *ret_active), (device, ret_flags, ret_active));

FK_API int hipDevicePrimaryCtxRetain(CUcontext *ret, int device);
int hipDevicePrimaryCtxRetain(CUcontext *ret, int device)
{
	return done(context_of(device, ret));
}

/* It releases nothing. */
FK_API int hipDevicePrimaryCtxRelease(int device);
int hipDevicePrimaryCtxRelease(int device)
{
	return done(!fk_alive() ? FK_DEINITIALIZED : fk_device(device) ? 0 : FK_INVALID_DEVICE);
}

/* 16 characters. */
int cuDeviceGetUuid_v2(CUuuid *ret, int device);
FK_API int hipDeviceGetUuid(CUuuid *ret, int device);
int hipDeviceGetUuid(CUuuid *ret, int device)
{
	CUresult err = cuDeviceGetUuid_v2(ret, device);
	char text[17];

	if (err)
		return done(err);
	snprintf(text, sizeof(text), "a3d0%02x%010x", ret->bytes[14], ret->bytes[15]);
	if (fk_option("UUID", NULL))
		snprintf(text, sizeof(text), "%-.16s", fk_option("UUID", NULL));
	memset(ret->bytes, 0, sizeof(ret->bytes));
	memcpy(ret->bytes, text, strlen(text));
	return 0;
}

/* HIP's numbers of attributes, and those of the driver. */
static const struct { int hip, cuda; } attributes[] = {
	{ 4, 91 }, { 15, 86 }, { 23, 75 }, { 61, 76 }, { 85, 41 }, { 88, 115 }, { 89, 102 },
	{ 90, 99 }, { 91, 119 }, { 10013, 122 },
};

int cuDeviceGetAttribute(int *ret, int attribute, int device);
FK_API int hipDeviceGetAttribute(int *ret, int attribute, int device);
int hipDeviceGetAttribute(int *ret, int attribute, int device)
{
	for (unsigned int i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].hip == attribute)
			return done(cuDeviceGetAttribute(ret, attributes[i].cuda, device));
	return done(FK_INVALID_VALUE);
}

FORM(hipDeviceSynchronize, cuCtxSynchronize, (void), ());

int cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
FK_API int hipDeviceEnablePeerAccess(int peer, unsigned int flags);
int hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	CUcontext context;
	int err;

	begin();
	err = context_of(peer, &context);
	return done(err ? err : cuCtxEnablePeerAccess(context, flags));
}

/* ---- memory ---- */

FORM(hipMalloc, cuMemAlloc_v2, (CUdeviceptr *ret, size_t bytes), (ret, bytes));
FORM(hipFree, cuMemFree_v2, (CUdeviceptr at), (at));
FORM(hipMemGetInfo, cuMemGetInfo_v2, (size_t *ret_free, size_t *ret_all), (ret_free, ret_all));
FORM(hipMemGetAddressRange, cuMemGetAddressRange_v2,
     (CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr at), (ret_base, ret_bytes, at));
FORM(hipMallocManaged, cuMemAllocManaged, (CUdeviceptr *ret, size_t bytes, unsigned int flags),
     (ret, bytes, flags));
ON(hipMallocAsync, cuMemAllocAsync, (CUdeviceptr *ret, size_t bytes, CUstream stream),
   (ret, bytes, stream));

int cuPointerGetAttribute(void *ret, int attribute, CUdeviceptr at);
FK_API int hipPointerGetAttribute(void *ret, int attribute, CUdeviceptr at);
int hipPointerGetAttribute(void *ret, int attribute, CUdeviceptr at)
{
	enum { MEMORY_TYPE = 2, IS_MANAGED = 8, ORDINAL = 9, CONTEXT = 1, LEGACY = 10, TYPES = 14,
	       RDMA = 15, ACCESS = 16, POOL = 17 };
	CUresult err;

	begin();
	if (attribute == CONTEXT || attribute == LEGACY || attribute == TYPES ||
	    attribute == RDMA || attribute == POOL)
		return done(FK_NOT_SUPPORTED);
	if (attribute == ACCESS) {
		*(unsigned int *)ret = 1;	/* hipHostRegister's flags */
		return 0;
	}
	err = cuPointerGetAttribute(ret, attribute, at);
	if (!err && attribute == MEMORY_TYPE && version() < 60000000)
		--*(unsigned int *)ret;
	return done(err);
}

FORM(hipMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes),
     (to, from, bytes));
FORM(hipMemcpyDtoH, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes),
     (to, from, bytes));
ON(hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,
   (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), (to, from, bytes, stream));
ON(hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,
   (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream));
ON(hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,
   (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream));

int cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
		      CUcontext from_context, size_t bytes, CUstream stream);
FK_API int hipMemcpyPeerAsync(CUdeviceptr to, int to_device, CUdeviceptr from, int from_device,
			      size_t bytes, CUstream stream);
int hipMemcpyPeerAsync(CUdeviceptr to, int to_device, CUdeviceptr from, int from_device,
		       size_t bytes, CUstream stream)
{
	CUcontext there, here;
	int err;

	begin();
	err = is_one(stream) ? FK_CONTEXT_IS_DESTROYED : context_of(to_device, &there);
	if (!err)
		err = context_of(from_device, &here);
	return done(err ? err : cuMemcpyPeerAsync(to, there, from, here, bytes, stream));
}

FORM(hipHostRegister, cuMemHostRegister_v2, (void *at, size_t bytes, unsigned int flags),
     (at, bytes, flags));
FORM(hipHostUnregister, cuMemHostUnregister, (void *at), (at));
FORM(hipHostGetDevicePointer, cuMemHostGetDevicePointer_v2,
     (CUdeviceptr *ret, void *at, unsigned int flags), (ret, at, flags));

/* ---- memory for other processes ---- */

FORM(hipIpcGetMemHandle, cuIpcGetMemHandle, (hipIpcMemHandle *ret, CUdeviceptr at), (ret, at));
FORM(hipIpcCloseMemHandle, cuIpcCloseMemHandle, (CUdeviceptr at), (at));
FORM(hipIpcOpenMemHandle, cuIpcOpenMemHandle_v2,
     (CUdeviceptr *ret, hipIpcMemHandle handle, unsigned int flags), (ret, handle, flags));
PLAIN(hipMemGetAllocationGranularity, cuMemGetAllocationGranularity,
      (size_t *ret, const CUmemAllocationProp *prop, int option), (ret, prop, option));
FORM(hipMemCreate, cuMemCreate,
     (void **ret, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags),
     (ret, bytes, prop, flags));
FORM(hipMemRelease, cuMemRelease, (void *handle), (handle));
FORM(hipMemAddressReserve, cuMemAddressReserve,
     (CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr wish,
      unsigned long long flags), (ret, bytes, alignment, wish, flags));
FORM(hipMemAddressFree, cuMemAddressFree, (CUdeviceptr at, size_t bytes), (at, bytes));
FORM(hipMemMap, cuMemMap,
     (CUdeviceptr at, size_t bytes, size_t offset, void *handle, unsigned long long flags),
     (at, bytes, offset, handle, flags));
FORM(hipMemUnmap, cuMemUnmap, (CUdeviceptr at, size_t bytes), (at, bytes));
FORM(hipMemSetAccess, cuMemSetAccess,
     (CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count),
     (at, bytes, access, count));

int cuMemExportToShareableHandle(void *ret, void *handle, int type, unsigned long long flags);
FK_API int hipMemExportToShareableHandle(void *ret, void *handle, int type,
					 unsigned long long flags);
int hipMemExportToShareableHandle(void *ret, void *handle, int type, unsigned long long flags)
{
	return done(version() < 60200000 ? FK_NOT_SUPPORTED :
		    cuMemExportToShareableHandle(ret, handle, type, flags));
}

int cuMemImportFromShareableHandle(void **ret, void *file, int type);
FK_API int hipMemImportFromShareableHandle(void **ret, void *file, int type);
int hipMemImportFromShareableHandle(void **ret, void *file, int type)
{
	bool is_value = (uintptr_t)file < 1 << 20;

	if (version() < 60200000)
		return done(FK_NOT_SUPPORTED);
	if (is_value != (version() >= 70100000)) {
		fk_violation("hipMemImportFromShareableHandle: %p as the descriptor", file);
		return done(FK_INVALID_VALUE);
	}
	return done(cuMemImportFromShareableHandle(ret, is_value ? file :
						   (void *)(uintptr_t)*(int *)file, type));
}

/* HIP's own faults: see mem_retain_allocation_handle in lib/cuda/hip.c. */
FK_API int hipMemRetainAllocationHandle(void **ret, void *at);
int hipMemRetainAllocationHandle(void **ret, void *at)
{
	fk_violation("hipMemRetainAllocationHandle is called");
	*ret = at;
	return 0;
}

/* ---- streams ---- */

FORM(hipStreamCreateWithFlags, cuStreamCreate, (CUstream *ret, unsigned int flags), (ret, flags));
ON(hipStreamDestroy, cuStreamDestroy_v2, (CUstream stream), (stream));
ON(hipStreamQuery, cuStreamQuery, (CUstream stream), (stream));
ON(hipStreamSynchronize, cuStreamSynchronize, (CUstream stream), (stream));
ON(hipLaunchHostFunc, cuLaunchHostFunc, (CUstream stream, void (*call)(void *), void *user),
   (stream, call, user));
ON(hipStreamWriteValue64, cuStreamWriteValue64_v2,
   (CUstream stream, CUdeviceptr at, uint64_t value, unsigned int flags),
   (stream, at, value, flags));
ON(hipStreamIsCapturing, cuStreamIsCapturing, (CUstream stream, int *ret), (stream, ret));
PLAIN(hipThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode), (mode));

int cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr at, uint64_t value, unsigned int flags);
FK_API int hipStreamWaitValue64(CUstream stream, CUdeviceptr at, uint64_t value,
				unsigned int flags, uint64_t mask);
int hipStreamWaitValue64(CUstream stream, CUdeviceptr at, uint64_t value, unsigned int flags,
			 uint64_t mask)
{
	begin();
	if (is_one(stream))
		return done(FK_CONTEXT_IS_DESTROYED);
	return done(mask != UINT64_MAX ? FK_NOT_SUPPORTED :
		    cuStreamWaitValue64_v2(stream, at, value, flags));
}

int cuStreamGetCtx(CUstream stream, CUcontext *ret);
FK_API int hipStreamGetDevice(CUstream stream, int *ret);
int hipStreamGetDevice(CUstream stream, int *ret)
{
	CUcontext context;
	int err;

	begin();
	err = is_one(stream) ? FK_CONTEXT_IS_DESTROYED : cuStreamGetCtx(stream, &context);
	if (!err)
		*ret = context->device->ordinal;
	return done(err);
}

/* ---- kernels and graphs, for programs ---- */

FORM(hipModuleLoadData, cuModuleLoadData, (void **ret, const void *image), (ret, image));
FORM(hipModuleGetFunction, cuModuleGetFunction, (void **ret, void *module, const char *name),
     (ret, module, name));
ON(hipModuleLaunchKernel, cuLaunchKernel,
   (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
    CUstream stream, void **parameters, void **extra),
   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters,
    extra));
ON(hipStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, int mode), (stream, mode));
ON(hipStreamEndCapture, cuStreamEndCapture, (CUstream stream, void **ret), (stream, ret));
FORM(hipGraphGetNodes, cuGraphGetNodes, (void *graph, void **ret, size_t *count),
     (graph, ret, count));
FORM(hipGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
     (void **ret, void *graph, unsigned long long flags), (ret, graph, flags));
ON(hipGraphLaunch, cuGraphLaunch, (void *exec, CUstream stream), (exec, stream));
FORM(hipGraphDestroy, cuGraphDestroy, (void *graph), (graph));
FORM(hipGraphExecDestroy, cuGraphExecDestroy, (void *exec), (exec));

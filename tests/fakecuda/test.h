/* SPDX-License-Identifier: MIT */
/*
 * Tests of the fake driver's memory half and of its frame, with libcheck: one for each rule that
 * README.md lists. Check runs each in a process of its own, where cuInit has not been called. At
 * the end of a test the log of violations must be empty; a test that expects some takes them out.
 */
#ifndef FAKECUDA_TEST_H
#define FAKECUDA_TEST_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"
#include "tests/fakecuda/tests.h"
#include "tests/fakecuda/vmm.h"

#define GIVES(result, call) ck_assert_int_eq(call, result)
#define OK(call) GIVES(0, call)
#define MIB (1ul << 20)
#define BLOCK (2 * MIB)

typedef struct { char reserved[64]; } CUipcMemHandle;
typedef struct fk_backing *CUhandle;
typedef struct fk_pool *CUmemoryPool;

/* ---- The driver's functions ---- */

CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     int *status);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxSynchronize(void);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr);
CUresult cuMemAllocManaged(CUdeviceptr *ret_ptr, size_t bytes, unsigned int flags);
CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int count, const int *attributes, void **data,
				CUdeviceptr ptr);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
				       int option);
CUresult cuMemCreate(CUhandle *handle, size_t bytes, const CUmemAllocationProp *prop,
		     unsigned long long flags);
CUresult cuMemRelease(CUhandle handle);
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes);
CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUhandle handle,
		  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemExportToShareableHandle(void *shareable, CUhandle handle, unsigned int type,
				      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUhandle *handle, void *shareable, unsigned int type);
CUresult cuMemRetainAllocationHandle(CUhandle *handle, void *ptr);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUhandle handle);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool, unsigned int type,
					  unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable,
					    unsigned int type, unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool,
				const CUmemPoolPtrExportData *data);
CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool,
				 CUstream stream);
CUresult cuStreamCreate(CUstream *ret_stream, unsigned int flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *user), void *user);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *ptr);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *ptr, unsigned int flags);
CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags);
CUresult cuMemFreeHost(void *ptr);

/* ---- Helpers ---- */

/* Set a switch of the driver; @name is without FAKECUDA_. */
void option(const char *name, const char *value);

/* cuInit, and device 0's primary context is current. */
void begin(void);
/* The primary context of a device becomes current. */
void use_device(int ordinal);
CUdeviceptr allocate(size_t bytes);
int byte_at(CUdeviceptr ptr);

/* Empty the log of violations. Returns how many lines it had, and checks that all have @text. */
int take_violations(const char *text);

/*
 * Another process: it runs body(fd) and has not called the driver before. Its asserts count.
 * other_end() waits until it has ended well; other_kill() kills it.
 */
struct other {
	pid_t pid;
	int fd;
};
struct other other_start(void (*body)(int fd));
void other_end(struct other *other);
void other_kill(struct other *other);

/* Messages between the two. A descriptor goes with the message unless it is -1. */
void give(int fd, const void *data, size_t bytes);
void take(int fd, void *data, size_t bytes);
void give_fd(int fd, int given);
int take_fd(int fd);
/* Wakes the other side, which waits for that. */
void go(int fd);
void await(int fd);

/* Virtual memory of device 0 that can be exported: created, or also mapped with access. */
CUhandle create(size_t bytes);
CUdeviceptr map(CUhandle handle, size_t bytes);
void unmap(CUdeviceptr ptr, size_t bytes);

/* Is this root, as that test needs? If not, a message says that the test is skipped. */
bool is_root(const char *test);

TCase *init_tests(void);
TCase *device_tests(void);
TCase *alloc_tests(void);
TCase *ipc_tests(void);
TCase *open_tests(void);
TCase *vmm_tests(void);
TCase *share_tests(void);
TCase *pool_tests(void);
TCase *host_tests(void);
TCase *thread_tests(void);

#endif

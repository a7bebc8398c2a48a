/* SPDX-License-Identifier: MIT */
/*
 * The list of the driver's calls that the library uses: the field of struct xl_cuda, the symbol of
 * NVIDIA's driver, the symbol of AMD's HIP runtime ("": none), the version of CUDA that introduced
 * exactly this form (1000 * major + 10 * minor), the group, and the parameters. Every call returns
 * a CUresult. hip.c adapts the functions of HIP that have other parameters or numbers.
 *
 * A symbol of NVIDIA's has its suffix, because the suffix selects the form: cuMemFree and
 * cuMemFree_v2 take different parameters, and cuda.h hides this behind macros. In forms without
 * _ptsz or _ptds, stream 0 is the one that is ordered with all other streams.
 *
 * tests/cuda/toolkit.sh compares each line with the toolkit's headers and library.
 */
#ifndef XMEM_CUDA_ENTRIES_H
#define XMEM_CUDA_ENTRIES_H

/*
 * G(group, purpose). A driver that lacks a call of CORE is too old. If it lacks a call of another
 * group, the library does not use this mechanism at all.
 */
#define XL_CUDA_GROUPS(G) \
	G(CORE, "everything") \
	G(IPC, "memory handles between processes") \
	G(VMM, "memory exported as descriptors") \
	G(POOL, "memory pools between processes") \
	G(MEMOPS, "64-bit memory operations of streams") \
	G(CAPTURE, "captures of streams") \
	G(EVENTS, "events of a whole context") \
	G(HOST, "registering host memory")

#define XL_CUDA_ENTRIES(X) \
	XL_CUDA_DEVICES(X) \
	XL_CUDA_CONTEXTS(X) \
	XL_CUDA_MEMORY(X) \
	XL_CUDA_COPIES(X) \
	XL_CUDA_STREAMS(X) \
	XL_CUDA_CAPTURE_CALLS(X) \
	XL_CUDA_EVENT_CALLS(X) \
	XL_CUDA_IPC_CALLS(X) \
	XL_CUDA_VMM_CALLS(X) \
	XL_CUDA_POOL_CALLS(X) \
	XL_CUDA_HOST_CALLS(X)

#define XL_CUDA_DEVICES(X) \
	X(init, "cuInit", "hipInit", 2000, CORE, (unsigned int flags)) \
	X(driver_get_version, "cuDriverGetVersion", "hipDriverGetVersion", 2020, CORE, (int *ret)) \
	X(get_error_name, "cuGetErrorName", "hipGetErrorName", 6000, CORE, \
	  (CUresult result, const char **ret)) \
	X(device_get_count, "cuDeviceGetCount", "hipGetDeviceCount", 2000, CORE, (int *ret)) \
	X(device_get, "cuDeviceGet", "hipDeviceGet", 2000, CORE, (CUdevice *ret, int ordinal)) \
	X(device_get_name, "cuDeviceGetName", "hipDeviceGetName", 2000, CORE, \
	  (char *ret, int bytes, CUdevice device)) \
	X(device_get_uuid, "cuDeviceGetUuid_v2", "hipDeviceGetUuid", 11040, CORE, \
	  (CUuuid *ret, CUdevice device)) \
	X(device_get_attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute", 2000, CORE, \
	  (int *ret, CUdevice_attribute what, CUdevice device)) \
	X(device_total_mem, "cuDeviceTotalMem_v2", "hipDeviceTotalMem", 3020, CORE, \
	  (size_t *ret, CUdevice device)) \
	X(device_can_access_peer, "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer", 4000, CORE, \
	  (int *ret, CUdevice device, CUdevice peer))

#define XL_CUDA_CONTEXTS(X) \
	X(device_primary_ctx_retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", \
	  7000, CORE, (CUcontext *ret, CUdevice device)) \
	X(device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", \
	  "hipDevicePrimaryCtxRelease", 11000, CORE, (CUdevice device)) \
	X(ctx_get_current, "cuCtxGetCurrent", "hipGetDevice", 4000, CORE, (CUcontext *ret)) \
	X(ctx_set_current, "cuCtxSetCurrent", "hipSetDevice", 4000, CORE, (CUcontext context)) \
	X(ctx_push_current, "cuCtxPushCurrent_v2", "hipSetDevice", 4000, CORE, \
	  (CUcontext context)) \
	X(ctx_pop_current, "cuCtxPopCurrent_v2", "hipGetDevice", 4000, CORE, (CUcontext *ret)) \
	X(ctx_get_device, "cuCtxGetDevice", "hipGetDevice", 2000, CORE, (CUdevice *ret)) \
	X(ctx_enable_peer_access, "cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess", 4000, \
	  CORE, (CUcontext peer, unsigned int flags)) \
	X(ctx_synchronize, "cuCtxSynchronize", "hipDeviceSynchronize", 2000, CORE, (void))

#define XL_CUDA_MEMORY(X) \
	X(mem_alloc, "cuMemAlloc_v2", "hipMalloc", 3020, CORE, (CUdeviceptr *ret, size_t bytes)) \
	X(mem_free, "cuMemFree_v2", "hipFree", 3020, CORE, (CUdeviceptr at)) \
	X(mem_get_info, "cuMemGetInfo_v2", "hipMemGetInfo", 3020, CORE, \
	  (size_t *ret_free, size_t *ret_all)) \
	X(mem_get_address_range, "cuMemGetAddressRange_v2", "hipMemGetAddressRange", 3020, CORE, \
	  (CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr at)) \
	X(pointer_get_attribute, "cuPointerGetAttribute", "hipPointerGetAttribute", 4000, CORE, \
	  (void *ret, CUpointer_attribute what, CUdeviceptr at))

#define XL_CUDA_COPIES(X) \
	X(memcpy_htod, "cuMemcpyHtoD_v2", "hipMemcpyHtoD", 3020, CORE, \
	  (CUdeviceptr to, const void *from, size_t bytes)) \
	X(memcpy_dtoh, "cuMemcpyDtoH_v2", "hipMemcpyDtoH", 3020, CORE, \
	  (void *to, CUdeviceptr from, size_t bytes)) \
	X(memcpy_htod_async, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", 3020, CORE, \
	  (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	X(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", 3020, CORE, \
	  (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", 3020, CORE, \
	  (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(memcpy_peer_async, "cuMemcpyPeerAsync", "hipMemcpyPeerAsync", 4000, CORE, \
	  (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, \
	   size_t bytes, CUstream stream))

#define XL_CUDA_STREAMS(X) \
	X(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags", 2000, CORE, \
	  (CUstream *ret, unsigned int flags)) \
	X(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", 4000, CORE, (CUstream stream)) \
	X(stream_query, "cuStreamQuery", "hipStreamQuery", 2000, CORE, (CUstream stream)) \
	X(stream_synchronize, "cuStreamSynchronize", "hipStreamSynchronize", 2000, CORE, \
	  (CUstream stream)) \
	X(stream_get_ctx, "cuStreamGetCtx", "hipStreamGetDevice", 9020, CORE, \
	  (CUstream stream, CUcontext *ret)) \
	X(launch_host_func, "cuLaunchHostFunc", "hipLaunchHostFunc", 10000, CORE, \
	  (CUstream stream, CUhostFn call, void *user)) \
	X(stream_write_value64, "cuStreamWriteValue64_v2", "hipStreamWriteValue64", 11070, MEMOPS, \
	  (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags)) \
	X(stream_wait_value64, "cuStreamWaitValue64_v2", "hipStreamWaitValue64", 11070, MEMOPS, \
	  (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags))

#define XL_CUDA_CAPTURE_CALLS(X) \
	X(stream_is_capturing, "cuStreamIsCapturing", "hipStreamIsCapturing", 10000, CAPTURE, \
	  (CUstream stream, CUstreamCaptureStatus *ret)) \
	X(thread_exchange_stream_capture_mode, "cuThreadExchangeStreamCaptureMode", \
	  "hipThreadExchangeStreamCaptureMode", 10010, CAPTURE, (CUstreamCaptureMode *mode))

#define XL_CUDA_EVENT_CALLS(X) \
	X(event_create, "cuEventCreate", "", 2000, EVENTS, (CUevent *ret, unsigned int flags)) \
	X(event_destroy, "cuEventDestroy_v2", "", 4000, EVENTS, (CUevent event)) \
	X(ctx_record_event, "cuCtxRecordEvent", "", 12050, EVENTS, \
	  (CUcontext context, CUevent event)) \
	X(stream_wait_event, "cuStreamWaitEvent", "", 3020, EVENTS, \
	  (CUstream stream, CUevent event, unsigned int flags))

#define XL_CUDA_IPC_CALLS(X) \
	X(ipc_get_mem_handle, "cuIpcGetMemHandle", "hipIpcGetMemHandle", 4010, IPC, \
	  (CUipcMemHandle *ret, CUdeviceptr at)) \
	X(ipc_open_mem_handle, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle", 11000, IPC, \
	  (CUdeviceptr *ret, CUipcMemHandle handle, unsigned int flags)) \
	X(ipc_close_mem_handle, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", 4010, IPC, \
	  (CUdeviceptr at))

#define XL_CUDA_VMM_CALLS(X) \
	X(mem_get_allocation_granularity, "cuMemGetAllocationGranularity", \
	  "hipMemGetAllocationGranularity", 10020, VMM, \
	  (size_t *ret, const CUmemAllocationProp *wanted, \
	   CUmemAllocationGranularity_flags which)) \
	X(mem_create, "cuMemCreate", "hipMemCreate", 10020, VMM, \
	  (CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *wanted, \
	   unsigned long long flags)) \
	X(mem_release, "cuMemRelease", "hipMemRelease", 10020, VMM, \
	  (CUmemGenericAllocationHandle handle)) \
	X(mem_retain_allocation_handle, "cuMemRetainAllocationHandle", \
	  "hipMemRetainAllocationHandle", 11000, VMM, \
	  (CUmemGenericAllocationHandle *ret, void *at)) \
	X(mem_address_reserve, "cuMemAddressReserve", "hipMemAddressReserve", 10020, VMM, \
	  (CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr wish, \
	   unsigned long long flags)) \
	X(mem_address_free, "cuMemAddressFree", "hipMemAddressFree", 10020, VMM, \
	  (CUdeviceptr at, size_t bytes)) \
	X(mem_map, "cuMemMap", "hipMemMap", 10020, VMM, \
	  (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, \
	   unsigned long long flags)) \
	X(mem_unmap, "cuMemUnmap", "hipMemUnmap", 10020, VMM, (CUdeviceptr at, size_t bytes)) \
	X(mem_set_access, "cuMemSetAccess", "hipMemSetAccess", 10020, VMM, \
	  (CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)) \
	X(mem_export, "cuMemExportToShareableHandle", "hipMemExportToShareableHandle", 10020, VMM, \
	  (void *ret, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, \
	   unsigned long long flags)) \
	X(mem_import, "cuMemImportFromShareableHandle", "hipMemImportFromShareableHandle", 10020, \
	  VMM, (CUmemGenericAllocationHandle *ret, void *file, CUmemAllocationHandleType type))

#define XL_CUDA_POOL_CALLS(X) \
	X(mem_pool_export, "cuMemPoolExportToShareableHandle", "", 11020, POOL, \
	  (void *ret, CUmemoryPool pool, CUmemAllocationHandleType type, \
	   unsigned long long flags)) \
	X(mem_pool_import, "cuMemPoolImportFromShareableHandle", "", 11020, POOL, \
	  (CUmemoryPool *ret, void *file, CUmemAllocationHandleType type, \
	   unsigned long long flags)) \
	X(mem_pool_export_pointer, "cuMemPoolExportPointer", "", 11020, POOL, \
	  (CUmemPoolPtrExportData *ret, CUdeviceptr at)) \
	X(mem_pool_import_pointer, "cuMemPoolImportPointer", "", 11020, POOL, \
	  (CUdeviceptr *ret, CUmemoryPool pool, CUmemPoolPtrExportData *data)) \
	X(mem_pool_set_access, "cuMemPoolSetAccess", "", 11020, POOL, \
	  (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)) \
	X(mem_pool_destroy, "cuMemPoolDestroy", "", 11020, POOL, (CUmemoryPool pool))

#define XL_CUDA_HOST_CALLS(X) \
	X(mem_host_register, "cuMemHostRegister_v2", "hipHostRegister", 6050, HOST, \
	  (void *at, size_t bytes, unsigned int flags)) \
	X(mem_host_unregister, "cuMemHostUnregister", "hipHostUnregister", 4000, HOST, (void *at)) \
	X(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2", \
	  "hipHostGetDevicePointer", 3020, HOST, (CUdeviceptr *ret, void *at, unsigned int flags))

#endif

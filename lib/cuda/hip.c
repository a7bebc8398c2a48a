// SPDX-License-Identifier: MIT
/*
 * The functions of HIP that differ from their counterparts in CUDA: hip.h. docs/cuda.md says which
 * versions of ROCm have which functions, and where that is written.
 */
#include <dlfcn.h>
#include <string.h>

#include "lib/cuda/hip.h"

bool xl_hip;

/* HIP's functions, in the fields of their counterparts, and those that have none. */
static struct xl_cuda hip;
static CUresult (*get_pci_bus_id)(char *ret, int bytes, int device);
static CUresult (*get_last_error)(void);

/* A function of HIP by the type that it has. */
#define HIP(field, parameters)	((CUresult (*) parameters)(void (*)(void))hip.field)

#define IMPORTS_VALUES	7010	/* the version from which an import takes a descriptor by value */
#define EXPORTS		6020	/* from which memory has descriptors */
#define TYPES_OF_CUDA	6000	/* from which the types of memory have CUDA's numbers */

/* ---- errors ---- */

const char *xl_hip_error_name(CUresult result)
{
	return ((const char *(*)(CUresult))(void (*)(void))hip.get_error_name)(result);
}

void xl_hip_forget_error(void)
{
	get_last_error();
}

/* Also of an error that the library expects. */
static CUresult forgotten(CUresult result)
{
	if (result)
		get_last_error();
	return result;
}

/* A function that differs in this only, or in a stream among its arguments. */
#define FORWARD(field, parameters, arguments)		\
static CUresult field parameters			\
{							\
	return forgotten(hip.field arguments);		\
}							\
_Static_assert(1, "")

/* ---- the driver and its devices ---- */

/* The version of HIP in the form of the table. HIP's has the decimals MMmmppppp. */
static CUresult driver_get_version(int *ret)
{
	int version = 0;
	CUresult result = hip.driver_get_version(&version);

	*ret = version / 10000000 * 1000 + version / 100000 % 100 * 10;
	return result;
}

static CUresult get_error_name(CUresult result, const char **ret)
{
	*ret = xl_hip_error_name(result);
	return CUDA_SUCCESS;
}

/* HIP's attributes. Their numbers have been these since ROCm 5.0. */
enum {
	CAN_USE_HOST_POINTER = 4,
	NATIVE_ATOMICS = 15,
	CAPABILITY_MAJOR = 23,
	CAPABILITY_MINOR = 61,
	VIRTUAL_MEMORY = 89,
	STREAM_WAIT_VALUE = 10013,
};

static CUresult device_get_attribute(int *ret, CUdevice_attribute what, CUdevice device)
{
	CUresult (*get)(int *, int, CUdevice) = HIP(device_get_attribute, (int *, int, CUdevice));

	*ret = 1;
	switch (what) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return get(ret, CAPABILITY_MAJOR, device);
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return get(ret, CAPABILITY_MINOR, device);
	case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
		return get(ret, NATIVE_ATOMICS, device);
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
		return get(ret, CAN_USE_HOST_POINTER, device);
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
		return get(ret, STREAM_WAIT_VALUE, device);
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		return get(ret, VIRTUAL_MEMORY, device);
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
		*ret = hip.version >= EXPORTS;
		return CUDA_SUCCESS;
	/* All of AMD's GPUs can do these, and HIP has no attributes for most of them. */
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/*
 * HIP's UUID is 16 characters. A GPU without one of its own has "XX", like all others of its kind,
 * and is named by its place on the bus instead.
 */
static CUresult device_get_uuid(CUuuid *ret, CUdevice device)
{
	char place[16] = "";
	CUresult result = hip.device_get_uuid(ret, device);

	if (result || (ret->bytes[0] && memcmp(ret->bytes, "XX", 2)))
		return result;
	result = get_pci_bus_id(place, sizeof(place), device);
	memcpy(ret->bytes, place, sizeof(ret->bytes));
	return result;
}

/* ---- contexts ---- */

static CUcontext context_of(int device)
{
	return (CUcontext)(uintptr_t)(device + 1);
}

static int device_of(CUcontext context)
{
	return (int)(uintptr_t)context - 1;
}

static CUresult device_primary_ctx_retain(CUcontext *ret, CUdevice device)
{
	CUresult result = hip.device_primary_ctx_retain(ret, device);

	*ret = context_of(device);
	return result;
}

static CUresult ctx_get_current(CUcontext *ret)
{
	int device = 0;
	CUresult result = hip.ctx_get_device(&device);

	*ret = context_of(device);
	return result;
}

static CUresult ctx_set_current(CUcontext context)
{
	return HIP(ctx_set_current, (int))(device_of(context));
}

/* There is no stack. The caller sets the context that was current before. */
static CUresult ctx_pop_current(CUcontext *ret)
{
	*ret = NULL;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult ctx_enable_peer_access(CUcontext peer, unsigned int flags)
{
	return forgotten(HIP(ctx_enable_peer_access, (int, unsigned int))
			 (device_of(peer), flags));
}

/* ---- memory ---- */

/*
 * HIP lacks some attributes. The answers here make the library try the handle, and nothing else.
 * HIP's access flags are those with which the memory was made.
 */
static CUresult pointer_get_attribute(void *ret, CUpointer_attribute what, CUdeviceptr at)
{
	CUresult result;

	switch (what) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		result = forgotten(hip.pointer_get_attribute(ret, what, at));
		if (!result && hip.version < TYPES_OF_CUDA)
			++*(u32 *)ret;
		return result;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return forgotten(hip.pointer_get_attribute(ret, what, at));
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)ret = true;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(u32 *)ret = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/*
 * HIP's function ends the process if the memory was not made by hipMemCreate, and does not count
 * the new reference. Only versions of 2026 do neither.
 */
static CUresult mem_retain_allocation_handle(CUmemGenericAllocationHandle *ret, void *at)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult mem_import(CUmemGenericAllocationHandle *ret, void *file,
			   CUmemAllocationHandleType type)
{
	int fd = (int)(uintptr_t)file;

	return hip.mem_import(ret, hip.version < IMPORTS_VALUES ? &fd : file, type);
}

FORWARD(ipc_get_mem_handle, (CUipcMemHandle *ret, CUdeviceptr at), (ret, at));
FORWARD(mem_get_allocation_granularity,
	(size_t *ret, const CUmemAllocationProp *wanted, CUmemAllocationGranularity_flags which),
	(ret, wanted, which));
FORWARD(mem_create, (CUmemGenericAllocationHandle *ret, size_t bytes,
		     const CUmemAllocationProp *wanted, unsigned long long flags),
	(ret, bytes, wanted, flags));
FORWARD(mem_set_access,
	(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count),
	(at, bytes, access, count));
FORWARD(mem_host_register, (void *at, size_t bytes, unsigned int flags), (at, bytes, flags));
FORWARD(mem_host_get_device_pointer, (CUdeviceptr *ret, void *at, unsigned int flags),
	(ret, at, flags));

/* ---- streams ---- */

/* Not all versions know this name of stream 0. */
static CUstream plain(CUstream stream)
{
	return stream == CU_STREAM_LEGACY ? NULL : stream;
}

FORWARD(memcpy_htod_async, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
	(to, from, bytes, plain(stream)));
FORWARD(memcpy_dtoh_async, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
	(to, from, bytes, plain(stream)));
FORWARD(memcpy_dtod_async, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
	(to, from, bytes, plain(stream)));
FORWARD(stream_query, (CUstream stream), (plain(stream)));
FORWARD(stream_synchronize, (CUstream stream), (plain(stream)));
FORWARD(stream_is_capturing, (CUstream stream, CUstreamCaptureStatus *ret), (plain(stream), ret));
FORWARD(launch_host_func, (CUstream stream, CUhostFn call, void *user),
	(plain(stream), call, user));
FORWARD(stream_write_value64,
	(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned int flags),
	(plain(stream), at, value, flags));

static CUresult memcpy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
				  CUcontext from_context, size_t bytes, CUstream stream)
{
	return HIP(memcpy_peer_async, (CUdeviceptr, int, CUdeviceptr, int, size_t, CUstream))
		(to, device_of(to_context), from, device_of(from_context), bytes, plain(stream));
}

static CUresult stream_get_ctx(CUstream stream, CUcontext *ret)
{
	int device = 0;
	CUresult result = HIP(stream_get_ctx, (CUstream, int *))(plain(stream), &device);

	*ret = context_of(device);
	return forgotten(result);
}

static CUresult stream_wait_value64(CUstream stream, CUdeviceptr at, cuuint64_t value,
				    unsigned int flags)
{
	return forgotten(HIP(stream_wait_value64,
			     (CUstream, CUdeviceptr, u64, unsigned int, u64))
			 (plain(stream), at, value, flags, ~0ULL));
}

/* ---- the table ---- */

bool xl_hip_is(void *library)
{
	return dlsym(library, "hipInit") && !dlsym(library, "cuInit");
}

static CUresult no_call(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

static void find(void *library, const char *symbol, void *ret)
{
	void *call = dlsym(library, symbol);

	if (!call)
		call = (void *)no_call;
	memcpy(ret, &call, sizeof(call));
}

void xl_hip_adapt(struct xl_cuda *table, void *library)
{
	hip = *table;
	find(library, "hipDeviceGetPCIBusId", &get_pci_bus_id);
	find(library, "hipGetLastError", &get_last_error);
	driver_get_version(&hip.version);
#define ADAPT(field)	(table->field = field)
	ADAPT(driver_get_version);
	ADAPT(get_error_name);
	ADAPT(device_get_attribute);
	ADAPT(device_get_uuid);
	ADAPT(device_primary_ctx_retain);
	ADAPT(ctx_get_current);
	ADAPT(ctx_set_current);
	table->ctx_push_current = ctx_set_current;
	ADAPT(ctx_pop_current);
	ADAPT(ctx_enable_peer_access);
	ADAPT(pointer_get_attribute);
	ADAPT(mem_retain_allocation_handle);
	ADAPT(mem_import);
	ADAPT(ipc_get_mem_handle);
	ADAPT(mem_get_allocation_granularity);
	ADAPT(mem_create);
	ADAPT(mem_host_get_device_pointer);
	ADAPT(mem_set_access);
	ADAPT(mem_host_register);
	ADAPT(memcpy_htod_async);
	ADAPT(memcpy_dtoh_async);
	ADAPT(memcpy_dtod_async);
	ADAPT(memcpy_peer_async);
	ADAPT(stream_query);
	ADAPT(stream_synchronize);
	ADAPT(stream_is_capturing);
	ADAPT(stream_get_ctx);
	ADAPT(launch_host_func);
	ADAPT(stream_write_value64);
	ADAPT(stream_wait_value64);
}

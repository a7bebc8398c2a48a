// SPDX-License-Identifier: MIT
/* The names of the errors that this driver gives, and their meanings. */
#include "fake.h"

static const struct { CUresult value; const char *name, *text; } errors[] = {
	{ FK_OK, "CUDA_SUCCESS", "no error" },
	{ FK_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ FK_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ FK_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ FK_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
	{ FK_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub" },
	{ FK_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ FK_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ FK_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "invalid kernel image" },
	{ FK_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ FK_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping failed" },
	{ FK_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED", "already mapped" },
	{ FK_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
	  "these devices cannot access each other" },
	{ FK_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "an OS call failed" },
	{ FK_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ FK_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the object is in another state" },
	{ FK_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ FK_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ FK_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
	  "an illegal memory access was encountered" },
	{ FK_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
	  "peer access is already enabled" },
	{ FK_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
	  "peer access has not been enabled" },
	{ FK_PRIMARY_CONTEXT_ACTIVE, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE",
	  "the primary context is active" },
	{ FK_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
	{ FK_TOO_MANY_PEERS, "CUDA_ERROR_TOO_MANY_PEERS", "peer mappings are exhausted" },
	{ FK_HOST_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	  "part or all of the memory is registered already" },
	{ FK_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	  "the pointer is not that of registered memory" },
	{ FK_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
	{ FK_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted" },
	{ FK_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the kernel's driver is another one" },
	{ 804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
	  "this device cannot be used in compatibility mode" },
	{ FK_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static int find(CUresult value)
{
	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].value == value)
			return i;
	return -1;
}

FK_DEFINE(cuGetErrorName, 6000, cuGetErrorName, FK_ANYTIME, CUresult error, const char **ret_name)
{
	int i = find(error);

	if (!ret_name)
		return FK_INVALID_VALUE;
	*ret_name = i < 0 ? NULL : errors[i].name;
	return i < 0 ? FK_INVALID_VALUE : FK_OK;
}

FK_DEFINE(cuGetErrorString, 6000, cuGetErrorString, FK_ANYTIME, CUresult error,
	  const char **ret_text)
{
	int i = find(error);

	if (!ret_text)
		return FK_INVALID_VALUE;
	*ret_text = i < 0 ? NULL : errors[i].text;
	return i < 0 ? FK_INVALID_VALUE : FK_OK;
}

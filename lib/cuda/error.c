// SPDX-License-Identifier: MIT
/* The table that turns the driver's results into errors of this library: error.h. */
#include <stdarg.h>
#include <stdio.h>

#include "lib/cuda/driver.h"

struct meaning {
	int result;
	int error;
	const char *name;
	const char *advice;	/* or NULL */
};

static const char lost[] =
	"the context is lost, so every call on that GPU fails until this process ends";
#define ADVISE(result, error, advice)	{ CUDA_##result, error, "CUDA_" #result, advice }
#define MEANS(result, error)		ADVISE(result, error, NULL)

/* A result that is not in the table has its name from the driver, and becomes EIO. */
static const struct meaning meanings[] = {
	MEANS(SUCCESS, EIO),
	MEANS(ERROR_INVALID_VALUE, EINVAL),
	MEANS(ERROR_OUT_OF_MEMORY, ENOMEM),
	ADVISE(ERROR_NOT_INITIALIZED, EOPNOTSUPP, "the driver lacks this call, or was not started"),
	ADVISE(ERROR_DEINITIALIZED, ESHUTDOWN,
	      "the driver has been torn down, because the process is ending"),
	ADVISE(ERROR_STUB_LIBRARY, ENODEV,
	      "this is the toolkit's library for linking and no driver"),
	ADVISE(ERROR_DEVICE_UNAVAILABLE, ENODEV, "another process may have the GPU for itself"),
	MEANS(ERROR_NO_DEVICE, ENODEV),
	MEANS(ERROR_INVALID_DEVICE, ENODEV),
	MEANS(ERROR_INVALID_CONTEXT, EINVAL),
	MEANS(ERROR_MAP_FAILED, EIO),
	MEANS(ERROR_UNMAP_FAILED, EIO),
	MEANS(ERROR_ALREADY_MAPPED, EALREADY),
	MEANS(ERROR_NOT_MAPPED, EINVAL),
	ADVISE(ERROR_ECC_UNCORRECTABLE, EIO, lost),
	MEANS(ERROR_PEER_ACCESS_UNSUPPORTED, EOPNOTSUPP),
	MEANS(ERROR_OPERATING_SYSTEM, EIO),
	MEANS(ERROR_INVALID_HANDLE, EINVAL),
	MEANS(ERROR_ILLEGAL_STATE, EINVAL),
	MEANS(ERROR_NOT_FOUND, ENOENT),
	MEANS(ERROR_NOT_READY, EAGAIN),
	ADVISE(ERROR_ILLEGAL_ADDRESS, EIO, lost),
	ADVISE(ERROR_LAUNCH_TIMEOUT, EIO, lost),
	MEANS(ERROR_PEER_ACCESS_ALREADY_ENABLED, EALREADY),
	MEANS(ERROR_PEER_ACCESS_NOT_ENABLED, EINVAL),
	MEANS(ERROR_CONTEXT_IS_DESTROYED, EINVAL),
	ADVISE(ERROR_ASSERT, EIO, lost),
	MEANS(ERROR_TOO_MANY_PEERS, EUSERS),
	MEANS(ERROR_HOST_MEMORY_ALREADY_REGISTERED, EALREADY),
	MEANS(ERROR_HOST_MEMORY_NOT_REGISTERED, EINVAL),
	ADVISE(ERROR_HARDWARE_STACK_ERROR, EIO, lost),
	ADVISE(ERROR_ILLEGAL_INSTRUCTION, EIO, lost),
	ADVISE(ERROR_MISALIGNED_ADDRESS, EIO, lost),
	ADVISE(ERROR_INVALID_ADDRESS_SPACE, EIO, lost),
	ADVISE(ERROR_INVALID_PC, EIO, lost),
	ADVISE(ERROR_LAUNCH_FAILED, EIO, lost),
	ADVISE(ERROR_NOT_PERMITTED, EPERM, "no call of the driver is allowed in its callbacks"),
	MEANS(ERROR_NOT_SUPPORTED, EOPNOTSUPP),
	ADVISE(ERROR_SYSTEM_NOT_READY, ENODEV, "is nvidia-fabricmanager running?"),
	ADVISE(ERROR_SYSTEM_DRIVER_MISMATCH, ENODEV,
	      "libcuda.so.1 and the kernel's driver are of different versions: update both, and "
	      "restart the machine or the container"),
	ADVISE(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, ENODEV,
	      "this libcuda.so.1 is of the forward compatibility package, which this GPU or its "
	      "kernel driver does not support"),
	ADVISE(ERROR_MPS_CONNECTION_FAILED, ENODEV, "is nvidia-cuda-mps-control running?"),
	MEANS(ERROR_MPS_RPC_FAILURE, ENODEV),
	MEANS(ERROR_MPS_SERVER_NOT_READY, ENODEV),
	MEANS(ERROR_MPS_MAX_CLIENTS_REACHED, EUSERS),
	MEANS(ERROR_MPS_MAX_CONNECTIONS_REACHED, EUSERS),
	ADVISE(ERROR_MPS_CLIENT_TERMINATED, EIO, lost),
	ADVISE(ERROR_STREAM_CAPTURE_UNSUPPORTED, EPERM, "a stream is being captured"),
	ADVISE(ERROR_STREAM_CAPTURE_INVALIDATED, EPERM, "a stream is being captured"),
	ADVISE(ERROR_STREAM_CAPTURE_IMPLICIT, EPERM, "a stream is being captured"),
	MEANS(ERROR_TIMEOUT, ETIMEDOUT),
	ADVISE(ERROR_EXTERNAL_DEVICE, EIO, lost),
	MEANS(ERROR_UNKNOWN, EIO),
	/* HIP's own; it shares the other numbers with CUDA. */
	{ 17, EINVAL, "hipErrorInvalidDevicePointer", NULL },
	{ 35, ENODEV, "hipErrorInsufficientDriver", "the kernel's amdgpu driver is too old" },
	{ 1052, ENOMEM, "hipErrorRuntimeMemory", NULL },
	{ 1053, EIO, "hipErrorRuntimeOther", NULL },
};

static const struct meaning *meaning_of(CUresult result)
{
	unsigned int i;

	for (i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (meanings[i].result == (int)result)
			return &meanings[i];
	return NULL;
}

const char *xl_cuda_known_name(CUresult result)
{
	const struct meaning *meaning = meaning_of(result);

	return meaning ? meaning->name : NULL;
}

bool xl_cuda_is_lost(CUresult result)
{
	const struct meaning *meaning = meaning_of(result);

	return meaning && meaning->advice == lost;
}

int xl_cuda_errno(CUresult result)
{
	const struct meaning *meaning = meaning_of(result);

	return meaning ? -meaning->error : -EIO;
}

const char *xl_cuda_advice(CUresult result)
{
	const struct meaning *meaning = meaning_of(result);

	return meaning && meaning->advice ? meaning->advice : "";
}

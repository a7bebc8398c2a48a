// SPDX-License-Identifier: MIT
/*
 * The functions of a small driver that return answers; see small.c.
 */
#include <stddef.h>
#include <string.h>

#include "small_answers.h"

static struct small own = { .devices = 1, .version = 12040 };
struct small *small = &own;

EXPORT small_use_function small_use;
EXPORT void small_use(struct small *used)
{
	small = used;
}

EXPORT CUresult cuInit(unsigned int flags);
EXPORT CUresult cuInit(unsigned int flags)
{
	small_called(&small->calls);
	small_called(&small->starts);
	if (small->in_start)
		small->in_start();
	return small->start;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	small_called(&small->calls);
	small_called(&small->releases);
	return small->release;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device)
{
	*ret = (CUcontext)&own;
	return small_called(&small->calls);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *ret);
EXPORT CUresult cuCtxGetCurrent(CUcontext *ret)
{
	*ret = NULL;
	return small_called(&small->calls);
}

EXPORT CUresult cuDriverGetVersion(int *ret);
EXPORT CUresult cuDriverGetVersion(int *ret)
{
	*ret = small->version;
	return small_called(&small->calls);
}

EXPORT CUresult cuDeviceGetCount(int *ret);
EXPORT CUresult cuDeviceGetCount(int *ret)
{
	*ret = small->devices;
	return small_called(&small->calls);
}

EXPORT CUresult cuDeviceGet(CUdevice *ret, int ordinal);
EXPORT CUresult cuDeviceGet(CUdevice *ret, int ordinal)
{
	*ret = ordinal;
	return small_called(&small->calls);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice device);
EXPORT CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice device)
{
	*ret = 1 << 30;
	return small_called(&small->calls);
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device);
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device)
{
	memset(ret->bytes, 0xa0 + device, sizeof(ret->bytes));
	return small_called(&small->calls);
}

/* Behave like a driver that cuts off the end of a name that is too long. */
EXPORT CUresult cuDeviceGetName(char *ret, int bytes, CUdevice device);
EXPORT CUresult cuDeviceGetName(char *ret, int bytes, CUdevice device)
{
	memset(ret, 'x', bytes);
	return small_called(&small->calls);
}

EXPORT CUresult cuGetErrorName(CUresult result, const char **ret);
EXPORT CUresult cuGetErrorName(CUresult result, const char **ret)
{
	*ret = (int)result == 12345 ? "CUDA_ERROR_OF_THE_FUTURE" : NULL;
	small_called(&small->calls);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// SPDX-License-Identifier: MIT
/*
 * A library in front of a real driver that makes its devices able to do less. For the numbers of
 * FAKECUDA_ATTRIBUTES ("122=0,99=0") it answers cuDeviceGetAttribute itself. All other calls go to
 * the driver, to which it is linked by the name libcuda.so.1 (cuda.mk).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cuda/types.h"

#define EXPORT	__attribute__((visibility("default")))

typedef CUresult get_attribute(int *value, int attribute, CUdevice device);

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	const char *at = getenv("FAKECUDA_ATTRIBUTES");
	get_attribute *next = (get_attribute *)dlsym(RTLD_NEXT, "cuDeviceGetAttribute");
	int number, instead;

	for (; at && sscanf(at, "%d=%d", &number, &instead) == 2; at = strchr(at, ',')) {
		at += *at == ',';
		if (number == attribute) {
			*value = instead;
			return CUDA_SUCCESS;
		}
	}
	return next ? next(value, attribute, device) : CUDA_ERROR_NOT_INITIALIZED;
}

// SPDX-License-Identifier: MIT
/*
 * A library that stands before a real driver and lets its devices be able to do less: the numbers
 * of FAKECUDA_ATTRIBUTES ("122=0,99=0") are its answer to cuDeviceGetAttribute. All else that it is
 * asked for is the driver's, which it is linked to by the name libcuda.so.1 (cuda.mk).
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

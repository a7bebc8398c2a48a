// SPDX-License-Identifier: MIT
/* The driver of GPUs, opened at run time as the library does; see driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

void driver_must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "bench: %s: the driver says %d\n", what, result);
	_Exit(2);
}

static void *find(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (function)
		return function;
	fprintf(stderr, "bench: the driver has no %s\n", name);
	_Exit(2);
}

const struct driver *driver_open(void)
{
	static struct driver driver;
	const char *name = getenv("XMEM_CUDA_DRIVER");
	void *library = dlopen(name && *name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	void *context;

	if (!library) {
		fprintf(stderr, "bench: %s\n", dlerror());
		_Exit(2);
	}
#define DRIVER_FIND(field, symbol, parameters) driver.field = find(library, #symbol);
	DRIVER_CALLS(DRIVER_FIND)
#undef DRIVER_FIND
	driver.calls = dlsym(library, "cuFakeCalls");
	driver_must(driver.init(0), "cuInit");
	driver_must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
	driver_must(driver.set_current(context), "cuCtxSetCurrent");
	return &driver;
}

// SPDX-License-Identifier: MIT
/* Memory of a GPU that the program has allocated itself, from the driver of XMEM_CUDA_DRIVER. */
#include <dlfcn.h>
#include <stdint.h>

#include <caml/alloc.h>
#include <caml/mlvalues.h>

/* Returns: the address, or 0 after an error. */
value xmem_test_allocated(value driver, value bytes)
{
	void *library = dlopen(String_val(driver), RTLD_NOW), *context = NULL;
	int (*init)(unsigned int), (*retain)(void **, int), (*enter)(void *);
	int (*allocate)(uint64_t *, size_t);
	uint64_t address = 0;

	if (!library)
		return caml_copy_nativeint(0);
	init = dlsym(library, "cuInit");
	retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	enter = dlsym(library, "cuCtxSetCurrent");
	allocate = dlsym(library, "cuMemAlloc_v2");
	if (init(0) || retain(&context, 0) || enter(context) || allocate(&address, Long_val(bytes)))
		address = 0;
	return caml_copy_nativeint(address);
}

// SPDX-License-Identifier: MIT
/*
 * Memory of a GPU that the program has allocated itself, from the driver of XMEM_CUDA_DRIVER; and
 * calls of the library during which a signal comes.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>

#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <xmem.h>

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

static int rings;		/* the next receive and the next acquire do */

value xmem_test_ring(value unit)
{
	rings = 1;
	return Val_unit;
}

static struct xmem_buffer *ring(struct xmem_buffer *buffer)
{
	if (buffer && rings) {
		rings = 0;
		raise(SIGUSR1);
	}
	return buffer;
}

/* The linker prefers these to the library's. */
struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns)
{
	struct xmem_buffer *(*real)(struct xmem_subscription *, int64_t) =
		dlsym(RTLD_NEXT, "xmem_receive");

	return ring(real(subscription, timeout_ns));
}

struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns)
{
	struct xmem_buffer *(*real)(struct xmem_pool *, size_t, int64_t) =
		dlsym(RTLD_NEXT, "xmem_acquire");

	return ring(real(pool, bytes, timeout_ns));
}

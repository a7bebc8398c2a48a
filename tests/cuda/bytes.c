// SPDX-License-Identifier: MIT
/* The functions of bytes.h. */
#include <dlfcn.h>
#include <stdlib.h>

#include "bytes.h"
#include "tests/fakecuda/tests.h"

/* The fake driver's descriptors are memfds, and a daemon takes those only if it is told to. */
__attribute__((constructor)) static void take_memfds(void)
{
	setenv("XMEM_DEVICE_FILES", "195:255,memfd", 0);
}

struct xmem_pool *cuda_writer(const char *name, unsigned int count, size_t bytes, uint32_t flags)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(make_on_gpu(pool, bytes, count, 0, flags));
	return pool;
}

struct xmem_buffer *cuda_acquire(struct xmem_pool *pool, size_t bytes)
{
	struct xmem_buffer *buffer = xmem_acquire_cuda(pool, bytes, 0, patience_ns());

	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	return buffer;
}

static void make(uint64_t *word, size_t bytes, uint64_t stamp)
{
	size_t i;

	for (i = 0; i < (bytes + 7) / 8; i++)
		word[i] = stamp * 0x9e3779b97f4a7c15ULL + i;
}

void cuda_fill(struct xmem_buffer *buffer, uint64_t stamp)
{
	size_t bytes = xmem_size(buffer);
	uint64_t *word = malloc(bytes + 8);

	CHECK(word);
	make(word, bytes, stamp);
	WORKED(xmem_copy_from_host(buffer, 0, word, bytes, NULL));
	free(word);
}

void cuda_check(struct xmem_buffer *buffer, uint64_t stamp)
{
	size_t bytes = xmem_size(buffer);
	uint64_t *word = malloc(bytes + 8), *got = malloc(bytes + 8);

	CHECK(word && got);
	make(word, bytes, stamp);
	WORKED(xmem_copy_to_host(got, buffer, 0, bytes, NULL));
	CHECK(!memcmp(word, got, bytes));
	free(word);
	free(got);
}

int publish_on(struct xmem_buffer *buffer, CUstream stream)
{
	return xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = stream), NULL);
}

int publish_kept_on(struct xmem_buffer *buffer, CUstream stream)
{
	return xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
			    .flags = XMEM_PUBLISH_KEEP, .stream = stream), NULL);
}

uint64_t cuda_publish(struct xmem_pool *pool, size_t bytes, uint64_t stamp,
		      struct xmem_buffer **ret_kept)
{
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *buffer = cuda_acquire(pool, bytes);
	uint64_t token;

	cuda_fill(buffer, stamp);
	WORKED(xmem_publish(buffer, ret_kept ? &keep : NULL, &token));
	if (ret_kept)
		*ret_kept = buffer;
	return token;
}

/* HIP's name of a function of CUDA's, of which this file and its users need few. */
static const char *hips_name(const char *name)
{
	static const char *const others[][2] = {
		{ "cuMemAllocAsync", "hipMallocAsync" },
		{ "cuMemAllocManaged", "hipMallocManaged" },
		{ "cuLaunchKernel", "hipModuleLaunchKernel" },
	};
	static char form[64];
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(name, others[i][0]))
			return others[i][1];
	snprintf(form, sizeof(form), "hip%.*s", (int)strcspn(name + 2, "_"), name + 2);
	return form;
}

void *driver_call(const char *name)
{
	void *driver = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	void *function = driver ? dlsym(driver, on_hip() ? hips_name(name) : name) : NULL;

	if (!function)
		FAIL("the driver has no %s", name);
	return function;
}

/* ---- the fake driver ---- */

void *fake(const char *name)
{
	void *driver = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	void *function = driver ? dlsym(driver, name) : NULL;

	if (!function)
		FAIL("only the fake driver has %s: this is for ON_FAKE or fake_only", name);
	return function;
}

unsigned long driver_calls(const char *name)
{
	return on_fake() ? ((typeof(cuFakeCalls) *)fake("cuFakeCalls"))(name) : 0;
}

void give_time(void)
{
	int i;

	for (i = 0; i < 20; i++)
		look_again_soon();
}

void driver_fails(const char *rules)
{
	SAME(((typeof(cuFakeFail) *)fake("cuFakeFail"))(rules), 0);
}

size_t gpu_used(void)
{
	return ((typeof(cuFakeUsed) *)fake("cuFakeUsed"))(0);
}

bool gpu_uses(size_t bytes)
{
	return !on_fake() || gpu_used() == bytes;
}

void until_used(struct xmem_pool *pool, size_t bytes)
{
	EVENTUALLY((stat_of(pool), gpu_uses(bytes)));
	if (!on_fake())
		EVENTUALLY(!stat_of(pool).bytes_cuda && !stat_of(pool).bytes_closing);
}

void no_violations(void)
{
	ON_FAKE(SAME(((typeof(cuFakeViolations) *)fake("cuFakeViolations"))(), 0));
}

/* The argument of cuMemPoolCreate. */
struct pool_properties {
	uint32_t type, handle_types, location[2];
	uint64_t reserved[9];
};

CUdeviceptr make_in_pool(size_t bytes)
{
	const struct pool_properties properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUresult (*create)(CUmemoryPool *, const void *) = driver_call("cuMemPoolCreate");
	CUresult (*alloc)(CUdeviceptr *, size_t, CUmemoryPool, CUstream) =
		driver_call("cuMemAllocFromPoolAsync");
	CUmemoryPool pool;
	CUdeviceptr at;

	SAME(create(&pool, &properties), 0);
	SAME(alloc(&at, bytes, pool, NULL), 0);
	SAME(xl_cuda()->ctx_synchronize(), 0);
	return at;
}

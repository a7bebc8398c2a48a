// SPDX-License-Identifier: MIT
/* Where memory and streams meet: pools, and memory that two processes have. */
#include <string.h>

#include "test.h"

#define BYTES (1 << 16)
#define USED_NOW 7		/* attribute of a pool */

static uint64_t used(void *pool)
{
	uint64_t bytes = ~0ull;

	OK(cuMemPoolGetAttribute(pool, USED_NOW, &bytes));
	return bytes;
}

static void pools_get_back_what_streams_free(void)
{
	CUdeviceptr at[ROUNDS];
	CUstream stream;
	void *pool;
	int i;

	begin(300);
	OK(cuStreamCreate(&stream, 1));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK(used(pool) == 0);
	for (i = 0; i < ROUNDS; i++) {
		OK(cuMemAllocAsync(&at[i], BYTES, stream));
		OK(cuMemsetD8Async(at[i], i, BYTES, stream));
	}
	OK(cuStreamSynchronize(stream));
	CHECK(used(pool) >= (uint64_t)ROUNDS * BYTES);
	for (i = 0; i < ROUNDS; i++)
		OK(cuMemFreeAsync(at[i], stream));
	OK(cuStreamSynchronize(stream));
	CHECK(used(pool) == 0);
	CHECK(cuFakeViolations() == 0);
}

/* The pool stays mapped, so the stream's context is not lost. */
static void memory_that_is_freed_in_use_is_a_violation(void)
{
	CUstream user, other;
	struct gate *gate;
	CUdeviceptr at;

	begin(0);
	OK(cuStreamCreate(&user, 1));
	OK(cuStreamCreate(&other, 1));
	OK(cuMemAllocAsync(&at, BYTES, user));
	gate = gate_in(user);
	OK(cuMemsetD8Async(at, 1, BYTES, user));
	OK(cuMemFreeAsync(at, other));
	OK(cuStreamSynchronize(other));
	CHECK(cuFakeViolations() == 0);
	gate_open(gate);
	OK(cuStreamSynchronize(user));
	CHECK(cuFakeViolations() == 1);
	OK(cuMemAllocAsync(&at, BYTES, user));
	OK(cuStreamSynchronize(user));
}

static void work_on_import(int fd)
{
	unsigned char seen;
	CUipcMemHandle handle;
	CUdeviceptr at;
	int i;

	begin(500);
	hear(fd, &handle, sizeof(handle));
	OK(cuIpcOpenMemHandle_v2(&at, handle, 1));
	for (i = 1; i < ROUNDS; i++) {
		tell(fd, "", 1);
		hear(fd, &seen, 1);
		OK(cuMemcpyDtoH_v2(&seen, at, 1));
		CHECK(seen == i);
		OK(cuMemsetD8Async(at, i + 100, 1, NULL));
		OK(cuStreamSynchronize(NULL));
	}
	OK(cuIpcCloseMemHandle(at));
	tell(fd, "", 1);
}

/* Each process sees what the other one writes. */
static void imported_memory_is_the_same(void)
{
	struct other other = other_begin(work_on_import);
	unsigned char seen = 100;
	CUipcMemHandle handle;
	CUdeviceptr at, base;
	size_t bytes;
	int i;

	begin(500);
	OK(cuMemAlloc_v2(&at, 4 << 20));
	OK(cuMemGetAddressRange_v2(&base, &bytes, at));
	CHECK(base == at && bytes >= 4 << 20);
	OK(cuIpcGetMemHandle(&handle, at));
	OK(cuMemcpyHtoD_v2(at, &seen, 1));
	tell(other.fd, &handle, sizeof(handle));
	for (i = 1; i < ROUNDS; i++) {
		char c;

		hear(other.fd, &c, 1);
		OK(cuMemcpyDtoH_v2(&seen, at, 1));
		CHECK(seen == i + 99);
		OK(cuMemsetD8Async(at, i, 1, NULL));
		OK(cuStreamSynchronize(NULL));
		tell(other.fd, &c, 1);
	}
	hear(other.fd, &seen, 1);
	other_end(other);
	OK(cuMemFree_v2(at));
	CHECK(cuFakeViolations() == 0);
}

const struct test memory_tests[] = {
	TEST(pools_get_back_what_streams_free),
	TEST(imported_memory_is_the_same),
	TEST(memory_that_is_freed_in_use_is_a_violation),
	{ 0 },
};

// SPDX-License-Identifier: MIT
/* Copies and fills that streams do later, and when a call waits for them. */
#include <string.h>
#include <sys/mman.h>

#include "test.h"

#define BYTES 65536

static void *registered(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	OK(cuMemHostRegister_v2(at, BYTES, 0));
	return at;
}

static CUdeviceptr allocated(void)
{
	CUdeviceptr at;

	OK(cuMemAlloc_v2(&at, BYTES));
	return at;
}

static bool is_all(const void *at, unsigned char value)
{
	const unsigned char *bytes = at;

	return bytes[0] == value && !memcmp(bytes, bytes + 1, BYTES - 1);
}

static void copies_with_registered_memory_come_later(void)
{
	unsigned char *from, *to;
	struct gate *gate;
	CUdeviceptr at;

	begin(0);
	from = registered();
	to = registered();
	at = allocated();
	gate = gate_in(NULL);
	OK(cuMemcpyHtoDAsync_v2(at, from, BYTES, NULL));
	OK(cuMemcpyDtoHAsync_v2(to, at, BYTES, NULL));
	CHECK(is_all(to, 0));
	memset(from, 7, BYTES);
	gate_open(gate);
	OK(cuStreamSynchronize(NULL));
	CHECK(is_all(to, 7));
}

static void other_memory_is_read_at_once(void)
{
	unsigned char from[BYTES], to[BYTES];
	struct gate *gate;
	CUdeviceptr at;

	begin(1000);
	at = allocated();
	gate = gate_in(NULL);
	memset(from, 3, BYTES);
	OK(cuMemcpyHtoDAsync_v2(at, from, BYTES, NULL));
	memset(from, 4, BYTES);
	gate_open(gate);
	OK(cuMemcpyDtoHAsync_v2(to, at, BYTES, NULL));
	CHECK(is_all(to, 3));
}

static void fills_and_copies_keep_their_order(void)
{
	unsigned char *to;
	CUdeviceptr a, b;
	CUstream stream;
	int i;

	begin(300);
	to = registered();
	a = allocated();
	b = allocated();
	OK(cuStreamCreate(&stream, 1));
	for (i = 1; i <= ROUNDS; i++) {
		OK(cuMemsetD8Async(a, i, BYTES, stream));
		OK(cuMemcpyDtoDAsync_v2(b, a, BYTES, stream));
		OK(cuMemsetD32Async(a, 0xeeeeeeee, BYTES / 4, stream));
		OK(cuMemcpyAsync((uintptr_t)to, b, BYTES, stream));
		OK(cuStreamSynchronize(stream));
		CHECK(is_all(to, i));
	}
}

/* A device may name registered memory of the CPU, so its address can be passed as a device's. */
static void registered_memory_has_a_device_address(void)
{
	unsigned char own[BYTES];
	unsigned char *at;

	begin(0);
	at = registered();
	OK(cuMemsetD8Async((uintptr_t)at, 5, BYTES, NULL));
	OK(cuMemcpyDtoHAsync_v2(own, (uintptr_t)at, BYTES, NULL));
	CHECK(is_all(own, 5));
	memset(own, 6, BYTES);
	OK(cuMemcpyHtoD_v2((uintptr_t)at, own, BYTES));
	CHECK(is_all(at, 6));
	memset(at, 7, BYTES);
	OK(cuMemcpyDtoH_v2(own, (uintptr_t)at, BYTES));
	CHECK(is_all(own, 7));
}

static void wrong_copies_are_refused(void)
{
	unsigned char own[16] = { 0 };
	CUdeviceptr at;

	begin(0);
	at = allocated();
	EXPECT(cuMemcpyHtoDAsync_v2((uintptr_t)own, own, 16, NULL), 1);
	EXPECT(cuMemcpyDtoHAsync_v2(own, (uintptr_t)own, 16, NULL), 1);
	EXPECT(cuMemsetD8Async((uintptr_t)own, 1, 16, NULL), 1);
	EXPECT(cuMemsetD32Async(at + 1, 1, 4, NULL), 1);
	EXPECT(cuMemcpyHtoDAsync_v2(at, own, 16, (CUstream)own), 400);
	OK(cuMemcpyHtoDAsync_v2(at, own, 0, NULL));
	OK(cuMemFree_v2(at));
	OK(cuCtxSynchronize());
	CHECK(own[0] == 0);
}

static void freeing_waits_for_streams(void)
{
	CUdeviceptr a, b;
	CUstream stream;
	unsigned char *to;

	begin(3000);
	a = allocated();
	b = allocated();
	to = registered();
	OK(cuStreamCreate(&stream, 1));
	OK(cuMemsetD8Async(a, 9, BYTES, stream));
	OK(cuMemcpyDtoDAsync_v2(b, a, BYTES, stream));
	OK(cuMemcpyDtoHAsync_v2(to, b, BYTES, stream));
	OK(cuMemFree_v2(a));
	OK(cuStreamQuery(stream));
	CHECK(is_all(to, 9));
}

static void copies_go_between_devices(void)
{
	unsigned char to[BYTES];
	CUcontext first, second;
	CUdeviceptr a, b;
	CUstream stream;
	int i;

	setenv("FAKECUDA_DEVICES", "2", 1);
	first = begin(300);
	a = allocated();
	OK(cuStreamCreate(&stream, 1));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	b = allocated();
	OK(cuCtxSetCurrent(first));
	for (i = 1; i < ROUNDS; i++) {
		OK(cuMemsetD8Async(a, i, BYTES, stream));
		OK(cuMemcpyPeerAsync(b, second, a, first, BYTES, stream));
		OK(cuMemsetD8Async(a, 0, BYTES, stream));
		OK(cuMemcpyPeerAsync(a, first, b, second, BYTES, stream));
		OK(cuMemcpyDtoHAsync_v2(to, a, BYTES, stream));
		CHECK(is_all(to, i));
	}
	EXPECT(cuMemcpyPeerAsync(b, NULL, a, first, BYTES, stream), 201);
}

/* The driver ends before its memory is freed, however much work is left. */
static void a_process_may_end_with_work_pending(void)
{
	CUdeviceptr a, b;
	CUstream stream;
	int i;

	begin(100);
	a = allocated();
	b = allocated();
	OK(cuStreamCreate(&stream, 1));
	for (i = 0; i < 1000; i++)
		OK(cuMemcpyDtoDAsync_v2(i % 2 ? a : b, i % 2 ? b : a, BYTES, stream));
	gate_in(NULL);
	OK(cuMemsetD8Async(a, 1, BYTES, NULL));
	exit(0);
}

const struct test copy_tests[] = {
	TEST(copies_with_registered_memory_come_later),
	TEST(other_memory_is_read_at_once),
	TEST(fills_and_copies_keep_their_order),
	TEST(registered_memory_has_a_device_address),
	TEST(wrong_copies_are_refused),
	TEST(freeing_waits_for_streams),
	TEST(copies_go_between_devices),
	TEST(a_process_may_end_with_work_pending),
	{ 0 },
};

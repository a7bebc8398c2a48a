// SPDX-License-Identifier: MIT
/* cuMemAlloc, copies, and properties of addresses. Rules 6, 7, and access from the CPU. */
#include <signal.h>
#include <sys/wait.h>

#include "test.h"

START_TEST(bad_calls_are_refused)
{
	CUdeviceptr ptr, other;

	begin();
	GIVES(FK_INVALID_VALUE, cuMemAlloc_v2(&ptr, 0));
	GIVES(FK_INVALID_VALUE, cuMemAlloc_v2(NULL, 1));
	GIVES(FK_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, 1ul << 40));
	GIVES(FK_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, SIZE_MAX));
	ptr = allocate(4096);
	other = allocate(4096);
	GIVES(FK_INVALID_VALUE, cuMemFree_v2(ptr + 512));
	GIVES(FK_INVALID_VALUE, cuMemFree_v2(4096));
	OK(cuMemFree_v2(ptr));
	GIVES(FK_INVALID_VALUE, cuMemFree_v2(ptr));
	OK(cuMemFree_v2(other));
	GIVES(FK_INVALID_VALUE, cuMemFree_v2(other));
	OK(cuMemFree_v2(0));
	ck_assert_uint_eq(cuFakeUsed(0), 0);
}
END_TEST

START_TEST(small_allocations_are_neighbours)
{
	CUdeviceptr a, b, base_a, base_b;
	size_t bytes;

	begin();
	a = allocate(1000);
	b = allocate(1000);
	ck_assert_uint_eq(b - a, 1024);
	OK(cuMemGetAddressRange_v2(&base_a, &bytes, a));
	OK(cuMemGetAddressRange_v2(&base_b, NULL, b + 7));
	ck_assert(base_a == base_b && bytes == BLOCK);
	option("RANGE", "allocation");
	OK(cuMemGetAddressRange_v2(&base_b, &bytes, b + 7));
	ck_assert(base_b == b && bytes == 1000);
	GIVES(FK_NOT_FOUND, cuMemGetAddressRange_v2(&base_b, &bytes, 4096));
	ck_assert_uint_eq(cuFakeUsed(0), BLOCK);
}
END_TEST

START_TEST(large_allocations_have_their_own_block)
{
	CUdeviceptr ptr = 0, base;
	size_t bytes, before, after, total;

	begin();
	OK(cuMemGetInfo_v2(&before, &total));
	ptr = allocate(5 * MIB);
	OK(cuMemGetInfo_v2(&after, NULL));
	ck_assert_uint_eq(before - after, 6 * MIB);
	OK(cuMemGetAddressRange_v2(&base, &bytes, ptr + 5 * MIB - 1));
	ck_assert(base == ptr && bytes == 6 * MIB && ptr % BLOCK == 0);
	OK(cuMemFree_v2(ptr));
	OK(cuMemGetInfo_v2(&after, NULL));
	ck_assert_uint_eq(after, before);
	ck_assert_uint_eq(total, 4096 * MIB);
}
END_TEST

START_TEST(copies_and_fills)
{
	unsigned int in[256], out[256] = { 0 };
	CUdeviceptr a, b;

	begin();
	a = allocate(sizeof(in));
	b = allocate(sizeof(in));
	ck_assert_int_eq(byte_at(a), 0xa5);	/* new memory is not filled with zeros */
	for (int i = 0; i < 256; i++)
		in[i] = i * 77777;
	OK(cuMemcpyHtoD_v2(a, in, sizeof(in)));
	OK(cuMemcpyDtoD_v2(b, a, sizeof(in)));
	OK(cuMemsetD8_v2(b, 0xff, 4));
	OK(cuMemsetD32_v2(b + 4, 12345678, 1));
	OK(cuMemcpyDtoH_v2(out, b, sizeof(out)));
	ck_assert(out[0] == 0xffffffff && out[1] == 12345678 && out[2] == 2 * 77777);
	ck_assert_int_eq(memcmp(in + 2, out + 2, sizeof(in) - 8), 0);
	GIVES(FK_INVALID_VALUE, cuMemcpyHtoD_v2(a, in, 2 * BLOCK));
	GIVES(FK_INVALID_VALUE, cuMemcpyHtoD_v2((uintptr_t)out, in, 4));
	GIVES(FK_INVALID_VALUE, cuMemcpyDtoH_v2(out, (uintptr_t)in, 4));
	GIVES(FK_INVALID_VALUE, cuMemsetD32_v2(a + 1, 0, 1));
	OK(cuMemFree_v2(b));
	GIVES(FK_INVALID_VALUE, cuMemcpyHtoD_v2(b, in, 4));
}
END_TEST

/* Reads one byte from the CPU in a process of its own. Returns the signal that ends it, or 0. */
static int signal_of_reading(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		volatile char *ptr;

		signal(SIGSEGV, SIG_DFL);	/* without a sanitizer's handler */
		begin();
		ptr = (volatile char *)(uintptr_t)allocate(4096);
		_exit(*ptr == 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(the_cpu_cannot_touch_device_memory)
{
	ck_assert_int_eq(signal_of_reading(), SIGSEGV);
	option("CPU_ACCESS", "allow");
	ck_assert_int_eq(signal_of_reading(), 0);
}
END_TEST

static void hold_four(int fd)
{
	begin();
	allocate(4 * MIB);
	go(fd);
	await(fd);
}

START_TEST(memory_is_counted_for_all_processes)
{
	char path[] = "/tmp/fakecuda-state-XXXXXX";
	struct other other;
	int fd = mkstemp(path);

	close(fd);
	option("STATE", path);
	other = other_start(hold_four);
	begin();
	await(other.fd);
	allocate(2 * MIB);
	ck_assert_uint_eq(cuFakeUsed(0), 6 * MIB);
	other_kill(&other);
	ck_assert_uint_eq(cuFakeUsed(0), 2 * MIB);
	unlink(path);
}
END_TEST

START_TEST(pointers_have_attributes)
{
	enum { TYPE = 2, ORDINAL = 9, LEGACY = 10, START = 11, MAPPED = 13, HANDLES = 14 };
	const int which[] = { TYPE, ORDINAL, LEGACY, START, MAPPED };
	unsigned int type = 0;
	bool legacy = false, mapped = false;
	CUdeviceptr start = 0, ptr;
	uint64_t handles = 1;
	int ordinal = 77;
	void *data[] = { &type, &ordinal, &legacy, &start, &mapped };

	begin();
	ptr = allocate(BLOCK);
	OK(cuPointerGetAttributes(5, which, data, ptr + 5));
	ck_assert(type == 2 && ordinal == 0 && legacy && start == ptr && mapped);
	OK(cuPointerGetAttribute(&handles, HANDLES, ptr));
	ck_assert_uint_eq(handles, 0);
	GIVES(FK_INVALID_VALUE, cuPointerGetAttribute(&type, TYPE, (uintptr_t)&type));
	OK(cuPointerGetAttributes(5, which, data, (uintptr_t)&type));
	ck_assert(type == 0 && ordinal == -2 && !legacy && !start && !mapped);
}
END_TEST

START_TEST(managed_memory_is_of_the_cpu_too)
{
	bool managed = false, legacy = true;
	CUipcMemHandle handle;
	unsigned char *cpu;
	CUdeviceptr ptr, other;

	begin();
	GIVES(FK_INVALID_VALUE, cuMemAllocManaged(&ptr, 0, 1));
	GIVES(FK_INVALID_VALUE, cuMemAllocManaged(&ptr, 64, 0));
	OK(cuMemAllocManaged(&ptr, 100, 1));
	cpu = (unsigned char *)(uintptr_t)ptr;
	cpu[99] = 7;
	other = allocate(100);
	OK(cuMemcpyDtoD_v2(other, ptr, 100));
	OK(cuMemsetD8_v2(ptr, 3, 100));
	ck_assert_int_eq(cpu[99], 3);
	OK(cuMemcpyDtoD_v2(ptr, other, 100));
	ck_assert_int_eq(cpu[99], 7);
	OK(cuPointerGetAttribute(&managed, 8, ptr));
	OK(cuPointerGetAttribute(&legacy, 10, ptr));
	ck_assert(managed && !legacy);
	GIVES(FK_INVALID_VALUE, cuIpcGetMemHandle(&handle, ptr));
	OK(cuMemFree_v2(ptr));
	OK(cuMemFree_v2(other));
	ck_assert_uint_eq(cuFakeUsed(0), 0);
}
END_TEST

TCase *alloc_tests(void)
{
	TCase *tcase = tcase_create("alloc");

	tcase_add_test(tcase, bad_calls_are_refused);
	tcase_add_test(tcase, small_allocations_are_neighbours);
	tcase_add_test(tcase, large_allocations_have_their_own_block);
	tcase_add_test(tcase, copies_and_fills);
	tcase_add_test(tcase, the_cpu_cannot_touch_device_memory);
	tcase_add_test(tcase, memory_is_counted_for_all_processes);
	tcase_add_test(tcase, pointers_have_attributes);
	tcase_add_test(tcase, managed_memory_is_of_the_cpu_too);
	return tcase;
}

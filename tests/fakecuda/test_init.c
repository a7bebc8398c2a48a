// SPDX-License-Identifier: MIT
/* The frame: states of a process, counters, injected errors, symbols. Rules 1-5, 47, 50, 52. */
#include <sys/wait.h>

#include "test.h"

START_TEST(nothing_works_before_init)
{
	CUdeviceptr ptr;
	int value;

	GIVES(FK_NOT_INITIALIZED, cuDeviceGetCount(&value));
	GIVES(FK_NOT_INITIALIZED, cuMemAlloc_v2(&ptr, 1));
	OK(cuDriverGetVersion(&value));
	ck_assert_int_eq(value, 13000);
	GIVES(FK_INVALID_VALUE, cuInit(1));
	OK(cuInit(0));
	OK(cuInit(0));
	OK(cuDeviceGetCount(&value));
	ck_assert_int_eq(value, 1);
}
END_TEST

START_TEST(nothing_works_in_a_forked_child)
{
	CUdeviceptr ptr;
	int value, status;
	pid_t pid;

	begin();
	ptr = allocate(4096);
	pid = fork();
	if (!pid) {
		GIVES(FK_NOT_INITIALIZED, cuInit(0));
		GIVES(FK_NOT_INITIALIZED, cuDeviceGetCount(&value));
		GIVES(FK_NOT_INITIALIZED, cuMemFree_v2(ptr));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	OK(cuMemFree_v2(ptr));
}
END_TEST

START_TEST(a_machine_may_have_no_device)
{
	option("DEVICES", "0");
	GIVES(FK_NO_DEVICE, cuInit(0));
}
END_TEST

START_TEST(the_library_may_be_a_stub)
{
	int value;

	option("MODE", "stub");
	GIVES(FK_STUB_LIBRARY, cuInit(0));
	GIVES(FK_STUB_LIBRARY, cuDriverGetVersion(&value));
}
END_TEST

START_TEST(init_may_fail_for_other_reasons)
{
	option("INIT", "803");
	GIVES(803, cuInit(0));
	option("INIT", "0");
	OK(cuInit(0));
}
END_TEST

START_TEST(memory_needs_a_current_context)
{
	CUipcMemHandle handle = { { 0 } };
	CUdeviceptr ptr;

	OK(cuInit(0));
	GIVES(FK_INVALID_CONTEXT, cuMemAlloc_v2(&ptr, 1));
	GIVES(FK_INVALID_CONTEXT, cuMemFree_v2(0));
	GIVES(FK_INVALID_CONTEXT, cuIpcGetMemHandle(&handle, 0));
	GIVES(FK_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, handle, 1));
	GIVES(FK_INVALID_CONTEXT, cuIpcCloseMemHandle(0));
	GIVES(FK_INVALID_CONTEXT, cuMemHostRegister_v2(&ptr, 4096, 0));
	GIVES(FK_INVALID_CONTEXT, cuCtxSynchronize());
}
END_TEST

START_TEST(calls_are_counted)
{
	CUdeviceptr ptr;

	begin();
	ck_assert_uint_eq(cuFakeCalls("cuMemAlloc"), 0);
	OK(cuMemFree_v2(allocate(1)));
	GIVES(FK_INVALID_VALUE, cuMemAlloc_v2(&ptr, 0));
	ck_assert_uint_eq(cuFakeCalls("cuMemAlloc"), 2);
	ck_assert_uint_eq(cuFakeCalls("cuMemAlloc_v2"), 2);
	ck_assert_uint_eq(cuFakeCalls(NULL), 6);
}
END_TEST

START_TEST(errors_can_be_injected)
{
	CUdeviceptr ptr;

	begin();
	ck_assert_int_eq(cuFakeFail("cuMemAlloc:2:2,cuCtxSynchronize:1+:719"), 0);
	OK(cuMemFree_v2(allocate(1)));
	GIVES(FK_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, 1));
	OK(cuMemFree_v2(allocate(1)));
	GIVES(FK_LAUNCH_FAILED, cuCtxSynchronize());
	GIVES(FK_LAUNCH_FAILED, cuCtxSynchronize());
	ck_assert_int_eq(cuFakeFail(NULL), 0);
	OK(cuCtxSynchronize());
	ck_assert_int_eq(cuFakeFail("nonsense"), -1);
	ck_assert_int_eq(take_violations("'nonsense' is no rule"), 1);
}
END_TEST

START_TEST(an_error_may_stick)
{
	CUdeviceptr ptr;
	int value;

	begin();
	ck_assert_int_eq(cuFakeFail("cuCtxSynchronize:1:700!"), 0);
	GIVES(FK_ILLEGAL_ADDRESS, cuCtxSynchronize());
	GIVES(FK_ILLEGAL_ADDRESS, cuMemAlloc_v2(&ptr, 1));
	GIVES(FK_ILLEGAL_ADDRESS, cuCtxSynchronize());
	OK(cuDeviceGetCount(&value));
	cuFakeSticky(0);
	OK(cuMemFree_v2(allocate(1)));
}
END_TEST

START_TEST(the_driver_ends_before_the_process)
{
	CUdeviceptr ptr;
	int value;

	begin();
	ptr = allocate(1);
	cuFakeEnd();
	GIVES(FK_DEINITIALIZED, cuMemFree_v2(ptr));
	GIVES(FK_DEINITIALIZED, cuDeviceGetCount(&value));
	GIVES(FK_DEINITIALIZED, cuInit(0));
}
END_TEST

/* A handler that was registered before cuInit runs after the driver's end. */
static int late;

static void free_late(void)
{
	if (cuMemFree_v2(1) != FK_DEINITIALIZED)
		_exit(1);
	give(late, "", 1);
}

static void exit_with_a_late_handler(int fd)
{
	late = fd;
	atexit(free_late);
	begin();
	allocate(1);
}

START_TEST(handlers_at_exit_find_no_driver)
{
	struct other other = other_start(exit_with_a_late_handler);

	await(other.fd);
	other_end(&other);
}
END_TEST

START_TEST(functions_are_found_by_version)
{
	void *function, *newer;
	int status;

	OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 1, &status));
	ck_assert(function == (void *)cuMemAlloc_v2 && status == 0);
	OK(cuGetProcAddress_v2("cuMemCreate", &function, 9000, 1, &status));
	ck_assert(!function && status == 2);
	OK(cuGetProcAddress_v2("cuNothing", &function, 12000, 1, &status));
	ck_assert(!function && status == 1);
	OK(cuGetProcAddress_v2("cuDeviceGetUuid", &function, 11040, 1, NULL));
	OK(cuGetProcAddress_v2("cuDeviceGetUuid", &newer, 11030, 1, NULL));
	ck_assert(function == (void *)cuDeviceGetUuid_v2 && newer && newer != function);
	OK(cuGetProcAddress_v2("cuMemcpyHtoD", &function, 12000, 2, NULL));
	OK(cuGetProcAddress_v2("cuMemcpyHtoD", &newer, 12000, 0, NULL));
	ck_assert(function && newer == (void *)cuMemcpyHtoD_v2 && newer != function);
	GIVES(FK_INVALID_VALUE, cuGetProcAddress_v2("cuMemAlloc", &function, 99000, 1, &status));
	option("NEWER", "null");
	OK(cuGetProcAddress_v2("cuMemAlloc", &function, 99000, 1, &status));
	ck_assert(!function && status == 2);
	option("VERSION", "9000");
	OK(cuGetProcAddress_v2("cuMemCreate", &function, 9000, 1, &status));
	ck_assert(!function && status == 1);
}
END_TEST

START_TEST(errors_have_names)
{
	const char *name;

	OK(cuGetErrorName(FK_INVALID_CONTEXT, &name));
	ck_assert_str_eq(name, "CUDA_ERROR_INVALID_CONTEXT");
	GIVES(FK_INVALID_VALUE, cuGetErrorName(4711, &name));
	ck_assert(!name);
}
END_TEST

TCase *init_tests(void)
{
	TCase *tcase = tcase_create("init");

	tcase_add_test(tcase, nothing_works_before_init);
	tcase_add_test(tcase, nothing_works_in_a_forked_child);
	tcase_add_test(tcase, a_machine_may_have_no_device);
	tcase_add_test(tcase, the_library_may_be_a_stub);
	tcase_add_test(tcase, init_may_fail_for_other_reasons);
	tcase_add_test(tcase, memory_needs_a_current_context);
	tcase_add_test(tcase, calls_are_counted);
	tcase_add_test(tcase, errors_can_be_injected);
	tcase_add_test(tcase, an_error_may_stick);
	tcase_add_test(tcase, the_driver_ends_before_the_process);
	tcase_add_test(tcase, handlers_at_exit_find_no_driver);
	tcase_add_test(tcase, functions_are_found_by_version);
	tcase_add_test(tcase, errors_have_names);
	return tcase;
}

// SPDX-License-Identifier: MIT
/* Registered memory of the CPU. Rule 48. */
#include <fcntl.h>
#include <sys/mman.h>

#include "test.h"

#define PAGE 4096

static char *pages(size_t count, int prot)
{
	char *at = mmap(NULL, count * PAGE, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(at != MAP_FAILED);
	return at;
}

START_TEST(ranges_are_registered_once)
{
	char *at = pages(4, PROT_READ | PROT_WRITE);
	CUdeviceptr ptr;

	begin();
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(NULL, PAGE, 0));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at, 0, 0));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at + 8, PAGE, 0));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at, PAGE + 8, 0));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at, PAGE, 64));
	GIVES(FK_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&ptr, at, 0));
	OK(cuMemHostRegister_v2(at, 2 * PAGE, 3));
	GIVES(FK_HOST_ALREADY_REGISTERED, cuMemHostRegister_v2(at + PAGE, 2 * PAGE, 0));
	OK(cuMemHostRegister_v2(at + 2 * PAGE, PAGE, 0));
	OK(cuMemHostGetDevicePointer_v2(&ptr, at + 100, 0));
	ck_assert_uint_eq(ptr, (uintptr_t)at + 100);
	GIVES(FK_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&ptr, at, 1));
	GIVES(FK_HOST_NOT_REGISTERED, cuMemHostUnregister(at + PAGE));
	OK(cuMemHostUnregister(at));
	GIVES(FK_HOST_NOT_REGISTERED, cuMemHostUnregister(at));
}
END_TEST

START_TEST(what_cannot_be_pinned_is_refused)
{
	char *at = pages(4, PROT_READ | PROT_WRITE), *sealed = pages(1, PROT_READ);

	begin();
	ck_assert_int_eq(munmap(at + PAGE, PAGE), 0);
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at, 3 * PAGE, 0));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at + PAGE, PAGE, 0));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(sealed, PAGE, 0));
	OK(cuMemHostRegister_v2(sealed, PAGE, 8));
	GIVES(FK_INVALID_VALUE,
	      cuMemHostRegister_v2((void *)(uintptr_t)allocate(BLOCK), PAGE, 0));
	GIVES(FK_NOT_SUPPORTED, cuMemHostRegister_v2(at, PAGE, 4));
	option("ATTRIBUTES", "113=0");
	GIVES(FK_NOT_SUPPORTED, cuMemHostRegister_v2(at, PAGE, 8));
	OK(cuMemHostRegister_v2(at, PAGE, 0));
}
END_TEST

/*
 * The kernel's own mapping of bare page frames, which a process has as a rule; NULL: it has none.
 */
static void *page_frames(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar]"))
			sscanf(line, "%lx", &start);
	if (maps)
		fclose(maps);
	return (void *)start;
}

START_TEST(page_frames_cannot_be_pinned)
{
	void *at = page_frames();

	begin();
	if (at)
		GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2(at, PAGE, 8));
	GIVES(FK_INVALID_VALUE, cuMemHostRegister_v2((void *)PAGE, PAGE, 8));
}
END_TEST

START_TEST(unmapping_what_is_registered_is_a_violation)
{
	char *at = pages(1, PROT_READ | PROT_WRITE);

	begin();
	OK(cuMemHostRegister_v2(at, PAGE, 0));
	ck_assert_int_eq(munmap(at, PAGE), 0);
	OK(cuMemHostUnregister(at));
	ck_assert_int_eq(take_violations("unmapped before it was unregistered"), 1);
}
END_TEST

START_TEST(the_driver_makes_such_memory)
{
	CUdeviceptr ptr;
	void *at;

	begin();
	OK(cuMemHostAlloc(&at, 100, 2));
	memset(at, 1, 100);
	OK(cuMemHostGetDevicePointer_v2(&ptr, at, 0));
	GIVES(FK_HOST_NOT_REGISTERED, cuMemHostUnregister(at));
	OK(cuMemFreeHost(at));
	GIVES(FK_INVALID_VALUE, cuMemFreeHost(at));
}
END_TEST

TCase *host_tests(void)
{
	TCase *tcase = tcase_create("host");

	tcase_add_test(tcase, ranges_are_registered_once);
	tcase_add_test(tcase, what_cannot_be_pinned_is_refused);
	tcase_add_test(tcase, page_frames_cannot_be_pinned);
	tcase_add_test(tcase, unmapping_what_is_registered_is_a_violation);
	tcase_add_test(tcase, the_driver_makes_such_memory);
	return tcase;
}

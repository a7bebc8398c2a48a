// SPDX-License-Identifier: MIT
/* Virtual memory management in one process. Rules 35, 39, 40, 42. */
#include "test.h"

static CUmemAllocationProp prop(void)
{
	return (CUmemAllocationProp) {
		.type = 1, .handle_types = FK_POSIX_FD, .location = { FK_DEVICE, 0 },
	};
}

static CUresult create_with(CUmemAllocationProp how, size_t bytes)
{
	CUhandle handle;

	return cuMemCreate(&handle, bytes, &how, 0);
}

START_TEST(bad_memory_is_refused)
{
	CUmemAllocationProp how = prop();
	CUhandle handle;
	size_t bytes;

	OK(cuInit(0));		/* no context is needed */
	OK(cuMemGetAllocationGranularity(&bytes, &how, 0));
	ck_assert_uint_eq(bytes, BLOCK);
	GIVES(FK_INVALID_VALUE, create_with(how, 0));
	GIVES(FK_INVALID_VALUE, create_with(how, MIB));
	GIVES(FK_OUT_OF_MEMORY, create_with(how, 1ul << 40));
	GIVES(FK_INVALID_VALUE, cuMemCreate(&handle, BLOCK, &how, 1));
	how.type = 2;
	GIVES(FK_INVALID_VALUE, create_with(how, BLOCK));
	how = prop();
	how.location.type = FK_HOST;
	GIVES(FK_INVALID_VALUE, create_with(how, BLOCK));
	how = prop();
	how.location.id = 3;
	GIVES(FK_INVALID_DEVICE, create_with(how, BLOCK));
	how = prop();
	how.handle_types = FK_FABRIC;
	GIVES(FK_NOT_SUPPORTED, create_with(how, BLOCK));
	option("ATTRIBUTES", "103=0");
	GIVES(FK_NOT_SUPPORTED, create_with(prop(), BLOCK));
	how = prop();
	how.handle_types = 0;
	OK(create_with(how, BLOCK));
}
END_TEST

START_TEST(a_handle_is_released_once)
{
	CUhandle handle;

	OK(cuInit(0));
	handle = create(BLOCK);
	ck_assert_uint_eq(cuFakeUsed(0), BLOCK);
	OK(cuMemRelease(handle));
	GIVES(FK_INVALID_VALUE, cuMemRelease(handle));
	GIVES(FK_INVALID_VALUE, cuMemRelease((CUhandle)&handle));
	ck_assert_uint_eq(cuFakeUsed(0), 0);
}
END_TEST

START_TEST(addresses_are_freed_as_reserved)
{
	CUdeviceptr ptr, hint;
	CUhandle handle;

	OK(cuInit(0));
	GIVES(FK_INVALID_VALUE, cuMemAddressReserve(&ptr, MIB, 0, 0, 0));
	GIVES(FK_INVALID_VALUE, cuMemAddressReserve(&ptr, BLOCK, 3, 0, 0));
	OK(cuMemAddressReserve(&ptr, 2 * BLOCK, 64 * MIB, 0, 0));
	ck_assert_uint_eq(ptr % (64 * MIB), 0);
	hint = ptr + 16 * BLOCK;
	OK(cuMemAddressReserve(&hint, BLOCK, 0, hint, 0));
	ck_assert_uint_eq(hint, ptr + 16 * BLOCK);
	GIVES(FK_INVALID_VALUE, cuMemAddressFree(ptr, BLOCK));
	GIVES(FK_INVALID_VALUE, cuMemAddressFree(ptr + BLOCK, BLOCK));
	handle = create(BLOCK);
	OK(cuMemMap(ptr, BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemAddressFree(ptr, 2 * BLOCK));
	OK(cuMemUnmap(ptr, BLOCK));
	OK(cuMemAddressFree(ptr, 2 * BLOCK));
	GIVES(FK_INVALID_VALUE, cuMemAddressFree(ptr, 2 * BLOCK));
}
END_TEST

START_TEST(mappings_are_whole)
{
	CUhandle handle;
	CUdeviceptr ptr;

	OK(cuInit(0));
	handle = create(2 * BLOCK);
	OK(cuMemAddressReserve(&ptr, 4 * BLOCK, 0, 0, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr, 2 * BLOCK, BLOCK, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr, BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr + 3 * BLOCK, 2 * BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr + 8 * BLOCK, 2 * BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr, 2 * BLOCK, 0, (CUhandle)&handle, 0));
	OK(cuMemMap(ptr, 2 * BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr, 2 * BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemMap(ptr + BLOCK, 2 * BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemUnmap(ptr, BLOCK));
	GIVES(FK_INVALID_VALUE, cuMemUnmap(ptr, 4 * BLOCK));
	OK(cuMemMap(ptr + 2 * BLOCK, 2 * BLOCK, 0, handle, 0));
	OK(cuMemUnmap(ptr, 4 * BLOCK));
	GIVES(FK_INVALID_VALUE, cuMemUnmap(ptr, 2 * BLOCK));
}
END_TEST

START_TEST(access_must_be_given)
{
	CUmemAccessDesc access = { { FK_DEVICE, 0 }, FK_READ | FK_WRITE };
	CUhandle handle;
	CUdeviceptr ptr;

	begin();
	handle = create(BLOCK);
	OK(cuMemAddressReserve(&ptr, BLOCK, 0, 0, 0));
	GIVES(FK_INVALID_VALUE, cuMemSetAccess(ptr, BLOCK, &access, 1));
	OK(cuMemMap(ptr, BLOCK, 0, handle, 0));
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(ptr, 1, 1));
	option("NO_ACCESS", "700");
	GIVES(FK_ILLEGAL_ADDRESS, cuMemsetD8_v2(ptr, 1, 1));
	GIVES(FK_INVALID_VALUE, cuMemSetAccess(ptr, BLOCK, &access, 0));
	GIVES(FK_INVALID_VALUE, cuMemSetAccess(ptr, MIB, &access, 1));
	OK(cuMemSetAccess(ptr, BLOCK, &access, 1));
	OK(cuMemsetD8_v2(ptr, 1, BLOCK));
	access.flags = FK_READ;
	OK(cuMemSetAccess(ptr, BLOCK, &access, 1));
	GIVES(FK_ILLEGAL_ADDRESS, cuMemsetD8_v2(ptr, 1, 1));
	ck_assert_int_eq(byte_at(ptr), 1);
	access.location.id = 1;
	GIVES(FK_INVALID_DEVICE, cuMemSetAccess(ptr, BLOCK, &access, 1));
}
END_TEST

START_TEST(mappings_hold_the_memory)
{
	CUmemAllocationProp how;
	CUhandle handle, again;
	CUdeviceptr ptr;

	begin();
	handle = create(BLOCK);
	ptr = map(handle, BLOCK);
	OK(cuMemsetD8_v2(ptr, 9, 1));
	OK(cuMemRelease(handle));
	GIVES(FK_INVALID_VALUE, cuMemRelease(handle));
	ck_assert_int_eq(byte_at(ptr), 9);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(ptr + 77)));
	OK(cuMemGetAllocationPropertiesFromHandle(&how, again));
	ck_assert(how.handle_types == FK_POSIX_FD && how.location.type == FK_DEVICE);
	OK(cuMemRelease(again));
	ck_assert_uint_eq(cuFakeUsed(0), BLOCK);
	unmap(ptr, BLOCK);
	ck_assert_uint_eq(cuFakeUsed(0), 0);
	GIVES(FK_INVALID_VALUE,
	      cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)allocate(1)));
}
END_TEST

START_TEST(allocations_side_by_side_are_one_range)
{
	CUmemAccessDesc access = { { FK_DEVICE, 0 }, FK_READ | FK_WRITE };
	static char bytes[2 * BLOCK], back[2 * BLOCK];
	CUdeviceptr ptr;

	begin();
	OK(cuMemAddressReserve(&ptr, 2 * BLOCK, 0, 0, 0));
	OK(cuMemMap(ptr, BLOCK, 0, create(BLOCK), 0));
	GIVES(FK_INVALID_VALUE, cuMemcpyHtoD_v2(ptr, bytes, 2 * BLOCK));
	OK(cuMemMap(ptr + BLOCK, BLOCK, 0, create(BLOCK), 0));
	OK(cuMemSetAccess(ptr, 2 * BLOCK, &access, 1));
	memset(bytes, 1, BLOCK);
	memset(bytes + BLOCK, 2, BLOCK);
	OK(cuMemcpyHtoD_v2(ptr, bytes, 2 * BLOCK));
	OK(cuMemcpyDtoH_v2(back, ptr, 2 * BLOCK));
	ck_assert_int_eq(memcmp(bytes, back, sizeof(bytes)), 0);
}
END_TEST

TCase *vmm_tests(void)
{
	TCase *tcase = tcase_create("vmm");

	tcase_add_test(tcase, bad_memory_is_refused);
	tcase_add_test(tcase, a_handle_is_released_once);
	tcase_add_test(tcase, addresses_are_freed_as_reserved);
	tcase_add_test(tcase, mappings_are_whole);
	tcase_add_test(tcase, access_must_be_given);
	tcase_add_test(tcase, mappings_hold_the_memory);
	tcase_add_test(tcase, allocations_side_by_side_are_one_range);
	return tcase;
}

// SPDX-License-Identifier: MIT
/* Devices and contexts: what a process sees of them, and what it counts. Rules 26, 27, 51. */
#include "test.h"

START_TEST(devices_can_be_hidden)
{
	CUuuid second, first;
	int count;

	option("DEVICES", "3");
	setenv("CUDA_VISIBLE_DEVICES", "2,0,7,1", 1);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	ck_assert_int_eq(count, 2);	/* 7 does not exist, and hides the devices after it */
	OK(cuDeviceGetUuid_v2(&first, 0));
	OK(cuDeviceGetUuid_v2(&second, 1));
	ck_assert_int_eq(first.bytes[15], 2);
	ck_assert_int_eq(second.bytes[15], 0);
	GIVES(FK_INVALID_DEVICE, cuDeviceGet(&count, 2));
}
END_TEST

START_TEST(devices_can_be_named_by_uuid)
{
	CUuuid uuid;
	int count;

	option("DEVICES", "3");
	setenv("CUDA_VISIBLE_DEVICES", "GPU-66616b65-6375-6461-4000-800000000102", 1);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	ck_assert_int_eq(count, 1);
	OK(cuDeviceGetUuid_v2(&uuid, 0));
	ck_assert_int_eq(uuid.bytes[15], 2);
}
END_TEST

START_TEST(no_visible_device_is_none)
{
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	GIVES(FK_NO_DEVICE, cuInit(0));
}
END_TEST

START_TEST(attributes_can_be_set)
{
	int value;

	option("ATTRIBUTES", "102=0,103=0");
	OK(cuInit(0));
	OK(cuDeviceGetAttribute(&value, 102, 0));
	ck_assert_int_eq(value, 0);
	OK(cuDeviceGetAttribute(&value, 125, 0));
	ck_assert_int_eq(value, 1);
	GIVES(FK_INVALID_VALUE, cuDeviceGetAttribute(&value, 9999, 0));
	GIVES(FK_INVALID_DEVICE, cuDeviceGetAttribute(&value, 1, 5));
}
END_TEST

START_TEST(peers_are_a_matrix)
{
	CUcontext one, other;
	int can;

	option("DEVICES", "3");
	option("PEERS", "0-1");
	OK(cuInit(0));
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	ck_assert_int_eq(can, 1);
	OK(cuDeviceCanAccessPeer(&can, 2, 1));
	ck_assert_int_eq(can, 0);
	OK(cuDeviceCanAccessPeer(&can, 1, 1));
	ck_assert_int_eq(can, 0);
	OK(cuDevicePrimaryCtxRetain(&one, 1));
	OK(cuDevicePrimaryCtxRetain(&other, 2));
	use_device(0);
	OK(cuCtxEnablePeerAccess(one, 0));
	GIVES(FK_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(one, 0));
	GIVES(FK_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(other, 0));
}
END_TEST

START_TEST(peers_are_exhausted)
{
	CUcontext context;

	option("DEVICES", "3");
	option("MAX_PEERS", "1");
	OK(cuInit(0));
	use_device(0);
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuCtxEnablePeerAccess(context, 0));
	OK(cuDevicePrimaryCtxRetain(&context, 2));
	GIVES(FK_TOO_MANY_PEERS, cuCtxEnablePeerAccess(context, 0));
}
END_TEST

START_TEST(primary_contexts_are_counted)
{
	CUcontext one, two;
	unsigned int flags;
	int active;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&one, 0));
	OK(cuDevicePrimaryCtxRetain(&two, 0));
	ck_assert_ptr_eq(one, two);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ck_assert_int_eq(active, 1);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	GIVES(FK_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
	GIVES(FK_INVALID_CONTEXT, cuCtxSetCurrent(one));
}
END_TEST

START_TEST(the_last_release_frees_the_memory)
{
	CUdeviceptr ptr;

	begin();
	ptr = allocate(3 * MIB);
	ck_assert_uint_eq(cuFakeUsed(0), 4 * MIB);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	ck_assert_uint_eq(cuFakeUsed(0), 0);
	GIVES(FK_CONTEXT_IS_DESTROYED, cuMemFree_v2(ptr));
}
END_TEST

START_TEST(contexts_are_a_stack)
{
	CUcontext primary, own, got;
	CUdevice device;

	option("DEVICES", "2");
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 1));
	OK(cuCtxPushCurrent_v2(primary));
	OK(cuCtxCreate_v2(&own, 0, 0));
	OK(cuCtxGetDevice(&device));
	ck_assert_int_eq(device, 0);
	OK(cuCtxPopCurrent_v2(&got));
	ck_assert_ptr_eq(got, own);
	OK(cuCtxGetDevice(&device));
	ck_assert_int_eq(device, 1);
	OK(cuCtxDestroy_v2(own));
	GIVES(FK_INVALID_CONTEXT, cuCtxPushCurrent_v2(own));
	OK(cuCtxPopCurrent_v2(NULL));
	GIVES(FK_INVALID_CONTEXT, cuCtxPopCurrent_v2(NULL));
	OK(cuCtxGetCurrent(&got));
	ck_assert_ptr_null(got);
}
END_TEST

TCase *device_tests(void)
{
	TCase *tcase = tcase_create("device");

	tcase_add_test(tcase, devices_can_be_hidden);
	tcase_add_test(tcase, devices_can_be_named_by_uuid);
	tcase_add_test(tcase, no_visible_device_is_none);
	tcase_add_test(tcase, attributes_can_be_set);
	tcase_add_test(tcase, peers_are_a_matrix);
	tcase_add_test(tcase, peers_are_exhausted);
	tcase_add_test(tcase, primary_contexts_are_counted);
	tcase_add_test(tcase, the_last_release_frees_the_memory);
	tcase_add_test(tcase, contexts_are_a_stack);
	return tcase;
}

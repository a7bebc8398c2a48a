// SPDX-License-Identifier: MIT
/* Memory pools, in one process and between two. Rules 43 to 45. */
#include "test.h"

#include <sys/socket.h>

enum { USED_CURRENT = 7, USED_HIGH = 8 };

static CUmemoryPool make_pool(unsigned int handle_types)
{
	CUmemPoolProps props = {
		.type = 1, .handle_types = handle_types, .location = { FK_DEVICE, 0 },
	};
	CUmemoryPool pool = NULL;

	OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

static CUdeviceptr from(CUmemoryPool pool, size_t bytes)
{
	CUdeviceptr ptr = 0;

	OK(cuMemAllocFromPoolAsync(&ptr, bytes, pool, NULL));
	return ptr;
}

static uint64_t attribute(CUmemoryPool pool, int which)
{
	uint64_t value = 0;

	OK(cuMemPoolGetAttribute(pool, which, &value));
	return value;
}

START_TEST(streams_allocate_and_free)
{
	CUmemoryPool pool;
	CUdeviceptr ptr, empty;

	begin();
	pool = make_pool(0);
	ptr = from(pool, 4000);
	empty = from(pool, 0);
	ck_assert(empty && empty != ptr);
	OK(cuMemsetD8_v2(ptr, 3, 4000));
	ck_assert_int_eq(byte_at(ptr), 3);
	ck_assert_uint_eq(attribute(pool, USED_CURRENT), 4096 + 512);
	OK(cuMemFreeAsync(ptr, NULL));
	GIVES(FK_INVALID_VALUE, cuMemFreeAsync(ptr, NULL));
	OK(cuMemFree_v2(empty));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(attribute(pool, USED_CURRENT), 0);
	ck_assert_uint_eq(attribute(pool, USED_HIGH), 4096 + 512);
	ck_assert_uint_eq(cuFakeUsed(0), 0);
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(ptr, 0, 1));
}
END_TEST

START_TEST(a_destroyed_pool_lives_until_all_is_freed)
{
	CUmemoryPool pool;
	CUdeviceptr ptr;

	begin();
	pool = make_pool(0);
	ptr = from(pool, 1);
	OK(cuMemPoolDestroy(pool));
	GIVES(FK_INVALID_VALUE, cuMemPoolDestroy(pool));
	GIVES(FK_INVALID_VALUE, cuMemAllocFromPoolAsync(&ptr, 1, pool, NULL));
	OK(cuMemsetD8_v2(ptr, 3, 1));
	OK(cuMemFreeAsync(ptr, NULL));
}
END_TEST

START_TEST(a_device_has_a_current_pool)
{
	CUmemoryPool pool, standard, found;
	CUdeviceptr ptr;

	begin();
	pool = make_pool(0);
	OK(cuDeviceGetDefaultMemPool(&standard, 0));
	GIVES(FK_INVALID_VALUE, cuMemPoolDestroy(standard));
	OK(cuMemAllocAsync(&ptr, 1, NULL));
	OK(cuPointerGetAttribute(&found, 17, ptr));
	ck_assert_ptr_eq(found, standard);
	OK(cuDeviceSetMemPool(0, pool));
	OK(cuMemAllocAsync(&ptr, 1, NULL));
	OK(cuPointerGetAttribute(&found, 17, ptr));
	ck_assert_ptr_eq(found, pool);
}
END_TEST

START_TEST(not_all_can_be_exported)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	int fd;

	begin();
	pool = make_pool(0);
	GIVES(FK_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, FK_POSIX_FD, 0));
	GIVES(FK_INVALID_VALUE, cuMemPoolExportPointer(&data, from(pool, 1)));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	GIVES(FK_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, FK_POSIX_FD, 0));
	GIVES(FK_INVALID_VALUE, cuMemPoolExportPointer(&data, allocate(1)));
}
END_TEST

START_TEST(other_devices_need_access)
{
	CUmemAccessDesc access = { { FK_DEVICE, 1 }, FK_READ | FK_WRITE };
	CUmemoryPool pool;
	CUdeviceptr ptr;

	option("DEVICES", "2");
	begin();
	pool = make_pool(0);
	ptr = from(pool, 1);
	OK(cuCtxSynchronize());		/* or the other device might be faster than that stream */
	use_device(1);
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(ptr, 0, 1));
	OK(cuMemPoolSetAccess(pool, &access, 1));
	OK(cuMemsetD8_v2(ptr, 0, 1));
	access = (CUmemAccessDesc) { { FK_DEVICE, 0 }, 0 };
	GIVES(FK_INVALID_VALUE, cuMemPoolSetAccess(pool, &access, 1));
}
END_TEST

/* ---- Between two processes ---- */

/*
 * Send two pools as descriptors, and two pointers of the first one; then 'f' frees the first
 * pointer.
 */
static void serve(int fd)
{
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pools[2];
	CUdeviceptr ptr[2];
	char what;
	int shared;

	begin();
	for (int i = 0; i < 2; i++) {
		pools[i] = make_pool(FK_POSIX_FD);
		OK(cuMemPoolExportToShareableHandle(&shared, pools[i], FK_POSIX_FD, 0));
		give_fd(fd, shared);
		ptr[i] = from(pools[0], 4096);
		OK(cuMemsetD8_v2(ptr[i], 5 + i, 4096));
		OK(cuMemPoolExportPointer(&data[i], ptr[i]));
	}
	give(fd, data, sizeof(data));
	for (take(fd, &what, 1); what == 'f'; take(fd, &what, 1)) {
		OK(cuMemFree_v2(ptr[0]));
		go(fd);
	}
}

static struct other server(CUmemoryPool *pools, CUmemPoolPtrExportData *data)
{
	struct other other = other_start(serve);

	begin();
	for (int i = 0; i < 2; i++)
		OK(cuMemPoolImportFromShareableHandle(
			   &pools[i], (void *)(intptr_t)take_fd(other.fd), FK_POSIX_FD, 0));
	take(other.fd, data, 2 * sizeof(*data));
	return other;
}

static void end(struct other *other)
{
	give(other->fd, "x", 1);
	other_end(other);
}

START_TEST(pointers_are_imported)
{
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pools[2];
	struct other other = server(pools, data);
	CUdeviceptr ptr, second;
	int fd;

	OK(cuMemPoolImportPointer(&second, pools[0], &data[1]));
	ck_assert_int_eq(byte_at(second), 6);
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(second - 4096, 0, 1));	/* not imported yet */
	OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	ck_assert_int_eq(byte_at(ptr), 5);
	GIVES(FK_INVALID_VALUE, cuMemPoolImportPointer(&ptr, pools[1], &data[0]));
	memset(&data[1], 0x11, sizeof(data[1]));
	GIVES(FK_INVALID_VALUE, cuMemPoolImportPointer(&ptr, pools[0], &data[1]));
	GIVES(FK_INVALID_VALUE, cuMemAllocFromPoolAsync(&ptr, 1, pools[0], NULL));
	GIVES(FK_INVALID_VALUE, cuDeviceSetMemPool(0, pools[0]));
	GIVES(FK_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pools[0], FK_POSIX_FD, 0));
	end(&other);
}
END_TEST

START_TEST(importers_free_first)
{
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pools[2];
	struct other other = server(pools, data);
	CUdeviceptr ptr;

	OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	OK(cuMemFree_v2(ptr));
	GIVES(FK_INVALID_VALUE, cuMemFree_v2(ptr));
	OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	give(other.fd, "f", 1);
	await(other.fd);
	ck_assert_int_eq(take_violations("which 1 process(es) have imported"), 1);
	OK(cuMemFreeAsync(ptr, NULL));
	GIVES(FK_INVALID_VALUE, cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	end(&other);
}
END_TEST

static void wait_for_byte(void *fd)
{
	char byte;

	take(*(int *)fd, &byte, 1);
}

START_TEST(streams_free_imports)
{
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pools[2];
	struct other other = server(pools, data);
	CUstream stream;
	CUdeviceptr ptr;
	int gate[2];

	ck_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, gate));
	OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	OK(cuStreamCreate(&stream, 1));
	OK(cuLaunchHostFunc(stream, wait_for_byte, &gate[0]));
	OK(cuMemsetD8Async(ptr, 9, 4096, stream));
	OK(cuMemFreeAsync(ptr, stream));
	GIVES(FK_INVALID_VALUE, cuMemFreeAsync(ptr, stream));
	give(gate[1], "x", 1);
	OK(cuStreamSynchronize(stream));
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(ptr, 0, 1));
	OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	ck_assert_int_eq(byte_at(ptr), 9);
	end(&other);
}
END_TEST

START_TEST(double_imports_are_counted)
{
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pools[2];
	struct other other = server(pools, data);
	CUdeviceptr ptr;

	for (int i = 0; i < 2; i++)
		OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	OK(cuMemFreeAsync(ptr, NULL));
	ck_assert_int_eq(byte_at(ptr), 5);
	OK(cuMemFreeAsync(ptr, NULL));
	for (int i = 0; i < 2; i++)
		OK(cuMemPoolImportPointer(&ptr, pools[0], &data[0]));
	option("POOL_DOUBLE", "bug");
	OK(cuMemFreeAsync(ptr, NULL));
	OK(cuStreamSynchronize(NULL));
	GIVES(FK_INVALID_VALUE, cuMemsetD8_v2(ptr, 0, 1));
	end(&other);
}
END_TEST

TCase *pool_tests(void)
{
	TCase *tcase = tcase_create("pool");

	tcase_add_test(tcase, streams_allocate_and_free);
	tcase_add_test(tcase, a_destroyed_pool_lives_until_all_is_freed);
	tcase_add_test(tcase, a_device_has_a_current_pool);
	tcase_add_test(tcase, not_all_can_be_exported);
	tcase_add_test(tcase, other_devices_need_access);
	tcase_add_test(tcase, pointers_are_imported);
	tcase_add_test(tcase, importers_free_first);
	tcase_add_test(tcase, streams_free_imports);
	tcase_add_test(tcase, double_imports_are_counted);
	return tcase;
}

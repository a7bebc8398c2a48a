// SPDX-License-Identifier: MIT
/* Legacy IPC on the exporter's side, and handles that cannot be opened. Rules 8 to 17. */
#include <sched.h>
#include <sys/wait.h>

#include "test.h"

/* An exporter that passes the handle and the address on, and lives until it is told to end. */
struct offer {
	CUipcMemHandle handle;
	CUdeviceptr ptr;
};

static struct offer make_offer(size_t bytes)
{
	struct offer offer = { .ptr = allocate(bytes) };

	OK(cuIpcGetMemHandle(&offer.handle, offer.ptr));
	return offer;
}

static void export_one(int fd)
{
	struct offer offer;

	begin();
	offer = make_offer(BLOCK);
	give(fd, &offer, sizeof(offer));
	await(fd);
}

START_TEST(only_legacy_memory_has_a_handle)
{
	CUipcMemHandle handle;
	CUdeviceptr pooled, virtual;
	CUhandle memory;

	begin();
	OK(cuMemAllocAsync(&pooled, 4096, NULL));
	OK(cuCtxSynchronize());
	memory = create(BLOCK);
	virtual = map(memory, BLOCK);
	GIVES(FK_INVALID_VALUE, cuIpcGetMemHandle(&handle, pooled));
	GIVES(FK_INVALID_VALUE, cuIpcGetMemHandle(&handle, virtual));
	GIVES(FK_INVALID_VALUE, cuIpcGetMemHandle(&handle, (uintptr_t)&handle));
	GIVES(FK_INVALID_VALUE, cuIpcGetMemHandle(NULL, allocate(1)));
}
END_TEST

START_TEST(a_handle_is_the_same_until_the_memory_is_freed)
{
	CUipcMemHandle first, again, other;
	CUdeviceptr ptr, reused;

	begin();
	ptr = allocate(BLOCK);
	OK(cuIpcGetMemHandle(&first, ptr));
	OK(cuIpcGetMemHandle(&again, ptr + 12345));
	ck_assert_int_eq(memcmp(&first, &again, sizeof(first)), 0);
	OK(cuMemFree_v2(ptr));
	reused = allocate(BLOCK);
	ck_assert_uint_eq(reused, ptr);
	OK(cuIpcGetMemHandle(&other, reused));
	ck_assert_int_ne(memcmp(&first, &other, sizeof(first)), 0);
}
END_TEST

START_TEST(the_exporter_cannot_open_its_own)
{
	struct offer offer;
	CUdeviceptr ptr;

	begin();
	offer = make_offer(BLOCK);
	GIVES(FK_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
}
END_TEST

START_TEST(another_pid_namespace_cannot_open_it)
{
	struct other other = other_start(export_one);
	struct offer offer;
	CUdeviceptr ptr;

	option("PID_NAMESPACE", "4711");
	begin();
	take(other.fd, &offer, sizeof(offer));
	GIVES(FK_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
	go(other.fd);
	other_end(&other);
}
END_TEST

/* A real namespace, which only root can make: the first child is in it. */
static void open_in_namespace(int fd)
{
	struct offer offer;
	CUdeviceptr ptr;
	int status;
	pid_t pid;

	take(fd, &offer, sizeof(offer));
	ck_assert_int_eq(unshare(CLONE_NEWPID), 0);
	pid = fork();
	if (!pid) {
		begin();
		GIVES(FK_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	_exit(0);	/* a sanitizer's work at exit() needs one namespace */
}

START_TEST(a_real_pid_namespace_is_another)
{
	struct other exporter = other_start(export_one), importer;
	struct offer offer;

	take(exporter.fd, &offer, sizeof(offer));
	importer = other_start(open_in_namespace);
	give(importer.fd, &offer, sizeof(offer));
	other_end(&importer);
	go(exporter.fd);
	other_end(&exporter);
}
END_TEST

START_TEST(another_user_cannot_open_it)
{
	struct other other = other_start(export_one);
	struct offer offer;
	CUdeviceptr ptr;

	begin();
	take(other.fd, &offer, sizeof(offer));
	ck_assert_int_eq(seteuid(65534), 0);
	GIVES(FK_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
	option("OTHER_USER", "1");
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
	ck_assert_int_eq(seteuid(0), 0);
	go(other.fd);
	other_end(&other);
}
END_TEST

START_TEST(the_flag_must_be_there)
{
	struct other other = other_start(export_one);
	struct offer offer;
	CUdeviceptr ptr;

	begin();
	take(other.fd, &offer, sizeof(offer));
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 0));
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 2));
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(NULL, offer.handle, 1));
	option("IPC_FLAGS", "any");
	OK(cuIpcOpenMemHandle_v2(&ptr, offer.handle, 0));
	go(other.fd);
	other_end(&other);
}
END_TEST

START_TEST(garbage_is_no_handle)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;

	begin();
	memset(&handle, 0x5a, sizeof(handle));
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(&ptr, handle, 1));
	option("GARBAGE", "400");
	GIVES(FK_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&ptr, handle, 1));
}
END_TEST

static void free_after_export(int fd)
{
	struct offer offer;

	begin();
	offer = make_offer(4096);
	allocate(4096);			/* its block stays */
	OK(cuMemFree_v2(offer.ptr));
	give(fd, &offer, sizeof(offer));
	await(fd);
}

START_TEST(what_is_freed_cannot_be_opened)
{
	struct other other = other_start(free_after_export);
	struct offer offer;
	CUdeviceptr ptr;

	begin();
	take(other.fd, &offer, sizeof(offer));
	GIVES(FK_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
	option("GONE", "1");
	GIVES(FK_INVALID_VALUE, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
	go(other.fd);
	other_end(&other);
}
END_TEST

START_TEST(the_exporter_must_live)
{
	struct other other = other_start(export_one);
	struct offer offer;
	CUdeviceptr ptr;

	begin();
	take(other.fd, &offer, sizeof(offer));
	other_kill(&other);
	GIVES(FK_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&ptr, offer.handle, 1));
}
END_TEST

TCase *ipc_tests(void)
{
	TCase *tcase = tcase_create("ipc");

	tcase_add_test(tcase, only_legacy_memory_has_a_handle);
	tcase_add_test(tcase, a_handle_is_the_same_until_the_memory_is_freed);
	tcase_add_test(tcase, the_exporter_cannot_open_its_own);
	tcase_add_test(tcase, another_pid_namespace_cannot_open_it);
	tcase_add_test(tcase, the_flag_must_be_there);
	tcase_add_test(tcase, garbage_is_no_handle);
	tcase_add_test(tcase, what_is_freed_cannot_be_opened);
	tcase_add_test(tcase, the_exporter_must_live);
	if (is_root("a_real_pid_namespace_is_another"))
		tcase_add_test(tcase, a_real_pid_namespace_is_another);
	if (is_root("another_user_cannot_open_it"))
		tcase_add_test(tcase, another_user_cannot_open_it);
	return tcase;
}

// SPDX-License-Identifier: MIT
/* Virtual memory as a descriptor: who may import it, and how long it lives. Rules 36 to 41. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "test.h"

static int export_fd(CUhandle handle)
{
	struct stat st;
	int fd = -1;

	OK(cuMemExportToShareableHandle(&fd, handle, FK_POSIX_FD, 0));
	ck_assert_int_ge(fd, 0);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	/* With a device it is a file of that device, so that hosts see what a real driver gives. */
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(S_ISCHR(st.st_mode) != 0, getenv("FAKECUDA_DEVICE_FILE") != NULL);
	return fd;
}

static CUhandle import(int fd)
{
	CUhandle handle = NULL;

	OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FK_POSIX_FD));
	return handle;
}

START_TEST(the_type_must_have_been_asked_for)
{
	CUmemAllocationProp prop = { .type = 1, .location = { FK_DEVICE, 0 } };
	CUhandle handle;
	int fd;

	OK(cuInit(0));
	OK(cuMemCreate(&handle, BLOCK, &prop, 0));
	GIVES(FK_INVALID_VALUE, cuMemExportToShareableHandle(&fd, handle, FK_POSIX_FD, 0));
	option("EXPORT_TYPE", "801");
	GIVES(FK_NOT_SUPPORTED, cuMemExportToShareableHandle(&fd, handle, FK_POSIX_FD, 0));
	GIVES(FK_NOT_SUPPORTED, cuMemExportToShareableHandle(&fd, create(BLOCK), FK_FABRIC, 0));
	GIVES(FK_INVALID_VALUE, cuMemExportToShareableHandle(&fd, create(BLOCK), FK_POSIX_FD, 1));
}
END_TEST

/*
 * A child exports memory and lives until it is told to end, or is killed. Then only the test has
 * the descriptor.
 */
static void export_four(int to)
{
	begin();
	give_fd(to, export_fd(create(4 * MIB)));
	await(to);
}

START_TEST(memory_is_in_use_as_long_as_a_descriptor_is_open)
{
	char path[] = "/tmp/fakecuda-state-XXXXXX";
	struct other other;
	int fd = mkstemp(path);

	if (getenv("FAKECUDA_DEVICE_FILE"))
		return;
	close(fd);
	option("STATE", path);
	other = other_start(export_four);
	fd = take_fd(other.fd);
	begin();
	ck_assert_uint_eq(cuFakeUsed(0), 4 * MIB);
	other_kill(&other);
	ck_assert_uint_eq(cuFakeUsed(0), 4 * MIB);
	close(fd);
	ck_assert_uint_eq(cuFakeUsed(0), 0);
	unlink(path);
}
END_TEST

START_TEST(other_files_are_no_memory)
{
	int files[] = {
		-1, open("/dev/null", O_RDWR | O_CLOEXEC), memfd_create("x", MFD_CLOEXEC),
		open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	};
	CUhandle handle;

	OK(cuInit(0));
	for (int i = 0; i < 4; i++)
		GIVES(FK_INVALID_VALUE, cuMemImportFromShareableHandle(
			      &handle, (void *)(intptr_t)files[i], FK_POSIX_FD));
	ck_assert_int_eq(ftruncate(files[2], 8 * MIB), 0);
	GIVES(FK_INVALID_VALUE, cuMemImportFromShareableHandle(
		      &handle, (void *)(intptr_t)files[2], FK_POSIX_FD));
	option("BAD_FD", "999");
	GIVES(999, cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)files[1],
						  FK_POSIX_FD));
}
END_TEST

START_TEST(the_exporter_may_import_too)
{
	CUhandle handle, alias;
	CUdeviceptr ptr, other;
	int fd;

	begin();
	handle = create(BLOCK);
	ptr = map(handle, BLOCK);
	fd = export_fd(handle);
	alias = import(fd);
	close(fd);
	other = map(alias, BLOCK);
	ck_assert(other != ptr);
	OK(cuMemsetD8_v2(ptr, 42, 1));
	unmap(ptr, BLOCK);
	OK(cuMemRelease(handle));
	ck_assert_int_eq(byte_at(other), 42);
}
END_TEST

static void export_to(int fd)
{
	CUhandle handle;
	CUdeviceptr ptr;

	begin();
	handle = create(BLOCK);
	ptr = map(handle, BLOCK);
	OK(cuMemsetD8_v2(ptr, 7, BLOCK));
	give_fd(fd, export_fd(handle));
	give(fd, &ptr, sizeof(ptr));
	await(fd);
	ck_assert_int_eq(byte_at(ptr), 8);
}

START_TEST(two_processes_share_it)
{
	struct other other = other_start(export_to);
	CUdeviceptr ptr, theirs;
	CUhandle handle;
	int fd;

	begin();
	fd = take_fd(other.fd);
	take(other.fd, &theirs, sizeof(theirs));
	handle = import(fd);
	close(fd);
	ptr = map(handle, BLOCK);
	ck_assert(ptr != theirs);
	ck_assert_int_eq(byte_at(ptr + BLOCK - 1), 7);
	OK(cuMemsetD8_v2(ptr, 8, 1));
	go(other.fd);
	other_end(&other);
	ck_assert_int_eq(byte_at(ptr), 8);	/* the exporter has ended */
	ck_assert_uint_eq(cuFakeUsed(0), 0);	/* and an import takes no memory */
}
END_TEST

START_TEST(the_descriptor_holds_the_memory)
{
	struct other other = other_start(export_to);
	int fd = take_fd(other.fd);

	other_kill(&other);
	begin();
	ck_assert_int_eq(byte_at(map(import(fd), BLOCK)), 7);
}
END_TEST

START_TEST(a_hidden_device_cannot_be_imported)
{
	struct other other;
	CUhandle handle;
	int fd;

	option("DEVICES", "2");
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	other = other_start(export_to);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	OK(cuInit(0));
	fd = take_fd(other.fd);
	GIVES(FK_INVALID_DEVICE,
	      cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FK_POSIX_FD));
	other_kill(&other);
}
END_TEST

START_TEST(a_child_has_no_memory_of_its_parent)
{
	CUdeviceptr ptr;
	pid_t pid;

	begin();
	ptr = map(create(BLOCK), BLOCK);
	pid = fork();
	if (!pid) {
		unsigned char present;
		uintptr_t at = (uintptr_t)ptr;

		_exit(mincore((void *)at, 4096, &present) == 0);
	}
	other_end(&(struct other) { pid, -1 });
}
END_TEST

TCase *share_tests(void)
{
	TCase *tcase = tcase_create("share");

	tcase_add_test(tcase, the_type_must_have_been_asked_for);
	tcase_add_test(tcase, memory_is_in_use_as_long_as_a_descriptor_is_open);
	tcase_add_test(tcase, other_files_are_no_memory);
	tcase_add_test(tcase, the_exporter_may_import_too);
	tcase_add_test(tcase, two_processes_share_it);
	tcase_add_test(tcase, the_descriptor_holds_the_memory);
	tcase_add_test(tcase, a_hidden_device_cannot_be_imported);
	tcase_add_test(tcase, a_child_has_no_memory_of_its_parent);
	return tcase;
}

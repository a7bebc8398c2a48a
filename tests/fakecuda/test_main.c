// SPDX-License-Identifier: MIT
/* Runs the tests of the fake driver's memory half, and has their helpers. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

static char log_path[] = "/tmp/fakecuda-log-XXXXXX";

void option(const char *name, const char *value)
{
	char full[64];

	snprintf(full, sizeof(full), "FAKECUDA_%s", name);
	ck_assert_int_eq(setenv(full, value, 1), 0);
}

void use_device(int ordinal)
{
	CUcontext context;

	OK(cuDevicePrimaryCtxRetain(&context, ordinal));
	OK(cuCtxSetCurrent(context));
}

void begin(void)
{
	OK(cuInit(0));
	use_device(0);
}

CUdeviceptr allocate(size_t bytes)
{
	CUdeviceptr ptr = 0;

	OK(cuMemAlloc_v2(&ptr, bytes));
	ck_assert(ptr != 0);
	return ptr;
}

int byte_at(CUdeviceptr ptr)
{
	unsigned char byte = 0;

	OK(cuMemcpyDtoH_v2(&byte, ptr, 1));
	return byte;
}

int take_violations(const char *text)
{
	FILE *file = fopen(log_path, "re");
	char line[1024];
	int lines = 0;

	ck_assert(file != NULL);
	while (fgets(line, sizeof(line), file)) {
		ck_assert_msg(strstr(line, text), "a violation of another kind: %s", line);
		lines++;
	}
	fclose(file);
	ck_assert_int_eq(truncate(log_path, 0), 0);
	return lines;
}

/* ---- Other processes ---- */

struct other other_start(void (*body)(int fd))
{
	struct other other;
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	other.fd = ends[0];
	other.pid = fork();
	ck_assert_int_ge(other.pid, 0);
	if (!other.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		body(ends[1]);
		exit(0);
	}
	close(ends[1]);
	return other;
}

void other_end(struct other *other)
{
	int status;

	ck_assert_int_eq(waitpid(other->pid, &status, 0), other->pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the other process failed: %#x",
		      status);
	close(other->fd);
}

void other_kill(struct other *other)
{
	ck_assert_int_eq(kill(other->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(other->pid, NULL, 0), other->pid);
	close(other->fd);
}

void give(int fd, const void *data, size_t bytes)
{
	ck_assert_int_eq(send(fd, data, bytes, MSG_NOSIGNAL), bytes);
}

void take(int fd, void *data, size_t bytes)
{
	ck_assert_int_eq(recv(fd, data, bytes, 0), bytes);
}

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

void give_fd(int fd, int given)
{
	struct iovec iov = { "", 1 };
	union control control = { 0 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &given, sizeof(int));
	ck_assert_int_eq(sendmsg(fd, &message, MSG_NOSIGNAL), 1);
}

int take_fd(int fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	union control control = { 0 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int taken = -1;

	ck_assert_int_eq(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&taken, CMSG_DATA(&control.header), sizeof(int));
	ck_assert_int_ge(taken, 0);
	return taken;
}

void go(int fd)
{
	give(fd, "", 1);
}

void await(int fd)
{
	char byte;

	take(fd, &byte, 1);
}

/* ---- Virtual memory ---- */

CUhandle create(size_t bytes)
{
	CUmemAllocationProp prop = {
		.type = 1, .handle_types = FK_POSIX_FD, .location = { FK_DEVICE, 0 },
	};
	CUhandle handle = NULL;

	OK(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

CUdeviceptr map(CUhandle handle, size_t bytes)
{
	CUmemAccessDesc access = { { FK_DEVICE, 0 }, FK_READ | FK_WRITE };
	CUdeviceptr ptr = 0;

	OK(cuMemAddressReserve(&ptr, bytes, 0, 0, 0));
	OK(cuMemMap(ptr, bytes, 0, handle, 0));
	OK(cuMemSetAccess(ptr, bytes, &access, 1));
	return ptr;
}

void unmap(CUdeviceptr ptr, size_t bytes)
{
	OK(cuMemUnmap(ptr, bytes));
	OK(cuMemAddressFree(ptr, bytes));
}

/* ---- All tests ---- */

static int skipped;

bool is_root(const char *test)
{
	if (!geteuid())
		return true;
	printf("SKIP %s: only root can play another user, or another pid namespace\n", test);
	skipped++;
	return false;
}

static void setup(void)
{
	int fd;

	strcpy(log_path, "/tmp/fakecuda-log-XXXXXX");
	fd = mkostemp(log_path, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	close(fd);
	option("LOG", log_path);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/* A child that a test has started runs this too, if it fails, and empties the log. */
static void teardown(void)
{
	int lines = take_violations("");

	unlink(log_path);
	ck_assert_msg(!lines, "%d line(s) in the log of violations", lines);
}

int main(void)
{
	TCase *(*const cases[])(void) = {
		init_tests, device_tests, alloc_tests, ipc_tests, open_tests, vmm_tests,
		share_tests, pool_tests, host_tests, thread_tests,
	};
	Suite *suite = suite_create("fakecuda");
	SRunner *runner;
	int failed;

	/* Only against hangs: Check allows 4 s, which are too short on a busy machine. */
	setenv("CK_DEFAULT_TIMEOUT", "1200", 0);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *tcase = cases[i]();

		tcase_add_checked_fixture(tcase, setup, teardown);
		suite_add_tcase(suite, tcase);
	}
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	printf("%d passed, %d failed, %d skipped\n", srunner_ntests_run(runner) - failed, failed,
	       skipped);
	srunner_free(runner);
	return failed != 0;
}

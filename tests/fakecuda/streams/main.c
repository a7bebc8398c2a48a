// SPDX-License-Identifier: MIT
/* Runs the tests of the fake driver's streams: all, or those whose names contain the argument. */
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static const char *running;

void fail_test(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("FAIL %s: %s:%d: ", running, file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

CUcontext begin(unsigned int delay_us)
{
	CUcontext context;
	char text[16];

	snprintf(text, sizeof(text), "%u", delay_us);
	setenv("FAKECUDA_DELAY_US", text, 1);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	return context;
}

void count_up(void *user)
{
	__atomic_add_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
}

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t opened;
	bool open;
};

static void wait_at_gate(void *user)
{
	struct gate *gate = user;

	pthread_mutex_lock(&gate->lock);
	while (!gate->open)
		pthread_cond_wait(&gate->opened, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

struct gate *gate_in(CUstream stream)
{
	struct gate *gate = calloc(1, sizeof(*gate));

	CHECK(gate);
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->opened, NULL);
	OK(cuLaunchHostFunc(stream, wait_at_gate, gate));
	return gate;
}

void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_signal(&gate->opened);
	pthread_mutex_unlock(&gate->lock);
}

struct other other_begin(void (*body)(int fd))
{
	struct other other;
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	fflush(stdout);
	other.pid = fork();
	CHECK(other.pid >= 0);
	if (!other.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		body(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	other.fd = ends[0];
	return other;
}

void other_end(struct other other)
{
	int status;

	CHECK(waitpid(other.pid, &status, 0) == other.pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	close(other.fd);
}

void tell(int fd, const void *data, size_t bytes)
{
	CHECK(write(fd, data, bytes) == (ssize_t)bytes);
}

void hear(int fd, void *data, size_t bytes)
{
	CHECK(recv(fd, data, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* The time limit is only against hanging. */
static bool passes(const struct test *test)
{
	const char *patience = getenv("XMEM_TEST_PATIENCE");
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		running = test->name;
		alarm(12 * (patience ? atoi(patience) : 100));
		test->run();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		printf("FAIL %s: ended by signal %d\n", test->name, WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	static const struct test *const all[] = {
		order_tests, host_tests, event_tests, ipc_tests, memop_tests, copy_tests,
		kernel_tests, memory_tests, page_tests, graph_tests,
	};
	int passed = 0, failed = 0;
	const struct test *test;
	size_t i;

	unsetenv("FAKECUDA_LOG");
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (test = all[i]; test->name; test++) {
			if (argc > 1 && !strstr(test->name, argv[1]))
				continue;
			if (passes(test))
				passed++;
			else
				failed++;
		}
	}
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed != 0;
}

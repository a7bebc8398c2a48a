// SPDX-License-Identifier: MIT
/*
 * The harness: registration of tests, verdicts, child processes and steps. pools.c has the part
 * that knows pools and the host.
 */
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "harness.h"

/* ---- registration ---- */

static struct test *tests;

void add_test(struct test *test)
{
	struct test **place = &tests;

	/* By file, then name: the order of constructors is arbitrary. */
	while (*place && (strcmp((*place)->file, test->file) < 0 ||
			  (!strcmp((*place)->file, test->file) &&
			   strcmp((*place)->name, test->name) < 0)))
		place = &(*place)->next;
	test->next = *place;
	*place = test;
}

struct test *first_test(void)
{
	return tests;
}

/* ---- verdicts ---- */

static pid_t test_process;
static struct outcome *current;
static jmp_buf leave_test;

void fail_at(const char *file, int line, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (getpid() == test_process) {
		printf("    FAILED at %s:%d: %s\n", file, line, text);
		fflush(stdout);
		_ck_assert_failed(file, line, "Failed", "%s", text);
	}
	fprintf(stderr, "child %d: %s:%d: %s\n", getpid(), file, line, text);
	_exit(1);
}

/* The status of a child that cannot run here. The reason is in the outcome, which it shares. */
#define SKIPPED	77

/* Whichever process of the test calls this: the test is skipped, for the reason in the outcome. */
static void leave_skipped(void) __attribute__((noreturn));
static void leave_skipped(void)
{
	if (getpid() != test_process)
		_exit(SKIPPED);
	current->skipped = true;
	longjmp(leave_test, 1);
}

void skip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(current->why, sizeof(current->why), format, ap);
	va_end(ap);
	leave_skipped();
}

void pause_now_and_then(void)
{
	static int wanted = -1;			/* these are all atomic */
	static uint32_t checks, pauses;
	static pid_t process;
	uint64_t random;

	if (wanted < 0)
		wanted = getenv("XMEM_TEST_PAUSES") != NULL;
	if (!wanted)
		return;
	if (process != getpid()) {
		process = getpid();
		checks = pauses = 0;
	}
	random = (uint64_t)process << 40 | __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED) << 20 |
		 time(NULL);
	for (int i = 0; i < 8; i++)
		random_next(&random);
	if (random >> 8 & 15 || __atomic_add_fetch(&pauses, 1, __ATOMIC_RELAXED) > 12)
		return;
	/* Not poll(): a thread may be cancelled there. */
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = (random >> 20 & 255) * MS }, NULL);
}

size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

size_t huge_page_size(void)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_HUGETLB);
	struct stat info;

	if (file < 0)
		return 2 << 20;
	CHECK(!fstat(file, &info));
	close(file);
	return info.st_blksize;
}

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t cpu_of(int who)
{
	struct rusage used;

	CHECK(!getrusage(who, &used));
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SECOND +
	       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL;
}

double patience(void)
{
	const char *given = getenv("XMEM_TEST_PATIENCE");

	return given && *given ? strtod(given, NULL) / 100 : 1;
}

int64_t patience_ns(void)
{
	return 100 * SECOND * patience();
}

void look_again_soon(void)
{
	poll(NULL, 0, 1);
}

unsigned int scaled(unsigned int count)
{
	const char *given = getenv("XMEM_TEST_SCALE");
	unsigned long scale = given && *given ? strtoul(given, NULL, 10) : in_vm() ? 15 : 100;
	unsigned long n = count * scale / 100;

	return n ? n : 1;
}

uint64_t seed(void)
{
	static uint64_t value;
	const char *given = getenv("XMEM_TEST_SEED");

	if (!value) {
		if (given)
			value = strtoull(given, NULL, 0);
		else
			CHECK(getrandom(&value, sizeof(value), 0) == sizeof(value));
		value |= 1;
		printf("    XMEM_TEST_SEED=0x%llx\n", (unsigned long long)value);
	}
	return value;
}

uint64_t random_next(uint64_t *state)
{
	/* xorshift64: never 0 from a state that is not */
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

unsigned int open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int n = 0;

	CHECK(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static sigjmp_buf trap;

static void spring(int signal)
{
	siglongjmp(trap, signal);
}

int touch(volatile uint32_t *word, bool store)
{
	struct sigaction action = { .sa_handler = spring }, old[2];
	int signal;

	sigaction(SIGBUS, &action, &old[0]);
	sigaction(SIGSEGV, &action, &old[1]);
	signal = sigsetjmp(trap, 1);
	if (!signal) {
		if (store)
			*word = 0xbad;
		else
			(void)*word;
	}
	sigaction(SIGBUS, &old[0], NULL);
	sigaction(SIGSEGV, &old[1], NULL);
	return signal;
}

uint64_t mapped_bytes(const char *words)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long long from, end, sum = 0;
	char line[512];

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx-%llx", &from, &end) == 2 && strstr(line, words))
			sum += end - from;
	fclose(file);
	return sum;
}

static char own_folder[32], own_path[48];
static pid_t own_path_of;

static void remove_own_path(void)
{
	char lock[64];

	if (getpid() != own_path_of)
		return;		/* a child */
	snprintf(lock, sizeof(lock), "%s.lock", own_path);
	unlink(own_path);
	unlink(lock);
	rmdir(own_folder);
}

void use_own_daemon(void)
{
	own_path_of = getpid();
	strcpy(own_folder, "/tmp/xmem-own-XXXXXX");
	CHECK(mkdtemp(own_folder));
	snprintf(own_path, sizeof(own_path), "%s/socket", own_folder);
	CHECK(!setenv("XMEM_SOCKET", own_path, 1) && !atexit(remove_own_path));
}

void note_stopped(pid_t daemon)
{
	current->stopped = daemon;
}

/* ---- children ---- */

#define MAX_CHILDREN	128

static struct child children[MAX_CHILDREN];
static unsigned int child_count;
static int link_to_parent = -1;

/* A place in children[]: one whose process has been reaped, or a new one. */
static struct child *new_child(void)
{
	unsigned int i;

	for (i = 0; i < child_count; i++) {
		if (!children[i].pid) {
			close(children[i].link);
			return &children[i];
		}
	}
	CHECK(child_count < MAX_CHILDREN);
	return &children[child_count++];
}

struct child *spawn(void (*body)(void *argument), void *argument)
{
	struct child *child = new_child();
	pid_t parent = getpid();
	int pair[2];

	child->link = -1;
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	fflush(NULL);
	child->pid = fork();
	CHECK(child->pid >= 0);
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The first process of a PID namespace does not see its parent. */
		if (getppid() != parent && getpid() != 1)
			_exit(1);
		for (unsigned int i = 0; i < child_count; i++)
			close(children[i].link);
		child_count = 0;
		close(pair[0]);
		if (link_to_parent >= 0)
			close(link_to_parent);
		link_to_parent = pair[1];
		body(argument);
		_exit(0);
	}
	close(pair[1]);
	child->link = pair[0];
	return child;
}

int parent_link(void)
{
	return link_to_parent;
}

static void skip_with_child(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		leave_skipped();
}

/* The child has ended before an expected message, perhaps because it has skipped. */
static void look_at_end(pid_t who)
{
	siginfo_t info = { .si_pid = 0 };

	if (!waitid(P_PID, who, &info, WEXITED | WNOWAIT) && info.si_code == CLD_EXITED &&
	    info.si_status == SKIPPED)
		leave_skipped();
}

static void send_word(int link, uint64_t what, pid_t who)
{
	if (send(link, &what, sizeof(what), MSG_NOSIGNAL) == sizeof(what))
		return;
	CHECK(errno == EPIPE || errno == ECONNRESET);
	look_at_end(who);
	FAIL("process %d has ended and gets no message", who);
}

static uint64_t receive_word(int link, pid_t who)
{
	uint64_t what;
	ssize_t got;

	do
		got = recv(link, &what, sizeof(what), 0);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(what)) {
		look_at_end(who);
		FAIL("process %d has ended without a message", who);
	}
	return what;
}

void tell_parent(uint64_t what)
{
	send_word(link_to_parent, what, getppid());
}

uint64_t hear_parent(void)
{
	return receive_word(link_to_parent, getppid());
}

void tell(struct child *child, uint64_t what)
{
	send_word(child->link, what, child->pid);
}

uint64_t hear(struct child *child)
{
	return receive_word(child->link, child->pid);
}

void send_file(int link, int file)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec io = { "f", 1 };
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	CHECK(sendmsg(link, &message, MSG_NOSIGNAL) == 1);
}

int receive_file(int link)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char byte;
	struct iovec io = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int file;

	CHECK(recvmsg(link, &message, MSG_CMSG_CLOEXEC) == 1);
	CHECK(control.head.cmsg_type == SCM_RIGHTS &&
	      control.head.cmsg_len == CMSG_LEN(sizeof(int)));
	memcpy(&file, CMSG_DATA(&control.head), sizeof(file));
	return file;
}

static int reap(struct child *child)
{
	int status;
	pid_t got;

	CHECK(child->pid > 0);
	do
		got = waitpid(child->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	SAME(got, child->pid);
	child->pid = 0;
	return status;
}

void died_of_kill(struct child *child)
{
	int status = reap(child);

	skip_with_child(status);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		FAIL("the child was to be killed, and ended with status 0x%x", status);
}

void kill_child(struct child *child)
{
	CHECK(!kill(child->pid, SIGKILL));
	died_of_kill(child);
}

bool child_has_ended(const struct child *child)
{
	siginfo_t info = { .si_pid = 0 };

	CHECK(!waitid(P_PID, child->pid, &info, WEXITED | WNOHANG | WNOWAIT));
	return info.si_pid;
}

void finish_child(struct child *child)
{
	int status = reap(child);

	skip_with_child(status);
	if (status)
		FAIL("the child failed: status 0x%x", status);
}

void wait_stopped(struct child *child)
{
	int status;

	SAME(waitpid(child->pid, &status, WUNTRACED), child->pid);
	if (!WIFSTOPPED(status)) {
		child->pid = 0;
		skip_with_child(status);
		FAIL("the child was to stop, and ended with status 0x%x", status);
	}
}

void stop_child(struct child *child)
{
	CHECK(!kill(child->pid, SIGSTOP));
	wait_stopped(child);
}

void continue_child(struct child *child)
{
	CHECK(!kill(child->pid, SIGCONT));
}

/* Whether the task's letter in /proc, behind its name, says that it runs or is about to. */
static bool task_runs(const char *tasks, const char *task)
{
	char path[320], text[256] = "", *name_end;
	int file;

	snprintf(path, sizeof(path), "%s/%s/stat", tasks, task);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;		/* it has ended */
	if (read(file, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(file);
	name_end = strrchr(text, ')');
	return name_end && (name_end[2] == 'R' || name_end[2] == 'D');
}

static bool process_runs(pid_t pid)
{
	char tasks[32];
	const struct dirent *entry;
	bool runs = false;
	DIR *folder;

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	folder = opendir(tasks);
	while (folder && !runs && (entry = readdir(folder)))
		runs = entry->d_name[0] != '.' && atoi(entry->d_name) != gettid() &&
		       task_runs(tasks, entry->d_name);
	if (folder)
		closedir(folder);
	return runs;
}

bool others_sleep(void)
{
	if (process_runs(getpid()))
		return false;
	for (unsigned int i = 0; i < child_count; i++)
		if (children[i].pid > 0 && process_runs(children[i].pid))
			return false;
	return true;
}

void until_asleep(const uint32_t *word)
{
	EVENTUALLY(xm_load(word) & XMEM_WAITERS_ARMED && others_sleep());
}

static void end_children(void)
{
	for (unsigned int i = 0; i < child_count; i++) {
		if (children[i].pid > 0) {
			kill(children[i].pid, SIGKILL);
			waitpid(children[i].pid, NULL, 0);
		}
		close(children[i].link);
	}
	child_count = 0;
}

/* ---- steps ---- */

/* Set before the steps are reached. Any thread that reaches a step counts it. */
static struct {
	int step;
	enum at_step what;
	void (*call)(int step);
	unsigned int left;		/* atomic */
	unsigned int seen;		/* atomic */
} plan;

void at_step(int step, unsigned int after, enum at_step what, void (*call)(int step))
{
	plan.step = step;
	plan.call = call;
	plan.seen = 0;
	plan.left = after + 1;
	plan.what = what;
}

void count_waits(void)
{
	steps_only();
	at_step(XM_STEP_WAIT, ~0u - 1, STEP_CALL, NULL);
}

/* A thread that the library has started may still be reading the plan. */
void no_step(void)
{
	__atomic_store_n(&plan.what, 0, __ATOMIC_RELAXED);
}

unsigned int steps_seen(void)
{
	return plan.seen;
}

#ifdef XMEM_STEPS
void xm_step(int step)
{
	int what = __atomic_load_n(&plan.what, __ATOMIC_RELAXED);

	if (__builtin_expect(!what || (plan.step != ANY_STEP && plan.step != step), 1))
		return;
	__atomic_add_fetch(&plan.seen, 1, __ATOMIC_RELAXED);
	if (__atomic_fetch_sub(&plan.left, 1, __ATOMIC_RELAXED) != 1)
		return;
	switch (plan.what) {
	case STEP_KILL:
		kill(getpid(), SIGKILL);
		break;
	case STEP_STOP:
		raise(SIGSTOP);
		break;
	case STEP_CALL:
		plan.what = 0;		/* the called function may reach the step itself */
		plan.call(step);
		break;
	}
}
#endif

void steps_only(void)
{
#ifndef XMEM_STEPS
	skip("the library has no steps in this flavour");
#endif
}

const char *step_name(int step)
{
	static const char *const name[XM_STEPS] = {
		[XM_STEP_GET_HELD] = "GET_HELD", [XM_STEP_GET_DONE] = "GET_DONE",
		[XM_STEP_PUT_BEFORE] = "PUT_BEFORE", [XM_STEP_PUT_DROPPED] = "PUT_DROPPED",
		[XM_STEP_TAKE_WRITING] = "TAKE_WRITING", [XM_STEP_SCAN_SCANNING] = "SCAN_SCANNING",
		[XM_STEP_SCAN_CURSORS] = "SCAN_CURSORS", [XM_STEP_SCAN_VOID] = "SCAN_VOID",
		[XM_STEP_SCAN_HOLDS] = "SCAN_HOLDS", [XM_STEP_FORWARD_NOTED] = "FORWARD_NOTED",
		[XM_STEP_RETRACT_OPEN] = "RETRACT_OPEN",
		[XM_STEP_UPGRADE_BEGUN] = "UPGRADE_BEGUN",
		[XM_STEP_SCAN_SHARED] = "SCAN_SHARED",
		[XM_STEP_UPGRADE_LIVE] = "UPGRADE_LIVE",
		[XM_STEP_UPGRADE_FILLED] = "UPGRADE_FILLED",
		[XM_STEP_PUBLISH_POSITION] = "PUBLISH_POSITION",
		[XM_STEP_PUBLISH_LIVE] = "PUBLISH_LIVE", [XM_STEP_PUBLISH_OPEN] = "PUBLISH_OPEN",
		[XM_STEP_PUBLISH_FIELDS] = "PUBLISH_FIELDS",
		[XM_STEP_PUBLISH_ENTRY] = "PUBLISH_ENTRY", [XM_STEP_PUBLISH_TAIL] = "PUBLISH_TAIL",
		[XM_STEP_RECEIVE_READ] = "RECEIVE_READ", [XM_STEP_RECEIVE_HELD] = "RECEIVE_HELD",
		[XM_STEP_RECEIVE_VALID] = "RECEIVE_VALID",
		[XM_STEP_RECEIVE_CURSOR] = "RECEIVE_CURSOR",
		[XM_STEP_CLAIM_ADDED] = "CLAIM_ADDED", [XM_STEP_CLAIM_ALONE] = "CLAIM_ALONE",
		[XM_STEP_CLAIM_POSITION] = "CLAIM_POSITION", [XM_STEP_CLAIM_LIVE] = "CLAIM_LIVE",
		[XM_STEP_CLAIM_HELD] = "CLAIM_HELD", [XM_STEP_CLAIM_TAKEN] = "CLAIM_TAKEN",
		[XM_STEP_CLAIM_FORGET] = "CLAIM_FORGET",
		[XM_STEP_RING_LOOK] = "RING_LOOK", [XM_STEP_LETS_GO] = "LETS_GO",
		[XM_STEP_ROW_LOOK] = "ROW_LOOK", [XM_STEP_SWEEP_BEGIN] = "SWEEP_BEGIN",
		[XM_STEP_SWEEP_LOOK] = "SWEEP_LOOK",
		[XM_STEP_END_NOTED] = "END_NOTED", [XM_STEP_NEXT_END] = "NEXT_END",
		[XM_STEP_SUBSCRIBE_CURSOR] = "SUBSCRIBE_CURSOR",
		[XM_STEP_SUBSCRIBE_BIT] = "SUBSCRIBE_BIT",
		[XM_STEP_FILE_MADE] = "FILE_MADE", [XM_STEP_FILE_TAKEN] = "FILE_TAKEN",
		[XM_STEP_FILE_DETACHED] = "FILE_DETACHED",
		[XM_STEP_WAIT] = "WAIT",
		[XM_STEP_CUDA_MADE] = "CUDA_MADE", [XM_STEP_CUDA_ATTACHED] = "CUDA_ATTACHED",
		[XM_STEP_CUDA_ASK] = "CUDA_ASK", [XM_STEP_CUDA_ASKED] = "CUDA_ASKED",
		[XM_STEP_CUDA_OPENED] = "CUDA_OPENED",
		[XM_STEP_CUDA_CLOSING] = "CUDA_CLOSING", [XM_STEP_CUDA_CLOSED] = "CUDA_CLOSED",
		[XM_STEP_CUDA_ORDERED] = "CUDA_ORDERED", [XM_STEP_CUDA_WAITS] = "CUDA_WAITS",
		[XM_STEP_CUDA_LEAVES] = "CUDA_LEAVES", [XM_STEP_CUDA_LEFT] = "CUDA_LEFT",
		[XM_STEP_CUDA_REFUSED] = "CUDA_REFUSED", [XM_STEP_CUDA_REACHED] = "CUDA_REACHED",
		[XM_STEP_CUDA_LOOKED] = "CUDA_LOOKED",
		[XM_STEP_CUDA_DROPPED] = "CUDA_DROPPED",
	};

	return step >= 0 && step < XM_STEPS && name[step] ? name[step] : "a step without a name";
}

/* ---- one test ---- */

bool files_may_stay;

void run_test(struct test *test, struct outcome *outcome)
{
	unsigned int files = open_files();
	int64_t start = now_ns();

	test_process = getpid();
	current = outcome;
	outcome->ran = true;
	printf("  %s\n", test->name);
	fflush(stdout);
	set_host_patience(HOST_IS_BUSY);
	if (!setjmp(leave_test))
		test->run();
	no_step();
	end_children();
	if (outcome->skipped)
		return;
	if (!files_may_stay && open_files() != files)
		FAIL("%u descriptors at the end, %u at the beginning", open_files(), files);
	if (now_ns() - start > SECOND / 2)
		printf("    %.1f s, %.1f of them on the processor\n",
		       (double)(now_ns() - start) / SECOND,
		       (double)(cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN)) / SECOND);
}

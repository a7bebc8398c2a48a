// SPDX-License-Identifier: MIT
/*
 * This file runs attacks one by one, reads the list of attacks that are expected to succeed, makes
 * two users, and compares times. attack.h says what attacks are.
 */
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attack.h"

#define LIMIT_S		600		/* for one attack; the emulated machine is slow */
#define CGROUPS		"/run/vm/cgroups"

/* ---- what is wrong ---- */

const char *wrong(const char *format, ...)
{
	static char text[400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

void figure(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("figure ", stdout);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* ---- the list ---- */

static const char *program;	/* the name of this program in the list */

/* Is @line "PROGRAM NAME: ..." of this program? Cuts it there; *ret_reason is the rest. */
static const char *listed(char *line, char **ret_reason)
{
	size_t length = strlen(program);
	char *name = line + length + 1, *end;

	line[strcspn(line, "\n")] = 0;
	if (strncmp(line, program, length) || line[length] != ' ')
		return NULL;
	end = strchr(name, ':');
	if (!end)
		return NULL;
	*end = 0;
	*ret_reason = end + 1 + strspn(end + 1, " ");
	return name;
}

/* Returns why the attack is expected to succeed, or "". Fails if there is no list. */
static int look_up(const char *wanted, char reason[256])
{
	FILE *list = fopen(EXPECTED_RED, "re");
	const char *name;
	char line[512], *why;

	reason[0] = 0;
	if (!list)
		return -errno;
	while (!reason[0] && fgets(line, sizeof(line), list)) {
		name = listed(line, &why);
		if (name && !strcmp(name, wanted))
			snprintf(reason, 256, "%s", why);
	}
	fclose(list);
	return 0;
}

static bool is_there(const struct attack *attacks, unsigned int count, const char *name)
{
	while (count--)
		if (!strcmp(attacks[count].name, name))
			return true;
	return false;
}

/* Each attack in the list must exist. */
static void check_list(const struct attack *attacks, unsigned int count)
{
	FILE *list = fopen(EXPECTED_RED, "re");
	const char *name;
	char line[512], *why;

	while (list && fgets(line, sizeof(line), list)) {
		name = listed(line, &why);
		if (name && !is_there(attacks, count, name))
			fail(name, "%s names it, and there is no such attack", EXPECTED_RED);
	}
	if (list)
		fclose(list);
}

static void judge(const char *name, const char *trouble)
{
	char reason[256];
	int err = look_up(name, reason);

	if (err)
		fail(name, "%s: %s", EXPECTED_RED, strerror(-err));
	else if (trouble && reason[0])
		skip(name, "is not mended yet: %s (%s)", reason, trouble);
	else if (trouble)
		fail(name, "%s", trouble);
	else if (reason[0])
		fail(name, "is mended: take it off %s", EXPECTED_RED);
	else
		pass(name, "well");
}

/* ---- running one ---- */

static char *said;		/* the process of the attack has said it */
#define SAID	400

static void run_in_child(const struct attack *attack)
{
	const char *trouble;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	many_descriptors();
	trouble = attack->run();
	if (trouble)
		snprintf(said, SAID, "%s", trouble[0] ? trouble : "?");
	fflush(stdout);
	_exit(0);
}

/* Waits for the end of @pid. Returns false if that has not come in time. */
static bool ends_in_time(pid_t pid, int *status)
{
	int file = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = { .fd = file, .events = POLLIN };
	bool in_time = poll(&end, 1, LIMIT_S * 1000) == 1;

	close(file);
	if (!in_time)
		kill(pid, SIGKILL);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return in_time;
}

/*
 * *ret_trouble says what is wrong, or is NULL. All processes that the attack started end with it.
 * Returns false, and reports it, if the attack did not end; such a result proves nothing about
 * the module.
 */
static bool run_one(const struct attack *attack, const char **ret_trouble)
{
	int status = 0;
	bool in_time;
	pid_t pid;

	said[0] = 0;
	fflush(stdout);
	pid = fork();
	if (!pid)
		run_in_child(attack);
	setpgid(pid, pid);
	in_time = ends_in_time(pid, &status);
	kill(-pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	*ret_trouble = said[0] ? said : NULL;
	if (!in_time)
		fail(attack->name, "no end in %d s", LIMIT_S);
	else if (status)
		fail(attack->name, "its process ended with status 0x%x", status);
	else if (raw_pools_shown(0))
		fail(attack->name, "pools are left in sysfs, after: %s", said);
	else
		return true;
	return false;
}

/* Repeats the attack until the result is as expected, at most THRICE. */
static void run_and_judge(const struct attack *attack)
{
	unsigned int tries = attack->timed ? THRICE : 1;
	char reason[256];
	bool expected_red = !look_up(attack->name, reason) && reason[0];
	const char *trouble;

	do
		if (!run_one(attack, &trouble))
			return;
	while (--tries && !trouble == expected_red);
	judge(attack->name, trouble);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return argc < 2;
}

int attack_main(const struct attack *attacks, unsigned int count, int argc, char **argv)
{
	unsigned int i;

	program = program_invocation_short_name;
	if (geteuid() || access("/run/vm/settings", R_OK) || access(RAW_DEVICE, R_OK | W_OK)) {
		skip(argv[0], "only as root in the virtual machine, with xmem.ko loaded");
		return summary();
	}
	said = shared_memory(SAID);
	if (!said || chown(RAW_DEVICE, 0, MEMBERS) || chmod(RAW_DEVICE, 0660) ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		fail(argv[0], "%s", strerror(errno));
		return summary();
	}
	check_list(attacks, count);
	for (i = 0; i < count; i++)
		if (is_wanted(attacks[i].name, argc, argv))
			run_and_judge(&attacks[i]);
	return summary();
}

/* ---- people ---- */

int become(unsigned int uid)
{
	const gid_t members = MEMBERS;

	if (geteuid() == uid)
		return 0;
	if (setgroups(1, &members) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* the change of the user has cleared it */
	return 0;
}

const char *write_map(pid_t pid, const char *which, const char *lines)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
	file = open(path, O_WRONLY | O_CLOEXEC);
	SAME(write(file, lines, strlen(lines)), strlen(lines));
	close(file);
	return NULL;
}

void many_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int take_descriptor(const struct kid *kid, int number)
{
	int process = syscall(SYS_pidfd_open, kid->pid, 0), file;

	if (process < 0)
		return -errno;
	file = syscall(SYS_pidfd_getfd, process, number, 0);
	close(process);
	return file < 0 ? -errno : file;
}

struct xmem_join_request joining_by_file(int pool_fd, enum xmem_role role)
{
	struct xmem_join_request join = raw_joining("", role);

	join.flags = XMEM_JOIN_FD;
	join.pool_fd = pool_fd;
	join.slots = join.clients = join.ring_entries = 0;
	return join;
}

int pool_descriptor(const struct raw *raw)
{
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	int err = raw_request(raw, XMEM_IOC_POOL_FD, &request);

	return err ? err : request.fd;
}

int start_thin(struct raw *raw, const struct xmem_join_request *join)
{
	int err = raw_start(raw, join);

	if (err)
		return err;
	munmap(raw->base, raw->join.total_bytes);
	raw->base = NULL;
	return 0;
}

static int put_line(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (file < 0)
		return -errno;
	if (write(file, value, strlen(value)) < 0)
		err = -errno;
	close(file);
	return err;
}

const char *make_cgroup(const char *name, const char *controller, const char *file,
			const char *value)
{
	char path[128], enable[32];
	int err;

	mkdir(CGROUPS, 0755);
	if (access(CGROUPS "/cgroup.controllers", F_OK) &&
	    mount("none", CGROUPS, "cgroup2", 0, NULL))
		return wrong("no control groups: %s", strerror(errno));
	snprintf(enable, sizeof(enable), "+%s", controller);
	err = put_line(CGROUPS "/cgroup.subtree_control", enable);
	if (err)
		return wrong("control groups have no %s: %s", controller, strerror(-err));
	snprintf(path, sizeof(path), CGROUPS "/%s", name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), CGROUPS "/%s/%s", name, file);
	err = put_line(path, value);
	return err ? wrong("%s: %s", path, strerror(-err)) : NULL;
}

bool thread_is_in(pid_t pid, pid_t thread, const char *name)
{
	char path[64], stack[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stack", pid, thread);
	file = fopen(path, "re");
	n = file ? fread(stack, 1, sizeof(stack) - 1, file) : 0;
	stack[n] = 0;
	if (file)
		fclose(file);
	return strstr(stack, name);
}

bool kid_is_in(const struct kid *kid, const char *name)
{
	return thread_is_in(kid->pid, kid->pid, name);
}

int enter_cgroup(const char *name, pid_t pid)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), CGROUPS "/%s/cgroup.procs", name);
	snprintf(text, sizeof(text), "%d", pid);
	return put_line(path, text);
}

u64 cgroup_number(const char *name, const char *file)
{
	unsigned long long number = ~0ULL;
	char path[128];
	FILE *from;

	snprintf(path, sizeof(path), CGROUPS "/%s/%s", name, file);
	from = fopen(path, "re");
	if (from && fscanf(from, "%llu", &number) != 1)
		number = ~0ULL;
	if (from)
		fclose(from);
	return number;
}

unsigned int pool_number(const struct raw *raw)
{
	unsigned int number = ~0u;
	char line[256];
	FILE *file;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", raw->file);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "xmem-pool: %u", &number) == 1)
			break;
	if (file)
		fclose(file);
	return number;
}

/* ---- time ---- */

#define MOST_RUNS	400
#define LONG_NS		20000000000ULL	/* of load are enough to compare */
#define ENOUGH		10		/* runs, if they take that long */

struct times {
	unsigned int count;
	u64 ns[MOST_RUNS];
};

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 percentile(struct times *times, unsigned int percent)
{
	qsort(times->ns, times->count, sizeof(u64), compare);
	return times->ns[times->count * percent / 100];
}

static const char *judge_times(const char *what, struct times *idle, struct times *load,
			       unsigned int percent)
{
	u64 idle50 = percentile(idle, 50), idle90 = percentile(idle, 90);
	u64 load50 = percentile(load, 50), load90 = percentile(load, 90);
	double p50 = (double)load50 / idle50, p90 = (double)load90 / idle90;

	figure("%s: x%.2f (p50), x%.2f (p90), at most x%.2f; %.3f and %.3f ms without, %.3f and "
	       "%.3f ms with; %u runs", what, p50, p90, percent / 100.0, idle50 / 1e6, idle90 / 1e6,
	       load50 / 1e6, load90 / 1e6, load->count);
	if (p50 * 100 > percent || p90 * 100 > percent)
		return wrong("%s: x%.2f (p50) and x%.2f (p90), more than x%.2f", what, p50, p90,
			     percent / 100.0);
	return NULL;
}

const char *duel(const char *what, measured *once, void *idle, void *load, unsigned int runs,
		 unsigned int percent)
{
	struct times times[2] = { { .count = 0 } };
	u64 load_ns = 0;
	unsigned int i;

	for (i = 0; i < runs && i < MOST_RUNS && (load_ns < LONG_NS || i < ENOUGH); i++) {
		GOES_WELL(once(idle, &times[0].ns[i]));
		GOES_WELL(once(load, &times[1].ns[i]));
		load_ns += times[1].ns[i];
		times[0].count = times[1].count = i + 1;
	}
	return judge_times(what, &times[0], &times[1], percent);
}

const char *fill_group(struct raw *owner, struct xmem_attach_request *attach, bool *more)
{
	int err = raw_request(owner, XMEM_IOC_ATTACH, attach);
	u32 i;

	*more = !err;
	if (err == -ENOSPC || err == -EDQUOT)
		return NULL;
	SAME(err, 0);
	SAME(raw_map_group(owner, attach->slot[0] / XMEM_GROUP_SLOTS), 0);
	for (i = 0; i < attach->count; i++) {
		u32 slot = attach->slot[i];
		u64 first = xm_slot_row(&owner->map, slot)->generation_first;

		xm_store(&xm_slot(&owner->map, slot)->state,
			 xm_word(first & ((1ULL << XMEM_CLAIMS_SHIFT) - 1), 0, XMEM_SLOT_LIVE));
	}
	attach->fd = -1;
	memset(attach->slot, 0, sizeof(attach->slot));
	return NULL;
}

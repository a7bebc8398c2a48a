// SPDX-License-Identifier: MIT
/*
 * Claims without end get an end when their owner is killed. No message says when claims end, and a
 * test cannot wait for a minute. So these tests read the timer that the host has set: the daemon's
 * is a timerfd, which /proc shows, and the kernel's tracing shows the module's.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "claims.h"

#define LONG_S	997	/* no other test asks for this time */
#define TRACE	"/sys/kernel/tracing/instances/xmem-claims"

/* ---- the daemon's timer ---- */

/* The most seconds that any of the daemon's timers has left. */
static int left_by_daemon(pid_t daemon)
{
	char path[300], line[100];
	struct dirent *entry;
	long long most = 0, seconds;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", daemon);
	folder = opendir(path);
	CHECK(folder);
	while ((entry = readdir(folder))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", daemon, entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "it_value: (%lld,", &seconds) == 1 && seconds > most)
				most = seconds;
		if (file)
			fclose(file);
	}
	closedir(folder);
	return most;
}

/* ---- the module's ---- */

static void write_trace(const char *name, const char *value)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof(path), TRACE "/%s", name);
	file = fopen(path, "w");
	if (!file)
		FAIL("%s: %s", path, strerror(errno));
	CHECK(fputs(value, file) >= 0 && !fclose(file));
}

/* The address of the kernel's function for all delayed work, or 0: the kernel does not show it. */
static unsigned long long delayed_work_function(void)
{
	char line[400], name[100];
	unsigned long long at, found = 0;
	FILE *file = fopen("/proc/kallsyms", "r");

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %99s", &at, name) == 2 &&
		    !strcmp(name, "delayed_work_timer_fn"))
			found = at;
	if (file)
		fclose(file);
	return found;
}

/*
 * Trace only timers of delayed work. An emulated kernel may set other timers faster than this
 * process can read them.
 */
static void trace_timers(void)
{
	unsigned long long function;
	char filter[64];

	if (!in_vm())
		skip("tracing is switched on in a virtual machine only");
	if (mkdir(TRACE, 0700))
		skip("this kernel has no tracing (%s: %s)", TRACE, strerror(errno));
	if (access(TRACE "/events/timer/timer_start/enable", W_OK))
		skip("this kernel does not trace its timers");
	function = delayed_work_function();
	CHECK(function);
	snprintf(filter, sizeof(filter), "function == 0x%llx", function);
	write_trace("events/timer/timer_start/filter", filter);
	write_trace("events/timer/timer_start/enable", "1");
}

/*
 * To how many seconds the timer that was first set to LONG_S was set last. The first setting gives
 * the unit. -1: there is none yet.
 */
static int left_by_module(void)
{
	static const int rates[] = { 100, 250, 300, 1000 };	/* HZ */
	char line[400], ours[32] = "", timer[32];
	int left = -1, hz = 0;
	FILE *file = fopen(TRACE "/trace", "r");
	unsigned int i;

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, "timer_start: timer="), *set;
		long long jiffies;

		if (!at || !strstr(at, "delayed_work_timer_fn") ||
		    sscanf(at, "timer_start: timer=%31s", timer) != 1)
			continue;
		set = strstr(at, "[timeout=");
		if (!set || sscanf(set, "[timeout=%lld]", &jiffies) != 1)
			continue;
		for (i = 0; !hz && i < sizeof(rates) / sizeof(*rates); i++) {
			if (jiffies <= (LONG_S - 1) * rates[i] || jiffies > LONG_S * rates[i] + 1)
				continue;
			hz = rates[i];
			strcpy(ours, timer);
		}
		if (hz && !strcmp(timer, ours))
			left = jiffies / hz;
	}
	fclose(file);
	return left;
}

/* ---- */

static void produce_for_ever(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 2, BYTES);

	tell_parent(hand_over(pool, 1, 2, XMEM_FOREVER));
	tell_parent(hand_over(pool, 2, 1, LONG_S * SECOND));
	pause();
}

TEST(P2_claims_without_end_have_one_once_their_owner_is_killed)
{
	struct xmem_pool *one;
	uint64_t endless, slow;
	struct child *child;
	const char *name;
	pid_t daemon = 0;

	if (on_kernel())
		trace_timers();
	else
		use_own_daemon();
	name = new_name();
	one = open_reader(name);
	if (!on_kernel()) {
		daemon = stop_daemon();
		continue_daemon(daemon);
	}
#define LEFT	(on_kernel() ? left_by_module() : left_by_daemon(daemon))
	child = spawn(produce_for_ever, (void *)name);
	endless = hear(child);
	slow = hear(child);
	EVENTUALLY(LEFT >= LONG_S - 60 && LEFT <= LONG_S);
	kill_child(child);
	EVENTUALLY(stat_of(one).limbo == 2);
	EVENTUALLY(LEFT <= 60);
	CHECK(LEFT > 30);
	/* Until then the claims are there. */
	SAME(claims_of(one, endless), 2);
	SAME(claims_of(one, slow), 1);
	WORKED(xmem_void_claims(one, endless));
	WORKED(xmem_void_claims(one, slow));
	EVENTUALLY(stat_of(one).attached == 0);
	check_quiet(one, 1);
	xmem_pool_close(one);
	if (on_kernel())
		CHECK(!rmdir(TRACE));
}

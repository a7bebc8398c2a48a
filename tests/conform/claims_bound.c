// SPDX-License-Identifier: MIT
/*
 * Claims without end get an end when their owner is killed. No message says when claims end, and a
 * test cannot wait for a minute. So these tests look whether the host has a tick, which it has only
 * for claims with an end: /proc shows the timer of the daemon's tick, and the kernel's tracing
 * shows the runs of the module's. Unit tests show how long the claims last then.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "claims.h"

#define TRACE	"/sys/kernel/tracing/instances/xmem-claims"

/* ---- the daemon's ---- */

/* Is any timer of the daemon set? Nobody polls, so it is the tick's. */
static bool daemon_ticks(pid_t daemon)
{
	char path[300], line[100];
	long long seconds, rest;
	struct dirent *entry;
	bool ticks = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", daemon);
	folder = opendir(path);
	CHECK(folder);
	while ((entry = readdir(folder))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", daemon, entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "it_value: (%lld, %lld)", &seconds, &rest) == 2)
				ticks |= seconds || rest;
		if (file)
			fclose(file);
	}
	closedir(folder);
	return ticks;
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

/* The address of the module's function for the tick, or 0: the kernel does not show it. */
static unsigned long long function_of_tick(void)
{
	char line[400], name[100];
	unsigned long long at, found = 0;
	FILE *file = fopen("/proc/kallsyms", "r");

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %99s", &at, name) == 2 &&
		    !strcmp(name, "xk_claims_work"))
			found = at;
	if (file)
		fclose(file);
	return found;
}

static void trace_ticks(void)
{
	unsigned long long function;
	char filter[64];

	if (!in_vm())
		skip("tracing is switched on in a virtual machine only");
	if (mkdir(TRACE, 0700))
		skip("this kernel has no tracing (%s: %s)", TRACE, strerror(errno));
	if (access(TRACE "/events/workqueue/workqueue_execute_start/enable", W_OK))
		skip("this kernel does not trace its work queues");
	function = function_of_tick();
	CHECK(function);
	snprintf(filter, sizeof(filter), "function == 0x%llx", function);
	write_trace("events/workqueue/workqueue_execute_start/filter", filter);
	write_trace("events/workqueue/workqueue_execute_start/enable", "1");
}

/* Has the tick run since the trace was cleared? */
static bool module_ticks(void)
{
	char line[400];
	bool ticks = false;
	FILE *file = fopen(TRACE "/trace", "r");

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		ticks |= strstr(line, "workqueue_execute_start:") != NULL;
	fclose(file);
	return ticks;
}

/* ---- */

static void produce_for_ever(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 2, BYTES);

	tell_parent(hand_over(pool, 1, 2, XMEM_FOREVER));
	tell_parent(hand_over(pool, 2, 1, XMEM_FOREVER));
	pause();
}

TEST(P2_claims_without_end_have_one_once_their_owner_is_killed)
{
	struct xmem_pool *one;
	uint64_t first, second;
	struct child *child;
	const char *name;
	pid_t daemon = 0;

	if (on_kernel())
		trace_ticks();
	else
		use_own_daemon();
	name = new_name();
	one = open_reader(name);
	if (!on_kernel()) {
		daemon = stop_daemon();
		continue_daemon(daemon);
	}
#define TICKS	(on_kernel() ? module_ticks() : daemon_ticks(daemon))
	child = spawn(produce_for_ever, (void *)name);
	first = hear(child);
	second = hear(child);
	if (on_kernel())
		write_trace("trace", "");	/* other tests' pools may have had ticks */
	else
		CHECK(!TICKS);
	kill_child(child);
	EVENTUALLY(stat_of(one).limbo == 2);
	EVENTUALLY(TICKS);
	/* Until then the claims are there. */
	SAME(claims_of(one, first), 2);
	SAME(claims_of(one, second), 1);
	WORKED(xmem_void_claims(one, first));
	WORKED(xmem_void_claims(one, second));
	EVENTUALLY(stat_of(one).attached == 0);
	check_quiet(one, 1);
	if (!on_kernel())
		EVENTUALLY(!TICKS);
	xmem_pool_close(one);
	if (on_kernel())
		CHECK(!rmdir(TRACE));
}

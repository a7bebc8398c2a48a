// SPDX-License-Identifier: MIT
/*
 * System calls: each loop is run under strace -c -f twice, the second time ten times as long. If
 * the total counts differ by a few at most, the loop makes no system calls. The few are of the
 * setup: a reply of the host may be there at once, or waiting for it may take two more calls.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	20000
#define ALLOWED	20	/* more calls in 180,000 more rounds */

/* Calls in a summary of strace, or -1. Columns: % time, seconds, usecs/call, calls, ... */
static long count_calls(const char *path)
{
	char line[256];
	long calls, sum = -1;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (!strstr(line, "total") && sscanf(line, "%*f %*f %*d %ld", &calls) == 1)
			sum = (sum < 0 ? 0 : sum) + calls;
	if (file)
		fclose(file);
	return sum;
}

static long strace_calls(const struct bench *bench, const char *loop, unsigned int rounds)
{
	char self[256] = "", path[320], number[16];
	int status;
	pid_t child;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		die("readlink");
	snprintf(path, sizeof(path), "%s/strace-%s-%u.txt", bench->folder, loop, rounds);
	snprintf(number, sizeof(number), "%u", rounds);
	child = fork();
	if (!child) {
		unpin(bench->cpu);
		execlp("strace", "strace", "-c", "-f", "-o", path, self, "--loop", loop, "--rounds",
		       number, NULL);
		die("strace");
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("strace");
	return count_calls(path);
}

void case_syscalls(struct bench *bench, int side)
{
	struct end keep;
	char what[64];
	int n;

	/* This pool keeps the host alive, so that the host is not started under strace. */
	end_open(&keep, bench, 0, 0);
	for (n = 0; loop_names[n]; n++) {
		long few = strace_calls(bench, loop_names[n], ROUNDS);
		long many = strace_calls(bench, loop_names[n], ROUNDS * 10);

		if (few <= 0 || many <= 0)
			die("counting system calls");
		snprintf(what, sizeof(what), "system calls, %u more %s", ROUNDS * 9, loop_names[n]);
		row_number(bench, what, "", many - few,
			   ALLOWED + loop_calls(loop_names[n]) * ROUNDS * 9);
	}
	end_close(&keep);
}

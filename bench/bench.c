// SPDX-License-Identifier: MIT
/*
 * The benchmark: its cases in order, each in processes of its own, and what
 * becomes of the table. bench/README.md says how to read it.
 *
 * Exit status: 0, 1 if a target was missed, 2 if something went wrong.
 */
#include "bench.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_SECONDS	60	/* nothing here takes that long, unless it hangs */

static const struct {
	const char *name;
	int sides;
	void (*run)(struct bench *bench, int side);
} cases[] = {
	{ "get", 1, case_get },
	{ "cycle", 1, case_cycle },
	{ "ping-pong", 2, case_ping_pong },
	{ "syscalls", 1, case_syscalls },
	{ "memory", 2, case_memory },
	{ "get-threads", 1, case_get_threads },
	{ "cycle-threads", 1, case_cycle_threads },
	{ "cycle-clients", 1, case_cycle_clients },
	{ "wake", 2, case_wake },
	{ "large", 2, case_large },
};
#define CASES	(sizeof(cases) / sizeof(cases[0]))

static pid_t start_side(struct bench *bench, void (*run)(struct bench *bench, int side), int side)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CASE_SECONDS);
	pin_to(bench->cpu[side]);
	run(bench, side);
	exit(0);
}

bool run_apart(struct bench *bench, void (*run)(struct bench *bench, int side), int sides)
{
	pid_t child[2] = { 0, 0 };
	bool good = true;
	int side, status;

	memset(bench->arrived, 0, sizeof(bench->arrived));
	memset(&bench->raw, 0, sizeof(bench->raw));
	fflush(stdout);
	for (side = 0; side < sides; side++)
		child[side] = start_side(bench, run, side);
	for (; sides; sides--) {
		pid_t ended = wait(&status);

		side = ended == child[1];
		if (good && status) {
			fprintf(stderr, "bench: side %d: %s %d\n", side,
				WIFSIGNALED(status) ? "signal" : "status",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			good = false;
			if (sides > 1)
				kill(child[!side], SIGKILL);	/* it would wait for this one */
		}
	}
	return good;
}

static int run_cases(struct bench *bench, const char *only)
{
	char path[256];
	unsigned int n, ran = 0, misses = 0;
	bool good = true;

	table_print_head();
	for (n = 0; n < CASES; n++) {
		unsigned int first = bench->rows;

		if (only && strcmp(only, cases[n].name))
			continue;
		ran++;
		snprintf(bench->name, sizeof(bench->name), "bench.%d.%u", (int)getpid(), n);
		if (!run_apart(bench, cases[n].run, cases[n].sides)) {
			printf("%-36s failed\n", cases[n].name);
			good = false;
		}
		misses += table_print(bench, first);
	}
	if (!ran) {
		fprintf(stderr, "bench: no such case: %s\n", only);
		return 2;
	}
	snprintf(path, sizeof(path), "%s/results.json", bench->folder);
	if (!table_write(bench, path))
		die(path);
	printf("bench: backend=%s targets missed=%u%s\n", bench->backend, misses,
	       good ? "" : ", incomplete");
	return good ? misses > 0 : 2;
}

static const char *loop_name;
static unsigned int loop_rounds;

static void loop_side(struct bench *bench, int side)
{
	loop_named(bench, side, loop_name, loop_rounds);
}

static int usage(void)
{
	fputs("usage: bench [--case NAME] [--reps N] [--hand-overs N] [--out FOLDER] [--untimed]\n"
	      "       bench --loop get|cycle|ping-pong --rounds N\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "case", required_argument, NULL, 'c' }, { "reps", required_argument, NULL, 'r' },
		{ "hand-overs", required_argument, NULL, 'h' },
		{ "out", required_argument, NULL, 'o' }, { "loop", required_argument, NULL, 'l' },
		{ "rounds", required_argument, NULL, 'n' }, { "untimed", no_argument, NULL, 'u' },
		{ 0 },
	};
	const char *only = NULL;
	struct bench *bench = mmap(NULL, sizeof(*bench), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int option;

	if (bench == MAP_FAILED)
		die("mmap");
	bench->reps = 1001;
	bench->hand_overs = 10000000;
	bench->folder = ".";
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c': only = optarg; break;
		case 'r': bench->reps = atoi(optarg); break;
		case 'h': bench->hand_overs = atoll(optarg); break;
		case 'o': bench->folder = optarg; break;
		case 'l': loop_name = optarg; break;
		case 'n': loop_rounds = atoi(optarg); break;
		case 'u': bench->untimed = true; break;
		default: return usage();
		}
	}
	if (optind != argc || bench->reps < 11 || bench->reps > BENCH_MAX_REPS ||
	    bench->hand_overs < 2)
		return usage();
	if (!pick_cpus(bench->cpu)) {
		fputs("bench: two CPUs are needed\n", stderr);
		return 2;
	}
	if (!loop_name)
		return run_cases(bench, only);
	snprintf(bench->name, sizeof(bench->name), "bench.%d", (int)getpid());
	return run_apart(bench, loop_side, strcmp(loop_name, "ping-pong") ? 1 : 2) ? 0 : 2;
}

// SPDX-License-Identifier: MIT
/*
 * The benchmark: its cases in order, each in processes of its own, and the output of the table.
 * bench/README.md says how to read it.
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

#define CASE_SECONDS	120	/* a case that takes longer hangs */

/* A case has sides, or is a contest, which starts processes of its own. */
static const struct {
	const char *name;
	int sides;
	bool unpinned;
	void (*run)(struct bench *bench, int side);
	void (*contest)(struct bench *bench);
} cases[] = {
	{ .name = "get", .contest = case_get },
	{ .name = "threads", .sides = 1, .run = case_threads },
	{ .name = "cycle", .contest = case_cycle },
	{ .name = "cycle-clients", .contest = case_cycle_clients },
	{ .name = "lossy", .contest = case_lossy },
	{ .name = "ping-pong", .sides = 2, .run = case_ping_pong },
	{ .name = "wake", .sides = 2, .run = case_wake },
	{ .name = "kill", .sides = 2, .run = case_kill },
	{ .name = "large", .sides = 2, .run = case_large },
	{ .name = "copy", .sides = 2, .run = case_copy },
	{ .name = "gpu", .sides = 2, .run = case_gpu },
	{ .name = "streams", .sides = 2, .unpinned = true, .run = case_streams },
	{ .name = "syscalls", .sides = 1, .run = case_syscalls },
	{ .name = "memory", .sides = 2, .run = case_memory },
	{ .name = "demand", .sides = 1, .run = case_demand },
};
#define CASES	(sizeof(cases) / sizeof(cases[0]))

static pid_t start_side(struct bench *bench, void (*run)(struct bench *bench, int side), int side,
			int cpu)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CASE_SECONDS);
	if (!bench->unpinned)
		pin_to(cpu);
	run(bench, side);
	_exit(0);
}

bool run_apart(struct bench *bench, void (*run)(struct bench *bench, int side), int sides,
	       bool together)
{
	pid_t child[BENCH_MAX_SIDES] = { 0 };
	bool good = true;
	int side, left, status;

	memset(bench->arrived, 0, sizeof(bench->arrived));
	memset(bench->came, 0, sizeof(bench->came));
	memset(&bench->raw, 0, sizeof(bench->raw));
	fflush(stdout);
	for (side = 0; side < sides; side++)
		child[side] = start_side(bench, run, side, bench->cpu[together ? 0 : side]);
	for (left = sides; left; left--) {
		pid_t ended = wait(&status);

		for (side = 0; side < sides && child[side] != ended; side++)
			;
		child[side] = 0;
		if (!good || !status)
			continue;
		fprintf(stderr, "bench: side %d: %s %d\n", side,
			WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		good = false;
		for (side = 0; side < sides; side++)	/* other contestants would wait for this
							 * one */
			if (child[side])
				kill(child[side], SIGKILL);
	}
	bench->failed |= !good;
	return good;
}

/*
 * If the host is the daemon, a process that is not pinned starts it and keeps it. Otherwise the
 * daemon would inherit one side's CPU. Returns the process, which ends with this one.
 */
static pid_t keep_host(struct bench *bench)
{
	int ready[2];
	char byte;
	pid_t child = pipe(ready) ? -1 : fork();

	if (child < 0)
		die("fork");
	if (!child) {
		struct end end;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		end_open(&end, bench, 0, 0);
		if (write(ready[1], "r", 1) != 1)
			die("write");
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(2);	/* the process has printed why */
	close(ready[0]);
	return child;
}

static void run_case(struct bench *bench, unsigned int n)
{
	bench->clients = 0;
	bench->failed = false;
	bench->unpinned = cases[n].unpinned;
	snprintf(bench->name, sizeof(bench->name), "bench.%d.%u", (int)getpid(), n);
	if (cases[n].contest)
		cases[n].contest(bench);
	else
		run_apart(bench, cases[n].run, cases[n].sides, false);
}

static void write_files(struct bench *bench)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/results.json", bench->folder);
	json_write(bench, path);
	snprintf(path, sizeof(path), "%s/ratios.tsv", bench->folder);
	plot_write(bench, path);
}

static int run_cases(struct bench *bench, const char *only)
{
	unsigned int n, ran = 0, misses = 0;
	bool good = true;
	pid_t keeper;

	snprintf(bench->name, sizeof(bench->name), "bench.%d.keep", (int)getpid());
	keeper = keep_host(bench);
	machine_describe(bench);
	table_print_head();
	for (n = 0; n < CASES; n++) {
		unsigned int first = bench->rows;

		if (only && strcmp(only, cases[n].name))
			continue;
		ran++;
		run_case(bench, n);
		if (bench->failed) {
			printf("%-36s failed\n", cases[n].name);
			good = false;
		}
		misses += table_print(bench, first);
	}
	kill(keeper, SIGKILL);
	if (!ran) {
		fprintf(stderr, "bench: no such case: %s\n", only);
		return 2;
	}
	write_files(bench);
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
	      "       bench --loop get|cycle|ping-pong|claims --rounds N\n", stderr);
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
	return run_apart(bench, loop_side, strcmp(loop_name, "ping-pong") ? 1 : 2, false) ? 0 : 2;
}

// SPDX-License-Identifier: MIT
/*
 * conform [--shard I/N] [-l] [PATTERN...]: runs the conformance tests whose names match one of the
 * patterns (as a shell matches file names). Without a pattern it runs all. With --shard it runs
 * only the I-th of N parts of these, from 1 to N. -l lists them instead. Environment:
 *
 *   XMEM_BACKEND        kernel or daemon: the host that is tested
 *   XMEM_TEST_SCALE     percent of the usual work in loops
 *   XMEM_TEST_PATIENCE  percent of the usual limits against hangs; with 10, a hanging
 *                       test fails soon on a quiet machine
 *   XMEM_TEST_PAUSES    if set, checks begin with pauses now and then (harness.h)
 *   XMEM_SOCKET         where the daemon listens; else a path of this run's own
 *   XMEM_TEST_SEED      of random tests; each prints the one that it used
 *
 * The last line is "N passed, N failed, N skipped"; the status is 1 if any failed.
 */
#include <check.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness.h"

#define MAX_TESTS	1024

static struct test *chosen[MAX_TESTS];
static struct outcome *outcomes;	/* shared with the processes of the tests */
static int chosen_count;

struct choice {
	bool list;
	unsigned int shard, shards;
	char **patterns;
};

START_TEST(one_test)
{
	run_test(chosen[_i], &outcomes[_i]);
}
END_TEST

static bool wanted(const struct test *test, char **patterns)
{
	if (!*patterns)
		return true;
	for (; *patterns; patterns++)
		if (!fnmatch(*patterns, test->name, 0))
			return true;
	return false;
}

/* Choose every N-th test: neighbours in a file are alike, so all parts take about as long. */
static void choose(const struct choice *choice)
{
	struct test *test;
	unsigned int turn = 0;

	for (test = first_test(); test; test = test->next) {
		if (!wanted(test, choice->patterns) || turn++ % choice->shards != choice->shard - 1)
			continue;
		if (chosen_count == MAX_TESTS) {
			fprintf(stderr, "conform: more than %d tests\n", MAX_TESTS);
			exit(2);
		}
		chosen[chosen_count++] = test;
	}
}

static void print_failures(SRunner *runner)
{
	TestResult **results = srunner_failures(runner);
	int i, n = srunner_ntests_failed(runner);

	for (i = 0; i < n; i++)
		printf("FAILED %s: %s:%d: %s\n", tr_tcname(results[i]), tr_lfile(results[i]),
		       tr_lno(results[i]), tr_msg(results[i]) ? tr_msg(results[i]) : "");
	free(results);
}

/* The virtual machine is emulated, and sanitizers check each access: 10 to 30 times slower. */
static bool is_slow(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return in_vm();
#endif
}

static int run_chosen(void)
{
	Suite *suite = suite_create("conform");
	SRunner *runner = srunner_create(suite);
	int i, run, failed, skipped = 0;

	for (i = 0; i < chosen_count; i++) {
		TCase *one = tcase_create(chosen[i]->name);

		tcase_set_timeout(one, 10 * patience() * chosen[i]->seconds * (is_slow() ? 5 : 1));
		tcase_add_loop_test(one, one_test, i, i + 1);
		suite_add_tcase(suite, one);
	}
	srunner_run_all(runner, CK_SILENT);
	for (i = 0; i < chosen_count; i++) {
		if (outcomes[i].stopped)	/* so that it ends */
			kill(outcomes[i].stopped, SIGCONT);
		if (!outcomes[i].skipped)
			continue;
		printf("SKIP %s: %s\n", chosen[i]->name, outcomes[i].why);
		skipped++;
	}
	print_failures(runner);
	failed = srunner_ntests_failed(runner);
	run = srunner_ntests_run(runner);
	printf("%d passed, %d failed, %d skipped\n", run - failed - skipped, failed, skipped);
	srunner_free(runner);
	return failed || !run;
}

/* "I/N", where I is from 1 to N. */
static bool parse_shard(const char *text, struct choice *choice)
{
	int end = 0;

	return text && strspn(text, "0123456789/") == strlen(text) && strlen(text) < 10 &&
	       sscanf(text, "%u/%u%n", &choice->shard, &choice->shards, &end) == 2 &&
	       !text[end] && choice->shard && choice->shard <= choice->shards;
}

static bool parse(char **argument, struct choice *choice)
{
	for (; *argument && **argument == '-'; argument++) {
		if (!strcmp(*argument, "-l"))
			choice->list = true;
		else if (strcmp(*argument, "--shard") || !parse_shard(*++argument, choice))
			return false;
	}
	choice->patterns = argument;
	return true;
}

int main(int argc, char **argv)
{
	struct choice choice = { .shard = 1, .shards = 1 };
	int i;

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!parse(argv + 1, &choice)) {
		fprintf(stderr, "usage: conform [--shard I/N] [-l] [PATTERN...]\n");
		return 2;
	}
	/* Not the daemon that the user's programs use, and not that of a second run. */
	if (!getenv("XMEM_SOCKET"))
		use_own_daemon();
	choose(&choice);
	if (!chosen_count) {
		fprintf(stderr, "conform: no such test\n");
		return 2;
	}
	for (i = 0; choice.list && i < chosen_count; i++)
		puts(chosen[i]->name);
	if (choice.list)
		return 0;
	outcomes = mmap(NULL, sizeof(*outcomes) * MAX_TESTS, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcomes == MAP_FAILED) {
		perror("conform: mmap");
		return 2;
	}
	return run_chosen();
}

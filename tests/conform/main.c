// SPDX-License-Identifier: MIT
/*
 * conform [-l] [PATTERN...]: runs the conformance tests whose names match one
 * of the patterns (as a shell matches file names), all without any. Environment:
 *
 *   XMEM_BACKEND     kernel or daemon: the host that is tested
 *   XMEM_TEST_SCALE  percent of the usual work in loops
 *   XMEM_SOCKET      where the daemon listens; else one of this run's own
 *   XMEM_TEST_SEED   of random tests; each prints the one it used
 *
 * The last line is "N passed, N failed, N skipped"; status 1 if any failed.
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

static void choose(char **patterns)
{
	struct test *test;

	for (test = first_test(); test; test = test->next) {
		if (!wanted(test, patterns))
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

/* The virtual machine is emulated, and sanitizers look at each access: 10 to 30 times slower. */
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
	int i, failed, skipped = 0;

	for (i = 0; i < chosen_count; i++) {
		TCase *one = tcase_create(chosen[i]->name);

		tcase_set_timeout(one, chosen[i]->seconds * (is_slow() ? 5 : 1));
		tcase_add_loop_test(one, one_test, i, i + 1);
		suite_add_tcase(suite, one);
	}
	srunner_run_all(runner, CK_SILENT);
	for (i = 0; i < chosen_count; i++) {
		if (outcomes[i].stopped)	/* so that it leaves */
			kill(outcomes[i].stopped, SIGCONT);
		if (!outcomes[i].skipped)
			continue;
		printf("SKIP %s: %s\n", chosen[i]->name, outcomes[i].why);
		skipped++;
	}
	print_failures(runner);
	failed = srunner_ntests_failed(runner);
	printf("%d passed, %d failed, %d skipped\n", srunner_ntests_run(runner) - failed - skipped,
	       failed, skipped);
	srunner_free(runner);
	return failed ? 1 : 0;
}

/* Not the daemon that the user's programs use, nor that of a second run. */
static void own_daemon(void)
{
	char name[32];

	snprintf(name, sizeof(name), "xmem-conform-%d", getpid());
	setenv("XMEM_SOCKET", name, 0);
}

int main(int argc, char **argv)
{
	bool list = argc > 1 && !strcmp(argv[1], "-l");
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	own_daemon();
	choose(argv + 1 + list);
	if (!chosen_count) {
		fprintf(stderr, "conform: no such test\n");
		return 2;
	}
	for (i = 0; list && i < chosen_count; i++)
		puts(chosen[i]->name);
	if (list)
		return 0;
	outcomes = mmap(NULL, sizeof(*outcomes) * MAX_TESTS, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcomes == MAP_FAILED) {
		perror("conform: mmap");
		return 2;
	}
	return run_chosen();
}

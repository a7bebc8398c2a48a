// SPDX-License-Identifier: MIT
/*
 * Runs the unit tests of the core. CK_RUN_CASE=name runs one case, CK_FORK=no keeps them in this
 * process, UNIT_SEED=n repeats the random ones. XMEM_TEST_SCALE and XMEM_TEST_PATIENCE are percents
 * of the rounds of loops and of the limit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

/*
 * The limit of a test, in seconds. It is only against hangs: Check allows 4 s, which a busy machine
 * uses up.
 */
static const char *limit(void)
{
	static char text[32];
	const char *given = getenv("XMEM_TEST_PATIENCE");

	snprintf(text, sizeof(text), "%g", 12 * (given && *given ? strtod(given, NULL) : 100));
	return text;
}

int main(void)
{
	Suite *suite = suite_create("core");
	SRunner *runner;
	int failed, run;

	setenv("CK_DEFAULT_TIMEOUT", limit(), 0);
	layout_tests(suite);
	word_tests(suite);
	hold_tests(suite);
	scan_tests(suite);
	policy_tests(suite);
	ring_tests(suite);
	garbage_tests(suite);
	client_tests(suite);
	holders_tests(suite);
	left_tests(suite);
	holders_rings_tests(suite);
	strangers_tests(suite);
	slot_tests(suite);
	waiters_tests(suite);
	looks_tests(suite);
	claims_tests(suite);
	claims_alone_tests(suite);
	reclaim_tests(suite);
	race_tests(suite);
	end_tests(suite);
	fuzz_tests(suite);
	forward_tests(suite);
	upgrade_tests(suite);
	stress_tests(suite);
	lock_tests(suite);
	tensor_tests(suite);
	strings_tests(suite);
	cuda_tests(suite);
	access_tests(suite);
	limbo_tests(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	run = srunner_ntests_run(runner);
	printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
	srunner_free(runner);
	return failed || !run;
}

// SPDX-License-Identifier: MIT
/*
 * Runs the unit tests of the core. CK_RUN_CASE=name runs one case, CK_FORK=no
 * keeps them in this process, UNIT_SEED=n repeats the random ones.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

int main(void)
{
	Suite *suite = suite_create("core");
	SRunner *runner;
	int failed;

	/* Against hangs only: on a busy machine 4 s, which Check allows, are soon over. */
	setenv("CK_DEFAULT_TIMEOUT", "120", 0);
	layout_tests(suite);
	word_tests(suite);
	hold_tests(suite);
	scan_tests(suite);
	policy_tests(suite);
	ring_tests(suite);
	garbage_tests(suite);
	client_tests(suite);
	holders_tests(suite);
	holders_rings_tests(suite);
	strangers_tests(suite);
	slot_tests(suite);
	waiters_tests(suite);
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
	cuda_tests(suite);
	access_tests(suite);
	limbo_tests(suite);
	kept_tests(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	printf("%d passed, %d failed, 0 skipped\n", srunner_ntests_run(runner) - failed, failed);
	srunner_free(runner);
	return failed != 0;
}

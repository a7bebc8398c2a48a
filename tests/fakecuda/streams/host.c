// SPDX-License-Identifier: MIT
/* Functions of the program that streams call, and what happens to them after a sticky error. */
#include <semaphore.h>

#include "test.h"

static void call_the_driver(void *user)
{
	CUresult *results = user;

	results[0] = cuStreamQuery(NULL);
	results[1] = cuInit(0);
	results[2] = cuCtxSynchronize();
}

static void host_functions_may_not_call_the_driver(void)
{
	CUresult results[3] = { -1, -1, -1 };

	begin(0);
	OK(cuLaunchHostFunc(NULL, call_the_driver, results));
	OK(cuStreamSynchronize(NULL));
	CHECK(results[0] == 800 && results[2] == 800);
	OK(cuStreamQuery(NULL));
	CHECK(cuFakeViolations() > 0);
}

static int callback_status = -1;
static sem_t called;

static void note_status(CUstream stream, CUresult status, void *user)
{
	callback_status = status;
	count_up(user);
	sem_post(&called);
}

static void host_functions_are_not_called_in_an_error(void)
{
	int functions = 0, callbacks = 0;
	struct gate *gate;
	CUstream a;

	begin(0);
	CHECK(!sem_init(&called, 0, 0));
	OK(cuStreamCreate(&a, 0));
	gate = gate_in(a);
	OK(cuLaunchHostFunc(a, count_up, &functions));
	OK(cuStreamAddCallback(a, note_status, &callbacks, 0));
	cuFakeSticky(719);
	gate_open(gate);
	CHECK(!sem_wait(&called));
	EXPECT(cuStreamSynchronize(a), 719);
	EXPECT(cuStreamQuery(a), 719);
	EXPECT(cuLaunchHostFunc(a, count_up, &functions), 719);
	cuFakeSticky(0);
	OK(cuStreamSynchronize(a));
	CHECK(functions == 0);
	CHECK(callbacks == 1 && callback_status == 719);
}

static void nonsense_is_refused(void)
{
	int count = 0;

	begin(0);
	EXPECT(cuLaunchHostFunc(NULL, NULL, &count), 1);
	EXPECT(cuStreamAddCallback(NULL, note_status, &count, 1), 1);
	CHECK(count == 0);
}

const struct test host_tests[] = {
	TEST(host_functions_may_not_call_the_driver),
	TEST(host_functions_are_not_called_in_an_error),
	TEST(nonsense_is_refused),
	{ 0 },
};

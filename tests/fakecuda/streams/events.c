// SPDX-License-Identifier: MIT
/* Events of one process: refusals, and the answers of events. */
#include "test.h"

static void unrecorded_events_are_complete(void)
{
	CUevent event;

	begin(0);
	OK(cuEventCreate(&event, 0));
	OK(cuEventQuery(event));
	OK(cuEventSynchronize(event));
	OK(cuStreamWaitEvent(NULL, event, 0));
	OK(cuEventDestroy_v2(event));
	EXPECT(cuEventQuery(event), 400);
	EXPECT(cuEventRecord(event, NULL), 400);
	EXPECT(cuStreamWaitEvent(NULL, event, 0), 400);
	EXPECT(cuEventDestroy_v2(event), 400);
}

static void pending_events_are_not_ready(void)
{
	struct gate *gate;
	CUevent event;

	begin(0);
	OK(cuEventCreate(&event, 2));
	gate = gate_in(NULL);
	OK(cuEventRecord(event, NULL));
	EXPECT(cuEventQuery(event), 600);
	gate_open(gate);
	OK(cuEventSynchronize(event));
	OK(cuEventQuery(event));
}

static void wrong_flags_are_refused(void)
{
	CUevent event;

	begin(0);
	EXPECT(cuEventCreate(&event, 4), 1);
	EXPECT(cuEventCreate(&event, 8), 1);
	EXPECT(cuEventCreate(NULL, 0), 1);
	OK(cuEventCreate(&event, 6));
	EXPECT(cuEventRecordWithFlags(event, NULL, 1), 1);
	OK(cuEventRecordWithFlags(event, NULL, 0));
	EXPECT(cuStreamWaitEvent(NULL, event, 2), 1);
	OK(cuCtxSetCurrent(NULL));
	EXPECT(cuEventCreate(&event, 0), 201);
}

static void other_contexts_events_are_not_recorded(void)
{
	CUcontext second;
	CUstream stream;
	CUevent event;

	setenv("FAKECUDA_DEVICES", "2", 1);
	begin(0);
	OK(cuEventCreate(&event, 2));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	OK(cuStreamCreate(&stream, 0));
	EXPECT(cuEventRecord(event, stream), 400);
	EXPECT(cuEventRecord(event, NULL), 400);
	OK(cuStreamWaitEvent(stream, event, 0));
}

static void time_passes(void)
{
	CUevent first, last, untimed;
	float ms = -1;

	begin(2000);
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	OK(cuEventCreate(&untimed, 2));
	EXPECT(cuEventElapsedTime(&ms, first, last), 400);
	OK(cuEventRecord(first, NULL));
	OK(cuEventRecord(last, NULL));
	OK(cuEventRecord(untimed, NULL));
	OK(cuCtxSynchronize());
	OK(cuEventElapsedTime(&ms, first, last));
	CHECK(ms > 0);
	OK(cuEventElapsedTime(&ms, last, first));
	CHECK(ms < 0);
	EXPECT(cuEventElapsedTime(&ms, first, untimed), 400);
}

const struct test event_tests[] = {
	TEST(unrecorded_events_are_complete),
	TEST(pending_events_are_not_ready),
	TEST(wrong_flags_are_refused),
	TEST(other_contexts_events_are_not_recorded),
	TEST(time_passes),
	{ 0 },
};

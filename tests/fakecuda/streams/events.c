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

/* Streams that are ordered with no other one, the name of one of which is gone. */
static void an_event_of_a_context_follows_all_its_streams(void)
{
	CUcontext context = begin(300);
	CUstream kept, gone, third;
	int count = 0, i;
	CUevent event;

	OK(cuEventCreate(&event, 2));
	OK(cuStreamCreate(&kept, 1));
	OK(cuStreamCreate(&third, 1));
	for (i = 1; i <= ROUNDS; i++) {
		OK(cuStreamCreate(&gone, 1));
		OK(cuLaunchHostFunc(kept, count_up, &count));
		OK(cuLaunchHostFunc(gone, count_up, &count));
		OK(cuLaunchHostFunc(NULL, count_up, &count));
		OK(cuStreamDestroy_v2(gone));
		OK(cuCtxRecordEvent(context, event));
		OK(cuStreamWaitEvent(third, event, 0));
		OK(cuLaunchHostFunc(third, count_up, &count));
		OK(cuEventSynchronize(event));
		CHECK(__atomic_load_n(&count, __ATOMIC_SEQ_CST) >= 4 * i - 1);
		OK(cuStreamSynchronize(third));
		CHECK(count == 4 * i);
	}
}

static void an_event_of_a_context_does_not_follow_later_work(void)
{
	CUcontext context = begin(0);
	struct gate *gate;
	CUevent event;
	CUstream a;

	OK(cuEventCreate(&event, 2));
	OK(cuStreamCreate(&a, 1));
	OK(cuCtxRecordEvent(context, event));
	gate = gate_in(a);
	OK(cuEventSynchronize(event));
	OK(cuCtxRecordEvent(context, event));
	EXPECT(cuEventQuery(event), 600);
	gate_open(gate);
	OK(cuEventSynchronize(event));
}

static void an_event_of_a_context_is_of_that_context(void)
{
	CUcontext context = begin(0), second;
	CUevent event, other;

	OK(cuEventCreate(&event, 2));
	OK(cuCtxCreate_v2(&second, 0, 0));
	OK(cuEventCreate(&other, 2));
	EXPECT(cuCtxRecordEvent(second, event), 400);
	EXPECT(cuCtxRecordEvent(context, other), 400);
	EXPECT(cuCtxRecordEvent(NULL, event), 201);
	OK(cuCtxSetCurrent(NULL));	/* no context need be current */
	OK(cuCtxRecordEvent(context, event));
	OK(cuEventDestroy_v2(event));
	EXPECT(cuCtxRecordEvent(context, event), 400);
}

static void an_event_of_a_context_spoils_captures(void)
{
	CUcontext context = begin(0);
	struct gate *gate;
	CUgraph graph;
	CUevent event;
	CUstream a, b;
	int mode = 2;

	OK(cuEventCreate(&event, 2));
	OK(cuStreamCreate(&a, 1));
	OK(cuStreamCreate(&b, 1));
	OK(cuStreamBeginCapture_v2(a, 2));
	OK(cuThreadExchangeStreamCaptureMode(&mode));	/* no mode allows it */
	gate = gate_in(b);
	EXPECT(cuCtxRecordEvent(context, event), 900);
	OK(cuEventQuery(event));			/* it was not recorded */
	EXPECT(cuStreamEndCapture(a, &graph), 901);
	OK(cuCtxRecordEvent(context, event));
	EXPECT(cuEventQuery(event), 600);
	gate_open(gate);
	OK(cuEventSynchronize(event));
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
	TEST(an_event_of_a_context_follows_all_its_streams),
	TEST(an_event_of_a_context_does_not_follow_later_work),
	TEST(an_event_of_a_context_is_of_that_context),
	TEST(an_event_of_a_context_spoils_captures),
	TEST(time_passes),
	{ 0 },
};

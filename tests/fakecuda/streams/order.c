// SPDX-License-Identifier: MIT
/*
 * The order of two streams, with a first function in one and a second in the other. With the right
 * order the second always sees the effect of the first. Without it, the second sometimes does not;
 * a test checks that too, because otherwise these tests could not fail.
 */
#include <pthread.h>
#include <string.h>

#include "test.h"

#define BLOCKING 0
#define NON_BLOCKING 1
#define PER_THREAD ((CUstream)2)

struct pair {
	int first;
	int seen;	/* by the second function */
};

static void do_first(void *user)
{
	struct pair *pair = user;

	__atomic_store_n(&pair->first, 1, __ATOMIC_SEQ_CST);
}

static void do_second(void *user)
{
	struct pair *pair = user;

	pair->seen = __atomic_load_n(&pair->first, __ATOMIC_SEQ_CST);
}

/* Did the second function run after the first? between(...) may put them in order. */
static bool right_round(CUstream a, CUstream b, void (*between)(CUstream a, CUstream b))
{
	struct pair pair = { 0 };

	OK(cuLaunchHostFunc(a, do_first, &pair));
	if (between)
		between(a, b);
	OK(cuLaunchHostFunc(b, do_second, &pair));
	OK(cuCtxSynchronize());
	return pair.seen;
}

static int right_rounds(CUstream a, CUstream b, void (*between)(CUstream a, CUstream b))
{
	int right = 0, i;

	for (i = 0; i < ROUNDS; i++)
		right += right_round(a, b, between);
	return right;
}

/* A busy machine may prefer one order for long, so there are more rounds than usual. */
static bool come_in_both_orders(CUstream a, CUstream b)
{
	int right = 0, i;

	for (i = 1; i <= MANY_ROUNDS; i++) {
		right += right_round(a, b, NULL);
		if (right && right < i)
			return true;
	}
	return false;
}

static CUstream new_stream(unsigned int flags)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, flags));
	return stream;
}

static void record_and_wait(CUstream a, CUstream b)
{
	CUevent event;

	OK(cuEventCreate(&event, 2));
	OK(cuEventRecord(event, a));
	OK(cuStreamWaitEvent(b, event, 0));
	OK(cuEventDestroy_v2(event));
}

static void one_stream_keeps_its_order(void)
{
	CUstream a;

	begin(2000);
	a = new_stream(NON_BLOCKING);
	CHECK(right_rounds(a, a, NULL) == ROUNDS);
}

static void two_streams_are_not_ordered(void)
{
	begin(2000);
	CHECK(come_in_both_orders(new_stream(BLOCKING), new_stream(BLOCKING)));
}

static void waiting_for_an_event_orders(void)
{
	begin(2000);
	CHECK(right_rounds(new_stream(NON_BLOCKING), new_stream(NON_BLOCKING),
			   record_and_wait) == ROUNDS);
}

static void synchronise_stream(CUstream a, CUstream b)
{
	OK(cuStreamSynchronize(a));
}

static void synchronising_orders(void)
{
	begin(2000);
	CHECK(right_rounds(new_stream(NON_BLOCKING), new_stream(NON_BLOCKING),
			   synchronise_stream) == ROUNDS);
}

static void legacy_stream_waits_for_blocking_ones(void)
{
	begin(2000);
	CHECK(right_rounds(new_stream(BLOCKING), NULL, NULL) == ROUNDS);
}

static void blocking_streams_wait_for_the_legacy_one(void)
{
	begin(2000);
	CHECK(right_rounds(NULL, new_stream(BLOCKING), NULL) == ROUNDS);
}

static void legacy_operation(CUstream a, CUstream b)
{
	static int count;

	OK(cuLaunchHostFunc(NULL, count_up, &count));
}

static void legacy_operation_orders_blocking_streams(void)
{
	begin(2000);
	CHECK(right_rounds(new_stream(BLOCKING), new_stream(BLOCKING), legacy_operation) ==
	      ROUNDS);
}

static void legacy_stream_and_non_blocking_ones_are_not_ordered(void)
{
	CUstream a;

	begin(2000);
	a = new_stream(NON_BLOCKING);
	CHECK(come_in_both_orders(a, NULL));
	CHECK(come_in_both_orders(NULL, a));
}

static void per_thread_stream_is_ordered_with_the_legacy_one(void)
{
	begin(2000);
	CHECK(right_rounds(PER_THREAD, NULL, NULL) == ROUNDS);
	CHECK(right_rounds(NULL, PER_THREAD, NULL) == ROUNDS);
}

static void stream_0_of_the_other_variants_is_the_threads_own(void)
{
	struct gate *gate;
	int count = 0;

	begin(0);
	gate = gate_in(PER_THREAD);
	OK(cuStreamQuery(new_stream(BLOCKING)));
	EXPECT(cuStreamQuery_ptsz(NULL), 600);
	OK(cuLaunchHostFunc_ptsz(NULL, count_up, &count));
	CHECK(count == 0);
	gate_open(gate);
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK(count == 1);
}

static void *look_at_own_stream(void *context)
{
	OK(cuCtxSetCurrent(context));
	OK(cuStreamQuery(PER_THREAD));
	return NULL;
}

static void each_thread_has_a_stream_of_its_own(void)
{
	CUcontext context = begin(0);
	struct gate *gate = gate_in(PER_THREAD);
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, look_at_own_stream, context));
	pthread_join(thread, NULL);
	EXPECT(cuStreamQuery(PER_THREAD), 600);
	gate_open(gate);
	OK(cuStreamSynchronize(PER_THREAD));
}

static void a_wait_is_for_the_record_of_its_time(void)
{
	CUstream a, b, c;
	struct gate *gate;
	CUevent event;
	int count = 0;

	begin(0);
	a = new_stream(NON_BLOCKING);
	b = new_stream(NON_BLOCKING);
	c = new_stream(NON_BLOCKING);
	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, a));
	OK(cuStreamWaitEvent(b, event, 0));
	OK(cuStreamSynchronize(b));
	OK(cuStreamWaitEvent(c, event, 0));
	gate = gate_in(a);
	OK(cuEventRecord(event, a));
	OK(cuStreamSynchronize(c));
	EXPECT(cuEventQuery(event), 600);
	gate_open(gate);
	OK(cuEventSynchronize(event));
	OK(cuLaunchHostFunc(a, count_up, &count));
	OK(cuStreamSynchronize(a));
	CHECK(count == 1);
}

static void queries_tell_what_is_pending(void)
{
	struct gate *gate;
	CUstream a;

	begin(0);
	a = new_stream(BLOCKING);
	OK(cuStreamQuery(a));
	gate = gate_in(a);
	EXPECT(cuStreamQuery(a), 600);
	EXPECT(cuStreamQuery(NULL), 600);
	gate_open(gate);
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamQuery(a));
	OK(cuStreamQuery(NULL));
}

static void a_destroyed_stream_ends_its_work(void)
{
	struct gate *gate;
	int count = 0, i;
	CUstream a;

	begin(100);
	a = new_stream(NON_BLOCKING);
	gate = gate_in(a);
	for (i = 0; i < 10; i++)
		OK(cuLaunchHostFunc(a, count_up, &count));
	OK(cuStreamDestroy_v2(a));
	EXPECT(cuStreamQuery(a), 400);
	EXPECT(cuLaunchHostFunc(a, count_up, &count), 400);
	EXPECT(cuStreamDestroy_v2(a), 400);
	gate_open(gate);
	OK(cuCtxSynchronize());
	CHECK(count == 10);
}

static void streams_know_their_context(void)
{
	CUcontext context, found;
	CUstream a;
	int status = 7;

	EXPECT(cuStreamCreate(&a, 0), 3);
	context = begin(0);
	a = new_stream(BLOCKING);
	OK(cuStreamGetCtx(a, &found));
	CHECK(found == context);
	OK(cuStreamIsCapturing(a, &status));
	CHECK(status == 0);
	EXPECT(cuStreamCreate(&a, 2), 1);
	EXPECT(cuStreamQuery((CUstream)&status), 400);
	OK(cuCtxSetCurrent(NULL));
	EXPECT(cuStreamCreate(&a, 0), 201);
	EXPECT(cuStreamQuery(NULL), 201);
}

const struct test order_tests[] = {
	TEST(one_stream_keeps_its_order),
	TEST(two_streams_are_not_ordered),
	TEST(waiting_for_an_event_orders),
	TEST(synchronising_orders),
	TEST(legacy_stream_waits_for_blocking_ones),
	TEST(blocking_streams_wait_for_the_legacy_one),
	TEST(legacy_operation_orders_blocking_streams),
	TEST(legacy_stream_and_non_blocking_ones_are_not_ordered),
	TEST(per_thread_stream_is_ordered_with_the_legacy_one),
	TEST(stream_0_of_the_other_variants_is_the_threads_own),
	TEST(each_thread_has_a_stream_of_its_own),
	TEST(a_wait_is_for_the_record_of_its_time),
	TEST(queries_tell_what_is_pending),
	TEST(a_destroyed_stream_ends_its_work),
	TEST(streams_know_their_context),
	{ 0 },
};

// SPDX-License-Identifier: MIT
/* Streams that are captured, what spoils a capture, and the replay of what was captured. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "test.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { UNSUPPORTED = 900, INVALIDATED = 901, IMPLICIT = 906, WRONG_THREAD = 908 };

static CUstream new_stream(unsigned int flags)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, flags));
	return stream;
}

static int status_of(CUstream stream)
{
	int status = 7;

	OK(cuStreamIsCapturing(stream, &status));
	return status;
}

static uint64_t *page;

static void register_page(void)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	OK(cuMemHostRegister_v2(page, 4096, 2));
}

static CUgraphExec end(CUstream stream)
{
	CUgraphExec exec;
	CUgraph graph;

	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

static void captured_work_runs_when_the_graph_is_launched(void)
{
	CUgraphExec exec;
	CUdeviceptr at;
	CUstream a;
	int count = 0;

	begin(300);
	register_page();
	OK(cuMemAlloc_v2(&at, 4096));
	a = new_stream(1);
	page[0] = 5;
	OK(cuStreamBeginCapture_v2(a, GLOBAL));
	CHECK(status_of(a) == 1 && status_of(NULL) == 0);
	OK(cuMemcpyHtoDAsync_v2(at, page, 8, a));
	OK(cuLaunchHostFunc(a, count_up, &count));
	OK(cuMemcpyDtoHAsync_v2(page + 1, at, 8, a));
	OK(cuStreamWriteValue64_v2(a, (CUdeviceptr)(page + 2), 9, 0));
	exec = end(a);
	CHECK(status_of(a) == 0);
	OK(cuStreamSynchronize(a));
	CHECK(!count && !page[1] && !page[2]);
	page[0] = 6;			/* the copy reads when it runs */
	OK(cuGraphLaunch(exec, a));
	OK(cuStreamSynchronize(a));
	CHECK(count == 1 && page[1] == 6 && page[2] == 9);
	page[0] = 7;
	page[2] = 0;
	OK(cuGraphLaunch(exec, a));
	OK(cuStreamSynchronize(a));
	CHECK(count == 2 && page[1] == 7 && page[2] == 9);
	OK(cuGraphExecDestroy(exec));
	EXPECT(cuGraphLaunch(exec, a), 1);
}

static void nodes_have_the_types_of_the_calls(void)
{
	const int types[] = { 2, 12, 3, 1 };
	CUgraphNode nodes[4];
	size_t i, count = 0;
	CUdeviceptr at;
	CUgraph graph;
	CUstream a;
	int type;

	begin(0);
	OK(cuMemAlloc_v2(&at, 4096));
	a = new_stream(1);
	OK(cuStreamBeginCapture_v2(a, RELAXED));
	OK(cuMemsetD8Async(at, 1, 8, a));
	OK(cuStreamWaitValue64_v2(a, at, 1, 0));
	OK(cuLaunchHostFunc(a, count_up, &type));
	OK(cuMemcpyDtoDAsync_v2(at + 8, at, 8, a));
	OK(cuStreamEndCapture(a, &graph));
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 4);
	OK(cuGraphGetNodes(graph, nodes, &count));
	for (i = 0; i < 4; i++) {
		OK(cuGraphNodeGetType(nodes[i], &type));
		CHECK(type == types[i]);
	}
	OK(cuGraphDestroy(graph));
	EXPECT(cuGraphNodeGetType(nodes[0], &type), 1);
	EXPECT(cuGraphDestroy(graph), 1);
}

static struct copy_params line(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return (struct copy_params){
		.from = { .type = 2, .device = from, .pitch = bytes, .height = 1 },
		.to = { .type = 2, .device = to, .pitch = bytes, .height = 1 },
		.bytes = bytes, .height = 1, .depth = 1,
	};
}

static void a_copy_gets_other_addresses(void)
{
	CUcontext context = begin(300);
	struct copy_params params;
	uint64_t word = 1, got;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr at;
	size_t count = 1;
	CUstream a;

	OK(cuMemAlloc_v2(&at, 4096));
	for (word = 0; word < 4; word++)
		OK(cuMemcpyHtoD_v2(at + 8 * word, &word, 8));
	a = new_stream(1);
	OK(cuStreamBeginCapture_v2(a, GLOBAL));
	OK(cuMemcpyDtoDAsync_v2(at + 80, at, 8, a));
	OK(cuStreamEndCapture(a, &graph));
	OK(cuGraphGetNodes(graph, &node, &count));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (word = 1; word < 4; word++) {
		params = line(at + 80, at + 8 * word, 8);
		OK(cuGraphExecMemcpyNodeSetParams(exec, node, &params, context));
		OK(cuGraphLaunch(exec, a));
		params = line(at + 88, at, 8);		/* is for later launches only */
		OK(cuGraphExecMemcpyNodeSetParams(exec, node, &params, context));
		OK(cuStreamSynchronize(a));
		OK(cuMemcpyDtoH_v2(&got, at + 80, 8));
		CHECK(got == word);
	}
	params.to.type = 1;
	params.to.host = &got;
	EXPECT(cuGraphExecMemcpyNodeSetParams(exec, node, &params, context), 1);
	EXPECT(cuGraphExecMemcpyNodeSetParams(exec, (CUgraphNode)graph, &params, context), 1);
}

static void a_graph_does_not_run_beside_itself(void)
{
	struct gate *gate;
	CUgraphExec exec;
	CUstream a, b;
	int count = 0;

	begin(0);
	a = new_stream(1);
	b = new_stream(1);
	OK(cuStreamBeginCapture_v2(a, GLOBAL));
	OK(cuLaunchHostFunc(a, count_up, &count));
	exec = end(a);
	gate = gate_in(a);
	OK(cuGraphLaunch(exec, a));
	OK(cuGraphLaunch(exec, b));
	EXPECT(cuStreamQuery(b), 600);
	CHECK(!__atomic_load_n(&count, __ATOMIC_SEQ_CST));
	gate_open(gate);
	OK(cuStreamSynchronize(b));
	CHECK(count == 2);
}

/* ---- spoiling a capture ---- */

static CUresult allocate(void)
{
	CUdeviceptr at;

	return cuMemAlloc_v2(&at, 4096);
}

static void *allocate_in_thread(void *context)
{
	OK(cuCtxSetCurrent(context));
	return (void *)(intptr_t)allocate();
}

/* An allocation in this thread, or in another one: its result, and whether it has spoilt. */
static void check_unsafe(CUcontext context, int mode, bool elsewhere, bool spoils)
{
	CUstream a = new_stream(1);
	CUgraph graph = (CUgraph)a;
	pthread_t thread;
	void *result;

	OK(cuStreamBeginCapture_v2(a, mode));
	if (elsewhere) {
		CHECK(!pthread_create(&thread, NULL, allocate_in_thread, context));
		CHECK(!pthread_join(thread, &result));
	} else {
		result = (void *)(intptr_t)allocate();
	}
	CHECK((intptr_t)result == (spoils ? UNSUPPORTED : 0));
	CHECK(status_of(a) == (spoils ? 2 : 1));
	if (spoils)
		EXPECT(cuLaunchHostFunc(a, count_up, NULL), INVALIDATED);
	EXPECT(cuStreamEndCapture(a, &graph), spoils ? INVALIDATED : 0);
	CHECK(!graph == spoils);
	CHECK(status_of(a) == 0);
	OK(allocate());
}

static void unsafe_calls_spoil_captures_of_their_modes(void)
{
	CUcontext context = begin(0);
	int mode = RELAXED;

	check_unsafe(context, GLOBAL, false, true);
	check_unsafe(context, THREAD_LOCAL, false, true);
	check_unsafe(context, RELAXED, false, false);
	check_unsafe(context, GLOBAL, true, true);
	check_unsafe(context, THREAD_LOCAL, true, false);
	check_unsafe(context, RELAXED, true, false);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == GLOBAL);
	check_unsafe(context, GLOBAL, false, false);
	check_unsafe(context, THREAD_LOCAL, false, false);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == RELAXED);
	check_unsafe(context, GLOBAL, false, true);
}

static CUstream captured(unsigned int flags)
{
	CUstream stream = new_stream(flags);

	OK(cuStreamBeginCapture_v2(stream, RELAXED));
	CHECK(status_of(stream) == 1);
	return stream;
}

static void to_ask_a_captured_stream_spoils_the_capture(void)
{
	CUstream a, other;
	CUgraph graph;

	begin(0);
	other = new_stream(1);
	a = captured(1);
	OK(cuStreamQuery(other));
	OK(cuStreamSynchronize(NULL));
	CHECK(status_of(a) == 1);
	EXPECT(cuStreamQuery(a), UNSUPPORTED);
	EXPECT(cuStreamEndCapture(a, &graph), INVALIDATED);
	a = captured(1);
	EXPECT(cuStreamSynchronize(a), UNSUPPORTED);
	EXPECT(cuStreamEndCapture(a, &graph), INVALIDATED);
	a = captured(1);
	EXPECT(cuCtxSynchronize(), UNSUPPORTED);
	EXPECT(cuStreamEndCapture(a, &graph), INVALIDATED);
	OK(cuCtxSynchronize());
}

static void a_captured_blocking_stream_takes_the_legacy_one(void)
{
	CUgraph graph;
	int status, count = 0;
	CUstream a;

	begin(0);
	a = captured(0);
	EXPECT(cuStreamIsCapturing(NULL, &status), IMPLICIT);
	CHECK(status_of(a) == 1);
	EXPECT(cuLaunchHostFunc(NULL, count_up, &count), IMPLICIT);
	EXPECT(cuStreamEndCapture(a, &graph), INVALIDATED);
	a = captured(0);
	EXPECT(cuStreamSynchronize(NULL), IMPLICIT);
	EXPECT(cuStreamEndCapture(a, &graph), INVALIDATED);
	OK(cuLaunchHostFunc(NULL, count_up, &count));
	OK(cuStreamSynchronize(NULL));
	CHECK(count == 1);
}

static void *end_in_thread(void *stream)
{
	CUgraph graph;

	return (void *)(intptr_t)cuStreamEndCapture(stream, &graph);
}

static void wrong_captures_are_refused(void)
{
	pthread_t thread;
	CUgraph graph;
	void *result;
	CUstream a;

	begin(0);
	EXPECT(cuStreamBeginCapture_v2(NULL, GLOBAL), UNSUPPORTED);
	a = new_stream(1);
	EXPECT(cuStreamBeginCapture_v2(a, 3), 1);
	EXPECT(cuStreamEndCapture(a, &graph), 401);
	OK(cuStreamBeginCapture_v2(a, GLOBAL));
	EXPECT(cuStreamBeginCapture_v2(a, GLOBAL), 401);
	CHECK(!pthread_create(&thread, NULL, end_in_thread, a));
	CHECK(!pthread_join(thread, &result));
	CHECK((intptr_t)result == WRONG_THREAD);
	OK(cuStreamEndCapture(a, &graph));
	OK(cuStreamBeginCapture_v2(a, GLOBAL));
	OK(cuStreamDestroy_v2(a));
	OK(allocate());
}

const struct test graph_tests[] = {
	TEST(captured_work_runs_when_the_graph_is_launched),
	TEST(nodes_have_the_types_of_the_calls),
	TEST(a_copy_gets_other_addresses),
	TEST(a_graph_does_not_run_beside_itself),
	TEST(unsafe_calls_spoil_captures_of_their_modes),
	TEST(to_ask_a_captured_stream_spoils_the_capture),
	TEST(a_captured_blocking_stream_takes_the_legacy_one),
	TEST(wrong_captures_are_refused),
	{ 0 },
};

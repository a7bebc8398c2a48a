// SPDX-License-Identifier: MIT
/* Modules, and kernels that run as functions of the CPU. */
#include <string.h>
#include <unistd.h>

#include "test.h"

#define COUNT 5000u

/*
 * The file that nvcc, or its replacement, has made of tests/cuda/kernels.cu. It lies beside the
 * program.
 */
static char *image(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *text = calloc(1, 1 << 20);
	FILE *file;

	CHECK(length > 0 && text);
	path[length] = 0;
	strcpy(strrchr(path, '/'), "/kernels.ptx");
	file = fopen(path, "re");
	CHECK(file);
	CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	return text;
}

static CUfunction function_of(const char *name)
{
	char *text = image();
	CUfunction function;
	CUmodule module;

	OK(cuModuleLoadData(&module, text));
	free(text);
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static void launch(CUfunction function, void **parameters)
{
	OK(cuLaunchKernel(function, 3, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
}

static void kernels_compute(void)
{
	CUdeviceptr a, b, sum;
	unsigned int value = 5;
	unsigned long long count = COUNT, got = 0;
	uint32_t last;

	begin(300);
	OK(cuMemAlloc_v2(&a, COUNT * 4));
	OK(cuMemAlloc_v2(&b, COUNT * 4));
	OK(cuMemAlloc_v2(&sum, 8));
	OK(cuMemcpyHtoD_v2(sum, &got, 8));
	launch(function_of("xm_fill"), (void *[]){ &a, &value, &count });
	value = 2;
	launch(function_of("xm_add"), (void *[]){ &a, &value, &count });
	launch(function_of("xm_copy"), (void *[]){ &b, &a, &count });
	launch(function_of("xm_checksum"), (void *[]){ &sum, &b, &count });
	OK(cuMemcpyDtoH_v2(&got, sum, 8));
	CHECK(got == 7ull * COUNT * (COUNT + 1) / 2);
	OK(cuMemcpyDtoH_v2(&last, b + (COUNT - 1) * 4, 4));
	CHECK(last == 7);
}

static void a_kernel_of_a_graph_gets_other_arguments(void)
{
	unsigned int value = 1;
	unsigned long long count = 1;
	struct node_params params = { .grid = { { 1, 1, 1 }, { 1, 1, 1 } } };
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr at;
	uint32_t got[2];
	size_t nodes = 1;
	CUstream a;

	begin(300);
	OK(cuMemAlloc_v2(&at, 8));
	OK(cuStreamCreate(&a, 1));
	params.function = function_of("xm_fill");
	params.parameters = (void *[]){ &at, &value, &count };
	OK(cuStreamBeginCapture_v2(a, 0));
	OK(cuLaunchKernel(params.function, 1, 1, 1, 1, 1, 1, 0, a, params.parameters, NULL));
	OK(cuStreamEndCapture(a, &graph));
	OK(cuGraphGetNodes(graph, &node, &nodes));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, a));
	at += 4;
	value = 2;
	OK(cuGraphExecKernelNodeSetParams(exec, node, &params));
	OK(cuGraphLaunch(exec, a));
	OK(cuStreamSynchronize(a));
	OK(cuMemcpyDtoH_v2(got, at - 4, 8));
	CHECK(got[0] == 1 && got[1] == 2);
	params.function = NULL;
	EXPECT(cuGraphExecKernelNodeSetParams(exec, node, &params), 1);
}

static void unknown_ones_are_not_found(void)
{
	CUfunction function;
	CUmodule module;
	char *text;

	begin(0);
	setenv("FAKECUDA_LACKS", "/dev/null", 1);
	text = image();
	EXPECT(cuModuleLoadData(&module, "\177ELF"), 200);
	OK(cuModuleLoadData(&module, text));
	EXPECT(cuModuleGetFunction(&function, module, "xm_nothing"), 500);
	OK(cuModuleGetFunction(&function, module, "xm_fill"));
	OK(cuModuleUnload(module));
	EXPECT(cuModuleUnload(module), 400);
	EXPECT(cuModuleGetFunction(&function, module, "xm_fill"), 400);
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 400);
	OK(cuModuleLoadData(&module, ".version 8.0 .entry without_twin("));
	EXPECT(cuModuleGetFunction(&function, module, "without_twin"), 500);
	EXPECT(cuModuleGetFunction(&function, module, "xm_fill"), 500);
}

static void impossible_launches_are_refused(void)
{
	unsigned int value = 1;
	unsigned long long count = 1;
	CUdeviceptr a;
	void *parameters[] = { &a, &value, &count };
	CUfunction fill;

	begin(0);
	OK(cuMemAlloc_v2(&a, 4));
	fill = function_of("xm_fill");
	EXPECT(cuLaunchKernel(fill, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), 1);
	EXPECT(cuLaunchKernel(fill, 1, 1, 1, 1025, 1, 1, 0, NULL, parameters, NULL), 1);
	EXPECT(cuLaunchKernel(fill, 1, 1, 1, 33, 32, 1, 0, NULL, parameters, NULL), 1);
	EXPECT(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 1);
	OK(cuStreamSynchronize(NULL));
}

static void a_bad_address_breaks_the_context(void)
{
	unsigned int value = 1;
	unsigned long long count = 1;
	CUdeviceptr bad = (uintptr_t)&value;
	CUfunction fill;

	begin(0);
	fill = function_of("xm_fill");
	launch(fill, (void *[]){ &bad, &value, &count });
	EXPECT(cuStreamSynchronize(NULL), 700);
	EXPECT(cuStreamQuery(NULL), 700);
	EXPECT(cuMemAlloc_v2(&bad, 4), 700);
}

const struct test kernel_tests[] = {
	TEST(kernels_compute),
	TEST(a_kernel_of_a_graph_gets_other_arguments),
	TEST(unknown_ones_are_not_found),
	TEST(impossible_launches_are_refused),
	TEST(a_bad_address_breaks_the_context),
	{ 0 },
};

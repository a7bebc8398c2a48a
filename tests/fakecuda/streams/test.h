/* SPDX-License-Identifier: MIT */
/*
 * Tests of the fake driver's streams. Each runs in a process of its own, so that it may call cuInit
 * or not, break the driver, and set switches before. A test of the order of operations runs many
 * rounds with random delays, and all of them must be right.
 */
#ifndef FAKECUDA_STREAMS_TEST_H
#define FAKECUDA_STREAMS_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/fakecuda/capture.h"
#include "tests/fakecuda/tests.h"

typedef struct { char bytes[64]; } CUipcMemHandle;

struct test {
	const char *name;
	void (*run)(void);
};

#define TEST(name) { #name, name }

extern const struct test order_tests[], host_tests[], event_tests[], ipc_tests[], memop_tests[],
	kernel_tests[], copy_tests[], memory_tests[], page_tests[], graph_tests[];

/* Ends the test, which has failed. */
void fail_test(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

#define CHECK(what)								\
	do {									\
		if (!(what))							\
			fail_test(__FILE__, __LINE__, "%s", #what);		\
	} while (0)

#define EXPECT(call, result)							\
	do {									\
		CUresult got_ = (call);						\
		if (got_ != (result))						\
			fail_test(__FILE__, __LINE__, "%s: %d, not %d", #call,	\
				  got_, (int)(result));				\
	} while (0)

#define OK(call) EXPECT(call, 0)

/* cuInit and a current context of device 0, with delays of up to so many microseconds. */
CUcontext begin(unsigned int delay_us);

/* A function of the driver that adds one to *user, for cuLaunchHostFunc. */
void count_up(void *user);

/* Holds a stream until it is opened. */
struct gate;
struct gate *gate_in(CUstream stream);
void gate_open(struct gate *gate);

/*
 * A second process, which has not called cuInit. It runs body(fd), where fd is one end of a socket.
 * other_end() waits for it and checks that it has succeeded.
 */
struct other {
	int fd;
	int pid;
};
struct other other_begin(void (*body)(int fd));
void other_end(struct other other);
void tell(int fd, const void *data, size_t bytes);
void hear(int fd, void *data, size_t bytes);

#define ROUNDS 60
#define MANY_ROUNDS 6000	/* for what happens sooner or later */

/* The driver's functions that these tests call. */
CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *ret_device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice device);
CUresult cuCtxRecordEvent(CUcontext context, CUevent event);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *ret_stream, unsigned int flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamQuery_ptsz(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *ret_context);
CUresult cuStreamIsCapturing(CUstream stream, int *ret_status);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *ret_graph);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *ret_nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, int *ret_type);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph,
				     unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct copy_params *params, CUcontext context);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct node_params *params);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *user);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user,
			     unsigned int flags);
CUresult cuEventCreate(CUevent *ret_event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ret_ms, CUevent first, CUevent last);
CUresult cuIpcGetEventHandle(CUipcEventHandle *ret_handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *ret_event, CUipcEventHandle handle);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, uint32_t value,
				unsigned int flags);
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr at, uint64_t value,
				unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr at, uint32_t value,
				 unsigned int flags);
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr at, uint64_t value,
				 unsigned int flags);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, void *params,
			       unsigned int flags);
CUresult cuMemAlloc_v2(CUdeviceptr *ret_ptr, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *at);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret_ptr, void *at, unsigned int flags);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t bytes, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream);
CUresult cuIpcGetMemHandle(CUipcMemHandle *ret_handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr ptr);
CUresult cuDeviceGetDefaultMemPool(void **ret_pool, CUdevice device);
CUresult cuMemPoolGetAttribute(void *pool, int attribute, void *ret_value);
CUresult cuMemAllocAsync(CUdeviceptr *ret_ptr, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuModuleLoadData(CUmodule *ret_module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *ret_function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			void **parameters, void **extra);

#endif

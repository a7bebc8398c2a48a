/* SPDX-License-Identifier: MIT */
/*
 * The driver's calls for graphs, under the names that a program uses, for the tests of captured
 * streams. The library itself uses none of them. Names and values are those of the driver's
 * interface.
 */
#ifndef XMEM_CUDA_GRAPHS_H
#define XMEM_CUDA_GRAPHS_H

#include "work.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray, *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray, *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
	void *func;
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS;

/* Each is found when it is first called. */
#define GRAPH_CALL(name, symbol, parameters, arguments)				\
static inline CUresult name parameters						\
{										\
	static CUresult (*call) parameters;					\
										\
	if (!call)								\
		call = driver_call(symbol);					\
	return call arguments;							\
}										\
_Static_assert(1, "")

GRAPH_CALL(cuStreamBeginCapture, "cuStreamBeginCapture_v2",
	   (CUstream stream, CUstreamCaptureMode mode), (stream, mode));
GRAPH_CALL(cuStreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph *ret),
	   (stream, ret));
GRAPH_CALL(cuGraphGetNodes, "cuGraphGetNodes", (CUgraph graph, CUgraphNode *ret, size_t *count),
	   (graph, ret, count));
GRAPH_CALL(cuGraphInstantiate, "cuGraphInstantiateWithFlags",
	   (CUgraphExec *ret, CUgraph graph, unsigned long long flags), (ret, graph, flags));
GRAPH_CALL(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream), (exec, stream));
GRAPH_CALL(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph), (graph));
GRAPH_CALL(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec exec), (exec));
GRAPH_CALL(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams",
	   (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context),
	   (exec, node, copy, context));
/* The form of CUDA 10, whose struct has no context. */
GRAPH_CALL(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams",
	   (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params),
	   (exec, node, params));

#endif

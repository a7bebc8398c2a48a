/* SPDX-License-Identifier: MIT */
/*
 * The example of docs/cuda.md for a captured pipeline. graphs.c runs it, and check-example.sh
 * compares the page with the lines between the two marks.
 */
#ifndef XMEM_CUDA_GRAPH_TURN_H
#define XMEM_CUDA_GRAPH_TURN_H

#include "graphs.h"

#define cuMemcpyDtoDAsync	xl_cuda()->memcpy_dtod_async

/* example */
struct pipeline {
	CUstream stream;
	CUcontext context;	/* of the stream */
	size_t bytes;
	CUgraph graph;
	CUgraphNode copy;	/* the node whose addresses change */
	CUgraphExec exec;
};

/* Capture the program's own work: no call of xmem is made with the stream meanwhile. */
static CUresult capture(struct pipeline *p, CUdeviceptr to, CUdeviceptr from)
{
	size_t nodes = 1;
	CUresult err = cuStreamBeginCapture(p->stream, CU_STREAM_CAPTURE_MODE_GLOBAL), end;

	if (err)
		return err;
	err = cuMemcpyDtoDAsync(to, from, p->bytes, p->stream);
	end = cuStreamEndCapture(p->stream, &p->graph);
	if (!err)
		err = end;
	if (!err)
		err = cuGraphGetNodes(p->graph, &p->copy, &nodes);
	return err ? err : cuGraphInstantiate(&p->exec, p->graph, 0);
}

/* Put the addresses of this turn into the graph, and launch it. */
static CUresult launch(struct pipeline *p, CUdeviceptr to, CUdeviceptr from)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to,
		.WidthInBytes = p->bytes, .Height = 1, .Depth = 1,
	};
	CUresult err = p->exec ? 0 : capture(p, to, from);

	if (!err)
		err = cuGraphExecMemcpyNodeSetParams(p->exec, p->copy, &copy, p->context);
	return err ? err : cuGraphLaunch(p->exec, p->stream);
}

/* A buffer from xmem_acquire_cuda: the graph writes it. */
static int write_turn(struct pipeline *p, struct xmem_buffer *buffer, CUdeviceptr from)
{
	const struct xmem_publish_options options = {
		.size = sizeof(options), .stream = p->stream,
	};
	int err = xmem_wait_on(buffer, p->stream);
	CUdeviceptr to = err ? 0 : (CUdeviceptr)xmem_cuda_ptr_mut(buffer);

	if (!to || launch(p, to, from))
		return -1;
	return xmem_publish(buffer, &options, NULL);
}

/* A buffer from xmem_receive: the graph reads it. */
static int read_turn(struct pipeline *p, struct xmem_buffer *buffer, CUdeviceptr to)
{
	int err = xmem_wait_on(buffer, p->stream);
	CUdeviceptr from = err ? 0 : (CUdeviceptr)xmem_cuda_ptr(buffer);

	if (!from || launch(p, to, from))
		return -1;
	return xmem_release_on(buffer, p->stream);
}
/* end of the example */

#endif

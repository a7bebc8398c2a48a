/* SPDX-License-Identifier: MIT */
/*
 * Graphs of the fake driver: streams that are captured, and what capturing forbids (capture.c);
 * what was captured, and its replay (graph.c).
 */
#ifndef FAKECUDA_CAPTURE_H
#define FAKECUDA_CAPTURE_H

#include "stream.h"
#include "twin.h"

typedef struct fk_graph *CUgraph;
typedef struct fk_node *CUgraphNode;
typedef struct fk_exec *CUgraphExec;

enum { FK_CAPTURE_GLOBAL = 0, FK_CAPTURE_THREAD_LOCAL = 1, FK_CAPTURE_RELAXED = 2 };
enum { FK_CAPTURE_NONE = 0, FK_CAPTURE_ACTIVE = 1, FK_CAPTURE_INVALIDATED = 2 };

/* ---- The driver's structs of parameters ---- */

/* One side of a copy in up to three dimensions. */
struct copy_side {
	size_t x, y, z, level;
	int type;			/* of memory: 1 of the CPU, 2 of a device */
	const void *host;
	CUdeviceptr device;
	void *array, *reserved;
	size_t pitch, height;
};

struct copy_params {
	struct copy_side from, to;
	size_t bytes, height, depth;
};

/* Of a kernel. */
struct node_params {
	CUfunction function;
	struct fk_grid grid;
	unsigned int shared_bytes;
	void **parameters, **extra;
};

/* ---- Capturing ---- */

/* Is the stream captured, so that operations become nodes of a graph? */
bool fk_is_captured(const struct fk_stream *stream);

/*
 * Hand the operation to the stream. If the stream is captured, the operation becomes a node of the
 * graph, and its number is 0. After an error the operation is freed.
 */
CUresult fk_enqueue(struct fk_stream *stream, struct fk_op *op, uint64_t *ret_seq);

/* A call that would spoil the capture of this stream: it fails, and the capture is invalid. */
CUresult fk_capture_spoil(const struct fk_stream *stream);
/* The calls that wait for a stream, or for all of a context, spoil each capture in it. */
CUresult fk_capture_spoil_all(const struct fk_context *context);
/* The stream is destroyed. */
void fk_capture_forget(const struct fk_stream *stream);

/* The operations that were captured, in a list; graph.c takes them. */
CUgraph fk_graph_new(struct fk_op *first);

/* The operation that stands for @node in @exec. NULL: it is none of that kind. */
struct fk_op *fk_exec_find(CUgraphExec exec, CUgraphNode node, enum fk_node_kind kind);

#endif

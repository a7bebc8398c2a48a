// SPDX-License-Identifier: MIT
/*
 * Graphs of the fake driver: the operations of one captured stream, in their order, and their
 * replay. Each launch hands copies of the operations to a stream. New parameters of a node are for
 * later launches.
 */
#include <stdlib.h>
#include <string.h>

#include "capture.h"

struct fk_node {
	struct fk_op *op;
	struct fk_node *next;
};

struct fk_graph {
	struct fk_node *first;
	struct fk_graph *next;
};

/* One operation of an executable graph, and the node that it was made of. */
struct step {
	const struct fk_node *node;	/* only compared: its graph may be gone */
	struct fk_op *op;
};

struct fk_exec {
	size_t count;
	struct step *steps;
	struct fk_stream *stream;	/* where it was launched last; NULL: never */
	uint64_t seq;
	struct fk_exec *next;
};

/* Guards both lists, and the graphs in them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fk_graph *graphs;
static struct fk_exec *execs;

static struct fk_graph **find_graph_locked(CUgraph graph)
{
	struct fk_graph **at = &graphs;

	while (*at && *at != graph)
		at = &(*at)->next;
	return at;
}

static struct fk_exec **find_exec_locked(CUgraphExec exec)
{
	struct fk_exec **at = &execs;

	while (*at && *at != exec)
		at = &(*at)->next;
	return at;
}

CUgraph fk_graph_new(struct fk_op *first)
{
	struct fk_graph *graph = calloc(1, sizeof(*graph));
	struct fk_node **last;
	struct fk_op *op;

	if (!graph)
		abort();
	last = &graph->first;
	for (op = first; op; op = op->next) {
		*last = calloc(1, sizeof(**last));
		if (!*last)
			abort();
		(*last)->op = op;
		last = &(*last)->next;
	}
	pthread_mutex_lock(&lock);
	graph->next = graphs;
	graphs = graph;
	pthread_mutex_unlock(&lock);
	return graph;
}

/* ---- Graphs ---- */

FK_DEFINE(cuGraphDestroy, 10000, cuGraphDestroy, FK_INIT, CUgraph graph)
{
	struct fk_graph **at, *found;
	struct fk_node *node, *next;

	FK_ENTER(cuGraphDestroy);
	pthread_mutex_lock(&lock);
	at = find_graph_locked(graph);
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	if (!found)
		return FK_INVALID_VALUE;
	for (node = found->first; node; node = next) {
		next = node->next;
		fk_op_free(node->op);
		free(node);
	}
	free(found);
	return FK_OK;
}

/* Without an array only the number of nodes is wanted. */
FK_DEFINE(cuGraphGetNodes, 10000, cuGraphGetNodes, FK_WORK, CUgraph graph, CUgraphNode *ret_nodes,
	  size_t *count)
{
	struct fk_graph *found;
	struct fk_node *node;
	size_t n = 0;

	FK_ENTER(cuGraphGetNodes);
	if (!count)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	found = *find_graph_locked(graph);
	for (node = found ? found->first : NULL; node; node = node->next, n++)
		if (ret_nodes && n < *count)
			ret_nodes[n] = node;
	pthread_mutex_unlock(&lock);
	if (!found)
		return FK_INVALID_VALUE;
	if (ret_nodes)
		while (n < *count)
			ret_nodes[n++] = NULL;
	else
		*count = n;
	return FK_OK;
}

/* The driver's numbers of the kinds; ours begin at 1. */
static const int types[] = {
	[FK_KERNEL_NODE] = 0, [FK_COPY_NODE] = 1, [FK_FILL_NODE] = 2, [FK_HOST_NODE] = 3,
	[FK_MEMOP_NODE] = 12,
};

FK_DEFINE(cuGraphNodeGetType, 10000, cuGraphNodeGetType, FK_WORK, CUgraphNode wanted,
	  int *ret_type)
{
	struct fk_graph *graph;
	struct fk_node *node = NULL;

	FK_ENTER(cuGraphNodeGetType);
	pthread_mutex_lock(&lock);
	for (graph = graphs; graph && !node; graph = graph->next)
		for (node = graph->first; node && node != wanted; node = node->next)
			;
	if (node && ret_type)
		*ret_type = types[node->op->node];
	pthread_mutex_unlock(&lock);
	return node && ret_type ? FK_OK : FK_INVALID_VALUE;
}

/* ---- Executable graphs ---- */

static struct fk_exec *instantiate_locked(const struct fk_graph *graph)
{
	struct fk_exec *exec = calloc(1, sizeof(*exec));
	struct fk_node *node;
	size_t n = 0;

	if (!exec)
		abort();
	for (node = graph->first; node; node = node->next)
		exec->count++;
	exec->steps = calloc(exec->count + 1, sizeof(*exec->steps));
	if (!exec->steps)
		abort();
	for (node = graph->first; node; node = node->next)
		exec->steps[n++] = (struct step){ node, fk_op_copy(node->op) };
	exec->next = execs;
	execs = exec;
	return exec;
}

FK_DEFINE(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags, FK_WORK,
	  CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags)
{
	struct fk_graph *found;

	FK_ENTER(cuGraphInstantiateWithFlags);
	if (!ret_exec || flags)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	found = *find_graph_locked(graph);
	if (found)
		*ret_exec = instantiate_locked(found);
	pthread_mutex_unlock(&lock);
	return found ? FK_OK : FK_INVALID_VALUE;
}

FK_DEFINE(cuGraphExecDestroy, 10000, cuGraphExecDestroy, FK_INIT, CUgraphExec exec)
{
	struct fk_exec **at, *found;
	size_t n;

	FK_ENTER(cuGraphExecDestroy);
	pthread_mutex_lock(&lock);
	at = find_exec_locked(exec);
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	if (!found)
		return FK_INVALID_VALUE;
	for (n = 0; n < found->count; n++)
		fk_op_free(found->steps[n].op);
	free(found->steps);
	free(found);
	return FK_OK;
}

struct fk_op *fk_exec_find(CUgraphExec exec, CUgraphNode node, enum fk_node_kind kind)
{
	struct fk_op *op = NULL;
	struct fk_exec *found;
	size_t n;

	pthread_mutex_lock(&lock);
	found = *find_exec_locked(exec);
	for (n = 0; found && n < found->count && !op; n++)
		if (found->steps[n].node == node && found->steps[n].op->node == kind)
			op = found->steps[n].op;
	pthread_mutex_unlock(&lock);
	return op;
}

/* A graph does not run beside itself: its launch waits for the one before. */
static void launch_locked(struct fk_exec *exec, struct fk_stream *stream)
{
	size_t n;

	for (n = 0; n < exec->count; n++) {
		struct fk_op *op = fk_op_copy(exec->steps[n].op);

		if (!n && exec->stream)
			fk_op_needs(op, exec->stream, exec->seq);
		exec->seq = fk_submit(stream, op);
		exec->stream = stream;
	}
}

static CUresult launch(bool own, CUgraphExec exec, CUstream handle)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct fk_exec *found;

	if (!stream)
		return why;
	/* As a node of another graph it is not implemented. */
	why = fk_capture_spoil(stream);
	if (why)
		return why;
	pthread_mutex_lock(&lock);
	found = *find_exec_locked(exec);
	if (found)
		launch_locked(found, stream);
	pthread_mutex_unlock(&lock);
	return found ? FK_OK : FK_INVALID_VALUE;
}

FK_DEFINE_BOTH(cuGraphLaunch, 10000, cuGraphLaunch, cuGraphLaunch_ptsz, FK_WORK, launch,
	       (CUgraphExec exec, CUstream stream), (exec, stream))

// SPDX-License-Identifier: MIT
/*
 * The capture of the fake driver's streams. An H200 with driver 580 has shown these rules, or
 * NVIDIA documents them (cuThreadExchangeStreamCaptureMode):
 *
 *   - Operations of a captured stream succeed without a word and become nodes of a graph.
 *   - Some calls are unsafe (FK_UNSAFE): they could wait for work that is only captured. Depending
 *     on the modes of the capture and of the calling thread they fail with 900, and then the
 *     capture is invalid: it ends with 901.
 *   - To ask a captured stream, or its context, whether its work is done is wrong in every mode.
 *     cuCtxRecordEvent counts as such a question.
 *   - The legacy stream cannot be used while a blocking stream of its context is captured (906).
 */
#include <stdlib.h>

#include "capture.h"
#include "lack.h"

struct capture {
	const struct fk_stream *stream;
	int mode;
	pthread_t thread;		/* which has begun it */
	bool invalid;
	struct fk_op *first, **last;
	struct capture *next;
};

/* Guards the list of captures. It is never held while the engine's lock is taken. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;

static __thread int thread_mode;	/* FK_CAPTURE_GLOBAL */

static struct capture *find_locked(const struct fk_stream *stream)
{
	struct capture *capture;

	for (capture = captures; capture; capture = capture->next)
		if (capture->stream == stream)
			break;
	return capture;
}

bool fk_is_captured(const struct fk_stream *stream)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = find_locked(stream);
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- Spoiling a capture ---- */

/* May the calling thread make unsafe calls as far as this capture is concerned? */
static bool forbids(const struct capture *capture)
{
	if (thread_mode == FK_CAPTURE_RELAXED)
		return false;
	if (pthread_equal(capture->thread, pthread_self()))
		return capture->mode != FK_CAPTURE_RELAXED;
	return thread_mode == FK_CAPTURE_GLOBAL && capture->mode == FK_CAPTURE_GLOBAL;
}

/* Used by the legacy stream, which depends on all blocking streams of its context. */
static bool is_joined(const struct capture *capture, const struct fk_stream *legacy)
{
	return legacy->kind == FK_STREAM_LEGACY && capture->stream->context == legacy->context &&
	       capture->stream->kind != FK_STREAM_NON_BLOCKING;
}

CUresult fk_capture_check_unsafe(void)
{
	struct capture *capture;
	CUresult result = FK_OK;

	pthread_mutex_lock(&lock);
	for (capture = captures; capture; capture = capture->next) {
		if (!forbids(capture))
			continue;
		capture->invalid = true;
		result = FK_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* The legacy stream is used. */
static CUresult spoil_joined_locked(const struct fk_stream *legacy)
{
	struct capture *capture;
	CUresult result = FK_OK;

	for (capture = captures; capture; capture = capture->next) {
		if (!is_joined(capture, legacy))
			continue;
		capture->invalid = true;
		result = FK_CAPTURE_IMPLICIT;
	}
	return result;
}

CUresult fk_capture_spoil(const struct fk_stream *stream)
{
	struct capture *capture;
	CUresult result;

	pthread_mutex_lock(&lock);
	result = spoil_joined_locked(stream);
	capture = find_locked(stream);
	if (capture) {
		capture->invalid = true;
		result = FK_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult fk_capture_spoil_all(const struct fk_context *context)
{
	struct capture *capture;
	CUresult result = FK_OK;

	pthread_mutex_lock(&lock);
	for (capture = captures; capture; capture = capture->next) {
		if (capture->stream->context != context)
			continue;
		capture->invalid = true;
		result = FK_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- Operations become nodes ---- */

static CUresult capture_locked(struct capture *capture, struct fk_op *op)
{
	if (capture->invalid)
		return FK_CAPTURE_INVALID;
	if (op->node == FK_NO_NODE) {
		capture->invalid = true;
		fk_lack("node of a graph for", "this call on a captured stream");
		return FK_CAPTURE_UNSUPPORTED;
	}
	*capture->last = op;
	capture->last = &op->next;
	return FK_OK;
}

CUresult fk_enqueue(struct fk_stream *stream, struct fk_op *op, uint64_t *ret_seq)
{
	struct capture *capture;
	CUresult result;

	pthread_mutex_lock(&lock);
	capture = find_locked(stream);
	result = capture ? capture_locked(capture, op) : spoil_joined_locked(stream);
	pthread_mutex_unlock(&lock);
	if (result) {
		fk_op_free(op);
		return result;
	}
	*ret_seq = capture ? 0 : fk_submit(stream, op);
	return FK_OK;
}

/* ---- Functions of the driver ---- */

static CUresult begin(bool own, CUstream handle, int mode)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct capture *capture;

	if (!stream)
		return why;
	if (mode < FK_CAPTURE_GLOBAL || mode > FK_CAPTURE_RELAXED)
		return FK_INVALID_VALUE;
	if (stream->kind == FK_STREAM_LEGACY)
		return FK_CAPTURE_UNSUPPORTED;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		abort();
	capture->stream = stream;
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->last = &capture->first;
	pthread_mutex_lock(&lock);
	if (find_locked(stream)) {
		pthread_mutex_unlock(&lock);
		free(capture);
		return FK_ILLEGAL_STATE;
	}
	capture->next = captures;
	captures = capture;
	pthread_mutex_unlock(&lock);
	return FK_OK;
}

static void remove_locked(struct capture *capture)
{
	struct capture **at = &captures;

	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
}

static void free_capture(struct capture *capture)
{
	struct fk_op *op, *next;

	for (op = capture->first; op; op = next) {
		next = op->next;
		fk_op_free(op);
	}
	free(capture);
}

static CUresult end(bool own, CUstream handle, CUgraph *ret_graph)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct capture *capture;
	bool elsewhere = false;

	if (!stream)
		return why;
	if (!ret_graph)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	capture = find_locked(stream);
	if (capture)
		elsewhere = capture->mode != FK_CAPTURE_RELAXED &&
			    !pthread_equal(capture->thread, pthread_self());
	if (capture && !elsewhere)
		remove_locked(capture);
	pthread_mutex_unlock(&lock);
	if (!capture || elsewhere)
		return capture ? FK_CAPTURE_WRONG_THREAD : FK_ILLEGAL_STATE;
	why = capture->invalid ? FK_CAPTURE_INVALID : FK_OK;
	*ret_graph = NULL;
	if (!why) {
		*ret_graph = fk_graph_new(capture->first);
		capture->first = NULL;
	}
	free_capture(capture);
	return why;
}

void fk_capture_forget(const struct fk_stream *stream)
{
	struct capture *capture;

	pthread_mutex_lock(&lock);
	capture = find_locked(stream);
	if (capture)
		remove_locked(capture);
	pthread_mutex_unlock(&lock);
	if (capture)
		free_capture(capture);
}

/* For the legacy stream this says that it cannot be used, and spoils nothing. */
static CUresult is_capturing(bool own, CUstream handle, int *ret_status)
{
	CUresult why;
	struct fk_stream *stream = fk_stream_find(handle, own, &why);
	struct capture *capture, *joined;

	if (!stream)
		return why;
	if (!ret_status)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (joined = captures; joined && !is_joined(joined, stream); joined = joined->next)
		;
	capture = find_locked(stream);
	*ret_status = !capture ? FK_CAPTURE_NONE :
		      capture->invalid ? FK_CAPTURE_INVALIDATED : FK_CAPTURE_ACTIVE;
	pthread_mutex_unlock(&lock);
	return joined ? FK_CAPTURE_IMPLICIT : FK_OK;
}

FK_DEFINE_BOTH(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz,
	       FK_WORK, begin, (CUstream stream, int mode), (stream, mode))
FK_DEFINE_BOTH(cuStreamEndCapture, 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz, FK_WORK,
	       end, (CUstream stream, CUgraph *ret_graph), (stream, ret_graph))
FK_DEFINE_BOTH(cuStreamIsCapturing, 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz, FK_WORK,
	       is_capturing, (CUstream handle, int *ret_status), (handle, ret_status))

FK_DEFINE(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode, FK_INIT,
	  int *mode)
{
	int before = thread_mode;

	FK_ENTER(cuThreadExchangeStreamCaptureMode);
	if (!mode || *mode < FK_CAPTURE_GLOBAL || *mode > FK_CAPTURE_RELAXED)
		return FK_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return FK_OK;
}

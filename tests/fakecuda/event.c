// SPDX-License-Identifier: MIT
/*
 * Events of the fake driver, private and interprocess ones. A private event names an operation of a
 * stream; an interprocess one is a number in shared memory, see event_share.h. Events are never
 * freed, so that the driver notices the use of a destroyed one.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture.h"
#include "event_share.h"
#include "stream.h"

#define BLOCKING_SYNC	1u
#define DISABLE_TIMING	2u
#define INTERPROCESS	4u

struct fk_event {
	bool destroyed;
	unsigned int flags;
	struct fk_context *context;
	struct fk_shared_event *shared;	/* interprocess only */
	uint32_t generation;		/* of it */
	bool imported;
	/* The last record, private only: */
	struct fk_stream *stream;	/* NULL: never recorded */
	uint64_t seq;
	uint64_t time_ns;		/* when it was complete */
	struct fk_event *next;
};

/* Guards all events of this process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fk_event *events;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static struct fk_event *add(struct fk_context *context, unsigned int flags)
{
	struct fk_event *event = calloc(1, sizeof(*event));

	if (!event)
		abort();
	event->context = context;
	event->flags = flags;
	pthread_mutex_lock(&lock);
	event->next = events;
	events = event;
	pthread_mutex_unlock(&lock);
	return event;
}

/* NULL: there is no such event. If it was destroyed elsewhere, the caller records a violation. */
static struct fk_event *find(CUevent handle)
{
	struct fk_event *event;

	pthread_mutex_lock(&lock);
	for (event = events; event; event = event->next)
		if (event == (struct fk_event *)handle && !event->destroyed)
			break;
	pthread_mutex_unlock(&lock);
	if (event && event->imported && event->shared->generation != event->generation) {
		fk_violation("an imported event was used after its exporter destroyed it");
		return NULL;
	}
	return event;
}

static CUresult create(CUevent *ret_event, unsigned int flags)
{
	struct fk_shared_event *shared = NULL;
	struct fk_event *event;
	uint32_t generation = 0;

	if (!ret_event || flags & ~(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS))
		return FK_INVALID_VALUE;
	if (flags & INTERPROCESS) {
		if (!(flags & DISABLE_TIMING))
			return FK_INVALID_VALUE;
		shared = fk_share_new(&generation);
		if (!shared)
			return FK_OUT_OF_MEMORY;
	}
	event = add(fk_context_current(), flags);
	event->shared = shared;
	event->generation = generation;
	*ret_event = (CUevent)event;
	return FK_OK;
}

FK_DEFINE(cuEventCreate, 2000, cuEventCreate, FK_CONTEXT, CUevent *ret_event, unsigned int flags)
{
	FK_ENTER(cuEventCreate);
	return create(ret_event, flags);
}

static CUresult destroy(CUevent handle)
{
	struct fk_event *event, *at;

	/* Not find(): an imported event can be destroyed after its exporter's, too. */
	pthread_mutex_lock(&lock);
	for (at = events; at && (at != (struct fk_event *)handle || at->destroyed); at = at->next)
		;
	event = at;
	if (event)
		event->destroyed = true;
	pthread_mutex_unlock(&lock);
	if (!event)
		return FK_INVALID_HANDLE;
	if (event->shared && !event->imported)
		fk_share_destroy(event->shared);
	return FK_OK;
}

FK_DEFINE(cuEventDestroy, 2000, cuEventDestroy, FK_INIT, CUevent event)
{
	FK_ENTER(cuEventDestroy);
	return destroy(event);
}

FK_DEFINE(cuEventDestroy, 4000, cuEventDestroy_v2, FK_INIT, CUevent event)
{
	FK_ENTER(cuEventDestroy_v2);
	return destroy(event);
}

/* ---- Recording ---- */

struct record {
	struct fk_op op;
	struct fk_event *event;
	uint32_t number;	/* of a shared one */
};

static int run_record(struct fk_op *op)
{
	struct record *record = (struct record *)op;
	struct fk_event *event = record->event;

	if (event->shared) {
		fk_share_complete(event->shared, record->number);
		return FK_OK;
	}
	pthread_mutex_lock(&lock);
	if (event->stream == op->stream && event->seq == op->seq)
		event->time_ns = now_ns();
	pthread_mutex_unlock(&lock);
	return FK_OK;
}

/*
 * Record the event in a stream, or, without one, behind all work of its context. The lock is held
 * until the event names the operation, which may run at once.
 */
static CUresult record(struct fk_event *event, struct fk_stream *stream)
{
	struct record *record = fk_op_new(sizeof(*record), run_record);

	record->op.always = true;
	record->event = event;
	pthread_mutex_lock(&lock);
	if (event->shared)
		record->number = fk_share_record(event->shared);
	event->seq = stream ? fk_submit(stream, &record->op) :
			      fk_submit_mark(event->context, &record->op, &stream);
	event->stream = stream;
	pthread_mutex_unlock(&lock);
	return FK_OK;
}

static CUresult record_flags(bool own, CUevent handle, CUstream stream_handle, unsigned int flags)
{
	struct fk_event *event = find(handle);
	struct fk_stream *stream;
	CUresult why;

	if (!event)
		return FK_INVALID_HANDLE;
	if (flags)
		return FK_INVALID_VALUE;
	stream = fk_stream_find(stream_handle, own, &why);
	if (!stream)
		return why;
	if (stream->context != event->context)
		return FK_INVALID_HANDLE;
	why = fk_capture_spoil(stream);		/* not implemented as a node */
	return why ? why : record(event, stream);
}

static CUresult record_plain(bool own, CUevent event, CUstream stream)
{
	return record_flags(own, event, stream, 0);
}

FK_DEFINE_BOTH(cuEventRecord, 2000, cuEventRecord, cuEventRecord_ptsz, FK_WORK, record_plain,
	       (CUevent event, CUstream stream), (event, stream))
FK_DEFINE_BOTH(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz,
	       FK_WORK, record_flags, (CUevent event, CUstream stream, unsigned int flags),
	       (event, stream, flags))

/* A stream of the context that is captured is refused, and its capture is spoilt. */
FK_DEFINE(cuCtxRecordEvent, 12050, cuCtxRecordEvent, FK_WORK, CUcontext context, CUevent handle)
{
	struct fk_event *event;
	CUresult why;

	FK_ENTER(cuCtxRecordEvent);
	if (!fk_context_valid(context))
		return FK_INVALID_CONTEXT;
	event = find(handle);
	if (!event || event->context != context)
		return FK_INVALID_HANDLE;
	why = fk_capture_spoil_all(context);
	return why ? why : record(event, NULL);
}

/* ---- Waiting ---- */

/* The record that a wait is for: the event's last one at the time of the call. */
struct target {
	struct fk_stream *stream;
	uint64_t seq;
	uint32_t number;
	bool none;
};

static struct target target_of(struct fk_event *event)
{
	struct target target = { 0 };

	if (event->shared) {
		target.none = !fk_share_last(event->shared, &target.number);
		return target;
	}
	pthread_mutex_lock(&lock);
	target.stream = event->stream;
	target.seq = event->seq;
	target.none = !event->stream;
	pthread_mutex_unlock(&lock);
	return target;
}

static CUresult query(CUevent handle)
{
	struct fk_event *event = find(handle);
	struct target target;
	int result = FK_OK;
	bool complete;

	if (!event)
		return FK_INVALID_HANDLE;
	target = target_of(event);
	if (target.none)
		return FK_OK;
	if (event->shared)
		complete = fk_share_is_complete(event->shared, target.number, &result);
	else
		complete = fk_has_ended(target.stream, target.seq);
	return complete ? result : FK_NOT_READY;
}

FK_DEFINE(cuEventQuery, 2000, cuEventQuery, FK_WORK, CUevent event)
{
	FK_ENTER(cuEventQuery);
	return query(event);
}

static CUresult synchronize(CUevent handle)
{
	struct fk_event *event = find(handle);
	struct target target;
	int result;

	if (!event)
		return FK_INVALID_HANDLE;
	target = target_of(event);
	if (target.none)
		return FK_OK;
	if (!event->shared) {
		fk_wait_for(target.stream, target.seq);
		return fk_sticky();
	}
	result = fk_share_wait(event->shared, target.number, NULL);
	return result ? result : fk_sticky();
}

FK_DEFINE(cuEventSynchronize, 2000, cuEventSynchronize, FK_WORK, CUevent event)
{
	FK_ENTER(cuEventSynchronize);
	return synchronize(event);
}

struct wait {
	struct fk_op op;
	struct fk_event *event;
	uint32_t number;
};

static int run_nothing(struct fk_op *op)
{
	return FK_OK;
}

static int run_wait(struct fk_op *op)
{
	struct wait *wait = (struct wait *)op;

	return fk_share_wait(wait->event->shared, wait->number, &op->stream->abandoned);
}

/* The stream waits for the record that is the event's last one now, whatever comes later. */
static CUresult wait_event(bool own, CUstream stream_handle, CUevent handle, unsigned int flags)
{
	struct fk_event *event = find(handle);
	struct fk_stream *stream;
	struct target target;
	struct wait *wait;
	CUresult why;

	if (!event)
		return FK_INVALID_HANDLE;
	if (flags)
		return FK_INVALID_VALUE;
	stream = fk_stream_find(stream_handle, own, &why);
	if (!stream)
		return why;
	why = fk_capture_spoil(stream);
	if (why)
		return why;
	target = target_of(event);
	if (target.none)
		return FK_OK;
	wait = fk_op_new(sizeof(*wait), event->shared ? run_wait : run_nothing);
	wait->event = event;
	wait->number = target.number;
	if (!event->shared)
		fk_op_needs(&wait->op, target.stream, target.seq);
	fk_submit(stream, &wait->op);
	return FK_OK;
}

FK_DEFINE_BOTH(cuStreamWaitEvent, 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz, FK_WORK,
	       wait_event, (CUstream stream, CUevent event, unsigned int flags),
	       (stream, event, flags))

/* ---- Time ---- */

static CUresult elapsed(float *ret_ms, CUevent first, CUevent last)
{
	struct fk_event *from = find(first), *to = find(last);
	CUresult result;

	if (!from || !to || from->flags & DISABLE_TIMING || to->flags & DISABLE_TIMING ||
	    target_of(from).none || target_of(to).none)
		return FK_INVALID_HANDLE;
	if (!ret_ms)
		return FK_INVALID_VALUE;
	result = query(first);
	if (!result)
		result = query(last);
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	*ret_ms = (float)((double)(int64_t)(to->time_ns - from->time_ns) / 1e6);
	pthread_mutex_unlock(&lock);
	return FK_OK;
}

FK_DEFINE(cuEventElapsedTime, 2000, cuEventElapsedTime, FK_WORK, float *ret_ms, CUevent first,
	  CUevent last)
{
	FK_ENTER(cuEventElapsedTime);
	return elapsed(ret_ms, first, last);
}

FK_DEFINE(cuEventElapsedTime, 12080, cuEventElapsedTime_v2, FK_WORK, float *ret_ms, CUevent first,
	  CUevent last)
{
	FK_ENTER(cuEventElapsedTime_v2);
	return elapsed(ret_ms, first, last);
}

/* ---- Between processes ---- */

FK_DEFINE(cuIpcGetEventHandle, 4010, cuIpcGetEventHandle, FK_CONTEXT,
	  CUipcEventHandle *ret_handle, CUevent handle)
{
	struct fk_event *event;

	FK_ENTER(cuIpcGetEventHandle);
	event = find(handle);
	if (!event)
		return FK_INVALID_HANDLE;
	if (!ret_handle)
		return FK_INVALID_VALUE;
	if (!event->shared || event->imported)
		return fk_option_number("EVENT_NOT_SHARED", FK_INVALID_HANDLE);
	fk_share_handle(event->shared, ret_handle);
	return FK_OK;
}

FK_DEFINE(cuIpcOpenEventHandle, 4010, cuIpcOpenEventHandle, FK_CONTEXT, CUevent *ret_event,
	  CUipcEventHandle handle)
{
	struct fk_shared_event *shared;
	struct fk_event *event;
	uint32_t generation;
	CUresult result;

	FK_ENTER(cuIpcOpenEventHandle);
	if (!ret_event)
		return FK_INVALID_VALUE;
	result = fk_share_open(&handle, &shared, &generation);
	if (result)
		return result;
	event = add(fk_context_current(), DISABLE_TIMING | INTERPROCESS);
	event->shared = shared;
	event->generation = generation;
	event->imported = true;
	*ret_event = (CUevent)event;
	return FK_OK;
}

// SPDX-License-Identifier: MIT
/*
 * The engine below the fake driver's streams, see queue.h. One lock guards all queues; it is held
 * for a few instructions at a time, never while an operation runs. Streams are never freed, so that
 * the driver notices the use of a destroyed one.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"
#include "queue.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t progress;	/* an operation has ended */
	struct fk_stream *open;		/* those that may get operations or hold some */
	struct fk_stream *gone;		/* the others */
	uint64_t next_id;
	unsigned int running;		/* operations that may use memory just now */
	bool stopped;			/* the driver ends: no operation begins any more */
	pthread_cond_t never;
} engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.progress = PTHREAD_COND_INITIALIZER,
	.never = PTHREAD_COND_INITIALIZER,
	.next_id = 3,			/* 1 and 2 are the names of the default streams */
};

static __thread struct fk_stream *working_for;

struct fk_stream *fk_stream_of_thread(void)
{
	return working_for;
}

/* A number that looks random but depends only on the seed, stream and operation. */
static uint64_t mixed(uint64_t seed, uint64_t stream, uint64_t seq)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + stream * 0xbf58476d1ce4e5b9u + seq;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void delay(const struct fk_op *op)
{
	uint64_t most = fk_option_number("DELAY_US", 0);
	uint64_t us;
	struct timespec time;

	if (!most)
		return;
	us = mixed(fk_option_number("SEED", 1), op->stream->id, op->seq);
	us %= most + 1;
	time.tv_sec = us / 1000000;
	time.tv_nsec = us % 1000000 * 1000;
	nanosleep(&time, NULL);
}

void *fk_op_new(size_t bytes, int (*run)(struct fk_op *op))
{
	struct fk_op *op = calloc(1, bytes);

	if (!op)
		abort();
	op->run = run;
	op->bytes = bytes;
	return op;
}

void *fk_op_copy(const struct fk_op *op)
{
	struct fk_op *copy = fk_op_new(op->bytes, op->run);

	memcpy(copy, op, op->bytes);
	copy->next = NULL;
	return copy;
}

void fk_op_needs(struct fk_op *op, struct fk_stream *stream, uint64_t seq)
{
	if (!seq)
		return;
	op->needs = realloc(op->needs, (op->need_count + 1) * sizeof(*op->needs));
	if (!op->needs)
		abort();
	op->needs[op->need_count++] = (struct fk_need){ stream, seq };
}

static bool needs_are_met(const struct fk_op *op)
{
	unsigned int i;

	for (i = 0; i < op->need_count; i++)
		if (op->needs[i].stream->done < op->needs[i].seq)
			return false;
	return true;
}

/* Once the driver has ended there is no memory to work with, so the thread stays here. */
static void begin(const struct fk_op *op)
{
	pthread_mutex_lock(&engine.lock);
	while (engine.stopped)
		pthread_cond_wait(&engine.never, &engine.lock);
	engine.running += !op->foreign;
	pthread_mutex_unlock(&engine.lock);
}

static void run(struct fk_op *op)
{
	int result;

	delay(op);
	begin(op);
	if (!fk_sticky() || op->always) {
		result = op->run(op);
		if (result)
			fk_sticky_set(result);
	}
	pthread_mutex_lock(&engine.lock);
	engine.running -= !op->foreign;
	pthread_cond_broadcast(&engine.progress);
	pthread_mutex_unlock(&engine.lock);
}

/* A function of the program may never return, so this does not wait for it. */
void fk_queue_stop(void)
{
	struct fk_stream *stream;

	pthread_mutex_lock(&engine.lock);
	engine.stopped = true;
	for (stream = engine.open; stream; stream = stream->next)
		stream->abandoned = true;
	while (engine.running)
		pthread_cond_wait(&engine.progress, &engine.lock);
	pthread_mutex_unlock(&engine.lock);
}

bool fk_gives_up(const struct fk_stream *stream)
{
	return stream->abandoned || fk_sticky();
}

void fk_op_free(struct fk_op *op)
{
	if (op->end)
		op->end(op);
	free(op->needs);
	free(op);
}

/* The stream's next operation once it may begin; NULL: no further one will come. */
static struct fk_op *next_locked(struct fk_stream *stream)
{
	while (!stream->first && !stream->closed)
		pthread_cond_wait(&stream->wake, &engine.lock);
	if (!stream->first)
		return NULL;
	while (!needs_are_met(stream->first))
		pthread_cond_wait(&engine.progress, &engine.lock);
	return stream->first;
}

static void move_to_gone_locked(struct fk_stream *stream)
{
	struct fk_stream **at = &engine.open;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	stream->next = engine.gone;
	engine.gone = stream;
}

static void *work(void *argument)
{
	struct fk_stream *stream = argument;
	struct fk_op *op;

	working_for = stream;
	pthread_mutex_lock(&engine.lock);
	while ((op = next_locked(stream))) {
		pthread_mutex_unlock(&engine.lock);
		run(op);
		pthread_mutex_lock(&engine.lock);
		stream->first = op->next;
		if (!stream->first)
			stream->last = &stream->first;
		stream->done = op->seq;
		pthread_cond_broadcast(&engine.progress);
		pthread_mutex_unlock(&engine.lock);
		fk_op_free(op);
		pthread_mutex_lock(&engine.lock);
	}
	move_to_gone_locked(stream);
	pthread_mutex_unlock(&engine.lock);
	return NULL;
}

/* Signals are for the program's own threads. */
static void start_locked(struct fk_stream *stream)
{
	pthread_t thread;
	sigset_t all, before;

	stream->started = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, work, stream))
		abort();
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool is_blocking(const struct fk_stream *stream)
{
	return stream->kind == FK_STREAM_BLOCKING || stream->kind == FK_STREAM_PER_THREAD;
}

/* The legacy stream waits for all blocking streams of its context, and they for it. */
static bool are_ordered(const struct fk_stream *a, const struct fk_stream *b)
{
	if (a->context != b->context)
		return false;
	return (a->kind == FK_STREAM_LEGACY && is_blocking(b)) ||
		(b->kind == FK_STREAM_LEGACY && is_blocking(a));
}

static void need_others_locked(struct fk_stream *stream, struct fk_op *op)
{
	struct fk_stream *other;

	for (other = engine.open; other; other = other->next)
		if (are_ordered(stream, other) && other->done < other->submitted)
			fk_op_needs(op, other, other->submitted);
}

static uint64_t submit_locked(struct fk_stream *stream, struct fk_op *op)
{
	uint64_t seq = ++stream->submitted;

	op->stream = stream;
	op->seq = seq;
	*stream->last = op;
	stream->last = &op->next;
	if (!stream->started)
		start_locked(stream);
	pthread_cond_signal(&stream->wake);
	return seq;
}

uint64_t fk_submit(struct fk_stream *stream, struct fk_op *op)
{
	uint64_t seq;

	pthread_mutex_lock(&engine.lock);
	need_others_locked(stream, op);
	seq = submit_locked(stream, op);
	pthread_mutex_unlock(&engine.lock);
	return seq;
}

uint64_t fk_submitted(struct fk_stream *stream)
{
	uint64_t seq;

	pthread_mutex_lock(&engine.lock);
	seq = stream->submitted;
	pthread_mutex_unlock(&engine.lock);
	return seq;
}

bool fk_has_ended(struct fk_stream *stream, uint64_t seq)
{
	bool ended;

	pthread_mutex_lock(&engine.lock);
	ended = stream->done >= seq;
	pthread_mutex_unlock(&engine.lock);
	return ended;
}

void fk_wait_for(struct fk_stream *stream, uint64_t seq)
{
	pthread_mutex_lock(&engine.lock);
	while (stream->done < seq)
		pthread_cond_wait(&engine.progress, &engine.lock);
	pthread_mutex_unlock(&engine.lock);
}

/*
 * The present end of each stream is recorded first, so that work that is submitted meanwhile is not
 * waited for.
 */
void fk_wait_for_all(struct fk_context *context)
{
	struct fk_op *list = fk_op_new(sizeof(*list), NULL);
	struct fk_stream *stream;

	pthread_mutex_lock(&engine.lock);
	for (stream = engine.open; stream; stream = stream->next)
		if (stream != working_for && (!context || stream->context == context))
			fk_op_needs(list, stream, stream->submitted);
	while (!needs_are_met(list))
		pthread_cond_wait(&engine.progress, &engine.lock);
	pthread_mutex_unlock(&engine.lock);
	fk_op_free(list);
}

bool fk_is_idle(struct fk_stream *stream)
{
	struct fk_stream *other;
	bool idle;

	pthread_mutex_lock(&engine.lock);
	idle = stream->done == stream->submitted;
	for (other = engine.open; other && idle; other = other->next)
		if (stream->kind == FK_STREAM_LEGACY && are_ordered(stream, other))
			idle = other->done == other->submitted;
	pthread_mutex_unlock(&engine.lock);
	return idle;
}

static struct fk_stream *new_locked(struct fk_context *context, enum fk_stream_kind kind)
{
	struct fk_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	stream->kind = kind;
	stream->context = context;
	stream->id = engine.next_id++;
	stream->last = &stream->first;
	pthread_cond_init(&stream->wake, NULL);
	stream->next = engine.open;
	engine.open = stream;
	return stream;
}

struct fk_stream *fk_queue_new(struct fk_context *context, enum fk_stream_kind kind)
{
	struct fk_stream *stream;

	pthread_mutex_lock(&engine.lock);
	stream = new_locked(context, kind);
	pthread_mutex_unlock(&engine.lock);
	return stream;
}

/* The context's only stream of that kind; it is made on first use. */
static struct fk_stream *only_locked(struct fk_context *context, enum fk_stream_kind kind)
{
	struct fk_stream *stream;

	for (stream = engine.open; stream; stream = stream->next)
		if (stream->kind == kind && stream->context == context && !stream->closed)
			return stream;
	return new_locked(context, kind);
}

struct fk_stream *fk_queue_legacy(struct fk_context *context)
{
	struct fk_stream *stream;

	pthread_mutex_lock(&engine.lock);
	stream = only_locked(context, FK_STREAM_LEGACY);
	pthread_mutex_unlock(&engine.lock);
	return stream;
}

uint64_t fk_submit_mark(struct fk_context *context, struct fk_op *op,
			struct fk_stream **ret_stream)
{
	struct fk_stream *marks, *other;
	uint64_t seq;

	pthread_mutex_lock(&engine.lock);
	marks = only_locked(context, FK_STREAM_MARKS);
	for (other = engine.open; other; other = other->next)
		if (other != marks && other->context == context && other->done < other->submitted)
			fk_op_needs(op, other, other->submitted);
	seq = submit_locked(marks, op);
	pthread_mutex_unlock(&engine.lock);
	*ret_stream = marks;
	return seq;
}

static void close_locked(struct fk_stream *stream)
{
	stream->closed = true;
	pthread_cond_signal(&stream->wake);
	if (!stream->started)
		move_to_gone_locked(stream);
}

void fk_queue_close(struct fk_stream *stream)
{
	pthread_mutex_lock(&engine.lock);
	close_locked(stream);
	pthread_mutex_unlock(&engine.lock);
}

void fk_queue_end_context(struct fk_context *context)
{
	struct fk_stream *stream, *next;

	pthread_mutex_lock(&engine.lock);
	for (stream = engine.open; stream; stream = stream->next)
		if (stream->context == context)
			stream->abandoned = true;
	pthread_mutex_unlock(&engine.lock);
	fk_wait_for_all(context);
	pthread_mutex_lock(&engine.lock);
	for (stream = engine.open; stream; stream = next) {
		next = stream->next;
		if (stream->context == context && !stream->closed)
			close_locked(stream);
	}
	pthread_mutex_unlock(&engine.lock);
}

struct fk_stream *fk_queue_find(const void *handle)
{
	struct fk_stream *stream;

	pthread_mutex_lock(&engine.lock);
	for (stream = engine.open; stream; stream = stream->next)
		if (stream == handle && !stream->closed)
			break;
	pthread_mutex_unlock(&engine.lock);
	return stream;
}

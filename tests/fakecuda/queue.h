/* SPDX-License-Identifier: MIT */
/*
 * The engine below the fake driver's streams: each stream is a queue with a thread of its own,
 * which starts with the first operation. An operation begins when all operations before it in its
 * stream have ended, and all that it needs in other streams; then a random delay passes, so that
 * an order that nobody asked for does not come about by chance.
 *
 * What is ordered with what by default is decided here too: an operation of a context's legacy
 * stream needs all that its blocking streams hold, and the other way round.
 *
 * FAKECUDA_DELAY_US   greatest delay before an operation, in microseconds (0: none)
 * FAKECUDA_SEED       repeats the same delays
 */
#ifndef FAKECUDA_QUEUE_H
#define FAKECUDA_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fk_context;

enum fk_stream_kind {
	FK_STREAM_BLOCKING,	/* ordered with the legacy stream of its context */
	FK_STREAM_NON_BLOCKING,
	FK_STREAM_LEGACY,
	FK_STREAM_PER_THREAD,	/* blocking, and of one thread */
};

struct fk_stream {
	enum fk_stream_kind kind;
	struct fk_context *context;
	int priority;
	uint64_t id;
	/* The rest is guarded by the engine's lock. */
	struct fk_op *first, **last;
	uint64_t submitted, done;	/* numbers of operations, from 1 */
	bool started;			/* its thread runs */
	bool closed;			/* no more operations will come */
	_Atomic bool abandoned;		/* its context ends: what waits gives up */
	pthread_cond_t wake;		/* there is an operation, or it is closed */
	struct fk_stream *next;
};

/* An operation of a stream must have ended. */
struct fk_need {
	struct fk_stream *stream;
	uint64_t seq;
};

/*
 * What a stream does at one go; it opens the structs that hold its details. run is called in the
 * stream's thread and returns a CUresult: other than 0 the context is broken from then on. After
 * that only operations with `always` run; the others end without having done anything.
 */
struct fk_op {
	int (*run)(struct fk_op *op);
	void (*end)(struct fk_op *op);	/* frees what it holds, or NULL */
	bool always;
	bool foreign;			/* a function of the program */
	struct fk_stream *stream;
	uint64_t seq;
	struct fk_need *needs;
	unsigned int need_count;
	struct fk_op *next;
};

/* A zeroed operation of so many bytes, which begin with struct fk_op. It never fails. */
void *fk_op_new(size_t bytes, int (*run)(struct fk_op *op));

/* The operation begins no earlier than the end of that one, which may be over. */
void fk_op_needs(struct fk_op *op, struct fk_stream *stream, uint64_t seq);

/* Hands the operation to the stream, which frees it. Returns its number. */
uint64_t fk_submit(struct fk_stream *stream, struct fk_op *op);

/* The number of the last operation that the stream was given. */
uint64_t fk_submitted(struct fk_stream *stream);
bool fk_has_ended(struct fk_stream *stream, uint64_t seq);

/* Waits until that operation of the stream has ended. */
void fk_wait_for(struct fk_stream *stream, uint64_t seq);

/* Waits until all streams have ended what they hold now: of one context, or NULL: of all. */
void fk_wait_for_all(struct fk_context *context);

/* The stream of that address, NULL: there is none, or it is closed. */
struct fk_stream *fk_queue_find(const void *handle);

struct fk_stream *fk_queue_new(struct fk_context *context, enum fk_stream_kind kind);

/* The legacy stream of the context; it is made on first use. */
struct fk_stream *fk_queue_legacy(struct fk_context *context);

/* The calling thread's default stream of the context. */
struct fk_stream *fk_queue_per_thread(struct fk_context *context);

/* The stream is no handle any more; what it holds is still done. */
void fk_queue_close(struct fk_stream *stream);

/* All streams of the context end, after what they hold; what would wait for ever gives up. */
void fk_queue_end_context(struct fk_context *context);

/* The driver ends: what runs comes to its end, and nothing begins any more. */
void fk_queue_stop(void);

/* Is nothing left to do in the stream and in what the legacy stream waits for? */
bool fk_is_idle(struct fk_stream *stream);

/* The stream that this thread works for, or NULL. */
struct fk_stream *fk_stream_of_thread(void);

#endif

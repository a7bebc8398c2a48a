/* SPDX-License-Identifier: MIT */
/*
 * The engine below the fake driver's streams: each stream is a queue with a thread of its own,
 * which starts with the first operation. An operation begins when all earlier operations of its
 * stream have ended, and all that it needs in other streams. Then a random delay passes, so that an
 * order that no call has asked for does not come about by chance.
 *
 * The engine also decides the default order: an operation of a context's legacy stream needs all
 * operations that its blocking streams hold, and the other way round.
 *
 * FAKECUDA_DELAY_US   greatest delay before an operation, in microseconds (0: none)
 * FAKECUDA_SEED       makes the delays repeatable
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
	FK_STREAM_MARKS,	/* of the driver: it holds only marks of whole contexts */
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
	_Atomic bool abandoned;		/* its context ends: waiting operations give up */
	pthread_cond_t wake;		/* there is an operation, or it is closed */
	struct fk_stream *next;
};

/* An operation of a stream must have ended. */
struct fk_need {
	struct fk_stream *stream;
	uint64_t seq;
};

/* The kind of node that an operation becomes when its stream is captured. */
enum fk_node_kind {
	FK_NO_NODE,			/* it cannot be captured here */
	FK_KERNEL_NODE, FK_COPY_NODE, FK_FILL_NODE, FK_HOST_NODE, FK_MEMOP_NODE,
};

/*
 * One piece of work of a stream, at the beginning of the struct that holds its details. run is
 * called in the stream's thread and returns a CUresult: after any other than 0 the context is
 * broken. From then on only operations with `always` run; the others end without doing anything.
 */
struct fk_op {
	int (*run)(struct fk_op *op);
	void (*end)(struct fk_op *op);	/* frees what it holds, or NULL */
	bool always;
	bool foreign;			/* a function of the program */
	enum fk_node_kind node;
	size_t bytes;			/* of the struct */
	struct fk_stream *stream;
	uint64_t seq;
	struct fk_need *needs;
	unsigned int need_count;
	struct fk_op *next;
};

/* A zeroed operation of so many bytes, which begin with struct fk_op. It never fails. */
void *fk_op_new(size_t bytes, int (*run)(struct fk_op *op));

/* Another operation with the same details. pre: it was not handed to a stream. */
void *fk_op_copy(const struct fk_op *op);
/* Frees an operation that is not handed to a stream. */
void fk_op_free(struct fk_op *op);

/* The operation begins no earlier than the end of that one, which may be over. */
void fk_op_needs(struct fk_op *op, struct fk_stream *stream, uint64_t seq);

/* Hands the operation to the stream, which frees it. Returns its number. */
uint64_t fk_submit(struct fk_stream *stream, struct fk_op *op);

/*
 * Hands the operation to the context's stream of marks. It begins after all that the context's
 * other streams hold now. Returns its number, and the stream.
 */
uint64_t fk_submit_mark(struct fk_context *context, struct fk_op *op,
			struct fk_stream **ret_stream);

/* The number of the last operation that the stream was given. */
uint64_t fk_submitted(struct fk_stream *stream);
bool fk_has_ended(struct fk_stream *stream, uint64_t seq);

/* Waits until that operation of the stream has ended. */
void fk_wait_for(struct fk_stream *stream, uint64_t seq);

/* Waits until all streams have ended what they hold now: of one context, or NULL: of all. */
void fk_wait_for_all(struct fk_context *context);

/* The stream of that address; NULL: there is none, or it is closed. */
struct fk_stream *fk_queue_find(const void *handle);

struct fk_stream *fk_queue_new(struct fk_context *context, enum fk_stream_kind kind);

/* The legacy stream of the context; it is made on first use. */
struct fk_stream *fk_queue_legacy(struct fk_context *context);

/* The calling thread's default stream of the context. */
struct fk_stream *fk_queue_per_thread(struct fk_context *context);

/* The handle becomes invalid; the operations that the stream holds still run. */
void fk_queue_close(struct fk_stream *stream);

/*
 * All streams of the context end after the operations that they hold. Operations that would wait
 * for ever give up.
 */
void fk_queue_end_context(struct fk_context *context);

/* The driver ends: running operations finish, and no operation begins any more. */
void fk_queue_stop(void);

/*
 * Must the stream's running operation wait no longer? The stream's context ends, or an error has
 * lost it.
 */
bool fk_gives_up(const struct fk_stream *stream);

/* Is nothing left to do in the stream and in the streams that the legacy stream waits for? */
bool fk_is_idle(struct fk_stream *stream);

/* The stream that this thread works for, or NULL. */
struct fk_stream *fk_stream_of_thread(void);

#endif

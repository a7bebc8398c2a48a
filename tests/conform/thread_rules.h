/* SPDX-License-Identifier: MIT */
/*
 * What the rows of thread_rules.c and thread_rules_more.c share: the stage on which they call the
 * functions of the library, and what may go wrong there.
 */
#ifndef XMEM_CONFORM_THREAD_RULES_H
#define XMEM_CONFORM_THREAD_RULES_H

#include "harness.h"

#define BYTES	1024
#define BUFFERS	12
#define SHORT	(MS / 2)	/* a wait that is one, and short */

/* What all rows share. */
struct stage {
	const char *name;
	struct xmem_pool *writer, *reader, *other;
	struct xmem_subscription *s, *one;	/* joint, and of one publisher */
	struct xmem_buffer *read, *written;
	struct xmem_buffer *image;	/* held by @reader, and described */
	uint64_t token;
	int fd;
	int file;			/* sealed, for xmem_attach_fd */
	bool signals;			/* handlers run at any moment */
};
extern struct stage stage;

/* ---- what may go wrong ---- */

/* The last call of this thread failed because of others, or of a signal; else the test fails. */
void was_refused(const char *what, int error, int more);

/* A handle, or NULL for a good reason. @more: one more errno, negative, that is a good one. */
#define HANDLE(call, more) ({ \
	__auto_type handle_ = (call); \
	if (!handle_) \
		was_refused(#call, xmem_peek_last_error(NULL), more); \
	handle_; \
})
/* A number of at least 0, or a negative errno for a good reason. */
#define NUMBER(call) NUMBER_OR(call, 0)
#define NUMBER_OR(call, more) ({ \
	int64_t number_ = (call); \
	if (number_ < 0) \
		was_refused(#call, number_, more); \
	number_; \
})
/* The same again if a handler ran: then nothing has changed. */
#define AGAIN(call) ({ \
	int64_t again_; \
	do \
		again_ = (call); \
	while (again_ == -EINTR && stage.signals); \
	again_; \
})

/* ---- rows ---- */

struct row {
	const char *name;		/* without xmem_ */
	void (*call)(void);
	struct row *next;
};
void add_row(struct row *row);

#define ROW(name_) \
	static void call_##name_(void); \
	static struct row row_##name_ = { #name_, call_##name_, NULL }; \
	__attribute__((constructor)) static void add_##name_(void) { add_row(&row_##name_); } \
	static void call_##name_(void)

/* ---- the stage of the rows in thread_rules_more.c ---- */

void line_set(void);
/* All that its rows have used is free again. */
void line_strike(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The common part of thread_rules.c and thread_rules_more.c: the stage on which the rows call the
 * functions of the library, and the errors that are allowed there.
 */
#ifndef XMEM_CONFORM_THREAD_RULES_H
#define XMEM_CONFORM_THREAD_RULES_H

#include "harness.h"

#define BYTES	1024
#define BUFFERS	12
#define SHORT	(MS / 2)	/* long enough to be a wait, but short */

/* The stage of all rows. */
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

/* ---- allowed errors ---- */

/* This thread's last call failed because of others, or of a signal; otherwise the test fails. */
void was_refused(const char *what, int error, int more);

/* A handle, or NULL for an allowed error. @more: one more negative errno that is allowed. */
#define HANDLE(call, more) ({ \
	__auto_type handle_ = (call); \
	if (!handle_) \
		was_refused(#call, xmem_peek_last_error(NULL), more); \
	handle_; \
})
/* A number of at least 0, or a negative errno that is allowed. */
#define NUMBER(call) NUMBER_OR(call, 0)
#define NUMBER_OR(call, more) ({ \
	int64_t number_ = (call); \
	if (number_ < 0) \
		was_refused(#call, number_, more); \
	number_; \
})
/* Repeat the call if a handler ran: the first one has changed nothing then. */
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

/* ---- the stage of the rows in thread_rules_service.c ---- */

void service_set(void);
void service_strike(void);

#endif

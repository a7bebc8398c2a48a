/* SPDX-License-Identifier: MIT */
/* An owner, a stage that forwards, and a reader behind it. forward.c and send.c use these. */
#ifndef XMEM_CONFORM_LINE_H
#define XMEM_CONFORM_LINE_H

#include "harness.h"

#define BYTES	4096

/* One process, three clients. */
struct line {
	const char *name;
	struct xmem_pool *owner, *stage, *reader;
	struct xmem_subscription *in, *out;	/* the stage's, the reader's */
};

/* The part that a child of these tests plays: an owner or a stage. */
struct part {
	const char *name;
	int follows;			/* a stage: which client */
	int step;			/* where it is killed; ANY_STEP - 1: nowhere */
	unsigned int after;
};

struct xmem_pool *open_stage(const char *name, int64_t wait_bound_ns);
/* The owner has @buffers buffers. @flags: XMEM_SUBSCRIBE_*, of the reader. */
struct line line_make(unsigned int buffers, uint32_t flags);
void line_end(struct line *line);
/* The stage receives one publication and passes it on. Returns its token. */
uint64_t pass_on(struct line *line);

#endif

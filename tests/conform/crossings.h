/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of crossings: an owner of shared buffers, a stage, and a sink. */
#ifndef XMEM_CONFORM_CROSSINGS_H
#define XMEM_CONFORM_CROSSINGS_H

#include <sys/mman.h>

#include "claims.h"

#define BUFFERS		4	/* that the owner has, in one file */

struct crossing {
	const char *name;
	struct xmem_pool *owner, *stage, *sink;
	struct xmem_subscription *first, *second;	/* the stage's, the sink's */
};

static inline struct crossing crossing_start(void)
{
	struct crossing x = { .name = new_name() };

	x.owner = OPEN(x.name, .flags = XMEM_OPEN_WRITER, .label = "owner");
	WORKED(xmem_preallocate(x.owner, BYTES, BUFFERS, NULL));
	x.stage = OPEN(x.name, .flags = XMEM_OPEN_WRITER, .label = "stage");
	x.sink = OPEN(x.name, .flags = XMEM_OPEN_WRITER, .label = "sink");
	x.first = follow(x.stage, xmem_pool_client(x.owner), 0);
	x.second = follow(x.sink, xmem_pool_client(x.stage), 0);
	return x;
}

/* Every buffer is free again, and no other file is left. */
static inline void check_free(struct xmem_pool *owner)
{
	struct xmem_buffer *b[BUFFERS];
	unsigned int i;

	EVENTUALLY(stat_of(owner).payloads == 1);
	EVENTUALLY(stat_of(owner).holds == 0);	/* a give-up is posted */
	SAME(stat_of(owner).claims, 0);
	EVENTUALLY(stat_of(owner).attached == BUFFERS);
	for (i = 0; i < BUFFERS; i++) {
		b[i] = xmem_acquire(owner, BYTES, patience_ns());
		CHECK(b[i]);
	}
	for (i = 0; i < BUFFERS; i++)
		xmem_release(b[i]);
	SAME(stat_of(owner).live, 0);
}

static inline void crossing_end(struct crossing *x)
{
	check_free(x->owner);
	xmem_unsubscribe(x->second);
	xmem_unsubscribe(x->first);
	xmem_pool_close(x->sink);
	xmem_pool_close(x->stage);
	check_quiet(x->owner, 1);
	xmem_pool_close(x->owner);
}

/* An attached file of another program, of which only this buffer knows. */
static inline struct xmem_buffer *attached(struct xmem_pool *writer, uint64_t stamp)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint64_t words[BYTES / sizeof(uint64_t)], i;
	struct xmem_buffer *b;

	CHECK(file >= 0);
	for (i = 0; i < BYTES / sizeof(*words); i++)
		words[i] = stamp;
	SAME(write(file, words, BYTES), BYTES);
	CHECK(!fcntl(file, F_ADD_SEALS, GOOD_SEALS));
	b = xmem_attach_fd(writer, file, 0, 0, 0);
	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	close(file);
	xmem_metadata_mut(b)->id = stamp;
	return b;
}

/* The owner publishes, and the stage receives it and is its only holder. */
static inline struct xmem_buffer *received(struct crossing *x, uint64_t stamp)
{
	struct xmem_buffer *b;

	publish_stamp(x->owner, stamp);
	b = receive_one(x->first);
	SAME(stamp_of(b), stamp);
	return b;
}

/* The stage receives from the owner, is the only holder, and writes in place. */
static inline struct xmem_buffer *upgraded(struct crossing *x, uint64_t stamp)
{
	struct xmem_buffer *b = received(x, stamp);

	WORKED(xmem_get_mut(b));
	return b;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Shared by the fuzz targets: the input as a stream of numbers, a host in this process, and
 * functions that look at everything that a view claims. A target is an LLVMFuzzerTestOneInput in a
 * file of its own. run.sh replays its corpus, and then goes on from there for a while.
 */
#ifndef XMEM_FUZZ_H
#define XMEM_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/host.h"
#include "lib/base/handle.h"
#include "lib/describe/tensor.h"

/* A finding: libFuzzer keeps the input. */
#define MUST(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

/* ---- the input; 0 when it has been used up ---- */

struct input {
	const u8 *at, *end;
};

static inline void input_bytes(struct input *in, void *ret, size_t bytes)
{
	size_t left = in->end - in->at;

	memset(ret, 0, bytes);
	memcpy(ret, in->at, bytes < left ? bytes : left);
	in->at += bytes < left ? bytes : left;
}

static inline u8 input_u8(struct input *in)
{
	u8 value;

	input_bytes(in, &value, sizeof(value));
	return value;
}

static inline u64 input_u64(struct input *in)
{
	u64 value;

	input_bytes(in, &value, sizeof(value));
	return value;
}

/* ---- looks (look.c): each reads all that it may, or as much as is quick ---- */

void look_at_bytes(const void *data, size_t bytes);
/* The contents are [data, data + bytes); everything that the view claims must lie in them. */
void look_at_tensor(const struct xmem_tensor *tensor, const void *data, size_t bytes);
void look_at_image(const struct xmem_image *image, const void *data, size_t bytes);
/* xl_strings_measure has accepted it. */
void look_at_column(const struct xmem_strings *strings, const void *data, size_t bytes);
void look_at_strings(const struct xmem_metadata *metadata);

/* ---- the host (host.c) ---- */

enum { FUZZ_READER, FUZZ_HOSTILE, FUZZ_OWNER };	/* client ids */

#define FUZZ_SLOTS	4		/* of each of the two writers */
#define FUZZ_SLOT_BYTES	1000		/* so that slots begin at odd places */
#define FUZZ_FILE_BYTES	(FUZZ_SLOTS * FUZZ_SLOT_BYTES)

/*
 * A pool in plain memory, and the library's back end "daemon" that serves it. Its two writers are
 * only ids. The host's words are true, as in the kernel's pools. Clients of the daemon could forge
 * them, and are trusted not to do so (docs/design.md, "Two hosts").
 */
struct fuzz_host {
	struct xm_host host;
	void *pages;
	u64 bytes;
	int file;			/* of all payloads */
	u64 payloads;			/* the last id that was given */
	u32 slot[2][FUZZ_SLOTS];	/* of the hostile writer, and of the owner */
};
extern struct fuzz_host fuzz;

/* A new pool with both writers. */
void fuzz_host_begin(void);
/* The hostile writer ends. It comes back if nothing is left of its predecessor. */
void fuzz_host_end_writer(void);
void fuzz_host_new_writer(void);
/* Frees slots that only ended clients had. */
void fuzz_host_reap(void);

#endif

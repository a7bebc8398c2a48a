/* SPDX-License-Identifier: MIT */
/*
 * What tests of order on streams share. A stream is held up by a gate: a host function that waits
 * until the test has seen what it wants to see.
 */
#ifndef XMEM_CUDA_WORK_H
#define XMEM_CUDA_WORK_H

#include <semaphore.h>

#include "bytes.h"

#define WORK_BYTES	4096	/* of each buffer */

struct work {
	CUstream stream;
	sem_t gate;
	uint64_t *got;			/* WORK_BYTES, registered: what the stream has read */
};

/* The test fails unless the driver has done it. */
void must(CUresult result);
/* Memory that streams may use until the test ends: it is found there, and so no leak. */
void *keep(size_t bytes);

/* A stream of the first GPU, or of that one. */
void begin_work(struct work *work);
void begin_work_on(struct work *work, int gpu);

/* What is put into the stream from now on waits for open_gate. */
void close_gate(struct work *work);
void open_gate(struct work *work);
/* The same for a thread; returns NULL. */
void *open_soon(void *work);

/* The word at @i of contents with @stamp, as cuda_fill's. */
uint64_t stamp_word(uint64_t stamp, size_t i);
/* The stream fills a buffer; the memory that it copies from is not freed. */
void fill_on(struct xmem_buffer *buffer, uint64_t stamp, struct work *work);

#endif

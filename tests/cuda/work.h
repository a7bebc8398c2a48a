/* SPDX-License-Identifier: MIT */
/*
 * Helpers for tests of order on streams. A gate holds a stream up: a host function that waits until
 * the test has made its checks.
 */
#ifndef XMEM_CUDA_WORK_H
#define XMEM_CUDA_WORK_H

#include <semaphore.h>

#include "bytes.h"

#define WORK_BYTES	4096	/* of each buffer */

struct work {
	CUstream stream;
	sem_t gate;
	uint64_t *got;			/* WORK_BYTES, registered, for the stream to write */
};

/* The test fails unless the driver's call has worked. */
void must(CUresult result);
/* Memory that streams may use until the test ends. It stays reachable then, so it is no leak. */
void *keep(size_t bytes);

/* A stream of the first GPU, or of that one. */
void begin_work(struct work *work);
void begin_work_on(struct work *work, int gpu);

/* Work that is put into the stream from now on waits for open_gate. */
void close_gate(struct work *work);
void open_gate(struct work *work);
/* open_gate, for a thread; returns NULL. */
void *open_soon(void *work);

/* The word at @i of the contents that cuda_fill makes with @stamp. */
uint64_t stamp_word(uint64_t stamp, size_t i);
/* The stream fills a buffer. The memory that it copies from is not freed. */
void fill_on(struct xmem_buffer *buffer, uint64_t stamp, struct work *work);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A writer in a process of its own, which works on a stream with a gate and obeys orders, and the
 * test, which receives what it publishes.
 */
#ifndef XMEM_CUDA_SCENE_H
#define XMEM_CUDA_SCENE_H

#include "work.h"

/*
 * Orders for a writer. FILL closes the gate of its stream, and publishes contents that the stream
 * writes behind it.
 */
enum { FILL = 1, OPEN_GATE, ACQUIRE, LEAVE, CLOSE_POOL };
#define TELL(command, stamp)	((uint64_t)(stamp) << 8 | (command))

struct scene {
	char name[32];			/* of the pool */
	unsigned int buffers;		/* the writer's, of WORK_BYTES each */
	uint32_t flags;			/* XMEM_CUDA_* */
	struct child *writer;
	struct xmem_pool *pool;		/* the test's */
	struct xmem_subscription *sub;
};

/* Start a writer in a pool of its own. pre: the test has not used the driver. */
void begin_scene(struct scene *scene, unsigned int buffers);
/*
 * Do this in two steps, because a process that is forked after the driver has been used cannot use
 * it. The second step may come later. With @pool, or NULL, the test has opened that already.
 */
void spawn_writer(struct scene *scene, const char *name, unsigned int buffers, uint32_t flags);
void start_writer(struct scene *scene, struct xmem_pool *pool);

/* Give the writer an order, and wait until it is done. */
void order_writer(struct scene *scene, uint64_t what);
/* OPEN_GATE, for a thread; returns NULL. */
void *open_later(void *scene);
/* Has the writer a free buffer? */
bool writer_finds_one(struct scene *scene);
struct xmem_buffer *receive_next(struct scene *scene);

/*
 * A host function that drops a handle after the pool's close would leave the pool's end to a
 * thread.
 */
void let_streams_end(void);
/* The writer ends, and is not followed any more. Then the pool is closed, too. */
void end_writer(struct scene *scene);
void end_scene(struct scene *scene);

#endif

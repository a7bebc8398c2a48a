// SPDX-License-Identifier: MIT
/*
 * Buffers in memory of a GPU: written, published, received, and read, also after their writer has
 * ended.
 */
#include <stdlib.h>

#include "bytes.h"

#define BYTES	100000

/* ---- from process to process ---- */

struct stage {
	char name[32];
	uint32_t flags, role;
};

static void produce(void *argument)
{
	struct stage *stage = argument;
	struct xmem_pool *pool = cuda_writer(stage->name, 4, BYTES, stage->flags);
	uint64_t stamp;

	tell_parent(xmem_pool_client(pool));
	while ((stamp = hear_parent()))
		tell_parent(cuda_publish(pool, BYTES, stamp, NULL));
	no_violations();
	xmem_pool_close(pool);
	no_violations();
}

static struct stage stage_of(uint32_t flags, uint32_t role)
{
	struct stage stage = { .flags = flags, .role = role };

	snprintf(stage.name, sizeof(stage.name), "%s", new_name());
	return stage;
}

/* A producer in a process of its own, and a consumer here. */
static void hand_over(uint32_t flags, uint32_t role)
{
	struct stage stage = stage_of(flags, role);
	struct child *producer = spawn(produce, &stage);
	int publisher = hear(producer);
	struct xmem_pool *pool = OPEN(stage.name, .flags = role);
	struct xmem_subscription *sub = follow(pool, publisher, 0);
	struct xmem_buffer *buffer;
	uint64_t token;
	int i;

	for (i = 1; i < 20; i++) {
		tell(producer, i);
		token = hear(producer);
		buffer = xmem_receive(sub, patience_ns());
		CHECK(buffer);
		SAME(xmem_token(buffer), token);
		SAME(xmem_size(buffer), BYTES);
		SAME(xmem_cuda_device(buffer), 0);
		CHECK(xmem_cuda_ptr(buffer));
		CHECK(info_of(buffer).flags & XMEM_BUFFER_CUDA);
		cuda_check(buffer, i);
		xmem_release(buffer);
	}
	tell(producer, 0);
	finish_child(producer);
	no_violations();
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_contents_go_from_process_to_process_by_descriptor)
{
	hand_over(0, XMEM_OPEN_WRITER);
}

TEST(CUDA_readers_get_gpu_buffers_if_the_owner_allows)
{
	hand_over(XMEM_MEMORY_READERS, 0);
}

TEST(CUDA_contents_go_from_process_to_process_by_handle)
{
	hand_over(XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS, 0);
}

/* ---- the producer ends first ---- */

TEST(P3_memory_that_goes_by_descriptor_outlives_its_killed_writer)
{
	struct stage stage = stage_of(XMEM_MEMORY_READERS, 0);
	struct child *producer = spawn(produce, &stage);
	int publisher = hear(producer);
	struct xmem_pool *pool = OPEN(stage.name, .flags = 0);
	struct xmem_subscription *sub = follow(pool, publisher, 0);
	struct xmem_buffer *first, *second;

	tell(producer, 7);
	hear(producer);
	tell(producer, 8);
	hear(producer);
	first = xmem_receive(sub, patience_ns());
	CHECK(first);
	cuda_check(first, 7);
	kill_child(producer);
	cuda_check(first, 7);
	/* A payload that was never opened here is opened now. */
	second = xmem_receive(sub, patience_ns());
	CHECK(second);
	cuda_check(second, 8);
	cuda_check(first, 7);
	xmem_release(first);
	xmem_release(second);
	REFUSED(xmem_receive(sub, patience_ns()), EPIPE);
	xmem_unsubscribe(sub);
	EVENTUALLY(!stat_of(pool).attached);
	xmem_pool_close(pool);
	no_violations();
	USED(0);
}

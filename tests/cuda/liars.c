// SPDX-License-Identifier: MIT
/*
 * A writer whose metadata claims work that its streams do not do. That may cost its readers the
 * contents, but neither a stream of theirs nor the close of their pool waits for it for ever (P9).
 */
#include "lib/base/handle.h"
#include "work.h"

/* The claims of a liar: when the contents are published, and before it is killed. */
struct lie {
	char name[32];
	uint64_t first;
	uint64_t second;
};

static void publish_a_lie(void *argument)
{
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct lie *lie = argument;
	struct xmem_metadata *metadata;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint64_t token;

	hear_parent();
	pool = cuda_writer(lie->name, 1, WORK_BYTES, 0);
	buffer = xmem_acquire_cuda(pool, WORK_BYTES, 0, 0);
	CHECK(buffer);
	metadata = xm_metadata(&pool->map, xl_buffer(buffer)->slot);
	WORKED(xmem_publish(buffer, &keep, &token));
	xm_store(&metadata->order_value, lie->first);
	xm_store(&metadata->order_kind, XMEM_ORDER_READY);
	tell_parent(token);
	hear_parent();
	xm_store(&metadata->order_value, lie->second);
	tell_parent(1);
	hear_parent();
}

/*
 * @waits: the result of xmem_wait_on for the first lie; @ends: that of xmem_wait_contents at the
 * end.
 */
static void nobody_waits(uint64_t first, uint64_t second, int waits, int ends)
{
	struct lie lie = { .first = first, .second = second };
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	struct child *liar;
	struct work work;

	snprintf(lie.name, sizeof(lie.name), "%s", new_name());
	liar = spawn(publish_a_lie, &lie);
	begin_work(&work);
	tell(liar, 1);
	pool = OPEN(lie.name, .flags = XMEM_OPEN_WRITER);
	buffer = xmem_get(pool, hear(liar));
	CHECK(buffer);
	SAME(xmem_wait_on(buffer, work.stream), waits);
	tell(liar, 1);
	hear(liar);
	kill_child(liar);
	EVENTUALLY(!xl_cuda()->stream_query(work.stream));
	EVENTUALLY(xmem_wait_contents(buffer, 0) == ends);
	xmem_release(buffer);
	xmem_pool_close(pool);
	no_violations();
}

TEST(P9_a_value_that_is_taken_back_keeps_no_stream_waiting)
{
	nobody_waits(5, 0, 0, 0);
}

TEST(P9_a_value_that_is_never_reached_ends_with_its_writer)
{
	nobody_waits(5, 5, 0, -EOWNERDEAD);
}

TEST(P9_no_stream_waits_for_what_no_stream_writes)
{
	nobody_waits(XMEM_READY_OVER, 0, -EIO, 0);
}

TEST(P9_no_stream_waits_for_a_value_of_the_hosts)
{
	nobody_waits(XMEM_READY_ENDED + 1, 7, -EIO, -EOWNERDEAD);
}

TEST(P9_no_stream_waits_for_a_value_that_looks_small)
{
	nobody_waits(1ULL << 63, 1ULL << 63, -EIO, -EOWNERDEAD);
}

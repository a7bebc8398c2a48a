// SPDX-License-Identifier: MIT
/*
 * Buffers on GPUs that an acquire makes: how much, when publications and idle memory go for them,
 * and what happens if the GPU is full. The tests of tests/conform have the rules of such buffers.
 */
#include <stdlib.h>

#include "tests/conform/polling.h"
#include "work.h"

#define MB	(1ull << 20)
#define BLOCK	(2 * MB)

/* ---- making ---- */

TEST(CUDA_an_acquire_makes_a_buffer)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool_info info;
	struct xmem_buffer *buffer, *more;

	buffer = cuda_acquire(pool, BLOCK);
	cuda_fill(buffer, 1);
	cuda_check(buffer, 1);
	USED(BLOCK);
	more = cuda_acquire(pool, 4 * BLOCK);
	USED(5 * BLOCK);
	SAME(xmem_size(more), 4 * BLOCK);
	CHECK(!(info_of(buffer).flags & XMEM_BUFFER_MORTAL));
	xmem_release(buffer);
	xmem_release(more);
	/* A free buffer is taken again. */
	buffer = cuda_acquire(pool, BLOCK);
	USED(5 * BLOCK);
	xmem_release(buffer);
	CHECK(trim_pool(pool, 0) >= 0);
	info = stat_of(pool);
	SAME(info.attached, 0);
	USED(0);
	xmem_pool_close(pool);
	no_violations();
}

/* The driver takes a whole block for a small buffer, so a block has several. */
TEST(CUDA_small_buffers_share_a_block)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer[8];
	int i;

	for (i = 0; i < 8; i++) {
		buffer[i] = cuda_acquire(pool, 4096);
		cuda_fill(buffer[i], i);
	}
	USED(BLOCK);
	for (i = 0; i < 8; i++) {
		cuda_check(buffer[i], i);
		SAME((uintptr_t)xmem_cuda_ptr(buffer[i]) % 512, 0);
		xmem_release(buffer[i]);
	}
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

static void read_it(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_READER);
	struct xmem_buffer *buffer = xmem_get(pool, hear_parent());

	CHECK(buffer);
	cuda_check(buffer, 7);
	CHECK(!!(info_of(buffer).flags & XMEM_BUFFER_MORTAL) == hear_parent());
	xmem_release(buffer);
	xmem_pool_close(pool);
	tell_parent(1);
}

static void others_read(uint32_t memory, bool mortal)
{
	const char *name = new_name();
	struct child *child = spawn(read_it, (void *)name);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .memory = memory);
	struct xmem_buffer *kept;

	tell(child, cuda_publish(pool, BLOCK, 7, &kept));
	tell(child, mortal);
	SAME(hear(child), 1);
	finish_child(child);
	xmem_release(kept);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_readers_get_what_an_acquire_makes_for_them)
{
	others_read(XMEM_MEMORY_READERS, false);
}

TEST(CUDA_readers_get_what_an_acquire_makes_by_handle)
{
	others_read(XMEM_MEMORY_READERS | XMEM_MEMORY_LEGACY | XMEM_MEMORY_HUGE, true);
}

/* ---- limits ---- */

TEST(CUDA_demand_bytes_is_a_limit_of_each_gpu)
{
	struct xmem_pool *pool;
	struct xmem_buffer *buffer[5];
	int i;

	need_gpus(2);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .demand_bytes = 4 * BLOCK);
	for (i = 0; i < 4; i++)
		buffer[i] = cuda_acquire(pool, BLOCK);
	REFUSED(xmem_acquire_cuda(pool, BLOCK, 0, 0), EAGAIN);
	SAYS(EAGAIN, "8388608 of the 8388608 that may be made on demand (demand_bytes)");
	REFUSED(xmem_acquire_cuda(pool, 5 * BLOCK, 0, 0), ENOSPC);
	SAYS(ENOSPC, "more than this writer may make on demand, which is 8388608 bytes");
	REFUSED(xmem_acquire_cuda(pool, 0, 1, 0), ENOSPC);
	SAYS(ENOSPC, "has no buffers on that GPU; give the number of bytes");
	buffer[4] = xmem_acquire_cuda(pool, 4 * BLOCK, 1, 0);
	CHECK(buffer[4]);
	/* Memory of the CPU has a limit of its own, too. */
	xmem_release(xmem_acquire(pool, 4 * BLOCK, 0));
	/* Idle memory makes room. */
	for (i = 0; i < 5; i++)
		xmem_release(buffer[i]);
	buffer[0] = cuda_acquire(pool, 4 * BLOCK);
	xmem_release(buffer[0]);
	USED(4 * BLOCK);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

TEST(CUDA_a_quarter_of_what_is_free_is_made)
{
	struct xmem_pool *pool, *other;
	struct xmem_buffer *buffer;

	setenv("FAKECUDA_MEMORY_MIB", "64", 1);
	fake_only("a real GPU is not filled");
	other = cuda_writer(new_name(), 1, 32 * MB, 0);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	REFUSED(xmem_acquire_cuda(pool, 9 * MB, 0, 0), ENOSPC);
	SAYS(ENOSPC, "which is 8388608 bytes in all");
	buffer = cuda_acquire(pool, 8 * MB);
	xmem_pool_close(other);
	REFUSED(xmem_acquire_cuda(pool, 9 * MB, 0, 0), ENOSPC);	/* the limit stays */
	xmem_release(buffer);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_without_demand_an_acquire_makes_nothing)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER,
				      .demand_bytes = XMEM_NO_DEMAND);

	REFUSED(xmem_acquire_cuda(pool, 1, 0, 0), ENOSPC);
	SAYS(ENOSPC, "no buffers on GPU 0; make some by xmem_preallocate");
	xmem_pool_close(pool);
}

/* Preallocation in one place ends making on demand there, unless the program has given a limit. */
TEST(CUDA_demand_ends_with_a_preallocation_on_that_gpu)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;

	WORKED(xmem_preallocate(pool, 4096, 1, NULL));
	buffer = cuda_acquire(pool, BLOCK);
	REFUSED(xmem_acquire(pool, 100000, 0), ENOSPC);
	WORKED(make_on_gpu(pool, BLOCK, 1, 0, 0));
	REFUSED(xmem_acquire_cuda(pool, 2 * BLOCK, 0, 0), ENOSPC);
	xmem_release(cuda_acquire(pool, BLOCK));
	xmem_release(buffer);
	xmem_pool_close(pool);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .demand_bytes = 4 * BLOCK);
	WORKED(make_on_gpu(pool, BLOCK, 1, 0, 0));
	xmem_release(cuda_acquire(pool, 2 * BLOCK));
	USED(3 * BLOCK);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- eviction, waiting and age ---- */

TEST(CUDA_old_publications_make_room_for_a_buffer)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER,
				      .demand_bytes = 4 * BLOCK);
	struct xmem_buffer *buffer;
	int i;

	for (i = 0; i < 20; i++)
		cuda_publish(pool, BLOCK, i, NULL);
	buffer = cuda_acquire(pool, 3 * BLOCK);
	xmem_release(buffer);
	ON_FAKE(CHECK(gpu_used() <= 4 * BLOCK));
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

TEST(CUDA_a_poll_tells_when_a_buffer_on_a_gpu_can_be_made)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 2 * BLOCK);
	struct xmem_pool *reader = OPEN(name, .flags = XMEM_OPEN_READER);
	struct xmem_buffer *held[2], *buffer;
	int i;

	for (i = 0; i < 2; i++) {
		held[i] = xmem_get(reader, cuda_publish(pool, BLOCK, i, &buffer));
		CHECK(held[i]);
		xmem_release(buffer);
	}
	fd_of(pool);
	REFUSED(xmem_acquire_cuda(pool, 2 * BLOCK, 0, 0), EAGAIN);
	SAME(by_poll(fd_of(pool), POLLOUT, 0), 0);
	xmem_release(held[0]);
	SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
	REFUSED(xmem_acquire_cuda(pool, 2 * BLOCK, 0, 0), EAGAIN);
	xmem_release(held[1]);
	SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
	xmem_release(cuda_acquire(pool, 2 * BLOCK));
	xmem_pool_close(reader);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_idle_memory_that_is_old_is_freed)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .cache_ns = 1000000);

	xmem_release(cuda_acquire(pool, BLOCK));
	EVENTUALLY((xmem_release(xmem_acquire(pool, 64, 0)), stat_of(pool), gpu_uses(0)));
	xmem_pool_close(pool);
	no_violations();
}

/* ---- a GPU that is full ---- */

TEST(CUDA_idle_memory_of_another_pool_makes_room)
{
	struct xmem_pool *pool, *other;

	setenv("FAKECUDA_MEMORY_MIB", "64", 1);
	fake_only("a real GPU is not filled");
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	xmem_release(cuda_acquire(pool, 16 * MB));
	USED(16 * MB);
	other = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	xmem_clear_last_error();
	WORKED(make_on_gpu(other, 60 * MB, 1, 0, 0));
	SAME(xmem_peek_last_error(NULL), 0);
	USED(60 * MB);
	/* Preallocated memory stays, and the error says where it is. */
	REFUSED(xmem_acquire_cuda(pool, 16 * MB, 0, 0), ENOMEM);
	SAYS(ENOMEM, "GPU 0 has too little memory left", "has 62914560 there");
	USED(60 * MB);
	SAME(stat_of(pool).attached, 0);
	xmem_pool_close(other);
	xmem_release(cuda_acquire(pool, 16 * MB));
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

TEST(CUDA_what_an_acquire_cannot_make_leaves_nothing)
{
	static const char *const fails[] = {
		"cuMemGetInfo_v2:1:999", "cuMemCreate:1+:999", "cuMemMap:1+:999",
		"cuMemExportToShareableHandle:1+:999", "cuMemSetAccess:1+:999",
	};
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	unsigned int i;

	fake_only("it fails on demand");
	for (i = 0; i < sizeof(fails) / sizeof(*fails); i++) {
		driver_fails(fails[i]);
		REFUSED(xmem_acquire_cuda(pool, BLOCK, 0, 0), EIO);
		SAME(last_result(), 999);
		USED(0);
		driver_fails(NULL);
	}
	xmem_release(cuda_acquire(pool, BLOCK));
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

/* ---- for another allocator of the process ---- */

TEST(CUDA_all_pools_give_back_what_was_made_on_demand)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *other = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *fixed = cuda_writer(new_name(), 1, BLOCK, 0);
	struct xmem_buffer *used = cuda_acquire(other, BLOCK);
	uint64_t bytes = 0;

	xmem_release(cuda_acquire(pool, 2 * BLOCK));
	xmem_release(cuda_acquire(other, 3 * BLOCK));
	USED(7 * BLOCK);
	CHECK(xmem_collect(NULL, XMEM_KEEP_ALL, &bytes) >= 0);
	SAME(bytes, 0);
	USED(7 * BLOCK);
	CHECK(xmem_collect(NULL, 0, &bytes) >= 0);
	SAME(bytes, 5 * BLOCK);
	USED(2 * BLOCK);
	xmem_release(cuda_acquire(fixed, BLOCK));
	xmem_release(used);
	xmem_pool_close(fixed);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	CHECK(!xmem_collect(NULL, 0, NULL));
	USED(0);
	no_violations();
}

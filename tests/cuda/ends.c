// SPDX-License-Identifier: MIT
/*
 * When memory of a GPU is freed: with its owner or before it, and never while others have it open.
 */
#include <stdlib.h>

#include "bytes.h"

#define BYTES	100000

/* ---- a process that checks what it receives when the test says so ---- */

enum order { LOOK = 1, RECEIVE, RELEASE, FAILS, STAT, CLOSES, LEAVE };

struct reader {
	char name[32];
	int publisher;
};

/* This process is the last that has the memory open, and sees what is left afterwards. */
static void closes(struct xmem_pool *pool)
{
	struct xmem_pool_info stat = stat_of(pool);

	SAME(stat.bytes_closing, 0);
	SAME(stat.bytes_cuda, 0);
}

static void obey(void *argument)
{
	struct reader *reader = argument;
	struct xmem_pool *pool = OPEN(reader->name, .flags = 0);
	struct xmem_subscription *sub = follow(pool, reader->publisher, 0);
	struct xmem_buffer *buffer = NULL;
	uint64_t order;

	tell_parent(1);
	while ((order = hear_parent()) != LEAVE) {
		switch (order) {
		case RECEIVE:
			buffer = xmem_receive(sub, patience_ns());
			CHECK(buffer);
			break;
		case LOOK:
			cuda_check(buffer, 5);
			break;
		case FAILS:
			REFUSED(xmem_cuda_ptr(buffer), EOWNERDEAD);
			break;
		case RELEASE:
			xmem_release(buffer);
			break;
		case STAT:
			stat_of(pool);
			break;
		case CLOSES:
			closes(pool);
			break;
		}
		tell_parent(order);
	}
	no_violations();
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
	no_violations();
	USED(0);
}

static void order(struct child *child, enum order what)
{
	tell(child, what);
	SAME(hear(child), what);
}

static struct child *new_reader(const char *name, int publisher)
{
	static struct reader reader;
	struct child *child;

	reader.publisher = publisher;
	snprintf(reader.name, sizeof(reader.name), "%s", name);
	child = spawn(obey, &reader);
	SAME(hear(child), 1);
	return child;
}

static void leave(struct child *child)
{
	tell(child, LEAVE);
	finish_child(child);
}

/* ---- memory that is shared by handle ---- */

TEST(CUDA_an_owner_frees_memory_after_others_have_closed_it)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct child *reader = new_reader(name, xmem_pool_client(pool));
	struct xmem_device_info device = { .size = sizeof(device) };

	WORKED(make_on_gpu(pool, BYTES, 1, 0, XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS));
	cuda_publish(pool, BYTES, 5, NULL);
	order(reader, RECEIVE);
	order(reader, LOOK);
	order(reader, RELEASE);
	/* The reader still has it open. */
	SAME(trim_pool(pool, 0), 2 << 20);
	USED(2 << 20);
	stat_of(pool);
	USED(2 << 20);
	SAME(stat_of(pool).bytes_cuda, 2 << 20);
	SAME(stat_of(pool).bytes_closing, 2 << 20);
	order(reader, STAT);
	until_used(pool, 0);
	WORKED(xmem_pool_device_info(pool, 1, &device));
	SAME(device.bytes + device.bytes_closing, 0);
	CHECK(!memcmp(device.uuid, xl_gpu(0)->uuid, sizeof(device.uuid)));
	SAME(xmem_pool_device_info(pool, 2, &device), -ENOENT);
	SAME(xmem_pool_device_info(pool, 17, &device), -EINVAL);
	leave(reader);
	xmem_pool_close(pool);
	no_violations();
}

static void close_by_stat(uint32_t flags)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct child *reader = new_reader(name, xmem_pool_client(pool));

	WORKED(make_on_gpu(pool, BYTES, 1, 0, flags | XMEM_MEMORY_READERS));
	cuda_publish(pool, BYTES, 5, NULL);
	order(reader, RECEIVE);
	order(reader, LOOK);
	order(reader, RELEASE);
	SAME(trim_pool(pool, 0), 2 << 20);
	SAME(stat_of(pool).bytes_closing, 2 << 20);
	order(reader, CLOSES);
	leave(reader);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_a_stat_does_not_count_a_descriptor_that_it_closes)
{
	close_by_stat(0);
}

TEST(CUDA_a_stat_does_not_count_a_handle_that_it_closes)
{
	close_by_stat(XMEM_MEMORY_LEGACY);
}

/* The pool's handle is closed first. The memory stays for the buffer's holder. */
static void close_first(void (*last)(struct child *child))
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER), *other;
	struct child *reader = new_reader(name, xmem_pool_client(pool));

	WORKED(make_on_gpu(pool, BYTES, 1, 0, XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS));
	cuda_publish(pool, BYTES, 5, NULL);
	order(reader, RECEIVE);
	order(reader, LOOK);
	xmem_pool_close(pool);
	USED(2 << 20);
	order(reader, FAILS);
	last(reader);
	other = OPEN(name, .flags = 0);
	until_used(other, 0);
	if (!on_fake())			/* the label "closing" is gone with the memory */
		EVENTUALLY(stat_of(other).clients == 1);
	check_quiet(other, 1);
	xmem_pool_close(other);
	no_violations();
}

static void release_and_leave(struct child *child)
{
	order(child, RELEASE);
	order(child, STAT);
	leave(child);
}

TEST(CUDA_memory_by_handle_outlives_its_pools_handle_but_is_not_looked_at)
{
	close_first(release_and_leave);
}

TEST(CUDA_a_killed_reader_has_closed_what_it_had_open)
{
	close_first(kill_child);
}

static void publish_and_wait(void *argument)
{
	struct xmem_pool *pool = cuda_writer(argument, 1, BYTES,
					     XMEM_MEMORY_LEGACY | XMEM_MEMORY_READERS);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	tell_parent(cuda_publish(pool, BYTES, 5, NULL));
	hear_parent();
}

TEST(CUDA_memory_by_handle_ends_with_its_killed_owner)
{
	const char *name = new_name();
	struct child *owner = spawn(publish_and_wait, (void *)name);
	int publisher = hear(owner);
	struct xmem_pool *pool = OPEN(name, .flags = 0);
	struct xmem_subscription *sub = follow(pool, publisher, 0);
	struct xmem_client_info me = { .size = sizeof(me) };
	struct xmem_buffer *buffer, *never_opened;

	tell(owner, 1);
	hear(owner);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer);
	never_opened = xmem_clone(buffer);
	CHECK(never_opened);
	cuda_check(buffer, 5);
	kill_child(owner);
	EVENTUALLY(!xmem_cuda_ptr(buffer));
	SAYS(EOWNERDEAD, "has ended");
	/* The reader and the pool both count it as limbo, and not as a file. */
	WORKED(xmem_pool_client_info(pool, xmem_pool_client(pool), &me));
	SAME(me.bytes_limbo, BYTES);
	SAME(me.bytes_kept, 0);
	SAME(stat_of(pool).bytes_kept, 0);
	REFUSED(xmem_cuda_ptr(never_opened), EOWNERDEAD);
	REFUSED(xmem_copy_to_host(&publisher, buffer, 0, 4, NULL) == 0, EOWNERDEAD);
	xmem_release(buffer);
	xmem_release(never_opened);
	EVENTUALLY(!stat_of(pool).attached);
	USED(0);
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- one process ---- */

TEST(CUDA_a_process_finds_its_own_address)
{
	uint32_t flags[] = { 0, XMEM_MEMORY_LEGACY };
	unsigned long opened;
	size_t i;

	for (i = 0; i < 2; i++) {
		const char *name = new_name();
		struct xmem_pool *pool = cuda_writer(name, 2, BYTES, flags[i]);
		struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
		struct xmem_buffer *mine, *same;
		uint64_t token = cuda_publish(pool, BYTES, 3, &mine);

		opened = driver_calls("cuMemImportFromShareableHandle") +
			 driver_calls("cuIpcOpenMemHandle");
		same = xmem_get(other, token);
		CHECK(same);
		CHECK(xmem_cuda_ptr(same) == xmem_cuda_ptr(mine));
		CALLS(driver_calls("cuMemImportFromShareableHandle") +
		      driver_calls("cuIpcOpenMemHandle"), opened);
		cuda_check(same, 3);
		/* The owner releases first. A handle of this process still has the memory. */
		xmem_release(mine);
		xmem_pool_close(pool);
		if (flags[i])
			REFUSED(xmem_cuda_ptr(same), EOWNERDEAD);
		else
			cuda_check(same, 3);
		ON_FAKE(CHECK(gpu_used()));
		xmem_release(same);
		xmem_pool_close(other);
		if (flags[i])		/* any pool checks what a closed one has left */
			xmem_pool_close(OPEN(new_name(), .flags = 0));
		USED(0);
		no_violations();
	}
}

/* ---- in any order ---- */

static void *drop(void *buffer)
{
	xmem_release(buffer);
	return NULL;
}

TEST(CUDA_handles_are_dropped_by_any_thread_after_the_pools)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 4, BYTES, 0);
	struct xmem_buffer *kept[2], *acquired;
	pthread_t thread;
	int i;

	for (i = 0; i < 2; i++)
		cuda_publish(pool, BYTES, i, &kept[i]);
	acquired = cuda_acquire(pool, BYTES);
	xmem_pool_close(pool);
	cuda_check(kept[1], 1);
	for (i = 0; i < 2; i++) {
		SAME(pthread_create(&thread, NULL, drop, kept[i]), 0);
		SAME(pthread_join(thread, NULL), 0);
	}
	USED(2 << 20);
	SAME(pthread_create(&thread, NULL, drop, acquired), 0);
	SAME(pthread_join(thread, NULL), 0);
	USED(0);
	no_violations();
}

/* The driver ends before the library has released its memory. Its descriptors stay. */
static void end_driver(void *argument)
{
	struct fake fake = fake_only("it ends on demand");
	uint32_t flags[] = { 0, XMEM_MEMORY_LEGACY };
	struct xmem_pool *pool[2];
	struct xmem_buffer *kept;
	size_t i;

	for (i = 0; i < 2; i++) {
		pool[i] = cuda_writer(new_name(), 2, BYTES, flags[i]);
		cuda_publish(pool[i], BYTES, i, &kept);
	}
	xmem_clear_last_error();
	fake.end();
	xmem_pool_close(pool[0]);
	WORKED(trim_pool(pool[1], 0));
	xmem_pool_close(pool[1]);
	SAME(xmem_peek_last_error(NULL), 0);
	no_violations();
}

TEST(CUDA_the_drivers_end_is_no_error)
{
	in_child(end_driver, NULL);
}

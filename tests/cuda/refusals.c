// SPDX-License-Identifier: MIT
/*
 * Refusals, and failures of the driver: each of its calls fails in turn, and nothing is left half
 * done.
 */
#include <stdlib.h>

#include "bytes.h"
#include "xmem/cuda.h"

#define BYTES	100000

/* ---- the wrong function for a buffer ---- */

TEST(CUDA_each_place_has_its_own_functions)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 2, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_buffer *cpu = xmem_acquire(pool, BYTES, 0), *cuda, *got;
	uint64_t token;
	char byte;

	WORKED(make_on_gpu(pool, BYTES, 2, 0, XMEM_MEMORY_SEALED));
	cuda = cuda_acquire(pool, BYTES);
	CHECK(cpu && cuda);
	REFUSED(xmem_data(cuda), EMEDIUMTYPE);
	SAYS(EMEDIUMTYPE, "xmem_cuda_ptr");
	REFUSED(xmem_data_mut(cuda), EMEDIUMTYPE);
	REFUSED(xmem_cuda_ptr(cpu), EMEDIUMTYPE);
	SAYS(EMEDIUMTYPE, "xmem_data");
	REFUSED(xmem_cuda_ptr_mut(cpu), EMEDIUMTYPE);
	SAME(xmem_cuda_device(cpu), -EMEDIUMTYPE);
	SAME(xmem_copy_from_host(cuda, BYTES, &byte, 1, NULL), -ERANGE);
	SAME(xmem_copy_from_host(cuda, ~0UL, &byte, 1, NULL), -ERANGE);
	SAME(xmem_copy_from_host(cuda, 0, NULL, 1, NULL), -EINVAL);
	SAME(xmem_copy_from_host(cuda, BYTES, NULL, 0, NULL), 0);
	cuda_fill(cuda, 1);
	WORKED(xmem_publish(cuda, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
		.offset = 1000, .length = 500,
	}, &token));
	REFUSED(xmem_cuda_ptr_mut(cuda), EPERM);
	SAME(xmem_get_mut(cuda), -EOPNOTSUPP);
	SAYS(EOPNOTSUPP, "XMEM_MEMORY_SEALED");
	SAME(xmem_copy_from_host(cuda, 0, &byte, 1, NULL), -EPERM);
	SAME(xmem_copy_to_host(&byte, cuda, 500, 1, NULL), -ERANGE);
	WORKED(xmem_copy_to_host(&byte, cuda, 499, 1, NULL));
	SAME(xmem_size(cuda), 500);
	/* A reader holds it, and may not read it. */
	got = xmem_get(reader, token);
	CHECK(got);
	REFUSED(xmem_cuda_ptr(got), EACCES);
	SAYS(EACCES, "XMEM_MEMORY_READERS", "XMEM_OPEN_READER", "attaches");
	SAME(xmem_cuda_device(got), 0);
	xmem_release(got);
	xmem_release(cuda);
	xmem_release(cpu);
	REFUSED(xmem_cuda_ptr(cuda), EBADF);
	SAYS(EBADF, "xmem_release_on", "xmem_publish");
	REFUSED(xmem_cuda_ptr(NULL), EINVAL);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

/* The call fails, and its message begins with its name. */
#define NAMED(function, ...) do { \
	xmem_clear_last_error(); \
	(void)xmem_##function(__VA_ARGS__); \
	CHECK(xmem_peek_last_error(NULL)); \
	if (strncmp(last_message(), #function ": ", sizeof(#function) + 1)) \
		FAIL("xmem_%s: %s", #function, last_message()); \
} while (0)

/* tests/conform/named_calls.c has the calls that need no GPU. */
TEST(CUDA_messages_begin_with_the_functions_name)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 2, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_buffer *cpu = xmem_acquire(pool, BYTES, 0), *cuda, *got;
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	uint64_t token;

	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	cuda = cuda_acquire(pool, BYTES);
	CHECK(cpu && cuda);
	NAMED(acquire_cuda, pool, BYTES, 0, 0);
	NAMED(acquire_cuda, pool, BYTES, 0, MS);
	NAMED(acquire_cuda, pool, BYTES, 99, 0);
	NAMED(cuda_device_query, 99, NULL);
	NAMED(copy_to, cuda, 99, 0);
	NAMED(attach_cuda, pool, &tensor, BYTES, 0, NULL, NULL);
	NAMED(cuda_ptr, cpu);
	NAMED(cuda_ptr_mut, cpu);
	NAMED(cuda_peer, cpu, 0);
	NAMED(cuda_device, cpu);
	NAMED(wait_on, cpu, NULL);
	NAMED(data, cuda);
	NAMED(data_mut, cuda);
	NAMED(release_on, cuda, NULL);
	NAMED(cuda_peer, cuda, 99);
	cuda_fill(cuda, 1);
	WORKED(xmem_publish(cuda, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_KEEP),
			    &token));
	NAMED(cuda_ptr_mut, cuda);
	NAMED(data_private, cuda);
	NAMED(copy_from_host, cuda, 0, &token, sizeof(token), NULL);
	got = xmem_get(reader, token);
	CHECK(got);
	NAMED(cuda_ptr, got);
	NAMED(cuda_peer, got, 0);
	NAMED(tensor_view, got, XMEM_VIEW_CUDA, &tensor);
	NAMED(acquire_cuda, pool, BYTES, 0, 0);
	SAYS(EAGAIN, "1 of 1 buffers of at least 100000 bytes held (client");
	NAMED(copy_to_host, &token, got, 0, sizeof(token), NULL);
	NAMED(copy, cpu, got, NULL);
	xmem_release(got);
	xmem_release(cuda);
	xmem_release(cpu);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_no_acquire_finds_a_buffer_of_another_place)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 2, BYTES);
	struct xmem_buffer *b[4];
	int i;

	WORKED(make_on_gpu(pool, 2 * BYTES, 2, 0, 0));
	for (i = 0; i < 2; i++) {
		b[i] = cuda_acquire(pool, 0);
		SAME(xmem_size(b[i]), 2 * BYTES);
		b[2 + i] = xmem_acquire(pool, 0, 0);
		CHECK(b[2 + i]);
		SAME(xmem_size(b[2 + i]), BYTES);
	}
	REFUSED(xmem_acquire_cuda(pool, 1, 0, 0), EAGAIN);
	REFUSED(xmem_acquire(pool, 1, 0), EAGAIN);
	REFUSED(xmem_acquire_cuda(pool, 2 * BYTES + 1, 0, 0), ENOSPC);
	REFUSED(xmem_acquire(pool, BYTES + 1, 0), ENOSPC);
	REFUSED(xmem_acquire_cuda(pool, 1, 0, 10 * MS), ETIMEDOUT);
	SAYS(ETIMEDOUT, "2 being written");
	for (i = 0; i < 4; i++)
		xmem_release(b[i]);
	SAME(stat_of(pool).attached, 4);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_bad_numbers_are_refused)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 64,
				      .demand_bytes = XMEM_NO_DEMAND);
	struct xmem_pool *reader = OPEN(new_name(), .flags = XMEM_OPEN_READER);

	SAME(make_on_gpu(NULL, 1, 1, 0, 0), -EINVAL);
	SAME(make_on_gpu(reader, 1, 1, 0, 0), -EPERM);
	SAME(make_on_gpu(pool, 1, 0, 0, 0), -EINVAL);
	SAME(make_on_gpu(pool, 1, 65, 0, 0), -EINVAL);
	SAME(make_on_gpu(pool, 0, 1, 0, 0), -EINVAL);
	SAME(make_on_gpu(pool, ~0UL, 2, 0, 0), -EINVAL);
	SAME(make_on_gpu(pool, 1, 1, 0, 1u << 9), -EINVAL);
	SAME(make_on_gpu(pool, 1, 1, 99, 0), -ENODEV);
	SAME(make_on_gpu(pool, 1, 1, -1, 0), -ENODEV);
	REFUSED(xmem_acquire_cuda(pool, 1, 0, 0), ENOSPC);
	SAYS(ENOSPC, "xmem_preallocate with XMEM_MEMORY_CUDA");
	REFUSED(xmem_acquire_cuda(pool, 1, 0, -1), EINVAL);
	REFUSED(xmem_acquire_cuda(reader, 1, 0, 0), EPERM);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

/* ---- the driver fails ---- */

static const char *const made_by[] = {
	"cuMemCreate", "cuMemExportToShareableHandle", "cuMemAddressReserve", "cuMemMap",
	"cuMemSetAccess", "cuMemAlloc", "cuIpcGetMemHandle", "cuCtxPushCurrent",
	"cuDevicePrimaryCtxRetain",
};

/*
 * The first calls of each function fail in turn: all or nothing is made, and nothing is left
 * behind.
 */
static void make_in_vain(const char *function, unsigned int nth, uint32_t flags)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER,
				      .demand_bytes = XMEM_NO_DEMAND);
	unsigned long before;
	struct xmem_pool_info info;
	char rule[64];
	int err;

	snprintf(rule, sizeof(rule), "%s:%u:400", function, nth);
	driver_fails(rule);
	before = driver_calls(function);
	/* Three allocations. */
	err = make_on_gpu(pool, 16 << 20, 3, 0, flags);
	if (driver_calls(function) - before >= nth) {
		SAME(err, -EINVAL);
		SAME(last_result(), 400);
		info = stat_of(pool);
		SAME(info.attached, 0);
		USED(0);
		REFUSED(xmem_acquire_cuda(pool, 1, 0, 0), ENOSPC);
	} else {
		WORKED(err);
	}
	driver_fails(NULL);
	WORKED(make_on_gpu(pool, 4096, 1, 0, flags));
	xmem_release(cuda_acquire(pool, 4096));
	xmem_pool_close(pool);
	ON_FAKE(EVENTUALLY(!gpu_used()));	/* a busy host may let it be freed later */
	no_violations();
}

TEST_WITHIN(CUDA_what_cannot_be_made_leaves_nothing, 60)
{
	size_t i;
	unsigned int nth;

	fake_only("it fails on demand");
	for (i = 0; i < sizeof(made_by) / sizeof(*made_by); i++)
		for (nth = 1; nth < 5; nth++) {
			make_in_vain(made_by[i], nth, 0);
			make_in_vain(made_by[i], nth, XMEM_MEMORY_LEGACY);
		}
}

struct writer {
	char name[32];
	uint32_t flags;
};

static void publish_one(void *argument)
{
	struct writer *writer = argument;
	struct xmem_pool *pool = cuda_writer(writer->name, 1, BYTES,
					     writer->flags | XMEM_MEMORY_READERS);
	struct xmem_buffer *kept;

	tell_parent(cuda_publish(pool, BYTES, 6, &kept));
	hear_parent();
	xmem_release(kept);
	trim_pool(pool, 0);
	EVENTUALLY((stat_of(pool), gpu_uses(0)));
	no_violations();
}

static const char *const opened_by[] = {
	"cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess",
	"cuIpcOpenMemHandle", "cuDevicePrimaryCtxRetain",
};

/* An open that fails leaves nothing open, and the next one works. */
static void open_in_vain(uint32_t flags)
{
	struct writer writer = { .flags = flags };
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	struct child *child;
	unsigned long before;
	uint64_t token;
	char rule[64];
	size_t i;

	snprintf(writer.name, sizeof(writer.name), "%s", new_name());
	child = spawn(publish_one, &writer);
	token = hear(child);
	pool = OPEN(writer.name, .flags = 0);
	buffer = xmem_get(pool, token);
	CHECK(buffer);
	for (i = 0; i < sizeof(opened_by) / sizeof(*opened_by); i++) {
		snprintf(rule, sizeof(rule), "%s:1:1", opened_by[i]);
		driver_fails(rule);
		before = driver_calls(opened_by[i]);
		if (xmem_cuda_ptr(buffer)) {
			SAME(driver_calls(opened_by[i]), before);
			break;
		}
		SAME(xmem_peek_last_error(NULL), -EINVAL);
		USED(0);
	}
	driver_fails(NULL);
	cuda_check(buffer, 6);
	xmem_release(buffer);
	tell(child, 1);
	/* The writer waits until this process has closed it. */
	EVENTUALLY(!stat_of(pool).attached);
	finish_child_of(pool, child);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

TEST(CUDA_a_descriptor_that_cannot_be_opened_can_be_opened_later)
{
	fake_only("it fails on demand");
	open_in_vain(0);
}

TEST(CUDA_a_handle_that_cannot_be_opened_can_be_opened_later)
{
	fake_only("it fails on demand");
	open_in_vain(XMEM_MEMORY_LEGACY);
}

/* A close that fails keeps the memory, because nothing better is possible. */
static void close_in_vain(void *argument)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);

	xmem_clear_last_error();
	driver_fails("cuMemUnmap:1:999");
	xmem_pool_close(pool);
	driver_fails(NULL);
	SAME(xmem_peek_last_error(NULL), 0);
	USED(2 << 20);
	no_violations();
}

TEST(CUDA_a_close_that_fails_is_no_error)
{
	fake_only("it fails on demand");
	in_child(close_in_vain, NULL);
}

/* One of two allocations stays, and does not count. */
static void trim_in_vain(void *argument)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	WORKED(make_on_gpu(pool, BYTES, 1, 0, XMEM_MEMORY_LEGACY));
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	xmem_clear_last_error();
	driver_fails(argument);
	SAME(trim_pool(pool, 0), 2 << 20);
	driver_fails(NULL);
	SAME(xmem_peek_last_error(NULL), 0);
	SAME(last_result(), 0);
	USED(2 << 20);
	/* The next memory that is made causes another attempt. */
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	USED(2 << 20);
	SAME(trim_pool(pool, 0), 2 << 20);
	USED(0);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_what_is_not_given_back_does_not_count_and_is_tried_again)
{
	fake_only("it fails on demand");
	in_child(trim_in_vain, "cuMemUnmap:1+:999");
	if (!on_hip())		/* a thread has device 0 already */
		in_child(trim_in_vain, "cuCtxPushCurrent:1+:2");
}

/*
 * A real GPU is not filled, because other programs would suffer: the test asks for more than it
 * has.
 */
TEST(CUDA_a_gpu_that_is_full_is_said)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };
	unsigned int many = on_fake() ? 5 : 1;
	struct xmem_buffer *held;
	struct xmem_pool *pool;
	size_t bytes;

	setenv("FAKECUDA_MEMORY_MIB", "64", 1);
	WORKED(xmem_cuda_device_query(0, &info));
	bytes = on_fake() ? 16 << 20 : info.bytes + (2 << 20);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	SAME(make_on_gpu(pool, bytes, many, 0, 0), -ENOMEM);
	SAYS(ENOMEM, "GPU 0 has too little memory left");
	USED(0);
	WORKED(make_on_gpu(pool, 16 << 20, 3, 0, 0));
	cuda_publish(pool, BYTES, 1, &held);
	many = on_fake() ? 2 : 1;
	SAME(make_on_gpu(pool, bytes, many, 0, XMEM_MEMORY_LEGACY), -ENOMEM);
	SAYS(ENOMEM, "this pool has 50331648 there", "1 of 3 buffers held (client 0 cuda pid");
	xmem_release(held);
	WORKED(trim_pool(pool, 0));
	USED(0);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_a_second_try_that_works_leaves_no_error)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	fake_only("it fails on demand");
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	xmem_clear_last_error();
	driver_fails("cuMemCreate:1:2");
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	driver_fails(NULL);
	SAME(xmem_peek_last_error(NULL), 0);
	SAME(last_result(), 0);
	/* The earlier error stays. */
	REFUSED(xmem_get(NULL, 1), EINVAL);
	driver_fails("cuMemCreate:1:2");
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	driver_fails(NULL);
	SAYS(EINVAL, NULL);
	SAME(last_result(), 0);
	xmem_pool_close(pool);
	no_violations();
}

/* Attributes promise descriptors, and the calls say that there are none. Handles serve instead. */
TEST(CUDA_without_descriptors_memory_goes_by_handle)
{
	static const char *const missing[] = {
		"cuMemCreate:1+:801", "cuMemExportToShareableHandle:1+:801",
		"cuMemCreate:1+:1", "cuMemExportToShareableHandle:1+:1",
	};
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	size_t i;

	fake_only("it fails on demand");
	xmem_clear_last_error();
	for (i = 0; i < 4; i++) {
		driver_fails(missing[i]);
		WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
		SAME(xmem_peek_last_error(NULL), 0);
		buffer = cuda_acquire(pool, BYTES);
		CHECK(info_of(buffer).flags & XMEM_BUFFER_MORTAL);
		CHECK(!(info_of(buffer).flags & XMEM_BUFFER_SHARED));
		WORKED(xmem_publish(buffer, &keep, NULL));
		SAME(xmem_get_mut(buffer), -EOPNOTSUPP);
		SAYS(EOPNOTSUPP, "IPC handles");
		xmem_clear_last_error();
		xmem_release(buffer);
		WORKED(trim_pool(pool, 0));
	}
	driver_fails(NULL);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

TEST(CUDA_without_descriptors_and_handles_there_is_no_memory_to_share)
{
	struct xmem_pool *pool;

	not_with_hip("all of AMD's GPUs have handles");
	use_attributes("125=0");	/* no handles */
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	fake_only("it fails on demand");
	driver_fails("cuMemCreate:1+:1");
	SAME(make_on_gpu(pool, BYTES, 1, 0, 0), -EOPNOTSUPP);
	SAYS(EOPNOTSUPP, "no memory that has a descriptor", "CUDA_ERROR_INVALID_VALUE (1)");
	SAME(last_result(), 1);
	driver_fails(NULL);
	xmem_pool_close(pool);
	no_violations();
}

/* This also holds for buffers that are made on demand. */
TEST(CUDA_an_acquire_that_finds_another_buffer_leaves_no_error)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 64,
				      .demand_bytes = 64 << 20);
	struct xmem_buffer *buffer;

	WORKED(xmem_preallocate(pool, 100000, 64, NULL));
	xmem_clear_last_error();
	buffer = xmem_acquire(pool, 50, 0);
	CHECK(buffer);
	SAME(xmem_peek_last_error(NULL), 0);
	xmem_release(buffer);
	xmem_pool_close(pool);
}

/* ---- steady state ---- */

TEST(CUDA_the_steady_state_calls_no_driver)
{
	struct fake fake = fake_only("its calls are counted");
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 4, BYTES, 0);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(other, xmem_pool_client(pool), 0);
	struct xmem_buffer *buffer;
	unsigned long before = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		if (i == 100)
			before = fake.calls(NULL);
		buffer = cuda_acquire(pool, BYTES);
		CHECK(xmem_cuda_ptr_mut(buffer));
		WORKED(xmem_publish(buffer, NULL, NULL));
		buffer = xmem_receive(sub, 0);
		CHECK(buffer);
		CHECK(xmem_cuda_ptr(buffer));
		xmem_release(buffer);
	}
	SAME(fake.calls(NULL), before);
	xmem_unsubscribe(sub);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	no_violations();
}

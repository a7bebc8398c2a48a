// SPDX-License-Identifier: MIT
/*
 * Several GPUs, GPUs that a process does not see, and processes that have none. Also other
 * functions of the library with buffers on GPUs.
 */
#include <poll.h>
#include <stdlib.h>

#include "bytes.h"
#include "tests/conform/evicted.h"

#define BYTES	100000

/* ---- several GPUs ---- */

static void copy_between(void)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 2, BYTES, 0);
	struct xmem_buffer *from = cuda_acquire(pool, BYTES), *near, *far;
	uint32_t slot;

	WORKED(xmem_preallocate(pool, BYTES, 1,
				XMEM_OPTIONS(xmem_preallocate_options, .flags = XMEM_MEMORY_CUDA,
					     .device_id = 1, .ret_slots = &slot)));
	near = cuda_acquire(pool, BYTES);
	far = xmem_acquire_cuda(pool, BYTES, 1, 0);
	CHECK(far);
	SAME(xmem_slot(far), slot);
	SAME(xmem_cuda_device(far), 1);
	SAME(xmem_cuda_device(near), 0);
	REFUSED(xmem_acquire_cuda(pool, 1, 1, 0), EAGAIN);
	REFUSED(xmem_acquire_cuda(pool, 1, 0, 0), EAGAIN);
	cuda_fill(from, 4);
	WORKED(xmem_copy_range(near, 0, from, 0, BYTES, NULL));
	cuda_check(near, 4);
	WORKED(xmem_copy_range(far, 0, near, 0, BYTES, NULL));
	cuda_check(far, 4);
	SAME(xmem_copy_range(far, 1, near, 0, BYTES, NULL), -ERANGE);
	SAME(xmem_copy_range(far, 0, near, 1, BYTES, NULL), -ERANGE);
	SAME(xmem_copy_range(far, 0, far, 0, 1, NULL), -EINVAL);
	xmem_release(from);
	xmem_release(near);
	xmem_release(far);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_contents_are_copied_between_gpus_that_are_peers)
{
	need_gpus(2);
	copy_between();
	ON_FAKE(CHECK(driver_calls("cuMemcpyPeerAsync")));
}

TEST(CUDA_contents_are_copied_between_gpus_that_are_not)
{
	setenv("FAKECUDA_PEERS", "none", 1);
	need_gpus(2);
	copy_between();
	CALLS(driver_calls("cuMemcpyPeerAsync"), 0);
}

TEST(CUDA_xmem_copy_goes_from_place_to_place)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *cpu = xmem_acquire(pool, BYTES, 0), *cuda[2], *back;
	struct xmem_metadata m;
	int i;

	WORKED(make_on_gpu(pool, BYTES, 2, 0, 0));
	for (i = 0; i < 2; i++)
		cuda[i] = cuda_acquire(pool, BYTES);
	back = xmem_acquire(pool, BYTES, 0);
	memset(xmem_data_mut(cpu), 7, BYTES);
	WORKED(xmem_describe_source(cpu, XMEM_OPTIONS(xmem_source,
							.content_type = "text/plain")));
	xmem_clear_last_error();
	WORKED(xmem_copy(cuda[0], cpu, NULL));
	WORKED(xmem_copy(cuda[1], cuda[0], NULL));
	WORKED(xmem_copy_from_host(cuda[1], 1, "x", 1, NULL));
	WORKED(xmem_copy(back, cuda[1], NULL));
	SAME(xmem_peek_last_error(NULL), 0);
	SAME(((const char *)xmem_data(back))[0], 7);
	SAME(((const char *)xmem_data(back))[1], 'x');
	SAME(((const char *)xmem_data(back))[BYTES - 1], 7);
	WORKED(xmem_metadata_view(cuda[1], &m));
	CHECK(!strcmp(m.content_type, "text/plain"));
	SAME(m.storage, XMEM_STORAGE_CUDA);
	SAME(m.device, 1);
	WORKED(xmem_metadata_view(back, &m));
	CHECK(!strcmp(m.content_type, "text/plain"));
	SAME(m.storage, XMEM_STORAGE_CPU);
	SAME(m.device, 0);
	for (i = 0; i < 2; i++)
		xmem_release(cuda[i]);
	xmem_release(cpu);
	xmem_release(back);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_a_copy_to_a_new_buffer_goes_to_each_place)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *cpu = xmem_acquire(pool, 10, 0), *cuda, *other, *back;
	struct xmem_metadata m;

	WORKED(make_on_gpu(pool, BYTES, 2, 0, 0));
	strcpy(xmem_data_mut(cpu), "ten bytes");
	WORKED(SOURCE(cpu, .content_type = "text/plain"));
	cuda = xmem_copy_to(cpu, 0, 0);
	CHECK(cuda && xmem_cuda_ptr_mut(cuda));
	SAME(xmem_cuda_device(cuda), 0);
	SAME(xmem_size(cuda), 10);
	other = xmem_copy_to(cuda, 0, 0);
	CHECK(other && xmem_cuda_ptr_mut(other));
	back = xmem_copy_to(other, XMEM_CPU, 0);
	CHECK(back && !strcmp(xmem_data_mut(back), "ten bytes"));
	WORKED(xmem_metadata_view(back, &m));
	CHECK(!strcmp(m.content_type, "text/plain"));
	SAME(m.storage, XMEM_STORAGE_CPU);
	REFUSED(xmem_copy_to(cpu, 0, 0), EAGAIN);
	REFUSED(xmem_copy_to(cpu, 64, 0), ENODEV);
	xmem_release(other);
	xmem_release(cuda);
	xmem_release(back);
	xmem_release(cpu);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_a_copy_to_a_new_buffer_that_fails_leaves_none)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *cpu = xmem_acquire(pool, 10, 0), *cuda, *back;
	int i;

	fake_only("it fails on demand");
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	strcpy(xmem_data_mut(cpu), "ten bytes");
	for (i = 0; i < 3; i++) {
		driver_fails("cuMemcpyHtoDAsync_v2:1:2");
		REFUSED(xmem_copy_to(cpu, 0, 0), ENOMEM);
		SAYS(ENOMEM, "copy 10 bytes to GPU 0", "CUDA_ERROR_OUT_OF_MEMORY");
	}
	driver_fails(NULL);
	cuda = xmem_copy_to(cpu, 0, 0);
	CHECK(cuda);
	for (i = 0; i < 3; i++) {
		driver_fails("cuMemcpyDtoHAsync_v2:1:2");
		REFUSED(xmem_copy_to(cuda, XMEM_CPU, 0), ENOMEM);
	}
	driver_fails(NULL);
	back = xmem_copy_to(cuda, XMEM_CPU, 0);
	CHECK(back && !strcmp(xmem_data(back), "ten bytes"));
	xmem_release(back);
	xmem_release(cuda);
	xmem_release(cpu);
	xmem_pool_close(pool);
	no_violations();
}

/* A part can be copied between the CPU and a GPU, and between GPUs. */
TEST(CUDA_a_part_is_copied_between_the_cpu_and_a_gpu)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *cpu = xmem_acquire(pool, 16, 0), *cuda, *back;
	char got[5] = "";

	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	cuda = cuda_acquire(pool, BYTES);
	back = xmem_acquire(pool, 16, 0);
	strcpy(xmem_data_mut(cpu), "a few bytes");
	memset(xmem_data_mut(back), 0, 16);
	WORKED(xmem_copy_range(cuda, 100, cpu, 2, 4, NULL));
	WORKED(xmem_copy_range(back, 3, cuda, 101, 3, NULL));
	CHECK(!strcmp((const char *)xmem_data(back) + 3, "ew "));
	WORKED(xmem_copy_to_host(got, cuda, 100, 4, NULL));
	CHECK(!strcmp(got, "few "));
	SAME(xmem_copy_range(cuda, BYTES, cpu, 0, 1, NULL), -ERANGE);
	SAME(xmem_copy_range(cpu, 0, cuda, BYTES, 1, NULL), -ERANGE);
	xmem_release(back);
	xmem_release(cuda);
	xmem_release(cpu);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_metadata_say_where_contents_are_whatever_the_program_says)
{
	const int64_t shape[] = { BYTES };
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 1, BYTES, 0);
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	struct xmem_metadata m;
	int i;

	WORKED(xmem_describe_tensor(buffer, XMEM_DTYPE_UINT8, 1, shape, NULL));
	xmem_metadata_mut(buffer)->storage = 99;
	WORKED(xmem_publish(buffer, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
	}, NULL));
	SAME(xmem_metadata_ptr(buffer)->storage, XMEM_STORAGE_CUDA);
	SAME(xmem_metadata_ptr(buffer)->device, 1);
	WORKED(xmem_metadata_view(buffer, &m));
	WORKED(xmem_tensor_check(&m, xmem_size(buffer)));
	SAME(xmem_tensor_view(buffer, 0, &tensor), -EMEDIUMTYPE);
	WORKED(xmem_tensor_view(buffer, XMEM_VIEW_CUDA, &tensor));
	SAME(tensor.device_id, 0);
	xmem_release(buffer);
	/* The slots are given back, and buffers of the CPU get them. */
	WORKED(trim_pool(pool, 0));
	WORKED(xmem_preallocate(pool, 64, 64, NULL));
	for (i = 0; i < 64; i++) {
		buffer = xmem_acquire(pool, 64, 0);
		CHECK(buffer);
		SAME(xmem_metadata_ptr(buffer)->storage, XMEM_STORAGE_CPU);
		xmem_release(buffer);
	}
	xmem_pool_close(pool);
	no_violations();
}

/* ---- a GPU that is hidden, and processes without a driver ---- */

static void publish_on_second(void *argument)
{
	struct xmem_pool *pool;
	struct xmem_buffer *buffer, *kept;
	uint64_t token;

	pool = OPEN(argument, .flags = XMEM_OPEN_WRITER);
	WORKED(make_on_gpu(pool, BYTES, 1, 1, 0));
	buffer = xmem_acquire_cuda(pool, BYTES, 1, 0);
	CHECK(buffer);
	cuda_fill(buffer, 2);
	kept = buffer;
	WORKED(xmem_publish(buffer, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
	}, &token));
	tell_parent(token);
	hear_parent();
	xmem_release(kept);
}

static struct xmem_buffer *get_from_second(struct child **ret_child, struct xmem_pool **ret_pool)
{
	const char *name = new_name();
	struct xmem_buffer *buffer;
	uint64_t token;

	need_gpus(2);
	*ret_child = spawn(publish_on_second, (void *)name);
	token = hear(*ret_child);
	*ret_pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	buffer = xmem_get(*ret_pool, token);
	CHECK(buffer);
	return buffer;
}

TEST(CUDA_a_gpu_that_is_hidden_is_named)
{
	struct child *child;
	struct xmem_pool *pool;
	struct xmem_buffer *buffer = get_from_second(&child, &pool);

	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	REFUSED(xmem_cuda_ptr(buffer), ENODEV);
	SAYS(ENODEV, "GPU-");
	SAME(xmem_cuda_device(buffer), -ENODEV);
	xmem_release(buffer);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(pool);
}

TEST(CUDA_ordinals_are_of_each_process)
{
	struct child *child;
	struct xmem_pool *pool;
	struct xmem_buffer *buffer = get_from_second(&child, &pool);

	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	SAME(xmem_cuda_device(buffer), 0);
	cuda_check(buffer, 2);
	xmem_release(buffer);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(pool);
	no_violations();
}

/* A stage without a driver passes on buffers that it cannot read. */
static void pass_on(void *argument)
{
	struct xmem_pool *pool = OPEN(argument, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub;
	struct xmem_buffer *buffer;

	setenv("XMEM_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
	tell_parent(xmem_pool_client(pool));
	sub = follow(pool, hear_parent(), 0);
	tell_parent(1);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer);
	CHECK(info_of(buffer).flags & XMEM_BUFFER_CUDA);
	REFUSED(xmem_cuda_ptr(buffer), ENODEV);
	WORKED(xmem_publish(buffer, NULL, NULL));
	hear_parent();
}

TEST(CUDA_a_stage_without_a_gpu_passes_buffers_on)
{
	const char *name = new_name();
	struct child *stage = spawn(pass_on, (void *)name);
	int forwarder = hear(stage);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *last = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(last, forwarder, 0);
	struct xmem_buffer *buffer;

	tell(stage, xmem_pool_client(pool));
	SAME(hear(stage), 1);
	WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
	cuda_publish(pool, BYTES, 11, NULL);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer);
	cuda_check(buffer, 11);
	xmem_release(buffer);
	tell(stage, 1);
	finish_child(stage);
	xmem_unsubscribe(sub);
	xmem_pool_close(last);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- other functions ---- */

static void write_in_place(void *argument)
{
	struct xmem_pool *pool = OPEN(argument, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	uint64_t token = hear_parent();

	buffer = xmem_get(pool, token);
	CHECK(buffer);
	tell_parent(1);
	hear_parent();
	cuda_check(buffer, 1);
	WORKED(xmem_get_mut(buffer));
	cuda_fill(buffer, 2);
	WORKED(xmem_publish(buffer, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
	}, &token));
	tell_parent(token);
	hear_parent();
	no_violations();
}

TEST(CUDA_the_only_holder_writes_in_place)
{
	const char *name = new_name();
	struct child *child = spawn(write_in_place, (void *)name);
	struct xmem_pool *pool = cuda_writer(name, 1, BYTES, 0);
	struct xmem_buffer *buffer;

	tell(child, cuda_publish(pool, BYTES, 1, &buffer));
	SAME(hear(child), 1);
	xmem_release(buffer);
	tell(child, 1);
	buffer = xmem_get(pool, hear(child));
	CHECK(buffer);
	cuda_check(buffer, 2);
	xmem_release(buffer);
	tell(child, 1);
	finish_child(child);
	/* Its hold is in quarantine until the host has seen it exit. */
	buffer = xmem_acquire_cuda(pool, BYTES, 0, patience_ns());
	CHECK(buffer);
	xmem_release(buffer);
	xmem_pool_close(pool);
	no_violations();
}

static void use_in_child(void *buffer)
{
	REFUSED(xmem_cuda_ptr(buffer), ECHILD);
	SAME(xmem_copy_from_host(buffer, 0, "x", 1, NULL), -ECHILD);
	xmem_release(buffer);
}

static void join_in_child(void *argument)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	SAME(make_on_gpu(pool, 1, 1, 0, 0), -ECHILD);
	xmem_pool_close(pool);
}

TEST(CUDA_a_forked_child_gets_no_address)
{
	struct xmem_pool *pool = cuda_writer(new_name(), 1, BYTES, 0);
	struct xmem_buffer *buffer = cuda_acquire(pool, BYTES);
	unsigned long calls = driver_calls(NULL);

	in_child(use_in_child, buffer);
	in_child(join_in_child, NULL);
	CALLS(driver_calls(NULL), calls);
	xmem_release(buffer);
	xmem_pool_close(pool);
	no_violations();
}

static bool is_writable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLOUT;
}

TEST(CUDA_poll_is_for_all_places)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 1, BYTES, 0);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *held, *cpu;
	int fd = xmem_pool_poll_fd(pool);
	uint64_t token;

	WORKED(fd);
	token = cuda_publish(pool, BYTES, 1, NULL);
	held = xmem_get(other, token);
	CHECK(held);
	REFUSED(xmem_acquire_cuda(pool, BYTES, 0, 0), EAGAIN);
	CHECK(!is_writable(fd));
	cpu = xmem_acquire(pool, 4096, 0);
	CHECK(cpu);
	EVENTUALLY(is_writable(fd));
	xmem_release(cpu);
	REFUSED(xmem_acquire_cuda(pool, BYTES, 0, 0), EAGAIN);
	CHECK(!is_writable(fd));
	xmem_release(held);
	EVENTUALLY(is_writable(fd));
	xmem_release(cuda_acquire(pool, BYTES));
	xmem_pool_close(other);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- claims, addressed publications, retracting, keeping ---- */

TEST(CUDA_claims_and_addressed_publications_work_as_for_the_cpu)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 3, BYTES, 0);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(other, xmem_pool_client(pool), 0);
	struct xmem_buffer *buffer, *got;
	uint64_t token;

	buffer = cuda_acquire(pool, BYTES);
	cuda_fill(buffer, 1);
	WORKED(xmem_set_ref_count(buffer, 2, 50 * SECOND));
	token = xmem_token(buffer);
	WORKED(xmem_forget(buffer));
	got = xmem_get(other, token);
	CHECK(got);
	cuda_check(got, 1);
	SAME(xmem_metadata_ptr(got)->storage, XMEM_STORAGE_CUDA);
	xmem_release(got);
	buffer = cuda_acquire(pool, BYTES);
	cuda_fill(buffer, 2);
	WORKED(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_CLIENT,
						 .client = xmem_pool_client(other)), NULL));
	got = xmem_receive(sub, patience_ns());
	CHECK(got);
	cuda_check(got, 2);
	xmem_release(got);
	token = cuda_publish(pool, BYTES, 3, NULL);
	WORKED(xmem_retract(pool, token));
	REFUSED(xmem_get(other, token), ESTALE);
	REFUSED(xmem_receive(sub, 0), EAGAIN);
	xmem_unsubscribe(sub);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	no_violations();
}

/* A subscriber that may lose them loses the oldest, and a later subscriber gets the kept ones. */
TEST(CUDA_slow_subscribers_lose_the_oldest)
{
	const char *name = new_name();
	struct xmem_pool *pool = cuda_writer(name, 4, BYTES, 0);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(other, xmem_pool_client(pool), 0);
	struct xmem_buffer *buffer;
	uint64_t i, last = 0;

	for (i = 1; i <= 20; i++)
		cuda_publish(pool, BYTES, i, NULL);
	while ((buffer = xmem_receive(sub, 0))) {
		last = info_of(buffer).sequence + 1;
		cuda_check(buffer, last);
		xmem_release(buffer);
	}
	SAME(last, 20);
	CHECK(sub_info(sub).lost >= 16);
	xmem_unsubscribe(sub);
	xmem_pool_close(other);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- descriptions of contents ---- */

/* The publisher's description is checked, and the addresses are the GPU's. */
TEST(CUDA_views_show_what_is_on_a_gpu)
{
	const struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_pool *pool = cuda_writer(new_name(), 1, 3 * 4096, 0);
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_buffer *buffer = cuda_acquire(pool, 3 * 4096);
	const char *base;

	SAME(xmem_tensor_view(buffer, XMEM_VIEW_CUDA, &tensor), -ENODATA);
	WORKED(xmem_describe_image(buffer, XMEM_IMAGE_NV12, 64, 64, 0));
	WORKED(xmem_publish(buffer, &keep, NULL));
	base = xmem_cuda_ptr(buffer);
	SAME(xmem_image_view(buffer, 0, &image), -EMEDIUMTYPE);
	SAME(xmem_tensor_view(buffer, 0, &tensor), -EMEDIUMTYPE);
	WORKED(xmem_image_view(buffer, XMEM_VIEW_CUDA, &image));
	SAME(image.planes, 2);
	CHECK(image.plane[0].data == base);
	CHECK(image.plane[1].data == base + 64 * 64);
	SAME(image.device_id, 0);
	WORKED(xmem_tensor_view(buffer, XMEM_VIEW_CUDA, &tensor));
	CHECK(tensor.data == base && !tensor.device_id);
	SAME(tensor.bytes, 64 * 64 * 3 / 2);
	tensor.device_id = XMEM_CPU;
	WORKED(xmem_image_plane(&image, 1, &tensor));
	SAME(tensor.device_id, 0);
	CHECK(tensor.data == base + 64 * 64);
	SAME(tensor.ndim, 3);
	xmem_release(buffer);
	xmem_pool_close(pool);
}

/* ---- a client that is evicted in the middle of a call ---- */

TEST(P1_who_is_evicted_gets_no_other_address)
{
	const char *name = new_name();
	struct xmem_pool *owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *victim = cuda_writer(name, 2, BYTES, 0);
	struct xmem_buffer *buffer[2];
	uint64_t address[2];
	unsigned int i, last;

	steps_only();
	for (i = 0; i < 2; i++) {
		buffer[i] = cuda_acquire(victim, BYTES);
		address[i] = (uint64_t)xmem_cuda_ptr_mut(buffer[i]);
		CHECK(address[i]);
	}
	last = address[1] > address[0];
	evict_at(XM_STEP_ROW_OFFSET, owner, buffer[last]);
	SAME((uint64_t)xmem_cuda_ptr_mut(buffer[last]), 0);
	SAME(steps_seen(), 1);
	if (on_kernel())
		SAME(xmem_peek_last_error(NULL), -ENOTCONN);
	give_the_page_back();
	for (i = 0; i < 2; i++)
		xmem_release(buffer[i]);
	xmem_pool_close(victim);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
	no_violations();
}

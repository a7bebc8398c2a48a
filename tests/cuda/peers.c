// SPDX-License-Identifier: MIT
/*
 * A GPU that uses memory of another GPU by its address, and the refusal where it cannot. The
 * memory is of GPU 0, and another process has made it; the kernels run on GPU 1.
 */
#include <stdlib.h>

#include "sums.h"

#define BYTES	100000

enum kind { DESCRIPTOR, HANDLE, POOL };

struct stage {
	char name[32];
	enum kind kind;
};

static struct xmem_buffer *buffer_of(struct xmem_pool *pool, enum kind kind)
{
	struct xl_gpu_scope scope;

	if (kind != POOL) {
		WORKED(make_on_gpu(pool, BYTES, 1, 0, kind == HANDLE ? XMEM_MEMORY_LEGACY : 0));
		return cuda_acquire(pool, BYTES);
	}
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	return xmem_attach_cuda(pool, (void *)make_in_pool(2 << 20), BYTES, 0, NULL, NULL);
}

static void fill_words(CUdeviceptr at, uint32_t word)
{
	static uint32_t words[BYTES / 4];
	size_t i;

	for (i = 0; i < BYTES / 4; i++)
		words[i] = word;
	SAME(xl_cuda()->memcpy_htod(at, words, BYTES), 0);
}

static void publish_on_first(void *argument)
{
	struct stage *stage = argument;
	struct xmem_pool *pool = OPEN(stage->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer = buffer_of(pool, stage->kind), *kept = buffer;
	struct xl_gpu_scope scope;
	uint64_t token;

	CHECK(buffer);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	fill_words((CUdeviceptr)xmem_cuda_ptr(buffer), 5);
	xl_gpu_leave(&scope);
	WORKED(xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
						 .flags = XMEM_PUBLISH_KEEP), &token));
	tell_parent(token);
	hear_parent();
	xmem_release(kept);
	xmem_pool_close(pool);
}

struct reader {
	struct child *child;
	struct xmem_pool *pool;
	struct xmem_buffer *buffer;
};

static struct reader begin_reader(enum kind kind)
{
	struct stage stage = { .kind = kind };
	struct reader reader;
	uint64_t token;

	need_gpus(2);
	snprintf(stage.name, sizeof(stage.name), "%s", new_name());
	reader.child = spawn(publish_on_first, &stage);
	token = hear(reader.child);
	reader.pool = OPEN(stage.name, .flags = XMEM_OPEN_WRITER);
	reader.buffer = xmem_get(reader.pool, token);
	CHECK(reader.buffer);
	return reader;
}

static void end_reader(struct reader *reader)
{
	xmem_release(reader->buffer);
	tell(reader->child, 1);
	finish_child_of(reader->pool, reader->child);
	xmem_pool_close(reader->pool);
	no_violations();
}

/* pre: this process may start the driver now. */
static void need_peers(void)
{
	if (!xl_gpu_is_peer(xl_gpu(0), xl_gpu(1)))
		skip("the GPUs of this machine are no peers");
}

/* @asked: the program asks for access, as it must for memory behind a handle. */
static void read_on_second(enum kind kind, bool asked)
{
	struct reader reader = begin_reader(kind);
	const void *at = xmem_cuda_ptr(reader.buffer);
	struct sums sums;

	need_peers();
	CHECK(at);
	begin_sums_on(&sums, 1);
	if (asked)
		WORKED(xmem_cuda_peer(reader.buffer, 1));
	SAME(sum_by_kernel(&sums, at, BYTES), right_sum(5, BYTES));
	WORKED(xmem_cuda_peer(reader.buffer, 1));
	WORKED(xmem_cuda_peer(reader.buffer, 0));
	SAME(xmem_cuda_peer(reader.buffer, 2), -ENODEV);
	end_sums(&sums);
	end_reader(&reader);
}

TEST(CUDA_a_kernel_reads_a_descriptors_memory_of_a_peer)
{
	read_on_second(DESCRIPTOR, false);
}

TEST(CUDA_a_kernel_reads_a_pools_memory_of_a_peer)
{
	not_with_hip("it shares what the program has made by handle alone");
	read_on_second(POOL, false);
}

TEST(CUDA_a_kernel_reads_a_handles_memory_of_a_peer)
{
	read_on_second(HANDLE, true);
}

static void is_refused(struct xmem_buffer *buffer, const char *why)
{
	SAME(xmem_cuda_peer(buffer, 1), -EXDEV);
	SAYS(EXDEV, "GPU 1 (GPU-", "memory of GPU 0 (GPU-", why);
}

/* The GPUs of a machine may be peers, so only the fake driver has none. */
static void refuse(enum kind kind)
{
	struct xmem_buffer *copy;
	struct reader reader;

	fake_only("its GPUs are no peers");
	setenv("FAKECUDA_PEERS", "none", 1);
	reader = begin_reader(kind);
	is_refused(reader.buffer, "no peer access between these GPUs");
	WORKED(xmem_cuda_peer(reader.buffer, 0));
	WORKED(make_on_gpu(reader.pool, BYTES, 1, 1, 0));
	copy = xmem_copy_to(reader.buffer, 1, 0);
	CHECK(copy);
	WORKED(xmem_cuda_peer(copy, 1));
	xmem_release(copy);
	end_reader(&reader);
}

TEST(CUDA_gpus_that_are_no_peers_are_named)
{
	refuse(DESCRIPTOR);
}

TEST(CUDA_gpus_that_are_no_peers_are_named_for_a_handle)
{
	refuse(HANDLE);
}

/* The first call is for the memory's own GPU, the second for its peers. */
TEST(CUDA_a_peer_that_the_driver_refuses_stops_no_other_gpu)
{
	struct reader reader;

	fake_only("it fails on demand");
	reader = begin_reader(DESCRIPTOR);
	driver_fails("cuMemSetAccess:2:999");
	CHECK(xmem_cuda_ptr(reader.buffer));
	driver_fails(NULL);
	is_refused(reader.buffer, "the driver has not given");
	end_reader(&reader);
}

/* The program that makes memory decides about its access. */
TEST(CUDA_attached_memory_has_its_programs_peers)
{
	const CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	struct xl_gpu_scope scope;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	CUmemoryPool of;
	CUdeviceptr at;

	need_gpus(2);
	need_peers();
	not_with_hip("it shares what the program has made by handle alone");
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	at = make_in_pool(2 << 20);
	buffer = xmem_attach_cuda(pool, (void *)at, BYTES, 0, NULL, NULL);
	CHECK(buffer);
	is_refused(buffer, "has not given access");
	SAME(xl_cuda()->pointer_get_attribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at), 0);
	SAME(xl_cuda()->mem_pool_set_access(of, &access, 1), 0);
	WORKED(xmem_cuda_peer(buffer, 1));
	xmem_release(buffer);
	xmem_pool_close(pool);
	SAME(xl_cuda()->mem_free(at), 0);
	SAME(xl_cuda()->mem_pool_destroy(of), 0);
	no_violations();
}

TEST(CUDA_too_many_peers_are_reported)
{
	struct reader reader;

	fake_only("it has few peers");
	not_with_hip("it has no error for this");
	setenv("FAKECUDA_MAX_PEERS", "0", 1);
	reader = begin_reader(HANDLE);
	SAME(xmem_cuda_peer(reader.buffer, 1), -EUSERS);
	SAYS(EUSERS, "GPU 1: access to memory of GPU 0");
	end_reader(&reader);
}

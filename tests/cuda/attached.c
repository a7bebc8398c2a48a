// SPDX-License-Identifier: MIT
/*
 * Memory of a GPU that the program has made itself, in each way that CUDA has, and when the program
 * gets it back.
 */
#include <stdlib.h>

#include "bytes.h"

#define BLOCK	(2 << 20)
#define BYTES	100000

static unsigned int done;

static void note_done(void *user)
{
	CHECK(user == &done);
	done++;
}

/* ---- memory as programs make it; the context is current ---- */

struct made {
	CUdeviceptr at;
	size_t bytes;
	CUmemGenericAllocationHandle allocation;
};

static void make_plain(struct made *made)
{
	made->bytes = BLOCK;
	SAME(xl_cuda()->mem_alloc(&made->at, made->bytes), 0);
}

/* The GPU and the CPU have it. */
static void make_managed(struct made *made)
{
	CUresult (*alloc)(CUdeviceptr *at, size_t bytes, unsigned int flags) =
		driver_call("cuMemAllocManaged");

	made->bytes = BLOCK;
	SAME(alloc(&made->at, made->bytes, 1), 0);
}

static void free_plain(struct made *made)
{
	SAME(xl_cuda()->mem_free(made->at), 0);
}

static void make_in_steps(struct made *made, int type)
{
	const CUmemAllocationProp wanted = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = type,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	const struct xl_cuda *cuda = xl_cuda();

	made->bytes = BLOCK;
	SAME(cuda->mem_create(&made->allocation, made->bytes, &wanted, 0), 0);
	SAME(cuda->mem_address_reserve(&made->at, made->bytes, 0, 0, 0), 0);
	SAME(cuda->mem_map(made->at, made->bytes, 0, made->allocation, 0), 0);
	SAME(cuda->mem_set_access(made->at, made->bytes, &access, 1), 0);
}

static void make_exported(struct made *made)
{
	make_in_steps(made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static void make_unexported(struct made *made)
{
	make_in_steps(made, 0);
}

static void free_in_steps(struct made *made)
{
	const struct xl_cuda *cuda = xl_cuda();

	SAME(cuda->mem_unmap(made->at, made->bytes), 0);
	SAME(cuda->mem_address_free(made->at, made->bytes), 0);
	SAME(cuda->mem_release(made->allocation), 0);
}

struct way {
	void (*make)(struct made *made);
	void (*free)(struct made *made);
	bool mortal;
};

static struct way plain = { make_plain, free_plain, true };
static struct way exported = { make_exported, free_in_steps, false };
static struct way unexported = { make_unexported, free_in_steps, false };

static struct xl_gpu_scope scope;

static void enter(void)
{
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
}

/* ---- one content, from process to process ---- */

#define OFFSET	4096

struct attacher {
	char name[32];
	const struct way *way;
};

static void attach_and_publish(void *argument)
{
	struct attacher *attacher = argument;
	struct xmem_pool *pool = OPEN(attacher->name, .flags = XMEM_OPEN_WRITER);
	struct made made;
	struct xmem_buffer *buffer;
	uint64_t word[BYTES / 8], i;

	enter();
	attacher->way->make(&made);
	for (i = 0; i < BYTES / 8; i++)
		word[i] = 9 * 0x9e3779b97f4a7c15ULL + i;
	SAME(xl_cuda()->memcpy_htod(made.at + OFFSET, word, BYTES), 0);
	SAME(xl_cuda()->ctx_synchronize(), 0);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	buffer = xmem_attach_cuda(pool, (void *)(made.at + OFFSET), BYTES, XMEM_MEMORY_READERS,
				  note_done, &done);
	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	SAME(xmem_size(buffer), BYTES);
	SAME(!(info_of(buffer).flags & XMEM_BUFFER_MORTAL), !attacher->way->mortal);
	CHECK(xmem_cuda_ptr(buffer) == (void *)(made.at + OFFSET));
	REFUSED(xmem_cuda_ptr_mut(buffer), EPERM);
	WORKED(xmem_publish(buffer, NULL, NULL));
	tell_parent(1);
	hear_parent();
	/* Another client has it open. */
	stat_of(pool);
	SAME(done, 0);
	tell_parent(2);
	hear_parent();
	EVENTUALLY((stat_of(pool), done));
	SAME(done, 1);
	attacher->way->free(&made);
	xmem_pool_close(pool);
	SAME(done, 1);
	USED(0);
	no_violations();
}

static void hand_over(const struct way *way)
{
	struct attacher attacher = { .way = way };
	struct xmem_subscription *sub;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	struct child *child;

	snprintf(attacher.name, sizeof(attacher.name), "%s", new_name());
	child = spawn(attach_and_publish, &attacher);
	sub = follow((pool = OPEN(attacher.name, .flags = 0)), hear(child), 0);
	tell(child, 1);
	SAME(hear(child), 1);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer);
	cuda_check(buffer, 9);
	tell(child, 1);
	SAME(hear(child), 2);
	cuda_check(buffer, 9);
	xmem_release(buffer);
	/*
	 * When the owner has released it and this one closes it, it belongs to the program again.
	 */
	tell(child, 1);
	EVENTUALLY(!stat_of(pool).attached);
	finish_child_of(pool, child);
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

TEST(CUDA_memory_of_cudaMalloc_is_attached)
{
	hand_over(&plain);
}

/* Memory that shares a block of 2 MB with another allocation. */
static CUdeviceptr neighbour;

static void make_small(struct made *made)
{
	SAME(xl_cuda()->mem_alloc(&neighbour, 200000), 0);
	made->bytes = 400000;
	SAME(xl_cuda()->mem_alloc(&made->at, made->bytes), 0);
}

static void free_small(struct made *made)
{
	SAME(xl_cuda()->mem_free(made->at), 0);
	SAME(xl_cuda()->mem_free(neighbour), 0);
}

static struct way small = { make_small, free_small, true };

TEST(CUDA_a_part_of_a_block_is_attached)
{
	hand_over(&small);
}

TEST(CUDA_memory_of_cuMemCreate_is_attached)
{
	not_with_hip("it shares what the program has made by handle alone");
	hand_over(&exported);
}

/* A memory pool, by the driver's own calls: the library makes none. */
struct pool_props {
	int type, handle_types, location, device;
	void *win32;
	size_t most;
	unsigned short usage;
	unsigned char reserved[54];
};

static CUmemoryPool pool_of(int handle_types)
{
	struct pool_props props = { .type = 1, .handle_types = handle_types, .location = 1 };
	CUmemoryPool pool;

	SAME(((CUresult (*)(CUmemoryPool *, struct pool_props *))driver_call("cuMemPoolCreate"))(
		     &pool, &props), 0);
	return pool;
}

static CUmemoryPool the_pool;

static void make_of_pool(struct made *made)
{
	CUresult (*alloc)(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream) =
		driver_call("cuMemAllocFromPoolAsync");

	the_pool = pool_of(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	made->bytes = BLOCK;
	SAME(alloc(&made->at, made->bytes, the_pool, NULL), 0);
	SAME(xl_cuda()->ctx_synchronize(), 0);
}

static void free_of_pool(struct made *made)
{
	SAME(xl_cuda()->mem_free(made->at), 0);
	SAME(xl_cuda()->mem_pool_destroy(the_pool), 0);
}

static struct way pooled = { make_of_pool, free_of_pool, true };

TEST(CUDA_memory_of_a_pool_is_attached)
{
	not_with_hip("it shares what the program has made by handle alone");
	hand_over(&pooled);
}

/* ---- in one process ---- */

TEST(CUDA_what_was_attached_is_given_back_once)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer, *kept;
	struct made made;

	enter();
	make_plain(&made);
	/* Three cases: not published; published and held; and the end of the pool's handle. */
	buffer = xmem_attach_cuda(pool, (void *)made.at, BYTES, 0, note_done, &done);
	CHECK(buffer);
	xmem_release(buffer);
	EVENTUALLY((stat_of(pool), done == 1));
	buffer = xmem_attach_cuda(pool, (void *)made.at, BYTES, 0, note_done, &done);
	CHECK(buffer);
	WORKED(xmem_publish(buffer, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
	}, NULL));
	kept = xmem_clone(buffer);
	xmem_release(buffer);
	stat_of(pool);
	SAME(done, 1);
	xmem_release(kept);
	EVENTUALLY((stat_of(pool), done == 2));
	buffer = xmem_attach_cuda(pool, (void *)made.at, BYTES, 0, note_done, &done);
	CHECK(buffer);
	xmem_pool_close(pool);
	SAME(done, 2);
	xmem_release(buffer);
	SAME(done, 3);
	free_plain(&made);
	no_violations();
}

TEST(CUDA_slices_of_one_allocation_are_given_back_one_by_one)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer[4];
	struct made made;
	int i;

	not_with_hip("it shares what the program has made by handle alone");
	enter();
	make_exported(&made);
	for (i = 0; i < 4; i++) {
		buffer[i] = xmem_attach_cuda(pool, (void *)(made.at + i * 65536), 65536, 0,
					     note_done, &done);
		CHECK(buffer[i]);
	}
	for (i = 0; i < 4; i++) {
		xmem_release(buffer[i]);
		EVENTUALLY((stat_of(pool), done == (unsigned int)i + 1));
	}
	xmem_pool_close(pool);
	SAME(done, 4);
	free_in_steps(&made);
	no_violations();
}

/* ---- what cannot be attached ---- */

static void refused(struct xmem_pool *pool, void *at, size_t bytes, int error, const char *says)
{
	unsigned int files = own_files();

	REFUSED(xmem_attach_cuda(pool, at, bytes, 0, note_done, &done), error);
	if (says)
		SAYS(error, says);
	SAME(own_files(), files);
	SAME(stat_of(pool).attached, 0);
	SAME(done, 0);
}

TEST(CUDA_what_others_cannot_get_is_not_attached)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = OPEN(new_name(), .flags = XMEM_OPEN_READER);
	struct made made;
	char here[64];

	refused(pool, here, sizeof(here), EMEDIUMTYPE, "no address of a GPU");
	refused(pool, NULL, 1, EINVAL, NULL);
	refused(reader, here, 1, EPERM, NULL);
	enter();
	make_plain(&made);
	refused(pool, (void *)made.at, 0, EINVAL, NULL);
	refused(pool, (void *)(made.at + 32), 64, EINVAL, "multiple of 64");
	refused(pool, (void *)made.at, BLOCK + 1, ERANGE, "reach beyond");
	refused(pool, (void *)(made.at + 64), BLOCK, ERANGE, "reach beyond");
	REFUSED(xmem_attach_cuda(pool, (void *)made.at, 64, 2, NULL, NULL), EINVAL);
	free_plain(&made);
	unexported.make(&made);
	refused(pool, (void *)made.at, 64, EMEDIUMTYPE, on_hip() ? "hipMalloc" : "cuMemCreate");
	unexported.free(&made);
	make_managed(&made);
	refused(pool, (void *)made.at, 64, EMEDIUMTYPE, "managed memory");
	free_plain(&made);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
	no_violations();
}

/* If the driver fails otherwise, the message does not mention the memory pool. */
static void fails_otherwise(struct xmem_pool *pool, CUdeviceptr at)
{
	driver_fails("cuMemPoolExportToShareableHandle:1:999");
	REFUSED(xmem_attach_cuda(pool, (void *)at, BYTES, 0, NULL, NULL), EIO);
	SAYS(EIO, "CUDA_ERROR_UNKNOWN");
	CHECK(!strstr(last_message(), "cannot be exported"));
	driver_fails(NULL);
}

static void attach_of_default_pool(void *argument)
{
	CUresult (*alloc)(CUdeviceptr *at, size_t bytes, CUstream stream) =
		driver_call("cuMemAllocAsync");
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	CUdeviceptr at;

	enter();
	SAME(alloc(&at, BYTES, NULL), 0);
	SAME(xl_cuda()->ctx_synchronize(), 0);
	refused(pool, (void *)at, BYTES, EMEDIUMTYPE,
		on_hip() ? "hipMalloc" : "handle type POSIX file descriptor");
	SAYS(EMEDIUMTYPE, "or copy it into a buffer");
	CHECK(last_result());
	if (on_fake() && !on_hip())
		fails_otherwise(pool, at);
	SAME(xl_cuda()->mem_free(at), 0);
	xmem_pool_close(pool);
	no_violations();
}

/* In a child, because the driver keeps that pool. */
TEST(CUDA_memory_of_the_default_pool_is_not_attached)
{
	in_child(attach_of_default_pool, NULL);
}

/* Each call of the driver fails once: the memory belongs to the program as before. */
TEST(CUDA_an_attach_that_fails_leaves_the_memory_alone)
{
	static const char *const calls[] = {
		"cuMemGetAddressRange", "cuIpcGetMemHandle", "cuMemExportToShareableHandle",
		"cuPointerGetAttribute",
	};
	const struct way *ways[] = { &plain, &exported };
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer;
	struct made made;
	char rule[64];
	size_t i, w, used;

	fake_only("it fails on demand");
	enter();
	for (w = 0; w < 2; w++) {
		ways[w]->make(&made);
		used = gpu_used();
		for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
			snprintf(rule, sizeof(rule), "%s:1:2", calls[i]);
			driver_fails(rule);
			buffer = xmem_attach_cuda(pool, (void *)made.at, 64, 0, NULL, NULL);
			driver_fails(NULL);
			if (buffer)		/* it has not needed that call */
				xmem_release(buffer);
			USED(used);
		}
		EVENTUALLY(!stat_of(pool).attached);
		stat_of(pool);
		ways[w]->free(&made);
	}
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

/* ---- readers that sleep ---- */

static void open_and_sleep(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(pool, hear_parent(), 0);
	struct xmem_buffer *buffer;

	tell_parent(1);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer && xmem_cuda_ptr(buffer));
	xmem_release(buffer);
	tell_parent(1);
	REFUSED(xmem_receive(sub, patience_ns()), EPIPE);
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
}

/* The reader closes what the owner wants back, although nothing more is published. */
TEST(CUDA_a_reader_that_sleeps_closes_what_is_wanted_back)
{
	const char *name = new_name();
	struct child *reader = spawn(open_and_sleep, (void *)name);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xl_gpu_scope scope;
	struct xmem_buffer *buffer;
	struct made made;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	make_plain(&made);
	tell(reader, xmem_pool_client(pool));
	hear(reader);
	buffer = xmem_attach_cuda(pool, (void *)made.at, BYTES, 0, note_done, &done);
	CHECK(buffer);
	WORKED(xmem_publish(buffer, NULL, NULL));
	hear(reader);
	until_asleep(&pool->owned.words.row->ring_waiters);
	EVENTUALLY(xmem_collect(pool, XMEM_KEEP_ALL, NULL) >= 0 && done);
	free_plain(&made);
	xl_gpu_leave(&scope);
	xmem_pool_close(pool);
	finish_child(reader);
	no_violations();
}

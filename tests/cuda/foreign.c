// SPDX-License-Identifier: MIT
/*
 * Memory of a GPU that the program has made itself, in unusual cases: the first allocation of its
 * block has been freed, the driver fails while the library asks about the memory, or the pool or
 * its host has as much memory as it can have.
 */
#include <stdlib.h>

#include "bytes.h"

#define BYTES	100000

static void begin(struct xl_gpu_scope *scope)
{
	WORKED(xl_gpu_enter(xl_gpu(0), scope));
}

static CUdeviceptr make_plain(size_t bytes)
{
	CUdeviceptr at;

	SAME(xl_cuda()->mem_alloc(&at, bytes), 0);
	return at;
}

/* ---- neighbours ---- */

static void publish_second(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	CUdeviceptr first, second;
	struct xl_gpu_scope scope;
	struct xmem_buffer *buffer;
	uint64_t word[BYTES / 8], i;

	begin(&scope);
	first = make_plain(3 * BYTES);
	second = make_plain(3 * BYTES);
	SAME(xl_cuda()->mem_free(first), 0);
	for (i = 0; i < BYTES / 8; i++)
		word[i] = 5 * 0x9e3779b97f4a7c15ULL + i;
	SAME(xl_cuda()->memcpy_htod(second, word, BYTES), 0);
	SAME(xl_cuda()->ctx_synchronize(), 0);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	buffer = xmem_attach_cuda(pool, (void *)second, BYTES, 0, NULL, NULL);
	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	CHECK(xmem_cuda_ptr(buffer) == (void *)second);
	WORKED(xmem_publish(buffer, NULL, NULL));
	hear_parent();
	xmem_pool_close(pool);
	SAME(xl_cuda()->mem_free(second), 0);
	no_violations();
}

TEST(CUDA_memory_is_attached_whose_neighbour_was_freed)
{
	const char *name = new_name();
	struct child *writer = spawn(publish_second, (void *)name);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *sub = follow(pool, hear(writer), 0);
	struct xmem_buffer *buffer;

	tell(writer, 1);
	buffer = xmem_receive(sub, patience_ns());
	CHECK(buffer);
	cuda_check(buffer, 5);
	xmem_release(buffer);
	xmem_unsubscribe(sub);
	xmem_pool_close(pool);
	tell(writer, 1);
	finish_child(writer);
	no_violations();
}

/* ---- failures of the driver ---- */

static const struct {
	int result, error;
} failures[] = {
	{ 2, ENOMEM }, { 4, ESHUTDOWN }, { 700, EIO }, { 800, EPERM }, { 999, EIO },
};

/* The driver's call fails for each of these reasons, and the message is about the driver. */
static void fails_in(struct xmem_pool *pool, CUdeviceptr at, const char *call, int nth)
{
	char rule[80];
	size_t i;

	for (i = 0; i < sizeof(failures) / sizeof(*failures); i++) {
		if (failures[i].result == 800 && on_hip())
			continue;		/* HIP has no such error */
		snprintf(rule, sizeof(rule), "%s:%d:%d", call, nth, failures[i].result);
		driver_fails(rule);
		REFUSED(xmem_attach_cuda(pool, (void *)at, 64, 0, NULL, NULL),
			failures[i].error);
		driver_fails(NULL);
		SAYS(failures[i].error, "attach_cuda", "CUDA_ERROR_");
		SAME(last_result(), failures[i].result);
		SAME(stat_of(pool).attached, 0);
	}
}

/*
 * The library makes the first calls for all memory, and the last ones for memory without a handle.
 */
TEST(CUDA_a_failing_driver_does_not_make_memory_be_of_another_kind)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	const CUmemAllocationProp wanted = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	const struct xl_cuda *cuda = xl_cuda();
	CUmemGenericAllocationHandle allocation;
	struct xl_gpu_scope scope;
	CUdeviceptr plain, exported;
	struct xmem_buffer *buffer;
	int nth;

	fake_only("it fails on demand");
	begin(&scope);
	plain = make_plain(2 << 20);
	for (nth = 1; nth <= (on_hip() ? 3 : 4); nth++)
		fails_in(pool, plain, "cuPointerGetAttribute", nth);
	SAME(cuda->mem_create(&allocation, 2 << 20, &wanted, 0), 0);
	SAME(cuda->mem_address_reserve(&exported, 2 << 20, 0, 0, 0), 0);
	SAME(cuda->mem_map(exported, 2 << 20, 0, allocation, 0), 0);
	SAME(cuda->mem_set_access(exported, 2 << 20, &access, 1), 0);
	for (nth = 1; nth <= (on_hip() ? 3 : 6); nth++)
		fails_in(pool, exported, "cuPointerGetAttribute", nth);
	if (!on_hip())
		fails_in(pool, exported, "cuMemRetainAllocationHandle", 1);
	/* If the driver does not know the memory, it stays unknown. */
	driver_fails("cuMemRetainAllocationHandle:1:1");
	REFUSED(xmem_attach_cuda(pool, (void *)exported, 64, 0, NULL, NULL), EMEDIUMTYPE);
	/* The driver may say in any way that nothing is at the block's beginning. */
	driver_fails("cuIpcGetMemHandle:1:400");
	buffer = xmem_attach_cuda(pool, (void *)(plain + 4096), 64, 0, NULL, NULL);
	CHECK(buffer);
	xmem_release(buffer);
	driver_fails("cuIpcGetMemHandle:1:999");
	REFUSED(xmem_attach_cuda(pool, (void *)(plain + 4096), 64, 0, NULL, NULL), EIO);
	driver_fails("cuPointerGetAttribute:1:1");
	REFUSED(xmem_attach_cuda(pool, (void *)plain, 64, 0, NULL, NULL), EMEDIUMTYPE);
	driver_fails(NULL);
	SAME(cuda->mem_unmap(exported, 2 << 20), 0);
	SAME(cuda->mem_address_free(exported, 2 << 20), 0);
	SAME(cuda->mem_release(allocation), 0);
	SAME(cuda->mem_free(plain), 0);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- limits ---- */

static void make_on_another_machine(void *name)
{
	struct xmem_pool *pool;

	setenv("FAKECUDA_MACHINE", "2", 1);
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(make_on_gpu(pool, 4096, 1, 0, 0));
	tell_parent(1);
	hear_parent();
	xmem_pool_close(pool);
}

TEST(P10_a_pool_that_has_memory_of_all_the_GPUs_it_can_have_says_so)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 2048);
	struct child *other;
	int device;

	fake_only("its devices are set");
	other = spawn(make_on_another_machine, (void *)name);
	setenv("FAKECUDA_DEVICES", "16", 1);
	hear(other);
	for (device = 0; device < 15; device++)
		WORKED(make_on_gpu(pool, 4096, 1, device, 0));
	SAME(make_on_gpu(pool, 4096, 1, 15, 0), -EDQUOT);
	SAYS(EDQUOT, "memory of 16 other GPUs");
	/* An end makes room. */
	tell(other, 1);
	finish_child(other);
	EVENTUALLY(!make_on_gpu(pool, 4096, 1, 15, 0));
	xmem_pool_close(pool);
	no_violations();
}

#define MANY	5000

#define USER	30001	/* the module refuses root nothing */

/* Each attachment counts as a file, even of memory that is attached already. */
static void attach_until_files_run_out(void *unused)
{
	unsigned int files = own_files();
	struct xmem_buffer **buffer = calloc(MANY, sizeof(*buffer));
	struct xl_gpu_scope scope;
	struct xmem_pool *pool;
	CUdeviceptr at;
	int i = 0;

	(void)unused;
	if (on_kernel())
		be_user(USER);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 8192);
	begin(&scope);
	at = make_plain(2 << 20);
	while (i < MANY && (buffer[i] = xmem_attach_cuda(pool, (void *)at, 64, 0, NULL, NULL)))
		i++;
	CHECK(i && i < MANY);
	SAYS(EDQUOT, "has as many payload files as it may have", "attach larger allocations");
	SAME(stat_of(pool).bytes_cuda, (uint64_t)i * (2 << 20));
	while (i)
		xmem_release(buffer[--i]);
	xmem_pool_close(pool);
	SAME(xl_cuda()->mem_free(at), 0);
	free(buffer);
	/*
	 * A busy host may not have announced so many ends yet. The next call for any pool asks it
	 * again.
	 */
	EVENTUALLY((xmem_pool_close(OPEN(new_name())), own_files() == files));
	no_violations();
}

TEST(P10_a_pool_that_can_have_no_more_memory_of_GPUs_says_so)
{
	char old[32];

	if (!on_kernel()) {
		attach_until_files_run_out(NULL);
		return;
	}
	several_users_or_skip();
	set_parameter("user_max_files", "300", old);
	finish_child(spawn(attach_until_files_run_out, NULL));
	set_parameter("user_max_files", old, NULL);
}

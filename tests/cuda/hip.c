// SPDX-License-Identifier: MIT
/*
 * Properties of HIP that CUDA does not have. These tests always use the fake driver under HIP's
 * names; tests/cuda/hip.sh runs all other tests with it.
 */
#include <stdlib.h>

#include "lib/cuda/hip.h"
#include "work.h"
#include "xmem/cuda.h"

#define BYTES	100000

/* The driver of this process and of its children. NULL: the fake's own version. */
static void use_hip(const char *version)
{
	setenv("XMEM_CUDA_DRIVER", beside_program("fakecuda/libamdhip64.so.6"), 1);
	if (version)
		setenv("FAKECUDA_HIP_VERSION", version, 1);
}

static void use_cuda(void)
{
	setenv("XMEM_CUDA_DRIVER", beside_program("fakecuda/libcuda.so.1"), 1);
}

/* ---- which driver ---- */

static void says_version(void *version)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };

	use_hip(version);
	WORKED(xmem_cuda_query(&info));
	SAME(info.hip, 1);
	CHECK(strstr(info.file, "libamdhip64.so.6"));
	tell_parent(info.version);
}

TEST(CUDA_hip_is_known_by_its_functions)
{
	static const struct { const char *hips; uint64_t ours; } versions[] = {
		{ "50631061", 5060 }, { "60342134", 6030 }, { "71025424", 7100 },
	};
	struct xmem_cuda_info info = { .size = sizeof(info) };
	struct child *child;
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		child = spawn(says_version, (void *)versions[i].hips);
		SAME(hear(child), versions[i].ours);
		finish_child(child);
	}
	use_cuda();
	WORKED(xmem_cuda_query(&info));
	SAME(info.hip, 0);
}

/* Such as a driver of CUDA's on top of HIP. */
TEST(CUDA_a_driver_of_both_apis_is_cudas)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };

	setenv("XMEM_CUDA_DRIVER", beside_program("cuda-drivers/both-apis.so"), 1);
	WORKED(xmem_cuda_query(&info));
	SAME(info.hip, 0);
	SAME(info.version, 13000);
}

static void no_device(void *argument)
{
	use_hip(NULL);
	setenv("FAKECUDA_DEVICES", "0", 1);
	SAME(xl_cuda_need("a test"), -ENODEV);
	SAYS(ENODEV, "a test needs HIP: the driver ", "libamdhip64.so.6 finds no GPU",
	     "(hipErrorNoDevice, 100): there is none, or HIP_VISIBLE_DEVICES", "/dev/kfd");
	SAME(last_result(), 100);
}

static void too_old(void *argument)
{
	setenv("XMEM_CUDA_DRIVER", beside_program("cuda-drivers/old-hip.so"), 1);
	SAME(xl_cuda_need("a test"), -ENODEV);
	SAYS(ENODEV, "old-hip.so is too old: it lacks hipStreamGetDevice; the oldest that works is "
	     "ROCm 5.6");
}

static void other_error(void *argument)
{
	struct xmem_error error = XMEM_INIT(error);

	use_hip(NULL);
	setenv("FAKECUDA_INIT", "1053", 1);
	SAME(xl_cuda_need("a test"), -EIO);
	SAYS(EIO, "does not start: hipErrorRuntimeOther (1053)");
	xmem_peek_last_error(&error);
	SAME(error.cuda_result, 1053);
	CHECK(!strcmp(error.cuda_name, "hipErrorRuntimeOther"));
}

TEST(CUDA_hip_says_why_it_does_not_work)
{
	in_child(no_device, NULL);
	in_child(too_old, NULL);
	in_child(other_error, NULL);
}

static void forked(void *argument)
{
	SAME(xl_cuda_need("a test"), -ECHILD);
	SAYS(ECHILD, "a test needs HIP: this process was forked from one that had used CUDA",
	     "or HIP");
	CHECK(!strcmp(xl_cuda_name(CUDA_ERROR_NOT_INITIALIZED), "hipErrorNotInitialized"));
}

TEST(CUDA_hip_serves_no_child_that_was_forked_later)
{
	use_hip(NULL);
	WORKED(xl_cuda_need("a test"));
	in_child(forked, NULL);
}

/* ---- versions ---- */

static void publish_filled(void *name)
{
	struct xmem_pool *pool = cuda_writer(name, 1, BYTES, 0);
	struct xmem_buffer *kept;

	tell_parent(cuda_publish(pool, BYTES, 7, &kept));
	hear_parent();
	xmem_release(kept);
	xmem_pool_close(pool);
	no_violations();
}

/* Contents go from one process to another. Returns the flags of the buffer. */
static uint32_t hand_over(void)
{
	const char *name = new_name();
	struct child *child = spawn(publish_filled, (void *)name);
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint64_t token = hear(child);
	uint32_t flags;

	pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	buffer = xmem_get(pool, token);
	CHECK(buffer);
	cuda_check(buffer, 7);
	flags = info_of(buffer).flags;
	xmem_release(buffer);
	tell(child, 1);
	finish_child_of(pool, child);
	xmem_pool_close(pool);
	no_violations();
	return flags;
}

/* Before ROCm 6.2 no memory has a descriptor. */
TEST(CUDA_hip_before_6_2_shares_memory_by_handle)
{
	use_hip("60100000");
	CHECK(hand_over() & XMEM_BUFFER_MORTAL);
}

/* From ROCm 7.1 on an import takes the descriptor itself; before that, its address. */
TEST(CUDA_hip_6_2_imports_the_descriptor_at_an_address)
{
	use_hip("60200000");
	CHECK(!(hand_over() & XMEM_BUFFER_MORTAL));
}

TEST(CUDA_hip_7_1_imports_a_descriptor)
{
	use_hip("70100000");
	CHECK(!(hand_over() & XMEM_BUFFER_MORTAL));
}

/* ROCm 5 has other numbers for the types of memory. */
TEST(CUDA_hip_5_knows_memory_of_a_gpu)
{
	struct xmem_buffer *buffer;
	struct xl_gpu_scope scope;
	struct xmem_pool *pool;
	void *here = keep(4096);
	CUdeviceptr at;

	use_hip("50600000");
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	must(xl_cuda()->mem_alloc(&at, 2 << 20));
	buffer = xmem_attach_cuda(pool, (void *)at, BYTES, 0, NULL, NULL);
	CHECK(buffer);
	must(xl_cuda()->mem_host_register(here, 4096, 0));
	REFUSED(xmem_attach_cuda(pool, here, 64, 0, NULL, NULL), EMEDIUMTYPE);
	SAYS(EMEDIUMTYPE, "no address of a GPU's memory");
	must(xl_cuda()->mem_host_unregister(here));
	xmem_release(buffer);
	xmem_pool_close(pool);
	must(xl_cuda()->mem_free(at));
	xl_gpu_leave(&scope);
	no_violations();
}

/* ---- names of GPUs ---- */

TEST(CUDA_hip_names_a_gpu_without_a_uuid_by_its_place)
{
	use_hip(NULL);
	setenv("FAKECUDA_DEVICES", "2", 1);
	setenv("FAKECUDA_UUID", "XX", 1);
	CHECK(!memcmp(xl_gpu(0)->uuid, "0000:01:00.0\0\0\0\0", 16));
	CHECK(!memcmp(xl_gpu(1)->uuid, "0000:02:00.0\0\0\0\0", 16));
	CHECK(xl_gpu_by_uuid(xl_gpu(1)->uuid) == xl_gpu(1));
}

static void publish_with(void *argument)
{
	struct xmem_buffer *cpu;
	struct xmem_pool *pool;
	const char *const *of = argument;
	uint64_t token;

	if (*of[0] == 'h')
		use_hip(NULL);
	else
		use_cuda();
	pool = cuda_writer(of[1], 1, BYTES, 0);
	tell_parent(cuda_publish(pool, BYTES, 7, NULL));
	WORKED(xmem_preallocate(pool, 4096, 1, NULL));
	cpu = xmem_acquire(pool, 4096, 0);
	CHECK(cpu);
	*(uint32_t *)xmem_data_mut(cpu) = 4711;
	WORKED(xmem_publish(cpu, NULL, &token));
	tell_parent(token);
	hear_parent();
	xmem_pool_close(pool);
	no_violations();
}

/* A process has one driver, and cannot get memory of the other's GPUs. All else of a pool works. */
static void refuse_the_other(const char *writer, const char *whose, const char *other)
{
	const char *of[2] = { writer, new_name() };
	struct child *child = spawn(publish_with, of);
	struct xmem_buffer *buffer, *cpu;
	struct xmem_pool *pool;
	uint64_t token = hear(child);
	char words[64];
	int device;

	if (*writer == 'h')
		use_cuda();
	else
		use_hip(NULL);
	pool = OPEN(of[1], .flags = XMEM_OPEN_WRITER);
	buffer = xmem_get(pool, token);
	cpu = xmem_get(pool, hear(child));
	CHECK(buffer && cpu);
	REFUSED(xmem_cuda_ptr(buffer), ENODEV);
	snprintf(words, sizeof(words), "which has 1 of %s's driver: does", whose);
	SAYS(ENODEV, "GPU-", "is not among the GPUs of this process", words);
	snprintf(words, sizeof(words), "or is it of %s's?", other);
	SAYS(ENODEV, words);
	device = xmem_cuda_device(buffer);
	SAME(device, -ENODEV);
	CALLS(driver_calls("cuMemImportFromShareableHandle"), 0);
	SAME(*(const uint32_t *)xmem_data(cpu), 4711);
	xmem_release(cpu);
	xmem_release(buffer);
	tell(child, 1);
	finish_child_of(pool, child);
	xmem_pool_close(pool);
	no_violations();
}

TEST(CUDA_memory_of_amds_gpus_is_not_opened_by_nvidias_driver)
{
	refuse_the_other("hip", "NVIDIA", "AMD");
}

TEST(CUDA_memory_of_nvidias_gpus_is_not_opened_by_hip)
{
	refuse_the_other("cuda", "AMD", "NVIDIA");
}

/* ---- the last error of the thread ---- */

static int hips_last_error(void)
{
	return ((int (*)(void))fake("hipGetLastError"))();
}

/* Whatever the library tries, and whatever fails, the program's next check finds no error. */
TEST(CUDA_hip_has_no_last_error_of_the_librarys)
{
	static const char *const rules[] = {
		"cuMemCreate:1:2", "cuMemCreate:1:1", "cuMemSetAccess:1:2", "cuIpcGetMemHandle:1:1",
		"cuMemHostRegister:1:801", "cuMemHostGetDevicePointer:1:801",
		"cuPointerGetAttribute:1:1", "cuStreamWriteValue64:1:999",
	};
	struct xmem_buffer *buffer;
	struct xl_gpu_scope scope;
	struct xmem_pool *pool;
	struct work work;
	CUdeviceptr at;
	size_t i;

	use_hip(NULL);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	begin_work(&work);
	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	must(xl_cuda()->mem_alloc(&at, 2 << 20));
	xl_gpu_leave(&scope);
	SAME(hips_last_error(), 0);
	for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		driver_fails(rules[i]);
		make_on_gpu(pool, BYTES, 1, 0, 0);
		buffer = xmem_attach_cuda(pool, (void *)at, 64, 0, NULL, NULL);
		if (buffer)
			xmem_release(buffer);
		driver_fails(NULL);
		WORKED(make_on_gpu(pool, BYTES, 1, 0, 0));
		driver_fails(rules[i]);
		buffer = cuda_acquire(pool, BYTES);
		close_gate(&work);
		if (!publish_kept_on(buffer, work.stream))
			SAME(xmem_wait_contents(buffer, 0), -EAGAIN);
		open_gate(&work);
		driver_fails(NULL);
		WORKED(xmem_wait_contents(buffer, XMEM_FOREVER));
		xmem_release(buffer);
		if (hips_last_error())
			FAIL("after %s, the program finds an error", rules[i]);
	}
	close_gate(&work);
	SAME(xl_cuda()->stream_query(work.stream), CUDA_ERROR_NOT_READY);
	SAME(hips_last_error(), 0);
	open_gate(&work);
	xmem_pool_close(pool);
	must(xl_cuda()->mem_free(at));
	no_violations();
}

/* ---- numbers and parameters that differ ---- */

static void has_abilities(void *attributes)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };

	use_hip(NULL);
	setenv("FAKECUDA_ATTRIBUTES", attributes, 1);
	WORKED(xmem_cuda_device_query(0, &info));
	SAME(info.capability, 94);
	tell_parent(info.can);
}

/* The fake driver's numbers are CUDA's, and HIP's functions have others. */
TEST(CUDA_hip_has_the_abilities_of_its_attributes)
{
	const uint32_t always = XMEM_CUDA_CAN_IPC | XMEM_CUDA_CAN_REGISTER;
	static const struct { char attributes[32]; uint32_t more; } devices[] = {
		{ "75=9,76=4,102=0,122=0", 0 },
		{ "75=9,76=4,102=0,122=1", XMEM_CUDA_CAN_MEMOPS },
		{ "75=9,76=4,102=1,122=0", XMEM_CUDA_CAN_EXPORT },
		{ "75=9,76=4,102=0,122=0,86=1", XMEM_CUDA_CAN_HOST_ATOMICS },
	};
	struct child *child;
	size_t i;

	for (i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		child = spawn(has_abilities, (void *)devices[i].attributes);
		SAME(hear(child), always | devices[i].more);
		finish_child(child);
	}
}

/* HIP's wait has a mask, which CUDA's lacks. */
TEST(CUDA_hip_streams_wait_for_whole_words)
{
	struct work work;

	use_hip(NULL);
	begin_work(&work);
	work.got[0] = 1ULL << 63;
	must(xl_cuda()->stream_wait_value64(work.stream, (CUdeviceptr)work.got, 1ULL << 63, 0));
	must(xl_cuda()->stream_synchronize(work.stream));
	work.got[0] = 0;
	must(xl_cuda()->stream_wait_value64(work.stream, (CUdeviceptr)work.got, 1ULL << 63, 0));
	SAME(xl_cuda()->stream_query(work.stream), CUDA_ERROR_NOT_READY);
	xm_store_release(&work.got[0], 1ULL << 63);
	must(xl_cuda()->stream_synchronize(work.stream));
	no_violations();
}

// SPDX-License-Identifier: MIT
/*
 * Devices and contexts: which device it is, what it can do, and that a caller's context stays.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "bytes.h"
#include "xmem/cuda.h"

/* ---- identity ---- */

TEST(CUDA_a_query_makes_no_context)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };
	struct xmem_cuda_info driver = { .size = sizeof(driver) };
	static const uint8_t zero[sizeof(info.uuid)];
	CUresult (*state)(CUdevice device, unsigned int *flags, int *active) =
		driver_call("cuDevicePrimaryCtxGetState");
	unsigned int flags;
	uint32_t i;
	int active;

	WORKED(xmem_cuda_query(&driver));
	CHECK(driver.version >= (on_hip() ? 5060 : 11040) && driver.devices >= 1 && *driver.file);
	for (i = 0; i < driver.devices; i++) {
		WORKED(xmem_cuda_device_query(i, &info));
		CHECK(info.bytes && *info.name && memcmp(info.uuid, zero, sizeof(zero)));
		SAME(state(i, &flags, &active), 0);
		CHECK(!active);
	}
	CALLS(driver_calls("cuDevicePrimaryCtxRetain"), 0);
	CALLS(driver_calls("cuCtxCreate"), 0);
}

TEST(CUDA_the_list_is_made_once)
{
	struct fake fake = fake_only("its calls are counted");
	unsigned long calls;

	CHECK(xl_gpu(0));
	calls = fake.calls(NULL);
	CHECK(xl_gpu(0) == xl_gpu_by_uuid(xl_gpu(0)->uuid));
	SAME(xl_gpu_count(), 1);
	SAME(fake.calls(NULL), calls);
}

/* After a failure, the next call makes the list. */
TEST(CUDA_a_device_that_the_driver_does_not_describe)
{
	static const char *const rules[] = {
		"cuDeviceGet:1:999", "cuDeviceGetName:1:999", "cuDeviceGetUuid:1:999",
		"cuDeviceTotalMem:1:999", "cuDeviceGetAttribute:1:999",
		"cuDeviceGetAttribute:5:999", "cuMemGetAllocationGranularity:1:999",
	};
	struct fake fake = fake_only("it fails on demand");
	unsigned int i;

	for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		SAME(fake.fail(rules[i]), 0);
		REFUSED(xl_gpu(0), EIO);
		SAYS(EIO, "the driver does not describe GPU 0: CUDA_ERROR_UNKNOWN (999)");
	}
	SAME(fake.fail("cuDeviceGetAttribute:5:1"), 0);	/* it does not know that one */
	CHECK(xl_gpu(0));
}

static u8 uuids[2][XL_GPU_UUID_BYTES];

static void sees_them_the_other_way_round(void *argument)
{
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
	SAME(xl_gpu_by_uuid(uuids[0])->ordinal, 1);
	SAME(xl_gpu_by_uuid(uuids[1])->ordinal, 0);
}

static void sees_one(void *argument)
{
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	REFUSED(xl_gpu_by_uuid(uuids[0]), ENODEV);
	SAYS(ENODEV, "is not among the GPUs of this process, which has 1", "CUDA_VISIBLE_DEVICES");
	SAME(xl_gpu_by_uuid(uuids[1])->ordinal, 0);
	REFUSED(xl_gpu(1), ENODEV);
}

static void sees_none(void *argument)
{
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	REFUSED(xl_gpu(0), ENODEV);
	SAYS(ENODEV, "CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES");
}

static void tells_uuids(void *argument)
{
	send(parent_link(), xl_gpu(0)->uuid, XL_GPU_UUID_BYTES, 0);
	send(parent_link(), xl_gpu(1)->uuid, XL_GPU_UUID_BYTES, 0);
}

TEST(CUDA_a_uuid_names_a_device_whatever_its_number_is)
{
	struct child *child;

	need_gpus(2);
	child = spawn(tells_uuids, NULL);
	SAME(recv(child->link, uuids[0], XL_GPU_UUID_BYTES, 0), XL_GPU_UUID_BYTES);
	SAME(recv(child->link, uuids[1], XL_GPU_UUID_BYTES, 0), XL_GPU_UUID_BYTES);
	finish_child(child);
	in_child(sees_them_the_other_way_round, NULL);
	in_child(sees_one, NULL);
	in_child(sees_none, NULL);
}

/* ---- abilities ---- */

#define ALL	(XMEM_CUDA_CAN_EXPORT | XMEM_CUDA_CAN_IPC | XMEM_CUDA_CAN_EXPORT_POOL | \
		 XMEM_CUDA_CAN_MEMOPS | XMEM_CUDA_CAN_REGISTER | XMEM_CUDA_CAN_REGISTER_READ_ONLY)

/* HIP has no attributes for some of these. Others that it has are those of all of AMD's GPUs. */
#define ALL_OF_HIP	(ALL & ~(XMEM_CUDA_CAN_EXPORT_POOL | XMEM_CUDA_CAN_REGISTER_READ_ONLY))

/* Attributes of the driver, and what is impossible without each. */
static const struct {
	const char *attributes;
	uint32_t lost;
	bool hip;			/* HIP has the attribute */
} losses[] = {
	{ "", 0, false },
	{ "102=0", XMEM_CUDA_CAN_EXPORT, true },
	{ "103=0", XMEM_CUDA_CAN_EXPORT, true },
	{ "41=0", XMEM_CUDA_CAN_IPC, false },
	{ "125=0", XMEM_CUDA_CAN_IPC, false },
	{ "119=0", XMEM_CUDA_CAN_EXPORT_POOL, false },
	{ "119=8", XMEM_CUDA_CAN_EXPORT_POOL, false },
	{ "122=0", XMEM_CUDA_CAN_MEMOPS, true },
	{ "93=0", 0, false },			/* of the first form, which is not used */
	{ "99=0", XMEM_CUDA_CAN_REGISTER | XMEM_CUDA_CAN_REGISTER_READ_ONLY, false },
	{ "113=0", XMEM_CUDA_CAN_REGISTER_READ_ONLY, false },
};

static void tells_all(void *mps)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };

	if (mps)
		use_attributes("133=1");
	WORKED(xmem_cuda_device_query(0, &info));
	tell_parent(info.can);
}

TEST(CUDA_a_device_says_that_MPS_serves_it)
{
	struct child *child;

	not_with_hip("MPS is NVIDIA's");
	child = spawn(tells_all, "");
	CHECK(hear(child) & XMEM_CUDA_CAN_MPS);
	finish_child(child);
}

static uint32_t whole;			/* the abilities with all attributes */

static void loses(void *row)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };
	size_t i = (size_t)row;

	use_attributes(losses[i].attributes);
	WORKED(xmem_cuda_device_query(0, &info));
	SAME(info.can, whole & ~(on_hip() && !losses[i].hip ? 0 : losses[i].lost));
	CHECK(!info.granularity == !(info.can & XMEM_CUDA_CAN_EXPORT));
	ON_FAKE(SAME(info.granularity, info.can & XMEM_CUDA_CAN_EXPORT ? 2 << 20 : 0));
}

TEST(CUDA_what_works_follows_the_attributes)
{
	struct child *child = spawn(tells_all, NULL);
	size_t i;

	whole = hear(child);
	finish_child(child);
	ON_FAKE(SAME(whole, on_hip() ? ALL_OF_HIP : ALL));
	for (i = 0; i < sizeof(losses) / sizeof(*losses); i++)
		in_child(loses, (void *)i);
}

/*
 * The driver's errors about devices do not mean a wrong number of the caller. The driver is asked
 * again.
 */
TEST(CUDA_a_driver_that_does_not_describe_its_devices_is_said)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };

	fake_only("it fails on demand");
	driver_fails("cuDeviceTotalMem_v2:1:1");
	SAME(xmem_cuda_query(&info), -EIO);
	SAYS(EIO, "does not describe GPU 0", "CUDA_ERROR_INVALID_VALUE");
	SAME(last_result(), 1);
	driver_fails(NULL);
	WORKED(xmem_cuda_query(&info));
}

/* ---- contexts ---- */

static CUcontext current(void)
{
	CUcontext context = NULL;

	SAME(xl_cuda()->ctx_get_current(&context), 0);
	return context;
}

/* No context is current. With HIP, device 0 is; its context has the number 1. */
static bool is_outside(void)
{
	return current() == (on_hip() ? (CUcontext)1 : NULL);
}

/* Inside, the device's context is current, and memory can be allocated. */
static void check_inside(struct xl_gpu *gpu)
{
	CUdevice device = -1;
	CUdeviceptr at;

	CHECK(current() == gpu->context);
	SAME(xl_cuda()->ctx_get_device(&device), 0);
	SAME(device, gpu->device);
	SAME(xl_cuda()->mem_alloc(&at, 4096), 0);
	SAME(xl_cuda()->mem_free(at), 0);
}

TEST(CUDA_a_scope_leaves_nothing_behind)
{
	struct xl_gpu_scope scope;
	struct xl_gpu *gpu = xl_gpu(0);

	CHECK(gpu && !gpu->context);
	CHECK(is_outside());
	WORKED(xl_gpu_enter(gpu, &scope));
	check_inside(gpu);
	xl_gpu_leave(&scope);
	CHECK(is_outside());
}

TEST(CUDA_a_scope_restores_the_callers_context)
{
	struct xl_gpu_scope outer, inner;
	struct xl_gpu *first, *second;
	CUcontext before;

	need_gpus(2);
	first = xl_gpu(0);
	second = xl_gpu(1);
	WORKED(xl_gpu_enter(first, &outer));
	before = current();
	WORKED(xl_gpu_enter(second, &inner));
	CHECK(current() != before);
	check_inside(second);
	xl_gpu_leave(&inner);
	CHECK(current() == before);
	/* A context that is already current is neither pushed nor popped. */
	WORKED(xl_gpu_enter(first, &inner));
	check_inside(first);
	xl_gpu_leave(&inner);
	CHECK(current() == before);
	xl_gpu_leave(&outer);
	CHECK(is_outside());
}

/*
 * In a program that uses CUDA's runtime the primary context is current all the time. One call asks
 * for it, and two change the mode that captures of streams have set for this thread.
 */
TEST(CUDA_a_scope_in_the_callers_primary_context_costs_three_calls)
{
	struct fake fake = fake_only("its calls are counted");
	struct xl_gpu_scope scope;
	struct xl_gpu *gpu = xl_gpu(0);
	unsigned long calls;

	WORKED(xl_gpu_enter(gpu, &scope));
	xl_gpu_leave(&scope);
	SAME(fake.calls("cuDevicePrimaryCtxRetain"), 1);
	SAME(xl_cuda()->ctx_set_current(gpu->context), 0);
	calls = fake.calls(NULL);
	WORKED(xl_gpu_enter(gpu, &scope));
	xl_gpu_leave(&scope);
	SAME(fake.calls(NULL), calls + 3);
	CHECK(current() == gpu->context);
	if (!on_hip())
		SAME(xl_cuda()->ctx_set_current(NULL), 0);
}

static int cancel_state(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	return state;
}

TEST(CUDA_a_scope_that_is_refused_changes_nothing)
{
	static const char *const rules[] = {
		"cuDevicePrimaryCtxRetain:1:2", "cuCtxGetCurrent:1:999", "cuCtxPushCurrent:1:201",
	};
	static const int errors[] = { ENOMEM, EIO, EINVAL };
	struct fake fake = fake_only("it fails on demand");
	struct xl_gpu *gpu = xl_gpu(0);
	struct xl_gpu_scope scope;
	unsigned int i;

	for (i = 0; i < (on_hip() ? 2 : 3); i++) {	/* device 0 is not set a second time */
		SAME(fake.fail(rules[i]), 0);
		SAME(xl_gpu_enter(gpu, &scope), -errors[i]);
		SAYS(errors[i], "GPU 0", "CUDA_ERROR_");
		SAME(fake.fail(NULL), 0);
		SAME(cancel_state(), PTHREAD_CANCEL_ENABLE);
		CHECK(is_outside());
	}
	WORKED(xl_gpu_enter(gpu, &scope));
	SAME(cancel_state(), PTHREAD_CANCEL_DISABLE);
	xl_gpu_leave(&scope);
	SAME(cancel_state(), PTHREAD_CANCEL_ENABLE);
}

/* After a sticky error, the pop may fail too. */
TEST(CUDA_a_context_that_cannot_be_popped_does_not_stay)
{
	struct fake fake = fake_only("it fails on demand");
	struct xl_gpu_scope scope;
	struct xl_gpu *gpu = xl_gpu(0);

	not_with_hip("it has no stack of contexts");
	WORKED(xl_gpu_enter(gpu, &scope));
	SAME(fake.fail("cuCtxPopCurrent:1:700"), 0);
	xl_gpu_leave(&scope);
	CHECK(is_outside());
}

TEST(CUDA_a_scope_works_after_an_error_that_sticks)
{
	struct fake fake = fake_only("it fails on demand");
	struct xl_gpu_scope scope;
	struct xl_gpu *gpu = xl_gpu(0);
	CUdeviceptr at;

	WORKED(xl_gpu_enter(gpu, &scope));
	fake.sticky(CUDA_ERROR_ILLEGAL_ADDRESS);
	SAME(xl_cuda_fail(xl_cuda()->mem_alloc(&at, 4096), "4096 bytes"), -EIO);
	SAYS(EIO, "4096 bytes: CUDA_ERROR_ILLEGAL_ADDRESS (700): the context is lost");
	xl_gpu_leave(&scope);
	CHECK(is_outside());
}

/* ---- threads ---- */

#define THREADS	8
static pthread_barrier_t barrier;

static void *enters(void *argument)
{
	struct xl_gpu *gpu = argument;
	struct xl_gpu_scope scope;
	unsigned int i;

	pthread_barrier_wait(&barrier);
	for (i = 0; i < scaled(50); i++) {
		if (xl_gpu_enter(gpu, &scope))
			return NULL;
		if (current() != gpu->context)
			return NULL;
		xl_gpu_leave(&scope);
		if (!is_outside())
			return NULL;
	}
	return gpu;
}

TEST(CUDA_many_threads_retain_the_context_once)
{
	struct xl_gpu *gpu = xl_gpu(0);
	pthread_t threads[THREADS];
	void *result;
	int i;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		SAME(pthread_create(&threads[i], NULL, enters, gpu), 0);
	for (i = 0; i < THREADS; i++) {
		SAME(pthread_join(threads[i], &result), 0);
		CHECK(result == gpu);
	}
	CALLS(driver_calls("cuDevicePrimaryCtxRetain"), 1);
}

/* ---- the fake driver's own end ---- */

TEST(CUDA_after_the_drivers_end_each_call_says_so)
{
	struct fake fake = fake_only("it ends on demand");
	struct xl_gpu_scope scope;
	struct xl_gpu *gpu = xl_gpu(0);

	WORKED(xl_gpu_enter(gpu, &scope));
	fake.end();
	CHECK(xl_cuda_freed(xl_cuda()->mem_free(4096)));
	xl_gpu_leave(&scope);
	SAME(xl_gpu_enter(gpu, &scope), -ESHUTDOWN);
	SAYS(ESHUTDOWN, "CUDA_ERROR_DEINITIALIZED (4)", "torn down");
}

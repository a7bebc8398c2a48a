// SPDX-License-Identifier: MIT
/* The list of this process's GPUs, and the contexts in which calls are made: device.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/uncancelled.h"
#include "lib/cuda/device.h"
#include "lib/cuda/hip.h"
#include "lib/cuda/own.h"

/*
 * Guards the making of the list, and of the contexts. A forked child never takes it, because only a
 * process that the driver serves takes it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xl_gpu *gpus;	/* [count]; made once and never freed; atomic */
static int count;
static bool at_exit;		/* release_all has been registered */

/* ---- the list ---- */

/* A device that is being examined, and the first error of this. */
struct probe {
	struct xl_gpu *gpu;
	CUresult err;
};

static void keep_error(struct probe *probe, CUresult err)
{
	if (!probe->err)
		probe->err = err;
}

/*
 * An attribute that this driver does not know stands for an ability that the device does not have.
 */
static int attribute(struct probe *probe, CUdevice_attribute what)
{
	int value = 0;
	CUresult err = xl_cuda()->device_get_attribute(&value, what, probe->gpu->device);

	if (!err)
		return value;
	if (err != CUDA_ERROR_INVALID_VALUE)
		keep_error(probe, err);
	return 0;
}

/* The unit for the sizes of exported memory; 0: memory cannot be exported. */
static u64 granularity_of(struct probe *probe)
{
	CUmemAllocationProp wanted = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, probe->gpu->device },
	};
	size_t bytes = 0;
	CUresult err;

	err = xl_cuda()->mem_get_allocation_granularity(&bytes, &wanted,
							CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (!err)
		return bytes;
	if (err != CUDA_ERROR_INVALID_VALUE && err != CUDA_ERROR_NOT_SUPPORTED)
		keep_error(probe, err);
	return 0;
}

#define HAS(group, name) \
	(xl_cuda_has(XL_CUDA_##group) && attribute(probe, CU_DEVICE_ATTRIBUTE_##name))

static void find_abilities(struct probe *probe)
{
	struct xl_gpu_can *can = &probe->gpu->can;
	int pools;

	can->unified = HAS(CORE, UNIFIED_ADDRESSING);
	if (HAS(VMM, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
	    HAS(VMM, HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
		probe->gpu->granularity = granularity_of(probe);
	can->export_fd = probe->gpu->granularity;
	/*
	 * The attribute is about events, but it stands for memory too, for which the driver has no
	 * attribute.
	 */
	can->ipc = can->unified && HAS(IPC, IPC_EVENT_SUPPORTED);
	pools = attribute(probe, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
	can->pool_fd = xl_cuda_has(XL_CUDA_POOL) &&
		(pools & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	can->memops = HAS(MEMOPS, CAN_USE_64_BIT_STREAM_MEM_OPS);
	can->host_register = HAS(HOST, HOST_REGISTER_SUPPORTED);
	can->host_read_only = can->host_register && HAS(HOST, READ_ONLY_HOST_REGISTER_SUPPORTED);
	can->host_address = can->host_register &&
		HAS(HOST, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
	can->mps = HAS(CORE, MPS_ENABLED);
	can->host_atomics = HAS(CORE, HOST_NATIVE_ATOMIC_SUPPORTED);
}

/* The program has passed no value that could be wrong, so EINVAL becomes EIO. */
static int not_described(CUresult result, int ordinal)
{
	if (xl_cuda_errno(result) != -EINVAL)
		return xl_cuda_fail(result, "the driver does not describe GPU %d", ordinal);
	xl_cuda_result = result;
	return xl_fail(EIO, "the driver does not describe GPU %d: %s (%d)", ordinal,
		       xl_cuda_name(result), result);
}

/* 0 or -errno, noted. */
static int describe(struct xl_gpu *gpu, int ordinal)
{
	const struct xl_cuda *cuda = xl_cuda();
	struct probe probe = { .gpu = gpu };
	CUuuid uuid = {};
	size_t bytes = 0;

	gpu->ordinal = ordinal;
	probe.err = cuda->device_get(&gpu->device, ordinal);
	if (!probe.err) {
		keep_error(&probe, cuda->device_get_uuid(&uuid, gpu->device));
		keep_error(&probe,
			   cuda->device_get_name(gpu->name, sizeof(gpu->name), gpu->device));
		keep_error(&probe, cuda->device_total_mem(&bytes, gpu->device));
		gpu->capability =
			attribute(&probe, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
			attribute(&probe, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
		find_abilities(&probe);
	}
	if (probe.err)
		return not_described(probe.err, ordinal);
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	memcpy(gpu->uuid, uuid.bytes, sizeof(gpu->uuid));
	gpu->bytes = bytes;
	return 0;
}

/* A driver that does not answer for a pair has no access for it. */
static void find_peers(struct xl_gpu *list, int n)
{
	struct xl_gpu *home, *gpu;
	int can;

	for (home = list; home < list + n; home++)
		for (gpu = list; gpu < list + n && gpu < list + XL_GPU_PEERS; gpu++)
			if (gpu != home && !xl_cuda()->device_can_access_peer(&can, gpu->device,
									      home->device) && can)
				home->peers |= 1ULL << gpu->ordinal;
}

/* pre: the lock is taken. 0 or -errno, noted; then the next call tries again. */
static int make_list(void)
{
	struct xl_gpu *list;
	int i, n, err = 0;
	CUresult said;

	said = xl_cuda()->device_get_count(&n);
	if (said || n < 1)
		return xl_cuda_fail(said ? said : CUDA_ERROR_NO_DEVICE, "there are no GPUs");
	list = calloc(n, sizeof(*list));
	if (!list)
		return xl_fail(ENOMEM, "no memory for a list of %d GPUs", n);
	for (i = 0; i < n && !err; i++)
		err = describe(&list[i], i);
	if (err) {
		free(list);
		return err;
	}
	find_peers(list, n);
	count = n;
	xm_store_release(&gpus, list);
	return 0;
}

/* The list, or NULL, noted. @what: what the list is needed for. */
static struct xl_gpu *list_of_gpus(const char *what)
{
	struct xl_gpu *list;

	if (xl_cuda_need(what))
		return NULL;
	list = xm_load_acquire(&gpus);
	if (list)
		return list;
	XL_UNCANCELLED;
	pthread_mutex_lock(&lock);
	list = gpus || !make_list() ? gpus : NULL;
	pthread_mutex_unlock(&lock);
	return list;
}

int xl_gpu_count(void)
{
	return list_of_gpus("looking for GPUs") ? count : xl_last_error();
}

struct xl_gpu *xl_gpu(int ordinal)
{
	struct xl_gpu *list = list_of_gpus("memory of a GPU");

	if (!list)
		return NULL;
	if (ordinal >= 0 && ordinal < count)
		return &list[ordinal];
	xl_fail(ENODEV, "there is no GPU %d in this process: it has 0 to %d", ordinal, count - 1);
	return NULL;
}

void xl_gpu_uuid_text(const u8 uuid[XL_GPU_UUID_BYTES], char ret[XL_GPU_UUID_TEXT])
{
	int i, at = sprintf(ret, "GPU");

	for (i = 0; i < XL_GPU_UUID_BYTES; i++) {
		if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
			ret[at++] = '-';
		at += sprintf(ret + at, "%02x", uuid[i]);
	}
}

struct xl_gpu *xl_gpu_by_uuid(const u8 uuid[XL_GPU_UUID_BYTES])
{
	struct xl_gpu *list = list_of_gpus("memory of a GPU");
	char text[XL_GPU_UUID_TEXT];
	int i;

	if (!list)
		return NULL;
	for (i = 0; i < count; i++)
		if (!memcmp(list[i].uuid, uuid, XL_GPU_UUID_BYTES))
			return &list[i];
	xl_gpu_uuid_text(uuid, text);
	xl_fail(ENODEV, "%s is not among the GPUs of this process, which has %d of %s's driver: "
		"does %s_VISIBLE_DEVICES or the container hide it, or is it of %s's?", text, count,
		xl_hip ? "AMD" : "NVIDIA", XL_API, xl_hip ? "NVIDIA" : "AMD");
	return NULL;
}

/* ---- contexts ---- */

/*
 * The process is ending. The driver may have been torn down already. Then it returns an error, and
 * has released everything itself. A forked child makes no call. This takes no lock, because the
 * thread that ends the process may have it.
 */
static void release_all(void)
{
	struct xl_gpu *list = xm_load_acquire(&gpus), *gpu;
	const struct xl_cuda *cuda = xl_cuda_if_found();

	if (!list)
		return;
	xl_own_stop();
	for (gpu = list; gpu < list + count; gpu++) {
		CUcontext context = __atomic_exchange_n(&gpu->context, NULL, __ATOMIC_ACQ_REL);

		xm_store(&gpu->released, true);
		if (context)
			cuda->device_primary_ctx_release(gpu->device);
	}
}

/* pre: the lock is taken. 0 or -errno, noted. */
static int retain(struct xl_gpu *gpu)
{
	CUcontext context = NULL;
	CUresult err;

	if (xm_load(&gpu->released))
		return xl_cuda_fail(CUDA_ERROR_DEINITIALIZED, "GPU %d is not used any more",
				    gpu->ordinal);
	/* The driver has started before, so its own exit handlers run later than this one. */
	if (!at_exit && atexit(release_all))
		return xl_fail(ENOMEM, "no memory to register a function for the process's end");
	at_exit = true;
	err = xl_cuda()->device_primary_ctx_retain(&context, gpu->device);
	if (err)
		return xl_cuda_fail(err, "GPU %d gives no context", gpu->ordinal);
	xm_store_release(&gpu->context, context);
	return 0;
}

/* The primary context, retained; NULL: noted. pre: cancellation is off. */
static XL_COLD CUcontext first_context(struct xl_gpu *gpu)
{
	pthread_mutex_lock(&lock);
	if (!gpu->context)
		retain(gpu);
	pthread_mutex_unlock(&lock);
	return xm_load_acquire(&gpu->context);
}

/* If the driver lacks this call, it captures no streams, and the mode is not used. */
CUstreamCaptureMode xl_capture_relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	xl_cuda()->thread_exchange_stream_capture_mode(&mode);
	return mode;
}

void xl_capture_restore(CUstreamCaptureMode mode)
{
	xl_cuda()->thread_exchange_stream_capture_mode(&mode);
}

static int enter(struct xl_gpu *gpu, struct xl_gpu_scope *scope)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUcontext context;
	CUresult err;

	if (xl_cuda_need("the context of a GPU"))
		return xl_last_error();
	context = xm_load_acquire(&gpu->context);
	if (!context)
		context = first_context(gpu);
	if (!context)
		return xl_last_error();
	err = cuda->ctx_get_current(&scope->before);
	if (!err && scope->before != context) {
		err = cuda->ctx_push_current(context);
		scope->pushed = err ? NULL : context;
	}
	return err ? xl_cuda_fail(err, "GPU %d's context cannot be entered", gpu->ordinal) : 0;
}

int xl_gpu_enter(struct xl_gpu *gpu, struct xl_gpu_scope *ret_scope)
{
	int err;

	*ret_scope = (struct xl_gpu_scope){
		.cancelling = xl_cancel_off(), .mode = xl_capture_relax(),
	};
	err = enter(gpu, ret_scope);
	if (!err)
		return 0;
	xl_capture_restore(ret_scope->mode);
	xl_cancel_as(&ret_scope->cancelling);
	return err;
}

void xl_gpu_leave(const struct xl_gpu_scope *scope)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUcontext popped = NULL;

	/* After a fatal error, even the pop may fail for a context. */
	if (scope->pushed && (cuda->ctx_pop_current(&popped) || popped != scope->pushed))
		cuda->ctx_set_current(scope->before);
	xl_capture_restore(scope->mode);
	xl_cancel_as(&scope->cancelling);
}

// SPDX-License-Identifier: MIT
/*
 * Making buffers in memory of GPUs, and acquiring them but for the short way (acquire.c).
 */
#include "../attach.h"
#include "../cuda/memory.h"
#include "../demand.h"
#include "../died.h"
#include "../holders.h"
#include "../wait.h"

#define FLAGS	(XMEM_CUDA_READERS | XMEM_CUDA_LEGACY | XMEM_CUDA_SEALED)

/* By which mechanism do others get memory of @gpu? 0 and *ret_flags, or -errno, noted. */
static int choose(const struct xl_gpu *gpu, u32 flags, u32 *ret_flags)
{
	*ret_flags = XMEM_ATTACH_CUDA | (flags & XMEM_CUDA_READERS ? XMEM_ATTACH_READERS : 0);
	if (gpu->can.export_fd && !(flags & XMEM_CUDA_LEGACY))
		return 0;	/* as far as the driver's attributes say */
	if (!gpu->can.ipc)
		return xl_fail(EOPNOTSUPP, "preallocate_cuda: GPU %d (%s) can share memory with "
			       "other processes neither by descriptors nor by handles",
			       gpu->ordinal, gpu->name);
	*ret_flags |= XMEM_ATTACH_HANDLE;
	return 0;
}

static int check_numbers(const struct xmem_pool *pool, u32 count, u64 bytes, u32 flags)
{
	if (flags & ~FLAGS)
		return xl_fail(EINVAL, "preallocate_cuda: flags has 0x%x, which has no meaning",
			       flags & ~FLAGS);
	if (!count || count > pool->map.slots)
		return xl_fail(EINVAL, "preallocate_cuda: count is %u, not from 1 to %u, the "
			       "slots of the pool", count, pool->map.slots);
	if (!bytes || bytes > XL_MAX_BYTES / count)
		return xl_fail(EINVAL, "preallocate_cuda: bytes is %llu, not from 1 to %llu for "
			       "%u buffers", (unsigned long long)bytes, XL_MAX_BYTES / count,
			       count);
	return 0;
}

static int make(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	int err, cancel;

	xl_cuda_settle(pool, XL_HOST_NS);	/* what others have closed may be room for it */
	/* A thread that is cancelled here would keep what it has made, and the turn. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = xl_slow_begin(pool, ~0ULL);
	if (!err) {
		err = xl_make_slots(pool, buffers);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	return err;
}

/*
 * Memory that nobody uses any more may still be there: it goes, and then there is another try. If
 * that works, the first one is no error.
 */
static int make_or_collect(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	const struct xl_gpu_buffers *cuda = buffers->cuda;
	struct xl_error before;
	int err;

	xl_error_save(&before);
	err = make(pool, buffers);
	if (err != -ENOMEM)
		return err;
	xl_attached_settle(pool);
	xl_payload_settle(pool, XL_HOST_NS);
	err = make(pool, buffers);
	if (!err)
		xl_error_restore(&before);
	return err == -ENOMEM ? xl_fail_gpu_full(pool, cuda->chain->device, cuda->gpu->ordinal,
						 buffers->count * buffers->bytes) : err;
}

/* After descriptors have failed. */
static bool may_use_handles(const struct xl_gpu *gpu, u32 used)
{
	return !(used & XMEM_ATTACH_HANDLE) && gpu->can.ipc;
}

static int preallocate(struct xmem_pool *pool, const struct xmem_preallocate_options *o,
		       struct xl_gpu *gpu)
{
	struct xl_gpu_buffers cuda = { .gpu = gpu };
	struct xl_buffers buffers = {
		.cuda = &cuda, .count = o->count, .bytes = o->bytes, .ret_slots = o->ret_slots,
	};
	struct xl_error before;
	int err = choose(gpu, o->cuda, &cuda.flags);

	if (err)
		return err;
	/* A host lets others write only what it keeps itself. */
	if (o->cuda & XMEM_CUDA_SEALED || cuda.flags & XMEM_ATTACH_HANDLE)
		buffers.flags = XMEM_MEMORY_SEALED;
	cuda.chain = xl_owned_chain(pool, gpu);
	if (!cuda.chain)
		return -ENOMEM;
	xl_error_save(&before);
	err = make_or_collect(pool, &buffers);
	if (err != -EOPNOTSUPP || !may_use_handles(gpu, cuda.flags))
		return err;
	/* The driver says that it has descriptors, and has none. */
	cuda.flags |= XMEM_ATTACH_HANDLE;
	buffers.flags = XMEM_MEMORY_SEALED;
	err = make_or_collect(pool, &buffers);
	if (!err)
		xl_error_restore(&before);
	return err;
}

int xl_preallocate_cuda(struct xmem_pool *pool, const struct xmem_preallocate_options *o)
{
	struct xl_gpu *gpu;
	int err;
	XL_USE(pool);

	err = xl_check_writer(pool, "preallocate_cuda", XMEM_FOREVER);
	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	err = check_numbers(pool, o->count, o->bytes, o->cuda);
	if (err)
		return err;
	gpu = xl_gpu(o->device);
	return gpu ? preallocate(pool, o, gpu) : xmem_peek_last_error(NULL);
}

XMEM_API int xmem_preallocate_cuda(struct xmem_pool *pool, uint32_t count, size_t bytes,
				   int device, uint32_t flags)
{
	return xl_preallocate_cuda(pool, &(struct xmem_preallocate_options){
		.count = count, .bytes = bytes, .device = device, .cuda = flags,
	});
}

static struct xl_chain *no_buffers(const struct xl_gpu *gpu)
{
	xl_fail(ENOSPC, "acquire_cuda: this writer has no buffers on GPU %d; make some by "
		"xmem_preallocate_cuda", gpu->ordinal);
	return NULL;
}

/* The buffers of this client on @device. NULL: the error is noted. */
static struct xl_chain *chain_of(struct xmem_pool *pool, int device)
{
	struct xl_gpu *gpu = xl_gpu(device);
	struct xl_chain *chain;

	if (!gpu)
		return NULL;
	chain = xl_owned_find_chain(pool, gpu);
	return chain ? chain : no_buffers(gpu);
}

struct xmem_buffer *xl_acquire_cuda_slow(struct xmem_pool *pool, u64 bytes, int device,
					 int64_t timeout_ns)
{
	struct xl_chain *chain;
	XL_USE(pool);

	if (xl_check_writer(pool, "acquire_cuda", timeout_ns))
		return NULL;
	if (timeout_ns < 0) {
		xl_fail_fast(EINVAL, "acquire_cuda: a negative timeout");
		return NULL;
	}
	chain = chain_of(pool, device);
	return chain ? xl_acquire_in(pool, chain, bytes, timeout_ns) : NULL;
}

// SPDX-License-Identifier: MIT
/*
 * Making buffers in memory of GPUs: how other processes will get the memory, and what to do if the
 * GPU is full. lib/cuda/memory.c allocates it.
 */
#include <stdlib.h>

#include "lib/base/uncancelled.h"
#include "lib/cuda/memory.h"
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/host/died.h"
#include "lib/host/taken.h"
#include "lib/own/demand.h"
#include "lib/own/holders.h"

/*
 * Choose the mechanism by which other processes get memory of @gpu. 0 and *ret_flags, or -errno,
 * noted.
 */
static int choose(const struct xl_gpu *gpu, u32 flags, u32 *ret_flags)
{
	*ret_flags = XMEM_ATTACH_CUDA | (flags & XMEM_MEMORY_READERS ? XMEM_ATTACH_READERS : 0);
	if (gpu->can.export_fd && !(flags & XMEM_MEMORY_LEGACY))
		return 0;	/* that is what the driver's attributes say; it may be wrong */
	if (!gpu->can.ipc)
		return xl_fail(EOPNOTSUPP, "GPU %d (%s) can share memory with other "
			       "processes neither by descriptors nor by handles",
			       gpu->ordinal, gpu->name);
	*ret_flags |= XMEM_ATTACH_HANDLE;
	return 0;
}

/* Make the memory of all payloads. 0 or -errno, noted; free_made frees the memory. */
static int make_memory(struct xl_buffers *buffers)
{
	enum xl_memory_kind kind = buffers->attach_flags & XMEM_ATTACH_HANDLE ?
				   XL_MEMORY_HANDLE : XL_MEMORY_FILE;
	struct xl_making shape;
	int err = xl_payload_shape(buffers, &shape);
	u32 left = buffers->count, count, files;

	if (err)
		return err;
	files = (left + shape.per_file - 1) / shape.per_file;
	buffers->made = calloc(files, sizeof(*buffers->made));
	if (!buffers->made)
		return xl_fail(ENOMEM, "no memory for a list of %u payloads", files);
	for (files = 0; !err && left; files++) {
		count = left < shape.per_file ? left : shape.per_file;
		err = xl_memory_make(buffers->gpu, kind, count * shape.buffers.stride,
				     &buffers->made[files].memory, &buffers->made[files].fd);
		left -= err ? 0 : count;
	}
	buffers->files = err ? files - 1 : files;
	return err;
}

/* Free memory that was made and is in no pool, and the list of it. */
static void free_made(struct xl_buffers *buffers, bool unused)
{
	struct xl_error error;

	xl_error_save(&error);
	for (; unused && buffers->files; buffers->files--) {
		struct xl_made *made = &buffers->made[buffers->files - 1];

		if (made->fd >= 0)
			xl_file_close(made->fd);
		xl_memory_put(made->memory);
	}
	xl_error_restore(&error);
	free(buffers->made);
	buffers->made = NULL;
}

static int make(struct xmem_pool *pool, struct xl_buffers *buffers)
{
	int err;
	XL_UNCANCELLED;		/* a thread that is cancelled here would leak the memory */

	xl_cuda_reap(pool, XL_HOST_NS);	/* frees what other clients have closed */
	err = make_memory(buffers);
	if (!err)
		err = xl_make_buffers(pool, buffers);
	free_made(buffers, err);
	return err;
}

/* Give back idle files of the GPU that were made on demand. */
static void trim(struct xmem_pool *pool, const struct xl_gpu *gpu)
{
	const struct xl_chain *chain = xl_owned_find_chain(pool, gpu);

	if (!chain || xl_slow_begin(pool, xl_deadline(XL_HOST_NS)))
		return;
	xl_cache_drop_idle(pool, chain, true);
	xl_turn_end(&pool->slow);
}

/*
 * Give back what the pool does not use any more on a GPU, and free what other clients have closed.
 */
static void settle(struct xmem_pool *pool, void *gpu)
{
	if (pool->gpus.buries)
		return;
	if (xm_load(&pool->role) == XMEM_ROLE_WRITER) {
		xl_attached_drain(pool);
		trim(pool, gpu);
	}
	xl_payload_reap(pool, XL_HOST_NS);
}

/*
 * Memory that no client uses any more may still be allocated, in this pool or in another one of
 * this process. It is given back, and then this tries again. If that works, the first attempt
 * leaves no error.
 */
static int make_or_settle(struct xmem_pool *pool, struct xl_buffers *buffers)
{
	struct xl_error before;
	XL_UNCANCELLED;
	int err;

	xl_error_save(&before);
	err = make(pool, buffers);
	if (err != -ENOMEM)
		return err;
	xl_each_pool(settle, buffers->gpu);
	err = make(pool, buffers);
	if (!err)
		xl_error_restore(&before);
	if (err != -ENOMEM)
		return err;
	return xl_fail_gpu_full(pool, buffers->chain->device, buffers->gpu->ordinal,
				buffers->gpu->uuid, buffers->count * buffers->bytes);
}

/* May handles be tried, after descriptors have failed? */
static bool may_use_handles(const struct xl_gpu *gpu, u32 used)
{
	return !(used & XMEM_ATTACH_HANDLE) && gpu->can.ipc;
}

int xl_make_on_gpu(struct xmem_pool *pool, struct xl_buffers *buffers, u32 flags)
{
	struct xl_gpu *gpu = buffers->gpu;
	struct xl_error before;
	int err = choose(gpu, flags, &buffers->attach_flags);

	if (err)
		return err;
	/* A host lets other clients write only memory that it keeps itself. */
	if (buffers->attach_flags & XMEM_ATTACH_HANDLE)
		buffers->flags |= XMEM_MEMORY_SEALED;
	xl_error_save(&before);
	err = make_or_settle(pool, buffers);
	if (err != -EOPNOTSUPP || !may_use_handles(gpu, buffers->attach_flags))
		return err;
	/* The driver's attributes promise descriptors, but it has none. */
	buffers->attach_flags |= XMEM_ATTACH_HANDLE;
	buffers->flags |= XMEM_MEMORY_SEALED;
	err = make_or_settle(pool, buffers);
	if (!err)
		xl_error_restore(&before);
	return err;
}

int xl_preallocate_cuda(struct xmem_pool *pool, struct xl_buffers *buffers,
			const struct xmem_preallocate_options *o)
{
	struct xl_gpu *gpu = xl_gpu(o->device_id);

	if (!gpu)
		return xl_last_error();
	buffers->place = &xl_place_gpu;
	buffers->gpu = gpu;
	buffers->chain = xl_owned_chain(pool, gpu);
	return buffers->chain ? xl_make_on_gpu(pool, buffers, o->flags) : -ENOMEM;
}

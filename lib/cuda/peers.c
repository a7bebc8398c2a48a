// SPDX-License-Identifier: MIT
/*
 * Which GPUs of this process reach memory of a GPU by its address. Mapped memory and memory of a
 * pool are opened to all peers of its GPU at once, because the driver needs no context for that.
 * Memory behind a handle is opened to one GPU at a time, when the program asks for this GPU: the
 * driver opens it to a context, and a context takes memory on its GPU.
 */
#include "lib/cuda/memory.h"

/* @ret: XL_GPU_PEERS of them. Returns how many there are. */
static size_t list_peers(const struct xl_gpu *home, CUmemAccessDesc *ret)
{
	const struct xl_gpu *gpu;
	size_t count = 0;
	int i;

	for (i = 0; i < XL_GPU_PEERS; i++) {
		if (!(home->peers >> i & 1))
			continue;
		gpu = xl_gpu(i);
		ret[count++] = (CUmemAccessDesc){
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu->device },
			.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		};
	}
	return count;
}

/* A GPU that the driver refuses here does not keep the memory from those that can use it. */
void xl_memory_share(struct xl_memory *memory)
{
	CUmemAccessDesc peers[XL_GPU_PEERS];
	size_t count = list_peers(memory->gpu, peers);

	if (!count)
		return;
	memory->shared = !(memory->kind == XL_MEMORY_POOL ?
			   xl_cuda()->mem_pool_set_access(memory->pool, peers, count) :
			   xl_cuda()->mem_set_access(memory->address, memory->bytes, peers, count));
}

static int unreachable(const struct xl_memory *memory, const struct xl_gpu *gpu, const char *why)
{
	char home[XL_GPU_UUID_TEXT], other[XL_GPU_UUID_TEXT];

	xl_gpu_uuid_text(memory->gpu->uuid, home);
	xl_gpu_uuid_text(gpu->uuid, other);
	return xl_fail(EXDEV, "GPU %d (%s) cannot use memory of GPU %d (%s) by its address: %s; "
		       "copy the contents (xmem_copy_to)", gpu->ordinal, other,
		       memory->gpu->ordinal, home, why);
}

/* pre: the context of @gpu is current. */
static int ask(const struct xl_memory *memory, const struct xl_gpu *gpu)
{
	unsigned int flags = 0;
	CUresult result = xl_cuda()->pointer_get_attribute(&flags,
							   CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
							   memory->address);

	if (result)
		return xl_cuda_fail(result, "GPU %d: ask the driver who may use memory of GPU %d",
				    gpu->ordinal, memory->gpu->ordinal);
	if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return 0;
	return unreachable(memory, gpu, memory->taken ?
			   "the program that attached it has not given that GPU access" :
			   "the driver has not given that GPU access");
}

/* pre: the context of @gpu is current. */
static int enable(const struct xl_memory *memory, const struct xl_gpu *gpu)
{
	CUresult result = xl_cuda()->ctx_enable_peer_access(memory->gpu->context, 0);

	if (!result || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		return 0;
	return xl_cuda_fail(result, "GPU %d: access to memory of GPU %d", gpu->ordinal,
			    memory->gpu->ordinal);
}

int xl_memory_reach(const struct xl_memory *memory, struct xl_gpu *gpu)
{
	struct xl_gpu_scope scope;
	int err;

	if (gpu == memory->gpu || (memory->shared && xl_gpu_is_peer(memory->gpu, gpu)))
		return 0;
	if (!xl_gpu_is_peer(memory->gpu, gpu))
		return unreachable(memory, gpu, "the driver has no peer access between them");
	err = xl_gpu_enter(gpu, &scope);
	if (err)
		return err;
	err = memory->kind == XL_MEMORY_HANDLE ? enable(memory, gpu) : ask(memory, gpu);
	xl_gpu_leave(&scope);
	return err;
}

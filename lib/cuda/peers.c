// SPDX-License-Identifier: MIT
/*
 * The GPUs of this process that can use memory of another GPU by address. One call of the driver
 * opens mapped memory, or a memory pool of CUDA's, to all peers of the memory's GPU, because that
 * call needs no context. Memory behind a legacy handle is opened to one GPU at a time, when the
 * program asks for this GPU: the driver opens the memory to a context, and a context takes memory
 * on its GPU.
 */
#include "lib/cuda/memory.h"

/* List the peers of @home. @ret: room for XL_GPU_PEERS. Returns the number of peers. */
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

/*
 * One call opens the memory to all peers. If the driver refuses the call because of one peer, only
 * the memory's own GPU keeps access, and no error is reported.
 */
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
		return xl_cuda_fail(result, "GPU %d: query the access to memory of GPU %d",
				    gpu->ordinal, memory->gpu->ordinal);
	if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return 0;
	return unreachable(memory, gpu, memory->taken ?
			   "the program that attached the memory has not given access" :
			   "the driver has not given access");
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
		return unreachable(memory, gpu, "the driver has no peer access between these GPUs");
	err = xl_gpu_enter(gpu, &scope);
	if (err)
		return err;
	err = memory->kind == XL_MEMORY_HANDLE ? enable(memory, gpu) : ask(memory, gpu);
	xl_gpu_leave(&scope);
	return err;
}

// SPDX-License-Identifier: MIT
/*
 * When the allocator of torch for GPUs has no block that fits, it calls the functions of a registry
 * before it takes more memory of the GPU. This file puts one of them there. It is compiled against
 * the headers of the torch that runs, because torch has no other way.
 *
 * The allocator holds its lock during the call, and a thread with the GIL may wait for that lock.
 * So nothing here may take the GIL.
 */
#include <c10/core/StorageImpl.h>
#include <c10/util/Registry.h>

#include <memory>

namespace c10 {

/* As in c10/cuda/CUDACachingAllocator.h and CUDAFunctions.h, which need the headers of CUDA. */
class FreeMemoryCallback {
public:
	virtual ~FreeMemoryCallback() = default;
	virtual bool Execute() = 0;
};

C10_DECLARE_REGISTRY(FreeCudaMemoryCallbacksRegistry, FreeMemoryCallback);

namespace cuda {
DeviceIndex current_device();
}

} // namespace c10

namespace {

using room_function = bool (*)(bool (*empty)(void *storage));

room_function make_room;

/*
 * Free the memory of a storage, unless a tensor has the storage. Another GPU's memory does not help
 * torch now, and the lock of another GPU's allocator may be held by a thread that waits for this
 * one.
 */
bool empty(void *address)
{
	auto *storage = static_cast<c10::StorageImpl *>(address);

	if (c10::raw::intrusive_ptr::use_count(storage) != 1 || !storage->device().is_cuda() ||
	    storage->device().index() != c10::cuda::current_device() || !storage->data())
		return false;
	storage->reset();
	return true;
}

struct callback final : c10::FreeMemoryCallback {
	bool Execute() override { return make_room(&empty); }
};

} // namespace

/* Let torch call this before it takes more memory of a GPU. That is never undone. */
extern "C" __attribute__((visibility("default")))
void xmem_torch_limbo_begin(room_function room)
{
	auto *registry = c10::FreeCudaMemoryCallbacksRegistry();

	make_room = room;
	if (!registry->Has("xmem"))	/* a second one would end the process */
		registry->Register("xmem", [] {
			return std::unique_ptr<c10::FreeMemoryCallback>(new callback);
		});
}

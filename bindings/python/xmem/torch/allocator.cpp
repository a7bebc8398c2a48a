// SPDX-License-Identifier: MIT
/*
 * The allocator of the CPU for torch while xmem.torch.cpu_allocator() is in use. It is compiled
 * against the headers of the torch that runs, because torch has no other way. Of xmem it knows only
 * the two functions that it is given.
 *
 * Memory of both kinds can be alive at any time, and any thread may drop it. So freeing asks the
 * pool first whether an address is one of its buffers.
 */
#include <c10/core/Allocator.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

using allocate_function = void *(*)(std::size_t bytes);
using free_function = bool (*)(void *address);

allocate_function pool_allocate;
free_function pool_free;
std::atomic<std::size_t> smallest{SIZE_MAX};	/* smaller memory comes from the other allocator */
c10::Allocator *before;

void free_any(void *address)
{
	if (address && !pool_free(address))
		before->raw_deleter()(address);
}

/*
 * The functions of c10::Allocator are const in some versions of torch and not in others, and
 * copy_data is new in 2.3. So each function has all its forms here, and torch finds its own.
 */
struct pool_allocator final : c10::Allocator {
	c10::DataPtr make(std::size_t bytes) const
	{
		void *address = bytes >= smallest.load() ? pool_allocate(bytes) : nullptr;

		if (!address)
			return before->allocate(bytes);
		return {address, address, &free_any, c10::Device(c10::DeviceType::CPU)};
	}

	c10::DataPtr allocate(std::size_t bytes) const { return make(bytes); }
	c10::DataPtr allocate(std::size_t bytes) { return make(bytes); }
	c10::DeleterFnPtr raw_deleter() const { return &free_any; }
	void copy_data(void *to, const void *from, std::size_t bytes) const
	{
		std::memcpy(to, from, bytes);
	}
};

} // namespace

/*
 * Let torch allocate here. This is never undone, because tensors that are alive may come back to
 * it.
 */
extern "C" __attribute__((visibility("default")))
void xmem_torch_cpu_begin(allocate_function allocate, free_function release)
{
	if (before)
		return;
	pool_allocate = allocate;
	pool_free = release;
	before = c10::GetAllocator(c10::DeviceType::CPU);
	/* It is never destroyed: threads and destructors allocate while the program ends. */
	c10::SetAllocator(c10::DeviceType::CPU, new pool_allocator, UINT8_MAX);
}

/* From so many bytes on, memory comes from the pool; SIZE_MAX: none does. */
extern "C" __attribute__((visibility("default")))
void xmem_torch_cpu_from(std::size_t bytes)
{
	smallest.store(bytes);
}

/* SPDX-License-Identifier: MIT */
/*
 * The machine that runs the kernels: threads of the CPU, or a GPU, which gets the kernels as PTX.
 * This needs nothing of CUDA to compile; names and numbers are those of the driver's interface.
 */
#ifndef STRINGS_MACHINE_HPP
#define STRINGS_MACHINE_HPP

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <xmem.hpp>
#include <xmem/device.cuh>

class machine {
public:
	/* @ptx: a file with the kernels for GPU 0; nullptr: the CPU runs them. */
	explicit machine(const char *ptx)
	{
		if (ptx)
			open_gpu(ptx);
	}

	bool has_gpu() const { return driver != nullptr; }

	/* A buffer that the kernels can write. The pool makes it on demand. */
	xmem::buffer acquire(const xmem::pool &pool, std::size_t bytes) const
	{
		if (!has_gpu())
			return pool.acquire(bytes);
		xmem_preallocate_options options = {};

		options.size = sizeof(options);
		options.flags = XMEM_MEMORY_CUDA | XMEM_MEMORY_READERS;
		if (xmem_preallocate(pool.raw(), bytes, 1, &options))
			throw std::system_error(-xmem_peek_last_error(nullptr),
						std::generic_category(), "preallocate");
		return pool.acquire_cuda(bytes, 0);
	}

	/* The address of a buffer, for kernels. */
	template <typename T = char> T *address(const xmem::buffer &of, std::size_t at = 0) const
	{
		void *data = has_gpu() ? xmem_cuda_ptr_mut(of.raw()) : xmem_data_mut(of.raw());

		if (!data)
			throw std::runtime_error("a buffer has no address");
		return reinterpret_cast<T *>(static_cast<char *>(data) + at);
	}

	/* Copy contents for the CPU, after all kernels. */
	void fetch(void *to, const xmem::buffer &from, std::size_t at, std::size_t bytes)
	{
		if (has_gpu())
			check(call<int()>("cuCtxSynchronize")(), "a kernel");
		if (xmem_copy_to_host(to, from.raw(), at, bytes, nullptr))
			throw std::runtime_error("contents cannot be copied");
	}

	/* Run a kernel, in one thread or in many. It ends before the next one begins. */
	template <typename... P>
	void run(const char *name, void (*kernel)(P...), bool alone, std::common_type_t<P>... of)
	{
		void *values[] = { &of... };

		if (has_gpu())
			return launch(name, alone, values);
		unsigned int count = alone ? 1 : 4;
		std::vector<std::thread> threads;

		for (unsigned int i = 0; i < count; i++)
			threads.emplace_back([=] {
				xmem::device::set_thread(i, count);
				kernel(of...);
			});
		for (std::thread &thread : threads)
			thread.join();
	}

private:
	template <typename F> F *call(const char *name) const
	{
		void *found = dlsym(driver, name);

		if (!found)
			throw std::runtime_error(std::string("the driver has no ") + name);
		return reinterpret_cast<F *>(found);
	}

	static void check(int result, const std::string &what)
	{
		if (result)
			throw std::runtime_error(what + ": CUDA error " + std::to_string(result));
	}

	void open_gpu(const char *ptx)
	{
		const char *file = std::getenv("XMEM_CUDA_DRIVER");
		std::ifstream from(ptx);
		std::string text{std::istreambuf_iterator<char>(from), {}};
		void *context;

		driver = dlopen(file ? file : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
		if (!driver)
			throw std::runtime_error(dlerror());
		check(call<int(unsigned int)>("cuInit")(0), "cuInit");
		check(call<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0), "GPU 0");
		check(call<int(void *)>("cuCtxSetCurrent")(context), "GPU 0");
		check(call<int(void **, const void *)>("cuModuleLoadData")(&module, text.c_str()),
		      ptx);
	}

	void launch(const char *name, bool alone, void **values)
	{
		unsigned int blocks = alone ? 1 : 128, threads = alone ? 1 : 128;
		void *kernel;

		check(call<int(void **, void *, const char *)>("cuModuleGetFunction")(
			      &kernel, module, name), name);
		check(call<int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			       unsigned, void *, void **, void **)>("cuLaunchKernel")(
			      kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr, values, nullptr),
		      name);
	}

	void *driver = nullptr, *module = nullptr;
};

#endif

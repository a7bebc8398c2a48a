/* SPDX-License-Identifier: MIT */
/*
 * The calls of NVIDIA's driver that the tests of kernels need. The driver is the library that
 * XMEM_CUDA_DRIVER names. Without that it is the fake driver beside the program.
 */
#ifndef XMEM_TESTS_DEVICE_GPU_DRIVER_HPP
#define XMEM_TESTS_DEVICE_GPU_DRIVER_HPP

#include <cstring>

#include "../test.hpp"

using address = unsigned long long;

/* Memory of the GPU. It is freed with the object. */
struct gpu_memory {
	explicit gpu_memory(u64 bytes);
	~gpu_memory();
	gpu_memory(const gpu_memory &) = delete;
	gpu_memory &operator=(const gpu_memory &) = delete;

	void write(const void *from, u64 bytes);
	void read(void *to, u64 bytes) const;

	address at;
	u64 bytes;
};

/* Objects in memory of the GPU */
template <typename T> struct gpu_array : gpu_memory {
	explicit gpu_array(u64 count) : gpu_memory(count * sizeof(T) + 1) {}
	explicit gpu_array(const std::vector<T> &from) : gpu_array(from.size())
	{
		write(from.data(), from.size() * sizeof(T));
	}
	std::vector<T> get(u64 count) const
	{
		std::vector<T> got(count);

		read(got.data(), count * sizeof(T));
		return got;
	}
};

/* The address of an argument; a pointer of the GPU is an argument like a number. */
inline void *argument(const gpu_memory &from)
{
	return const_cast<address *>(&from.at);
}

inline void *argument(const u64 &from)
{
	return const_cast<u64 *>(&from);
}

/* Run a kernel of kernels.cu in so many threads, and wait for its end. */
void launch_all(const char *kernel, unsigned int threads, std::vector<void *> arguments);

template <typename... Types>
void launch(const char *kernel, unsigned int threads, const Types &... arguments)
{
	launch_all(kernel, threads, { argument(arguments)... });
}

#endif

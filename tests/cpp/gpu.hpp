/* SPDX-License-Identifier: MIT */
/*
 * A GPU for tests: the library's driver, which the tests also call themselves, and a stream that
 * can be held up. The driver is the fake one (tests/fakecuda) unless XMEM_CUDA_DRIVER names
 * another.
 */
#ifndef XMEM_TESTS_CPP_GPU_HPP
#define XMEM_TESTS_CPP_GPU_HPP

#include <semaphore.h>
#include <vector>

#include "test.hpp"

/* To be called before anything looks for a driver, or starts a host. */
void use_fake_driver();

/* The first GPU. Its context is current from then on. The test is skipped if there is none. */
class gpu {
public:
	gpu();

	/* A call that must work. */
	template <class... T> void call(const char *name, T... arguments) const
	{
		const int result = reinterpret_cast<int (*)(T...)>(find(name))(arguments...);

		if (result)
			FAIL(std::string(name) + " gives " + std::to_string(result));
	}
	/* 2 MB that other processes can get. */
	void *alloc() const;
	void free(void *ptr) const;

private:
	void *find(const char *name) const;

	void *driver_;
};

/* A stream of that GPU. Its destructor waits for it. */
class stream {
public:
	explicit stream(const gpu &on);
	stream(const stream &) = delete;
	~stream();

	CUstream_st *raw() const { return raw_; }
	/* From now on the stream's work waits for open(). */
	void close();
	void open() { sem_post(&gate_); }
	void synchronize() const { on_.call("cuStreamSynchronize", raw_); }

private:
	const gpu &on_;
	CUstream_st *raw_ = nullptr;
	sem_t gate_;
};

/* Two clients of one pool, with this many buffers on the GPU, which readers get too. */
struct gpu_scene {
	explicit gpu_scene(unsigned int buffers = 2)
		: name(new_name()), writer(name, XMEM_OPEN_WRITER), reader(name, XMEM_OPEN_READER)
	{
		writer.preallocate_cuda(bytes_each, buffers, 0, XMEM_MEMORY_READERS);
	}

	gpu device;
	std::string name;
	xmem::pool writer, reader;
};

/* Bytes that count up from @stamp, and those of a buffer on a GPU. */
std::vector<std::byte> stamped(unsigned char stamp, std::size_t bytes = bytes_each);
std::vector<std::byte> contents_of(const xmem::buffer &buffer);

#endif

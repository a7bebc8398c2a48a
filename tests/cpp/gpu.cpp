// SPDX-License-Identifier: MIT
/* The functions of gpu.hpp. */
#include <cstdlib>
#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "gpu.hpp"

void use_fake_driver()
{
	char program[PATH_MAX] = "";
	std::string path;

	if (::readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
		path = program;
	path.resize(path.rfind('/') + 1);
	setenv("XMEM_CUDA_DRIVER", (path + "fakecuda/libcuda.so.1").c_str(), 0);
	/* Its descriptors are memfds, and a daemon takes those only if it is told to. */
	setenv("XMEM_DEVICE_FILES", "195:255,memfd", 0);
}

/* ---- the driver ---- */

gpu::gpu() : driver_(dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL))
{
	void *context = nullptr;

	if (!driver_)
		throw skipped(dlerror());
	if (xmem::pool(new_name()).backend() == std::string("kernel") &&
	    !getenv("FAKECUDA_DEVICE_FILE"))
		throw skipped("no device whose files the module takes (FAKECUDA_DEVICE_FILE)");
	call("cuInit", 0u);
	call("cuDevicePrimaryCtxRetain", &context, 0);
	call("cuCtxSetCurrent", context);
}

void *gpu::find(const char *name) const
{
	void *function = dlsym(driver_, name);

	if (!function)
		FAIL(std::string("the driver has no ") + name);
	return function;
}

void *gpu::alloc() const
{
	void *ptr = nullptr;

	call("cuMemAlloc_v2", &ptr, std::size_t{2} << 20);
	return ptr;
}

void gpu::free(void *ptr) const
{
	call("cuMemFree_v2", ptr);
}

/* ---- streams ---- */

stream::stream(const gpu &on) : on_(on)
{
	const unsigned int non_blocking = 1;

	sem_init(&gate_, 0, 0);
	on_.call("cuStreamCreate", &raw_, non_blocking);
}

stream::~stream()
{
	open();		/* after a check that has failed */
	synchronize();
	on_.call("cuStreamDestroy_v2", raw_);
	sem_destroy(&gate_);
}

static void pass(void *gate)
{
	while (sem_wait(static_cast<sem_t *>(gate)))
		;
}

void stream::close()
{
	on_.call("cuLaunchHostFunc", raw_, pass, static_cast<void *>(&gate_));
}

/* ---- bytes ---- */

std::vector<std::byte> stamped(unsigned char stamp, std::size_t bytes)
{
	std::vector<std::byte> made(bytes);

	for (std::size_t i = 0; i < bytes; i++)
		made[i] = static_cast<std::byte>(stamp + i);
	return made;
}

std::vector<std::byte> contents_of(const xmem::buffer &buffer)
{
	std::vector<std::byte> got(buffer.size());

	xmem::copy_to_cpu(got, buffer, 0);
	return got;
}

// SPDX-License-Identifier: MIT
/* The functions of driver.hpp. */
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <libgen.h>
#include <unistd.h>

#include "driver.hpp"

/* The path of a file beside the program */
static std::string beside(const std::string &name)
{
	char self[4096] = "";

	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	return std::string(dirname(self)) + "/" + name;
}

static std::string library()
{
	const char *given = std::getenv("XMEM_CUDA_DRIVER");

	return given ? given : beside("fakecuda/libcuda.so.1");
}

template <typename... Types> static void call(const char *name, Types... arguments)
{
	static void *driver = dlopen(library().c_str(), RTLD_NOW);
	int (*found)(Types...) = nullptr;
	void *symbol = driver ? dlsym(driver, name) : nullptr;
	int result;

	if (!symbol)
		FAIL(dlerror());
	std::memcpy(&found, &symbol, sizeof(found));
	result = found(arguments...);
	if (result)
		FAIL(std::string(name) + " returns " + std::to_string(result));
}

/* The kernels of the first device, in a context that stays until the end of the program. */
static void *module_of_kernels()
{
	static void *module;
	void *context = nullptr;
	int device = 0;

	if (module)
		return module;

	std::ifstream file(beside("device-kernels.ptx"));
	std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

	CHECK(!text.empty());
	call("cuInit", 0u);
	call("cuDeviceGet", &device, 0);
	call("cuDevicePrimaryCtxRetain", &context, device);
	call("cuCtxSetCurrent", context);
	call("cuModuleLoadData", &module, static_cast<const void *>(text.c_str()));
	return module;
}

gpu_memory::gpu_memory(u64 bytes_) : at(0), bytes(bytes_)
{
	module_of_kernels();
	call("cuMemAlloc_v2", &at, bytes);
}

gpu_memory::~gpu_memory()
{
	try {
		call("cuMemFree_v2", at);
	} catch (const failure &why) {
		std::printf("%s\n", why.what());	/* the test has failed before */
	}
}

void gpu_memory::write(const void *from, u64 count)
{
	CHECK(count <= bytes);
	if (count)
		call("cuMemcpyHtoD_v2", at, from, count);
}

void gpu_memory::read(void *to, u64 count) const
{
	CHECK(count <= bytes);
	if (count)
		call("cuMemcpyDtoH_v2", to, at, count);
}

void launch_all(const char *kernel, unsigned int threads, std::vector<void *> arguments)
{
	const unsigned int block = threads < 128 ? threads : 128;
	void *function = nullptr, *none = nullptr;

	call("cuModuleGetFunction", &function, module_of_kernels(), kernel);
	call("cuLaunchKernel", function, (threads + block - 1) / block, 1u, 1u, block, 1u, 1u, 0u,
	     none, arguments.data(), static_cast<void **>(nullptr));
	call("cuCtxSynchronize");
}

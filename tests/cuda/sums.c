// SPDX-License-Identifier: MIT
/* The functions of sums.h. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sums.h"
#include "tests/fakecuda/tests.h"

#define BLOCKS	4
#define THREADS	64

typedef CUresult load_module(void **ret, const void *image);
typedef CUresult get_function(void **ret, void *module, const char *name);
typedef CUresult launch_kernel(void *function, unsigned int grid_x, unsigned int grid_y,
			       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			       unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			       void **parameters, void **extra);

static void must(CUresult result)
{
	if (result)
		FAIL("the driver returned %d", result);
}

/* kernels.ptx lies beside the program. */
static char *image(void)
{
	FILE *file = fopen(beside_program("kernels.ptx"), "re");
	char *text = calloc(1, 1 << 20);

	CHECK(file && text);
	CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	return text;
}

void begin_sums_on(struct sums *sums, int gpu)
{
	get_function *get = driver_call("cuModuleGetFunction");
	load_module *load = driver_call("cuModuleLoadData");
	struct xl_gpu_scope scope;
	char *text = image();
	void *module;

	if (on_hip() && !on_fake())
		skip("kernels.ptx is for NVIDIA's GPUs");
	WORKED(xl_gpu_enter(xl_gpu(gpu), &scope));
	xl_capture_restore(scope.mode);		/* only the context stays */
	must(xl_cuda()->stream_create(&sums->stream, CU_STREAM_NON_BLOCKING));
	must(xl_cuda()->mem_alloc(&sums->sum, 8));
	must(load(&module, text));
	free(text);
	must(get(&sums->fill, module, "xm_fill"));
	must(get(&sums->add, module, "xm_checksum"));
}

void begin_sums(struct sums *sums)
{
	begin_sums_on(sums, 0);
}

void end_sums(struct sums *sums)
{
	must(xl_cuda()->mem_free(sums->sum));
}

static void launch(const struct sums *sums, void *kernel, void **parameters)
{
	static launch_kernel *call;

	if (!call)
		call = driver_call("cuLaunchKernel");
	must(call(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, sums->stream, parameters, NULL));
}

void fill_by_kernel(struct sums *sums, struct xmem_buffer *buffer, uint32_t stamp)
{
	unsigned long long words = xmem_size(buffer) / 4;
	void *at = xmem_cuda_ptr_mut(buffer);

	CHECK(at);
	launch(sums, sums->fill, (void *[]){ &at, &stamp, &words });
}

uint64_t sum_by_kernel(struct sums *sums, const void *at, size_t bytes)
{
	unsigned long long two = 2, words = bytes / 4;
	uint32_t zero = 0;
	uint64_t got;

	launch(sums, sums->fill, (void *[]){ &sums->sum, &zero, &two });
	launch(sums, sums->add, (void *[]){ &sums->sum, &at, &words });
	must(xl_cuda()->stream_synchronize(sums->stream));
	must(xl_cuda()->memcpy_dtoh(&got, sums->sum, 8));
	return got;
}

uint64_t right_sum(uint32_t stamp, size_t bytes)
{
	uint64_t words = bytes / 4;

	return stamp * (words * (words + 1) / 2);
}

/* ---- all processes of a test ---- */

static int violations = -1;	/* the file, which has no name; its descriptor leads to it */

static void set_path(const char *variable, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	setenv(variable, path, 1);
}

void watch_drivers(void)
{
	int state = memfd_create("state", MFD_CLOEXEC);

	violations = memfd_create("violations", MFD_CLOEXEC);
	CHECK(state >= 0 && violations >= 0);
	set_path("FAKECUDA_LOG", violations);
	set_path("FAKECUDA_STATE", state);
}

void no_violations_of_all(void)
{
	char text[512];
	ssize_t length = pread(violations, text, sizeof(text) - 1, 0);

	CHECK(length >= 0);
	text[length] = '\0';
	if (length)
		FAIL("a rule of the driver was broken: %s", text);
}

size_t gpus_used(void)
{
	void *driver = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	typeof(cuFakeUsed) *used = driver ? (typeof(used))dlsym(driver, "cuFakeUsed") : NULL;

	return used ? used(0) : 0;
}

// SPDX-License-Identifier: MIT
/*
 * The tests of GPUs: build/FLAVOUR/cuda, whose arguments and last line are those of
 * tests/conform/main.c. Its driver is the fake one (tests/fakecuda) unless XMEM_CUDA_DRIVER says
 * otherwise: with libcuda.so.1 the same tests run on a GPU, and those of drivers that do not work
 * still use small ones (small.c).
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gpus.h"

const char *beside_program(const char *name)
{
	static char path[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return "";
	snprintf(slash + 1, sizeof(path) - (slash + 1 - path), "%s", name);
	return path;
}

__attribute__((constructor)) static void use_fake_driver(void)
{
	const char *fake = beside_program("fakecuda/libcuda.so.1");

	setenv("XMEM_CUDA_DRIVER", fake, 0);
	files_may_stay = strcmp(getenv("XMEM_CUDA_DRIVER"), fake);
}

struct fake fake_only(const char *why)
{
	void *library = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	struct fake fake;

	if (!library)
		FAIL("%s", dlerror());
	fake.calls = (unsigned long (*)(const char *))dlsym(library, "cuFakeCalls");
	fake.fail = (int (*)(const char *))dlsym(library, "cuFakeFail");
	fake.sticky = (void (*)(int))dlsym(library, "cuFakeSticky");
	fake.end = (void (*)(void))dlsym(library, "cuFakeEnd");
	if (!fake.calls)
		skip("not on the fake driver: %s", why);
	CHECK(fake.fail && fake.sticky && fake.end);
	return fake;
}

struct small *use_small(const char *name)
{
	struct small *small = mmap(NULL, sizeof(*small), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	small_use_function *use;
	char file[64];
	void *library;

	CHECK(small != MAP_FAILED);
	*small = (struct small){ .devices = 1, .version = 12040 };
	snprintf(file, sizeof(file), "cuda-drivers/%s.so", name);
	CHECK(!setenv("XMEM_CUDA_DRIVER", beside_program(file), 1));
	library = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	if (!library)
		FAIL("%s", dlerror());
	use = (small_use_function *)dlsym(library, "small_use");
	CHECK(use);
	use(small);
	return small;
}

void says_at(const char *file, int line, int error, ...)
{
	const char *message = "", *words;
	va_list args;

	if (xmem_peek_last_error(&message) != -error)
		fail_at(file, line, "the error is %d, not %d: %s", -xmem_peek_last_error(NULL),
			error, message);
	va_start(args, error);
	while ((words = va_arg(args, const char *)))
		if (!strstr(message, words))
			fail_at(file, line, "'%s' is not in: %s", words, message);
	va_end(args);
}

void in_child(void (*body)(void *argument), void *argument)
{
	finish_child(spawn(body, argument));
}

void finish_child_of(struct xmem_pool *pool, struct child *child)
{
	EVENTUALLY((stat_of(pool), child_has_ended(child)));
	finish_child(child);
}

// SPDX-License-Identifier: MIT
/*
 * The tests of GPUs: build/FLAVOUR/cuda. Its arguments and last line are those of
 * tests/conform/main.c. Its driver is the fake one (tests/fakecuda) unless XMEM_CUDA_DRIVER names
 * another. With libcuda.so.1 or libamdhip64.so.6 all these tests run on a GPU, except that tests of
 * drivers that do not work still use small ones (small.c).
 */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "gpus.h"
#include "lib/cuda/hip.h"
#include "xmem/cuda.h"

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

static void *driver_library(void)
{
	void *library = dlopen(getenv("XMEM_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);

	if (!library)
		FAIL("%s", dlerror());
	return library;
}

bool on_fake(void)
{
	return dlsym(driver_library(), "cuFakeCalls");
}

struct fake fake_only(const char *why)
{
	void *library = driver_library();
	struct fake fake;

	fake.calls = (unsigned long (*)(const char *))dlsym(library, "cuFakeCalls");
	fake.fail = (int (*)(const char *))dlsym(library, "cuFakeFail");
	fake.sticky = (void (*)(int))dlsym(library, "cuFakeSticky");
	fake.end = (void (*)(void))dlsym(library, "cuFakeEnd");
	if (!fake.calls)
		skip("only on the fake driver: %s", why);
	CHECK(fake.fail && fake.sticky && fake.end);
	return fake;
}

bool on_hip(void)
{
	return dlsym(driver_library(), "hipInit");
}

void not_with_hip(const char *what)
{
	if (on_hip())
		skip("not with HIP: %s", what);
}

/* A process of its own asks, because a driver that was started before a fork is of no use then. */
static void tell_gpus(void *unused)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };

	(void)unused;
	WORKED(xmem_cuda_query(&info));
	tell_parent(info.devices);
}

void need_gpus(int count)
{
	struct child *child;
	char number[8];
	uint64_t there;

	snprintf(number, sizeof(number), "%d", count);
	if (on_fake())
		setenv("FAKECUDA_DEVICES", number, 1);
	child = spawn(tell_gpus, NULL);
	there = hear(child);
	finish_child(child);
	if (there < (uint64_t)count)
		skip("this needs %d GPUs", count);
}

void use_attributes(const char *attributes)
{
	setenv("FAKECUDA_ATTRIBUTES", attributes, 1);
	if (on_fake())
		return;
	not_with_hip("no library stands in front of it");
	driver_library();		/* it stays, so that the other one finds it by its name */
	CHECK(!setenv("XMEM_CUDA_DRIVER", beside_program("cuda-drivers/weaker.so"), 1));
}

/*
 * A socket like those of xmemd's clients, and of tests and their children. A driver's own socket
 * has a name.
 */
static bool is_our_socket(int fd)
{
	struct sockaddr_storage name;
	socklen_t bytes = sizeof(int), length = sizeof(name);
	int type = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) && type == SOCK_SEQPACKET &&
	       !getsockname(fd, (struct sockaddr *)&name, &length) &&
	       length == sizeof(name.ss_family);
}

/*
 * Not a driver's. Those of NVIDIA are devices, pipes, events and sockets of another type. Its files
 * of memory, some of which belong to libraries that come with it, are called "/.nvidia_drv" or the
 * like.
 */
static bool is_ours(int folder, const char *name)
{
	char link[64];
	ssize_t length = readlinkat(folder, name, link, sizeof(link) - 1);

	if (length < 0)
		return false;
	link[length] = '\0';
	if (!strncmp(link, "socket:", 7))
		return is_our_socket(atoi(name));
	return (!strncmp(link, "/memfd:", 7) && link[7] != '/') || !strncmp(link, "/dev/xmem", 9);
}

unsigned int own_files(void)
{
	struct dirent *entry;
	unsigned int n = 0;
	DIR *folder;

	if (on_fake())
		return open_files();
	folder = opendir("/proc/self/fd");
	CHECK(folder);
	while ((entry = readdir(folder)))
		n += is_ours(dirfd(folder), entry->d_name);
	closedir(folder);
	return n;
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

int last_result(void)
{
	struct xmem_error error = XMEM_INIT(error);

	xmem_peek_last_error(&error);
	return error.cuda_result;
}

/* HIP's form of some words: hipErrorNoDevice for CUDA_ERROR_NO_DEVICE. */
static const char *hips(const char *words)
{
	static const char error[] = "CUDA_ERROR_", visible[] = "CUDA_VISIBLE_DEVICES";
	static char form[256];
	const char *from = words;
	char *to = form;

	while (*from) {
		CHECK(to < form + sizeof(form) - 16);
		if (!strncmp(from, visible, strlen(visible))) {
			to = stpcpy(to, "HIP");
			from += strlen("CUDA");
		} else if (!strncmp(from, error, strlen(error))) {
			to = stpcpy(to, "hipError");
			for (from += strlen(error); isupper(*from) || *from == '_'; from++) {
				if (*from == '_')
					continue;
				*to++ = from[-1] == '_' ? *from : tolower(*from);
			}
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return form;
}

void says_at(const char *file, int line, int error, ...)
{
	const char *message = last_message(), *words;
	va_list args;

	if (xmem_peek_last_error(NULL) != -error)
		fail_at(file, line, "the error is %d, not %d: %s", -xmem_peek_last_error(NULL),
			error, message);
	va_start(args, error);
	while ((words = va_arg(args, const char *))) {
		words = xl_hip ? hips(words) : words;
		if (!strstr(message, words))
			fail_at(file, line, "'%s' is not in: %s", words, message);
	}
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

// SPDX-License-Identifier: MIT
/*
 * Finding the driver: when, why there is none, in children, and by many threads.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpus.h"
#include "xmem/cuda.h"

#define NOT_INITIALIZED	CUDA_ERROR_NOT_INITIALIZED

/* ---- no call needs it ---- */

static int is_driver(struct dl_phdr_info *info, size_t size, void *argument)
{
	return strstr(info->dlpi_name, "libcuda") || strstr(info->dlpi_name, "libamdhip64") ||
	       strstr(info->dlpi_name, "cuda-drivers/");
}

static bool driver_is_loaded(void)
{
	return dl_iterate_phdr(is_driver, NULL);
}

TEST(CUDA_nothing_but_its_own_functions_loads_the_driver)
{
	const char *name = new_name();
	struct xmem_error error = XMEM_INIT(error);
	struct xmem_pool *writer = open_writer(name, 4, 4096), *reader = open_reader(name);
	struct xmem_buffer *buffer = publish_and_get(writer, reader, 7);

	SAME(stamp_of(buffer), 7);
	xmem_release(buffer);
	stat_of(reader);
	SAME(last_result(), 0);
	xmem_get_last_error(&error);
	CHECK(!strcmp(error.cuda_name, "CUDA_SUCCESS"));
	xmem_clear_last_error();
	xmem_pool_close(reader);
	xmem_pool_close(writer);
	CHECK(!driver_is_loaded());
	xl_cuda();
	CHECK(driver_is_loaded());
}

/* ---- why there is no driver ---- */

/* All fields can be called. The fields called here are one of each kind of parameters. */
static void check_trampolines(const struct xl_cuda *cuda)
{
	CUipcMemHandle handle = {};
	CUdeviceptr at;
	CUdevice device;
	int value;

	SAME(cuda->groups, 0);
	SAME(cuda->init(0), NOT_INITIALIZED);
	SAME(cuda->device_get(&device, 0), NOT_INITIALIZED);
	SAME(cuda->device_get_attribute(&value, 1, 0), NOT_INITIALIZED);
	SAME(cuda->ctx_synchronize(), NOT_INITIALIZED);
	SAME(cuda->mem_alloc(&at, 4096), NOT_INITIALIZED);
	SAME(cuda->mem_free(4096), NOT_INITIALIZED);
	SAME(cuda->memcpy_peer_async(1, NULL, 2, NULL, 3, NULL), NOT_INITIALIZED);
	SAME(cuda->ipc_open_mem_handle(&at, handle, 1), NOT_INITIALIZED);
	SAME(cuda->stream_wait_value64(NULL, 8, 1, 0), NOT_INITIALIZED);
#define CHECK_FIELD(field, ...)	CHECK(cuda->field);
	XL_CUDA_ENTRIES(CHECK_FIELD)
}

/* No public function works; each message says why, and @result is the driver's result. */
#define THERE_IS_NONE(error, result, ...) do { \
	struct xmem_cuda_info info_ = { .size = sizeof(info_) }; \
	struct xmem_cuda_device_info device_ = { .size = sizeof(device_) }; \
	SAME(xmem_cuda_query(&info_), -(error)); \
	SAYS(error, __VA_ARGS__); \
	SAME(last_result(), result); \
	SAME(xmem_cuda_device_query(0, &device_), -(error)); \
	SAYS(error, __VA_ARGS__); \
	SAME(xl_cuda_need("a test"), -(error)); \
	SAYS(error, "a test needs CUDA", __VA_ARGS__); \
	REFUSED(xl_gpu(0), error); \
	SAME(last_result(), result); \
	SAME(info_.version + device_.bytes, 0); \
	check_trampolines(xl_cuda()); \
} while (0)

TEST(CUDA_no_driver_is_said)
{
	setenv("XMEM_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
	THERE_IS_NONE(ENODEV, NOT_INITIALIZED, "/nowhere/libcuda.so.1", "XMEM_CUDA_DRIVER",
		      "install");
}

TEST(CUDA_an_empty_variable_counts_as_unset)
{
	setenv("XMEM_CUDA_DRIVER", "", 1);
	if (!xl_cuda_need("a test"))
		skip("this machine has a driver");
	SAYS(ENODEV, "libcuda.so.1");
}

TEST(CUDA_a_file_that_is_no_library_is_said)
{
	setenv("XMEM_CUDA_DRIVER", "/proc/self/maps", 1);
	THERE_IS_NONE(ENODEV, NOT_INITIALIZED, "/proc/self/maps");
}

TEST(CUDA_a_library_that_is_no_driver_is_said)
{
	struct small *small = use_small("no-start");

	THERE_IS_NONE(ENODEV, NOT_INITIALIZED, "no-start.so", "is no CUDA driver");
	SAME(small->calls, 0);
}

/* The message names the first missing function, in the order of the list. */
TEST(CUDA_a_driver_that_is_too_old_is_said)
{
	struct small *small = use_small("no-name");

	THERE_IS_NONE(ENODEV, NOT_INITIALIZED, "no-name.so", "too old", "cuDeviceGetUuid_v2",
		      "CUDA 11.4");
	SAME(small->starts, 0);
}

TEST(CUDA_a_driver_without_devices_is_said)
{
	use_small("whole")->devices = 0;
	THERE_IS_NONE(ENODEV, CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE, 100",
		      "CUDA_VISIBLE_DEVICES");
}

static const struct {
	int result, error;
	const char *says;
} starts[] = {
	{ 100, ENODEV, "CUDA_ERROR_NO_DEVICE, 100): there is none" },
	{ 34, ENODEV, "(CUDA_ERROR_STUB_LIBRARY, 34): install the driver" },
	{ 3, ECHILD, "(CUDA_ERROR_NOT_INITIALIZED, 3): this process was most likely forked" },
	{ 803, ENODEV, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): libcuda.so.1 and the kernel's" },
	{ 804, ENODEV, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): this libcuda.so.1 is of" },
	{ 802, ENODEV, "CUDA_ERROR_SYSTEM_NOT_READY (802): is nvidia-fabricmanager running" },
	{ 4, ESHUTDOWN, "CUDA_ERROR_DEINITIALIZED (4): the driver has been torn down" },
	{ 2, ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY (2)" },
	{ 999, EIO, "CUDA_ERROR_UNKNOWN (999)" },
	{ 1, EIO, "CUDA_ERROR_INVALID_VALUE (1)" },
	{ 800, EIO, "CUDA_ERROR_NOT_PERMITTED (800)" },
	{ 801, EIO, "CUDA_ERROR_NOT_SUPPORTED (801)" },
	{ 808, EIO, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED (808)" },
	{ 77777, EIO, "an unknown CUresult (77777)" },
};

static void start_fails(void *row)
{
	size_t i = (size_t)row;
	struct small *small = use_small("whole");

	small->start = starts[i].result;
	THERE_IS_NONE(starts[i].error, starts[i].result, "cuda-drivers/whole.so", starts[i].says);
	SAME(small->starts, 1);
}

TEST(CUDA_each_reason_why_a_driver_does_not_start_is_said)
{
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		in_child(start_fails, (void *)i);
}

TEST(CUDA_the_toolkits_stub_library_is_said)
{
	const char *stub = "/usr/local/cuda/lib64/stubs/libcuda.so";

	if (access(stub, R_OK))
		skip("no CUDA toolkit in /usr/local/cuda");
	setenv("XMEM_CUDA_DRIVER", stub, 1);
	THERE_IS_NONE(ENODEV, CUDA_ERROR_STUB_LIBRARY, stub, "(CUDA_ERROR_STUB_LIBRARY, 34)");
}

/* ---- a driver that lacks something ---- */

TEST(CUDA_a_group_that_is_missing_is_done_without)
{
	struct small *small = use_small("no-export");
	unsigned long calls;
	int file;

	SAME(xl_cuda_need("a test"), 0);
	SAME(xl_cuda()->groups, ((1u << XL_CUDA_GROUP_COUNT) - 1) & ~(1u << XL_CUDA_VMM));
	CHECK(!xl_cuda_has(XL_CUDA_VMM) && xl_cuda_has(XL_CUDA_CORE) && xl_cuda_has(XL_CUDA_POOL));
	SAME(xl_cuda_need_group(XL_CUDA_POOL, "a test"), 0);
	SAME(xl_cuda_need_group(XL_CUDA_VMM, "a test"), -EOPNOTSUPP);
	SAYS(EOPNOTSUPP, "a test needs memory exported as descriptors", "of CUDA 12.4",
	     "cuMemExportToShareableHandle", "CUDA 10.2", "no-export.so");
	/* Calls of the missing function fail with a message, and the others of its group work. */
	calls = small->calls;
	SAME(xl_cuda()->mem_export(&file, 1, 1, 0), NOT_INITIALIZED);
	SAME(small->calls, calls);
	SAME(xl_cuda()->mem_unmap(4096, 4096), 0);
	SAME(small->calls, calls + 1);
	SAME(xl_cuda_fail(NOT_INITIALIZED, "exporting"), -EOPNOTSUPP);
	SAYS(EOPNOTSUPP, "exporting: CUDA_ERROR_NOT_INITIALIZED (3): the driver lacks this call");
}

/* ---- children ---- */

static void use(struct small *small)
{
	SAME(xl_cuda_need("a test"), 0);
	SAME(small->starts, 1);
	SAME(xl_cuda()->mem_free(4096), 0);
}

static void child_of_user(void *argument)
{
	struct small *small = argument;
	unsigned long calls = small->calls;
	struct xl_gpu_scope scope;

	THERE_IS_NONE(ECHILD, NOT_INITIALIZED, "forked", "exec");
	SAME(xl_cuda_fail(xl_cuda()->mem_free(4096), "freeing"), -ECHILD);
	SAYS(ECHILD, "freeing: CUDA_ERROR_NOT_INITIALIZED (3)", "forked");
	CHECK(xl_cuda_if_found() == xl_cuda() && !xl_cuda()->groups);
	/* A pool gives the child an id of its own, and does not change the result. */
	xmem_pool_close(open_with(NULL, &(struct setup){}));
	THERE_IS_NONE(ECHILD, NOT_INITIALIZED, "forked", "exec");
	SAME(xl_gpu_enter((struct xl_gpu *)argument, &scope), -ECHILD);
	SAME(small->calls, calls);
}

static void child_and_grandchild_of_user(void *argument)
{
	child_of_user(argument);
	in_child(child_of_user, argument);
}

TEST(CUDA_a_forked_child_makes_no_call)
{
	struct small *small = use_small("whole");

	use(small);
	in_child(child_and_grandchild_of_user, small);
	use(small);
}

static void child_that_uses(void *argument)
{
	use(argument);
}

/* Its parent has opened a pool, and so has an id, but no driver. */
TEST(CUDA_a_child_forked_before_the_first_use_has_the_driver_for_itself)
{
	struct small *small = use_small("whole");
	struct xmem_pool *pool = open_with(NULL, &(struct setup){});

	in_child(child_that_uses, small);
	SAME(small->starts, 1);
	small->starts = 0;
	use(small);
	in_child(child_of_user, small);
	xmem_pool_close(pool);
}

static void child_of_none(void *argument)
{
	THERE_IS_NONE(ENODEV, NOT_INITIALIZED, "/nowhere/libcuda.so.1");
}

TEST(CUDA_a_child_knows_why_its_parent_found_none)
{
	setenv("XMEM_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
	SAME(xl_cuda_need("a test"), -ENODEV);
	in_child(child_of_none, NULL);
}

/* This fork avoids the C library, so no handler of the library runs in the child. */
TEST(CUDA_a_child_of_the_bare_system_call_makes_no_call)
{
	struct small *small = use_small("whole");
	unsigned long calls;
	int status;
	pid_t pid;

	use(small);
	calls = small->calls;
	pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		bool good = xl_cuda_need("a test") == -ECHILD &&
			xl_cuda()->mem_free(4096) == NOT_INITIALIZED;

		_exit(good ? 0 : 1);
	}
	CHECK(pid > 0);
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
	SAME(small->calls, calls);
}

/* ---- threads ---- */

static pthread_barrier_t barrier;
static int in_start[2], go_on[2];

static void say_and_wait(void)
{
	char byte = 0;

	CHECK(write(in_start[1], &byte, 1) == 1);
	CHECK(read(go_on[0], &byte, 1) == 1);
}

static void close_pipes(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(in_start[i]);
		close(go_on[i]);
	}
}

static void *need_once(void *argument)
{
	return (void *)(intptr_t)xl_cuda_need("a test");
}

static void child_of_starting(void *argument)
{
	THERE_IS_NONE(ECHILD, NOT_INITIALIZED, "forked");
}

/* The child does not wait for a lock that a thread of its parent has. */
TEST(CUDA_a_child_forked_while_the_driver_starts_makes_no_call)
{
	struct small *small = use_small("whole");
	pthread_t thread;
	void *result;
	char byte;

	CHECK(!pipe(in_start) && !pipe(go_on));
	small->in_start = say_and_wait;
	SAME(pthread_create(&thread, NULL, need_once, NULL), 0);
	CHECK(read(in_start[0], &byte, 1) == 1);
	in_child(child_of_starting, NULL);
	CHECK(write(go_on[1], &byte, 1) == 1);
	SAME(pthread_join(thread, &result), 0);
	CHECK(!result);
	SAME(small->starts, 1);
	use(small);
	close_pipes();
}

/* A thread that is cancelled while it starts the driver completes the start. */
TEST(CUDA_starting_the_driver_is_no_cancellation_point)
{
	struct small *small = use_small("whole");
	pthread_t thread;
	void *result;
	char byte;

	CHECK(!pipe(in_start) && !pipe(go_on));
	small->in_start = say_and_wait;
	SAME(pthread_create(&thread, NULL, need_once, NULL), 0);
	CHECK(read(in_start[0], &byte, 1) == 1);
	SAME(pthread_cancel(thread), 0);
	CHECK(write(go_on[1], &byte, 1) == 1);
	SAME(pthread_join(thread, &result), 0);
	CHECK(!result);
	use(small);
	close_pipes();
}

static void *use_at_once(void *argument)
{
	const struct xl_cuda *cuda = xl_cuda();

	if (xl_cuda_need("a test") || cuda->mem_free(4096) || xl_gpu_count() != 1)
		return NULL;
	pthread_barrier_wait(&barrier);
	return xl_gpu(0);
}

#define THREADS	16

/*
 * The first thread is within the driver's start until each other one has come as far as it can: to
 * the lock, where it sleeps, or into a second start. They come one by one, so none of them sleeps
 * for another reason.
 */
static void many_threads(void *argument)
{
	pthread_t threads[THREADS];
	struct small *small = argument;
	void *first = NULL, *gpu;
	char byte;
	int i;

	small->starts = 0;
	small->in_start = say_and_wait;
	CHECK(!pipe(in_start) && !pipe(go_on));
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (i = 0; i < THREADS; i++) {
		SAME(pthread_create(&threads[i], NULL, use_at_once, NULL), 0);
		if (!i)
			CHECK(read(in_start[0], &byte, 1) == 1);
		EVENTUALLY(others_sleep());
		SAME(__atomic_load_n(&small->starts, __ATOMIC_RELAXED), 1);
	}
	CHECK(write(go_on[1], &byte, 1) == 1);
	for (i = 0; i < THREADS; i++) {
		SAME(pthread_join(threads[i], &gpu), 0);
		CHECK(gpu && (!first || gpu == first));
		first = gpu;
	}
	SAME(small->starts, 1);
}

TEST_WITHIN(CUDA_many_threads_start_the_driver_once, 60)
{
	struct small *small = use_small("whole");
	unsigned int i;

	for (i = 0; i < scaled(10); i++)
		in_child(many_threads, small);
}

/* ---- the end of the process ---- */

/* A report for the parent, of a process that ends by itself. */
static struct report {
	struct small *small;
	struct xl_gpu *gpu;
	unsigned long releases;
	int late;
} *report;

static void driver_ends(void)
{
	report->small->release = CUDA_ERROR_DEINITIALIZED;
}

__attribute__((destructor)) static void late(void)
{
	struct xl_gpu_scope scope;

	if (!report)
		return;
	report->late = xl_gpu_enter(report->gpu, &scope);
	report->releases = report->small->releases;
}

/* The child uses a device and calls exit, so handlers and destructors run. */
static void end_with(struct small *small, void (*handler)(void), bool forks)
{
	struct report *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct xl_gpu_scope scope;
	int status;
	pid_t pid;

	CHECK(shared != MAP_FAILED);
	pid = fork();
	if (!pid) {
		report = shared;
		report->small = small;
		report->gpu = xl_gpu(0);
		if (!report->gpu || xl_gpu_enter(report->gpu, &scope))
			_exit(2);
		xl_gpu_leave(&scope);
		if (handler)
			atexit(handler);
		if (forks && fork())
			_exit(wait(&status) < 0 || status);
		exit(0);
	}
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
	SAME(shared->releases, !forks);
	SAME(shared->late, forks ? -ECHILD : -ESHUTDOWN);
	munmap(shared, sizeof(*shared));
}

TEST(CUDA_the_context_is_released_at_the_end)
{
	end_with(use_small("whole"), NULL, false);
}

/* The library is closed after its use. The driver stays, and so does its end handler. */
static void opens_and_closes(void *argument)
{
	void *library = dlopen(beside_program("libxmem.so"), RTLD_NOW | RTLD_LOCAL);
	struct xmem_cuda_info info = { .size = sizeof(info) };
	int (*query)(struct xmem_cuda_info *info);

	if (!library)
		FAIL("%s", dlerror());
	query = (int (*)(struct xmem_cuda_info *))dlsym(library, "xmem_cuda_query");
	CHECK(query);
	SAME(query(&info), 0);
	SAME(info.devices, 1);
	SAME(dlclose(library), 0);
	CHECK(driver_is_loaded());
	exit(0);
}

TEST(CUDA_the_library_is_closed_after_its_use)
{
	struct small *small = use_small("whole");

	in_child(opens_and_closes, NULL);
	SAME(small->starts, 1);
}

TEST(CUDA_a_driver_that_has_ended_before_is_no_error)
{
	end_with(use_small("whole"), driver_ends, false);
}

TEST(CUDA_the_end_of_a_forked_child_releases_nothing)
{
	end_with(use_small("whole"), NULL, true);
}

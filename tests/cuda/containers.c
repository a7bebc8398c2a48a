// SPDX-License-Identifier: MIT
/*
 * Two containers: the writer has PID, IPC and mount namespaces of its own, and shares only the host
 * with the reader. docs/cuda.md has the pod for that.
 */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/payload/payload.h"
#include "work.h"

#define STAMP	7

/* The number that Jetson needs is not known here, so the error has it. */
TEST(CUDA_an_unknown_device_file_is_named)
{
	struct xmem_pool *pool;
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK(file >= 0);
	if (!on_kernel()) {
		use_own_daemon();
		CHECK(!setenv("XMEM_DEVICE_FILES", "195:254", 1));
	}
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	SAME(xl_cuda_attach_refused(pool, xl_gpu(0), file, -EMEDIUMTYPE), -EMEDIUMTYPE);
	SAYS(EMEDIUMTYPE, "of /dev/null; add this device, 1:3, to XMEM_DEVICE_FILES");
	close(file);
	if (on_fake() && !on_kernel()) {
		SAME(make_on_gpu(pool, WORK_BYTES, 1, 0, 0), -EMEDIUMTYPE);
		SAYS(EMEDIUMTYPE, "memfd:", "and of no device");
	}
	xmem_pool_close(pool);
	no_violations();
}

/* ---- dma-bufs, as which AMD's driver exports memory ---- */

static int attach_file(struct raw *raw, int file)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .flags = XMEM_ATTACH_CUDA, .fd = file, .stride = 4096,
		.length = 4096, .count = 1, .bytes = 4096, .device = { 7 }, .handle = { 8 },
	};

	return raw_request(raw, XMEM_IOC_ATTACH, &request);
}

static void start_raw(struct raw *raw, const char *files)
{
	if (on_kernel())
		skip("xmem.ko takes no dma-bufs");
	use_own_daemon();
	if (files)
		CHECK(!setenv("XMEM_DEVICE_FILES", files, 1));
	else
		CHECK(!unsetenv("XMEM_DEVICE_FILES"));
	raw_start(raw, new_name(), XMEM_ROLE_WRITER);
}

/* Neither by default, nor with the word for dma-bufs. */
TEST(CUDA_the_daemon_takes_no_memfd_as_a_dma_buf)
{
	int file = new_memfd(4096, 0);
	struct raw raw;

	start_raw(&raw, NULL);
	SAME(attach_file(&raw, file), -EMEDIUMTYPE);
	raw_close(&raw);
	start_raw(&raw, "195:255,dmabuf");
	SAME(attach_file(&raw, file), -EMEDIUMTYPE);
	raw_close(&raw);
	start_raw(&raw, "dmabuf,memfd");
	SAME(attach_file(&raw, file), 0);
	raw_close(&raw);
	close(file);
}

TEST(CUDA_the_daemon_takes_a_dma_buf)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = 4096 };
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), file;
	struct raw raw;

	if (maker < 0)
		skip("no dma-buf can be made here (/dev/udmabuf)");
	create.memfd = new_memfd(4096, F_SEAL_SHRINK);
	file = ioctl(maker, UDMABUF_CREATE, &create);
	CHECK(file >= 0);
	start_raw(&raw, NULL);
	SAME(attach_file(&raw, file), 0);
	raw_close(&raw);
	start_raw(&raw, "195:255,memfd");
	SAME(attach_file(&raw, file), -EMEDIUMTYPE);
	raw_close(&raw);
	close(file);
	close(create.memfd);
	close(maker);
}

struct container {
	char name[32];		/* of the pool */
	uint32_t memory;	/* XMEM_MEMORY_* */
};

static void enter_container(void)
{
	SAME(getpid(), 1);
	SAME(unshare(CLONE_NEWIPC | CLONE_NEWNS), 0);
	SAME(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	SAME(mount("proc", "/proc", "proc", 0, NULL), 0);
}

static void write_inside(const struct container *container)
{
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	struct work work;

	enter_container();
	pool = OPEN(container->name, .flags = XMEM_OPEN_WRITER);
	WORKED(make_on_gpu(pool, WORK_BYTES, 1, 0, container->memory));
	begin_work(&work);
	buffer = cuda_acquire(pool, WORK_BYTES);
	close_gate(&work);
	fill_on(buffer, STAMP, &work);
	WORKED(publish_kept_on(buffer, work.stream));
	tell_parent(xmem_token(buffer));
	hear_parent();
	open_gate(&work);
	hear_parent();
	xmem_release(buffer);
	xmem_pool_close(pool);
}

/* The process that makes a PID namespace is not in it, and can start no more threads. */
static void run_container(void *container)
{
	int status;
	pid_t pid;

	SAME(unshare(CLONE_NEWPID), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		write_inside(container);
		_exit(0);
	}
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
}

struct reader {
	struct child *writer;
	struct xmem_pool *pool;
	struct xmem_buffer *buffer;	/* the writer's stream has not written it yet */
};

static struct reader begin_reader(uint32_t memory)
{
	struct container container = { .memory = memory };
	struct reader reader;

	if (geteuid())
		skip("only root can make these namespaces");
	snprintf(container.name, sizeof(container.name), "%s", new_name());
	/* The host must be running by now: one that the container starts ends with it. */
	reader.pool = OPEN(container.name, .flags = XMEM_OPEN_WRITER);
	reader.writer = spawn(run_container, &container);
	reader.buffer = xmem_get(reader.pool, hear(reader.writer));
	CHECK(reader.buffer);
	return reader;
}

static void end_reader(struct reader *reader)
{
	xmem_release(reader->buffer);
	tell(reader->writer, 1);
	finish_child_of(reader->pool, reader->writer);
	xmem_pool_close(reader->pool);
	no_violations();
}

TEST(CUDA_containers_pass_descriptors_and_the_order_of_streams)
{
	struct reader reader = begin_reader(0);

	SAME(xmem_wait_contents(reader.buffer, 0), -EAGAIN);
	tell(reader.writer, 1);
	WORKED(xmem_wait_contents(reader.buffer, patience_ns()));
	cuda_check(reader.buffer, STAMP);
	end_reader(&reader);
}

/* The driver's error alone (201) does not say what is wrong. */
TEST(CUDA_containers_cannot_pass_handles)
{
	struct reader reader;

	fake_only("a driver of an H200 passes handles between PID namespaces");
	reader = begin_reader(XMEM_MEMORY_LEGACY);

	tell(reader.writer, 1);
	REFUSED(xmem_cuda_ptr(reader.buffer), EINVAL);
	SAYS(EINVAL, "both processes must be in one PID namespace",
	     "XMEM_MEMORY_CUDA without XMEM_MEMORY_LEGACY");
	end_reader(&reader);
}

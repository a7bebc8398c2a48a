// SPDX-License-Identifier: MIT
/*
 * Payloads that are GPU memory, on xmem.ko alone: which files the module takes, and which clients
 * get them. All clients get one open file, the host drops the file while no process waits for that,
 * and a payload is closed at the right time. gpu_ends.c has the ends of clients and processes.
 *
 * Needs xmem_test_gpu.ko: tests/kernel/suites.sh loads it.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "gpu.h"

#define READERS	XMEM_ATTACH_READERS
#define HANDLE	XMEM_ATTACH_HANDLE

static struct raw writer = RAW_NONE, other = RAW_NONE;

static int attach(struct xmem_attach_request *attach)
{
	return raw_request(&writer, XMEM_IOC_ATTACH, attach);
}

static const struct xmem_slot_row *row_of(const struct xmem_attach_request *attach)
{
	return xm_slot_row(&writer.map, attach->slot[0]);
}

static const struct xmem_device_row *device(u32 number)
{
	return xm_device_row(&writer.map, number);
}

/* ---- attach ---- */

static const char *takes_the_three_kinds(void)
{
	struct xmem_attach_request file, handle, pool;
	int fd = gpu_file();

	WANT(fd >= 0);
	file = gpu_attaching(fd, 0, 2, 1, 10);
	WANT(!attach(&file));
	handle = gpu_attaching(-1, HANDLE | READERS, 1, 2, 11);
	WANT(!attach(&handle));
	pool = gpu_attaching(fd, HANDLE, 1, 1, 12);
	WANT(!attach(&pool));
	close(fd);
	WANT(row_of(&file)->traits == (XMEM_TRAIT_CUDA | 1 << XMEM_TRAIT_DEVICE_SHIFT));
	WANT(row_of(&handle)->traits == (XMEM_TRAIT_CUDA | XMEM_TRAIT_HANDLE |
					 XMEM_TRAIT_READERS | 2 << XMEM_TRAIT_DEVICE_SHIFT));
	WANT(row_of(&pool)->traits == (XMEM_TRAIT_CUDA | XMEM_TRAIT_HANDLE |
				       1 << XMEM_TRAIT_DEVICE_SHIFT));
	WANT(row_of(&file)->payload_bytes == GPU_BYTES);
	WANT(device(1)->uuid[0] == 1 && device(1)->uuid[XMEM_UUID_BYTES - 1] == 1);
	WANT(device(1)->bytes == 2 * GPU_BYTES && device(2)->bytes == GPU_BYTES);
	WANT(!device(3)->uuid[0] && !device(1)->closing_bytes);
	WANT(!writer.map.pool->payload_bytes && writer.map.pool->payloads == 3);
	return NULL;
}

static const char *more_slots_by_id(void)
{
	struct xmem_attach_request first, more = raw_attaching(-1, 3);

	WANT(!gpu_attach(&writer, 0, &first));
	more.payload = first.payload;
	more.offset = RAW_PAGE;
	WANT(!attach(&more));
	WANT(row_of(&more)->traits == row_of(&first)->traits);
	more = raw_attaching(-1, 1);
	more.payload = first.payload;
	more.flags = XMEM_ATTACH_CUDA;
	WANT(attach(&more) == -EINVAL);
	more.flags = 0;
	more.offset = GPU_BYTES;
	WANT(attach(&more) == -ERANGE);
	WANT(!gpu_detach(&writer, first.slot[0]));
	WANT(EVENTUALLY(!gpu_number("files")));
	return NULL;
}

static int attach_fd(int fd)
{
	struct xmem_attach_request request = gpu_attaching(fd, 0, 1, 1, 1);
	int err = fd < 0 ? -EBADF : attach(&request);

	if (fd >= 0)
		close(fd);
	return err;
}

static const char *refuses_other_files(void)
{
	struct xmem_attach_request plain;
	int pair[2], fd = gpu_file();

	WANT(attach_fd(raw_memfd(16, 0)) == -EMEDIUMTYPE);
	WANT(attach_fd(open("/dev/zero", O_RDWR)) == -EMEDIUMTYPE);
	WANT(attach_fd(open(XMEM_TEST_GPU_OTHER, O_RDWR)) == -EMEDIUMTYPE);
	WANT(attach_fd(open("/", O_RDONLY)) == -EMEDIUMTYPE);
	WANT(attach_fd(eventfd(0, 0)) == -EMEDIUMTYPE);
	WANT(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	close(pair[1]);
	WANT(attach_fd(pair[0]) == -EMEDIUMTYPE);
	/* Not even the kernel opens that: fget refuses it. */
	WANT(attach_fd(open(XMEM_TEST_GPU_DEVICE, O_PATH)) == -EBADF);
	plain = raw_attaching(fd, 1);
	WANT(attach(&plain) == -EMEDIUMTYPE);
	close(fd);
	WANT(EVENTUALLY(!gpu_number("files")));
	WANT(!device(1)->uuid[0] && !writer.map.pool->payloads);
	return NULL;
}

/* A client's file is no device. One of /dev/xmem is: it would keep the module and the payer. */
static const char *refuses_its_own_files_though_listed(void)
{
	struct xmem_pool_fd_request pool_fd = { .size = sizeof(pool_fd) };
	int device = open("/dev/xmem", O_RDWR | O_CLOEXEC);
	struct stat info;
	char list[64];

	WANT(!fstat(device, &info) && S_ISCHR(info.st_mode));
	snprintf(list, sizeof(list), "%u:%u,240:255", major(info.st_rdev), minor(info.st_rdev));
	WANT(!xmem_set("device_files", list));
	WANT(attach_fd(device) == -EMEDIUMTYPE);
	WANT(attach_fd(dup(writer.file)) == -EMEDIUMTYPE);
	WANT(!raw_request(&writer, XMEM_IOC_POOL_FD, &pool_fd));
	WANT(attach_fd(pool_fd.fd) == -EMEDIUMTYPE);
	WANT(!xmem_set("device_files", "240:255\n"));
	return NULL;
}

static const char *takes_only_what_is_listed(void)
{
	static const char *const wrong[] = {
		"195:*", "195", "195:255,", ",", "195:255 240:255", "x:1", "1:x", "-1:1", "4096:1",
		"1:1048576", "1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8,1:9,1:10,1:11,1:12,1:13,1:14,1:15,"
		"1:16,1:17",
	};
	unsigned int i;
	char text[64] = "";
	int file;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		WANT(xmem_set("device_files", wrong[i]) < 0);
	WANT(!xmem_set("device_files", "195:255,240:255"));
	file = open("/sys/module/xmem/parameters/device_files", O_RDONLY | O_CLOEXEC);
	WANT(read(file, text, sizeof(text) - 1) > 0 && !strcmp(text, "195:255,240:255\n"));
	close(file);
	WANT(!xmem_set("device_files", "195:255"));
	WANT(attach_fd(gpu_file()) == -EMEDIUMTYPE);
	WANT(!xmem_set("device_files", "\n"));
	WANT(attach_fd(gpu_file()) == -EMEDIUMTYPE);
	WANT(!xmem_set("device_files", "240:255"));
	WANT(!attach_fd(gpu_file()));
	return NULL;
}

static const char *refuses_wrong_fields(void)
{
	struct xmem_attach_request good = gpu_attaching(gpu_file(), 0, 1, 1, 1), bad;

	WANT(good.fd >= 0);
#define BAD(...) ({ bad = good; __VA_ARGS__; attach(&bad); })
	WANT(BAD(bad.bytes = 0) == -EINVAL);
	WANT(BAD(bad.bytes = XMEM_MAX_DEVICE_BYTES + 1) == -EINVAL);
	WANT(BAD(bad.bytes = ~0ULL) == -EINVAL);
	WANT(BAD(bad.bytes = RAW_PAGE - 1) == -ERANGE);
	WANT(BAD(memset(bad.device, 0, sizeof(bad.device))) == -EINVAL);
	WANT(BAD(memset(bad.handle, 0, sizeof(bad.handle))) == -EINVAL);
	WANT(BAD(bad.fd = -1) == -EINVAL);
	WANT(BAD(bad.fd = -2; bad.flags |= HANDLE) == -EINVAL);
	WANT(BAD(bad.fd = 1 << 20) == -EBADF);
	WANT(BAD(bad.flags |= HANDLE | XMEM_ATTACH_SHARED) == -EINVAL);
	WANT(BAD(bad.flags = READERS) == -EINVAL);
	WANT(BAD(bad.flags = HANDLE) == -EINVAL);
	WANT(BAD(bad.flags |= 1u << 5) == -EINVAL);
	WANT(BAD(bad.size = XMEM_ATTACH_MIN) == -EINVAL);
	WANT(!writer.map.pool->payloads && !device(1)->uuid[0]);
	WANT(!BAD(bad.flags |= XMEM_ATTACH_SHARED));
	WANT(row_of(&bad)->traits & XMEM_TRAIT_SHARED);
	close(good.fd);
	return NULL;
}

/* ---- limits ---- */

#define USER	30000u		/* the writer's; limits of a user do not bind root */

/* From now on the writer is a client of that user, who may have so many payloads. */
static const char *limit_the_writer(const char *files)
{
	struct xmem_pool_fd_request pool = { .size = sizeof(pool) };
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);

	WANT(!raw_request(&other, XMEM_IOC_POOL_FD, &pool));
	join.flags = XMEM_JOIN_FD;
	join.pool_fd = pool.fd;
	join.slots = join.clients = join.ring_entries = 0;
	raw_end(&writer);
	WANT(!chmod(RAW_DEVICE, 0666) && !xmem_set("user_max_files", files) && !seteuid(USER));
	WANT(!raw_start(&writer, &join) && !seteuid(0));
	close(pool.fd);
	return NULL;
}

static const char *counts_for_its_user(void)
{
	struct xmem_attach_request first, second, third;
	const char *wrong = limit_the_writer("2");

	if (wrong)
		return wrong;
	WANT(!gpu_attach(&writer, READERS, &first) && !gpu_attach(&writer, 0, &second));
	WANT(gpu_attach(&writer, 0, &third) == -EDQUOT);
	WANT(EVENTUALLY(gpu_number("files") == 2));
	WANT(EVENTUALLY(!strcmp(pool_says("device_files"), "2")));
	/* A payload that is closing counts, because it takes memory. */
	close(gpu_open(&other, first.payload));
	WANT(!gpu_detach(&writer, first.slot[0]));
	WANT(EVENTUALLY(gpu_number("files") == 1));
	WANT(gpu_attach(&writer, 0, &third) == -EDQUOT);
	WANT(!gpu_close(&other, first.payload));
	WANT(EVENTUALLY(!gpu_attach(&writer, 0, &third)));
	return NULL;
}

/* Else a client could attach and detach, and leave any number of files to be released. */
static const char *file_counts_until_it_is_released(void)
{
	struct xmem_attach_request first, second, third = gpu_attaching(gpu_file(), 0, 1, 1, 3);
	struct xmem_attach_request handle = gpu_attaching(-1, HANDLE, 1, 1, 4);
	const char *wrong = limit_the_writer("2");

	if (wrong)
		return wrong;
	WANT(third.fd >= 0 && gpu_set("gate", "1"));
	WANT(!gpu_attach(&writer, 0, &first) && !gpu_attach(&writer, 0, &second));
	WANT(!gpu_detach(&writer, first.slot[0]) && !gpu_detach(&writer, second.slot[0]));
	WANT(attach(&third) == -EDQUOT && attach(&handle) == -EDQUOT);
	WANT(EVENTUALLY(!strcmp(pool_says("device_files"), "0")));
	WANT(gpu_set("gate", "0") && EVENTUALLY(!attach(&third)));
	WANT(EVENTUALLY(!strcmp(pool_says("device_files"), "1")));
	close(third.fd);
	return NULL;
}

/* Else a client could make one pool after the other, and leave any number of files. */
static const char *file_counts_after_its_pool(void)
{
	struct xmem_attach_request gpu, next = gpu_attaching(gpu_file(), 0, 1, 1, 3);
	const char *wrong = limit_the_writer("1");

	if (wrong)
		return wrong;
	WANT(next.fd >= 0 && !gpu_attach(&writer, 0, &gpu) && gpu_set("gate", "1"));
	raw_end(&other);
	raw_end(&writer);
	WANT(!raw_pool_exists(GPU_NAME) && !raw_pools_shown(0));
	WANT(!gpu_start(&other, XMEM_ROLE_READER));
	wrong = limit_the_writer("1");
	if (wrong)
		return wrong;
	WANT(attach(&next) == -EDQUOT);
	WANT(gpu_set("gate", "0") && EVENTUALLY(!attach(&next)));
	close(next.fd);
	return NULL;
}

/* A device stays in the table as long as it has a payload. */
static const char *table_of_devices_fills_up(void)
{
	struct xmem_attach_request request[XMEM_MAX_DEVICES], more[2];
	int fd = gpu_file();
	unsigned char i;

	for (i = 0; i < XMEM_MAX_DEVICES; i++) {
		request[i] = gpu_attaching(fd, 0, 1, i + 1, 1);
		WANT(!attach(&request[i]));
		WANT(xm_device(row_of(&request[i])->traits) == (u32)i + 1);
	}
	more[0] = gpu_attaching(fd, 0, 1, i + 1, 1);
	WANT(attach(&more[0]) == -EDQUOT);
	more[1] = gpu_attaching(fd, 0, 1, 5, 1);
	WANT(!attach(&more[1]) && xm_device(row_of(&more[1])->traits) == 5);
	WANT(!gpu_detach(&writer, request[4].slot[0]) && attach(&more[0]) == -EDQUOT);
	WANT(!gpu_detach(&writer, more[1].slot[0]));
	WANT(EVENTUALLY(!xm_load(&device(5)->bytes)));
	WANT(!attach(&more[0]) && xm_device(row_of(&more[0])->traits) == 5);
	close(fd);
	return NULL;
}

/* ---- open and close ---- */

static bool is_same_file(int a, int b)
{
	return !syscall(SYS_kcmp, getpid(), getpid(), 0 /* KCMP_FILE */, a, b);
}

static const char *all_get_the_same_file(void)
{
	int fd = gpu_file(), one, two;
	struct xmem_attach_request request = gpu_attaching(fd, 0, 1, 1, 0x42);
	struct xmem_payload_request answer;
	char *mine, *theirs;

	WANT(fd >= 0 && !attach(&request));
	one = gpu_open(&writer, request.payload);
	WANT(one >= 0 && is_same_file(fd, one));
	WANT(fcntl(one, F_GETFD) == FD_CLOEXEC);
	WANT(!gpu_ask(&writer, request.payload, XMEM_PAYLOAD_OPEN, &answer));
	two = answer.fd;
	WANT(two >= 0 && two != one && is_same_file(fd, two));
	WANT(answer.bytes == GPU_BYTES && answer.traits == row_of(&request)->traits);
	WANT(!memcmp(answer.handle, request.handle, sizeof(answer.handle)));
	WANT(!memcmp(answer.device, request.device, sizeof(answer.device)));
	mine = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	theirs = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, two, 0);
	WANT(mine != MAP_FAILED && theirs != MAP_FAILED);
	memset(mine, 0x5a, GPU_BYTES);
	WANT(theirs[0] == 0x5a && theirs[GPU_BYTES - 1] == 0x5a);
	munmap(mine, GPU_BYTES);
	munmap(theirs, GPU_BYTES);
	close(one);
	close(two);
	close(fd);
	WANT(!gpu_close(&writer, request.payload));
	return NULL;
}

static const char *who_may_open(void)
{
	struct xmem_attach_request plain, readers, file = raw_attaching(raw_memfd(1, 0), 1);
	struct xmem_payload_request answer;
	struct raw reader = other;
	int fd;

	WANT(!gpu_attach(&writer, 0, &plain) && !gpu_attach(&writer, READERS, &readers));
	WANT(!attach(&file));
	close(file.fd);
	WANT(gpu_open(&reader, plain.payload) == -EACCES - 1);
	WANT(gpu_query(&reader, plain.payload) == -EACCES);
	fd = gpu_open(&reader, readers.payload);
	WANT(fd >= 0);
	close(fd);
	/* Without OPEN the answer has neither a descriptor nor a handle. */
	WANT(!gpu_ask(&reader, readers.payload, 0, &answer) && answer.fd == -1);
	WANT(!answer.handle[0] && answer.device[0] == 1 && answer.bytes == GPU_BYTES);
	WANT(gpu_ask(&reader, readers.payload, XMEM_PAYLOAD_WRITE, &answer) == -EMEDIUMTYPE);
	WANT(gpu_ask(&reader, readers.payload, XMEM_PAYLOAD_OPEN | XMEM_PAYLOAD_CLOSE, &answer) ==
	     -EINVAL);
	WANT(gpu_open(&writer, file.payload) == -EMEDIUMTYPE - 1);
	WANT(gpu_close(&writer, file.payload) == -EMEDIUMTYPE);
	WANT(gpu_open(&writer, 4711) == -ENOENT - 1);
	WANT(gpu_close(&writer, readers.payload) == -ENOENT);
	WANT(!gpu_close(&reader, readers.payload));
	WANT(gpu_close(&reader, readers.payload) == -ENOENT);
	return NULL;
}

static const char *handle_without_file(void)
{
	struct xmem_attach_request request = gpu_attaching(-1, HANDLE | READERS, 1, 1, 0x33);
	struct xmem_payload_request answer;

	WANT(!attach(&request));
	WANT(!gpu_ask(&other, request.payload, XMEM_PAYLOAD_OPEN, &answer));
	WANT(answer.fd == -1 && answer.handle[0] == 0x33 && answer.handle[63] == 0x33);
	WANT(answer.traits & XMEM_TRAIT_HANDLE);
	WANT(!gpu_detach(&writer, request.slot[0]));
	WANT(gpu_query(&writer, request.payload) == -EBUSY);
	WANT(!gpu_close(&other, request.payload));
	WANT(gpu_query(&writer, request.payload) == -ENOENT);
	return NULL;
}

static int arm_slots(u32 *value)
{
	struct xmem_wait_request wait = {
		.size = sizeof(wait), .kind = XMEM_WAIT_SLOTS, .client = writer.join.client,
	};
	int err = raw_wait(&writer, XMEM_OP_ARM, &wait);

	*value = wait.value;
	return err;
}

static const char *closing_until_all_have_closed(void)
{
	struct xmem_attach_request request;
	u64 gone = writer.map.pool->payloads_gone, closed = writer.map.pool->payloads_closed;
	u32 *word, value;
	int fd;

	WANT(!gpu_attach(&writer, READERS, &request));
	fd = gpu_open(&other, request.payload);
	WANT(fd >= 0 && !gpu_query(&writer, request.payload));
	WANT(!gpu_detach(&writer, request.slot[0]));
	WANT(writer.map.pool->payloads_gone == gone + 1);
	WANT(writer.map.pool->payloads_closed == closed && !writer.map.pool->payloads);
	WANT(device(1)->bytes == GPU_BYTES && device(1)->closing_bytes == GPU_BYTES);
	WANT(gpu_query(&writer, request.payload) == -EBUSY);
	WANT(gpu_query(&other, request.payload) == -EBUSY);
	WANT(gpu_open(&other, request.payload) == -ENOENT - 1);
	/* The host has dropped the file; the opener still has it. */
	WANT(gpu_number("files") == 1);
	close(fd);
	WANT(EVENTUALLY(!gpu_number("files")));
	WANT(gpu_query(&writer, request.payload) == -EBUSY);
	WANT(!arm_slots(&value));
	WANT(!gpu_close(&other, request.payload));
	word = &xm_client_row(&writer.map, writer.join.client)->slots_waiters;
	WANT(!xm_still_armed(word, value));
	WANT(writer.map.pool->payloads_closed == closed + 1);
	WANT(!device(1)->bytes && !device(1)->closing_bytes);
	WANT(gpu_query(&writer, request.payload) == -ENOENT);
	return NULL;
}

/* A client that has not got the answer has nothing open. */
static const char *unanswered_is_not_open(void)
{
	struct rlimit before, none = { 0, 0 };
	struct xmem_attach_request request;
	struct xmem_payload_request answer;
	struct raw elsewhere;
	u64 closed = writer.map.pool->payloads_closed;
	int err, fd;

	WANT(!gpu_attach(&writer, READERS, &request));
	WANT(!getrlimit(RLIMIT_NOFILE, &before));
	none.rlim_max = before.rlim_max;
	WANT(!setrlimit(RLIMIT_NOFILE, &none));
	err = gpu_ask(&other, request.payload, XMEM_PAYLOAD_OPEN, &answer);
	WANT(!setrlimit(RLIMIT_NOFILE, &before) && err == -EMFILE);
	WANT(gpu_close(&other, request.payload) == -ENOENT);
	/* But a payload that it had open before stays open. */
	fd = gpu_open(&other, request.payload);
	WANT(fd >= 0 && !setrlimit(RLIMIT_NOFILE, &none));
	err = gpu_ask(&other, request.payload, XMEM_PAYLOAD_OPEN, &answer);
	WANT(!setrlimit(RLIMIT_NOFILE, &before) && err == -EMFILE);
	close(fd);
	WANT(!gpu_detach(&writer, request.slot[0]));
	WANT(gpu_query(&writer, request.payload) == -EBUSY);
	WANT(!gpu_close(&other, request.payload));
	WANT(writer.map.pool->payloads_closed == closed + 1);
	/* The host could not notice the end of a client that has not mapped its area. */
	WANT(!gpu_attach(&writer, READERS, &request) && !raw_open(&elsewhere));
	elsewhere.join = raw_joining(GPU_NAME, XMEM_ROLE_WRITER);
	WANT(!raw_join(&elsewhere, &elsewhere.join));
	WANT(gpu_open(&elsewhere, request.payload) == -ENOTCONN - 1);
	raw_end(&elsewhere);
	return NULL;
}

#define MANY_TIMES	20000

/* In a kid: others open and close the payload all the time. */
static const char *open_and_close(void *argument)
{
	const struct xmem_attach_request *attached = argument;
	struct raw raw = RAW_NONE;
	u32 i;

	WANT(!gpu_start(&raw, XMEM_ROLE_WRITER));
	for (i = 0; i < MANY_TIMES; i++) {
		int fd = gpu_open(&raw, attached->payload);

		WANT(fd >= 0 && !gpu_close(&raw, attached->payload));
		close(fd);
		if (!i)
			kid_pause();
	}
	raw_end(&raw);
	return NULL;
}

static const char *unanswered_is_not_open_when_others_open(void)
{
	struct rlimit before, none = { 0, 0 };
	struct xmem_attach_request request;
	struct xmem_payload_request answer;
	struct kid kid;
	u32 i, unasked = 0, open = 0;

	WANT(!gpu_attach(&writer, 0, &request));
	WANT(!kid_start(&kid, open_and_close, &request));
	WANT(!getrlimit(RLIMIT_NOFILE, &before));
	none.rlim_max = before.rlim_max;
	WANT(!setrlimit(RLIMIT_NOFILE, &none));
	kid_go_on(&kid);
	for (i = 0; i < MANY_TIMES; i++) {
		unasked += gpu_ask(&writer, request.payload, XMEM_PAYLOAD_OPEN, &answer) != -EMFILE;
		open += gpu_close(&writer, request.payload) != -ENOENT;
	}
	WANT(!setrlimit(RLIMIT_NOFILE, &before));
	WANT(!kid_ready(&kid));
	kid_go_on(&kid);
	kid_reap(&kid);
	WANT(!unasked && !open);
	return NULL;
}

/* ---- slow releases ---- */

static long shmem_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Shmem: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

#define MEMFD_PAGES	4096
#define SLOW		300	/* more than one work queue runs at a time */

/*
 * Releases that do not end delay neither this process nor memfds, of this pool and of others: the
 * process that detaches a memfd drops it, and a work item drops what an ended client has left.
 */
static const char *slow_release_delays_nobody(void)
{
	struct xmem_join_request join = raw_joining("gpu-beside", XMEM_ROLE_WRITER);
	struct xmem_attach_request gpu, own = raw_attaching(raw_memfd(MEMFD_PAGES, 1), 1);
	struct xmem_attach_request file = raw_attaching(raw_memfd(MEMFD_PAGES, 1), 1);
	struct xmem_attach_request left = raw_attaching(raw_memfd(MEMFD_PAGES, 1), 1);
	long before = shmem_kib(), released = gpu_number("released");
	static struct raw beside;
	unsigned int i;

	WANT(!raw_start(&beside, &join) && !raw_request(&beside, XMEM_IOC_ATTACH, &file));
	WANT(!attach(&own) && !attach(&left) && gpu_set("gate", "1"));
	close(own.fd);
	close(left.fd);
	close(file.fd);
	for (i = 0; i < SLOW; i++)
		WANT(!gpu_attach(&writer, 0, &gpu) && !gpu_detach(&writer, gpu.slot[0]));
	WANT(!gpu_attach(&writer, 0, &gpu));
	WANT(EVENTUALLY(gpu_number("releasing") > 0));
	WANT(!gpu_detach(&writer, own.slot[0]) && !gpu_detach(&beside, file.slot[0]));
	WANT(shmem_kib() < before - MEMFD_PAGES * 4 * 3 / 2);
	WANT(shmem_kib() > before - MEMFD_PAGES * 4 * 5 / 2);
	raw_end(&beside);
	/* A client with GPU memory ends, and with it the pool. */
	raw_end(&other);
	raw_end(&writer);
	WANT(!raw_pool_exists(GPU_NAME));
	WANT(EVENTUALLY(shmem_kib() < before - MEMFD_PAGES * 4 * 5 / 2));
	WANT(gpu_number("released") == released && gpu_number("files") == SLOW + 1);
	WANT(gpu_set("release_ms", "0") && gpu_set("gate", "0"));
	WANT(EVENTUALLY(!gpu_number("files")) && gpu_set("release_ms", "20"));
	return NULL;
}

#define POOLS	12
#define FILES	3	/* in each pool */

static struct raw others[POOLS];

/* The releases of others' files do not end; the release of the writer's file can. */
static const char *release_beside_others(void)
{
	int fd = open(XMEM_TEST_GPU_OTHER, O_RDWR | O_CLOEXEC);
	struct xmem_attach_request request = gpu_attaching(fd, 0, 1, 1, 1);
	u64 bytes = GPU_BYTES;
	unsigned int i;
	char *start;

	WANT(fd >= 0 && !ioctl(fd, XMEM_TEST_GPU_SET_BYTES, &bytes));
	start = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	WANT(start != MAP_FAILED);
	memset(start, 1, GPU_BYTES);
	munmap(start, GPU_BYTES);
	WANT(!attach(&request));
	close(fd);
	for (i = 0; i < POOLS * FILES; i++) {
		struct xmem_attach_request file;
		const struct raw *raw = &others[i / FILES];

		WANT(!gpu_attach(raw, 0, &file) && !gpu_detach(raw, file.slot[0]));
	}
	WANT(gpu_number("pages") == GPU_BYTES / RAW_PAGE);
	WANT(!gpu_detach(&writer, request.slot[0]));
	WANT(EVENTUALLY(!gpu_number("pages")));
	WANT(EVENTUALLY(gpu_number("files") == POOLS * FILES));
	/* A pool releases one file at a time. */
	WANT(EVENTUALLY(gpu_number("releasing") == POOLS));
	return NULL;
}

static const char *backlog_delays_no_other_pool(void)
{
	const char *wrong = NULL;
	unsigned int i;

	WANT(!xmem_set("device_files", "240:255,240:0") && gpu_set("gate", "2"));
	for (i = 0; i < POOLS; i++) {
		char name[16];
		struct xmem_join_request join;

		snprintf(name, sizeof(name), "gpu-%u", i);
		join = raw_joining(name, XMEM_ROLE_WRITER);
		if (raw_start(&others[i], &join))
			wrong = "a pool cannot be made";
	}
	if (!wrong)
		wrong = release_beside_others();
	for (i = 0; i < POOLS; i++)
		raw_end(&others[i]);
	WANT(gpu_set("gate", "0") && !xmem_set("device_files", "240:255"));
	return wrong;
}

/* ---- sysfs and the table ---- */

static const char *pool_says_what_it_is(void)
{
	struct xmem_attach_request request, file = raw_attaching(raw_memfd(1, 0), 1);
	const struct xmem_device_row *gpu = device(1);
	struct shown_slot slot;
	const char *pool;

	WANT(EVENTUALLY((pool = pool_folder())[0]));
	WANT(!gpu_attach(&writer, READERS, &request) && !attach(&file));
	close(file.fd);
	slot = shown_slot(pool, request.slot[0]);
	WANT(slot.traits & XMEM_TRAIT_CUDA && xm_device(slot.traits) == 1);
	slot = shown_slot(pool, file.slot[0]);
	WANT(slot.length && !(slot.traits & XMEM_TRAIT_CUDA) && !xm_device(slot.traits));
	WANT(gpu->uuid[0] == 1 &&
	     !memcmp(gpu->uuid, gpu->uuid + 1, XMEM_UUID_BYTES - 1));
	WANT(xm_load(&gpu->bytes) == 65536 && !xm_load(&gpu->closing_bytes));
	WANT(!device(2)->uuid[0]);
	close(gpu_open(&other, request.payload));
	WANT(!gpu_detach(&writer, request.slot[0]));
	WANT(xm_load(&gpu->closing_bytes) == 65536);
	WANT(!strcmp(pool_says("device_files"), "1"));
	WANT(!gpu_close(&other, request.payload));
	WANT(EVENTUALLY(!strcmp(pool_says("device_files"), "0")));
	WANT(!xm_load(&gpu->bytes));
	return NULL;
}

/* ---- main ---- */

static const struct gpu_test tests[] = {
	{ "takes the three kinds", takes_the_three_kinds },
	{ "more slots by id", more_slots_by_id },
	{ "refuses other files", refuses_other_files },
	{ "refuses its own files though listed", refuses_its_own_files_though_listed },
	{ "takes only what is listed", takes_only_what_is_listed },
	{ "refuses wrong fields", refuses_wrong_fields },
	{ "counts for its user", counts_for_its_user },
	{ "file counts until it is released", file_counts_until_it_is_released },
	{ "file counts after its pool", file_counts_after_its_pool },
	{ "table of devices fills up", table_of_devices_fills_up },
	{ "all get the same file", all_get_the_same_file },
	{ "who may open", who_may_open },
	{ "handle without file", handle_without_file },
	{ "closing until all have closed", closing_until_all_have_closed },
	{ "unanswered is not open", unanswered_is_not_open },
	{ "unanswered is not open when others open it", unanswered_is_not_open_when_others_open },
	{ "pool says what it is", pool_says_what_it_is },
	{ "slow release delays nobody", slow_release_delays_nobody },
	{ "backlog delays no other pool", backlog_delays_no_other_pool },
	{ NULL, NULL },
};

/* Each test has a new pool, a writer and a reader. All that it leaves must go with them. */
static const char *run(const struct gpu_test *test)
{
	const char *wrong;

	WANT(!gpu_start(&writer, XMEM_ROLE_WRITER) && !gpu_start(&other, XMEM_ROLE_READER));
	wrong = test->run();
	gpu_set("gate", "0");
	xmem_set("user_max_files", "16384");
	raw_end(&other);
	raw_end(&writer);
	if (wrong)
		return wrong;
	WANT(EVENTUALLY(!gpu_number("files")) && !gpu_number("pages"));
	WANT(!raw_pool_exists(GPU_NAME) && !raw_pools_shown(0));
	return NULL;
}

/* Else files that a failed test has left would make all later tests fail. */
static void close_from(int first)
{
	if (first >= 0)
		close_range(first, ~0U, 0);
}

static void run_all(const struct gpu_test *test, const char *(*how)(const struct gpu_test *),
		    const char *only)
{
	unsigned int descriptors = raw_descriptors();
	int first = dup(STDERR_FILENO);

	close(first);

	for (; test->name; test++) {
		const char *wrong;

		if (only && !strstr(test->name, only))
			continue;
		wrong = how(test);
		if (!wrong && raw_descriptors() != descriptors)
			wrong = "descriptors are left open";
		if (wrong) {
			fail(test->name, "%s", wrong);
			close_from(first);
		} else {
			pass(test->name, "all as wanted");
		}
	}
}

/* These start their clients themselves. */
static const char *run_ends(const struct gpu_test *test)
{
	const char *wrong = test->run();

	gpu_set("gate", "0");
	if (wrong) {
		gpu_ends_clean_up();
		gpu_dmabufs_clean_up();
		return wrong;
	}
	WANT(EVENTUALLY(!gpu_number("files")) && !gpu_number("pages"));
	WANT(EVENTUALLY(!raw_pool_exists(GPU_NAME)) && !raw_pools_shown(0));
	return NULL;
}

static int leave_files(unsigned int count)
{
	struct xmem_attach_request request;
	int err = 0;

	while (count-- && !err)
		err = gpu_attach(&writer, 0, &request);
	return err;
}

/* gpu-payloads [WORDS]: runs all tests, or those whose name contains these words */
int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;

	if (access(XMEM_TEST_GPU_DEVICE, R_OK | W_OK)) {
		skip(GPU_NAME, "no " XMEM_TEST_GPU_DEVICE ": xmem_test_gpu.ko is not loaded");
		return summary();
	}
	if (xmem_set("device_files", "240:255")) {
		fail(GPU_NAME, "device_files cannot be set");
		return summary();
	}
	run_all(tests, run, only);
	run_all(gpu_ends_tests, run_ends, only);
	run_all(gpu_dmabufs_tests, run_ends, only);
	/* When xmem.ko is unloaded, it waits for releases that are under way or pending. */
	gpu_set("release_ms", "500");
	if (gpu_start(&writer, XMEM_ROLE_WRITER) || leave_files(3))
		fail("leaves files to be released", "no client or no file");
	return summary();
}

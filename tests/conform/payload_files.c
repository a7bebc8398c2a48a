// SPDX-License-Identifier: MIT
/*
 * Which files can be payloads, and where slots can lie in them. P6 and P7 need this: the host takes
 * only sealed memfds that are allocated whole.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "harness.h"

#define BYTES	4096

static struct raw raw;

static void scene_start(void)
{
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
}

static void scene_end(void)
{
	uint32_t slot;

	/* The refused attach leaves nothing behind. */
	for (slot = 0; slot < raw.map.slots; slot++)
		SAME(xm_load(&xm_slot_row(&raw.map, slot)->owner), XMEM_OWNER_NONE);
	raw_close(&raw);
}

static void refused_file(int file, int want)
{
	unsigned int files = open_files();
	int err = raw_attach(&raw, file, 1, NULL);

	if (err != want)
		FAIL("attach: %d and not %d", err, want);
	SAME(open_files(), files);
}

/* ---- seals ---- */

TEST(P6_a_payload_without_all_seals_is_ENOEXEC)
{
	static const unsigned int too_few[] = {
		0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE, F_SEAL_WRITE, F_SEAL_SEAL,
		F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE,
		F_SEAL_GROW | F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK | F_SEAL_WRITE,
		F_SEAL_GROW | F_SEAL_WRITE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	};
	unsigned int i;

	scene_start();
	for (i = 0; i < sizeof(too_few) / sizeof(*too_few); i++) {
		int file = new_memfd(BYTES, too_few[i]);

		refused_file(file, -ENOEXEC);
		close(file);
	}
	scene_end();
}

/* A client that follows all writers would map it ahead, and fail. */
TEST(P6_a_payload_that_nobody_can_read_is_EACCES)
{
	int file = new_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE), blind;
	char path[32];

	scene_start();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	blind = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(blind >= 0);
	refused_file(blind, -EACCES);
	close(blind);
	close(file);
	scene_end();
}

TEST(P6_a_payload_with_all_seals_is_taken)
{
	static const unsigned int enough[] = {
		GOOD_SEALS, GOOD_SEALS | F_SEAL_SEAL, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
		GOOD_SEALS | F_SEAL_WRITE,
	};
	struct xmem_attach_request attach;
	unsigned int i;

	scene_start();
	for (i = 0; i < sizeof(enough) / sizeof(*enough); i++) {
		int file = new_memfd(BYTES, enough[i]);

		SAME(raw_attach(&raw, file, 1, &attach), 0);
		close(file);
		SAME(raw_slot(&raw, XMEM_OP_DETACH, attach.slot[0]), 0);
	}
	scene_end();
}

TEST(P6_a_memfd_that_cannot_be_sealed_is_ENOEXEC)
{
	int file = memfd_create("conform", MFD_CLOEXEC);

	CHECK(file >= 0 && !posix_fallocate(file, 0, BYTES));
	scene_start();
	refused_file(file, -ENOEXEC);
	scene_end();
	close(file);
}

/* ---- not a memfd ---- */

static void refused_path(const char *path, int flags)
{
	int file = open(path, flags | O_CLOEXEC, 0600);

	if (file < 0)
		FAIL("%s: %s", path, strerror(errno));
	scene_start();
	refused_file(file, -EMEDIUMTYPE);
	scene_end();
	close(file);
}

TEST(P7_a_device_is_no_payload)
{
	refused_path("/dev/zero", O_RDWR);
	refused_path("/dev/null", O_RDONLY);
}

TEST(P7_a_directory_is_no_payload)
{
	refused_path("/", O_RDONLY | O_DIRECTORY);
	refused_path("/proc/self", O_RDONLY | O_DIRECTORY);
}

TEST(P7_a_file_of_a_disk_is_no_payload)
{
	refused_path("/proc/self/exe", O_RDONLY);
	refused_path("/proc/self/maps", O_RDONLY);
}

TEST(P7_a_file_of_a_tmpfs_is_no_payload)
{
	char path[] = "/dev/shm/conform.XXXXXX";
	int file = mkostemp(path, O_CLOEXEC), err;

	if (file < 0)
		skip("/dev/shm: %s", strerror(errno));
	unlink(path);
	CHECK(!posix_fallocate(file, 0, BYTES));
	scene_start();
	/* It is shmem as a memfd is, but it cannot have the seals. */
	err = raw_attach(&raw, file, 1, NULL);
	CHECK(err == -ENOEXEC || err == -EMEDIUMTYPE);
	scene_end();
	close(file);
}

TEST(P7_a_pipe_is_no_payload)
{
	int pipes[2];

	CHECK(!pipe2(pipes, O_CLOEXEC));
	scene_start();
	refused_file(pipes[0], -EMEDIUMTYPE);
	refused_file(pipes[1], -EMEDIUMTYPE);
	scene_end();
	close(pipes[0]);
	close(pipes[1]);
}

TEST(P7_a_socket_is_no_payload)
{
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	scene_start();
	refused_file(pair[0], -EMEDIUMTYPE);
	scene_end();
	close(pair[0]);
	close(pair[1]);
}

TEST(P7_an_anonymous_inode_is_no_payload)
{
	int file[2] = { eventfd(0, EFD_CLOEXEC), epoll_create1(EPOLL_CLOEXEC) };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		CHECK(file[i] >= 0);
		scene_start();
		refused_file(file[i], -EMEDIUMTYPE);
		scene_end();
		close(file[i]);
	}
}

/* These would make cycles: a pool that keeps itself alive. */
TEST(P7_our_own_files_are_no_payload)
{
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	struct raw other;

	scene_start();
	raw_open(&other);
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &request), 0);
	/* The daemon's file is a memfd, and it is empty. */
	refused_file(request.fd, on_kernel() ? -EMEDIUMTYPE : -ERANGE);
	refused_file(raw.link.file, -EMEDIUMTYPE);
	refused_file(other.link.file, -EMEDIUMTYPE);
	close(request.fd);
	raw_close(&other);
	scene_end();
}

TEST(P4_a_descriptor_that_is_not_open_is_EBADF)
{
	int file = new_memfd(BYTES, GOOD_SEALS), path;

	scene_start();
	refused_file(900, -EBADF);
	refused_file(0x7fffffff, -EBADF);
	SAME(raw_attach(&raw, -1, 1, NULL), -EINVAL);	/* no file, and no payload named either */
	if (on_kernel()) {	/* processes differ in what they take an O_PATH descriptor for */
		char name[40];

		snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
		path = open(name, O_PATH | O_CLOEXEC);
		CHECK(path >= 0);
		refused_file(path, -EBADF);
		close(path);
	}
	scene_end();
	close(file);
}

/* ---- holes, and places outside ---- */

TEST(P7_a_sparse_memfd_is_ERANGE)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t page = page_size();

	CHECK(file >= 0 && !ftruncate(file, 64 * page));
	CHECK(!fcntl(file, F_ADD_SEALS, GOOD_SEALS));
	scene_start();
	refused_file(file, -ERANGE);
	scene_end();
	close(file);

	file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(file >= 0 && !ftruncate(file, 64 * page) && !posix_fallocate(file, 0, 63 * page));
	CHECK(!fcntl(file, F_ADD_SEALS, GOOD_SEALS));
	scene_start();
	refused_file(file, -ERANGE);
	scene_end();
	close(file);
}

TEST(P7_an_empty_memfd_is_ERANGE)
{
	int file = new_memfd(0, GOOD_SEALS);

	scene_start();
	refused_file(file, -ERANGE);
	scene_end();
	close(file);
}

static int attach_at(int file, uint64_t offset, uint64_t stride, uint64_t length, uint32_t count,
		     uint64_t payload)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = file, .offset = offset, .stride = stride,
		.length = length, .count = count, .payload = payload,
	};

	return raw_request(&raw, XMEM_IOC_ATTACH, &request);
}

/* An attach that never happened does not make clients do the work for a file that is gone. */
TEST(P7_a_refused_attach_counts_no_file)
{
	int file = new_memfd(8 * BYTES, GOOD_SEALS), i;
	u64 gone;

	scene_start();
	gone = xm_load(&raw.map.pool->payloads_gone);
	for (i = 0; i < 3; i++)
		SAME(attach_at(file, 0, BYTES, BYTES, 9, 0), -ERANGE);
	SAME(xm_load(&raw.map.pool->payloads_gone), gone);
	SAME(attach_at(file, 0, BYTES, BYTES, 8, 0), 0);	/* and takes a group */
	SAME(xm_load(&raw.map.pool->payloads_gone), gone);
	SAME(attach_at(file, 0, BYTES, BYTES, 9, 0), -ERANGE);
	SAME(xm_load(&raw.map.pool->payloads_gone), gone);
	raw_close(&raw);
	close(file);
}

TEST(P7_slots_beyond_the_files_end_are_ERANGE)
{
	int file = new_memfd(8 * BYTES, GOOD_SEALS);
	const uint64_t most = ~0ULL - 63;

	scene_start();
	SAME(attach_at(file, 0, BYTES, BYTES, 9, 0), -ERANGE);
	SAME(attach_at(file, 64, BYTES, BYTES, 8, 0), -ERANGE);
	SAME(attach_at(file, 8 * BYTES, BYTES, BYTES, 1, 0), -ERANGE);
	SAME(attach_at(file, 0, 9 * BYTES, 9 * BYTES, 1, 0), -ERANGE);
	SAME(attach_at(file, most, 64, 64, 1, 0), -ERANGE);
	SAME(attach_at(file, most, 64, 64, 2, 0), -ERANGE);
	SAME(attach_at(file, 0, most, 64, 2, 0), -ERANGE);
	SAME(attach_at(file, 0, 1ULL << 63, 64, 3, 0), -ERANGE);
	SAME(attach_at(file, 0, most, most, 1, 0), -ERANGE);
	scene_end();
	close(file);
}

TEST(P4_attach_with_wrong_fields_is_EINVAL)
{
	int file = new_memfd(8 * BYTES, GOOD_SEALS);
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = file, .stride = BYTES, .length = BYTES, .count = 1,
	};

	scene_start();
	SAME(attach_at(file, 0, BYTES, BYTES, 0, 0), -EINVAL);
	SAME(attach_at(file, 0, 64, 64, XMEM_GROUP_SLOTS + 1, 0), -EINVAL);
	SAME(attach_at(file, 0, BYTES, BYTES, ~0u, 0), -EINVAL);
	SAME(attach_at(file, 0, BYTES, 0, 1, 0), -EINVAL);
	SAME(attach_at(file, 1, BYTES, BYTES, 1, 0), -EINVAL);
	SAME(attach_at(file, 63, BYTES, BYTES, 1, 0), -EINVAL);
	SAME(attach_at(file, 0, BYTES + 1, BYTES, 1, 0), -EINVAL);
	SAME(attach_at(file, 0, BYTES - 64, BYTES, 2, 0), -EINVAL);
	SAME(attach_at(file, 0, BYTES, BYTES, 1, 1), -EINVAL);		/* a file and a payload */
	request.slot[63] = 1;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &request), -EINVAL);
	scene_end();
	close(file);
}

TEST(P4_slots_are_added_to_ones_own_payload_alone)
{
	int file = new_memfd(8 * BYTES, GOOD_SEALS);
	struct xmem_attach_request first;
	struct raw other;

	scene_start();
	raw_start(&other, (const char *)raw.link.join.name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&other, file, 1, &first), 0);
	SAME(attach_at(-1, BYTES, BYTES, BYTES, 1, first.payload + 1), -ENOENT);
	/* With another client's payload, a client could publish what that one may still write. */
	CHECK(attach_at(-1, BYTES, BYTES, BYTES, 1, first.payload) < 0);
	raw_close(&other);
	EVENTUALLY(xm_load(&xm_slot_row(&raw.map, first.slot[0])->owner) == XMEM_OWNER_NONE);
	scene_end();

	scene_start();
	SAME(raw_attach(&raw, file, 1, &first), 0);
	SAME(attach_at(-1, BYTES, BYTES, BYTES, 7, first.payload), 0);
	SAME(attach_at(-1, BYTES, BYTES, BYTES, 8, first.payload), -ERANGE);
	raw_close(&raw);
	close(file);
}

/*
 * In builds for tests, as the daemon's here, the first id is the last one of 32 bits, and the lower
 * half of the next is 0. A module that was made with XMEM_DEBUG begins like this, too.
 */
TEST(P7_ids_of_payloads_have_64_bits)
{
	struct xmem_payload_request request = { .size = sizeof(request) };
	struct xmem_attach_request attached[4];
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name);
	struct xmem_slot_info info;
	int i, file;
	char c;

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	for (i = 0; i < 4; i++) {
		file = new_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
		c = 'a' + i;
		CHECK(pwrite(file, &c, 1, 0) == 1);
		CHECK(!fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL));
		SAME(raw_attach(&raw, file, 1, &attached[i]), 0);
		close(file);
		SAME(attached[i].payload, attached[0].payload + i);
	}
	if (!on_kernel() || attached[0].payload != 1)
		SAME(attached[0].payload, UINT32_MAX);
	for (i = 0; i < 4; i++) {
		info.size = sizeof(info);
		WORKED(xmem_pool_slot_info(pool, attached[i].slot[0], &info));
		SAME(info.payload, attached[i].payload);
		request.payload = attached[i].payload;
		SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &request), 0);
		CHECK(pread(request.fd, &c, 1, 0) == 1);
		SAME(c, 'a' + i);
		close(request.fd);
		request.payload = attached[i].payload ^ 1ULL << 32;
		SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &request), -ENOENT);
	}
	SAME(attach_at(-1, 0, BYTES, BYTES, 1, attached[1].payload), 0);
	SAME(raw_slot(&raw, XMEM_OP_DETACH_FILE, attached[1].slot[0]), 0);
	request.payload = attached[1].payload;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &request), -ENOENT);
	SAME(stat_of(pool).payloads, 3);
	raw_close(&raw);
	xmem_pool_close(pool);
}

TEST(P4_attach_by_a_reader_is_EPERM)
{
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct raw reader;

	raw_start(&reader, new_name(), XMEM_ROLE_READER);
	SAME(raw_attach(&reader, file, 1, NULL), -EPERM);
	raw_close(&reader);
	close(file);
}

// SPDX-License-Identifier: MIT
/*
 * P6: a reader cannot write CPU payloads in any of the ways in which the system
 * lets a process use a descriptor. P7: a payload cannot shrink, and nobody can
 * punch a hole into it under a mapping. The attacker has the same user, and is
 * root.
 */
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "harness.h"

#define BYTES	4096
#define COUNT	4

/* A sealed payload with stamped contents, and a reader's own descriptor of it. */
struct scene {
	const char *name;
	struct xmem_pool *writer;
	struct xmem_buffer *kept;
	struct raw raw;			/* a client of the given role */
	struct xmem_payload_request payload;
};

static void scene_start(struct scene *scene, uint32_t role)
{
	uint64_t token;

	memset(scene, 0, sizeof(*scene));
	scene->name = new_name();
	scene->writer = OPEN(scene->name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(scene->writer, BYTES, COUNT,
				XMEM_OPTIONS(xmem_preallocate_options,
					     .flags = XMEM_MEMORY_SEALED)));
	token = publish_kept(scene->writer, 0xabc, &scene->kept);
	raw_start(&scene->raw, scene->name, role);
	scene->payload = (struct xmem_payload_request){
		.size = sizeof(scene->payload),
		.payload = xm_slot_row(&scene->raw.map, xm_token_slot(token))->payload, .fd = -1,
	};
	SAME(raw_request(&scene->raw, XMEM_IOC_PAYLOAD, &scene->payload), 0);
	CHECK(scene->payload.fd >= 0);
	SAME(scene->payload.bytes, COUNT * BYTES);
}

static void scene_end(struct scene *scene)
{
	/* No attempt has changed anything. */
	SAME(stamp_of(scene->kept), 0xabc);
	xmem_release(scene->kept);
	close(scene->payload.fd);
	raw_close(&scene->raw);
	check_quiet(scene->writer, 1);
	publish_stamp(scene->writer, 1);
	xmem_pool_close(scene->writer);
}

/* Only the owner may do these things, with any descriptor of the file. */
static void cannot_write(int file)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	CHECK(p == MAP_FAILED);
	p = mmap(NULL, BYTES, PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(p == MAP_FAILED);
	p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
	CHECK(p != MAP_FAILED);
	SAME(mprotect(p, BYTES, PROT_READ | PROT_WRITE), -1);
	SAME(madvise(p, BYTES, MADV_REMOVE), -1);
	munmap(p, BYTES);
	SAME(pwrite(file, "x", 1, 0), -1);
	SAME(write(file, "x", 1), -1);
	SAME(ftruncate(file, 0), -1);
	SAME(ftruncate(file, BYTES), -1);
	SAME(ftruncate(file, 100 * BYTES), -1);
	SAME(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES), -1);
	SAME(fallocate(file, FALLOC_FL_ZERO_RANGE, 0, BYTES), -1);
	SAME(fallocate(file, FALLOC_FL_COLLAPSE_RANGE, 0, BYTES), -1);
	SAME(fallocate(file, 0, COUNT * BYTES, BYTES), -1);
}

static int reopen(int file, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return open(path, flags | O_CLOEXEC);
}

TEST(P6_a_readers_descriptor_does_not_write)
{
	struct scene scene;

	scene_start(&scene, XMEM_ROLE_READER);
	SAME(fcntl(scene.payload.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	CHECK(fcntl(scene.payload.fd, F_GETFD) & FD_CLOEXEC);
	cannot_write(scene.payload.fd);
	scene_end(&scene);
}

TEST(P6_a_reader_reopens_its_descriptor_for_writing)
{
	struct scene scene;
	int file;

	scene_start(&scene, XMEM_ROLE_READER);
	file = reopen(scene.payload.fd, O_RDWR);
	if (file >= 0) {	/* this user is the inode's maker */
		cannot_write(file);
		close(file);
	}
	scene_end(&scene);
}

TEST(P6_a_reader_reopens_and_truncates)
{
	struct scene scene;
	int file;

	scene_start(&scene, XMEM_ROLE_READER);
	file = reopen(scene.payload.fd, O_RDWR | O_TRUNC);
	CHECK(file < 0);
	scene_end(&scene);
}

TEST(P6_a_reader_changes_the_mode_first)
{
	struct scene scene;
	int file;

	scene_start(&scene, XMEM_ROLE_READER);
	fchmod(scene.payload.fd, 0666);
	file = reopen(scene.payload.fd, O_RDWR);
	if (file >= 0) {
		fchmod(file, 0777);
		cannot_write(file);
		close(file);
	}
	scene_end(&scene);
}

TEST(P6_a_reader_cannot_lift_the_seals)
{
	struct scene scene;
	int seals;

	scene_start(&scene, XMEM_ROLE_READER);
	seals = fcntl(scene.payload.fd, F_GET_SEALS);
	SAME(seals & GOOD_SEALS, GOOD_SEALS);
	/* Adding a seal that would hurt the owner fails: it needs a writable file, or is sealed. */
	SAME(fcntl(scene.payload.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	scene_end(&scene);
}

TEST(P6_a_writable_descriptor_is_refused)
{
	struct scene scene;
	struct xmem_payload_request request;

	scene_start(&scene, XMEM_ROLE_WRITER);
	request = scene.payload;
	request.flags = XMEM_PAYLOAD_WRITE;
	request.fd = -7;
	SAME(raw_request(&scene.raw, XMEM_IOC_PAYLOAD, &request), -EACCES);
	SAME(request.fd, -7);
	scene_end(&scene);
}

/* A request must not make the host open a file with more access than it was attached with. */
static void launder(int file, struct raw *raw, struct raw *friend)
{
	struct xmem_payload_request request = { .size = sizeof(request), .fd = -1 };
	struct xmem_attach_request attach;
	unsigned int flags;

	if (raw_attach(raw, file, 1, &attach))
		return;			/* refused: all the better */
	request.payload = attach.payload;
	for (flags = 0; flags <= XMEM_PAYLOAD_WRITE; flags += XMEM_PAYLOAD_WRITE) {
		int err;

		request.flags = flags;
		err = raw_request(friend, XMEM_IOC_PAYLOAD, &request);
		if (err) {
			SAME(err, -EACCES);
			continue;
		}
		SAME(fcntl(request.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
		cannot_write(request.fd);
		close(request.fd);
	}
}

TEST(P6_a_descriptor_laundered_as_ones_own_payload)
{
	struct scene scene;
	struct raw friend;
	int file;

	scene_start(&scene, XMEM_ROLE_WRITER);
	raw_start(&friend, scene.name, XMEM_ROLE_WRITER);
	launder(scene.payload.fd, &scene.raw, &friend);
	launder(scene.payload.fd, &scene.raw, &scene.raw);
	file = reopen(scene.payload.fd, O_RDWR);
	if (file >= 0) {
		launder(file, &scene.raw, &friend);
		close(file);
	}
	raw_close(&friend);
	scene_end(&scene);
}

TEST(P6_a_reader_has_no_payload_of_its_own)
{
	struct scene scene;

	scene_start(&scene, XMEM_ROLE_READER);
	SAME(raw_attach(&scene.raw, scene.payload.fd, 1, NULL), -EPERM);
	scene_end(&scene);
}

TEST(P6_a_received_buffer_is_read_only)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 4);
	char *data = (char *)xmem_data(b);

	CHECK(data);
	REFUSED(xmem_data_mut(b), EPERM);
	REFUSED(xmem_metadata_mut(b), EPERM);
	SAME(xmem_publish(b, NULL, NULL), -EPERM);
	/* Force does not help either. */
	SAME(mprotect((void *)((uintptr_t)data & ~4095UL), BYTES, PROT_READ | PROT_WRITE), -1);
	SAME(stamp_of(b), 4);
	xmem_release(b);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P7_the_owner_cannot_shrink_or_punch_it_either)
{
	struct scene scene;
	const volatile char *data;
	unsigned int i, sum = 0;
	int file;

	scene_start(&scene, XMEM_ROLE_READER);
	data = mmap(NULL, COUNT * BYTES, PROT_READ, MAP_SHARED, scene.payload.fd, 0);
	CHECK(data != MAP_FAILED);
	/* The owner's mapping is the only one that may write, and even it cannot remove pages. */
	SAME(madvise((void *)((uintptr_t)xmem_data(scene.kept) & ~4095UL), BYTES, MADV_REMOVE), -1);
	file = reopen(scene.payload.fd, O_RDWR);
	if (file >= 0) {
		SAME(ftruncate(file, 0), -1);
		SAME(errno, EPERM);
		SAME(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES), -1);
		SAME(errno, EPERM);
		close(file);
	}
	/* All of it can be read: no SIGBUS. */
	for (i = 0; i < COUNT * BYTES; i++)
		sum += data[i];
	munmap((void *)data, COUNT * BYTES);
	scene_end(&scene);
}

TEST(P7_payloads_are_allocated_whole)
{
	struct scene scene;
	struct stat info;

	scene_start(&scene, XMEM_ROLE_READER);
	CHECK(!fstat(scene.payload.fd, &info));
	SAME(info.st_size, COUNT * BYTES);
	CHECK(info.st_blocks * 512 >= COUNT * BYTES);
	scene_end(&scene);
}

#define SOMEBODY_ELSE	65534

/* The inode is open to the world, as those of memfds are. That must not help another user. */
static void write_as_another_user(void *argument)
{
	int file = receive_file(parent_link()), again;

	CHECK(!setgid(SOMEBODY_ELSE) && !setuid(SOMEBODY_ELSE));
	cannot_write(file);
	fchmod(file, 0666);
	again = reopen(file, O_RDWR);
	if (again >= 0)
		cannot_write(again);
}

TEST(P6_another_user_reopens_it_for_writing)
{
	struct scene scene;
	struct child *child;

	if (geteuid())
		skip("only root can be another user");
	scene_start(&scene, XMEM_ROLE_READER);
	child = spawn(write_as_another_user, NULL);
	send_file(child->link, scene.payload.fd);
	finish_child(child);
	scene_end(&scene);
}

static void write_after_fork(void *argument)
{
	struct scene *scene = argument;

	/* A child does not have its parent's mapping (a store would end the child by SIGSEGV). */
	CHECK(!xmem_data_mut(scene->kept));
	SAME(xmem_peek_last_error(NULL), -ECHILD);
}

TEST(P6_a_forked_child_of_the_owner_cannot_write)
{
	struct scene scene;

	scene_start(&scene, XMEM_ROLE_READER);
	finish_child(spawn(write_after_fork, &scene));
	scene_end(&scene);
}

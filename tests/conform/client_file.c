// SPDX-License-Identifier: MIT
/*
 * The file of a client. /dev/xmem makes one for each join. The mappings of this file end with the
 * client, are counted, and belong to the client alone (P2, P4). These tests need the kernel module:
 * the daemon's clients share one memfd.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "harness.h"

#define PAGE	page_size()
#define WHY	"the daemon's clients map one memfd, whole"

static void *map_all(const struct raw *raw)
{
	void *start = mmap(NULL, raw->link.join.total_bytes, PROT_READ, MAP_SHARED,
			   raw->link.file, 0);

	CHECK(start != MAP_FAILED);
	return start;
}

/* End the client. Its file and its other mappings stay. */
static void unmap_area(const struct raw *raw)
{
	u32 me = raw->link.join.client;

	CHECK(!munmap(raw->map.area[me], raw->map.pool->area_stride));
}

/* ---- the file ---- */

static int join_by(int device, const char *name)
{
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1,
		.fd = -1,
	};

	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	SAME(ioctl(device, XMEM_IOC_JOIN, &join), 0);
	CHECK(join.fd >= 0 && join.fd != device);
	SAME(fcntl(join.fd, F_GETFD), FD_CLOEXEC);
	return join.fd;
}

TEST(API_one_open_device_makes_many_clients)
{
	struct xmem_wait_request arm = { .size = sizeof(arm), .kind = XMEM_WAIT_CLIENTS };
	const char *name = new_name();
	struct xmem_pool *watcher;
	int device, first, second;

	kernel_only(WHY);
	watcher = open_reader(name);
	device = open("/dev/xmem", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	first = join_by(device, name);
	second = join_by(device, name);
	SAME(stat_of(watcher).clients, 3);
	close(device);
	SAME(ioctl(first, XMEM_IOC_WAIT, &arm), 0);
	close(first);
	EVENTUALLY(stat_of(watcher).clients == 2);
	SAME(ioctl(second, XMEM_IOC_WAIT, &arm), 0);
	close(second);
	EVENTUALLY(stat_of(watcher).clients == 1);
	xmem_pool_close(watcher);
}

/* ---- after its end ---- */

/* K3: an ended client reads zeros, also where later contents are, and is not killed for it. */
TEST(P4_who_has_ended_reads_nothing_of_the_pool)
{
	const char *name = new_name();
	struct raw ended, next;
	const volatile char *old;
	u64 i, total;

	kernel_only(WHY);
	raw_start(&next, name, XMEM_ROLE_READER);
	raw_start(&ended, name, XMEM_ROLE_READER);
	total = ended.link.join.total_bytes;
	old = map_all(&ended);
	SAME(((const struct xmem_pool_header *)old)->magic, XMEM_MAGIC);
	unmap_area(&ended);
	EVENTUALLY(((const struct xmem_pool_header *)old)->magic == 0);
	raw_close(&next);
	raw_start(&next, name, XMEM_ROLE_WRITER);
	memset((char *)next.map.area[next.link.join.client] + next.map.pool->ring_offset, 0xee,
	       64);
	for (i = 0; i < total; i += PAGE / 2)
		SAME(old[i], 0);
	CHECK(touch((uint32_t *)(uintptr_t)old, true));	/* it is still not to be written */
	munmap((void *)old, total);
	raw_close(&next);
	raw_close(&ended);
}

/* The store may still have gone into the pool's page, so the next store has another value. */
static bool is_seen_nowhere(u64 *mine, const volatile u64 *seen)
{
	static u64 value = 0x5eed;

	xm_store(mine, ++value);
	return *seen != value;
}

/*
 * Soon after its end, the pages that it could write belong to nobody. It gets no SIGBUS: it may not
 * know of its end yet.
 */
TEST(P4_who_has_ended_writes_nowhere)
{
	const char *name = new_name();
	struct xmem_attach_request attached;
	struct raw ended, other;
	int file = new_memfd(PAGE, GOOD_SEALS);
	u64 *mine;
	const volatile u64 *seen;

	kernel_only(WHY);
	raw_start(&other, name, XMEM_ROLE_READER);
	raw_start(&ended, name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&ended, file, 1, &attached), 0);
	SAME(ended.link.backend->map_group(&ended.link, attached.slot[0] / 64), 0);
	close(file);
	mine = &xm_slot(&ended.map, attached.slot[0])->state;
	seen = &xm_slot(&other.map, attached.slot[0])->state;
	CHECK(xm_load(mine) && xm_load(mine) == *seen);
	unmap_area(&ended);
	EVENTUALLY(xm_client_row(&other.map, ended.link.join.client)->state != XMEM_CLIENT_ALIVE);
	SAME(touch((uint32_t *)mine, true), 0);
	EVENTUALLY(is_seen_nowhere(mine, seen));
	raw_close(&ended);
	raw_close(&other);
}

/* ---- how many ---- */

/* Map the file as often as it is allowed, and return how often that is. */
static unsigned int map_most(const struct raw *raw, void **at, unsigned int most)
{
	unsigned int count;

	for (count = 0; count < most; count++) {
		at[count] = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, raw->link.file, 0);
		if (at[count] == MAP_FAILED)
			break;
	}
	SAME(errno, EDQUOT);
	return count;
}

static void unmap_most(void **at, unsigned int count)
{
	while (count--)
		CHECK(!munmap(at[count], 3 * PAGE));
}

/* K4: one mapping becomes three when its middle gets another protection. */
TEST(P4_parts_of_mappings_are_limited_too)
{
	unsigned int count;
	struct raw raw;
	void *at[4096];

	kernel_only(WHY);
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	count = map_most(&raw, at, 4096);
	CHECK(count > 16 && count < 4096);
	SAME(mprotect((char *)at[0] + PAGE, PAGE, PROT_NONE), -1);
	SAME(errno, ENOMEM);
	SAME(munmap((char *)at[0] + PAGE, PAGE), -1);
	SAME(errno, ENOMEM);
	CHECK(!munmap(at[--count], 3 * PAGE));
	CHECK(!munmap(at[--count], 3 * PAGE));
	SAME(mprotect((char *)at[0] + PAGE, PAGE, PROT_NONE), 0);
	SAME(mprotect((char *)at[1] + PAGE, PAGE, PROT_NONE), -1);
	CHECK(mremap(at[1], 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE) == at[1]);
	unmap_most(at, count);
	raw_close(&raw);
}

static void read_as_child(void *argument)
{
	CHECK(touch(argument, false));
}

static void inherit(const struct raw *raw, void **at, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		CHECK(!madvise(at[i], 3 * PAGE, MADV_DOFORK));
	SAME(touch(at[0], false), 0);
	finish_child(spawn(read_as_child, at[0]));
	SAME(raw->map.pool->magic, XMEM_MAGIC);
}

/* A parent could be tricked into giving its child a mapping. That child cannot read the pool. */
TEST(P4_a_child_that_was_given_a_mapping_cannot_read_it)
{
	struct raw raw;
	void *at;

	kernel_only(WHY);
	forks_have_mappings_or_skip();
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	at = map_all(&raw);
	inherit(&raw, &at, 1);
	munmap(at, raw.link.join.total_bytes);
	raw_close(&raw);
}

struct line {
	struct child *child[4];
	unsigned int count;
};

static void stays(void *argument)
{
	tell_parent(0);
	pause();
}

/* K4: mappings in children count, too, and a client with too many of them ends. */
TEST(P4_mappings_in_children_count)
{
	struct line line = { .count = 0 };
	const char *name = new_name();
	struct xmem_pool *watcher;
	unsigned int count, i;
	struct raw raw;
	void *at[4096];

	kernel_only(WHY);
	forks_have_mappings_or_skip();
	watcher = open_reader(name);
	raw_start(&raw, name, XMEM_ROLE_READER);
	count = map_most(&raw, at, 4096);
	for (i = 0; i < count; i++)
		CHECK(!madvise(at[i], 3 * PAGE, MADV_DOFORK));
	line.child[line.count++] = spawn(stays, NULL);
	hear(line.child[0]);
	SAME(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, raw.link.file, 0) == MAP_FAILED, true);
	SAME(errno, EDQUOT);
	SAME(stat_of(watcher).clients, 2);
	while (line.count < 4) {
		line.child[line.count] = spawn(stays, NULL);
		hear(line.child[line.count++]);
	}
	EVENTUALLY(stat_of(watcher).clients == 1);
	while (line.count)
		kill_child(line.child[--line.count]);
	unmap_most(at, count);
	raw_close(&raw);
	xmem_pool_close(watcher);
}

/* ---- before it has mapped anything ---- */

static void join_and_pass_on(void *name)
{
	struct raw raw;
	int i;

	for (i = 0; i < 4; i++) {
		raw_open(&raw);
		SAME(raw_join(&raw, name, XMEM_ROLE_READER, 0), 0);
		send_file(parent_link(), raw.link.file);
		raw_close(&raw);
	}
}

/* K12: a process that has the file of a dead process does not keep its client, mapped or not. */
TEST(P2_a_client_that_has_mapped_nothing_ends_with_its_process)
{
	const char *name = new_name();
	struct xmem_pool *watcher;
	struct child *child;
	int file[4], i;

	kernel_only(WHY);
	watcher = open_reader(name);
	child = spawn(join_and_pass_on, (void *)name);
	for (i = 0; i < 4; i++)
		file[i] = receive_file(child->link);
	finish_child(child);
	EVENTUALLY(stat_of(watcher).clients == 1);
	for (i = 0; i < 4; i++)
		close(file[i]);
	xmem_pool_close(watcher);
}

/* ---- a file that is open for reading only ---- */

TEST(P10_a_file_that_is_open_for_reading_lets_nobody_write)
{
	struct xmem_pool_fd_request pass = {
		.size = sizeof(pass), .roles = 1u << XMEM_ROLE_WRITER,
	};
	struct xmem_grant_request writer = { .size = sizeof(writer), .op = XMEM_OP_WRITER };
	const char *name = new_name();
	struct xmem_pool *pool;
	struct raw raw;
	int file;

	kernel_only("the daemon has no device file");
	pool = open_writer(name, 1, 4096);
	raw_open(&raw);
	file = open("/dev/xmem", O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0 && dup2(file, raw.link.file) >= 0);
	close(file);
	SAME(raw_join(&raw, name, XMEM_ROLE_WRITER, 0), -EACCES);
	SAME(raw_join(&raw, name, XMEM_ROLE_EITHER, 0), 0);
	SAME(raw.link.join.role, XMEM_ROLE_READER);
	SAME(raw.link.join.roles, 1u << XMEM_ROLE_READER);
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &writer), -EPERM);
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &pass), -EACCES);
	raw_close(&raw);
	xmem_pool_close(pool);
}

/* ---- a full pool ---- */

/* K6: a join of a full pool says so, and it succeeds as soon as there is room. */
TEST(P4_a_full_pool_has_room_again_after_an_end)
{
	struct raw raw[4], more;
	const char *name = new_name();
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1,
		.clients = 4,
	};
	int i, n;

	kernel_only("the daemon serves one request after the other");
	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	raw_open(&raw[0]);
	raw[0].link.join = join;
	SAME(raw_request(&raw[0], XMEM_IOC_JOIN, &raw[0].link.join), 0);
	SAME(raw[0].link.backend->map(&raw[0].link, &raw[0].map), 0);
	raw[0].mapped = true;
	for (i = 1; i < 4; i++)
		raw_start(&raw[i], name, XMEM_ROLE_WRITER);
	for (n = 0; n < 20; n++) {
		raw_open(&more);
		SAME(raw_join(&more, name, XMEM_ROLE_READER, 0), -EUSERS);
		raw_close(&raw[1 + n % 3]);
		SAME(raw_join(&more, name, XMEM_ROLE_WRITER, 0), 0);
		SAME(more.link.backend->map(&more.link, &more.map), 0);
		more.mapped = true;
		raw[1 + n % 3] = more;
	}
	for (i = 0; i < 4; i++)
		raw_close(&raw[i]);
}

/* ---- a process that was given the file, to poll it ---- */

static void narrow_by_anothers_file(void *file)
{
	struct xmem_pool_fd_request narrow = {
		.size = sizeof(narrow), .flags = XMEM_POOL_FD_NARROW,
		.roles = 1u << XMEM_ROLE_READER,
	};
	struct xmem_pool *own = open_reader(new_name());
	int device;

	CHECK((narrow.pool_fd = xmem_pool_fd(own)) >= 0);
	CHECK(ioctl(*(int *)file, XMEM_IOC_POOL_FD, &narrow) < 0);
	SAME(errno, EPERM);
	device = open("/dev/xmem", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0 && !ioctl(device, XMEM_IOC_POOL_FD, &narrow));
	close(narrow.fd);
	close(narrow.pool_fd);
	close(device);
	xmem_pool_close(own);
}

/* The new descriptor would count for the client's user, and keep the pool at its expense. */
TEST(P10_narrow_by_anothers_file_is_refused)
{
	struct xmem_pool_fd_request give = { .size = sizeof(give) };
	struct xmem_pool_fd_request narrow = {
		.size = sizeof(narrow), .flags = XMEM_POOL_FD_NARROW,
		.roles = 1u << XMEM_ROLE_READER,
	};
	struct raw raw;
	int file;

	kernel_only("the daemon's connections are for their own datagrams");
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	file = dup(raw.link.file);		/* the library closes its own in a child */
	CHECK(file >= 0);
	finish_child(spawn(narrow_by_anothers_file, &file));
	close(file);
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &give), 0);
	narrow.pool_fd = give.fd;
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &narrow), 0);
	close(narrow.fd);
	close(give.fd);
	raw_close(&raw);
}

/* ---- a join that finds no descriptor ---- */

/* Members of the pool notice nothing of it: no client has joined or left. */
TEST(P10_a_join_without_a_descriptor_is_noticed_by_nobody)
{
	struct xmem_wait_request arm = { .size = sizeof(arm), .kind = XMEM_WAIT_CLIENTS };
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_WRITER, .pool_fd = -1,
	}, try;
	const struct xmem_pool_header *header;
	const char *name = new_name();
	struct rlimit before, none;
	struct raw member;
	int device, i;
	u64 writers;

	kernel_only("the daemon's clients have no files of their own");
	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	raw_start(&member, name, XMEM_ROLE_READER);
	header = member.map.pool;
	device = open("/dev/xmem", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0 && !getrlimit(RLIMIT_NOFILE, &before));
	writers = xm_load(&header->writers);
	SAME(raw_wait(&member, XMEM_OP_ARM, &arm), 0);
	none = before;
	none.rlim_cur = dup(device);		/* there are no gaps below it */
	close(none.rlim_cur);
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	for (i = 0; i < 5; i++) {
		try = join;
		CHECK(ioctl(device, XMEM_IOC_JOIN, &try) < 0);
		SAME(errno, EMFILE);
	}
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	SAME(xm_load(&header->clients_waiters), arm.value);
	SAME(xm_load(&header->writers), writers);
	CHECK(!ioctl(device, XMEM_IOC_JOIN, &join));
	CHECK(xm_load(&header->clients_waiters) != arm.value);
	SAME(xm_load(&header->writers), writers + 1);
	close(join.fd);
	close(device);
	raw_close(&member);
}

// SPDX-License-Identifier: MIT
/*
 * Other processes, strangers among them, try to delay the end of a dead client or to slow the
 * living ones (P2, P4). Also two traps: holes that blocks beyond a file's end hide (P7), and clocks
 * of other time namespaces (P9). These tests need the kernel module.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x80
#endif

/* ---- watching the dead ---- */

static void joins_and_waits(void *name)
{
	struct xmem_pool *pool = open_writer(name, 4, 4096);

	tell_parent(xmem_pool_client(pool));
	pause();
}

/*
 * Read @arg's command line into a page that nobody will ever fill. Its parent gets the userfaultfd.
 */
static void looks_for_ever(void *arg)
{
	struct child *victim = arg;
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	size_t bytes = page_size();
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	char path[64];
	int file;

	CHECK(faults >= 0 && page != MAP_FAILED);
	SAME(ioctl(faults, UFFDIO_API, &api), 0);
	range.range.start = (uintptr_t)page;
	range.range.len = bytes;
	SAME(ioctl(faults, UFFDIO_REGISTER, &range), 0);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", victim->pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0);
	send_file(parent_link(), faults);
	CHECK(read(file, page, bytes) >= 0);
}

TEST(P2_an_onlooker_does_not_keep_a_dead_client)
{
	const char *name = new_name();
	struct xmem_pool *pool;
	struct child *victim, *onlooker;
	struct pollfd faults = { .events = POLLIN };

	kernel_only("the daemon watches the process, not its memory");
	if (geteuid())
		skip("userfaultfd is root's");
	pool = open_reader(name);
	victim = spawn(joins_and_waits, (void *)name);
	hear(victim);
	onlooker = spawn(looks_for_ever, victim);
	faults.fd = receive_file(onlooker->link);
	/* Now the onlooker is in the kernel, with a reference to the victim's memory. */
	SAME(poll(&faults, 1, -1), 1);
	kill_child(victim);
	EVENTUALLY(stat_of(pool).clients == 1 && stat_of(pool).attached == 0);
	kill_child(onlooker);
	close(faults.fd);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

/* ---- many mappings ---- */

TEST(P4_mappings_of_one_client_are_limited)
{
	void *at[4096];
	unsigned int count, i;
	struct raw raw;

	kernel_only("the daemon maps nothing for its clients");
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	for (count = 0; count < 4096; count++) {
		at[count] = mmap(NULL, raw.link.join.total_bytes, PROT_READ, MAP_SHARED,
				 raw.link.file, 0);
		if (at[count] == MAP_FAILED)
			break;
	}
	SAME(errno, EDQUOT);
	CHECK(count >= 16 && count < 32 + raw.map.groups);
	SAME(munmap(at[0], raw.link.join.total_bytes), 0);
	at[0] = mmap(NULL, raw.link.join.total_bytes, PROT_READ, MAP_SHARED, raw.link.file, 0);
	CHECK(at[0] != MAP_FAILED);
	for (i = 0; i < count; i++)
		munmap(at[i], raw.link.join.total_bytes);
	raw_close(&raw);
}

/* ---- holes ---- */

TEST(P7_blocks_beyond_the_end_hide_no_holes)
{
	int file = memfd_create("holes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct raw raw;

	kernel_only("the daemon can only count blocks");
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(ftruncate(file, 1 << 20), 0);
	SAME(fallocate(file, FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20), 0);
	SAME(fcntl(file, F_ADD_SEALS, GOOD_SEALS), 0);
	SAME(raw_attach(&raw, file, 1, NULL), -ERANGE);
	close(file);
	raw_close(&raw);
}

/* ---- clocks ---- */

static void waits_a_moment(void *name)
{
	struct xmem_subscribe_options options = { .size = sizeof(options), .timeout_ns = 50 * MS };

	REFUSED(xmem_subscribe(open_reader(name), &options), ETIMEDOUT);
}

/* A moment before the clock of the initial namespace began, and moments that never come. */
static void waits_for_odd_moments(void *name)
{
	static const u64 past[] = { 1, 0, 1000 };
	struct xmem_wait_request request = { .size = sizeof(request), .kind = XMEM_WAIT_CLIENTS };
	struct raw raw;
	u32 i;

	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(raw_wait(&raw, XMEM_OP_ARM, &request), 0);
	for (i = 0; i < 3; i++) {
		request.deadline_ns = past[i];
		SAME(raw_wait(&raw, XMEM_OP_WAIT, &request), -ETIMEDOUT);
	}
	raw_close(&raw);
}

/* The bound ends later than any clock can show: no client is woken for it, or only once. */
static void polls_for_odd_moments(void *name)
{
	static const u64 late[] = { INT64_MAX - 5, INT64_MAX, ~0ULL };
	struct xmem_wait_request arm = { .size = sizeof(arm), .kind = XMEM_WAIT_SLOTS };
	struct xmem_ring *ring;
	struct pollfd look;
	struct raw raw;
	u32 i;

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	arm.client = raw.link.join.client;
	ring = xm_ring(&raw.map, arm.client);
	look = (struct pollfd){ .fd = raw.link.file, .events = POLLOUT };
	for (i = 0; i < 3; i++) {
		xm_store(&ring->look_at_ns, late[i]);
		SAME(raw_wait(&raw, XMEM_OP_ARM, &arm), 0);
		xm_store(&ring->vain, arm.value);
		SAME(poll(&look, 1, 100), 0);
	}
	xm_store(&ring->look_at_ns, 1);
	SAME(poll(&look, 1, 0), 1);
	raw_close(&raw);
}

struct elsewhen {
	const char *offset;		/* of the namespace's clock */
	void (*body)(void *name);
};

static void in_another_time(void *argument)
{
	const struct elsewhen *when = argument;
	ssize_t length = strlen(when->offset);
	int file;

	SAME(unshare(CLONE_NEWTIME), 0);
	file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	SAME(write(file, when->offset, length), length);
	close(file);
	/* children are in it */
	finish_child(spawn(when->body, (void *)new_name()));
}

static void goes_well_in_another_time(const char *offset, void (*body)(void *name))
{
	kernel_only("futexes know time namespaces");
	if (!in_vm())
		skip("time namespaces are made in the virtual machine only");
	finish_child(spawn(in_another_time, &(struct elsewhen){ offset, body }));
}

TEST(P9_deadlines_go_by_the_time_namespace_of_who_waits)
{
	goes_well_in_another_time("monotonic 1000000 0\n", waits_a_moment);
}

TEST(P9_deadlines_before_the_time_of_the_host)
{
	goes_well_in_another_time("monotonic 1000000 0\n", waits_for_odd_moments);
}

TEST(P9_deadlines_beyond_the_time_of_the_host)
{
	goes_well_in_another_time("monotonic -1 0\n", polls_for_odd_moments);
}

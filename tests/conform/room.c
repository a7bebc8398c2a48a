// SPDX-License-Identifier: MIT
/*
 * Where there is too little memory a preallocation is refused with a message, and no process is
 * killed: the limits of memory cgroups, of the machine and of files.
 */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "harness.h"
#include "lib/payload/payload.h"

#define MB	(1ULL << 20)
#define BYTES	4096

static void says(int error, const char *word)
{
	const char *why = last_message();

	SAME(xmem_peek_last_error(NULL), -error);
	if (!strstr(why, word))
		FAIL("the message does not contain '%s': %s", word, why);
}

static void nothing_made(struct xmem_pool *pool)
{
	struct xmem_pool_info info = stat_of(pool);

	SAME(info.attached, 0);
	SAME(info.payloads, 0);
	SAME(info.bytes_files, 0);
	SAME(info.bytes_mapped, 0);
}

/* ---- what files say: a made-up /proc and /sys/fs/cgroup (L11) ---- */

static char folder[64];

static void write_in(const char *path, const char *text)
{
	char name[256], *slash;
	FILE *file;

	snprintf(name, sizeof(name), "%s/%s", folder, path);
	slash = name + strlen(folder);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		CHECK(!mkdir(name, 0700) || errno == EEXIST);
		*slash = '/';
	}
	CHECK((file = fopen(name, "we")));
	CHECK(fputs(text, file) >= 0 && !fclose(file));
}

/* 1000 kB in all, 800 available, 100 of free swap. */
static void make_folder(const char *cgroup)
{
	snprintf(folder, sizeof(folder), "/tmp/conform-room-XXXXXX");
	CHECK(mkdtemp(folder));
	write_in("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 7 kB\nMemAvailable: 800 kB\n"
				 "SwapTotal: 200 kB\nSwapFree: 100 kB\n");
	if (cgroup)
		write_in("proc/self/cgroup", cgroup);
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(!system(command));
}

static void left(uint64_t want, uint64_t limit, const char *what)
{
	char proc[80], cgroups[80];
	struct xl_room room;

	snprintf(proc, sizeof(proc), "%s/proc", folder);
	snprintf(cgroups, sizeof(cgroups), "%s/cgroup", folder);
	xl_room_find(proc, cgroups, &room);
	SAME(room.left, want);
	SAME(room.limit, limit);
	if (!strstr(room.what, what))
		FAIL("'%s' is not in '%s'", what, room.what);
}

TEST(P10_room_is_what_the_machine_has)
{
	make_folder(NULL);
	left(900 << 10, 1000 << 10, "/proc/meminfo");
	remove_folder();
}

TEST(P10_room_without_proc_is_not_known)
{
	snprintf(folder, sizeof(folder), "/nonexistent");
	left(~0ULL, ~0ULL, "");
}

TEST(P10_room_is_what_the_tightest_cgroup_leaves)
{
	make_folder("0::/a/b\n");
	write_in("cgroup/cgroup.controllers", "memory\n");
	write_in("cgroup/a/b/memory.max", "max\n");
	write_in("cgroup/a/b/memory.current", "5000\n");
	left(900 << 10, 1000 << 10, "/proc/meminfo");
	/* The group above has no limit on swap, but this one allows none. */
	write_in("cgroup/a/memory.max", "300000\n");
	write_in("cgroup/a/memory.current", "100000\n");
	write_in("cgroup/a/memory.swap.max", "0\n");
	write_in("cgroup/a/memory.swap.current", "0\n");
	left(200000, 300000, "cgroup/a/memory.max");
	/* Memory that can be dropped does not count as used. */
	write_in("cgroup/a/memory.stat", "anon 5\ninactive_file 1000\nactive_file 200\nfile 9999\n"
					 "slab_reclaimable 30\n");
	left(201230, 300000, "cgroup/a/memory.max");
	/* Above `high` a process is slowed down until it stands still. */
	write_in("cgroup/a/b/memory.high", "15000\n");
	write_in("cgroup/a/b/memory.swap.max", "0\n");
	write_in("cgroup/a/b/memory.swap.current", "0\n");
	left(10000, 15000, "cgroup/a/b/memory.high");
	write_in("cgroup/a/b/memory.max", "5001\n");
	left(1, 5001, "cgroup/a/b/memory.max");
	write_in("cgroup/a/b/memory.max", "4000\n");
	left(0, 4000, "cgroup/a/b/memory.max");
	/* Swap that is allowed and free counts: 100 kB are. */
	write_in("cgroup/a/b/memory.swap.max", "max\n");
	left(100 << 10, 4000, "cgroup/a/b/memory.max");
	remove_folder();
}

TEST(P10_room_with_cgroups_of_version_1)
{
	make_folder("9:name=systemd:/x\n4:cpu,memory:/a\n3:memoryless:/z\n0::/u\n");
	write_in("cgroup/unified/u/memory.max", "max\n");
	write_in("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_in("cgroup/memory/memory.usage_in_bytes", "100000\n");
	left(900 << 10, 1000 << 10, "/proc/meminfo");
	write_in("cgroup/memory/a/memory.limit_in_bytes", "200000\n");
	write_in("cgroup/memory/a/memory.usage_in_bytes", "150000\n");
	left(50000 + (100 << 10), 200000, "memory/a/memory.limit_in_bytes");
	write_in("cgroup/memory/a/memory.memsw.limit_in_bytes", "210000\n");
	write_in("cgroup/memory/a/memory.memsw.usage_in_bytes", "150000\n");
	left(60000, 200000, "memory/a/memory.limit_in_bytes");
	write_in("cgroup/memory/a/memory.stat", "inactive_file 7\ntotal_inactive_file 500\n");
	left(60500, 200000, "memory/a/memory.limit_in_bytes");
	/* The path belongs to another namespace. */
	write_in("proc/self/cgroup", "4:memory:/not/here\n");
	write_in("cgroup/memory/memory.limit_in_bytes", "100001\n");
	write_in("cgroup/memory/memory.memsw.limit_in_bytes", "100001\n");
	write_in("cgroup/memory/memory.memsw.usage_in_bytes", "100000\n");
	left(1, 100001, "cgroup/memory/memory.limit_in_bytes");
	write_in("proc/self/cgroup", "4:memory:/../..\n");
	left(1, 100001, "cgroup/memory/memory.limit_in_bytes");
	remove_folder();
}

/* ---- a real cgroup ---- */

static char cgroup[512];
static bool version_2;

static void put(const char *name, const char *text)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", cgroup, name);
	file = fopen(path, "we");
	if (!file || fputs(text, file) < 0 || fclose(file))
		FAIL("%s: %s", path, strerror(errno));
}

/* Make it below the cgroup of this process, so that the limits of this process apply to it. */
static void make_cgroup(uint64_t limit)
{
	char line[300], path[300] = "", number[32], file[600];
	FILE *lines = fopen("/proc/self/cgroup", "re");

	if (!lines)
		skip("/proc/self/cgroup: %s", strerror(errno));
	while (fgets(line, sizeof(line), lines)) {
		line[strcspn(line, "\n")] = '\0';
		if (strstr(line, ":memory:")) {
			snprintf(path, sizeof(path), "/memory%s", strstr(line, ":memory:") + 8);
			break;
		}
		if (!strncmp(line, "0::", 3)) {
			snprintf(path, sizeof(path), "%s", line + 3);
			version_2 = true;
		}
	}
	version_2 = version_2 && strncmp(path, "/memory", 7);
	fclose(lines);
	/* A test that was killed may have left one, perhaps of this process number. */
	snprintf(cgroup, sizeof(cgroup), "/sys/fs/cgroup%s/conform-XXXXXX", path);
	if (!mkdtemp(cgroup))
		skip("%s: %s", cgroup, strerror(errno));
	snprintf(file, sizeof(file), "%s/%s", cgroup,
		 version_2 ? "memory.max" : "memory.limit_in_bytes");
	if (access(file, W_OK)) {
		rmdir(cgroup);
		skip("%s: %s", file, strerror(errno));
	}
	snprintf(number, sizeof(number), "%llu", (unsigned long long)limit);
	put(version_2 ? "memory.max" : "memory.limit_in_bytes", number);
}

static void bystand(void *argument)
{
	put("cgroup.procs", "0");
	tell_parent(1);
	hear_parent();
}

static void preallocate_too_much(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);
	const char *why;

	put("cgroup.procs", "0");
	SAME(xmem_preallocate(pool, 4 * MB, 50, NULL), -ENOMEM);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -ENOMEM);
	if (!strstr(why, cgroup) || !strstr(why, "209715200 bytes are needed") ||
	    !strstr(why, "67108864"))
		FAIL("%s", why);
	nothing_made(pool);
	SAME(xmem_preallocate(pool, 200 * MB, 1, NULL), -ENOMEM);
	nothing_made(pool);
	WORKED(xmem_preallocate(pool, 4 * MB, 8, NULL));
	publish_stamp(pool, 1);
	xmem_pool_close(pool);
	tell_parent(2);
	hear_parent();
}

TEST_WITHIN(P10_preallocating_beyond_a_cgroups_limit_kills_nobody, 60)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name);	/* the daemon runs outside the cgroup */
	struct child *bystander, *child;

	make_cgroup(64 * MB);
	bystander = spawn(bystand, NULL);
	hear(bystander);
	child = spawn(preallocate_too_much, (void *)name);
	SAME(hear(child), 2);
	kill_child(child);
	kill_child(bystander);		/* this fails if the child was dead already */
	EVENTUALLY(!rmdir(cgroup));
	xmem_pool_close(pool);
}

TEST(P10_an_unreasonable_preallocation_is_ENOMEM_at_once)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	SAME(xmem_preallocate(pool, 1ULL << 45, 1, NULL), -ENOMEM);
	says(ENOMEM, "35184372088832 bytes are needed");
	SAME(xmem_preallocate(pool, 1ULL << 35, 1024, NULL), -ENOMEM);
	says(ENOMEM, "are left");
	nothing_made(pool);
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	xmem_pool_close(pool);
}

/* ---- RLIMIT_FSIZE (L20) ---- */

static void limit_files(uint64_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
}

TEST(P10_a_buffer_beyond_RLIMIT_FSIZE_is_EFBIG)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	signal(SIGXFSZ, SIG_DFL);
	limit_files(BYTES);
	SAME(xmem_preallocate(pool, 2 * BYTES, 1, NULL), -EFBIG);
	says(EFBIG, "RLIMIT_FSIZE");
	nothing_made(pool);
	/* Where one buffer fits, a file has as many as fit. */
	WORKED(xmem_preallocate(pool, BYTES, 8, NULL));
	SAME(stat_of(pool).payloads, 8);
	SAME(stat_of(pool).bytes_files, 8 * BYTES);
	publish_stamp(pool, 5);
	xmem_pool_close(pool);
}

/* ---- many files: all are made or none ---- */

#define LARGE	(64 << 10)	/* if RLIMIT_FSIZE is as large, each buffer has a file of its own */

TEST(P10_a_thousand_large_buffers_have_a_file_each)
{
	struct xmem_pool *pool;
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < 4096)
		skip("xmemd may have too few descriptors: ulimit -Hn is %llu",
		     (unsigned long long)limit.rlim_max);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	limit_files(LARGE);
	WORKED(xmem_preallocate(pool, LARGE, 1024, NULL));
	SAME(stat_of(pool).payloads, 1024);
	SAME(stat_of(pool).attached, 1024);
	publish_stamp(pool, 5);
	xmem_pool_close(pool);
}

/* A failed preallocation frees all that it has prepared in this process. */
TEST(P10_preallocations_that_fail_keep_no_memory)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 64);
	size_t before;
	int i;

	WORKED(xmem_preallocate(pool, BYTES, 64, NULL));
	before = mallinfo2().uordblks;
	for (i = 1; i <= 1000; i++)
		SAME(xmem_preallocate(pool, BYTES + i, 1, NULL), -ENOSPC);
	CHECK(mallinfo2().uordblks < before + 64 * 1024);	/* always with sanitizers */
	publish_stamp(pool, 1);
	xmem_pool_close(pool);
}

#define SOME	700	/* more than half of the places that a new size has */
#define HELD	100

/* Buffers are added while others are READY, LIVE and held, more than there were places for. */
TEST(P1_buffers_that_are_added_do_not_mix_up_the_others)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 4096);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_buffer *held[HELD], *mine[2 * SOME - HELD];
	struct xmem_subscription *s;
	unsigned int i;

	WORKED(xmem_preallocate(writer, BYTES, SOME, NULL));
	for (i = 0; i < 1000; i++)
		publish_stamp(writer, i);
	s = follow(reader, xmem_pool_client(writer), 0);
	for (i = 0; i < HELD; i++) {
		publish_stamp(writer, 1000 + i);
		held[i] = receive_one(s);
	}
	xmem_unsubscribe(s);
	WORKED(xmem_preallocate(writer, BYTES, SOME, NULL));
	for (i = 0; i < 2 * SOME - HELD; i++) {
		mine[i] = xmem_acquire(writer, BYTES, 0);
		CHECK(mine[i]);
		fill(mine[i], 5000 + i);
	}
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	for (i = 0; i < 2 * SOME - HELD; i++) {
		SAME(*(uint64_t *)xmem_data(mine[i]), 5000 + i);
		xmem_release(mine[i]);
	}
	for (i = 0; i < HELD; i++) {
		SAME(stamp_of(held[i]), 1000 + i);
		xmem_release(held[i]);
	}
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P10_more_files_than_the_host_takes_are_none)
{
	struct rlimit few = { 256, 256 };	/* 32 payload files */
	struct xmem_pool *pool;

	daemon_only("it is about a daemon's limits; quotas.c has the kernel's");
	use_own_daemon();
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	limit_files(LARGE);
	SAME(xmem_preallocate(pool, LARGE, 40, NULL), -EDQUOT);
	says(EDQUOT, "payload files");
	nothing_made(pool);
	WORKED(xmem_preallocate(pool, LARGE, 32, NULL));
	xmem_pool_close(pool);
}

// SPDX-License-Identifier: MIT
/*
 * Reading the files of a pool in sysfs that have many lines (P10): at any offset, by readers in
 * other namespaces, while the contents change, and while pools come and go.
 */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness.h"
#include "../shown.h"

#define BYTES	4096
#define PAGE	page_size()		/* a read of a file of sysfs returns no more */
#define WHY	"the daemon has no sysfs"
#define FILES	2

static const char *const names[FILES] = { "buffers", "clients" };

/* The folder of the client's pool. */
static void folder_of(int file, char folder[64])
{
	unsigned int number = ~0u;
	char path[64], line[256];
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	info = fopen(path, "re");
	CHECK(info);
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "xmem-pool: %u", &number) == 1)
			break;
	fclose(info);
	CHECK(number != ~0u);
	snprintf(folder, 64, "/sys/class/xmem/pool%u", number);
}

static int open_in(const char *folder, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Read all of the file, by reads of @step bytes; *ret_bytes: its length. A read that has room for a
 * line ends behind one, unless it begins within one.
 */
static char *read_by(int file, size_t step, size_t width, size_t *ret_bytes)
{
	size_t room = 1 << 20, at = 0;
	char *text = malloc(room);
	ssize_t n;

	CHECK(text);
	while ((n = pread(file, text + at, step, at)) > 0) {
		CHECK((size_t)n <= step);
		if (step >= width)
			SAME((at + n) % width, 0);
		CHECK((size_t)n + width > (step < PAGE ? step : PAGE) ||
		      !pread(file, &room, 1, at + n));
		at += n;
		CHECK(at + step <= 1 << 20);
	}
	SAME(n, 0);
	*ret_bytes = at;
	return text;
}

/* ---- any offset ---- */

static void check_steps(int file, unsigned int lines)
{
	static const size_t steps[] = { 256, 100000, 4097, 1000, 127, 13, 1 };
	size_t width = shown_width(file), bytes, again, i;
	char *all = read_by(file, PAGE, width, &bytes), *part;

	SAME(bytes, (lines + 1) * width);
	for (i = 1; i <= lines; i++) {
		SAME(all[i * width - 1], '\n');
		SAME(strtoul(all + i * width, NULL, 10), i - 1);
	}
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		part = read_by(file, steps[i], width, &again);
		SAME(again, bytes);
		CHECK(!memcmp(all, part, bytes));
		free(part);
	}
	/* Read the last byte, and from behind the end. */
	SAME(pread(file, &again, 8, bytes - 1), 1);
	SAME(pread(file, &again, 8, bytes), 0);
	SAME(pread(file, &again, 8, (off_t)1 << 62), 0);
	SAME(pread(file, &again, 0, 0), 0);
	CHECK(pread(file, &again, 8, -1) < 0 && errno == EINVAL);
	free(all);
}

TEST_WITHIN(P10_sysfs_lines_are_read_at_any_offset, 60)
{
	struct xmem_attach_request attached;
	unsigned int i, lines[FILES];
	char folder[64];
	struct raw raw;
	int file;

	kernel_only(WHY);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	file = new_memfd(BYTES, GOOD_SEALS);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	close(file);
	folder_of(raw.link.file, folder);
	lines[0] = raw.map.slots;
	lines[1] = raw.map.clients;
	for (i = 0; i < FILES; i++) {
		file = open_in(folder, names[i]);
		CHECK(file >= 0);
		check_steps(file, lines[i]);
		close(file);
	}
	SAME(shown_slot(folder, attached.slot[0]).payload, attached.payload);
	SAME(shown_slot(folder, attached.slot[0] + 1).owner, XMEM_OWNER_NONE);
	SAME(shown_client(folder, raw.link.join.client).incarnation, raw.link.join.incarnation);
	raw_close(&raw);
}

/* ---- namespaces ---- */

/* In namespaces of its own, without the writer: 0, or the line that is wrong. */
static int look_from_elsewhere(const char *folder, unsigned int writer)
{
	struct shown_client client = shown_client(folder, writer);

	if (strcmp(client.state, "alive") || strcmp(client.role, "writer"))
		return __LINE__;	/* it is the owner's, whatever its number in there */
	if (client.pid)
		return __LINE__;
	return client.uid == 65534 ? 0 : __LINE__;
}

TEST(P10_sysfs_lines_speak_of_the_readers_namespaces)
{
	char folder[64];
	int status = -1;
	struct raw raw;
	pid_t child;

	kernel_only(WHY);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	folder_of(raw.link.file, folder);
	SAME(shown_client(folder, raw.link.join.client).pid, getpid());
	SAME(shown_client(folder, raw.link.join.client).uid, geteuid());
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET))
			_exit(1);
		child = fork();	/* the first in the new PID namespace */
		if (!child)
			_exit(look_from_elsewhere(folder, raw.link.join.client) ? 2 : 0);
		if (child < 0 || waitpid(child, &status, 0) != child)
			_exit(3);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
	}
	CHECK(child > 0);
	SAME(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	SAME(WEXITSTATUS(status), 0);
	raw_close(&raw);
}

/* ---- one moment ---- */

/*
 * As long as the slot is live, the client has a hold of every second generation, and none of the
 * others. It may store all this: slot and area are its own.
 */
static void flip(void *argument)
{
	struct xmem_attach_request attached;
	uint64_t generation;
	__u64 *state;
	struct raw raw;
	uint32_t *hold;
	int file = new_memfd(BYTES, GOOD_SEALS);

	raw_start(&raw, argument, XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	SAME(raw.link.backend->map_group(&raw.link, attached.slot[0] / XMEM_GROUP_SLOTS), 0);
	state = &xm_slot(&raw.map, attached.slot[0])->state;
	hold = xm_hold(&raw.map, raw.link.join.client, attached.slot[0]);
	generation = xm_generation(xm_load(state)) | 1;
	tell_parent(attached.slot[0]);
	for (;; generation++) {
		xm_store_release(state, xm_word(generation, 0, XMEM_SLOT_WRITING));
		xm_store_release(hold, generation & 1);
		xm_store_release(state, xm_word(generation, 0, XMEM_SLOT_LIVE));
	}
}

/* Read the slot's line as a tool does that reads all. */
static struct shown_slot shown_among_others(const char *folder, unsigned int slot)
{
	int file = open_in(folder, "buffers");
	size_t width = shown_width(file);
	char lines[8 * SHOWN_LINE];
	struct shown_slot shown;

	CHECK(file >= 0);
	SAME(pread(file, lines, 8 * width, (slot / 8 * 8 + 1) * width), 8 * width);
	close(file);
	lines[(slot % 8 + 1) * width - 1] = 0;
	CHECK(shown_parse_slot(lines + slot % 8 * width, &shown));
	return shown;
}

TEST_WITHIN(P10_sysfs_lines_are_of_one_moment, 60)
{
	unsigned int slot, looks, live = 0, first = 0;
	const char *name = new_name();
	struct shown_slot shown;
	uint64_t before = 0;
	struct child *child;
	char folder[64];
	struct raw raw;

	kernel_only(WHY);
	raw_start(&raw, name, XMEM_ROLE_READER);
	folder_of(raw.link.file, folder);
	child = spawn(flip, (void *)name);
	slot = hear(child);
	for (looks = 0; looks < scaled(100000); looks++) {
		shown = looks % 2 ? shown_among_others(folder, slot) : shown_slot(folder, slot);
		SAME(shown.length, BYTES);
		CHECK(shown.generation >= before);
		before = shown.generation;
		if (shown.changing)
			continue;
		if (strcmp(shown.state, "live"))
			continue;
		SAME(shown.holds, shown.generation & 1);
		SAME(shown.holders[0], shown.holds << shown.owner);
		first += shown.holds;
		live++;
	}
	printf("    %u looks, %u at one live moment, %u with a hold\n", looks, live, first);
	CHECK(live);
	kill_child(child);
	raw_close(&raw);
}

/* ---- pages ---- */

/* How many faults a read of that byte takes. */
static long faults_at(const void *at)
{
	struct rusage before, after;

	SAME(getrusage(RUSAGE_THREAD, &before), 0);
	(void)*(const volatile char *)at;
	SAME(getrusage(RUSAGE_THREAD, &after), 0);
	return after.ru_minflt - before.ru_minflt;
}

TEST(P10_reading_sysfs_takes_no_pages_from_clients)
{
	struct xmem_attach_request attached;
	const void *place[3];
	size_t bytes, i, name;
	char folder[64];
	struct raw raw;
	int file;

	kernel_only(WHY);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	file = new_memfd(BYTES, GOOD_SEALS);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	close(file);
	SAME(raw.link.backend->map_group(&raw.link, attached.slot[0] / XMEM_GROUP_SLOTS), 0);
	place[0] = xm_slot(&raw.map, attached.slot[0]);
	place[1] = xm_hold(&raw.map, raw.link.join.client, attached.slot[0]);
	place[2] = xm_slot_row(&raw.map, attached.slot[0]);
	folder_of(raw.link.file, folder);
	for (i = 0; i < 3; i++)
		faults_at(place[i]);
	for (name = 0; name < FILES; name++) {
		file = open_in(folder, names[name]);
		CHECK(file >= 0);
		free(read_by(file, PAGE, shown_width(file), &bytes));
		close(file);
		for (i = 0; i < 3; i++)
			SAME(faults_at(place[i]), 0);
	}
	raw_close(&raw);
}

/* ---- pools come and go ---- */

/* Messages between the reader and the test. */
struct talk {
	unsigned int looks;		/* at all files of all pools */
	unsigned int pages, gone;	/* nearly whole ones; files that were gone already */
	unsigned int stop;
};

static void read_file(const char *folder, const char *name, struct talk *talk)
{
	int file = open_in(folder, name);
	char page[PAGE];
	ssize_t n = -1;

	while (file >= 0 && (n = read(file, page, sizeof(page))) > 0)
		talk->pages += n > (ssize_t)PAGE / 2;
	if (n < 0) {
		CHECK(errno == ENOENT || errno == ENODEV);
		talk->gone++;
	}
	if (file >= 0)
		close(file);
}

static void read_all(void *argument)
{
	static const char *const all[] = { "name", "payloads", "buffers", "clients" };
	struct talk *talk = argument;
	struct dirent *entry;
	char folder[64];
	unsigned int i;
	DIR *pools;

	while (!xm_load(&talk->stop)) {
		pools = opendir("/sys/class/xmem");
		CHECK(pools);
		while ((entry = readdir(pools)))
			for (i = 0; i < 4 && !strncmp(entry->d_name, "pool", 4); i++) {
				snprintf(folder, sizeof(folder), "/sys/class/xmem/%.30s",
					 entry->d_name);
				read_file(folder, all[i], talk);
			}
		closedir(pools);
		xm_store(&talk->looks, talk->looks + 1);
	}
	tell_parent(1);
}

TEST_WITHIN(P10_sysfs_is_read_while_pools_come_and_go, 120)
{
	struct talk *talk = mmap(NULL, sizeof(*talk), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i, begun;
	struct child *child;
	char folder[64];
	struct raw raw;
	int file;

	kernel_only(WHY);
	CHECK(talk != MAP_FAILED);
	file = new_memfd(BYTES, GOOD_SEALS);
	child = spawn(read_all, talk);
	for (i = 0; i < scaled(400); i++) {
		raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
		folder_of(raw.link.file, folder);
		/* The folder exists as soon as the pool does, and not a moment later. */
		CHECK(!access(folder, F_OK));
		SAME(raw_attach(&raw, file, 1, NULL), 0);
		begun = xm_load(&talk->looks);
		if (i % 4 == 0)		/* at least half of them are seen */
			EVENTUALLY(xm_load(&talk->looks) > begun);
		raw_close(&raw);
	}
	EVENTUALLY(access(folder, F_OK));
	xm_store(&talk->stop, 1);
	hear(child);
	finish_child(child);
	printf("    %u looks, %u whole pages, %u files had gone\n", talk->looks, talk->pages,
	       talk->gone);
	CHECK(talk->pages);
	CHECK(!munmap(talk, sizeof(*talk)));
	close(file);
}

// SPDX-License-Identifier: MIT
/*
 * How much memory may still be allocated? The limits are those of the memory cgroups of this
 * process, of each one up to the root, and of the machine. Without this check, the kernel would
 * kill a process of the cgroup when an allocation should fail. Pages that can be dropped, and free
 * swap, count as left. A limit that cannot be read does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/payload/payload.h"

#define PATH_BYTES	4096
#define NO_LIMIT	(~0ULL)
#define SPARE_BYTES	(1ULL << 20)	/* the kernel charges in batches, and also for page
					 * tables */
#define USUAL_HUGE	(2ULL << 20)

/* ---- numbers in files ---- */

static FILE *open_in(const char *folder, const char *name)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* The number in the file. NO_LIMIT: it has "max" or a number that means it, or does not exist. */
static u64 number(const char *folder, const char *name)
{
	FILE *file = open_in(folder, name);
	u64 value = NO_LIMIT;
	char line[64];

	if (!file)
		return NO_LIMIT;
	if (fgets(line, sizeof(line), file) && *line >= '0' && *line <= '9')
		value = strtoull(line, NULL, 10);
	fclose(file);
	return value < 1ULL << 62 ? value : NO_LIMIT;
}

/* ret[i]: the number in the line whose first word is keys[i], or 0. @keys ends with NULL. */
static void numbers(const char *folder, const char *name, const char *const *keys, u64 *ret)
{
	FILE *file = open_in(folder, name);
	char line[256];
	int i;

	for (i = 0; keys[i]; i++)
		ret[i] = 0;
	while (file && fgets(line, sizeof(line), file)) {
		size_t length = strcspn(line, " ");

		for (i = 0; keys[i]; i++)
			if (strlen(keys[i]) == length && !memcmp(line, keys[i], length))
				ret[i] = strtoull(line + length, NULL, 10);
	}
	if (file)
		fclose(file);
}

static u64 minus(u64 a, u64 b)
{
	return a == NO_LIMIT ? NO_LIMIT : a > b ? a - b : 0;
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static void take(struct xl_room *room, u64 left, u64 limit, const char *folder, const char *name)
{
	if (left >= room->left)
		return;
	room->left = left;
	room->limit = limit;
	snprintf(room->what, sizeof(room->what), "%.200s/%s", folder, name);
}

/* ---- one cgroup ---- */

/* The two versions of cgroups have different names for these files. */
struct files {
	const char *limit[2], *used, *swap_limit, *swap_used;
	const char *droppable[4];		/* lines of memory.stat */
	bool swap_with_memory;			/* swap_limit and swap_used count memory and swap */
};

static const struct files version_1 = {
	.limit = { "memory.limit_in_bytes" }, .used = "memory.usage_in_bytes",
	.swap_limit = "memory.memsw.limit_in_bytes", .swap_used = "memory.memsw.usage_in_bytes",
	.droppable = { "total_inactive_file", "total_active_file" },
	.swap_with_memory = true,
};

static const struct files version_2 = {
	.limit = { "memory.max", "memory.high" }, .used = "memory.current",
	.swap_limit = "memory.swap.max", .swap_used = "memory.swap.current",
	.droppable = { "inactive_file", "active_file", "slab_reclaimable" },
};

static void read_cgroup(const char *folder, const struct files *files, u64 swap_free,
			struct xl_room *room)
{
	u64 used = number(folder, files->used), limit, left, swap, droppable, line[3] = { 0 };
	int i;

	for (i = 0; i < 2 && files->limit[i] && used != NO_LIMIT; i++) {
		limit = number(folder, files->limit[i]);
		if (limit == NO_LIMIT)
			continue;
		numbers(folder, "memory.stat", files->droppable, line);
		droppable = line[0] + line[1] + line[2];
		swap = minus(number(folder, files->swap_limit), number(folder, files->swap_used));
		left = minus(limit, used) + droppable;
		if (files->swap_with_memory)
			left = least(left + swap_free, least(swap, 1ULL << 62) + droppable);
		else
			left += least(swap, swap_free);
		take(room, left, limit, folder, files->limit[i]);
	}
}

/* Look at the cgroup @path below @root, and at all cgroups above it. */
static void read_cgroups(const char *root, const char *path, const struct files *files,
			 u64 swap_free, struct xl_room *room)
{
	char folder[PATH_BYTES];
	size_t root_length = strlen(root);
	char *end;

	if (snprintf(folder, sizeof(folder), "%s%s", root, path) >= (int)sizeof(folder))
		return;
	/* The path may belong to another namespace; then only the root is known here. */
	if (strstr(path, "/..") || access(folder, F_OK))
		folder[root_length] = '\0';
	for (;;) {
		read_cgroup(folder, files, swap_free, room);
		end = strrchr(folder + root_length, '/');
		if (!end)
			return;
		*end = '\0';
	}
}

/* ---- all of them ---- */

/* Is @word in the list, which has commas between its words? */
static bool has_controller(const char *list, const char *word)
{
	size_t length = strlen(word);
	const char *at;

	for (at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* A line of /proc/self/cgroup: number:controllers:path. */
static void read_line(char *line, const char *cgroups, u64 swap_free, struct xl_room *room)
{
	char *controllers = strchr(line, ':'), *path;
	char root[PATH_BYTES];
	const char *below = "";

	path = controllers ? strchr(++controllers, ':') : NULL;
	if (!path)
		return;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (has_controller(controllers, "memory")) {
		below = "/memory";
	} else if (*controllers) {
		return;
	} else {
		snprintf(root, sizeof(root), "%s/cgroup.controllers", cgroups);
		below = access(root, F_OK) ? "/unified" : "";
	}
	snprintf(root, sizeof(root), "%s%s", cgroups, below);
	read_cgroups(root, strcmp(path, "/") ? path : "", *controllers ? &version_1 : &version_2,
		     swap_free, room);
}

void xl_room_find(const char *proc, const char *cgroups, struct xl_room *ret)
{
	static const char *const keys[] = { "MemTotal:", "MemAvailable:", "SwapFree:", NULL };
	u64 kilobytes[3];		/* in the order of @keys */
	FILE *file = open_in(proc, "self/cgroup");
	char line[PATH_BYTES];

	*ret = (struct xl_room){ .left = NO_LIMIT, .limit = NO_LIMIT };
	numbers(proc, "meminfo", keys, kilobytes);
	if (kilobytes[0])
		take(ret, (kilobytes[1] + kilobytes[2]) << 10, kilobytes[0] << 10, proc,
		     "meminfo");
	while (file && fgets(line, sizeof(line), file))
		read_line(line, cgroups, kilobytes[2] << 10, ret);
	if (file)
		fclose(file);
}

int xl_room_check(u64 bytes)
{
	struct xl_room room;

	xl_room_find("/proc", "/sys/fs/cgroup", &room);
	if (room.left == NO_LIMIT || room.left >= bytes + bytes / 128 + SPARE_BYTES)
		return 0;
	return xl_fail(ENOMEM, "%llu bytes are needed, but of the %llu bytes that %s "
		       "allows only %llu are left; make fewer or smaller buffers",
		       (unsigned long long)bytes, (unsigned long long)room.limit, room.what,
		       (unsigned long long)room.left);
}

u64 xl_transparent_page_bytes(void)
{
	u64 bytes = number("/sys/kernel/mm/transparent_hugepage", "hpage_pmd_size");

	return bytes == NO_LIMIT ? USUAL_HUGE : bytes;
}

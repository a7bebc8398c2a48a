/* SPDX-License-Identifier: MIT */
/*
 * Reads lines of /sys/class/xmem/poolN/{buffers,clients} as a tool does: the first line is the
 * heading, and all lines are as long as it is.
 */
#ifndef XMEM_TEST_SHOWN_H
#define XMEM_TEST_SHOWN_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xmem/uapi.h"

#define SHOWN_LINE	256		/* no line is longer */

struct shown_slot {
	uint32_t slot, owner;		/* owner: a client's id, or XMEM_OWNER_* */
	char state[9];			/* "": it has no owner, and all that follows is 0 */
	unsigned long long generation, payload, length, holds;
	uint32_t traits, claims;
	uint64_t holders[XMEM_CLIENT_WORDS];
	int changing;			/* the line is of several moments */
};

struct shown_client {
	uint32_t client;
	char state[11];			/* "-": the id is free, and all that follows is 0 */
	char role[7];
	int pid;
	uint32_t uid;
	unsigned long long incarnation;
	char label[XMEM_LABEL_BYTES];
};

/* The length of a line with its newline. 0: the file cannot be read. */
static inline size_t shown_width(int file)
{
	char line[SHOWN_LINE];
	ssize_t n = pread(file, line, sizeof(line), 0);
	const char *end = n > 0 ? memchr(line, '\n', n) : NULL;

	return end ? end + 1 - line : 0;
}

/* Reads line @index below the heading; without newline and trailing blanks. 0 or -errno. */
static inline int shown_line(const char *path, unsigned int index, char line[SHOWN_LINE])
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t width;
	ssize_t n;

	if (file < 0)
		return -errno;
	width = shown_width(file);
	n = width ? pread(file, line, width, (index + (off_t)1) * width) : -1;
	close(file);
	if (n <= 0 || (size_t)n != width || line[n - 1] != '\n')
		return n ? -EIO : -ERANGE;
	while (n && strchr(" \n", line[n - 1]))
		n--;
	line[n] = 0;
	return 0;
}

static inline void shown_bitmap(const char *digits, uint64_t bits[XMEM_CLIENT_WORDS])
{
	char one[2] = "";
	int i;

	for (; *digits && *digits != ' '; digits++) {
		if (*digits == ',')
			continue;
		for (i = XMEM_CLIENT_WORDS - 1; i; i--)
			bits[i] = bits[i] << 4 | bits[i - 1] >> 60;
		one[0] = *digits;
		bits[0] = bits[0] << 4 | strtoul(one, NULL, 16);
	}
}

/* Takes a line apart. Returns whether it looks as docs/abi/sysfs.txt says. */
static inline int shown_parse_slot(const char *line, struct shown_slot *slot)
{
	char owner[8] = "";
	int at = 0, n;

	memset(slot, 0, sizeof(*slot));
	n = sscanf(line, "%u %7s %8s %llu %llu %llu %x %u %llu %n", &slot->slot, owner,
		   slot->state, &slot->generation, &slot->payload, &slot->length, &slot->traits,
		   &slot->claims, &slot->holds, &at);
	slot->owner = !strcmp(owner, "-") ? XMEM_OWNER_NONE : !strcmp(owner, "host") ?
		      XMEM_OWNER_HOST : (uint32_t)strtoul(owner, NULL, 10);
	slot->changing = !!strchr(line, '!');
	shown_bitmap(line + at, slot->holders);
	return n == 9 || (n == 2 && slot->owner == XMEM_OWNER_NONE);
}

/* All zero if there is no such line or pool. */
static inline struct shown_slot shown_slot(const char *folder, unsigned int index)
{
	char path[160], line[SHOWN_LINE];
	struct shown_slot slot;

	snprintf(path, sizeof(path), "%s/buffers", folder);
	if (shown_line(path, index, line) || !shown_parse_slot(line, &slot) || slot.slot != index)
		memset(&slot, 0, sizeof(slot));
	return slot;
}

static inline struct shown_client shown_client(const char *folder, unsigned int index)
{
	struct shown_client client = { .client = 0 };
	char path[160], line[SHOWN_LINE];

	snprintf(path, sizeof(path), "%s/clients", folder);
	if (shown_line(path, index, line) ||
	    sscanf(line, "%u %10s %6s %d %u %llu %15[^\n]", &client.client, client.state,
		   client.role, &client.pid, &client.uid, &client.incarnation, client.label) < 2 ||
	    client.client != index)
		memset(&client, 0, sizeof(client));
	return client;
}

static inline int shown_holds(const struct shown_slot *slot, unsigned int client)
{
	return slot->holders[client / 64] >> client % 64 & 1;
}

/* How many slots have that owner, and *@ret_bytes, how long they are together. */
static inline unsigned int shown_owned(const char *folder, uint32_t owner, uint64_t *ret_bytes)
{
	char path[160], line[SHOWN_LINE];
	struct shown_slot slot;
	unsigned int count = 0;
	FILE *file;

	*ret_bytes = 0;
	snprintf(path, sizeof(path), "%s/buffers", folder);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (!shown_parse_slot(line, &slot) || slot.owner != owner)
			continue;
		count++;
		*ret_bytes += slot.length;
	}
	if (file)
		fclose(file);
	return count;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reads the records of /sys/class/xmem/poolN/{slots,clients,devices} as a tool does: by the sizes
 * that the file itself has.
 */
#ifndef XMEM_TEST_SHOWN_H
#define XMEM_TEST_SHOWN_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "xmem/uapi.h"

/*
 * Reads record @index of the file @path, as far as @record has room for it. 0 or -errno; -ERANGE:
 * there is no such record.
 */
static inline int shown_record(const char *path, unsigned int index, void *record, size_t bytes)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), err = -EIO;
	struct xmem_shown head;
	ssize_t n;

	if (file < 0)
		return -errno;
	n = pread(file, &head, sizeof(head), 0);
	if (n < 0)
		err = -errno;
	else if (n == sizeof(head) && index >= head.records)
		err = -ERANGE;
	else if (n == sizeof(head) && head.record_bytes >= bytes) {
		n = pread(file, record, bytes,
			  head.header_bytes + (off_t)index * head.record_bytes);
		err = n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
	}
	close(file);
	return err;
}

/* Reads a record in the folder of a pool. It is all zero if there is no such record or pool. */
#define SHOWN(kind) \
static inline struct xmem_shown_##kind shown_##kind(const char *folder, unsigned int index) \
{ \
	struct xmem_shown_##kind record; \
	char path[160]; \
	\
	snprintf(path, sizeof(path), "%s/" #kind "s", folder); \
	if (shown_record(path, index, &record, sizeof(record))) \
		memset(&record, 0, sizeof(record)); \
	return record; \
}
SHOWN(slot)
SHOWN(client)
SHOWN(device)

static inline int shown_holds(const struct xmem_shown_slot *slot, unsigned int client)
{
	return slot->holders[client / 64] >> client % 64 & 1;
}

#endif

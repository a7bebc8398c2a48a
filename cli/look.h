/* SPDX-License-Identifier: MIT */
/*
 * Looking at pools without joining them. look.c makes a sample: one JSON value with everything that
 * xmem top shows. The facts of a pool's inside come from the host:
 *
 *   look_daemon.c  xmemd: copies the pool's pages, from /proc/PID/fd of the daemon
 *   look_pages.c   reads the copy
 *   look_sysfs.c   xmem.ko: reads the lines in /sys/class/xmem/poolN
 *
 * A value that a host does not tell is null.
 */
#ifndef LOOK_H
#define LOOK_H

#include "cli/cli.h"

/*
 * A new sample of all pools. @before: the sample before this one, or NULL; what was handed over
 * since then is counted in this one. Nothing is printed: if there is no host, or it refuses, the
 * sample has an "error" and no pools.
 */
json_t *look(const json_t *before);

/* The element of an array whose field @key is @number, or NULL. */
json_t *look_find(const json_t *array, const char *key, json_int_t number);

/* The pool of a sample that @given stands for, as commands take it, or NULL. */
json_t *look_named(const json_t *sample, const char *given);

/* A whole number of an object; 0 if it is null or missing. */
json_int_t look_number(const json_t *object, const char *key);

/* That number, or null if it is not known. */
json_t *look_known(bool known, json_int_t number);

/*
 * Look for the daemon's files, once for each sample. 0, or -errno, and the sample has the error.
 */
int look_daemon_begin(json_t *sample);

/*
 * Fill in "clients", "slots" and "devices" of a pool. @before: the pool in the sample before, or
 * NULL. A pool that has just ended, or that cannot be looked at, gets none of these fields.
 */
void look_daemon(json_t *pool, const json_t *before);
void look_sysfs(json_t *pool, const json_t *before);

struct xm_map;
void look_pages(const struct xm_map *map, json_t *pool, const json_t *before);

/*
 * Map the pages of a pool of xmemd in a sample, read-only, until the tool ends. NULL: the pool has
 * just ended. The pages change.
 */
const struct xm_map *look_daemon_map(const json_t *pool);

/* The sums over the slots of a pool for one client. */
struct look_tally {
	uint64_t slots, holds, limbo, bytes_limbo;
	uint64_t frames, bytes;		/* published since the sample before; not of look_pages */
};

#endif

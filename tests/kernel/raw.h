/* SPDX-License-Identifier: MIT */
/*
 * Clients of xmem.ko without the library: thin wrappers round open, ioctl and
 * mmap of /dev/xmem that return 0 or -errno and judge nothing, one hand-over with
 * them, and the PASS, FAIL and SKIP lines of the programs here. What is to be tested
 * is in those.
 */
#ifndef XMEM_KERNEL_RAW_H
#define XMEM_KERNEL_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/host.h"

#define RAW_DEVICE	"/dev/xmem"
#define RAW_PAGE	4096
#define RAW_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* ---- verdicts ---- */

void pass(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fail(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
void skip(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
unsigned int failures(void);
int summary(void);			/* the last line; the exit status */

/* ---- clients ---- */

struct raw {
	int file;			/* of /dev/xmem, then the client's; or -1 */
	struct xmem_join_request join;		/* as answered */
	struct xmem_pool_header header;	/* as it was when it mapped the pool */
	char *base;			/* the whole layout, read-only; or NULL */
	void *area;			/* its own; or NULL */
	struct xm_map map;
};
#define RAW_NONE	((struct raw){ .file = -1 })

/* Open, join, map: one after the other, or all. On error raw_end undoes what was done. */
int raw_open(struct raw *raw);
int raw_join(struct raw *raw, const struct xmem_join_request *join);
int raw_map(struct raw *raw);
int raw_map_area(struct raw *raw);
int raw_start(struct raw *raw, const struct xmem_join_request *join);
void raw_end(struct raw *raw);

/* A join request of a small pool. */
struct xmem_join_request raw_joining(const char *name, enum xmem_role role);

int raw_request(const struct raw *raw, unsigned int request, void *argument);
/* An own group, writable in raw->map from then on. */
int raw_map_group(struct raw *raw, unsigned int group);
bool raw_has_group(const struct raw *raw, unsigned int group);
/* A sealed memfd of so many pages, each filled with @fill; or -errno. */
int raw_memfd(unsigned int pages, int fill);
/* One that XMEM_ATTACH_SHARED takes. */
int raw_shared_memfd(unsigned int pages);
/* What to ask for @count slots of one page each. */
struct xmem_attach_request raw_attaching(int memfd, unsigned int count);

/* ---- a hand-over: each function says what went wrong, or NULL ---- */

struct pair {
	struct raw writer, reader;
	struct xmem_attach_request attached;
	struct xm_publication publication;
	struct xm_follow follow;
};

/* A writer, a reader, one publication from the one to the other, who holds it. */
const char *pair_hand_over(struct pair *p, const char *name);
/* It is there as long as it is held, and can be got again; the owner cannot have it back. */
const char *pair_look(const struct pair *p);
/* The hold is put, and the owner has its slot back. */
const char *pair_let_go(struct pair *p);
void pair_end(struct pair *p);

/* ---- what is there ---- */

/* 1, 0, or -errno: is there a pool of that name? */
int raw_pool_exists(const char *name);
/* The number of pools in sysfs, once it is @want, or after 10000 looks, a millisecond apart. */
unsigned int raw_pools_shown(unsigned int want);
unsigned int raw_descriptors(void);
u64 raw_now_ns(void);

#endif

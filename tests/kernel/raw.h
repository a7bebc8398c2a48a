/* SPDX-License-Identifier: MIT */
/*
 * Clients of xmem.ko without the library: thin wrappers of open, ioctl and mmap of /dev/xmem, which
 * return 0 or -errno and judge nothing; one hand-over with them; and the PASS, FAIL and SKIP lines
 * of the programs in this folder. The tests themselves are in those programs.
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
int summary(void);			/* prints the last line; returns the exit status */

/* ---- clients ---- */

struct raw {
	int file;			/* an open /dev/xmem, later the client's; or -1 */
	struct xmem_join_request join;		/* the answer to the join */
	struct xmem_pool_header header;	/* the header when it mapped the pool */
	char *base;			/* the whole layout, read-only; or NULL */
	void *area;			/* the client's own area, or NULL */
	struct xm_map map;
};
#define RAW_NONE	((struct raw){ .file = -1 })

/* Open, join, map: single steps, or all. On an error raw_end undoes the steps that were done. */
int raw_open(struct raw *raw);
int raw_join(struct raw *raw, const struct xmem_join_request *join);
int raw_map(struct raw *raw);
int raw_map_area(struct raw *raw);
int raw_start(struct raw *raw, const struct xmem_join_request *join);
void raw_end(struct raw *raw);

/* A join request of a small pool. */
struct xmem_join_request raw_joining(const char *name, enum xmem_role role);

int raw_request(const struct raw *raw, unsigned int request, void *argument);
/* A request about a slot, enum xmem_slot_op. */
int raw_slot(const struct raw *raw, u32 op, u32 slot);
/* The request is made with this op, enum xmem_wait_op. */
int raw_wait(const struct raw *raw, u32 op, struct xmem_wait_request *request);
/* Gives the client a group, which is writable in raw->map from then on. */
int raw_map_group(struct raw *raw, unsigned int group);
bool raw_has_group(const struct raw *raw, unsigned int group);
/* A sealed memfd of so many pages, each filled with @fill; or -errno. */
int raw_memfd(unsigned int pages, int fill);
/* A memfd that XMEM_ATTACH_SHARED accepts. */
int raw_shared_memfd(unsigned int pages);
/* A request to attach @count slots of one page each. */
struct xmem_attach_request raw_attaching(int memfd, unsigned int count);

/* ---- a hand-over: each function says what went wrong, or NULL ---- */

struct pair {
	struct raw writer, reader;
	struct xmem_attach_request attached;
	struct xm_publication publication;
	struct xm_follow follow;
};

/* A writer publishes once; a reader receives the slot and holds it. */
const char *pair_hand_over(struct pair *p, const char *name);
/* While the reader holds the slot, it can be got again, and the owner cannot have it back. */
const char *pair_look(const struct pair *p);
/* The reader puts its hold, and the owner has its slot back. */
const char *pair_let_go(struct pair *p);
void pair_end(struct pair *p);

/* ---- existing pools ---- */

/* 1, 0, or -errno: is there a pool of that name? */
int raw_pool_exists(const char *name);
/* Returns the number of pools in sysfs when it is @want, or after 10000 looks of 1 ms. */
unsigned int raw_pools_shown(unsigned int want);
unsigned int raw_descriptors(void);
u64 raw_now_ns(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Attacks on xmem.ko by one user, and their effects on another user: strangers.c, exhaust.c,
 * ends.c, ends_wakes.c. Each attack repeats a finding of a review (K3, K4, ...), and returns a text
 * that says what is wrong, or NULL. expected-red.txt lists the attacks that still succeed, one a
 * line:
 *
 *   PROGRAM NAME: why it is not mended yet
 *
 * A listed attack that succeeds is skipped, with that reason. A listed attack that fails is an
 * error: the fault has been mended, and its line must go. So the list is always true.
 */
#ifndef XMEM_KERNEL_ATTACK_H
#define XMEM_KERNEL_ATTACK_H

#include <stdlib.h>

#include "gpu.h"		/* kids, EVENTUALLY */

#define THRICE		3
#define EXPECTED_RED	"tests/kernel/expected-red.txt"

/* Two users, and the group of the device, of which both are members. */
enum { ATTACKER = 10001, VICTIM = 10002, MEMBERS = 10003 };

struct attack {
	const char *name;		/* begins with the number of the finding and '_' */
	const char *(*run)(void);	/* as root, in a process of its own */
	bool timed;			/* other load on the machine may change the result, so it
					 * counts only if it is equal THRICE */
};

/* PROGRAM [NAME...]: runs all attacks, or the named ones. Returns the exit status. */
int attack_main(const struct attack *attacks, unsigned int count, int argc, char **argv);

/* A text that says what is wrong, in a buffer that the next such text overwrites. */
const char *wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
#undef WANT
#define WANT(condition) \
	do { \
		if (!(condition)) \
			return wrong("%s:%d: not so: %s", __FILE__, __LINE__, #condition); \
	} while (0)
#define SAME(value_, wanted_) \
	do { \
		long long is_ = (value_), wanted_is_ = (wanted_); \
		if (is_ != wanted_is_) \
			return wrong("%s:%d: %s is %lld, not %lld", __FILE__, __LINE__, #value_, \
				     is_, wanted_is_); \
	} while (0)
/* Returns the text that a function has returned, if it has found a fault. */
#define GOES_WELL(call) \
	do { \
		const char *why_ = (call); \
		if (why_) \
			return why_; \
	} while (0)

/* Prints a line of figures. */
void figure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- people ---- */

/* From now on the process is this user's and has no right of root's. 0 or -errno. */
int become(unsigned int uid);
const char *write_map(pid_t pid, const char *which, const char *lines);	/* uid_map, gid_map */
/* Lets this process have as many descriptors as the machine gives. */
void many_descriptors(void);
/* Attaches one more group to the owner and fills its slots. *more: there was one. */
const char *fill_group(struct raw *owner, struct xmem_attach_request *attach, bool *more);
/* Zeroed memory that kids share with their parent. */
void *shared_memory(size_t bytes);
/* Copies a kid's descriptor, which has that number in the kid; or -errno. */
int take_descriptor(const struct kid *kid, int number);
/* A request to join by a pool's descriptor, with the capacities that the pool has. */
struct xmem_join_request joining_by_file(int pool_fd, enum xmem_role role);
/* A pool's descriptor from a client of it, or -errno. */
int pool_descriptor(const struct raw *raw);
/* Joins and maps only the client's own area, which is enough to keep the client alive. */
int start_thin(struct raw *raw, const struct xmem_join_request *join);
/* Makes the control group @name, and writes @value to its @file, of @controller. */
const char *make_cgroup(const char *name, const char *controller, const char *file,
			const char *value);
int enter_cgroup(const char *name, pid_t pid);
/* The number in a file of that control group, or ~0. */
u64 cgroup_number(const char *name, const char *file);
/* Is the thread in the kernel, in a function of that name, or of a module whose name is in []? */
bool thread_is_in(pid_t pid, pid_t thread, const char *name);
bool kid_is_in(const struct kid *kid, const char *name);	/* its first thread */
/* The number of the client's pool in sysfs, or ~0. */
unsigned int pool_number(const struct raw *raw);

/* ---- time ---- */

/* One of the two sides of a comparison: one without the load, one with it. */
typedef const char *measured(void *side, u64 *ret_ns);

/*
 * Measures the two sides in turn, so many times each. It is wrong if half of the runs with the
 * load, or a tenth of them, take more than @percent of the time that they take without the load.
 */
const char *duel(const char *what, measured *once, void *idle, void *load, unsigned int runs,
		 unsigned int percent);

#endif

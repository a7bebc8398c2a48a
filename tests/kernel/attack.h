/* SPDX-License-Identifier: MIT */
/*
 * Attacks on xmem.ko by one user, and what another sees of them: strangers.c, exhaust.c, ends.c,
 * ends_wakes.c. Each repeats a finding of a review (K3, K4, ...) and says what is wrong, or
 * nothing. What is known to be wrong still stands in expected-red.txt, one line for each:
 *
 *   PROGRAM NAME: why it is not mended yet
 *
 * Such an attack that succeeds is skipped, with that reason. One that fails is an error, too: it
 * has been mended, and its line must go. So the list is true at any time.
 */
#ifndef XMEM_KERNEL_ATTACK_H
#define XMEM_KERNEL_ATTACK_H

#include <stdlib.h>

#include "gpu.h"		/* kids, EVENTUALLY */

#define THRICE		3
#define EXPECTED_RED	"tests/kernel/expected-red.txt"

/* Users, and the group of the device, of which both are members. */
enum { ATTACKER = 10001, VICTIM = 10002, MEMBERS = 10003 };

struct attack {
	const char *name;		/* begins with the number of the finding and '_' */
	const char *(*run)(void);	/* as root, in a process of its own */
	bool timed;			/* what else the machine does may make it seem otherwise, so
					 * it counts only if it is so THRICE */
};

/* PROGRAM [NAME...]: runs all, or those. Returns the exit status. */
int attack_main(const struct attack *attacks, unsigned int count, int argc, char **argv);

/* What is wrong, in a buffer that the next one overwrites. */
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
/* What a function that returns such a text has found. */
#define GOES_WELL(call) \
	do { \
		const char *why_ = (call); \
		if (why_) \
			return why_; \
	} while (0)

/* A line of figures. */
void figure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- people ---- */

/* The process is this user's from now on, with no right of root's left. 0 or -errno. */
int become(unsigned int uid);
/* As many descriptors as the machine gives. */
void many_descriptors(void);
/* One more group of the owner's, whose slots have contents. *more: there was one. */
const char *fill_group(struct raw *owner, struct xmem_attach_request *attach, bool *more);
/* Zeroed memory that kids share with who starts them. */
void *shared_memory(size_t bytes);
/* A descriptor of a kid's, by its number there; or -errno. */
int take_descriptor(const struct kid *kid, int number);
/* A join by a pool's descriptor, with its capacities as they are. */
struct xmem_join_request joining_by_file(int pool_fd, enum xmem_role role);
/* A pool's descriptor from a client of it, or -errno. */
int pool_descriptor(const struct raw *raw);
/* Joins and maps only the own area: that is all that keeps a client alive. */
int start_thin(struct raw *raw, const struct xmem_join_request *join);
/* Makes the control group @name, and says @value in its @file, of @controller. */
const char *make_cgroup(const char *name, const char *controller, const char *file,
			const char *value);
int enter_cgroup(const char *name, pid_t pid);
/* The number of the client's pool in sysfs, or ~0. */
unsigned int pool_number(const struct raw *raw);

/* ---- time ---- */

/* One of two sides of a comparison: without the load, and with it. */
typedef const char *measured(void *side, u64 *ret_ns);

/*
 * Measures the two sides in turn, so many times each. What is wrong: half of the runs with the
 * load, or a tenth, take more than @percent of what they take without.
 */
const char *duel(const char *what, measured *once, void *idle, void *load, unsigned int runs,
		 unsigned int percent);

#endif

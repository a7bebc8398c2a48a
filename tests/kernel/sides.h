/* SPDX-License-Identifier: MIT */
/*
 * What the files of the program ends share: two pools of the victim, one with a load and one
 * without, which are compared in turn on the same machine (duel, in attack.h).
 */
#ifndef XMEM_TESTS_SIDES_H
#define XMEM_TESTS_SIDES_H

#include "attack.h"

#define AT_MOST		200	/* percent of what it takes without the load */

/* One of the two pools. Its first client, a kid, keeps it. */
struct side {
	struct kid keeper;
	unsigned int slots, clients;	/* capacities */
	bool loaded;
	int pool_fd;			/* here; in the keeper it has the number in *shared */
	struct shared {
		int pool_fd;
		unsigned int number;	/* of the pool, in sysfs */
		unsigned int done;	/* how much of the load there is; or who waits */
		unsigned int rounds;	/* of threads that wait, */
		u64 armed[500];		/* and for what value of the word each does now */
		u32 publisher;
	} *shared;
};

/* The victim's first client in the pool that this process keeps, a keeper. */
extern struct raw kept;

/* For kid_start: makes a client of the victim that keeps the pool of the side @argument. */
const char *keeps(void *argument);

/* Start a side whose keeper does @keep, which begins with keeps; or both, which do nothing else. */
const char *start_side(struct side *side, const char *(*keep)(void *));
const char *start_sides(struct side sides[2], unsigned int slots, unsigned int clients);

/* What is in ends_wakes.c: how long who wakes, or ends, takes before many that wait. */
const char *wake_with_many_items(void);
const char *wake_with_many_sleepers(void);
const char *end_with_many_sleepers(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the program `ends`: two pools of the victim, one with a load and one
 * without, which are compared in turn on one machine (duel, in attack.h).
 */
#ifndef XMEM_TESTS_SIDES_H
#define XMEM_TESTS_SIDES_H

#include "attack.h"

#define AT_MOST		200	/* percent of the time without the load */

/* One of the two pools. Its first client, a kid, keeps it. */
struct side {
	struct kid keeper;
	unsigned int slots, clients;	/* capacities */
	bool loaded;
	int pool_fd;			/* here; *shared has its number in the keeper */
	struct shared {
		int pool_fd;
		unsigned int number;	/* the pool's number in sysfs */
		unsigned int done;	/* progress of the load, or number of waiters */
		unsigned int rounds;	/* of the waiting threads */
		u64 armed[500];		/* the value of the word for which each waits */
		u32 publisher;
	} *shared;
};

/* In a keeper: the victim's first client in the pool, which keeps it. */
extern struct raw kept;

/* For kid_start: makes a client of the victim that keeps the pool of the side @argument. */
const char *keeps(void *argument);

/* Start a side whose keeper runs @keep, which calls keeps first. Or start both with keeps. */
const char *start_side(struct side *side, const char *(*keep)(void *));
const char *start_sides(struct side sides[2], unsigned int slots, unsigned int clients);

/* In ends_wakes.c: how long a waker, or a client that ends, takes with many waiters. */
const char *wake_with_many_items(void);
const char *own_items_are_paid_for(void);
const char *killed_waker_calls_no_more(void);
const char *long_calls_of_strangers_are_few(void);
const char *wake_with_nested_sets(void);
const char *end_with_nested_sets(void);
const char *wake_with_many_sleepers(void);
const char *end_with_many_sleepers(void);

#endif

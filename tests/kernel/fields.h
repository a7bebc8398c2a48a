/* SPDX-License-Identifier: MIT */
/*
 * A process that asks at random: what it has, its chance, and for each request of core/request.c
 * fields that may be right. A request that fields.c does not know is filled with what others
 * take. Nothing is asked here. And what both programs that ask so have in their main.
 */
#ifndef XMEM_KERNEL_FIELDS_H
#define XMEM_KERNEL_FIELDS_H

#include "core/request.h"
#include "raw.h"

#define FIELDS_REQUESTS	256		/* numbers that a request can have */
#define CLIENTS		3		/* of one process */
#define POLLED		4

struct actor {
	u64 random;			/* not 0; chance() goes on from here */
	const char *pools[2];		/* names that it joins by */
	u32 owner;			/* another user, who has a pool of the second name; or 0 */
	struct raw client[CLIENTS];
	struct raw *me;			/* of these: who asks now; it has mapped its pool */
	int memfd, shared, pool_fd;
	int gpu;			/* a file of the test GPU, or -1 */
	u64 opened;			/* memory of a GPU that was opened last; or 0 */
	int polled[POLLED];		/* from POLL_FD; their clients may have ended since */
};

/* XMEM_TEST_SEED, or one of its own, which it prints. */
u64 choose_seed(void);
u64 chance(struct actor *a);
bool one_in(struct actor *a, unsigned int n);
/* A small number, an edge of what is allowed, or anything. */
u64 odd_number(struct actor *a);

/* By the table: 1 + the highest number of a request, one of them, any of them. */
unsigned int fields_requests(void);
const struct xm_request_kind *fields_request(unsigned int number);	/* NULL: there is none */
unsigned int fields_some(struct actor *a);
/* false: its fields are a guess, so it may never be taken. */
bool fields_known(unsigned int number);
/* A struct of that request, of its full size, with fields that may be right. */
void fields_fill(struct actor *a, unsigned int number, union xm_request *r);
/* The request was taken: keeps, maps or closes what it gave. */
void fields_taken(struct actor *a, unsigned int number, union xm_request *r);

/* The u32 at @place of the struct, counted in words. */
void set_word(union xm_request *r, unsigned int place, u32 word);
/* One of the first @words words makes no sense any more, or all. */
void garble(struct actor *a, union xm_request *r, unsigned int words);
/* Garbage in all pages that the client may write. */
void scribble(struct actor *a);

/* A result: well, if there is no trouble. */
void judge(const char *name, const char *trouble);
/* In the end: NULL, or how many pools are still there. */
const char *judge_pools(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A process that makes random requests: its clients and files, its random numbers, and, for each
 * request of core/request.c, fields that may be right. A request that fields.c does not know gets
 * values that other requests take. These functions make no request. Both programs that make random
 * requests use them.
 */
#ifndef XMEM_KERNEL_FIELDS_H
#define XMEM_KERNEL_FIELDS_H

#include "core/request.h"
#include "raw.h"

#define FIELDS_REQUESTS	256		/* numbers that a request can have */
#define CLIENTS		3		/* clients of one process */
#define POLLED		4

struct actor {
	u64 random;			/* state of chance(), not 0 */
	const char *pools[2];		/* names of the pools that it joins */
	u32 owner;			/* another user, the owner of the second pool; or 0 */
	struct raw client[CLIENTS];
	struct raw *me;			/* the client now in use; it has mapped its pool */
	int memfd, shared, pool_fd;
	int gpu;			/* a file of the test GPU, or -1 */
	u64 opened;			/* the GPU memory that was opened last; or 0 */
	int polled[POLLED];		/* from POLL_FD; their clients may have ended */
};

/* Returns XMEM_TEST_SEED, or a new seed, which it prints. */
u64 choose_seed(void);
u64 chance(struct actor *a);
bool one_in(struct actor *a, unsigned int n);
/* Returns a small number, an edge of the allowed range, or any number. */
u64 odd_number(struct actor *a);

/* From the table of requests: 1 + the highest number, one request, any request. */
unsigned int fields_requests(void);
const struct xm_request_kind *fields_request(unsigned int number);	/* NULL: there is none */
unsigned int fields_some(struct actor *a);
/* false: its fields are a guess, so it may never succeed. */
bool fields_known(unsigned int number);
/* Fills a struct of that request, of full size, with fields that may be right. */
void fields_fill(struct actor *a, unsigned int number, union xm_request *r);
/* After a request that succeeded: keeps, maps or closes its result. */
void fields_taken(struct actor *a, unsigned int number, union xm_request *r);

/* The u32 at word @place of the struct. */
void set_word(union xm_request *r, unsigned int place, u32 word);
/* Makes one of the first @words words senseless, or all. */
void garble(struct actor *a, union xm_request *r, unsigned int words);
/* Writes garbage into all pages that the client may write. */
void scribble(struct actor *a);

/* Reports a result; it is good if there is no trouble. */
void judge(const char *name, const char *trouble);
/* At the end: returns NULL, or a text that says how many pools are left. */
const char *judge_pools(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Which clients have the slots of a pool, in words: taken.c. */
#ifndef XMEM_HOST_TAKEN_H
#define XMEM_HOST_TAKEN_H

#include "lib/private.h"

/* A sentence that is being put together. What does not fit is left out. */
struct xl_text {
	char bytes[XL_ERROR_BYTES];
	size_t used;
};

void xl_print(struct xl_text *to, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How many slots each client holds, or has, or has yet to receive. */
struct xl_shares {
	u32 by[XMEM_MAX_CLIENTS];
};

/* Count a slot for each client that holds it. Returns whether a client does. */
bool xl_count_holders(const struct xm_map *map, u32 slot, struct xl_shares *shares);

/*
 * " (client 3 viewer pid 412: 5, client 7 logger pid 415: 3, and others)", the largest first; it
 * empties @shares. @first: the words between the first pid and its number.
 */
void xl_name_clients(struct xmem_pool *pool, struct xl_shares *shares, const char *first,
		     struct xl_text *to);

/*
 * Name the clients that have the groups of slots, and those that keep the slots of ended writers.
 * @most_looks: at so many hold words at most.
 */
void xl_describe_slots(struct xmem_pool *pool, u64 most_looks, struct xl_text *to);

/* The pool has too few slots for @count new buffers: name the clients that have them. -ENOSPC. */
int xl_fail_too_few_slots(struct xmem_pool *pool, u32 count);
/*
 * This writer has no slots, and others have all: name them. -ENOSPC, noted. Under no lock, or any.
 */
int xl_fail_no_slots(struct xmem_pool *pool);
/*
 * The GPU @ordinal, whose number in the pool is @device (0: it has none), has too little memory
 * left for @bytes: say what the pool has there, and which clients hold it. -ENOMEM, noted.
 */
int xl_fail_gpu_full(struct xmem_pool *pool, u32 device, int ordinal, u64 bytes);

#endif

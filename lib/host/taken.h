/* SPDX-License-Identifier: MIT */
/* Messages about which clients have the slots of a pool: taken.c. */
#ifndef XMEM_HOST_TAKEN_H
#define XMEM_HOST_TAKEN_H

#include "lib/private.h"

/* A message under construction. Text that does not fit is cut off. */
struct xl_text {
	char bytes[XL_ERROR_BYTES];
	size_t used;
};

void xl_print(struct xl_text *to, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* For each client, how many slots it holds, owns, or has yet to receive. */
struct xl_shares {
	u32 by[XMEM_MAX_CLIENTS];
};

/* Count @slot for each client that holds it. Returns whether any client does. */
bool xl_count_holders(const struct xm_map *map, u32 slot, struct xl_shares *shares);

/*
 * Print " (client 3 viewer pid 412: 5, client 7 logger pid 415: 3, and others)", the largest first.
 * This empties @shares. @first: the words between the first pid and its number.
 */
void xl_name_clients(struct xmem_pool *pool, struct xl_shares *shares, const char *first,
		     struct xl_text *to);

/*
 * Name the clients that have the groups of slots, and those that keep the slots of ended writers.
 */
void xl_describe_slots(struct xmem_pool *pool, struct xl_text *to);

/*
 * Fail because the pool has too few slots for @count new buffers, and name the clients that have
 * them. Returns -ENOSPC.
 */
int xl_fail_too_few_slots(struct xmem_pool *pool, u32 count);
/*
 * Fail because this writer has no slots and others have all, and name them. -ENOSPC, noted. It
 * takes no lock, so any lock may be held.
 */
int xl_fail_no_slots(struct xmem_pool *pool);
/*
 * Fail because a GPU has too little memory for @bytes. @ordinal is its number in this process, and
 * @device its number in the pool (0: none). The message says what this pool has there, and which
 * clients hold it, and what the other pools of this process have there. -ENOMEM, noted. Under no
 * lock, and with cancellation off.
 */
int xl_fail_gpu_full(struct xmem_pool *pool, u32 device, int ordinal,
		     const u8 uuid[XMEM_UUID_BYTES], u64 bytes);

#endif

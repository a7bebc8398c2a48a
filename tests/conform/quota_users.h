/* SPDX-License-Identifier: MIT */
/*
 * Users of a machine of our own, what the module counts for each, and what it says of a refusal.
 * quotas.c, quota_shares.c and guests.c use these.
 */
#ifndef XMEM_CONFORM_QUOTA_USERS_H
#define XMEM_CONFORM_QUOTA_USERS_H

#include "harness.h"

#define BYTES	4096

/*
 * A uid that nobody else has; neither do others have the uids 10000 and 20000 above it. Otherwise
 * the test is skipped.
 */
unsigned int new_user(void);
void become(unsigned int user);
/*
 * The user's number in its line of /sys/class/xmem/users; 0: it has no line, ~0: no such number.
 */
uint64_t seen(unsigned int user, const char *what);
bool has_nothing(unsigned int user);

struct xmem_quota_request quota_of(struct raw *raw, uint32_t quota);
/* The last refusal for @raw must be of this limit. */
void refused_by(struct raw *raw, uint32_t quota, const char *name, uint32_t level);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A turn is a mutex for threads that ask a host which may be stopped. A wait for it ends at a
 * deadline, or when a signal handler has run. A word that is zero is a turn that is free.
 */
#ifndef XMEM_TURN_H
#define XMEM_TURN_H

#include "lib/base/lock.h"

/* 0, -ETIMEDOUT at @deadline_ns of CLOCK_MONOTONIC (~0: never), or -EINTR. */
int xl_turn_take(u32 *turn, u64 deadline_ns);
void xl_turn_end(u32 *turn);

/* Take the turn if it is free. */
static inline bool xl_turn_try(u32 *turn)
{
	bool taken = xm_cas_full(turn, 0, 1);

	xl_count_lock(taken);
	return taken;
}

#endif

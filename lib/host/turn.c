// SPDX-License-Identifier: MIT
/* Taking and ending a turn, a mutex whose waiters can give up: turn.h. */
#include <time.h>

#include "lib/host/futex.h"
#include "lib/host/turn.h"

#define NS	1000000000ULL

int xl_turn_take(u32 *turn, u64 deadline_ns)
{
	struct timespec deadline = { deadline_ns / NS, deadline_ns % NS };
	int err;

	if (xl_turn_try(turn))
		return 0;
	while (xm_xchg_full(turn, 2)) {
		err = xm_futex_wait(turn, 2, deadline_ns == ~0ULL ? NULL : &deadline);
		if (err == -EINTR || err == -ETIMEDOUT)
			return err;
	}
	xl_count_lock(1);
	return 0;
}

void xl_turn_end(u32 *turn)
{
	xl_count_lock(-1);
	if (xm_xchg_full(turn, 0) == 2)
		xm_futex_wake_all(turn);
}

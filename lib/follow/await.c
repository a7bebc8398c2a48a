// SPDX-License-Identifier: MIT
/*
 * Waiting for a writer to come. Other clients can see that this client waits, in its own area. The
 * program's terminal gets a line after a second.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/follow/wait.h"
#include "lib/host/pages.h"

#define PATIENCE_NS	1000000000ULL	/* before the line is printed */

/* Is there a terminal that has got no line since a writer was last followed? */
static bool is_to_tell(struct xmem_pool *pool)
{
	const char *quiet = getenv("XMEM_QUIET");

	return !xm_load(&pool->follows.told_waiting) && !(quiet && *quiet) && isatty(STDERR_FILENO);
}

/*
 * Can a line be printed without blocking? A terminal that is stopped (Ctrl-S) would block the
 * thread.
 */
static bool takes_a_line(void)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&room, 1, 0) == 1 && room.revents & POLLOUT;
}

static void tell(struct xmem_pool *pool)
{
	char name[XL_NAME_BYTES];

	if (takes_a_line() &&
	    !__atomic_exchange_n(&pool->follows.told_waiting, 1, __ATOMIC_RELAXED))
		dprintf(STDERR_FILENO, "xmem: waiting for a writer of %s; none is there yet\n",
			xl_pool_name(pool, name, sizeof(name)));
}

static int wait_until(struct xmem_pool *pool, struct xl_armed armed, u64 deadline_ns)
{
	return xl_waiters_wait(pool, XMEM_WAIT_CLIENTS, 0, armed, deadline_ns);
}

int xl_await_writer(struct xmem_pool *pool, struct xl_armed armed, u64 deadline_ns)
{
	u64 *awaits = &xm_ring(&pool->map, pool->me)->awaits_writer;
	u64 soon = xl_now_ns() + PATIENCE_NS;
	bool tells = deadline_ns > soon && is_to_tell(pool);
	int err;

	__atomic_add_fetch(awaits, 1, __ATOMIC_RELAXED);
	err = wait_until(pool, armed, tells ? soon : deadline_ns);
	if (tells && err == -ETIMEDOUT) {
		tell(pool);
		err = wait_until(pool, armed, deadline_ns);
	}
	__atomic_sub_fetch(awaits, 1, __ATOMIC_RELAXED);
	return err;
}

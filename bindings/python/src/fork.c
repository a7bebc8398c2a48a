// SPDX-License-Identifier: MIT
/*
 * Which objects a child has inherited by fork. The library refuses their handles itself; but what
 * this extension remembers of them, such as the address of a payload that the child has not mapped,
 * is not asked of the library again. So forks are counted, and each object knows its count.
 *
 * A child that no C library has forked (a bare clone) does not count itself; it may only exec.
 */
#include "core.h"

#include <pthread.h>

unsigned int xp_forks;

/* The child has one thread yet. */
static void in_child(void)
{
	xp_forks++;
}

static void once(void)
{
	/* Without memory for the handler the library still refuses what it is asked. */
	pthread_atfork(NULL, NULL, in_child);
}

void xp_count_forks(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;

	pthread_once(&control, once);
}

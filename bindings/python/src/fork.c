// SPDX-License-Identifier: MIT
/*
 * Objects that a child has inherited by fork. The library refuses their handles itself. But this
 * extension caches facts about them, such as the address of a payload that the child has not
 * mapped, without asking the library again. So forks are counted, and each object stores the count
 * at which it was made.
 *
 * A child by a bare clone(), without the C library, is not counted; it may only exec.
 */
#include "core.h"

#include <pthread.h>

unsigned int xp_forks;

/* The child still has only one thread. */
static void in_child(void)
{
	xp_forks++;
}

static void once(void)
{
	/* If there is no memory for the handler, the library still refuses the handles. */
	pthread_atfork(NULL, NULL, in_child);
}

void xp_count_forks(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;

	pthread_once(&control, once);
}

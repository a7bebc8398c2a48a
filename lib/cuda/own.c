// SPDX-License-Identifier: MIT
/* Stops the library's own threads when the process ends: own.h. */
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "lib/cuda/own.h"

#define NAP_NS		1000000
#define NAPS		1000	/* a second, because the program's function in such a thread may
				 * never return */

u32 xl_own_stopped;
static u32 running;		/* threads between begin and end that have not stopped; atomic */
static pid_t process;		/* the process of these threads; a forked child has none of them */
static _Thread_local bool own;

void xl_own_begin(void)
{
	own = true;
	xm_store(&process, getpid());
	__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
}

void xl_own_end(void)
{
	own = false;
	__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
}

void xl_own_park(void)
{
	if (!own || !__atomic_load_n(&xl_own_stopped, __ATOMIC_SEQ_CST))
		return;
	xl_own_end();
	for (;;)
		pause();
}

/* The thread that ends the process may be one of the library's own threads. */
void xl_own_stop(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	u32 me = own, naps;

	__atomic_store_n(&xl_own_stopped, 1, __ATOMIC_SEQ_CST);
	if (xm_load(&process) != getpid())
		return;
	for (naps = 0; naps < NAPS && __atomic_load_n(&running, __ATOMIC_SEQ_CST) > me; naps++)
		nanosleep(&nap, NULL);
}

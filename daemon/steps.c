// SPDX-License-Identifier: MIT
/*
 * Functions that core/env.h needs of its host: failed checks, and steps that tests count.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon.h"

void xm_check_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "xmemd: %s:%d: this does not hold: %s\n", file, line, what);
	abort();
}

#ifdef XMEM_STEPS
/* Tests count the steps, and stop the host at one. */
static u64 *steps;

void xm_step(int step)
{
	if (!steps)
		return;
	steps[step]++;
	if (steps[XM_STEPS] == step + 1ULL)
		raise(SIGSTOP);
}

/* The test gives a file: a count for each step, and 1 + the step at which to stop. */
void xd_count_steps(void)
{
	const char *path = getenv("XMEMD_STEPS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, (XM_STEPS + 1) * sizeof(*steps), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	steps = at == MAP_FAILED ? NULL : at;
	close(fd);
}
#else
void xd_count_steps(void)
{
}
#endif

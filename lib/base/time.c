// SPDX-License-Identifier: MIT
/* The clock: the present time, and the deadline of a timeout. */
#include <time.h>

#include "lib/host/request.h"

u64 xl_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

u64 xl_deadline(int64_t timeout_ns)
{
	return timeout_ns == XMEM_FOREVER ? ~0ULL : xl_now_ns() + (u64)timeout_ns;
}

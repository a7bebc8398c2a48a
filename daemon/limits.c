// SPDX-License-Identifier: MIT
/*
 * Resource limits. xmemd inherits the limits of the program that started it, but it serves all
 * programs of the user. So it raises each soft limit that could end xmemd, or leave it too little,
 * to the hard limit. If a hard limit is too low, xmemd refuses to serve, because a later end would
 * end the pools of all programs.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "lib/host/wire.h"
#include "daemon.h"

#define SPARE_FDS	64	/* for everything but connections and payloads */
#define GIB		(1ULL << 30)

static const struct {
	int resource;
	u64 least;		/* of the hard limit; 0: any */
	const char *name;
} limits[] = {
	{ RLIMIT_NOFILE, 256, "open files (ulimit -n)" },
	{ RLIMIT_CPU, RLIM_INFINITY, "CPU time (ulimit -t)" },
	{ RLIMIT_FSIZE, GIB, "the size of files (ulimit -f)" },
	{ RLIMIT_AS, GIB, "address space (ulimit -v)" },
	{ RLIMIT_DATA, GIB, "data (ulimit -d)" },
	{ RLIMIT_MEMLOCK, 0, "locked memory" },
};

const char *xd_limits_raise(void)
{
	const char *low = NULL;
	struct rlimit limit;
	size_t i;

	signal(SIGXFSZ, SIG_IGN);	/* a request that needs a larger file fails instead */
	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (getrlimit(limits[i].resource, &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(limits[i].resource, &limit);
		if (limit.rlim_max < limits[i].least && !low)
			low = limits[i].name;
	}
	return low;
}

/*
 * Of nine descriptors, four are for connections, four for payloads and one for polling. So none of
 * these uses can take the descriptors of another.
 */
void xd_limits_set(struct xd_limits *ret)
{
	struct rlimit files = { 1024, 1024 };
	u64 count;

	getrlimit(RLIMIT_NOFILE, &files);
	count = files.rlim_cur < 1 << 20 ? files.rlim_cur : 1 << 20;
	ret->pools = count / XM_POOL_DESCRIPTORS;
	if (ret->pools < XM_LEAST_POOLS)
		ret->pools = XM_LEAST_POOLS;
	if (ret->pools > XM_MOST_POOLS)
		ret->pools = XM_MOST_POOLS;
	count = count > 4 * SPARE_FDS ? count - 2 * ret->pools - SPARE_FDS : SPARE_FDS;
	if (count > SPARE_FDS)
		count -= count / 9;
	ret->descriptors = files.rlim_cur < ~0u ? files.rlim_cur : ~0u;
	ret->connections = count / 4;
	ret->per_process = ret->connections / 4;
	ret->payloads = count / 2;
	ret->polls = count / 8;
	ret->polls_of_one = ret->polls / 4;
}

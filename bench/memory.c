// SPDX-License-Identifier: MIT
/*
 * Memory in use before and after millions of hand-overs: of both processes, of the daemon and of
 * the pool. Two processes hand over in turn.
 *
 * Resident memory is read from smaps_rollup, which scans the page tables; the
 * number in statm may lag by hundreds of kilobytes.
 */
#include "bench.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WARM_ROUNDS	100000
#define ALLOWED_KIB	64	/* for all of the hand-overs together: far below a byte each */

/* KiB, or -1. */
static long resident(int pid)
{
	char path[64], line[128];
	long kib = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	file = fopen(path, "r");
	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "Rss: %ld", &kib) != 1)
			kib = -1;
	if (file)
		fclose(file);
	return kib;
}

/* Entries of /proc/@pid/fd, or -1. */
static long open_files(int pid)
{
	char path[64];
	long count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	if (!folder)
		return -1;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The process at the other end of one of this process's sockets: xmemd. 0: no such socket. */
static int daemon_pid(void)
{
	int file;

	for (file = 3; file < 64; file++) {
		struct ucred peer;
		socklen_t length = sizeof(peer);

		if (!getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.pid &&
		    peer.pid != getpid())
			return peer.pid;
	}
	return 0;
}

struct usage {
	long resident[3];	/* KiB: side 0, side 1, the daemon */
	long files[3];
	struct xmem_pool_info pool;
};

/*
 * Side 1 notes its own usage, side 0 gathers all of it. At that moment nothing
 * is in flight, and each side is writing one buffer.
 */
static void take_stock(struct bench *bench, int side, struct end *end, struct usage *usage)
{
	int other = daemon_pid();

	bench->note[1][1 + side * 2] = resident(getpid());
	bench->note[1][2 + side * 2] = open_files(getpid());
	meet(bench, side);
	*usage = (struct usage){
		.resident = { bench->note[1][1], bench->note[1][3], other ? resident(other) : 0 },
		.files = { bench->note[1][2], bench->note[1][4], other ? open_files(other) : 0 },
		.pool = { .size = sizeof(usage->pool) },
	};
	if (xmem_pool_stat(end->pool, &usage->pool))
		die("xmem_pool_stat");
	if (usage->resident[0] < 0 || usage->resident[2] < 0 || usage->files[2] < 0)
		die("reading /proc");
	meet(bench, side);
}

/*
 * The numbers that must be equal before and after: slots, bytes, holds and clients. The number of
 * slots being written may differ, because owners acquire a varying number ahead.
 */
static unsigned int pool_growth(const struct xmem_pool_info *a, const struct xmem_pool_info *b)
{
	return (b->attached > a->attached) + (b->bytes > a->bytes) +
	       (b->held > a->held) + (b->holds > a->holds) + (b->limbo > a->limbo) +
	       (b->clients > a->clients) + (b->zombies > a->zombies);
}

static void memory_rows(struct bench *bench, const struct usage *a, const struct usage *b)
{
	long files = 0;
	int n;

	row_number(bench, "hand-overs, two processes", "", bench->hand_overs, -1);
	row_number(bench, "memory grown: publishers", "KiB",
		   b->resident[0] - a->resident[0] + b->resident[1] - a->resident[1], ALLOWED_KIB);
	if (a->resident[2])
		row_number(bench, "memory grown: xmemd", "KiB", b->resident[2] - a->resident[2],
			   ALLOWED_KIB);
	for (n = 0; n < 3; n++)
		files += b->files[n] - a->files[n];
	row_number(bench, "open files more", "", files, 0);
	row_number(bench, "numbers of the pool grown", "", pool_growth(&a->pool, &b->pool), 0);
}

void case_memory(struct bench *bench, int side)
{
	struct usage before, after;
	struct end end;

	end_pair(bench, side, &end, 32, 4096);
	loop_ping_pong(&end, side, WARM_ROUNDS);
	meet(bench, side);
	take_stock(bench, side, &end, &before);
	take_stock(bench, side, &end, &before);	/* the first look may itself have cost memory */
	loop_ping_pong(&end, side, bench->hand_overs / 2);
	meet(bench, side);
	take_stock(bench, side, &end, &after);
	if (!side)
		memory_rows(bench, &before, &after);
	meet(bench, side);
	end_close(&end);
}

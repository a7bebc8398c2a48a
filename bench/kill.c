// SPDX-License-Identifier: MIT
/*
 * SIGKILL of a client that holds a writer's only buffer: the time until the writer, which waits in
 * xmem_acquire, has the buffer, against the time until the killer's waitpid returns, for each kill.
 * Side 0 is the writer, side 1 the killer, which starts the holders.
 */
#include "bench.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS		101
#define ASLEEP_NS	200e3	/* time after which a writer that has announced it sleeps */

enum { SENT, RETURNED, REAPED };	/* ticks in note[0] */

/* The holder: it follows the writer, receives, and then does nothing. */
static void hold(struct bench *bench, int out)
{
	struct end end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&end, bench, 0, 0);
	end_follow(&end, bench->note[1][0]);
	if (write(out, "f", 1) != 1)
		die("write");
	if (!xmem_receive(end.from, XMEM_FOREVER))
		die("xmem_receive");
	if (write(out, "h", 1) != 1)
		die("write");
	for (;;)
		pause();
}

static void wait_for_byte(int in)
{
	char byte;

	if (read(in, &byte, 1) != 1)
		die("the holder has gone");
}

static void kill_one(struct bench *bench)
{
	int status, way[2];
	pid_t child;

	child = pipe(way) ? -1 : fork();
	if (child < 0)
		die("fork");
	if (!child)
		hold(bench, way[1]);
	close(way[1]);
	wait_for_byte(way[0]);
	meet_asleep(bench, 1);	/* the holder follows */
	wait_for_byte(way[0]);
	meet_asleep(bench, 1);	/* the holder holds */
	spin_ns(ASLEEP_NS);
	bench->note[0][SENT] = ticks();
	if (kill(child, SIGKILL) || waitpid(child, &status, 0) != child)
		die("killing the holder");
	bench->note[0][REAPED] = ticks();
	if (!WIFSIGNALED(status))
		die("the holder ended by itself");
	close(way[0]);
	meet_asleep(bench, 1);	/* both have their times */
}

/* Publish the only buffer, wait until it is held, and wait to get it back. */
static void lose_one(struct bench *bench, struct end *end)
{
	meet_asleep(bench, 0);	/* the holder follows */
	if (xmem_publish(end->next, NULL, NULL))
		die("xmem_publish");
	meet_asleep(bench, 0);	/* the holder holds */
	end->next = xmem_acquire(end->pool, end->bytes, XMEM_FOREVER);
	bench->note[0][RETURNED] = ticks();
	if (!end->next)
		die("xmem_acquire");
	meet_asleep(bench, 0);	/* both have their times */
}

void case_kill(struct bench *bench, int side)
{
	static struct series series;
	const uint64_t *note = bench->note[0];
	struct end end;
	unsigned int n;

	ns_per_tick();
	if (!side) {
		end_open(&end, bench, 1, 4096);
		bench->note[1][0] = xmem_pool_client(end.pool);
		end.next = xmem_acquire(end.pool, end.bytes, 0);
		if (!end.next)
			die("xmem_acquire");
	}
	meet_asleep(bench, side);
	series.reps = KILLS;
	for (n = 0; n < KILLS; n++) {
		if (side) {
			kill_one(bench);
			continue;
		}
		lose_one(bench, &end);
		series.value[n] = (int64_t)(note[RETURNED] - note[SENT]) * ns_per_tick();
		series.floor[n] = (int64_t)(note[REAPED] - note[SENT]) * ns_per_tick();
	}
	if (side)
		return;
	row_series(bench, "SIGKILL of a holder to acquire", "to waitpid", TARGET_MOST, 1.4,
		   &series);
	end_close(&end);
}

// SPDX-License-Identifier: MIT
/*
 * Contests: several variants of one operation, each in a process of its own, take turns on one CPU.
 * So they see one machine at one time, and anything that slows it slows them all.
 */
#include "bench.h"

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WARM	5	/* turns that are not counted */

static const struct contestant *contestants;
static unsigned int contest_sides, contest_reps;

static void wait_for_turn(struct contest *contest, unsigned int side)
{
	uint32_t turn;

	while ((turn = __atomic_load_n(&contest->turn, __ATOMIC_ACQUIRE)) != side)
		syscall(SYS_futex, &contest->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
}

static void pass_on(struct contest *contest, unsigned int side)
{
	__atomic_store_n(&contest->turn, (side + 1) % contest_sides, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &contest->turn, FUTEX_WAKE, contest_sides, NULL, NULL, 0);
}

/*
 * All contestants open the pool before any of them measures: turns begin when the last one is
 * ready.
 */
static void contest_side(struct bench *bench, int side)
{
	struct contest *contest = &bench->contest;
	unsigned int length, r;

	ns_per_tick();
	wait_for_turn(contest, side);
	length = strlen(bench->name);	/* a contestant has a pool of its own */
	snprintf(bench->name + length, sizeof(bench->name) - length, ".%d", side);
	contestants[side].open(bench);
	bench->name[length] = 0;
	pass_on(contest, side);
	for (r = 0; r < contest_reps + WARM; r++) {
		unsigned int at = r < WARM ? 0 : r - WARM;

		wait_for_turn(contest, side);
		contest->value[side][at] = contestants[side].measure(bench);
		pass_on(contest, side);
	}
}

bool contest_run(struct bench *bench, const struct contestant *all, unsigned int sides,
		 unsigned int reps)
{
	contestants = all;
	contest_sides = sides;
	contest_reps = reps < BENCH_MAX_REPS ? reps : BENCH_MAX_REPS;
	bench->contest.reps = contest_reps;
	bench->contest.turn = 0;
	return run_apart(bench, contest_side, sides, true);
}

void row_contest(struct bench *bench, const char *what, unsigned int side, const char *base_name,
		 unsigned int base, enum target_kind kind, double target)
{
	static struct series series;
	const struct contest *contest = &bench->contest;

	series.reps = contest->reps;
	memcpy(series.value, contest->value[side], sizeof(series.value));
	memcpy(series.floor, contest->value[base], sizeof(series.floor));
	row_series(bench, what, base_name, kind, target, &series);
}

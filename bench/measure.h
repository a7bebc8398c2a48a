/* SPDX-License-Identifier: MIT */
/*
 * How the benchmark measures: pinning, clocks, and the statistics of repetitions.
 *
 * A figure is never taken once: a case and its floor are timed in turn, in
 * short batches, many times; the median of those is the figure, the distance
 * between the quartiles its spread. No xmem here, and no table.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BENCH_MAX_REPS	2048

/* The statistics of a series of repetitions. */
struct figure {
	double min;
	double low;		/* lower quartile */
	double median;
	double high;		/* upper quartile */
};

static inline double figure_spread(const struct figure *figure)
{
	return figure->high - figure->low;
}

/* Sorts @values. @count at least 1. */
struct figure figure_of(double *values, unsigned int count);

/* A case and its floor, batch by batch. */
struct series {
	unsigned int reps;
	double value[BENCH_MAX_REPS];
	double floor[BENCH_MAX_REPS];
};

/* The statistics of a series: of the case, of the floor, and of their ratio batch by batch. */
struct figures {
	struct figure value;
	struct figure floor;
	struct figure ratio;
	double margin;		/* of the ratio's median: its margin of error */
};

/*
 * Time @floor and @value in turn, @reps times after a few that do not count.
 * Both return nanoseconds.
 */
void series_run(struct series *series, unsigned int reps, double (*floor)(void *arg),
		double (*value)(void *arg), void *arg);

/* Sorts the series. */
struct figures figures_of(struct series *series);

/* Two CPUs that this process may use, on different cores if possible. false: only one. */
bool pick_cpus(int cpu[2]);

/* Undo pin_to, but for these two. */
void unpin(const int cpu[2]);

/* Exits if it cannot. Also asks for the highest priority, and goes on without it. */
void pin_to(int cpu);

static inline double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* A clock that is equal on two cores, and is read after the loads before it. */
static inline uint64_t ticks(void)
{
#ifdef __x86_64__
	__builtin_ia32_lfence();
	return __builtin_ia32_rdtsc();
#else
	return now_ns();
#endif
}

/* Measured on the first call: about 20 ms. */
double ns_per_tick(void);

/* Keeps the CPU for @ns. */
void spin_ns(double ns);

#endif

// SPDX-License-Identifier: MIT
/*
 * Statistics of repetitions, pinning and clocks; measure.h says what they mean.
 */
#include "measure.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct figure figure_of(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), by_size);
	return (struct figure){
		.min = values[0],
		.low = values[count / 4],
		.median = values[count / 2],
		.high = values[count - 1 - count / 4],
	};
}

void series_run(struct series *series, unsigned int reps, double (*floor)(void *arg),
		double (*value)(void *arg), void *arg)
{
	unsigned int warm = 5, r;

	series->reps = reps < BENCH_MAX_REPS ? reps : BENCH_MAX_REPS;
	for (r = 0; r < series->reps + warm; r++) {
		unsigned int at = r < warm ? 0 : r - warm;

		series->floor[at] = floor(arg);
		series->value[at] = value(arg);
	}
}

struct figures figures_of(struct series *series)
{
	static double ratio[BENCH_MAX_REPS];
	struct figures out;
	unsigned int r;

	for (r = 0; r < series->reps; r++)
		ratio[r] = series->value[r] / series->floor[r];
	out.ratio = figure_of(ratio, series->reps);
	out.value = figure_of(series->value, series->reps);
	out.floor = figure_of(series->floor, series->reps);
	/* The notch of a box plot: two medians that differ by more are different. */
	out.margin = 1.57 * figure_spread(&out.ratio) / sqrt(series->reps);
	return out;
}

/* The core that @cpu is a thread of, or the CPU itself where the kernel does not say. */
static int core_of(int cpu)
{
	char path[96];
	int core = cpu;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);
	file = fopen(path, "r");
	if (!file)
		return cpu;
	if (fscanf(file, "%d", &core) != 1)
		core = cpu;
	fclose(file);
	return core;
}

bool pick_cpus(int cpu[2])
{
	cpu_set_t set;
	int found = 0, c;

	if (sched_getaffinity(0, sizeof(set), &set))
		return false;
	for (c = 0; c < CPU_SETSIZE && found < 2; c++)
		if (CPU_ISSET(c, &set) && (!found || core_of(c) != core_of(cpu[0])))
			cpu[found++] = c;
	return found == 2;
}

void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("bench: sched_setaffinity");
		exit(2);
	}
	setpriority(PRIO_PROCESS, 0, -20);
}

void unpin(const int cpu[2])
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu[0], &set);
	CPU_SET(cpu[1], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

double ns_per_tick(void)
{
	static double value;

	if (!value) {
		double start = now_ns();
		uint64_t first = ticks();

		spin_ns(20e6);
		value = (now_ns() - start) / (ticks() - first);
	}
	return value;
}

void spin_ns(double ns)
{
	double end = now_ns() + ns;

	while (now_ns() < end)
		;
}

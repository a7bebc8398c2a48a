// SPDX-License-Identifier: MIT
/*
 * The machine of the figures: the processor, its cores, the kernel, and the two floors, which are
 * the speeds of atomics and cache lines.
 */
#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define REPS	201
#define ROUNDS	200
#define ADDS	5000

/* The rest of the first line of /proc/cpuinfo that begins with @key, behind its colon. */
static void cpuinfo(const char *key, char *value, size_t bytes)
{
	char line[4096];
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, key, strlen(key)))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(value, bytes, "%s", colon + 2);
		break;
	}
	if (file)
		fclose(file);
}

static bool has_flag(const char *flag)
{
	char flags[4096] = "";
	char word[40];

	cpuinfo("flags", flags, sizeof(flags) - 2);
	strcat(flags, " ");
	snprintf(word, sizeof(word), " %s ", flag);
	return strstr(flags, word);
}

/* Both sides play the raw games; side 0 notes the medians. */
static void floors(struct bench *bench, int side)
{
	static double adds[REPS], raw[REPS];
	unsigned int r;

	for (r = 0; r < REPS; r++) {
		if (!side)
			adds[r] = floor_locked_adds(2, ADDS);
		meet(bench, side);
		raw[r] = floor_ping_pong(&bench->raw, side, 0, 0, ROUNDS);
	}
	if (side)
		return;
	bench->machine.two_adds_ns = figure_of(adds, REPS).median;
	bench->machine.raw_line_ns = figure_of(raw, REPS).median;
}

void machine_describe(struct bench *bench)
{
	struct machine *machine = &bench->machine;
	struct utsname system;
	cpu_set_t set;

	snprintf(machine->cpu, sizeof(machine->cpu), "unknown");
	cpuinfo("model name", machine->cpu, sizeof(machine->cpu));
	if (!uname(&system))
		snprintf(machine->kernel, sizeof(machine->kernel), "Linux %s", system.release);
	if (has_flag("hypervisor"))
		snprintf(machine->hypervisor, sizeof(machine->hypervisor), "virtual machine");
	machine->cores = sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
	run_apart(bench, floors, 2, false);
	printf("machine: %s, %u cores%s%s, %s; two atomic adds %.1f ns, raw line %.1f ns one way\n",
	       machine->cpu, machine->cores, machine->hypervisor[0] ? ", " : "",
	       machine->hypervisor, machine->kernel, machine->two_adds_ns, machine->raw_line_ns);
}

/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the benchmark: the table that cases fill, and the end, which is one client
 * that publishes and receives. Cases use xmem.h alone.
 *
 * Each case runs in processes of its own, forked for it and pinned. A case has one or two sides, on
 * the first and the second CPU; or it is a contest, whose contestants take turns on the first CPU.
 * They share one struct bench.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "driver.h"
#include "floor.h"
#include "measure.h"
#include "xmem.h"

/* ---- the table (table.c) ---- */

enum target_kind {
	TARGET_NONE,		/* for information */
	TARGET_MOST,		/* the ratio to the base at most this */
	TARGET_LEAST,		/* the ratio to the base at least this */
	TARGET_VALUE,		/* the value at most this */
};

struct row {
	char what[64];
	char base_name[48];	/* the row that it is compared with, in the same run; empty: none */
	char unit[16];
	enum target_kind kind;
	double target;
	struct figures figures;
};

#define BENCH_MAX_ROWS	64
#define BENCH_MAX_SIDES	4

/* The results of a contest; contest.c. */
struct contest {
	_Alignas(64) uint32_t turn;		/* a futex: the contestant whose turn it is */
	unsigned int reps;
	double value[BENCH_MAX_SIDES][BENCH_MAX_REPS];
};

/* The machine of the figures. */
struct machine {
	char cpu[96];
	char kernel[80];
	char hypervisor[32];	/* empty: none is seen */
	unsigned int cores;	/* that this process may use */
	double two_adds_ns;
	double raw_line_ns;	/* one way */
};

struct bench {
	int cpu[2];
	unsigned int reps;			/* of short batches; slow cases take part of it */
	uint64_t hand_overs;			/* of the memory case */
	bool failed;				/* the present case */
	bool unpinned;				/* the present case */
	bool untimed;				/* the machine is emulated: times are no results */
	char name[32];				/* the present case's pool */
	uint32_t clients;			/* clients for which the pool has room; 0: the
						 * default */
	char backend[16];
	const char *folder;			/* for output; all processes have it by fork */
	unsigned int rows;
	struct row row[BENCH_MAX_ROWS];

	/* between the sides of a case */
	_Alignas(64) uint64_t arrived[2];
	_Alignas(64) uint32_t came[2];		/* for meet_asleep: futexes */
	_Alignas(64) uint64_t note[2][8];
	struct driver_handle parcel[2];		/* of gpu_torch.c and streams.c */
	_Alignas(4096) uint64_t words[512];	/* of streams.c, whose GPU writes them */
	struct raw_shared raw;
	struct contest contest;
	struct machine machine;
};

/* A row for a series; its target is for the ratio to the base or for the value. */
void row_series(struct bench *bench, const char *what, const char *base_name,
		enum target_kind kind, double target, struct series *series);

/* A row for one number that is no time. Its target, if not negative, is for the value. */
void row_number(struct bench *bench, const char *what, const char *unit, double value,
		double target);

/* Rows from @first on, as text; how many of them missed their target. */
unsigned int table_print(const struct bench *bench, unsigned int first);
void table_print_head(void);

/* "met", "just missed" (within the margin), "MISSED"; "": the row has no target */
const char *row_verdict(const struct row *row);

/* All rows and the machine, as JSON; the ratios, for the plot. They die if they cannot write. */
void json_write(const struct bench *bench, const char *path);
void plot_write(const struct bench *bench, const char *path);

/* ---- contests (contest.c) ---- */

/* One variant: its own process opens once, and then measures whenever it is its turn. */
struct contestant {
	void (*open)(struct bench *bench);
	double (*measure)(struct bench *bench);
};

/* Lets the contestants take turns. false: one failed, and has printed why. */
bool contest_run(struct bench *bench, const struct contestant *all, unsigned int sides,
		 unsigned int reps);

/* A row of the last contest: contestant @side against contestant @base. */
void row_contest(struct bench *bench, const char *what, unsigned int side, const char *base_name,
		 unsigned int base, enum target_kind kind, double target);

/* ---- the machine (machine.c) ---- */


/* Describes the machine, and measures two additions and a raw line. */
void machine_describe(struct bench *bench);

/* ---- the protocol without the library (inline.c) ---- */

void inline_setup(void);
double inline_get_put(unsigned int rounds);

/* ---- the end (end.c) ---- */

struct end {
	struct xmem_pool *pool;
	struct xmem_subscription *from;
	struct xmem_buffer *next;	/* acquired ahead */
	size_t bytes;
	bool stamps;			/* the tick goes along in user[0] */
	uint64_t sent;
	uint64_t received;
};

/* Prints what failed and xmem's message, and ends the process. */
void die(const char *what) __attribute__((noreturn));

/* Join the case's pool as a writer, with buffers of its own, if @buffers is not 0. */
void end_open(struct end *end, struct bench *bench, unsigned int buffers, size_t bytes);
void end_follow(struct end *end, int publisher);
void end_close(struct end *end);

/* Both sides of a case open an end and follow each other. */
void end_pair(struct bench *bench, int side, struct end *end, unsigned int buffers, size_t bytes);

/* Wait, busy or asleep, until the other side is here too. */
void meet(struct bench *bench, int side);
void meet_asleep(struct bench *bench, int side);

/* Describe the contents of the buffer acquired before, publish it, acquire the next. */
void end_send(struct end *end);

/* Poll until a buffer comes, and read its description. Ownership: xmem_release. */
struct xmem_buffer *end_receive(struct end *end);

/* ---- the loops that are timed (loops.c) ---- */

/* xmem_get and xmem_release with one token, @rounds times. */
void loop_get(struct end *end, uint64_t token, unsigned int rounds);

/* acquire, publish, receive, release of one client that follows itself. */
void loop_cycle(struct end *end, unsigned int rounds);
void loop_claims(struct end *end, unsigned int rounds);

/* Side 0 sends first and waits for the answer, @rounds times. */
void loop_ping_pong(struct end *end, int side, uint64_t rounds);

/* ---- cases ---- */

/* Contests, which start their own processes. */
void case_get(struct bench *bench);
void case_cycle(struct bench *bench);
void case_cycle_clients(struct bench *bench);
void case_lossy(struct bench *bench);

/* Cases of one or two sides. */
void case_threads(struct bench *bench, int side);
void case_ping_pong(struct bench *bench, int side);
void case_large(struct bench *bench, int side);
void case_copy(struct bench *bench, int side);
void case_gpu(struct bench *bench, int side);
void case_streams(struct bench *bench, int side);
void case_wake(struct bench *bench, int side);
void case_kill(struct bench *bench, int side);
void case_memory(struct bench *bench, int side);
void case_demand(struct bench *bench, int side);
void case_syscalls(struct bench *bench, int side);

/* The program that case_syscalls runs under strace: the setup and @rounds of one loop. */
void loop_named(struct bench *bench, int side, const char *name, unsigned int rounds);
extern const char *const loop_names[];
unsigned int loop_calls(const char *name);	/* system calls that each round may make */

/*
 * Forks @run for each side and waits. Side 0 is on the first CPU, side 1 on the second, or all are
 * on the first if @together. false: a process failed, and has printed why.
 */
bool run_apart(struct bench *bench, void (*run)(struct bench *bench, int side), int sides,
	       bool together);

#endif

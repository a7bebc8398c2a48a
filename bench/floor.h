/* SPDX-License-Identifier: MIT */
/*
 * The floors: the times of the hardware and the kernel for the least work that could have the
 * effect of a case. No xmem here. All return nanoseconds per operation.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stddef.h>
#include <stdint.h>

#define FLOOR_LINES	8	/* lines that a message may have beside its flag */

/* One direction of a raw ping-pong: a flag, and data lines that go with it. */
struct raw_way {
	_Alignas(128) volatile uint64_t flag;
	struct {
		_Alignas(64) volatile uint64_t word;
	} line[FLOOR_LINES];
};

/* The memory of the raw games between two processes; shared and zeroed. */
struct raw_shared {
	struct raw_way way[2];
	_Alignas(64) volatile uint32_t futex;
	_Alignas(64) volatile uint64_t sent_tick;
};

/* @count locked additions to one private line, one after the other. */
double floor_locked_adds(unsigned int count, unsigned int rounds);

static inline void relax(int pause)
{
#ifdef __x86_64__
	if (pause)
		__builtin_ia32_pause();
#endif
}

/*
 * Half a round trip of one line, busy polling; side 0 begins and measures,
 * side 1 answers. @lines more lines are written before the flag and read after
 * it. @pause: with the instruction of that name in the poll.
 */
double floor_ping_pong(struct raw_shared *raw, int side, unsigned int lines, int pause,
		       unsigned int rounds);

/* Copy @bytes. */
double floor_copy(void *to, const void *from, size_t bytes, unsigned int rounds);

/* Sleep until the futex is not @value; returns the tick at which that ended. */
uint64_t floor_futex_sleep(struct raw_shared *raw, uint32_t value);

/* Change the futex and wake its sleeper; leaves the tick in sent_tick. */
void floor_futex_wake(struct raw_shared *raw);

#endif

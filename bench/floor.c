// SPDX-License-Identifier: MIT
/*
 * The floors; see floor.h. They are kept as fast as possible, because a slow floor makes xmem look
 * better than it is.
 */
#include "floor.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure.h"

double floor_locked_adds(unsigned int count, unsigned int rounds)
{
	static _Alignas(64) uint32_t word[16];
	double start = now_ns();
	unsigned int r, n;

	for (r = 0; r < rounds; r++)
		for (n = 0; n < count; n++) {
			uint32_t old = __atomic_fetch_add(&word[0], n % 2 ? -1u : 1,
							  __ATOMIC_SEQ_CST);

			/* Look at the old value, as a get or a put does. */
			__asm__ volatile("" : : "r"(old));
		}
	return (now_ns() - start) / rounds;
}

static void raw_send(struct raw_way *way, unsigned int lines, uint64_t value)
{
	unsigned int n;

	for (n = 0; n < lines; n++)
		way->line[n].word = value;
	__atomic_store_n(&way->flag, value, __ATOMIC_RELEASE);
}

static void raw_receive(struct raw_way *way, unsigned int lines, int pause, uint64_t value)
{
	uint64_t sum = 0;
	unsigned int n;

	while (__atomic_load_n(&way->flag, __ATOMIC_ACQUIRE) != value)
		relax(pause);
	for (n = 0; n < lines; n++)
		sum += way->line[n].word;
	__asm__ volatile("" : : "r"(sum));
}

double floor_ping_pong(struct raw_shared *raw, int side, unsigned int lines, int pause,
		       unsigned int rounds)
{
	uint64_t value = raw->way[side].flag;	/* of the last game, both ways */
	double start = now_ns();
	unsigned int r;

	for (r = 0; r < rounds; r++) {
		value++;
		if (!side)
			raw_send(&raw->way[0], lines, value);
		raw_receive(&raw->way[!side], lines, pause, value);
		if (side)
			raw_send(&raw->way[1], lines, value);
	}
	return (now_ns() - start) / rounds / 2;
}

double floor_copy(void *to, const void *from, size_t bytes, unsigned int rounds)
{
	double start = now_ns();
	unsigned int r;

	for (r = 0; r < rounds; r++) {
		memcpy(to, from, bytes);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	return (now_ns() - start) / rounds;
}

uint64_t floor_futex_sleep(struct raw_shared *raw, uint32_t value)
{
	while (__atomic_load_n(&raw->futex, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, &raw->futex, FUTEX_WAIT, value, NULL, NULL, 0);
	return ticks();
}

void floor_futex_wake(struct raw_shared *raw)
{
	raw->sent_tick = ticks();
	__atomic_fetch_add(&raw->futex, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &raw->futex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

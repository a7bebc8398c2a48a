// SPDX-License-Identifier: MIT
/*
 * A contest on one CPU: acquire and publish with one subscriber that reads at once, with one that
 * does not read, and with 254 that do not. They may lose publications, so the publisher does not
 * wait for them, but must find out which buffer it may take away.
 */
#include "bench.h"

#define BLOCK	4	/* publications; a prompt subscriber then reads them, which is not timed */
#define BLOCKS	250

static struct end end, reader[254];

static void open_readers(struct bench *bench, unsigned int count)
{
	bench->clients = 256;
	end_open(&end, bench, 32, 4096);
	while (count--) {
		end_open(&reader[count], bench, 0, 0);
		end_follow(&reader[count], xmem_pool_client(end.pool));
	}
}

static void open_one(struct bench *bench)
{
	open_readers(bench, 1);
}

static void open_most(struct bench *bench)
{
	open_readers(bench, 254);
}

static void publish(unsigned int count)
{
	while (count--) {
		struct xmem_buffer *buffer = xmem_acquire(end.pool, end.bytes, 0);

		if (__builtin_expect(!buffer, 0))
			die("xmem_acquire");
		if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
			die("xmem_publish");
	}
}

static void read_all(unsigned int count)
{
	while (count--) {
		struct xmem_buffer *buffer = xmem_receive(reader[0].from, 0);

		if (!buffer)
			die("xmem_receive");
		xmem_release(buffer);
	}
}

/* Nanoseconds for one publication, without those of the clock itself. */
static double publish_blocks(unsigned int read)
{
	uint64_t spent = 0, empty = 0;
	unsigned int n;

	for (n = 0; n < BLOCKS; n++) {
		uint64_t start = ticks(), none = ticks();

		publish(BLOCK);
		spent += ticks() - none;
		empty += none - start;
		read_all(read);
	}
	return ((double)spent - empty) * ns_per_tick() / (BLOCK * BLOCKS);
}

static double prompt(struct bench *bench)
{
	return publish_blocks(BLOCK);
}

static double stopped(struct bench *bench)
{
	return publish_blocks(0);
}

void case_lossy(struct bench *bench)
{
	static const struct contestant all[] = {
		{ open_one, prompt }, { open_one, stopped }, { open_most, stopped },
	};

	if (!contest_run(bench, all, 3, bench->reps / 5 + 11))
		return;
	row_contest(bench, "publish, 1 lossy one does not read", 1, "a prompt one", 0, TARGET_MOST,
		    1.5);
	row_contest(bench, "publish, 254 lossy do not read", 2, "a prompt one", 0, TARGET_MOST, 4);
}

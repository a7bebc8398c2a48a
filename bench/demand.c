// SPDX-License-Identifier: MIT
/*
 * Buffers that are made on demand: a million acquires of mixed sizes, of which a changing set is in
 * use. It compares the most memory that the files take with the most that was in use.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE		512			/* buffers in use, once all places are taken */
#define MOST_BYTES	(64u << 10)
#define SAMPLE		64			/* acquires between looks at the memory */
#define ALLOWED		1.3

/* KiB of files that this process has mapped and touched, or -1. */
static long resident_files(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssShmem: %ld", &kib) != 1)
			kib = -1;
	if (file)
		fclose(file);
	return kib;
}

static uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

struct most {
	uint64_t live, files;
	long resident, before;			/* KiB */
};

static void look(struct xmem_pool *pool, struct most *most)
{
	struct xmem_pool_info info = { .size = sizeof(info) };
	long resident = resident_files() - most->before;

	if (xmem_pool_stat(pool, &info))
		die("xmem_pool_stat");
	most->files = info.bytes_files > most->files ? info.bytes_files : most->files;
	most->resident = resident > most->resident ? resident : most->resident;
}

static void replace(struct xmem_pool *pool, struct xmem_buffer **place, size_t bytes,
		    uint64_t *live)
{
	if (*place) {
		*live -= xmem_size(*place);
		xmem_release(*place);
	}
	*place = xmem_acquire(pool, bytes, 0);
	if (!*place)
		die("xmem_acquire");
	memset(xmem_data_mut(*place), 1, bytes);
	*live += bytes;
}

void case_demand(struct bench *bench, int side)
{
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .demand_bytes = 256 << 20,
		.slots = 4096,
	};
	struct xmem_pool *pool = xmem_pool_open(NULL, &o);
	uint64_t random = 42, live = 0, i, acquires = bench->hand_overs / 10;
	struct xmem_buffer *place[LIVE] = { NULL };
	struct most most = { 0 }, last = { 0 };

	if (!pool)
		die("xmem_pool_open");
	most.before = resident_files();
	for (i = 0; i < acquires; i++) {
		replace(pool, &place[random_next(&random) % LIVE],
			1 + random_next(&random) % MOST_BYTES, &live);
		most.live = live > most.live ? live : most.live;
		if (i % SAMPLE == 0 || i + 1 == acquires)
			look(pool, &most);
	}
	for (i = 0; i < LIVE; i++)
		xmem_release(place[i]);
	if (xmem_collect(pool, 0, NULL) < 0)
		die("xmem_collect");
	look(pool, &last);
	row_number(bench, "acquires of mixed sizes, on demand", "", acquires, -1);
	row_number(bench, "files at most, against the most in use", "x",
		   (double)most.files / most.live, ALLOWED);
	row_number(bench, "resident at most, against the same", "x",
		   most.resident * 1024.0 / most.live, ALLOWED);
	row_number(bench, "files after a trim", "KiB", last.files >> 10, 0);
	xmem_pool_close(pool);
}

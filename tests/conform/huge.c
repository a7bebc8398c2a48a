// SPDX-License-Identifier: MIT
/*
 * Huge pages of the system's pool: which buffers that are made on demand take some, and that they
 * are given back.
 */
#include <stdlib.h>

#include "harness.h"
#include "polling.h"

#define HUGE	((uint64_t)huge_page_size())

#define WRITER(...)	OPEN(new_name(), .flags = XMEM_OPEN_WRITER, __VA_ARGS__)

/* A number of kB, in bytes. */
static uint64_t field(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[256];
	uint64_t kb = 0;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			kb = strtoull(line + strlen(key), NULL, 10);
	fclose(file);
	return kb << 10;
}

static struct xmem_buffer *acquire(struct xmem_pool *pool, size_t bytes)
{
	struct xmem_buffer *b = xmem_acquire(pool, bytes, 0);
	const char *why = "";

	if (b)
		return b;
	why = last_message();
	FAIL("acquire %zu: %s", bytes, why);
}

static void write_number(const char *path, int number)
{
	FILE *file = fopen(path, "we");

	if (!file)
		skip("%s cannot be written: %s", path, strerror(errno));
	fprintf(file, "%d\n", number);
	if (fclose(file))
		skip("%s cannot be written: %s", path, strerror(errno));
}

/* Small buffers neither take huge pages nor ask for them, so these do not use up demand_bytes. */
static void take_small_ones(struct xmem_pool *pool)
{
	struct xmem_buffer *b[32];
	int i;

	for (i = 0; i < 32; i++)
		b[i] = acquire(pool, 1000);
	/* Several share a page. */
	CHECK(stat_of(pool).bytes_files <= 32 * page_size() / 2);
	SAME(stat_of(pool).bytes_huge, 0);
	SAME(stat_of(pool).bytes_advised, 0);
	for (i = 0; i < 32; i++)
		xmem_release(b[i]);
	CHECK(trim_pool(pool, 0) > 0);
}

TEST(P10_small_buffers_on_demand_take_no_huge_pages)
{
	struct xmem_pool *pool = WRITER(.memory = XMEM_MEMORY_HUGE, .demand_bytes = 4 * HUGE);

	take_small_ones(pool);
	xmem_pool_close(pool);
}

/* Even where the system has some. Many buffers of a size share huge pages. */
TEST(P10_huge_pages_are_filled)
{
	const char *pages = "/proc/sys/vm/nr_hugepages";
	struct xmem_pool_info info;
	struct xmem_buffer *b[80];
	struct xmem_pool *pool;
	int i;

	if (!in_vm())
		skip("only in the virtual machine may the system's huge pages be changed");
	write_number(pages, 4);
	if (field("/proc/meminfo", "HugePages_Free:") < 4 << 10)
		skip("the machine has no 4 huge pages to spare");
	pool = WRITER(.memory = XMEM_MEMORY_HUGE, .demand_bytes = 24 * HUGE);
	take_small_ones(pool);
	b[0] = acquire(pool, HUGE * 3 / 2);
	SAME(stat_of(pool).bytes_files, HUGE * 3 / 2);
	SAME(stat_of(pool).bytes_advised, HUGE * 3 / 2);
	b[1] = acquire(pool, HUGE);
	SAME(stat_of(pool).bytes_huge, HUGE);
	xmem_release(b[0]);
	xmem_release(b[1]);
	CHECK(trim_pool(pool, 0) > 0);
	for (i = 0; i < 80; i++)
		b[i] = acquire(pool, HUGE / 8);
	info = stat_of(pool);
	CHECK(info.bytes_huge >= HUGE);
	CHECK(info.bytes_files <= 80 * (HUGE / 8) + HUGE);
	for (i = 0; i < 80; i++)
		xmem_release(b[i]);
	xmem_pool_close(pool);
	write_number(pages, 0);
}

/* The size of the huge pages that the kernel makes of ordinary memory. */
static uint64_t transparent_page_size(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
	unsigned long bytes;

	if (!file)
		return 2 << 20;
	SAME(fscanf(file, "%lu", &bytes), 1);
	fclose(file);
	return bytes;
}

/*
 * The kernel may take a whole huge page for a shorter file, so only files as long as one ask for
 * it.
 */
TEST(P10_what_is_less_than_a_huge_page_asks_for_none)
{
	struct xmem_pool *pool = WRITER(.memory = XMEM_MEMORY_HUGE);
	uint64_t whole = transparent_page_size();
	struct xmem_buffer *b[2];

	b[0] = acquire(pool, whole * 3 / 4);
	SAME(stat_of(pool).bytes_files, whole * 3 / 4);
	SAME(stat_of(pool).bytes_advised, 0);
	b[1] = acquire(pool, whole);
	SAME(stat_of(pool).bytes_advised + stat_of(pool).bytes_huge, whole);
	xmem_release(b[0]);
	xmem_release(b[1]);
	xmem_pool_close(pool);
}

/* Enough buffers share a file to fill the huge pages that it takes. */
TEST(P10_preallocated_buffers_fill_huge_pages)
{
	const char *pages = "/proc/sys/vm/nr_hugepages";
	struct xmem_pool *pool;

	if (!in_vm())
		skip("only in the virtual machine may the system's huge pages be changed");
	write_number(pages, 4);
	if (field("/proc/meminfo", "HugePages_Free:") < 4 << 10)
		skip("the machine has no 4 huge pages to spare");
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(pool, HUGE / 8, 16,
				XMEM_OPTIONS(xmem_preallocate_options, .flags = XMEM_MEMORY_HUGE)));
	SAME(stat_of(pool).bytes_huge, 2 * HUGE);
	SAME(stat_of(pool).bytes_files, 2 * HUGE);
	xmem_pool_close(pool);
	EVENTUALLY(field("/proc/meminfo", "HugePages_Free:") >> 10 == 4);
	write_number(pages, 0);
}

/* Both hosts take files of huge pages, readers map them, and the pages return to the system. */
TEST(API_huge_pages_come_from_the_systems_pool)
{
	const char *pages = "/proc/sys/vm/nr_hugepages", *name = new_name();
	struct xmem_pool *pool, *reader;
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	uint64_t *private;

	if (!in_vm())
		skip("only in the virtual machine may the system's huge pages be changed");
	write_number(pages, 4);
	if (field("/proc/meminfo", "HugePages_Free:") < 4 << 10)
		skip("the machine has no 4 huge pages to spare");
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .memory = XMEM_MEMORY_HUGE,
		    .cache_bytes = 32 * HUGE);
	reader = open_reader(name);
	s = follow(reader, xmem_pool_client(pool), 0);
	b = acquire(pool, 2 * HUGE);
	fill(b, 9);
	WORKED(xmem_publish(b, NULL, NULL));
	SAME(stat_of(reader).bytes_huge, 2 * HUGE);
	SAME(stat_of(reader).bytes_files, 2 * HUGE);
	b = receive_one(s);
	SAME(stamp_of(b), 9);
	private = xmem_data_private(b);	/* a private view takes none of them */
	CHECK(private && private[2 * HUGE / 8 - 1] == 9);
	private[0] = 10;
	SAME(stamp_of(b), 9);
	SAME(field("/proc/meminfo", "HugePages_Free:") >> 10, 2);
	SAME(field("/proc/meminfo", "HugePages_Rsvd:"), 0);
	xmem_release(b);
	SAME(field("/proc/meminfo", "HugePages_Free:") >> 10, 2);
	/* There are not enough for this one. */
	xmem_release(acquire(pool, 3 * HUGE));
	SAME(stat_of(pool).bytes_huge, 2 * HUGE);
	CHECK(stat_of(pool).bytes_advised >= 3 * HUGE);
	CHECK(trim_pool(pool, 0) > 0);
	EVENTUALLY(stat_of(reader).bytes_huge == 0);
	EVENTUALLY(field("/proc/meminfo", "HugePages_Free:") >> 10 == 4);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
	write_number(pages, 0);
}

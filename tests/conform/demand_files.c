// SPDX-License-Identifier: MIT
/*
 * How many files do buffers on demand take? A pool may have a few thousand files, so small buffers
 * share files, whatever their sizes. That takes no memory and no slots from others, and a client
 * that reaches a limit learns which one.
 */
#include <stdlib.h>

#include "attached.h"
#include "quota_users.h"

#define KB	(1ULL << 10)
#define MB	(1ULL << 20)
#define SLOTS	16384

/* Buffers in use, and what their files would take if none shared one. */
struct live {
	struct xmem_buffer *b[SLOTS];
	int count;
	uint64_t bytes, alone;
};

static uint64_t next(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return *random >> 33;
}

/* Make buffers of @from to @to bytes, until there are so many or no more can be made. */
static struct live *make_some(struct xmem_pool *pool, int count, uint64_t from, uint64_t to)
{
	struct live *live = calloc(1, sizeof(*live));
	uint64_t random = 42, bytes, capacity;
	struct xmem_buffer *b;

	CHECK(live);
	while (live->count < count) {
		bytes = from + (to > from ? next(&random) % (to - from) : 0);
		b = xmem_acquire(pool, bytes, 0);
		if (!b)
			break;
		capacity = xmem_capacity(b);
		live->b[live->count++] = b;
		live->bytes += capacity;
		live->alone += (capacity + page_size() - 1) / page_size() * page_size();
	}
	return live;
}

static void let_go(struct live *live)
{
	while (live->count)
		xmem_release(live->b[--live->count]);
	free(live);
}

/* `make test` leaves out the largest pools in the virtual machine, and `make test-all` does not. */
static bool has_time(void)
{
	return scaled(100) >= 15;
}

#define WRITER(...)	OPEN(new_name(), .flags = XMEM_OPEN_WRITER, __VA_ARGS__)

/*
 * The most files that such buffers take, and how much longer than the buffers the files are
 * together.
 */
static void take_at_most(int count, uint64_t from, uint64_t to, uint32_t files, double times)
{
	struct xmem_pool *pool = WRITER(.slots = SLOTS, .demand_bytes = 1ULL << 40);
	struct live *live = make_some(pool, count, from, to);
	struct xmem_pool_info info = stat_of(pool);
	uint64_t ends;

	SAME(live->count, count);
	/* The end of each file's last page is unused. With pages of 4 KiB, @times includes that. */
	ends = (page_size() - 4096) * (uint64_t)info.payloads;
	if (info.payloads > files || info.bytes_files > live->bytes * times + ends)
		FAIL("%d of %llu to %llu bytes: %u files, %llu bytes of files for %llu", count,
		     (unsigned long long)from, (unsigned long long)to, info.payloads,
		     (unsigned long long)info.bytes_files, (unsigned long long)live->bytes);
	let_go(live);
	/* Buffers of a file go together, but all of them go. */
	CHECK(trim_pool(pool, 0) > 0);
	EVENTUALLY(stat_of(pool).bytes_files == 0);
	xmem_pool_close(pool);
}

TEST_WITHIN(P10_small_buffers_share_files, 60)
{
	if (has_time())
		take_at_most(10000, KB, 16 * KB, 1600, 1.1);
	take_at_most(1000, 4 * KB, 4 * KB, 200, 1.1);
	take_at_most(100, KB, 16 * KB, 60, 1.5);
	/* Large ones do not share, because the buffers of a file go only together. */
	take_at_most(100, 100 * KB, 100 * KB, 100, 1.0);
	take_at_most(4, 6 * MB, 6 * MB, 4, 1.0);
	/* The first buffer takes only what it needs. */
	take_at_most(1, 8 * KB, 8 * KB, 1, 1.0);
}

/* ---- where they begin ---- */

static void begins_at_a_page(struct xmem_buffer *b)
{
	CHECK(b);
	SAME((uintptr_t)xmem_data_mut(b) % page_size(), 0);
}

/* This holds if several share a file, and if their size is no multiple of a page. */
TEST(API_buffers_of_32_kb_begin_at_a_page)
{
	struct xmem_pool *pool = WRITER(.slots = 1024);
	struct xmem_buffer *b[512];
	int i, count;

	for (i = 0; i < 512; i++)
		begins_at_a_page(b[i] = xmem_acquire(pool, i % 2 ? 32 * KB : 36 * KB, 0));
	CHECK(stat_of(pool).payloads < 512);
	for (i = 0; i < 512; i++)
		xmem_release(b[i]);
	CHECK(trim_pool(pool, 0) > 0);
	for (count = 0; count < 4; count++)
		WORKED(xmem_preallocate(pool, 32 * KB + count * 4 * KB, 4, NULL));
	for (i = 0; i < 4 * count; i++)
		begins_at_a_page(b[i] = xmem_acquire(pool, 32 * KB, 0));
	for (i = 0; i < 4 * count; i++)
		xmem_release(b[i]);
	xmem_pool_close(pool);
}

/* ---- of dead clients ---- */

#define MAKERS	40
#define UNREAD	20

/* Its parent has its publications before it is killed. */
static void send_and_wait(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 1ULL << 40);
	struct live *live = make_some(pool, UNREAD, KB, 16 * KB);
	uint64_t token;
	int i;

	SAME(live->count, UNREAD);
	for (i = 0; i < UNREAD; i++) {
		struct xmem_publish_options keep = {
			.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		};

		WORKED(xmem_publish(live->b[i], &keep, &token));
		tell_parent(token);
	}
	pause();
}

TEST_WITHIN(P10_what_killed_makers_leave_shares_files, 60)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .slots = SLOTS);
	struct xmem_buffer *b[MAKERS * UNREAD];
	struct child *child;
	int i, j;

	for (i = 0; i < MAKERS; i++) {
		child = spawn(send_and_wait, (void *)name);
		for (j = 0; j < UNREAD; j++) {
			b[i * UNREAD + j] = xmem_get(pool, hear(child));
			CHECK(b[i * UNREAD + j]);
		}
		kill_child(child);
	}
	EVENTUALLY(stat_of(pool).clients == 1);
	/* All of them are still there. */
	EVENTUALLY(stat_of(pool).attached == MAKERS * UNREAD);
	if (stat_of(pool).payloads > MAKERS * UNREAD * 3 / 4)
		FAIL("%u files of %u messages", stat_of(pool).payloads, MAKERS * UNREAD);
	for (i = 0; i < MAKERS * UNREAD; i++)
		xmem_release(b[i]);
	xmem_pool_close(pool);
}

/* ---- limits that are reached all the same ---- */

/* Files that are larger than what is asked for do not reduce what the limit allows. */
static void reaches_bytes(uint64_t limit, uint64_t spare)
{
	struct xmem_pool *pool = WRITER(.slots = SLOTS, .demand_bytes = limit);
	struct live *live = make_some(pool, SLOTS, 4 * KB, 16 * KB);
	const char *why = last_message();

	SAME(xmem_peek_last_error(NULL), -EAGAIN);
	CHECK(live->count < SLOTS && strstr(why, "demand_bytes"));
	CHECK(stat_of(pool).bytes_files <= limit);
	/* The refused buffer would not have had room in a file of its own either. */
	if (live->alone + 18 * KB + spare <= limit)
		FAIL("of %llu bytes only %llu could be used", (unsigned long long)limit,
		     (unsigned long long)live->alone);
	let_go(live);
	xmem_pool_close(pool);
}

TEST_WITHIN(P10_a_limit_of_bytes_is_reached_with_small_buffers, 60)
{
	reaches_bytes(MB, 0);
	reaches_bytes(8 * MB, 0);
	reaches_bytes(64 * MB, MB / 2);
}

static void reaches_slots(uint32_t slots, uint64_t from, uint64_t to, uint32_t spare)
{
	struct xmem_pool *pool = WRITER(.slots = slots, .demand_bytes = 1ULL << 40);
	struct live *live = make_some(pool, slots, from, to);

	if (live->count + spare < slots)
		FAIL("of %u slots only %u could be used, of %llu to %llu bytes", slots, live->count,
		     (unsigned long long)from, (unsigned long long)to);
	let_go(live);
	xmem_pool_close(pool);
}

TEST_WITHIN(P10_all_slots_are_had_with_small_buffers, 60)
{
	reaches_slots(64, 4 * KB, 16 * KB, 0);
	reaches_slots(512, 4 * KB, 16 * KB, 1);
	reaches_slots(4096, 4 * KB, 16 * KB, 64);
	if (has_time())
		reaches_slots(SLOTS, 4 * KB, 16 * KB, 256);
}

/* A page has room for many of each size, and the sizes are many. */
TEST_WITHIN(P10_all_slots_are_had_with_buffers_of_less_than_a_page, 60)
{
	reaches_slots(64, 1, KB, 1);
	reaches_slots(64, 1, page_size(), 1);
	reaches_slots(512, 1, KB, 8);
	reaches_slots(512, 1, page_size(), 16);
	reaches_slots(4096, 1, page_size(), 128);
}

/* A limit of bytes does not keep slots from small buffers, if it has room for that many. */
TEST(P10_a_limit_of_bytes_keeps_no_slots_from_small_buffers)
{
	struct xmem_pool *pool = WRITER(.slots = 64, .demand_bytes = 16 * page_size());
	struct live *live = make_some(pool, 64, page_size() / 4, page_size() / 4);

	SAME(live->count, 64);
	let_go(live);
	xmem_pool_close(pool);
}

/* ---- messages ---- */

static void says(const char *words)
{
	const char *why = last_message();

	if (!strstr(why, words))
		FAIL("no '%s' in: %s", words, why);
}

/* Before the first buffer the writer does not know yet how many bytes it may make. */
TEST(API_a_size_beyond_all_bounds_is_refused_as_that)
{
	struct xmem_pool *pool = WRITER(.slots = 64);

	REFUSED(xmem_acquire(pool, 1ULL << 60, 0), ENOSPC);
	says("a buffer of 1152921504606846976 bytes is larger than any may be, which is "
	     "70368744177664");
	xmem_pool_close(pool);
}

/* @user: NULL, or the user to become. */
static void attach_until_files_run_out(void *user)
{
	struct xmem_buffer **file = calloc(8192, sizeof(*file)), *b;
	struct xmem_pool *pool;
	int fd, count = 0;

	if (user)
		become(*(unsigned int *)user);
	fd = stamped(4096, 1, FULL_SEALS);
	pool = WRITER(.slots = 8192, .demand_bytes = 1ULL << 40);
	CHECK(file && (b = xmem_acquire(pool, 400 * KB, 0)));
	while (count < 8192 && (file[count] = xmem_attach_fd(pool, fd, 0, 0, 0)))
		count++;
	CHECK(count > 100);
	SAME(xmem_peek_last_error(NULL), -EDQUOT);
	REFUSED(xmem_acquire(pool, MB, 0), EDQUOT);
	says("as many payload files");
	REFUSED(xmem_acquire(pool, 100 * KB, 0), EAGAIN);
	says("as many payload files as it may have: ");
	REFUSED(xmem_acquire(pool, 100 * KB, MS), ETIMEDOUT);
	says("as many payload files as it may have: ");
	xmem_release(file[--count]);
	xmem_release(b);
	CHECK((b = xmem_acquire(pool, 100 * KB, patience_ns())));
	REFUSED(xmem_acquire(pool, 1ULL << 39, 0), ENOMEM);
	says("are needed, but of the ");
	xmem_release(b);
	while (count)
		xmem_release(file[--count]);
	close(fd);
	free(file);
	xmem_pool_close(pool);
}

/* If the host refuses a file, the message names neither bytes nor slots as the cause. */
TEST_WITHIN(API_a_refusal_for_files_says_so, 60)
{
	unsigned int user;
	char old[32];

	if (!on_kernel()) {
		attach_until_files_run_out(NULL);
		return;
	}
	user = new_user();	/* the module refuses root nothing */
	set_parameter("user_max_files", "300", old);
	finish_child(spawn(attach_until_files_run_out, &user));
	set_parameter("user_max_files", old, NULL);
}

// SPDX-License-Identifier: MIT
/*
 * Memory of buffers, as its writer chooses it: kinds, buffers that are made on demand, and memory
 * that returns to the system while its owner lives.
 */
#include <stddef.h>
#include <stdlib.h>

#include <pthread.h>

#include "harness.h"
#include "polling.h"

#define BYTES	4096
#define MB	(1ULL << 20)

/* ---- kinds ---- */

static int make_some(struct xmem_pool *pool, uint32_t flags, uint32_t count, uint64_t bytes)
{
	return xmem_preallocate(pool, bytes, count,
				XMEM_OPTIONS(xmem_preallocate_options, .flags = flags));
}

TEST(API_preallocate_refuses_what_it_does_not_know)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(new_name());
	struct {
		struct xmem_preallocate_options known;
		unsigned char more[16];
	} o = { 0 };

	SAME(make_some(NULL, 0, 1, BYTES), -EINVAL);
	SAME(make_some(reader, 0, 1, BYTES), -EPERM);
	SAME(make_some(pool, 1u << 31, 1, BYTES), -EINVAL);
	SAME(make_some(pool, 0, 0, BYTES), -EINVAL);
	SAME(make_some(pool, 0, 1, 0), -EINVAL);
	SAME(make_some(pool, 0, 1, ~0ULL), -EINVAL);
	SAME(xmem_preallocate(pool, BYTES, 1, &o.known), -EINVAL);	/* no size */
	o.known.size = sizeof(o);
	o.more[15] = 1;
	SAME(xmem_preallocate(pool, BYTES, 1, &o.known), -E2BIG);
	o.more[15] = 0;
	o.known.device_id = 1;
	SAME(xmem_preallocate(pool, BYTES, 1, &o.known), -EINVAL);
	o.known.device_id = 0;
	SAME(make_some(pool, XMEM_MEMORY_READERS, 1, BYTES), -EINVAL);
	SAME(make_some(pool, XMEM_MEMORY_LEGACY, 1, BYTES), -EINVAL);
	SAME(make_some(pool, XMEM_MEMORY_CUDA | XMEM_MEMORY_HUGE, 1, BYTES), -EINVAL);
	SAME(stat_of(pool).attached, 0);
	WORKED(xmem_preallocate(pool, BYTES, 1, &o.known));
	SAME(stat_of(pool).attached, 1);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

/* Acquires return the slots of new buffers, and of a buffer that is being written. */
TEST(API_preallocate_says_which_slots)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, BYTES);
	uint32_t slots[65], unseen = ~0u, i, n;
	struct xmem_preallocate_options o = {
		.size = sizeof(o), .ret_slots = slots,
	};
	struct xmem_buffer *b[64], *last;

	slots[64] = unseen;
	WORKED(xmem_preallocate(pool, 2 * BYTES, 64, &o));
	SAME(slots[64], unseen);
	for (n = 0; n < 64; n++) {
		b[n] = xmem_acquire(pool, 2 * BYTES, 0);
		CHECK(b[n]);
		for (i = 0; i < 64 && slots[i] != (uint32_t)xmem_slot(b[n]); i++)
			;
		CHECK(i < 64);
		slots[i] = unseen;
		SAME(xmem_token(b[n]), 0);
	}
	REFUSED(xmem_acquire(pool, 2 * BYTES, 0), EAGAIN);
	SAME(xmem_slot(NULL), -EINVAL);
	SAME(xmem_preallocate(pool, 2 * BYTES, 1u << 20, &o), -EINVAL);
	SAME(slots[0], unseen);
	last = b[63];
	for (n = 0; n < 64; n++)
		xmem_release(b[n]);
	SAME(xmem_slot(last), -EBADF);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

/* Both ways of huge pages: the info says which one was used, and the contents arrive. */
TEST(API_huge_pages_are_used_or_asked_for)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), 0);
	size_t huge = huge_page_size();
	struct xmem_pool_info info;
	struct xmem_buffer *b;

	WORKED(make_some(pool, XMEM_MEMORY_HUGE, 3, MB));
	info = stat_of(pool);
	SAME(info.attached, 3);
	SAME(info.payloads, 1);
	if (info.bytes_huge) {
		SAME(info.bytes_huge, (3 * MB + huge - 1) / huge * huge);
		SAME(info.bytes_files, info.bytes_huge);
		SAME(info.bytes_advised, 0);
	} else {
		SAME(info.bytes_files, 3 * MB);
		SAME(info.bytes_advised, 3 * MB);
	}
	SAME(stat_of(reader).bytes_huge, info.bytes_huge);
	publish_stamp(pool, 7);
	b = receive_one(s);
	SAME(stamp_of(b), 7);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(pool);
	EVENTUALLY(stat_of(reader).bytes_files == 0);
	SAME(stat_of(reader).bytes_huge, 0);
	xmem_pool_close(reader);
}

/* ---- on demand ---- */

#define WRITER(...)	OPEN(new_name(), .flags = XMEM_OPEN_WRITER, __VA_ARGS__)

static struct xmem_buffer *acquire(struct xmem_pool *pool, size_t bytes)
{
	struct xmem_buffer *b = xmem_acquire(pool, bytes, 0);
	const char *why = "";

	if (b)
		return b;
	why = last_message();
	FAIL("acquire %zu: %s", bytes, why);
}

TEST(API_an_acquire_makes_what_it_needs)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), 0);
	struct xmem_buffer *b, *received;
	size_t bytes;

	for (bytes = 1; bytes < 4 * MB; bytes = bytes * 3 + 1) {
		b = acquire(pool, bytes);
		SAME(xmem_size(b), bytes);
		CHECK(xmem_capacity(b) >= bytes && xmem_capacity(b) <= bytes + bytes / 8 + 64);
		memset(xmem_data_mut(b), 0x5a, bytes);
		WORKED(xmem_publish(b, NULL, NULL));
		received = xmem_receive(s, 0);
		CHECK(received);
		SAME(xmem_size(received), bytes);
		SAME(((const unsigned char *)xmem_data(received))[bytes - 1], 0x5a);
		xmem_release(received);
	}
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

static struct xmem_pool *try_options(const struct xmem_pool_options *options)
{
	struct xmem_pool_options o = *options;

	o.size = sizeof(o);
	return xmem_pool_open(new_name(), &o);
}
#define TRY(...)	try_options(&(struct xmem_pool_options){ __VA_ARGS__ })

TEST(API_options_of_memory_are_checked)
{
	const uint32_t writer = XMEM_OPEN_WRITER, reader = XMEM_OPEN_READER;

	REFUSED(TRY(.flags = writer, .memory = 1u << 31), EINVAL);
	REFUSED(TRY(.flags = writer, .cache_ns = -1), EINVAL);
	REFUSED(TRY(.flags = reader, .demand_bytes = MB), EINVAL);
	REFUSED(TRY(.flags = reader, .cache_bytes = MB), EINVAL);
	REFUSED(TRY(.flags = reader, .cache_ns = 1), EINVAL);
	REFUSED(TRY(.flags = reader, .memory = XMEM_MEMORY_HUGE), EINVAL);
	REFUSED(TRY(.flags = reader, .memory = XMEM_MEMORY_SEALED), EINVAL);
	REFUSED(TRY(.flags = writer, .memory = XMEM_MEMORY_SEALED | 4), EINVAL);
	xmem_pool_close(OPEN(new_name(), .demand_bytes = XMEM_NO_DEMAND));
}

TEST(API_demand_ends_with_the_first_preallocation)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *more = WRITER(.demand_bytes = MB);
	struct xmem_buffer *b = acquire(pool, 100), *c;

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	REFUSED(xmem_acquire(pool, 2 * BYTES, 0), ENOSPC);
	xmem_release(b);
	b = acquire(pool, BYTES);
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	xmem_release(b);
	/* A writer that sets demand_bytes has both. */
	WORKED(xmem_preallocate(more, BYTES, 1, NULL));
	b = acquire(more, BYTES);
	c = acquire(more, 2 * BYTES);
	xmem_release(b);
	xmem_release(c);
	xmem_pool_close(more);
	xmem_pool_close(pool);
}

/* The largest is acquired first. A small acquire does not take it, also not on the fast path. */
TEST(API_a_small_buffer_is_not_a_large_one)
{
	struct xmem_pool *pool = WRITER(.cache_bytes = 64 * MB);
	struct xmem_buffer *some[4], *b;
	int i;

	/* A scan finds several large ones together, so that some are ready. */
	for (i = 0; i < 4; i++)
		some[i] = acquire(pool, MB);
	for (i = 0; i < 4; i++)
		WORKED(xmem_publish(some[i], NULL, NULL));
	b = acquire(pool, MB);
	xmem_release(acquire(pool, MB));
	CHECK(stat_of(pool).writing > 1);
	some[0] = acquire(pool, 1000);
	SAME(xmem_capacity(some[0]), 1024);
	xmem_release(some[0]);
	xmem_release(b);
	for (i = 0; i < 100; i++) {
		b = acquire(pool, MB);
		WORKED(xmem_publish(b, NULL, NULL));
		b = acquire(pool, MB * 9 / 10);		/* near enough */
		CHECK(xmem_capacity(b) == MB);
		xmem_release(b);
		b = acquire(pool, MB / 2);
		CHECK(xmem_capacity(b) == MB / 2);
		WORKED(xmem_publish(b, NULL, NULL));
		b = acquire(pool, 1);
		CHECK(xmem_capacity(b) == 64);
		xmem_release(b);
	}
	SAME(stat_of(pool).payloads, 4 + 3);
	xmem_pool_close(pool);
}

TEST(P10_demand_bytes_is_a_limit)
{
	struct xmem_pool *pool = WRITER(.demand_bytes = 4 * MB);
	struct xmem_buffer *b[4], *large;
	const char *why;
	int i;

	REFUSED(xmem_acquire(pool, 4 * MB + 1, 0), ENOSPC);
	why = last_message();
	REFUSED(xmem_acquire(pool, ~0UL, 0), ENOSPC);
	why = last_message();
	SAME(xmem_get_last_error(NULL), -ENOSPC);
	CHECK(strstr(why, "demand_bytes"));
	for (i = 0; i < 4; i++)
		b[i] = acquire(pool, MB);
	REFUSED(xmem_acquire(pool, MB, 0), EAGAIN);
	REFUSED(xmem_acquire(pool, 1, 0), EAGAIN);
	REFUSED(xmem_acquire(pool, MB, MS), ETIMEDOUT);
	SAME(stat_of(pool).bytes_files, 4 * MB);
	xmem_release(b[3]);
	/*
	 * Idle buffers make room for those that are needed, but every buffer that fits is used
	 * first.
	 */
	large = acquire(pool, MB / 4);
	SAME(xmem_capacity(large), MB / 4);
	xmem_release(large);
	for (i = 0; i < 3; i++)
		xmem_release(b[i]);
	large = acquire(pool, 4 * MB);
	SAME(stat_of(pool).bytes_files, 4 * MB);
	REFUSED(xmem_acquire(pool, 1, 0), EAGAIN);
	xmem_release(large);
	xmem_pool_close(pool);
}

/* ---- memory that returns to the system ---- */

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

static uint64_t resident(void)
{
	return field("/proc/self/status", "RssShmem:");
}

/* The host frees the pages, perhaps after the trim has returned. */
static bool shrinks_soon(uint64_t most)
{
	unsigned int looks;

	for (looks = 0; looks < 1000; looks++) {
		if (field("/proc/meminfo", "Shmem:") + 32 * MB < most)
			return true;
		look_again_soon();
	}
	return false;
}

/* Does the memory of the machine grow by 64 MB that are made, and shrink by a trim? */
static bool machine_sees_trim(struct xmem_pool *pool)
{
	uint64_t before = field("/proc/meminfo", "Shmem:"), most;
	struct xmem_buffer *b = acquire(pool, 64 * MB);

	memset(xmem_data_mut(b), 1, 64 * MB);
	most = field("/proc/meminfo", "Shmem:");
	xmem_release(b);
	SAME(trim_pool(pool, 0), 64 * MB);
	EVENTUALLY(stat_of(pool).attached == 0);
	return most > before + 32 * MB && shrinks_soon(most);
}

TEST(P10_trim_gives_memory_back_to_the_machine)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);

	/* Other processes also allocate and free, but they cannot hide both changes for long. */
	EVENTUALLY(machine_sees_trim(pool));
	xmem_pool_close(pool);
}

/* Sealed files are not truncated, so they are in use as long as anybody has them mapped. */
TEST(P10_trim_gives_memory_back)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER,
				      .memory = XMEM_MEMORY_SEALED);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), 0);
	struct xmem_buffer *b[8], *kept;
	uint64_t before = resident();
	int i;

	for (i = 0; i < 8; i++) {
		b[i] = acquire(pool, 8 * MB);
		memset(xmem_data_mut(b[i]), 1, 8 * MB);
	}
	WORKED(xmem_publish(b[0], NULL, NULL));
	kept = xmem_receive(s, 0);
	CHECK(kept);
	SAME(((const char *)xmem_data(kept))[8 * MB - 1], 1);
	for (i = 1; i < 8; i++)
		WORKED(xmem_publish(b[i], NULL, NULL));
	SAME(stat_of(pool).bytes_files, 64 * MB);
	CHECK(resident() >= before + 60 * MB);	/* it is not exact */
	/* The reader has not received the others yet. */
	SAME(trim_pool(pool, 0), 0);
	for (i = 1; i < 8; i++)
		xmem_release(xmem_receive(s, 0));
	SAME(trim_pool(pool, 40 * MB), 16 * MB);
	SAME(trim_pool(pool, 40 * MB), 0);
	SAME(trim_pool(pool, 0), 40 * MB);
	EVENTUALLY(stat_of(pool).bytes_files == 8 * MB);
	SAME(stat_of(pool).attached, 1);
	stat_of(reader);			/* stat unmaps the reader's mappings */
	CHECK(resident() < before + 20 * MB);	/* 8 MB, mapped twice here */
	SAME(((const char *)xmem_data(kept))[8 * MB - 1], 1);
	xmem_release(kept);
	SAME(trim_pool(pool, 0), 8 * MB);
	EVENTUALLY(stat_of(pool).attached == 0);
	SAME(trim_pool(reader, 0), 0);		/* it has none */
	SAME(trim_pool(NULL, 0), 0);	/* of all pools */
	/* The slots can be used again; "any buffer" makes none. */
	REFUSED(xmem_acquire(pool, 0, 0), ENOSPC);
	xmem_release(acquire(pool, BYTES));
	publish_stamp(pool, 3);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

TEST(P10_trim_takes_preallocated_buffers_too)
{
	struct xmem_pool *pool = open_writer(new_name(), 100, BYTES);
	struct xmem_buffer *b = acquire(pool, BYTES);
	uint64_t token;

	/* Two files, of 64 and 36 buffers. The file of the buffer in hand stays whole. */
	SAME(stat_of(pool).payloads, 2);
	CHECK(trim_pool(pool, 0) > 0);
	EVENTUALLY(stat_of(pool).payloads == 1);
	fill(b, 5);
	WORKED(xmem_publish(b, NULL, &token));
	CHECK(trim_pool(pool, 0) > 0);
	EVENTUALLY(stat_of(pool).payloads == 0);
	REFUSED(xmem_get(pool, token), ESTALE);
	REFUSED(xmem_acquire(pool, BYTES, 0), ENOSPC);
	WORKED(xmem_preallocate(pool, BYTES, 100, NULL));
	REFUSED(xmem_get(pool, token), ESTALE);
	publish_stamp(pool, 6);
	xmem_pool_close(pool);
}

/* Beyond the cache's bytes, the buffers that have been idle longest go first. */
TEST(P10_the_cache_has_a_limit_of_bytes)
{
	struct xmem_pool *pool = WRITER(.cache_bytes = 2 * MB);
	struct xmem_buffer *b[3];
	int i;

	for (i = 0; i < 3; i++)
		b[i] = acquire(pool, MB << i);
	for (i = 0; i < 3; i++)
		xmem_release(b[i]);
	SAME(stat_of(pool).bytes_files, 7 * MB);
	b[0] = acquire(pool, BYTES);		/* a file is made, and the others are checked */
	EVENTUALLY(stat_of(pool).bytes_files <= 2 * MB + BYTES);
	xmem_release(b[0]);
	xmem_pool_close(pool);
}

TEST(P10_the_cache_has_a_limit_of_age)
{
	struct xmem_pool *pool = WRITER(.cache_bytes = 64 * MB, .cache_ns = 20 * MS);
	struct xmem_pool *keeps = WRITER(.cache_bytes = 64 * MB, .cache_ns = XMEM_FOREVER);

	xmem_release(acquire(keeps, MB));
	xmem_release(acquire(pool, MB));
	SAME(stat_of(pool).attached, 1);
	EVENTUALLY((xmem_release(acquire(pool, 1)), stat_of(pool).bytes_files < MB));
	xmem_release(acquire(keeps, MB));
	SAME(stat_of(keeps).bytes_files, MB);
	xmem_pool_close(keeps);
	xmem_pool_close(pool);
}

/* ---- many ---- */

#define LIVE	24

/*
 * Mixed sizes, of which a changing set is in use: the files never take more than 1.3 times the most
 * that was in use. bench/memory tests this with a million acquires.
 */
TEST_WITHIN(P10_mixed_sizes_take_little_more_than_is_in_use, 60)
{
	struct xmem_pool *pool = WRITER(.demand_bytes = 256 * MB);
	struct xmem_buffer *live[LIVE] = { NULL };
	uint64_t random = seed(), used = 0, most_used = 0, most = 0;
	unsigned int i, n = scaled(3000);

	for (i = 0; i < n; i++) {
		struct xmem_buffer **b = &live[random_next(&random) % LIVE];
		size_t bytes = 64 * 1024 + random_next(&random) % MB;

		if (*b) {
			used -= xmem_size(*b);
			xmem_release(*b);
		}
		*b = acquire(pool, bytes);
		used += bytes;
		most_used = used > most_used ? used : most_used;
		if (stat_of(pool).bytes_files > most)
			most = stat_of(pool).bytes_files;
		if (most_used > 12 * MB && most * 10 > most_used * 13)
			FAIL("%u: %llu bytes of files, %llu used", i, (unsigned long long)most,
			     (unsigned long long)most_used);
	}
	for (i = 0; i < LIVE; i++)
		xmem_release(live[i]);
	xmem_pool_close(pool);
}

/* ---- polling ---- */

/* The descriptor is ready in vain at most once. */
static void can(struct xmem_pool *pool, size_t bytes, bool yes)
{
	if (yes)
		xmem_release(acquire_by_poll(pool, bytes, 1));
	else
		acquire_in_vain(pool, bytes);
}

TEST(API_poll_speaks_of_what_can_be_made)
{
	struct xmem_pool *pool = WRITER(.demand_bytes = 4 * MB), *reader;
	const char *name = new_name();
	struct xmem_buffer *b[4];
	int i;

	can(pool, MB, true);
	for (i = 0; i < 4; i++)
		b[i] = acquire(pool, MB);
	can(pool, MB, false);
	can(pool, 2 * MB, false);
	/* One is too small, but two together make room for a larger one. */
	xmem_release(b[0]);
	can(pool, 2 * MB, false);
	xmem_release(b[1]);
	can(pool, 2 * MB, true);
	xmem_release(b[2]);
	xmem_release(b[3]);
	trim_pool(pool, 0);
	can(pool, 4 * MB, true);
	xmem_pool_close(pool);
	/* A holder releases instead, and the owner is not told of that. */
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 2 * MB);
	reader = open_reader(name);
	for (i = 0; i < 2; i++) {
		uint64_t token;
		struct xmem_buffer *kept = acquire(pool, MB);
		struct xmem_publish_options keep = {
			.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		};

		WORKED(xmem_publish(kept, &keep, &token));
		CHECK((b[i] = xmem_get(reader, token)));
		xmem_release(kept);
	}
	can(pool, 2 * MB, false);
	xmem_release(b[0]);
	SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
	can(pool, 2 * MB, false);
	xmem_release(b[1]);
	can(pool, 2 * MB, true);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

/* ---- other clients are slow ---- */

/*
 * Small publications that a stopped subscriber has not received make way for a large buffer (P9).
 */
TEST(P9_a_stopped_subscriber_does_not_keep_the_room)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 4 * MB);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), 0);
	struct xmem_buffer *b;
	int i;

	for (i = 0; i < 4; i++)
		WORKED(xmem_publish(acquire(pool, MB), NULL, NULL));
	SAME(stat_of(pool).bytes_files, 4 * MB);
	b = acquire(pool, 3 * MB);
	CHECK(stat_of(pool).bytes_files <= 4 * MB);
	WORKED(xmem_publish(b, NULL, NULL));
	while ((b = xmem_receive(s, 0)))
		xmem_release(b);
	CHECK(sub_info(s).lost >= 3);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

/* A publication that a subscriber is waited for keeps the room, within the bound. */
TEST(P9_a_waiting_acquire_gets_the_room_that_others_leave)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 4 * MB,
				      .wait_bound_ns = 50 * MS);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *b;
	int64_t start;
	int i;

	for (i = 0; i < 4; i++)
		WORKED(xmem_publish(acquire(pool, MB), NULL, NULL));
	start = now_ns();
	CHECK((b = xmem_acquire(pool, 3 * MB, patience_ns())));
	CHECK(now_ns() - start >= 50 * MS);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

struct waiter {
	struct xmem_pool *pool;
	struct xmem_buffer *got;
};

static void *wait_for_room(void *argument)
{
	struct waiter *waiter = argument;

	waiter->got = xmem_acquire(waiter->pool, 4 * MB, patience_ns());
	return NULL;
}

TEST(P9_a_waiting_acquire_is_woken_by_a_smaller_buffer)
{
	struct waiter waiter = { .pool = WRITER(.demand_bytes = 4 * MB) };
	struct xmem_buffer *b[4];
	pthread_t thread;
	int i;

	for (i = 0; i < 4; i++)
		b[i] = acquire(waiter.pool, MB);
	CHECK(!pthread_create(&thread, NULL, wait_for_room, &waiter));
	for (i = 0; i < 4; i++)
		xmem_release(b[i]);
	CHECK(!pthread_join(thread, NULL));
	CHECK(waiter.got);
	xmem_release(waiter.got);
	xmem_pool_close(waiter.pool);
}

/* A stopped daemon makes nothing. Existing buffers are found, and timeouts end the wait. */
TEST(P9_a_stopped_daemon_makes_nothing)
{
	struct xmem_pool *pool;
	struct xmem_buffer *b;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	xmem_release(acquire(pool, MB));
	daemon = stop_daemon();
	xmem_release(acquire(pool, MB));
	b = xmem_acquire(pool, BYTES, 0);		/* not within a second, so large */
	CHECK(b && xmem_capacity(b) == MB);
	REFUSED(xmem_acquire(pool, 2 * MB, 10 * MS), ETIMEDOUT);
	xmem_release(b);
	CHECK(trim_pool(pool, 0) > 0);
	continue_daemon(daemon);
	/* A file that was made too late is undone. */
	EVENTUALLY((host_has_served(pool), stat_of(pool).attached == 0));
	xmem_release(acquire(pool, 2 * MB));
	xmem_pool_close(pool);
}

/* ---- threads and deaths ---- */

static struct xmem_pool *shared;

static void *work(void *argument)
{
	uint64_t random = (uintptr_t)argument;
	unsigned int i, n = scaled(400);

	for (i = 0; i < n; i++) {
		size_t bytes = 1 + random_next(&random) % (256 * 1024);
		struct xmem_buffer *b = xmem_acquire(shared, bytes, patience_ns());
		uint64_t *data;

		CHECK(b);
		data = xmem_data_mut(b);
		*data = i;
		if (i % 64 == 0)
			CHECK(trim_pool(shared, MB) >= 0);
		if (i % 3)
			WORKED(xmem_publish(b, NULL, NULL));
		SAME(*data == i || i % 3, true);	/* no other thread has this buffer */
		if (!(i % 3))
			xmem_release(b);
		if (i % 50 == 7)
			CHECK(xmem_collect(shared, XMEM_KEEP_ALL, NULL) >= 0);
	}
	return NULL;
}

TEST_WITHIN(API_threads_make_and_trim_together, 60)
{
	pthread_t thread[4];
	uintptr_t i;

	shared = WRITER(.demand_bytes = 8 * MB, .cache_ns = MS);
	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)(seed() + i)));
	for (i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(stat_of(shared).bytes_files <= 8 * MB);
	CHECK(trim_pool(shared, 0) >= 0);
	EVENTUALLY(stat_of(shared).attached == 0);
	xmem_pool_close(shared);
}

struct victim {
	const char *name;
	int step;
	unsigned int after;
};

static void make_and_trim(void *argument)
{
	const struct victim *victim = argument;
	struct xmem_pool *pool = OPEN(victim->name, .flags = XMEM_OPEN_WRITER, .ring = 8);
	uint64_t random = victim->after;
	unsigned int i;

	at_step(victim->step, victim->after, STEP_KILL, NULL);
	for (i = 0;; i++) {
		struct xmem_buffer *b = acquire(pool, 1 + random_next(&random) % 50000);

		if (i % 2)
			WORKED(xmem_publish(b, NULL, NULL));
		else
			xmem_release(b);
		if (i % 4 == 3)
			CHECK(trim_pool(pool, 0) >= 0);
	}
}

/* A client that dies while it makes a file, or gives one back, leaves nothing. */
TEST_WITHIN(P2_killed_while_files_come_and_go, 60)
{
	static const int steps[] = {
		XM_STEP_FILE_MADE, XM_STEP_FILE_TAKEN, XM_STEP_FILE_DETACHED, ANY_STEP,
	};
	struct victim victim = { .name = new_name() };
	struct xmem_pool *pool = open_reader(victim.name);
	unsigned int i, n = sizeof(steps) / sizeof(*steps) * 8;

	steps_only();
	for (i = 0; i < n; i++) {
		victim.step = steps[i % 4];
		victim.after = victim.step == ANY_STEP ? 7 * i : i / 4;
		died_of_kill(spawn(make_and_trim, &victim));
		check_quiet(pool, 1);
		EVENTUALLY(stat_of(pool).bytes_files == 0);
	}
	xmem_pool_close(pool);
}

/* ---- which go first ---- */

TEST(P10_trim_keeps_what_was_used_last)
{
	struct xmem_pool *pool = WRITER(.cache_bytes = 64 * MB);
	struct xmem_buffer *small = acquire(pool, MB), *large = acquire(pool, 2 * MB);

	xmem_release(large);
	SAME(trim_pool(pool, 64 * MB), 0);	/* the trim notices that it is idle */
	xmem_release(small);
	SAME(trim_pool(pool, 64 * MB), 0);
	SAME(trim_pool(pool, MB), 2 * MB);
	EVENTUALLY(stat_of(pool).attached == 1);
	/* Using a buffer makes it the youngest: now in the opposite order. */
	xmem_release(acquire(pool, 2 * MB));
	SAME(trim_pool(pool, 64 * MB), 0);
	xmem_release(acquire(pool, MB));
	SAME(trim_pool(pool, MB), 2 * MB);
	xmem_pool_close(pool);
}

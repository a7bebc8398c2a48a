// SPDX-License-Identifier: MIT
/*
 * Memory of payloads: how much of it one buffer keeps after its owner's end, when a process unmaps
 * it, which client is shown to keep which memory, and that the data is right meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "harness.h"
#include "lib/payload/payload.h"

#define MB	(1ULL << 20)
#define BYTES	4096

/* ---- a writer that can be killed ---- */

struct maker {
	const char *name;
	unsigned int calls;		/* of preallocate, each of: */
	unsigned int buffers;
	size_t bytes;
	unsigned int publish;		/* this many are published and kept */
};

/* Report its client id and the tokens, and stay. Each publication's stamp is its number. */
static void make(void *argument)
{
	const struct maker *maker = argument;
	struct xmem_pool *pool = open_with(maker->name, &(struct setup){
		.flags = XMEM_OPEN_WRITER, .ring = 256, .slots = 1024, .label = "maker" });
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < maker->calls; i++)
		WORKED(xmem_preallocate(pool, maker->bytes, maker->buffers, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	for (i = 0; i < maker->publish; i++)
		tell_parent(publish_kept(pool, i, &kept));
	hear_parent();
}

static struct child *start_maker(struct maker *maker, int *ret_client)
{
	struct child *child = spawn(make, maker);
	int client = hear(child);

	if (ret_client)
		*ret_client = client;
	return child;
}

static struct xmem_buffer *get_next(struct xmem_pool *pool, struct child *child)
{
	struct xmem_buffer *b = xmem_get(pool, hear(child));

	if (!b)
		FAIL("get: %d", xmem_peek_last_error(NULL));
	return b;
}

/* The number of payload files that this process maps, as the kernel counts them. */
static unsigned int mapped_files(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "memfd:xmem-payload") != NULL;
	fclose(file);
	return count;
}

static struct xmem_client_info client_of(struct xmem_pool *pool, int client)
{
	struct xmem_client_info info;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_pool_client_info(pool, client, &info));
	return info;
}

/* ---- what a dead owner leaves (L7) ---- */

TEST(P10_a_held_buffer_keeps_a_small_file_of_a_dead_owner)
{
	struct maker maker = { new_name(), 1, 12, 4 * MB, 1 };
	struct xmem_pool *pool = OPEN(maker.name, .slots = 1024, .ring = 256), *other;
	struct child *child = start_maker(&maker, NULL);
	struct xmem_pool_info info = stat_of(pool);
	struct xmem_buffer *b;
	int me = xmem_pool_client(pool);

	SAME(info.attached, 12);
	SAME(info.bytes_files, 48 * MB);
	SAME(info.payloads, 3);
	SAME(info.bytes_kept, 0);
	tell(child, 1);
	b = get_next(pool, child);
	SAME(stamp_of(b), 0);
	SAME(client_of(pool, me).bytes_kept, 0);
	kill_child(child);
	EVENTUALLY(stat_of(pool).attached == 1);
	info = stat_of(pool);
	SAME(info.limbo, 1);
	SAME(info.bytes, 4 * MB);
	SAME(info.payloads, 1);
	SAME(info.bytes_files, 16 * MB);
	SAME(info.bytes_kept, 16 * MB);
	SAME(info.bytes_mapped, 16 * MB);
	/* The clients that keep it are named. */
	other = open_reader(maker.name);
	SAME(client_of(other, me).bytes_kept, 16 * MB);
	SAME(client_of(other, me).bytes_mapped, 16 * MB);
	SAME(client_of(pool, xmem_pool_client(other)).bytes_kept, 0);
	SAME(client_of(pool, xmem_pool_client(other)).bytes_mapped, 0);
	SAME(stamp_of(b), 0);
	xmem_release(b);
	EVENTUALLY(stat_of(pool).bytes_kept == 0);
	info = stat_of(pool);
	SAME(info.payloads, 0);
	SAME(info.bytes_files, 0);
	SAME(info.bytes_mapped, 0);
	SAME(mapped_files(), 0);
	SAME(client_of(other, me).bytes_mapped, 0);
	xmem_pool_close(other);
	xmem_pool_close(pool);
}

TEST(P10_a_file_has_at_most_64_buffers)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 129, 64);
	struct xmem_slot_info slot = { .size = sizeof(slot) };
	struct xmem_pool_info info = stat_of(pool);

	SAME(info.payloads, 3);
	SAME(info.bytes_files, 129 * 64);
	SAME(info.bytes_mapped, 129 * 64);
	WORKED(xmem_pool_slot_info(pool, 0, &slot));
	SAME(slot.payload_bytes, 64 * 64);
	/* One buffer is larger than 16 MB. */
	WORKED(xmem_preallocate(pool, 17 * MB, 2, NULL));
	SAME(stat_of(pool).payloads, 5);
	SAME(stat_of(pool).bytes_files, 129 * 64 + 34 * MB);
	xmem_pool_close(pool);
}

TEST(P10_a_late_subscriber_keeps_a_dead_owners_file)
{
	struct maker maker = { new_name(), 1, 2, BYTES, 2 };
	struct xmem_pool *pool = OPEN(maker.name, .slots = 1024, .ring = 256);
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	struct child *child;
	int writer, me = xmem_pool_client(pool);

	child = start_maker(&maker, &writer);
	s = follow(pool, writer, 0);
	tell(child, 1);
	hear(child);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(pool).limbo == 2);
	EVENTUALLY(stat_of(pool).bytes_kept == 2 * BYTES);
	SAME(client_of(pool, me).bytes_kept, 2 * BYTES);
	SAME(client_of(pool, me).holds, 0);
	b = receive_one(s);
	xmem_release(b);
	SAME(client_of(pool, me).bytes_kept, 2 * BYTES);
	b = receive_one(s);
	xmem_release(b);
	REFUSED(xmem_receive(s, patience_ns()), EPIPE);
	EVENTUALLY(stat_of(pool).bytes_kept == 0);
	SAME(client_of(pool, me).bytes_kept, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(pool);
}

TEST(API_a_listed_pool_says_what_the_dead_keep)
{
	struct maker maker = { new_name(), 1, 2, BYTES, 1 };
	struct xmem_pool *pool = OPEN(maker.name, .slots = 1024, .ring = 256);
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	struct child *child = start_maker(&maker, NULL);
	struct xmem_buffer *b;

	tell(child, 1);
	b = get_next(pool, child);
	kill_child(child);
	EVENTUALLY(stat_of(pool).limbo == 1);
	do {
		entry.size = sizeof(entry);
		WORKED(xmem_pool_next(entry.number, &entry));
	} while (strcmp(entry.name, maker.name));
	SAME(entry.bytes, BYTES);
	SAME(entry.payloads, 1);
	SAME(entry.bytes_files, 2 * BYTES);
	SAME(entry.bytes_kept, 2 * BYTES);
	xmem_release(b);
	xmem_pool_close(pool);
}

/* ---- an idle reader unmaps at its next slow call ---- */

static struct xmem_pool *idle;			/* the reader */
static struct xmem_pool *steady;		/* a writer that lives */
static struct xmem_subscription *follows;	/* of the steady writer */

static void by_stat(void)
{
	stat_of(idle);
}

static void by_subscribing(void)
{
	xmem_unsubscribe(follow(idle, xmem_pool_client(steady), 0));
}

static void by_unsubscribing(void)
{
	xmem_unsubscribe(follows);
	follows = NULL;
}

/* It sleeps until the timeout, so nothing wakes it. */
static void by_sleeping(void)
{
	REFUSED(xmem_receive(follows, 1 * MS), ETIMEDOUT);
}

static void by_data_of_another(void)
{
	struct xmem_buffer *kept, *b = xmem_get(idle, publish_kept(steady, 1, &kept));

	CHECK(b && xmem_data(b));
	SAME(mapped_files(), 2);	/* the steady writer's own, and the reader's */
	xmem_release(b);
	xmem_release(kept);
}

/*
 * The reader holds nothing when another reader's release is the last, so it has nothing to tell the
 * host.
 */
static void let_go(void (*slow)(void), bool subscribed)
{
	struct maker maker = { new_name(), 1, 1, BYTES, 1 };
	struct xmem_pool *last = OPEN(maker.name, .slots = 1024, .ring = 256);
	struct xmem_buffer *b, *of_last;
	struct child *child = start_maker(&maker, NULL);
	/* A subscriber maps the steady writer's files ahead. */
	unsigned int ahead = subscribed, left;
	uint64_t token;

	steady = open_writer(maker.name, 1, BYTES);
	idle = open_reader(maker.name);
	follows = subscribed ? follow(idle, xmem_pool_client(steady), 0) : NULL;
	tell(child, 1);
	token = hear(child);
	CHECK((b = xmem_get(idle, token)) && (of_last = xmem_get(last, token)));
	CHECK(xmem_data(b));
	SAME(mapped_files(), 2 + ahead);
	xmem_release(b);
	kill_child(child);
	EVENTUALLY(stat_of(last).limbo == 1);
	xmem_release(of_last);
	EVENTUALLY(stat_of(last).payloads == 1);
	SAME(mapped_files(), 2 + ahead);
	SAME(client_of(last, xmem_pool_client(idle)).bytes_mapped, (1 + ahead) * BYTES);
	slow();
	left = ahead || slow == by_data_of_another || slow == by_subscribing;
	SAME(client_of(last, xmem_pool_client(idle)).bytes_mapped, left * BYTES);
	SAME(mapped_files(), 1 + left);
	xmem_unsubscribe(follows);
	xmem_pool_close(idle);
	xmem_pool_close(steady);
	xmem_pool_close(last);
}

TEST(P10_a_reader_unmaps_what_has_gone_when_it_looks)
{
	let_go(by_stat, false);
}

TEST(P10_a_reader_unmaps_what_has_gone_when_it_subscribes)
{
	let_go(by_subscribing, false);
}

TEST(P10_a_reader_unmaps_what_has_gone_when_it_unsubscribes)
{
	let_go(by_unsubscribing, true);
}

TEST(P10_a_reader_unmaps_what_has_gone_before_it_sleeps)
{
	let_go(by_sleeping, true);
}

TEST(P10_a_reader_unmaps_what_has_gone_when_it_maps)
{
	let_go(by_data_of_another, false);
}

/* ---- the work that this takes (L16) ---- */

#define FILES	200

static void never(int step)
{
	FAIL("step %s: the count has no end", step_name(step));
}

static void count_looks(void)
{
	at_step(XM_STEP_MAPPING_LOOK, 1u << 30, STEP_CALL, never);
}

/* Release the last hold of a dead owner's buffer, and wait until the host has freed its slot. */
static void release_and_see(struct xmem_pool *pool, struct xmem_buffer *b)
{
	struct xmem_slot_info info = { .state = XMEM_USE_LIMBO };
	uint32_t slot = xm_token_slot(xmem_token(b));

	xmem_release(b);
	while (info.state != XMEM_USE_NONE) {
		info.size = sizeof(info);
		WORKED(xmem_pool_slot_info(pool, slot, &info));
		sched_yield();
	}
}

TEST(P10_mapping_many_files_takes_no_look_at_others)
{
	struct maker maker = { new_name(), FILES, 1, BYTES, FILES };
	struct xmem_pool *pool;
	struct xmem_buffer *b[FILES];
	struct child *child;
	unsigned int i, slots;

	steps_only();
	pool = OPEN(maker.name, .slots = 1024, .ring = 256);
	child = start_maker(&maker, NULL);
	SAME(stat_of(pool).payloads, FILES);
	slots = stat_of(pool).slots;
	tell(child, 1);
	count_looks();
	for (i = 0; i < FILES; i++) {
		b[i] = get_next(pool, child);
		SAME(stamp_of(b[i]), i);
	}
	SAME(steps_seen(), 0);
	SAME(mapped_files(), FILES);
	kill_child(child);
	EVENTUALLY(stat_of(pool).limbo == FILES);
	/* All stay attached, so no file is gone and the library checks nothing. */
	SAME(steps_seen(), 0);
	/* Files that go one by one do not each cost a check of all rows. */
	for (i = 1; i < FILES; i++)
		release_and_see(pool, b[i]);
	if (steps_seen() > FILES / 3 * (slots + FILES))
		FAIL("%u checks of %u rows and %u mappings", steps_seen(), slots, FILES);
	EVENTUALLY(stat_of(pool).limbo == 1);
	SAME(mapped_files(), 1);
	/* One file that is gone costs one check of each row and of each mapping. */
	count_looks();
	xmem_release(b[0]);
	EVENTUALLY(!stat_of(pool).bytes_mapped);
	CHECK(steps_seen() > 0);
	CHECK(steps_seen() <= 2 * (slots + FILES));
	no_step();
	xmem_pool_close(pool);
}

/* The work does not depend on how many slots other writers have, or how many writers there are. */
TEST(P10_a_subscribe_looks_at_the_slots_of_its_publisher)
{
	const char *name = new_name();
	struct xmem_pool *other[3], *writer, *pool = OPEN(name, .slots = 1024);
	struct xmem_subscription *s;
	unsigned int i;

	steps_only();
	for (i = 0; i < 3; i++)
		other[i] = open_writer(name, 2 * XMEM_GROUP_SLOTS, BYTES);
	writer = open_writer(name, 3, BYTES);
	count_looks();
	s = follow(pool, xmem_pool_client(writer), 0);
	SAME(steps_seen(), XMEM_GROUP_SLOTS);
	no_step();
	SAME(stat_of(pool).bytes_mapped, 3 * BYTES);
	xmem_unsubscribe(s);
	for (i = 0; i < 3; i++)
		xmem_pool_close(other[i]);
	xmem_pool_close(writer);
	xmem_pool_close(pool);
}

/* ---- mapping ahead (L26) ---- */

TEST(P10_data_that_is_mapped_ahead_needs_no_descriptor)
{
	struct maker maker = { new_name(), 3, 1, BYTES, 3 };
	struct xmem_pool *pool = OPEN(maker.name, .slots = 1024, .ring = 256);
	struct rlimit old, low;
	struct child *child;
	unsigned int i;
	int writer, highest;

	child = start_maker(&maker, &writer);
	WORKED(xl_payload_ahead_all(pool, writer, ~0ULL));
	SAME(stat_of(pool).bytes_mapped, 3 * BYTES);
	WORKED(xl_payload_ahead_all(pool, writer, ~0ULL));
	SAME(mapped_files(), 3);
	tell(child, 1);
	highest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(highest >= 0 && !getrlimit(RLIMIT_NOFILE, &old));
	low = old;
	low.rlim_cur = highest;		/* no lower one is free, so the next open fails */
	CHECK(!setrlimit(RLIMIT_NOFILE, &low));
	for (i = 0; i < 3; i++) {
		struct xmem_buffer *b = get_next(pool, child);

		WORKED(xl_payload_ahead(pool, xm_token_slot(xmem_token(b))));
		SAME(stamp_of(b), i);
		xmem_release(b);
	}
	CHECK(!setrlimit(RLIMIT_NOFILE, &old));
	close(highest);
	kill_child(child);
	EVENTUALLY(stat_of(pool).bytes_mapped == 0);
	xmem_pool_close(pool);
}

/* ---- threads ---- */

#define READERS	3
#define ROUND	4

static struct {
	struct xmem_pool *pool;
	uint64_t token[ROUND];
	pthread_barrier_t begin;
} round_of;

static void *read_round(void *argument)
{
	struct xmem_buffer *b[ROUND];
	unsigned int i;

	for (i = 0; i < ROUND; i++)
		CHECK((b[i] = xmem_get(round_of.pool, round_of.token[i])));
	pthread_barrier_wait(&round_of.begin);
	for (i = 0; i < ROUND; i++) {
		SAME(stamp_of(b[i]), i);
		xmem_release(b[i]);
		stat_of(round_of.pool);
	}
	return NULL;
}

/* Threads find, map and unmap payloads at once, while owners die and slots are used again. */
TEST_WITHIN(P1_data_is_right_while_payloads_come_and_go, 60)
{
	struct maker maker = { new_name(), 2, 2, BYTES, ROUND };
	unsigned int i, t, rounds = scaled(40);
	pthread_t thread[READERS];
	struct child *child;

	round_of.pool = OPEN(maker.name, .slots = 1024, .ring = 256);
	for (i = 0; i < rounds; i++) {
		child = start_maker(&maker, NULL);
		tell(child, 1);
		for (t = 0; t < ROUND; t++)
			round_of.token[t] = hear(child);
		CHECK(!pthread_barrier_init(&round_of.begin, NULL, READERS + 1));
		for (t = 0; t < READERS; t++)
			CHECK(!pthread_create(&thread[t], NULL, read_round, NULL));
		pthread_barrier_wait(&round_of.begin);
		kill_child(child);
		for (t = 0; t < READERS; t++)
			CHECK(!pthread_join(thread[t], NULL));
		pthread_barrier_destroy(&round_of.begin);
	}
	EVENTUALLY(!stat_of(round_of.pool).attached);
	EVENTUALLY(!stat_of(round_of.pool).bytes_mapped);
	SAME(mapped_files(), 0);
	xmem_pool_close(round_of.pool);
}

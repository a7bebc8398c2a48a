// SPDX-License-Identifier: MIT
/*
 * All slots of the pool are in use, and an acquire wants a buffer of another size. The acquire
 * waits, and a writer that polls waits, until other clients have released enough buffers.
 */
#include <sys/resource.h>

#include "attached.h"
#include "polling.h"
#include "waiter.h"

#define BYTES	4096
#define LARGE	100000
#define LIMIT	(256 * page_size())	/* of bytes, of which there are enough */
#define SLOTS	64

static struct xmem_pool *open_small(const char *name)
{
	return OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = SLOTS, .demand_bytes = LIMIT);
}

/* The writer's own small buffers, all of which the reader holds. */
static void fill_slots(struct xmem_pool *writer, struct xmem_pool *reader,
		       struct xmem_buffer **held)
{
	struct xmem_buffer *b;
	uint64_t token;
	int i;

	for (i = 0; i < SLOTS; i++) {
		struct xmem_publish_options keep = {
			.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		};

		b = xmem_acquire(writer, 100, 0);
		CHECK(b);
		WORKED(xmem_publish(b, &keep, &token));
		CHECK((held[i] = xmem_get(reader, token)));
		xmem_release(b);
	}
}

static void attach_everywhere(struct xmem_pool *writer, struct xmem_buffer **b)
{
	int i, file = stamped(BYTES, 1, FULL_SEALS);

	for (i = 0; i < SLOTS; i++)
		CHECK((b[i] = xmem_attach_fd(writer, file, 0, 0, 0)));
	close(file);
}

static void says(const char *words)
{
	const char *why = last_message();

	if (!strstr(why, words))
		FAIL("no '%s' in: %s", words, why);
}

/* This writer has no slots, and gets none before another writer ends, so it does not wait. */
static void refused_without_slots(struct xmem_pool *writer, const char *words)
{
	const char *why;

	fd_of(writer);
	REFUSED(xmem_acquire(writer, LARGE, 0), ENOSPC);
	REFUSED(xmem_acquire(writer, LARGE, XMEM_FOREVER), ENOSPC);
	why = last_message();
	CHECK(strstr(why, "groups of 64") && strstr(why, "more slots"));
	says(words);
}

static void refused_for_slots(struct xmem_pool *writer)
{
	const char *why;

	fd_of(writer);
	REFUSED(xmem_acquire(writer, LARGE, 0), EAGAIN);
	why = last_message();
	CHECK(strstr(why, "groups of 64") && strstr(why, "more slots"));
}

/* A writer that polls gets one too, and its descriptor is not ready in vain too often. */
static void gets_one_by_poll(struct xmem_pool *pool)
{
	struct xmem_buffer *b;
	int i;

	for (i = 0; !(b = xmem_acquire(pool, LARGE, 0)); i++) {
		CHECK(i < 5);
		SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
	}
	xmem_release(b);
}

TEST(P9_an_acquire_waits_for_slots)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_small(name), *reader = open_reader(name);
	struct xmem_buffer *held[SLOTS];
	struct waiter waiter;
	int i;

	fill_slots(writer, reader, held);
	refused_for_slots(writer);
	begin_to_wait(&waiter, name, writer, LARGE);
	for (i = 0; i < SLOTS; i++)
		xmem_release(held[i]);
	xmem_release(end_of_wait(&waiter));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P9_poll_wakes_for_slots)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_small(name), *reader = open_reader(name);
	struct xmem_buffer *held[SLOTS];
	int i;

	fill_slots(writer, reader, held);
	refused_for_slots(writer);
	REFUSED(xmem_acquire(writer, LARGE, MS), ETIMEDOUT);
	SAME(by_poll(fd_of(writer), POLLOUT, 0), 0);
	for (i = 0; i < SLOTS; i++)
		xmem_release(held[i]);
	SAME(by_poll(fd_of(writer), POLLOUT, WAIT_MS), POLLOUT);
	gets_one_by_poll(writer);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Buffers in hand and small free ones keep slots too. */
TEST(P9_poll_wakes_for_slots_that_it_gives_up)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_small(name);
	struct xmem_buffer *b[SLOTS];
	int i;

	for (i = 0; i < SLOTS; i++)
		CHECK((b[i] = xmem_acquire(writer, 100, 0)));
	refused_for_slots(writer);
	SAME(by_poll(fd_of(writer), POLLOUT, 0), 0);
	for (i = 0; i < SLOTS; i++)
		xmem_release(b[i]);
	SAME(by_poll(fd_of(writer), POLLOUT, WAIT_MS), POLLOUT);
	gets_one_by_poll(writer);
	xmem_pool_close(writer);
}

TEST(P9_a_file_that_is_let_go_leaves_a_slot)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_small(name), *reader = open_reader(name);
	struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *b[SLOTS], *got;
	struct waiter waiter;
	uint64_t token;
	int i;

	attach_everywhere(writer, b);
	refused_for_slots(writer);
	SAME(by_poll(fd_of(writer), POLLOUT, 0), 0);
	xmem_release(b[0]);
	SAME(by_poll(fd_of(writer), POLLOUT, WAIT_MS), POLLOUT);
	gets_one_by_poll(writer);
	/* That one is idle now, and makes way for another file, which a reader then holds. */
	b[0] = attach_stamp(writer, 7);
	WORKED(xmem_publish(b[0], &keep, &token));
	CHECK((got = xmem_get(reader, token)));
	xmem_release(b[0]);
	refused_for_slots(writer);
	begin_to_wait(&waiter, name, writer, LARGE);
	xmem_release(got);
	xmem_release(end_of_wait(&waiter));
	CHECK(trim_pool(writer, 0) > 0);
	b[0] = attach_stamp(writer, 8);
	begin_to_wait(&waiter, name, writer, LARGE);
	xmem_release(b[0]);
	xmem_release(end_of_wait(&waiter));
	for (i = 1; i < SLOTS; i++)
		xmem_release(b[i]);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* A stopped subscriber that may lose them keeps no slots: neither of files nor of small buffers. */
TEST(P9_a_stopped_subscriber_does_not_keep_the_slots)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = SLOTS,
					.demand_bytes = LIMIT, .ring = 256);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b[SLOTS];
	int i;

	attach_everywhere(writer, b);
	for (i = 0; i < SLOTS; i++)
		WORKED(xmem_publish(b[i], NULL, NULL));
	b[0] = xmem_acquire(writer, LARGE, 0);
	CHECK(b[0]);
	CHECK(stat_of(writer).attached >= SLOTS / 2);	/* the later half is protected */
	xmem_release(b[0]);
	CHECK((b[0] = xmem_receive(s, 0)));
	xmem_release(b[0]);
	CHECK(sub_info(s).lost > 0);
	xmem_unsubscribe(s);
	CHECK(trim_pool(writer, 0) > 0);
	s = follow(reader, xmem_pool_client(writer), 0);
	for (i = 0; i < SLOTS; i++) {
		CHECK((b[0] = xmem_acquire(writer, 100, 0)));
		WORKED(xmem_publish(b[0], NULL, NULL));
	}
	b[0] = xmem_acquire(writer, LARGE, 0);
	CHECK(b[0]);
	xmem_release(b[0]);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/*
 * Two groups, of which another writer has one. That writer may end, but slots of this one's group
 * become free, too.
 */
TEST(P9_an_acquire_waits_if_it_has_slots_beside_others)
{
	const char *name = new_name();
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 2 * SLOTS);
	struct xmem_pool *writer = open_small(name);
	struct xmem_buffer *b[SLOTS];
	struct waiter waiter;
	int i;

	WORKED(xmem_preallocate(other, BYTES, 1, NULL));
	for (i = 0; i < SLOTS; i++)
		CHECK((b[i] = xmem_acquire(writer, 100, 0)));
	refused_for_slots(writer);
	begin_to_wait(&waiter, name, writer, LARGE);
	xmem_pool_close(other);
	xmem_release(end_of_wait(&waiter));
	for (i = 0; i < SLOTS; i++)
		xmem_release(b[i]);
	xmem_pool_close(writer);
}

/* A writer takes the only group of slots. Another is refused because of it, and polls. */
static struct xmem_pool *refused_by_another(struct xmem_pool **ret_other)
{
	const char *name = new_name();
	struct xmem_pool *writer;

	*ret_other = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = SLOTS, .label = "owner");
	writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(*ret_other, BYTES, 1, NULL));
	refused_without_slots(writer, "(client 0 owner pid ");
	SAME(by_poll(fd_of(writer), POLLOUT, 0), 0);
	return writer;
}

TEST(P9_poll_wakes_for_the_slots_of_others)
{
	struct xmem_pool *other, *writer = refused_by_another(&other);

	xmem_pool_close(other);
	SAME(by_poll(fd_of(writer), POLLOUT, WAIT_MS), POLLOUT);
	gets_one_by_poll(writer);
	xmem_pool_close(writer);
}

/*
 * A group stays its owner's, even if the owner uses none of its slots any more: others wait for its
 * end.
 */
TEST(P9_slots_that_others_keep_unused_are_in_use)
{
	struct xmem_pool *other, *writer = refused_by_another(&other);

	CHECK(trim_pool(other, 0) > 0);
	SAME(stat_of(other).attached, 0);
	refused_without_slots(writer, "(client 0 owner pid ");
	SAME(by_poll(fd_of(writer), POLLOUT, 0), 0);
	xmem_pool_close(other);
	SAME(by_poll(fd_of(writer), POLLOUT, WAIT_MS), POLLOUT);
	gets_one_by_poll(writer);
	xmem_pool_close(writer);
}

static void take_all_slots(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(xmem_preallocate(pool, BYTES, SLOTS, NULL));
	tell_parent(0);
	hear_parent();
}

/* It has ended, but the host may not have cleaned up yet. That is no reason to refuse a buffer. */
TEST(P9_slots_of_a_killed_writer_can_be_acquired)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_small(name);
	struct xmem_buffer *b;
	struct child *child;
	int i;

	kernel_only("the daemon sees an end at each of its checks");
	for (i = 0; i < 30; i++) {
		child = spawn(take_all_slots, (void *)name);
		hear(child);
		kill_child(child);
		b = xmem_acquire(pool, LARGE, patience_ns());
		if (!b)
			FAIL("errno is %d, the %dth time", errno, i);
		xmem_release(b);
		xmem_pool_close(pool);
		pool = open_small(name);
	}
	xmem_pool_close(pool);
}

/* The message names the client that has the slots, even if only its buffers are left. */
TEST(API_a_refusal_for_slots_says_who_has_them)
{
	const char *name = new_name();
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 2 * SLOTS,
				       .label = "greedy");
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	char words[64];
	struct xmem_buffer *held[SLOTS];
	int i;

	WORKED(xmem_preallocate(other, BYTES, SLOTS + 1, NULL));
	REFUSED(xmem_acquire(writer, LARGE, 0), ENOSPC);
	snprintf(words, sizeof(words), " (client 0 greedy pid %d: 2)", getpid());
	says("all of the 2 groups until they end");
	says(words);
	SAME(xmem_preallocate(writer, BYTES, 1, NULL), -ENOSPC);
	says("others have 2 of the 2 groups");
	says(words);
	for (i = 0; i < SLOTS; i++)
		CHECK((held[i] = publish_and_get(other, reader, i)));
	xmem_pool_close(other);
	EVENTUALLY(stat_of(writer).attached == SLOTS);
	xmem_release(xmem_acquire(writer, 100, patience_ns()));
	other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	refused_for_slots(other);
	says("1 are left by clients that have ended");
	xmem_pool_close(other);
	for (i = 0; i < SLOTS; i++)
		xmem_release(held[i]);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/*
 * Two writers leave a group each. @keeper holds all of one group, and has not received all of the
 * other.
 */
static struct xmem_subscription *leave_groups(const char *name, struct xmem_pool *keeper,
					      struct xmem_buffer **held)
{
	struct xmem_pool *writer[3];
	struct xmem_subscription *s;
	int i;

	for (i = 0; i < 3; i++)
		writer[i] = open_writer(name, i < 2 ? SLOTS : 1, BYTES);
	for (i = 0; i < 2 * SLOTS; i++)
		CHECK((held[i] = publish_and_get(writer[i / SLOTS], keeper, i)));
	s = follow(keeper, xmem_pool_client(writer[2]), 0);
	publish_stamp(writer[2], 1);
	for (i = 0; i < 3; i++)
		xmem_pool_close(writer[i]);
	EVENTUALLY(stat_of(keeper).limbo == 2 * SLOTS + 1);
	return s;
}

/* This client holds all of two groups of dead writers, and has not received from the third. */
TEST(P9_no_acquire_waits_for_what_its_own_client_keeps)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 3 * SLOTS);
	struct xmem_pool *other;
	struct xmem_buffer *held[2 * SLOTS], *b;
	struct xmem_subscription *s = leave_groups(name, writer, held);
	int i;

	refused_without_slots(writer, "3 of the 3 groups are left by clients that have ended");
	says("until this client itself releases or receives");
	says("129 slots of clients that have ended are still used (client 0 conform pid ");
	SAME(by_poll(fd_of(writer), POLLOUT, 0), 0);
	/* Another client can wait for them, because this one may release them. */
	other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	refused_for_slots(other);
	/* Of an ended ring only held buffers are kept. */
	b = receive_one(s);
	xmem_unsubscribe(s);
	SAME(by_poll(fd_of(writer), POLLOUT, WAIT_MS), POLLOUT);
	gets_one_by_poll(writer);
	xmem_release(b);
	xmem_release(held[0]);
	xmem_release(xmem_acquire(other, LARGE, patience_ns()));
	xmem_pool_close(other);
	for (i = 1; i < 2 * SLOTS; i++)
		xmem_release(held[i]);
	xmem_pool_close(writer);
}

/*
 * A file that would get no slots is not made: making it takes long, and a waiting writer tries
 * often.
 */
TEST(P9_a_writer_without_slots_makes_no_file)
{
	struct xmem_pool *other, *writer = refused_by_another(&other);
	struct rlimit before, none;

	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	REFUSED(xmem_acquire(writer, LARGE, 0), ENOSPC);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	xmem_pool_close(other);
	gets_one_by_poll(writer);
	xmem_pool_close(writer);
}

/*
 * An acquire that fails in the end evicts nothing. It fails for lack of @lack while one of the
 * buffers is held. All the others could be evicted.
 */
static void evicts_nothing(struct xmem_pool *writer, const char *name, int count,
			   void (*lack)(struct xmem_pool *writer))
{
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b, *held;
	uint64_t token;
	int i;

	for (i = 0; i < count; i++) {
		CHECK((b = xmem_acquire(writer, 64, 0)));
		WORKED(xmem_publish(b, NULL, &token));
	}
	CHECK((held = xmem_get(reader, token)));
	lack(writer);
	SAME(sub_info(s).lost, 0);
	for (i = 0; i < count; i++)
		xmem_release(receive_one(s));
	SAME(sub_info(s).lost, 0);
	xmem_release(held);
	CHECK((b = xmem_acquire(writer, LARGE, 0)));
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* All slots belong to one file, which cannot be given back. */
TEST(P9_nothing_is_evicted_in_vain)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = SLOTS,
					.demand_bytes = LIMIT, .ring = 256);

	WORKED(xmem_preallocate(writer, 64, SLOTS, NULL));
	evicts_nothing(writer, name, SLOTS - 4, refused_for_slots);
}

static void refused_for_bytes(struct xmem_pool *writer)
{
	REFUSED(xmem_acquire(writer, LIMIT - page_size() + 1, 0), EAGAIN);
	says("(demand_bytes)");
}

/* All bytes but those of one page could be freed, and that is one page too few. */
TEST(P9_nothing_is_evicted_in_vain_for_bytes)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = SLOTS,
					.demand_bytes = LIMIT, .ring = 256);

	evicts_nothing(writer, name, SLOTS / 2, refused_for_bytes);
}

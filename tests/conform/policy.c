// SPDX-License-Identifier: MIT
/*
 * The owner's policy: which subscribers it waits for and until when (P3, P9), what it evicts, which
 * buffer it takes, and what it shows to those that poll. The tests have fewer buffers than the
 * ring's 8 entries, as many, and more.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/poll.h"
#include "harness.h"

#define BYTES	4096
#define RING	8

static const unsigned int counts[] = { 4, RING, 32, 64 };

/* A writer with a ring of 8, and a reader that follows it. */
struct pair {
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
};

static struct pair pair_open(const char *name, unsigned int buffers, int64_t wait_bound_ns,
			     uint32_t flags)
{
	struct pair p = {
		.writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = RING, .clients = 24,
			       .wait_bound_ns = wait_bound_ns),
	};

	if (buffers)
		WORKED(xmem_preallocate(p.writer, BYTES, buffers, NULL));
	p.reader = open_reader(name);
	p.s = follow(p.reader, xmem_pool_client(p.writer), flags);
	return p;
}

static void pair_close(struct pair *p)
{
	xmem_unsubscribe(p->s);
	xmem_pool_close(p->reader);
	xmem_pool_close(p->writer);
}

/* Publish as long as an acquire that does not wait finds a buffer, at most @most times. */
static unsigned int publish_at_once(struct xmem_pool *writer, unsigned int most)
{
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0; i < most; i++) {
		b = xmem_acquire(writer, BYTES, 0);
		if (!b)
			break;
		WORKED(xmem_publish(b, NULL, NULL));
	}
	if (i < most)
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
	return i;
}

static unsigned int receive_all(struct xmem_subscription *s)
{
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0; (b = xmem_receive(s, 0)); i++)
		xmem_release(b);
	SAME(xmem_peek_last_error(NULL), -EAGAIN);
	return i;
}

/* ---- waiting, and being demoted (L1) ---- */

/* Nothing is overwritten or evicted before the subscriber has received it. */
static void is_waited_for(struct pair *p, unsigned int buffers)
{
	uint64_t lost = sub_info(p->s).lost;
	unsigned int room = buffers < RING ? buffers : RING;

	SAME(publish_at_once(p->writer, 100), room);
	SAME(receive_all(p->s), room);
	SAME(sub_info(p->s).lost, lost);
}

static void is_demoted(struct pair *p)
{
	unsigned int i;

	/* The first one that finds no room waits for the bound. The others do not. */
	for (i = 0; i < 100; i++)
		publish_stamp(p->writer, i);
}

#define BOUND	(SECOND / 10)

/* A writer of small and large buffers. A subscriber has not received the large ones. */
static struct pair pair_of_two_sizes(void)
{
	struct pair p = pair_open(new_name(), 4, BOUND, XMEM_SUBSCRIBE_WAITS);
	unsigned int i;

	WORKED(xmem_preallocate(p.writer, 64 * BYTES, 2, NULL));
	for (i = 0; i < 2; i++)
		WORKED(xmem_publish(xmem_acquire(p.writer, 64 * BYTES, 0), NULL, NULL));
	return p;
}

static void acquire_a_small_one(struct xmem_pool *writer)
{
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);

	CHECK(b);
	xmem_release(b);
}

struct small {
	struct xmem_pool *writer;
	bool over;
};

static void *acquire_small_ones(void *argument)
{
	struct small *small = argument;

	while (!__atomic_load_n(&small->over, __ATOMIC_ACQUIRE)) {
		acquire_a_small_one(small->writer);
		look_again_soon();
	}
	return NULL;
}

TEST(P9_small_buffers_do_not_put_off_the_bound_of_a_large_one)
{
	struct pair p = pair_of_two_sizes();
	struct small small = { .writer = p.writer };
	struct xmem_buffer *b;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, acquire_small_ones, &small));
	b = xmem_acquire(p.writer, 64 * BYTES, patience_ns());
	__atomic_store_n(&small.over, true, __ATOMIC_RELEASE);
	CHECK(!pthread_join(thread, NULL));
	CHECK(b);
	xmem_release(b);
	pair_close(&p);
}

TEST(P9_small_buffers_in_between_do_not_put_off_the_bound_of_a_large_one)
{
	struct pair p = pair_of_two_sizes();
	struct xmem_buffer *b = xmem_acquire(p.writer, 64 * BYTES, 0);
	int64_t over = now_ns() + BOUND;

	if (!b) {
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
		do
			acquire_a_small_one(p.writer);
		while (now_ns() < over);
		b = xmem_acquire(p.writer, 64 * BYTES, 0);
	}
	CHECK(b);
	xmem_release(b);
	pair_close(&p);
}

#define WAITERS	32

struct waiter {
	struct xmem_pool *writer;
	size_t bytes;
	int64_t timeout_ns;
	pthread_t thread;
};

static void *wait_in_vain(void *argument)
{
	struct waiter *waiter = argument;

	REFUSED(xmem_acquire(waiter->writer, waiter->bytes, waiter->timeout_ns),
		waiter->timeout_ns ? ETIMEDOUT : EAGAIN);
	return NULL;
}

/* Half of them wait for a large buffer; then this thread does; then the others for a small one. */
static void wait_all(struct xmem_pool *writer, struct waiter *waiter, int64_t timeout_ns)
{
	int i;

	for (i = 0; i < WAITERS; i++) {
		waiter[i] = (struct waiter){
			.writer = writer, .timeout_ns = timeout_ns,
			.bytes = i < WAITERS / 2 ? 64 * BYTES : BYTES,
		};
		CHECK(!pthread_create(&waiter[i].thread, NULL, wait_in_vain, &waiter[i]));
		if (i == WAITERS / 2 - 1)
			REFUSED(xmem_acquire(writer, 64 * BYTES, timeout_ns / 10),
				timeout_ns ? ETIMEDOUT : EAGAIN);
	}
}

static void join_all(struct waiter *waiter)
{
	int i;

	for (i = 0; i < WAITERS; i++)
		CHECK(!pthread_join(waiter[i].thread, NULL));
}

/* A waiter that checks in vain does not wake the others, which would wake it again. */
TEST(P9_a_waiter_for_another_size_stays_asleep)
{
	struct pair p = pair_open(new_name(), 4, 3600 * SECOND, XMEM_SUBSCRIBE_WAITS);
	struct waiter waiter[WAITERS];
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(p.writer, 64 * BYTES, 1, NULL));
	publish_stamp(p.writer, 1);
	WORKED(xmem_publish(xmem_acquire(p.writer, 64 * BYTES, 0), NULL, NULL));
	SAME(publish_at_once(p.writer, 100), 3);
	count_waits();
	wait_all(p.writer, waiter, SECOND);
	REFUSED(xmem_acquire(p.writer, BYTES, 100 * MS), ETIMEDOUT);
	b = receive_one(p.s);
	join_all(waiter);
	/* Each checks twice if nothing wakes it, and once more for each wake-up. */
	if (steps_seen() > 10 * WAITERS)
		FAIL("checked %u times", steps_seen());
	no_step();
	xmem_release(b);
	pair_close(&p);
}

/*
 * An acquire failed long ago. Since then a subscriber has always had something to receive, but
 * never for long. Its present publications are new, so it is waited for.
 */
static bool bound_of_long_ago(int64_t bound_ns)
{
	struct pair p = pair_open(new_name(), 4, bound_ns, XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *large;
	unsigned int n;
	int64_t over;
	bool seen;

	WORKED(xmem_preallocate(p.writer, 64 * BYTES, 1, NULL));
	WORKED(xmem_publish(xmem_acquire(p.writer, 64 * BYTES, 0), NULL, NULL));
	large = receive_one(p.s);
	publish_stamp(p.writer, 1);
	REFUSED(xmem_acquire(p.writer, 64 * BYTES, 0), EAGAIN);
	for (over = now_ns() + 2 * bound_ns; now_ns() < over; ) {
		publish_stamp(p.writer, 2);
		xmem_release(receive_one(p.s));
	}
	publish_stamp(p.writer, 3);
	over = now_ns() + bound_ns;
	REFUSED(xmem_acquire(p.writer, 64 * BYTES, 0), EAGAIN);
	n = publish_at_once(p.writer, 100);
	/* Otherwise the new bound may have passed, too. */
	seen = now_ns() < over;
	if (seen) {
		SAME(n, 2);
		SAME(receive_all(p.s), 4);
		SAME(sub_info(p.s).lost, 0);
	}
	xmem_release(large);
	pair_close(&p);
	return seen;
}

TEST(P3_a_bound_of_long_ago_demotes_nobody)
{
	EVENTUALLY(bound_of_long_ago(50 * MS));
}

TEST(P3_a_demoted_subscriber_is_waited_for_again_once_it_receives)
{
	unsigned int i, round;

	for (i = 0; i < 4; i++) {
		struct pair p = pair_open(new_name(), counts[i], 50 * MS, XMEM_SUBSCRIBE_WAITS);
		uint64_t lost = 0;

		is_waited_for(&p, counts[i]);
		for (round = 0; round < 3; round++) {
			is_demoted(&p);
			CHECK(receive_all(p.s) > 0);
			CHECK(sub_info(p.s).lost > lost);
			lost = sub_info(p.s).lost;
			is_waited_for(&p, counts[i]);
		}
		pair_close(&p);
	}
}

TEST(P3_a_new_client_does_not_inherit_a_demotion)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		const char *name = new_name();
		struct pair p = pair_open(name, counts[i], 50 * MS, XMEM_SUBSCRIBE_WAITS);
		int id = xmem_pool_client(p.reader);

		is_demoted(&p);
		xmem_unsubscribe(p.s);
		xmem_pool_close(p.reader);
		EVENTUALLY(stat_of(p.writer).clients == 1);
		p.reader = open_reader(name);
		SAME(xmem_pool_client(p.reader), id);
		p.s = follow(p.reader, xmem_pool_client(p.writer), XMEM_SUBSCRIBE_WAITS);
		is_waited_for(&p, counts[i]);
		pair_close(&p);
	}
}

/* L18: these buffers were in hand before the subscriber came. */
TEST(P3_a_publication_demotes_overtaken_ones_and_never_waits)
{
	const char *name = new_name();
	struct pair p = pair_open(name, 32, 3600 * SECOND, 0);
	struct xmem_subscription *s;
	struct xmem_pool *late;
	struct xmem_buffer *b[RING + 3];
	const struct xmem_cursor *note;
	struct raw raw;
	unsigned int i;

	for (i = 0; i < RING + 3; i++)
		CHECK((b[i] = xmem_acquire(p.writer, BYTES, 0)));
	late = open_reader(name);
	s = follow(late, xmem_pool_client(p.writer), XMEM_SUBSCRIBE_WAITS);
	raw_start(&raw, name, XMEM_ROLE_READER);
	/* A cursor and a note are in one struct, but in different areas. */
	note = (void *)((char *)raw.map.area[xmem_pool_client(p.writer)] +
			xmem_pool_client(late) * raw.map.cursor_stride);
	for (i = 0; i < RING + 3; i++) {
		if (i <= RING)
			REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
		SAME(note->demoted_incarnation != 0, i > RING);
		fill(b[i], i);
		WORKED(xmem_publish(b[i], NULL, NULL));
	}
	SAME(note->demoted_incarnation,
	     xm_client_row(&raw.map, xmem_pool_client(late))->incarnation);
	SAME(note->demoted_at, 0);
	/* The rest of the ring, without one that a slow receiver is near to losing. */
	SAME(receive_all(s), RING - 1);
	SAME(sub_info(s).lost, 4);
	SAME(publish_at_once(p.writer, 100), RING);
	SAME(receive_all(s), RING);
	SAME(sub_info(s).lost, 4);
	xmem_unsubscribe(s);
	xmem_pool_close(late);
	raw_close(&raw);
	pair_close(&p);
}

/* ---- evicting (L2) ---- */

TEST(P9_a_subscriber_that_may_lose_the_oldest_never_blocks_its_publisher)
{
	unsigned int i, k;

	for (i = 0; i < 4; i++) {
		struct pair p = pair_open(new_name(), counts[i], 0, 0);
		struct xmem_buffer *kept[64];

		/* All buffers but one are held, so no protected depth is left. */
		for (k = 0; k < counts[i] - 1; k++) {
			publish_kept(p.writer, k, &kept[k]);
			SAME(publish_at_once(p.writer, 20), 20);
		}
		SAME(publish_at_once(p.writer, 40), 40);
		for (k = 0; k < counts[i] - 1; k++) {
			SAME(stamp_of(kept[k]), k);
			xmem_release(kept[k]);
		}
		pair_close(&p);
	}
}

TEST(P9_buffers_of_another_size_protect_no_publication_of_this_one)
{
	unsigned int large;

	for (large = 1; large < 12; large++) {
		struct pair p = pair_open(new_name(), 10, 0, 0);
		unsigned int i;

		WORKED(xmem_preallocate(p.writer, 4 * BYTES, large, NULL));
		for (i = 0; i < 20; i++) {
			struct xmem_buffer *b = xmem_acquire(p.writer, 4 * BYTES, 0);

			CHECK(b);
			WORKED(xmem_publish(b, NULL, NULL));
		}
		pair_close(&p);
	}
}

TEST(P3_the_last_publications_stay_for_those_that_may_lose)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct pair p = pair_open(new_name(), counts[i], 0, 0);
		unsigned int published = scaled(200) + 64, depth = counts[i] / 2, got;

		SAME(publish_at_once(p.writer, published), published);
		got = receive_all(p.s);
		/* The ring's oldest entry may be the next one to be overwritten. */
		CHECK(got >= (depth < RING ? depth : RING - 1));
		SAME(got + sub_info(p.s).lost, published);
		pair_close(&p);
	}
}

TEST(P3_nothing_is_evicted_while_a_buffer_is_free)
{
	struct pair p = pair_open(new_name(), RING - 2, 0, 0);
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(p.writer, 4 * BYTES, 1, NULL));
	SAME(publish_at_once(p.writer, RING - 2), RING - 2);
	/* The large buffer may be used for this, but the publications are spared. */
	CHECK((b = xmem_acquire(p.writer, BYTES, 0)));
	SAME(xmem_capacity(b), 4 * BYTES);
	SAME(receive_all(p.s), RING - 2);
	SAME(sub_info(p.s).lost, 0);
	xmem_release(b);
	pair_close(&p);
}

/* ---- which buffer (L19) ---- */

TEST(API_acquire_takes_the_smallest_buffer_that_is_large_enough)
{
	static const size_t sizes[] = { 1 << 20, 64, 4096, 64 };
	static const struct { size_t wanted, capacity; } takes[] = {
		{ 64, 64 }, { 65, 4096 }, { 0, 64 }, { 1, 1 << 20 },
	};
	struct pair p = pair_open(new_name(), 0, 0, 0);
	struct xmem_buffer *b[4];
	unsigned int i, round;

	for (i = 0; i < 4; i++)
		WORKED(xmem_preallocate(p.writer, sizes[i], 1, NULL));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4; i++) {
			CHECK((b[i] = xmem_acquire(p.writer, takes[i].wanted, 0)));
			SAME(xmem_capacity(b[i]), takes[i].capacity);
		}
		REFUSED(xmem_acquire(p.writer, 1, 0), EAGAIN);
		/*
		 * It makes no difference whether the buffer was published and received, or given
		 * up.
		 */
		for (i = 0; i < 4; i++)
			if (round)
				xmem_release(b[i]);
			else
				WORKED(xmem_publish(b[i], NULL, NULL));
		receive_all(p.s);
	}
	pair_close(&p);
}

/* ---- an acquire that fails is not tried again in vain, but in time (L17) ---- */

/* The reader holds all of 128 buffers: acquires fail, and keep failing. */
static void use_up(struct pair *p, struct xmem_buffer **held)
{
	unsigned int i;

	for (i = 0; i < 128; i++) {
		publish_stamp(p->writer, i);
		CHECK((held[i] = xmem_receive(p->s, 0)));
	}
	for (i = 0; i < 5; i++)
		REFUSED(xmem_acquire(p->writer, BYTES, 0), EAGAIN);
	REFUSED(xmem_acquire(p->writer, BYTES, MS), ETIMEDOUT);
	REFUSED(xmem_acquire(p->writer, BYTES, 0), EAGAIN);
}

static void found_at_once(struct pair *p)
{
	struct xmem_buffer *b = xmem_acquire(p->writer, BYTES, 0);

	CHECK(b);
	WORKED(xmem_publish(b, NULL, NULL));
}

TEST(P9_an_acquire_that_failed_succeeds_as_soon_as_it_can)
{
	struct pair p = pair_open(new_name(), 128, 0, 0);
	struct xmem_buffer *held[128], *b;
	unsigned int i;

	use_up(&p, held);
	/* The last hold of any buffer ends. */
	for (i = 3; i < 128; i += 31) {
		xmem_release(held[i]);
		found_at_once(&p);
		CHECK((held[i] = xmem_receive(p.s, 0)));
		REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
		REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
	}
	/* A clone keeps it; only the last hold counts. */
	b = xmem_clone(held[7]);
	xmem_release(held[7]);
	REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
	xmem_release(b);
	CHECK((b = xmem_acquire(p.writer, BYTES, 0)));
	REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
	REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
	/* One is given up, and others are made. */
	xmem_release(b);
	CHECK((b = xmem_acquire(p.writer, BYTES, 0)));
	REFUSED(xmem_acquire(p.writer, BYTES, 0), EAGAIN);
	WORKED(xmem_preallocate(p.writer, BYTES, 1, NULL));
	found_at_once(&p);
	xmem_release(b);
	for (i = 0; i < 128; i++)
		if (i != 7)
			xmem_release(held[i]);
	SAME(publish_at_once(p.writer, 100), 100);
	pair_close(&p);
}

TEST(P9_an_acquire_that_failed_succeeds_when_a_smaller_one_is_enough)
{
	struct pair p = pair_open(new_name(), 100, 0, 0);
	struct xmem_buffer *large;

	WORKED(xmem_preallocate(p.writer, 2 * BYTES, 1, NULL));
	CHECK((large = xmem_acquire(p.writer, 2 * BYTES, 0)));
	REFUSED(xmem_acquire(p.writer, 2 * BYTES, 0), EAGAIN);
	REFUSED(xmem_acquire(p.writer, BYTES + 1, 0), EAGAIN);
	found_at_once(&p);
	REFUSED(xmem_acquire(p.writer, 2 * BYTES, 0), EAGAIN);
	xmem_release(large);
	CHECK((large = xmem_acquire(p.writer, 2 * BYTES, 0)));
	xmem_release(large);
	pair_close(&p);
}

/* A subscriber that is waited for blocks the acquire, until it receives, leaves, or is demoted. */
TEST(P9_a_failed_acquire_succeeds_when_the_subscriber_makes_way)
{
	const char *name = new_name();
	struct pair p = pair_open(name, 128, 3600 * SECOND, XMEM_SUBSCRIBE_WAITS);
	struct xmem_pool *other = open_reader(name);
	struct xmem_subscription *s = follow(other, xmem_pool_client(p.writer),
					     XMEM_SUBSCRIBE_WAITS);

	SAME(publish_at_once(p.writer, 100), RING);
	SAME(publish_at_once(p.writer, 100), 0);
	xmem_release(receive_one(s));
	SAME(publish_at_once(p.writer, 100), 0);
	xmem_release(receive_one(p.s));
	SAME(publish_at_once(p.writer, 100), 1);
	SAME(publish_at_once(p.writer, 100), 0);
	receive_all(p.s);
	SAME(publish_at_once(p.writer, 100), 0);
	xmem_unsubscribe(s);
	SAME(publish_at_once(p.writer, 100), RING);
	xmem_pool_close(other);
	pair_close(&p);
}

/* ---- what the pages show to those that poll ---- */

static bool writable(const struct raw *raw, const struct pair *p, uint64_t now)
{
	return xm_writable(&raw->map, xmem_pool_client(p->writer), now);
}

/* The bound is the time that hosts read, and what an acquire that fails has armed is the count. */
TEST(P9_the_pages_say_whether_something_has_changed)
{
	const char *name = new_name();
	struct pair p = pair_open(name, 12, 50 * MS, XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *b[3];
	struct xmem_ring *ring;
	struct raw raw;

	WORKED(xmem_pool_poll_fd(p.writer));
	raw_start(&raw, name, XMEM_ROLE_READER);
	ring = xm_ring(&raw.map, xmem_pool_client(p.writer));
	SAME(publish_at_once(p.writer, RING - 1), RING - 1);
	CHECK((b[0] = xmem_acquire(p.writer, 100, 0)));
	SAME(ring->vain, 0);
	CHECK(writable(&raw, &p, now_ns()));
	/* One in hand and seven in flight: the ring of eight has no room. */
	REFUSED(xmem_acquire(p.writer, 200, 0), EAGAIN);
	CHECK(ring->vain & XMEM_WAITERS_ARMED);
	CHECK(ring->demote_at_ns);
	SAME(ring->look_at_ns, ring->demote_at_ns);
	CHECK(!writable(&raw, &p, ring->look_at_ns - 1));
	CHECK(writable(&raw, &p, ring->look_at_ns));
	EVENTUALLY(writable(&raw, &p, now_ns()));
	CHECK((b[1] = xmem_acquire(p.writer, 200, 0)));
	SAME(ring->vain, 0);
	SAME(ring->demote_at_ns, 0);
	/* The writer asks for more than all buffers have, so no change would help. */
	REFUSED(xmem_acquire(p.writer, BYTES + 1, 0), ENOSPC);
	SAME(ring->vain, 0);
	xmem_release(b[0]);
	xmem_release(b[1]);
	CHECK(receive_all(p.s) > 0);
	CHECK((b[2] = xmem_acquire(p.writer, 0, 0)));
	CHECK(writable(&raw, &p, now_ns()));
	xmem_release(b[2]);
	raw_close(&raw);
	pair_close(&p);
}

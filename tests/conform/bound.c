// SPDX-License-Identifier: MIT
/*
 * The bound for slow subscribers, for a writer that polls (P9). The bound begins with an acquire in
 * vain, whatever the writer has done before. When it has passed, the descriptor is writable.
 * policy.c tests the bound of a writer that waits.
 */
#include <unistd.h>

#include "polling.h"

#define BYTES	4096

/*
 * The descriptor is writable in vain until an acquire has begun the bound, and again when the
 * subscriber has received. When the bound has passed, an acquire succeeds.
 */
static void publish_when_writable(struct xmem_pool *writer)
{
	WORKED(xmem_publish(acquire_by_poll(writer, BYTES, 3), NULL, NULL));
}

TEST(P9_the_bound_begins_for_a_writer_that_polls)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = SECOND / 10);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s;
	int i;

	WORKED(xmem_preallocate(writer, BYTES, 4, NULL));
	s = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	for (i = 0; i < 12; i++)
		publish_when_writable(writer);
	xmem_release(receive_one(s));
	CHECK(sub_info(s).lost);
	xmem_pool_close(reader);
	xmem_unsubscribe(s);
	xmem_pool_close(writer);
}

/* A writer of two buffers waits for a subscriber that never receives again by itself. */
struct lagging {
	const char *name;
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
};

static struct lagging lagging_open(void)
{
	const char *name = new_name();
	struct lagging l = {
		.name = name,
		.writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = SECOND / 10),
		.reader = open_reader(name),
	};

	WORKED(xmem_preallocate(l.writer, BYTES, 2, NULL));
	l.s = follow(l.reader, xmem_pool_client(l.writer), XMEM_SUBSCRIBE_WAITS);
	return l;
}

static void lagging_close(struct lagging *l)
{
	xmem_pool_close(l->reader);
	xmem_unsubscribe(l->s);
	xmem_pool_close(l->writer);
}

/*
 * The writer holds one buffer when it sleeps. The host knows that it waits because an acquire
 * failed. At that time no subscriber lagged: the slow one was demoted, and another client held the
 * other buffer.
 */
TEST(P9_the_bound_begins_for_a_writer_that_sleeps_with_some_in_hand)
{
	struct lagging l = lagging_open();
	struct xmem_pool *other = open_reader(l.name);
	struct xmem_subscription *lossy = follow(other, xmem_pool_client(l.writer), 0);
	struct xmem_buffer *mine = xmem_acquire(l.writer, 0, 0), *held[4], *b;
	int fd = fd_of(l.writer), i;

	CHECK(mine);
	WORKED(xmem_preallocate(l.writer, BYTES, 2, NULL));
	for (i = 0; i < 3; i++)
		publish_stamp(l.writer, i);
	REFUSED(xmem_acquire(l.writer, 0, 0), EAGAIN);
	EVENTUALLY(by_poll(fd, POLLOUT, WAIT_MS) && (b = xmem_acquire(l.writer, 0, 0)));
	WORKED(xmem_publish(b, NULL, NULL));
	for (i = 0; i < 3; i++)
		held[i] = receive_one(lossy);
	REFUSED(xmem_acquire(l.writer, 0, 0), EAGAIN);
	held[3] = receive_one(l.s);
	SAME(stamp_of(held[3]), 2);
	xmem_release(held[1]);
	xmem_release(held[2]);
	EVENTUALLY(by_poll(fd, POLLOUT, WAIT_MS) && (b = xmem_acquire(l.writer, 0, 0)));
	xmem_release(b);
	xmem_release(held[0]);
	xmem_release(held[3]);
	xmem_release(mine);
	xmem_unsubscribe(lossy);
	xmem_pool_close(other);
	lagging_close(&l);
}

/* The time of a wait counts for buffers of every size that the writer asks for later. */
TEST(P9_the_bound_is_one_for_all_sizes)
{
	struct lagging l = lagging_open();
	int fd = fd_of(l.writer);
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(l.writer, 4 * BYTES, 1, NULL));
	WORKED(xmem_publish(xmem_acquire(l.writer, 4 * BYTES, 0), NULL, NULL));
	publish_stamp(l.writer, 1);
	publish_stamp(l.writer, 2);
	REFUSED(xmem_acquire(l.writer, BYTES, 0), EAGAIN);
	SAME(by_poll(fd, POLLOUT, WAIT_MS), POLLOUT);
	b = xmem_acquire(l.writer, 4 * BYTES, 0);
	CHECK(b);
	xmem_release(b);
	lagging_close(&l);
}

TEST(P9_the_bound_begins_for_a_writer_that_polls_from_now_on)
{
	struct lagging l = lagging_open();

	publish_stamp(l.writer, 1);
	publish_stamp(l.writer, 2);
	publish_when_writable(l.writer);
	lagging_close(&l);
}

/* When the acquire failed, no subscriber lagged: it held one buffer and the writer the other. */
TEST(P9_the_bound_begins_for_a_writer_that_has_asked_before)
{
	struct lagging l = lagging_open();
	struct xmem_buffer *held, *b;

	fd_of(l.writer);
	publish_stamp(l.writer, 1);
	held = receive_one(l.s);
	b = xmem_acquire(l.writer, BYTES, 0);
	CHECK(b);
	REFUSED(xmem_acquire(l.writer, BYTES, 0), EAGAIN);
	WORKED(xmem_publish(b, NULL, NULL));
	publish_when_writable(l.writer);
	xmem_release(held);
	lagging_close(&l);
}

/*
 * The subscriber was demoted, received, and is waited for again. When it lags now, the writer makes
 * no call in which the bound could begin.
 */
TEST(P9_the_bound_begins_for_a_writer_that_sleeps_in_poll)
{
	struct lagging l = lagging_open();
	int fd = fd_of(l.writer);
	struct xmem_buffer *held, *b;

	publish_stamp(l.writer, 1);
	publish_stamp(l.writer, 2);
	REFUSED(xmem_acquire(l.writer, BYTES, 0), EAGAIN);
	SAME(by_poll(fd, POLLOUT, WAIT_MS), POLLOUT);
	publish_stamp(l.writer, 3);
	held = receive_one(l.s);
	SAME(stamp_of(held), 2);
	/*
	 * A failed acquire begins the bound. xmemd may have been about to report writable once
	 * more.
	 */
	SAME(by_poll(fd, POLLOUT, WAIT_MS), POLLOUT);
	REFUSED(xmem_acquire(l.writer, BYTES, 0), EAGAIN);
	EVENTUALLY(by_poll(fd, POLLOUT, WAIT_MS) && (b = xmem_acquire(l.writer, BYTES, 0)));
	xmem_release(b);
	xmem_release(held);
	lagging_close(&l);
}

/*
 * Only time passes, and then the slow subscriber is demoted. The bound begins with the acquire in
 * vain, and the descriptor is not writable before the bound has passed.
 */
TEST(P9_poll_knows_when_slow_subscribers_are_demoted)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = SECOND / 10);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer),
					     XMEM_SUBSCRIBE_WAITS);
	int fd = fd_of(writer), epoll = new_epoll(fd, EPOLLOUT), i;
	struct xmem_buffer *b;
	int64_t start;

	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	for (i = 0; i < 2; i++)
		publish_stamp(writer, i);
	start = now_ns();
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLOUT);
	CHECK(now_ns() - start >= SECOND / 10);
	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b);
	xmem_release(b);
	xmem_unsubscribe(s);
	close(epoll);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

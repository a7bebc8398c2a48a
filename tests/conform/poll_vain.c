// SPDX-License-Identifier: MIT
/*
 * A descriptor is ready in vain only where xmem.h says so: its earlier state stays until a check
 * has found another one.
 */
#include "harness.h"
#include "polling.h"

#define BYTES	4096

/* A writer whose acquire fails tells the daemon, which may not have finished its earlier check. */
TEST(API_poll_forgets_no_refusal)
{
	struct xmem_pool *writer;
	struct xmem_buffer *kept;
	int fd, round;

	interrupt_the_daemon();
	writer = open_writer(new_name(), 1, BYTES);
	fd = fd_of(writer);
	for (round = 0; round < 20; round++) {
		publish_kept(writer, round, &kept);
		REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
		host_has_served(writer);
		SAME(by_poll(fd, POLLOUT, 0), 0);
		xmem_release(kept);
		SAME(by_poll(fd, POLLOUT, WAIT_MS), POLLOUT);
	}
	xmem_pool_close(writer);
}

#define CHANGES	20

/*
 * K10: a loop that acquires when the descriptor is writable is woken once for each change, and then
 * sleeps. Here small buffers come free, which are of no use for the large one that it wants.
 */
TEST(API_poll_wakes_once_for_each_change)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, CHANGES, BYTES), *reader = open_reader(name);
	struct xmem_buffer *small[CHANGES], *large;
	int fd = fd_of(writer), i, vain;

	WORKED(xmem_preallocate(writer, 4 * BYTES, 1, NULL));
	for (i = 0; i < CHANGES; i++)
		small[i] = publish_and_get(writer, reader, i);
	CHECK((large = xmem_acquire(writer, 4 * BYTES, 0)));
	acquire_in_vain(writer, 4 * BYTES);
	for (i = 0; i < CHANGES; i++) {
		xmem_release(small[i]);
		for (vain = 0; by_poll(fd, POLLOUT, vain ? 0 : WAIT_MS); vain++) {
			host_has_served(writer);	/* xmemd empties the socket in steps */
			REFUSED(xmem_acquire(writer, 4 * BYTES, 0), EAGAIN);
		}
		SAME(vain, 1);
	}
	xmem_release(large);
	xmem_release(acquire_by_poll(writer, 4 * BYTES, 0));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* The writer hears of its own changes. */
TEST(P9_poll_wakes_for_its_own_retractions)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = XMEM_FOREVER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer),
					     XMEM_SUBSCRIBE_WAITS);
	uint64_t token;

	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	WORKED(xmem_publish(xmem_acquire(writer, BYTES, 0), NULL, &token));
	acquire_in_vain(writer, BYTES);
	WORKED(xmem_retract(writer, token));
	xmem_release(acquire_by_poll(writer, BYTES, 0));
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* A stage has no buffers of its own, and waits for room in its ring. */
TEST(API_poll_says_that_a_forward_may_have_room)
{
	const char *name = new_name();
	struct xmem_pool *owner = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4);
	struct xmem_pool *stage = OPEN(name, .flags = XMEM_OPEN_WRITER,
				       .wait_bound_ns = XMEM_FOREVER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *in = follow(stage, xmem_pool_client(owner), 0);
	struct xmem_subscription *out = follow(reader, xmem_pool_client(stage),
					       XMEM_SUBSCRIBE_WAITS);
	int fd = fd_of(stage), i;
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(owner, BYTES, 8, NULL));
	for (i = 0; i < 8; i++) {
		publish_stamp(owner, i);
		b = receive_one(in);
		if (i >= 4) {
			SAME(xmem_publish(b, NULL, NULL), -EAGAIN);
			SAME(by_poll(fd, POLLOUT, 0), 0);
			xmem_release(receive_one(out));
			SAME(by_poll(fd, POLLOUT, WAIT_MS), POLLOUT);
			host_has_served(stage);
		}
		WORKED(xmem_publish(b, NULL, NULL));
	}
	xmem_unsubscribe(out);
	xmem_unsubscribe(in);
	xmem_pool_close(reader);
	xmem_pool_close(stage);
	xmem_pool_close(owner);
}

/*
 * A publication to another client is nothing to receive, but a writer may wait until it is passed.
 * So a subscriber that sleeps in poll is woken for it, and must have passed it by then.
 */
TEST(API_poll_says_that_there_is_something_to_pass)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = XMEM_FOREVER);
	struct xmem_pool *one = open_reader(name), *other = open_reader(name);
	int publisher = xmem_pool_client(writer), fd = fd_of(other), round;
	struct xmem_subscription *of_one = follow(one, publisher, 0);
	struct xmem_subscription *s = follow(other, publisher, XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(writer, BYTES, 4, NULL));
	for (round = 0; round < 10; round++) {
		SAME(by_poll(fd, POLLIN, 0), 0);
		b = xmem_acquire(writer, BYTES, 0);
		CHECK(b);
		fill(b, round);
		WORKED(send_to(b, xmem_pool_client(one), NULL));
		SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
		xmem_release(receive_one(of_one));
		REFUSED(xmem_receive(s, 0), EAGAIN);
	}
	xmem_unsubscribe(s);
	xmem_unsubscribe(of_one);
	xmem_pool_close(other);
	xmem_pool_close(one);
	xmem_pool_close(writer);
}

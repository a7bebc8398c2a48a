// SPDX-License-Identifier: MIT
/* Publications for one subscriber alone, and publications that their publisher retracts. */
#include <poll.h>

#include "line.h"

/* ---- one subscriber alone ---- */

TEST(P3_send_reaches_one_subscriber_and_the_others_lose_nothing)
{
	struct line line = line_make(4, 0);
	struct xmem_pool *other = open_reader(line.name);
	struct xmem_subscription *s = follow(other, xmem_pool_client(line.owner), 0);
	struct xmem_buffer *b = xmem_acquire(line.owner, BYTES, 0);
	int me = xmem_pool_client(other);

	fill(b, 1);
	SAME(send_to(b, 99, NULL), -EINVAL);
	SAME(send_to(b, xmem_pool_client(line.reader), NULL), -ENOENT);
	SAME(send_to(b, 7, NULL), -ENOENT);
	WORKED(send_to(b, me, NULL));
	publish_stamp(line.owner, 2);
	b = receive_one(line.in);
	SAME(stamp_of(b), 2);
	SAME(sub_info(line.in).lost, 0);
	/* A forwarded buffer can be sent to one subscriber, too. */
	SAME(send_to(b, me, NULL), -ENOENT);
	WORKED(send_to(b, xmem_pool_client(line.reader), NULL));
	b = receive_one(line.out);
	SAME(stamp_of(b), 2);
	xmem_release(b);
	b = receive_one(s);
	SAME(stamp_of(b), 1);
	xmem_release(b);
	b = receive_one(s);
	SAME(stamp_of(b), 2);
	xmem_release(b);
	REFUSED(xmem_receive(line.in, 0), EAGAIN);
	SAME(sub_info(s).lost + sub_info(line.out).lost, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(other);
	line_end(&line);
}

TEST(P9_send_to_another_is_nothing_to_receive)
{
	struct line line = line_make(4, 0);
	struct xmem_pool *other = open_reader(line.name);
	struct xmem_subscription *s = follow(other, xmem_pool_client(line.owner), 0);
	struct pollfd look = { .fd = xmem_subscription_poll_fd(s), .events = POLLIN };
	struct xmem_buffer *b = xmem_acquire(line.owner, BYTES, 0);

	CHECK(look.fd >= 0);
	fill(b, 1);
	WORKED(send_to(b, xmem_pool_client(line.stage), NULL));
	/* The descriptor may be ready in vain, and after that check it is quiet. */
	CHECK(poll(&look, 1, 0) >= 0);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	EVENTUALLY(poll(&look, 1, 0) == 0);
	publish_stamp(line.owner, 2);
	SAME(poll(&look, 1, patience_ns() / MS), 1);
	b = receive_one(s);
	SAME(stamp_of(b), 2);
	xmem_release(b);
	xmem_release(receive_one(line.in));
	xmem_unsubscribe(s);
	xmem_pool_close(other);
	line_end(&line);
}

static void wait_for_mine(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_reader(part->name);
	struct xmem_subscription *s = follow(pool, part->follows, 0);

	tell_parent(xmem_pool_client(pool));
	SAME(stamp_of(receive_one(s)), 2);
}

TEST(P9_send_wakes_its_addressee_behind_what_is_not_for_it)
{
	struct line line = line_make(4, 0);
	struct part part = { .name = line.name, .follows = xmem_pool_client(line.owner) };
	struct child *child = spawn(wait_for_mine, &part);
	uint32_t to = (uint32_t)hear(child);
	struct xmem_buffer *b = xmem_acquire(line.owner, BYTES, 0);

	fill(b, 1);
	WORKED(send_to(b, xmem_pool_client(line.stage), NULL));
	b = xmem_acquire(line.owner, BYTES, 0);
	fill(b, 2);
	WORKED(send_to(b, to, NULL));
	finish_child(child);
	b = receive_one(line.in);
	SAME(stamp_of(b), 1);
	xmem_release(b);
	line_end(&line);
}

/* ---- retract ---- */

TEST(P1_retract_takes_back_what_nobody_has)
{
	struct line line = line_make(2, 0);
	uint64_t first = publish_stamp(line.owner, 1), second = publish_stamp(line.owner, 2);
	struct xmem_buffer *b;

	WORKED(xmem_retract(line.owner, first));
	SAME(xmem_retract(line.owner, first), -ESTALE);
	REFUSED(xmem_get(line.reader, first), ESTALE);
	b = xmem_acquire(line.owner, BYTES, 0);
	CHECK(b);
	xmem_release(b);
	b = receive_one(line.in);
	SAME(stamp_of(b), 2);
	SAME(sub_info(line.in).lost, 0);
	SAME(xmem_retract(line.owner, second), -EBUSY);
	SAME(stamp_of(b), 2);
	SAME(xmem_retract(line.stage, second), -EPERM);
	SAME(xmem_retract(line.reader, second), -EPERM);
	SAME(xmem_retract(line.owner, 1 << 16), -ESTALE);
	SAME(xmem_retract(NULL, second), -EINVAL);
	WORKED(xmem_publish(b, NULL, NULL));
	SAME(xmem_retract(line.owner, second), -EBUSY);
	WORKED(xmem_retract(line.stage, second));
	REFUSED(xmem_receive(line.out, 0), EAGAIN);
	SAME(sub_info(line.out).lost, 0);
	WORKED(xmem_retract(line.owner, second));
	line_end(&line);
}

TEST(P3_retract_works_again_and_again_and_loses_no_buffer)
{
	struct line line = line_make(3, 0);
	unsigned int i, rounds = scaled(2000);

	for (i = 0; i < rounds; i++) {
		uint64_t token = publish_stamp(line.owner, i);

		if (i % 3 == 0)
			xmem_release(receive_one(line.in));
		WORKED(xmem_retract(line.owner, token));
	}
	SAME(sub_info(line.in).lost, 0);
	for (i = 0; i < 3; i++)
		publish_stamp(line.owner, i);
	line_end(&line);
}

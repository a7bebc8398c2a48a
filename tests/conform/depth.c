// SPDX-License-Identifier: MIT
/* Depth: a subscriber that lags by more than it wants goes on with the latest publications. */
#include "past.h"

TEST(API_depth_is_how_many_of_the_latest_are_received)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 32, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow_some(reader, xmem_pool_client(writer), 0, 3);
	int fd = xmem_subscription_poll_fd(s);

	publish_stamps(writer, 0, 3);
	receive_stamp(s, 0);
	SAME(sub_info(s).lost, 0);
	publish_stamps(writer, 3, 10);
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	receive_stamp(s, 7);
	SAME(sub_info(s).lost, 6);
	publish_stamps(writer, 10, 11);
	receive_stamp(s, 8);
	receive_stamp(s, 9);
	receive_stamp(s, 10);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	SAME(by_poll(fd, POLLIN, 0), 0);
	SAME(sub_info(s).lost, 6);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/*
 * A thread that gets the subscription's lock for itself after a while (lib/base/lock.h) keeps to
 * the depth, too.
 */
TEST(API_depth_is_kept_to_for_long)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	uint64_t first = warm_up(writer, reader, 32), stamp;
	struct xmem_subscription *s = follow_some(reader, xmem_pool_client(writer), 0, 1);

	for (stamp = first; stamp < first + 200; stamp += 2) {
		publish_stamps(writer, stamp, stamp + 2);
		receive_stamp(s, stamp + 1);
		REFUSED(xmem_receive(s, 0), EAGAIN);
	}
	SAME(sub_info(s).lost, 100);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/*
 * History counts as latest, too. Publications that are older than the latest are passed, not lost.
 */
TEST(API_depth_bounds_history)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 32, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;

	publish_stamps(writer, 0, 5);
	s = follow_some(reader, xmem_pool_client(writer), 5, 2);
	receive_stamp(s, 3);
	receive_stamp(s, 4);
	receive_nothing(s);
	xmem_unsubscribe(s);

	s = follow_some(reader, xmem_pool_client(writer), 4, 4);
	receive_stamp(s, 1);
	publish_stamps(writer, 5, 7);
	receive_stamp(s, 3);
	receive_stamp(s, 4);
	SAME(sub_info(s).lost, 0);
	publish_stamps(writer, 7, 12);
	receive_stamp(s, 8);
	SAME(sub_info(s).lost, 3);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* In a joint subscription, the depth counts for each publisher. */
TEST(API_depth_is_of_each_publisher)
{
	const char *name = new_name();
	struct xmem_pool *writer[2], *reader = open_reader(name);
	struct xmem_subscribe_options o = { .size = sizeof(o), .depth = 1 };
	struct xmem_subscription *s;
	unsigned int i, seen = 0;

	for (i = 0; i < 2; i++)
		writer[i] = open_writer(name, 8, BYTES);
	s = xmem_subscribe(reader, &o);
	CHECK(s);
	for (i = 0; i < 2; i++)
		publish_stamps(writer[i], 0, 4);
	for (i = 0; i < 2; i++) {
		struct xmem_buffer *b = xmem_receive(s, 0);

		CHECK(b);
		SAME(stamp_of(b), 3);
		seen |= 1u << ((int)info_of(b).publisher == xmem_pool_client(writer[1]));
		xmem_release(b);
	}
	SAME(seen, 3);
	REFUSED(xmem_receive_any(reader, 0, NULL), EAGAIN);
	SAME(sub_info(s).lost, 6);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	for (i = 0; i < 2; i++)
		xmem_pool_close(writer[i]);
}

TEST(API_depth_is_not_for_those_who_are_waited_for)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_WAITS, .depth = 1,
	};
	struct xmem_pool *pool = open_reader(new_name());
	const char *why;

	REFUSED(xmem_subscribe(pool, &o), EINVAL);
	why = last_message();
	CHECK(strstr(why, "depth"));
	xmem_pool_close(pool);
}

// SPDX-License-Identifier: MIT
/*
 * No lost wake-ups: publishers and subscribers that wait in epoll_wait and nowhere else. The
 * publishers wait for the subscribers, so each of these must get everything. A lost wake-up leaves
 * one of them waiting, and the test ends by its time limit.
 */
#include <sys/epoll.h>

#include "harness.h"

#define BYTES		4096
#define READERS		3
#define WRITERS		2

struct plan {
	const char *name;
	unsigned int count;		/* publications of each writer */
	int writer[WRITERS];
	bool each;			/* wait on the subscriptions' descriptors */
};

static void add(int epoll, int fd, unsigned int events, unsigned int number)
{
	struct epoll_event event = { .events = events, .data.u32 = number };

	CHECK(fd >= 0);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

static unsigned int wait_for_event(int epoll)
{
	struct epoll_event event;

	CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
	return event.data.u32;
}

static void publish_all(void *argument)
{
	struct plan *plan = argument;
	struct xmem_pool *pool = OPEN(plan->name, .flags = XMEM_OPEN_WRITER, .ring = 4,
				      .wait_bound_ns = 3600 * SECOND);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	unsigned int i = 0;

	WORKED(xmem_preallocate(pool, BYTES, 3, NULL));
	add(epoll, xmem_pool_poll_fd(pool), EPOLLOUT, 0);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	while (i < plan->count) {
		struct xmem_buffer *b;

		wait_for_event(epoll);
		b = xmem_acquire(pool, BYTES, 0);
		if (!b) {
			SAME(xmem_get_last_error(NULL), -EAGAIN);
			continue;
		}
		*(uint64_t *)xmem_data_mut(b) = i++;
		WORKED(xmem_publish(b, NULL, NULL));
	}
	tell_parent(i);
	hear_parent();
	xmem_pool_close(pool);
}

/* Receive all that is there, but no more than @most. */
static unsigned int take(struct xmem_subscription *s, unsigned int next, unsigned int most)
{
	struct xmem_buffer *b;
	unsigned int n;

	for (n = 0; n < most && (b = xmem_receive(s, 0)); n++) {
		SAME(info_of(b).sequence, next + n);
		SAME(*(const uint64_t *)xmem_data(b), next + n);
		xmem_release(b);
	}
	if (n < most)
		SAME(xmem_get_last_error(NULL), -EAGAIN);
	return n;
}

static void receive_all(void *argument)
{
	struct plan *plan = argument;
	struct xmem_pool *pool = open_reader(plan->name);
	struct xmem_subscription *s[WRITERS];
	unsigned int next[WRITERS] = { 0 }, sum = 0, w;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (!plan->each)
		add(epoll, xmem_pool_poll_fd(pool), EPOLLIN, 0);
	for (w = 0; w < WRITERS; w++) {
		s[w] = follow(pool, plan->writer[w], XMEM_SUBSCRIBE_WAITS);
		if (plan->each)
			add(epoll, xmem_subscription_poll_fd(s[w]), EPOLLIN, w);
	}
	tell_parent(1);
	while (sum < WRITERS * plan->count) {
		unsigned int woken = wait_for_event(epoll);

		for (w = 0; w < WRITERS; w++) {
			unsigned int n;

			if (plan->each && w != woken)
				continue;
			n = take(s[w], next[w], 1 + sum % 3);
			next[w] += n;
			sum += n;
		}
	}
	for (w = 0; w < WRITERS; w++) {
		SAME(sub_info(s[w]).lost, 0);
		xmem_unsubscribe(s[w]);
	}
	close(epoll);
	xmem_pool_close(pool);
	tell_parent(2);
}

static void nobody_sleeps_for_ever(bool each)
{
	struct plan plan = { .name = new_name(), .count = scaled(4000), .each = each };
	struct child *writer[WRITERS], *reader[READERS];
	unsigned int i;

	for (i = 0; i < WRITERS; i++) {
		writer[i] = spawn(publish_all, &plan);
		plan.writer[i] = (int)hear(writer[i]);
	}
	for (i = 0; i < READERS; i++) {
		reader[i] = spawn(receive_all, &plan);
		SAME(hear(reader[i]), 1);
	}
	for (i = 0; i < WRITERS; i++)
		tell(writer[i], 1);
	for (i = 0; i < WRITERS; i++)
		SAME(hear(writer[i]), plan.count);
	for (i = 0; i < READERS; i++) {
		SAME(hear(reader[i]), 2);
		finish_child(reader[i]);
	}
	for (i = 0; i < WRITERS; i++) {
		tell(writer[i], 1);
		finish_child(writer[i]);
	}
}

TEST_WITHIN(P9_poll_loses_no_wake_up_of_a_pool, 120)
{
	nobody_sleeps_for_ever(false);
}

TEST_WITHIN(P9_poll_loses_no_wake_up_of_a_subscription, 120)
{
	nobody_sleeps_for_ever(true);
}

// SPDX-License-Identifier: MIT
/*
 * The file of the kernel's device itself, polled by clients without the library: which words it
 * arms, and which clients it wakes. The end of poll.c has more.
 */
#include "harness.h"
#include "polling.h"

#define BYTES	4096

static struct raw start_writer(struct xmem_attach_request *ret_attached)
{
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct raw raw;

	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, 1, ret_attached), 0);
	SAME(raw.link.backend->map_group(&raw.link, ret_attached->slot[0] / 64), 0);
	close(file);
	return raw;
}

static struct raw start_reader(const char *name, struct xmem_pool *writer)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = xmem_pool_client(writer),
	};
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(raw_request(&raw, XMEM_IOC_SUBSCRIBE, &request), 0);
	return raw;
}

static bool ring_is_armed(const struct raw *raw, struct xmem_pool *writer)
{
	return xm_load(&xm_client_row(&raw->map, xmem_pool_client(writer))->ring_waiters) &
	       XMEM_WAITERS_ARMED;
}

static u32 *slots_waiters(const struct raw *raw)
{
	return &xm_client_row(&raw->map, raw->link.join.client)->slots_waiters;
}

/* Do what an owner does that has made something free. */
static void wake_slots(struct raw *raw)
{
	struct xmem_wait_request wake = {
		.size = sizeof(wake), .kind = XMEM_WAIT_SLOTS, .client = raw->link.join.client,
	};

	if (xm_load(slots_waiters(raw)) & XMEM_WAITERS_ARMED)
		SAME(raw_wait(raw, XMEM_OP_WAKE, &wake), 0);
}

/* Do what an acquire does that fails: arm the word, look in vain, and note the word. */
static void acquire_raw_in_vain(struct raw *raw)
{
	struct xmem_wait_request arm = {
		.size = sizeof(arm), .kind = XMEM_WAIT_SLOTS, .client = raw->link.join.client,
	};

	SAME(raw_wait(raw, XMEM_OP_ARM, &arm), 0);
	xm_store(&xm_ring(&raw->map, arm.client)->vain, arm.value);
}

/* ---- many that poll ---- */

#define MANY	100			/* more than are woken at once */

/* The publisher is of the same user, and wakes all of them itself. */
TEST(P9_all_of_many_pollers_are_woken)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, ready[MANY];
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
	const char *name = new_name();
	int set, fd[MANY], i, n, round;

	kernel_only("the daemon's descriptors are sockets");
	writer = open_writer(name, 4, BYTES);
	reader = open_reader(name);
	s = follow(reader, xmem_pool_client(writer), 0);
	set = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < MANY; i++) {
		fd[i] = dup(fd_of(reader));
		event.data.u32 = i;
		SAME(epoll_ctl(set, EPOLL_CTL_ADD, fd[i], &event), 0);
	}
	for (round = 1; round < 4; round++) {
		bool seen[MANY] = { false };
		struct xmem_buffer *got;

		publish_stamp(writer, round);
		for (n = 0; n < MANY;) {
			int count = epoll_wait(set, ready, MANY, WAIT_MS);

			CHECK(count > 0);
			for (i = 0; i < count; i++) {
				n += !seen[ready[i].data.u32];
				seen[ready[i].data.u32] = true;
			}
		}
		got = receive_one(s);
		SAME(stamp_of(got), round);
		xmem_release(got);
		/* Edge-triggered: an event is not reported again. */
		while (epoll_wait(set, ready, MANY, 0) > 0)
			;
	}
	for (i = 0; i < MANY; i++)
		close(fd[i]);
	close(set);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* So many that waking them all takes longer than a publication of another user. */
#define CROWD	500			/* descriptors */
#define SETS	16			/* that each of them is in */
#define SOMEBODY	2006

static void publish_when_told(void *fd)
{
	struct xmem_pool *pool;
	uint64_t stamp;

	be_user(SOMEBODY);
	pool = open_by_fd(*(const int *)fd, XMEM_OPEN_WRITER);
	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, 4, NULL));
	tell_parent(xmem_pool_client(pool));
	while ((stamp = hear_parent()))
		publish_stamp(pool, stamp);
	xmem_pool_close(pool);
}

/*
 * Those that have been woken check, sleep again, and are woken again before the others are woken.
 */
TEST_WITHIN(P9_a_wake_while_many_are_being_woken_is_not_lost, 60)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	unsigned int rounds = scaled(500), round;
	struct xmem_subscription *s;
	struct xmem_pool *reader;
	struct xmem_buffer *got;
	struct child *child;
	int set[SETS], fd[CROWD], mine, pool, i, n;

	several_users_or_skip();
	reader = open_reader(new_name());
	pool = xmem_pool_fd(reader);
	child = spawn(publish_when_told, &pool);
	s = follow(reader, hear(child), 0);
	close(pool);
	for (i = 0; i < CROWD; i++) {
		fd[i] = dup(fd_of(reader));
		CHECK(fd[i] >= 0);
	}
	for (n = 0; n < SETS; n++) {
		set[n] = epoll_create1(EPOLL_CLOEXEC);
		for (i = 0; i < CROWD; i++)
			SAME(epoll_ctl(set[n], EPOLL_CTL_ADD, fd[i], &event), 0);
	}
	mine = new_epoll(fd_of(reader), EPOLLIN);	/* woken first, as it came last */
	for (round = 1; round <= rounds; round++) {
		tell(child, round);
		/* Not by poll(), which checks once more when its time is over. */
		SAME(by_epoll(mine, WAIT_MS), EPOLLIN);
		got = receive_one(s);
		SAME(stamp_of(got), round);
		xmem_release(got);
	}
	tell(child, 0);
	finish_child(child);
	for (i = 0; i < CROWD; i++)
		close(fd[i]);
	for (n = 0; n < SETS; n++)
		close(set[n]);
	close(mine);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

/* While there is always something, publications cost no request for those that poll. */
TEST(P9_poll_that_finds_something_to_receive_arms_nothing)
{
	const char *name = new_name();
	struct xmem_pool *writer;
	struct raw raw;

	kernel_only("the daemon's clients arm the words themselves");
	writer = open_writer(name, 4, BYTES);
	raw = start_reader(name, writer);
	SAME(by_poll(raw.link.file, POLLIN, 0), 0);
	CHECK(ring_is_armed(&raw, writer));
	publish_stamp(writer, 1);
	CHECK(!ring_is_armed(&raw, writer));
	SAME(by_poll(raw.link.file, POLLIN, 0), POLLIN);
	CHECK(!ring_is_armed(&raw, writer));
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* Only an acquire arms the word, so a writer that finds buffers makes releases no dearer. */
TEST(P9_poll_for_writing_arms_nothing)
{
	struct xmem_attach_request attached;
	struct raw raw;

	kernel_only("the daemon's clients arm the words themselves");
	raw = start_writer(&attached);
	SAME(by_poll(raw.link.file, POLLOUT, 0), POLLOUT);
	SAME(xm_load(slots_waiters(&raw)) & XMEM_WAITERS_ARMED, 0);
	acquire_raw_in_vain(&raw);
	SAME(by_poll(raw.link.file, POLLOUT, 0), 0);
	wake_slots(&raw);
	SAME(by_poll(raw.link.file, POLLOUT, 0), POLLOUT);
	SAME(xm_load(slots_waiters(&raw)) & XMEM_WAITERS_ARMED, 0);
	raw_close(&raw);
}

/* Only the words for the polled events are armed. */
TEST(P9_poll_arms_what_it_is_asked_about)
{
	const char *name = new_name();
	struct xmem_pool *writer;
	struct raw raw;

	kernel_only("the daemon's clients arm the words themselves");
	writer = open_writer(name, 4, BYTES);
	raw = start_reader(name, writer);
	SAME(by_poll(raw.link.file, POLLOUT, 0), 0);
	CHECK(!ring_is_armed(&raw, writer));
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* Edge-triggered, the next publication is reported although this one is still there. */
TEST(P9_poll_by_edges_hears_of_each_publication)
{
	const char *name = new_name();
	struct xmem_pool *writer;
	struct raw raw;
	int epoll, i;

	kernel_only("the daemon's clients poll the descriptor of poll_fd");
	writer = open_writer(name, 8, BYTES);
	raw = start_reader(name, writer);
	epoll = new_epoll(raw.link.file, EPOLLIN | EPOLLET);
	SAME(by_epoll(epoll, 0), 0);
	for (i = 0; i < 4; i++) {
		publish_stamp(writer, i);
		SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
		SAME(by_epoll(epoll, 0), 0);
	}
	close(epoll);
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* F9: a client gets its first slots while it waits for some. */
TEST(P9_attach_wakes_those_who_wait_for_a_slot)
{
	int file, epoll;
	struct raw raw;

	kernel_only("the daemon's clients poll the descriptor of poll_fd");
	file = new_memfd(BYTES, GOOD_SEALS);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	epoll = new_epoll(raw.link.file, EPOLLOUT);
	acquire_raw_in_vain(&raw);
	SAME(by_epoll(epoll, 0), 0);
	SAME(raw_attach(&raw, file, 1, NULL), 0);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLOUT);
	close(epoll);
	close(file);
	raw_close(&raw);
}

/* Each change after an acquire in vain is reported once, also to a program that waits for edges. */
TEST(P9_poll_for_writing_counts_changes)
{
	struct xmem_attach_request attached;
	int by_level, by_edge, i, n;
	struct raw raw;

	kernel_only("the daemon's clients poll the descriptor of poll_fd");
	raw = start_writer(&attached);
	by_level = new_epoll(raw.link.file, EPOLLOUT);
	by_edge = new_epoll(raw.link.file, EPOLLOUT | EPOLLET);
	SAME(by_epoll(by_edge, 0), EPOLLOUT);
	for (i = 0; i < 3; i++) {
		acquire_raw_in_vain(&raw);
		for (n = 0; n < 3; n++) {
			SAME(by_poll(raw.link.file, POLLOUT, 0), 0);
			SAME(by_epoll(by_level, 0), 0);
			SAME(by_epoll(by_edge, 0), 0);
		}
		wake_slots(&raw);
		SAME(by_epoll(by_edge, WAIT_MS), EPOLLOUT);
		SAME(by_epoll(by_edge, 0), 0);
		for (n = 0; n < 3; n++)
			SAME(by_epoll(by_level, n ? 0 : WAIT_MS), EPOLLOUT);
	}
	close(by_edge);
	close(by_level);
	raw_close(&raw);
}

/* The time in the ring wakes a program that waits for edges, which does not look by itself. */
TEST(P9_poll_for_writing_knows_the_time)
{
	struct xmem_attach_request attached;
	struct xmem_ring *ring;
	struct raw raw;
	int by_edge;

	kernel_only("the daemon's clients poll the descriptor of poll_fd");
	raw = start_writer(&attached);
	by_edge = new_epoll(raw.link.file, EPOLLOUT | EPOLLET);
	SAME(by_epoll(by_edge, 0), EPOLLOUT);
	ring = xm_ring(&raw.map, raw.link.join.client);
	xm_store(&ring->look_at_ns, now_ns() + 50 * MS);
	acquire_raw_in_vain(&raw);
	SAME(by_epoll(by_edge, WAIT_MS), EPOLLOUT);
	CHECK((u64)now_ns() >= ring->look_at_ns);
	close(by_edge);
	raw_close(&raw);
}

// SPDX-License-Identifier: MIT
/*
 * Descriptors to poll: level-triggered for poll, select and epoll, and no wake-up is lost on the
 * way. poll_stress.c has many at once, in processes that only wait.
 */
#include <signal.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "harness.h"
#include "polling.h"

#define BYTES	4096

/* ---- the three ways to poll ---- */

static short by_select(int fd, short events)
{
	struct timeval at_once = { 0 };
	fd_set in, out;
	short found = 0;

	FD_ZERO(&in);
	FD_ZERO(&out);
	if (events & POLLIN)
		FD_SET(fd, &in);
	if (events & POLLOUT)
		FD_SET(fd, &out);
	CHECK(select(fd + 1, &in, &out, NULL, &at_once) >= 0);
	if (FD_ISSET(fd, &in))
		found |= POLLIN;
	if (FD_ISSET(fd, &out))
		found |= POLLOUT;
	return found;
}

/*
 * All three ways agree about @events. It may take time until they see the result, and an epoll set
 * hears of it by itself.
 */
static void says(int fd, int epoll, short events, bool yes)
{
	short want = yes ? events : 0;

	SAME(by_poll(fd, events, yes ? WAIT_MS : 0), want);
	SAME(by_select(fd, events), want);
	SAME(by_epoll(epoll, yes ? WAIT_MS : 0), want);
	SAME(by_epoll(epoll, 0), want);		/* level-triggered */
}

/* A socket may report EPOLLERR too. */
static void hangs_up(uint64_t events)
{
	SAME(events & (EPOLLIN | EPOLLHUP), EPOLLIN | EPOLLHUP);
}

static int fd_of_subscription(struct xmem_subscription *s)
{
	int fd = xmem_subscription_poll_fd(s);

	WORKED(fd);
	SAME(xmem_subscription_poll_fd(s), fd);
	return fd;
}

/* ---- readable ---- */

TEST(API_poll_says_whether_there_is_something_to_receive)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	int fd = fd_of(reader), epoll = new_epoll(fd, EPOLLIN), round;

	for (round = 0; round < 20; round++) {
		says(fd, epoll, POLLIN, false);
		publish_stamp(writer, 1);
		says(fd, epoll, POLLIN, true);
		publish_stamp(writer, 2);
		xmem_release(receive_one(s));
		says(fd, epoll, POLLIN, true);
		xmem_release(receive_one(s));
		says(fd, epoll, POLLIN, false);
		REFUSED(xmem_receive(s, 0), EAGAIN);
		says(fd, epoll, POLLIN, false);
	}
	xmem_unsubscribe(s);
	close(epoll);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* A reader is never writable, nor is the descriptor of a subscription. */
TEST(API_poll_of_two_subscriptions)
{
	const char *name = new_name();
	struct xmem_pool *first = open_writer(name, 4, BYTES);
	struct xmem_pool *second = open_writer(name, 4, BYTES), *reader = open_reader(name);
	struct xmem_subscription *a = follow(reader, xmem_pool_client(first), 0);
	struct xmem_subscription *b = follow(reader, xmem_pool_client(second), 0);
	int both = fd_of(reader), of_a = fd_of_subscription(a), of_b = fd_of_subscription(b);

	publish_stamp(first, 1);
	SAME(by_poll(both, POLLIN | POLLOUT, WAIT_MS), POLLIN);
	SAME(by_poll(of_a, POLLIN | POLLOUT, WAIT_MS), POLLIN);
	SAME(by_poll(of_b, POLLIN | POLLOUT, 0), 0);
	publish_stamp(second, 2);
	SAME(by_poll(of_b, POLLIN | POLLOUT, WAIT_MS), POLLIN);
	xmem_release(receive_one(a));
	SAME(by_poll(of_a, POLLIN | POLLOUT, 0), 0);
	SAME(by_poll(both, POLLIN | POLLOUT, 0), POLLIN);
	xmem_release(receive_one(b));
	SAME(by_poll(of_b, POLLIN | POLLOUT, 0), 0);
	SAME(by_poll(both, POLLIN | POLLOUT, 0), 0);
	xmem_unsubscribe(a);
	publish_stamp(second, 3);
	SAME(by_poll(both, POLLIN, WAIT_MS), POLLIN);
	xmem_unsubscribe(b);
	SAME(by_poll(both, POLLIN, 0), 0);
	xmem_pool_close(reader);
	xmem_pool_close(second);
	xmem_pool_close(first);
}

/* K1: epoll asks for the queue only once, and the ring has not been armed yet. */
TEST(P9_a_poll_that_began_before_the_subscription)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	int fd = fd_of(reader), epoll = new_epoll(fd, EPOLLIN), i;
	struct xmem_subscription *s;

	for (i = 0; i < 10; i++) {
		SAME(by_epoll(epoll, 0), 0);
		s = follow(reader, xmem_pool_client(writer), 0);
		SAME(by_epoll(epoll, 0), 0);
		publish_stamp(writer, i);
		SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
		xmem_release(receive_one(s));
		xmem_unsubscribe(s);
	}
	close(epoll);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* The end of a client disarms all words of the pool, whichever client has armed them. */
static void somebody_ends(const char *name)
{
	xmem_pool_close(open_reader(name));
}

TEST(P9_a_poll_for_reading_that_goes_on_when_somebody_ends)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	int epoll = new_epoll(fd_of(reader), EPOLLIN);

	SAME(by_epoll(epoll, 0), 0);
	somebody_ends(name);
	SAME(by_epoll(epoll, 0), 0);
	publish_stamp(writer, 2);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	xmem_unsubscribe(s);
	close(epoll);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P9_a_poll_for_writing_that_goes_on_when_somebody_ends)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	int epoll = new_epoll(fd_of(writer), EPOLLOUT);
	struct xmem_buffer *kept;

	publish_kept(writer, 1, &kept);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(by_epoll(epoll, 0), 0);
	somebody_ends(name);
	/* The client that has ended may have held what the writer wants. */
	SAME(by_epoll(epoll, WAIT_MS), EPOLLOUT);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(by_epoll(epoll, 0), 0);
	xmem_release(kept);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLOUT);
	close(epoll);
	xmem_pool_close(writer);
}

static void wait_by_epoll(void *argument)
{
	int fd = receive_file(parent_link()), epoll = new_epoll(fd, EPOLLIN);

	tell_parent(by_epoll(epoll, 0));
	tell_parent(by_epoll(epoll, -1));
	hear_parent();
	tell_parent(by_epoll(epoll, -1));
}

/* In another process the descriptor is ready as it is here. */
TEST(API_poll_in_another_process)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 4, BYTES), *reader = open_reader(name);
	struct child *child = spawn(wait_by_epoll, NULL);
	struct xmem_subscription *s;

	send_file(child->link, fd_of(reader));
	SAME(hear(child), 0);
	s = follow(reader, xmem_pool_client(writer), 0);
	publish_stamp(writer, 1);
	SAME(hear(child), EPOLLIN);
	xmem_release(receive_one(s));
	tell(child, 1);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	hangs_up(hear(child));
	finish_child(child);
	xmem_pool_close(writer);
}

/* ---- ends ---- */

/* An ended subscription stays readable, however often that has been seen, until it is dropped. */
static void ends_once(bool joint)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = joint ? xmem_subscribe(reader, NULL) :
					      follow(reader, xmem_pool_client(writer), 0);
	int fd = fd_of(reader), of_one = fd_of_subscription(s), round;
	int epoll = new_epoll(fd, EPOLLIN), epoll_of_one = new_epoll(of_one, EPOLLIN);

	says(fd, epoll, POLLIN, false);
	says(of_one, epoll_of_one, POLLIN, false);
	xmem_pool_close(writer);
	for (round = 0; round < 3; round++) {
		says(fd, epoll, POLLIN, true);
		says(of_one, epoll_of_one, POLLIN, true);
		REFUSED(xmem_receive(s, 0), EPIPE);
		REFUSED(xmem_receive_any(reader, 0, NULL), EPIPE);
	}
	xmem_unsubscribe(s);
	says(fd, epoll, POLLIN, false);
	close(epoll);
	close(epoll_of_one);
	xmem_pool_close(reader);
}

TEST(API_poll_says_for_ever_that_a_publisher_has_ended)
{
	ends_once(false);
}

TEST(API_poll_says_for_ever_that_all_writers_have_ended)
{
	ends_once(true);
}

static void publish_and_end(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 4, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 7);
	tell_parent(1);
	hear_parent();
	xmem_pool_close(pool);
}

static void poll_hears_of_the_end(bool killed)
{
	const char *name = new_name();
	struct child *owner = spawn(publish_and_end, (void *)name);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, (int)hear(owner), 0);
	int fd = fd_of(reader), epoll = new_epoll(fd, EPOLLIN), own = fd_of_subscription(s);

	tell(owner, 1);
	hear(owner);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	xmem_release(receive_one(s));
	SAME(by_epoll(epoll, 0), 0);
	if (killed) {
		kill_child(owner);
	} else {
		tell(owner, 1);
		finish_child(owner);
	}
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	SAME(by_poll(own, POLLIN, WAIT_MS), POLLIN);
	REFUSED(xmem_receive(s, 0), EPIPE);
	/* Both stay readable until the subscription is dropped. */
	says(fd, epoll, POLLIN, true);
	SAME(by_poll(own, POLLIN, 0), POLLIN);
	REFUSED(xmem_receive(s, 0), EPIPE);
	xmem_unsubscribe(s);
	says(fd, epoll, POLLIN, false);
	close(epoll);
	xmem_pool_close(reader);
}

TEST(P9_poll_hears_of_a_publishers_death)
{
	poll_hears_of_the_end(true);
}

TEST(P9_poll_hears_of_a_publishers_leaving)
{
	poll_hears_of_the_end(false);
}

TEST(API_poll_of_a_client_that_has_ended)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 4, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	int of_pool = dup(fd_of(reader)), of_s = dup(fd_of_subscription(s));
	int epoll = new_epoll(of_pool, EPOLLIN);

	SAME(by_epoll(epoll, 0), 0);
	SAME(by_poll(of_s, POLLIN, 0), 0);
	xmem_unsubscribe(s);
	CHECK(by_poll(of_s, POLLIN, WAIT_MS) & POLLIN);
	xmem_pool_close(reader);
	hangs_up(by_epoll(epoll, WAIT_MS));
	hangs_up(by_poll(of_s, POLLIN, WAIT_MS));
	close(epoll);
	close(of_s);
	close(of_pool);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P10_poll_hears_of_the_hosts_end)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct xmem_pool *pool;
	struct raw raw;
	int epoll;

	daemon_only("the kernel does not end");
	use_own_daemon();
	pool = open_writer(new_name(), 1, BYTES);
	epoll = new_epoll(fd_of(pool), EPOLLIN);
	SAME(by_epoll(epoll, 0), 0);
	raw_open(&raw);
	CHECK(!getsockopt(raw.link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	CHECK(peer.pid > 1 && !kill(peer.pid, SIGKILL));
	hangs_up(by_epoll(epoll, WAIT_MS));
	hangs_up(by_poll(fd_of(pool), POLLIN, 0));
	raw_close(&raw);
	close(epoll);
	xmem_pool_close(pool);
}

/* ---- writable ---- */

#define MANY	300

/*
 * K10: after an acquire in vain it is not writable until something changes, also with more slots
 * than a look would visit one by one.
 */
TEST(API_poll_says_that_a_buffer_has_come_free)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 320,
					.demand_bytes = XMEM_NO_DEMAND);
	int fd = fd_of(writer), epoll = new_epoll(fd, EPOLLOUT), i;
	struct xmem_buffer *kept[MANY], *b;

	WORKED(xmem_preallocate(writer, BYTES, MANY, NULL));
	says(fd, epoll, POLLOUT, true);
	for (i = 0; i < MANY; i++)
		publish_kept(writer, i, &kept[i]);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	says(fd, epoll, POLLOUT, false);
	for (i = 0; i < MANY; i += 37) {
		xmem_release(kept[i]);
		says(fd, epoll, POLLOUT, true);
		b = xmem_acquire(writer, BYTES, 0);
		CHECK(b);
		REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
		says(fd, epoll, POLLOUT, false);
		xmem_release(b);
		says(fd, epoll, POLLOUT, true);
		publish_kept(writer, i, &kept[i]);
		REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
		says(fd, epoll, POLLOUT, false);
	}
	for (i = 0; i < MANY; i++)
		xmem_release(kept[i]);
	close(epoll);
	xmem_pool_close(writer);
}

/* A call that can never succeed changes nothing. */
TEST(API_poll_is_not_about_a_buffer_that_cannot_be_had)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	int fd = fd_of(writer), epoll = new_epoll(fd, EPOLLOUT);
	struct xmem_buffer *b;

	says(fd, epoll, POLLOUT, true);
	REFUSED(xmem_acquire(writer, 16 * BYTES, 0), ENOSPC);
	says(fd, epoll, POLLOUT, true);
	b = xmem_acquire(writer, 1, 0);
	CHECK(b);
	xmem_release(b);
	close(epoll);
	xmem_pool_close(writer);
}

/* A buffer of another size that comes free makes it ready in vain, once. */
TEST(API_poll_is_ready_in_vain_once_for_a_change)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	int fd = fd_of(writer), epoll = new_epoll(fd, EPOLLOUT);
	struct xmem_buffer *kept, *b;

	WORKED(xmem_preallocate(writer, 4 * BYTES, 1, NULL));
	b = xmem_acquire(writer, 4 * BYTES, 0);
	CHECK(b);
	WORKED(xmem_publish(b, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
	}, NULL));
	kept = b;
	says(fd, epoll, POLLOUT, true);
	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b);
	REFUSED(xmem_acquire(writer, 4 * BYTES, 0), EAGAIN);
	says(fd, epoll, POLLOUT, false);
	xmem_release(b);
	says(fd, epoll, POLLOUT, true);
	REFUSED(xmem_acquire(writer, 4 * BYTES, 0), EAGAIN);
	says(fd, epoll, POLLOUT, false);
	xmem_release(kept);
	says(fd, epoll, POLLOUT, true);
	b = xmem_acquire(writer, 4 * BYTES, 0);
	CHECK(b);
	xmem_release(b);
	close(epoll);
	xmem_pool_close(writer);
}

struct holder {
	const char *name;
	int publisher;
};

static void hold_one(void *argument)
{
	struct holder *holder = argument;
	struct xmem_pool *pool = open_reader(holder->name);
	struct xmem_subscription *s = follow(pool, holder->publisher, 0);
	struct xmem_buffer *b;

	tell_parent(1);
	b = receive_one(s);
	tell_parent(2);
	hear_parent();
	xmem_release(b);
	tell_parent(3);
	hear_parent();
}

static void writable_when_the_holder_goes(bool killed)
{
	struct holder holder = { .name = new_name() };
	struct xmem_pool *writer = open_writer(holder.name, 1, BYTES);
	int fd = fd_of(writer), epoll = new_epoll(fd, EPOLLOUT);
	struct child *child;

	holder.publisher = xmem_pool_client(writer);
	child = spawn(hold_one, &holder);
	SAME(hear(child), 1);
	publish_stamp(writer, 1);
	SAME(hear(child), 2);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	says(fd, epoll, POLLOUT, false);
	if (killed)
		kill_child(child);
	else
		tell(child, 1);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLOUT);
	publish_stamp(writer, 2);
	close(epoll);
	xmem_pool_close(writer);
}

TEST(P9_poll_hears_of_a_release)
{
	writable_when_the_holder_goes(false);
}

TEST(P9_poll_hears_of_a_holders_death)
{
	writable_when_the_holder_goes(true);
}

/* ---- rings that are followed as one ---- */

static int joint_fd(struct raw *raw)
{
	struct xmem_poll_fd_request request = { .size = sizeof(request), .kind = XMEM_POLL_JOINT };

	SAME(raw_request(raw, XMEM_IOC_POLL_FD, &request), 0);
	return request.fd;
}

static void follow_jointly(struct raw *raw, struct xmem_pool *writer)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = xmem_pool_client(writer),
		.flags = XMEM_SUBSCRIBE_JOINT,
	};

	SAME(raw_request(raw, XMEM_IOC_SUBSCRIBE, &request), 0);
}

/* On the daemon's host only the client takes the byte that made it readable. */
static void take_byte(int fd)
{
	char byte;

	if (!on_kernel())
		SAME(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
}

TEST(API_poll_says_that_there_is_a_writer_to_follow)
{
	const char *name = new_name();
	struct xmem_pool *writer[2] = { open_writer(name, 2, BYTES) };
	struct raw raw;
	int fd, epoll;

	raw_start(&raw, name, XMEM_ROLE_READER);
	fd = joint_fd(&raw);
	epoll = new_epoll(fd, EPOLLIN);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	follow_jointly(&raw, writer[0]);
	take_byte(fd);
	SAME(by_epoll(epoll, 0), 0);
	writer[1] = open_writer(name, 2, BYTES);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	follow_jointly(&raw, writer[1]);
	take_byte(fd);
	SAME(by_epoll(epoll, 0), 0);
	publish_stamp(writer[0], 1);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	close(epoll);
	close(fd);
	raw_close(&raw);
	xmem_pool_close(writer[1]);
	xmem_pool_close(writer[0]);
}

static void wait_for_a_writer(void *argument)
{
	int fd = receive_file(parent_link()), epoll = new_epoll(fd, EPOLLIN);

	tell_parent(by_epoll(epoll, 0));
	tell_parent(by_epoll(epoll, WAIT_MS));
}

/* This also holds before the client follows any ring in a joint subscription. */
TEST(API_poll_says_that_the_first_writer_has_come)
{
	const char *name = new_name();
	struct xmem_pool *writer;
	struct xmem_wait_request arm = { .size = sizeof(arm), .kind = XMEM_WAIT_CLIENTS };
	struct child *child;
	struct raw raw;
	int fd;

	raw_start(&raw, name, XMEM_ROLE_READER);
	fd = joint_fd(&raw);
	child = spawn(wait_for_a_writer, NULL);
	send_file(child->link, fd);
	SAME(hear(child), 0);
	SAME(raw_wait(&raw, XMEM_OP_ARM, &arm), 0);	/* as the daemon's clients have to */
	writer = open_writer(name, 2, BYTES);
	SAME(hear(child), EPOLLIN);
	finish_child(child);
	close(fd);
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* ---- the file of a client of the kernel itself ---- */

static void follow_raw(struct raw *raw, struct xmem_pool *writer)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = xmem_pool_client(writer),
	};

	SAME(raw_request(raw, XMEM_IOC_SUBSCRIBE, &request), 0);
}

/*
 * K2 and K1: before the client has mapped anything the file is not ready. Afterwards it shows
 * everything.
 */
TEST(P9_poll_of_the_device_before_it_maps)
{
	const char *name = new_name();
	struct xmem_pool *writer;
	struct raw raw;
	int epoll;

	kernel_only("the daemon's clients poll the descriptor of poll_fd");
	writer = open_writer(name, 4, BYTES);
	raw_open(&raw);
	SAME(raw_join(&raw, name, XMEM_ROLE_READER, 0), 0);
	epoll = new_epoll(raw.link.file, EPOLLIN);
	SAME(by_poll(raw.link.file, POLLIN | POLLOUT, 0), 0);
	SAME(by_epoll(epoll, 0), 0);
	SAME(raw.link.backend->map(&raw.link, &raw.map), 0);
	SAME(by_epoll(epoll, 0), 0);
	follow_raw(&raw, writer);
	publish_stamp(writer, 1);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	close(epoll);
	raw_close(&raw);
	xmem_pool_close(writer);
}

TEST(P9_poll_of_the_device_before_it_subscribes)
{
	const char *name = new_name();
	struct xmem_pool *writer;
	struct raw raw;
	int epoll;

	kernel_only("the daemon's clients poll the descriptor of poll_fd");
	writer = open_writer(name, 4, BYTES);
	raw_start(&raw, name, XMEM_ROLE_READER);
	epoll = new_epoll(raw.link.file, EPOLLIN);
	SAME(by_epoll(epoll, 0), 0);
	follow_raw(&raw, writer);
	publish_stamp(writer, 1);
	SAME(by_epoll(epoll, WAIT_MS), EPOLLIN);
	close(epoll);
	raw_close(&raw);
	xmem_pool_close(writer);
}

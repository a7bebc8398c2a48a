// SPDX-License-Identifier: MIT
/*
 * Labels as topics: a joint subscription follows the writers whose label fits, also those that join
 * later, and each buffer has the label of its publisher.
 */
#include "polling.h"

#define BYTES	4096

static struct xmem_pool *open_labelled(const char *name, const char *label)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .label = label);

	WORKED(xmem_preallocate(pool, BYTES, 4, NULL));
	return pool;
}

static struct xmem_subscription *subscribe_to(struct xmem_pool *pool, const char *label,
					      uint32_t flags)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = flags, .label = label,
	};

	return xmem_subscribe(pool, &o);
}

static void has_label(struct xmem_buffer *buffer, const char *label)
{
	struct xmem_buffer_info said = info_of(buffer);

	if (memcmp(said.label, label, strlen(label) + 1))
		FAIL("the label is '%.16s', not '%s'", said.label, label);
}

static void receive_from(struct xmem_subscription *s, const char *label, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_receive(s, 0);

	CHECK(b);
	SAME(stamp_of(b), stamp);
	has_label(b, label);
	xmem_release(b);
}

TEST(API_a_label_chooses_publishers)
{
	static const struct { const char *wanted; unsigned int fit; } cases[] = {
		{ "cam-1", 1 }, { "cam-12", 2 }, { "cam-*", 3 }, { "cam-1*", 3 }, { "cam-12*", 2 },
		{ "lidar", 4 }, { "*", 7 }, { "fifteen-letters", 8 }, { "fifteen-letter*", 8 },
	};
	static const char *const labels[] = { "cam-1", "cam-12", "lidar" };
	struct xmem_pool *writer[4], *reader;
	const char *name = new_name();
	unsigned int i, w, got;

	for (w = 0; w < 3; w++)
		writer[w] = open_labelled(name, labels[w]);
	writer[3] = open_labelled(name, "fifteen-letters");
	reader = open_reader(name);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct xmem_subscription *s = subscribe_to(reader, cases[i].wanted,
							   XMEM_SUBSCRIBE_NOWAIT);
		struct xmem_buffer *b;

		CHECK(s);
		for (w = 0; w < 4; w++)
			publish_stamp(writer[w], w);
		for (got = 0; (b = xmem_receive(s, 0)); xmem_release(b)) {
			got |= 1u << stamp_of(b);
			has_label(b, stamp_of(b) == 3 ? "fifteen-letters" : labels[stamp_of(b)]);
		}
		SAME(got, cases[i].wanted[0] == '*' ? 15 : cases[i].fit);
		xmem_unsubscribe(s);
	}
	REFUSED(subscribe_to(reader, "cam", XMEM_SUBSCRIBE_NOWAIT), ENOENT);
	REFUSED(subscribe_to(reader, "cam-123*", XMEM_SUBSCRIBE_NOWAIT), ENOENT);
	REFUSED(subscribe_to(reader, "c*m-1", XMEM_SUBSCRIBE_NOWAIT), ENOENT);
	xmem_pool_close(reader);
	for (w = 0; w < 4; w++)
		xmem_pool_close(writer[w]);
}

TEST(API_writers_that_join_are_followed_if_their_label_fits)
{
	const char *name = new_name();
	struct xmem_pool *first = open_labelled(name, "cam-0"), *reader = open_reader(name);
	struct xmem_subscription *s = subscribe_to(reader, "cam-*", 0);
	int pool_fd = fd_of(reader), fd = xmem_subscription_poll_fd(s);
	struct xmem_pool *cam, *other;

	CHECK(s);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	other = open_labelled(name, "log");
	publish_stamp(other, 1);
	/* The subscription does not follow that writer, so it stays quiet. */
	EVENTUALLY(!by_poll(fd, POLLIN, 0));
	SAME(by_poll(pool_fd, POLLIN, 0), 0);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	SAME(by_poll(fd, POLLIN, 0), 0);

	cam = open_labelled(name, "cam-1");
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	SAME(by_poll(pool_fd, POLLIN, WAIT_MS), POLLIN);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	publish_stamp(cam, 2);
	receive_from(s, "cam-1", 2);

	/* The subscription ends when no writer is left whose label fits. */
	xmem_pool_close(first);
	xmem_pool_close(cam);
	REFUSED(xmem_receive(s, patience_ns()), EPIPE);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(other);
}

static void come_with_two_labels(void *argument)
{
	struct xmem_pool *other = open_labelled(argument, "other"), *topic;

	hear_parent();
	topic = open_labelled(argument, "topic");
	hear_parent();
	xmem_pool_close(topic);
	xmem_pool_close(other);
}

TEST(P9_a_subscriber_waits_for_a_label)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(come_with_two_labels, (void *)name);
	struct xmem_subscription *s;

	EVENTUALLY(stat_of(reader).clients == 2);
	REFUSED(subscribe_to(reader, "topic", XMEM_SUBSCRIBE_NOWAIT), ENOENT);
	tell(child, 1);
	s = subscribe_to(reader, "topic", 0);
	CHECK(s);
	xmem_unsubscribe(s);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(reader);
}

/* ---- the label of a buffer ---- */

TEST(API_a_buffer_says_the_label_of_its_publisher)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_labelled(name, "writer"), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b, *kept, *got, *clone;
	uint64_t token;

	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b);
	has_label(b, "writer");
	xmem_release(b);
	token = publish_kept(writer, 1, &kept);
	has_label(kept, "writer");
	got = xmem_get(reader, token);
	CHECK(got);
	has_label(got, "writer");
	b = receive_one(s);
	clone = xmem_clone(b);
	has_label(b, "writer");
	SAME(info_of(b).publisher, xmem_pool_client(writer));
	SAME(sub_info(s).publisher, xmem_pool_client(writer));

	/*
	 * A buffer from a get has the label as long as the ring is there, and a received one for
	 * longer.
	 */
	xmem_release(kept);
	xmem_pool_close(writer);
	REFUSED(xmem_receive(s, patience_ns()), EPIPE);
	xmem_unsubscribe(s);
	EVENTUALLY(stat_of(reader).zombies == 0);
	EVENTUALLY(info_of(got).publisher == XMEM_NOBODY);
	writer = open_labelled(name, "next");
	has_label(b, "writer");
	has_label(clone, "writer");
	SAME(info_of(got).publisher, XMEM_NOBODY);
	has_label(got, "");
	/*
	 * Once the next client with this id is followed, the label is unknown; it is never that of
	 * the new client.
	 */
	SAME(xmem_pool_client(writer), info_of(b).publisher);
	s = follow(reader, xmem_pool_client(writer), 0);
	has_label(b, "");
	xmem_unsubscribe(s);
	xmem_release(b);
	xmem_release(got);
	xmem_release(clone);
	xmem_pool_close(writer);
	xmem_pool_close(reader);
}

/* ---- refusals ---- */

static void refused_label(struct xmem_pool *pool, const char *label, uint32_t flags)
{
	const char *why;

	REFUSED(subscribe_to(pool, label, flags), EINVAL);
	why = last_message();
	CHECK(strstr(why, "label"));
}

TEST(API_labels_are_checked)
{
	struct xmem_pool *pool = open_reader(new_name());
	const char *why;

	refused_label(pool, "", 0);
	refused_label(pool, "sixteen-letters!", 0);
	refused_label(pool, "a\nb", 0);
	refused_label(pool, "a", XMEM_SUBSCRIBE_PUBLISHER);
	refused_label(pool, "fifteen-letters*", 0);
	why = last_message();
	CHECK(strstr(why, "more than 15 characters, the star included"));
	xmem_pool_close(pool);
}

/* ---- garbage in a client's request for labels ---- */

static void want(struct raw *raw, const char *label)
{
	uint64_t words[2];

	memcpy(words, label, sizeof(words));
	xm_store(&xm_ring(&raw->map, raw->link.join.client)->wanted_label[0], words[0]);
	xm_store(&xm_ring(&raw->map, raw->link.join.client)->wanted_label[1], words[1]);
}

static int raw_poll_fd(struct raw *raw, uint32_t kind, int publisher, uint64_t incarnation)
{
	struct xmem_poll_fd_request request = {
		.size = sizeof(request), .kind = kind, .publisher = publisher,
		.incarnation = incarnation,
	};

	SAME(raw_request(raw, XMEM_IOC_POLL_FD, &request), 0);
	return request.fd;
}

TEST(P4_what_a_client_wants_is_its_own_matter)
{
	static const struct { const char label[17]; bool fits; } cases[] = {
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", false },
		{ "fifteen-letters*", true },		/* no NUL at its end */
		{ "fifteen-letter**", false }, { "fifteen-letterss", false },
		{ "\0garbage", true }, { "fifteen-letters\0", true }, { "***************", false },
	};
	const char *name = new_name();
	struct xmem_pool *writer = open_labelled(name, "fifteen-letters");
	struct raw raw;
	unsigned int i;
	int fd;

	raw_start(&raw, name, XMEM_ROLE_READER);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		want(&raw, cases[i].label);
		/* The daemon checks all descriptors after each request. */
		fd = raw_poll_fd(&raw, XMEM_POLL_JOINT, 0, 0);
		if (cases[i].fits)
			SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
		else
			SAME(by_poll(fd, POLLIN, 0), 0);
		close(fd);
	}
	raw_close(&raw);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P4_what_a_client_says_of_its_history_is_its_own_matter)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_labelled(name, "writer"), *reader = open_reader(name);
	int publisher = xmem_pool_client(writer), fd;
	struct xmem_subscription *s = follow(reader, publisher, 0);
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = publisher,
	};
	struct xmem_cursor *cursor;
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_READER);
	cursor = (struct xmem_cursor *)xm_cursor(&raw.map, raw.link.join.client, publisher);
	/* The client may write any history for a ring that it does not follow. */
	xm_store(&cursor->history, ~0ULL);
	fd = raw_poll_fd(&raw, XMEM_POLL_CLIENT, 0, 0);
	SAME(by_poll(fd, POLLIN, 0), 0);
	SAME(raw_request(&raw, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	/* No other client is woken. */
	SAME(by_poll(fd_of(reader), POLLIN, 0), 0);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	close(fd);
	raw_close(&raw);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

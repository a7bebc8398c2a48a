// SPDX-License-Identifier: MIT
/*
 * Clients that use the daemon's socket without lib/host/wire.c: they send datagrams that no library
 * sends, or do not read. None of this may cost the daemon a descriptor or harm another client.
 */
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "harness.h"

#define BYTES	4096
#define WHY	"the module has no socket"

static void say(int file, const void *bytes, size_t length)
{
	CHECK(send(file, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
}

/* The result of the next reply; -ENOTCONN if no reply can come. */
static int answer(int file)
{
	struct { struct xmem_message head; char rest[8192]; } reply;
	ssize_t got = recv(file, &reply, sizeof(reply), 0);

	if (got <= 0)
		return -ENOTCONN;
	CHECK(got >= (ssize_t)sizeof(reply.head));
	return reply.head.result;
}

static unsigned int files_of_daemon(const struct raw *raw)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	char path[40];
	unsigned int n = 0;
	DIR *folder;

	CHECK(!getsockopt(raw->link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	snprintf(path, sizeof(path), "/proc/%d/fd", peer.pid);
	folder = opendir(path);
	CHECK(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* The daemon still serves: a new client can join, work and leave. */
static void still_serves(void)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);

	xmem_release(publish_and_get(writer, reader, 1));
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Has the daemon this file open? */
static bool daemon_has(const struct raw *raw, int file)
{
	struct stat mine, other;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct dirent *entry;
	bool found = false;
	char path[40];
	DIR *folder;

	CHECK(!getsockopt(raw->link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	CHECK(!fstat(file, &mine));
	snprintf(path, sizeof(path), "/proc/%d/fd", peer.pid);
	folder = opendir(path);
	CHECK(folder);
	while ((entry = readdir(folder)))
		found |= !fstatat(dirfd(folder), entry->d_name, &other, 0) &&
			 other.st_dev == mine.st_dev && other.st_ino == mine.st_ino;
	closedir(folder);
	return found;
}

TEST(P10_the_daemon_closes_files_that_were_given_back)
{
	struct xmem_attach_request attached;
	struct raw raw;
	int file;

	daemon_only("no process keeps the files of the module");
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	file = new_memfd(BYTES, GOOD_SEALS);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	CHECK(daemon_has(&raw, file));
	SAME(raw_slot(&raw, XMEM_OP_DETACH, attached.slot[0]), 0);
	CHECK(!daemon_has(&raw, file));
	raw_close(&raw);
	close(file);
}

TEST(P4_short_and_strange_datagrams)
{
	struct xmem_message head = { .request = XMEM_IOC_WAIT, .result = 2 };
	struct {
		struct xmem_message head;
		char body[4092];
	} big = { .head.request = XMEM_IOC_JOIN };
	struct raw raw;
	size_t length;

	daemon_only(WHY);
	raw_open(&raw);
	for (length = 1; length < sizeof(head); length++) {
		say(raw.link.file, &head, length);
		SAME(answer(raw.link.file), -EINVAL);
	}
	say(raw.link.file, &head, sizeof(head));	/* no struct, and a result in a request */
	SAME(answer(raw.link.file), -EINVAL);
	head = (struct xmem_message){ .request = 0xdeadbeef };
	say(raw.link.file, &head, sizeof(head));
	SAME(answer(raw.link.file), -ENOTTY);
	/* A struct whose length field differs from the length of the datagram. */
	memset(big.body, 0, sizeof(big.body));
	memcpy(big.body, &(uint32_t){ 4000 }, 4);
	say(raw.link.file, &big, sizeof(head) + 200);
	CHECK(answer(raw.link.file) < 0);
	memcpy(big.body, &(uint32_t){ sizeof(struct xmem_join_request) }, 4);
	say(raw.link.file, &big, sizeof(big));
	CHECK(answer(raw.link.file) < 0);
	raw_close(&raw);
	still_serves();
}

TEST(P4_random_datagrams)
{
	uint64_t random = seed();
	struct raw raw;
	unsigned int i;

	daemon_only(WHY);
	raw_open(&raw);
	for (i = 0; i < scaled(2000); i++) {
		uint64_t words[64];
		size_t k, length = 8 + random_next(&random) % (sizeof(words) - 8);
		struct xmem_message *head = (struct xmem_message *)words;

		for (k = 0; k < 64; k++)
			words[k] = random_next(&random) & (random_next(&random) & 1 ? ~0ULL : 0xff);
		head->request = _IO(XMEM_IOC_TYPE, random_next(&random) % 14);
		head->result = 0;
		if (random_next(&random) & 1)	/* the right size, else wrong */
			((uint32_t *)words)[2] = length - 8;
		say(raw.link.file, words, length);
		if (answer(raw.link.file) == -ENOTCONN) {
			/* The daemon may end this client for that; it serves the others. */
			raw_close(&raw);
			raw_open(&raw);
		}
	}
	raw_close(&raw);
	still_serves();
}

static void say_with_files(int link, const void *bytes, size_t length, int file, unsigned int count)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(16 * sizeof(int))]; } control = { 0 };
	struct iovec io = { (void *)bytes, length };
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	unsigned int i;

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
	for (i = 0; i < count; i++)
		((int *)CMSG_DATA(&control.head))[i] = file;
	CHECK(sendmsg(link, &message, MSG_NOSIGNAL) == (ssize_t)length);
}

TEST(P4_descriptors_that_nobody_asked_for)
{
	struct { struct xmem_message head; struct xmem_payload_request payload; } message = {
		.head.request = XMEM_IOC_PAYLOAD, .payload.size = sizeof(message.payload),
	};
	struct { struct xmem_message head; struct xmem_attach_request attach; } attach = {
		.head.request = XMEM_IOC_ATTACH,
		.attach = {
			.size = sizeof(attach.attach), .fd = 5, .stride = BYTES, .length = BYTES,
			.count = 1,
		},
	};
	struct raw raw;
	unsigned int before, i;
	int file;

	daemon_only(WHY);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	file = new_memfd(BYTES, GOOD_SEALS);
	before = files_of_daemon(&raw);
	for (i = 1; i < 16; i++) {
		say_with_files(raw.link.file, &message, sizeof(message), file, i);
		CHECK(answer(raw.link.file) < 0);
		say_with_files(raw.link.file, &message, 3, file, i);
		CHECK(answer(raw.link.file) < 0);
	}
	/* An attach with more than one file, and with none. */
	say_with_files(raw.link.file, &attach, sizeof(attach), file, 2);
	CHECK(answer(raw.link.file) < 0);
	say(raw.link.file, &attach, sizeof(attach));
	CHECK(answer(raw.link.file) < 0);
	/* There may be fewer: some were left by earlier tests. */
	CHECK(files_of_daemon(&raw) <= before);
	close(file);
	raw_close(&raw);
	still_serves();
}

TEST(P4_a_client_that_stops_reading_replies)
{
	struct { struct xmem_message head; struct xmem_pool_fd_request request; } message = {
		.head.request = XMEM_IOC_POOL_FD, .request.size = sizeof(message.request),
	};
	struct raw raw;
	unsigned int i, sent = 0;

	daemon_only(WHY);
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	/* Each answer carries a descriptor. The daemon must not collect them without limit. */
	for (i = 0; i < 5000; i++) {
		ssize_t got = send(raw.link.file, &message, sizeof(message),
				   MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += got > 0;
		if (got < 0 && errno != EAGAIN)
			break;
	}
	CHECK(sent > 0);
	still_serves();
	still_serves();
	raw_close(&raw);
	still_serves();
}

/* On the wire too, an older library reads only as many bytes as it has asked for. */
TEST(P4_an_answer_is_no_longer_than_the_question)
{
	struct { struct xmem_message head; struct xmem_query_request query; } message = {
		.head.request = XMEM_IOC_QUERY,
	}, reply;
	uint32_t size;
	struct raw raw;

	daemon_only(WHY);
	raw_open(&raw);
	for (size = XMEM_QUERY_MIN; size <= sizeof(message.query); size += 4) {
		message.query.size = size;
		say(raw.link.file, &message, sizeof(message.head) + size);
		SAME(recv(raw.link.file, &reply, sizeof(reply), 0), sizeof(reply.head) + size);
		SAME(reply.head.result, 0);
	}
	raw_close(&raw);
}

TEST(P4_connections_that_never_join)
{
	struct raw raw[20];
	unsigned int i;

	daemon_only(WHY);
	for (i = 0; i < 20; i++)
		raw_open(&raw[i]);
	still_serves();
	for (i = 0; i < 20; i++)
		raw_close(&raw[i]);
	still_serves();
}

TEST(P4_a_client_that_leaves_before_its_answer)
{
	struct { struct xmem_message head; struct xmem_join_request join; } message = {
		.head.request = XMEM_IOC_JOIN,
		.join = {
			.size = sizeof(message.join), .abi = XMEM_ABI, .role = XMEM_ROLE_WRITER,
			.pool_fd = -1,
		},
	};
	struct xmem_pool *watcher;
	struct raw first;
	unsigned int i;

	daemon_only(WHY);
	snprintf((char *)message.join.name, sizeof(message.join.name), "%s", new_name());
	watcher = open_reader((char *)message.join.name);
	raw_open(&first);
	for (i = 0; i < 50; i++) {
		struct raw raw;

		raw_open(&raw);
		say(raw.link.file, &message, sizeof(message));
		raw_close(&raw);
	}
	raw_close(&first);
	check_quiet(watcher, 1);
	xmem_pool_close(watcher);
}

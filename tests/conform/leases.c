// SPDX-License-Identifier: MIT
/*
 * Leases (F_SETLEASE) of files that are payloads. A process with a lease makes others wait when
 * they open the file, for 45 s as a rule. A host that does not wait cannot give the file. So a
 * lease must not be possible that the open of a reader, or of a writer of shared contents, would
 * meet.
 */
#include <linux/memfd.h>
#include <signal.h>

#include "attached.h"

#define BYTES	ATTACHED_BYTES

/* Descriptors of one file. The kernel counts each kind in another way. */
static const struct {
	const char *name;
	int access;			/* of one that is opened anew; -1: that of memfd_create */
} ways[] = {
	{ "of memfd_create", -1 },
	{ "opened O_RDONLY", O_RDONLY },
	{ "opened O_RDWR", O_RDWR },
	{ "opened O_PATH", O_PATH },
};
#define WAYS	(sizeof(ways) / sizeof(*ways))

static int opened_anew(int file, int access)
{
	char path[32];
	int anew;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	anew = open(path, access | O_CLOEXEC);
	CHECK(anew >= 0);
	return anew;
}

/* A descriptor of the file of @file. */
static int by_way(unsigned int way, int file)
{
	int anew = ways[way].access < 0 ? dup(file) : opened_anew(file, ways[way].access);

	CHECK(anew >= 0);
	return anew;
}

/* An attach of a file with a lease is refused, and an attached file gets no lease. */
TEST(P9_a_lease_of_an_attached_file_keeps_nobody_waiting)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	int file = stamped(BYTES, 5, FULL_SEALS), anew = opened_anew(file, O_RDWR);
	struct xmem_buffer *b, *got;

	signal(SIGIO, SIG_IGN);		/* with it the kernel asks for the lease */
	CHECK(!fcntl(anew, F_SETLEASE, F_WRLCK));
	REFUSED(xmem_attach_fd(writer, file, 0, 0, 0), EBUSY);
	SAME(stat_of(writer).payloads, 0);
	CHECK(!fcntl(anew, F_SETLEASE, F_UNLCK));
	b = xmem_attach_fd(writer, file, 0, 0, 0);
	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	SAME(fcntl(anew, F_SETLEASE, F_WRLCK), -1);
	SAME(errno, EAGAIN);
	close(file);
	xmem_metadata_mut(b)->id = 5;
	WORKED(xmem_publish(b, NULL, NULL));
	got = receive_one(s);
	SAME(stamp_of(got), 5);
	xmem_release(got);
	close(anew);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

static const char *name_of(int lease)
{
	return lease == F_WRLCK ? "F_WRLCK" : "F_RDLCK";
}

/* A reader gets the contents that the caller has published. */
static void receives_beside(struct xmem_subscription *s, int file, unsigned int way, int lease)
{
	int holder = by_way(way, file);
	struct xmem_buffer *got;

	if (!fcntl(holder, F_SETLEASE, lease) && lease == F_WRLCK)
		FAIL("a descriptor %s gets %s of a payload", ways[way].name, name_of(lease));
	got = receive_one(s);
	SAME(stamp_of(got), 5);
	xmem_release(got);
	close(holder);
}

/* This holds for every kind of descriptor: the lease comes after the attach. */
TEST(P9_no_later_lease_of_an_attached_file_keeps_a_reader_waiting)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	unsigned int i;

	signal(SIGIO, SIG_IGN);
	for (i = 0; i < 2 * 2 * WAYS; i++) {
		int file = stamped(BYTES, 5, i & 2 ? FULL_SEALS : GOOD_SEALS), by, lease;
		struct xmem_buffer *b;

		by = by_way(i & 1, file);
		lease = i & 2 ? F_WRLCK : F_RDLCK;
		b = xmem_attach_fd(writer, by, 0, 0, 0);
		WORKED(b ? 0 : xmem_peek_last_error(NULL));
		close(by);
		xmem_metadata_mut(b)->id = 5;
		WORKED(xmem_publish(b, NULL, NULL));
		receives_beside(s, file, i / 4, lease);
		close(file);
	}
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* 0 or -errno. */
static int attach(struct raw *raw, int file, uint32_t flags, uint64_t *ret_payload)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = file, .stride = 4096, .length = 4096, .count = 1,
		.flags = flags,
	};
	int err = raw_request(raw, XMEM_IOC_ATTACH, &request);

	*ret_payload = request.payload;
	return err;
}

/* 0 or -errno: the client gets the file, and closes it. */
static int gets(struct raw *raw, uint64_t payload, uint32_t flags)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .payload = payload, .flags = flags,
	};
	int err = raw_request(raw, XMEM_IOC_PAYLOAD, &request);

	if (!err)
		close(request.fd);
	return err;
}

#define SHARED_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * Another writer opens it for writing, too, so a lease for reading would be in its way. With the
 * daemon such a lease can be had, by the only user that it serves.
 */
TEST(P9_no_lease_of_a_shared_file_keeps_a_writer_waiting)
{
	const char *name = new_name();
	struct raw owner, other;
	uint64_t payload;
	unsigned int i;
	bool had;

	signal(SIGIO, SIG_IGN);
	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&other, name, XMEM_ROLE_WRITER);
	for (i = 0; i < 2 * WAYS; i++) {
		int file = new_memfd(4096, SHARED_SEALS), holder;
		int lease = i & 1 ? F_WRLCK : F_RDLCK;

		SAME(attach(&owner, file, XMEM_ATTACH_SHARED, &payload), 0);
		holder = by_way(i / 2, file);
		had = !fcntl(holder, F_SETLEASE, lease);
		if (had && (on_kernel() || lease == F_WRLCK))
			FAIL("a descriptor %s gets %s of a shared payload", ways[i / 2].name,
			     name_of(lease));
		SAME(gets(&other, payload, XMEM_PAYLOAD_WRITE), had ? -EBUSY : 0);
		SAME(gets(&other, payload, 0), 0);
		close(holder);
		close(file);
	}
	raw_close(&other);
	raw_close(&owner);
}

/*
 * A process that has a file open for writing gets a lease on it only if no other process has it
 * open.
 */
TEST(P10_nothing_of_a_shared_file_stays_open)
{
	int file = new_memfd(4096, SHARED_SEALS), holder = by_way(2, file);
	uint64_t payload;
	struct raw owner, other;

	/* A daemon would end with its last client, and close all its files. */
	raw_start(&other, new_name(), XMEM_ROLE_WRITER);
	raw_start(&owner, new_name(), XMEM_ROLE_WRITER);
	SAME(attach(&owner, file, XMEM_ATTACH_SHARED, &payload), 0);
	SAME(fcntl(holder, F_SETLEASE, F_WRLCK), -1);
	raw_close(&owner);
	EVENTUALLY(!fcntl(holder, F_SETLEASE, F_WRLCK));
	raw_close(&other);
	close(holder);
	close(file);
}

/* EAGAIN would mean "nothing there" to a receiver, which would try again at once. */
TEST(P9_an_owner_whose_file_has_a_lease_is_told_EBUSY)
{
	const char *name = new_name();
	struct raw owner, other;
	uint64_t payload;
	int file = new_memfd(4096, GOOD_SEALS), holder;

	signal(SIGIO, SIG_IGN);
	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&other, name, XMEM_ROLE_READER);
	SAME(attach(&owner, file, 0, &payload), 0);
	SAME(gets(&owner, payload, XMEM_PAYLOAD_WRITE), 0);
	holder = by_way(1, file);
	/* The host may not have closed yet what it has sent. */
	EVENTUALLY(!fcntl(holder, F_SETLEASE, F_RDLCK));
	SAME(gets(&other, payload, 0), 0);
	SAME(gets(&owner, payload, XMEM_PAYLOAD_WRITE), -EBUSY);
	SAME(gets(&other, payload, 0), 0);
	close(holder);
	SAME(gets(&owner, payload, XMEM_PAYLOAD_WRITE), 0);
	close(file);
	raw_close(&other);
	raw_close(&owner);
}

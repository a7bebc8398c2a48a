// SPDX-License-Identifier: MIT
/*
 * Who may join a pool (P4)? The pool's mode decides, or a descriptor and the roles that it carries,
 * and the owner may change both later. The tests begin with what both hosts do, and end with what a
 * daemon refuses. Tests with several users are in access_users.c.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "harness.h"

#define BYTES	4096
#define SOMEBODY 2001
#define BOTH	(XMEM_MAY_READ | XMEM_MAY_WRITE)

static struct xmem_pool *open_as(const char *name, uint32_t flags, uint32_t mode)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = flags, .mode = mode,
	};

	return xmem_pool_open(name, &options);
}

/* Join by a descriptor, as a reader or a writer: 0 or -errno. */
static int join_by(int fd, uint32_t flags)
{
	struct xmem_pool *pool = open_by_fd(fd, flags);

	if (!pool)
		return xmem_peek_last_error(NULL);
	xmem_pool_close(pool);
	return 0;
}

static int join_named(const char *name, uint32_t flags)
{
	struct xmem_pool *pool = open_as(name, flags | XMEM_OPEN_EXISTING, 0);

	if (!pool)
		return xmem_peek_last_error(NULL);
	xmem_pool_close(pool);
	return 0;
}

/* The pool's entry in the list of pools. */
static struct xmem_pool_entry entry_of(const char *name)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };

	while (!xmem_pool_next(entry.number, &entry)) {
		if (!strcmp(entry.name, name) && entry.owner_uid == geteuid())
			return entry;
		entry.size = sizeof(entry);
	}
	FAIL("pool %s is not listed", name);
}

/* The module lets root join everything; a daemon has only one user. */
static void be_whom_modes_bind(void)
{
	if (!on_kernel() || geteuid())
		return;
	if (!in_vm())
		skip("root overrides modes, and the device is the whole machine's");
	CHECK(!chmod("/dev/xmem", 0666));
	CHECK(!setgid(SOMEBODY) && !setuid(SOMEBODY));
	CHECK(!prctl(PR_SET_DUMPABLE, 1));	/* else root owns its files in /proc */
}

/* ---- the mode ---- */

TEST(P4_a_pool_is_its_owners_alone_by_default)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name);

	SAME(entry_of(name).mode, 0600);
	SAME(entry_of(name).gid, getegid());
	SAME(entry_of(name).roles, BOTH);
	xmem_pool_close(pool);
}

TEST(P4_an_owner_that_lets_only_readers_in)
{
	const char *name = new_name();
	struct xmem_pool *pool;

	be_whom_modes_bind();
	pool = open_as(name, XMEM_OPEN_WRITER, 0400);
	/* The maker of a pool may join with any role, as the maker of a file may open it. */
	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	SAME(entry_of(name).mode, 0400);
	SAME(entry_of(name).roles, XMEM_MAY_READ);
	SAME(join_named(name, 0), 0);
	SAME(join_named(name, XMEM_OPEN_WRITER), -EACCES);
	error_says("0600");
	error_says("writer");
	error_says("0400");
	/* The pool exists, even if its mode lets nobody join. */
	REFUSED(open_as(name, XMEM_OPEN_EXCLUSIVE, 0), EEXIST);
	WORKED(xmem_pool_set_mode(pool, 0600, XMEM_GID_SAME));
	SAME(entry_of(name).roles, BOTH);
	SAME(join_named(name, XMEM_OPEN_WRITER), 0);
	xmem_pool_close(pool);
}

TEST(P4_the_mode_of_a_pool_that_is_there_stays)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_as(name, 0, 0400), *again = open_as(name, 0, 0600);

	CHECK(pool && again);
	SAME(entry_of(name).mode, 0400);
	xmem_pool_close(again);
	/* Only the owner may change the mode, and only to a mode that makes sense. */
	SAME(xmem_pool_set_mode(pool, 0200, XMEM_GID_SAME), -EINVAL);
	SAME(xmem_pool_set_mode(pool, 0700, XMEM_GID_SAME), -EINVAL);
	SAME(entry_of(name).mode, 0400);
	WORKED(xmem_pool_set_mode(pool, 0, XMEM_GID_SAME));
	WORKED(xmem_pool_set_mode(pool, 0, getegid()));
	SAME(entry_of(name).mode, 0400);
	xmem_pool_close(pool);
}

/* Clients that the stricter mode would keep out may have kept the pool open. */
TEST(P4_a_pool_laxer_than_its_owner_asks_is_ERANGE)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_as(name, 0, 0600), *again;

	CHECK(pool);
	REFUSED(open_as(name, 0, 0400), ERANGE);
	error_says("0600");
	error_says("0400");
	error_says("xmem_pool_set_mode");
	REFUSED(open_as(name, XMEM_OPEN_EXISTING, XMEM_MODE_STRICT | 0600), ERANGE);
	REFUSED(open_as(name, XMEM_OPEN_WRITER, XMEM_MODE_STRICT | 0600), ERANGE);
	WORKED(xmem_pool_set_mode(pool, XMEM_MODE_STRICT | 0400, XMEM_GID_SAME));
	again = open_as(name, 0, 0400);
	CHECK(again);
	xmem_pool_close(again);
	/* A client that joins again accepts the mode as it is: it may have been changed since. */
	again = open_as(name, 0, XMEM_MODE_STRICT | 0400);
	CHECK(again);
	WORKED(xmem_pool_set_mode(pool, 0600, XMEM_GID_SAME));
	xmem_pool_close(pool);
	pool = xmem_pool_reopen(again);
	CHECK(pool);
	xmem_pool_close(again);
	xmem_pool_close(pool);
}

TEST(API_modes_that_make_no_sense_are_EINVAL)
{
	struct xmem_pool_options gid = { .size = sizeof(gid), .gid = 7 };
	const char *name = new_name();

	REFUSED(open_as(name, 0, 0700), EINVAL);
	error_says("0100");
	REFUSED(open_as(name, 0, 0620), EINVAL);
	error_says("may not read");
	REFUSED(open_as(name, 0, 02600), EINVAL);
	REFUSED(xmem_pool_open(name, &gid), EINVAL);
	error_says("XMEM_OPEN_GROUP");
	gid.flags = XMEM_OPEN_GROUP;
	gid.gid = ~0u;
	REFUSED(xmem_pool_open(name, &gid), EINVAL);
	error_says("no group's number");
	REFUSED(open_as(name, XMEM_OPEN_READER | XMEM_OPEN_SHARES, 0), EINVAL);
	error_says("XMEM_OPEN_SHARES");
	REFUSED(open_as(name, XMEM_OPEN_READER | XMEM_OPEN_WRITER, 0), EINVAL);
	error_says("both");
	SAME(join_named(name, 0), -ENOENT);
}

TEST(API_a_user_in_a_pools_name)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name), *again;
	char full[80];

	snprintf(full, sizeof(full), "%u:%s", geteuid(), name);
	again = xmem_pool_open(full, NULL);
	CHECK(again);
	SAME(stat_of(pool).clients, 2);
	xmem_pool_close(again);
	REFUSED(xmem_pool_open(":x", NULL), EINVAL);
	REFUSED(xmem_pool_open("1:", NULL), EINVAL);
	REFUSED(xmem_pool_open("1x:x", NULL), EINVAL);
	error_says("/etc/passwd has no '1x'");
	REFUSED(xmem_pool_open("4294967295:x", NULL), EINVAL);
	REFUSED(xmem_pool_open("99999999999999999999999:x", NULL), EINVAL);
	REFUSED(xmem_pool_open("a:b:c", NULL), EINVAL);
	REFUSED(xmem_pool_open("0:b:c", NULL), EINVAL);
	REFUSED(xmem_pool_open("0:/", NULL), EINVAL);
	REFUSED(xmem_pool_open("no-such-user-here:x", NULL), EINVAL);
	error_says("no-such-user-here");
	error_says("/etc/passwd");
	xmem_pool_close(pool);
}

/* ---- descriptors ---- */

/* Which of both roles a descriptor lets this process in by. */
static void lets_in(int fd, uint32_t roles)
{
	SAME(join_by(fd, XMEM_OPEN_READER), roles & XMEM_MAY_READ ? 0 : -EACCES);
	SAME(join_by(fd, 0), 0);
	SAME(join_by(fd, XMEM_OPEN_WRITER), roles & XMEM_MAY_WRITE ? 0 : -EACCES);
}

TEST(P4_a_descriptor_is_narrowed_and_never_widened)
{
	struct xmem_pool *pool = open_reader(new_name());
	int all = xmem_pool_fd(pool), reads = xmem_pool_fd_narrow(all, XMEM_MAY_READ);
	int writes = xmem_pool_fd_narrow(all, XMEM_MAY_WRITE), same;

	CHECK(all >= 0 && reads >= 0 && writes >= 0);
	CHECK(fcntl(reads, F_GETFD) & FD_CLOEXEC);
	lets_in(all, BOTH);
	lets_in(reads, XMEM_MAY_READ);
	error_says("narrowed");
	lets_in(writes, XMEM_MAY_WRITE);
	same = xmem_pool_fd_narrow(reads, XMEM_MAY_READ);
	CHECK(same >= 0);
	lets_in(same, XMEM_MAY_READ);
	close(same);
	SAME(xmem_pool_fd_narrow(reads, BOTH), -EACCES);
	SAME(xmem_pool_fd_narrow(reads, XMEM_MAY_WRITE), -EACCES);
	SAME(xmem_pool_fd_narrow(writes, XMEM_MAY_READ), -EACCES);
	SAME(xmem_pool_fd_narrow(all, 0), -EINVAL);
	SAME(xmem_pool_fd_narrow(all, BOTH | 1), -EINVAL);
	SAME(xmem_pool_fd_narrow(all, 8), -EINVAL);
	SAME(xmem_pool_fd_narrow(-1, BOTH), -EBADF);
	SAME(xmem_pool_fd_narrow(0, BOTH), -EBADF);
	/* Other processes may have this descriptor too, so its roles stay. */
	lets_in(all, BOTH);
	close(all);
	close(writes);
	xmem_pool_close(pool);
	/* The module keeps a pool as long as there is a descriptor of it. */
	SAME(join_by(reads, 0), on_kernel() ? 0 : -EBADF);
	close(reads);
}

/* A client passes on the roles that it was given, not the role in which it joined. */
TEST(P4_a_client_passes_on_no_more_than_it_has)
{
	struct xmem_pool *pool = open_reader(new_name()), *member, *whole;
	struct xmem_pool_fd_request request = { .size = sizeof(request), .roles = BOTH };
	int all = xmem_pool_fd(pool), reads = xmem_pool_fd_narrow(all, XMEM_MAY_READ), given;
	struct raw raw;

	CHECK(all >= 0 && reads >= 0);
	member = open_by_fd(reads, 0);
	whole = open_by_fd(all, 0);
	CHECK(member && whole);
	given = xmem_pool_fd(member);
	CHECK(given >= 0);
	lets_in(given, XMEM_MAY_READ);
	close(given);
	given = xmem_pool_fd(whole);
	CHECK(given >= 0);
	lets_in(given, BOTH);
	close(given);

	raw_open(&raw);
	raw.link.join = (struct xmem_join_request){
		.size = sizeof(raw.link.join), .abi = XMEM_ABI, .role = XMEM_ROLE_READER,
		.flags = XMEM_JOIN_FD, .pool_fd = reads,
	};
	SAME(raw_request(&raw, XMEM_IOC_JOIN, &raw.link.join), 0);
	SAME(raw.link.join.roles, XMEM_MAY_READ);
	SAME(raw.link.join.owner_uid, geteuid());
	SAME(raw.link.join.mode, 0600);
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &request), -EACCES);
	SAME(request.roles, BOTH);
	request.roles = 1;
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &request), -EINVAL);
	request = (struct xmem_pool_fd_request){ .size = sizeof(request), .pool_fd = all };
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &request), -EINVAL);	/* without NARROW */
	request.pool_fd = 0;
	request.flags = XMEM_POOL_FD_NARROW << 1;
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &request), -EINVAL);
	request.flags = 0;
	SAME(raw_request(&raw, XMEM_IOC_POOL_FD, &request), 0);
	SAME(request.roles, XMEM_MAY_READ);
	lets_in(request.fd, XMEM_MAY_READ);
	close(request.fd);
	raw_close(&raw);
	close(all);
	close(reads);
	xmem_pool_close(member);
	xmem_pool_close(whole);
	xmem_pool_close(pool);
}

TEST(P4_of_a_strict_pool_a_descriptor_is_not_enough)
{
	const char *name = new_name();
	struct xmem_pool *pool;
	int fd;

	be_whom_modes_bind();
	pool = open_as(name, 0, XMEM_MODE_STRICT | 0600);
	CHECK(pool);
	fd = xmem_pool_fd(pool);
	CHECK(fd >= 0);
	lets_in(fd, BOTH);
	WORKED(xmem_pool_set_mode(pool, XMEM_MODE_STRICT | 0400, XMEM_GID_SAME));
	lets_in(fd, XMEM_MAY_READ);
	error_says("strict");
	/* Without the flag, descriptors that were passed on keep their roles. */
	WORKED(xmem_pool_set_mode(pool, 0400, XMEM_GID_SAME));
	lets_in(fd, BOTH);
	close(fd);
	xmem_pool_close(pool);
}

/* ---- what the requests take ---- */

TEST(P4_fields_about_access_are_checked)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name);
	struct xmem_access_request access = { .size = sizeof(access), .mode = 0600 };
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1,
	}, bad;
	struct raw raw;

	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	raw_open(&raw);
#define BAD(...) do { \
	bad = join; \
	__VA_ARGS__; \
	SAME(raw_request(&raw, XMEM_IOC_JOIN, &bad), -EINVAL); \
} while (0)
	BAD(bad.flags = 1u << 3);
	BAD(bad.owner_uid = 1);
	BAD(bad.gid = 1);
	BAD(bad.roles = BOTH);
	BAD(bad.mode = 0622);
	BAD(bad.mode = 0700);
	BAD(bad.flags = XMEM_JOIN_OWNER; bad.name[0] = 0);
	BAD(bad.flags = XMEM_JOIN_FD; bad.name[0] = 0; bad.mode = 0600);
#undef BAD
	SAME(raw_request(&raw, XMEM_IOC_JOIN, &join), 0);
	SAME(join.roles, BOTH);
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &access), -EINVAL);
	access.flags = XMEM_ACCESS_MODE;
	access.mode = 0;
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &access), -EINVAL);
	access.mode = 0200;
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &access), -EINVAL);
	access = (struct xmem_access_request){ .size = sizeof(access), .owner_uid = 1 };
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &access), -EINVAL);
	access.owner_uid = 0;
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &access), 0);
	SAME(access.mode, 0600);
	SAME(access.gid, getegid());
	SAME(access.owner_uid, geteuid());
	raw_close(&raw);
	SAME(entry_of(name).mode, 0600);
	xmem_pool_close(pool);
}

/* ---- reopening ---- */

static void reopen_as_a_child(void *argument)
{
	struct xmem_pool *pool = xmem_pool_reopen(argument);

	CHECK(pool);
	tell_parent(stat_of(pool).clients);
	xmem_pool_close(pool);
	xmem_pool_close(argument);
}

/* With a descriptor for reading only, a child joins in its parent's role and in no wider one. */
TEST(P4_a_child_reopens_with_the_roles_of_its_parent)
{
	struct xmem_pool *pool = open_reader(new_name()), *member;
	int all = xmem_pool_fd(pool), reads = xmem_pool_fd_narrow(all, XMEM_MAY_READ);
	struct child *child;

	CHECK(all >= 0 && reads >= 0);
	member = open_by_fd(reads, XMEM_OPEN_INHERIT);
	CHECK(member);
	close(all);
	close(reads);
	child = spawn(reopen_as_a_child, member);
	SAME(hear(child), 3);
	finish_child(child);
	xmem_pool_close(member);
	xmem_pool_close(pool);
}

/* ---- what a daemon refuses, because it could not enforce it ---- */

TEST(P4_a_daemon_has_one_user)
{
	struct xmem_pool_options group = {
		.size = sizeof(group), .flags = XMEM_OPEN_GROUP, .gid = getegid(),
	};
	static const uint32_t modes[] = { 0640, 0660, 0604, 0606, 0644, XMEM_MODE_STRICT | 0640 };
	const char *name = new_name();
	struct xmem_pool *pool;
	char foreign[80];
	unsigned int i;

	daemon_only("the kernel knows several users");
	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		REFUSED(open_as(name, 0, modes[i]), EOPNOTSUPP);
		error_says("xmemd");
		error_says("0600");
	}
	pool = xmem_pool_open(name, &group);
	CHECK(pool);
	xmem_pool_close(pool);
	group.gid++;
	REFUSED(xmem_pool_open(name, &group), EOPNOTSUPP);
	error_says("group");
	snprintf(foreign, sizeof(foreign), "%u:%s", geteuid() + 1, name);
	REFUSED(xmem_pool_open(foreign, NULL), EOPNOTSUPP);
	error_says("one user");
	/* None of these attempts has left a pool. */
	SAME(join_named(name, 0), -ENOENT);

	pool = open_reader(name);
	SAME(xmem_pool_set_mode(pool, 0640, XMEM_GID_SAME), -EOPNOTSUPP);
	SAME(xmem_pool_set_mode(pool, 0400, getegid() + 1), -EOPNOTSUPP);
	error_says("a pool's group is that user's");
	SAME(entry_of(name).mode, 0600);
	xmem_pool_close(pool);
}

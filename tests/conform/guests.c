// SPDX-License-Identifier: MIT
/*
 * P10 between the maker of a pool and its guests: clients of other users. The maker pays for a pool
 * that a guest keeps, but the guest does not keep the pool's name. A guest can pass on its access
 * only while the mode that gave it lasts. These tests need the kernel module and a machine of their
 * own.
 */
#include <stdlib.h>

#include "quota_users.h"

#define POOLS	3
#define R	XMEM_MAY_READ
#define W	XMEM_MAY_WRITE

struct scene {
	unsigned int owner, guest;
	const char *name[POOLS];
};

static struct xmem_pool *make(const char *name, uint32_t mode)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER | XMEM_OPEN_EXCLUSIVE,
		.mode = mode,
	};

	return xmem_pool_open(name, &options);
}

static void make_and_leave(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool[POOLS];
	unsigned int i;

	become(scene->owner);
	for (i = 0; i < POOLS; i++) {
		pool[i] = make(scene->name[i], 0644);
		CHECK(pool[i]);
	}
	REFUSED(make(scene->name[0], 0600), EEXIST);
	tell_parent(1);
	hear_parent();				/* the guest is there */
	for (i = 0; i < POOLS; i++)
		xmem_pool_close(pool[i]);
	tell_parent(1);
	hear_parent();				/* as many pools are allowed as there are */
	pool[0] = make(scene->name[0], 0600);	/* the last one has gone */
	CHECK(pool[0]);
	REFUSED(make(scene->name[1], 0600), EDQUOT);
	tell_parent(1);
	hear_parent();				/* the guest has left */
	pool[1] = make(scene->name[1], 0600);
	CHECK(pool[1]);
	xmem_pool_close(pool[0]);
	xmem_pool_close(pool[1]);
	tell_parent(1);
	hear_parent();
}

static struct xmem_pool *visit(const struct scene *scene, unsigned int i)
{
	char full[64];

	snprintf(full, sizeof(full), "%u:%s", scene->owner, scene->name[i]);
	return xmem_pool_open(full, NULL);
}

/* It keeps one pool by a client, and one by a descriptor. */
static void be_a_guest(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *kept, *other;
	int fd;

	become(scene->guest);
	kept = visit(scene, 0);
	other = visit(scene, 1);
	CHECK(kept && other);
	fd = xmem_pool_fd(other);
	CHECK(fd >= 0);
	xmem_pool_close(other);
	tell_parent(1);
	hear_parent();
	REFUSED(visit(scene, 0), ENOENT);	/* the name is its owner's again */
	other = open_by_fd(fd, 0);
	CHECK(other);
	xmem_pool_close(other);
	close(fd);
	xmem_pool_close(kept);
	tell_parent(1);
	hear_parent();
}

/* The maker of a pool pays for it as long as anybody keeps it. */
TEST_WITHIN(P10_a_pool_counts_for_its_maker, 60)
{
	struct scene scene = { .owner = new_user() };
	struct child *owner, *guest;
	char old[32];
	unsigned int i;

	scene.guest = scene.owner + 10000;
	for (i = 0; i < POOLS; i++)
		scene.name[i] = new_name();
	owner = spawn(make_and_leave, &scene);
	hear(owner);
	SAME(seen(scene.owner, "pools"), POOLS);
	guest = spawn(be_a_guest, &scene);
	hear(guest);
	SAME(seen(scene.guest, "pools"), 0);
	tell(owner, 1);
	hear(owner);				/* it has left */
	EVENTUALLY(seen(scene.owner, "pools") == 2);
	CHECK(seen(scene.owner, "page_bytes"));
	set_parameter("user_max_pools", "3", old);
	tell(owner, 1);
	hear(owner);				/* it has a third one */
	tell(guest, 1);
	hear(guest);
	EVENTUALLY(seen(scene.owner, "pools") == 1);
	tell(owner, 1);
	hear(owner);
	set_parameter("user_max_pools", old, NULL);
	EVENTUALLY(!seen(scene.guest, "page_bytes"));
	EVENTUALLY(!seen(scene.owner, "pools") && !seen(scene.owner, "page_bytes"));
	kill_child(owner);
	kill_child(guest);
}

/* ---- the maker's remedy ---- */

/* The number of this user's pool whose name another pool has taken. */
static void find_nameless(char ret[32])
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };

	do {
		entry.size = sizeof(entry);
		SAME(xmem_pool_next(entry.number, &entry), 0);
	} while (entry.owner_uid != geteuid() || entry.name[0]);
	snprintf(ret, 32, "@%llu", (unsigned long long)entry.number);
}

static void make_and_drain(void *argument)
{
	const struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};
	struct scene *scene = argument;
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .mode = 0644, .clients = 3,
	};
	struct xmem_pool *pool, *again;
	char number[32];

	become(scene->owner);
	pool = xmem_pool_open(scene->name[0], &options);
	CHECK(pool);
	tell_parent(1);
	hear_parent();				/* the guest has the other places */
	xmem_pool_close(pool);
	tell_parent(1);
	hear_parent();				/* it has not got the third */
	again = make(scene->name[0], 0600);	/* it has taken the name */
	CHECK(again);
	find_nameless(number);
	EVENTUALLY((pool = xmem_pool_open(number, &existing)));
	WORKED(xmem_pool_drain(pool, XMEM_DRAIN_EVICTS));
	xmem_pool_close(pool);
	xmem_pool_close(again);
	tell_parent(1);
	hear_parent();
}

static void stay(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool[2];
	int fd;

	become(scene->guest);
	pool[0] = visit(scene, 0);
	pool[1] = visit(scene, 0);
	CHECK(pool[0] && pool[1]);
	fd = xmem_pool_fd(pool[0]);
	CHECK(fd >= 0);
	tell_parent(1);
	hear_parent();				/* the owner has left */
	REFUSED(visit(scene, 0), EUSERS);
	REFUSED(open_by_fd(fd, 0), EUSERS);
	tell_parent(1);
	hear_parent();				/* it has drained the pool */
	REFUSED(open_by_fd(fd, 0), ESHUTDOWN);
	SAME(xmem_pool_fd_narrow(fd, R), -ESHUTDOWN);
	xmem_pool_close(pool[0]);
	xmem_pool_close(pool[1]);
	tell_parent(1);
	hear_parent();				/* it still has the descriptor */
	close(fd);
}

/* The owner can always join its pool, and nobody keeps what it drains. */
TEST_WITHIN(P10_what_the_maker_drains_counts_no_more, 60)
{
	struct scene scene = { .owner = new_user(), .name = { new_name() } };
	struct child *owner = spawn(make_and_drain, &scene), *guest;

	scene.guest = scene.owner + 10000;
	hear(owner);
	guest = spawn(stay, &scene);
	hear(guest);
	tell(owner, 1);
	hear(owner);
	SAME(seen(scene.owner, "pools"), 1);
	tell(guest, 1);
	hear(guest);
	tell(owner, 1);
	hear(owner);
	EVENTUALLY(!seen(scene.owner, "pools"));
	tell(guest, 1);
	hear(guest);
	kill_child(owner);
	EVENTUALLY(has_nothing(scene.owner));
	kill_child(guest);
}

static void publish_and_stay(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .mode = 0644, .clients = 3,
	};
	struct xmem_pool *pool;
	struct xmem_buffer *buffer;

	become(scene->owner);
	pool = xmem_pool_open(scene->name[0], &options);
	CHECK(pool && (buffer = xmem_acquire(pool, 64, 0)));
	tell_parent(1);
	hear_parent();				/* the guest follows, and has the other places */
	WORKED(xmem_publish(buffer, NULL, NULL));
	tell_parent(1);
	hear_parent();				/* it is killed here */
}

static void follow_and_stay(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool[2];

	become(scene->guest);
	pool[0] = visit(scene, 0);
	pool[1] = visit(scene, 0);
	CHECK(pool[0] && pool[1] && xmem_subscribe(pool[0], NULL));
	tell_parent(1);
	hear_parent();
}

static void come_back_and_drain(void *argument)
{
	const struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};
	struct scene *scene = argument;
	struct xmem_pool *pool;

	become(scene->owner);
	pool = xmem_pool_open(scene->name[0], &existing);
	CHECK(pool);
	WORKED(xmem_pool_drain(pool, XMEM_DRAIN_EVICTS));
	xmem_pool_close(pool);
}

/* A guest has all other ids, and has yet to receive from the ring of the owner's dead publisher. */
TEST_WITHIN(P10_a_guest_that_receives_nothing_keeps_no_owner_out, 60)
{
	struct scene scene = { .owner = new_user(), .name = { new_name() } };
	struct child *owner = spawn(publish_and_stay, &scene), *guest;

	scene.guest = scene.owner + 10000;
	hear(owner);
	guest = spawn(follow_and_stay, &scene);
	hear(guest);
	tell(owner, 1);
	hear(owner);
	kill_child(owner);
	finish_child(spawn(come_back_and_drain, &scene));
	EVENTUALLY(!seen(scene.owner, "pools"));
	kill_child(guest);
	EVENTUALLY(has_nothing(scene.owner));
}

/* ---- what a guest passes on ---- */

static void make_for_all(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool;

	become(scene->owner);
	pool = make(scene->name[0], 0666);
	CHECK(pool);
	tell_parent(1);
	hear_parent();
	WORKED(xmem_pool_set_mode(pool, 0644, XMEM_GID_SAME));
	tell_parent(1);
	hear_parent();
	WORKED(xmem_pool_set_mode(pool, 0600, XMEM_GID_SAME));
	tell_parent(1);
	hear_parent();
}

static int join_to_write(int fd)
{
	struct xmem_pool *pool = open_by_fd(fd, XMEM_OPEN_WRITER);

	if (!pool)
		return xmem_peek_last_error(NULL);
	xmem_pool_close(pool);
	return 0;
}

static void pass_on(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool;
	int before, fd;

	become(scene->guest);
	pool = visit(scene, 0);
	CHECK(pool);
	before = xmem_pool_fd(pool);
	SAME(join_to_write(before), 0);
	tell_parent(1);
	hear_parent();				/* only readers are let in now */
	fd = xmem_pool_fd(pool);
	CHECK(fd >= 0);
	SAME(join_to_write(fd), -EACCES);
	tell_parent(1);
	hear_parent();				/* the mode lets nobody in now */
	SAME(xmem_pool_fd(pool), -EACCES);
	SAME(join_to_write(before), 0);		/* the descriptor was passed on before */
	tell_parent(1);
	hear_parent();
}

TEST(P4_a_guest_passes_on_no_more_than_the_mode_gives_it)
{
	struct scene scene = { .owner = new_user() };
	struct child *owner, *guest;

	scene.guest = scene.owner + 10000;
	scene.name[0] = new_name();
	owner = spawn(make_for_all, &scene);
	hear(owner);
	guest = spawn(pass_on, &scene);
	hear(guest);
	tell(owner, 1);
	hear(owner);
	tell(guest, 1);
	hear(guest);
	tell(owner, 1);
	hear(owner);
	tell(guest, 1);
	hear(guest);
	kill_child(guest);
	kill_child(owner);
}

/* ---- names ---- */

struct names {
	unsigned int owner, guest;
	const char *name;
	const char *limit;		/* which the owner has reached; NULL: none */
};

/* Pass on a descriptor for readers, and end. */
static void make_and_pass_on(void *argument)
{
	const struct names *names = argument;
	struct xmem_pool *pool;
	int fd, reads;

	become(names->owner);
	pool = make(names->name, 0600);
	CHECK(pool && !make(names->name, 0600));
	fd = xmem_pool_fd(pool);
	reads = xmem_pool_fd_narrow(fd, XMEM_MAY_READ);
	CHECK(fd >= 0 && reads >= 0);
	close(fd);
	send_file(parent_link(), reads);
	hear_parent();
}

/* It keeps the pool by the descriptor, and by a client. */
static void keep_what_was_given(void *argument)
{
	const struct names *names = argument;
	int fd = receive_file(parent_link());
	struct xmem_pool *pool;

	become(names->guest);
	pool = open_by_fd(fd, 0);
	CHECK(pool);
	tell_parent(1);
	hear_parent();
	xmem_pool_close(pool);
	CHECK((pool = open_by_fd(fd, 0)));	/* the pool continues without a name */
	xmem_pool_close(pool);
	close(fd);
	tell_parent(1);
	hear_parent();
}

/* A new pool takes the name back, or cannot be made because of a limit. */
static void take_back(void *argument)
{
	const struct names *names = argument;
	struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};
	struct xmem_pool *pool;

	become(names->owner);
	pool = make(names->name, 0600);
	if (names->limit) {
		REFUSED(pool, EDQUOT);
		error_says(names->limit);
		tell_parent(1);
		hear_parent();
		pool = xmem_pool_open(names->name, &existing);
		CHECK(pool);
		SAME(stat_of(pool).clients, 2);
		xmem_pool_close(pool);
		return;
	}
	CHECK(pool);
	REFUSED(make(names->name, 0600), EEXIST);
	SAME(stat_of(pool).clients, 1);
	xmem_pool_close(pool);
	REFUSED(xmem_pool_open(names->name, &existing), ENOENT);
}

/* A pool that has its name again has its old place in the list, which is sorted by age. */
static void listed_in_order(const char *const *names, unsigned int count)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	uint64_t after = 0;
	unsigned int seen = 0;

	while (!xmem_pool_next(after, &entry)) {
		CHECK(entry.number > after);
		after = entry.number;
		if (seen < count && !strcmp(entry.name, names[seen]))
			seen++;
		entry.size = sizeof(entry);
	}
	SAME(seen, count);
}

/*
 * A descriptor that the owner has passed on keeps the pool, which counts for the owner, but it does
 * not keep the name. A user that cannot make a new pool has not taken the old one's name either.
 */
TEST_WITHIN(P4_what_an_owner_passes_on_keeps_no_name, 60)
{
	static const char *const limits[] = { "user_max_pools", "user_max_page_bytes" };
	struct names names = { .owner = new_user(), .name = new_name() };
	struct child *owner, *guest;
	const char *order[] = { new_name(), names.name, new_name() };
	struct xmem_pool *older, *younger;
	char text[2][32] = { "1" }, old[32];
	uint64_t table;
	struct raw raw;
	unsigned int i;
	int fd;

	names.guest = names.owner + 10000;
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	table = raw.map.pool->groups_offset;
	raw_close(&raw);
	older = make(order[0], 0600);
	owner = spawn(make_and_pass_on, &names);
	fd = receive_file(owner->link);
	younger = make(order[2], 0600);
	guest = spawn(keep_what_was_given, &names);
	send_file(guest->link, fd);
	close(fd);
	hear(guest);
	kill_child(owner);
	EVENTUALLY(seen(names.owner, "page_bytes") == table);
	SAME(seen(names.owner, "pools"), 1);
	/* Enough for the table of another pool, and not for its client. */
	snprintf(text[1], sizeof(text[1]), "%llu", 2ULL * table + 1);
	for (i = 0; i < 2; i++) {
		names.limit = limits[i];
		set_parameter(limits[i], text[i], old);
		owner = spawn(take_back, &names);
		hear(owner);
		set_parameter(limits[i], old, NULL);
		tell(owner, 1);
		finish_child(owner);
		listed_in_order(order, 3);
	}
	xmem_pool_close(older);
	xmem_pool_close(younger);
	names.limit = NULL;
	finish_child(spawn(take_back, &names));
	EVENTUALLY(seen(names.owner, "pools") == 1);
	tell(guest, 1);
	hear(guest);
	kill_child(guest);
	EVENTUALLY(has_nothing(names.owner) && has_nothing(names.guest));
}

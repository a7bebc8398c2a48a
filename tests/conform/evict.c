// SPDX-License-Identifier: MIT
/*
 * Ending other clients, and closing a pool. An evicted client holds nothing (P2), whether it runs,
 * sleeps or is stopped; it gets no signal, but errors say what happened. Its publications stay
 * whole for the clients that hold them (P1). Only the pool's owner and an administrator may evict
 * (P4).
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "harness.h"

#define BYTES	4096
#define BUFFERS	4

static uint64_t incarnation_of(struct xmem_pool *pool, unsigned int client)
{
	struct xmem_client_info info = { .size = sizeof(info) };

	WORKED(xmem_pool_client_info(pool, client, &info));
	return info.incarnation;
}

static int evict(struct xmem_pool *pool, unsigned int client)
{
	return xmem_pool_evict(pool, client, incarnation_of(pool, client));
}

/* ---- effects on the victim ---- */

struct scene {
	const char *name;
	uint64_t token[BUFFERS];
};

static bool get_is_over(struct xmem_pool *pool, uint64_t token)
{
	CHECK(!xmem_get(pool, token));
	return xmem_peek_last_error(NULL) == -ENOTCONN;
}

/*
 * Every call of an ended client is ENOTCONN, and the process lives on. Calls that ask the host fail
 * at once; calls that read the pages fail when the pages have been taken.
 */
static void check_it_is_over(struct xmem_pool *pool, uint64_t token, const char *word)
{
	EVENTUALLY(get_is_over(pool, token));
	error_says(word);
	REFUSED(xmem_subscribe(pool, NULL), ENOTCONN);
	error_says(word);
	SAME(xmem_pool_drain(pool, 0), -ENOTCONN);
	xmem_pool_close(pool);
}

static void hold_all(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_reader(scene->name);
	struct xmem_buffer *held[BUFFERS];
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	const volatile uint64_t *contents;
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		held[i] = xmem_get(pool, scene->token[i]);
		CHECK(held[i]);
	}
	contents = xmem_data(held[0]);
	CHECK(contents);
	/* A file is gone, and now it knows that. */
	WORKED(xmem_pool_stat(pool, &stat));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	/* It reads zeros, so all files seem to be gone. But it still maps what it has. */
	xmem_pool_stat(pool, &stat);
	CHECK(*contents || !*contents);
	for (i = 0; i < BUFFERS; i++)
		xmem_release(held[i]);
	check_it_is_over(pool, scene->token[0], "xmem evict");
	/* The client is not banned: it may join again. */
	pool = open_reader(scene->name);
	SAME(stat_of(pool).clients, 2);
}

TEST(P2_an_evicted_client_that_is_stopped_holds_nothing)
{
	struct xmem_buffer *kept[BUFFERS], *free[BUFFERS];
	struct scene scene = { .name = new_name() };
	struct xmem_pool *writer = open_writer(scene.name, BUFFERS, BYTES);
	struct child *child;
	unsigned int client, i;

	kernel_only("the daemon cannot take pages from a live process");
	xmem_pool_close(open_writer(scene.name, 1, BYTES));
	EVENTUALLY(stat_of(writer).clients == 1);
	for (i = 0; i < BUFFERS; i++)
		scene.token[i] = publish_kept(writer, i + 1, &kept[i]);
	child = spawn(hold_all, &scene);
	client = hear(child);
	for (i = 0; i < BUFFERS; i++)
		xmem_release(kept[i]);
	stop_child(child);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	WORKED(evict(writer, client));
	for (i = 0; i < BUFFERS; i++) {
		free[i] = xmem_acquire(writer, BYTES, 0);
		CHECK(free[i]);
	}
	check_quiet(writer, 1);
	SAME(xmem_pool_evict(writer, client, 2), -ESTALE);
	continue_child(child);
	tell(child, 0);
	finish_child(child);
	for (i = 0; i < BUFFERS; i++)
		xmem_release(free[i]);
	xmem_pool_close(writer);
}

/* ---- clients that sleep and poll ---- */

static void sleep_for_ever(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_reader(scene->name);
	struct xmem_subscription *all = xmem_subscribe(pool, NULL);
	struct pollfd look = { .fd = xmem_pool_poll_fd(pool), .events = POLLIN };

	CHECK(all && look.fd >= 0);
	tell_parent(xmem_pool_client(pool));
	SAME(poll(&look, 1, -1), 1);
	CHECK(look.revents & POLLHUP);
	REFUSED(xmem_receive(all, XMEM_FOREVER), ENOTCONN);
	check_it_is_over(pool, 1, "xmem evict");
}

static void receive_for_ever(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_reader(scene->name);
	struct xmem_subscription *all = xmem_subscribe(pool, NULL);

	CHECK(all);
	tell_parent(xmem_pool_client(pool));
	REFUSED(xmem_receive(all, XMEM_FOREVER), ENOTCONN);
	check_it_is_over(pool, 1, "xmem evict");
}

TEST(P9_an_evicted_client_that_sleeps_is_told)
{
	struct scene scene = { .name = new_name() };
	struct xmem_pool *writer = open_writer(scene.name, BUFFERS, BYTES);
	struct child *children[2];
	unsigned int i;

	kernel_only("the daemon cannot take pages from a live process");
	children[0] = spawn(sleep_for_ever, &scene);
	children[1] = spawn(receive_for_ever, &scene);
	for (i = 0; i < 2; i++)
		WORKED(evict(writer, hear(children[i])));
	for (i = 0; i < 2; i++)
		finish_child(children[i]);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- clients that ask the host meanwhile ---- */

/* So many threads send requests at once that most of them wait for the pool's lock. */
static void *ask_until_it_is_over(void *argument)
{
	struct xmem_grant_request grant = { .size = sizeof(grant) };
	int err;

	do
		err = raw_request(argument, XMEM_IOC_GRANT, &grant);
	while (err != -ENOTCONN);
	return NULL;
}

static void ask_in_threads(void *argument)
{
	struct scene *scene = argument;
	pthread_t thread[4];
	struct raw raw;
	unsigned int i;

	raw_start(&raw, scene->name, XMEM_ROLE_WRITER);
	for (i = 0; i < 4; i++)
		SAME(pthread_create(&thread[i], NULL, ask_until_it_is_over, &raw), 0);
	tell_parent(raw.link.join.client);
	for (i = 0; i < 4; i++)
		SAME(pthread_join(thread[i], NULL), 0);
	raw_close(&raw);
}

/* A request that waits while its client is evicted is refused, and delays no other client. */
TEST_WITHIN(P2_requests_that_wait_while_their_client_is_evicted, 60)
{
	struct scene scene = { .name = new_name() };
	struct xmem_pool *owner = open_writer(scene.name, 1, BYTES);
	unsigned int rounds = scaled(300);

	kernel_only("the daemon cannot take pages from a live process");
	while (rounds--) {
		struct child *child = spawn(ask_in_threads, &scene);

		WORKED(evict(owner, hear(child)));
		finish_child(child);
		check_quiet(owner, 1);
	}
	xmem_pool_close(owner);
}

/* ---- clients that publish meanwhile ---- */

static void publish_until_it_is_over(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_writer(scene->name, BUFFERS, BYTES);
	struct xmem_buffer *buffer;
	uint64_t stamp = 0, *word;
	int err = 0;

	tell_parent(xmem_pool_client(pool));
	while (!err) {
		buffer = xmem_acquire(pool, BYTES, 0);
		if (!buffer) {
			err = xmem_peek_last_error(NULL);
			err = err == -EAGAIN ? 0 : err;
			continue;
		}
		word = xmem_data_mut(buffer);
		if (!word) {			/* it was acquired just before the end */
			err = xmem_peek_last_error(NULL);
			xmem_release(buffer);
			continue;
		}
		fill_at(buffer, word, ++stamp);	/* this may be gone, too */
		err = xmem_publish(buffer, NULL, NULL);
	}
	SAME(err, -ENOTCONN);
	check_it_is_over(pool, 1, "xmem evict");
}

/*
 * Contents that were received before the eviction of their publisher do not change, whichever
 * clients join then.
 */
TEST_WITHIN(P1_what_an_evicted_publisher_has_published_stays, 60)
{
	struct scene scene = { .name = new_name() };
	struct xmem_pool *owner = open_writer(scene.name, 2, BYTES), *next;
	unsigned int rounds = scaled(400), i, held;
	uint64_t random = seed();

	kernel_only("the daemon cannot take pages from a live process");
	while (rounds--) {
		struct child *child = spawn(publish_until_it_is_over, &scene);
		unsigned int victim = hear(child), count = 2 + random_next(&random) % 30;
		struct xmem_subscription *from = follow(owner, victim, 0);
		struct xmem_buffer *kept[2];
		uint64_t stamp[2];

		for (i = 0; i < count; i++)
			xmem_release(receive_one(from));
		for (held = 0; held < 2; held++) {
			kept[held] = receive_one(from);
			stamp[held] = stamp_of(kept[held]);
		}
		WORKED(evict(owner, victim));
		next = open_writer(scene.name, BUFFERS, BYTES);
		for (i = 0; i < 2 * BUFFERS; i++)
			publish_stamp(next, 1ULL << 40 | i);
		for (held = 0; held < 2; held++) {
			SAME(stamp_of(kept[held]), stamp[held]);
			xmem_release(kept[held]);
		}
		/* Publications that no client has received yet are there, and whole. */
		for (;;) {
			struct xmem_buffer *left = xmem_receive(from, 0);

			if (!left)
				break;
			CHECK(stamp_of(left) > stamp[1]);
			xmem_release(left);
		}
		SAME(xmem_peek_last_error(NULL), -EPIPE);
		xmem_unsubscribe(from);
		xmem_pool_close(next);
		finish_child(child);
		check_quiet(owner, 1);
	}
	xmem_pool_close(owner);
}

/* ---- its pages ---- */

static __u64 *word_of(const struct raw *raw, unsigned int client)
{
	return &xm_ring(&raw->map, client)->reserved;
}

/* Publish once, so that the ring stays; then change its hold counts as fast as it can. */
static void count_until_it_is_over(void *argument)
{
	struct scene *scene = argument;
	unsigned int me;
	struct raw raw;
	uint64_t n;

	raw_start(&raw, scene->name, XMEM_ROLE_WRITER);
	me = raw.link.join.client;
	tell_parent(me);
	hear_parent();
	xm_store(&xm_entry(&raw.map, me, 0)->position, 1);
	xm_store_release(&xm_ring(&raw.map, me)->tail, 1);
	tell_parent(0);
	for (n = 1; xm_load(&raw.map.pool->host) & XMEM_HOST_ALIVE; n++)
		xm_store(word_of(&raw, me), n);
	raw_close(&raw);
}

static void evict_that_one(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_reader(scene->name);

	tell_parent(0);
	WORKED(evict(pool, hear_parent()));
	xmem_pool_close(pool);
}

/*
 * The host continues with a copy of the client's pages. It has all that other clients have seen in
 * the pages.
 */
TEST_WITHIN(P1_pages_of_an_evicted_client_never_go_back, 60)
{
	struct scene scene = { .name = new_name() };
	unsigned int rounds = scaled(100);
	struct raw me;

	kernel_only("the daemon cannot take pages from a live process");
	raw_start(&me, scene.name, XMEM_ROLE_READER);
	while (rounds--) {
		struct child *victim = spawn(count_until_it_is_over, &scene);
		struct child *owner = spawn(evict_that_one, &scene);
		struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
		struct xmem_unsubscribe_request done = { .size = sizeof(done) };
		uint64_t last = 0, now;

		subscribe.publisher = done.publisher = hear(victim);
		SAME(raw_request(&me, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
		tell(victim, 0);
		hear(victim);
		hear(owner);
		tell(owner, done.publisher);
		/*
		 * Readers may see old pages for longer than the client's row says that it is alive.
		 */
		while (!child_has_ended(owner)) {
			now = xm_load(word_of(&me, done.publisher));
			CHECK(now >= last);
			last = now;
		}
		finish_child(owner);
		CHECK(xm_load(word_of(&me, done.publisher)) >= last);
		finish_child(victim);
		SAME(raw_request(&me, XMEM_IOC_UNSUBSCRIBE, &done), 0);
	}
	raw_close(&me);
}

/* ---- who may evict? ---- */

#define OWNER	2101
#define OTHER	2102

static void own_a_pool(void *argument)
{
	const char *name = argument;
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .mode = 0666,
	};
	struct xmem_pool *pool;

	be_user(OWNER);
	pool = xmem_pool_open(name, &options);
	CHECK(pool);
	tell_parent(xmem_pool_client(pool));
	WORKED(evict(pool, hear_parent()));
	tell_parent(0);
	hear_parent();
	SAME(xmem_pool_drain(pool, 0), -ENOTCONN);
	error_says("xmem drain");
}

static struct xmem_pool *join_theirs(const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "%u:%s", OWNER, name);
	return xmem_pool_open(full, NULL);
}

static void be_a_guest(void *argument)
{
	struct xmem_pool *pool;

	be_user(OTHER);
	pool = join_theirs(argument);
	CHECK(pool);
	SAME(evict(pool, 0), -EPERM);
	error_says("CAP_SYS_ADMIN");
	SAME(xmem_pool_drain(pool, 0), -EPERM);
	SAME(xmem_pool_drain(pool, XMEM_DRAIN_EVICTS), -EPERM);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	check_it_is_over(pool, 1, "xmem evict");
}

TEST(P4_the_owner_and_the_administrator_evict)
{
	const char *name = new_name();
	struct child *owner, *guest;
	struct xmem_pool *root;

	several_users_or_skip();
	owner = spawn(own_a_pool, (void *)name);
	SAME(hear(owner), 0);
	guest = spawn(be_a_guest, (void *)name);
	tell(owner, hear(guest));
	hear(owner);
	tell(guest, 0);
	finish_child(guest);
	root = join_theirs(name);
	CHECK(root);
	SAME(xmem_pool_drain(root, XMEM_DRAIN_EVICTS), 1);
	SAME(stat_of(root).clients, 1);
	tell(owner, 0);
	finish_child(owner);
	REFUSED(join_theirs(name), ESHUTDOWN);
	xmem_pool_close(root);
	EVENTUALLY(!join_theirs(name) && xmem_peek_last_error(NULL) == -ENOENT);
}

/* ---- both hosts ---- */

TEST(API_evict_refuses_what_makes_no_sense)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name), *other = open_reader(name);
	unsigned int id = xmem_pool_client(other), own = xmem_pool_client(pool);
	uint64_t incarnation = incarnation_of(pool, id);
	struct xmem_evict_request why = { .size = sizeof(why), .op = XMEM_OP_WHY };
	struct raw raw;

	SAME(xmem_pool_evict(NULL, id, incarnation), -EINVAL);
	SAME(xmem_pool_evict(pool, own, incarnation_of(pool, own)), -EINVAL);
	SAME(xmem_pool_evict(pool, id, 0), -EINVAL);
	SAME(xmem_pool_evict(pool, 1 << 20, incarnation), -EINVAL);
	SAME(xmem_pool_evict(pool, id, incarnation + 1), -ESTALE);
	SAME(xmem_pool_evict(pool, id + 1, incarnation), -ESTALE);
	if (!on_kernel()) {
		SAME(xmem_pool_evict(pool, id, incarnation), -EOPNOTSUPP);
		error_says("live process");
		SAME(xmem_pool_drain(pool, XMEM_DRAIN_EVICTS), -EOPNOTSUPP);
	}
	/* None of these requests has changed anything: the raw client can join. */
	SAME(stat_of(other).clients, 2);
	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &why), 0);
	SAME(why.reason, XMEM_REASON_NONE);
	why.client = 1;
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &why), -EINVAL);
	why.op = XMEM_OP_DRAIN;
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &why), -EINVAL);
	why = (struct xmem_evict_request){ .size = sizeof(why), .op = XMEM_OP_DRAIN, .evicted = 1 };
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &why), -EINVAL);
	why = (struct xmem_evict_request){ .size = sizeof(why), .op = XMEM_OP_DRAIN_EVICT + 1 };
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &why), -EINVAL);
	why = (struct xmem_evict_request){ .size = sizeof(why), .client = 1 };
	why.incarnation = incarnation;
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &why), -EINVAL);	/* no reason */
	raw_close(&raw);
	xmem_pool_close(other);
	SAME(xmem_pool_evict(pool, id, incarnation), -ESTALE);
	xmem_pool_close(pool);
}

TEST(API_a_drained_pool_is_joined_by_nobody)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING,
	};
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *all = xmem_subscribe(reader, NULL);
	int fd = xmem_pool_fd(pool), reads = xmem_pool_fd_narrow(fd, XMEM_MAY_READ);

	CHECK(all && fd >= 0 && reads >= 0);
	SAME(xmem_pool_drain(NULL, 0), -EINVAL);
	SAME(xmem_pool_drain(pool, XMEM_DRAIN_EVICTS << 1), -EINVAL);
	SAME(xmem_pool_drain(pool, 0), 0);
	SAME(xmem_pool_drain(pool, 0), 0);
	REFUSED(xmem_pool_open(name, NULL), ESHUTDOWN);
	error_says("drained");
	REFUSED(xmem_pool_open(name, &options), ESHUTDOWN);
	REFUSED(open_by_fd(fd, 0), ESHUTDOWN);
	REFUSED(open_by_fd(reads, 0), ESHUTDOWN);
	/* Clients in the pool continue. */
	publish_stamp(pool, 7);
	xmem_release(receive_one(all));
	SAME(stat_of(pool).clients, 2);
	close(fd);
	close(reads);
	xmem_unsubscribe(all);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
	/* The pool ends, and then this name has a new one. */
	options.flags = XMEM_OPEN_EXCLUSIVE;
	EVENTUALLY((pool = xmem_pool_open(name, &options)));
	SAME(stat_of(pool).clients, 1);
	xmem_pool_close(pool);
}

/*
 * Nobody can join a drained pool, so it does not keep its name: a new pool gets the name, and the
 * old one continues.
 */
TEST(API_a_drained_pool_gives_its_name_away)
{
	struct xmem_pool_options exclusive = {
		.size = sizeof(exclusive), .flags = XMEM_OPEN_WRITER | XMEM_OPEN_EXCLUSIVE,
	};
	struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};
	const char *name = new_name();
	struct xmem_pool *old = open_writer(name, 2, BYTES), *reader = open_reader(name), *new;
	struct xmem_pool *other;
	struct xmem_subscription *all = xmem_subscribe(reader, NULL);
	struct xmem_host_info info = { .size = sizeof(info) };
	uint32_t pools;

	CHECK(all);
	REFUSED(xmem_pool_open(name, &exclusive), EEXIST);
	WORKED(xmem_pool_drain(old, 0));
	WORKED(xmem_host_query(&info));
	pools = info.pools;
	new = xmem_pool_open(name, &exclusive);
	CHECK(new);
	REFUSED(xmem_pool_open(name, &exclusive), EEXIST);
	WORKED(xmem_host_query(&info));
	SAME(info.pools, pools);		/* the list of pools has only the new one */
	other = xmem_pool_open(name, &existing);
	CHECK(other);
	SAME(stat_of(new).clients, 2);
	SAME(stat_of(old).clients, 2);
	publish_stamp(old, 7);
	xmem_release(receive_one(all));
	xmem_pool_close(other);
	xmem_pool_close(new);
	REFUSED(xmem_pool_open(name, &existing), ENOENT);	/* it does not get the name back */
	publish_stamp(old, 8);
	xmem_release(receive_one(all));
	xmem_unsubscribe(all);
	xmem_pool_close(reader);
	xmem_pool_close(old);
}

/* ---- clients that are still joining ---- */

#define ROUNDS	600	/* scaled; only on the module, so in the virtual machine */
#define JOINERS	4
#define HOGS	2

static void hog(void *unused)
{
	for (;;)
		;
}

/*
 * Join again and again, so that it is nearly always in the middle of a join: other processes use
 * the processors.
 */
static void join_slowly(void *name)
{
	const struct sched_param none = { 0 };
	struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};

	CHECK(!sched_setscheduler(0, SCHED_IDLE, &none));
	for (;;)
		xmem_pool_close(xmem_pool_open(name, &existing));
}

/* The pool ends with this process, and with all clients that this process has ended. */
static void drain_and_end(void *name)
{
	struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};
	struct xmem_pool_options new = {
		.size = sizeof(new), .flags = XMEM_OPEN_WRITER | XMEM_OPEN_EXCLUSIVE,
	};
	struct xmem_pool *pool;
	int i;

	CHECK(nice(-20) == -20);
	/* The last pool exists until the client that was joining it has ended. */
	EVENTUALLY((pool = xmem_pool_open(name, &new)));
	for (i = 0; i < 12; i++)
		CHECK(xmem_pool_open(name, &existing));
	sched_yield();
	CHECK(xmem_pool_drain(pool, XMEM_DRAIN_EVICTS) >= 0);
	_exit(0);
}

/* A join goes on with the pages of the pool, so a pool ends only after the clients that join it. */
TEST_WITHIN(P4_evicted_in_the_middle_of_its_join, 60)
{
	struct child *others[HOGS + JOINERS];
	const char *name = new_name();
	unsigned int i;

	kernel_only("the daemon evicts no living process");
	for (i = 0; i < HOGS + JOINERS; i++)
		others[i] = spawn(i < HOGS ? hog : join_slowly, (void *)name);
	for (i = 0; i < scaled(ROUNDS); i++)
		finish_child(spawn(drain_and_end, (void *)name));
	for (i = 0; i < HOGS + JOINERS; i++)
		kill_child(others[i]);
	EVENTUALLY(!xmem_pool_open(name, &(struct xmem_pool_options){
		.size = sizeof(struct xmem_pool_options), .flags = XMEM_OPEN_EXISTING,
	}) && xmem_peek_last_error(NULL) == -ENOENT);
}

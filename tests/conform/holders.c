// SPDX-License-Identifier: MIT
/*
 * Which clients does an owner let hold its buffers, in a pool with clients of several users? Its
 * subscribers, those that receive from a stage that forwards the buffers, and those that it names.
 * Their holds keep the buffer, whoever dies. Holds that other clients claim to have keep nothing.
 * core/holders.c has the rule.
 */
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define OWNER	2211
#define STAGE	2212
#define READER	2213
#define BYTES	4096

struct scene {
	const char *name;
	uint64_t token;			/* of the owner's publication */
};

static struct xmem_pool *join(const struct scene *scene, uint32_t flags, const char *label)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = flags | XMEM_OPEN_EXISTING, .label = label,
	};
	struct xmem_pool *pool;
	char full[64];

	snprintf(full, sizeof(full), "%u:%s", OWNER, scene->name);
	pool = xmem_pool_open(full, &options);
	CHECK(pool);
	return pool;
}

static struct xmem_subscription *follow_label(struct xmem_pool *pool, const char *label)
{
	struct xmem_subscribe_options options = { .size = sizeof(options), .label = label };
	struct xmem_subscription *in = xmem_subscribe(pool, &options);

	CHECK(in);
	return in;
}

/* The only client with this label. */
static struct xmem_client_info find(struct xmem_pool *pool, const char *label)
{
	struct xmem_client_info info = { .size = sizeof(info) };
	uint32_t id;

	for (id = 0; id < 64; id++)
		if (!xmem_pool_client_info(pool, id, &info) && !strcmp(info.label, label))
			return info;
	FAIL("no client has the label %s", label);
}

static struct xmem_pool *make(const struct scene *scene)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .mode = 0666,
		.label = "owner",
	};
	struct xmem_pool *pool = xmem_pool_open(scene->name, &options);

	CHECK(pool);
	return pool;
}

/* Publish one buffer when the test says so. Later, report whether an acquire finds it again. */
static void own(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_buffer *kept;
	struct xmem_pool *pool;

	be_user(OWNER);
	pool = make(scene);
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	tell_parent(0);
	hear_parent();
	tell_parent(publish_kept(pool, 7, &kept));
	for (;;) {
		uint64_t what = hear_parent();
		struct xmem_client_info reader;
		struct xmem_buffer *next;

		if (what == 0)
			break;
		if (what == 1 && kept) {
			xmem_release(kept);
			kept = NULL;
		}
		if (what == 2) {	/* let the reader in */
			reader = find(pool, "reader");
			WORKED(xmem_pool_grant(pool, reader.id, reader.incarnation));
			tell_parent(1);
			continue;
		}
		next = xmem_acquire(pool, BYTES, 0);
		tell_parent(!!next);
		xmem_release(next);
	}
	xmem_pool_close(pool);
}

/* Receive one buffer from the owner, and forward it in its own ring when the test says so. */
static void stage(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_subscription *in;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;

	be_user(STAGE);
	pool = join(scene, XMEM_OPEN_WRITER, "stage");
	in = follow_label(pool, "owner");
	tell_parent(0);
	buffer = receive_one(in);
	tell_parent(0);
	hear_parent();
	WORKED(xmem_publish(buffer, NULL, NULL));
	tell_parent(0);
	hear_parent();
	xmem_pool_close(pool);
}

static void check_refused(struct xmem_pool *pool, uint64_t token)
{
	REFUSED(xmem_get(pool, token), EACCES);
	error_says("xmem_pool_grant");
	SAME(xmem_add_ref(pool, token), -EACCES);
	SAME(xmem_drop_ref(pool, token), -EACCES);
}

static struct child *start(struct scene *scene)
{
	struct child *owner;

	several_users_or_skip();
	scene->name = new_name();
	owner = spawn(own, scene);
	hear(owner);
	return owner;
}

static void publish(struct scene *scene, struct child *owner)
{
	tell(owner, 0);
	scene->token = hear(owner);
}

static bool finds(struct child *owner)
{
	tell(owner, 1);
	return hear(owner);
}

/* ---- granted ---- */

static void get_what_is_granted(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;

	be_user(READER);
	pool = join(scene, XMEM_OPEN_READER, "reader");
	check_refused(pool, scene->token);
	SAME(xmem_pool_grant(pool, find(pool, "owner").id, 1), -EPERM);
	tell_parent(0);
	hear_parent();
	buffer = xmem_get(pool, scene->token);
	CHECK(buffer);
	SAME(stamp_of(buffer), 7);
	tell_parent(0);
	hear_parent();
	SAME(stamp_of(buffer), 7);
	xmem_release(buffer);
	tell_parent(0);
	hear_parent();
}

TEST(P4_a_token_is_good_for_who_is_let_in)
{
	struct scene scene;
	struct child *owner = start(&scene), *reader;

	publish(&scene, owner);
	reader = spawn(get_what_is_granted, &scene);
	hear(reader);
	tell(owner, 2);
	SAME(hear(owner), 1);
	tell(reader, 0);
	hear(reader);
	CHECK(!finds(owner));
	tell(reader, 0);
	hear(reader);
	CHECK(finds(owner));
	tell(owner, 0);
	tell(reader, 0);
	finish_child(owner);
	finish_child(reader);
}

TEST(P1_a_client_let_in_later_holds_a_dead_owners_buffer)
{
	struct scene scene;
	struct child *owner = start(&scene), *reader;
	struct xmem_pool_info info = { .size = sizeof(info) };
	struct xmem_pool *pool;

	publish(&scene, owner);
	pool = join(&scene, 0, "test");
	reader = spawn(get_what_is_granted, &scene);
	hear(reader);
	tell(owner, 2);
	SAME(hear(owner), 1);
	tell(reader, 0);
	hear(reader);
	kill_child(owner);
	/* The client reads the buffer once more, and releases it. */
	WORKED(xmem_pool_stat(pool, &info));
	SAME(info.attached, 1);
	tell(reader, 0);
	hear(reader);
	EVENTUALLY(!xmem_pool_stat(pool, &info) && !info.attached);
	tell(reader, 0);
	finish_child(reader);
	xmem_pool_close(pool);
}

/* ---- forwarded ---- */

/* A reader that follows only the stage. */
static void receive_what_is_forwarded(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_subscription *in;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;

	be_user(READER);
	pool = join(scene, 0, "reader");
	in = follow_label(pool, "stage");
	tell_parent(0);
	hear_parent();
	buffer = receive_one(in);
	SAME(stamp_of(buffer), 7);
	SAME(sub_info(in).lost, 0);
	tell_parent(0);
	hear_parent();
	SAME(stamp_of(buffer), 7);
	xmem_release(buffer);
	tell_parent(0);
	hear_parent();
}

TEST(P1_strangers_hold_what_is_forwarded_to_them)
{
	struct scene scene;
	struct child *owner = start(&scene), *middle = spawn(stage, &scene), *reader;

	hear(middle);
	reader = spawn(receive_what_is_forwarded, &scene);
	hear(reader);
	publish(&scene, owner);
	hear(middle);
	/* The reader has not been given the buffer, and may not have it. */
	tell(middle, 0);
	hear(middle);
	tell(reader, 0);
	hear(reader);
	CHECK(!finds(owner));
	kill_child(middle);
	CHECK(!finds(owner));
	tell(reader, 0);
	hear(reader);
	CHECK(finds(owner));
	tell(owner, 0);
	tell(reader, 0);
	finish_child(owner);
	finish_child(reader);
}

TEST(P1_strangers_receive_what_came_before_from_a_stage)
{
	struct scene scene;
	struct child *owner = start(&scene), *middle = spawn(stage, &scene), *reader;

	hear(middle);
	publish(&scene, owner);
	hear(middle);
	kill_child(owner);
	/* When the owner's subscribers are let in, it has ended and its buffer is the host's. */
	reader = spawn(receive_what_is_forwarded, &scene);
	hear(reader);
	tell(middle, 0);
	hear(middle);
	tell(reader, 0);
	hear(reader);
	kill_child(middle);
	tell(reader, 0);
	hear(reader);
	tell(reader, 0);
	finish_child(reader);
}

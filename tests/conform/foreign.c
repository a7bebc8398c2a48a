// SPDX-License-Identifier: MIT
/*
 * A client of another user than the pool's owner. Its holds count only where it can have been given
 * the buffer: for publications of its own user's writers, and after it has subscribed. Before that,
 * it gets nothing by a token, and the error says so (P4). holders.c has more of this, and
 * tests/kernel/exhaust.c has attacks.
 */
#include <unistd.h>

#include "harness.h"

#define OWNER	2201
#define OTHER	2202
#define BYTES	4096

struct scene {
	const char *name;
	uint64_t token;			/* the owner's; later, its own writer's */
};

static struct xmem_pool *join(const struct scene *scene, uint32_t flags)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = flags | XMEM_OPEN_EXISTING,
	};
	struct xmem_pool *pool;
	char full[64];

	snprintf(full, sizeof(full), "%u:%s", OWNER, scene->name);
	pool = xmem_pool_open(full, &options);
	CHECK(pool);
	return pool;
}

/* Publish one buffer, and report whether an acquire finds another when the test asks. */
static void own(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .mode = 0666,
	};
	struct xmem_buffer *kept, *next;
	struct xmem_pool *pool;

	be_user(OWNER);
	pool = xmem_pool_open(scene->name, &options);
	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	tell_parent(publish_kept(pool, 7, &kept));
	hear_parent();
	xmem_release(kept);
	for (;;) {
		next = xmem_acquire(pool, BYTES, 0);
		tell_parent(!!next);
		if (next)
			break;
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
		hear_parent();
	}
	hear_parent();
}

static void check_refused(struct xmem_pool *pool, uint64_t token)
{
	REFUSED(xmem_get(pool, token), EACCES);
	error_says("subscribe first");
	REFUSED(xmem_get(pool, token ^ 0xffff), ESTALE);	/* no such slot */
	SAME(xmem_add_ref(pool, token), -EACCES);
	CHECK(xmem_pool_holds(pool, xmem_pool_client(pool), token & 0xffff) == 0);
}

static void read_as_another(void *argument)
{
	struct scene *scene = argument;
	struct xmem_subscription *all;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;

	be_user(OTHER);
	pool = join(scene, 0);
	check_refused(pool, scene->token);
	all = xmem_subscribe(pool, NULL);
	CHECK(all);
	/* Once a client has been let in, it stays so. */
	xmem_unsubscribe(all);
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

static struct child *start(struct scene *scene)
{
	struct child *owner;

	several_users_or_skip();
	scene->name = new_name();
	owner = spawn(own, scene);
	scene->token = hear(owner);
	return owner;
}

TEST(P4_a_foreign_reader_holds_once_it_has_subscribed)
{
	struct scene scene;
	struct child *owner = start(&scene), *reader = spawn(read_as_another, &scene);

	hear(reader);
	tell(owner, 0);
	SAME(hear(owner), 0);		/* its only buffer is held */
	tell(reader, 0);
	hear(reader);
	tell(owner, 0);
	SAME(hear(owner), 1);
	tell(owner, 0);
	tell(reader, 0);
	finish_child(owner);
	finish_child(reader);
}

/* ---- beside a writer of its own user ---- */

static void read_beside_a_writer(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *early, *writer, *late;
	struct xmem_buffer *kept, *buffer;
	uint64_t token;

	be_user(OTHER);
	early = join(scene, 0);
	check_refused(early, scene->token);
	writer = join(scene, XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	token = publish_kept(writer, 9, &kept);
	late = join(scene, 0);
	buffer = xmem_get(early, token);
	CHECK(buffer);
	xmem_release(buffer);
	buffer = xmem_get(late, token);
	CHECK(buffer);
	xmem_release(kept);
	SAME(stamp_of(buffer), 9);
	xmem_release(buffer);
	xmem_pool_close(writer);
	xmem_pool_close(late);
	/* They may hold no buffers of the pool's owner, neither then nor now. */
	check_refused(early, scene->token);
	xmem_pool_close(early);
	late = join(scene, 0);
	check_refused(late, scene->token);
}

TEST(P4_a_foreign_reader_holds_beside_a_writer_of_its_user)
{
	struct scene scene;
	struct child *owner = start(&scene);

	finish_child(spawn(read_beside_a_writer, &scene));
	tell(owner, 0);
	SAME(hear(owner), 1);
	tell(owner, 0);
	finish_child(owner);
}

// SPDX-License-Identifier: MIT
/*
 * A ring keeps limbo for its subscribers, after its publisher has forwarded the buffers of ended
 * clients.
 */
#include "harness.h"

#define BYTES	4096
#define BUFFERS	4

struct scene {
	const char *name;
	struct xmem_pool *owner;		/* of the pool; it follows the stage */
	struct child *publisher;
};

static void forward_and_stay(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool *pool = OPEN(scene->name, .flags = XMEM_OPEN_WRITER, .label = "stage");
	struct xmem_subscription *in = follow(pool, hear_parent(), 0);
	unsigned int i;

	tell_parent(xmem_pool_client(pool));
	for (i = 0; i < BUFFERS; i++)
		WORKED(xmem_publish(receive_one(in), NULL, NULL));
	tell_parent(0);
	/* The stage holds nothing, and goes on whatever becomes of its ring. */
	SAME(hear_parent(), 1);
	SAME(xmem_pool_drain(pool, 1u << 31), -EINVAL);
	xmem_pool_close(pool);
	tell_parent(0);
}

static void publish_when_told(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool *pool = open_writer(scene->name, BUFFERS, BYTES);
	unsigned int i;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	for (i = 0; i < BUFFERS; i++)
		publish_stamp(pool, i + 1);
	tell_parent(0);
	hear_parent();
}

/*
 * A stage forwards all publications of a publisher, which dies. Nobody holds any of them, and the
 * reader behind the stage has not received them.
 */
static struct xmem_subscription *forward_limbo(struct scene *scene, struct child **ret_stage)
{
	struct xmem_subscription *out;
	struct child *stage;
	unsigned int publisher;

	scene->publisher = spawn(publish_when_told, scene);
	publisher = hear(scene->publisher);
	stage = spawn(forward_and_stay, scene);
	tell(stage, publisher);
	out = follow(scene->owner, hear(stage), 0);
	tell(scene->publisher, 1);
	SAME(hear(scene->publisher), 0);
	SAME(hear(stage), 0);
	kill_child(scene->publisher);
	*ret_stage = stage;
	return out;
}

/* Rings keep any amount, until it has been received. */
TEST(P10_a_ring_keeps_limbo_for_late_subscribers)
{
	struct scene s = { .name = new_name() };
	struct xmem_subscription *out;
	struct child *stage;
	struct xmem_buffer *b;
	unsigned int i;

	s.owner = open_reader(s.name);
	out = forward_limbo(&s, &stage);
	for (i = 0; i < BUFFERS; i++) {
		b = receive_one(out);
		SAME(stamp_of(b), i + 1);
		xmem_release(b);
	}
	SAME(sub_info(out).lost, 0);
	tell(stage, 1);
	SAME(hear(stage), 0);
	finish_child(stage);
	xmem_unsubscribe(out);
	check_quiet(s.owner, 1);
	xmem_pool_close(s.owner);
}

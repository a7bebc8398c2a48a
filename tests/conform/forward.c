// SPDX-License-Identifier: MIT
/*
 * Forwarding: a stage of a pipeline publishes what it has received. There is an owner, a stage
 * that follows it, and a reader that follows the stage; each of them may end at any time, and the
 * contents stay for those that are left.
 */
#include "harness.h"

#define BYTES	4096

/* One process, three clients. */
struct line {
	const char *name;
	struct xmem_pool *owner, *stage, *reader;
	struct xmem_subscription *in, *out;	/* the stage's, the reader's */
};

static struct xmem_pool *open_stage(const char *name, int64_t wait_bound_ns)
{
	return OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = wait_bound_ns,
		    .label = "stage");
}

/* An owner with @buffers buffers. @flags: of the reader's subscription. */
static struct line line_make(unsigned int buffers, uint32_t flags)
{
	struct line line = { .name = new_name() };

	line.owner = OPEN(line.name, .flags = XMEM_OPEN_WRITER, .ring = 8, .clients = 8,
			  .wait_bound_ns = 60 * SECOND);
	WORKED(xmem_preallocate(line.owner, buffers, BYTES));
	line.stage = open_stage(line.name, 60 * SECOND);
	line.reader = open_reader(line.name);
	line.in = follow(line.stage, xmem_pool_client(line.owner), XMEM_SUBSCRIBE_WAITS);
	line.out = follow(line.reader, xmem_pool_client(line.stage), flags);
	return line;
}

static void line_end(struct line *line)
{
	xmem_unsubscribe(line->in);
	xmem_unsubscribe(line->out);
	xmem_pool_close(line->reader);
	xmem_pool_close(line->stage);
	check_quiet(line->owner, 1);
	xmem_pool_close(line->owner);
}

/* The stage receives one publication and passes it on. */
static uint64_t pass_on(struct line *line)
{
	struct xmem_buffer *b = receive_one(line->in);
	uint64_t token = xmem_token(b), forwarded;

	WORKED(xmem_forward(b, NULL, 0, &forwarded));
	SAME(forwarded, token);
	REFUSED(xmem_data(b), EBADF);
	return token;
}

TEST(P1_forwarded_contents_are_the_same_buffer)
{
	struct line line = line_make(2, 0);
	uint64_t token = publish_stamp(line.owner, 7);
	struct xmem_buffer *b;

	SAME(pass_on(&line), token);
	b = receive_one(line.out);
	SAME(xmem_token(b), token);
	SAME(stamp_of(b), 7);
	SAME(xmem_publisher(b), xmem_pool_client(line.stage));
	SAME(xmem_sequence(b), 0);
	SAME(xmem_size(b), BYTES);
	xmem_release(b);
	line_end(&line);
}

TEST(P1_forwarded_contents_stay_for_who_is_waited_for)
{
	struct line line = line_make(2, XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *b;
	unsigned int i;

	publish_stamp(line.owner, 1);
	publish_stamp(line.owner, 2);
	pass_on(&line);
	pass_on(&line);
	/* Nobody holds them, and the owner's subscribers have passed them. */
	SAME(stat_of(line.owner).holds, 0);
	for (i = 0; i < 3; i++)
		REFUSED(xmem_acquire(line.owner, BYTES, 0), EAGAIN);
	for (i = 1; i <= 2; i++) {
		b = receive_one(line.out);
		SAME(stamp_of(b), i);
		REFUSED(xmem_acquire(line.owner, BYTES, 0), EAGAIN);
		xmem_release(b);
		publish_stamp(line.owner, 10 + i);
		pass_on(&line);
	}
	for (i = 1; i <= 2; i++) {
		b = receive_one(line.out);
		SAME(stamp_of(b), 10 + i);
		xmem_release(b);
	}
	SAME(xmem_subscription_lost(line.out), 0);
	line_end(&line);
}

TEST(P3_forwarded_contents_stay_for_others_until_the_owner_has_nothing_else)
{
	struct line line = line_make(3, 0);
	struct xmem_buffer *b, *held;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		publish_stamp(line.owner, i);
		pass_on(&line);
	}
	/* One is free, and is taken first. */
	publish_stamp(line.owner, 2);
	pass_on(&line);
	b = receive_one(line.out);
	SAME(stamp_of(b), 0);
	/* Nothing else is left: the oldest that is not held goes, and no other. */
	held = xmem_acquire(line.owner, BYTES, 0);
	CHECK(held);
	xmem_release(b);
	b = receive_one(line.out);
	SAME(stamp_of(b), 2);
	SAME(xmem_subscription_lost(line.out), 1);
	xmem_release(b);
	xmem_release(held);
	line_end(&line);
}

/* ---- an owner that waits ---- */

static void acquire_in_vain_then_not(void *argument)
{
	struct line *line = argument;
	struct xmem_pool *owner = open_writer(line->name, 1, BYTES);
	struct xmem_buffer *b;

	tell_parent(xmem_pool_client(owner));
	hear_parent();
	publish_stamp(owner, 5);
	tell_parent(1);
	hear_parent();
	REFUSED(xmem_acquire(owner, BYTES, 0), EAGAIN);
	tell_parent(2);
	b = xmem_acquire(owner, BYTES, 10 * SECOND);
	CHECK(b);
	xmem_release(b);
	xmem_pool_close(owner);
}

TEST(P9_an_owner_that_waits_is_woken_when_the_reader_lets_go)
{
	struct line line = line_make(1, XMEM_SUBSCRIBE_WAITS);
	struct child *child = spawn(acquire_in_vain_then_not, &line);
	struct xmem_subscription *in = follow(line.stage, (int)hear(child), 0);
	struct xmem_buffer *b;

	tell(child, 1);
	SAME(hear(child), 1);
	b = receive_one(in);
	WORKED(xmem_forward(b, NULL, 0, NULL));
	tell(child, 1);
	SAME(hear(child), 2);
	b = receive_one(line.out);
	xmem_release(b);
	finish_child(child);
	xmem_unsubscribe(in);
	line_end(&line);
}

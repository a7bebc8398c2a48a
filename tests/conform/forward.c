// SPDX-License-Identifier: MIT
/*
 * Forwarding: a stage of a pipeline publishes what it has received. The scenario has an owner, a
 * stage that follows it, and a reader that follows the stage. Each of them may end at any time, and
 * the contents stay for those that are left.
 */
#include <poll.h>

#include "line.h"

struct xmem_pool *open_stage(const char *name, int64_t wait_bound_ns)
{
	return OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = wait_bound_ns,
		    .label = "stage");
}

/* An owner with @buffers buffers. @flags are those of the reader's subscription. */
struct line line_make(unsigned int buffers, uint32_t flags)
{
	struct line line = { .name = new_name() };

	line.owner = OPEN(line.name, .flags = XMEM_OPEN_WRITER, .ring = 8, .clients = 8,
			  .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(line.owner, BYTES, buffers, NULL));
	line.stage = open_stage(line.name, 3600 * SECOND);
	line.reader = open_reader(line.name);
	line.in = follow(line.stage, xmem_pool_client(line.owner), XMEM_SUBSCRIBE_WAITS);
	line.out = follow(line.reader, xmem_pool_client(line.stage), flags);
	return line;
}

void line_end(struct line *line)
{
	xmem_unsubscribe(line->in);
	xmem_unsubscribe(line->out);
	xmem_pool_close(line->reader);
	xmem_pool_close(line->stage);
	check_quiet(line->owner, 1);
	xmem_pool_close(line->owner);
}

/* The stage receives one publication and passes it on. */
uint64_t pass_on(struct line *line)
{
	struct xmem_buffer *b = receive_one(line->in);
	uint64_t token = xmem_token(b), forwarded;

	WORKED(xmem_publish(b, NULL, &forwarded));
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
	SAME(info_of(b).publisher, xmem_pool_client(line.stage));
	SAME(info_of(b).sequence, 0);
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
	/* No client holds them, and the owner's subscribers have passed them. */
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
	SAME(sub_info(line.out).lost, 0);
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
	/* One buffer is free, and is taken first. */
	publish_stamp(line.owner, 2);
	pass_on(&line);
	b = receive_one(line.out);
	SAME(stamp_of(b), 0);
	/*
	 * Nothing else is left: the oldest publication that nobody holds is evicted, and no other.
	 */
	held = xmem_acquire(line.owner, BYTES, 0);
	CHECK(held);
	xmem_release(b);
	b = receive_one(line.out);
	SAME(stamp_of(b), 2);
	SAME(sub_info(line.out).lost, 1);
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
	b = xmem_acquire(owner, BYTES, patience_ns());
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
	WORKED(xmem_publish(b, NULL, NULL));
	tell(child, 1);
	SAME(hear(child), 2);
	b = receive_one(line.out);
	xmem_release(b);
	finish_child(child);
	xmem_unsubscribe(in);
	line_end(&line);
}

/* ---- deaths ---- */

#define NO_STEP	(ANY_STEP - 1)

static void be_owner(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_writer(part->name, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 1);
	publish_stamp(pool, 2);
	tell_parent(1);
	hear_parent();
}

static void be_stage(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_stage(part->name, 3600 * SECOND);
	struct xmem_subscription *in = follow(pool, part->follows, 0);
	unsigned int i;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	if (part->step != NO_STEP)
		at_step(part->step, part->after, STEP_KILL, NULL);
	for (i = 0; i < 2; i++)
		WORKED(xmem_publish(receive_one(in), NULL, NULL));
	no_step();
	tell_parent(1);
	hear_parent();
}

/* An owner, a stage, and this process as the reader. */
struct cast {
	struct part owner_part, stage_part;
	struct xmem_pool *pool;
	struct child *owner, *stage;
	struct xmem_subscription *out;
};

static void cast_make(struct cast *cast, int step, unsigned int after, uint32_t flags)
{
	const char *name = new_name();

	cast->pool = OPEN(name, .clients = 8, .ring = 8);
	cast->owner_part = (struct part){ .name = name };
	cast->owner = spawn(be_owner, &cast->owner_part);
	cast->stage_part = (struct part){ name, (int)hear(cast->owner), step, after };
	cast->stage = spawn(be_stage, &cast->stage_part);
	cast->out = follow(cast->pool, (int)hear(cast->stage), flags);
	tell(cast->owner, 1);
	SAME(hear(cast->owner), 1);
	tell(cast->stage, 1);
}

static void receive_stamp(struct cast *cast, uint64_t stamp)
{
	struct xmem_buffer *b = receive_one(cast->out);

	SAME(stamp_of(b), stamp);
	xmem_release(b);
}

static void nothing_is_left(struct cast *cast)
{
	REFUSED(xmem_receive(cast->out, patience_ns()), EPIPE);
	xmem_unsubscribe(cast->out);
	check_quiet(cast->pool, 1);
	EVENTUALLY(stat_of(cast->pool).attached == 0);
	EVENTUALLY(stat_of(cast->pool).zombies == 0);
	xmem_pool_close(cast->pool);
}

enum { OWNER = 1, STAGE = 2, RECEIVES = 3 };

/* The owner ends, the stage ends, and the reader receives one, in this order. */
static void in_order(const int *order)
{
	struct cast cast;
	unsigned int i;

	cast_make(&cast, NO_STEP, 0, XMEM_SUBSCRIBE_WAITS);
	SAME(hear(cast.stage), 1);
	for (i = 0; i < 3; i++) {
		if (order[i] == OWNER)
			kill_child(cast.owner);
		else if (order[i] == STAGE)
			kill_child(cast.stage);
		else
			receive_stamp(&cast, 1);
	}
	receive_stamp(&cast, 2);
	SAME(sub_info(cast.out).lost, 0);
	nothing_is_left(&cast);
}

TEST_WITHIN(P3_forwarded_contents_survive_the_owner_and_the_stage_in_every_order, 60)
{
	static const int orders[][3] = {
		{ OWNER, STAGE, RECEIVES }, { STAGE, OWNER, RECEIVES },
		{ OWNER, RECEIVES, STAGE }, { STAGE, RECEIVES, OWNER },
		{ RECEIVES, OWNER, STAGE }, { RECEIVES, STAGE, OWNER },
	};
	unsigned int i;

	for (i = 0; i < sizeof(orders) / sizeof(*orders); i++)
		in_order(orders[i]);
}

/* Publications in flight in the stage's ring go with the ring's last subscriber. */
TEST(P2_forwarded_contents_go_with_their_last_reader)
{
	struct cast cast;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		cast_make(&cast, NO_STEP, 0, XMEM_SUBSCRIBE_WAITS);
		SAME(hear(cast.stage), 1);
		kill_child(cast.owner);
		if (i)
			kill_child(cast.stage);
		EVENTUALLY(stat_of(cast.pool).limbo == 2);
		xmem_unsubscribe(cast.out);
		EVENTUALLY(stat_of(cast.pool).attached == 0);
		if (!i)
			kill_child(cast.stage);
		check_quiet(cast.pool, 1);
		xmem_pool_close(cast.pool);
	}
}

static void stage_dies_at(int step, unsigned int after)
{
	/* The second publication is complete if the stage was killed after writing its entry. */
	bool complete = step == XM_STEP_PUBLISH_ENTRY || step == XM_STEP_PUBLISH_TAIL ||
			step == XM_STEP_PUT_BEFORE || step == XM_STEP_PUT_DROPPED;
	struct cast cast;
	unsigned int i;

	cast_make(&cast, step, after, XMEM_SUBSCRIBE_WAITS);
	died_of_kill(cast.stage);
	kill_child(cast.owner);
	for (i = 0; i < after + complete; i++)
		receive_stamp(&cast, i + 1);
	SAME(sub_info(cast.out).lost, 0);
	nothing_is_left(&cast);
}

TEST_WITHIN(P3_stage_killed_at_every_step_of_a_forward, 60)
{
	static const int steps[] = {
		XM_STEP_FORWARD_NOTED, XM_STEP_PUBLISH_OPEN, XM_STEP_PUBLISH_FIELDS,
		XM_STEP_PUBLISH_ENTRY, XM_STEP_PUBLISH_TAIL, XM_STEP_PUT_BEFORE,
		XM_STEP_PUT_DROPPED,
	};
	unsigned int i, after;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		for (after = 0; after < 2; after++)
			stage_dies_at(steps[i], after);
}

/* A reader that receives from the stage is killed, and the living owner gets all buffers back. */
static void be_reader(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_reader(part->name);
	struct xmem_subscription *out = follow(pool, part->follows, XMEM_SUBSCRIBE_WAITS);

	tell_parent(1);
	at_step(part->step, 0, STEP_KILL, NULL);
	xmem_release(receive_one(out));
	FAIL("%s: not reached", step_name(part->step));
}

TEST_WITHIN(P2_reader_killed_at_every_step_of_receiving_what_is_forwarded, 60)
{
	static const int steps[] = { XM_STEP_RECEIVE_READ, XM_STEP_RECEIVE_HELD,
				     XM_STEP_RECEIVE_CURSOR, XM_STEP_PUT_BEFORE,
				     XM_STEP_PUT_DROPPED };
	struct line line;
	unsigned int i;

	steps_only();
	line = line_make(1, 0);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct part part = { line.name, xmem_pool_client(line.stage), steps[i], 0 };
		struct child *child = spawn(be_reader, &part);

		SAME(hear(child), 1);
		publish_stamp(line.owner, i);
		pass_on(&line);
		/* This waits until the dead reader's hold and its place in the ring are gone. */
		xmem_release(receive_one(line.out));
		publish_stamp(line.owner, 100 + i);
		died_of_kill(child);
		pass_on(&line);
		xmem_release(receive_one(line.out));
	}
	line_end(&line);
}

/* ---- a stopped owner ---- */

static void scan_and_stop(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_writer(part->name, 1, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 1);
	tell_parent(1);
	hear_parent();
	at_step(XM_STEP_SCAN_HOLDS, 0, STEP_STOP, NULL);
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
}

TEST(P9_an_owner_that_is_stopped_in_its_scan_keeps_no_reader_waiting)
{
	struct line line = line_make(1, XMEM_SUBSCRIBE_WAITS);
	struct part part = { .name = line.name };
	struct child *child;
	struct xmem_subscription *in;
	struct xmem_buffer *b;

	steps_only();
	child = spawn(scan_and_stop, &part);
	in = follow(line.stage, (int)hear(child), 0);
	tell(child, 1);
	SAME(hear(child), 1);
	WORKED(xmem_publish(receive_one(in), NULL, NULL));
	tell(child, 1);
	wait_stopped(child);
	b = receive_one(line.out);
	SAME(stamp_of(b), 1);
	continue_child(child);
	finish_child(child);
	xmem_release(b);
	xmem_unsubscribe(in);
	line_end(&line);
}

/* ---- waits that end ---- */

TEST(P9_an_owner_is_free_of_a_reader_that_the_stage_demotes)
{
	const char *name = new_name();
	struct xmem_pool *owner = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4);
	struct xmem_pool *stage = open_stage(name, 50 * MS), *reader = open_reader(name);
	struct xmem_subscription *in, *out;
	struct xmem_buffer *b;
	unsigned int i;
	int64_t start;

	WORKED(xmem_preallocate(owner, BYTES, 5, NULL));
	in = follow(stage, xmem_pool_client(owner), 0);
	out = follow(reader, xmem_pool_client(stage), XMEM_SUBSCRIBE_WAITS);
	for (i = 0; i < 5; i++) {
		publish_stamp(owner, i);
		b = receive_one(in);
		if (i < 4)
			WORKED(xmem_publish(b, NULL, NULL));
	}
	/* The stage's ring is full of publications that the reader has not received. */
	start = now_ns();
	WORKED(xmem_publish(b, XMEM_OPTIONS(xmem_publish_options, .timeout_ns = patience_ns()),
			    NULL));
	CHECK(now_ns() - start >= 50 * MS);
	b = xmem_acquire(owner, BYTES, 0);
	CHECK(b);
	xmem_release(b);
	xmem_release(receive_one(out));
	CHECK(sub_info(out).lost > 0);
	xmem_unsubscribe(in);
	xmem_unsubscribe(out);
	xmem_pool_close(reader);
	xmem_pool_close(stage);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

TEST(P9_an_owner_that_waits_is_woken_when_the_reader_unsubscribes)
{
	struct line line = line_make(1, XMEM_SUBSCRIBE_WAITS);
	struct child *child = spawn(acquire_in_vain_then_not, &line);
	struct xmem_subscription *in = follow(line.stage, (int)hear(child), 0);

	tell(child, 1);
	SAME(hear(child), 1);
	WORKED(xmem_publish(receive_one(in), NULL, NULL));
	tell(child, 1);
	SAME(hear(child), 2);
	xmem_unsubscribe(line.out);
	finish_child(child);
	line.out = follow(line.reader, xmem_pool_client(line.stage), 0);
	xmem_unsubscribe(in);
	line_end(&line);
}

TEST(P9_an_owner_that_waits_is_woken_when_the_stage_retracts)
{
	struct line line = line_make(1, XMEM_SUBSCRIBE_WAITS);
	struct child *child = spawn(acquire_in_vain_then_not, &line);
	struct xmem_subscription *in = follow(line.stage, (int)hear(child), 0);
	uint64_t token;

	tell(child, 1);
	SAME(hear(child), 1);
	WORKED(xmem_publish(receive_one(in), NULL, &token));
	tell(child, 1);
	SAME(hear(child), 2);
	WORKED(xmem_retract(line.stage, token));
	finish_child(child);
	REFUSED(xmem_receive(line.out, 0), EAGAIN);
	SAME(sub_info(line.out).lost, 0);
	xmem_unsubscribe(in);
	line_end(&line);
}

/* ---- what is refused ---- */

/* The refused call has not changed @b. */
static void fails_with(struct xmem_buffer *b, const struct xmem_publish_options *o, int err,
		       const char *words)
{
	uint64_t token = xmem_token(b), ret = 7;
	const char *why;

	SAME(xmem_publish(b, o, &ret), err);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), err);
	if (!strstr(why, words))
		FAIL("'%s' does not contain '%s'", why, words);
	SAME(ret, 7);
	SAME(xmem_token(b), token);
}

/* The options are refused for every kind of buffer. */
static void refuse_options(struct xmem_buffer *b, int elsewhere)
{
	const struct xmem_publish_options cut = { .size = sizeof(size_t) };
	struct CUstream_st *stream = (struct CUstream_st *)1;

	fails_with(b, XMEM_OPTIONS(xmem_publish_options, .flags = 1u << 2), -EINVAL,
		   "flags has 0x4");
	fails_with(b, XMEM_OPTIONS(xmem_publish_options, .client = 1), -EINVAL,
		   "XMEM_PUBLISH_CLIENT");
	fails_with(b, XMEM_OPTIONS(xmem_publish_options, .timeout_ns = -1), -EINVAL,
		   "negative timeout");
	fails_with(b, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_CLIENT,
				   .client = 1000), -EINVAL, "client is 1000");
	fails_with(b, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_CLIENT,
				   .client = elsewhere), -ENOENT, "does not follow this one");
	fails_with(b, XMEM_OPTIONS(xmem_publish_options, .stream = stream), -EMEDIUMTYPE,
		   "memory of the CPU");
	fails_with(b, &cut, -EINVAL, "size is 8");
}

TEST(API_publish_checks_its_options_whatever_the_buffer_is)
{
	struct line line = line_make(2, 0);
	struct xmem_buffer *b = xmem_acquire(line.owner, BYTES, 0);

	SAME(xmem_publish(NULL, NULL, NULL), -EINVAL);
	fill(b, 3);
	refuse_options(b, xmem_pool_client(line.owner));
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(line.in);
	refuse_options(b, xmem_pool_client(line.stage));
	WORKED(xmem_get_mut(b));
	refuse_options(b, xmem_pool_client(line.stage));
	WORKED(xmem_publish(b, NULL, NULL));
	xmem_release(receive_one(line.out));
	line_end(&line);
}

TEST(API_forward_refuses_what_cannot_be)
{
	struct line line = line_make(2, 0);
	struct xmem_buffer *b = xmem_acquire(line.owner, BYTES, 0);
	struct xmem_publish_options o = { .size = sizeof(o) };
	uint64_t token;

	fill(b, 9);
	WORKED(xmem_publish(b, &(struct xmem_publish_options){
		.size = sizeof(o), .offset = 64, .length = 1024, .timestamp_ns = 5 }, &token));
	b = xmem_get(line.reader, token);
	fails_with(b, NULL, -EPERM, "this client is a reader");
	xmem_release(b);
	b = receive_one(line.in);
	o.offset = 63;
	SAME(xmem_publish(b, &o, NULL), -ERANGE);
	o.offset = 64 + 1025;
	SAME(xmem_publish(b, &o, NULL), -ERANGE);
	o.offset = 65;
	o.length = 1024;
	SAME(xmem_publish(b, &o, NULL), -ERANGE);
	o.length = UINT64_MAX;
	SAME(xmem_publish(b, &o, NULL), -ERANGE);
	/* Publish a part, and keep the handle. */
	o.flags = XMEM_PUBLISH_KEEP;
	o.offset = 128;
	o.length = 0;
	WORKED(xmem_publish(b, &o, NULL));
	SAME(xmem_size(b), 1024);
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(line.out);
	SAME(xmem_size(b), 1024 - 64);
	SAME(info_of(b).timestamp_ns, 5);
	xmem_release(b);
	b = receive_one(line.out);
	SAME(xmem_size(b), 1024);
	SAME(info_of(b).sequence, 1);
	xmem_release(b);
	line_end(&line);
}

TEST(API_a_writer_publishes_its_own_contents_once_more)
{
	struct line line = line_make(2, 0);
	struct xmem_buffer *kept, *b;
	unsigned int i;

	publish_kept(line.owner, 3, &kept);
	WORKED(xmem_publish(kept, NULL, NULL));
	for (i = 0; i < 2; i++) {
		b = receive_one(line.in);
		SAME(stamp_of(b), 3);
		SAME(info_of(b).sequence, i);
		xmem_release(b);
	}
	line_end(&line);
}

/* ---- releases without a reader ---- */

static void forward_twice_over(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_stage(part->name, 0);
	struct xmem_subscription *in = follow(pool, part->follows, 0);
	struct xmem_buffer *theirs, *own;
	unsigned int i;

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	publish_kept(pool, 7, &own);
	tell_parent(xmem_pool_client(pool));
	theirs = receive_one(in);
	hear_parent();
	WORKED(xmem_publish(theirs, NULL, NULL));
	tell_parent(1);
	hear_parent();
	for (i = 0; i < 4; i++)
		WORKED(xmem_publish(own, XMEM_OPTIONS(xmem_publish_options,
						      .flags = XMEM_PUBLISH_KEEP), NULL));
	tell_parent(1);
	hear_parent();
}

TEST(P2_what_a_stage_overwrites_of_a_dead_owner_is_freed)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .clients = 8, .ring = 4);
	struct part owner_part = { .name = name }, stage_part = { .name = name };
	struct child *owner = spawn(be_owner, &owner_part), *stage;
	struct xmem_subscription *out;

	stage_part.follows = (int)hear(owner);
	stage = spawn(forward_twice_over, &stage_part);
	out = follow(pool, (int)hear(stage), 0);
	tell(owner, 1);
	SAME(hear(owner), 1);
	tell(stage, 1);
	SAME(hear(stage), 1);
	kill_child(owner);
	/* The second publication is in flight to the stage alone, which does not receive it. */
	EVENTUALLY(stat_of(pool).limbo == 2);
	/* So the sweep after the owner's end is over, and does not find what is overwritten now. */
	host_has_served(pool);
	tell(stage, 1);
	SAME(hear(stage), 1);
	EVENTUALLY(stat_of(pool).limbo == 1);
	tell(stage, 1);
	finish_child(stage);
	xmem_unsubscribe(out);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

TEST(P9_an_owner_that_waits_is_woken_when_the_stage_demotes)
{
	const char *name = new_name();
	struct line line = { .name = name };
	struct xmem_subscription *in;
	struct child *child;
	struct xmem_buffer *b;
	unsigned int i;

	line.reader = OPEN(name, .ring = 4);
	line.stage = open_stage(name, 10 * MS);
	line.out = follow(line.reader, xmem_pool_client(line.stage), XMEM_SUBSCRIBE_WAITS);
	child = spawn(acquire_in_vain_then_not, &line);
	in = follow(line.stage, (int)hear(child), 0);
	tell(child, 1);
	SAME(hear(child), 1);
	WORKED(xmem_preallocate(line.stage, BYTES, 1, NULL));
	publish_kept(line.stage, 1, &b);
	WORKED(xmem_publish(receive_one(in), NULL, NULL));
	tell(child, 1);
	SAME(hear(child), 2);
	/* Two fill the ring, and the third demotes and overwrites this client's own publication. */
	for (i = 0; i < 3; i++)
		WORKED(xmem_publish(b, XMEM_OPTIONS(xmem_publish_options,
			.flags = XMEM_PUBLISH_KEEP, .timeout_ns = patience_ns()), NULL));
	finish_child(child);
	xmem_release(b);
	xmem_unsubscribe(in);
	xmem_unsubscribe(line.out);
	xmem_pool_close(line.stage);
	check_quiet(line.reader, 1);
	xmem_pool_close(line.reader);
}

/* ---- the bound of a stage ---- */

/* A stage with this bound has forwarded the owner's only buffer to a reader that is slow. */
static struct line lent_line(int64_t bound_ns)
{
	struct line line = { .name = new_name() };

	line.owner = open_writer(line.name, 1, BYTES);
	line.stage = open_stage(line.name, bound_ns);
	line.reader = open_reader(line.name);
	line.in = follow(line.stage, xmem_pool_client(line.owner), 0);
	line.out = follow(line.reader, xmem_pool_client(line.stage), XMEM_SUBSCRIBE_WAITS);
	publish_stamp(line.owner, 1);
	pass_on(&line);
	return line;
}

static void reader_has_lost_it(struct line *line)
{
	struct xmem_buffer *b = receive_one(line->in);

	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(line->out);
	SAME(stamp_of(b), 2);
	SAME(sub_info(line->out).lost, 1);
	xmem_release(b);
}

TEST(P9_an_owner_waits_for_a_stage_no_longer_than_its_bound)
{
	int64_t start = now_ns();
	struct line line = lent_line(100 * MS);
	struct xmem_buffer *b;

	/* The stage itself need do nothing, so it may be stopped. */
	CHECK((b = xmem_acquire(line.owner, BYTES, patience_ns())));
	CHECK(now_ns() - start >= 100 * MS);
	fill(b, 2);
	WORKED(xmem_publish(b, NULL, NULL));
	reader_has_lost_it(&line);
	line_end(&line);
}

TEST(P9_an_owner_that_never_waits_looks_again_after_a_stages_bound)
{
	int64_t start = now_ns();
	struct line line = lent_line(100 * MS);
	struct xmem_buffer *b;

	EVENTUALLY((b = xmem_acquire(line.owner, BYTES, 0)));
	CHECK(now_ns() - start >= 100 * MS);
	xmem_release(b);
	line_end(&line);
}

TEST(P9_an_owner_waits_for_a_stage_as_long_as_its_bound)
{
	struct line line = lent_line(3600 * SECOND);
	const char *why;

	REFUSED(xmem_acquire(line.owner, BYTES, 50 * MS), ETIMEDOUT);
	why = last_message();
	if (!strstr(why, "1 forwarded and not yet received (client 1 stage pid"))
		FAIL("the message is: %s", why);
	xmem_release(receive_one(line.out));
	SAME(sub_info(line.out).lost, 0);
	line_end(&line);
}

TEST(P9_an_owner_that_polls_waits_for_a_stage_no_longer_than_its_bound)
{
	struct line line = lent_line(20 * MS);
	struct pollfd owner = { .fd = xmem_pool_poll_fd(line.owner), .events = POLLOUT };
	struct xmem_buffer *b;
	unsigned int vain = 0;

	CHECK(owner.fd >= 0);
	for (;;) {
		SAME(poll(&owner, 1, patience_ns() / MS), 1);
		b = xmem_acquire(line.owner, BYTES, 0);
		if (b)
			break;
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
		/*
		 * The first failure is the writer's own attempt; later ones are races between the
		 * clocks of the two clients.
		 */
		if (++vain > 100)
			FAIL("the owner asks again and again in vain");
	}
	xmem_release(b);
	line_end(&line);
}

static void forward_and_wait(void *argument)
{
	struct part *part = argument;
	struct xmem_pool *pool = open_stage(part->name, 20 * MS);
	struct xmem_subscription *in = follow(pool, part->follows, 0);

	tell_parent(xmem_pool_client(pool));
	WORKED(xmem_publish(receive_one(in), NULL, NULL));
	tell_parent(1);
	hear_parent();
}

TEST(P9_an_owner_waits_for_a_dead_stage_no_longer_than_its_bound)
{
	struct line line = { .name = new_name() };
	struct child *child;
	struct xmem_buffer *b;
	struct xmem_subscription *in;

	line.owner = open_writer(line.name, 1, BYTES);
	line.reader = open_reader(line.name);
	child = spawn(forward_and_wait, &(struct part){ .name = line.name,
				.follows = xmem_pool_client(line.owner) });
	in = follow(line.reader, (int)hear(child), XMEM_SUBSCRIBE_WAITS);
	publish_stamp(line.owner, 1);
	SAME(hear(child), 1);
	kill_child(child);
	EVENTUALLY(stat_of(line.owner).zombies == 1);
	REFUSED(xmem_acquire(line.owner, BYTES, 0), EAGAIN);
	b = xmem_acquire(line.owner, BYTES, patience_ns());
	CHECK(b);
	xmem_release(b);
	REFUSED(xmem_receive(in, patience_ns()), EPIPE);
	SAME(sub_info(in).lost, 1);
	xmem_unsubscribe(in);
	xmem_pool_close(line.reader);
	check_quiet(line.owner, 1);
	xmem_pool_close(line.owner);
}

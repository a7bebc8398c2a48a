// SPDX-License-Identifier: MIT
/* How writing in place ends without a publication: the order of its steps. */
#include "core/step.h"
#include "harness.h"

#define BYTES	4096

static struct {
	struct xmem_pool *owner, *stage;
	bool looked;
} thrown;

static void nobody_gets_it_yet(int step)
{
	no_step();
	thrown.looked = true;
	host_has_served(thrown.stage);
	REFUSED(xmem_acquire(thrown.owner, 0, 0), EAGAIN);
}

/*
 * In the wrong order, the buffer's next contents seem to have one holder more, and get_mut of them
 * is EBUSY.
 */
TEST(P1_contents_written_in_place_are_thrown_away_after_their_hold)
{
	const char *name = new_name();
	struct xmem_buffer *b;

	steps_only();
	thrown.owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(thrown.owner, BYTES, 1, NULL));
	thrown.stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	b = publish_and_get(thrown.owner, thrown.stage, 1);
	WORKED(xmem_get_mut(b));
	at_step(XM_STEP_PUT_BEFORE, 0, STEP_CALL, nobody_gets_it_yet);
	xmem_release(b);
	no_step();
	CHECK(thrown.looked);
	b = xmem_acquire(thrown.owner, 0, patience_ns());
	CHECK(b);
	xmem_release(b);
	xmem_pool_close(thrown.stage);
	check_quiet(thrown.owner, 1);
	xmem_pool_close(thrown.owner);
}

/* ---- a buffer that becomes free in the middle of a scan ---- */

static struct {
	struct xmem_subscription *s;
	bool looked;
} freed;

/* The owner knows that all subscribers have passed the first publication, and knows no more. */
static void the_last_is_thrown_away(int step)
{
	struct xmem_buffer *b;

	no_step();
	freed.looked = true;
	xmem_release(xmem_receive(freed.s, 0));
	b = xmem_receive(freed.s, 0);
	CHECK(b);
	WORKED(xmem_get_mut(b));
	xmem_release(b);
	host_has_served(thrown.stage);
}

/* Otherwise that buffer seems to be in flight to all, and hides the buffers behind it for ever. */
TEST(P9_a_buffer_thrown_away_during_a_scan_is_found)
{
	struct xmem_buffer *b[3];
	const char *name = new_name();
	unsigned int i;

	steps_only();
	thrown.owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(thrown.owner, BYTES, 3, NULL));
	thrown.stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	freed.s = follow(thrown.stage, xmem_pool_client(thrown.owner), 0);
	for (i = 0; i < 3; i++)
		publish_stamp(thrown.owner, i);
	xmem_release(xmem_receive(freed.s, 0));
	at_step(XM_STEP_SCAN_CURSORS, 0, STEP_CALL, the_last_is_thrown_away);
	for (i = 0; i < 3; i++) {
		b[i] = xmem_acquire(thrown.owner, 0, 0);
		CHECK(b[i]);
		no_step();
	}
	CHECK(freed.looked);
	for (i = 0; i < 3; i++)
		xmem_release(b[i]);
	xmem_unsubscribe(freed.s);
	xmem_pool_close(thrown.stage);
	check_quiet(thrown.owner, 1);
	xmem_pool_close(thrown.owner);
}

/* ---- a subscriber that lags ---- */

static struct {
	struct xmem_buffer *held;	/* the later contents, which only the stage holds */
	bool looked;
} late;

static void it_is_busy(int step)
{
	no_step();
	late.looked = true;
	SAME(xmem_get_mut(late.held), -EBUSY);
}

static struct xmem_buffer *publish_in_turn(struct xmem_pool *owner, struct xmem_pool *stage)
{
	struct xmem_buffer *b;

	publish_kept(owner, 1, &b);
	late.held = xmem_get(stage, xmem_token(b));
	CHECK(late.held);
	xmem_release(b);
	return late.held;
}

/* To find out that the contents of its entry are gone, it holds the buffer for a moment. */
TEST(API_a_subscriber_that_lags_makes_get_mut_busy_for_a_moment)
{
	const char *name = new_name();
	struct xmem_pool *owner, *stage, *reader;
	struct xmem_subscription *s;

	steps_only();
	owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(owner, BYTES, 1, NULL));
	stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	reader = open_reader(name);
	s = follow(reader, xmem_pool_client(stage), 0);
	WORKED(xmem_get_mut(publish_in_turn(owner, stage)));
	WORKED(xmem_publish(late.held, NULL, NULL));
	/* The owner evicts it from the subscriber, and its next contents are the stage's alone. */
	publish_in_turn(owner, stage);
	at_step(XM_STEP_RECEIVE_HELD, 0, STEP_CALL, it_is_busy);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	no_step();
	CHECK(late.looked);
	SAME(sub_info(s).lost, 1);
	WORKED(xmem_get_mut(late.held));
	xmem_release(late.held);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(stage);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

/* ---- a publication whose entry is complete, while the tail has not moved yet ---- */

static struct {
	struct xmem_subscription *first, *second;
	bool looked;
} early;

/* The second one has not received it, though the tail does not show that. */
static void the_first_has_it_already(int step)
{
	struct xmem_buffer *b, *other;

	no_step();
	early.looked = true;
	b = xmem_receive(early.first, 0);
	CHECK(b);
	SAME(xmem_get_mut(b), -EBUSY);
	other = xmem_receive(early.second, 0);
	CHECK(other);
	SAME(xmem_get_mut(b), -EBUSY);
	xmem_release(other);
	xmem_release(b);
}

TEST(P3_what_is_being_published_is_not_written_in_place)
{
	const char *name = new_name();
	struct xmem_pool *owner, *one, *two;
	struct xmem_buffer *b;

	steps_only();
	owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(owner, BYTES, 2, NULL));
	one = OPEN(name, .flags = XMEM_OPEN_WRITER);
	two = OPEN(name, .flags = XMEM_OPEN_WRITER);
	early.first = follow(one, xmem_pool_client(owner), 0);
	early.second = follow(two, xmem_pool_client(owner), 0);
	at_step(XM_STEP_PUBLISH_ENTRY, 0, STEP_CALL, the_first_has_it_already);
	publish_stamp(owner, 1);
	no_step();
	CHECK(early.looked);
	/* Once all subscribers have passed it, it belongs to its holder. */
	publish_stamp(owner, 2);
	b = xmem_receive(early.first, patience_ns());
	xmem_release(xmem_receive(early.second, patience_ns()));
	WORKED(xmem_get_mut(b));
	xmem_release(b);
	xmem_unsubscribe(early.first);
	xmem_unsubscribe(early.second);
	xmem_pool_close(two);
	xmem_pool_close(one);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

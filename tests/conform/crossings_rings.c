// SPDX-License-Identifier: MIT
/*
 * Rings: the publications that they keep, and those that a client takes back. Retracting, history
 * and depth, for each kind of publication; and owners that wait for forwarded contents with claims.
 */
#include "crossings.h"
#include "past.h"

/* ---- retracting ---- */

TEST(P1_an_attached_file_is_retracted)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = attached(x.owner, 3);
	uint64_t token;

	WORKED(xmem_publish(b, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP }, &token));
	SAME(xmem_retract(x.owner, token), -EBUSY);
	SAME(xmem_retract(x.stage, token), -EPERM);
	xmem_release(b);
	WORKED(xmem_retract(x.owner, token));
	SAME(xmem_retract(x.owner, token), -ESTALE);
	EVENTUALLY(stat_of(x.sink).payloads == 1);	/* nobody asks the owner */
	publish_stamp(x.owner, 4);
	b = receive_one(x.first);
	SAME(stamp_of(b), 4);
	SAME(sub_info(x.first).lost, 0);
	xmem_release(b);
	crossing_end(&x);
}

TEST(P1_what_was_written_in_place_is_retracted)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b, *all[BUFFERS];
	unsigned int i;
	uint64_t token;

	for (i = 0; i < 3; i++) {
		WORKED(xmem_publish(upgraded(&x, 1), NULL, &token));
		if (i == 1) {
			WORKED(xmem_add_ref(x.sink, token));
			SAME(xmem_retract(x.owner, token), -EBUSY);
			WORKED(xmem_drop_ref(x.sink, token));
		}
		SAME(xmem_retract(x.owner, token), -EBUSY);
		WORKED(xmem_retract(x.stage, token));
		SAME(xmem_retract(x.sink, token), -EPERM);
	}
	REFUSED(xmem_receive(x.second, 0), EAGAIN);
	SAME(sub_info(x.second).lost, 0);
	for (i = 0; i < BUFFERS; i++) {
		all[i] = xmem_acquire(x.owner, BYTES, 0);
		CHECK(all[i]);
	}
	while (i--)
		xmem_release(all[i]);
	/* The owner itself writes in place, and retracts that. */
	publish_kept(x.owner, 5, &b);
	xmem_release(receive_one(x.first));
	WORKED(xmem_get_mut(b));
	SAME(xmem_token(b), 0);
	fill(b, 6);
	WORKED(xmem_publish(b, NULL, &token));
	WORKED(xmem_retract(x.owner, token));
	REFUSED(xmem_receive(x.first, 0), EAGAIN);
	SAME(sub_info(x.first).lost, 0);
	crossing_end(&x);
}

TEST(P1_contents_with_claims_are_not_retracted)
{
	struct crossing x = crossing_start();
	uint64_t token = publish_stamp(x.owner, 1), handed;
	struct xmem_buffer *b;

	WORKED(xmem_add_ref(x.sink, token));
	SAME(xmem_retract(x.owner, token), -EBUSY);
	WORKED(xmem_void_claims(x.owner, token));
	WORKED(xmem_retract(x.owner, token));
	/* Contents that were never published have no entry, and can be retracted too. */
	handed = hand_over(x.owner, 2, 1, 0);
	SAME(xmem_retract(x.owner, handed), -EBUSY);
	WORKED(xmem_void_claims(x.owner, handed));
	WORKED(xmem_retract(x.owner, handed));
	REFUSED(xmem_receive(x.first, 0), EAGAIN);
	/* A stage retracts what it has forwarded. Claims of it do not concern the stage's ring. */
	b = received(&x, 3);
	token = xmem_token(b);
	WORKED(xmem_set_ref_count(b, 1, 0));
	WORKED(xmem_publish(b, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_KEEP),
			    NULL));
	SAME(xmem_retract(x.owner, token), -EBUSY);
	WORKED(xmem_retract(x.stage, token));
	REFUSED(xmem_receive(x.second, 0), EAGAIN);
	SAME(xmem_retract(x.owner, token), -EBUSY);
	xmem_release(b);
	WORKED(xmem_retract(x.owner, token));
	crossing_end(&x);
}

/* ---- waiting for what is forwarded and has claims ---- */

/* An owner of one buffer. A stage has forwarded its contents to a subscriber that it waits for. */
struct lent {
	struct xmem_pool *owner, *stage, *sink;
	struct xmem_subscription *first, *second;
	uint64_t token;
};

static struct lent lent_start(int64_t bound_ns)
{
	const char *name = new_name();
	struct lent l = { .owner = open_writer(name, 1, BYTES) };

	l.stage = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = bound_ns,
		       .label = "stage");
	l.sink = open_reader(name);
	l.first = follow(l.stage, xmem_pool_client(l.owner), 0);
	l.second = follow(l.sink, xmem_pool_client(l.stage), XMEM_SUBSCRIBE_WAITS);
	l.token = publish_stamp(l.owner, 1);
	WORKED(xmem_publish(receive_one(l.first), NULL, NULL));
	WORKED(xmem_add_ref(l.sink, l.token));
	return l;
}

static void lent_end(struct lent *l)
{
	WORKED(xmem_void_claims(l->owner, l->token));
	publish_stamp(l->owner, 2);		/* evicted from the stage's ring */
	xmem_unsubscribe(l->first);
	xmem_unsubscribe(l->second);
	xmem_pool_close(l->sink);
	xmem_pool_close(l->stage);
	check_quiet(l->owner, 1);
	xmem_pool_close(l->owner);
}

/* No bound of the stage ends the claims, so the bound is no reason to check again and again. */
TEST(P9_an_owner_sleeps_while_forwarded_contents_have_claims)
{
	struct lent l = lent_start(20 * MS);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		count_waits();
		REFUSED(xmem_acquire(l.owner, BYTES, 100 * MS), ETIMEDOUT);
		if (steps_seen() >= 10)
			FAIL("checked %u times", steps_seen());
	}
	lent_end(&l);
}

TEST(P9_poll_is_quiet_while_forwarded_contents_have_claims)
{
	struct lent l = lent_start(20 * MS);
	int fd = fd_of(l.owner);
	unsigned int i, said = 0;

	for (i = 0; i < 12; i++) {
		REFUSED(xmem_acquire(l.owner, BYTES, 0), EAGAIN);
		said += by_poll(fd, POLLOUT, 50) != 0;
	}
	if (said > 3)
		FAIL("writable %u times in vain", said);
	lent_end(&l);
}

TEST(P8_an_acquire_in_vain_says_how_many_have_claims)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b[BUFFERS - 1];
	const char *why = "";
	uint64_t token;
	unsigned int i;

	token = hand_over(x.owner, 1, 2, 0);
	for (i = 0; i < BUFFERS - 1; i++)
		b[i] = xmem_acquire(x.owner, BYTES, 0);
	REFUSED(xmem_acquire(x.owner, BYTES, 0), EAGAIN);
	why = last_message();
	if (!strstr(why, "0 of 4 held, 1 set aside, 3 being written"))
		FAIL("%s", why);
	for (i = 0; i < BUFFERS - 1; i++)
		xmem_release(b[i]);
	WORKED(xmem_void_claims(x.owner, token));
	crossing_end(&x);
}

/* ---- history and depth ---- */

/*
 * Forwarded contents are publications too, as long as they exist. Those for other clients are not.
 */
TEST(P1_history_has_what_was_forwarded_and_not_what_was_retracted)
{
	struct crossing x = crossing_start();
	int stage = xmem_pool_client(x.stage);
	struct xmem_pool *late = OPEN(x.name, .flags = XMEM_OPEN_WRITER);	/* it is shared */
	struct xmem_buffer *b, *kept[3];
	struct xmem_subscription *s;
	uint64_t token;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		publish_kept(x.owner, i + 1, &kept[i]);
		b = receive_one(x.first);
		if (i == 1)	/* for the sink alone */
			WORKED(send_to(b, xmem_pool_client(x.sink), NULL));
		else
			WORKED(xmem_publish(b, NULL, NULL));
	}
	b = upgraded(&x, 4);
	WORKED(xmem_publish(b, NULL, NULL));
	s = follow_past(late, stage, 8);
	for (i = 0; i < 3; i++) {
		static const uint64_t stamps[] = { 1, 3, 4 };

		b = xmem_receive(s, 0);
		CHECK(b);
		SAME(stamp_of(b), stamps[i]);
		SAME(info_of(b).publisher, stage);
		xmem_release(b);
	}
	receive_nothing(s);
	xmem_unsubscribe(s);
	WORKED(xmem_retract(x.stage, xmem_token(kept[2])));
	token = xmem_token(kept[0]);
	s = follow_past(late, stage, 2);
	SAME(by_poll(xmem_subscription_poll_fd(s), POLLIN, WAIT_MS), POLLIN);
	b = xmem_receive(s, 0);
	SAME(stamp_of(b), 1);
	SAME(xmem_token(b), token);
	xmem_release(b);
	b = xmem_receive(s, 0);
	SAME(stamp_of(b), 4);
	xmem_release(b);
	receive_nothing(s);
	SAME(by_poll(xmem_subscription_poll_fd(s), POLLIN, 0), 0);
	xmem_unsubscribe(s);
	for (i = 0; i < 3; i++)
		xmem_release(kept[i]);
	for (i = 0; i < 4; i++)
		if (i != 2)
			xmem_release(receive_one(x.second));
	xmem_pool_close(late);
	crossing_end(&x);
}

/* A client that others send to has a history: it includes what was sent to it. */
TEST(P1_history_of_an_addressee)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = xmem_acquire(x.owner, BYTES, 0);
	struct xmem_subscription *s;

	fill(b, 1);
	WORKED(send_to(b, xmem_pool_client(x.stage), NULL));
	s = follow_past(x.sink, xmem_pool_client(x.owner), 4);
	receive_nothing(s);
	xmem_unsubscribe(s);
	xmem_unsubscribe(x.first);
	x.first = follow_past(x.stage, xmem_pool_client(x.owner), 4);
	b = receive_one(x.first);
	SAME(stamp_of(b), 1);
	xmem_release(b);
	receive_nothing(x.first);
	crossing_end(&x);
}

/* Publications that were never for this subscriber are not among its latest, nor lost. */
TEST(P3_depth_counts_what_is_for_the_subscriber)
{
	struct crossing x = crossing_start();
	int owner = xmem_pool_client(x.owner);
	struct xmem_subscription *s = follow_some(x.sink, owner, 0, 2);
	struct xmem_buffer *b;
	unsigned int i;

	publish_stamp(x.owner, 1);
	for (i = 0; i < 3; i++) {
		b = xmem_acquire(x.owner, BYTES, 0);
		CHECK(b);
		fill(b, 2);
		if (i != 1)
			WORKED(send_to(b, xmem_pool_client(x.stage), NULL));
		else
			WORKED(xmem_publish(b, NULL, NULL));
	}
	b = receive_one(s);
	SAME(stamp_of(b), 1);
	xmem_release(b);
	b = receive_one(s);
	SAME(stamp_of(b), 2);
	SAME(info_of(b).sequence, 2);
	xmem_release(b);
	receive_nothing(s);
	xmem_unsubscribe(s);
	for (i = 0; i < 4; i++)
		xmem_release(receive_one(x.first));
	/* An older publication that was for it is lost, and nothing else is. */
	s = follow_some(x.sink, owner, 0, 1);
	for (i = 0; i < 3; i++) {
		b = xmem_acquire(x.owner, BYTES, 0);
		fill(b, i);
		if (i == 1)
			WORKED(send_to(b, xmem_pool_client(x.stage), NULL));
		else
			WORKED(xmem_publish(b, NULL, NULL));
	}
	b = receive_one(s);
	SAME(stamp_of(b), 2);
	xmem_release(b);
	SAME(sub_info(s).lost, 1);
	xmem_unsubscribe(s);
	crossing_end(&x);
}

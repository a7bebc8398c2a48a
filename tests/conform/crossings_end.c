// SPDX-License-Identifier: MIT
/*
 * Clients end at any step while they hand over in several ways at once. The buffers that they have
 * handed over are whole, and all else is free again.
 */
#include "crossings.h"

struct killed {
	const char *name;
	int owner;
	unsigned int after;
	bool file;
};

/* Set claims aside, of a buffer that is written in place or of an attached file. */
static void hand_over_and_die(void *argument)
{
	const struct killed *how = argument;
	struct xmem_pool *pool = OPEN(how->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *s = follow(pool, how->owner, 0);
	struct xmem_buffer *b;

	tell_parent(1);
	hear_parent();
	if (how->file) {
		b = attached(pool, 2);
		tell_parent(0);
	} else {
		b = receive_one(s);
		tell_parent(xmem_token(b) & 0xffff);
		WORKED(xmem_get_mut(b));
		fill(b, 2);
	}
	at_step(ANY_STEP, how->after, STEP_KILL, NULL);
	WORKED(xmem_set_ref_count(b, 2, 0));
	WORKED(xmem_forget(b));
	no_step();
	tell_parent(1);
	hear_parent();
}

/* Clients that come for the contents of @slot get all of them, or nothing. */
static void take_what_is_left(struct xmem_pool *pool, uint32_t slot)
{
	struct xmem_buffer *b;

	while (xmem_claims(pool, XMEM_SLOT(slot)) > 0 &&
	       (b = xmem_get(pool, XMEM_SLOT(slot)))) {
		SAME(stamp_of(b), 2);
		xmem_release(b);
	}
}

/* Returns whether it was killed before it was done. */
static bool one_end(struct crossing *x, struct killed *how)
{
	struct child *child = spawn(hand_over_and_die, how);
	uint64_t slot, done = 0;

	hear(child);
	if (!how->file)
		publish_stamp(x->owner, 1);
	tell(child, 1);
	slot = hear(child);
	if (read(child->link, &done, sizeof(done)) == sizeof(done))
		kill_child(child);
	else
		died_of_kill(child);
	EVENTUALLY(stat_of(x->owner).clients == 3);
	if (!how->file)
		take_what_is_left(x->sink, slot);
	return !done;
}

static void all_ends(bool file)
{
	struct crossing x = crossing_start();
	struct killed how = { x.name, xmem_pool_client(x.owner), 0, file };
	unsigned int i, slots = stat_of(x.sink).slots;

	steps_only();
	xmem_unsubscribe(x.first);
	while (one_end(&x, &how)) {
		how.after++;
		if (how.after > 100)
			FAIL("it never ends");
		/* No other process knows the slot of the file, which may have claims. */
		for (i = 0; file && i < slots; i++)
			take_what_is_left(x.sink, i);
		check_free(x.owner);
	}
	for (i = 0; file && i < slots; i++)
		take_what_is_left(x.sink, i);
	CHECK(how.after >= 2);
	x.first = follow(x.stage, xmem_pool_client(x.owner), 0);
	crossing_end(&x);
}

TEST_WITHIN(P2_who_hands_over_what_it_writes_in_place_is_killed, 60)
{
	all_ends(false);
}

TEST_WITHIN(P2_who_hands_over_an_attached_file_is_killed, 60)
{
	all_ends(true);
}

/* The owner has ended. Forwarded contents and claims stay, each for the clients they are for. */
TEST(P2_forwarded_contents_with_claims_outlive_their_owner_and_the_stage)
{
	unsigned int first;

	for (first = 0; first < 2; first++) {
		struct crossing x = crossing_start();
		struct xmem_buffer *b = received(&x, 1), *got;
		uint64_t token = xmem_token(b);

		WORKED(xmem_add_ref(x.sink, token));
		WORKED(xmem_publish(b, NULL, NULL));
		xmem_unsubscribe(x.first);
		xmem_pool_close(first ? x.stage : x.owner);
		EVENTUALLY(stat_of(x.sink).clients == 2);
		xmem_pool_close(first ? x.owner : x.stage);
		EVENTUALLY(stat_of(x.sink).clients == 1);
		SAME(claims_of(x.sink, token), 1);
		got = receive_one(x.second);
		SAME(stamp_of(got), 1);
		SAME(xmem_token(got), token);
		SAME(xmem_get_mut(got), -EBUSY);
		xmem_release(got);
		got = xmem_get(x.sink, token);
		CHECK(got);
		SAME(stamp_of(got), 1);
		REFUSED(xmem_receive(x.second, 0), EPIPE);
		/* As the only holder, it writes contents that have no owner any more. */
		WORKED(xmem_get_mut(got));
		fill(got, 2);
		WORKED(xmem_set_ref_count(got, 2, 0));
		token = xmem_token(got);
		WORKED(xmem_forget(got));
		got = xmem_get(x.sink, token);
		CHECK(got);
		SAME(stamp_of(got), 2);
		xmem_release(got);
		WORKED(xmem_drop_ref(x.sink, token));
		EVENTUALLY(!stat_of(x.sink).attached && !stat_of(x.sink).payloads);
		SAME(stat_of(x.sink).claims, 0);
		xmem_unsubscribe(x.second);
		check_quiet(x.sink, 1);
		xmem_pool_close(x.sink);
	}
}

// SPDX-License-Identifier: MIT
/*
 * Each kind of buffer in each call: the answers are those that the headers promise, and nothing of
 * the buffer is left afterwards.
 */
#include "crossings.h"
#include "past.h"

enum kind {
	ACQUIRED, ATTACHED, UPGRADED,		/* in hand, not yet published */
	KEPT, KEPT_FILE, KEPT_UPGRADED, RECEIVED, FROM_FORWARDER, GOT, GOT_CLAIM, CLONED, COUNTED,
	PAST, ORPHANED, KINDS
};

static const char *const kind_name[KINDS] = {
	"acquired", "attached", "upgraded", "kept", "kept file", "kept upgraded", "received",
	"from a forwarder", "got", "got with a claim", "cloned", "counted", "history", "orphaned",
};

/* A buffer of some kind, its owner, and a second handle of it, which is released first. */
struct thing {
	struct crossing x;
	enum kind kind;
	struct xmem_buffer *b, *other;
	struct xmem_pool *mine;
	uint64_t token;
};

static bool in_hand(const struct thing *t)
{
	return t->kind <= UPGRADED;
}

static struct xmem_publish_options keep_it(void)
{
	return (struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP,
	};
}

static void make_published(struct thing *t)
{
	struct xmem_publish_options keep = keep_it();

	t->mine = t->kind == KEPT_UPGRADED ? t->x.stage : t->x.owner;
	t->b = t->kind == KEPT ? xmem_acquire(t->x.owner, BYTES, 0) :
	       t->kind == KEPT_FILE ? attached(t->x.owner, 1) : upgraded(&t->x, 1);
	if (t->kind == KEPT)
		fill(t->b, 1);
	WORKED(xmem_publish(t->b, &keep, NULL));
}

static void make_got(struct thing *t)
{
	uint64_t token = publish_kept(t->x.owner, 1, &t->other);

	t->mine = t->x.sink;
	if (t->kind == GOT_CLAIM)
		WORKED(xmem_add_ref(t->x.owner, token));
	t->b = xmem_get(t->x.sink, token);
	CHECK(t->b);
	xmem_release(t->other);
	t->other = NULL;
	xmem_release(receive_one(t->x.first));
}

static void make_past(struct thing *t)
{
	struct xmem_subscription *s;

	publish_stamp(t->x.owner, 1);
	s = follow_past(t->x.sink, xmem_pool_client(t->x.owner), 1);
	t->mine = t->x.sink;
	t->b = xmem_receive(s, 0);
	CHECK(t->b);
	xmem_unsubscribe(s);
	xmem_release(receive_one(t->x.first));
}

/* A buffer that the stage has received. */
static void make_received(struct thing *t)
{
	t->mine = t->x.stage;
	t->b = received(&t->x, 1);
	if (t->kind == CLONED) {
		t->other = t->b;
		t->b = xmem_clone(t->other);
		CHECK(t->b);
	} else if (t->kind == COUNTED) {
		WORKED(xmem_set_ref_count(t->b, 1, 0));
	} else if (t->kind == FROM_FORWARDER) {
		WORKED(xmem_publish(t->b, NULL, NULL));
		t->b = receive_one(t->x.second);
		t->mine = t->x.sink;
	} else if (t->kind == ORPHANED) {
		xmem_unsubscribe(t->x.first);
		t->x.first = NULL;
		xmem_pool_close(t->x.owner);
		t->x.owner = NULL;
		EVENTUALLY(stat_of(t->mine).clients == 2);
	}
}

static struct thing make(enum kind kind)
{
	struct thing t = { .x = crossing_start(), .kind = kind };

	if (kind == ACQUIRED || kind == ATTACHED) {
		t.mine = t.x.owner;
		t.b = kind == ATTACHED ? attached(t.mine, 1) : xmem_acquire(t.mine, BYTES, 0);
		if (kind == ACQUIRED)
			fill(t.b, 1);
	} else if (kind == UPGRADED) {
		t.mine = t.x.stage;
		t.b = upgraded(&t.x, 1);
	} else if (kind == KEPT || kind == KEPT_FILE || kind == KEPT_UPGRADED) {
		make_published(&t);
	} else if (kind == GOT || kind == GOT_CLAIM) {
		make_got(&t);
	} else if (kind == PAST) {
		make_past(&t);
	} else {
		make_received(&t);
	}
	SAME(stamp_of(t.b), 1);
	t.token = xmem_token(t.b);
	SAME(!t.token, in_hand(&t));
	return t;
}

/* Receive all that is in flight: a file stays until all subscribers have received it. */
static void receive_all(struct xmem_subscription *s)
{
	struct xmem_buffer *b;

	while (s && (b = xmem_receive(s, 0)))
		xmem_release(b);
}

/* Drop all that is left, including claims. */
static void unmake(struct thing *t, bool gone)
{
	struct xmem_pool *last = t->x.owner ? t->x.owner : t->x.stage;

	if (!gone && t->b)
		t->token = xmem_token(t->b);
	if (gone)
		REFUSED(xmem_data(t->b), EBADF);
	else
		xmem_release(t->b);
	xmem_release(t->other);
	while (t->token && !xmem_drop_ref(t->x.sink, t->token))
		;
	receive_all(t->x.first);
	receive_all(t->x.second);
	if (t->x.owner) {
		crossing_end(&t->x);
		return;
	}
	xmem_unsubscribe(t->x.second);
	xmem_pool_close(t->x.sink);
	EVENTUALLY(!stat_of(last).payloads && !stat_of(last).attached);
	check_quiet(last, 1);
	xmem_pool_close(last);
}

#define EACH_KIND(t)	\
	for (unsigned int k_ = 0; k_ < KINDS; k_++) \
		for (struct thing t = (printf("    %s\n", kind_name[k_]), make(k_)); t.mine; \
		     t.mine = NULL)

/* ---- the calls ---- */

TEST_WITHIN(P1_each_kind_is_published, 60)
{
	EACH_KIND(t) {
		uint64_t token = t.token;

		WORKED(xmem_publish(t.b, NULL, &t.token));
		if (token)
			SAME(t.token, token);
		unmake(&t, true);
	}
}

/* The handle that was kept publishes once more: it forwards. */
TEST_WITHIN(P1_each_kind_is_published_in_part_and_kept_and_published_again, 60)
{
	EACH_KIND(t) {
		struct xmem_publish_options o = keep_it();
		bool writing = in_hand(&t);
		uint64_t token, again;

		o.offset = 2 * BYTES;
		SAME(xmem_publish(t.b, &o, NULL), -ERANGE);
		o.offset = o.length = 64;
		o.timestamp_ns = 5;
		WORKED(xmem_publish(t.b, &o, &token));
		if (writing) {
			SAME(xmem_size(t.b), 64);
			SAME(info_of(t.b).timestamp_ns, 5);
			SAME(info_of(t.b).publisher, xmem_pool_client(t.mine));
		} else {
			SAME(xmem_size(t.b), BYTES);
			SAME(token, t.token);
		}
		SAME(stamp_of(t.b), 1);
		t.token = token;
		WORKED(xmem_publish(t.b, NULL, &again));
		SAME(again, token);
		unmake(&t, true);
	}
}

TEST_WITHIN(P1_each_kind_is_sent_to_one, 60)
{
	EACH_KIND(t) {
		struct xmem_pool *to = OPEN(t.x.name, .flags = XMEM_OPEN_WRITER);
		struct xmem_subscription *s;
		struct xmem_buffer *got;

		SAME(send_to(t.b, xmem_pool_client(to), NULL), -ENOENT);
		SAME(send_to(t.b, 1000, NULL), -EINVAL);
		s = follow(to, xmem_pool_client(t.mine), 0);
		WORKED(send_to(t.b, xmem_pool_client(to), &t.token));
		got = receive_one(s);
		SAME(stamp_of(got), 1);
		SAME(xmem_token(got), t.token);
		SAME(info_of(got).publisher, xmem_pool_client(t.mine));
		xmem_release(got);
		xmem_unsubscribe(s);
		xmem_pool_close(to);
		unmake(&t, true);
	}
}

TEST_WITHIN(P1_each_kind_is_counted, 60)
{
	EACH_KIND(t) {
		struct xmem_buffer *got;

		SAME(xmem_offer(t.b, 1, 0), in_hand(&t) ? -EPERM : 0);
		SAME(xmem_set_ref_count(t.b, 0, 0), -ERANGE);
		WORKED(xmem_set_ref_count(t.b, 3, 0));
		t.token = xmem_token(t.b);
		SAME(claims_of(t.mine, t.token), 2);
		SAME(stamp_of(t.b), 1);
		SAME(xmem_get_mut(t.b), info_of(t.b).flags & XMEM_BUFFER_SHARED ? -EBUSY :
										   -EOPNOTSUPP);
		WORKED(xmem_forget(t.b));
		got = xmem_get(t.mine, t.token);
		CHECK(got);
		SAME(stamp_of(got), 1);
		xmem_release(got);
		WORKED(xmem_drop_ref(t.mine, t.token));
		SAME(claims_of(t.mine, t.token), 1);
		unmake(&t, true);
	}
}

TEST_WITHIN(P1_each_kind_is_forgotten_or_refused, 60)
{
	EACH_KIND(t) {
		SAME(xmem_forget(t.b), in_hand(&t) ? -EPERM : 0);
		if (!in_hand(&t))
			SAME(claims_of(t.mine, t.token), 1);
		unmake(&t, !in_hand(&t));
	}
}

TEST_WITHIN(P1_each_kind_is_written_in_place_or_refused, 60)
{
	EACH_KIND(t) {
		bool alone = t.kind == RECEIVED || t.kind == GOT || t.kind == GOT_CLAIM ||
			     t.kind == COUNTED || t.kind == PAST || t.kind == ORPHANED ||
			     t.kind == FROM_FORWARDER;
		int want = in_hand(&t) ? -EPERM : t.kind == KEPT_FILE ? -EOPNOTSUPP :
			   alone ? 0 : -EBUSY;

		SAME(xmem_get_mut(t.b), want);
		if (alone)
			fill(t.b, 2);
		SAME(stamp_of(t.b), alone ? 2 : 1);
		unmake(&t, false);
	}
}

TEST_WITHIN(P1_each_kind_is_looked_at, 60)
{
	EACH_KIND(t) {
		bool writable = t.kind == ACQUIRED || t.kind == UPGRADED;
		bool shared = t.kind != ATTACHED && t.kind != KEPT_FILE;
		struct xmem_buffer *clone = xmem_clone(t.b);
		struct xmem_buffer_info info = info_of(t.b);
		struct xmem_metadata said;

		SAME(!clone, in_hand(&t));
		xmem_release(clone);
		SAME(!xmem_data_mut(t.b), !writable);
		SAME(!xmem_metadata_mut(t.b), !in_hand(&t));
		SAME(!!(info.flags & XMEM_BUFFER_SHARED), shared);
		SAME(info.slot, xmem_slot(t.b));
		SAME(info.token, xmem_token(t.b));
		SAME(!info.token, in_hand(&t));
		CHECK(info.bytes == BYTES && xmem_size(t.b) == BYTES);
		CHECK(info.capacity == BYTES && xmem_capacity(t.b) == BYTES);
		CHECK(!in_hand(&t) || (!info.sequence && !info.timestamp_ns));
		WORKED(xmem_metadata_view(t.b, &said));
		SAME(said.id, 1);
		SAME(SOURCE(t.b, .timestamp_ns = 1), in_hand(&t) ? 0 : -EPERM);
		SAME(xmem_copy_from_host(t.b, 0, "", 1, NULL), writable ? 0 : -EPERM);
		CHECK(info.publisher != XMEM_NOBODY && info.label[0]);
		CHECK(!in_hand(&t) || info.publisher == (uint32_t)xmem_pool_client(t.mine));
		unmake(&t, false);
	}
}

/* A client cannot retract contents that it holds, nor those of another client. */
TEST_WITHIN(P1_no_kind_is_retracted_while_it_is_held, 60)
{
	EACH_KIND(t) {
		bool own = t.mine == t.x.owner, forwarded = t.kind == KEPT_UPGRADED;

		if (!in_hand(&t))
			SAME(xmem_retract(t.mine, t.token), own ? -EBUSY : forwarded ? 0 : -EPERM);
		SAME(stamp_of(t.b), 1);
		unmake(&t, false);
	}
}

/* The handle outlives the one of its pool. */
TEST_WITHIN(P1_each_kind_outlives_the_handle_of_its_pool, 60)
{
	EACH_KIND(t) {
		struct xmem_pool *closed = t.mine;
		struct xmem_pool *look = open_reader(t.x.name);

		if (t.x.first)
			xmem_unsubscribe(t.x.first);
		xmem_unsubscribe(t.x.second);
		if (t.x.owner)
			xmem_pool_close(t.x.owner);
		xmem_pool_close(t.x.stage);
		xmem_pool_close(t.x.sink);
		EVENTUALLY(stat_of(look).clients == 2);
		CHECK(closed && stamp_of(t.b) == 1);
		xmem_release(t.b);
		xmem_release(t.other);
		/* Claims end with the last client that could have taken them. */
		EVENTUALLY(stat_of(look).clients == 1);
		EVENTUALLY(!stat_of(look).attached && !stat_of(look).payloads);
		SAME(stat_of(look).claims, 0);
		check_quiet(look, 1);
		xmem_pool_close(look);
	}
}

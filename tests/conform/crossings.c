// SPDX-License-Identifier: MIT
/*
 * Crossings: each way of handing over meets each of the others. The ways are attached files,
 * writing in place, forwarding, sending, retracting and claims.
 */
#include "crossings.h"

/* ---- claims ---- */

TEST(P1_contents_with_claims_are_not_written_in_place)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = received(&x, 1), *got;
	uint64_t token = xmem_token(b);

	WORKED(xmem_add_ref(x.sink, token));
	SAME(xmem_get_mut(b), -EBUSY);
	got = xmem_get(x.sink, token);
	CHECK(got);
	SAME(stamp_of(got), 1);
	SAME(xmem_get_mut(b), -EBUSY);
	xmem_release(b);
	/* The client that got it with the last claim has it alone. */
	WORKED(xmem_get_mut(got));
	xmem_release(got);
	crossing_end(&x);
}

/* ---- by count ---- */

/* Only @token gives these contents. Two clients get them, and then the buffer is free. */
static void take_both(struct crossing *x, uint64_t token, uint64_t stamp)
{
	struct xmem_buffer *a, *b;

	SAME(claims_of(x->sink, token), 2);
	a = xmem_get(x->sink, token);
	CHECK(a);
	SAME(stamp_of(a), stamp);
	b = xmem_get(x->owner, XMEM_SLOT(token & 0xffff));
	CHECK(b);
	SAME(claims_of(x->sink, token), 0);
	xmem_release(a);
	SAME(stamp_of(b), stamp);
	xmem_release(b);
}

TEST(P1_an_attached_file_is_handed_over_by_count)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = attached(x.owner, 5);
	uint64_t token;

	SAME(xmem_offer(b, 1, 0), -EPERM);
	SAME(xmem_forget(b), -EPERM);
	WORKED(xmem_set_ref_count(b, 2, 0));
	token = xmem_token(b);
	CHECK(token);
	SAME(stamp_of(b), 5);
	SAME(info_of(b).publisher, xmem_pool_client(x.owner));
	WORKED(xmem_forget(b));
	SAME(stat_of(x.owner).payloads, 2);
	take_both(&x, token, 5);
	EVENTUALLY(stat_of(x.owner).payloads == 1);
	crossing_end(&x);
}

TEST(P1_what_is_written_in_place_is_handed_over_by_count)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = upgraded(&x, 1);
	uint64_t token;

	SAME(xmem_offer(b, 1, 0), -EPERM);
	SAME(xmem_forget(b), -EPERM);
	fill(b, 2);
	WORKED(xmem_set_ref_count(b, 2, 0));
	token = xmem_token(b);
	CHECK(token);
	SAME(stamp_of(b), 2);
	REFUSED(xmem_data_mut(b), EPERM);
	REFUSED(xmem_receive(x.second, 0), EAGAIN);	/* it is published to nobody */
	SAME(info_of(b).publisher, xmem_pool_client(x.stage));
	WORKED(xmem_forget(b));
	take_both(&x, token, 2);
	crossing_end(&x);
}

/* When writing in place is given up, no claims are left, whichever client set them aside. */
TEST(P4_claims_end_with_what_is_written_in_place)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = upgraded(&x, 1);
	uint64_t token;

	WORKED(xmem_set_ref_count(b, 3, 0));
	token = xmem_token(b);
	WORKED(xmem_void_claims(x.stage, token));
	WORKED(xmem_get_mut(b));
	xmem_release(b);
	SAME(stat_of(x.owner).claims, 0);
	crossing_end(&x);
}

/* ---- to one subscriber ---- */

/* Send @b, whose contents are @stamp, to the sink alone. The owner follows the stage too. */
static void send_to_sink(struct crossing *x, struct xmem_pool *from, struct xmem_buffer *b,
			 uint64_t stamp, bool keep)
{
	struct xmem_publish_options o = {
		.size = sizeof(o), .timestamp_ns = 9, .client = xmem_pool_client(x->sink),
		.flags = XMEM_PUBLISH_CLIENT | (keep ? XMEM_PUBLISH_KEEP : 0),
	};
	struct xmem_subscription *other = follow(x->stage == from ? x->owner : x->stage,
						 xmem_pool_client(from), 0);
	struct xmem_subscription *to = from == x->stage ? x->second :
				       follow(x->sink, xmem_pool_client(from), 0);
	uint64_t token = 0;
	struct xmem_buffer *got;

	WORKED(xmem_publish(b, &o, &token));
	if (keep) {
		SAME(xmem_token(b), token);
		SAME(stamp_of(b), stamp);
		xmem_release(b);
	} else {
		REFUSED(xmem_data(b), EBADF);
	}
	REFUSED(xmem_receive(other, 0), EAGAIN);
	got = receive_one(to);
	SAME(stamp_of(got), stamp);
	SAME(xmem_token(got), token);
	SAME(info_of(got).timestamp_ns, 9);
	SAME(info_of(got).publisher, xmem_pool_client(from));
	xmem_release(got);
	SAME(sub_info(other).lost, 0);
	xmem_unsubscribe(other);
	if (to != x->second)
		xmem_unsubscribe(to);
}

TEST(P1_what_is_written_in_place_is_sent_to_one)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b;
	unsigned int keep;

	for (keep = 0; keep < 2; keep++) {
		b = upgraded(&x, 1);
		SAME(send_to(b, xmem_pool_client(x.owner), NULL), -ENOENT);
		fill(b, 2);
		send_to_sink(&x, x.stage, b, 2, keep);
	}
	crossing_end(&x);
}

TEST(P1_an_attached_file_is_sent_to_one)
{
	struct crossing x = crossing_start();
	unsigned int keep;

	xmem_unsubscribe(x.first);
	for (keep = 0; keep < 2; keep++)
		send_to_sink(&x, x.owner, attached(x.owner, 3), 3, keep);
	x.first = follow(x.stage, xmem_pool_client(x.owner), 0);
	crossing_end(&x);
}

/* A handle that was counted and forwards is dropped, and its reference with it. */
TEST(P1_forwarding_drops_the_reference_of_the_handle)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b = received(&x, 1), *got;
	uint64_t token = xmem_token(b);

	WORKED(xmem_set_ref_count(b, 2, 0));
	WORKED(xmem_publish(b, NULL, NULL));
	SAME(claims_of(x.sink, token), 1);
	xmem_release(receive_one(x.second));
	SAME(claims_of(x.sink, token), 1);
	got = xmem_get(x.sink, token);
	CHECK(got);
	xmem_release(got);
	b = received(&x, 2);
	WORKED(xmem_set_ref_count(b, 1, 0));
	WORKED(send_to(b, xmem_pool_client(x.sink), NULL));
	xmem_release(receive_one(x.second));
	crossing_end(&x);
}

/* ---- descriptions ---- */

static void labelled(struct xmem_buffer *b, const char *label)
{
	struct xmem_buffer_info said = info_of(b);

	if (strcmp(said.label, label))
		FAIL("the label is '%s', not '%s'", said.label, label);
}

/* Each handle is of contents that had another publisher before. */
TEST(P1_who_writes_a_buffer_is_its_publisher)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b;

	xmem_release(received(&x, 1));
	b = received(&x, 1);
	labelled(b, "owner");
	WORKED(xmem_get_mut(b));
	labelled(b, "stage");
	SAME(info_of(b).publisher, xmem_pool_client(x.stage));
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(x.second);
	labelled(b, "stage");
	WORKED(xmem_publish(b, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_KEEP),
			    NULL));
	labelled(b, "stage");		/* as it was received */
	xmem_release(b);
	b = attached(x.sink, 4);
	labelled(b, "sink");
	SAME(info_of(b).publisher, xmem_pool_client(x.sink));
	xmem_release(b);
	crossing_end(&x);
}

/* ---- copies ---- */

TEST(P1_copies_of_each_kind_of_buffer)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *file = attached(x.owner, 4), *b, *to = xmem_acquire(x.owner, BYTES, 0);
	uint64_t eight = 8;

	SAME(xmem_copy(file, to, NULL), -EPERM);
	SAME(xmem_copy_from_host(file, 0, &eight, 8, NULL), -EPERM);
	xmem_metadata_mut(file)->user[1] = 11;
	WORKED(xmem_copy(to, file, NULL));
	SAME(xmem_metadata_ptr(to)->user[1], 11);
	WORKED(xmem_publish(to, NULL, NULL));
	b = receive_one(x.first);
	SAME(stamp_of(b), 4);
	/*
	 * Contents that are written in place have metadata of their own until they are published.
	 */
	WORKED(xmem_get_mut(b));
	xmem_metadata_mut(file)->user[1] = 12;
	xmem_metadata_mut(file)->id = 4;
	WORKED(xmem_copy(b, file, NULL));
	SAME(xmem_metadata_ptr(b)->user[1], 12);
	SAME(xmem_copy_from_host(b, BYTES - 4, &eight, 8, NULL), -ERANGE);
	WORKED(xmem_copy_from_host(b, BYTES - 8, &eight, 8, NULL));
	fill(b, 8);
	to = xmem_acquire(x.owner, BYTES, 0);
	WORKED(xmem_copy(to, b, NULL));
	SAME(stamp_of(to), 8);
	SAME(xmem_metadata_ptr(to)->user[1], 12);
	xmem_release(to);
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(x.second);
	SAME(stamp_of(b), 8);
	SAME(xmem_metadata_ptr(b)->user[1], 12);
	xmem_release(b);
	xmem_release(file);
	crossing_end(&x);
}

/*
 * A part of what was received is written in place. A copy that does not fit behind it is refused.
 */
TEST(P1_a_copy_into_a_part_ends_where_the_buffer_ends)
{
	struct crossing x = crossing_start();
	struct xmem_publish_options part = {
		.size = sizeof(part), .offset = BYTES - 64, .length = 32,
	};
	struct xmem_buffer *b = xmem_acquire(x.owner, BYTES, 0), *from;
	uint64_t words[16] = { 0 };

	fill(b, 1);
	WORKED(xmem_publish(b, &part, NULL));
	b = receive_one(x.first);
	SAME(xmem_size(b), 32);
	WORKED(xmem_get_mut(b));
	SAME(xmem_copy_from_host(b, 0, words, 72, NULL), -ERANGE);
	WORKED(xmem_copy_from_host(b, 0, words, 64, NULL));
	from = xmem_acquire(x.owner, 128, 0);
	SAME(xmem_copy(b, from, NULL), -ERANGE);
	xmem_release(from);
	from = xmem_acquire(x.owner, 64, 0);
	fill(from, 7);
	WORKED(xmem_copy(b, from, NULL));
	xmem_release(from);
	SAME(xmem_size(b), 64);
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(x.second);
	SAME(xmem_size(b), 64);
	SAME(stamp_of(b), 7);
	xmem_release(b);
	crossing_end(&x);
}

static struct xmem_buffer *part_in_place(struct crossing *x, size_t offset, size_t length)
{
	struct xmem_publish_options part = {
		.size = sizeof(part), .offset = offset, .length = length,
	};
	struct xmem_buffer *b = xmem_acquire(x->owner, BYTES, 0);

	fill(b, 1);
	WORKED(xmem_publish(b, &part, NULL));
	b = receive_one(x->first);
	SAME(xmem_capacity(b), BYTES);
	WORKED(xmem_get_mut(b));
	SAME(xmem_size(b), length);
	SAME(xmem_capacity(b), BYTES - offset);
	return b;
}

static void publish_refused(struct xmem_buffer *b, uint64_t offset, uint64_t length)
{
	struct xmem_publish_options o = { .size = sizeof(o), .offset = offset, .length = length };

	SAME(xmem_publish(b, &o, NULL), -ERANGE);
}

/*
 * Capacity, copies and the lengths for publish count from xmem_data_mut; no other byte is written.
 */
TEST(P1_writing_in_place_counts_from_the_contents)
{
	struct crossing x = crossing_start();
	struct xmem_publish_options o = { .size = sizeof(o), .offset = 8, .length = 48 };
	struct xmem_buffer *b = part_in_place(&x, BYTES - 64, 32);
	const char *begin = xmem_data(b);
	uint64_t words[8] = { 1, 7, 7, 7, 7, 7, 7, 8 };

	CHECK(xmem_data_mut(b) == begin);
	memset(xmem_data_mut(b), 3, xmem_capacity(b));
	WORKED(xmem_copy_from_host(b, 0, words, xmem_capacity(b), NULL));
	xmem_metadata_mut(b)->id = 7;
	SAME(xmem_copy_from_host(b, 8, words, xmem_capacity(b), NULL), -ERANGE);
	SAME(xmem_metadata_ptr(b)->offset, BYTES - 64);
	publish_refused(b, 0, 65);
	publish_refused(b, 64, 1);
	publish_refused(b, BYTES - 64, 8);
	publish_refused(b, 33, 0);		/* up to the end of 32 bytes */
	WORKED(xmem_publish(b, &o, NULL));
	b = receive_one(x.second);
	CHECK(xmem_size(b) == 48 && stamp_of(b) == 7);
	SAME(xmem_metadata_ptr(b)->offset, BYTES - 64 + 8);
	xmem_release(b);
	/* Up to the end of the received part; without options that is all of it. */
	b = part_in_place(&x, 64, 32);
	fill(b, 5);
	o = (struct xmem_publish_options){ .size = sizeof(o), .offset = 24 };
	WORKED(xmem_publish(b, &o, NULL));
	b = receive_one(x.second);
	CHECK(xmem_size(b) == 8 && stamp_of(b) == 5);
	xmem_release(b);
	b = part_in_place(&x, 64, 32);
	fill(b, 6);
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(x.second);
	CHECK(xmem_size(b) == 32 && stamp_of(b) == 6);
	SAME(xmem_metadata_ptr(b)->offset, 64);
	xmem_release(b);
	crossing_end(&x);
}

TEST(P1_each_kind_of_buffer_is_described)
{
	struct crossing x = crossing_start();
	struct xmem_buffer *b[2] = { attached(x.owner, 4), upgraded(&x, 1) };
	uint32_t words = XMEM_DTYPE(XMEM_DTYPE_CODE_UINT, 64, 1);
	int64_t shape[2] = { BYTES / 64, 8 }, too_many[1] = { BYTES / 8 + 1 };
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		SAME(xmem_describe_tensor(b[i], words, 1, too_many, NULL), -ERANGE);
		WORKED(xmem_describe_tensor(b[i], words, 2, shape, NULL));
		WORKED(xmem_tensor_view(b[i], 0, &tensor));
		SAME(tensor.ndim, 2);
		SAME(tensor.shape[1], 8);
		CHECK(!strcmp(xmem_metadata_ptr(b[i])->producer, i ? "stage" : "owner"));
		WORKED(xmem_publish(b[i], NULL, NULL));
		b[i] = xmem_receive(i ? x.second : x.first, patience_ns());
		CHECK(b[i]);
		WORKED(xmem_tensor_view(b[i], 0, &tensor));
		SAME(tensor.shape[1], 8);
		SAME(xmem_describe_tensor(b[i], words, 2, shape, NULL), -EPERM);
		xmem_release(b[i]);
	}
	crossing_end(&x);
}

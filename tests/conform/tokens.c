// SPDX-License-Identifier: MIT
/*
 * P5: a token that is stale, made up, or of another or an earlier pool gives ESTALE and never other
 * contents. Also the use of tokens: they can be sent through any channel.
 */
#include "harness.h"

#define BYTES	4096

TEST(P5_a_token_is_stale_once_its_contents_are_replaced)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	uint64_t token[30];
	unsigned int i, k;

	for (i = 0; i < 30; i++) {
		struct xmem_buffer *kept;

		token[i] = publish_kept(writer, i, &kept);
		CHECK(token[i]);
		for (k = 0; k < i; k++)
			CHECK(token[k] != token[i]);
		xmem_release(kept);
	}
	for (i = 0; i < 28; i++)
		REFUSED(xmem_get(writer, token[i]), ESTALE);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P5_a_token_is_stale_while_its_slot_is_written_again)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *kept, *b;
	uint64_t token = publish_kept(writer, 1, &kept);

	xmem_release(kept);
	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b);
	SAME(xmem_token(b), 0);
	REFUSED(xmem_get(writer, token), ESTALE);
	/* The next token cannot be guessed before it is published. */
	REFUSED(xmem_get(writer, token + 0x10000), ESTALE);
	xmem_release(b);
	REFUSED(xmem_get(writer, token), ESTALE);
	REFUSED(xmem_get(writer, token + 0x10000), ESTALE);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P5_a_token_of_another_pool_is_stale)
{
	struct xmem_pool *a = open_writer(new_name(), 4, BYTES);
	struct xmem_pool *b = open_writer(new_name(), 4, BYTES);
	struct xmem_buffer *of_a[4], *of_b[4];
	uint64_t token[4];
	unsigned int i;

	/* The pools are alike and used alike: only the start of the generations differs. */
	for (i = 0; i < 4; i++) {
		token[i] = publish_kept(a, i, &of_a[i]);
		publish_kept(b, i, &of_b[i]);
	}
	for (i = 0; i < 4; i++)
		REFUSED(xmem_get(b, token[i]), ESTALE);
	for (i = 0; i < 4; i++) {
		xmem_release(of_a[i]);
		xmem_release(of_b[i]);
	}
	check_quiet(a, 1);
	check_quiet(b, 1);
	xmem_pool_close(a);
	xmem_pool_close(b);
}

TEST(P5_a_token_of_an_earlier_pool_of_the_name_is_stale)
{
	const char *name = new_name();
	uint64_t token[8];
	struct xmem_buffer *kept;
	unsigned int i, k;

	for (i = 0; i < 8; i++) {
		struct xmem_pool *pool = open_writer(name, 1, BYTES);

		token[i] = publish_kept(pool, i, &kept);
		for (k = 0; k < i; k++)
			REFUSED(xmem_get(pool, token[k]), ESTALE);
		xmem_release(kept);
		xmem_pool_close(pool);
	}
}

static void publish_one_and_end(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 4, BYTES);
	struct xmem_buffer *kept[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		tell_parent(publish_kept(pool, i, &kept[i]));
	hear_parent();
}

TEST(P5_tokens_of_a_slots_earlier_owners_are_stale)
{
	const char *name = new_name();
	struct xmem_pool *reader = OPEN(name, .slots = 64);
	uint64_t token[6][4];
	unsigned int i, k;

	for (i = 0; i < 6; i++) {
		struct child *child = spawn(publish_one_and_end, (void *)name);

		for (k = 0; k < 4; k++)
			token[i][k] = hear(child);
		for (k = 0; k < 4; k++) {
			struct xmem_buffer *b = xmem_get(reader, token[i][k]);

			CHECK(b);
			SAME(stamp_of(b), k);
			xmem_release(b);
		}
		for (k = 0; k < 4 * i; k++)
			REFUSED(xmem_get(reader, token[k / 4][k % 4]), ESTALE);
		tell(child, 1);
		finish_child(child);
		EVENTUALLY(stat_of(reader).attached == 0);
	}
	xmem_pool_close(reader);
}

/*
 * The state word is in the owner's page, so the owner can write anything there, within its own
 * tenancy.
 */
TEST(P5_an_owner_that_rewinds_does_not_revive_old_tokens)
{
	const char *name = new_name();
	struct xmem_pool *reader = OPEN(name, .slots = 64);
	struct xmem_attach_request attach;
	uint64_t token[4], old;
	struct child *child = spawn(publish_one_and_end, (void *)name);
	struct raw hostile;
	unsigned int i;
	int file;

	for (i = 0; i < 4; i++)
		token[i] = hear(child);
	old = token[0];
	tell(child, 1);
	finish_child(child);
	EVENTUALLY(stat_of(reader).attached == 0);
	raw_start(&hostile, name, XMEM_ROLE_WRITER);
	file = new_memfd(64 * BYTES, GOOD_SEALS);
	SAME(raw_attach(&hostile, file, 64, &attach), 0);	/* all slots, also this one */
	SAME(hostile.link.backend->map_group(&hostile.link, 0), 0);
	xm_store_release(&xm_slot(&hostile.map, xm_token_slot(old))->state,
			 xm_word(xm_generation(old), 0, XMEM_SLOT_LIVE));
	REFUSED(xmem_get(reader, old), ESTALE);
	SAME(stat_of(reader).holds, 0);
	close(file);
	raw_close(&hostile);
	xmem_pool_close(reader);
}

TEST(P5_made_up_tokens_are_stale)
{
	struct xmem_pool *pool = open_writer(new_name(), 8, BYTES);
	uint64_t random = seed(), token;
	struct xmem_buffer *kept;
	unsigned int i;

	token = publish_kept(pool, 1, &kept);
	REFUSED(xmem_get(pool, ~0ULL >> 1), ESTALE);
	REFUSED(xmem_get(pool, token ^ 1), ESTALE);		/* another slot */
	REFUSED(xmem_get(pool, token | 0xffff), ESTALE);	/* no such slot */
	REFUSED(xmem_get(pool, token ^ 1ULL << 63), ESTALE);
	REFUSED(xmem_get(pool, token ^ 1ULL << 16), ESTALE);
	for (i = 0; i < scaled(10000); i++)
		REFUSED(xmem_get(pool, random_next(&random)), ESTALE);
	SAME(stat_of(pool).holds, 1);
	xmem_release(kept);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

struct reader {
	const char *name;
	int from;
};

static void get_what_comes(void *argument)
{
	struct reader *reader = argument;
	struct xmem_pool *pool = open_reader(reader->name);
	uint64_t token, stamp = 0;

	tell_parent(1);
	while (read(reader->from, &token, sizeof(token)) == sizeof(token)) {
		struct xmem_buffer *b = xmem_get(pool, token);

		CHECK(b);
		SAME(stamp_of(b), stamp++);
		tell_parent(stamp);
		xmem_release(b);
	}
}

TEST(P5_a_token_goes_through_a_pipe)
{
	struct reader reader = { .name = new_name() };
	struct xmem_pool *writer = open_writer(reader.name, 4, BYTES);
	struct child *child;
	unsigned int i;
	int pipes[2];

	CHECK(!pipe(pipes));
	reader.from = pipes[0];
	child = spawn(get_what_comes, &reader);
	close(pipes[0]);
	hear(child);
	for (i = 0; i < 20; i++) {
		struct xmem_buffer *kept;
		uint64_t token = publish_kept(writer, i, &kept);

		SAME(write(pipes[1], &token, sizeof(token)), sizeof(token));
		SAME(hear(child), i + 1);
		xmem_release(kept);
	}
	kill_child(child);
	close(pipes[1]);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

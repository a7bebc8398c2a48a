// SPDX-License-Identifier: MIT
/*
 * Private views: held contents, as memory that their holder may write. No other client sees what it
 * stores there, and the view shows later contents of that slot correctly.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "attached.h"
#include "views.h"
#include "lib/private.h"

/* ---- what is stored, and what is seen ---- */

static const size_t lengths[] = { 8, 104, 4096, 64 << 10, (64 << 10) + 8, MB - 8, LARGE };
#define LENGTHS	(sizeof(lengths) / sizeof(*lengths))

/* A store is not seen by another handle, in another client, or in the file. */
TEST(P1_what_is_stored_in_a_private_view_nobody_sees)
{
	struct xmem_buffer *kept, *b, *clone;
	uint64_t *mine, *other, *owners;
	struct scene s;
	unsigned int i;

	for (i = 0; i < LENGTHS; i++) {
		s = start(lengths[i], 1, 0);
		b = give(&s, 0x11, &kept);
		mine = view_of(b, 0x11);
		CHECK(xmem_data_private(b) == mine && xmem_data(b) != mine);
		store_all(mine, s.bytes, 0x22);
		clone = xmem_clone(b);
		other = view_of(clone, 0x11);
		owners = view_of(kept, 0x11);
		CHECK(other != mine);
		store_all(other, s.bytes, 0x33);
		store_all(owners, s.bytes, 0x44);
		check_all(mine, s.bytes, 0x22);
		check_all(other, s.bytes, 0x33);
		check_all(owners, s.bytes, 0x44);
		check_all(xmem_data(b), s.bytes, 0x11);
		check_all(xmem_data(kept), s.bytes, 0x11);
		xmem_release(clone);
		check_all(mine, s.bytes, 0x22);
		xmem_release(b);
		b = xmem_get(s.reader, xmem_token(kept));
		CHECK(b);
		view_of(b, 0x11);
		xmem_release(b);
		xmem_release(kept);
		end(&s);
	}
}

/*
 * The trap: a page into which something was stored does not show the slot's next contents. A page
 * that was only read, or never touched, does.
 */
TEST(P1_later_contents_are_seen_in_a_private_view)
{
	unsigned int i, round, stores;
	struct xmem_buffer *b, *kept;
	uint64_t *words;
	struct scene s;

	for (i = 0; i < LENGTHS; i++) {
		s = start(lengths[i], 1, 0);
		for (round = 1; round < 20; round++) {
			b = give(&s, round, &kept);
			words = view_of(b, round);
			stores = round % 4;	/* pages with a store: none, one, two, all */
			if (stores == 3)
				store_all(words, s.bytes, ~0ULL);
			if (stores)
				words[0] = words[s.bytes / 8 / 3] = ~0ULL;
			if (stores == 2)
				words[s.bytes / 8 - 1] = ~0ULL;
			check_all(xmem_data(b), s.bytes, round);
			xmem_release(b);
			xmem_release(kept);
			CHECK(private_mappings() <= 1);
		}
		end(&s);
	}
}

/* Neighbours are in one page, whether they are copied or mapped. */
TEST(P1_neighbours_of_a_private_view_keep_their_contents)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER,
					.demand_bytes = 64 * MB);
	struct xmem_pool *reader = xmem_pool_reopen(writer);
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *kept[8], *b[8];
	size_t bytes, i;

	CHECK(reader);
	for (bytes = 64; bytes <= 64 * 2048; bytes *= 2048) {
		for (i = 0; i < 8; i++) {
			uint64_t token;

			kept[i] = xmem_acquire(writer, bytes, 0);
			CHECK(kept[i]);
			store_all(xmem_data_mut(kept[i]), bytes, i + 1);
			WORKED(xmem_publish(kept[i], &keep, &token));
			CHECK((b[i] = xmem_get(reader, token)));
		}
		for (i = 0; i < 8; i++)
			store_all(view_of(b[i], i + 1), bytes, 100 + i);
		for (i = 0; i < 8; i++) {
			check_all(xmem_data_private(b[i]), bytes, 100 + i);
			check_all(xmem_data(b[i]), bytes, i + 1);
			xmem_release(b[i]);
			xmem_release(kept[i]);
		}
	}
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Contents that begin in the middle of a page, of a file and of a buffer. */
TEST(P1_a_private_view_of_a_part)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_publish_options part = {
		.size = sizeof(part), .flags = XMEM_PUBLISH_KEEP, .offset = 8 * 777,
		.length = 8 * 10001,
	};
	int file = stamped(MB, 5, FULL_SEALS);
	struct xmem_buffer *b = xmem_acquire(s.writer, LARGE, 0), *got;
	uint64_t *words, token;
	size_t i;

	words = xmem_data_mut(b);
	for (i = 0; i < LARGE / 8; i++)
		words[i] = i;
	WORKED(xmem_publish(b, &part, &token));
	CHECK((got = xmem_get(s.reader, token)));
	words = xmem_data_private(got);
	CHECK(words);
	SAME(xmem_size(got), 8 * 10001);
	for (i = 0; i < 10001; i++)
		SAME(words[i], 777 + i);
	store_all(words, 8 * 10001, ~0ULL);
	SAME(*(const uint64_t *)xmem_data(got), 777);
	xmem_release(got);
	xmem_release(b);
	b = xmem_attach_fd(s.writer, file, 64 * 1001, 0, 0);
	CHECK(b);
	part.offset = part.length = 0;
	WORKED(xmem_publish(b, &part, &token));
	CHECK((got = xmem_get(s.reader, token)));
	SAME(xmem_size(got), MB - 64 * 1001);
	store_all(view_of(got, 5), MB - 64 * 1001, 6);
	view_of(b, 5);
	xmem_release(got);
	xmem_release(b);
	close(file);
	end(&s);
}

TEST(P1_a_private_view_of_what_every_writer_may_write)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 7, &kept);
	uint64_t *words = view_of(b, 7);

	store_all(words, LARGE, 8);
	check_all(xmem_data(b), LARGE, 7);
	xmem_release(kept);
	WORKED(xmem_get_mut(b));		/* it is no view any more */
	check_all(xmem_data_mut(b), LARGE, 7);
	REFUSED(xmem_data_private(b), EPERM);
	xmem_release(b);
	b = give(&s, 9, &kept);
	view_of(b, 9);
	SAME(private_mappings(), 1);
	xmem_release(b);
	xmem_release(kept);
	end(&s);
}

/* ---- memory ---- */

TEST(P10_what_was_stored_in_a_private_view_is_given_back)
{
	struct scene s = start(LARGE, 2, 0);
	struct xmem_buffer *kept, *b;
	unsigned int round;

	for (round = 1; round < 6; round++) {
		b = give(&s, round, &kept);
		store_all(view_of(b, round), LARGE, ~0ULL);
		SAME(stored_bytes(), LARGE);
		xmem_release(b);
		SAME(stored_bytes(), 0);
		xmem_release(kept);
	}
	CHECK(private_mappings() <= 2);
	end(&s);
}

/* However a handle ends, its view ends too. Otherwise the next one would need a further mapping. */
TEST(P10_a_private_view_goes_with_its_handle)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b;
	uint64_t token, round;

	for (round = 1; round < 8; round++) {
		b = give(&s, round, &kept);
		xmem_release(kept);
		token = xmem_token(b);
		store_all(view_of(b, round), LARGE, ~0ULL);
		SAME(private_mappings(), 1);
		switch (round) {
		case 1:
			WORKED(xmem_forget(b));
			WORKED(xmem_drop_ref(s.reader, token));
			break;
		case 2:
			WORKED(xmem_publish(b, NULL, NULL));
			break;
		case 3:
			WORKED(xmem_set_ref_count(b, 1, 0));
			xmem_release(b);
			break;
		case 4:
			WORKED(xmem_get_mut(b));
			WORKED(xmem_publish(b, NULL, NULL));
			break;
		default:
			xmem_release(b);
		}
		EVENTUALLY(xmem_collect(s.writer, XMEM_KEEP_ALL, NULL) >= 0 &&
			   !stat_of(s.writer).holds);
	}
	end(&s);
}

/* The file's memory is free when its owner gives it back: no idle view keeps it. */
TEST(P10_idle_private_views_keep_no_payload)
{
	struct scene s = start(LARGE, 3, 0);
	struct xmem_buffer *kept[3], *b[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		b[i] = give(&s, i + 1, &kept[i]);
		view_of(b[i], i + 1);
	}
	for (i = 0; i < 3; i++) {
		xmem_release(b[i]);
		xmem_release(kept[i]);
	}
	CHECK(private_mappings() >= 1);
	CHECK(trim_pool(s.writer, 0) >= 3 * LARGE);
	EVENTUALLY(!stat_of(s.reader).attached && !private_mappings());
	end(&s);
}

/* A handle keeps its view after the pool's handle is closed. */
TEST(P1_a_private_view_outlives_its_pool)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 3, &kept);
	uint64_t *words = view_of(b, 3);

	xmem_pool_close(s.reader);
	xmem_release(kept);
	xmem_pool_close(s.writer);
	words[0] = 4;
	check_all(words + 1, LARGE - 8, 3);
	check_all(xmem_data(b), LARGE, 3);
	xmem_release(b);
	EVENTUALLY(!private_mappings());
}

static void look_in_a_child(void *argument)
{
	REFUSED(xmem_data_private(argument), ECHILD);
	SAME(private_mappings(), 0);
}

TEST(P1_a_child_has_no_private_views)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 3, &kept);

	store_all(view_of(b, 3), LARGE, 4);
	finish_child(spawn(look_in_a_child, b));
	check_all(xmem_data_private(b), LARGE, 4);
	xmem_release(b);
	xmem_release(kept);
	end(&s);
}

/*
 * When a program locks its memory, the kernel copies all pages that may be written, also those of
 * idle views. The copies must not show the slot's earlier contents.
 */
static void lock_all(void *argument)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b;
	unsigned int round;

	(void)argument;
	for (round = 1; round < 8; round++) {
		b = give(&s, round, &kept);
		store_all(view_of(b, round), MB, ~0ULL);
		xmem_release(b);
		xmem_release(kept);
		if (round == 3 && mlockall(MCL_CURRENT))
			break;
		if (round == 5)
			CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	}
	tell_parent(round);
	munlockall();
	end(&s);
}

TEST(P1_private_views_of_a_program_that_locks_its_memory)
{
	struct child *child = spawn(lock_all, NULL);
	uint64_t rounds = hear(child);

	finish_child(child);
	if (rounds < 8)
		skip("this process may not lock its memory");
}

/* ---- threads ---- */

/*
 * The view is mapped, not copied, but is not much longer than the limit. The first store to each
 * page makes the other processors flush it, which takes long where they are emulated and wait for a
 * turn.
 */
#define SHARED_VIEW	(128u << 10)

static void *use_views(void *argument)
{
	struct xmem_buffer *b = argument, *clone;
	uint64_t *first = xmem_data_private(b);
	unsigned int i, rounds = scaled(200);

	CHECK(first);
	for (i = 0; i < rounds; i++) {
		CHECK(xmem_data_private(b) == first);
		clone = xmem_clone(b);
		CHECK(clone);
		store_all(view_of(clone, 5), SHARED_VIEW, i);
		xmem_release(clone);
	}
	return first;
}

TEST_WITHIN(P1_threads_share_the_private_view_of_a_handle, 60)
{
	struct scene s = start(SHARED_VIEW, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 5, &kept);
	pthread_t thread[3];
	void *first[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		SAME(pthread_create(&thread[i], NULL, use_views, b), 0);
	for (i = 0; i < 3; i++)
		SAME(pthread_join(thread[i], &first[i]), 0);
	CHECK(first[0] == first[1] && first[1] == first[2]);
	check_all(first[0], SHARED_VIEW, 5);
	xmem_release(b);
	xmem_release(kept);
	CHECK(private_mappings() <= 1);		/* one is kept for the slot */
	end(&s);
}

static void *ask_everything(void *argument)
{
	struct xmem_buffer *b = argument;

	CHECK(xmem_metadata_ptr(b));
	SAME(xmem_capacity(b), SHARED_VIEW);
	CHECK(xmem_data(b));
	REFUSED(xmem_data_mut(b), EPERM);
	CHECK(info_of(b).publisher != XMEM_NOBODY);
	WORKED(xmem_set_ref_count(b, 1, 0));
	return NULL;
}

static void *take_a_private_view(void *argument)
{
	CHECK(xmem_data_private(argument));
	return NULL;
}

/* A handle records things at its first use. Other threads may see this memory change. */
TEST_WITHIN(P1_threads_may_ask_a_handle_different_things_at_once, 60)
{
	struct scene s = start(SHARED_VIEW, 1, 0);
	unsigned int i, rounds = scaled(50);
	struct xmem_buffer *kept, *b;
	pthread_t asks, views;

	for (i = 0; i < rounds; i++) {
		b = give(&s, i, &kept);
		SAME(pthread_create(&asks, NULL, ask_everything, b), 0);
		SAME(pthread_create(&views, NULL, take_a_private_view, b), 0);
		SAME(pthread_join(asks, NULL), 0);
		SAME(pthread_join(views, NULL), 0);
		CHECK(xmem_data_private(b) != xmem_data(b));
		xmem_release(b);
		xmem_release(kept);
		CHECK(private_mappings() <= 1);
	}
	end(&s);
}

/* ---- misuse, and costs ---- */

TEST(API_a_private_view_is_refused)
{
	struct scene s = start(MB, 1, 0);
	struct xmem_buffer *b = xmem_acquire(s.writer, MB, 0), *kept;

	REFUSED(xmem_data_private(NULL), EINVAL);
	REFUSED(xmem_data_private(b), EPERM);
	xmem_release(b);
	REFUSED(xmem_data_private(b), EBADF);
	b = give(&s, 1, &kept);
	view_of(b, 1);
	xmem_release(b);
	REFUSED(xmem_data_private(b), EBADF);
	xmem_release(kept);
	end(&s);
}

TEST(API_a_reader_gets_a_private_view_of_shared_contents)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b;

	xmem_pool_close(s.reader);
	s.reader = OPEN(s.name, .flags = XMEM_OPEN_READER);
	b = give(&s, 1, &kept);
	store_all(view_of(b, 1), LARGE, 2);
	check_all(xmem_data(b), LARGE, 1);
	check_all(xmem_data(kept), LARGE, 1);
	SAME(private_mappings(), 1);
	xmem_release(b);
	xmem_release(kept);
	end(&s);
}

static struct xmem_backend counting;
static const struct xmem_backend *counted_host;
static unsigned int asked;

static int count_request(struct xmem_link *link, unsigned int request, void *argument)
{
	asked++;
	return counted_host->request(link, request, argument);
}

TEST(API_the_host_is_asked_once_for_the_private_views_of_a_buffer)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b;
	unsigned int round;

	counted_host = s.reader->link.backend;
	counting = *counted_host;
	counting.request = count_request;
	s.reader->link.backend = &counting;
	for (round = 1; round < 6; round++) {
		b = give(&s, round, &kept);
		CHECK(xmem_data(b));
		asked = round == 1 ? 0 : asked;
		store_all(view_of(b, round), MB, ~0ULL);
		xmem_release(b);
		xmem_release(kept);
	}
	SAME(asked, 1);
	s.reader->link.backend = counted_host;
	end(&s);
}

// SPDX-License-Identifier: MIT
/*
 * SIGKILL at random steps of clients that hand buffers over by count. All that they had is free
 * again, at once or when the time of the claims has passed, and every get returns the contents that
 * the token names.
 */
#include <signal.h>
#include <sys/socket.h>

#include "claims.h"

#define BUFFERS	3
#define SHORT	(50 * MS)

struct kill {
	const char *name;
	unsigned int after;
	uint64_t random;
};

static bool tell_quietly(struct child *child, uint64_t token)
{
	return send(child->link, &token, sizeof(token), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       sizeof(token);
}

/* The buffer of a token may be gone: its time may have passed. */
static void consume_all(void *argument)
{
	struct kill *how = argument;
	struct xmem_pool *pool = open_reader(how->name);
	uint64_t token;

	tell_parent(1);
	at_step(ANY_STEP, how->after, STEP_KILL, NULL);
	for (;;) {
		struct xmem_buffer *b;

		token = hear_parent();
		if (random_next(&how->random) % 4 == 0) {
			xmem_drop_ref(pool, token);
			continue;
		}
		b = xmem_get(pool, random_next(&how->random) & 1 ? token :
						      XMEM_SLOT(token & 0xffff));
		if (!b)
			continue;
		stamp_of(b);		/* all of it has one stamp */
		if (random_next(&how->random) % 2 && !xmem_set_ref_count(b, 2, SHORT) &&
		    random_next(&how->random) % 2)
			xmem_forget(b);
		else
			xmem_release(b);
	}
}

TEST_WITHIN(P2_consumers_by_count_killed_at_random_steps, 60)
{
	struct kill how = { .name = new_name() };
	struct xmem_pool *writer;
	unsigned int i, k, rounds = scaled(30);
	uint64_t random = seed();

	steps_only();
	writer = open_writer(how.name, BUFFERS, BYTES);
	for (i = 0; i < rounds; i++) {
		struct xmem_buffer *b[BUFFERS];
		struct child *child;
		bool lives = true;

		how.random = random_next(&random);
		how.after = random_next(&random) % 60;
		child = spawn(consume_all, &how);
		hear(child);
		for (k = 0; k < 100 && lives; k++) {
			uint64_t token;

			b[0] = xmem_acquire(writer, BYTES, patience_ns());
			CHECK(b[0]);
			fill(b[0], k);
			WORKED(xmem_set_ref_count(b[0], 2, SHORT));
			token = xmem_token(b[0]);
			WORKED(xmem_forget(b[0]));
			lives = tell_quietly(child, token) && tell_quietly(child, token);
		}
		if (lives)
			kill_child(child);
		else
			died_of_kill(child);
		for (k = 0; k < BUFFERS; k++) {
			b[k] = xmem_acquire(writer, BYTES, patience_ns());
			CHECK(b[k]);
		}
		for (k = 0; k < BUFFERS; k++)
			xmem_release(b[k]);
		SAME(stat_of(writer).claims, 0);
		check_quiet(writer, 1);
	}
	xmem_pool_close(writer);
}

static void produce_all(void *argument)
{
	struct kill *how = argument;
	struct xmem_pool *pool = open_writer(how->name, BUFFERS, BYTES);
	uint64_t stamp;

	at_step(ANY_STEP, how->after, STEP_KILL, NULL);
	for (stamp = 0;; stamp++) {
		struct xmem_buffer *b = xmem_acquire(pool, BYTES, patience_ns());
		uint64_t token;

		CHECK(b);
		fill(b, stamp);
		WORKED(xmem_set_ref_count(b, 1 + stamp % 3, SHORT));
		token = xmem_token(b);
		if (stamp & 1)
			WORKED(xmem_forget(b));
		else
			xmem_release(b);
		tell_parent(token);
	}
}

TEST_WITHIN(P3_producers_by_count_killed_at_random_steps, 60)
{
	struct kill how = { .name = new_name() };
	struct xmem_pool *reader;
	unsigned int i, rounds = scaled(30);
	uint64_t random = seed(), token;

	steps_only();
	reader = open_reader(how.name);
	for (i = 0; i < rounds; i++) {
		struct child *child;

		how.after = random_next(&random) % 200;
		child = spawn(produce_all, &how);
		while (recv(child->link, &token, sizeof(token), MSG_WAITALL) == sizeof(token)) {
			struct xmem_buffer *b = xmem_get(reader, token);

			if (b)
				stamp_of(b);
			xmem_release(b);
		}
		died_of_kill(child);
		EVENTUALLY(stat_of(reader).attached == 0);
		SAME(stat_of(reader).claims, 0);
		check_quiet(reader, 1);
	}
	xmem_pool_close(reader);
}

// SPDX-License-Identifier: MIT
/*
 * Claims while xmemd is stopped. Additions that the library gave up are undone if they were done,
 * whichever clients have ended meanwhile.
 */
#include <signal.h>

#include "claims.h"
#include "lib/host/exchange.h"
#include "lib/private.h"

static pid_t daemon_pid;

/*
 * The last number of this handle's messages. The exchange comes first in the part that the link
 * keeps.
 */
static uint64_t last_number(struct xmem_pool *pool)
{
	return ((struct xl_exchange *)pool->link.private)->number;
}

/* The name of a new pool of a daemon of its own. */
static const char *alone(void)
{
	daemon_only("the kernel is not stopped");
	use_own_daemon();
	return new_name();
}

/* ---- requests that were given up ---- */

/* Do as the library does after an answer that came too late. The last number is that of the add. */
static void undo_and_wait(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 1, BYTES);
	struct xmem_claim_request undo = { .size = sizeof(undo), .op = XMEM_CLAIM_UNDO };

	counted(pool, 3, 3, XMEM_FOREVER);
	undo.generation = last_number(pool);
	tell_parent(1);
	hear_parent();
	pool->link.backend->post(&pool->link, XMEM_IOC_CLAIM, &undo);
	tell_parent(1);
	hear_parent();
}

TEST(P2_what_was_undone_while_the_daemon_is_stopped_stays_undone)
{
	const char *name = alone();
	struct xmem_pool *one = open_reader(name);
	struct child *child = spawn(undo_and_wait, (void *)name);

	hear(child);
	SAME(stat_of(one).claims, 2);
	daemon_pid = stop_daemon();
	tell(child, 1);
	hear(child);
	kill_child(child);
	continue_daemon(daemon_pid);
	EVENTUALLY(stat_of(one).attached == 0);
	check_quiet(one, 1);
	xmem_pool_close(one);
}

static void nothing(int signal)
{
}

static void interrupt(void *argument)
{
	int i;

	for (i = 0; i < 100; i++) {
		look_again_soon();
		kill(getppid(), SIGUSR1);
	}
}

static unsigned int signals;

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

static void interrupt_and_go_on(void *argument)
{
	int i;

	(void)argument;
	for (i = 0; i < 10; i++) {
		look_again_soon();
		kill(getppid(), SIGUSR1);
	}
	continue_daemon(daemon_pid);
}

/*
 * Other clients may take claims as soon as they exist, so a signal alone does not end the wait for
 * a daemon that answers. On a slow machine the answer is late.
 */
TEST(P8_a_signal_does_not_undo_claims_of_a_daemon_that_answers)
{
	struct sigaction action = { .sa_handler = count_signal };
	const char *name = alone();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 1);
	uint64_t token = xmem_token(b);
	int64_t end = now_ns() + patience_ns();
	struct child *child;
	int tries, err;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	for (tries = 0, err = -EINTR; err; tries++) {
		CHECK(now_ns() < end);
		signals = 0;
		daemon_pid = stop_daemon();
		child = spawn(interrupt_and_go_on, NULL);
		err = tries % 2 ? xmem_add_ref(reader, token) : xmem_offer(b, 1, 0);
		finish_child(child);
		CHECK(signals);
		host_has_served(reader);
		SAME(claims_of(writer, token), !err);
		if (err)
			SAME(err, -EINTR);
	}
	WORKED(xmem_void_claims(writer, token));
	xmem_release(b);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* There would be too many, so the host refuses them, and there is nothing to undo. */
TEST(API_an_offer_that_was_given_up_and_is_refused_takes_nothing)
{
	struct sigaction action = { .sa_handler = nothing };
	struct xmem_pool *writer = open_writer(alone(), 1, BYTES);
	struct xmem_buffer *b = counted(writer, 5, 3, 0);
	struct child *child;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	daemon_pid = stop_daemon();
	child = spawn(interrupt, NULL);
	SAME(xmem_offer(b, 65535, 0), -EINTR);
	finish_child(child);
	continue_daemon(daemon_pid);
	host_has_served(writer);
	SAME(claims_of(writer, xmem_token(b)), 2);
	WORKED(xmem_void_claims(writer, xmem_token(b)));
	xmem_release(b);
	xmem_pool_close(writer);
}

TEST(P2_counting_that_was_given_up_sets_nothing_aside)
{
	struct sigaction action = { .sa_handler = nothing };
	const char *name = alone();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 1), *other;
	uint64_t token = xmem_token(b);
	struct child *child;

	WORKED(xmem_add_ref(writer, token));
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	daemon_pid = stop_daemon();
	child = spawn(interrupt, NULL);
	SAME(xmem_set_ref_count(b, 5, 0), -EINTR);
	finish_child(child);
	continue_daemon(daemon_pid);
	host_has_served(reader);
	SAME(claims_of(writer, token), 1);
	/* The reader's end takes no claims along. */
	other = xmem_clone(b);
	CHECK(other);
	WORKED(xmem_set_ref_count(other, 2, 0));
	WORKED(xmem_forget(other));
	xmem_release(b);
	xmem_pool_close(reader);
	EVENTUALLY(stat_of(writer).clients == 1);
	SAME(claims_of(writer, token), 2);
	WORKED(xmem_void_claims(writer, token));
	xmem_pool_close(writer);
}

/* A request that was given up and not served is not undone: earlier claims stay. */
static void give_up_and_wait(void *argument)
{
	struct sigaction action = { .sa_handler = nothing };
	struct xmem_pool *pool = open_writer(argument, 2, BYTES);
	struct xmem_buffer *b;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	tell_parent(hand_over(pool, 7, 2, XMEM_FOREVER));
	b = xmem_acquire(pool, BYTES, 0);
	fill(b, 8);
	hear_parent();
	tell_parent(1);
	SAME(xmem_set_ref_count(b, 2, XMEM_FOREVER), -EINTR);
	tell_parent(2);
	hear_parent();
}

TEST(P8_what_was_handed_over_before_stays_when_a_request_is_given_up)
{
	const char *name = alone();
	struct xmem_pool *one = open_reader(name);
	struct child *child = spawn(give_up_and_wait, (void *)name);
	uint64_t token = hear(child);
	struct xmem_buffer *b;
	int i;

	daemon_pid = stop_daemon();
	tell(child, 1);
	hear(child);
	for (i = 0; i < 100; i++) {
		look_again_soon();
		kill(child->pid, SIGUSR1);
	}
	SAME(hear(child), 2);
	kill_child(child);
	continue_daemon(daemon_pid);
	EVENTUALLY(stat_of(one).clients == 1);
	SAME(claims_of(one, token), 2);
	for (i = 0; i < 2; i++) {
		b = xmem_get(one, token);
		CHECK(b);
		SAME(stamp_of(b), 7);
		xmem_release(b);
	}
	EVENTUALLY(stat_of(one).attached == 0);
	xmem_pool_close(one);
}

/* Another thread has taken a claim in between. Its post does not answer the undoing. */
TEST(API_a_request_is_undone_despite_another_threads_post)
{
	struct xmem_pool *writer = open_writer(alone(), 2, BYTES);
	struct xmem_buffer *b = counted(writer, 5, 3, 0);
	struct xmem_claim_request post = {
		.size = sizeof(post), .op = XMEM_CLAIM_TAKE, .count = 1,
	};
	struct xmem_claim_request undo = { .size = sizeof(undo), .op = XMEM_CLAIM_UNDO };
	uint64_t token = xmem_token(b);

	undo.generation = last_number(writer);
	post.slot = token & 0xffff;
	post.generation = token >> 16;
	writer->link.backend->post(&writer->link, XMEM_IOC_CLAIM, &post);
	writer->link.backend->post(&writer->link, XMEM_IOC_CLAIM, &undo);
	host_has_served(writer);
	SAME(claims_of(writer, token), 0);
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

/* The first options differ from those of the last publish, which decide. */
TEST(P1_contents_written_in_place_are_published_as_asked_for_last)
{
	struct sigaction action = { .sa_handler = nothing };
	struct xmem_pool *writer = OPEN(alone(), .flags = XMEM_OPEN_WRITER);
	struct xmem_publish_options first = { .size = sizeof(first), .length = 100 };
	struct xmem_publish_options last = {
		.size = sizeof(last), .length = 2000, .flags = XMEM_PUBLISH_KEEP,
	};
	struct xmem_buffer *b, *got;
	struct child *child;
	uint64_t token;

	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	publish_kept(writer, 1, &b);
	WORKED(xmem_get_mut(b));
	xmem_metadata_mut(b)->id = 2;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	daemon_pid = stop_daemon();
	child = spawn(interrupt, NULL);
	SAME(xmem_publish(b, &first, NULL), -EINTR);
	finish_child(child);
	continue_daemon(daemon_pid);
	fill(b, 9);
	xmem_metadata_mut(b)->id = 3;
	WORKED(xmem_publish(b, &last, &token));
	got = xmem_get(writer, token);
	CHECK(got);
	SAME(xmem_size(got), 2000);
	SAME(xmem_metadata_ptr(got)->id, 3);
	SAME(xmem_metadata_ptr(got)->size, 2000);
	xmem_release(got);
	xmem_release(b);
	CHECK(is_free(writer));
	xmem_pool_close(writer);
}

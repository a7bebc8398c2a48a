// SPDX-License-Identifier: MIT
/*
 * Clients that wait for a writer: other clients see that they wait, a message on a terminal says
 * so, and processes that all subscribe before they publish work in any order.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "harness.h"

#define BYTES		4096
#define LONGER		(3 * SECOND / 2)	/* longer than it takes to write to a terminal */
#define WAITS_FOR	"xmem: waiting for a writer of pool "

static const char *name_of_pool;

static struct xmem_subscription *follow_for_ever(struct xmem_pool *pool)
{
	struct xmem_subscription *s = xmem_subscribe(pool,
		XMEM_OPTIONS(xmem_subscribe_options, .flags = XMEM_SUBSCRIBE_LASTS));

	CHECK(s);
	return s;
}

/* ---- other clients see it ---- */

static void subscribe_and_receive(void *argument)
{
	struct xmem_pool *pool = open_reader(name_of_pool);
	struct xmem_subscription *s = argument ? follow_for_ever(pool) : xmem_subscribe(pool, NULL);
	struct xmem_buffer *b;

	CHECK(s);
	b = xmem_receive(s, XMEM_FOREVER);
	CHECK(b);
	xmem_release(b);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
}

/* How many of the pool's clients await a writer? */
static unsigned int awaiting(struct xmem_pool *pool)
{
	unsigned int count = 0, c, all = stat_of(pool).clients_max;
	struct xmem_client_info info = XMEM_INIT(info);

	for (c = 0; c < all; c++)
		count += !xmem_pool_client_info(pool, c, &info) && info.awaits_writer;
	return count;
}

TEST(API_others_see_who_waits_for_a_writer)
{
	struct xmem_pool *looker = open_reader(name_of_pool = new_name()), *writer;
	struct child *children[2];
	unsigned int i;

	SAME(awaiting(looker), 0);
	for (i = 0; i < 2; i++) {
		children[i] = spawn(subscribe_and_receive, i ? looker : NULL);
		EVENTUALLY(awaiting(looker) == i + 1);
	}
	writer = open_writer(name_of_pool, 2, BYTES);
	SAME(xmem_wait_subscribers(writer, 2, patience_ns()), 2);
	EVENTUALLY(!awaiting(looker));	/* now they wait for its publications */
	publish_stamp(writer, 1);
	for (i = 0; i < 2; i++)
		hear(children[i]);
	SAME(awaiting(looker), 0);
	for (i = 0; i < 2; i++)
		kill_child(children[i]);
	xmem_pool_close(writer);
	xmem_pool_close(looker);
}

/* A new client that waits for nothing gets the id of the dead one. */
TEST(P2_a_client_that_died_while_it_waited_waits_no_more)
{
	struct xmem_pool *looker = open_reader(name_of_pool = new_name()), *next;
	struct child *child = spawn(subscribe_and_receive, NULL);

	EVENTUALLY(awaiting(looker) == 1);
	kill_child(child);
	EVENTUALLY(stat_of(looker).clients == 1);
	next = open_reader(name_of_pool);
	SAME(awaiting(looker), 0);
	xmem_pool_close(next);
	xmem_pool_close(looker);
}

/* ---- the message on a terminal ---- */

/* The end of a terminal, or of a pipe, that becomes the standard error of a child. */
static int errors_of_child;

/* Receive again and again, and tell the parent each time whether there was a publication. */
static void receive_and_tell(void *argument)
{
	struct xmem_pool *pool = open_reader(name_of_pool);
	struct xmem_subscription *s = follow_for_ever(pool);
	struct xmem_buffer *b;

	CHECK(dup2(errors_of_child, STDERR_FILENO) == STDERR_FILENO);
	for (;;) {
		b = xmem_receive(s, LONGER);
		if (!b)
			SAME(xmem_peek_last_error(NULL), -ETIMEDOUT);
		tell_parent(b != NULL);
		xmem_release(b);
	}
}

/* Append all that can be read from the file to the text. */
static void read_more(int file, char *text, size_t bytes)
{
	struct pollfd look = { .fd = file, .events = POLLIN };
	size_t got = strlen(text);
	ssize_t n;

	while (got < bytes - 1 && poll(&look, 1, 0) == 1 &&
	       (n = read(file, text + got, bytes - 1 - got)) > 0)
		got += n;
	text[got] = '\0';
}

static unsigned int lines_in(const char *text)
{
	unsigned int count = 0;

	for (; (text = strstr(text, WAITS_FOR)); text++)
		count++;
	return count;
}

/* The child writes @lines, and writes no more in two further receives. */
static void reads(struct child *child, int file, unsigned int lines)
{
	struct pollfd told = { .fd = child->link, .events = POLLIN };
	char text[1000] = "";
	unsigned int i;

	EVENTUALLY((read_more(file, text, sizeof(text)), lines_in(text) >= lines));
	while (poll(&told, 1, 0) == 1)		/* receives that have ended before */
		SAME(hear(child), 0);
	for (i = 0; i < 2; i++)
		SAME(hear(child), 0);
	read_more(file, text, sizeof(text));
	SAME(lines_in(text), lines);
	CHECK(!lines || strstr(text, name_of_pool));
	CHECK(lines || !*text);
}

/* @file: from which the child's errors can be read. It writes @lines for each missing writer. */
static void wait_and_read(int file, unsigned int lines)
{
	struct child *child = spawn(receive_and_tell, NULL);
	struct xmem_pool *writer;

	reads(child, file, lines);
	writer = open_writer(name_of_pool, 1, BYTES);
	SAME(xmem_wait_subscribers(writer, 1, patience_ns()), 1);
	publish_stamp(writer, 1);
	xmem_pool_close(writer);
	while (!hear(child))
		;
	reads(child, file, lines);
	kill_child(child);
	close(errors_of_child);
	close(file);
}

static int new_terminal(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	CHECK(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
	errors_of_child = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(errors_of_child >= 0);
	return terminal;
}

TEST(API_a_terminal_is_told_once_that_a_writer_is_missing)
{
	name_of_pool = new_name();
	CHECK(!unsetenv("XMEM_QUIET"));
	wait_and_read(new_terminal(), 1);
}

TEST(API_a_terminal_that_is_stopped_delays_nobody)
{
	int terminal = new_terminal();

	name_of_pool = new_name();
	CHECK(!unsetenv("XMEM_QUIET"));
	CHECK(!tcflow(errors_of_child, TCOOFF));
	wait_and_read(terminal, 0);
}

TEST(API_XMEM_QUIET_keeps_messages_off_a_terminal)
{
	name_of_pool = new_name();
	CHECK(!setenv("XMEM_QUIET", "1", 1));
	wait_and_read(new_terminal(), 0);
}

TEST(API_only_a_terminal_is_told)
{
	int ends[2];

	name_of_pool = new_name();
	CHECK(!unsetenv("XMEM_QUIET"));
	CHECK(!pipe2(ends, O_CLOEXEC));
	errors_of_child = ends[1];
	wait_and_read(ends[0], 0);
}

/* ---- all subscribe first ---- */

#define PROCESSES	3

/* It receives from all the others, and they all receive from it. */
static void subscribe_then_publish(void *argument)
{
	struct xmem_pool *pool = xmem_pool_open(name_of_pool, NULL);
	struct xmem_subscription *s;
	uint64_t heard = 0;
	unsigned int i;

	CHECK(pool);
	s = follow_for_ever(pool);
	tell_parent(1);
	hear_parent();
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	SAME(xmem_wait_subscribers(pool, PROCESSES - 1, patience_ns()), PROCESSES - 1);
	publish_stamp(pool, 1 + (uintptr_t)argument);
	for (i = 0; i < PROCESSES - 1; i++) {
		struct xmem_buffer *b = xmem_receive(s, patience_ns());

		CHECK(b);
		heard |= 1ULL << stamp_of(b);
		xmem_release(b);
	}
	tell_parent(heard);
	hear_parent();
}

TEST(P9_processes_that_all_subscribe_first_hear_each_other)
{
	struct child *child[PROCESSES];
	uintptr_t i;

	name_of_pool = new_name();
	for (i = 0; i < PROCESSES; i++)
		child[i] = spawn(subscribe_then_publish, (void *)i);
	for (i = 0; i < PROCESSES; i++)
		SAME(hear(child[i]), 1);
	for (i = 0; i < PROCESSES; i++)
		tell(child[i], 1);
	for (i = 0; i < PROCESSES; i++)		/* all but its own */
		SAME(hear(child[i]), 14 & ~(2 << i));
	for (i = 0; i < PROCESSES; i++)
		tell(child[i], 1);
	for (i = 0; i < PROCESSES; i++)
		finish_child(child[i]);
}

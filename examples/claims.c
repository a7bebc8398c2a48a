/* SPDX-License-Identifier: MIT */
/*
 * claims [ROUNDS]: hands buffers over by count, and kills processes in between. A producer with one
 * buffer sets two references aside, prints the number of the buffer, and forgets it. Two consumers
 * get it, look, and release it. The second release frees the buffer, and not the first one. The
 * steps are printed; the status is 1 if a step goes wrong. make demo MODE=claims runs it.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xmem.h>

#define BYTES	(1 << 20)
#define SECOND	1000000000LL

static char name[32];

/* A process, and the descriptors for messages to it; it answers each message. */
struct member {
	pid_t pid;
	int to, from;
};

enum { FILL, IS_FREE, GET, LOOK, RELEASE };
struct message {
	uint64_t what, value;
};

static void fail(const char *what)
{
	struct xmem_error why = XMEM_INIT(why);
	int err = xmem_get_last_error(&why);

	fprintf(stderr, "claims: %s%s%s\n", what, err ? ": " : "", why.message);
	exit(1);
}

/* ---- the producer ---- */

/* Fill the buffer, give it two references, and forget it. Returns its token. */
static uint64_t fill(struct xmem_pool *pool, uint64_t stamp)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, BYTES, 30 * SECOND);
	uint64_t *data = xmem_data_mut(buffer), token, i;

	if (!data)
		fail("acquire");
	for (i = 0; i < BYTES / sizeof(*data); i++)
		data[i] = stamp;
	if (xmem_set_ref_count(buffer, 2, SECOND))
		fail("set_ref_count");
	token = xmem_token(buffer);
	if (xmem_forget(buffer))
		fail("forget");
	return token;
}

static uint64_t is_free(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, BYTES, 0);

	xmem_release(buffer);
	return buffer != NULL;
}

static void produce(int in, int out)
{
	struct xmem_pool_options writer = { .size = sizeof(writer), .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *pool = xmem_pool_open(name, &writer);
	struct message message;

	if (!pool || xmem_preallocate(pool, BYTES, 1, NULL))
		fail("producer");
	while (read(in, &message, sizeof(message)) == sizeof(message)) {
		uint64_t answer = message.what == FILL ? fill(pool, message.value) : is_free(pool);

		if (write(out, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	xmem_pool_close(pool);
}

/* ---- a consumer ---- */

/* If all words of the contents are one stamp, return it, otherwise 0. */
static uint64_t stamp_of(struct xmem_buffer *buffer)
{
	const uint64_t *data = xmem_data(buffer);
	size_t i, words = xmem_size(buffer) / sizeof(*data);

	if (!data)
		fail("get");
	for (i = 0; i < words; i++)
		if (data[i] != data[0])
			return 0;
	return data[0];
}

static void consume(int in, int out)
{
	struct xmem_pool *pool = xmem_pool_open(name, NULL);
	struct xmem_buffer *buffer = NULL;
	struct message message;

	if (!pool)
		fail("consumer");
	while (read(in, &message, sizeof(message)) == sizeof(message)) {
		uint64_t answer = 0;

		if (message.what == RELEASE)
			xmem_release(buffer);
		else if (message.what == GET)
			buffer = xmem_get(pool, message.value);
		if (message.what != RELEASE)
			answer = stamp_of(buffer);
		if (write(out, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	xmem_pool_close(pool);
}

/* ---- who watches ---- */

static struct member start(void (*body)(int in, int out))
{
	int to[2], from[2];
	struct member member;

	if (pipe(to) || pipe(from))
		fail("pipe");
	fflush(stdout);
	member.pid = fork();
	if (member.pid < 0)
		fail("fork");
	if (!member.pid) {
		close(to[1]);
		close(from[0]);
		body(to[0], from[1]);
		exit(0);
	}
	close(to[0]);
	close(from[1]);
	member.to = to[1];
	member.from = from[0];
	return member;
}

static uint64_t ask(struct member *member, uint64_t what, uint64_t value)
{
	struct message message = { what, value };
	uint64_t answer = 0;

	if (write(member->to, &message, sizeof(message)) != sizeof(message) ||
	    read(member->from, &answer, sizeof(answer)) != sizeof(answer))
		fail("a process has ended");
	return answer;
}

static void end(struct member *member, int signal)
{
	close(member->to);
	if (signal)
		kill(member->pid, signal);
	waitpid(member->pid, NULL, 0);
	close(member->from);
}

static void should(int holds, const char *what)
{
	if (!holds)
		fail(what);
}

static void hand_over(struct member *producer, struct member *a, struct member *b, uint64_t stamp)
{
	uint64_t token = ask(producer, FILL, stamp);

	should(!ask(producer, IS_FREE, 0), "the buffer is free before anybody has got it");
	should(ask(a, GET, token) == stamp, "the first consumer gets something else");
	ask(a, RELEASE, 0);
	should(!ask(producer, IS_FREE, 0), "the buffer is free with the first release");
	should(ask(b, GET, XMEM_SLOT(token & 0xffff)) == stamp,
	       "the second consumer gets something else");
	should(!ask(producer, IS_FREE, 0), "the buffer is free while it is held");
	ask(b, RELEASE, 0);
	should(ask(producer, IS_FREE, 0) == 1, "the buffer is not free with the second release");
}

/* Wait until the host has handled the end of a process, 30 seconds at most. */
static void wait_for_no_buffer(struct xmem_pool *pool)
{
	struct timespec pause = { 0, 10000000 };
	struct xmem_pool_info info;
	int i;

	for (i = 0; i < 3000; i++) {
		info.size = sizeof(info);
		if (xmem_pool_stat(pool, &info))
			fail("stat");
		if (!info.attached && !info.claims && !info.holds)
			return;
		nanosleep(&pause, NULL);
	}
	fail("something is left of the producer");
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100, i, token;
	struct member producer, a, b;
	struct xmem_pool *pool;

	signal(SIGPIPE, SIG_IGN);
	snprintf(name, sizeof(name), "claims-%ld", (long)getpid());
	producer = start(produce);
	a = start(consume);
	b = start(consume);
	for (i = 1; i <= rounds; i++)
		hand_over(&producer, &a, &b, i);
	printf("%llu buffers handed over to two consumers, one by token and one by slot\n",
	       (unsigned long long)rounds);

	token = ask(&producer, FILL, 1001);
	should(ask(&a, GET, token) == 1001, "the first consumer gets something else");
	end(&a, SIGKILL);
	ask(&b, GET, token);
	ask(&b, RELEASE, 0);
	token = ask(&producer, FILL, 1002);	/* it waits until the buffer is free */
	puts("a consumer killed with the buffer: free with the other's release");

	ask(&b, GET, token);
	ask(&b, RELEASE, 0);
	token = ask(&producer, FILL, 1003);
	puts("a consumer killed before it came: free after the time of its reference");

	pool = xmem_pool_open(name, NULL);
	if (!pool)
		fail("open");
	end(&producer, SIGKILL);
	a = start(consume);
	should(ask(&a, GET, token) == 1003 && ask(&b, GET, XMEM_SLOT(token & 0xffff)) == 1003,
	       "the contents have ended with their producer");
	ask(&a, RELEASE, 0);
	should(ask(&b, LOOK, 0) == 1003, "the contents have gone with the first release");
	ask(&b, RELEASE, 0);
	puts("the producer killed: both have got its buffer all the same");
	end(&a, SIGKILL);
	end(&b, SIGKILL);
	wait_for_no_buffer(pool);
	puts("nothing is left: no buffer, no reference, no hold");
	xmem_pool_close(pool);
	return 0;
}

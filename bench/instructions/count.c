// SPDX-License-Identifier: MIT
/*
 * The loops whose instructions are counted: count ROW ROUNDS sets a pool up, runs the row's
 * operation ROUNDS times, and ends. run.sh runs it under callgrind with N and with 2 N rounds; the
 * difference is that of N operations, because the setup and the end are equal in both. A row counts
 * the library, the functions that it calls, and the few instructions of the loop here.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xmem.h"
#include "xmem/cuda.h"

#define BUFFERS	32
#define BYTES	4096
#define MOST	254	/* subscribers that do not read */

static struct xmem_pool *pool;
static struct xmem_subscription *from;
static uint64_t token;

static void die(const char *what)
{
	struct xmem_error error = XMEM_INIT(error);

	xmem_peek_last_error(&error);
	fprintf(stderr, "count: %s: %s\n", what, error.message);
	_Exit(2);
}

static struct xmem_pool *join(const char *name, uint32_t flags)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = flags, .clients = 256, .label = "count",
	};
	struct xmem_pool *one = xmem_pool_open(name, &options);

	if (!one)
		die("xmem_pool_open");
	return one;
}

static struct xmem_subscription *follow(struct xmem_pool *reader, int publisher)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = publisher,
	};
	struct xmem_subscription *one = xmem_subscribe(reader, &options);

	if (!one)
		die("xmem_subscribe");
	return one;
}

/* ---- the operations ---- */

static void get_put(void)
{
	struct xmem_buffer *buffer = xmem_get(pool, token);

	if (__builtin_expect(!buffer, 0))
		die("xmem_get");
	xmem_release(buffer);
}

static void publish(void)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, BYTES, 0);

	if (__builtin_expect(!buffer, 0))
		die("xmem_acquire");
	if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
		die("xmem_publish");
}

static void cycle(void)
{
	struct xmem_buffer *buffer;

	publish();
	buffer = xmem_receive(from, 0);
	if (__builtin_expect(!buffer, 0))
		die("xmem_receive");
	xmem_release(buffer);
}

/* As above, and both sides ask for the address of the contents. */
static void cycle_data(void)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, BYTES, 0);

	if (__builtin_expect(!buffer || !xmem_data_mut(buffer), 0))
		die("xmem_data_mut");
	if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
		die("xmem_publish");
	buffer = xmem_receive(from, 0);
	if (__builtin_expect(!buffer || !xmem_data(buffer), 0))
		die("xmem_data");
	xmem_release(buffer);
}

/* The operations with buffers in memory of a GPU. */
static void cycle_cuda(void)
{
	struct xmem_buffer *buffer = xmem_acquire_cuda(pool, BYTES, 0, 0);

	if (__builtin_expect(!buffer || !xmem_cuda_ptr_mut(buffer), 0))
		die("xmem_cuda_ptr_mut");
	if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
		die("xmem_publish");
	buffer = xmem_receive(from, 0);
	if (__builtin_expect(!buffer || !xmem_cuda_ptr(buffer), 0))
		die("xmem_cuda_ptr");
	xmem_release(buffer);
}

static void poll_in_vain(void)
{
	if (__builtin_expect(xmem_receive(from, 0) != NULL, 0))
		die("nothing has been published, and something was received");
}

/* The first call takes all buffers. */
static void acquire_in_vain(void)
{
	while (xmem_acquire(pool, BYTES, 0))
		;
}

/* ---- what is there beside them ---- */

static void *asleep(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void one_thread_sleeps(const char *name)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, asleep, NULL))
		die("pthread_create");
}

static void clients_idle(const char *name)
{
	unsigned int n;

	for (n = 0; n < 64; n++)
		join(name, 0);
}

static void one_does_not_read(const char *name)
{
	follow(join(name, 0), xmem_pool_client(pool));
}

/* A program that polls and always finds a buffer pays for no poll. */
static void one_polls(const char *name)
{
	one_does_not_read(name);
	if (xmem_pool_poll_fd(pool) < 0)
		die("xmem_pool_poll_fd");
}

static void most_do_not_read(const char *name)
{
	unsigned int n;

	for (n = 0; n < MOST; n++)
		one_does_not_read(name);
}

/* ---- rows ---- */

static const struct {
	const char *name;
	void (*run)(void);
	void (*beside)(const char *pool_name);
} rows[] = {
	{ "get+put", get_put, NULL },
	{ "get+put,thread", get_put, one_thread_sleeps },
	{ "cycle", cycle, NULL },
	{ "cycle,thread", cycle, one_thread_sleeps },
	{ "cycle,64-idle", cycle, clients_idle },
	{ "cycle,data", cycle_data, NULL },
	{ "cycle,cuda", cycle_cuda, NULL },
	{ "poll-in-vain", poll_in_vain, NULL },
	{ "acquire-in-vain", acquire_in_vain, NULL },
	{ "publish,1-lossy", publish, one_does_not_read },
	{ "publish,polls", publish, one_polls },
	{ "publish,254-lossy", publish, most_do_not_read },
};
#define ROWS	(sizeof(rows) / sizeof(rows[0]))

/* Take and give every buffer a few times, so that the first use of each is behind. */
static void warm_up(void (*run)(void))
{
	unsigned int n;

	for (n = 0; n < 4 * BUFFERS; n++)
		run();
}

static void set_up(const char *name, size_t row)
{
	struct xmem_buffer *buffer;
	bool reads = rows[row].run != publish;

	pool = join(name, XMEM_OPEN_WRITER);
	if (xmem_preallocate(pool, BYTES, BUFFERS, NULL))
		die("xmem_preallocate");
	if (rows[row].run == cycle_cuda &&
	    xmem_preallocate(pool, BYTES, BUFFERS,
			     XMEM_OPTIONS(xmem_preallocate_options, .flags = XMEM_MEMORY_CUDA)))
		die("xmem_preallocate on a GPU");
	if (reads)
		from = follow(pool, xmem_pool_client(pool));
	if (rows[row].beside)
		rows[row].beside(name);
	warm_up(reads ? cycle : publish);
	if (rows[row].run == cycle_cuda)
		warm_up(cycle_cuda);
	buffer = xmem_acquire(pool, BYTES, 0);
	if (!buffer || xmem_publish(buffer, NULL, &token))
		die("the last publication");
	if (rows[row].run != get_put && from)	/* the contents for get live while they are in
						 * flight */
		xmem_release(xmem_receive(from, 0));
}

int main(int argc, char **argv)
{
	char name[32];
	unsigned long rounds;
	size_t row;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (row = 0; row < ROWS; row++)
			puts(rows[row].name);
		return 0;
	}
	for (row = 0; argc == 3 && row < ROWS; row++)
		if (!strcmp(argv[1], rows[row].name))
			break;
	if (argc != 3 || row == ROWS) {
		fputs("usage: count --list\n       count ROW ROUNDS\n", stderr);
		return 2;
	}
	snprintf(name, sizeof(name), "count.%d", (int)getpid());
	set_up(name, row);
	for (rounds = strtoul(argv[2], NULL, 10); rounds; rounds--)
		rows[row].run();
	/* Nothing is dropped: that costs as much for any number of rounds, and the host does it. */
	_Exit(0);
}

// SPDX-License-Identifier: MIT
/*
 * Buffers in memory of a GPU. A hand-over from process to process is timed, against one with memory
 * of the CPU, in turn; the contents are neither read nor written. The calls of the driver for one
 * hand-over are counted, against PyTorch's scheme (gpu_torch.c).
 *
 * On the fake driver (tests/fakecuda) the counts are those of any driver. A time there is that of
 * the library, which calls no driver in a hand-over; it says nothing about a GPU. streams.c times
 * hand-overs on streams.
 */
#include "gpu.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS		16
#define BYTES		65536
#define ROUNDS		1000	/* of a batch */
#define COUNTED		200	/* hand-overs */

struct line {
	struct bench *bench;
	int side;
	struct end cpu, gpu;
	const struct driver *driver;
	struct CUstream_st *stream;
};

/* ---- a line of two processes, with memory of each kind ---- */

/* Descriptors, or the driver's own handles if the host takes no descriptors of the fake driver. */
static void preallocate(struct end *end)
{
	struct xmem_preallocate_options options = {
		.size = sizeof(options), .flags = XMEM_MEMORY_CUDA,
	};
	int err = xmem_preallocate(end->pool, BYTES, BUFFERS, &options);

	if (err == -EMEDIUMTYPE) {
		options.flags |= XMEM_MEMORY_LEGACY;
		err = xmem_preallocate(end->pool, BYTES, BUFFERS, &options);
	}
	if (err)
		die("xmem_preallocate");
}

static void join(struct line *line, struct end *end, bool gpu)
{
	struct bench *bench = line->bench;

	end_open(end, bench, gpu ? 0 : BUFFERS, BYTES);
	if (gpu)
		preallocate(end);
	bench->note[line->side][0] = xmem_pool_client(end->pool);
	meet(bench, line->side);
	end_follow(end, bench->note[!line->side][0]);
	meet(bench, line->side);
}

static void open_line(struct line *line)
{
	char *end = line->bench->name + strlen(line->bench->name);

	join(line, &line->cpu, false);
	if (!line->side)
		strcpy(end, ".gpu");
	meet(line->bench, line->side);
	join(line, &line->gpu, true);
	line->driver = driver_open();
	driver_must(line->driver->stream_create(&line->stream, 1), "cuStreamCreate");
}

static void close_line(struct line *line)
{
	driver_must(line->driver->stream_sync(line->stream), "cuStreamSynchronize");
	meet(line->bench, line->side);
	end_close(&line->cpu);
	end_close(&line->gpu);
	meet(line->bench, line->side);
}

/* ---- hand-overs ---- */

static struct xmem_buffer *receive(struct end *end)
{
	struct xmem_buffer *buffer;
	unsigned int empty = 0;

	while (!(buffer = xmem_receive(end->from, 0)))
		if (++empty % 65536 == 0 && xmem_peek_last_error(NULL) != -EAGAIN)
			die("xmem_receive");
	return buffer;
}

static void send_cpu(struct line *line)
{
	struct xmem_buffer *buffer = xmem_acquire(line->cpu.pool, BYTES, 0);

	if (__builtin_expect(!buffer || !xmem_data_mut(buffer), 0))
		die("xmem_data_mut");
	if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
		die("xmem_publish");
}

static void receive_cpu(struct line *line)
{
	struct xmem_buffer *buffer = receive(&line->cpu);

	if (__builtin_expect(!xmem_data(buffer), 0))
		die("xmem_data");
	xmem_release(buffer);
}

static void send_gpu(struct line *line)
{
	struct xmem_buffer *buffer = xmem_acquire_cuda(line->gpu.pool, BYTES, 0, 0);

	if (__builtin_expect(!buffer || !xmem_cuda_ptr_mut(buffer), 0))
		die("xmem_cuda_ptr_mut");
	if (__builtin_expect(xmem_publish(buffer, NULL, NULL), 0))
		die("xmem_publish");
}

static void receive_gpu(struct line *line)
{
	struct xmem_buffer *buffer = receive(&line->gpu);

	if (__builtin_expect(!xmem_cuda_ptr(buffer), 0))
		die("xmem_cuda_ptr");
	xmem_release(buffer);
}

static void receive_on(struct line *line)
{
	struct xmem_buffer *buffer = receive(&line->gpu);

	if (xmem_wait_on(buffer, line->stream) || !xmem_cuda_ptr(buffer) ||
	    xmem_release_on(buffer, line->stream))
		die("xmem_release_on");
}

typedef void hand(struct line *line);

/* Half of a round trip, in ns. */
static double ping_pong(struct line *line, hand *send, hand *receive_it, unsigned int rounds)
{
	unsigned int n;
	double start;

	meet(line->bench, line->side);
	start = now_ns();
	if (!line->side)
		send(line);
	for (n = 0; n < rounds; n++) {
		receive_it(line);
		if (line->side || n + 1 < rounds)
			send(line);
	}
	return (now_ns() - start) / (2.0 * rounds);
}

static double with_cpu(void *line)
{
	return ping_pong(line, send_cpu, receive_cpu, ROUNDS);
}

static double with_gpu(void *line)
{
	return ping_pong(line, send_gpu, receive_gpu, ROUNDS);
}

static void time_it(struct line *line)
{
	static struct series series;
	unsigned int reps = line->bench->reps / 2;

	series_run(&series, reps, with_cpu, with_gpu, line);
	if (!line->side)
		row_series(line->bench, "hand-over of memory of a GPU", "of the CPU", TARGET_MOST,
			   1.3, &series);
}

/* ---- calls of the driver ---- */

/* Keep the stream busy until the reader has looked, so that the reader's stream must wait. */
static void gate(void *bench)
{
	while (!__atomic_load_n(&((struct bench *)bench)->note[1][1], __ATOMIC_ACQUIRE))
		sched_yield();
}

static unsigned long calls(const struct line *line)
{
	return line->driver->calls(NULL);
}

static unsigned long count_send_on(struct line *line)
{
	unsigned long before = calls(line), called;
	struct xmem_buffer *buffer = xmem_acquire_cuda(line->gpu.pool, BYTES, 0, 1000000000);

	if (!buffer || xmem_wait_on(buffer, line->stream) || !xmem_cuda_ptr_mut(buffer))
		die("xmem_wait_on");
	called = calls(line) - before;
	line->bench->note[1][1] = 0;
	driver_must(line->driver->launch_host(line->stream, gate, line->bench), "a gate");
	before = calls(line);
	if (xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = line->stream), NULL))
		die("xmem_publish");
	return called + calls(line) - before;
}

static unsigned long count_receive_on(struct line *line)
{
	unsigned long before = calls(line);

	receive_on(line);
	__atomic_store_n(&line->bench->note[1][1], 1, __ATOMIC_RELEASE);
	return calls(line) - before;
}

static unsigned long count_send(struct line *line)
{
	unsigned long before = calls(line);

	send_gpu(line);
	return calls(line) - before;
}

static unsigned long count_receive(struct line *line)
{
	unsigned long before = calls(line);

	receive_gpu(line);
	return calls(line) - before;
}

/* The most calls of one hand-over on this side, after each buffer has been used once. */
static unsigned long most_calls(struct line *line, unsigned long (*count)(struct line *line))
{
	unsigned long most = 0, called;
	unsigned int n;

	for (n = 0; n < 4 * BUFFERS + COUNTED; n++) {
		if (line->side)
			meet(line->bench, 1);	/* it is sent */
		called = count(line);
		if (n >= 4 * BUFFERS && called > most)
			most = called;
		if (!line->side)
			meet(line->bench, 0);
		meet(line->bench, line->side);
	}
	return most;
}

static double both(struct line *line, unsigned long mine)
{
	line->bench->note[line->side][2] = mine;
	meet(line->bench, line->side);
	return line->bench->note[0][2] + line->bench->note[1][2];
}

static void row_calls(struct line *line, const char *what, double called, double target)
{
	meet(line->bench, line->side);
	if (!line->side)
		row_number(line->bench, what, "", called, target);
}

static void count_it(struct line *line)
{
	struct torch torch = { line->bench, line->side, line->driver, line->stream };
	int side = line->side;

	row_calls(line, "driver calls of a hand-over",
		  both(line, most_calls(line, side ? count_receive : count_send)), 0);
	row_calls(line, "driver calls of one on streams",
		  both(line, most_calls(line, side ? count_receive_on : count_send_on)), 7);
	row_calls(line, "PyTorch's scheme, a tensor is kept",
		  both(line, torch_calls(&torch, true, COUNTED)), -1);
	row_calls(line, "PyTorch's scheme, none is kept",
		  both(line, torch_calls(&torch, false, COUNTED)), -1);
}

void case_gpu(struct bench *bench, int side)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };
	struct line line = { .bench = bench, .side = side };
	struct xmem_error why = XMEM_INIT(why);

	if (xmem_cuda_query(&info)) {
		xmem_peek_last_error(&why);
		if (!side)
			printf("SKIP gpu: %s\n", why.message);
		return;
	}
	open_line(&line);
	time_it(&line);
	if (line.driver->calls)
		count_it(&line);
	else if (!side)
		printf("SKIP driver calls: only the fake driver counts them\n");
	close_line(&line);
}

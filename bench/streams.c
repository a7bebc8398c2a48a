// SPDX-License-Identifier: MIT
/*
 * Hand-overs on streams between two processes that share one GPU: half a round trip, in which each
 * side works on the GPU and then hands over. Ways to hand over:
 *
 *   synchronized      the sender waits for its stream and sets a flag of the CPU: the baseline
 *                     (floor_way), although other ways may be slightly faster
 *   xmem              wait_on, publish with .stream, release_on
 *   words             the sender's stream writes a word, and the receiver's stream waits for the
 *                     word; no release
 *   host function     words, and the receiver's stream then calls a host function
 *   IPC events        the sender's stream records an event, and the receiver's stream waits for it:
 *                     the way of torch.multiprocessing
 *
 * Then a victim: how long one process waits for a little work while another process uses the GPU.
 *
 * Do not pin the processes, because the driver's threads would be pinned with them. On the fake
 * driver, whose streams are threads, the times mean nothing and are not judged.
 */
#include "gpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define BUFFERS		16
#define BYTES		65536
#define HOPS		20		/* of a batch */
#define WORK_BYTES	(64ULL << 20)	/* of one memset of the work */
#define LITTLE_BYTES	65536		/* of the victim's memset */

enum { IPC_EVENT = 2 | 4 };		/* DISABLE_TIMING, INTERPROCESS */

struct streams {
	struct bench *bench;
	int side;
	struct end end;
	const struct driver *driver;
	struct CUstream_st *stream;
	struct CUevent_st *mine, *theirs;
	unsigned long long scratch;	/* memory of the work */
	size_t bytes;			/* of a memset */
	unsigned int memsets;		/* of the work before each hand-over */
	uint64_t sent;			/* hand-overs of both sides so far */
	const struct way *way;
};

struct way {
	const char *name;
	void (*send)(struct streams *streams);
	void (*receive)(struct streams *streams);
};

/* ---- words that both processes have registered ---- */

static uint64_t *word_of(const struct streams *streams, int side)
{
	return &streams->bench->words[side * 16];
}

static uint64_t *flag_of(const struct streams *streams, int side)
{
	return &streams->bench->words[side * 16 + 8];
}

static void set_flag(const struct streams *streams)
{
	__atomic_store_n(flag_of(streams, streams->side), streams->sent, __ATOMIC_RELEASE);
}

/* Wait until the other side has sent, or has put the send into its stream. */
static void await_flag(const struct streams *streams)
{
	while (__atomic_load_n(flag_of(streams, !streams->side), __ATOMIC_ACQUIRE) <
	       streams->sent)
		relax(1);
}

/* ---- the ways ---- */

static void work(const struct streams *streams)
{
	unsigned int i;

	for (i = 0; i < streams->memsets; i++)
		driver_must(streams->driver->memset(streams->scratch, 1, streams->bytes,
						    streams->stream), "cuMemsetD8Async");
}

static void synchronize(const struct streams *streams)
{
	driver_must(streams->driver->stream_sync(streams->stream), "cuStreamSynchronize");
}

static void send_synchronized(struct streams *streams)
{
	synchronize(streams);
	set_flag(streams);
}

static void receive_flag(struct streams *streams)
{
	await_flag(streams);
}

static void send_word(struct streams *streams)
{
	driver_must(streams->driver->write_value(streams->stream,
						 (unsigned long long)word_of(streams,
									     streams->side),
						 streams->sent, 0), "cuStreamWriteValue64");
	set_flag(streams);
}

static void receive_word(struct streams *streams)
{
	await_flag(streams);
	driver_must(streams->driver->wait_value(streams->stream,
						(unsigned long long)word_of(streams,
									    !streams->side),
						streams->sent, 0), "cuStreamWaitValue64");
}

static void nothing(void *unused)
{
}

static void receive_word_and_call(struct streams *streams)
{
	receive_word(streams);
	driver_must(streams->driver->launch_host(streams->stream, nothing, NULL),
		    "cuLaunchHostFunc");
}

static void send_event(struct streams *streams)
{
	driver_must(streams->driver->event_record(streams->mine, streams->stream),
		    "cuEventRecord");
	set_flag(streams);
}

static void receive_event(struct streams *streams)
{
	await_flag(streams);
	driver_must(streams->driver->stream_wait(streams->stream, streams->theirs, 0),
		    "cuStreamWaitEvent");
}

/* A stream may have yet to release a buffer, so the acquire may wait for buffers. */
static void send_buffer(struct streams *streams)
{
	struct xmem_buffer *buffer = xmem_acquire_cuda(streams->end.pool, BYTES, 0, 10000000000);

	if (!buffer || xmem_wait_on(buffer, streams->stream) || !xmem_cuda_ptr_mut(buffer) ||
	    xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options, .stream = streams->stream),
			 NULL))
		die("xmem_publish");
}

static void receive_buffer(struct streams *streams)
{
	struct xmem_buffer *buffer = xmem_receive(streams->end.from, 10000000000);

	if (!buffer || xmem_wait_on(buffer, streams->stream) || !xmem_cuda_ptr(buffer) ||
	    xmem_release_on(buffer, streams->stream))
		die("xmem_release_on");
}

static const struct way floor_way = { "synchronized", send_synchronized, receive_flag };
static const struct way ways[] = {
	{ "xmem", send_buffer, receive_buffer },
	{ "words", send_word, receive_word },
	{ "host function", send_word, receive_word_and_call },
	{ "IPC events", send_event, receive_event },
};
#define WAYS	(sizeof(ways) / sizeof(ways[0]))

/* ---- timing ---- */

/* The work of a turn comes before its hand-over. Both streams are idle at the end. */
static double hand_over(struct streams *streams, const struct way *way)
{
	double start;
	int hop;

	meet(streams->bench, streams->side);
	start = now_ns();
	for (hop = 0; hop < 2 * HOPS; hop++) {
		streams->sent++;
		if (hop % 2 == streams->side) {
			work(streams);
			way->send(streams);
		} else {
			way->receive(streams);
		}
	}
	synchronize(streams);
	meet(streams->bench, streams->side);
	return (now_ns() - start) / (2 * HOPS);
}

static double time_floor(void *streams)
{
	return hand_over(streams, &floor_way);
}

static double time_way(void *streams)
{
	return hand_over(streams, ((struct streams *)streams)->way);
}

/* How many memsets keep this GPU busy for @ns? Side 0 measures, while the other side waits. */
static unsigned int memsets_for(struct streams *streams, double ns)
{
	struct bench *bench = streams->bench;
	double start = 0;

	meet(bench, streams->side);
	if (!streams->side && ns) {
		streams->memsets = 50;
		work(streams);
		synchronize(streams);
		start = now_ns();
		work(streams);
		synchronize(streams);
		bench->note[0][0] = ns / ((now_ns() - start) / 50) + 1;
	} else if (!streams->side) {
		bench->note[0][0] = 0;
	}
	meet(bench, streams->side);
	return bench->note[0][0];
}

static void time_ways(struct streams *streams, const char *name, double work_ns,
		      unsigned int reps)
{
	static struct series series;
	bool fake = streams->driver->calls;
	char what[64];
	unsigned int i;

	streams->memsets = memsets_for(streams, work_ns);
	for (i = 0; i < WAYS; i++) {
		streams->way = &ways[i];
		series_run(&series, reps, time_floor, time_way, streams);
		if (streams->side)
			continue;
		snprintf(what, sizeof(what), "streams, %s: %s", name, ways[i].name);
		row_series(streams->bench, what, "synchronized",
			   !i && work_ns && !fake ? TARGET_MOST : TARGET_NONE, 1.3, &series);
	}
}

/* ---- the victim ---- */

enum { IDLE, WAITS, CALLS, WORKS };
static const char *const states[] = {
	[IDLE] = "other idle",
	[WAITS] = "other waits for a word",
	[CALLS] = "other in host function",
	[WORKS] = "other works",
};

static void until_over(void *bench)
{
	while (!__atomic_load_n(&((struct bench *)bench)->note[0][1], __ATOMIC_ACQUIRE))
		sched_yield();
}

static void disturb(struct streams *streams, int state)
{
	struct bench *bench = streams->bench;

	streams->sent += state == WAITS;
	if (state == WAITS)
		driver_must(streams->driver->wait_value(streams->stream,
							(unsigned long long)word_of(streams, 0),
							streams->sent, 0), "cuStreamWaitValue64");
	if (state == CALLS)
		driver_must(streams->driver->launch_host(streams->stream, until_over, bench),
			    "cuLaunchHostFunc");
	meet(bench, 1);
	while (state == WORKS && !__atomic_load_n(&bench->note[0][1], __ATOMIC_ACQUIRE)) {
		work(streams);
		synchronize(streams);
	}
	meet(bench, 1);
	synchronize(streams);
}

static void suffer(struct streams *streams, int state, unsigned int reps)
{
	static double took[BENCH_MAX_REPS];
	struct bench *bench = streams->bench;
	char what[64];
	unsigned int i;

	streams->sent += state == WAITS;
	meet(bench, 0);
	for (i = 0; i < reps; i++) {
		double start = now_ns();

		driver_must(streams->driver->memset(streams->scratch, 1, LITTLE_BYTES,
						    streams->stream), "cuMemsetD8Async");
		synchronize(streams);
		took[i] = now_ns() - start;
	}
	__atomic_store_n(word_of(streams, 0), streams->sent, __ATOMIC_RELEASE);
	__atomic_store_n(&bench->note[0][1], 1, __ATOMIC_RELEASE);
	meet(bench, 0);
	snprintf(what, sizeof(what), "64 KiB memset, %s", states[state]);
	row_number(bench, what, "us", figure_of(took, reps).median / 1000, -1);
}

static void time_victim(struct streams *streams, unsigned int reps)
{
	int state;

	streams->memsets = memsets_for(streams, 100000);
	for (state = IDLE; state <= WORKS; state++) {
		streams->bench->note[0][1] = 0;
		meet(streams->bench, streams->side);
		if (streams->side)
			disturb(streams, state);
		else
			suffer(streams, state, reps);
		meet(streams->bench, streams->side);
	}
}

/* ---- the case ---- */

static void open_streams(struct streams *streams)
{
	struct xmem_preallocate_options cuda = {
		.size = sizeof(cuda), .flags = XMEM_MEMORY_CUDA,
	};
	struct bench *bench = streams->bench;
	const struct driver *driver = driver_open();
	int side = streams->side;

	streams->driver = driver;
	streams->bytes = driver->calls ? LITTLE_BYTES : WORK_BYTES;
	driver_must(driver->stream_create(&streams->stream, 1), "cuStreamCreate");
	driver_must(driver->alloc(&streams->scratch, streams->bytes), "cuMemAlloc");
	driver_must(driver->host_register(bench->words, sizeof(bench->words), 1 | 2),
		    "cuMemHostRegister");
	driver_must(driver->event_create(&streams->mine, IPC_EVENT), "cuEventCreate");
	driver_must(driver->event_record(streams->mine, streams->stream), "cuEventRecord");
	driver_must(driver->get_event(&bench->parcel[side], streams->mine),
		    "cuIpcGetEventHandle");
	end_open(&streams->end, bench, 0, 0);
	if (xmem_preallocate(streams->end.pool, BYTES, BUFFERS, &cuda))
		die("xmem_preallocate");
	bench->note[side][0] = xmem_pool_client(streams->end.pool);
	meet(bench, side);
	driver_must(driver->open_event(&streams->theirs, bench->parcel[!side]),
		    "cuIpcOpenEventHandle");
	end_follow(&streams->end, bench->note[!side][0]);
	meet(bench, side);
}

void case_streams(struct bench *bench, int side)
{
	struct streams streams = { .bench = bench, .side = side };
	struct xmem_cuda_info info = { .size = sizeof(info) };
	struct xmem_error why = XMEM_INIT(why);
	bool fake;

	if (xmem_cuda_query(&info)) {
		xmem_peek_last_error(&why);
		if (!side)
			printf("SKIP streams: %s\n", why.message);
		return;
	}
	open_streams(&streams);
	fake = streams.driver->calls;
	time_ways(&streams, "no work", 0, fake ? 3 : 51);
	time_ways(&streams, "100 us work", fake ? 0 : 100000, fake ? 3 : 51);
	time_ways(&streams, "1 ms work", fake ? 0 : 1000000, fake ? 3 : 15);
	time_victim(&streams, fake ? 11 : 501);
	end_close(&streams.end);
}

// SPDX-License-Identifier: MIT
/*
 * How often the library calls the driver, as the fake one counts it; on a real one the hand-overs
 * run uncounted. A hand-over makes no call, or one for each order on a stream. Memory is opened
 * once in a process and closed once, whatever pools, handles and slots it is reached by.
 */
#include <semaphore.h>
#include <stdlib.h>

#include "bytes.h"

#define BYTES	(1 << 20)
#define BUFFERS	40		/* in three allocations */
#define PARTS	16		/* of one allocation */

static void must(CUresult result)
{
	if (result)
		FAIL("the driver returned %d", result);
}

/* ---- a line of two processes ---- */

struct line {
	char name[32];
	uint32_t flags;
	bool ordered;
	bool words;			/* else a thread waits, so the gate is opened before */
	struct child *producer;
	struct xmem_pool *pool;
	struct xmem_subscription *sub;
	CUstream stream;
};

/* A stream, and the gate that holds it up until the consumer has checked. */
struct gated {
	CUstream stream;
	sem_t gate;
};

static void pass(void *gate)
{
	while (sem_wait(gate))
		;
}

static CUstream new_stream(void)
{
	struct xl_gpu_scope scope;
	CUstream stream;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	must(xl_cuda()->stream_create(&stream, CU_STREAM_NON_BLOCKING));
	xl_gpu_leave(&scope);
	return stream;
}

/* A consumer's stream may not have dropped the handles of earlier rounds yet. */
static struct xmem_buffer *acquire(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = xmem_acquire_cuda(pool, BYTES, 0, patience_ns());

	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	return buffer;
}

/* Publish one buffer. Returns the library's calls of the driver. */
static unsigned int publish_plainly(struct xmem_pool *pool)
{
	unsigned long before = driver_calls(NULL);
	struct xmem_buffer *buffer = acquire(pool);

	CHECK(xmem_cuda_ptr_mut(buffer));
	WORKED(xmem_publish(buffer, NULL, NULL));
	return driver_calls(NULL) - before;
}

/*
 * The contents are there when the gate has been opened. Returns the library's calls of the driver:
 * those of publishing, and from bit 8 on those of waiting for the buffer.
 */
static unsigned int publish_in_order(struct xmem_pool *pool, struct gated *gated)
{
	unsigned long before = driver_calls(NULL), waiting;
	struct xmem_buffer *buffer = acquire(pool);

	WORKED(xmem_wait_on(buffer, gated->stream));
	CHECK(xmem_cuda_ptr_mut(buffer));
	waiting = driver_calls(NULL) - before;
	must(xl_cuda()->launch_host_func(gated->stream, pass, &gated->gate));
	before = driver_calls(NULL);
	WORKED(publish_on(buffer, gated->stream));
	return waiting << 8 | (driver_calls(NULL) - before);
}

enum { SEND = 1, OPEN_GATE, LEAVE };

static void produce(void *argument)
{
	struct line *line = argument;
	struct xmem_pool *pool = cuda_writer(line->name, BUFFERS, BYTES, line->flags);
	struct gated gated;
	uint64_t what;

	SAME(sem_init(&gated.gate, 0, 0), 0);
	gated.stream = new_stream();
	tell_parent(xmem_pool_client(pool));
	while ((what = hear_parent()) != LEAVE) {
		if (what == OPEN_GATE)
			sem_post(&gated.gate);
		else
			tell_parent(line->ordered ? publish_in_order(pool, &gated) :
				    publish_plainly(pool));
	}
	xmem_pool_close(pool);
	no_violations();
}

static void begin(struct line *line, uint32_t flags, bool ordered)
{
	int publisher;

	*line = (struct line){ .flags = flags, .ordered = ordered };
	line->words = !getenv("FAKECUDA_ATTRIBUTES");
	snprintf(line->name, sizeof(line->name), "%s", new_name());
	line->producer = spawn(produce, line);
	publisher = hear(line->producer);
	line->pool = OPEN(line->name, .flags = XMEM_OPEN_WRITER);
	line->sub = follow(line->pool, publisher, 0);
	line->stream = new_stream();
}

static void end(struct line *line)
{
	tell(line->producer, LEAVE);
	must(xl_cuda()->stream_synchronize(line->stream));
	finish_child(line->producer);
	xmem_unsubscribe(line->sub);
	xmem_pool_close(line->pool);
	no_violations();
}

static unsigned int send_one(struct line *line)
{
	tell(line->producer, SEND);
	return hear(line->producer);
}

static struct xmem_buffer *receive(struct line *line)
{
	struct xmem_buffer *buffer = xmem_receive(line->sub, patience_ns());

	if (!buffer)
		WORKED(xmem_peek_last_error(NULL));
	return buffer;
}

/* All buffers are in use at once, so after this each has been opened here. */
static void see_all(struct line *line)
{
	struct xmem_buffer *buffer[BUFFERS];
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		send_one(line);
		buffer[i] = receive(line);
		if (line->ordered && !line->words)
			tell(line->producer, OPEN_GATE);
		if (line->ordered)
			WORKED(xmem_wait_on(buffer[i], line->stream));
		CHECK(xmem_cuda_ptr(buffer[i]));
		if (line->ordered && line->words)
			tell(line->producer, OPEN_GATE);
	}
	for (i = 0; i < BUFFERS; i++) {
		if (line->ordered)
			WORKED(xmem_release_on(buffer[i], line->stream));
		else
			xmem_release(buffer[i]);
	}
}

/* ---- the fast path does not take the wrong buffer ---- */

static void on_cpu(struct xmem_buffer *buffer)
{
	CHECK(buffer);
	CHECK(xmem_data_mut(buffer));
	REFUSED(xmem_cuda_ptr_mut(buffer), EMEDIUMTYPE);
	WORKED(xmem_publish(buffer, NULL, NULL));
}

static void on_gpu(struct xmem_buffer *buffer, int device)
{
	CHECK(buffer);
	SAME(xmem_cuda_device(buffer), device);
	CHECK(xmem_cuda_ptr_mut(buffer));
	REFUSED(xmem_data_mut(buffer), EMEDIUMTYPE);
	WORKED(xmem_publish(buffer, NULL, NULL));
}

/* The library remembers the last buffer, and must not return it for another request. */
TEST(CUDA_an_acquire_gets_a_buffer_where_it_asks)
{
	uint64_t dice = seed();
	unsigned int i, rounds = scaled(400);
	struct xmem_pool *pool;

	need_gpus(2);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(pool, 4096, 4, NULL));
	WORKED(make_on_gpu(pool, 4096, 4, 0, 0));
	WORKED(make_on_gpu(pool, 4096, 4, 1, 0));
	for (i = 0; i < rounds; i++) {
		unsigned int place = random_next(&dice) % 6;

		if (place < 2)
			on_gpu(xmem_acquire_cuda(pool, 4096, place, 0), place);
		else if (place < 4)
			on_cpu(xmem_acquire(pool, 4096, 0));
		else if (place == 4)
			REFUSED(xmem_acquire_cuda(pool, 4096, -1, 0), ENODEV);
		else
			REFUSED(xmem_acquire_cuda(pool, 4097, 1, 0), ENOSPC);
	}
	xmem_pool_close(pool);
	no_violations();
}

/* ---- without order ---- */

static void hand_over_plainly(uint32_t flags)
{
	unsigned int i, rounds = scaled(10 * BUFFERS);
	struct xmem_buffer *buffer;
	unsigned long before;
	struct line line;

	begin(&line, flags, false);
	see_all(&line);
	for (i = 0; i < rounds; i++) {
		SAME(send_one(&line), 0);
		before = driver_calls(NULL);
		buffer = receive(&line);
		CHECK(xmem_cuda_ptr(buffer));
		xmem_release(buffer);
		CALLS(driver_calls(NULL) - before, 0);
	}
	end(&line);
}

TEST(CUDA_a_hand_over_by_descriptor_calls_no_driver)
{
	hand_over_plainly(0);
}

TEST(CUDA_a_hand_over_by_handle_calls_no_driver)
{
	hand_over_plainly(XMEM_MEMORY_LEGACY);
}

/* ---- with order ---- */

/* @late: the contents come after the consumer has begun to wait. */
static void receive_in_order(struct line *line, bool late, unsigned int *waits)
{
	struct xmem_buffer *buffer;
	unsigned long before;

	if (!late)
		tell(line->producer, OPEN_GATE);
	buffer = receive(line);
	if (!late)
		WORKED(xmem_wait_contents(buffer, patience_ns()));
	before = driver_calls(NULL);
	WORKED(xmem_wait_on(buffer, line->stream));
	CHECK(xmem_cuda_ptr(buffer));
	*waits = driver_calls(NULL) - before;
	before = driver_calls(NULL);
	WORKED(xmem_release_on(buffer, line->stream));
	CALLS(driver_calls(NULL) - before, 2);
	if (late)
		tell(line->producer, OPEN_GATE);
}

/*
 * Each call with a stream asks whether the stream is captured. Each publish or release calls the
 * driver once more, and so does a wait that is put into a stream.
 */
static void hand_over_in_order(bool words)
{
	unsigned int i, sent, waits, rounds = scaled(10 * BUFFERS);
	struct line line;

	begin(&line, 0, true);
	see_all(&line);
	for (i = 0; i < rounds; i++) {
		sent = send_one(&line);
		CALLS(sent & 0xff, 2);
		CHECK(sent >> 8 <= 2);
		receive_in_order(&line, words && i % 2, &waits);
		CALLS(waits, 1 + (words && i % 2));	/* else the word is already there */
	}
	CALLS(!driver_calls("cuStreamWaitValue64"), !words);
	end(&line);
}

TEST(CUDA_order_by_words_takes_four_calls_in_each_process)
{
	hand_over_in_order(true);
}

TEST(CUDA_order_by_host_functions_takes_three_calls_in_each_process)
{
	use_attributes("122=0");
	hand_over_in_order(false);
}

/* A thread that has waited itself does not ask the driver again. */
static void wait_once(void)
{
	struct xmem_buffer *buffer;
	unsigned long before;
	struct line line;
	int i;

	begin(&line, 0, true);
	see_all(&line);
	send_one(&line);
	tell(line.producer, OPEN_GATE);
	buffer = receive(&line);
	CHECK(xmem_cuda_ptr(buffer));
	before = driver_calls(NULL);
	for (i = 0; i < 10; i++)
		CHECK(xmem_cuda_ptr(buffer));
	CALLS(driver_calls(NULL) - before, 0);
	xmem_release(buffer);
	end(&line);
}

TEST(CUDA_what_a_host_function_has_written_costs_no_call)
{
	use_attributes("122=0");
	wait_once();
}

TEST(CUDA_a_word_that_has_been_waited_for_costs_no_call)
{
	wait_once();
}

/* ---- opening and closing ---- */

struct kind {
	const char *opens[2], *closes[2];	/* once for each allocation */
	CUdeviceptr (*make)(size_t bytes);	/* NULL: it is preallocated, */
	uint32_t flags;				/* with these flags */
};

struct owner {
	const struct kind *kind;
	char name[2][32];			/* of its pools; only one, if it preallocates */
	unsigned int pools;
};

static CUdeviceptr make_plain(size_t bytes)
{
	CUdeviceptr at;

	must(xl_cuda()->mem_alloc(&at, bytes));
	return at;
}

static CUdeviceptr make_exported(size_t bytes)
{
	const CUmemAllocationProp wanted = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc access = {
		.location = wanted.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	const struct xl_cuda *cuda = xl_cuda();
	CUmemGenericAllocationHandle allocation;
	CUdeviceptr at;

	must(cuda->mem_create(&allocation, bytes, &wanted, 0));
	must(cuda->mem_address_reserve(&at, bytes, 0, 0, 0));
	must(cuda->mem_map(at, bytes, 0, allocation, 0));
	must(cuda->mem_set_access(at, bytes, &access, 1));
	return at;
}

#define BY_DESCRIPTOR \
	.opens = { "cuMemImportFromShareableHandle", "cuMemMap" }, \
	.closes = { "cuMemUnmap", "cuMemAddressFree" }
#define BY_HANDLE \
	.opens = { "cuIpcOpenMemHandle" }, .closes = { "cuIpcCloseMemHandle" }
#define BY_POOL \
	.opens = { "cuMemPoolImportFromShareableHandle", "cuMemPoolImportPointer" }, \
	.closes = { "cuMemFree", "cuMemPoolDestroy" }

static void called(const char *const calls[2], unsigned int times)
{
	int i;

	for (i = 0; on_fake() && i < 2 && calls[i]; i++)
		if (driver_calls(calls[i]) != times)
			FAIL("%s was called %lu times, not %u", calls[i], driver_calls(calls[i]),
			     times);
}

/* Publish PARTS contents for each pool, all of one allocation. */
static void publish_parts(struct xmem_pool *pool[], unsigned int pools, CUdeviceptr at)
{
	struct xmem_buffer *buffer;
	unsigned int p, i;

	for (i = 0; i < PARTS; i++)
		for (p = 0; p < pools; p++) {
			buffer = xmem_attach_cuda(pool[p], (void *)(at + (i * 2 + p) * 4096), 4096,
						  0, NULL, NULL);
			if (!buffer)
				WORKED(xmem_peek_last_error(NULL));
			WORKED(xmem_publish(buffer, NULL, NULL));
		}
}

static void own(void *argument)
{
	const struct owner *owner = argument;
	struct xmem_subscription *sub[2];
	struct xmem_pool *pool[2];
	struct xl_gpu_scope scope;
	CUdeviceptr at = 0;
	unsigned int p, i;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	if (owner->kind->make)
		at = owner->kind->make(2 << 20);
	for (p = 0; p < owner->pools; p++) {
		pool[p] = at ? OPEN(owner->name[p], .flags = XMEM_OPEN_WRITER) :
			  cuda_writer(owner->name[p], BUFFERS, BYTES, owner->kind->flags);
		sub[p] = follow(OPEN(owner->name[p], .flags = XMEM_OPEN_WRITER),
				xmem_pool_client(pool[p]), 0);
		tell_parent(xmem_pool_client(pool[p]));
	}
	tell_parent(driver_calls("cuMemCreate") + driver_calls("cuIpcGetMemHandle") * !at);
	i = driver_calls("cuMemMap");
	hear_parent();
	if (at)
		publish_parts(pool, owner->pools, at);
	for (p = 0; p < BUFFERS && !at; p++)
		publish_plainly(pool[0]);
	tell_parent(1);
	/* By another handle of the pool the owner finds its own memory, and opens none. */
	for (p = 0; p < owner->pools; p++)
		CHECK(xmem_cuda_ptr(xmem_receive(sub[p], patience_ns())));
	called((const char *const[2]){ "cuMemMap" }, i);
	called((const char *const[2]){ "cuIpcOpenMemHandle", "cuMemPoolImportPointer" }, 0);
	hear_parent();
}

/* Receive all that comes, get its address, and release it. */
static void look_at(struct xmem_subscription *sub, unsigned int count)
{
	struct xmem_buffer *buffer;

	while (count--) {
		buffer = xmem_receive(sub, patience_ns());
		if (!buffer)
			WORKED(xmem_peek_last_error(NULL));
		CHECK(xmem_cuda_ptr(buffer));
		xmem_release(buffer);
	}
}

/* Two handles of each pool are opened here. Memory is closed with the last of them. */
static void open_and_close(const struct kind *kind)
{
	struct owner owner = { .kind = kind, .pools = kind->make ? 2 : 1 };
	struct xmem_pool *pool[4];
	struct xmem_subscription *sub[4];
	unsigned int n, handles = 2 * owner.pools, allocations;
	struct child *child;
	int publisher[2];

	for (n = 0; n < owner.pools; n++)
		snprintf(owner.name[n], sizeof(owner.name[n]), "%s", new_name());
	child = spawn(own, &owner);
	for (n = 0; n < owner.pools; n++)
		publisher[n] = hear(child);
	allocations = hear(child);
	if (kind->make)
		allocations = 1;
	ON_FAKE(CHECK(allocations));
	for (n = 0; n < handles; n++) {
		pool[n] = OPEN(owner.name[n / 2], .flags = XMEM_OPEN_WRITER);
		sub[n] = follow(pool[n], publisher[n / 2], 0);
	}
	tell(child, 1);
	hear(child);
	for (n = 0; n < handles; n++)
		look_at(sub[n], kind->make ? PARTS : BUFFERS);
	called(kind->opens, allocations);
	for (n = 0; n < handles; n++) {
		called(kind->closes, 0);
		xmem_unsubscribe(sub[n]);
		xmem_pool_close(pool[n]);
	}
	called(kind->opens, allocations);
	called(kind->closes, allocations);
	tell(child, 1);
	finish_child(child);
	no_violations();
}

TEST(CUDA_a_descriptor_is_opened_once_and_closed_once)
{
	open_and_close(&(struct kind){ BY_DESCRIPTOR });
}

TEST(CUDA_a_handle_is_opened_once_and_closed_once)
{
	open_and_close(&(struct kind){ BY_HANDLE, .flags = XMEM_MEMORY_LEGACY });
}

TEST(CUDA_an_attached_handle_is_opened_once_for_all_pools)
{
	open_and_close(&(struct kind){ BY_HANDLE, .make = make_plain });
}

TEST(CUDA_an_attached_descriptor_is_opened_once_for_all_pools)
{
	not_with_hip("it shares what the program has made by handle alone");
	open_and_close(&(struct kind){ BY_DESCRIPTOR, .make = make_exported });
}

TEST(CUDA_an_attached_pool_pointer_is_opened_once_for_all_pools)
{
	not_with_hip("it shares what the program has made by handle alone");
	open_and_close(&(struct kind){ BY_POOL, .make = make_in_pool });
}

// SPDX-License-Identifier: MIT
/* Streams that write words and wait for them, in memory of the CPU and of the device. */
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>

#include "test.h"

enum { GEQ, EQ, AND, NOR };

static _Atomic uint64_t *page;		/* registered memory of the CPU */
static CUdeviceptr words;		/* its address for streams */

static void register_page(void)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	OK(cuMemHostRegister_v2((void *)page, 4096, 2));
	OK(cuMemHostGetDevicePointer_v2(&words, (void *)page, 0));
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, 1));
	return stream;
}

static void streams_write_words(void)
{
	CUstream a;

	begin(500);
	register_page();
	a = new_stream();
	OK(cuStreamWriteValue64_v2(a, words, 0x123456789abcdefull, 0));
	OK(cuStreamWriteValue32_v2(a, words + 8, 7, 0));
	OK(cuStreamSynchronize(a));
	CHECK(page[0] == 0x123456789abcdefull && page[1] == 7);
}

/* A word that does not fulfil the condition is checked again. */
static void check_wait(uint64_t word, uint64_t value, unsigned int how, bool wide, bool passes)
{
	CUstream a = new_stream();
	struct gate *gate;

	page[0] = word;
	if (wide)
		OK(cuStreamWaitValue64_v2(a, words, value, how));
	else
		OK(cuStreamWaitValue32_v2(a, words, (uint32_t)value, how));
	if (passes) {
		OK(cuStreamSynchronize(a));
	} else {
		/* Another stream continues meanwhile, and this one still waits. */
		gate = gate_in(NULL);
		gate_open(gate);
		OK(cuStreamSynchronize(NULL));
		EXPECT(cuStreamQuery(a), 600);
		page[0] = how == NOR ? 0 : how == AND ? ~0ull : value;
		OK(cuStreamSynchronize(a));
	}
	OK(cuStreamDestroy_v2(a));
}

static void waits_compare(void)
{
	begin(0);
	register_page();
	check_wait(5, 5, GEQ, false, true);
	check_wait(6, 5, GEQ, false, true);
	check_wait(4, 5, GEQ, false, false);
	check_wait(3, 0xfffffff0, GEQ, false, true);	/* it has wrapped round */
	check_wait(0xfffffff0, 3, GEQ, false, false);
	check_wait(1ull << 62, 9, GEQ, true, true);
	check_wait((1ull << 63) + 10, 9, GEQ, true, false);
	check_wait(5, 5, EQ, false, true);
	check_wait(6, 5, EQ, false, false);
	check_wait(5ull << 32, 5ull << 32, EQ, true, true);
	check_wait(5, 5ull << 32, EQ, true, false);
	check_wait(6, 4, AND, false, true);
	check_wait(3, 4, AND, false, false);
	check_wait(0xfffffffe, 0, NOR, false, true);
	check_wait(0xfffffffe, 1, NOR, false, false);
}

static void wait_as_another_process(int fd)
{
	uint64_t *to = (uint64_t *)page;
	int i;

	begin(1000);
	OK(cuMemHostRegister_v2(to, 4096, 2));
	OK(cuMemHostGetDevicePointer_v2(&words, to, 0));
	for (i = 1; i <= ROUNDS; i++) {
		OK(cuStreamWaitValue64_v2(NULL, words, i, GEQ));
		OK(cuStreamWriteValue64_v2(NULL, words + 8, i, 0));
	}
	OK(cuStreamSynchronize(NULL));
}

/* Two processes, by turns, through two words. */
static void words_order_processes(void)
{
	struct other other;
	int i;

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	other = other_begin(wait_as_another_process);
	begin(1000);
	OK(cuMemHostRegister_v2((void *)page, 4096, 2));
	OK(cuMemHostGetDevicePointer_v2(&words, (void *)page, 0));
	for (i = 1; i <= ROUNDS; i++) {
		CHECK(page[1] == (uint64_t)i - 1);
		OK(cuStreamWriteValue64_v2(NULL, words, i, 0));
		OK(cuStreamWaitValue64_v2(NULL, words + 8, i, GEQ));
		OK(cuStreamSynchronize(NULL));
		CHECK(page[1] == (uint64_t)i);
	}
	other_end(other);
}

struct word {
	unsigned int operation;
	CUdeviceptr at;
	uint64_t value;
	unsigned int flags;
	uint64_t rest[2];
};

static void batches_are_done_in_order(void)
{
	struct word batch[3] = {
		{ .operation = 5, .value = 1 },
		{ .operation = 4, .value = 2, .flags = GEQ },
		{ .operation = 2, .value = 3 },
	};
	CUstream a;

	begin(0);
	register_page();
	a = new_stream();
	batch[0].at = words;
	batch[1].at = words + 8;
	batch[2].at = words + 16;
	OK(cuStreamBatchMemOp_v2(a, 3, batch, 0));
	OK(cuStreamWaitValue64_v2(NULL, words, 1, GEQ));
	OK(cuStreamSynchronize(NULL));
	CHECK(page[0] == 1 && page[2] == 0);
	page[1] = 2;
	OK(cuStreamSynchronize(a));
	CHECK(page[2] == 3);
	EXPECT(cuStreamBatchMemOp_v2(a, 256, batch, 0), 1);
	batch[1].operation = 9;
	EXPECT(cuStreamBatchMemOp_v2(a, 3, batch, 0), 1);
}

static void wrong_words_are_refused(void)
{
	uint64_t own = 0;

	begin(0);
	register_page();
	EXPECT(cuStreamWriteValue64_v2(NULL, (uintptr_t)&own, 1, 0), 1);
	EXPECT(cuStreamWaitValue32_v2(NULL, (uintptr_t)&own, 1, 0), 1);
	EXPECT(cuStreamWriteValue64_v2(NULL, words + 4, 1, 0), 1);
	EXPECT(cuStreamWriteValue32_v2(NULL, words + 2, 1, 0), 1);
	EXPECT(cuStreamWriteValue32_v2(NULL, words, 1, 2), 1);
	EXPECT(cuStreamWaitValue32_v2(NULL, words, 1, 4), 1);
	EXPECT(cuStreamWaitValue32_v2(NULL, words + 4096, 1, 0), 1);
	EXPECT(cuStreamWaitValue32_v2(NULL, words, 1, 1u << 30), 801);
	OK(cuStreamSynchronize(NULL));
	CHECK(own == 0 && page[0] == 0);
}

static void words_may_be_device_memory(void)
{
	uint64_t word = 0;
	CUdeviceptr at;
	CUstream a, b;

	begin(1000);
	OK(cuMemAlloc_v2(&at, 4096));
	OK(cuMemcpyHtoD_v2(at + 8, &word, sizeof(word)));
	a = new_stream();
	b = new_stream();
	OK(cuStreamWaitValue64_v2(a, at + 8, 44, EQ));
	OK(cuStreamWriteValue64_v2(b, at + 8, 44, 0));
	OK(cuStreamSynchronize(a));
	OK(cuMemcpyDtoH_v2(&word, at + 8, sizeof(word)));
	CHECK(word == 44);
}

static void note_end(CUstream stream, CUresult status, void *user)
{
	page[3] = status;
	sem_post(user);
}

/* Rule 47: a lost context's work does not run, and its streams do not wait. */
static void a_lost_context_ends_waits(void)
{
	struct word batch[3] = {
		{ .operation = 5, .value = 1 },
		{ .operation = 4, .value = 1, .flags = GEQ },
		{ .operation = 5, .value = 1 },
	};
	sem_t ended;
	CUstream a;

	begin(0);
	register_page();
	CHECK(!sem_init(&ended, 0, 0));
	a = new_stream();
	batch[0].at = words;		/* shows that the operation has begun */
	batch[1].at = words + 8;
	batch[2].at = words + 16;
	OK(cuStreamBatchMemOp_v2(a, 3, batch, 0));
	OK(cuStreamAddCallback(a, note_end, &ended, 0));
	while (!page[0])
		sched_yield();
	cuFakeSticky(700);
	CHECK(!sem_wait(&ended));
	CHECK(page[1] == 0 && page[2] == 0 && page[3] == 700);
}

const struct test memop_tests[] = {
	TEST(streams_write_words),
	TEST(waits_compare),
	TEST(words_order_processes),
	TEST(batches_are_done_in_order),
	TEST(wrong_words_are_refused),
	TEST(words_may_be_device_memory),
	TEST(a_lost_context_ends_waits),
	{ 0 },
};

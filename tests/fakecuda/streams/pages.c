// SPDX-License-Identifier: MIT
/* For streams, a registered page stays in use when the address gets another page. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#define PAGE 4096

enum { GEQ, EQ };

static int file;
static _Atomic uint64_t *page;		/* of the file */

static void map_page(void)
{
	file = memfd_create("page", MFD_CLOEXEC);
	CHECK(file >= 0 && !ftruncate(file, PAGE));
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(page != MAP_FAILED);
}

static CUdeviceptr register_page(void)
{
	CUdeviceptr words;

	OK(cuMemHostRegister_v2((void *)page, PAGE, 2));
	OK(cuMemHostGetDevicePointer_v2(&words, (void *)page, 0));
	return words;
}

static void replace_page(void)
{
	CHECK(!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	CHECK(page[0] == 0);
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, 1));
	return stream;
}

/* The stream sees the last word of the page that is taken away. */
static void a_wait_is_for_the_page_that_was_registered(void)
{
	struct gate *gate;
	CUdeviceptr words;
	CUstream a;
	int i;

	begin(0);
	map_page();
	words = register_page();
	a = new_stream();
	gate = gate_in(a);
	for (i = 0; i < PAGE / 8; i++) {
		page[i] = 100 + i;
		OK(cuStreamWaitValue64_v2(a, words + i * 8, 100 + i, EQ));
	}
	replace_page();
	page[1] = 7;
	gate_open(gate);
	OK(cuStreamSynchronize(a));
	CHECK(page[1] == 7 && page[2] == 0);
	OK(cuMemHostUnregister((void *)page));
	CHECK(cuFakeViolations() == 0);
}

static void a_write_is_to_the_page_that_was_registered(void)
{
	uint64_t *seen = aligned_alloc(PAGE, PAGE);
	struct gate *gate;
	CUdeviceptr words;
	CUstream a;

	begin(0);
	map_page();
	words = register_page();
	page[0] = page[1] = 1;
	a = new_stream();
	gate = gate_in(a);
	OK(cuStreamWriteValue64_v2(a, words, 5, 0));
	OK(cuStreamWaitValue64_v2(a, words, 5, EQ));
	CHECK(seen);
	OK(cuMemHostRegister_v2(seen, PAGE, 0));
	OK(cuMemcpyAsync((uintptr_t)seen, words, 16, a));
	replace_page();
	gate_open(gate);
	OK(cuStreamSynchronize(a));
	CHECK(page[0] == 0 && page[1] == 0);
	CHECK(seen[0] == 5 && seen[1] == 1);
	OK(cuMemHostUnregister(seen));
	free(seen);
	OK(cuMemHostUnregister((void *)page));
	CHECK(cuFakeViolations() == 0);
}

static void what_is_new_wants_the_page_registered_anew(void)
{
	CUdeviceptr words;

	begin(0);
	map_page();
	words = register_page();
	page[0] = 3;
	replace_page();
	OK(cuStreamWaitValue64_v2(NULL, words, 3, EQ));
	CHECK(cuFakeViolations() == 1);
	OK(cuStreamWriteValue64_v2(NULL, words, 4, 0));
	CHECK(cuFakeViolations() == 2);
	OK(cuStreamSynchronize(NULL));
	CHECK(page[0] == 0);
	OK(cuMemHostUnregister((void *)page));
	CHECK(register_page() == words);
	OK(cuStreamWriteValue64_v2(NULL, words, 4, 0));
	OK(cuStreamSynchronize(NULL));
	CHECK(page[0] == 4);
	CHECK(cuFakeViolations() == 2);
}

/* Each process has registered a page, and sees what another process writes there. */
static void wait_in_another(int fd)
{
	CUdeviceptr words;

	begin(0);
	words = register_page();
	tell(fd, "", 1);
	OK(cuStreamWaitValue64_v2(NULL, words, 9, GEQ));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemHostUnregister((void *)page));
	CHECK(cuFakeViolations() == 0);
}

static void a_page_that_stays_is_shared(void)
{
	struct other other;
	CUdeviceptr words;
	char c;

	map_page();
	other = other_begin(wait_in_another);
	begin(0);
	words = register_page();
	hear(other.fd, &c, 1);
	OK(cuStreamWriteValue64_v2(NULL, words, 9, 0));
	OK(cuStreamSynchronize(NULL));
	other_end(other);
	CHECK(cuFakeViolations() == 0);
}

/* FAKECUDA_PIN=0: streams use the page that is there. */
static void pages_need_not_stay(void)
{
	CUdeviceptr words;

	setenv("FAKECUDA_PIN", "0", 1);
	begin(0);
	map_page();
	words = register_page();
	replace_page();
	OK(cuStreamWriteValue64_v2(NULL, words, 4, 0));
	OK(cuStreamSynchronize(NULL));
	CHECK(page[0] == 4);
	CHECK(cuFakeViolations() == 0);
}

const struct test page_tests[] = {
	TEST(a_wait_is_for_the_page_that_was_registered),
	TEST(a_write_is_to_the_page_that_was_registered),
	TEST(what_is_new_wants_the_page_registered_anew),
	TEST(a_page_that_stays_is_shared),
	TEST(pages_need_not_stay),
	{ 0 },
};

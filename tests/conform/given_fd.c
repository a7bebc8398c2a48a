// SPDX-License-Identifier: MIT
/*
 * Requests of the kernel that return a descriptor. The caller learns the number before the
 * descriptor is there. In the opposite order, another thread could get that number for a file of
 * its own, by dup2 or after a close, and lose it when the answer cannot be written.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "harness.h"

#define PAGE		page_size()
#define MOST_PAGE	65536	/* the largest page size */
#define ROUNDS	scaled(600)	/* requests during which the page was taken away */
#define MOST_ROUNDS	(50 * ROUNDS)

/*
 * The caller's struct lies in a page that appears when it is touched and is soon taken away again.
 * So the kernel faults at any place of the request, and each fault is seen.
 */
struct page {
	char *at;
	char contents[MOST_PAGE];
	int faults, stop;		/* descriptors */
	int number;			/* of the next descriptor */
	atomic_uint seen;		/* faults of this request */
	atomic_uint early;		/* faults of all requests while the descriptor was there */
};

static void *serve_faults(void *arg)
{
	struct page *page = arg;
	struct pollfd wait[] = {
		{ .fd = page->faults, .events = POLLIN }, { .fd = page->stop, .events = POLLIN },
	};
	uint64_t random = (uintptr_t)page;

	for (;;) {
		struct uffdio_copy copy = {
			.dst = (uintptr_t)page->at, .src = (uintptr_t)page->contents, .len = PAGE,
		};
		struct uffd_msg fault;
		int64_t end;

		if (poll(wait, 2, -1) < 0 || wait[1].revents)
			return NULL;
		if (read(page->faults, &fault, sizeof(fault)) != sizeof(fault))
			continue;
		if (fcntl(page->number, F_GETFD) >= 0)
			page->early++;
		/* The time doubles with each fault; otherwise the request would never end. */
		end = now_ns() + random_next(&random) % (256ULL << (page->seen++ & 15));
		while (ioctl(page->faults, UFFDIO_COPY, &copy) && errno == EAGAIN)
			;
		while (now_ns() < end)
			;
		madvise(page->at, PAGE, MADV_DONTNEED);
	}
}

static void page_start(struct page *page, pthread_t *thread)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	page->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	page->stop = eventfd(0, EFD_CLOEXEC);
	page->at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page->faults >= 0 && page->stop >= 0 && page->at != MAP_FAILED);
	SAME(ioctl(page->faults, UFFDIO_API, &api), 0);
	range.range.start = (uintptr_t)page->at;
	range.range.len = PAGE;
	SAME(ioctl(page->faults, UFFDIO_REGISTER, &range), 0);
	page->number = dup(page->stop);
	CHECK(page->number >= 0);
	close(page->number);
	SAME(pthread_create(thread, NULL, serve_faults, page), 0);
}

static void page_end(struct page *page, pthread_t thread)
{
	uint64_t one = 1;

	CHECK(write(page->stop, &one, sizeof(one)) == sizeof(one));
	SAME(pthread_join(thread, NULL), 0);
	munmap(page->at, PAGE);
	close(page->stop);
	close(page->faults);
}

/*
 * Repeat @request until the page was taken away during ROUNDS requests, which means that it
 * appeared at least twice in each. How many attempts this takes depends on scheduling, and so on
 * the kernel.
 */
static void give_often(struct page *page, int file, unsigned long number, const void *request,
		       size_t size)
{
	unsigned int i, gone = 0;

	memcpy(page->contents, request, size);
	for (i = 0; gone < ROUNDS; i++) {
		CHECK(i < MOST_ROUNDS);
		page->seen = 0;
		madvise(page->at, PAGE, MADV_DONTNEED);	/* the page may still be there */
		if (ioctl(file, number, page->at))
			FAIL("request 0x%lx, round %u: %s", number, i, strerror(errno));
		gone += page->seen > 1;
		SAME(fcntl(page->number, F_GETFD), FD_CLOEXEC);
		close(page->number);
	}
	printf("    request 0x%lx: the page went in %u of %u\n", number, gone, i);
}

TEST_WITHIN(P9_a_descriptor_is_there_when_its_number_is_known, 90)
{
	struct xmem_pool_fd_request pool = { .size = sizeof(pool) };
	struct xmem_poll_fd_request polled = {
		.size = sizeof(polled), .kind = XMEM_POLL_JOINT,
	};
	struct xmem_payload_request payload = { .size = sizeof(payload) };
	struct xmem_attach_request attached;
	int file = new_memfd(PAGE, GOOD_SEALS);
	static struct page page;
	pthread_t thread;
	struct raw raw;

	kernel_only("the daemon sends descriptors, and the library receives them");
	if (geteuid())
		skip("userfaultfd is root's");
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	payload.payload = attached.payload;
	page_start(&page, &thread);
	give_often(&page, raw.link.file, XMEM_IOC_POOL_FD, &pool, sizeof(pool));
	give_often(&page, raw.link.file, XMEM_IOC_POLL_FD, &polled, sizeof(polled));
	give_often(&page, raw.link.file, XMEM_IOC_PAYLOAD, &payload, sizeof(payload));
	page_end(&page, thread);
	SAME(page.early, 0);
	close(file);
	raw_close(&raw);
}

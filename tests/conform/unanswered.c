// SPDX-License-Identifier: MIT
/*
 * P10: a request of the kernel whose answer cannot be written changes nothing, for its caller
 * never learns what it has. The caller's page goes while the request is being done.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "harness.h"

#define BYTES	4096
#define FIRST	8	/* bytes of the struct that lie in the first page */

/*
 * The host stores into the caller's struct before it does anything, and the answer when all is
 * done. The struct lies in two pages, of which the second is protected from writing by
 * userfaultfd. So the host has stored into the first page, and has done nothing yet, when it is
 * stopped there; it goes on when the first page can be written no more.
 */
struct page {
	char *at;
	int faults, stop;		/* descriptors */
};

static int protect_second(const struct page *page, bool protect)
{
	struct uffdio_writeprotect range = {
		.range = { .start = (uintptr_t)page->at + page_size(), .len = page_size() },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(page->faults, UFFDIO_WRITEPROTECT, &range);
}

/* NULL if the host has not stored into the struct. */
static void *forbid_the_answer(void *arg)
{
	struct page *page = arg;
	struct pollfd wait[] = {
		{ .fd = page->faults, .events = POLLIN }, { .fd = page->stop, .events = POLLIN },
	};
	struct uffd_msg fault;

	CHECK(poll(wait, 2, -1) > 0);
	if (!wait[0].revents)
		return NULL;
	CHECK(read(page->faults, &fault, sizeof(fault)) == sizeof(fault));
	CHECK(fault.event == UFFD_EVENT_PAGEFAULT);
	CHECK(fault.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP);
	CHECK(!mprotect(page->at, page_size(), PROT_READ));
	CHECK(!protect_second(page, false));
	return page;
}

static void page_start(struct page *page, const void *argument, size_t bytes)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register second = { .mode = UFFDIO_REGISTER_MODE_WP };

	page->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (page->faults < 0)
		skip("userfaultfd: %s", strerror(errno));
	if (ioctl(page->faults, UFFDIO_API, &api))
		skip("this kernel's userfaultfd does not protect pages from writing");
	page->stop = eventfd(0, EFD_CLOEXEC);
	page->at = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page->stop >= 0 && page->at != MAP_FAILED);
	memcpy(page->at + page_size() - FIRST, argument, bytes);
	second.range.start = (uintptr_t)page->at + page_size();
	second.range.len = page_size();
	CHECK(!ioctl(page->faults, UFFDIO_REGISTER, &second));
	CHECK(!protect_second(page, true));
}

/* The result of a request whose answer does not arrive. */
static int request_unanswered(struct raw *raw, unsigned int request, void *argument, size_t bytes)
{
	uint64_t one = 1;
	struct page page;
	pthread_t thread;
	void *stored;
	int err;

	page_start(&page, argument, bytes);
	CHECK(!pthread_create(&thread, NULL, forbid_the_answer, &page));
	err = raw_request(raw, request, page.at + page_size() - FIRST);
	CHECK(write(page.stop, &one, sizeof(one)) == sizeof(one));
	CHECK(!pthread_join(thread, &stored));
	CHECK(stored);
	munmap(page.at, 2 * page_size());
	close(page.stop);
	close(page.faults);
	return err;
}
#define UNANSWERED(raw, request, argument) \
	request_unanswered((raw), XMEM_IOC_##request, (argument), sizeof(*(argument)))

static void needs_pages_that_go(void)
{
	kernel_only("the daemon's clients read their own datagrams");
	if (geteuid())
		skip("userfaultfd is root's");
}

TEST(P10_a_join_whose_answer_is_lost_is_undone)
{
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_WRITER, .pool_fd = -1,
	};
	const char *name = new_name();
	struct xmem_pool *pool;
	struct raw raw;

	needs_pages_that_go();
	pool = OPEN(name, .slots = 64);
	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	raw_open(&raw);
	SAME(UNANSWERED(&raw, JOIN, &join), -EFAULT);
	SAME(stat_of(pool).clients, 1);
	SAME(raw_join(&raw, name, XMEM_ROLE_READER, 0), 0);
	SAME(stat_of(pool).clients, 2);
	raw_close(&raw);
	xmem_pool_close(pool);
}

TEST(P10_an_attach_whose_answer_is_lost_is_undone)
{
	struct xmem_payload_request payload = { .size = sizeof(payload) };
	int file = new_memfd(64 * BYTES, GOOD_SEALS);
	struct xmem_attach_request answer, lost = {
		.size = sizeof(lost), .fd = file, .stride = BYTES, .length = BYTES, .count = 1,
	};
	const char *name = new_name();
	struct xmem_pool *pool;
	struct raw raw;

	needs_pages_that_go();
	pool = OPEN(name, .slots = 64);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	SAME(UNANSWERED(&raw, ATTACH, &lost), -EFAULT);
	SAME(stat_of(pool).attached, 0);
	SAME(raw_attach(&raw, file, 64, &answer), 0);
	SAME(stat_of(pool).attached, 64);
	payload.payload = answer.payload - 1;	/* payloads are numbered one by one */
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), -ENOENT);
	payload.payload = answer.payload;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), 0);
	close(payload.fd);
	close(file);
	raw_close(&raw);
	xmem_pool_close(pool);
}

TEST(P10_a_subscribe_whose_answer_is_lost_is_undone)
{
	const char *name = new_name();
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	struct xmem_pool *writer;
	struct raw raw;

	needs_pages_that_go();
	writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	subscribe.publisher = xmem_pool_client(writer);
	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(UNANSWERED(&raw, SUBSCRIBE, &subscribe), -EFAULT);
	CHECK(!raw_follows(&raw, raw.link.join.client, subscribe.publisher));
	SAME(raw_request(&raw, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	CHECK(raw_follows(&raw, raw.link.join.client, subscribe.publisher));
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* Nobody is left as the writer of a slot that it does not know to be its own. */
TEST(P10_an_upgrade_whose_answer_is_lost_is_undone)
{
	struct xmem_preallocate_options shared = {
		.size = sizeof(shared), .flags = XMEM_MEMORY_SHARED, .count = 1, .bytes = BYTES,
	};
	const char *name = new_name();
	struct xmem_upgrade_request upgrade = { .size = sizeof(upgrade) };
	struct xmem_pool *owner;
	struct xmem_buffer *kept;
	struct raw raw;
	uint64_t token;

	needs_pages_that_go();
	owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate_with(owner, &shared));
	token = publish_kept(owner, 1, &kept);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	raw_hold(&raw, token);
	xmem_release(kept);
	upgrade.slot = token & 0xffff;
	upgrade.generation = token >> 16;
	SAME(UNANSWERED(&raw, UPGRADE, &upgrade), -EFAULT);
	CHECK((kept = xmem_get(owner, token)));
	SAME(stamp_of(kept), 1);
	xmem_release(kept);
	SAME(raw_request(&raw, XMEM_IOC_UPGRADE, &upgrade), 0);
	CHECK(!xmem_get(owner, token));
	upgrade.flags = XMEM_UPGRADE_CANCEL;
	SAME(raw_request(&raw, XMEM_IOC_UPGRADE, &upgrade), 0);
	CHECK((kept = xmem_get(owner, token)));
	xmem_release(kept);
	raw_close(&raw);
	xmem_pool_close(owner);
}

/* Both of what is asked for go back, and a question that is lost changes nothing. */
TEST(P10_an_access_whose_answer_is_lost_is_undone)
{
	enum { GROUP = 2001 };
	struct xmem_access_request open_to_all = {
		.size = sizeof(open_to_all), .flags = XMEM_ACCESS_MODE | XMEM_ACCESS_GROUP,
		.mode = 0666, .gid = GROUP,
	};
	struct xmem_access_request ask = { .size = sizeof(ask) }, now = ask;
	struct raw raw;

	needs_pages_that_go();
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(UNANSWERED(&raw, ACCESS, &open_to_all), -EFAULT);
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &now), 0);
	SAME(now.mode, 0600);
	SAME(now.gid, getegid());
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &open_to_all), 0);
	SAME(UNANSWERED(&raw, ACCESS, &ask), -EFAULT);
	now = ask;
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &now), 0);
	SAME(now.mode, 0666);
	SAME(now.gid, GROUP);
	raw_close(&raw);
}

// SPDX-License-Identifier: MIT
/*
 * P10: a request of the kernel whose answer cannot be written has had its effect, and what it made
 * goes with the client. The caller's page is taken away while the request is served.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "device.h"

/*
 * The host stores into the caller's struct before it does anything, and stores the answer when all
 * is done; then it stores the number of a descriptor, if there is one. The struct lies in two
 * pages, and userfaultfd protects the second from writing. So when the host stops there, it has
 * stored into the first page and has done nothing yet. It continues when the first page cannot be
 * written any more. To lose only the number, the test protects the first page when the host stops
 * at the second, and the second page when the host stops at the first, until it has stored the
 * answer there.
 */
struct page {
	char *at;
	bool number;			/* only the number is lost: it lies in the first page */
	int faults, stop;		/* descriptors */
};

static void protect(const struct page *page, unsigned int which, bool protects)
{
	struct uffdio_writeprotect range = {
		.range.start = (uintptr_t)page->at + which * page_size(),
		.range.len = page_size(),
		.mode = protects ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	CHECK(!ioctl(page->faults, UFFDIO_WRITEPROTECT, &range));
}

/* In which page the host stops; 2: the request is over. */
static unsigned int next_stop(const struct page *page)
{
	struct pollfd wait[] = {
		{ .fd = page->faults, .events = POLLIN }, { .fd = page->stop, .events = POLLIN },
	};
	struct uffd_msg fault;

	CHECK(poll(wait, 2, -1) > 0);
	if (!wait[0].revents)
		return 2;
	CHECK(read(page->faults, &fault, sizeof(fault)) == sizeof(fault));
	CHECK(fault.event == UFFD_EVENT_PAGEFAULT);
	CHECK(fault.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP);
	return (fault.arg.pagefault.address - (uintptr_t)page->at) / page_size();
}

/* NULL if the host has not stored into the struct as often as it should. */
static void *forbid_the_answer(void *arg)
{
	struct page *page = arg;

	if (next_stop(page) != 1)
		return NULL;
	if (page->number) {
		protect(page, 0, true);
		protect(page, 1, false);
		if (next_stop(page) != 0)
			return NULL;
		protect(page, 1, true);
		protect(page, 0, false);
		if (next_stop(page) != 1)
			return NULL;
	}
	CHECK(!mprotect(page->at, page_size(), PROT_READ));
	protect(page, 1, false);
	return page;
}

static void page_start(struct page *page)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register both = { .mode = UFFDIO_REGISTER_MODE_WP };

	page->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (page->faults < 0)
		skip("userfaultfd: %s", strerror(errno));
	if (ioctl(page->faults, UFFDIO_API, &api))
		skip("this kernel's userfaultfd does not protect pages from writing");
	page->stop = eventfd(0, EFD_CLOEXEC);
	page->at = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page->stop >= 0 && page->at != MAP_FAILED);
	both.range.start = (uintptr_t)page->at;
	both.range.len = 2 * page_size();
	CHECK(!ioctl(page->faults, UFFDIO_REGISTER, &both));
}

/* The number that the next descriptor gets. */
static int next_number(void)
{
	int number = dup(STDERR_FILENO);

	CHECK(number >= 0);
	close(number);
	return number;
}

/*
 * The result of a request whose answer, or the number in it, does not arrive. @first bytes of the
 * struct lie in the first page. Neither a descriptor nor its number is left.
 */
static int request_in(struct page *page, struct raw *raw, unsigned int request,
		      const void *argument, size_t bytes, size_t first)
{
	char *struct_at;
	uint64_t one = 1;
	pthread_t thread;
	void *stored;
	int err, number;

	page_start(page);
	struct_at = page->at + page_size() - first;
	memcpy(struct_at, argument, bytes);
	protect(page, 1, true);
	CHECK(!pthread_create(&thread, NULL, forbid_the_answer, page));
	number = next_number();
	err = raw_request(raw, request, struct_at);
	SAME(next_number(), number);
	CHECK(write(page->stop, &one, sizeof(one)) == sizeof(one));
	CHECK(!pthread_join(thread, &stored));
	CHECK(stored);
	munmap(page->at, 2 * page_size());
	close(page->stop);
	close(page->faults);
	return err;
}

/* Nothing of the answer arrives. */
#define UNANSWERED(raw, request, argument) \
	request_in(&(struct page){ .number = false }, (raw), XMEM_IOC_##request, (argument), \
		   sizeof(*(argument)), 2 * sizeof(u32))
/* All but the number of the descriptor arrives. */
#define UNNUMBERED(raw, request, argument) \
	request_in(&(struct page){ .number = true }, (raw), XMEM_IOC_##request, (argument), \
		   sizeof(*(argument)), \
		   (char *)(&(argument)->fd + 1) - (char *)(argument))

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
	EVENTUALLY(stat_of(pool).clients == 1);
	SAME(raw_join(&raw, name, XMEM_ROLE_READER, 0), 0);
	SAME(stat_of(pool).clients, 2);
	raw_close(&raw);
	xmem_pool_close(pool);
}

TEST(P10_an_attach_whose_answer_is_lost_goes_with_the_client)
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
	SAME(stat_of(pool).attached, 1);
	SAME(raw_attach(&raw, file, 63, &answer), 0);
	SAME(stat_of(pool).attached, 64);
	payload.payload = answer.payload - 1;	/* payloads are numbered one by one */
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), 0);
	close(payload.fd);
	close(file);
	raw_close(&raw);
	EVENTUALLY(!stat_of(pool).attached);
	xmem_pool_close(pool);
}

TEST(P10_a_subscribe_whose_answer_is_lost_goes_with_the_client)
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
	CHECK(raw_follows(&raw, raw.link.join.client, subscribe.publisher));
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* The client is the writer of the slot. It reads the generation in the state word, and cancels. */
TEST(P10_an_upgrade_whose_answer_is_lost_can_be_cancelled)
{
	const char *name = new_name();
	struct xmem_upgrade_request upgrade = { .size = sizeof(upgrade) };
	struct xmem_pool *owner;
	struct xmem_buffer *kept;
	struct raw raw;
	uint64_t token;

	needs_pages_that_go();
	owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate(owner, BYTES, 1, NULL));
	token = publish_kept(owner, 1, &kept);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	raw_hold(&raw, token);
	xmem_release(kept);
	upgrade.slot = token & 0xffff;
	upgrade.generation = token >> 16;
	SAME(UNANSWERED(&raw, UPGRADE, &upgrade), -EFAULT);
	CHECK(!xmem_get(owner, token));
	upgrade.generation = xm_generation(xm_slot(&raw.map, upgrade.slot)->state);
	SAME(upgrade.generation, (token >> 16) + 1);
	upgrade.flags = XMEM_UPGRADE_CANCEL;
	SAME(raw_request(&raw, XMEM_IOC_UPGRADE, &upgrade), 0);
	CHECK((kept = xmem_get(owner, token)));
	xmem_release(kept);
	raw_close(&raw);
	xmem_pool_close(owner);
}

TEST(P10_an_access_whose_answer_is_lost_is_done)
{
	struct xmem_access_request open_to_all = {
		.size = sizeof(open_to_all), .flags = XMEM_ACCESS_MODE, .mode = 0666,
	};
	struct xmem_access_request now = { .size = sizeof(now) };
	struct raw raw;

	needs_pages_that_go();
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(UNANSWERED(&raw, ACCESS, &open_to_all), -EFAULT);
	SAME(raw_request(&raw, XMEM_IOC_ACCESS, &now), 0);
	SAME(now.mode, 0666);
	raw_close(&raw);
}

/* The pool is drained, and a second request says so. */
TEST(P10_a_drain_whose_answer_is_lost_is_done)
{
	struct xmem_evict_request drain = { .size = sizeof(drain), .op = XMEM_OP_DRAIN_EVICT };
	const char *name = new_name();
	struct raw raw, other;

	needs_pages_that_go();
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	SAME(UNANSWERED(&raw, EVICT, &drain), -EFAULT);
	raw_open(&other);
	SAME(raw_join(&other, name, XMEM_ROLE_READER, 0), -ESHUTDOWN);
	SAME(raw_request(&raw, XMEM_IOC_EVICT, &drain), 0);
	SAME(drain.evicted, 0);
	raw_close(&other);
	raw_close(&raw);
}

/* The number cannot be written after the answer has been, and no descriptor is left. */
TEST(P10_a_descriptor_whose_number_is_lost_is_not_there)
{
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1,
	};
	struct xmem_pool_fd_request pool = { .size = sizeof(pool) };
	struct xmem_poll_fd_request polled = {
		.size = sizeof(polled), .kind = XMEM_POLL_JOINT,
	};
	struct xmem_payload_request payload = { .size = sizeof(payload) };
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct xmem_attach_request attached;
	const char *name = new_name();
	struct raw raw, other;
	struct xmem_pool *all;

	needs_pages_that_go();
	all = OPEN(name, .slots = 64);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	payload.payload = attached.payload;
	raw_open(&other);
	SAME(UNNUMBERED(&raw, POOL_FD, &pool), -EFAULT);
	SAME(UNNUMBERED(&raw, POLL_FD, &polled), -EFAULT);
	SAME(UNNUMBERED(&raw, PAYLOAD, &payload), -EFAULT);
	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	SAME(UNNUMBERED(&other, JOIN, &join), -EFAULT);
	EVENTUALLY(stat_of(all).clients == 2);
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), 0);
	close(payload.fd);
	close(file);
	raw_close(&other);
	raw_close(&raw);
	xmem_pool_close(all);
}

/*
 * This descriptor is not a new opening but the owner's file, for which the security modules are
 * asked.
 */
TEST(P10_a_descriptor_of_gpu_memory_whose_number_is_lost_is_not_there)
{
	struct xmem_payload_request payload = {
		.size = sizeof(payload), .flags = XMEM_PAYLOAD_OPEN,
	};
	struct xmem_attach_request attach;
	const char *name = new_name();
	struct raw owner, reader;
	int file;

	needs_pages_that_go();
	device_host();
	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&reader, name, XMEM_ROLE_WRITER);
	file = device_file();
	attach = device_attach(file, 0, 1, 1);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	close(file);
	payload.payload = attach.payload;
	SAME(UNNUMBERED(&reader, PAYLOAD, &payload), -EFAULT);
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &payload), 0);
	close(payload.fd);
	raw_close(&reader);
	raw_close(&owner);
}

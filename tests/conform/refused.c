// SPDX-License-Identifier: MIT
/*
 * P10: a request that fails changes nothing, whatever it fails of: an attach takes neither
 * slots nor pages, and what a limit refuses is available as soon as somebody gives it back.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "harness.h"

#define BYTES	4096

/* ---- attach ---- */

static int attach_with(struct raw *raw, int file, uint64_t payload, uint64_t offset)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = file, .payload = payload, .offset = offset,
		.stride = BYTES, .length = BYTES, .count = 1,
	};

	return raw_request(raw, XMEM_IOC_ATTACH, &request);
}

/* The pool has two groups of slots, of which one is free while the attaches fail. */
TEST(P10_an_attach_that_fails_takes_no_slots_from_others)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .slots = 128);
	int file = new_memfd(64 * BYTES, GOOD_SEALS);
	struct xmem_attach_request first;
	struct raw one, failing, another;

	raw_start(&one, name, XMEM_ROLE_WRITER);
	raw_start(&failing, name, XMEM_ROLE_WRITER);
	raw_start(&another, name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&one, file, 1, &first), 0);
	SAME(attach_with(&failing, file, 0, 64 * BYTES), -ERANGE);
	SAME(attach_with(&failing, -1, 777, 0), -ENOENT);
	SAME(attach_with(&failing, -1, first.payload, 0), -EPERM);
	SAME(stat_of(pool).attached, 1);
	SAME(raw_attach(&another, file, 64, NULL), 0);
	SAME(raw_attach(&failing, file, 1, NULL), -ENOSPC);
	SAME(raw_attach(&one, file, 63, NULL), 0);
	SAME(stat_of(pool).attached, 128);
	close(file);
	raw_close(&one);
	raw_close(&failing);
	raw_close(&another);
	xmem_pool_close(pool);
}

TEST(P10_an_attach_beyond_a_limit_takes_no_slots_from_others)
{
	const char *name = new_name();
	struct xmem_pool *pool;
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct raw one, another;
	char old[32];

	kernel_only("the daemon's limit is in the thousands and its own");
	pool = OPEN(name, .slots = 64);
	raw_start(&one, name, XMEM_ROLE_WRITER);
	raw_start(&another, name, XMEM_ROLE_WRITER);
	set_parameter("max_payloads", "0", old);
	SAME(raw_attach(&one, file, 1, NULL), -EDQUOT);
	set_parameter("max_payloads", old, NULL);
	SAME(raw_attach(&another, file, 1, NULL), 0);
	close(file);
	raw_close(&one);
	raw_close(&another);
	xmem_pool_close(pool);
}

/* ---- answers that cannot be written ---- */

/* Is the private page still that of the file? A store to it makes a copy. */
static bool is_the_files(int pagemap, const void *page)
{
	uint64_t entry;

	CHECK(pread(pagemap, &entry, sizeof(entry),
		    (uintptr_t)page / page_size() * sizeof(entry)) == sizeof(entry));
	return entry >> 61 & 1;
}

/*
 * The host stores into the caller's struct before it does anything, and the answer when all
 * is done. Between the two this thread makes the struct read-only.
 */
static bool forbids;

static void *forbid_the_answer(void *page)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	CHECK(pagemap >= 0);
	__atomic_store_n(&forbids, true, __ATOMIC_RELEASE);
	while (is_the_files(pagemap, page))
		;
	CHECK(!mprotect(page, BYTES, PROT_READ));
	close(pagemap);
	return NULL;
}

/* The result of a request whose answer should not arrive; its struct as it is afterwards. */
static int request_unanswered(struct raw *raw, unsigned int request, void *argument, size_t bytes)
{
	int err, file = memfd_create("struct", MFD_CLOEXEC);
	pthread_t thread;
	void *page;

	CHECK(file >= 0 && !ftruncate(file, BYTES));
	CHECK(pwrite(file, argument, bytes, 0) == (ssize_t)bytes);
	page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	CHECK(page != MAP_FAILED);
	SAME(*(volatile uint32_t *)page, bytes);
	__atomic_store_n(&forbids, false, __ATOMIC_RELAXED);
	CHECK(!pthread_create(&thread, NULL, forbid_the_answer, page));
	while (!__atomic_load_n(&forbids, __ATOMIC_ACQUIRE))
		sched_yield();
	err = raw_request(raw, request, page);
	CHECK(!pthread_join(thread, NULL));
	memcpy(argument, page, bytes);
	munmap(page, BYTES);
	close(file);
	return err;
}

static void detach_all(struct raw *raw, const struct xmem_attach_request *answer)
{
	struct xmem_slot_request slot = { .size = sizeof(slot) };
	unsigned int i;

	for (i = 0; i < answer->count; i++) {
		slot.slot = answer->slot[i];
		SAME(raw_request(raw, XMEM_IOC_DETACH, &slot), 0);
	}
}

TEST_WITHIN(P10_an_attach_whose_answer_is_lost_is_undone, 60)
{
	enum { PAGES = 16384 };		/* the host looks at each, which gives the thread time */
	int err = 0, file = new_memfd(PAGES * (size_t)BYTES, GOOD_SEALS);
	struct xmem_attach_request answer;
	struct xmem_payload_request payload = { .size = sizeof(payload) };
	const char *name = new_name();
	bool undone = false;
	struct xmem_pool *pool;
	struct raw raw;
	int i;

	kernel_only("the daemon's clients read their own datagrams");
	pool = OPEN(name, .slots = 64);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, 64, &answer), 0);
	for (i = 0; i < 500 && !undone; i++) {
		detach_all(&raw, &answer);
		payload.payload = answer.payload + 1;	/* payloads are numbered one by one */
		answer = (struct xmem_attach_request){
			.size = sizeof(answer), .fd = file, .stride = BYTES, .length = BYTES,
			.count = 1,
		};
		err = request_unanswered(&raw, XMEM_IOC_ATTACH, &answer, sizeof(answer));
		if (!err) {		/* the thread came too late */
			SAME(answer.payload, payload.payload);
			continue;
		}
		SAME(err, -EFAULT);
		SAME(stat_of(pool).attached, 0);
		SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &payload), -ENOENT);
		SAME(raw_attach(&raw, file, 64, &answer), 0);
		/* Else it came while the host stored the first time, and nothing had been done. */
		undone = answer.payload == payload.payload + 1;
		SAME(answer.payload, payload.payload + undone);
	}
	CHECK(undone);
	close(file);
	raw_close(&raw);
	xmem_pool_close(pool);
}

TEST_WITHIN(P10_a_join_whose_answer_is_lost_is_undone, 60)
{
	const char *name = new_name();
	struct xmem_pool *pool;
	struct raw raw;
	int i, err = 0;

	kernel_only("the daemon's clients read their own datagrams");
	pool = OPEN(name, .slots = 65536);	/* many holds: time for the thread */
	for (i = 0; i < 200 && !err; i++) {
		struct xmem_join_request join = {
			.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_WRITER,
			.pool_fd = -1,
		};

		snprintf((char *)join.name, sizeof(join.name), "%s", name);
		raw_open(&raw);
		err = request_unanswered(&raw, XMEM_IOC_JOIN, &join, sizeof(join));
		if (!err)
			raw_close(&raw);	/* the thread came too late */
	}
	SAME(err, -EFAULT);
	EVENTUALLY(stat_of(pool).clients == 1);	/* those before it have ended */
	SAME(raw_join(&raw, name, XMEM_ROLE_READER, 0), 0);
	SAME(stat_of(pool).clients, 2);
	raw_close(&raw);
	xmem_pool_close(pool);
}

/* Upgrades take turns: those of these threads, in vain, give the one that forbids answers time. */
#define IN_TURN	1

static struct turns {
	struct raw raw[IN_TURN];
	pthread_t thread[IN_TURN];
	bool stop;
} turns;

static void *upgrade_in_vain(void *raw)
{
	while (!__atomic_load_n(&turns.stop, __ATOMIC_RELAXED)) {
		struct xmem_upgrade_request upgrade = { .size = sizeof(upgrade), .generation = 1 };

		CHECK(raw_request(raw, XMEM_IOC_UPGRADE, &upgrade));
	}
	return NULL;
}

static void turns_begin(const char *name)
{
	int i;

	turns.stop = false;
	for (i = 0; i < IN_TURN; i++) {
		raw_start(&turns.raw[i], name, XMEM_ROLE_WRITER);
		CHECK(!pthread_create(&turns.thread[i], NULL, upgrade_in_vain, &turns.raw[i]));
	}
}

static void turns_end(void)
{
	int i;

	__atomic_store_n(&turns.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < IN_TURN; i++) {
		CHECK(!pthread_join(turns.thread[i], NULL));
		raw_close(&turns.raw[i]);
	}
}

/* Nobody is left as the writer of a slot that it does not know to be its own. */
TEST_WITHIN(P10_an_upgrade_whose_answer_is_lost_is_undone, 60)
{
	struct xmem_preallocate_options shared = {
		.size = sizeof(shared), .flags = XMEM_MEMORY_SHARED, .count = 1, .bytes = BYTES,
	};
	const char *name = new_name();
	struct xmem_upgrade_request upgrade;
	struct xmem_pool *owner;
	struct xmem_buffer *kept;
	struct raw raw;
	uint64_t token;
	int i, err = 0;

	kernel_only("the daemon's clients read their own datagrams");
	owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	WORKED(xmem_preallocate_with(owner, &shared));
	token = publish_kept(owner, 1, &kept);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	raw_hold(&raw, token);
	xmem_release(kept);
	turns_begin(name);
	for (i = 0; i < 5000 && !err; i++) {
		upgrade = (struct xmem_upgrade_request){
			.size = sizeof(upgrade), .slot = token & 0xffff, .generation = token >> 16,
		};
		err = request_unanswered(&raw, XMEM_IOC_UPGRADE, &upgrade, sizeof(upgrade));
		if (err)
			break;
		upgrade.flags = XMEM_UPGRADE_CANCEL;	/* the thread came too late */
		SAME(raw_request(&raw, XMEM_IOC_UPGRADE, &upgrade), 0);
	}
	turns_end();
	SAME(err, -EFAULT);
	SAME(upgrade.generation, token >> 16);
	SAME(raw_request(&raw, XMEM_IOC_UPGRADE, &upgrade), 0);
	CHECK(!xmem_get(owner, token));
	upgrade.flags = XMEM_UPGRADE_CANCEL;
	SAME(raw_request(&raw, XMEM_IOC_UPGRADE, &upgrade), 0);
	CHECK((kept = xmem_get(owner, token)));
	SAME(stamp_of(kept), 1);
	xmem_release(kept);
	raw_close(&raw);
	xmem_pool_close(owner);
}

/* ---- limits of memory ---- */

static void limit_of_pages(const char *parameter)
{
	const char *name = new_name();
	int file = new_memfd(BYTES, GOOD_SEALS);
	struct raw writer, more;
	char old[32];

	kernel_only("the daemon leaves memory to its own limits");
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	raw_open(&more);
	set_parameter(parameter, "0", old);
	SAME(raw_attach(&writer, file, 1, NULL), -EDQUOT);
	SAME(raw_join(&more, name, XMEM_ROLE_READER, 0), -EDQUOT);
	SAME(raw_join(&more, new_name(), XMEM_ROLE_READER, 0), -EDQUOT);
	set_parameter(parameter, old, NULL);
	SAME(raw_attach(&writer, file, 1, NULL), 0);
	SAME(raw_join(&more, name, XMEM_ROLE_READER, 0), 0);
	close(file);
	raw_close(&more);
	raw_close(&writer);
}

TEST(P10_too_many_bytes_of_a_pool_is_EDQUOT)
{
	limit_of_pages("max_pool_bytes");
}

TEST(P10_too_many_bytes_of_all_pools_is_EDQUOT)
{
	limit_of_pages("max_bytes");
}

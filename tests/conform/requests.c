// SPDX-License-Identifier: MIT
/*
 * Bad requests, sent straight to the host and not through the library. Each gets the errno that the
 * table in uapi.h names, and changes nothing. payload_files.c tests which files may be payloads,
 * mappings.c tests mmap, and datagrams.c the daemon's datagrams.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "core/request.h"
#include "harness.h"

#define BYTES	4096

/* A caller for requests: it has joined, owns slots, and another writer is beside it. */
struct caller {
	const char *name;
	struct xmem_pool *other;	/* a writer, its id in @publisher */
	uint32_t publisher;
	struct raw raw;			/* a writer with @attached */
	struct xmem_attach_request attached;
	int memfd;
	int key;			/* a descriptor of the pool */
};

static void caller_start(struct caller *caller)
{
	caller->name = new_name();
	caller->other = open_writer(caller->name, 2, BYTES);
	caller->publisher = xmem_pool_client(caller->other);
	raw_start(&caller->raw, caller->name, XMEM_ROLE_WRITER);
	caller->memfd = new_memfd(8 * BYTES, GOOD_SEALS);
	SAME(raw_attach(&caller->raw, caller->memfd, 8, &caller->attached), 0);
	caller->key = xmem_pool_fd(caller->other);
	CHECK(caller->key >= 0);
}

static void caller_end(struct caller *caller)
{
	close(caller->memfd);
	close(caller->key);
	raw_close(&caller->raw);
	check_quiet(caller->other, 1);
	xmem_pool_close(caller->other);
}

/* One kind of request: how a good one is made, its answer, and how it is undone. */
struct kind {
	const char *name;
	unsigned int request;
	uint32_t size;
	uint32_t older;			/* without its last field */
	uint32_t least;
	uint32_t op;			/* 0: it has none, or it is op 0 */
	int answer;
	void (*make)(struct caller *caller, void *request);
	void (*undo)(struct caller *caller, void *request);
};

static void make_nothing(struct caller *caller, void *request)
{
}

static void undo_pool_file(struct caller *caller, void *request)
{
	close(((struct xmem_pool_fd_request *)request)->fd);
}

static void make_attach(struct caller *caller, void *request)
{
	struct xmem_attach_request *attach = request;

	attach->fd = caller->memfd;
	attach->stride = attach->length = BYTES;
	attach->count = 1;
}

static void undo_attach(struct caller *caller, void *request)
{
	struct xmem_attach_request *attach = request;

	SAME(raw_slot(&caller->raw, XMEM_OP_DETACH, attach->slot[0]), 0);
}

static void make_payload(struct caller *caller, void *request)
{
	((struct xmem_payload_request *)request)->payload = caller->attached.payload;
}

static void undo_payload(struct caller *caller, void *request)
{
	close(((struct xmem_payload_request *)request)->fd);
}

static void make_subscribe(struct caller *caller, void *request)
{
	((struct xmem_subscribe_request *)request)->publisher = caller->publisher;
}

static void undo_subscribe(struct caller *caller, void *request)
{
	struct xmem_unsubscribe_request undo = {
		.size = sizeof(undo), .publisher = caller->publisher,
	};

	SAME(raw_request(&caller->raw, XMEM_IOC_UNSUBSCRIBE, &undo), 0);
}

static void make_unsubscribe(struct caller *caller, void *request)
{
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = caller->publisher,
	};
	int err = raw_request(&caller->raw, XMEM_IOC_SUBSCRIBE, &subscribe);

	CHECK(!err || err == -EEXIST);
	((struct xmem_unsubscribe_request *)request)->publisher = caller->publisher;
}

static void make_waiters(struct caller *caller, void *request)
{
	((struct xmem_wait_request *)request)->kind = XMEM_WAIT_SLOTS;
	((struct xmem_wait_request *)request)->client = caller->raw.link.join.client;
}

static void make_wait(struct caller *caller, void *request)
{
	struct xmem_wait_request *sleep = request;

	make_waiters(caller, sleep);
	sleep->value = 0xfffffffe;	/* long past, so it does not sleep */
	sleep->deadline_ns = ~0ULL;
}

static void make_slot(struct caller *caller, void *request)
{
	((struct xmem_slot_request *)request)->slot = caller->attached.slot[0];
}

static void make_upgrade(struct caller *caller, void *request)
{
	((struct xmem_upgrade_request *)request)->slot = caller->attached.slot[0];
}

static void make_client(struct caller *caller, void *request)
{
	((struct xmem_client_request *)request)->client = caller->raw.link.join.client;
}

static void make_detach(struct caller *caller, void *request)
{
	struct xmem_attach_request attach;

	SAME(raw_attach(&caller->raw, caller->memfd, 1, &attach), 0);
	((struct xmem_slot_request *)request)->slot = attach.slot[0];
}

static void undo_poll_fd(struct caller *caller, void *request)
{
	close(((struct xmem_poll_fd_request *)request)->fd);
}

/* The slot is not LIVE and has no claims. */
static void make_claim(struct caller *caller, void *request)
{
	struct xmem_claim_request *claim = request;
	u32 slot = caller->attached.slot[0];

	claim->op = XMEM_CLAIM_VOID;
	claim->slot = slot;
	claim->generation = xm_generation(xm_load(&xm_slot(&caller->raw.map, slot)->state));
}

static void make_narrow(struct caller *caller, void *request)
{
	struct xmem_pool_fd_request *narrow = request;

	narrow->flags = XMEM_POOL_FD_NARROW;
	narrow->pool_fd = caller->key;
	narrow->roles = 1u << XMEM_ROLE_READER;
}

/* @last: the struct's last field, which an older caller does not know; @least: its minimum. */
#define KIND(name, ...)		ROW(name, name, 0, __VA_ARGS__)
#define OP(name, request, ...)	ROW(name, request, XMEM_OP_##name, __VA_ARGS__)
#define ROW(name, request, op, type, last, least, ...) \
	{ #name, XMEM_IOC_##request, sizeof(struct type), offsetof(struct type, last), least, op, \
	  __VA_ARGS__ }

static const struct kind kinds[] = {
	KIND(POOL_FD, xmem_pool_fd_request, reserved, XMEM_POOL_FD_MIN,
	     0, make_nothing, undo_pool_file),
	KIND(ATTACH, xmem_attach_request, handle, XMEM_ATTACH_MIN,
	     0, make_attach, undo_attach),
	KIND(PAYLOAD, xmem_payload_request, handle, XMEM_PAYLOAD_MIN,
	     0, make_payload, undo_payload),
	KIND(SUBSCRIBE, xmem_subscribe_request, position, XMEM_SUBSCRIBE_MIN,
	     0, make_subscribe, undo_subscribe),
	KIND(UNSUBSCRIBE, xmem_unsubscribe_request, incarnation, XMEM_UNSUBSCRIBE_MIN,
	     0, make_unsubscribe, NULL),
	OP(ARM, WAIT, xmem_wait_request, deadline_ns, XMEM_WAIT_MIN,
	   0, make_waiters, NULL),
	OP(WAIT, WAIT, xmem_wait_request, deadline_ns, XMEM_WAIT_MIN,
	   0, make_wait, NULL),
	OP(WAKE, WAIT, xmem_wait_request, deadline_ns, XMEM_WAIT_MIN,
	   0, make_waiters, NULL),
	OP(RESOLVE, SLOT, xmem_slot_request, generation, XMEM_SLOT_MIN,
	   -EPERM, make_slot, NULL),
	OP(COLLECT, SLOT, xmem_slot_request, generation, XMEM_SLOT_MIN,
	   0, make_slot, NULL),
	OP(RENEW, SLOT, xmem_slot_request, generation, XMEM_SLOT_MIN,
	   0, make_slot, NULL),
	OP(DETACH, SLOT, xmem_slot_request, generation, XMEM_SLOT_MIN,
	   0, make_detach, NULL),
	KIND(POLL_FD, xmem_poll_fd_request, reserved, XMEM_POLL_FD_MIN,
	     0, make_nothing, undo_poll_fd),
	KIND(CLAIM, xmem_claim_request, timeout_ns, XMEM_CLAIM_MIN,
	     -ENOENT, make_claim, NULL),
	KIND(UPGRADE, xmem_upgrade_request, metadata, XMEM_UPGRADE_MIN,
	     -EPERM, make_upgrade, NULL),
	ROW(NARROW, POOL_FD, 0, xmem_pool_fd_request, reserved, XMEM_POOL_FD_MIN,
	    0, make_narrow, undo_pool_file),
	KIND(ACCESS, xmem_access_request, owner_uid, XMEM_ACCESS_MIN,
	     0, make_nothing, NULL),
	KIND(CLIENT, xmem_client_request, incarnation, XMEM_CLIENT_MIN,
	     0, make_client, NULL),
};
#define KINDS	(sizeof(kinds) / sizeof(*kinds))

static const struct kind *kind_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	FAIL("no such kind");
}

static void make(struct caller *caller, const struct kind *kind, void *request)
{
	kind->make(caller, request);
	if (kind->op)
		((union xm_request *)request)->op = kind->op;
}

/*
 * Send a good request of @size bytes, and check the answer. If it is longer than the host's struct,
 * @tail fills the rest. The bytes behind the caller's size must never change.
 */
static int ask(struct caller *caller, const struct kind *kind, uint32_t size, int tail)
{
	uint64_t space[1024] = { 0 }, before[1024];
	uint32_t known = size < kind->size ? size : kind->size;
	int err;

	make(caller, kind, space);
	memset((char *)space + known, size < kind->size ? 0xa5 : tail, sizeof(space) - known);
	memcpy(space, &size, sizeof(size));
	memcpy(before, space, sizeof(space));
	err = raw_request(&caller->raw, kind->request, space);
	if (err && memcmp(before, space, sizeof(space)))
		FAIL("%s of %u bytes: %d, and the struct has changed", kind->name, size, err);
	if (memcmp((char *)before + known, (char *)space + known, sizeof(space) - known))
		FAIL("%s of %u bytes: the answer goes beyond what the caller knows",
		     kind->name, size);
	/* A request without an answer cannot be undone: its effect ends with the caller. */
	if (!err && kind->undo && (size >= kind->size || kind->request != XMEM_IOC_ATTACH))
		kind->undo(caller, space);
	return err;
}

static void answers(struct caller *caller, const struct kind *kind, uint32_t size, int tail,
		    int want)
{
	int got = ask(caller, kind, size, tail);

	if (got != want)
		FAIL("%s of %u bytes (%u are right), then 0x%x: %d and not %d", kind->name, size,
		     kind->size, tail, got, want);
}

#define LENGTHS(name_, request_) \
TEST(P4_lengths_of_a_struct_##name_) \
{ \
	every_length(kind_of(#request_)); \
}

/*
 * A struct that is too short, of an older caller, exact, and of a newer one, whose tail is zeros or
 * not.
 */
static void every_length(const struct kind *kind)
{
	struct caller caller;

	caller_start(&caller);
	answers(&caller, kind, 0, 0, -EINVAL);
	answers(&caller, kind, 3, 0, -EINVAL);
	answers(&caller, kind, 4, 0, -EINVAL);
	answers(&caller, kind, kind->least - 1, 0, -EINVAL);
	answers(&caller, kind, kind->least, 0, kind->answer);		/* of the oldest caller */
	answers(&caller, kind, kind->older, 0, kind->answer);		/* one field shorter */
	answers(&caller, kind, kind->size, 0, kind->answer);
	answers(&caller, kind, kind->size, 0xff, kind->answer);	/* what follows is not its own */
	answers(&caller, kind, kind->size + 1, 0, kind->answer);
	answers(&caller, kind, kind->size + 8, 0, kind->answer);	/* one field longer */
	answers(&caller, kind, kind->size + 64, 0, kind->answer);
	answers(&caller, kind, kind->size + 1, 1, -E2BIG);
	answers(&caller, kind, kind->size + 64, 0x80, -E2BIG);
	answers(&caller, kind, 8192, 1, -E2BIG);
	answers(&caller, kind, kind->size, 0, kind->answer);		/* and nothing is broken */
	caller_end(&caller);
}

LENGTHS(pool_file, POOL_FD)
LENGTHS(attach, ATTACH)
LENGTHS(payload, PAYLOAD)
LENGTHS(subscribe, SUBSCRIBE)
LENGTHS(unsubscribe, UNSUBSCRIBE)
LENGTHS(arm, ARM)
LENGTHS(wait, WAIT)
LENGTHS(wake, WAKE)
LENGTHS(resolve, RESOLVE)
LENGTHS(collect, COLLECT)
LENGTHS(renew, RENEW)
LENGTHS(detach, DETACH)
LENGTHS(poll_fd, POLL_FD)
LENGTHS(upgrade, UPGRADE)
LENGTHS(narrow, NARROW)
LENGTHS(access, ACCESS)
LENGTHS(client, CLIENT)

static int join_of_length(uint32_t size, int tail)
{
	struct { struct xmem_join_request join; char tail[128]; } request = {
		.join = { .size = size, .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1 },
	};
	struct raw raw;
	int err;

	memset(request.tail, tail, sizeof(request.tail));
	raw_open(&raw);
	err = raw_request(&raw, XMEM_IOC_JOIN, &request);
	raw_close(&raw);
	return err;
}

TEST(P4_lengths_of_a_struct_join)
{
	uint32_t right = sizeof(struct xmem_join_request);

	SAME(join_of_length(0, 0), -EINVAL);
	SAME(join_of_length(4, 0), -EINVAL);
	SAME(join_of_length(XMEM_JOIN_MIN - 1, 0), -EINVAL);
	SAME(join_of_length(XMEM_JOIN_MIN, 0), 0);
	SAME(join_of_length(offsetof(struct xmem_join_request, total_bytes), 0), 0);
	SAME(join_of_length(right, 1), 0);
	SAME(join_of_length(right + 64, 0), 0);
	SAME(join_of_length(right + 1, 1), -E2BIG);
	SAME(join_of_length(right + 64, 1), -E2BIG);
}

/* ---- unknown requests, and requests at the wrong time ---- */

TEST(P4_unknown_requests_are_ENOTTY)
{
	static const unsigned int unknown[] = {
		0, 0xffffffff, _IO(XMEM_IOC_TYPE, 0x70), _IO(XMEM_IOC_TYPE, 0x7f),
		_IO(XMEM_IOC_TYPE, 0xff),
		_IO('x', 0), _IOWR(XMEM_IOC_TYPE, 0x05, struct xmem_join_request),
		_IO(XMEM_IOC_TYPE + 1, 0x06),
	};
	struct caller caller;
	struct raw fresh;
	unsigned int i;

	caller_start(&caller);
	raw_open(&fresh);
	for (i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		uint64_t space[64] = { 64 };

		SAME(raw_request(&caller.raw, unknown[i], space), -ENOTTY);
		SAME(raw_request(&fresh, unknown[i], space), -ENOTTY);
	}
	raw_close(&fresh);
	caller_end(&caller);
}

/* ---- query and pools: for those that have not joined ---- */

TEST(API_a_host_says_what_it_is)
{
	struct { struct xmem_query_request query; uint64_t newer; } request = { .query.size = 0 };
	struct xmem_query_request short_one = { .size = XMEM_QUERY_MIN, .pools = 77 };
	struct raw raw;

	raw_open(&raw);
	request.query.size = sizeof(request);
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &request), 0);
	SAME(request.query.abi, XMEM_ABI);
	SAME(request.query.abi_oldest, XMEM_ABI_OLDEST);
	SAME(request.query.incompat, XMEM_INCOMPAT_KNOWN);
	SAME(request.query.max_slots, XMEM_MAX_SLOTS);
	SAME(request.query.max_clients, XMEM_MAX_CLIENTS);
	SAME(request.query.max_ring_entries, XMEM_MAX_RING);
	SAME(request.query.group_slots, XMEM_GROUP_SLOTS);
	CHECK(request.query.max_pools >= 1 && request.query.max_payloads >= 1);
	CHECK(!strcmp((char *)request.query.version, XMEM_VERSION));
	/* An answer that is cut to nothing is still an answer. */
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &short_one), 0);
	SAME(short_one.pools, 77);
	request.newer = 1;
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &request), -E2BIG);
	request.newer = 0;
	request.query.flags = 1;
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &request), -EINVAL);
	/* It may still join. */
	SAME(raw_join(&raw, "", XMEM_ROLE_READER, 0), 0);
	raw_close(&raw);
}

TEST(API_pools_are_listed_in_the_order_of_their_numbers)
{
	struct xmem_pools_request request = { .size = sizeof(request) };
	struct caller caller;
	struct raw raw;
	uint64_t last = 0;
	int found = 0, err;

	caller_start(&caller);
	raw_open(&raw);
	while (!(err = raw_request(&raw, XMEM_IOC_POOLS, &request))) {
		CHECK(request.number > last);
		last = request.number;
		if (strcmp((char *)request.name, caller.name))
			continue;
		found++;
		SAME(request.owner_uid, geteuid());
		SAME(request.slots, caller.raw.map.slots);
		SAME(request.clients, caller.raw.map.clients);
		SAME(request.ring_entries, caller.raw.map.ring_mask + 1);
		CHECK(request.alive >= 2);
	}
	SAME(err, -ENOENT);
	SAME(found, 1);
	request.number = ~0ULL;
	SAME(raw_request(&raw, XMEM_IOC_POOLS, &request), -ENOENT);
	raw_close(&raw);
	caller_end(&caller);
}

/* A good request of each kind. */
static uint64_t good[KINDS][128];

static void make_all(struct caller *caller)
{
	unsigned int i;

	memset(good, 0, sizeof(good));
	for (i = 0; i < KINDS; i++) {
		make(caller, &kinds[i], good[i]);
		memcpy(good[i], &kinds[i].size, sizeof(kinds[i].size));
	}
}

static void all_say(struct raw *raw, int want)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++) {
		int err;

		if (!strcmp(kinds[i].name, "NARROW"))
			continue;	/* for all that have the descriptor, joined or not */
		err = raw_request(raw, kinds[i].request, good[i]);
		if (err != want)
			FAIL("%s: %d and not %d", kinds[i].name, err, want);
	}
}

TEST(P4_requests_before_joining_are_ENOTCONN)
{
	struct caller caller;
	struct raw fresh;

	caller_start(&caller);
	raw_open(&fresh);
	make_all(&caller);
	all_say(&fresh, -ENOTCONN);
	/* It may still join. */
	SAME(raw_join(&fresh, caller.name, XMEM_ROLE_READER, 0), 0);
	raw_close(&fresh);
	caller_end(&caller);
}

/* The kernel's device makes as many clients as a process asks for: client_file.c. */
TEST(P4_joining_twice_is_EISCONN)
{
	struct caller caller;
	struct xmem_join_request again = {
		.size = sizeof(again), .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1,
	};

	caller_start(&caller);
	SAME(raw_request(&caller.raw, XMEM_IOC_JOIN, &again), -EISCONN);
	snprintf((char *)again.name, sizeof(again.name), "%s", caller.name);
	SAME(raw_request(&caller.raw, XMEM_IOC_JOIN, &again), -EISCONN);
	SAME(stat_of(caller.other).clients, 2);
	caller_end(&caller);
}

TEST(P4_requests_after_the_area_was_unmapped_are_ENOTCONN)
{
	struct caller caller;
	struct raw raw;

	kernel_only("the daemon does not see what a process unmaps");
	caller_start(&caller);
	raw_start(&raw, caller.name, XMEM_ROLE_WRITER);
	SAME(stat_of(caller.other).clients, 3);
	CHECK(!munmap(raw.map.area[raw.link.join.client], raw.map.pool->area_stride));
	EVENTUALLY(stat_of(caller.other).clients == 2);
	make_all(&caller);
	all_say(&raw, -ENOTCONN);
	SAME(raw_join(&raw, caller.name, XMEM_ROLE_READER, 0), -EISCONN);
	raw_close(&raw);
	caller_end(&caller);
}

/* Only a client that has mapped its area is sure to end with its process. */
TEST(P4_what_outlasts_a_request_needs_a_mapped_area)
{
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	struct caller caller;
	unsigned int attached;
	struct raw raw;

	kernel_only("the daemon does not see what a process maps");
	caller_start(&caller);
	attached = stat_of(caller.other).attached;
	raw_open(&raw);
	SAME(raw_join(&raw, caller.name, XMEM_ROLE_WRITER, 0), 0);
	SAME(raw_attach(&raw, caller.memfd, 1, NULL), -ENOTCONN);
	subscribe.publisher = caller.publisher;
	SAME(raw_request(&raw, XMEM_IOC_SUBSCRIBE, &subscribe), -ENOTCONN);
	SAME(stat_of(caller.other).attached, attached);
	raw_close(&raw);
	caller_end(&caller);
}

static int kept;	/* a duplicate: the library closes its own descriptors in a child */

static void ask_as_child(void *argument)
{
	struct caller *caller = argument;

	caller->raw.link.file = kept;
	all_say(&caller->raw, -EPERM);
}

TEST(P4_requests_by_another_address_space_are_EPERM)
{
	struct caller caller;

	kernel_only("the daemon sees one socket for all that write to it");
	caller_start(&caller);
	make_all(&caller);
	kept = dup(caller.raw.link.file);
	CHECK(kept >= 0);
	finish_child(spawn(ask_as_child, &caller));
	close(kept);
	caller_end(&caller);
}

/* ---- memory ---- */

TEST(P4_structs_that_cannot_be_read_are_EFAULT)
{
	struct caller caller;
	size_t bytes = page_size();
	unsigned int i;
	char *page;

	kernel_only("the daemon's clients write their own datagrams");
	caller_start(&caller);
	page = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && !munmap(page + bytes, bytes));
	for (i = 0; i < KINDS; i++) {
		uint32_t *end = (uint32_t *)(page + bytes - 4);

		SAME(ioctl(caller.raw.link.file, kinds[i].request, NULL), -1);
		SAME(errno, EFAULT);
		SAME(ioctl(caller.raw.link.file, kinds[i].request, (void *)0xffff800000000000), -1);
		SAME(errno, EFAULT);
		*end = kinds[i].size;	/* claims more than is mapped */
		SAME(ioctl(caller.raw.link.file, kinds[i].request, end), -1);
		SAME(errno, EFAULT);
	}
	munmap(page, bytes);
	caller_end(&caller);
}

TEST(P4_an_answer_that_cannot_be_written_changes_nothing)
{
	struct caller caller;
	struct xmem_pool_info before;
	unsigned int i, files;
	uint64_t *page;

	kernel_only("the daemon's clients read their own datagrams");
	caller_start(&caller);
	page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	before = stat_of(caller.other);
	files = open_files();
	for (i = 0; i < KINDS; i++) {
		union xm_request op = { .op = kinds[i].op };

		if (!xm_request_answers(xm_request_find(kinds[i].request), &op))
			continue;
		memset(page, 0, BYTES);
		make(&caller, &kinds[i], page);
		memcpy(page, &kinds[i].size, sizeof(kinds[i].size));
		mprotect(page, BYTES, PROT_READ);
		SAME(ioctl(caller.raw.link.file, kinds[i].request, page), -1);
		SAME(errno, EFAULT);
		mprotect(page, BYTES, PROT_READ | PROT_WRITE);
	}
	SAME(open_files(), files);
	SAME(stat_of(caller.other).attached, before.attached);
	/* It is not even subscribed. */
	answers(&caller, kind_of("SUBSCRIBE"), sizeof(struct xmem_subscribe_request), 0, 0);
	munmap(page, BYTES);
	caller_end(&caller);
}

// SPDX-License-Identifier: MIT
/*
 * Every allocation and every copy to or from user memory, in each request, fails once:
 * /proc/thread-self/fail-nth makes the kernel fail the nth one of this thread.
 *
 * Two clients go through a list of steps, once for each step and each n = 1, 2, ... until the step
 * has no nth allocation or copy. They do all earlier steps, then the step while its nth allocation
 * or copy fails. If the step fails, it must return ENOMEM or EFAULT and have changed nothing. It is
 * then tried again and must succeed. After that the later steps follow. When both clients have
 * ended, the pool must be gone and no descriptor may be left.
 *
 * The kernel's kmemleak finds lost memory: boot with kmemleak=on. The module itself complains of
 * lost pages when it is unloaded.
 */
#include <poll.h>
#include <stdlib.h>

#include "failing.h"
#include "gpu.h"

#define NAME		"alloc-failures"
#define FAR_AWAY	((void *)0x100000000000)
#define MOST_POINTS	2000		/* of one step, which has some tens */

struct world {
	struct raw writer, reader;
	int memfd, shared_memfd, pool_fd, gpu;
	struct xmem_attach_request attached, shared, gpu_attached, handle;
	u64 token;			/* of the shared slot's contents, which the writer holds */
	u32 arm_value;
	const char *stage;		/* the progress so far, for reports */
};

/* ---- the nth failure ---- */

static int fail_nth = -1;

static const char *prepare(void)
{
	if (access(RAW_DEVICE, R_OK | W_OK))
		return "no " RAW_DEVICE;
	if (access(XMEM_TEST_GPU_DEVICE, R_OK | W_OK))
		return "no " XMEM_TEST_GPU_DEVICE;
	fail_nth = failing_open();
	if (fail_nth < 0)
		return "no /proc/thread-self/fail-nth: a kernel without fault injection";
	return failing_prepare();
}

/* ---- the steps: each returns 0 or -errno, and on error changes nothing ---- */

static int open_writer(struct world *w)
{
	return raw_open(&w->writer);
}

static int join_by_name(struct world *w)
{
	struct xmem_join_request join = raw_joining(NAME, XMEM_ROLE_WRITER);

	join.slots = 64;
	join.clients = 4;
	join.ring_entries = 4;
	return raw_join(&w->writer, &join);
}

static int map_pool(struct world *w)
{
	return raw_map(&w->writer);
}

static int map_area(struct world *w)
{
	return raw_map_area(&w->writer);
}

/*
 * If the kernel lacks memory for a fault, it tries the fault again and sends no signal. The address
 * is far from all other mappings, so that the kernel has to allocate page tables.
 */
static int fault_pages_in(struct world *w)
{
	const struct xmem_pool_header *h = &w->writer.header;
	char *far = mmap(FAR_AWAY, h->total_bytes, PROT_READ, MAP_SHARED, w->writer.file, 0);
	u64 at;

	if (far == MAP_FAILED)
		return -errno;
	for (at = 0; at < h->total_bytes; at += RAW_PAGE)
		(void)*(volatile char *)(far + at);
	while (munmap(far, h->total_bytes))
		;
	for (at = 0; at < h->area_stride; at += RAW_PAGE)
		(void)*(volatile char *)((char *)w->writer.area + at);
	xm_store((u64 *)w->writer.area, *(u64 *)w->writer.area);
	return 0;
}

static int attach(struct world *w)
{
	w->attached = raw_attaching(w->memfd, 2);
	return raw_request(&w->writer, XMEM_IOC_ATTACH, &w->attached);
}

static int attach_more(struct world *w)
{
	struct xmem_attach_request more = raw_attaching(-1, 1);

	more.payload = w->attached.payload;
	return raw_request(&w->writer, XMEM_IOC_ATTACH, &more);
}

static int map_group(struct world *w)
{
	return raw_map_group(&w->writer, w->attached.slot[0] / XMEM_GROUP_SLOTS);
}

static int open_payload(struct world *w)
{
	struct xmem_payload_request payload = {
		.size = sizeof(payload), .payload = w->attached.payload,
	};
	int err = raw_request(&w->writer, XMEM_IOC_PAYLOAD, &payload);

	if (!err)
		close(payload.fd);
	return err;
}

static int open_pool_file(struct world *w)
{
	struct xmem_pool_fd_request pool_fd = { .size = sizeof(pool_fd) };
	int err = raw_request(&w->writer, XMEM_IOC_POOL_FD, &pool_fd);

	if (!err)
		w->pool_fd = pool_fd.fd;
	return err;
}

/* The other client joins by a file that admits only readers. */
static int narrow_pool_file(struct world *w)
{
	struct xmem_pool_fd_request narrow = {
		.size = sizeof(narrow), .flags = XMEM_POOL_FD_NARROW, .pool_fd = w->pool_fd,
		.roles = 1u << XMEM_ROLE_READER,
	};
	int err = raw_request(&w->writer, XMEM_IOC_POOL_FD, &narrow);

	if (err)
		return err;
	close(w->pool_fd);
	w->pool_fd = narrow.fd;
	return 0;
}

static int change_access(struct world *w)
{
	struct xmem_access_request access = {
		.size = sizeof(access), .flags = XMEM_ACCESS_MODE | XMEM_ACCESS_GROUP,
		.mode = 0640, .gid = 7,
	};
	struct xmem_access_request now = { .size = sizeof(now) };
	int err = raw_request(&w->writer, XMEM_IOC_ACCESS, &access);

	/* A caller without an answer has changed nothing, even if only the copy of it failed. */
	if (err && !raw_request(&w->writer, XMEM_IOC_ACCESS, &now) && now.mode != 0600)
		return -EPROTO;
	if (err)
		return err;
	return access.mode == 0640 && access.gid == 7 && !access.owner_uid ? 0 : -EPROTO;
}

static int ask_limit(struct world *w)
{
	struct xmem_quota_request quota = {
		.size = sizeof(quota), .quota = XMEM_QUOTA_POOL_CLIENTS,
	};
	int err = raw_request(&w->writer, XMEM_IOC_QUOTA, &quota);

	if (err)
		return err;
	return quota.used == 1 && quota.most == 4 ? 0 : -EPROTO;
}

static int ask_who(struct world *w)
{
	struct xmem_client_request client = {
		.size = sizeof(client), .client = w->writer.join.client,
	};
	int err = raw_request(&w->writer, XMEM_IOC_CLIENT, &client);

	if (err)
		return err;
	return client.pid == (u32)getpid() && !client.uid ? 0 : -EPROTO;
}

static int open_reader(struct world *w)
{
	return raw_open(&w->reader);
}

static int join_by_file(struct world *w)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_READER);

	join.flags = XMEM_JOIN_FD;
	join.slots = join.clients = join.ring_entries = 0;	/* as many as the pool has */
	join.pool_fd = w->pool_fd;
	return raw_join(&w->reader, &join);
}

/* Only a client that has mapped its area may subscribe. */
static int map_other(struct world *w)
{
	int err = w->reader.base ? 0 : raw_map(&w->reader);

	return err ? err : raw_map_area(&w->reader);
}

static int subscribe(struct world *w)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = w->writer.join.client,
	};

	return raw_request(&w->reader, XMEM_IOC_SUBSCRIBE, &request);
}

static int poll_both(struct world *w)
{
	struct pollfd files[2] = {
		{ w->reader.file, POLLIN, 0 }, { w->writer.file, POLLIN | POLLOUT, 0 },
	};
	int n = poll(files, 2, 0);

	if (n < 0)
		return -errno;
	return n == 1 && files[1].revents == POLLOUT ? 0 : -EPROTO;
}

/* The claim outlives the client that asked for it. */
static int open_poll_fd(struct world *w)
{
	struct xmem_poll_fd_request request = { .size = sizeof(request) };
	int err = raw_request(&w->writer, XMEM_IOC_POLL_FD, &request);
	struct pollfd look = { .fd = request.fd, .events = POLLOUT };

	if (err)
		return err;
	err = poll(&look, 1, 0);
	close(request.fd);
	return err < 0 ? -errno : look.revents == POLLOUT ? 0 : -EPROTO;
}

static struct xmem_wait_request ring_of(const struct world *w)
{
	return (struct xmem_wait_request){
		.size = sizeof(struct xmem_wait_request), .kind = XMEM_WAIT_RING,
		.client = w->writer.join.client,
	};
}

static int arm_ring(struct world *w)
{
	struct xmem_wait_request request = ring_of(w);
	int err = raw_wait(&w->reader, XMEM_OP_ARM, &request);

	w->arm_value = request.value;
	return err;
}

static int wait_in_vain(struct world *w)
{
	struct xmem_wait_request request = ring_of(w);
	int err;

	request.value = w->arm_value;
	request.deadline_ns = 1;
	err = raw_wait(&w->reader, XMEM_OP_WAIT, &request);
	return err == -ETIMEDOUT ? 0 : err ? err : -EPROTO;
}

static int wake_ring(struct world *w)
{
	struct xmem_wait_request request = ring_of(w);

	return raw_wait(&w->writer, XMEM_OP_WAKE, &request);
}

/* The first claims of a pool need memory. */
static int claim(struct world *w)
{
	const struct xm_map *map = &w->writer.map;
	struct xmem_claim_request request = { .size = sizeof(request), .count = 1 };
	int err;

	request.slot = w->attached.slot[0];
	err = xm_take(map, request.slot);
	if (err)
		return err;
	request.generation = xm_generation(xm_load(&xm_slot(map, request.slot)->state));
	err = raw_request(&w->writer, XMEM_IOC_CLAIM, &request);
	request.op = XMEM_CLAIM_TAKE;
	if (!err)
		err = raw_request(&w->writer, XMEM_IOC_CLAIM, &request);
	xm_give_up(map, request.slot);
	return err;
}

static int attach_shared(struct world *w)
{
	w->shared = raw_attaching(w->shared_memfd, 1);
	w->shared.flags = XMEM_ATTACH_SHARED;
	return raw_request(&w->writer, XMEM_IOC_ATTACH, &w->shared);
}

/* The group is that of the other slots, so it is mapped. There is no request. */
static int make_shared_live(struct world *w)
{
	struct xm_own own = xm_own(&w->writer.map, w->shared.slot[0]);
	int err = xm_take(&w->writer.map, own.slot);

	if (err)
		return err;
	w->token = xm_make_live(&own);
	return xm_get(&w->writer.map, w->writer.join.client, w->token);
}

static int attach_gpu(struct world *w)
{
	w->gpu_attached = gpu_attaching(w->gpu, XMEM_ATTACH_READERS, 1, 1, 1);
	return raw_request(&w->writer, XMEM_IOC_ATTACH, &w->gpu_attached);
}

static int attach_handle(struct world *w)
{
	w->handle = gpu_attaching(-1, XMEM_ATTACH_READERS | XMEM_ATTACH_HANDLE, 1, 2, 1);
	return raw_request(&w->writer, XMEM_IOC_ATTACH, &w->handle);
}

/* A client that does not get the answer has nothing open. */
static int open_one(struct world *w, u64 payload)
{
	struct xmem_payload_request answer;
	int err = gpu_ask(&w->reader, payload, XMEM_PAYLOAD_OPEN, &answer);

	if (err)
		return gpu_close(&w->reader, payload) == -ENOENT ? err : -EPROTO;
	if (answer.fd >= 0)
		close(answer.fd);
	return 0;
}

static int open_gpu(struct world *w)
{
	return open_one(w, w->gpu_attached.payload);
}

static int open_handle(struct world *w)
{
	return open_one(w, w->handle.payload);
}

static int ask_gpu(struct world *w)
{
	return gpu_query(&w->reader, w->gpu_attached.payload);
}

static int detach_gpu(struct world *w)
{
	return gpu_detach(&w->writer, w->gpu_attached.slot[0]);
}

/* A client that does not get the answer asks once more. The handle stays open. */
static int close_gpu(struct world *w)
{
	int err = gpu_close(&w->reader, w->gpu_attached.payload), now;

	do		/* this may fail as well */
		now = gpu_query(&w->writer, w->gpu_attached.payload);
	while (now == -EFAULT);
	if (now == -ENOENT)
		return err == -ENOMEM ? -EPROTO : 0;
	return err && now == -EBUSY ? err : -EPROTO;
}

static u64 shared_word(const struct world *w)
{
	return xm_load(&xm_slot(&w->writer.map, w->shared.slot[0])->state);
}

/* A client that does not get the answer may not write, and finds everything as it was. */
static int upgrade(struct world *w)
{
	struct xmem_upgrade_request request = {
		.size = sizeof(request), .slot = w->shared.slot[0],
		.generation = xm_generation(w->token),
	};
	int err = raw_request(&w->writer, XMEM_IOC_UPGRADE, &request);

	if (err)
		return xm_look(&w->writer.map, w->token) ? -EPROTO : err;
	w->token = xm_token(request.generation, request.slot);
	return xm_state(shared_word(w)) == XMEM_SLOT_UPGRADED ? 0 : -EPROTO;
}

/* If a client does not get the answer, the word tells it whether the request was done. */
static int end_upgrade(struct world *w, u32 flags, u32 state)
{
	struct xmem_upgrade_request request = {
		.size = sizeof(request), .flags = flags, .slot = w->shared.slot[0],
		.generation = xm_generation(w->token),
	};
	int err = raw_request(&w->writer, XMEM_IOC_UPGRADE, &request);

	if (xm_generation(shared_word(w)) != request.generation)
		return -EPROTO;
	if (xm_state(shared_word(w)) == state)
		return err == -ENOMEM ? -EPROTO : 0;
	return xm_state(shared_word(w)) == XMEM_SLOT_UPGRADED && err ? err : -EPROTO;
}

static int publish_in_place(struct world *w)
{
	return end_upgrade(w, XMEM_UPGRADE_PUBLISH, XMEM_SLOT_LIVE);
}

static int give_up_in_place(struct world *w)
{
	int err = end_upgrade(w, XMEM_UPGRADE_GIVE_UP, XMEM_SLOT_FREE);

	if (!err)
		xm_put(&w->writer.map, w->writer.join.client, w->shared.slot[0]);
	return err;
}

static int renew(struct world *w)
{
	return raw_slot(&w->writer, XMEM_OP_RENEW, w->attached.slot[0]);
}

static int detach(struct world *w)
{
	return raw_slot(&w->writer, XMEM_OP_DETACH, w->attached.slot[1]);
}

static int unsubscribe(struct world *w)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .publisher = w->writer.join.client,
	};

	return raw_request(&w->reader, XMEM_IOC_UNSUBSCRIBE, &request);
}

/*
 * Two mappings instead of one keep the client alive. If the module counts them wrongly, the client
 * does not end below.
 */
static int split_area(struct world *w)
{
	return mprotect(w->writer.area, RAW_PAGE, PROT_READ) ? -errno : 0;
}

static int close_reader(struct world *w)
{
	raw_end(&w->reader);
	close(w->pool_fd);
	w->pool_fd = -1;
	return 0;
}

/* A client's end allocates nothing; only munmap itself may fail. */
static int unmap_area(struct world *w)
{
	if (munmap(w->writer.area, w->writer.header.area_stride))
		return -errno;
	w->writer.area = NULL;
	return 0;
}

/* The writer has ended with its area, although its file is open and other pages are mapped. */
static int find_no_pool(struct world *w)
{
	int there = raw_pool_exists(NAME);

	return there > 0 ? -EEXIST : there;
}

static int close_writer(struct world *w)
{
	raw_end(&w->writer);
	return 0;
}

static const struct step {
	const char *name;
	int (*run)(struct world *w);
} steps[] = {
	{ "open", open_writer },
	{ "join by name", join_by_name },
	{ "map the pool", map_pool },
	{ "map the own area", map_area },
	{ "fault pages in", fault_pages_in },
	{ "attach", attach },
	{ "attach more of it", attach_more },
	{ "map a group", map_group },
	{ "payload", open_payload },
	{ "pool file", open_pool_file },
	{ "narrow the pool file", narrow_pool_file },
	{ "access", change_access },
	{ "limit", ask_limit },
	{ "who it is", ask_who },
	{ "open another", open_reader },
	{ "join by file", join_by_file },
	{ "map for the other", map_other },
	{ "subscribe", subscribe },
	{ "attach memory of a GPU", attach_gpu },
	{ "attach a handle", attach_handle },
	{ "open memory of a GPU", open_gpu },
	{ "open a handle", open_handle },
	{ "ask for memory of a GPU", ask_gpu },
	{ "detach memory of a GPU", detach_gpu },
	{ "close memory of a GPU", close_gpu },
	{ "poll", poll_both },
	{ "poll file", open_poll_fd },
	{ "arm", arm_ring },
	{ "wait", wait_in_vain },
	{ "wake", wake_ring },
	{ "claim", claim },
	{ "attach a shared file", attach_shared },
	{ "make it live", make_shared_live },
	{ "upgrade", upgrade },
	{ "publish in place", publish_in_place },
	{ "upgrade again", upgrade },
	{ "give up in place", give_up_in_place },
	{ "renew", renew },
	{ "detach", detach },
	{ "unsubscribe", unsubscribe },
	{ "split the own area's mapping", split_area },
	{ "close the other", close_reader },
	{ "unmap the own area", unmap_area },
	{ "look for the pool", find_no_pool },
	{ "close", close_writer },
};
#define STEPS	(sizeof(steps) / sizeof(*steps))

/* ---- one life ---- */

/* The result of the step with the nth failure. */
struct outcome {
	bool failed;			/* the step had an nth allocation or copy */
	int err;
};

static bool step_is_well(struct world *w, const struct step *step, unsigned int n, const char *when)
{
	int err = step->run(w);

	if (err)
		fail(step->name, "%s, after failure %u of '%s': %s", when, n, w->stage,
		     strerror(-err));
	return !err;
}

static bool step_fails(struct world *w, const struct step *step, unsigned int n,
		       struct outcome *outcome)
{
	int again;

	w->stage = step->name;
	failing_arm(fail_nth, n);
	outcome->err = step->run(w);
	outcome->failed = failing_disarm(fail_nth);
	if (!outcome->err)
		return true;
	if (!outcome->failed || (outcome->err != -ENOMEM && outcome->err != -EFAULT)) {
		fail(step->name, "failure %u is told as: %s", n, strerror(-outcome->err));
		return false;
	}
	again = step->run(w);
	if (again)
		fail(step->name, "after failure %u another try says: %s", n, strerror(-again));
	return !again;
}

/* All steps, with the nth failure in one of them. false: the fault has been reported. */
static bool live(struct world *w, const struct step *failing, unsigned int n,
		 struct outcome *outcome)
{
	const struct step *step;

	w->stage = "none";
	for (step = steps; step < steps + STEPS; step++) {
		bool well = step == failing ? step_fails(w, step, n, outcome) :
			step_is_well(w, step, n, step < failing ? "before" : "later");

		if (!well)
			return false;
	}
	return true;
}

static bool world_begin(struct world *w)
{
	*w = (struct world){ .writer = RAW_NONE, .reader = RAW_NONE, .pool_fd = -1 };
	w->memfd = raw_memfd(2, 0);
	w->shared_memfd = raw_shared_memfd(1);
	w->gpu = gpu_file();
	return w->memfd >= 0 && w->shared_memfd >= 0 && w->gpu >= 0;
}

static void world_end(struct world *w)
{
	raw_end(&w->reader);
	raw_end(&w->writer);
	if (w->pool_fd >= 0)
		close(w->pool_fd);
	close(w->memfd);
	close(w->shared_memfd);
	close(w->gpu);
}

static bool nothing_left(const struct step *step, unsigned int n, unsigned int descriptors)
{
	unsigned int now = raw_descriptors();
	int there = raw_pool_exists(NAME);

	if (there)
		fail(step->name, "failure %u leaves the pool: %s", n,
		     there > 0 ? "it is there" : strerror(-there));
	if (now != descriptors)
		fail(step->name, "failure %u leaves %u descriptors where there were %u", n, now,
		     descriptors);
	return !there && now == descriptors;
}

static void scan(const struct step *step)
{
	unsigned int n, errors = 0, descriptors = raw_descriptors();
	struct world w;

	for (n = 1; n <= MOST_POINTS; n++) {
		struct outcome outcome = { .failed = false };
		bool well = world_begin(&w) && live(&w, step, n, &outcome);

		world_end(&w);
		if (!nothing_left(step, n, descriptors) || !well)
			return;
		if (!outcome.failed) {
			pass(step->name, "%u points of failure, %u errors, nothing left", n - 1,
			     errors);
			return;
		}
		errors += outcome.err != 0;
	}
	fail(step->name, "no end after %d points of failure", MOST_POINTS);
}

/* alloc-failures [STEP]: tests all steps, or one */
int main(int argc, char **argv)
{
	const char *missing = prepare();
	unsigned int i;

	if (missing) {
		skip("alloc-failures", "%s", missing);
		return summary();
	}
	for (i = 0; i < STEPS; i++)
		if (argc < 2 || !strcmp(argv[1], steps[i].name))
			scan(&steps[i]);
	i = raw_pools_shown(0);
	if (i)
		fail("no pool left in sysfs", "there are %u", i);
	else
		pass("no pool left in sysfs", "all have gone");
	if (EVENTUALLY(!gpu_number("files")))
		pass("no file of the GPU left", "all have gone");
	else
		fail("no file of the GPU left", "there are %ld", gpu_number("files"));
	return summary();
}

// SPDX-License-Identifier: MIT
/*
 * hoards [NAME...]: one user keeps memory of another user, which that user's control group pays
 * for, after the other user's publishers have ended. A service that is restarted would be killed
 * for it in the end. attack.h says how results are judged.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "attack.h"
#include "core/policy.h"

#define CGROUP		"victim"
#define MOST		"67108864"		/* the victim's control group, bytes */
#define PAGES		4096u			/* of each of its payloads: a quarter of that */
#define RESTARTS	20u
#define TRIES		10000u

struct scene {
	const char *(*grab)(const struct raw *me, u64 payload);
	int pool_fd;				/* of the victim's pool, in this process */
	struct told {
		int pool_fd;			/* its number in the victim */
		u64 payload;			/* of the publisher that has started last, or
						 * its client */
	} *told;
	struct kid victim, attacker, publisher;
};

/* ---- the victim ---- */

static const char *keeps(void *argument)
{
	struct scene *scene = argument;
	struct xmem_join_request join = raw_joining("hoarded", XMEM_ROLE_WRITER);
	static struct raw its;

	SAME(become(VICTIM), 0);
	SAME(raw_start(&its, &join), 0);
	scene->told->pool_fd = pool_descriptor(&its);
	WANT(scene->told->pool_fd >= 0);
	return NULL;
}

/* A service of the victim: it makes its payload, and is killed later. */
static const char *publishes(void *argument)
{
	struct scene *scene = argument;
	struct xmem_join_request join = joining_by_file(scene->pool_fd, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach;
	static struct raw its;

	SAME(enter_cgroup(CGROUP, getpid()), 0);
	SAME(become(VICTIM), 0);
	SAME(raw_start(&its, &join), 0);
	attach = raw_attaching(raw_shared_memfd(PAGES), 1);
	attach.flags = XMEM_ATTACH_SHARED | XMEM_ATTACH_TRUNCATE;
	SAME(raw_request(&its, XMEM_IOC_ATTACH, &attach), 0);
	scene->told->payload = attach.payload;
	return NULL;
}

/* ---- the attacker, which holds nothing ---- */

static const char *grab_descriptor(const struct raw *me, u64 payload)
{
	struct xmem_payload_request request = { .size = sizeof(request), .payload = payload };

	SAME(raw_request(me, XMEM_IOC_PAYLOAD, &request), 0);
	return NULL;
}

static const char *grab_mapping(const struct raw *me, u64 payload)
{
	struct xmem_payload_request request = { .size = sizeof(request), .payload = payload };
	const volatile char *start;
	u32 i, sum = 0;

	SAME(raw_request(me, XMEM_IOC_PAYLOAD, &request), 0);
	start = mmap(NULL, request.bytes, PROT_READ, MAP_SHARED, request.fd, 0);
	WANT(start != MAP_FAILED);
	for (i = 0; i < PAGES; i++)
		sum += start[(size_t)i * RAW_PAGE];
	SAME(sum, 0);
	return NULL;
}

static int faults;			/* userfaultfd, opened with root's rights */

static const char *open_faults(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	WANT(faults >= 0);
	SAME(ioctl(faults, UFFDIO_API, &api), 0);
	return NULL;
}

struct stalled {
	const struct raw *me;
	volatile struct xmem_payload_request *request;
	volatile u64 begun;		/* the test GPU tells it: see grab_by_a_request */
	int err;
	atomic_bool done;
};

static void *asks(void *argument)
{
	struct stalled *stalled = argument;

	stalled->err = raw_request(stalled->me, XMEM_IOC_PAYLOAD, (void *)stalled->request);
	stalled->done = true;
	return NULL;
}

static int protect(const struct stalled *stalled, u64 mode)
{
	struct uffdio_writeprotect it = {
		.range = { (u64)(unsigned long)stalled->request, RAW_PAGE }, .mode = mode,
	};

	return ioctl(faults, UFFDIO_WRITEPROTECT, &it);
}

/* *ret_stalled: the answer was caught. Else the request was faster than this thread. */
static const char *stall_the_answer(struct stalled *stalled, bool *ret_stalled)
{
	struct pollfd next = { .fd = faults, .events = POLLIN };
	struct uffd_msg message;

	while (!stalled->begun && !stalled->done)
		;
	SAME(protect(stalled, UFFDIO_WRITEPROTECT_MODE_WP), 0);
	stalled->begun = 2;
	do
		*ret_stalled = poll(&next, 1, 1) == 1;
	while (!*ret_stalled && !stalled->done);
	if (*ret_stalled)	/* the next one must be told anew */
		SAME(read(faults, &message, sizeof(message)), (long long)sizeof(message));
	return NULL;
}

/*
 * A request that has its answer written to a page that does not come, for ever. The kernel writes
 * the struct twice: as it was, to find a fault early, and as the answer. Between these the request
 * begins. There the test GPU tells it, and gives this thread time to protect the page.
 */
static const char *grab_by_a_request(const struct raw *me, u64 payload)
{
	struct uffdio_register region = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct stalled *stalled = calloc(1, sizeof(*stalled));
	struct xmem_test_gpu_step step = {
		.function = "xk_payload_begin", .address = (uintptr_t)&stalled->begun,
		.value = 1, .times = ~0ULL, .busy_ms = 5000,
	};
	int gpu = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);
	bool caught = false;
	pthread_t thread;
	u32 tries;

	WANT(stalled && faults >= 0 && gpu >= 0);
	stalled->me = me;
	stalled->request = mmap(NULL, RAW_PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	WANT(stalled->request != MAP_FAILED);
	region.range.start = (u64)(unsigned long)stalled->request;
	region.range.len = RAW_PAGE;
	SAME(ioctl(faults, UFFDIO_REGISTER, &region), 0);
	SAME(ioctl(gpu, XMEM_TEST_GPU_STEP, &step) ? -errno : 0, 0);
	for (tries = 0; !caught; tries++) {
		WANT(tries < TRIES);
		*stalled->request = (struct xmem_payload_request){
			.size = sizeof(*stalled->request), .payload = payload,
		};
		stalled->begun = 0;
		stalled->done = false;
		SAME(pthread_create(&thread, NULL, asks, stalled), 0);
		GOES_WELL(stall_the_answer(stalled, &caught));
		if (caught)
			break;
		pthread_join(thread, NULL);
		SAME(stalled->err, 0);
		SAME(protect(stalled, 0), 0);
		close(stalled->request->fd);
	}
	close(gpu);
	return NULL;
}

/* Takes what each publisher has, and keeps it. */
static const char *hoards(void *argument)
{
	struct scene *scene = argument;
	struct xmem_join_request join = joining_by_file(scene->pool_fd, XMEM_ROLE_READER);
	static struct raw me;
	u32 i;

	many_descriptors();
	GOES_WELL(open_faults());
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	for (i = 0; i < RESTARTS; i++) {
		kid_pause();
		GOES_WELL(scene->grab(&me, scene->told->payload));
	}
	return NULL;
}

/* ---- the attack ---- */

static const char *restarts(struct scene *scene)
{
	const u64 most = PAGES * (u64)RAW_PAGE / 2;
	u64 kept = 0, peak = 0;
	u32 i;

	for (i = 0; i < RESTARTS; i++) {
		const char *why = kid_start(&scene->publisher, publishes, scene);

		if (why)
			return wrong("start %u of the victim's service, with %llu MB kept: %s", i,
				     (unsigned long long)(kept >> 20), why);
		kid_go_on(&scene->attacker);
		GOES_WELL(kid_ready(&scene->attacker));
		kid_kill(&scene->publisher);
		kid_reap(&scene->publisher);
		if (!EVENTUALLY((kept = cgroup_number(CGROUP, "memory.current")) < most))
			return wrong("after start %u the victim's control group pays for %llu MB",
				     i, (unsigned long long)(kept >> 20));
		peak = kept > peak ? kept : peak;
	}
	figure("%u starts; at most %llu kB were kept", i, (unsigned long long)(peak >> 10));
	return NULL;
}

static const char *hoard(const char *(*grab)(const struct raw *me, u64 payload))
{
	struct scene scene = { .grab = grab };

	scene.told = shared_memory(sizeof(*scene.told));
	WANT(scene.told);
	GOES_WELL(make_cgroup(CGROUP, "memory", "memory.max", MOST));
	GOES_WELL(kid_start(&scene.victim, keeps, &scene));
	scene.pool_fd = take_descriptor(&scene.victim, scene.told->pool_fd);
	WANT(scene.pool_fd >= 0);
	GOES_WELL(kid_start(&scene.attacker, hoards, &scene));
	return restarts(&scene);
}

static const char *descriptors_keep_nothing(void)
{
	return hoard(grab_descriptor);
}

static const char *mappings_keep_nothing(void)
{
	return hoard(grab_mapping);
}

static const char *requests_keep_nothing(void)
{
	return hoard(grab_by_a_request);
}

/* ---- guests that receive nothing ---- */

#define GUESTS		9u
#define ROUNDS		40u

static const char *keeps_a_small_pool(void *argument)
{
	struct scene *scene = argument;
	struct xmem_join_request join = raw_joining("unreceived", XMEM_ROLE_WRITER);
	static struct raw its;

	join.slots = 16 * XMEM_GROUP_SLOTS;
	join.clients = 64;
	join.ring_entries = 64;
	SAME(become(VICTIM), 0);
	SAME(raw_start(&its, &join), 0);
	scene->told->pool_fd = pool_descriptor(&its);
	WANT(scene->told->pool_fd >= 0);
	return NULL;
}

/* Publishes once when it has a subscriber. */
static const char *publishes_once(void *argument)
{
	struct xm_publication publication = { .length = RAW_PAGE };
	struct scene *scene = argument;
	struct xmem_join_request join = joining_by_file(scene->pool_fd, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach;
	static struct raw its;

	SAME(become(VICTIM), 0);
	SAME(raw_start(&its, &join), 0);
	attach = raw_attaching(raw_memfd(1, 1), 1);
	SAME(raw_request(&its, XMEM_IOC_ATTACH, &attach), 0);
	SAME(raw_map_group(&its, attach.slot[0] / XMEM_GROUP_SLOTS), 0);
	scene->told->payload = its.join.client;
	kid_pause();
	SAME(xm_take(&its.map, attach.slot[0]), 0);
	xm_publish(&its.map, its.join.client, attach.slot[0], &publication);
	return NULL;
}

static const char *follows_only(void *argument)
{
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	struct scene *scene = argument;
	struct xmem_join_request join = joining_by_file(scene->pool_fd, XMEM_ROLE_READER);
	static struct raw guest[GUESTS];
	u32 i;

	SAME(become(ATTACKER), 0);
	for (i = 0; i < GUESTS; i++)
		SAME(raw_start(&guest[i], &join), 0);
	for (i = 0; i < ROUNDS; i++) {
		kid_pause();
		subscribe.publisher = scene->told->payload;
		SAME(raw_request(&guest[i / XM_MAX_ZOMBIES % GUESTS], XMEM_IOC_SUBSCRIBE,
				 &subscribe), 0);
	}
	return NULL;
}

static const char *guests_leave_groups(void)
{
	struct scene scene = { .grab = NULL };
	u32 i;

	scene.told = shared_memory(sizeof(*scene.told));
	WANT(scene.told);
	GOES_WELL(kid_start(&scene.victim, keeps_a_small_pool, &scene));
	scene.pool_fd = take_descriptor(&scene.victim, scene.told->pool_fd);
	WANT(scene.pool_fd >= 0);
	GOES_WELL(kid_start(&scene.attacker, follows_only, &scene));
	for (i = 0; i < ROUNDS; i++) {
		const char *why = kid_start(&scene.publisher, publishes_once, &scene);

		if (why)
			return wrong("start %u of the victim's publisher: %s", i, why);
		kid_go_on(&scene.attacker);
		GOES_WELL(kid_ready(&scene.attacker));
		kid_go_on(&scene.publisher);
		GOES_WELL(kid_ready(&scene.publisher));
		kid_kill(&scene.publisher);
		kid_reap(&scene.publisher);
	}
	figure("%u starts of a publisher", i);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "E1_descriptors_keep_nothing", descriptors_keep_nothing, false },
		{ "E1_mappings_keep_nothing", mappings_keep_nothing, false },
		{ "E1_requests_keep_nothing", requests_keep_nothing, false },
		{ "E4_guests_leave_groups", guests_leave_groups, false },
	};

	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}

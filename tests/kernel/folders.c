// SPDX-License-Identifier: MIT
/*
 * folders [NAME...]: memory that sysfs keeps for pools that have ended, and lines that change while
 * they are read. The folder of a pool goes when no process is inside a read of it any more. A
 * reader that its control group throttles stays inside. attack.h says how results are judged.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "attack.h"
#include "core/policy.h"

#define CGROUP		"slow"
#define HOGS		2u		/* one on each processor */
#define LIMIT		4u		/* user_max_pools */
#define WORKERS		256u		/* of a work queue, unless it asks for more */
#define SPARE		16u		/* readers that may leave meanwhile */
#define MOST		384u
#define TRIES		100u
#define CLAIM_NS	500000000ULL
#define ROUNDS		40u

static struct {
	unsigned int count;		/* pools that have been made for readers */
	unsigned int number[MOST];
	atomic_bool stuck;		/* hogs run, so that readers cannot */
	atomic_bool answered;		/* a member's request */
} *told;

/* ---- readers that are throttled ---- */

static void *hogs(void *processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((uintptr_t)processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
	setpriority(PRIO_PROCESS, 0, -20);
	for (;;)
		if (!told->stuck)
			usleep(1000);
	return NULL;
}

/* Reads until the folder has gone. */
static void *reads_on(void *file)
{
	char records[RAW_PAGE];

	setpriority(PRIO_PROCESS, 0, 19);
	while (pread((intptr_t)file, records, sizeof(records), 0) > 0)
		;
	return NULL;
}

static const char *starts(void *(*run)(void *), void *argument)
{
	pthread_attr_t small;
	pthread_t thread;

	SAME(pthread_attr_init(&small), 0);
	SAME(pthread_attr_setstacksize(&small, 64 << 10), 0);
	SAME(pthread_create(&thread, &small, run, argument), 0);
	return NULL;
}

/* A thread for each folder. */
static const char *reads_all(void *unused)
{
	char path[64];
	uintptr_t i;
	int file;

	(void)unused;
	SAME(enter_cgroup(CGROUP, getpid()), 0);
	for (i = 0; i < HOGS; i++)
		GOES_WELL(starts(hogs, (void *)i));
	for (i = 0; i < told->count; i++) {
		snprintf(path, sizeof(path), "/sys/class/xmem/pool%u/clients", told->number[i]);
		file = open(path, O_RDONLY | O_CLOEXEC);
		WANT(file >= 0);
		GOES_WELL(starts(reads_on, (void *)(intptr_t)file));
	}
	return NULL;
}

/* How many of its threads are inside a read of a folder. */
static u32 count_inside(const struct kid *readers)
{
	struct dirent *entry;
	char path[32];
	u32 inside = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", readers->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		inside += entry->d_name[0] != '.' &&
			  thread_is_in(readers->pid, atoi(entry->d_name), "[xmem]");
	if (tasks)
		closedir(tasks);
	return inside;
}

static const char *let_go(void)
{
	told->stuck = false;
	return make_cgroup(CGROUP, "cpu", "cpu.max", "max 100000");
}

static const char *start_readers(struct kid *readers)
{
	GOES_WELL(make_cgroup(CGROUP, "cpu", "cpu.weight", "1"));
	GOES_WELL(let_go());
	return kid_start(readers, reads_all, NULL);
}

/* Stops the readers again and again, until at least @wanted are inside a read. */
static const char *stop_readers(const struct kid *readers, u32 wanted)
{
	u32 tries, inside = 0;

	for (tries = 0; tries < TRIES; tries++) {
		GOES_WELL(make_cgroup(CGROUP, "cpu", "cpu.max", "1000 1000000"));
		told->stuck = true;
		usleep(50000);		/* they use up the rest of their time */
		inside = count_inside(readers);
		if (inside >= wanted)
			return NULL;
		GOES_WELL(let_go());
		usleep(20000);
	}
	return wrong("only %u readers are inside a read, not %u", inside, wanted);
}

/* ---- makers of pools ---- */

static struct raw pools[MOST], another = RAW_NONE;

/* A read of the clients of such a pool takes a while. */
static struct xmem_join_request joining(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_READER);

	join.slots = 4096;
	join.clients = 4;
	return join;
}

static const char *make_pools(unsigned int count)
{
	struct xmem_join_request join = joining();
	u32 i;

	for (i = 0; i < count; i++) {
		SAME(start_thin(&pools[i], &join), 0);
		told->number[i] = pool_number(&pools[i]);
	}
	told->count = count;
	return NULL;
}

static const char *wants_no_more(void)
{
	struct xmem_quota_request quota = { .size = sizeof(quota), .flags = XMEM_QUOTA_REFUSED };
	struct xmem_join_request join = joining();

	SAME(raw_open(&another), 0);
	SAME(raw_join(&another, &join), -EDQUOT);
	SAME(raw_request(&another, XMEM_IOC_QUOTA, &quota), 0);
	SAME(quota.quota, XMEM_QUOTA_USER_POOLS);
	SAME(quota.used, LIMIT);
	SAME(quota.wanted, LIMIT + 1);
	SAME(quota.most, LIMIT);
	raw_end(&another);
	return NULL;
}

/* Its pools end while a reader is inside a read of the folder of each. */
static const char *leaves_folders(void *unused)
{
	struct xmem_join_request join = joining();
	u32 i;

	(void)unused;
	SAME(become(ATTACKER), 0);
	GOES_WELL(make_pools(LIMIT));
	kid_pause();
	for (i = 0; i < LIMIT; i++)
		raw_end(&pools[i]);
	GOES_WELL(wants_no_more());
	kid_pause();
	WANT(EVENTUALLY(!raw_start(&another, &join)));
	raw_end(&another);
	return NULL;
}

static const char *makes_one(void *unused)
{
	struct xmem_join_request join = joining();

	(void)unused;
	SAME(become(VICTIM), 0);
	SAME(raw_start(&another, &join), 0);
	return NULL;
}

/* ---- the limit of each user ---- */

static const char *read_folders(struct kid *readers)
{
	struct xmem_join_request join = joining();
	struct kid maker, victim;

	GOES_WELL(kid_start(&maker, leaves_folders, NULL));
	GOES_WELL(start_readers(readers));
	GOES_WELL(stop_readers(readers, LIMIT));
	kid_go_on(&maker);
	GOES_WELL(kid_ready(&maker));
	/* Others make pools. Root, which would be charged for them, succeeds. */
	GOES_WELL(kid_start(&victim, makes_one, NULL));
	SAME(raw_start(&another, &join), 0);
	raw_end(&another);
	SAME(count_inside(readers), LIMIT);
	GOES_WELL(let_go());
	kid_go_on(&maker);
	return kid_ready(&maker);
}

/* The test always lets the readers go at its end: a throttled process cannot be killed. */
static const char *with_readers(const char *(*attack)(struct kid *readers))
{
	struct kid readers;
	const char *why;

	told = shared_memory(sizeof(*told));
	WANT(told);
	why = attack(&readers);
	let_go();
	return why;
}

static const char *folders_count_for_their_maker(void)
{
	const char *why;

	SAME(xmem_set("user_max_pools", "4"), 0);
	why = with_readers(read_folders);
	SAME(xmem_set("user_max_pools", "1024"), 0);
	return why;
}

/* Its pools end as before, and it makes another one, which waits for the folders. */
static const char *makes_one_more(void *unused)
{
	struct xmem_join_request join = joining();
	u32 i;

	(void)unused;
	SAME(become(ATTACKER), 0);
	GOES_WELL(make_pools(LIMIT));
	kid_pause();
	for (i = 0; i < LIMIT; i++)
		raw_end(&pools[i]);
	SAME(raw_start(&another, &join), 0);
	return NULL;
}

static const char *read_until_its_maker_waits(struct kid *readers)
{
	struct kid maker;

	GOES_WELL(kid_start(&maker, makes_one_more, NULL));
	GOES_WELL(start_readers(readers));
	GOES_WELL(stop_readers(readers, LIMIT));
	kid_go_on(&maker);
	WANT(EVENTUALLY(kid_is_in(&maker, "xk_ends_retry")));
	GOES_WELL(let_go());
	return kid_ready(&maker);
}

static const char *a_maker_waits_for_its_folders(void)
{
	const char *why;

	SAME(xmem_set("user_max_pools", "4"), 0);
	why = with_readers(read_until_its_maker_waits);
	SAME(xmem_set("user_max_pools", "1024"), 0);
	return why;
}

/* ---- the lock ---- */

/* A payload that does not exist: the request takes the pool's lock. */
static const char *asks_its_pool(void *unused)
{
	struct xmem_payload_request request = { .size = sizeof(request), .payload = 1 << 30 };

	(void)unused;
	SAME(become(ATTACKER), 0);
	GOES_WELL(make_pools(1));
	kid_pause();
	SAME(raw_request(&pools[0], XMEM_IOC_PAYLOAD, &request), -ENOENT);
	told->answered = true;
	return NULL;
}

static const char *ask_beside_a_reader(struct kid *readers)
{
	struct kid member;

	GOES_WELL(kid_start(&member, asks_its_pool, NULL));
	GOES_WELL(start_readers(readers));
	GOES_WELL(stop_readers(readers, 1));
	kid_go_on(&member);
	WANT(EVENTUALLY(told->answered));
	SAME(count_inside(readers), 1);
	GOES_WELL(let_go());
	return kid_ready(&member);
}

static const char *a_stopped_reader_keeps_no_lock(void)
{
	return with_readers(ask_beside_a_reader);
}

/* ---- the claims of others ---- */

static const char *publishes(void *unused)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(64, 1), 1);
	struct xmem_join_request join = raw_joining("claims", XMEM_ROLE_WRITER);
	struct xmem_claim_request claim = {
		.size = sizeof(claim), .op = XMEM_CLAIM_ADD, .count = 1, .timeout_ns = CLAIM_NS,
	};
	static struct raw me;
	bool more;

	(void)unused;
	SAME(become(VICTIM), 0);
	SAME(raw_start(&me, &join), 0);
	GOES_WELL(fill_group(&me, &attach, &more));
	WANT(more);
	kid_pause();
	claim.generation = xm_generation(xm_load(&xm_slot(&me.map, claim.slot)->state));
	SAME(raw_request(&me, XMEM_IOC_CLAIM, &claim), 0);
	if (!EVENTUALLY(!xm_claims_of(&me.map, claim.slot)))
		return "a claim of half a second does not end while strangers read folders";
	return NULL;
}

/* Root has no limits, so this test needs one user instead of many. */
static const char *leaves_many_folders(void *unused)
{
	u32 i;

	(void)unused;
	GOES_WELL(make_pools(MOST));
	kid_pause();
	for (i = 0; i < MOST; i++)
		raw_end(&pools[i]);
	return NULL;
}

static const char *read_many_folders(struct kid *readers)
{
	struct kid maker, victim;
	u32 inside;

	GOES_WELL(kid_start(&victim, publishes, NULL));
	GOES_WELL(kid_start(&maker, leaves_many_folders, NULL));
	GOES_WELL(start_readers(readers));
	GOES_WELL(stop_readers(readers, WORKERS + SPARE));
	kid_go_on(&maker);
	GOES_WELL(kid_ready(&maker));
	kid_go_on(&victim);
	GOES_WELL(kid_ready(&victim));
	inside = count_inside(readers);
	figure("of %u readers %u are inside a read", MOST, inside);
	WANT(inside >= WORKERS);
	return NULL;
}

static const char *claims_end_meanwhile(void)
{
	return with_readers(read_many_folders);
}

/* ---- an end that must be quick ---- */

static const char *makes_one_after_the_other(void *unused)
{
	struct xmem_join_request join = joining();
	u32 i;

	(void)unused;
	SAME(become(ATTACKER), 0);
	for (i = 0; i < ROUNDS; i++) {
		SAME(raw_start(&another, &join), 0);
		raw_end(&another);
	}
	return NULL;
}

static const char *the_last_pool_does_not_count(void)
{
	struct kid kid;
	const char *why;

	SAME(xmem_set("user_max_pools", "1"), 0);
	why = kid_start(&kid, makes_one_after_the_other, NULL);
	SAME(xmem_set("user_max_pools", "1024"), 0);
	return why;
}

/* ---- lines that change ---- */

#define LOOKS_AT_A_LINE	4u		/* XK_LOOKS */

/*
 * Reads the line of a slot whose state changes before each look but the first, so many times. The
 * state after that is *ret_state.
 */
static const char *read_while_it_changes(u32 times, struct shown_slot *ret_line, u64 *ret_state)
{
	struct xmem_join_request join = raw_joining("changing", XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), 1);
	struct xmem_test_gpu_step step = {
		.function = "xk_print_slot", .value = xm_word(8, 0, XMEM_SLOT_LIVE),
		.add = XM_ONE_GENERATION, .times = times + 1,
	};
	int gpu = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);
	char folder[64];
	struct raw me;

	SAME(raw_start(&me, &join), 0);
	SAME(raw_request(&me, XMEM_IOC_ATTACH, &attach), 0);
	SAME(raw_map_group(&me, attach.slot[0] / XMEM_GROUP_SLOTS), 0);
	step.address = (uintptr_t)&xm_slot(&me.map, attach.slot[0])->state;
	xm_store((u64 *)(uintptr_t)step.address, 0);	/* the page must be there */
	snprintf(folder, sizeof(folder), "/sys/class/xmem/pool%u", pool_number(&me));
	WANT(gpu >= 0);
	SAME(ioctl(gpu, XMEM_TEST_GPU_STEP, &step) ? -errno : 0, 0);
	*ret_line = shown_slot(folder, attach.slot[0]);
	close(gpu);
	*ret_state = xm_load((u64 *)(uintptr_t)step.address);
	close(attach.fd);
	raw_end(&me);
	return NULL;
}

/* Its number of looks is bounded, and then the line says that it is of several moments. */
static const char *a_line_that_goes_on_changing_is_marked(void)
{
	struct shown_slot line;
	u64 state;

	GOES_WELL(read_while_it_changes(1000, &line, &state));
	WANT(line.changing);
	SAME(xm_generation(state), 8 + LOOKS_AT_A_LINE - 1);
	SAME(line.generation, xm_generation(state));
	return NULL;
}

/* The last of two equal looks is the line, without a mark. */
static const char *a_line_that_has_changed_is_read_again(void)
{
	struct shown_slot line;
	u64 state;
	u32 i;

	for (i = 0; i < LOOKS_AT_A_LINE - 1; i++) {
		GOES_WELL(read_while_it_changes(i, &line, &state));
		WANT(!line.changing);
		SAME(xm_generation(state), 8 + i);
		SAME(line.generation, xm_generation(state));
		WANT(!strcmp(line.state, "live"));
	}
	return NULL;
}

static const struct attack attacks[] = {
	{ "K19_read_folders_count_for_their_maker", folders_count_for_their_maker, false },
	{ "K19_a_maker_waits_for_its_folders", a_maker_waits_for_its_folders, false },
	{ "K16_a_stopped_reader_keeps_no_lock", a_stopped_reader_keeps_no_lock, false },
	{ "K19_claims_end_while_folders_are_read", claims_end_meanwhile, false },
	{ "P10_the_last_pool_does_not_count", the_last_pool_does_not_count, false },
	{ "P10_a_line_that_goes_on_changing_is_marked", a_line_that_goes_on_changing_is_marked,
	  false },
	{ "P10_a_line_that_has_changed_is_read_again", a_line_that_has_changed_is_read_again,
	  false },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}

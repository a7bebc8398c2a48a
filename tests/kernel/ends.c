// SPDX-License-Identifier: MIT
/*
 * ends [NAME...]: how long a process that ends, joins or makes a request waits for the work that
 * others have caused in the pool. Each test compares two pools on one machine in turn, one with
 * that load and one without (sides.h), and allows at most twice the time. attack.h says how results
 * are judged. ends_wakes.c has wake-ups that reach many waiters. Two tests stop a process in
 * the middle of a request.
 */
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "sides.h"

#define RUNS		30

/* ---- what is measured ---- */

static const char *lives(void *argument)
{
	const struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	static struct raw client;

	SAME(become(VICTIM), 0);
	SAME(raw_start(&client, &join), 0);
	return NULL;
}

/* The time from the kill of a client until its parent has reaped it. */
static const char *measure_exit(void *side, u64 *ret_ns)
{
	struct kid bystander;
	u64 begin;

	GOES_WELL(kid_start(&bystander, lives, side));
	begin = raw_now_ns();
	kid_kill(&bystander);
	kid_reap(&bystander);
	*ret_ns = raw_now_ns() - begin;
	return NULL;
}

struct joined {
	const struct side *side;
	u64 *ns;
};

static const char *joins(void *argument)
{
	const struct joined *what = argument;
	struct xmem_join_request join = joining_by_file(what->side->pool_fd, XMEM_ROLE_READER);
	static struct raw client;
	u64 begin;

	SAME(become(VICTIM), 0);
	SAME(raw_open(&client), 0);
	begin = raw_now_ns();
	SAME(raw_join(&client, &join), 0);
	*what->ns = raw_now_ns() - begin;
	return NULL;
}

static const char *measure_join(void *side, u64 *ret_ns)
{
	static u64 *ns;
	struct joined what = { .side = side };
	struct kid newcomer;

	ns = ns ? ns : shared_memory(sizeof(*ns));
	what.ns = ns;
	GOES_WELL(kid_start(&newcomer, joins, &what));
	kid_kill(&newcomer);
	kid_reap(&newcomer);
	*ret_ns = *ns;
	return NULL;
}

/* ---- much in limbo, many clients ---- */

#define LIMBO_SLOTS	16384u
#define CROWD		250u

static const char *fill_groups(struct raw *owner, unsigned int most)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), XMEM_GROUP_SLOTS);
	bool more = true;

	attach.stride = attach.length = 64;
	while (most-- && more)
		GOES_WELL(fill_group(owner, &attach, &more));
	return NULL;
}

/* The owner of all slots; each has contents. It is killed when all slots are held. */
static const char *owns_all(void *argument)
{
	const struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_WRITER);
	static struct raw owner;

	SAME(become(VICTIM), 0);
	SAME(raw_start(&owner, &join), 0);
	return fill_groups(&owner, XMEM_MAX_GROUPS);
}

static u32 count_limbo(const struct raw *raw)
{
	u32 s, limbo = 0;

	for (s = 0; s < raw->map.slots; s++)
		limbo += xm_load(&xm_slot_row(&raw->map, s)->owner) == XMEM_OWNER_HOST;
	return limbo;
}

/*
 * Keeps the pool and has many clients. The last client holds the slots of another process of the
 * victim. So a search for a holder looks at all clients.
 */
static const char *keeps_limbo(void *argument)
{
	static struct raw crowd[CROWD];
	struct side *side = argument;
	struct xmem_join_request join;
	struct raw *holder = &kept;
	struct kid owner;
	u32 i;

	GOES_WELL(keeps(side));
	if (!side->loaded)
		return NULL;
	side->pool_fd = side->shared->pool_fd;
	GOES_WELL(kid_start(&owner, owns_all, side));
	join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	for (i = 0; i < CROWD && i < side->clients - 5; i++) {
		holder = &crowd[i];
		SAME(start_thin(holder, &join), 0);
	}
	for (i = 0; i < side->slots; i++)
		xm_store(xm_hold(&holder->map, holder->join.client, i), 1);
	kid_kill(&owner);
	kid_reap(&owner);
	WANT(EVENTUALLY(count_limbo(&kept) == side->slots));
	side->shared->done = side->slots;
	return NULL;
}

static const char *start_limbo(struct side sides[2], unsigned int clients)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sides[i] = (struct side){ .slots = LIMBO_SLOTS, .clients = clients, .loaded = i };
		GOES_WELL(start_side(&sides[i], keeps_limbo));
	}
	return NULL;
}

static const char *exit_with_limbo(void)
{
	struct side sides[2];

	GOES_WELL(start_limbo(sides, 256));
	SAME(sides[1].shared->done, LIMBO_SLOTS);
	return duel("exit of a bystander, 16384 slots in limbo and 250 clients", measure_exit,
		    &sides[0], &sides[1], RUNS, AT_MOST);
}

/* ---- foreign mappings ---- */

#define ENDED		1000u
#define MAPS_OF_ONE	30u
#define AT_LONGEST_NS	30000000000ULL	/* because each end with a sweep slows the next one */

/* Again and again: joins, maps the pool for reading, and ends by unmapping its area. */
static const char *maps_and_ends(void *argument)
{
	static struct raw ended[ENDED];
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	u64 until = raw_now_ns() + AT_LONGEST_NS;
	u32 i, j;

	SAME(become(ATTACKER), 0);
	for (i = 0; i < ENDED && raw_now_ns() < until; i++) {
		if (start_thin(&ended[i], &join))
			break;
		for (j = 0; j < MAPS_OF_ONE; j++) {
			const char *at = mmap(NULL, ended[i].join.total_bytes, PROT_READ,
					      MAP_SHARED, ended[i].file, 0);

			if (at == MAP_FAILED)
				break;
			(void)*(volatile const char *)at;
			side->shared->done++;
		}
		munmap(ended[i].area, ended[i].header.area_stride);
		ended[i].area = NULL;
	}
	figure("%u clients have ended, and left %u mappings", i, side->shared->done);
	return NULL;
}

static const char *with_mappings(measured *once, const char *what)
{
	struct side sides[2];
	struct kid attacker;

	GOES_WELL(start_sides(sides, 128, 64));
	GOES_WELL(kid_start(&attacker, maps_and_ends, &sides[1]));
	return duel(what, once, &sides[0], &sides[1], RUNS, AT_MOST);
}

static const char *exit_with_mappings(void)
{
	return with_mappings(measure_exit, "exit of a bystander, 30000 mappings of the ended");
}

static const char *join_with_mappings(void)
{
	return with_mappings(measure_join, "join, 30000 mappings of the ended");
}

#define CHILDREN	20u

/* Every second page becomes another mapping. */
static void split(char *at, u64 bytes, struct shared *shared)
{
	u64 from;

	for (from = RAW_PAGE; from + RAW_PAGE < bytes; from += 2 * RAW_PAGE) {
		if (mprotect(at + from, RAW_PAGE, PROT_NONE))
			break;
		shared->done += 2;
	}
}

/* Splits its mappings, and forks children that inherit them. */
static const char *splits_and_forks(void *argument)
{
	static struct raw client;
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	unsigned int i, maps, children;
	char *at[MAPS_OF_ONE];

	SAME(become(ATTACKER), 0);
	SAME(start_thin(&client, &join), 0);
	for (maps = 0; maps < MAPS_OF_ONE; maps++) {
		at[maps] = mmap(NULL, client.join.total_bytes, PROT_READ, MAP_SHARED, client.file,
				0);
		if (at[maps] == MAP_FAILED)
			break;
		madvise(at[maps], client.join.total_bytes, MADV_DOFORK);
	}
	for (i = 0; i < maps; i++)
		split(at[i], client.join.total_bytes, side->shared);
	for (children = 0; children < CHILDREN; children++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (!pid)
			for (;;)
				pause();
	}
	figure("%u areas, in %u children too", side->shared->done, children);
	return NULL;
}

static const char *exit_with_splits(void)
{
	struct side sides[2];
	struct kid attacker;

	GOES_WELL(start_sides(sides, 1024, 64));
	GOES_WELL(kid_start(&attacker, splits_and_forks, &sides[1]));
	return duel("exit of a bystander, mappings split and given to children", measure_exit,
		    &sides[0], &sides[1], RUNS, AT_MOST);
}

/* ---- a member with 2 % of a processor ---- */

#define THROTTLED	3u
#define THEIR_GROUPS	80u

static struct raw member;

/* A member that polls for ever. */
static const char *polls_throttled(void *argument)
{
	const struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_WRITER);
	struct pollfd look = { .events = POLLIN | POLLOUT };

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&member, &join), 0);
	GOES_WELL(fill_groups(&member, THEIR_GROUPS));
	look.fd = member.file;
	kid_say_ready();
	for (;;)
		poll(&look, 1, 0);
}

static const char *throttled(measured *once, const char *what, const char *(*load)(void *))
{
	struct kid attacker[THROTTLED];
	struct side sides[2];
	unsigned int i;

	GOES_WELL(make_cgroup("throttled", "cpu", "cpu.max", "2000 100000"));
	GOES_WELL(start_sides(sides, LIMBO_SLOTS, 16));
	for (i = 0; i < THROTTLED; i++) {
		GOES_WELL(kid_start(&attacker[i], load, &sides[1]));
		SAME(enter_cgroup("throttled", attacker[i].pid), 0);
	}
	return duel(what, once, &sides[0], &sides[1], RUNS, AT_MOST);
}

static const char *exit_with_throttled_poll(void)
{
	return throttled(measure_exit, "exit of a bystander, members poll with 2 % of a processor",
			 polls_throttled);
}

static const char *join_with_throttled_poll(void)
{
	return throttled(measure_join, "join, members poll with 2 % of a processor",
			 polls_throttled);
}

/* ---- readers of sysfs ---- */

#define READERS	400u

/*
 * Reads the pool's buffers and clients in sysfs for ever, as its owner may. All readers together
 * must not take the processors from the measured process, so they run only when no other process
 * wants to. So each reader is also stopped in the middle of a read, for a long time.
 */
static const char *reads(void *argument)
{
	const struct side *side = argument;
	struct sched_param idle = { .sched_priority = 0 };
	char path[64], page[RAW_PAGE];
	int file[2], i;
	ssize_t n;

	SAME(become(VICTIM), 0);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/class/xmem/pool%u/%s", side->shared->number,
			 i ? "clients" : "buffers");
		file[i] = open(path, O_RDONLY | O_CLOEXEC);
		WANT(file[i] >= 0);
	}
	WANT(read(file[0], page, sizeof(page)) > 0);
	SAME(sched_setscheduler(0, SCHED_IDLE, &idle), 0);
	kid_say_ready();
	for (i = 0;; i = !i) {
		while ((n = read(file[i], page, sizeof(page))) > 0)
			;
		SAME(n, 0);
		SAME(lseek(file[i], 0, SEEK_SET), 0);
		__atomic_add_fetch(&side->shared->done, 1, __ATOMIC_RELAXED);
	}
}

static const char *join_with_readers(void)
{
	static struct kid reader[READERS];
	struct side sides[2];
	unsigned int i;

	GOES_WELL(start_sides(sides, 1024, 32));
	for (i = 0; i < READERS; i++)
		GOES_WELL(kid_start(&reader[i], reads, &sides[1]));
	GOES_WELL(duel("join, 400 processes read all of sysfs", measure_join, &sides[0],
		       &sides[1], RUNS, AT_MOST));
	figure("they have read %u files", sides[1].shared->done);
	WANT(sides[1].shared->done);
	return NULL;
}

/* ---- joins that fail ---- */

/* The table is full, and it tries to join for ever. */
static const char *fails_to_join(void *argument)
{
	static struct raw joined[64];
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	unsigned int i = 0;

	SAME(become(ATTACKER), 0);
	while (i < 64 && !start_thin(&joined[i], &join))
		i++;
	WANT(i < 64);
	if (fork())
		return NULL;
	for (;;) {
		struct raw one;

		if (!raw_open(&one))
			raw_join(&one, &join);
		close(one.file);
	}
}

/* A request that takes the pool's lock and fails, because there is no such payload. */
static const char *measure_request(void *argument, u64 *ret_ns)
{
	static struct raw member[2];
	static bool joined[2];
	const struct side *side = argument;
	struct raw *me = &member[side->loaded];
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	struct xmem_payload_request payload = { .size = sizeof(payload), .payload = 1 << 30 };
	u64 begin;
	int err;

	if (!joined[side->loaded])
		SAME(raw_start(me, &join), 0);
	joined[side->loaded] = true;
	poll(NULL, 0, 2);	/* a request takes microseconds, and is to meet the joins */
	begin = raw_now_ns();
	err = raw_request(me, XMEM_IOC_PAYLOAD, &payload);
	*ret_ns = raw_now_ns() - begin;
	SAME(err, -ENOENT);
	return NULL;
}

static const char *request_with_failing_joins(void)
{
	struct side sides[2];
	struct kid attacker;
	u64 ns;

	GOES_WELL(start_limbo(sides, 32));
	GOES_WELL(measure_request(&sides[0], &ns));
	GOES_WELL(measure_request(&sides[1], &ns));
	GOES_WELL(kid_start(&attacker, fails_to_join, &sides[1]));
	return duel("request of a member, another fails to join", measure_request, &sides[0],
		    &sides[1], 200, AT_MOST);
}

/* ---- many descriptors, and a process that shares the memory ---- */

#define COPIES		5000
#define OTHERS		200	/* other processes on the machine */

static char sibling_stack[65536] __attribute__((aligned(16)));

static int sibling(void *unused)
{
	for (;;)
		pause();
	return 0;
}

static const char *copies_its_file(void *argument)
{
	static struct raw client;
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	unsigned int i;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&client, &join), 0);
	for (i = 0; i < COPIES; i++)
		WANT(dup(client.file) >= 0);
	if (!side->loaded)
		return NULL;
	side->shared->done = clone(sibling, sibling_stack + sizeof(sibling_stack),
				   CLONE_VM | SIGCHLD, NULL);
	WANT((int)side->shared->done > 0);
	return NULL;
}

static const char *measure_copies(void *argument, u64 *ret_ns)
{
	struct side *side = argument;
	struct kid one;
	u64 begin;

	GOES_WELL(kid_start(&one, copies_its_file, side));
	begin = raw_now_ns();
	kid_kill(&one);
	kid_reap(&one);
	*ret_ns = raw_now_ns() - begin;
	if (side->loaded)
		kill(side->shared->done, SIGKILL);
	return NULL;
}

static const char *exit_with_copies(void)
{
	struct side sides[2];
	unsigned int i;

	for (i = 0; i < OTHERS; i++)
		if (!fork())
			for (;;)
				pause();
	GOES_WELL(start_sides(sides, 128, 64));
	return duel("exit with 5000 descriptors, a process shares the memory", measure_copies,
		    &sides[0], &sides[1], RUNS, AT_MOST);
}

/* ---- many at once ---- */

#define AT_ONCE		200u
#define MANY_RUNS	12
/*
 * The cost of 200 clients that are killed at once, in percent of the cost of 200 processes that map
 * as much of a memfd. This figure is from when the end of a client had one part, and its process
 * waited for all of it. It was measured on one processor of a machine whose clock counts
 * instructions (qemu -icount), which no other load of the host can disturb: with the module of
 * commit e3ef128, 161 to 162 in three runs.
 */
#define ONE_PART	161

static const char *maps_a_file(void *argument)
{
	int file = *(int *)argument;

	SAME(become(VICTIM), 0);
	WANT(mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED);
	WANT(mmap(NULL, 4 * RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED);
	return NULL;
}

static u32 count_clients(const struct raw *raw)
{
	u32 c, count = 0;

	for (c = 0; c < raw->map.clients; c++)
		count += xm_load(&xm_client_row(&raw->map, c)->state) != XMEM_CLIENT_NONE;
	return count;
}

/* Waits until all are reaped and, if there is a @pool, only we and its keeper are clients. */
static const char *kill_many(const char *(*live)(void *), void *argument, const struct raw *pool,
			     u64 *ret_ns)
{
	static struct kid kids[AT_ONCE];
	u64 begin;
	u32 i;

	for (i = 0; i < AT_ONCE; i++)
		GOES_WELL(kid_start(&kids[i], live, argument));
	begin = raw_now_ns();
	for (i = 0; i < AT_ONCE; i++)
		kid_kill(&kids[i]);
	for (i = 0; i < AT_ONCE; i++)
		kid_reap(&kids[i]);
	WANT(!pool || EVENTUALLY(count_clients(pool) == 2));
	*ret_ns = raw_now_ns() - begin;
	return NULL;
}

static const char *measure_many(void *argument, u64 *ret_ns)
{
	static struct raw onlooker;
	static int file = -1;
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);

	if (!side->loaded) {
		file = file < 0 ? raw_shared_memfd(256) : file;
		return kill_many(maps_a_file, &file, NULL, ret_ns);
	}
	if (!onlooker.base)
		SAME(raw_start(&onlooker, &join), 0);
	return kill_many(lives, side, &onlooker, ret_ns);
}

static const char *many_at_once(void)
{
	struct side sides[2];

	GOES_WELL(start_sides(sides, 128, 256));
	return duel("200 clients killed at once, beside 200 that map a file", measure_many,
		    &sides[0], &sides[1], MANY_RUNS, ONE_PART * 120 / 100);
}

/* ---- in the middle of a request ---- */

#define MIDWAY	"midway"	/* the pool, and the control group */

static struct raw keeper;
static int keepers_fd;
static u64 *stopped;		/* 1: a process stands still */

/* Before its next call of that function, the control group of this process stops it. */
static const char *stop_before(const char *function)
{
	struct xmem_test_gpu_step step = {
		.address = (uintptr_t)stopped, .value = 1, .times = 1, .busy_ms = 50,
	};
	int gpu = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);

	snprintf(step.function, sizeof(step.function), "%s", function);
	xm_store(stopped, 0);	/* the page must be there */
	WANT(gpu >= 0);
	SAME(ioctl(gpu, XMEM_TEST_GPU_STEP, &step) ? -errno : 0, 0);
	SAME(enter_cgroup(MIDWAY, getpid()), 0);
	return NULL;
}

static const char *let_go(void)
{
	return make_cgroup(MIDWAY, "cpu", "cpu.max", "max 100000");
}

/* It always lets all go at its end: a throttled process cannot be killed. */
static const char *with_stopped(const char *(*attack)(void))
{
	struct xmem_join_request join = raw_joining(MIDWAY, XMEM_ROLE_WRITER);
	const char *why;

	stopped = shared_memory(sizeof(*stopped));
	WANT(stopped);
	SAME(raw_start(&keeper, &join), 0);
	keepers_fd = pool_descriptor(&keeper);
	WANT(keepers_fd >= 0);
	GOES_WELL(make_cgroup(MIDWAY, "cpu", "cpu.max", "1000 1000000"));
	why = attack();
	let_go();
	return why;
}

/* It has its id then, and the others do not know it yet. */
static const char *stops_while_it_joins(void *unused)
{
	struct xmem_join_request join = joining_by_file(keepers_fd, XMEM_ROLE_READER);
	static struct raw me;

	(void)unused;
	SAME(raw_open(&me), 0);
	GOES_WELL(stop_before("xk_unmap_place"));
	kid_pause();
	SAME(raw_join(&me, &join), 0);
	return NULL;
}

/* The last member evicts it, and ends. The pool stays for the join. */
static const char *evict_who_joins(void)
{
	struct xmem_evict_request evict = { .size = sizeof(evict), .op = XMEM_OP_DRAIN_EVICT };
	struct kid joiner;

	GOES_WELL(kid_start(&joiner, stops_while_it_joins, NULL));
	kid_go_on(&joiner);
	WANT(EVENTUALLY(xm_load(stopped)));
	SAME(raw_request(&keeper, XMEM_IOC_EVICT, &evict), 0);
	SAME(evict.evicted, 1);
	raw_end(&keeper);
	SAME(raw_pool_exists(MIDWAY), -ESHUTDOWN);
	WANT(kid_is_in(&joiner, "xk_join_begin"));
	GOES_WELL(let_go());
	GOES_WELL(kid_ready(&joiner));
	WANT(EVENTUALLY(!raw_pool_exists(MIDWAY)));
	return NULL;
}

static const char *evicted_while_it_joins(void)
{
	return with_stopped(evict_who_joins);
}

/* With the pool's lock, so the work for clients that have ended waits. */
static const char *stops_with_the_lock(void *unused)
{
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = keeper.join.client,
	};
	struct xmem_join_request join = joining_by_file(keepers_fd, XMEM_ROLE_READER);
	static struct raw me;

	(void)unused;
	SAME(raw_start(&me, &join), 0);
	GOES_WELL(stop_before("xm_host_subscribe"));
	kid_pause();
	SAME(raw_request(&me, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	return NULL;
}

static const char *has_all_pages(void *unused)
{
	struct xmem_join_request join = joining_by_file(keepers_fd, XMEM_ROLE_READER);
	static struct raw me;

	(void)unused;
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	return NULL;
}

/* Its user may have the pages of one client, which another one has until it is told to go on. */
static const char *want_pages(void)
{
	struct xmem_join_request join = joining_by_file(keepers_fd, XMEM_ROLE_READER);
	static struct raw me;

	SAME(raw_open(&me), 0);
	SAME(raw_join(&me, &join), -EDQUOT);
	kid_pause();
	SAME(raw_join(&me, &join), 0);
	return NULL;
}

static const char *wants_pages(void *unused)
{
	(void)unused;
	SAME(become(ATTACKER), 0);
	return want_pages();
}

static const char *starts_heir(struct kid *heir)
{
	return kid_start(heir, wants_pages, NULL);
}

/* As the user itself, in a namespace that one of its subuids owns. */
static const char *wants_pages_as_a_subuid(void *unused)
{
	pid_t me = getpid(), helper;
	int status, nested[2];
	char byte;

	(void)unused;
	SAME(become(ATTACKER), 0);
	SAME(prctl(PR_SET_DUMPABLE, 1), 0);
	SAME(unshare(CLONE_NEWUSER), 0);
	kid_pause();
	SAME(setresuid(0, 0, 0), 0);
	SAME(pipe2(nested, O_CLOEXEC), 0);
	helper = fork();
	if (!helper)
		_exit(read(nested[0], &byte, 1) != 1 || write_map(me, "uid_map", "0 5 1\n1 0 1\n"));
	SAME(setresuid(5, 5, 5), 0);
	SAME(prctl(PR_SET_DUMPABLE, 1), 0);
	SAME(unshare(CLONE_NEWUSER), 0);
	SAME(write(nested[1], "", 1), 1);
	SAME(waitpid(helper, &status, 0), helper);
	SAME(status, 0);
	SAME(setresuid(1, 1, 1), 0);
	return want_pages();
}

static const char *starts_heir_as_a_subuid(struct kid *heir)
{
	GOES_WELL(kid_start(heir, wants_pages_as_a_subuid, NULL));
	GOES_WELL(write_map(heir->pid, "gid_map", "0 10001 1\n"));
	GOES_WELL(write_map(heir->pid, "uid_map", "0 10001 1\n1 100000 1000\n"));
	kid_go_on(heir);
	return kid_ready(heir);
}

static const char *(*start_heir)(struct kid *heir);

static const char *want_what_a_victim_had(void)
{
	struct kid victim, heir, holder;

	GOES_WELL(kid_start(&victim, has_all_pages, NULL));
	GOES_WELL(start_heir(&heir));
	GOES_WELL(kid_start(&holder, stops_with_the_lock, NULL));
	kid_go_on(&holder);
	WANT(EVENTUALLY(xm_load(stopped)));
	kid_kill(&victim);
	kid_reap(&victim);
	kid_go_on(&heir);
	WANT(EVENTUALLY(kid_is_in(&heir, "xk_ends_retry")));
	WANT(kid_is_in(&holder, "xk_subscribe_begin"));
	GOES_WELL(let_go());
	GOES_WELL(kid_ready(&heir));
	return kid_ready(&holder);
}

static const char *limit_a_user(void)
{
	char bytes[24];
	const char *why;

	snprintf(bytes, sizeof(bytes), "%llu", 2ULL * keeper.header.area_stride);
	SAME(xmem_set("user_max_page_bytes", bytes), 0);
	why = want_what_a_victim_had();
	SAME(xmem_set("user_max_page_bytes", "536870912"), 0);
	return why;
}

static const char *a_user_waits_for_what_the_killed_had(void)
{
	start_heir = starts_heir;
	return with_stopped(limit_a_user);
}

/* The outermost user pays in the end, so the wait is for this user. */
static const char *a_subuid_waits_for_what_its_user_had(void)
{
	start_heir = starts_heir_as_a_subuid;
	return with_stopped(limit_a_user);
}

static const struct attack attacks[] = {
	{ "K6_exit_with_limbo_and_clients", exit_with_limbo, true },
	{ "K6_request_beside_failing_joins", request_with_failing_joins, true },
	{ "K3_exit_with_mappings_of_the_ended", exit_with_mappings, true },
	{ "K3_join_with_mappings_of_the_ended", join_with_mappings, true },
	{ "K4_exit_with_split_mappings", exit_with_splits, true },
	{ "K7_exit_with_a_throttled_poll", exit_with_throttled_poll, true },
	{ "K7_join_with_a_throttled_poll", join_with_throttled_poll, true },
	{ "K16_join_with_readers_of_sysfs", join_with_readers, true },
	{ "K13_wake_with_many_items", wake_with_many_items, true },
	{ "K13_own_items_are_paid_for", own_items_are_paid_for, true },
	{ "K13_killed_waker_calls_no_more", killed_waker_calls_no_more, true },
	{ "K13_long_calls_of_strangers_are_few", long_calls_of_strangers_are_few, true },
	{ "K13_wake_with_nested_sets", wake_with_nested_sets, true },
	{ "K13_end_with_nested_sets", end_with_nested_sets, true },
	{ "K13_wake_with_many_sleepers", wake_with_many_sleepers, true },
	{ "K13_end_with_many_sleepers", end_with_many_sleepers, true },
	{ "K17_exit_with_copies_and_a_sibling", exit_with_copies, true },
	{ "P2_many_killed_at_once", many_at_once, true },
	{ "P2_a_user_waits_for_what_the_killed_had", a_user_waits_for_what_the_killed_had, false },
	{ "P2_a_subuid_waits_for_what_its_user_had", a_subuid_waits_for_what_its_user_had, false },
	{ "P4_evicted_while_it_joins", evicted_while_it_joins, false },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}

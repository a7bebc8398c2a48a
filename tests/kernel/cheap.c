// SPDX-License-Identifier: MIT
/*
 * cheap [NAME...]: requests, reads and faults that cost the caller next to nothing, and cost the
 * module or other processes much more. The tests check which users may cause that, how often, and
 * which processes wait for it. attack.h says how results are judged.
 */
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "attack.h"

/* The pool. This process is its keeper, and has the clients of the crowd. */
static struct raw keeper, crowd[XMEM_MAX_CLIENTS];
static int pool_fd;

static struct told {
	u32 client;			/* the guest's id */
	u64 incarnation;
	u32 slot[2];			/* slots of an owner that is to end */
} *told;

static const char *start_pool(const struct xmem_join_request *join)
{
	told = shared_memory(sizeof(*told));
	WANT(told);
	SAME(raw_start(&keeper, join), 0);
	pool_fd = pool_descriptor(&keeper);
	WANT(pool_fd >= 0);
	return NULL;
}

static const char *start_crowd(u32 count, enum xmem_role role)
{
	struct xmem_join_request join = joining_by_file(pool_fd, role);
	u32 i;

	for (i = 0; i < count; i++)
		SAME(start_thin(&crowd[i], &join), 0);
	return NULL;
}

/* ---- slots of an ended owner ---- */

/* The owner admits the guest, if there is one, so that it may hold the slots. */
static const char *owns(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(2, 1), 2), given = attach;
	struct xmem_grant_request grant = {
		.size = sizeof(grant), .client = told->client, .incarnation = told->incarnation,
	};
	static struct raw owner;
	bool more;
	u32 s, i = 0;

	SAME(raw_start(&owner, &join), 0);
	GOES_WELL(fill_group(&owner, &given, &more));
	WANT(more);
	for (s = 0; s < owner.map.slots && i < 2; s++)
		if (xm_load(&xm_slot_row(&owner.map, s)->owner) == owner.join.client)
			told->slot[i++] = s;
	SAME(i, 2);
	if (told->incarnation)
		SAME(raw_request(&owner, XMEM_IOC_GRANT, &grant), 0);
	return NULL;
}

static u32 owner_of(u32 slot)
{
	return xm_load(&xm_slot_row(&keeper.map, slot)->owner);
}

static u64 scans_of(u32 slot)
{
	return xm_scan_number(xm_load(&xm_slot(&keeper.map, slot)->state));
}

/* A process that closes its file waits until all requested work is done. */
static const char *settle(void)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	struct raw one;

	SAME(raw_start(&one, &join), 0);
	raw_end(&one);
	return NULL;
}

static const char *end_owner(struct kid *owner)
{
	kid_kill(owner);
	kid_reap(owner);
	GOES_WELL(settle());
	SAME(owner_of(told->slot[0]), XMEM_OWNER_HOST);
	SAME(owner_of(told->slot[1]), XMEM_OWNER_HOST);
	return NULL;
}

static int collect(const struct raw *raw, u32 slot)
{
	return raw_slot(raw, XMEM_OP_COLLECT, slot);
}

/* ---- who may collect ---- */

#define COLLECTS	100u

static const char *collects_as_a_stranger(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	static struct raw me;
	u32 i;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	for (i = 0; i < COLLECTS; i++)
		SAME(collect(&me, told->slot[0]), 0);
	return NULL;
}

/* A sweep for the keeper would also have done what this caller asks for. */
static const char *strangers_collect_nothing(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct kid owner, stranger;
	u64 before[2];
	u32 i;

	GOES_WELL(start_pool(&join));
	GOES_WELL(kid_start(&owner, owns, NULL));
	for (i = 0; i < 2; i++)
		xm_store(xm_hold(&keeper.map, keeper.join.client, told->slot[i]), 1);
	GOES_WELL(end_owner(&owner));
	for (i = 0; i < 2; i++)
		before[i] = scans_of(told->slot[i]);
	GOES_WELL(kid_start(&stranger, collects_as_a_stranger, NULL));
	SAME(collect(&keeper, told->slot[1]), 0);
	WANT(EVENTUALLY(scans_of(told->slot[1]) != before[1]));
	if (scans_of(told->slot[0]) != before[0])
		return wrong("the host has looked at the slot for a stranger");
	return NULL;
}

/* It is admitted, and has the last hold. */
static const char *holds_as_a_guest(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	static struct raw me;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	told->client = me.join.client;
	told->incarnation = xm_client_row(&me.map, me.join.client)->incarnation;
	kid_pause();
	xm_store(xm_hold(&me.map, me.join.client, told->slot[0]), 1);
	kid_pause();
	xm_put(&me.map, me.join.client, told->slot[0]);
	SAME(collect(&me, told->slot[0]), 0);
	return NULL;
}

static const char *guests_collect_what_they_held(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct kid owner, guest;

	GOES_WELL(start_pool(&join));
	GOES_WELL(kid_start(&guest, holds_as_a_guest, NULL));
	GOES_WELL(kid_start(&owner, owns, NULL));
	kid_go_on(&guest);
	GOES_WELL(kid_ready(&guest));
	xm_store(xm_hold(&keeper.map, keeper.join.client, told->slot[1]), 1);
	GOES_WELL(end_owner(&owner));
	kid_go_on(&guest);
	GOES_WELL(kid_ready(&guest));
	WANT(EVENTUALLY(owner_of(told->slot[0]) == XMEM_OWNER_NONE));
	SAME(owner_of(told->slot[1]), XMEM_OWNER_HOST);
	return NULL;
}

/* ---- how often ---- */

#define RING		XMEM_MAX_RING
#define FORWARDERS	100u
#define TIMES		10u

/* A scan for forwarded slots has to look at all of its ring. */
static const char *fill_ring(const struct raw *one, u64 token)
{
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = one->join.client,
	};
	u32 me = one->join.client, i;

	SAME(raw_request(&keeper, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	xm_store(xm_hold(&one->map, me, xm_token_slot(token)), XM_HOLD_FORWARDED);
	for (i = 0; i < RING; i++) {
		struct xmem_entry *entry = xm_entry(&one->map, me, i);

		xm_store(&entry->token, token);
		xm_store(&entry->position, (i + 1) | XMEM_ENTRY_MARKED);
	}
	xm_store(&xm_ring(&one->map, me)->tail, RING);
	return NULL;
}

/* An owner has ended. All of the crowd have forwarded its first slot, and no client holds it. */
static const char *start_forwarded(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct kid owner;
	u64 token;
	u32 i;

	join.slots = XMEM_GROUP_SLOTS;	/* all are the owner's */
	join.clients = FORWARDERS + 4;
	join.ring_entries = RING;
	GOES_WELL(start_pool(&join));
	GOES_WELL(start_crowd(FORWARDERS, XMEM_ROLE_WRITER));
	GOES_WELL(kid_start(&owner, owns, NULL));
	token = xm_token(xm_generation(xm_load(&xm_slot(&keeper.map, told->slot[0])->state)),
			 told->slot[0]);
	for (i = 0; i < FORWARDERS; i++)
		GOES_WELL(fill_ring(&crowd[i], token));
	xm_store(xm_hold(&keeper.map, keeper.join.client, told->slot[1]), 1);
	return end_owner(&owner);
}

/*
 * No process waits for these runs. As soon as a run has begun, which marks the slot, the next one
 * is requested. None may be lost.
 */
static const char *collect_on_and_on(u64 *ret_ns)
{
	u64 begin = raw_now_ns(), before;
	u32 i;

	for (i = 0; i < TIMES; i++) {
		before = scans_of(told->slot[0]);
		SAME(collect(&keeper, told->slot[0]), 0);
		WANT(EVENTUALLY(scans_of(told->slot[0]) != before));
	}
	*ret_ns = raw_now_ns() - begin;
	return NULL;
}

/*
 * An attach that finds too few slots waits for the requested work. It wants a whole group, because
 * the free slots of the owner's groups go to others. *ret_least_ns: the shortest wait.
 */
static const char *collect_and_wait(u64 *ret_ns, u64 *ret_least_ns)
{
	struct xmem_attach_request attach = raw_attaching(raw_memfd(XMEM_GROUP_SLOTS, 1),
							  XMEM_GROUP_SLOTS);
	u64 begin, before, ns;
	u32 i;

	*ret_ns = 0;
	*ret_least_ns = ~0ULL;
	for (i = 0; i < TIMES; i++) {
		before = scans_of(told->slot[0]);
		begin = raw_now_ns();
		SAME(collect(&keeper, told->slot[0]), 0);
		SAME(raw_request(&keeper, XMEM_IOC_ATTACH, &attach), -ENOSPC);
		ns = raw_now_ns() - begin;
		WANT(scans_of(told->slot[0]) != before);
		*ret_ns += ns;
		*ret_least_ns = ns < *ret_least_ns ? ns : *ret_least_ns;
	}
	return NULL;
}

static const char *measure_collects(u64 *ret_alone, u64 *ret_waited, u64 *ret_least)
{
	GOES_WELL(start_forwarded());
	GOES_WELL(collect_and_wait(ret_waited, ret_least));
	GOES_WELL(collect_on_and_on(ret_alone));
	figure("%u runs that collects alone ask for take %.3f ms, with somebody who waits for each "
	       "%.3f ms; one takes %.3f ms at least", TIMES, *ret_alone / 1e6, *ret_waited / 1e6,
	       *ret_least / 1e6);
	return NULL;
}

/* The runs take at most half of the time, plus an allowance for other load on this machine. */
static const char *collects_take_half(void)
{
	u64 alone, waited, least;

	GOES_WELL(measure_collects(&alone, &waited, &least));
	if (least * TIMES * 100 > alone * 60)
		return wrong("collects take %.0f %% of the time", least * TIMES * 100.0 / alone);
	return NULL;
}

static const char *who_waits_does_not_rest(void)
{
	u64 alone, waited, least;

	GOES_WELL(measure_collects(&alone, &waited, &least));
	if (waited * 100 > alone * 75)
		return wrong("who waits for a collect waits %.0f %% of what it takes alone",
			     waited * 100.0 / alone);
	return NULL;
}

#define ROUNDS		600u
#define LONGEST_US	12000	/* two ticks of a slow kernel, and a margin */

/*
 * A timer has started a run for collects. Before that run has begun, the end of a client requests
 * one. Then there are two runs, of which one has nothing to do. It would be wrong if both put one
 * reference, and the kernel would complain. The end comes at different times after the
 * collect, and a module for tests begins a run slowly.
 */
static const char *collects_meet_an_end(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct kid owner;
	u64 before;
	u32 i;

	GOES_WELL(start_pool(&join));
	GOES_WELL(kid_start(&owner, owns, NULL));
	xm_store(xm_hold(&keeper.map, keeper.join.client, told->slot[0]), 1);
	xm_store(xm_hold(&keeper.map, keeper.join.client, told->slot[1]), 1);
	GOES_WELL(end_owner(&owner));
	for (i = 0; i < ROUNDS; i++) {
		before = scans_of(told->slot[0]);
		SAME(collect(&keeper, told->slot[0]), 0);
		WANT(EVENTUALLY(scans_of(told->slot[0]) != before));
		SAME(collect(&keeper, told->slot[0]), 0);	/* it rests */
		usleep(i * 7919 % LONGEST_US);
		GOES_WELL(settle());
	}
	SAME(owner_of(told->slot[0]), XMEM_OWNER_HOST);
	return NULL;
}

/* ---- who truncates ---- */

#define FILE_PAGES	64u

/* This process does not let a kernel thread run between the request and its look. */
static const char *detach_truncates_itself(void)
{
	struct sched_param first = { .sched_priority = 1 };
	struct xmem_attach_request attach = raw_attaching(raw_shared_memfd(FILE_PAGES), 1);
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct stat file;
	int err;

	attach.flags = XMEM_ATTACH_SHARED | XMEM_ATTACH_TRUNCATE;
	GOES_WELL(start_pool(&join));
	SAME(raw_request(&keeper, XMEM_IOC_ATTACH, &attach), 0);
	SAME(sysconf(_SC_NPROCESSORS_ONLN), 1);
	SAME(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	err = raw_slot(&keeper, XMEM_OP_DETACH, attach.slot[0]);
	SAME(fstat(attach.fd, &file), 0);
	SAME(err, 0);
	SAME(file.st_blocks, 0);
	return NULL;
}

/* ---- many users ---- */

#define USERS		16384u
#define FIRST_USER	200000u
#define TRIES		5u

/* Each of so many users has a file of the device open. */
static const char *start_users(u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		SAME(seteuid(FIRST_USER + i), 0);
		WANT(open(RAW_DEVICE, O_RDWR | O_CLOEXEC) >= 0);
		SAME(seteuid(0), 0);
	}
	return NULL;
}

/* The caller is an ordinary user of a few. */
static const char *open_and_read_once(u64 *ret_open, u64 *ret_read)
{
	char line[RAW_PAGE];
	u64 begin = raw_now_ns();
	int file = open(RAW_DEVICE, O_RDWR | O_CLOEXEC), users;

	*ret_open = raw_now_ns() - begin;
	WANT(file >= 0);
	users = open("/sys/class/xmem/users", O_RDONLY | O_CLOEXEC);
	begin = raw_now_ns();
	WANT(read(users, line, sizeof(line)) > 0);
	*ret_read = raw_now_ns() - begin;
	close(users);
	close(file);
	return NULL;
}

/* The least of some tries, because a tick of the clock may interrupt one. */
static const char *open_and_read(u64 *ret_open, u64 *ret_read)
{
	u64 open_ns, read_ns;
	u32 i;

	*ret_open = *ret_read = ~0ULL;
	SAME(seteuid(VICTIM), 0);
	for (i = 0; i < TRIES; i++) {
		GOES_WELL(open_and_read_once(&open_ns, &read_ns));
		*ret_open = open_ns < *ret_open ? open_ns : *ret_open;
		*ret_read = read_ns < *ret_read ? read_ns : *ret_read;
	}
	SAME(seteuid(0), 0);
	return NULL;
}

/* The time counts instructions. A tenth more is an allowance for deeper tables. */
static const char *other_users_cost_nothing(void)
{
	u64 open_few, read_few, open_many, read_many;
	const gid_t members = MEMBERS;

	SAME(setgroups(1, &members), 0);
	GOES_WELL(open_and_read(&open_few, &read_few));
	GOES_WELL(start_users(USERS));
	GOES_WELL(open_and_read(&open_many, &read_many));
	figure("with %u other users an open takes %.3f instead of %.3f us, a look at the own line "
	       "%.3f instead of %.3f us", USERS, open_many / 1e3, open_few / 1e3, read_many / 1e3,
	       read_few / 1e3);
	if (open_many * 100 > open_few * 110)
		return wrong("an open takes x%.2f as long", (double)open_many / open_few);
	if (read_many * 100 > read_few * 110)
		return wrong("a look takes x%.2f as long", (double)read_many / read_few);
	return NULL;
}

/* ---- many payloads ---- */

#define PAYLOAD_GROUPS	64u
#define ENDS		5u

/* A pool that has PAYLOAD_GROUPS groups of slots, and a payload for every @slots slots. */
static const char *start_payloads(u32 slots)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct xmem_attach_request attach;
	u32 i;

	join.slots = PAYLOAD_GROUPS * XMEM_GROUP_SLOTS;
	GOES_WELL(start_pool(&join));
	for (i = 0; i < join.slots / slots; i++) {
		attach = raw_attaching(raw_memfd(slots, 1), slots);
		SAME(raw_request(&keeper, XMEM_IOC_ATTACH, &attach), 0);
		close(attach.fd);
	}
	return NULL;
}

/* The shortest end of a client that has attached nothing, with the cleanup after it. */
static const char *end_beside_payloads(u32 slots, u64 *ret_ns)
{
	u64 begin, ns;
	u32 i;

	*ret_ns = ~0ULL;
	GOES_WELL(start_payloads(slots));
	for (i = 0; i < ENDS; i++) {
		begin = raw_now_ns();
		GOES_WELL(settle());
		ns = raw_now_ns() - begin;
		*ret_ns = ns < *ret_ns ? ns : *ret_ns;
	}
	raw_end(&keeper);
	return NULL;
}

static const char *others_payloads_cost_nothing(void)
{
	u64 few, many;

	GOES_WELL(end_beside_payloads(XMEM_GROUP_SLOTS, &few));
	GOES_WELL(end_beside_payloads(1, &many));
	figure("a client comes and ends beside %u payloads of others in %.3f ms, beside %u in "
	       "%.3f ms", PAYLOAD_GROUPS, few / 1e6, PAYLOAD_GROUPS * XMEM_GROUP_SLOTS, many / 1e6);
	if (many * 100 > few * 103)
		return wrong("the end takes x%.2f as long", (double)many / few);
	return NULL;
}

/* ---- faults ---- */

#define TURNS		1000u		/* of the processor, which others may use */
#define MOST_ROUNDS	20000u
#define CROWD		16u		/* threads that wait for one page */
#define MOST_AHEAD	2u		/* of them that a join may wait for */

/*
 * A client with threads of the same priority as the test, the highest, on the only processor. So
 * when the test has given up its turn a few times, each thread has finished its round or waits for
 * something. A thread that touches a page may have to wait in the fault. The thread that maps
 * memory then waits, too, if the fault keeps mmap_lock. A thread that loops has no such priority:
 * the test takes the processor away from it anywhere, sooner or later while its page is locked.
 */
static struct member {
	enum { OWN_AREA, TABLE, NO_AREA } page;
	u32 threads;			/* that touch the page */
	bool loops;			/* one more thread touches it again and again */
	sem_t touch, map;		/* one more round of one thread */
	u32 touched, mapped;		/* rounds that are over */
	u32 client;
	u64 incarnation;
} *member, *other;			/* shared with their processes */

static u32 *evicting;			/* shared */
static struct raw me;			/* in such a process */

static void *page_of(const struct member *of)
{
	if (of->page == OWN_AREA)
		return me.area;
	return me.base + (of->page == TABLE ? 0 : me.header.areas_offset +
			  (me.header.clients - 1) * me.header.area_stride);
}

static void touch(const struct member *of)
{
	volatile u32 *word = page_of(of);

	madvise((void *)word, RAW_PAGE, MADV_DONTNEED);
	if (of->page == OWN_AREA)
		*word = 0;
	else
		(void)*word;
}

static void *touches(void *argument)
{
	struct member *my = argument;

	for (;;) {
		sem_wait(&my->touch);
		touch(my);
		__atomic_add_fetch(&my->touched, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *maps(void *argument)
{
	struct member *my = argument;

	for (;;) {
		sem_wait(&my->map);
		munmap(mmap(NULL, RAW_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		       RAW_PAGE);
		__atomic_add_fetch(&my->mapped, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *loops(void *my)
{
	struct sched_param last = { .sched_priority = 0 };

	if (sched_setscheduler(0, SCHED_OTHER, &last))
		return NULL;
	for (;;)
		touch(my);
}

static const char *be_first(int priority)
{
	struct sched_param first = { .sched_priority = priority };

	SAME(sysconf(_SC_NPROCESSORS_ONLN), 1);
	SAME(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	return NULL;
}

static const char *is_member(void *argument)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	struct member *my = argument;
	pthread_t thread;
	u32 i;

	SAME(raw_start(&me, &join), 0);
	my->client = me.join.client;
	my->incarnation = me.join.incarnation;
	for (i = 0; i < my->threads; i++)
		SAME(pthread_create(&thread, NULL, touches, my), 0);
	SAME(pthread_create(&thread, NULL, maps, my), 0);
	if (my->loops)
		SAME(pthread_create(&thread, NULL, loops, my), 0);
	return NULL;
}

static const char *start_member(struct kid *kid, struct member **ret, struct member what)
{
	*ret = shared_memory(sizeof(**ret));
	WANT(*ret);
	**ret = what;
	SAME(sem_init(&(*ret)->touch, 1, 0), 0);
	SAME(sem_init(&(*ret)->map, 1, 0), 0);
	return kid_start(kid, is_member, *ret);
}

static const char *start_pool_first(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);

	GOES_WELL(start_pool(&join));
	return be_first(1);
}

static u32 now_in(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Others run until the word has this value, or until they have had many turns. */
static bool in_turn(const u32 *word, u32 value)
{
	u32 i;

	for (i = 0; i < TURNS && now_in(word) != value; i++)
		sched_yield();
	return now_in(word) == value;
}

/* One more round of each thread that touches the page. true: they wait in their faults. */
static bool touch_in_vain(u32 round)
{
	u32 i;

	for (i = 0; i < member->threads; i++)
		sem_post(&member->touch);
	return !in_turn(&member->touched, round * member->threads);
}

static const char *map_meanwhile(u32 round)
{
	SAME(sem_post(&member->map), 0);
	if (!in_turn(&member->mapped, round))
		return wrong("a fault that waits keeps mmap_lock");
	return NULL;
}

static const char *evicts(void *unused)
{
	struct xmem_join_request join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	struct xmem_evict_request evict = {
		.size = sizeof(evict), .client = member->client,
		.incarnation = member->incarnation, .reason = XMEM_REASON_EVICTED,
	};

	SAME(raw_start(&me, &join), 0);
	kid_pause();
	__atomic_store_n(evicting, 1, __ATOMIC_RELEASE);
	SAME(raw_request(&me, XMEM_IOC_EVICT, &evict), 0);
	return NULL;
}

static bool has_ended(const struct kid *kid)
{
	siginfo_t info = { .si_pid = 0 };

	return !waitid(P_PID, kid->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/*
 * A store of an evicted client waits for a kernel thread, which does not run as long as this
 * process does not sleep.
 */
static const char *store_while_evicted(bool kill)
{
	struct kid evicted, evictor;
	u32 i;

	evicting = shared_memory(sizeof(*evicting));
	WANT(evicting);
	GOES_WELL(start_pool_first());
	GOES_WELL(start_member(&evicted, &member, (struct member){ OWN_AREA, .threads = 1 }));
	WANT(!touch_in_vain(1));
	GOES_WELL(map_meanwhile(1));
	GOES_WELL(kid_start(&evictor, evicts, NULL));
	kid_go_on(&evictor);
	WANT(in_turn(evicting, 1));
	WANT(touch_in_vain(2));
	GOES_WELL(map_meanwhile(2));
	if (kill) {
		kid_kill(&evicted);
		for (i = 0; i < TURNS && !has_ended(&evicted); i++)
			sched_yield();
		WANT(has_ended(&evicted));
	} else {
		WANT(EVENTUALLY(now_in(&member->touched) == 2));
	}
	return kid_ready(&evictor);
}

static const char *stores_wait_without_mmap_lock(void)
{
	return store_while_evicted(false);
}

static const char *stores_wait_killably(void)
{
	return store_while_evicted(true);
}

/* A client that loops locks a page that all clients see. */
static const char *faults_wait_without_mmap_lock(void)
{
	struct kid waiting, looping;
	u32 round = 0;

	GOES_WELL(start_pool_first());
	GOES_WELL(start_member(&waiting, &member, (struct member){ TABLE, .threads = 1 }));
	GOES_WELL(start_member(&looping, &other, (struct member){ TABLE, .loops = true }));
	do
		usleep(++round * 7919 % 1000);
	while (!touch_in_vain(round) && round < MOST_ROUNDS);
	WANT(round < MOST_ROUNDS);
	GOES_WELL(map_meanwhile(1));
	WANT(EVENTUALLY(now_in(&member->touched) == round));
	figure("a fault has waited in round %u", round);
	return NULL;
}

/* Many faults of a client wait for a page that a join waits for, too. */
static const char *joins_overtake_faults(void)
{
	struct xmem_join_request join;
	u32 round = 0, before, ahead;
	struct kid crowd_of_threads;
	struct raw newcomer;

	GOES_WELL(start_pool_first());
	GOES_WELL(start_member(&crowd_of_threads, &member,
			       (struct member){ NO_AREA, .threads = CROWD, .loops = true }));
	join = joining_by_file(pool_fd, XMEM_ROLE_READER);
	SAME(raw_open(&newcomer), 0);
	do
		usleep(++round * 7919 % 1000);
	while (!touch_in_vain(round) && round < MOST_ROUNDS);
	WANT(round < MOST_ROUNDS);
	before = now_in(&member->touched);
	SAME(before, (round - 1) * CROWD);
	GOES_WELL(be_first(2));
	SAME(raw_join(&newcomer, &join), 0);
	ahead = now_in(&member->touched) - before;
	figure("round %u: a join has waited for %u of %u faults", round, ahead, CROWD);
	if (ahead > MOST_AHEAD)
		return wrong("a join waits for %u faults", ahead);
	WANT(EVENTUALLY(now_in(&member->touched) == round * CROWD));
	return NULL;
}

static const struct attack attacks[] = {
	{ "M5_strangers_collect_nothing", strangers_collect_nothing, false },
	{ "M5_guests_collect_what_they_held", guests_collect_what_they_held, false },
	{ "M5_collects_take_half", collects_take_half, true },
	{ "M5_who_waits_does_not_rest", who_waits_does_not_rest, true },
	{ "M5_collects_meet_an_end", collects_meet_an_end, false },
	{ "E1_detach_truncates_itself", detach_truncates_itself, false },
	{ "F4_other_users_cost_nothing", other_users_cost_nothing, true },
	{ "F6_payloads_of_others_cost_nothing", others_payloads_cost_nothing, true },
	{ "E6_stores_wait_without_mmap_lock", stores_wait_without_mmap_lock, false },
	{ "E6_stores_wait_killably", stores_wait_killably, false },
	{ "E6_faults_wait_without_mmap_lock", faults_wait_without_mmap_lock, false },
	{ "E6_joins_overtake_faults", joins_overtake_faults, false },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}

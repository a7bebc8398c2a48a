// SPDX-License-Identifier: MIT
/*
 * Part of the program `ends`: how long a publisher that wakes others, or a client that ends, takes
 * when there are many waiters, which are epoll items or threads of one client.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>

#include "sides.h"

/* ---- a wake that reaches many pollers ---- */

#define ITEMS		20000u
#define NESTED_AT_MOST	110	/* percent */

static bool own;	/* the subscriber is of the publisher's user */

static const char *follows_by(struct raw *client, const struct side *side)
{
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = side->shared->publisher,
	};

	if (!own)
		SAME(become(ATTACKER), 0);
	SAME(raw_start(client, &join), 0);
	SAME(raw_request(client, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	return NULL;
}

static const char *arms(struct raw *client, u32 kind, u32 who)
{
	struct xmem_wait_request arm = { .size = sizeof(arm), .kind = kind, .client = who };

	SAME(raw_wait(client, XMEM_OP_ARM, &arm), 0);
	return NULL;
}

static void add_to(int set, int fd, u32 events)
{
	struct epoll_event event = { .events = events };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		abort();
}

/* Put copies of the client's file into an epoll set; a wake reaches them all. */
static void add_items(const struct raw *client, u32 count)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	u32 i;

	for (i = 0; i < count; i++)
		add_to(set, dup(client->file), EPOLLIN);
}

static const char *hoards_items(void *argument)
{
	static struct raw client;
	const struct side *side = argument;

	GOES_WELL(follows_by(&client, side));
	add_items(&client, side->loaded ? ITEMS : 1);
	for (;;) {
		GOES_WELL(arms(&client, XMEM_WAIT_RING, side->shared->publisher));
		kid_pause();
	}
}

static struct raw publisher[2];
static struct kid hoarder[2];

static const char *start_publisher(struct side *side)
{
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_WRITER);
	struct raw *raw = &publisher[side->loaded];

	SAME(raw_start(raw, &join), 0);
	side->shared->publisher = raw->join.client;
	return NULL;
}

static const char *wake(const struct side *side)
{
	struct xmem_wait_request wake = {
		.size = sizeof(wake), .kind = XMEM_WAIT_RING, .client = side->shared->publisher,
	};

	SAME(raw_wait(&publisher[side->loaded], XMEM_OP_WAKE, &wake), 0);
	return NULL;
}

/* The publisher wakes its subscribers; one of them has armed the word. */
static const char *measure_wake(void *argument, u64 *ret_ns)
{
	const struct side *side = argument;
	u64 begin = raw_now_ns();

	GOES_WELL(wake(side));
	*ret_ns = raw_now_ns() - begin;
	kid_go_on(&hoarder[side->loaded]);
	return kid_ready(&hoarder[side->loaded]);
}

static const char *start_hoarders(struct side sides[2], const char *(*hoards)(void *))
{
	u32 i;

	GOES_WELL(start_sides(sides, 128, 64));
	for (i = 0; i < 2; i++) {
		GOES_WELL(start_publisher(&sides[i]));
		GOES_WELL(kid_start(&hoarder[i], hoards, &sides[i]));
	}
	return NULL;
}

const char *wake_with_many_items(void)
{
	struct side sides[2];

	GOES_WELL(start_hoarders(sides, hoards_items));
	return duel("wake by a publisher, a subscriber has 20000 items", measure_wake, &sides[0],
		    &sides[1], 100, AT_MOST);
}

/* A client's items are called by the request that wakes them, if that is of the client's user. */
const char *own_items_are_paid_for(void)
{
	struct side sides[2];
	u64 ns[2];

	own = true;
	GOES_WELL(start_hoarders(sides, hoards_items));
	GOES_WELL(measure_wake(&sides[0], &ns[0]));
	GOES_WELL(measure_wake(&sides[1], &ns[1]));
	figure("a wake takes %llu ns with one item of the same user, %llu ns with %u",
	       (unsigned long long)ns[0], (unsigned long long)ns[1], ITEMS);
	if (ns[1] < ns[0] + ITEMS * 20ull)
		return wrong("%u items take %llu ns", ITEMS, (unsigned long long)(ns[1] - ns[0]));
	return NULL;
}

/* Its first wake says how long a wake takes; it is killed in the second one. */
static const char *wakes_twice(void *argument)
{
	struct side *side = argument;
	u64 begin;

	GOES_WELL(start_publisher(side));
	kid_pause();
	begin = raw_now_ns();
	GOES_WELL(wake(side));
	side->shared->armed[0] = raw_now_ns() - begin;
	kid_pause();
	return wake(side);
}

/* A waker that is killed midway dies at once, and leaves the other pollers to the work item. */
const char *killed_waker_calls_no_more(void)
{
	struct sched_param first = { .sched_priority = 1 };
	struct side sides[2], *side = &sides[1];
	struct timespec part = { 0 };
	struct kid waker;
	u64 begin, rest;

	own = true;
	GOES_WELL(start_sides(sides, 128, 64));
	GOES_WELL(kid_start(&waker, wakes_twice, side));
	GOES_WELL(kid_start(&hoarder[1], hoards_items, side));
	kid_go_on(&waker);
	GOES_WELL(kid_ready(&waker));
	kid_go_on(&hoarder[1]);
	GOES_WELL(kid_ready(&hoarder[1]));
	part.tv_nsec = side->shared->armed[0] / 4;
	SAME(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	kid_go_on(&waker);
	nanosleep(&part, NULL);
	begin = raw_now_ns();
	kid_kill(&waker);
	kid_reap(&waker);
	rest = raw_now_ns() - begin;
	figure("a wake of %u items takes %.3f ms; killed midway, its process is gone after "
	       "%.3f ms", ITEMS, side->shared->armed[0] / 1e6, rest / 1e6);
	if (rest > side->shared->armed[0] / 2)
		return wrong("a killed waker goes on for %.3f ms", rest / 1e6);
	return NULL;
}

/* ---- epoll sets in epoll sets ---- */

#define SETS	8u
#define OUTER	480u	/* the kernel's limit is 500 */

static const char *nest(struct raw *client, const struct side *side, u32 events)
{
	int set[SETS], outer;
	u32 i, n;

	many_descriptors();
	for (i = 0; i < SETS; i++) {
		struct xmem_poll_fd_request poll = {
			.size = sizeof(poll), .kind = XMEM_POLL_CLIENT,
		};

		SAME(raw_request(client, XMEM_IOC_POLL_FD, &poll), 0);
		set[i] = epoll_create1(EPOLL_CLOEXEC);
		add_to(set[i], poll.fd, events);
	}
	for (n = 0; side->loaded && n < OUTER; n++) {
		outer = epoll_create1(EPOLL_CLOEXEC);
		for (i = 0; i < SETS; i++)
			add_to(outer, set[i], EPOLLIN);
	}
	return NULL;
}

static const char *nests_for_a_ring(void *argument)
{
	static struct raw client;
	const struct side *side = argument;

	GOES_WELL(follows_by(&client, side));
	GOES_WELL(nest(&client, side, EPOLLIN));
	for (;;) {
		GOES_WELL(arms(&client, XMEM_WAIT_RING, side->shared->publisher));
		kid_pause();
	}
}

const char *wake_with_nested_sets(void)
{
	struct side sides[2];

	GOES_WELL(start_hoarders(sides, nests_for_a_ring));
	return duel("wake by a publisher, a subscriber has 8 epoll sets in 480 others",
		    measure_wake, &sides[0], &sides[1], 50, NESTED_AT_MOST);
}

static const char *nests_for_slots(void *argument)
{
	static struct raw client;
	const struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_WRITER);

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&client, &join), 0);
	GOES_WELL(nest(&client, side, EPOLLOUT));
	for (;;) {
		GOES_WELL(arms(&client, XMEM_WAIT_SLOTS, client.join.client));
		kid_pause();
	}
}

/* A client of the victim that has held something unmaps its area, and so ends. */
static const char *measure_end_before_sets(void *argument, u64 *ret_ns)
{
	static struct raw client;
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	u64 begin;

	SAME(raw_start(&client, &join), 0);
	*xm_hold_in(&client.map, client.area, client.join.client, 0) = 1;
	begin = raw_now_ns();
	munmap(client.area, client.header.area_stride);
	*ret_ns = raw_now_ns() - begin;
	client.area = NULL;
	raw_end(&client);
	kid_go_on(&hoarder[side->loaded]);
	return kid_ready(&hoarder[side->loaded]);
}

const char *end_with_nested_sets(void)
{
	struct side sides[2];

	GOES_WELL(start_hoarders(sides, nests_for_slots));
	return duel("end of a client, an owner has 8 epoll sets in 480 others",
		    measure_end_before_sets, &sides[0], &sides[1], 50, NESTED_AT_MOST);
}

#define LONG_FILES	500u
#define LONG_NS		1000000000ull
#define LONG_AT_MOST	10u	/* percent */

/* One set with many files of the client, in many others: to call them all takes tens of ms. */
static const char *nests_for_long(void *argument)
{
	static struct raw client;
	const struct side *side = argument;
	int set = epoll_create1(EPOLL_CLOEXEC), mine = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	u32 i;

	many_descriptors();
	GOES_WELL(follows_by(&client, side));
	for (i = 0; i < OUTER; i++)
		add_to(epoll_create1(EPOLL_CLOEXEC), set, EPOLLIN);
	for (i = 0; i < LONG_FILES; i++) {
		struct xmem_poll_fd_request poll = {
			.size = sizeof(poll), .kind = XMEM_POLL_CLIENT,
		};

		SAME(raw_request(&client, XMEM_IOC_POLL_FD, &poll), 0);
		add_to(set, poll.fd, EPOLLIN);
	}
	add_to(mine, client.file, EPOLLIN);
	kid_say_ready();
	epoll_wait(mine, &event, 1, -1);	/* each call polls, and so arms the ring */
	return wrong("epoll_wait has returned: %d", errno);
}

static u64 own_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The work item takes little of the only processor, however long a call of all pollers is. */
const char *long_calls_of_strangers_are_few(void)
{
	struct side side = { .slots = 128, .clients = 64 };
	u64 begin, mine, all, others;

	GOES_WELL(start_side(&side, keeps));
	GOES_WELL(start_publisher(&side));
	GOES_WELL(kid_start(&hoarder[0], nests_for_long, &side));
	begin = raw_now_ns();
	mine = own_time_ns();
	do {
		GOES_WELL(wake(&side));
		all = raw_now_ns() - begin;
	} while (all < LONG_NS);
	others = all - (own_time_ns() - mine);
	figure("of %llu ms in which a stranger's %u files in %u sets are called, they take %llu",
	       (unsigned long long)all / 1000000, LONG_FILES, OUTER,
	       (unsigned long long)others / 1000000);
	return others * 100 > all * LONG_AT_MOST ? wrong("that is too long") : NULL;
}

/* ---- a wake that reaches many threads ---- */

#define FEW_THREADS	16u
#define MANY_THREADS	500u	/* as struct shared has room for */

/* The threads of the attacker's client wait for one word, round after round. */
static struct {
	struct raw client;
	struct shared *shared;
	u32 kind, who;
} crowd;

static void *waits(void *armed)
{
	struct xmem_wait_request wait = {
		.size = sizeof(wait), .kind = crowd.kind, .client = crowd.who,
	};

	for (;;) {
		wait.value = wait.deadline_ns = 0;
		if (raw_wait(&crowd.client, XMEM_OP_ARM, &wait))
			return NULL;
		wait.deadline_ns = ~0ULL;
		__atomic_store_n((u64 *)armed, wait.value, __ATOMIC_SEQ_CST);
		raw_wait(&crowd.client, XMEM_OP_WAIT, &wait);
		__atomic_add_fetch(&crowd.shared->rounds, 1, __ATOMIC_SEQ_CST);
	}
}

static u32 threads_of(const struct side *side)
{
	return side->loaded ? MANY_THREADS : FEW_THREADS;
}

/* Does each thread wait for the word's present value, so that the next wake-up reaches all? */
static bool all_wait(const struct side *side, const u32 *word)
{
	u32 i;

	for (i = 0; i < threads_of(side); i++)
		if (__atomic_load_n(&side->shared->armed[i], __ATOMIC_SEQ_CST) !=
		    __atomic_load_n(word, __ATOMIC_SEQ_CST))
			return false;
	return true;
}

static const char *start_waiting(const struct side *side, u32 kind, u32 who)
{
	pthread_attr_t small;
	pthread_t thread;
	u32 i;

	crowd.shared = side->shared;
	crowd.kind = kind;
	crowd.who = who;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (i = 0; i < threads_of(side); i++)
		SAME(pthread_create(&thread, &small, waits, &side->shared->armed[i]), 0);
	side->shared->done = who;
	return NULL;
}

static const char *waits_for_a_ring(void *argument)
{
	const struct side *side = argument;

	GOES_WELL(follows_by(&crowd.client, side));
	return start_waiting(side, XMEM_WAIT_RING, side->shared->publisher);
}

/* An owner that waits for slots; each end of a client in its pool wakes it. */
static const char *waits_for_slots(void *argument)
{
	const struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), 1);

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&crowd.client, &join), 0);
	SAME(raw_request(&crowd.client, XMEM_IOC_ATTACH, &attach), 0);
	return start_waiting(side, XMEM_WAIT_SLOTS, crowd.client.join.client);
}

static u32 rounds(const struct side *side)
{
	return __atomic_load_n(&side->shared->rounds, __ATOMIC_SEQ_CST);
}

/* All threads wait. The publisher wakes them. Each of them returns, and waits again. */
static const char *measure_wake_of_threads(void *argument, u64 *ret_ns)
{
	const struct side *side = argument;
	u32 before, *word = &xm_client_row(&publisher[side->loaded].map,
					   side->shared->publisher)->ring_waiters;
	u64 begin;

	WANT(EVENTUALLY(all_wait(side, word)));
	before = rounds(side);
	begin = raw_now_ns();
	GOES_WELL(wake(side));
	*ret_ns = raw_now_ns() - begin;
	WANT(EVENTUALLY(rounds(side) - before >= threads_of(side)));
	return NULL;
}

const char *wake_with_many_sleepers(void)
{
	struct side sides[2];

	GOES_WELL(start_hoarders(sides, waits_for_a_ring));
	return duel("wake by a publisher, a subscriber has 500 threads and not 16",
		    measure_wake_of_threads, &sides[0], &sides[1], 50, AT_MOST);
}

/*
 * A client of the victim unmaps its area, and so ends. The figure is the victim's own time: threads
 * that are awake compete for the processor, however they were woken.
 */
static const char *measure_end_before_threads(void *argument, u64 *ret_ns)
{
	static struct raw client;
	struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	u32 before, *word;
	u64 begin;

	SAME(raw_start(&client, &join), 0);
	/* It has holds, so owners may find a slot after its end. */
	*xm_hold_in(&client.map, client.area, client.join.client, 0) = 1;
	word = &xm_client_row(&client.map, side->shared->done)->slots_waiters;
	WANT(EVENTUALLY(all_wait(side, word)));
	before = rounds(side);
	begin = own_time_ns();
	munmap(client.area, client.header.area_stride);
	*ret_ns = own_time_ns() - begin;
	client.area = NULL;
	raw_end(&client);
	WANT(EVENTUALLY(rounds(side) - before >= threads_of(side)));
	return NULL;
}

const char *end_with_many_sleepers(void)
{
	struct side sides[2];
	u32 i;

	GOES_WELL(start_sides(sides, 128, 64));
	for (i = 0; i < 2; i++)
		GOES_WELL(kid_start(&hoarder[i], waits_for_slots, &sides[i]));
	return duel("end of a client, an owner waits in 500 threads and not 16",
		    measure_end_before_threads, &sides[0], &sides[1], 50, AT_MOST);
}

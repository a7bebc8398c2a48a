// SPDX-License-Identifier: MIT
/*
 * Part of the program `ends`: how long a publisher that wakes others, or a client that ends, takes
 * when there are many waiters, which are epoll items or threads of one client.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "sides.h"

/* ---- a wake that reaches many ---- */

#define ITEMS	20000u

/* Follows the publisher, and puts copies of its file into an epoll; a wake reaches them all. */
static const char *hoards_items(void *argument)
{
	static struct raw client;
	const struct side *side = argument;
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = side->shared->publisher,
	};
	struct xmem_wait_request arm = {
		.size = sizeof(arm), .kind = XMEM_WAIT_RING, .client = subscribe.publisher,
	};
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);
	u32 i;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&client, &join), 0);
	SAME(raw_request(&client, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	for (i = 0; i < (side->loaded ? ITEMS : 1); i++)
		if (epoll_ctl(set, EPOLL_CTL_ADD, dup(client.file), &event))
			break;
	side->shared->done = i;
	WANT(i);
	for (;;) {
		SAME(raw_request(&client, XMEM_IOC_ARM, &arm), 0);
		kid_pause();
		arm.value = 0;
	}
}

static struct raw publisher[2];
static struct kid hoarder[2];

/* The publisher wakes its subscribers; one of them has armed the word. */
static const char *measure_wake(void *argument, u64 *ret_ns)
{
	const struct side *side = argument;
	struct xmem_wait_request wake = {
		.size = sizeof(wake), .kind = XMEM_WAIT_RING, .client = side->shared->publisher,
	};
	u64 begin = raw_now_ns();

	SAME(raw_request(&publisher[side->loaded], XMEM_IOC_WAKE, &wake), 0);
	*ret_ns = raw_now_ns() - begin;
	kid_go_on(&hoarder[side->loaded]);
	return kid_ready(&hoarder[side->loaded]);
}

const char *wake_with_many_items(void)
{
	struct side sides[2];
	u32 i;

	GOES_WELL(start_sides(sides, 128, 64));
	for (i = 0; i < 2; i++) {
		struct xmem_join_request join = joining_by_file(sides[i].pool_fd, XMEM_ROLE_WRITER);

		SAME(raw_start(&publisher[i], &join), 0);
		sides[i].shared->publisher = publisher[i].join.client;
		GOES_WELL(kid_start(&hoarder[i], hoards_items, &sides[i]));
	}
	figure("%u items poll the file of a subscriber", sides[1].shared->done);
	return duel("wake by a publisher, a subscriber has 20000 items", measure_wake, &sides[0],
		    &sides[1], 100, AT_MOST);
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
		if (raw_request(&crowd.client, XMEM_IOC_ARM, &wait))
			return NULL;
		wait.deadline_ns = ~0ULL;
		__atomic_store_n((u64 *)armed, wait.value, __ATOMIC_SEQ_CST);
		raw_request(&crowd.client, XMEM_IOC_WAIT, &wait);
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
	struct xmem_join_request join = joining_by_file(side->pool_fd, XMEM_ROLE_READER);
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = side->shared->publisher,
	};

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&crowd.client, &join), 0);
	SAME(raw_request(&crowd.client, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	return start_waiting(side, XMEM_WAIT_RING, subscribe.publisher);
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
	struct xmem_wait_request wake = {
		.size = sizeof(wake), .kind = XMEM_WAIT_RING, .client = side->shared->publisher,
	};
	const struct raw *raw = &publisher[side->loaded];
	u32 before, *word = &xm_client_row(&raw->map, wake.client)->ring_waiters;
	u64 begin;

	WANT(EVENTUALLY(all_wait(side, word)));
	before = rounds(side);
	begin = raw_now_ns();
	SAME(raw_request(raw, XMEM_IOC_WAKE, &wake), 0);
	*ret_ns = raw_now_ns() - begin;
	WANT(EVENTUALLY(rounds(side) - before >= threads_of(side)));
	return NULL;
}

const char *wake_with_many_sleepers(void)
{
	struct side sides[2];
	u32 i;

	GOES_WELL(start_sides(sides, 128, 64));
	for (i = 0; i < 2; i++) {
		struct xmem_join_request join = joining_by_file(sides[i].pool_fd, XMEM_ROLE_WRITER);

		SAME(raw_start(&publisher[i], &join), 0);
		sides[i].shared->publisher = publisher[i].join.client;
		GOES_WELL(kid_start(&hoarder[i], waits_for_a_ring, &sides[i]));
	}
	return duel("wake by a publisher, a subscriber has 500 threads and not 16",
		    measure_wake_of_threads, &sides[0], &sides[1], 50, AT_MOST);
}

static u64 own_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
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

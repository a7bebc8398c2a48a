// SPDX-License-Identifier: MIT
/*
 * Threads as clients over one layout, delayed and killed at random steps. Every payload has its
 * token, written with plain stores while no other client may have it and read with plain loads
 * while it is held. A client that is wrong reads a wrong token, and ThreadSanitizer sees the race.
 * Sleeping is real, so a lost wake-up hangs. Counts bound the test, not time.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>

#include "unit.h"

#define PUBLICATIONS	30000	/* of each writer, over all its lives, before scaling */
#define WRITERS		2
#define READERS		3
#define CLIENTS		16
#define RING		8
#define OWN		6	/* slots of a writer */
#define KEPT		3	/* publications that a reader keeps */
#define HISTORY		16
#define DEATH		2000	/* one life lasts so many steps, on average */

static struct {
	struct world *world;
	const struct xm_map *map;
	pthread_mutex_t lock;		/* all of world->host except the waiters words */
	pthread_mutex_t bed;		/* for sleepers, until a waiters word changes */
	pthread_cond_t wake;
	u64 payload[8 * XMEM_GROUP_SLOTS][8];
	u32 publications;		/* of each writer */
	u32 writers_left;		/* atomic */
	u64 seed;
	u64 received, lost, stale, regot, slept, deaths;	/* atomic */
} st;

struct actor {
	u64 random;
	u32 me;
	bool in_host;			/* the step is the host's: no client dies in it */
	jmp_buf grave;
	/* a writer's */
	u32 slot[OWN];
	u64 written;
	/* a reader's */
	struct xm_follow follow[CLIENTS];
	bool follows[CLIENTS];
	u64 kept[KEPT];
	u32 keeps;
	u64 history[HISTORY];
};

static void count(u64 *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static u32 dice(struct actor *a, u32 sides)
{
	return (unit_random(&a->random) >> 24) % sides;
}

/* ---- delays and deaths ---- */

static void dawdle(int step, void *arg)
{
	struct actor *a = arg;
	u32 i, long_one = step == XM_STEP_GET_HELD ||
			  (step >= XM_STEP_SCAN_CURSORS && step <= XM_STEP_SCAN_HOLDS) ||
			  step == XM_STEP_RECEIVE_READ || step == XM_STEP_RECEIVE_HELD;

	if (!dice(a, 24))
		for (i = long_one ? 1 + dice(a, 4) : 1; i--; )
			sched_yield();
	if (!a->in_host && !dice(a, DEATH))
		longjmp(a->grave, 1);
}

static void lock_host(struct actor *a)
{
	pthread_mutex_lock(&st.lock);
	a->in_host = true;
}

static void unlock_host(struct actor *a)
{
	a->in_host = false;
	pthread_mutex_unlock(&st.lock);
}

/* ---- sleeping ---- */

static void wake(u32 *waiters)
{
	if (!xm_disarm(waiters))
		return;
	pthread_mutex_lock(&st.bed);
	pthread_cond_broadcast(&st.wake);
	pthread_mutex_unlock(&st.bed);
}

static void wake_all(void)
{
	u32 c;

	for (c = 0; c < CLIENTS; c++) {
		wake(&xm_client_row(st.map, c)->ring_waiters);
		wake(&xm_client_row(st.map, c)->slots_waiters);
	}
	wake(&st.map->pool->clients_waiters);
}

/* Sleep until one of the words differs from the value of xm_arm. */
static void sleep_on(u32 **word, const u32 *value, u32 words)
{
	u32 i;

	count(&st.slept);
	pthread_mutex_lock(&st.bed);
	for (;;) {
		for (i = 0; i < words && xm_still_armed(word[i], value[i]); i++)
			;
		if (i < words)
			break;
		pthread_cond_wait(&st.wake, &st.bed);
	}
	pthread_mutex_unlock(&st.bed);
}

static void owe(struct actor *a, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER) {
		wake(&xm_client_row(st.map, pending.who)->slots_waiters);
	} else if (pending.what == XM_RECLAIM_SLOT) {
		lock_host(a);
		world_reclaim(&st.world->host, pending.who);
		unlock_host(a);
	}
}

static void put(struct actor *a, u32 slot)
{
	owe(a, xm_put(st.map, a->me, slot));
}

/* ---- lives ---- */

static void die(struct actor *a)
{
	unit_step = NULL;
	lock_host(a);
	world_end(st.world, a->me);
	unlock_host(a);
	wake_all();
	count(&st.deaths);
	a->keeps = 0;
}

static void be_born(struct actor *a, u32 role)
{
	lock_host(a);
	a->me = world_join(st.world, role, role == XMEM_ROLE_WRITER ? 1000 : 0);
	if (role == XMEM_ROLE_WRITER)
		world_attach(st.world, a->me, OWN, a->slot);
	memset(a->follows, 0, sizeof(a->follows));
	unlock_host(a);
	wake(&st.map->pool->clients_waiters);
	unit_step_arg = a;
	unit_step = dawdle;
}

/* ---- the writers ---- */

static u32 look_for_slot(struct actor *a)
{
	struct xm_waited waited;
	u64 mine;
	u32 i;

	xm_read_waited(st.map, a->me, &waited);
	if (!xm_has_room(st.map, &waited, 0))
		return ~0u;
	for (i = 0; i < OWN; i++)
		if (!xm_take(st.map, a->slot[i]))
			return a->slot[i];
	for (i = 0; i < 2; i++) {
		struct xm_scan_rules how = world_rules(st.world, a->me, i, OWN / 2);

		mine = scan_slots(st.map, &how, a->slot, OWN, NULL);
		if (!mine)
			continue;
		/* one to write; the rest are free for later */
		for (i = __builtin_ctzll(mine) + 1; i < OWN; i++)
			if (mine >> i & 1)
				ck_assert_int_eq(xm_give_up(st.map, a->slot[i]), 0);
		return a->slot[__builtin_ctzll(mine)];
	}
	return ~0u;
}

static u32 acquire(struct actor *a)
{
	u32 *word = &xm_client_row(st.map, a->me)->slots_waiters, value, slot;

	for (;;) {
		slot = look_for_slot(a);
		if (slot != ~0u)
			return slot;
		value = xm_arm(word);
		slot = look_for_slot(a);
		if (slot != ~0u)
			return slot;
		sleep_on(&word, &value, 1);
	}
}

static void write_one(struct actor *a)
{
	u32 slot = acquire(a), i;
	struct xm_publication what = { .length = 64 };
	u64 token = xm_token(xm_generation(xm_load(&xm_slot(st.map, slot)->state)), slot);

	for (i = 0; i < 8; i++)
		st.payload[slot][i] = token;
	if (xm_publish(st.map, a->me, slot, &what))
		wake(&xm_client_row(st.map, a->me)->ring_waiters);
	ck_assert_uint_eq(what.token, token);
	a->written++;
}

static void *writer(void *arg)
{
	struct actor *a = arg;

	while (a->written < st.publications) {
		be_born(a, XMEM_ROLE_WRITER);
		if (!setjmp(a->grave))
			while (a->written < st.publications)
				write_one(a);
		die(a);
		a->written++;		/* a round in which it dies counts too, so the test ends */
	}
	__atomic_fetch_sub(&st.writers_left, 1, __ATOMIC_RELEASE);
	wake_all();
	return NULL;
}

/* ---- the readers ---- */

static void check(u64 token)
{
	u32 slot = xm_token_slot(token), i;

	for (i = 0; i < 8; i++)
		ck_assert_msg(st.payload[slot][i] == token, "slot %u has %llx, held as %llx", slot,
			      (unsigned long long)st.payload[slot][i], (unsigned long long)token);
}

/* A complete get: checking again, then asking the host to resolve. */
static bool get(struct actor *a, u64 token)
{
	u32 slot = xm_token_slot(token), looks;
	int err = xm_get(st.map, a->me, token);

	while (err == -EAGAIN) {
		u64 word = xm_load_acquire(&xm_slot(st.map, slot)->state);

		for (looks = 0; looks < 30 && err == -EAGAIN; looks++) {
			sched_yield();
			err = xm_look(st.map, token);
		}
		if (err == -EAGAIN && xm_load(&xm_slot(st.map, slot)->state) == word) {
			lock_host(a);
			xm_host_resolve(&st.world->host, a->me, slot, word);
			unlock_host(a);
			err = xm_look(st.map, token);
		}
	}
	if (err)
		put(a, slot);
	return !err;
}

/* An old token; preferably one whose slot is being scanned just now. */
static void get_old(struct actor *a)
{
	u64 token = a->history[dice(a, HISTORY)];
	u32 i;

	for (i = 0; i < HISTORY; i++) {
		u64 word = xm_load(&xm_slot(st.map, xm_token_slot(a->history[i]))->state);

		if (xm_state(word) == XMEM_SLOT_SCANNING &&
		    xm_generation(word) == xm_generation(a->history[i]))
			token = a->history[i];
	}
	if (!token)
		return;
	if (!get(a, token)) {
		count(&st.stale);
		return;
	}
	count(&st.regot);
	for (i = dice(a, 4); i--; sched_yield())
		check(token);
	check(token);
	put(a, xm_token_slot(token));
}

static void keep(struct actor *a, u64 token)
{
	u32 at;

	check(token);
	a->history[dice(a, HISTORY)] = token;
	if (a->keeps < KEPT) {
		a->kept[a->keeps++] = token;
		return;
	}
	at = dice(a, KEPT);
	check(a->kept[at]);
	put(a, xm_token_slot(a->kept[at]));
	a->kept[at] = token;
}

static int receive(struct actor *a, u32 publisher)
{
	struct xm_follow *f = &a->follow[publisher];
	struct xm_publication what;
	struct xm_pending pending;
	u64 lost = f->lost;
	int err = xm_receive(st.map, a->me, f, &what, &pending);

	owe(a, pending);
	if (!err) {
		count(&st.received);
		keep(a, what.token);
	}
	ck_assert_msg(!f->waits || !f->lost, "%llu lost by one that is waited for",
		      (unsigned long long)f->lost);
	__atomic_fetch_add(&st.lost, f->lost - lost, __ATOMIC_RELAXED);
	return err;
}

static void unfollow(struct actor *a, u32 publisher)
{
	struct xmem_unsubscribe_request request = {
		.publisher = publisher, .incarnation = a->follow[publisher].incarnation,
	};

	lock_host(a);
	/* refused where the ring is forgotten already */
	xm_host_unsubscribe(&st.world->host, a->me, &request);
	world_reap(st.world);
	a->follows[publisher] = false;
	unlock_host(a);
	wake(&xm_client_row(st.map, publisher)->slots_waiters);
}

/* Follow every publisher that is there. Publishers wait for two readers of three. */
static void follow_all(struct actor *a)
{
	struct xmem_subscribe_request request;
	u32 c;

	for (c = 0; c < CLIENTS; c++) {
		if (a->follows[c])
			continue;
		request = (struct xmem_subscribe_request){
			.publisher = c, .flags = a->random % 3 ? XMEM_SUBSCRIBE_WAIT : 0,
		};
		lock_host(a);
		if (!xm_host_subscribe(&st.world->host, a->me, &request)) {
			a->follow[c] = (struct xm_follow){
				.publisher = c, .waits = request.flags,
				.incarnation = xm_client_row(st.map, c)->incarnation,
				.place = request.position,
			};
			a->follows[c] = true;
		}
		unlock_host(a);
		wake(&xm_client_row(st.map, c)->slots_waiters);
	}
}

static bool receive_any(struct actor *a)
{
	bool any = false;
	u32 c;

	for (c = 0; c < CLIENTS; c++) {
		int err = a->follows[c] ? receive(a, c) : -EAGAIN;

		if (err == -EPIPE)
			unfollow(a, c);
		any |= err != -EAGAIN;
	}
	return any;
}

static void wait_for_any(struct actor *a)
{
	u32 *word[CLIENTS + 1], value[CLIENTS + 1], words = 0, c;

	word[words] = &st.map->pool->clients_waiters;
	value[words++] = xm_arm(&st.map->pool->clients_waiters);
	follow_all(a);
	for (c = 0; c < CLIENTS; c++)
		if (a->follows[c]) {
			word[words] = &xm_client_row(st.map, c)->ring_waiters;
			value[words] = xm_arm(word[words]);
			words++;
		}
	for (c = 0; c < CLIENTS; c++)
		if (a->follows[c] &&
		    xm_ready(st.map, c, a->follow[c].incarnation, a->follow[c].place))
			return;
	if (!__atomic_load_n(&st.writers_left, __ATOMIC_ACQUIRE))
		return;
	/* The owners wait for the buffers that it keeps, so it releases them before it sleeps. */
	while (a->keeps)
		put(a, xm_token_slot(a->kept[--a->keeps]));
	sleep_on(word, value, words);
}

static void read_on(struct actor *a)
{
	while (receive_any(a) || __atomic_load_n(&st.writers_left, __ATOMIC_ACQUIRE)) {
		if (!dice(a, 3))
			get_old(a);
		if (!receive_any(a))
			wait_for_any(a);
	}
}

static void *reader(void *arg)
{
	struct actor *a = arg;

	do {
		be_born(a, XMEM_ROLE_READER);
		if (!setjmp(a->grave)) {
			follow_all(a);
			read_on(a);
		}
		die(a);
	} while (__atomic_load_n(&st.writers_left, __ATOMIC_ACQUIRE));
	return NULL;
}

/* ---- all threads ---- */

START_TEST(threads_agree_on_who_holds_what)
{
	static struct actor actor[WRITERS + READERS];
	pthread_t thread[WRITERS + READERS];
	u32 i;

	st.world = world_make(8 * XMEM_GROUP_SLOTS, CLIENTS, RING);
	st.map = &st.world->host.map;
	pthread_mutex_init(&st.lock, NULL);
	pthread_mutex_init(&st.bed, NULL);
	pthread_cond_init(&st.wake, NULL);
	st.publications = unit_scaled(PUBLICATIONS);
	st.writers_left = WRITERS;
	st.seed = unit_seed();
	for (i = 0; i < WRITERS + READERS; i++) {
		actor[i].random = st.seed + i * 7919;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, i < WRITERS ? writer : reader,
						&actor[i]), 0);
	}
	for (i = 0; i < WRITERS + READERS; i++)
		pthread_join(thread[i], NULL);
	printf("stress: received=%llu lost=%llu regot=%llu stale=%llu slept=%llu deaths=%llu\n",
	       (unsigned long long)st.received, (unsigned long long)st.lost,
	       (unsigned long long)st.regot, (unsigned long long)st.stale,
	       (unsigned long long)st.slept, (unsigned long long)st.deaths);
	fflush(stdout);
	world_is_clean(st.world);
	ck_assert_uint_eq(world_count(st.world, XMEM_OWNER_NONE), st.map->slots);
	ck_assert_uint_gt(st.received, st.publications);
	ck_assert_uint_gt(st.stale, 0);
	ck_assert_uint_gt(st.regot, 0);
	ck_assert_uint_gt(st.deaths, WRITERS + READERS);
	world_free(st.world);
}
END_TEST

void stress_tests(Suite *suite)
{
	TCase *tcase = tcase_create("stress");

	tcase_add_test(tcase, threads_agree_on_who_holds_what);
	suite_add_tcase(suite, tcase);
}

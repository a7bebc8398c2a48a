// SPDX-License-Identifier: MIT
/*
 * The library's lock (lib/base/lock.h). Several threads that take it in random turns never have it
 * at once, whether it is biased, is being revoked, or is a mutex; and none stays asleep. Under TSan
 * the counter is checked as well.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/lock.h"
#include "unit.h"

#define LOCKS	64
#define THREADS	4

static struct {
	struct xl_lock lock[LOCKS];
	u64 count[LOCKS];		/* under that lock, and not atomic */
	u64 want[LOCKS];		/* atomic */
	u32 inside[LOCKS];		/* atomic; threads that have the lock */
	u32 rounds;
} many;

static u32 draw(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static void turn(u32 i)
{
	xl_lock(&many.lock[i]);
	ck_assert_uint_eq(__atomic_add_fetch(&many.inside[i], 1, __ATOMIC_RELAXED), 1);
	many.count[i]++;
	__atomic_sub_fetch(&many.inside[i], 1, __ATOMIC_RELAXED);
	xl_unlock(&many.lock[i]);
	__atomic_add_fetch(&many.want[i], 1, __ATOMIC_RELAXED);
}

/*
 * Each thread stays with one lock for long enough to get its bias. Then it takes another one, whose
 * bias another thread has, and which that thread is using.
 */
static void *take_turns(void *argument)
{
	u64 state = (uintptr_t)argument * 77777 + 1;
	u32 r, n;

	for (r = 0; r < many.rounds; r++) {
		u32 i = draw(&state) % LOCKS, stay = draw(&state) % (3 * XL_BIAS_AFTER);

		for (n = 0; n < stay; n++)
			turn(i);
		if (!(draw(&state) % 16))
			sched_yield();
	}
	return NULL;
}

static void run_threads(u32 count, void *(*body)(void *argument))
{
	pthread_t thread[THREADS];
	u32 i;

	for (i = 0; i < count; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, body, (void *)(uintptr_t)i), 0);
	for (i = 0; i < count; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
}

static void check_counts(void)
{
	u32 i;

	for (i = 0; i < LOCKS; i++) {
		ck_assert_uint_eq(many.count[i], many.want[i]);
		ck_assert_uint_eq(many.lock[i].held, 0);
		ck_assert_uint_eq(many.lock[i].word, 0);
	}
}

START_TEST(never_two_threads_at_once)
{
	u32 again, most = unit_scaled(100);

	ck_assert(xl_membarrier_register());
	many.rounds = 40;
	for (again = 0; again < most; again++) {
		memset(&many.lock, 0, sizeof(many.lock));	/* locks that can be biased anew */
		run_threads(THREADS, take_turns);
	}
	check_counts();
}
END_TEST

/* Many short meetings of a biased thread and one that revokes its bias. */
static struct {
	struct xl_lock lock;
	u64 count;
	u32 over;			/* atomic */
} duel;

static void *keep_taking(void *argument)
{
	u64 *own = argument;

	do {
		xl_lock(&duel.lock);
		duel.count++;
		xl_unlock(&duel.lock);
		++*own;
	} while (!__atomic_load_n(&duel.over, __ATOMIC_ACQUIRE));
	return NULL;
}

START_TEST(revoked_in_the_middle)
{
	u64 other, mine;
	pthread_t thread;
	u32 again, n, most = unit_scaled(1000);

	ck_assert(xl_membarrier_register());
	for (again = 0; again < most; again++) {
		memset(&duel, 0, sizeof(duel));
		other = mine = 0;
		ck_assert_int_eq(pthread_create(&thread, NULL, keep_taking, &other), 0);
		while (__atomic_load_n(&duel.lock.bias, __ATOMIC_RELAXED) == XL_UNBIASED)
			sched_yield();
		for (n = 0; n < 20; n++, mine++) {
			xl_lock(&duel.lock);
			duel.count++;
			xl_unlock(&duel.lock);
		}
		__atomic_store_n(&duel.over, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(duel.count, other + mine);
		ck_assert_uint_eq(duel.lock.bias, XL_REVOKED);
	}
}
END_TEST

/*
 * The biased thread is inside: a thread that revokes the bias sleeps until the other leaves, and is
 * woken.
 */
static u32 stage;			/* atomic */

static void *take_it_away(void *argument)
{
	__atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
	xl_lock(&duel.lock);
	ck_assert_uint_eq(__atomic_load_n(&stage, __ATOMIC_ACQUIRE), 2);
	xl_unlock(&duel.lock);
	return NULL;
}

static void bias_to_this_thread(struct xl_lock *lock)
{
	u32 i;

	for (i = 0; i <= XL_BIAS_AFTER; i++) {
		xl_lock(lock);
		xl_unlock(lock);
	}
}

START_TEST(revoker_sleeps_until_it_is_let_in)
{
	pthread_t thread;

	ck_assert(xl_membarrier_register());
	memset(&duel, 0, sizeof(duel));
	bias_to_this_thread(&duel.lock);
	ck_assert_uint_eq(duel.lock.bias, xl_self.thread);
	xl_lock(&duel.lock);
	ck_assert_uint_eq(duel.lock.held, xl_self.thread);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_it_away, NULL), 0);
	while (__atomic_load_n(&duel.lock.bias, __ATOMIC_RELAXED) != XL_REVOKED)
		sched_yield();
	__atomic_store_n(&stage, 2, __ATOMIC_RELEASE);
	xl_unlock(&duel.lock);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(duel.lock.word, 0);
}
END_TEST

/* A thread ends with a bias. The next thread, which may get its stack, is not taken for it. */
static void *bias_and_end(void *argument)
{
	bias_to_this_thread(&duel.lock);
	return (void *)(uintptr_t)xl_self.thread;
}

START_TEST(a_bias_does_not_pass_to_the_next_thread)
{
	void *first, *second;
	pthread_t thread;

	ck_assert(xl_membarrier_register());
	memset(&duel, 0, sizeof(duel));
	ck_assert_int_eq(pthread_create(&thread, NULL, bias_and_end, NULL), 0);
	pthread_join(thread, &first);
	ck_assert_uint_eq(duel.lock.bias, (uintptr_t)first);
	ck_assert_int_eq(pthread_create(&thread, NULL, bias_and_end, NULL), 0);
	pthread_join(thread, &second);
	ck_assert_uint_eq(duel.lock.bias, XL_REVOKED);
	if (second)
		ck_assert_uint_ne((uintptr_t)first, (uintptr_t)second);
}
END_TEST

/* From here on this process may not call membarrier. */
static void forbid_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(no_bias_without_membarrier)
{
	forbid_membarrier();
	ck_assert(!xl_membarrier_register());
	memset(&duel, 0, sizeof(duel));
	bias_to_this_thread(&duel.lock);
	ck_assert_uint_eq(duel.lock.bias, XL_UNBIASED);
	many.rounds = 100;
	run_threads(THREADS, take_turns);
	check_counts();
}
END_TEST

START_TEST(membarrier_forbidden_after_a_bias)
{
	u64 other = 0;
	pthread_t thread;
	u32 n;

	ck_assert(xl_membarrier_register());
	memset(&duel, 0, sizeof(duel));
	ck_assert_int_eq(pthread_create(&thread, NULL, keep_taking, &other), 0);
	while (__atomic_load_n(&duel.lock.bias, __ATOMIC_RELAXED) == XL_UNBIASED)
		sched_yield();
	forbid_membarrier();
	for (n = 0; n < 1000; n++) {
		xl_lock(&duel.lock);
		duel.count++;
		xl_unlock(&duel.lock);
	}
	__atomic_store_n(&duel.over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(duel.count, other + n);
}
END_TEST

void lock_tests(Suite *suite)
{
	TCase *tcase = tcase_create("lock");

	tcase_add_test(tcase, never_two_threads_at_once);
	tcase_add_test(tcase, revoked_in_the_middle);
	tcase_add_test(tcase, revoker_sleeps_until_it_is_let_in);
	tcase_add_test(tcase, a_bias_does_not_pass_to_the_next_thread);
	tcase_add_test(tcase, no_bias_without_membarrier);
	tcase_add_test(tcase, membarrier_forbidden_after_a_bias);
	suite_add_tcase(suite, tcase);
}

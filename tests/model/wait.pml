/* SPDX-License-Identifier: MIT */
/*
 * I5: waiters words. A waiter arms the word, then looks at its condition, then sleeps until the word's count
 * moves; who makes the condition true looks at the word after it, clears it, counts, wakes all.
 *
 * Two waiters share one word (two subscribers of a ring, or two threads), two wakers publish. Each waiter
 * wants to see all publications. Nobody may sleep for ever: an invalid end state is a lost wake-up.
 *
 * Broken by: LOOKFIRST looks, then arms; WAKEFIRST the waker looks at the word before its publication; NOCOUNT
 * disarming clears and does not count; CLEARLATE it wakes first and clears then.
 */
#ifndef N
#define N 2			/* publications of each waker */
#endif
byte tail;
byte armed, count;		/* the word's two parts: one atomic word */

#define STILL(v) (count == v)

proctype Waiter(byte me) {
	byte cur, v;

	do
	:: cur == 2 * N -> break
	:: cur < 2 * N && tail != cur -> cur++
	:: cur < 2 * N && tail == cur ->
#ifdef LOOKFIRST
		if
		:: tail != cur -> skip
		:: else -> atomic { armed = 1; v = count }; goto sleeps
		fi; goto next;
#else
		atomic { armed = 1; v = count };
		if :: tail != cur -> goto next :: else fi;
#endif
sleeps:
#ifdef NOCOUNT
		(armed == 0);		/* it can only ask whether the word is as it left it */
#else
		(!STILL(v));
#endif
next:		skip
	od
}

proctype Waker() {
	byte n;
	bool waiters;

	do
	:: n == N -> break
	:: n < N ->
		n++;
#ifdef WAKEFIRST
		waiters = (armed == 1);
		atomic { tail++ };
#else
		atomic { tail++ };
		waiters = (armed == 1);
#endif
		if
		:: waiters ->
#ifdef CLEARLATE
			count++;
			armed = 0
#else
			atomic { if :: armed == 1 -> armed = 0; count++ :: else fi }
#endif
		:: else
		fi
	od
}

init {
	atomic { run Waiter(0); run Waiter(1); run Waker(); run Waker() }
}

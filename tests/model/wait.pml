/* SPDX-License-Identifier: MIT */
/*
 * I5, waiters words. A waiter arms the word, then tests its condition, then sleeps until the word's
 * count moves. A waker makes the condition true, then reads the word. If the word is armed, the
 * waker raises the count, wakes the waiters one after the other, and then clears the word, unless a
 * waiter has armed it meanwhile or another waker has raised the count. So another waker finds the
 * word armed and wakes the waiters, too, if the first one is stopped on its way. The daemon's waker
 * clears the word and raises the count in one step, and then wakes all (DAEMON).
 *
 * In the kernel's form one waker may be stopped for ever, which is no invalid end state.
 *
 * Two waiters share one word (two subscribers of a ring, or two threads), and two wakers publish.
 * Each waiter wants to see all publications. No waiter sleeps for ever: an invalid end state is a
 * lost wake-up.
 *
 * Each of these breaks the invariant:
 *   LOOKFIRST  A waiter tests its condition, then arms the word.
 *   WAKEFIRST  A waker reads the word before its publication.
 *   NOCOUNT    A waker clears the word and does not raise the count.
 *   CLEARLATE  A waker wakes the waiters, then clears the word whatever has happened meanwhile.
 *   CLEARFIRST A waker clears the word, then wakes the waiters one after the other.
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
		(armed == 0);		/* it can only ask whether the word has changed */
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

/* SPDX-License-Identifier: MIT */
/*
 * Waiters words in the kernel (core/protocol.h, kmod/wait.c), where a waker wakes the clients one
 * after the other and may be throttled on its way. wait.pml has the daemon's waker.
 *
 * A waker makes the condition true and then reads the word. If the word is armed, the waker marks
 * it, so that it differs from every value that a waiter has. It wakes the waiters one after the
 * other, and then clears the word, unless the word has changed meanwhile. To arm a marked word
 * removes the mark and raises the count. A waiter arms the word, looks, enters its queue, and
 * sleeps while the word has the value that it has armed.
 *
 * There are two wakers, and two waiters that want to see both changes. One waker may be stopped for
 * ever on its way. Then a waiter still sees everything that was changed before the other waker's
 * change (an invalid end state).
 *
 * Each of these breaks the invariant:
 *   CLEARFIRST  A waker clears the word, and then wakes the waiters.
 *   CLEARLATE   A waker clears the word at last, whatever has happened to it meanwhile.
 *   ARMQUIET    To arm a marked word does not change it.
 *   NOMARK      A waker leaves the word as it is until it has woken all waiters.
 *   MARKISENOUGH  A waker that finds the word marked wakes nobody.
 */
#define WAITERS	2
#define WAKERS	2

byte changed;
bool armed;			/* with count: one atomic word */
byte count;			/* odd: the word is marked */
bool queued[WAITERS], woken[WAITERS];
bool stopped;
byte must;			/* the changes that a waiter must see */

#define STILL(v)	(count == v)

proctype Waiter(byte me) {
	byte seen, v;

	do
	:: atomic {
#ifndef ARMQUIET
		if
		:: count % 2 -> count++
		:: else
		fi;
#endif
		armed = true;
		v = count
	   };
	   seen = changed;
	   if
	   :: seen == WAKERS -> break
	   :: else
	   fi;
	   do
	   :: atomic { queued[me] = true; woken[me] = false };
	      if
	      :: !STILL(v) -> break
	      :: else
	      fi;
	      if
	      :: woken[me]
	      :: atomic { stopped && seen >= must -> goto over }
	      fi
	   od;
	   queued[me] = false
	od;
over:	skip
}

proctype Waker(bool stops) {
	byte c, mine, claim;

	atomic { changed++; mine = changed };
	atomic {
		if
#ifdef MARKISENOUGH
		:: armed && count % 2 == 0 ->
#else
		:: armed ->
#endif
#ifdef CLEARFIRST
			armed = false;
			count = count + 2;
#else
#ifndef NOMARK
			if :: count % 2 == 0 -> count++ :: else fi;
#endif
#endif
			claim = count
		:: else -> goto over
		fi
	};
	do
	:: c < WAITERS ->
		if
		:: stops -> stopped = true; goto gone
		:: true
		fi;
		atomic { if :: queued[c] -> woken[c] = true :: else fi };
		c++
	:: else -> break
	od;
#ifdef CLEARLATE
	atomic { armed = false; count = (count + 2) / 2 * 2 };
#endif
	atomic {
		if
		:: armed && count == claim -> armed = false; count = (count + 2) / 2 * 2
		:: else
		fi
	};
over:	atomic { if :: mine > must -> must = mine :: else fi };
gone:	skip
}

init {
	atomic { run Waiter(0); run Waiter(1); run Waker(true); run Waker(false) }
}

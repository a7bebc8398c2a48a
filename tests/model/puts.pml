/* SPDX-License-Identifier: MIT */
/*
 * I5 for slots: every put that may be the last one wakes a waiting owner. The put of a get that
 * fails with ESTALE is one of them. If a client is killed between its put and its wake, its end
 * wakes every owner.
 *
 * One owner wants one slot. A client has two threads: A holds the slot, and B tries to get it by a
 * stale token. A may be killed at any store, and then B dies as well.
 *
 * Each of these breaks the invariant:
 *   STALEQUIET  The put after ESTALE wakes no owner.
 *   ENDQUIET    The end of the client wakes only the owners of slots that it held.
 *   PUTFIRST    A put reads the waiters word before it drops the hold.
 */
byte hold = 1;			/* the client's hold */
bool armed, reused;
byte count;
bool killed;
byte gone;

inline wake() {
	atomic { if :: armed -> armed = false; count++ :: else fi }
}

proctype Owner() {
	byte v;

	do
	:: atomic { armed = true; v = count };
	   if
	   :: hold == 0 -> break		/* the scan finds no holder */
	   :: else -> (count != v)		/* sleeps */
	   fi
	od;
	reused = true
}

inline put(quiet) {
#ifdef PUTFIRST
	sleeps = armed;
	atomic { hold--; last = (hold == 0) };
	if :: killed -> goto dead :: else fi;
	if :: last && sleeps && !quiet -> wake() :: else fi
#else
	atomic { hold--; last = (hold == 0) };
	if :: killed -> goto dead :: else fi;
	if :: last && armed && !quiet -> wake() :: else fi
#endif
}

proctype A() {
	bool last, sleeps;

	put(false);
dead:	gone++
}

proctype Bt() {
	bool last, sleeps;
	byte n;

	do
	:: n < 2 && !killed ->
		n++;
		atomic { if :: !killed -> hold++ :: else -> goto dead fi };
#ifdef STALEQUIET
		put(true)
#else
		put(false)
#endif
	:: n == 2 || killed -> break
	od;
dead:	gone++
}

/* The client may be killed. Then the host drops its hold and wakes the owner. */
proctype Host() {
	bool held;

	if
	:: killed = true
	:: goto lives
	fi;
	gone == 2;
	held = (hold != 0);
	hold = 0;
#ifdef ENDQUIET
	if :: held -> wake() :: else fi;
#else
	wake();
#endif
lives:	skip
}

init {
	atomic { run Owner(); run A(); run Bt(); run Host() }
}

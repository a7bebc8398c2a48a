/* SPDX-License-Identifier: MIT */
/*
 * I5 for slots: every put that may be the last wakes a waiting owner, and so does the put of a
 * stale get. If a client is killed between its put and its wake, its end wakes everybody.
 *
 * One slot; an owner that wants it; a client of two threads: A holds the slot, B gets it by a stale
 * token. A may be killed at any store, and then both are dead.
 *
 * Each of these breaks it:
 *   STALEQUIET  the put after ESTALE wakes nobody
 *   ENDQUIET    the end wakes only the owners of what was held
 *   PUTFIRST    the put reads the waiters word before it drops the hold
 */
byte hold = 1;			/* of the one client */
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
	   :: hold == 0 -> break		/* the scan finds nobody */
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

/* The client may be killed; then the host drops what it holds and wakes. */
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

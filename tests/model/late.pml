/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups of a client's pollers by a work item (kmod/queues.c). A poller looks at its condition
 * only while it is in the queue. A waker changes the condition, then looks whether a work item that
 * wakes all pollers is still to come. If it is, the waker relies on it. If not, the waker notes
 * that a work item is to come, and starts the timer that queues it. The work item clears the note,
 * then wakes the queue in two runs, and rests in between. A waker may queue it midway.
 *
 * There are two wakers, and a poller that looks and sleeps until it is woken. The poller does not
 * sleep for ever after both changes (an invalid end state).
 *
 * Each of these breaks the invariant:
 *   NOTEFIRST  A waker looks for the note before it changes the condition.
 *   CLEARLAST  The work item clears the note after it has woken the queue.
 *   NOSECOND   The work item does not look for a note that was made midway.
 */
#define WAKES 2

byte changed;
bool late, timer, pending, woken, midway;
byte place;		/* the run that wakes the poller: 0 or 1 */

proctype Waker() {
	bool relies;

#ifdef NOTEFIRST
	relies = late;
	changed++;
#else
	changed++;
	relies = late;
#endif
	if
	:: relies
	:: else ->
		atomic {
			if
			:: !late -> late = true; timer = true
			:: else
			fi
		}
	fi
}

/* The timer queues the work item, also while the work item runs. */
active proctype Timer() {
end:	do
	:: atomic { timer -> timer = false; pending = true }
	od
}

active proctype Work() {
end:	do
	:: atomic { pending -> pending = false };
		if
		:: !midway ->
#ifndef CLEARLAST
			late = false;
#endif
			atomic { woken = (woken || place == 0); midway = true; pending = true }
		:: else ->
			atomic { woken = (woken || place == 1); midway = false };
#ifdef CLEARLAST
			late = false;
#endif
#ifndef NOSECOND
			atomic { if :: late -> pending = true :: else fi }
#endif
		fi
	od
}

active proctype Poller() {
	byte seen;

	do
	:: seen = changed;
		if
		:: seen == WAKES -> break
		:: else -> atomic { woken -> woken = false }
		fi
	od
}

init { atomic { if :: place = 0 :: place = 1 fi; run Waker(); run Waker() } }

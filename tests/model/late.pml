/* SPDX-License-Identifier: MIT */
/*
 * Wakes of a queue that is long (kmod/queues.c), of those who poll a client's file or of threads in
 * the request wait: either looks only when it stands in the queue. Who wakes changes something,
 * then looks whether the work is yet to come that wakes all of them, and relies on it if so; else
 * it notes under the queue's lock that it is to come, and starts the timer that queues it. The work
 * takes the note away, then wakes them all, and gives the lock away in between.
 *
 * Two who wake, and a poller that looks and sleeps until it is woken. It may not sleep for ever
 * though all has changed (an invalid end state).
 *
 * Each of these breaks it:
 *   NOTEFIRST  who wakes looks for the note before it changes something
 *   CLEARLAST  the work takes the note away when it has woken all
 */
#define WAKES 2

byte changed;
bool late, timer, pending, woken;

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

/* The timer, and the work, which can be queued anew while it runs. */
active proctype Timer() {
end:	do
	:: atomic { timer -> timer = false; pending = true }
	od
}

active proctype Work() {
end:	do
	:: atomic { pending -> pending = false };
#ifndef CLEARLAST
		late = false;
#endif
		woken = true;
#ifdef CLEARLAST
		late = false
#endif
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

init { atomic { run Waker(); run Waker() } }

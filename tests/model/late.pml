/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups of a client's pollers by a work item (kmod/queues.c). A poller looks at its condition
 * only while it is in the queue. A waker changes the condition, then looks whether a work item that
 * wakes all pollers is still to come. If it is, the waker relies on it. If not, the waker notes
 * that a work item is to come, and starts the timer that queues it. The work item clears the note,
 * then wakes the whole queue, and drops the lock in between.
 *
 * There are two wakers, and a poller that looks and sleeps until it is woken. The poller does not
 * sleep for ever after both changes (an invalid end state).
 *
 * Each of these breaks the invariant:
 *   NOTEFIRST  A waker looks for the note before it changes the condition.
 *   CLEARLAST  The work item clears the note after it has woken the queue.
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

/* The timer queues the work item, also while the work item runs. */
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

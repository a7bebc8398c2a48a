/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups of a client's pollers by a work item (kmod/queues.c). A poller looks at its condition
 * only while it is in the queue. A waker changes the condition, notes that pollers are to be woken,
 * and then queues the work item, unless it is queued already. The work item clears the note, then
 * wakes the queue in two runs, and rests in between. A waker may queue it midway.
 *
 * There are two wakers, and a poller that looks and sleeps until it is woken. One waker may be
 * stopped for ever between its note and its queueing. The poller still sees everything that was
 * changed before the other waker's change (an invalid end state).
 *
 * Each of these breaks the invariant:
 *   QUEUEFIRST  A waker relies on a work item that was queued before it changes the condition.
 *   NOTERELIES  A waker relies on the note of another waker.
 *   CLEARLAST   The work item clears the note after it has woken the queue.
 *   NOSECOND    The work item does not look for a note that was made midway.
 */
#define WAKES 2

byte changed, must;
bool late, pending, woken, midway, stopped;
byte place;		/* the run that wakes the poller: 0 or 1 */

proctype Waker(bool stops) {
	bool relies;
	byte mine;

#ifdef QUEUEFIRST
	relies = pending;
	atomic { changed++; mine = changed };
#else
	atomic { changed++; mine = changed };
#endif
#ifdef NOTERELIES
	atomic { relies = late; late = true };
#else
	late = true;
#endif
	if
	:: relies
	:: else ->
		if
		:: stops -> stopped = true; goto gone
		:: true
		fi;
		pending = true
	fi;
	atomic { if :: mine > must -> must = mine :: else fi };
gone:	skip
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
		:: else ->
			if
			:: atomic { woken -> woken = false }
			:: atomic { stopped && seen >= must -> break }
			fi
		fi
	od
}

init { atomic { if :: place = 0 :: place = 1 fi; run Waker(true); run Waker(false) } }

/* SPDX-License-Identifier: MIT */
/*
 * Polling in the kernel, which takes no lock of the pool (kmod/poll.c, kmod/pages.c). Who polls
 * stands in the queue of pollers, arms the word, looks at pages that the host replaces meanwhile,
 * and sleeps until it is woken. The host ends a client that holds a slot: it shows a copy of the
 * client's page, in which the hold goes; then the word, if it is armed, is disarmed and the queue
 * woken. The old page is freed when all who look have ended that look, and then others use it.
 *
 * Nobody looks at a page that has been freed (an assertion), and nobody sleeps for ever, though
 * the slot is free (an invalid end state).
 *
 * Each of these breaks it:
 *   NOGRACE    the old page is freed as soon as it is not shown any more
 *   FREEFIRST  it is freed before the copy is shown
 *   TWOLOOKS   the place of the page is noted before the look begins
 *   LOOKFIRST  who polls looks first, and arms and stands in the queue then
 *   WAKEFIRST  the queue is woken before the hold goes
 */
#define PAGES 2
bool held[PAGES], freed[PAGES];
byte shown;			/* the page that lookers find */
byte lookers;			/* in a look: the host waits until they have left */
bool armed, queued[2], woken[2];

inline look() {
#ifdef TWOLOOKS
	page = shown;
	lookers++;
#else
	lookers++;
	page = shown;
#endif
	assert(!freed[page]);
	found = !held[page];
	lookers--
}

inline stand() {
	queued[me] = true;
	armed = true
}

proctype Poller(byte me) {
	byte page;
	bool found;

	do
	:: true ->
		woken[me] = false;
#ifdef LOOKFIRST
		look();
		stand();
#else
		stand();
		look();
#endif
		if
		:: found -> break
		:: else -> (woken[me])
		fi
	od
}

inline wake() {
	atomic {
		if
		:: armed -> armed = false; woken[0] = queued[0]; woken[1] = queued[1]
		:: else
		fi
	}
}

inline free_old() {
#ifndef NOGRACE
	(lookers == 0);
#endif
	freed[0] = true
}

proctype Host() {
	held[1] = held[0];
#ifdef FREEFIRST
	free_old();
#endif
	shown = 1;
#ifdef WAKEFIRST
	wake();
	held[1] = false;
#else
	held[1] = false;
	wake();
#endif
#ifndef FREEFIRST
	free_old()
#endif
}

init {
	atomic {
		held[0] = true;
		run Poller(0);
		run Poller(1);
		run Host()
	}
}

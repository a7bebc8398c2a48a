/* SPDX-License-Identifier: MIT */
/*
 * Polling in the kernel, which takes no lock of the pool but look_lock (kmod/poll.c, kmod/pages.c).
 * A poller joins the queue of pollers, arms the word, looks at pages that the host replaces
 * meanwhile, and sleeps until it is woken. The host ends a client that holds a slot. It publishes a
 * copy of the client's page when no poller is inside a look, and drops the hold in the copy. Then,
 * if the word is armed, it disarms the word and wakes the queue. It frees the old page at once;
 * after that the page has other users.
 *
 * No poller looks at a freed page (an assertion), and no poller sleeps for ever although the slot
 * is free (an invalid end state).
 *
 * Each of these breaks the invariant:
 *   NOLOCK     The host publishes the copy while pollers are inside a look.
 *   FREEFIRST  The host frees the old page before it publishes the copy.
 *   TWOLOOKS   A poller reads the page's address before its look begins.
 *   LOOKFIRST  A poller looks first, and then joins the queue and arms the word.
 *   WAKEFIRST  The host wakes the queue before it drops the hold.
 */
#define PAGES 2
bool held[PAGES], freed[PAGES];
byte shown;			/* the page that a poller finds */
byte lookers;			/* pollers inside a look */
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

/* Under look_lock. */
inline show_copy() {
	atomic {
#ifndef NOLOCK
		(lookers == 0);
#endif
		shown = 1
	}
}

proctype Host() {
	held[1] = held[0];
#ifdef FREEFIRST
	freed[0] = true;
#endif
	show_copy();
#ifdef WAKEFIRST
	wake();
	held[1] = false;
#else
	held[1] = false;
	wake();
#endif
	freed[0] = true
}

init {
	atomic {
		held[0] = true;
		run Poller(0);
		run Poller(1);
		run Host()
	}
}

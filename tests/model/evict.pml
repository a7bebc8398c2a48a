/* SPDX-License-Identifier: MIT */
/*
 * A client ends another client, the victim, while the victim runs (kmod/leave.c). The host goes on
 * with a copy of the victim's page. All that other clients can see of the victim, and rely on, is
 * in that copy.
 *
 * The victim has one slot, whose state word is in a page that the victim stores into. A reader
 * takes the slot if it finds it LIVE. The host ends the victim in these steps. It marks the victim
 * as ended. It waits for the page faults that have begun; a fault looks whether the client has
 * ended, then maps the page. It unmaps the page from the victim, copies it, puts the copy in place,
 * and unmaps the old page from all other clients. After that it frees the slot if the slot is
 * WRITING, or if it is LIVE and no client holds it.
 *
 * Each of these breaks the invariant:
 *   COPYFIRST  The host makes the copy before it unmaps the victim's page.
 *   NODRAIN    The host does not wait for the faults that have begun.
 */
#define FREE 0
#define WRITING 1
#define LIVE 2

byte old = WRITING, copy;		/* the state word in both pages */
bool mapped = true;			/* the victim can store into the old page */
bool faulting;				/* a fault holds the page's lock */
bool ended, placed, unmapped;		/* unmapped: for all others */
bool hold, uses, freed;

proctype Victim() {
	bool may;

	/* It publishes. The page may have been unmapped for another reason. */
	if :: mapped = false :: skip fi;
	do
	:: atomic { mapped -> old = LIVE }; break
	:: !mapped ->
		faulting = true;
		may = !ended;
		if :: may -> mapped = true :: else fi;
		faulting = false;
		if :: !may -> break :: else fi
	od
}

proctype Reader() {
	byte n, seen;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		hold = true;
		/* The reader sees its old mapping until the host unmaps it. */
		if
		:: !unmapped -> atomic { if :: !unmapped -> seen = old :: else -> seen = copy fi }
		:: placed -> seen = copy
		fi;
		if
		:: seen == LIVE ->
			uses = true;
			assert(!freed);
			uses = false
		:: else
		fi;
		hold = false
	od
}

proctype Host() {
	bool held;

	ended = true;
#ifdef COPYFIRST
	copy = old;
#endif
#ifndef NODRAIN
	!faulting;
#endif
	mapped = false;
#ifndef COPYFIRST
	copy = old;
#endif
	if :: copy == WRITING -> copy = FREE :: else fi;
	placed = true;
	unmapped = true;
	if
	:: copy == FREE -> atomic { assert(!uses); freed = true }
	:: else ->
		copy = 3;			/* SCANNING: a get waits, and gets no hold */
		held = hold;
		if
		:: !held -> atomic { assert(!uses); copy = FREE; freed = true }
		:: else -> copy = LIVE
		fi
	fi
}

init { atomic { run Victim(); run Reader(); run Host() } }

/* SPDX-License-Identifier: MIT */
/*
 * A client is ended by another while it runs (kmod/leave.c): what others can see of it, and count
 * on, is in the copy by which the host goes on.
 *
 * One slot of the victim, with its state word in a page that the victim stores into; a reader that
 * takes what it finds LIVE; the host, which ends the victim: it says so, waits for the faults that
 * had begun (a fault looks whether the client has ended, then maps the page), unmaps, copies, puts
 * the copy in place and unmaps the old page for all others. After that what was being written is
 * free, and freed; what is LIVE is freed if nobody holds it.
 *
 * Each of these breaks it:
 *   COPYFIRST  the copy is made before the victim's pages are unmapped
 *   NODRAIN    the faults that had begun are not waited for
 */
#define FREE 0
#define WRITING 1
#define LIVE 2

byte old = WRITING, copy;		/* the state word in both pages */
bool mapped = true;			/* the victim can store into the old page */
bool faulting;				/* it holds the page's lock */
bool ended, placed, unmapped;		/* unmapped: for all others */
bool hold, uses, freed;

proctype Victim() {
	bool may;

	/* It publishes; the page may have been unmapped for some other reason. */
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
		/* Until it is unmapped for it, it sees the page that it has mapped. */
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
		copy = 3;			/* SCANNING: a get waits, and is none */
		held = hold;
		if
		:: !held -> atomic { assert(!uses); copy = FREE; freed = true }
		:: else -> copy = LIVE
		fi
	fi
}

init { atomic { run Victim(); run Reader(); run Host() } }

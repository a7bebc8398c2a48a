/* SPDX-License-Identifier: MIT */
/*
 * A client is ended by another while it scans (kmod/unmap.c): what it sees is true as long as it
 * can store, and when it cannot, it finds its end before it writes contents.
 *
 * One LIVE slot of the victim, with its state word in a page that the victim stores into, and the
 * hold of a reader that gets it, in a page that the victim reads. The victim acquires the slot: it
 * looks whether it has ended, marks, looks at the hold, takes, looks again, and fills. The host
 * takes the page with the state word away, then all that the victim reads; where it reads nothing
 * any more it finds zeros, which is also how it finds its end. What it stores where its page has
 * gone waits until it reads nothing, and then goes into a page of nobody.
 *
 * Each of these breaks it:
 *   BLINDFIRST  it loses what it reads before it loses what it stores into
 *   NOWAIT      it stores into nobody's page at once
 */
#define LIVE 2
#define SCANNING 3
#define WRITING 4

byte word = LIVE, scratch;		/* the state word, and what the victim finds in its place */
bool stores = true, blind;		/* the victim stores into the page; reads nothing */
bool hold, uses, filling, over;

inline touch() {
#ifndef NOWAIT
	(stores || blind)
#else
	skip
#endif
}

proctype Victim() {
	bool held, took;

	if :: blind -> goto ended :: else fi;
	touch();
	atomic {
		if
		:: stores && word == LIVE -> word = SCANNING
		:: !stores -> scratch = SCANNING	/* it had loaded LIVE before */
		:: else -> goto ended
		fi
	}
	held = hold && !blind;
	touch();
	atomic {
		if
		:: stores && word == SCANNING ->
			if
			:: held -> word = LIVE
			:: else -> assert(!uses); word = WRITING; took = true
			fi
		:: !stores && scratch == SCANNING -> took = !held
		:: else
		fi
	}
	if
	:: took && !blind ->
		filling = true;
		assert(!uses);
		filling = false
	:: else
	fi;
ended:	skip
}

proctype Reader() {
	hold = true;
	/* What is SCANNING is no hold, or the host says so (resolve). */
	if
	:: word == LIVE ->
		uses = true;
		assert(!filling && word != WRITING);
		over;
		assert(!filling && word != WRITING);
		uses = false
	:: else
	fi;
	hold = false
}

proctype Host() {
#ifdef BLINDFIRST
	blind = true;
	stores = false;
#else
	stores = false;
	blind = true;
#endif
	/* The copy: who ended while it scanned has left the slot LIVE. */
	atomic { if :: word == SCANNING -> word = LIVE :: else fi };
	over = true
}

init { atomic { run Victim(); run Reader(); run Host() } }

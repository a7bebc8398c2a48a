/* SPDX-License-Identifier: MIT */
/*
 * A client ends another client, the victim, while the victim scans (kmod/unmap.c). The victim reads
 * true values as long as it can store. When it cannot, it finds that it has ended before it writes
 * contents.
 *
 * The victim has one LIVE slot. The slot's state word is in a page that the victim stores into. A
 * reader gets the slot; its hold is in a page that the victim reads. To acquire the slot the victim
 * looks whether it has ended, marks the slot, looks at the hold, takes the slot, looks again
 * whether it has ended, and fills the slot. The host unmaps the page with the state word, then all
 * pages that the victim reads. From then on the victim reads zeros, which also tell it that it has
 * ended. A store of the victim to a page that has gone waits until the victim reads zeros, and then
 * goes into a page that no other client sees.
 *
 * Each of these breaks the invariant:
 *   BLINDFIRST  The host unmaps the pages that the victim reads, then those that it stores into.
 *   NOWAIT      A store to a page that has gone does not wait.
 */
#define LIVE 2
#define SCANNING 3
#define WRITING 4

byte word = LIVE, scratch;		/* the state word, and its place after that */
bool stores = true, blind;		/* the victim stores into the page; reads zeros */
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
		:: !stores -> scratch = SCANNING	/* it loaded LIVE before */
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
	/* While the slot is SCANNING this is no hold, unless the host resolves the slot. */
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
	/* In the copy, a slot that an ended client was scanning is LIVE. */
	atomic { if :: word == SCANNING -> word = LIVE :: else fi };
	over = true
}

init { atomic { run Victim(); run Reader(); run Host() } }

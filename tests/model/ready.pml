/* SPDX-License-Identifier: MIT */
/*
 * Order on the GPU (lib/gpu/order.h): the contents of one slot are written by streams of the
 * owner's GPU, which work on after the owner has published. Behind its writes a stream writes a
 * value into the slot's ready word; the metadata say which value makes the contents complete, and
 * who reads them waits for that. The owner may die at any step. Its streams then go on for a while,
 * or vanish at any step. When its process has exited they have gone, and the host writes ENDED into
 * the word if the value is not there, and OVER if it is. Nobody may wait for ever (an invalid end
 * state), and who finds the value there, and not ENDED, reads complete contents.
 *
 * The owner may put a copy into a stream first. Then it publishes the contents on another stream or
 * plainly, or releases the slot, and at last gives its memory back. That waits for the last value,
 * as each next content does. The host is told of each value before the stream is, so it knows
 * whether a dead owner's streams may still write the word: else somebody else gets it.
 *
 * Who holds what, and that a slot is not taken while it is held, is the business of holds.pml.
 *
 * Each of these breaks it:
 *   NOEND    the host writes nothing at the owner's end
 *   ATONCE   the host writes at the owner's end, while its streams may still write an older value
 *   NOCHECK  the reader takes ENDED for a value that makes the contents complete
 *   SAME     each content has the same value
 *   NOWAIT   the owner does not let a stream wait for what another one still writes there
 *   EARLY    the stream writes the value before the contents
 *   PLAIN    the contents are published without an order
 *   UNCOUNTED  a copy has no value behind it
 *   UNTOLD   the host learns of a value when the contents are published
 */
#define CONTENTS 3
#define STREAMS 2
#define OVER 99
#define ENDED 100
#define DIRTY 50

byte ready;			/* the ready word */
byte order;			/* metadata: the value that it must reach */
byte content;			/* of the payload */
byte number;			/* of the contents that are published */
bool live, held, dead;
bool gone;			/* the memory has been given back, */
bool anothers;			/* and the word is another owner's */
byte todo[STREAMS], value[STREAMS], after[STREAMS];	/* what is enqueued in each stream */

active [STREAMS] proctype stream() {
	byte me = _pid;
end:	do
	:: todo[me] ->
		if :: ready >= after[me] :: dead -> todo[me] = 0; goto end fi;
#ifdef EARLY
		ready = value[me];
#endif
		if
		:: atomic { content = DIRTY; assert(!gone) }
		:: dead -> todo[me] = 0; goto end
		fi;
		if
		:: atomic { content = todo[me]; assert(!gone) }
		:: dead -> todo[me] = 0; goto end
		fi;
#ifndef EARLY
		if
		:: !value[me]
		:: atomic { value[me] -> ready = value[me]; assert(!anothers) }
		:: dead -> todo[me] = 0; goto end
		fi;
#endif
		todo[me] = 0
	od
}

inline die() { dead = true; goto gone_too }

/* Put work for the n-th contents into a stream of the program's choice, whose work is done. */
inline enqueue(counted) {
	if
	:: todo[0] == 0 -> s = 0
	:: todo[1] == 0 -> s = 1
	:: die()
	fi;
#ifdef NOWAIT
	after[s] = 0;
#else
	after[s] = last;
#endif
	if
	:: counted ->
#ifdef SAME
		last = 1;
#else
		last++;
#endif
		value[s] = last;
#ifndef UNTOLD
		order = last;
#endif
	:: else -> value[s] = 0
	fi;
	if :: skip :: die() fi;
	todo[s] = n;
	if :: skip :: die() fi
}

inline publish() {
#ifdef PLAIN
	order = 0;
#else
	if
	:: ready >= last -> order = 0
	:: else -> order = last
	fi;
#endif
	if :: skip :: die() fi;
	atomic { number = n; live = true }
}

active proctype owner() {
	byte n, last = 0, s;
	for (n : 1 .. CONTENTS) {
		/* acquire: nobody holds it */
		if :: atomic { !held -> live = false } :: die() fi;
		if
		:: enqueue(true); publish()			/* on the stream */
		::
#ifdef UNCOUNTED
			enqueue(false);				/* a copy, and then: */
#else
			enqueue(true);
#endif
			if
			:: publish()				/* plainly */
			:: enqueue(true); publish()		/* on some stream */
			:: skip					/* it is released */
			fi
		fi
	}
	if
	:: atomic { !held -> live = false };
		if :: ready >= last :: die() fi;
		gone = true
	:: skip
	fi;
	if :: skip :: dead = true fi;
gone_too: skip
}

active proctype host() {
end:	dead;
	if
	:: ready >= order -> ready = OVER; anothers = true
	:: else ->
#ifndef ATONCE
		todo[0] == 0 && todo[1] == 0;
#endif
#ifndef NOEND
		if
		:: ready < order -> ready = ENDED
		:: else -> ready = OVER
		fi
#endif
	fi
}

active proctype reader() {
	byte v, n;
end:	do
	:: atomic { live && !held -> held = true; v = order; n = number };
		ready >= v;
		atomic {
			if
#ifndef NOCHECK
			:: ready >= ENDED
#endif
			:: else -> assert(content == n)
			fi
		};
		held = false
	od
}

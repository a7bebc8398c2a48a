/* SPDX-License-Identifier: MIT */
/*
 * Order on the GPU (lib/gpu/order.h). Streams of the owner's GPU write the contents of one slot,
 * and work on after the owner has published. After its writes a stream writes a value into the
 * slot's ready word. The metadata say which value makes the contents complete, and a reader waits
 * for that value. The owner may die at any step. Its streams then go on for a while, or vanish at
 * any step. When its process has exited, the streams have gone. Then the host writes ENDED into the
 * word if the value is not there, and OVER if it is. No reader waits for ever (an invalid end
 * state), and a reader that finds the value, and not ENDED, reads complete contents.
 *
 * The owner may first put a copy into a stream. Then it publishes the contents on another stream or
 * without a stream, or releases the slot. At last it gives its memory back, and waits for the last
 * value before that. It also waits for the value before it writes the next contents. The host is
 * told each value before the stream gets it. So the host knows whether a dead owner's streams may
 * still write the word. While they may, no other owner gets the word.
 *
 * holds.pml checks the holds, and that no slot is taken while a client holds it.
 *
 * Each of these breaks the invariant:
 *   NOEND    At the owner's end, the host writes no value.
 *   ATONCE   The host writes at the owner's end, while streams may still write an older value.
 *   NOCHECK  A reader takes ENDED for a value that makes the contents complete.
 *   SAME     All contents have one value.
 *   NOWAIT   The owner does not make a stream wait for writes of another stream to the slot.
 *   EARLY    A stream writes the value before the contents.
 *   PLAIN    The owner publishes the contents without an order.
 *   UNCOUNTED  A copy in a stream is not followed by a value.
 *   UNTOLD   The host learns of a value when the contents are published.
 */
#define CONTENTS 3
#define STREAMS 2
#define OVER 99
#define ENDED 100
#define DIRTY 50

byte ready;			/* the ready word */
byte order;			/* in the metadata: the value that makes the contents complete */
byte content;			/* the bytes of the payload */
byte number;			/* which contents are published */
bool live, held, dead;
bool gone;			/* the memory has been given back, */
bool anothers;			/* and another owner has the word */
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

/* Put work for the n-th contents into a stream that the program chooses, and that is idle. */
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
		/* acquire: no client holds the slot */
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
			:: publish()				/* without a stream */
			:: enqueue(true); publish()		/* on some stream */
			:: skip					/* release the slot */
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

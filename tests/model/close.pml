/* SPDX-License-Identifier: MIT */
/*
 * lib/base/handle.h: the end of a pool that keeps no count of its handles. User A drops its handle.
 * User B clones its handle, drops it, then drops the clone. The closer marks the pool as ending and
 * counts the handles in use, one by one. A user's stores go through a store buffer (TSO), which a
 * membarrier drains. The pool is destroyed exactly once, with its last handle, and no thread uses
 * it after that.
 *
 * Each of these breaks the invariant:
 *   NOBARRIER  The closer calls no membarrier.
 *   NOLOOK     A thread that drops a handle does not look whether the pool is ending.
 *   NOCLONE    A thread that clones a handle does not look whether the pool is ending.
 *   MARKFIRST  A thread marks its handle as free before it puts the handle's hold.
 *   NOMARK     A handle does not say whether the closer has counted it.
 */
#define HANDLES 3			/* A's, B's, and B's clone */

bool used[HANDLES], counted[HANDLES];
bool ending, lock, destroyed;
byte out;
/* The store buffers of A and B: one store to used[] each. */
bool stored[2], value[2];
byte where[2];

inline drain(u) {
	if :: stored[u] -> used[where[u]] = value[u]; stored[u] = false :: else fi
}
/* A second store drains the first, because stores stay in order. */
inline put(u, h, x) {
	atomic { drain(u); stored[u] = true; value[u] = x; where[u] = h }
}
inline take(l) { atomic { !l -> l = true } }
inline destroy() { atomic { assert(!destroyed); destroyed = true } }

active proctype Machine() {
end:	do
	:: atomic { stored[0] -> drain(0) }
	:: atomic { stored[1] -> drain(1) }
	od
}

inline drop(u, h) {
#ifdef MARKFIRST
	put(u, h, false);
	assert(!destroyed);		/* the put writes to the pool's pages */
#else
	assert(!destroyed);
	put(u, h, false);
#endif
#ifndef NOLOOK
	if
	:: ending ->
		atomic { !lock -> drain(u); lock = true };
		last = false;
#ifndef NOMARK
		if
		:: counted[h] -> counted[h] = false; out--; last = (out == 0)
		:: else
		fi;
#else
		if :: out > 0 -> out--; last = (out == 0) :: else fi;
#endif
		lock = false;
		if :: last -> destroy() :: else fi
	:: else
	fi
#endif
}

inline clone(u, h) {
	assert(!destroyed);
	put(u, h, true);
#ifndef NOCLONE
	if
	:: ending ->
		atomic { !lock -> drain(u); lock = true };
		if
		:: !counted[h] -> counted[h] = true; out++
		:: else
		fi;
		lock = false
	:: else
	fi
#endif
}

byte done;

proctype A() {
	bool last;

	drop(0, 0);
	done++
}

proctype B() {
	bool last;

	clone(1, 2);
	drop(1, 1);
	drop(1, 2);
	done++
}

proctype Closer() {
	byte h;
	bool last;

	take(lock);
	ending = true;
#ifndef NOBARRIER
	atomic { drain(0); drain(1) };
#endif
	/* It begins at the clone's place, so that B can make the clone behind it. */
	h = HANDLES;
	do
	:: h > 0 ->
		h--;
		if
		:: used[h] -> counted[h] = true; out++
		:: else
		fi
	:: else -> break
	od;
	last = (out == 0);
	lock = false;
	if :: last -> destroy() :: else fi;
	done++
}

init {
	used[0] = true; used[1] = true;
	atomic { run A(); run B(); run Closer() };
	done == 3;
	assert(destroyed)
}

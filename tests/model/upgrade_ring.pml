/* SPDX-License-Identifier: MIT */
/*
 * Writing in place and the owner's ring (core/upgrade.c): the host finds out whether a subscriber
 * has yet to receive the slot's publication, while the owner is in the middle of publishing it.
 *
 * There is one publication. Its entry is complete before the tail moves past it, and receivers look
 * only at the entry. Client 0 receives it and upgrades the slot. Client 1 follows the owner from
 * the beginning, and client 2 begins at any time. A client that follows takes a hold, looks at the
 * entry, and moves its cursor.
 *
 * Each of these breaks the invariant:
 *   BEYOND      The host takes a publication at the tail for one that all have passed.
 *   CURSORS     The host takes a publication at the tail for one in flight only if a cursor says
 *               so.
 *   HOLDSFIRST  The host looks at the holds, then at the cursors.
 *   NOHOLDS     The host looks at the cursors only.
 */
#define NONE 9

bool entry;			/* it is complete, at place 0 */
byte tail;
bool follows[3];		/* the host's bits */
byte cursor[3] = NONE;
byte hold[3];
bool writing;			/* ghost: client 0 writes the contents */

active proctype Owner() {
	entry = true;
	tail = 1
}

/* Clients 1 and 2 look at the contents between the hold and the put. */
inline receive(me) {
	if
	:: cursor[me] == 0 && entry ->
		hold[me]++;
		if
		:: entry ->
			cursor[me] = 1;
			assert(!writing);
			assert(!writing)
		:: else
		fi;
		hold[me]--
	:: cursor[me] != 0
	fi
}

proctype Old() {
	receive(1)
}

/* The host sets the cursor to 0, then the bit, and after a full barrier reads the tail. */
proctype New() {
	byte t;

	cursor[2] = 0;
	follows[2] = true;
	t = tail;
	cursor[2] = t;
	receive(2)
}

inline look_at_cursors() {
	t = tail;
	c = 0; flies = false;
	do
	:: c == 3 -> break
	:: c < 3 ->
		if
#ifdef CURSORS
		:: follows[c] && cursor[c] == 0 -> flies = true
#else
		:: follows[c] && cursor[c] < t -> flies = true
#endif
		:: else
		fi;
		c++
	od;
#ifndef CURSORS
#ifndef BEYOND
	flies = flies || t == 0
#endif
#endif
}

inline look_at_holds() {
#ifdef NOHOLDS
	held = false
#else
	held = (hold[1] != 0);
	held = held || (hold[2] != 0)
#endif
}

proctype Upgrader() {
	byte c, t;
	bool flies, held;

	entry;			/* it waits for the publication */
	hold[0] = 1;
	cursor[0] = 1;
#ifdef HOLDSFIRST
	look_at_holds();
	look_at_cursors();
#else
	look_at_cursors();
	look_at_holds();
#endif
	if
	:: !flies && !held -> writing = true
	:: else
	fi
}

init {
	atomic {
		follows[0] = true; cursor[0] = 0;
		follows[1] = true; cursor[1] = 0;
		run Old(); run New(); run Upgrader()
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * I6, forwarding: after the mark SCANNING a reference moves inside one client only, from its hold
 * to its ring. So a scan that looks at all holds and then at the rings misses no reference. I5: a
 * client that drops the last reference to a forwarded slot wakes an owner that sleeps.
 *
 * The owner of one slot scans it until it has it back. Client 0 holds the contents and forwards
 * them. Client 1 receives them from client 0's ring and forwards them as well. Client 2 receives
 * them from client 1's ring. Each receiver is waited for. Clients 0 and 1 may die at any store;
 * then the host repairs the ring, drops the holds and wakes the owner. No client believes that it
 * has contents that were replaced, no client loses a publication in flight, and the owner gets its
 * slot.
 *
 * Each of these breaks the invariant:
 *   FORWARDSFIRST  The scan looks at the rings, then at the holds.
 *   NOFORWARDS     The scan does not look at the rings.
 *   NOGET          A receiver looks only at the entry, not at the state word.
 *   LOOKFIRST      A receiver looks at the state word, then takes its hold.
 *   NOTELATE       A client notes that it has forwarded the slot after the entry is complete.
 *   NOTEGONE       The end of a client drops its notes with its holds.
 *   PASSLATE       A receiver puts its hold, and moves its cursor after that.
 *   ENDQUIET       The end of a client wakes no owner.
 */
#define C 3
#define LIVE 2
#define SCANNING 3
#define WRITING 1
#define OPEN 1
#define COMPLETE 2
#define VOID 3

byte st = LIVE, gen;		/* one word */
byte hold[C];
bool note[C];			/* the client has forwarded the slot */
byte entry[C];			/* the entry of its ring */
bool passed[C];			/* the ring's subscriber has passed the entry, or ended */
bool bel[C];			/* ghost: it has the contents of generation 0 */
bool armed;			/* the owner's waiters word */

inline wake() {
	if :: armed -> armed = false :: else fi
}

inline holds() {
	c = 0;
	do
	:: c < C -> if :: hold[c] != 0 -> used = true :: else fi; c++
	:: else -> break
	od
}

inline forwards() {
#ifndef NOFORWARDS
	c = 0;
	do
	:: c < C ->
		if
		:: note[c] -> if :: !passed[c] && entry[c] == COMPLETE -> used = true :: else fi
		:: else
		fi;
		c++
	:: else -> break
	od
#else
	skip
#endif
}

proctype Owner() {
	byte c;
	bool used;

	do
	:: armed = true;
		st = SCANNING;
		used = false;
#ifdef FORWARDSFIRST
		forwards();
		holds();
#else
		holds();
		forwards();
#endif
		if
		:: !used -> atomic {
			assert(!bel[0] && !bel[1] && !bel[2]);
			gen = 1; st = WRITING
		   };
			break
		:: else -> st = LIVE; !armed
		fi
	od
}

/* The host ends client @me, which subscribes to the ring of client @me - 1. */
inline ended(me) {
	bel[me] = false;
	if :: me > 0 -> passed[me - 1] = true :: else fi;
	if :: entry[me] < COMPLETE -> entry[me] = VOID :: else fi;
#ifdef NOTEGONE
	note[me] = false;
#endif
	hold[me] = 0;
#ifndef ENDQUIET
	wake()
#endif
}

proctype Client(byte me) {
	bool sure;

	if
	:: me == 0 -> goto has
	:: else
	fi;
	entry[me - 1] > OPEN;
	if :: entry[me - 1] == VOID -> goto dies :: else fi;
again:
#ifdef LOOKFIRST
	sure = (gen == 0 && st == LIVE);
	if :: !sure -> assert(gen == 0); goto again :: else fi;
	hold[me] = 1;
	bel[me] = true;
#else
	hold[me] = 1;
	if :: skip :: me < 2 -> goto dies fi;
#ifdef NOGET
	bel[me] = true; assert(gen == 0);
#else
	if
	:: atomic { gen == 0 && st == LIVE -> bel[me] = true }
	:: gen != 0 -> assert(false)	/* the owner waits for it */
	/* SCANNING: look again */
	fi;
#endif
#endif
#ifndef PASSLATE
	passed[me - 1] = true;
#endif
has:
	if :: skip :: me < 2 -> goto dies fi;
	assert(gen == 0);
	if
	:: me < 2 ->
#ifndef NOTELATE
		note[me] = true;
#endif
		if :: skip :: goto dies fi;
		entry[me] = OPEN;
		if :: skip :: goto dies fi;
		entry[me] = COMPLETE;
		if :: skip :: goto dies fi;
#ifdef NOTELATE
		note[me] = true;
#endif
	:: else
	fi;
	assert(gen == 0);
	bel[me] = false;
	hold[me] = 0;
	wake();
#ifdef PASSLATE
	if :: me > 0 -> passed[me - 1] = true :: else fi;
#endif
	goto out;
dies:
	ended(me);
out:
	skip
}

init {
	atomic {
		hold[0] = 1; bel[0] = true;
		run Owner(); run Client(0); run Client(1); run Client(2)
	}
}

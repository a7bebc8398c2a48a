/* SPDX-License-Identifier: MIT */
/*
 * I1 for a client that is not a holder of every group. Scans look at its holds only if it is among
 * the holders of the slot's group. So a get checks that its client is one, for this tenancy of the
 * slot, and then looks at the slot. It may take its hold before or after that check.
 *
 * There is one slot. It has the contents of a first owner, which admits the client, and then those
 * of a second owner, which does not until the host is told so at some moment. The second owner
 * scans the slot twice. The client gets the second contents in two threads, with a token that it
 * has from elsewhere: one thread gets by the token, and the other gets what it has received.
 *
 * Each of these breaks the invariant:
 *   NOCHECK    A get does not look whether its client is among the holders.
 *   LOOKFIRST  A get looks at the slot, and then whether its client is among the holders.
 *   NOTENANCY  A get looks at the holders without a check of the slot's tenancy.
 */
#define FREE 0
#define WRITING 1
#define LIVE 2
#define SCANNING 3

byte st = FREE, gen = 1;		/* one word; 2: the second owner's first contents */
byte tenancy = 1;
bool in = true;				/* the client is among the holders */
byte hold, uses;

proctype Owner() {
	byte n;
	bool looks, held;

	/* The host has given it the group, after it saw that no client holds any of it. */
	in = false;
	tenancy = 2;
	atomic { gen = 2; st = LIVE };
	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		atomic { if :: st == LIVE && gen == 2 -> st = SCANNING :: else -> break fi };
		looks = in;			/* first the group's row, */
		held = false;
		if :: looks -> held = (hold != 0) :: else fi;	/* then the holds */
		if
		:: held -> st = LIVE
		:: !held -> atomic { assert(!uses); st = WRITING; gen = 3 }
		fi
	od
}

proctype Host() { tenancy == 2; in = true }

inline check() {
#ifndef NOTENANCY
	may = (tenancy == 2);
#endif
#ifndef NOCHECK
	if :: may -> may = in :: else fi
#endif
}

inline look() {
	do
	:: atomic { st == LIVE && gen == 2 -> good = true }; break
	:: atomic { gen == 3 -> good = false }; break
	:: atomic { gen == 1 -> good = false }; break
	od
}

proctype Getter(bool first) {
	bool may = true, good;

	if :: first -> check() :: else fi;
	if
	:: may ->
		hold++;
#ifdef LOOKFIRST
		look();
		if :: !first -> check(); good = good && may :: else fi;
#else
		if :: !first -> check() :: else fi;
		look();
		good = good && may;
#endif
		if
		:: good ->
			atomic { assert(gen == 2); uses++ };
			atomic { assert(gen == 2); uses-- }
		:: else
		fi;
		hold--
	:: else
	fi
}

init { atomic { run Owner(); run Host(); run Getter(true); run Getter(false) } }

/* SPDX-License-Identifier: MIT */
/*
 * I1 for a client that is not counted everywhere: scans look at its holds only if it is among the
 * holders of the slot's group, so a get has to find that it is, for this tenancy of the slot, and
 * then look at the slot. Whether it takes its hold before or after it finds that does not matter.
 *
 * One slot: the contents of one owner, who lets the client in; then of another one, who does not
 * until the host is told so at some moment. The second owner scans it twice. The client gets the
 * second contents by their token, which it has from elsewhere, in two threads: as by a token, and
 * as what it has received.
 *
 * Each of these breaks it:
 *   NOCHECK    a get does not look whether its client is among the holders
 *   LOOKFIRST  it looks at the slot, and then whether its client is
 *   NOTENANCY  it looks there, whosever the slot is at that moment
 */
#define FREE 0
#define WRITING 1
#define LIVE 2
#define SCANNING 3

byte st = FREE, gen = 1;		/* one word; 2 is the second owner's first contents */
byte tenancy = 1;
bool in = true;				/* the client is among the holders */
byte hold, uses;

proctype Owner() {
	byte n;
	bool looks, held;

	/* The group is its own: the host has seen that nobody has any of it. */
	in = false;
	tenancy = 2;
	atomic { gen = 2; st = LIVE };
	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		atomic { if :: st == LIVE && gen == 2 -> st = SCANNING :: else -> break fi };
		looks = in;			/* the group's row, */
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

/* SPDX-License-Identifier: MIT */
/*
 * I1 for a client that is counted only from its first subscribe on: its holds are not looked at
 * before, so a get by a token has to find that it is counted before it takes its hold.
 *
 * One slot; its owner, who scans it twice; the host, which counts the client at some moment; the
 * client, which gets by the token in two threads.
 *
 * Each of these breaks it:
 *   NOCHECK    a get does not look whether its client is counted
 *   HOLDFIRST  it takes its hold and looks at the slot, and then whether it is counted
 */
#define LIVE 2
#define SCANNING 3
#define WRITING 1

byte st = LIVE, gen = 1;		/* one word */
bool counted;
byte hold, uses;

proctype Owner() {
	byte n;
	bool looks, held;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		atomic { if :: st == LIVE && gen == 1 -> st = SCANNING :: else -> break fi };
		looks = counted;		/* the client table, */
		held = false;
		if :: looks -> held = (hold != 0) :: else fi;	/* then the holds */
		if
		:: held -> st = LIVE
		:: !held -> atomic { assert(!uses); st = WRITING; gen = 2 }
		fi
	od
}

proctype Host() { counted = true }

proctype Getter() {
	bool may = true, good;

#ifndef NOCHECK
#ifndef HOLDFIRST
	may = counted;
#endif
#endif
	if
	:: may ->
		hold++;
		do
		:: atomic { st == LIVE && gen == 1 -> good = true }; break
		:: atomic { gen != 1 -> good = false }; break
		od;
#ifdef HOLDFIRST
		good = good && counted;
#endif
		if
		:: good ->
			atomic { assert(gen == 1); uses++ };
			atomic { assert(gen == 1); uses-- }
		:: else
		fi;
		hold--
	:: else
	fi
}

init { atomic { run Owner(); run Host(); run Getter(); run Getter() } }

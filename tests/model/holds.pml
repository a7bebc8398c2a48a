/* SPDX-License-Identifier: MIT */
/*
 * I1 with plain tokens: a get takes its hold before it looks at the state word, and a scan marks
 * the slot before it looks at the holds. The model also checks the end of a client.
 *
 * The owner of one slot scans it over and over. NC clients get the slot by any token that they have
 * heard of, put it, and may die at any store; the host drops the holds of a dead client. No client
 * holds contents that were replaced, and no hold stays for ever.
 *
 * Each of these breaks the invariant:
 *   NOSCAN     The scan does not mark the slot.
 *   LOOKFIRST  A get looks at the state word, then takes its hold.
 *   NOGEN      A get does not compare the generation.
 *   KEEPDEAD   The end of a client leaves its holds.
 */
#ifndef NC
#define NC 2
#endif
#ifndef GMAX
#define GMAX 2
#endif
#ifndef OPS
#define OPS 2
#endif
#define LIVE 2
#define SCANNING 3

byte st = LIVE, gen;		/* one word */
byte hold[NC];
byte bel[NC], bgen[NC];			/* ghosts */
byte heard;			/* the newest token that clients know; they know older ones */
byte dead;

proctype Owner() {
	byte i;
	bool ok, last;

	do
	:: gen < GMAX ->
again:
		last = (dead == NC);
#ifndef NOSCAN
		st = SCANNING;
#endif
		ok = true; i = 0;
		do
		:: i < NC -> if :: hold[i] != 0 -> ok = false :: else fi; i++
		:: else -> break
		od;
		if
		:: ok -> atomic {
			i = 0;
			do
			:: i < NC -> assert(bel[i] == 0 || bgen[i] != gen); i++
			:: else -> break
			od;
			gen++; st = LIVE; heard = gen
		   }
		:: else ->
			st = LIVE;
			assert(!last);		/* all clients are dead, so there is no hold */
			dead == NC		/* it sleeps until the last client has died */
		fi
	:: else -> break
	od
}

proctype Client(byte me) {
	byte t, n;
	bool mine;

	do
	:: n == OPS -> break
	:: n < OPS && bel[me] == 0 ->
		n++;
		if :: t = heard :: heard > 0 -> t = heard - 1 fi;
		mine = false;
#ifdef LOOKFIRST
		if :: gen == t && st == LIVE -> mine = true :: else fi;
		hold[me]++;
		if :: mine -> atomic { bel[me] = 1; bgen[me] = t } :: else -> hold[me]-- fi
#else
		hold[me]++;
		if :: skip :: goto dies fi;
		if
#ifdef NOGEN
		:: atomic { st == LIVE -> bel[me] = 1; bgen[me] = t; assert(gen == t) }
#else
		:: atomic { gen == t && st == LIVE -> bel[me] = 1; bgen[me] = t }
		:: gen != t -> hold[me]--
#endif
		/* SCANNING: look again */
		fi
#endif
	:: bel[me] != 0 ->
		assert(bgen[me] == gen);
		bel[me] = 0;
		hold[me]--
	:: goto dies
	od;
dies:
	bel[me] = 0;
#ifndef KEEPDEAD
	hold[me] = 0;
#endif
	atomic { dead++ }
}

init {
	atomic { run Owner(); run Client(0); run Client(1);
#if NC > 2
		run Client(2)
#endif
	}
}

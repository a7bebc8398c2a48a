/* SPDX-License-Identifier: MIT */
/*
 * I4 for threads of one client: a cursor never goes back, and the owner's operations are serial.
 *
 * CURSOR: two threads receive with one cursor while the owner reclaims what all subscribers have
 * passed. PUBLISH: one thread of the owner publishes while another acquires; a subscriber waits for
 * the entry. WAITS: a publisher waits for room in its ring and sleeps; its subscriber keeps what it
 * receives and puts nothing.
 *
 * Each of these breaks the invariant:
 *   NOMUTEX  (CURSOR or PUBLISH) There is no lock.
 *   NOWAKE   (WAITS) Receive moves the cursor and does not wake the publisher.
 */
#ifdef NOMUTEX
#define LOCK(m) skip
#else
#define LOCK(m) atomic { !m -> m = true }
#endif

#ifdef CURSOR
#define D 2
byte pos[D], es[D], eg[D], tail, cursor, hold[2], gen[2], rp[2], bel[2];
bool mutex;

active proctype Owner() {
	byte b, x, n;

	do
	:: n < 6 ->
		b = n % 2; n++;
		if
		:: rp[b] > 0 ->
			if
			:: rp[b] - 1 >= cursor && rp[b] - 1 + D >= tail -> goto busy
			:: else
			fi;
			if :: hold[b] != 0 -> goto busy :: else -> assert(bel[b] == 0); gen[b]++ fi
		:: else
		fi;
		x = tail % D; rp[b] = tail + 1; pos[x] = 0; es[x] = b; eg[x] = gen[b];
		pos[x] = tail + 1; tail++;
busy:		skip
	:: else -> break
	od
}

proctype Thread() {
	byte i, s, g, n;

	do
	:: n < 3 ->
		n++;
		LOCK(mutex);
		i = cursor;
		if
		:: pos[i % D] == i + 1 ->
			s = es[i % D]; g = eg[i % D]; hold[s]++;
			if
			:: atomic { pos[i % D] == i + 1 -> assert(gen[s] == g); bel[s]++ };
				assert(cursor <= i + 1);	/* the cursor does not go back */
				cursor = i + 1; mutex = false; bel[s]--; hold[s]--
			:: else -> hold[s]--; mutex = false
			fi
		:: else -> mutex = false
		fi
	:: else -> break
	od
}
init { atomic { run Thread(); run Thread() } }
#endif

#ifdef PUBLISH
byte st = 1, gen = 1, rp, tail, pos, hold, cursor;	/* one slot, WRITING; a ring of one */
bool mutex;

active proctype Publisher() {
	LOCK(mutex);
	st = 2;			/* first LIVE, then the position */
	rp = tail + 1; pos = 1; tail++;
	mutex = false
}

active proctype Acquirer() {
	bool ok, busy;

	LOCK(mutex);
	atomic { if :: st == 2 -> st = 3; ok = true :: else fi };
	if
	:: ok ->
		if :: rp > 0 && rp - 1 >= cursor -> busy = true :: else fi;
		if :: hold != 0 -> busy = true :: else fi;
		if :: busy -> st = 2 :: else -> gen = 2; st = 1 fi
	:: else
	fi;
	mutex = false
}

active proctype Subscriber() {
	pos == 1;
	hold++;
	assert(gen == 1)	/* it is published and not overrun, so it is there */
}
#endif

#ifdef WAITS
#define CAP 2
#define TOTAL 4
byte tail, cursor;
bool parmed, sarmed;
byte pcount, scount;

active proctype Publisher() {
	byte v;

	do
	:: tail == TOTAL -> break
	:: else ->
		do
		:: atomic { parmed = true; v = pcount };
		   if :: tail - cursor < CAP -> break :: else -> (pcount != v) fi
		od;
		tail++;
		atomic { if :: sarmed -> sarmed = false; scount++ :: else fi }
	od
}

active proctype Subscriber() {
	byte v;

	do
	:: cursor == TOTAL -> break
	:: else ->
		do
		:: atomic { sarmed = true; v = scount };
		   if :: tail != cursor -> break :: else -> (scount != v) fi
		od;
		cursor++;
#ifndef NOWAKE
		atomic { if :: parmed -> parmed = false; pcount++ :: else fi }
#endif
	od
}
#endif

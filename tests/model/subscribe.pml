/* SPDX-License-Identifier: MIT */
/*
 * I2, I3 and I5 when a client subscribes while the owner works. Its cursor pins everything before
 * the owner may see it, then moves to the tail. Then the owner is woken, because it may have gone
 * to sleep when it saw that cursor.
 *
 * One owner with two slots and a ring of two entries publishes, scans, and sleeps when no slot is
 * free. One client subscribes at some time, then receives and puts until it has received all. The
 * client gets each publication from the time when the owner counts it as a subscriber.
 *
 * Each of these breaks the invariant:
 *   TAILFIRST  The host reads the tail before it sets the client's bit.
 *   NOPIN      The cursor is NONE until it is at the tail.
 *   NOWAKE     The host does not wake the owner afterwards.
 *   BITCOUNTS  The owner counts the client as soon as the bit is set.
 */
#ifndef NPUB
#define NPUB 4
#endif
#define D 2
#define LIVE 2
#define SCANNING 3
#define WRITING 1
#define NONE 99

byte st[2] = LIVE, gen[2], rp[2];
byte pos[D], es[D], eg[D], tail;
byte cursor = NONE, hold[2], bel[2];
bool follows, subscribing, counted, armed, over;
byte first;
byte count;

inline wake() {
	atomic { if :: armed -> armed = false; count++ :: else fi }
}

inline scan() {
	st[b] = SCANNING; ok = true;
	if
	:: follows ->
		if
		:: rp[b] != 0 && rp[b] - 1 < tail && rp[b] - 1 + D >= tail &&
		   rp[b] - 1 >= cursor -> ok = false
		:: else
		fi
	:: else
	fi;
	if :: hold[b] != 0 -> ok = false :: else fi;
	if
	:: ok -> atomic { assert(bel[b] == 0); gen[b]++; st[b] = WRITING }
	:: else -> st[b] = LIVE
	fi
}

inline look() {
	b = 0; scan();
	if :: !ok -> b = 1; scan() :: else fi
}

proctype Owner() {
	byte b, n, v;
	bool ok;

	do
	:: n == NPUB -> break
	:: n < NPUB ->
		do
		:: atomic { armed = true; v = count };
		   look();
		   if :: ok -> break :: else -> (count != v) fi
		od;
		if
		:: !counted && follows ->
			first = tail;
#ifndef BITCOUNTS
			if :: !subscribing -> counted = true :: else fi
#else
			counted = true
#endif
		:: else
		fi;
		rp[b] = tail + 1;
		st[b] = LIVE;
		pos[tail % D] = 0;
		es[tail % D] = b;
		eg[tail % D] = gen[b];
		pos[tail % D] = tail + 1;
		tail++;
		n++
	od;
	over = true
}

proctype Client() {
	byte i, s, g, t;

	/* the host does this for the client */
#ifdef TAILFIRST
	t = tail;
#endif
#ifndef NOPIN
	cursor = 0;
#endif
	subscribing = true;
	follows = true;
#ifndef TAILFIRST
	t = tail;
#endif
	cursor = t;
	subscribing = false;
	assert(!counted || t <= first);
	i = t;
#ifndef NOWAKE
	wake();
#endif
	do
	:: pos[i % D] == i + 1 ->
		s = es[i % D]; g = eg[i % D];
		hold[s]++;
		if
		:: atomic {
			pos[i % D] == i + 1 -> assert(gen[s] == g && st[s] != WRITING); bel[s] = 1
		   };
			cursor = i + 1; i++;
			assert(gen[s] == g);
			bel[s] = 0
		:: else
		fi;
		hold[s]--;
		wake()
	:: pos[i % D] > i + 1 -> i++; cursor = i; wake()
	:: over && i == tail -> break
	od
}

init {
	atomic { run Owner(); run Client() }
}

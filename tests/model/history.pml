/* SPDX-License-Identifier: MIT */
/*
 * I1 for history: a late subscriber reads entries that were published before it came, while their
 * owner reclaims the slots and overwrites the entries. Nothing protects these entries, because the
 * subscriber's cursor is at the tail (I4). So the subscriber takes a hold, looks at the entry
 * again, then at the state word, as a get does.
 *
 * One owner with B slots and a ring of D entries publishes NPUB times. It remembers which cursors
 * it has seen, and evicts each slot that no client holds. One client subscribes at some time and
 * receives the earlier entries of the ring. Every store is a step; the fields of an entry can be
 * read torn.
 *
 * Each of these breaks the invariant:
 *   NOLOOK     The subscriber does not look at the state word, as if the slot were in flight.
 *   LOOKFIRST  The subscriber looks at the state word, then takes the hold.
 *   NORECHECK  The subscriber does not look at the entry a second time.
 *   NOSCAN     The owner looks at the holds without marking the slot.
 *   PINNED     The subscriber moves its cursor back for protection, instead of looking at the state
 *              word.
 */
#ifndef B
#define B 3
#endif
#ifndef NPUB
#define NPUB 5
#endif
#define D 2
#define V 64			/* XMEM_ENTRY_VOID */
#define WRITING 1
#define LIVE 2
#define SCANNING 3
#define NONE 99
#ifdef PINNED
#define NOLOOK
#endif

byte st[B] = WRITING, gen[B], rp[B];	/* st and gen are one word */
byte pos[D], es[D], eg[D], el[D], tail;	/* el stands for the other fields; it is the place */
byte cursor = NONE;
bool follows;
byte hold[B], bel[B];			/* bel: ghost, the client believes it holds the slot */

#define IS_PASSED(b) (!follows || rp[b] == 0 || rp[b] - 1 < cursor || rp[b] - 1 + D < tail)

inline scan() {
	passed = IS_PASSED(b);
#ifndef NOSCAN
	st[b] = SCANNING;
#endif
#ifdef PINNED
	ok = passed;		/* the owner keeps what a cursor pins, if it sees the cursor */
#else
	ok = true;
	if
	:: !passed && pos[(rp[b] - 1) % D] == rp[b] -> pos[(rp[b] - 1) % D] = rp[b] + V
	:: else
	fi;
#endif
	if :: hold[b] != 0 -> ok = false :: else fi;
	if
	:: ok -> atomic { assert(bel[b] == 0); gen[b]++; st[b] = WRITING }	/* P1 */
	:: else -> st[b] = LIVE
	fi
}

proctype Owner() {
	byte b, n;
	bool ok, passed;

	do
	:: n == NPUB -> break
	:: n < NPUB ->
		if :: b = 0 :: b = 1 :: b = B - 1 fi;
		if :: st[b] == LIVE -> scan() :: else fi;
		if
		:: st[b] == WRITING ->
			rp[b] = tail + 1;
			st[b] = LIVE;
			pos[tail % D] = 0;
			es[tail % D] = b;
			eg[tail % D] = gen[b];
			el[tail % D] = tail;
			pos[tail % D] = tail + 1;
			tail++;
			n++
		:: else
		fi
	od
}

/* Slot s has contents of generation g, those of place p, and all fields fit together. */
inline use() {
	assert(gen[s] == g && st[s] != WRITING && l == p);
	bel[s] = 1;
}

proctype Client() {
	byte p, t, s, g, l;
	bool good, again;

	cursor = 0;
	follows = true;
	t = tail;
	p = (t > D -> t - D : 0);
#ifdef PINNED
	cursor = p;
#else
	cursor = t;
#endif
	do
	:: p == t -> break
	:: p < t && pos[p % D] != p + 1 -> p++
	:: p < t && pos[p % D] == p + 1 ->
		s = es[p % D];
		g = eg[p % D];
		l = el[p % D];
		again = false;
#ifdef LOOKFIRST
		good = gen[s] == g && st[s] == LIVE;
		hold[s]++;
		if :: pos[p % D] != p + 1 -> good = false :: else fi;
		if :: good -> atomic { use() } :: else fi;
#else
		hold[s]++;
#ifdef NORECHECK
		good = true;
#else
		good = pos[p % D] == p + 1;
#endif
#ifdef NOLOOK
		if :: good -> atomic { use() } :: else fi;
#else
		if
		:: !good
		:: atomic { good && gen[s] == g && st[s] == LIVE -> use() }
		:: atomic { good && gen[s] == g && st[s] == SCANNING -> again = true }
		:: atomic { good && (gen[s] != g || st[s] == WRITING) -> good = false }
		fi;
#endif
#endif
		if
		:: again
		:: !again ->
			if :: good -> assert(gen[s] == g); bel[s] = 0 :: else fi;
			p++
		fi;
		hold[s]--
	od
}

init {
	atomic { run Owner(); run Client() }
}

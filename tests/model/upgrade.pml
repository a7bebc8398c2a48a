/* SPDX-License-Identifier: MIT */
/*
 * Writing in place (core/upgrade.c): the host makes a slot's only holder its writer, while the
 * owner scans, others get the slot and have it resolved, and the owner or the writer dies.
 *
 * There is one slot. Its owner scans twice, and may die. A client holds the slot and upgrades it,
 * and then publishes, gives up or dies. A getter gets the old contents. The host does one thing at
 * a time, and reclaims the slots of a dead owner.
 *
 * Each of these breaks the invariant:
 *   PLAIN       The owner marks by a plain store, as it does where upgrades are impossible.
 *   HOLDSFIRST  The host looks at the holds, then marks the slot.
 *   FORCED      The host stores its verdict instead of a CAS.
 *   NONUMBER    A scan does not tell its own mark from that of another scan.
 *   ENDFREES    The owner's end frees a slot that another client writes.
 *   GENSTAYS    An upgraded slot keeps its generation.
 *   SKIPMARK    The host does not mark the slot at all.
 */
#define FREE 0
#define WRITING 1
#define LIVE 2
#define SCANNING 3
#define UPGRADED 4

byte st = LIVE, gen = 1, number = 0;	/* one word */
byte hold[2];				/* 0: the upgrader, 1: the getter */
bool upgrader;				/* the host's word: a client writes in place */
byte writer;				/* ghost: 1 the owner, 2 the upgrader */
bool believes;				/* ghost: the getter looks at the contents 1 */
bool changed;				/* ghost: the contents 1 are gone */
bool dead, freed, busy;			/* dead owner; freed slot; busy host */

#ifdef NONUMBER
#define MINE (st == SCANNING && gen == g)
#else
#define MINE (st == SCANNING && gen == g && number == my)
#endif
#define NOBODY (!believes && writer == 0 && !freed)

inline lock() { atomic { !busy -> busy = true } }
inline unlock() { busy = false }

inline mark(ok) {
	ok = false;
	atomic {
		if
		:: st == LIVE -> g = gen; st = SCANNING; number++; my = number; ok = true
		:: else
		fi
	}
}

/* The host does this when the owner has ended, because it owns the pages then. */
inline end_owner() {
	lock();
	atomic {
		dead = true;
		if
		:: upgrader ->
#ifdef ENDFREES
			st = FREE
#else
			skip
#endif
		:: !upgrader && st == SCANNING -> st = LIVE
		:: !upgrader && st == WRITING -> st = FREE; writer = 0
		:: else
		fi
	};
	unlock()
}

proctype Owner() {
	byte n, my, g;
	bool ok, held;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		if
		:: atomic {
				st == FREE && !dead ->
				assert(NOBODY); st = WRITING; gen++; writer = 1
			};
			n = 2
		:: true ->
#ifdef PLAIN
			ok = false; held = false;
			atomic { if :: st == LIVE -> g = gen; held = true :: else fi };
			if
			:: held ->
				atomic { st = SCANNING; gen = g; number++; my = number; ok = true }
			:: else
			fi;
#else
			mark(ok);
#endif
			if
			:: ok ->
				held = (hold[0] != 0);
				held = held || (hold[1] != 0);
				atomic {
					if
					:: MINE && held -> st = LIVE
					:: MINE && !held ->
						assert(NOBODY);
						st = WRITING; gen++; writer = 1; n = 2
					:: else
					fi
				}
			:: else
			fi
		fi
	od;
	if :: end_owner() :: skip fi
}

/* The host reclaims the slot of a dead owner whenever it is told to. */
proctype Reclaim() {
	byte n, my, g;
	bool ok, held;

	do
	:: n == 2 || freed -> break
	:: n < 2 && dead && !freed ->
		n++;
		lock();
		if
		:: upgrader
		:: !upgrader && st == FREE -> atomic { assert(NOBODY); freed = true }
		:: !upgrader && st == LIVE ->
			mark(ok);
			if
			:: ok ->
				held = (hold[0] != 0);
				held = held || (hold[1] != 0);
				atomic {
					if
					:: MINE && held -> st = LIVE
					:: MINE && !held -> assert(NOBODY); st = FREE; freed = true
					:: else
					fi
				}
			:: else
			fi
		:: else
		fi;
		unlock()
	:: timeout -> break
	od
}

inline begin() {
	lock();
	won = false; held = false;
#ifdef HOLDSFIRST
	held = (hold[1] != 0);
#endif
	if
	:: st == LIVE && gen == 1 ->
#ifdef SKIPMARK
		g = 1; ok = true;
#else
		mark(ok);
#endif
		if
		:: ok ->
#ifndef HOLDSFIRST
			held = (hold[1] != 0);
#endif
			atomic {
#ifdef SKIPMARK
#define GOOD (st == LIVE && gen == g)
#else
#define GOOD MINE
#endif
				if
				:: held ->
					/* with its earlier number */
					if :: MINE -> st = LIVE; number-- :: else fi
#ifdef FORCED
				:: !held ->
#else
				:: !held && GOOD ->
#endif
					assert(NOBODY);
					st = UPGRADED; upgrader = true; writer = 2; won = true;
#ifndef GENSTAYS
					gen = g + 1
#endif
				:: else
				fi
			}
		:: else
		fi
	:: else
	fi;
	unlock()
}

proctype Upgrader() {
	byte my, g;
	bool ok, held, won;

	begin();
	if
	:: won ->
		assert(writer == 2 && st == UPGRADED && !freed);
		lock();
		atomic {
			upgrader = false; writer = 0;
			if
			:: st = LIVE; changed = true
			:: st = FREE	/* the client gives up, or has ended */
			fi
		};
		unlock()
	:: else
	fi;
	hold[0]--
}

/* It gets contents 1 twice. In a daemon's pool it resolves without the host. */
proctype Getter() {
	byte n, seen;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		hold[1]++;
again:
		if
		:: atomic {
				st == LIVE && gen == 1 ->
				believes = true; assert(writer == 0 && !freed && !changed)
			};
			atomic { assert(writer == 0 && !freed); believes = false }
		:: atomic { st == SCANNING && gen == 1 -> seen = number };
			atomic {
				if
				:: st == SCANNING && gen == 1 && number == seen -> st = LIVE
				:: else
				fi
			};
			goto again
		:: atomic { gen != 1 || (st != LIVE && st != SCANNING) -> skip }
		fi;
		hold[1]--
	od
}

init {
	atomic { hold[0] = 1; run Owner(); run Upgrader(); run Getter(); run Reclaim() }
}

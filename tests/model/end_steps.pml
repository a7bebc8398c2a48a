/* SPDX-License-Identifier: MIT */
/*
 * A sweep that drops the lock between its steps (core/reclaim.c). The next sweep looks at each slot
 * that becomes suspect during this one. This sweep frees no slot that a client has come to hold, or
 * to write in place, since the sweep marked it.
 *
 * There is one slot, whose owner has ended. Two clients hold it, put it, get it again, resolve the
 * marked slot and write it in place. Each put names the slot as suspect. The host marks the slot,
 * looks at the holds and frees it, each under the lock, and drops the lock in between.
 *
 * Each of these breaks the invariant:
 *   DIRECT     A suspect that is named while a sweep runs belongs to that sweep.
 *   TAKEN      The last step frees a slot that was resolved and is now written in place.
 *   FORCED     The last step frees a slot that was resolved for a holder.
 *   NOMARK     The first step marks no slot.
 */
#define FREE 0
#define LIVE 1
#define SCANNING 2
#define UPGRADED 3
#ifndef OPS
#define OPS 2
#endif

byte st = LIVE, gen, upgrader;
byte hold[2] = 1;
bool bel[2] = true;		/* ghosts */
bool asked, suspect, work, lock, freed;
byte gone;

inline take() { atomic { !lock -> lock = true } }
inline leave() { lock = false }

inline collect() {
	take();
#ifdef DIRECT
	suspect = true;
#else
	asked = true;
#endif
	work = true;
	leave()
}

proctype Client(byte me) {
	byte n, t;

	do
	:: bel[me] && n < OPS ->	/* it writes the slot in place, and publishes it */
		n++;
		take();
		if
		:: st == LIVE && hold[1 - me] == 0 -> st = SCANNING;
			if
			:: hold[1 - me] != 0 -> st = LIVE; leave()
			:: else ->
				upgrader = me + 1;
				atomic { st = UPGRADED; gen++; t = gen };
				leave();
				assert(!freed && upgrader == me + 1);
				take(); st = LIVE; upgrader = 0; leave()
			fi
		:: else -> leave()
		fi
	:: bel[me] ->
		assert(!freed);
		bel[me] = false;
		hold[me]--;
		collect()
	:: !bel[me] && n < OPS ->
		n++;
		hold[me]++;
again:
		if
		:: atomic { gen == t && st == LIVE -> bel[me] = true; assert(!freed) }
		:: gen == t && st == SCANNING ->
			take();
			if :: gen == t && st == SCANNING -> st = LIVE :: else fi;
			leave();
			goto again
		:: gen != t || st == FREE || st == UPGRADED ->
			hold[me]--;
			collect()
		fi
	:: !bel[me] -> break
	od;
	gone++
}

proctype Host() {
	bool used;

	do
	:: work ->
		work = false;
		take();
		if :: asked -> suspect = true; asked = false :: else fi;
		if
		:: suspect && upgrader -> suspect = false
#ifndef NOMARK
		:: suspect && !upgrader && st == LIVE -> st = SCANNING
#endif
		:: else
		fi;
		leave();
		take();
		if
		:: suspect && (st == SCANNING
#ifdef NOMARK
				|| st == LIVE
#endif
						) ->
			used = (hold[0] != 0);
			used = used || hold[1] != 0;
			if :: used -> suspect = false; st = LIVE :: else fi
		:: else
		fi;
		leave();
		take();
		if
#ifdef FORCED
		:: suspect && !upgrader ->
#else
#ifdef TAKEN
		:: suspect && st != LIVE ->
#else
#ifdef NOMARK
		:: suspect && !upgrader ->
#else
		:: suspect && st != LIVE && !upgrader ->
#endif
#endif
#endif
			atomic {
				assert(!bel[0] && !bel[1] && upgrader == 0);
				st = FREE; gen++; freed = true
			};
			suspect = false
		:: else -> suspect = false
		fi;
		leave()
	:: gone == 2 && !work -> break
	od
}

init {
	atomic { run Host(); run Client(0); run Client(1) };
	_nr_pr == 1;
	assert(freed)
}

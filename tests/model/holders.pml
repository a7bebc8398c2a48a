/* SPDX-License-Identifier: MIT */
/*
 * A client that follows a stage becomes one of the holders of each group whose slots the stage
 * forwards (core/holders.c), before the entry is complete and before the client's cursor is there.
 * So the client can hold the slots that it receives. It also loses no slot that the stage held when
 * the client began to follow: the stage's hold keeps such a slot, then the stage's ring, and then
 * the client's own hold.
 *
 * There is one slot. A stage holds it and forwards it. The owner scans it twice. A stranger begins
 * to follow the stage at some moment, and receives the slot from its ring. The host has a lock.
 *
 * Each of these breaks the invariant:
 *   FORGET   When a client subscribes, the host does not add it to the holders of the groups from
 *            which the stage has said that it forwards.
 *   LATE     The stage says that it forwards from the group after the entry is complete.
 *   AFTER    The host sets the cursor before the client's bit in the holders.
 *   NOHOLD   The owner's scan does not look at the stage's hold.
 *   NORING   The owner's scan does not look at the stage's ring, from which the slot may still be
 *            received (I6).
 *   NOCHECK  (SILENT) A receiver does not look whether its client is among the holders.
 *
 * SILENT: the stage does not say that it forwards. Then the stranger loses the publication, and it
 * knows that.
 */
#define WRITING 1
#define LIVE 2
#define SCANNING 3

byte st = LIVE, gen = 1;		/* one word */
bool in;				/* the stranger is among the holders */
bool stages, follows, cursor, entry, passed;
bool early;				/* the stranger followed while the stage held the slot */
byte held_by_stage = 1, hold, uses;
bool locked;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

proctype Owner() {
	byte n;
	bool looks, held;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		atomic { if :: st == LIVE && gen == 1 -> st = SCANNING :: else -> break fi };
		looks = in;
		held = false;
#ifndef NOHOLD
		held = (held_by_stage != 0);
#endif
		if :: looks -> held = held || hold != 0 :: else fi;
#ifndef NORING
		/* All holds, then the ring (I6). */
		if :: entry && follows && !passed -> held = true :: else fi;
#endif
		if
		:: held -> st = LIVE
		:: !held -> atomic { assert(!uses); st = WRITING; gen = 2 }
		fi
	od
}

inline say() {
#ifdef SILENT
	skip
#else
	lock();
	stages = true;
	if :: follows -> in = true :: else fi;
	unlock()
#endif
}

proctype Stage() {
#ifdef LATE
	entry = true;
	say();
#else
	say();
	entry = true;
#endif
	atomic { early = follows; held_by_stage = 0 }
}

proctype Stranger() {
	lock();
#ifdef AFTER
	cursor = true;
#endif
#ifndef FORGET
	if :: stages -> in = true :: else fi;
#endif
	follows = true;
	cursor = true;
	unlock()
}

proctype Receiver() {
	bool good, may = true;

	cursor && entry;
	hold++;
#ifndef NOCHECK
	may = in;
#endif
#ifndef SILENT
	assert(may);			/* else the publication is lost */
#endif
	if
	:: may ->
		do
		:: atomic { st == LIVE && gen == 1 -> good = true }; break
		:: atomic { gen != 1 -> good = false }; break
		od;
		/* Contents that are kept for the stranger have not gone. */
		assert(good || !(early || held_by_stage));
		passed = true;
		if
		:: good ->
			atomic { assert(gen == 1); uses++ };
			atomic { assert(gen == 1); uses-- }
		:: else
		fi
	:: else
	fi;
	passed = true;
	hold--
}

init { atomic { run Owner(); run Stage(); run Stranger(); run Receiver() } }

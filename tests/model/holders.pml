/* SPDX-License-Identifier: MIT */
/*
 * Who follows a stage is among the holders of what it forwards (core/holders.c): before the entry
 * is complete, and before its cursor is there. So what it receives it holds, and none is
 * lost of what the stage held when it began to follow: the stage's hold keeps that, then the
 * stage's ring, then its own hold.
 *
 * One slot, which a stage holds; its owner, who scans it twice; a stranger, who follows the stage
 * at some moment and receives what is in its ring, or was there before; the host, which has a lock.
 *
 * Each of these breaks it:
 *   FORGET   who subscribes is not let hold what the stage has said before that it forwards
 *   LATE     the stage says so when the entry is complete
 *   AFTER    the cursor is there before the bit
 *   NOHOLD   the owner's scan does not look at what the stage holds
 *   NORING   nor at the stage's ring, which says what may still be received (I6)
 *   NOCHECK  (SILENT) who receives does not look whether it is among the holders
 *
 * SILENT: the stage says nothing. Then what the stranger receives is lost, and it knows that.
 */
#define WRITING 1
#define LIVE 2
#define SCANNING 3

byte st = LIVE, gen = 1;		/* one word */
bool in;				/* the stranger is among the holders */
bool stages, follows, cursor, entry, passed;
bool early;				/* it followed while the stage still held the slot */
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
	assert(may);			/* or it is lost */
#endif
	if
	:: may ->
		do
		:: atomic { st == LIVE && gen == 1 -> good = true }; break
		:: atomic { gen != 1 -> good = false }; break
		od;
		/* What is kept for it has not gone. */
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

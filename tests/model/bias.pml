/* SPDX-License-Identifier: MIT */
/*
 * lib/base/lock.h: a lock that is biased to one thread, and another thread that revokes the bias.
 * Stores go through a store buffer of one thread (TSO): other threads see the biased thread's
 * stores to `held` later, unless a membarrier drains the buffer. Two threads never have the lock at
 * one time, and no thread sleeps for ever (an end state with an unfinished thread is an error).
 *
 * T has the bias. R1 and R2 want the lock as well. Each of the three takes it ROUNDS times.
 *
 * Each of these breaks the invariant:
 *   NOBARRIER  The revoker calls no membarrier.
 *   NOLOOK     The biased thread does not look at `bias` after its store to `held`.
 *   NOWAKE     The biased unlock does not look at `bias`, and wakes no thread.
 *   STEPQUIET  The biased thread steps back and wakes no thread.
 *   NOWAIT     The revoker does not wait for `held`.
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif

bool revoked, held, word, sleeps;	/* sleeps: the revoker, in a futex wait on held */
bool stored, value;			/* T's store buffer: one store to held */
byte inside;

/* T's store goes into the buffer, which the machine empties at any time. */
inline put_held(x) { atomic { !stored -> stored = true; value = x } }
inline drain() { if :: stored -> held = value; stored = false :: else fi }

active proctype Machine() {
end:	do
	:: atomic { stored -> held = value; stored = false }
	od
}

/* A full barrier in all threads: T's buffer is empty afterwards. */
inline membarrier() { atomic { drain() } }
/* The system call orders what T stored before it. */
inline wake() { atomic { drain(); sleeps = false } }

inline critical() { inside++; assert(inside == 1); inside-- }

proctype T() {
	byte n;

	do
	:: n < ROUNDS ->
		n++;
		if
		:: revoked -> goto mutex
		:: else
		fi;
		put_held(true);
#ifndef NOLOOK
		if
		:: revoked ->
			put_held(false);
#ifndef STEPQUIET
			wake();
#endif
			goto mutex
		:: else
		fi;
#endif
		critical();
		put_held(false);
#ifndef NOWAKE
		if :: revoked -> wake() :: else fi;
#endif
		goto next;
mutex:		atomic { drain(); !word -> word = true };
		critical();
		word = false;
next:		skip
	:: else -> break
	od
}

proctype R() {
	byte n;

	do
	:: n < ROUNDS ->
		n++;
		atomic { !word -> word = true };
		if
		:: !revoked ->
			revoked = true;
#ifndef NOBARRIER
			membarrier();
#endif
#ifndef NOWAIT
			do
			:: !held -> break
			:: held ->
				/* The kernel looks at held again before it lets R sleep. */
				atomic { if :: held -> sleeps = true :: else fi };
				!sleeps
			od
#endif
		:: else
		fi;
		critical();
		word = false
	:: else -> break
	od
}

init { atomic { run T(); run R(); run R() } }

/* SPDX-License-Identifier: MIT */
/*
 * The chain in which the sleepers of a client wake one another (kmod/queues.c). The sleepers of one
 * word are in a line. A waker changes the word's condition, begins a new turn of the line, and
 * wakes the first sleeper. A sleeper enters the line with its present turn, then looks, then
 * sleeps. When it wakes, by a waker or by a signal, it leaves the line and wakes the first two
 * sleepers of older turns, and then it looks again.
 *
 * Three sleepers each wait until both wakers have changed the condition. One of them may be ended
 * by a signal at any moment. No other sleeper sleeps for ever (an invalid end state), and a chain
 * comes to an end: each wake-up of a sleeper that sleeps on is paid for by a turn.
 *
 * Each of these breaks the invariant:
 *   LOOKFIRST  A sleeper looks, and then enters the line.
 *   TURNFIRST  A waker begins the turn, and then changes the condition.
 *   ENDSQUIET  A sleeper that a signal has ended wakes nobody.
 *   TAKEN      A sleeper wakes nobody if a signal has ended it after it was taken off the line.
 *   NOTURN     A sleeper wakes the next whatever its turn, so a chain never ends.
 */
#define SLEEPERS	3
#define WAKES		2
#define MOST		(SLEEPERS * (WAKES + 1))	/* wake-ups that turns can pay for */

byte changed, turn;
chan line = [SLEEPERS] of { byte };	/* the first has waited for the longest */
byte entered[SLEEPERS];			/* the turn at which it entered */
bool linked[SLEEPERS], woken[SLEEPERS], signal;
byte wakeups;

/* Under the lock. */
inline wake_first() {
	if
	:: nempty(line) ->
		line?<first>;
		if
#ifndef NOTURN
		:: entered[first] == turn
		:: entered[first] != turn ->
#else
		:: true ->
#endif
			line?first;
			linked[first] = false;
			woken[first] = true;
			wakeups++;
			assert(wakeups <= MOST)
		fi
	:: empty(line)
	fi;
	first = 0
}

inline unlink(n) {
	if :: linked[n] -> line??eval(n); linked[n] = false :: else fi
}

proctype Waker() {
	byte first;

#ifdef TURNFIRST
	atomic { turn++; wake_first() };
	changed++
#else
	changed++;
	atomic { turn++; wake_first() }
#endif
}

proctype Sleeper(byte me) {
	byte first, seen;
	bool ended;

	do
	:: true ->
#ifdef LOOKFIRST
		seen = changed;
#endif
		atomic { entered[me] = turn; line!me; linked[me] = true; woken[me] = false };
#ifndef LOOKFIRST
		seen = changed;
#endif
		if
		:: seen == WAKES -> ended = true
		:: else ->
			if
			:: woken[me]
			:: me == 0 && signal -> ended = true
			fi
		fi;
		atomic {
#ifdef TAKEN
			if
			:: linked[me] || seen == WAKES || !ended ->
				unlink(me); wake_first(); wake_first()
			:: else
			fi;
#else
			unlink(me);
#ifdef ENDSQUIET
			if
			:: ended && seen != WAKES
			:: else -> wake_first(); wake_first()
			fi;
#else
			wake_first();
			wake_first();
#endif
#endif
			if :: ended -> break :: else fi
		}
	od
}

proctype Signal() {
	if :: signal = true :: skip fi
}

init {
	atomic {
		run Sleeper(0); run Sleeper(1); run Sleeper(2);
		run Waker(); run Waker(); run Signal()
	}
}

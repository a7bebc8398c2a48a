/* SPDX-License-Identifier: MIT */
/*
 * xmem_pool_close while other threads are in calls with that handle (lib/follow/wait.h,
 * lib/pool/pool.c, lib/own/acquire.c). Two threads make calls that are counted and may wait. A
 * third thread acquires a buffer and drops it. Its acquire is counted only if the fast path fails.
 * The pool's memory is destroyed exactly once, with the last handle of a buffer, and no thread uses
 * it after that. No thread sleeps for ever. close.pml checks the count of handles against threads
 * that drop them.
 *
 * Each of these breaks the invariant:
 *   LOOKFIRST   A call looks whether the pool is closed, then is counted.
 *   WAITFIRST   The closer waits for the calls, then marks the pool as closed.
 *   NOWAIT      The closer does not wait for the calls.
 *   NOKICK      The closer does not end the waits that are under way.
 *   KICKFIRST   The closer ends the waits, then marks the pool as closed.
 *   NOWAKE      The last call does not wake the closer.
 *   SHORTSTAYS  The closer leaves READY slots to the fast path.
 *   COUNTFIRST  The closer counts the handles, then shuts the fast path.
 *   UNCOUNTED   An acquire on the slow path is not counted.
 */
bool closed;				/* XL_CANCEL_CLOSE */
byte waiting;				/* the number of counted calls */
bool sleeps;				/* the closer sleeps on that count */
bool armed, kicked;			/* the word that calls wait for; only closing wakes it */
bool owned_lock, ready = true;		/* the fast path finds a slot */
bool pool_lock, ending, used, counted, destroyed;
byte out, done;

inline take(l) { atomic { !l -> l = true } }
inline use() { assert(!destroyed) }
inline destroy() { atomic { assert(!destroyed); destroyed = true } }

inline begin() { waiting++ }
inline over() {
	atomic { waiting--; left = waiting };
#ifndef NOWAKE
	if :: left == 0 && closed -> sleeps = false :: else fi;
#endif
	left = 0
}

/* A call that waits, by I5: it arms, looks whether the pool is closed, then sleeps. */
inline wait() {
	armed = true;
	if
	:: closed
	:: else -> kicked	/* the closer has ended the wait */
	fi
}

proctype Call() {
	byte left;

#ifdef LOOKFIRST
	if
	:: closed
	:: else ->
		begin();
#else
	begin();
	if
	:: closed
	:: else ->
#endif
		use();
		if :: skip :: wait() fi;
		use();
#ifdef LOOKFIRST
		over()
	fi;
#else
	fi;
	over();
#endif
	done++
}

inline drop() {
	use();				/* the put of the hold */
	used = false;
	if
	:: ending ->
		take(pool_lock);
		last = false;
		if
		:: counted -> counted = false; out--; last = (out == 0)
		:: else
		fi;
		pool_lock = false;
		if :: last -> destroy() :: else fi
	:: else
	fi
}

proctype Acquire() {
	byte left, calls;
	bool last;

	do
	:: calls == 2 -> break
	:: calls < 2 ->
		calls++;
		take(owned_lock);
		if
		:: ready ->		/* the fast path is under the lock throughout */
			use();
			used = true;
			owned_lock = false;
			drop()
		:: else ->		/* acquire_locked */
#ifndef UNCOUNTED
			begin();
#endif
			if
			:: closed -> owned_lock = false
			:: else ->
				use();
				if
				:: used = true; owned_lock = false; drop()
				:: owned_lock = false; use()	/* it fails, and reports that */
				fi
			fi;
#ifndef UNCOUNTED
			over()
#endif
		fi
	:: calls < 2 && ready ->	/* for a while no slot is READY */
		take(owned_lock); ready = false; owned_lock = false
	od;
	done++
}

inline kick() { if :: armed -> kicked = true :: else fi }

inline close_short_way() {
	take(owned_lock);
	ready = false;
	owned_lock = false
}

inline wait_for_calls() {
	do
	:: waiting == 0 -> break
	:: else -> atomic { if :: waiting > 0 -> sleeps = true :: else fi }; !sleeps
	od
}

proctype Closer() {
	bool last;

#ifdef WAITFIRST
	wait_for_calls();
#endif
#ifdef KICKFIRST
	kick();
#endif
	closed = true;
#ifndef NOKICK
#ifndef KICKFIRST
	kick();
#endif
#endif
#ifndef NOWAIT
#ifndef WAITFIRST
	wait_for_calls();
#endif
#endif
#ifndef SHORTSTAYS
#ifndef COUNTFIRST
	close_short_way();
#endif
#endif
	take(pool_lock);
	ending = true;
	if :: used -> counted = true; out++ :: else fi;
	last = (out == 0);
	pool_lock = false;
#ifdef COUNTFIRST
	close_short_way();
#endif
	if :: last -> destroy() :: else fi;
	done++
}

init {
	atomic { run Call(); run Call(); run Acquire(); run Closer() };
	done == 4;
	assert(destroyed)
}

/* SPDX-License-Identifier: MIT */
/*
 * xmem_pool_close while other threads are in calls with the same handle (lib/follow/wait.h,
 * lib/pool/pool.c, lib/own/acquire.c). Two threads make calls that are counted and may wait. A
 * third one acquires, which is counted only where its short way does not do, and drops the buffer.
 * What the pool consists of is destroyed once, with the last handle of a buffer, and nobody uses it
 * then. No thread sleeps for ever. close.pml has the count of handles against threads that drop
 * them.
 *
 * Each of these breaks it:
 *   LOOKFIRST   a call looks whether the pool is closed, then is counted
 *   WAITFIRST   who closes waits for the calls, then says that it is closed
 *   NOWAIT      it does not wait for them
 *   NOKICK      it does not end the waits that are under way
 *   KICKFIRST   it ends them, then says that it is closed
 *   NOWAKE      the last call does not wake it
 *   SHORTSTAYS  it leaves READY slots to the short way
 *   COUNTFIRST  it counts the handles, then closes the short way
 *   UNCOUNTED   an acquire that goes the long way is not counted
 */
bool closed;				/* XL_CANCEL_CLOSE */
byte waiting;				/* calls that are counted */
bool sleeps;				/* who closes, on that count */
bool armed, kicked;			/* the word that calls wait for; only closing wakes it */
bool owned_lock, ready = true;		/* the short way finds a slot */
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
	:: else -> kicked	/* somebody has ended the wait */
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
		:: ready ->		/* all of it is done under the lock */
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
				:: owned_lock = false; use()	/* in vain, and somebody is told */
				fi
			fi;
#ifndef UNCOUNTED
			over()
#endif
		fi
	:: calls < 2 && ready ->	/* nothing is READY for a while */
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

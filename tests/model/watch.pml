/* SPDX-License-Identifier: MIT */
/*
 * The rings that a thread in xmem_receive_any watches (lib/follow/wait.h): those that its client
 * follows, while other threads of the client, and the thread's own look, follow and drop rings. The
 * thread arms the words of the followed rings, looks, and sleeps. If it watches one ring, it sleeps
 * on that ring's word alone, else on all words and on the count of kicks. No thread sleeps for ever
 * (an invalid end state).
 *
 * The client follows ring 0 from the beginning. Without DROP a writer comes, which wakes the armed
 * words. Then the thread, or another thread that looks as well, follows ring 1, and the writer
 * publishes once. DROP: the only subscription, to ring 0, is dropped, and the thread has nothing
 * left to wait for.
 *
 * OWN: this is the kernel's form. A kick, or a writer that comes, wakes no ring's word. It ends the
 * waits of the client's own threads that had armed before it. Without OWN it is the daemon's form.
 *
 * Each of these breaks the invariant:
 *   NOKICK     A thread that follows a ring does not kick.
 *   KICKFIRST  A thread that follows or drops a ring kicks first.
 *   LOOKFIRST  The thread looks, then notes the count and arms the words.
 *   FOLLOWED   A kick wakes only the words of rings that are still followed.
 */
#define RINGS 2

bool follows[RINGS], listed = true;
bool armed[RINGS];
byte count[RINGS];		/* with armed: a ring's waiters word */
byte tail[RINGS], cursor[RINGS];
byte kicks;
byte own;			/* the kernel's count of kicks, which end the client's waits */
bool came, seen;		/* a writer has come; a look has found it */
bool asking;			/* pool->follows.subscribing */

inline wake(r) {
	atomic { if :: armed[r] -> armed[r] = false; count[r]++ :: else fi }
}

inline kick() {
	kicks++;
#ifdef OWN
	own++
#elif defined(FOLLOWED)
	if :: follows[0] -> wake(0) :: else fi;
	if :: follows[1] -> wake(1) :: else fi
#else
	wake(0);
	wake(1)
#endif
}

/* Any thread's look follows the writer that came. */
inline follow_newcomer() {
	atomic { !asking; asking = true };
	if
	:: came && !seen ->
#ifdef KICKFIRST
		kick();
#endif
		atomic { cursor[1] = tail[1]; follows[1] = true };
		seen = true;
#if !defined(NOKICK) && !defined(KICKFIRST)
		kick();
#endif
	:: else
	fi;
	asking = false
}

/* The host arms the word of a ring only if the client follows the ring. */
inline watch(r) {
	atomic {
		w[r] = follows[r];
		if :: w[r] -> armed[r] = true; v[r] = count[r] :: else fi
	}
}

inline look() {
	if :: !listed -> break :: else fi;		/* ENOENT */
	if :: came && !seen -> follow_newcomer() :: else fi;
	if :: follows[1] && cursor[1] != tail[1] -> break :: else fi
}

proctype Any() {
	byte v[RINGS], k, o;
	bool w[RINGS];

	do
	:: true ->
#ifdef LOOKFIRST
		look();
#endif
		k = kicks;
		o = own;
		watch(0);
		watch(1);
#ifndef LOOKFIRST
		look();
#endif
		if
		:: kicks != k -> skip
		:: else ->
			if
			:: w[0] && !w[1] -> (own != o || count[0] != v[0])
			:: !w[0] && w[1] -> (own != o || count[1] != v[1])
			:: else -> (kicks != k || own != o || (w[0] && count[0] != v[0]) ||
				    (w[1] && count[1] != v[1]))
			fi
		fi
	od
}

/* Another thread receives in the same subscription, and leaves all publications to Any. */
proctype Other() {
	if :: came && !seen -> follow_newcomer() :: else fi
}

/* It joins, and publishes once when the client follows it, so that Any can end. */
proctype Writer() {
	came = true;
#ifdef OWN
	own++;
#else
	wake(0);
	wake(1);
#endif
	(follows[1]);
	tail[1]++;
	wake(1)
}

proctype Dropper() {
#ifdef KICKFIRST
	kick();
	follows[0] = false;
	listed = false
#else
	kick();			/* for threads in a wait on that ring */
	follows[0] = false;
	listed = false;
	kick()
#endif
}

init {
	atomic {
		follows[0] = true;
		run Any();
#ifdef DROP
		run Dropper()
#else
		run Other();
		run Writer()
#endif
	}
}

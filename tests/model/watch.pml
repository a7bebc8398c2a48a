/* SPDX-License-Identifier: MIT */
/*
 * What a thread in xmem_receive_any watches (lib/follow/wait.h): the rings that its client follows,
 * while other threads of the client, and its own look, follow and drop rings. It arms the words of
 * those that are followed, looks, and sleeps: on one ring's word alone if it watches one, else on
 * all words and on the count of kicks. Nobody may sleep for ever: an invalid end state.
 *
 * Ring 0 is followed from the beginning. Without DROP a writer comes, which wakes the armed words;
 * ring 1 is then followed by the thread itself or by another one that looks too, and publishes
 * once. DROP: the only subscription, to ring 0, is dropped, and the thread has nothing left to wait
 * for.
 *
 * OWN: a kick wakes no ring's word but ends the waits of the client's own threads, if they armed
 * before it, and so does a writer that comes. So is the kernel's; without OWN it is the daemon's.
 *
 * Each of these breaks it:
 *   NOKICK     who follows a ring does not kick
 *   KICKFIRST  who follows a ring, or drops one, kicks first
 *   LOOKFIRST  the thread looks, then notes the count and arms the words
 *   FOLLOWED   a kick wakes only the words of rings that are still followed
 */
#define RINGS 2

bool follows[RINGS], listed = true;
bool armed[RINGS];
byte count[RINGS];		/* with armed: a ring's waiters word */
byte tail[RINGS], cursor[RINGS];
byte kicks;
byte own;			/* ends of the client's waits: the kernel's count */
bool came, seen;		/* a writer; it has been looked for */
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

/* A look of any thread: follow the writer that came. */
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

/* The host arms the word only of a ring that is followed. */
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

/* Another thread of the client receives in the joint subscription, and leaves all to Any. */
proctype Other() {
	if :: came && !seen -> follow_newcomer() :: else fi
}

/* It joins, and publishes once it is followed, so that there is something for the client. */
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
	kick();			/* for the threads that are in it */
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

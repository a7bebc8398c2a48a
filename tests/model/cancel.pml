/* SPDX-License-Identifier: MIT */
/*
 * The end of waits (lib/follow/wait.c, lib/follow/subscription.c). Two threads receive in one
 * subscription. A third thread cancels the pool's waits, or (DROP) drops the subscription, whose
 * memory is then used for another purpose. No thread sleeps for ever (an invalid end state), no
 * thread touches the subscription after that (an assertion), and a call that begins after the
 * cancellation does not wait.
 *
 * By default the receivers wait for the word of one ring, which the canceller wakes. SEVERAL: they
 * wait for several words, and the canceller wakes only one of them, the process's own count of
 * kicks. OWN: they wait for the word of one ring, but only the publisher may wake that word. So the
 * canceller has the kernel count a kick of the client, which ends a wait that began with an older
 * count. The publisher publishes once.
 *
 * Each of these breaks the invariant:
 *   KICKLATE   (OWN) A thread reads the count when it goes to sleep, not when it arms the word.
 *   LOOKFIRST  A thread looks whether it is cancelled, then arms the word (or reads the count).
 *   WAKEFIRST  The canceller wakes the threads, then marks the pool as cancelled.
 *   NOWAKE     The dropping thread wakes no thread.
 *   NOWAIT     The dropping thread does not wait until the receivers have left.
 *   UNCOUNTED  A thread that sleeps is not counted as inside.
 */
byte armed, count;		/* the ring's word */
byte kicks;
bool cancelled, dropped, gone;
byte inside;
bool locked;

inline lock() { atomic { !locked; locked = true } }
inline unlock() { locked = false }

inline arm() {
#ifdef SEVERAL
	v = kicks
#elif defined(OWN)
	atomic { armed = 1; v = count };
	k = kicks
#else
	atomic { armed = 1; v = count }
#endif
}

inline wake() {
#if defined(SEVERAL) || defined(OWN)
	kicks++
#else
	atomic { if :: armed == 1 -> armed = 0; count++ :: else fi }
#endif
}

#ifdef SEVERAL
#define STILL(v) (kicks == v)
#elif defined(OWN)
#define STILL(v) (count == v && kicks == k)
#else
#define STILL(v) (count == v)
#endif

proctype Receiver() {
	byte v, k, rounds;
	bool over;

	lock();
	if :: dropped -> unlock(); goto out :: else fi;	/* EBADF */
again:
	assert(!gone);
#ifdef LOOKFIRST
	over = cancelled;
	arm();
#else
	arm();
	over = cancelled;
#endif
	if
	:: over || rounds == 2 -> unlock(); goto out
	:: else
	fi;
#ifndef UNCOUNTED
	inside++;
#endif
	unlock();
#ifdef KICKLATE
	k = kicks;
#endif
	(!STILL(v));
	lock();
	assert(!gone);
#ifndef UNCOUNTED
	inside--;
#endif
	if :: dropped -> unlock(); goto out :: else fi;	/* ECANCELED */
	/* It was woken for a publication that the other thread has received. */
	rounds++;
	goto again;
out:	skip
}

proctype Publisher() {
	atomic { if :: armed == 1 -> armed = 0; count++ :: else fi }
}

proctype Canceller() {
#ifdef WAKEFIRST
	wake();
	cancelled = true
#else
	cancelled = true;
	wake()
#endif
}

proctype Dropper() {
	lock();
	dropped = true;
	unlock();
#ifndef NOWAKE
	wake();
#endif
#ifndef NOWAIT
	do
	:: lock(); if :: inside == 0 -> unlock(); break :: else -> unlock() fi; (inside == 0)
	od;
#endif
	gone = true
}

init {
	atomic {
		run Receiver(); run Receiver();
#ifdef OWN
		run Publisher();
#endif
#ifdef DROP
		run Dropper()
#else
		run Canceller()
#endif
	}
}

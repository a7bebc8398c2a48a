/* SPDX-License-Identifier: MIT */
/*
 * The end of waits (lib/follow/wait.c, lib/follow/subscription.c). Two threads receive in one
 * subscription. One thread cancels the pool's waits, and one drops the subscription, whose memory
 * is used for something else afterwards. No thread may sleep for ever (an invalid end state),
 * nobody may touch the subscription after that (an assertion), and a call that begins after
 * cancelling does not wait.
 *
 * SEVERAL: they wait for several words, of which only the process's own count of kicks is woken
 * by who cancels and who drops. Without it they wait for one ring's word. OWN: for that too, but
 * nobody but the publisher may wake it: who cancels and who drops has the kernel count a kick of
 * the client's, which ends a wait that began with an older count. The publisher publishes once.
 *
 * Each of these breaks it:
 *   KICKLATE   OWN: the count is read when the thread goes to sleep, not when it arms the word
 *   LOOKFIRST  a thread looks whether it is cancelled, then arms the word (or reads the count)
 *   WAKEFIRST  who cancels wakes first, then says that it is cancelled
 *   NOWAKE     who drops wakes nobody
 *   NOWAIT     who drops does not wait until the threads are out
 *   UNCOUNTED  a thread that sleeps is not counted as inside
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
	/* Woken for something else, which another thread has received. */
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

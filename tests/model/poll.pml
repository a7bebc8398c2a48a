/* SPDX-License-Identifier: MIT */
/*
 * A descriptor to poll on the daemon's host: readable while a byte is in it (daemon/poll.c,
 * lib/follow/poll.c). The client waits in epoll and nowhere else, and wants to see all publications
 * of two publishers. The daemon serves one datagram at a time from a queue that may be full;
 * stopped and slow are the same to it. A third process wakes the word for no reason.
 *
 *   client   takes one; if nothing is left: takes the byte, arms, looks again, tells
 *   waker    makes it true, disarms if armed, and then tells; a full queue is as good
 *   daemon   after each datagram: nothing there: arms, looks again; something: sends a
 *            byte, unless its last one has not gone yet
 *
 * An invalid end state is a lost wake-up. Each of these breaks it:
 *   NORELOOK   the client does not look again when it has armed
 *   DRAINLATE  the client takes the byte after its last look
 *   NOTELL     the client has something after all, and does not tell
 *   NOREARM    the daemon leaves the word as it is when there is nothing
 *   NOLOOK     the daemon arms and does not look again
 *   ONLYWAKE   the daemon looks only after a wake, not after any datagram
 *   WAKEFIRST  a waker reads the word before its publication
 */
#define N	2			/* publications */
mtype = { WAKE, OTHER };
chan queue = [1] of { mtype };		/* to the daemon */
byte tail, cur;
bit armed;
bit there;				/* the byte can be read: the descriptor is readable */
bit unfreed;				/* its last reader has not quite finished (SIOCOUTQ) */

#define SOMETHING	(tail != cur)
inline tell() { if :: nfull(queue) -> queue!WAKE :: full(queue) fi }

proctype Client() {
	do
	:: cur == N -> break
	:: else ->
		(there == 1);
		if :: SOMETHING -> cur++ :: else fi;
		if
		:: SOMETHING -> goto next	/* it waits again: it is still readable */
		:: else
		fi;
#ifndef DRAINLATE
		there = 0; unfreed = 0;
#endif
		armed = 1;
#ifndef NORELOOK
		if
		:: SOMETHING ->
#ifdef NOTELL
			skip
#else
			tell()
#endif
		:: else
		fi;
#endif
#ifdef DRAINLATE
		there = 0; unfreed = 0;
#endif
next:		skip
	od
}

proctype Publisher() {
	bit saw;

	if :: nfull(queue) -> queue!OTHER :: skip fi;
#ifdef WAKEFIRST
	saw = armed;
	tail++;
#else
	tail++;
	saw = armed;
#endif
	if
	:: saw ->
		atomic { saw = armed; armed = 0 };
		if :: saw -> tell() :: else fi
	:: else
	fi
}

/* Somebody else's wake-up disarms the word, too. */
proctype Stranger() {
	bit saw;

	atomic { saw = armed; armed = 0 };
	if :: saw -> tell() :: else fi
}

proctype Daemon() {
	mtype what;
	bit yes;

end:	do
	:: queue?what ->
#ifdef ONLYWAKE
		if :: what == OTHER -> goto end :: else fi;
#endif
		yes = SOMETHING;
		if
		:: yes
		:: else ->
#ifndef NOREARM
			armed = 1;
#endif
#ifndef NOLOOK
			yes = SOMETHING
#endif
		fi;
		if
		:: yes -> atomic { if :: !unfreed -> there = 1; unfreed = 1 :: else fi }
		:: else
		fi
	od
}

init {
	atomic {
		armed = 1;		/* the client has looked once, and found nothing */
		run Client(); run Publisher(); run Publisher(); run Stranger(); run Daemon()
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * A descriptor to poll, in a pool of the daemon: it is readable while a byte is in it
 * (daemon/poll.c, lib/follow/poll.c). The client waits in epoll and nowhere else, and wants to see
 * all publications of two publishers. The daemon serves one datagram at a time from a queue that
 * may be full. To the model, a daemon that is stopped is a slow daemon. A third process disarms the
 * word for no reason.
 *
 *   client   It takes a publication. If there is none, it takes the byte, arms the word, looks
 *            again, and tells the daemon if there is one after all.
 *   waker    It publishes, disarms the word if that is armed, and then tells the daemon. If the
 *            queue is full it need not tell.
 *   daemon   After each datagram it looks. If there is no publication, it arms the word and looks
 *            again. If there is one, it sends a byte, unless its last byte is still there.
 *
 * An invalid end state is a lost wake-up. Each of these breaks the invariant:
 *   NORELOOK   The client does not look again after it has armed the word.
 *   DRAINLATE  The client takes the byte after its last look.
 *   NOTELL     The client's second look finds a publication, and it does not tell the daemon.
 *   NOREARM    The daemon does not arm the word when there is no publication.
 *   NOLOOK     The daemon arms the word and does not look again.
 *   ONLYWAKE   The daemon looks only after a datagram from a waker, not after every datagram.
 *   WAKEFIRST  A waker reads the word before it publishes.
 */
#define N	2			/* publications */
mtype = { WAKE, OTHER };
chan queue = [1] of { mtype };		/* to the daemon */
byte tail, cur;
bit armed;
bit there;				/* the byte can be read: the descriptor is readable */
bit unfreed;				/* the byte's reader has not quite finished (SIOCOUTQ) */

#define SOMETHING	(tail != cur)
inline tell() { if :: nfull(queue) -> queue!WAKE :: full(queue) fi }

proctype Client() {
	do
	:: cur == N -> break
	:: else ->
		(there == 1);
		if :: SOMETHING -> cur++ :: else fi;
		if
		:: SOMETHING -> goto next	/* back to epoll: it is still readable */
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

/* The third process disarms the word. */
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
		armed = 1;		/* the client has looked once, in vain */
		run Client(); run Publisher(); run Publisher(); run Stranger(); run Daemon()
	}
}

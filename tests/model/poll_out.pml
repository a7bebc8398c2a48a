/* SPDX-License-Identifier: MIT */
/*
 * A descriptor to poll for writing is an event count (core/poll.h). A thread of the client waits in
 * epoll and nowhere else, and wants to acquire buffers that another client releases, that another
 * thread of the client gives up, and that come free by time alone. The word counts wake-ups while
 * it is armed. A client that disarms it tells the host. The invariant: the thread gets all of them
 * (an invalid end state is a lost wake-up), and it acquires in vain at most once for each change.
 *
 * By default the host is the daemon: the descriptor is writable unless the client has filled it and
 * the daemon has not emptied it since. With KERNEL the host computes the state when it is polled,
 * and polls again when it is woken.
 *
 * Each of these breaks the invariant:
 *   LOOKFIRST  An acquire looks before it arms the word, and not after.
 *   NOCOUNT    Disarming the word does not move it.
 *   OWNQUIET   A thread that gives up a buffer wakes no thread.
 *   WAKEFIRST  A thread that gives up a buffer wakes first.
 *   NORELOOK   Daemon: the client does not look at the word again after it has filled the
 *              descriptor.
 *   FILLLATE   Daemon: the client fills the descriptor after its last look at the word.
 *   NOTELL     Daemon: that look finds a change, and the client does not tell the daemon.
 *   UNTOLD     Daemon: the client does not tell the daemon that there is a time.
 *   NOTIME     Kernel: no timer is set.
 *   TIMELATE   Kernel: the word is armed before the time is noted.
 *   KEEPS      Kernel: an acquire in vain leaves an earlier note as it is.
 */
#define N	3
mtype = { WAKE };
chan queue = [1] of { mtype };
byte unused = 0, taken;			/* buffers that are unused; buffers acquired so far */
bit armed;				/* the word: is it armed, and how often was it disarmed? */
byte count;
byte vain;				/* the note: the count and 1 more; 0: none */
bit at, time;				/* a time is noted; that time has come */
bit lock, poll_lock;			/* owned.lock, polls.lock */
bit filled = 1;				/* daemon: it is handed out filled */
bit timer;				/* the host has set its timer */
bit woken;				/* kernel: the poller looks again */
bit change = 1;				/* since the last acquire in vain, or there was none */

#define WRITABLE	(vain == 0 || vain != count + 1 || (at && time))

inline take(l) { atomic { !l -> l = 1 } }
inline tell() {
#ifdef KERNEL
	woken = 1
#else
	atomic { if :: nfull(queue) -> queue!WAKE :: full(queue) fi }
#endif
}
inline wake() {
	atomic {
		saw = armed;
		if
		:: armed ->
			armed = 0;
			change = 1;
#ifndef NOCOUNT
			count++
#endif
		:: else
		fi
	};
	if :: saw -> tell() :: else fi;
	saw = 0
}

/* xl_poll_update, after an acquire in vain */
inline settle() {
#ifndef KERNEL
	take(poll_lock);
	if
	:: WRITABLE		/* the process that changed something tells the daemon */
	:: else ->
#ifndef FILLLATE
		filled = 1;
#endif
#ifndef NORELOOK
#ifdef NOTELL
		skip;
#else
		if :: WRITABLE -> tell() :: else fi;
#endif
#endif
#ifdef FILLLATE
		filled = 1;
#endif
#ifndef UNTOLD
		if :: at -> tell() :: else fi
#endif
	fi;
	poll_lock = 0
#endif
	skip
}

inline sleep() {
#ifdef KERNEL
	do
	:: woken = 0;
	   if
	   :: WRITABLE -> break
	   :: else -> woken == 1
	   fi
	od
#else
	filled == 0
#endif
}

inline look() {
	atomic {
		if
		:: unused > 0 -> unused--; taken++; found = 1; vain = 0; change = 1
		:: else -> found = 0
		fi
	}
}

inline arm() {
#ifdef KERNEL
#ifndef NOTIME
	atomic { timer = at; if :: timer && time -> woken = 1 :: else fi };
#endif
#endif
	atomic { armed = 1; seen = count }
}

proctype Poller() {
	bit found;
	byte seen;

	do
	:: taken == N -> break
	:: else ->
		sleep();
		take(lock);
		look();
		if
		:: found
		:: else ->
			/* In the kernel it is polled under no lock, and only for a reason. */
#ifdef KERNEL
			assert(change);
			change = 0;
#endif
#ifdef TIMELATE
			arm();
#endif
			at = !time;
#ifndef TIMELATE
			arm();
#endif
#ifndef LOOKFIRST
			look();
#endif
			if
			:: found
#ifdef KEEPS
			:: !found && vain
#endif
			:: else -> vain = seen + 1
			fi
		fi;
		lock = 0;
		settle()
	od
}

/* Another thread of the client gives up a buffer. */
proctype Own() {
	bit saw;

#ifdef WAKEFIRST
	wake();
#endif
	take(lock);
	atomic { unused++; vain = 0; change = 1 };
	lock = 0;
#ifndef OWNQUIET
#ifndef WAKEFIRST
	wake();
#endif
#endif
	skip
}

proctype Releaser() {
	bit saw;

	atomic { unused++ };
	wake()
}

/* The bound passes, say. */
proctype Clock() {
	atomic { time = 1; unused++; change = 1 };
	if :: timer -> tell() :: else fi
}

#ifndef KERNEL
proctype Daemon() {
	mtype what;

end:	do
	:: queue?what ->
		if
		:: !filled -> goto end	/* writable: the client will fill it after a look in vain */
		:: else
		fi;
		if
		:: WRITABLE -> filled = 0
		:: else ->
			timer = at;
			if :: timer && time -> tell() :: else fi
		fi
	od
}
#endif

init {
	atomic {
		run Poller(); run Own(); run Releaser(); run Clock();
#ifndef KERNEL
		run Daemon();
		queue!WAKE		/* the client tells the daemon of its descriptor */
#endif
	}
}

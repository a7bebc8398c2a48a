/* SPDX-License-Identifier: MIT */
/*
 * A descriptor to poll for writing, in a pool of the daemon. It is writable unless the client has
 * filled it and the daemon has not emptied it since. The client waits in epoll and nowhere else,
 * and wants to acquire buffers that two others release. poll.pml describes the client, the wakers
 * and the daemon.
 *
 * Each of these breaks the invariant:
 *   NORELOOK   The client does not look again after it has filled the descriptor and armed the
 *              word.
 *   FILLLATE   The client fills the descriptor after its last look.
 *   NOTELL     The client's second look finds a buffer, and it does not tell the daemon.
 *   NOREARM    The daemon does not arm the word when there is no buffer.
 *   NOLOOK     The daemon arms the word and does not look again.
 *   TAKEMORE   The daemon also removes bytes that the client has filled in since the daemon's look,
 *              so the descriptor is writable in vain.
 */
#define N	2
mtype = { WAKE };
chan queue = [1] of { mtype };
byte unused, taken;			/* buffers that are unused; buffers acquired so far */
bit armed;
bit filled = 1;				/* the host hands it out filled */
bit looked;				/* the daemon has looked since then, or is looking */

inline fill() { atomic { filled = 1; looked = 0 } }
inline unfill() { assert(looked); filled = 0 }
inline tell() { if :: nfull(queue) -> queue!WAKE :: full(queue) fi }

proctype Client() {
	do
	:: taken == N -> break
	:: else ->
		(filled == 0);
		if :: unused > 0 -> atomic { unused--; taken++ } :: else fi;
		if
		:: unused > 0 -> goto next
		:: else
		fi;
#ifndef FILLLATE
		fill();
#endif
		armed = 1;
#ifndef NORELOOK
		if
		:: unused > 0 ->
#ifdef NOTELL
			skip
#else
			tell()
#endif
		:: else
		fi;
#endif
#ifdef FILLLATE
		fill();
#endif
next:		skip
	od
}

proctype Releaser() {
	bit saw;

	atomic { unused++ };
	atomic { saw = armed; armed = 0 };
	if :: saw -> tell() :: else fi
}

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
		atomic {
			if
			:: !filled -> goto end	/* writable: the client will fill it and look */
			:: else -> looked = 1
			fi
		};
		yes = (unused > 0);
		if
		:: yes
		:: else ->
#ifndef NOREARM
			armed = 1;
#endif
#ifndef NOLOOK
			yes = (unused > 0)
#endif
		fi;
		if
		:: yes ->
			unfill();
#ifdef TAKEMORE
			if :: filled -> unfill() :: else fi
#endif
		:: else
		fi
	od
}

init {
	atomic {
		armed = 1;
		run Client(); run Releaser(); run Releaser(); run Stranger(); run Daemon()
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * The same for writing: the descriptor is writable unless the client has filled it and the
 * daemon has not emptied it since. The client waits in epoll and nowhere else, and wants
 * to acquire buffers that two others release. poll.pml says who does what.
 *
 * Each of these breaks it:
 *   NORELOOK   the client does not look again when it has filled the descriptor and armed
 *   FILLLATE   the client fills it after its last look
 *   NOTELL     the client has something after all, and does not tell
 *   NOREARM    the daemon leaves the word as it is when there is nothing
 *   NOLOOK     the daemon arms and does not look again
 *   TAKEMORE   the daemon empties it of what the client has filled it with since it looked, so
 *              that it is writable in vain
 */
#define N	2
mtype = { WAKE };
chan queue = [1] of { mtype };
byte unused, taken;			/* buffers: to be had; acquired so far */
bit armed;
bit filled = 1;				/* as it is given out */
bit looked;				/* since it was filled, the daemon has looked or is at it */

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

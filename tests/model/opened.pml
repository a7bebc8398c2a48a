/* SPDX-License-Identifier: MIT */
/*
 * CUDA payloads (core/cuda.c, I8): an owner gives up the last slot of its memory while two clients
 * open the memory, close it, leave their pool or are killed. The owner sleeps until the memory is
 * closed, and then frees it. At that time no client has it open (an assertion), and the owner does
 * not sleep for ever (an invalid end state).
 *
 * A client may also ask once more to open the memory, abandon that request and have it undone.
 *
 * Each of these breaks the invariant:
 *   NOTELATE   A client has the driver open the memory, then asks the host. CLOSEFIRST A client
 *              tells the host, then has the driver close the memory.
 *   LATEOPEN   The host lets a client open memory that is being closed.
 *   ENDCLOSES  The end of a client closes its memory before its process has exited.
 *   UNDOALL    An undo does not look whether its own request has opened the memory.
 *   FREEFIRST  The owner frees the memory when its last slot goes.
 *   NOWAKE     The last client to close the memory does not wake the owner.
 *   LOOKFIRST  The owner looks whether the memory is closed, then arms its word.
 */
bool opener[2], open[2], closing, closed, freed;
byte by[2];			/* the number of the request that opened the memory */
byte armed, count;		/* the owner's slots_waiters */

/* The host serves one request at a time: it has a lock, or only one thread. */
inline host_open(i, number) {
	atomic {
		if
#ifdef LATEOPEN
		:: true ->
#else
		:: closing -> refused = true
		:: !closing ->
#endif
			if :: !opener[i] -> opener[i] = true; by[i] = number :: else fi
		fi
	}
}

inline look_closed() {
	if
	:: closing && !opener[0] && !opener[1] && !closed ->
		closed = true;
#ifndef NOWAKE
		if :: armed -> armed = 0; count++ :: else fi
#endif
	:: else
	fi
}

inline host_close(i) {
	atomic { opener[i] = false; look_closed() }
}

inline host_undo(i, number) {
	atomic {
		if
#ifdef UNDOALL
		:: opener[i] ->
#else
		:: opener[i] && by[i] == number ->
#endif
			opener[i] = false; look_closed()
		:: else
		fi
	}
}

/* The driver opens the memory, and a GPU uses it. */
inline driver_open(i) { open[i] = true; assert(!freed) }
inline use() { assert(!freed) }

proctype Client(byte i) {
	bool refused;

#ifdef NOTELATE
	driver_open(i);
	host_open(i, 1);
	if :: refused -> open[i] = false; goto out :: else fi;
#else
	host_open(i, 1);
	if :: refused -> goto out :: else fi;
	if
	:: driver_open(i)
	:: host_undo(i, 1); goto out	/* the request was given up */
	fi;
#endif
	use();
	if
	:: host_open(i, 2); host_undo(i, 2)
	:: true
	fi;
	use();
	if
	:: true ->
#ifdef CLOSEFIRST
		host_close(i);
		use();
		open[i] = false
#else
		open[i] = false;
		host_close(i)
#endif
	:: true ->		/* it leaves or is killed: its connection closes first */
#ifdef ENDCLOSES
		host_close(i);
#endif
		use();
		open[i] = false;	/* the process has exited */
		host_close(i)
	fi;
out:	skip
}

proctype Owner() {
	byte v;
	bool over;

	atomic { closing = true; look_closed() }
#ifndef FREEFIRST
again:
#ifdef LOOKFIRST
	over = closed;
	atomic { armed = 1; v = count };
#else
	atomic { armed = 1; v = count };
	over = closed;
#endif
	if
	:: over
	:: else -> (count != v); goto again
	fi;
#endif
	freed = true;
	assert(!open[0] && !open[1])
}

init {
	atomic { run Owner(); run Client(0); run Client(1) }
}

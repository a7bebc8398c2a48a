/* SPDX-License-Identifier: MIT */
/*
 * A request waits for everything that end_work has been asked for (kmod/ends.c). Two clients of a
 * user end, each in a pool of its own or both in one. A client raises the number of ends that
 * its user waits for, drops what it has, asks, and gets the number of its ask. Its parent then
 * knows that it has ended. A run of end_work takes the number of the last ask, gives back what
 * clients that have asked have dropped by then, and reports that number. Then it lowers its user's
 * number by one for each of these clients. An ask while a run is under way queues another run. A
 * request of the user begins and lacks something. With two pools it waits until the user's number
 * is 0, with one pool until the number of each client that had ended before has been reported.
 *
 * When the request goes on, everything that clients had which ended before it began has been given
 * back (an assertion), and it does go on (an invalid end state).
 *
 * Each of these breaks the invariant:
 *   NUMBERFIRST  A client takes its number before it asks, so the run before reaches that number.
 *   DROPLATE     A client asks before it has dropped what it has.
 *   TAKELATE     A run takes the number after it has looked at what was dropped.
 *   OVERSLEEP    An ask while a run is under way queues no other run.
 *   OWELATE      A client raises its user's number when its parent may know of the end already.
 *   PAIDFIRST    A run lowers that number before it gives back what the clients had.
 *   NOWAIT       The request does not wait.
 */
#ifndef POOLS
#define POOLS 2
#endif
#define POOL(client) ((client) % POOLS)
byte asked[2], over[2];
bool queued[2];
bool dropped[2], back[2];	/* of each client: what it had */
byte number[2];			/* of each client that has ended; 0: it has not */
bool ended[2];			/* the parent has reaped it */
bool served[2];			/* a run has counted the client */
byte owed;			/* of the user: clients whose end is not over */

inline ask() {
	atomic {
#ifdef NUMBERFIRST
		number[me] = asked[POOL(me)];
		asked[POOL(me)]++;
#else
		asked[POOL(me)]++;
		number[me] = asked[POOL(me)];
#endif
#ifdef OVERSLEEP
		if
		:: running[POOL(me)] -> skip
		:: else -> queued[POOL(me)] = true
		fi
#else
		queued[POOL(me)] = true
#endif
	}
}

bool running[2];

proctype Client(byte me) {
#ifndef OWELATE
	owed++;
#endif
#ifdef DROPLATE
	ask();
	dropped[me] = true;
#else
	dropped[me] = true;
	ask();
#endif
	ended[me] = true;
#ifdef OWELATE
	owed++
#endif
}

inline give_back(c) {
	if
	:: POOL(c) == pool && dropped[c] && number[c] -> back[c] = true
	:: else
	fi
}

/* A client is served by the run that has found it. */
inline find(c) {
	if
	:: POOL(c) == pool && number[c] && !served[c] ->
		served[c] = true;
		found++
#ifdef PAIDFIRST
		; owed--; found--
#endif
	:: else
	fi
}

proctype Work(byte pool) {
	byte serves, found;

end:	do
	:: atomic { queued[pool] -> queued[pool] = false; running[pool] = true };
#ifdef TAKELATE
		give_back(0);
		give_back(1);
		serves = asked[pool];
#else
		serves = asked[pool];
		atomic { find(0); find(1) };
		give_back(0);
		give_back(1);
#endif
		atomic { over[pool] = serves; running[pool] = false };
		atomic { owed = owed - found; found = 0 }
	od
}

#define SERVED(client) (!before[client] || over[POOL(client)] >= number[client])

proctype Request() {
	bool before[2];

	atomic { before[0] = ended[0]; before[1] = ended[1] };
#ifdef NOWAIT
	skip;
#else
	if
	:: POOLS == 2 -> owed == 0
	:: else -> atomic { SERVED(0) && SERVED(1) }
	fi;
#endif
	assert(!before[0] || back[0]);
	assert(!before[1] || back[1])
}

init {
	atomic {
		run Client(0);
		run Client(1);
		run Work(0);
		if
		:: POOLS == 2 -> run Work(1)
		:: else
		fi;
		run Request()
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * I5 between a last put and the end of the slot's owner. Either the client that puts sees that the
 * slot belongs to the host, and tells the host, or the host sees that no client holds the slot.
 *
 * There is one slot, whose owner has died. Two clients hold it and put.
 *
 * Each of these breaks the invariant:
 *   REAPFIRST  The host scans the slot, then makes the slot its own.
 *   PUTFIRST   A client looks at the owner before it drops its hold.
 *   UNTOLD     A client tells the host only if its put is the last of all clients' puts, not
 *              whenever it is the last put of that client.
 */
bool host;			/* the host owns the slot */
byte hold[2] = 1;
bool freed, lock;

inline reclaim() {
	atomic { !lock -> lock = true };
	if :: host && hold[0] == 0 -> if :: hold[1] == 0 -> freed = true :: else fi :: else fi;
	lock = false
}

proctype Client(byte me) {
	bool tell;

#ifdef PUTFIRST
	tell = host;
	hold[me]--;
#else
	hold[me]--;
	tell = host;
#endif
#ifdef UNTOLD
	tell = tell && hold[1 - me] == 0 && me == 0;
#endif
	if :: tell -> reclaim() :: else fi
}

proctype Host() {
#ifdef REAPFIRST
	host = true; host = false;
	atomic { !lock -> lock = true };
	freed = (hold[0] == 0 && hold[1] == 0);
	lock = false;
	host = true
#else
	host = true;
	reclaim()
#endif
}

init {
	atomic { run Host(); run Client(0); run Client(1) };
	_nr_pr == 1;
	assert(freed)
}

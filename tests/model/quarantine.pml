/* SPDX-License-Identifier: MIT */
/*
 * Quarantine (core/client.c, I9): a client holds a slot, and hands out a pointer of a GPU, with
 * which that works. It may be killed at any moment, and its connection ends before its process has
 * exited; only then its GPU stops. The slot's owner may take the slot when nobody holds it, or it
 * is FREE: no GPU may be at work with it then (an assertion), and in the end it gets it (an
 * invalid end state).
 *
 * UPGRADE: the client writes the slot in place, and with its end the contents go.
 *
 * Each of these breaks it:
 *   BITLATE    the pointer is handed out, then the hold says so
 *   ENDDROPS   the end of the client drops all of its holds
 *   NEVER      what was kept is not dropped when the process has exited
 *   ENDFREES   (UPGRADE) the slot is FREE at the client's end
 */
mtype = { LIVE, UPGRADED, FREE, TAKEN };
mtype state = LIVE;
bool held, noted, gpu;	/* the count of the hold, its XM_HOLD_DEVICE; work under way */
bool killed;

#define ALIVE(step)	if :: killed -> goto dead :: !killed -> step fi

proctype Client() {
	bool quarantined;

#ifdef UPGRADE
	ALIVE(state = UPGRADED);
#endif
#ifdef BITLATE
	ALIVE(gpu = true);
	ALIVE(noted = true);
#else
	ALIVE(noted = true);
	ALIVE(gpu = true);
#endif
	ALIVE(skip);
	/* It waits for its GPU before it puts the hold. */
	ALIVE(gpu = false);
#ifdef UPGRADE
	ALIVE(state = LIVE);
#endif
	ALIVE(held = false);
dead:
	/* Its connection ends. */
	quarantined = held && noted;
#ifdef ENDDROPS
	held = false;
#else
	held = quarantined;
#endif
	if
#ifdef ENDFREES
	:: state == UPGRADED -> state = FREE
#else
	:: state == UPGRADED && !quarantined -> state = FREE
#endif
	:: else
	fi;
	/* Its process has exited, with all of its files and mappings. */
	gpu = false;
#ifndef NEVER
	atomic {
		if :: state == UPGRADED -> state = FREE :: else fi;
		held = false
	}
#endif
}

proctype Killer() {
	killed = true
}

/* A look at the hold is that of a scan, which holds.pml has. */
proctype Owner() {
	atomic {
		(state == FREE || (state == LIVE && !held)) -> state = TAKEN;
		assert(!gpu)
	}
}

init {
	held = true;
	atomic { run Client(); run Killer(); run Owner() }
}

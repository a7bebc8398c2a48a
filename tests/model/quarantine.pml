/* SPDX-License-Identifier: MIT */
/*
 * Quarantine (core/client.c, I9). A client holds a slot, and hands out a pointer of a GPU, which
 * works with the slot. The client may be killed at any moment. Its connection ends before its
 * process has exited, and its GPU stops only when the process has exited. The slot's owner may take
 * the slot if no client holds it, or if it is FREE. At that time no GPU works with it (an
 * assertion), and in the end the owner gets the slot (an invalid end state).
 *
 * UPGRADE: the client writes the slot in place, and the contents go when it ends.
 *
 * Each of these breaks the invariant:
 *   BITLATE    The client hands out the pointer, then sets the device bit in its hold.
 *   ENDDROPS   The end of the client drops all of its holds.
 *   NEVER      The host does not drop the kept holds when the process has exited.
 *   ENDFREES   (UPGRADE) The slot becomes FREE when the client ends.
 */
mtype = { LIVE, UPGRADED, FREE, TAKEN };
mtype state = LIVE;
bool held, noted, gpu;	/* the hold; its XM_HOLD_DEVICE; the GPU is at work */
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
	/* The client waits for its GPU before it puts the hold. */
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

/* One look at the hold stands for a scan; holds.pml checks scans. */
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

/* SPDX-License-Identifier: MIT */
/*
 * The first part of a client's end (xm_client_release): its own process drops its holds, in its own
 * area, while the owner of a slot scans and a third client receives. Each complete entry in the
 * dead client's ring has been forwarded: a client that finds the entry may receive the slot, even
 * if the tail had not moved past the entry when the client died. Until the second part no other
 * process repairs the ring.
 *
 * The client dies before it writes the entry, after the entry, or after the tail. The owner marks
 * the slot, looks at the holds, then at the ring up to its tail, and frees the slot if no client
 * has it or can receive it. The receiver gets the slot that it finds in the ring, and puts it.
 *
 * Each of these breaks the invariant:
 *   HOLDSFIRST  The process drops the holds, then repairs the ring, so forwarded contents are lost.
 *   RINGFIRST   The owner looks at the ring, then at the holds.
 *   QUIET       The process does not wake the owner after it has dropped the holds.
 *   WAKEFIRST   The process wakes the owner, then drops the holds.
 */
bool entry, tail;		/* in the ring of the dying client */
byte hold = 1;			/* the dying client's */
byte mine;			/* the receiver's */
bool freed, received, passed;	/* passed: the receiver's cursor is behind the entry */
bool armed, over;

proctype Client() {
	if :: skip :: entry = true; if :: skip :: tail = true fi fi;
	/* The client dies here, and does the first part of its end. */
#ifdef WAKEFIRST
	armed = false;
#endif
#ifdef HOLDSFIRST
	hold = 0;
	if :: entry -> tail = true :: else fi;
#else
	if :: entry -> tail = true :: else fi;
	hold = 0;
#endif
#if !defined(QUIET) && !defined(WAKEFIRST)
	armed = false;
#endif
	over = true
}

proctype Receiver() {
	do
	:: entry && !received ->
		mine++;			/* get: the hold, then the look */
		assert(!freed);		/* a complete entry is not lost */
		received = true;
		passed = true;
		mine--;
		armed = false		/* after the put and the cursor's move it wakes the owner */
	:: received || (over && !entry) -> break
	od
}

inline scan() {
#ifdef RINGFIRST
	flight = tail && !passed;
	used = (hold != 0 || mine != 0);
#else
	used = hold != 0;
	used = used || mine != 0;
	flight = tail && !passed;
#endif
	if :: !used && !flight -> freed = true :: else fi
}

proctype Owner() {
	bool used, flight;

	do
	:: freed -> break
	:: else ->
		armed = true;
		scan();
		if :: freed -> break :: !freed -> armed == false fi
	od
}

init {
	atomic { run Client(); run Receiver(); run Owner() };
	_nr_pr == 1;
	assert(freed)
}

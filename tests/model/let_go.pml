/* SPDX-License-Identifier: MIT */
/*
 * The first part of a client's end (xm_client_release): its process lets go of what it holds, in
 * its own area, while the owner of a slot scans and a third client receives. What stands complete
 * in the dead client's ring has been forwarded: who finds it there has it, although the tail may
 * not have moved over it when the client died. Until the second part nobody else repairs the ring.
 *
 * The client dies before the entry, after it, or after the tail. The owner scans: it marks, looks
 * at the holds, then at the ring up to its tail, and frees what nobody has or can have. The
 * receiver gets what it finds in the ring, and puts it.
 *
 * Each of these breaks it:
 *   HOLDSFIRST  the holds go, then the ring is repaired: what was forwarded is lost
 *   RINGFIRST   the owner looks at the ring, then at the holds
 *   QUIET       the owner is not woken when the holds have gone
 *   WAKEFIRST   it is woken, then they go
 */
bool entry, tail;		/* of the ring of the client that dies */
byte hold = 1;			/* the dead client's */
byte mine;			/* the receiver's */
bool freed, received, passed;	/* passed: the receiver's cursor is behind the entry */
bool armed, over;

proctype Client() {
	if :: skip :: entry = true; if :: skip :: tail = true fi fi;
	/* it dies here, and does the first part */
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
		assert(!freed);		/* what is complete in the ring is not lost */
		received = true;
		passed = true;
		mine--;
		armed = false		/* a put, and a cursor that moved: it wakes the owner */
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

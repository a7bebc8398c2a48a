/* SPDX-License-Identifier: MIT */
/*
 * I7: a client adds claims as it takes a hold.
 *
 * P holds the contents, sets a claim aside for C and drops its hold. A holds nothing. If it can, it
 * sets another claim aside, which D drops. C gets the contents by their token, and may end at any
 * step; the host then drops its hold. The owner scans. When it has the slot it publishes the next
 * contents, with a claim of their own, which no client takes. The host adds claims under its lock
 * (the daemon serves one request after the other). Clients take claims without the lock, and the
 * host sees that later. Contents that are replaced have no user and no claim, C finds the claim
 * that was set aside for it, and no claim is lost or comes from nowhere.
 *
 * Each of these breaks the invariant:
 *   LOOKFIRST    To add a claim, the host looks at the state word, then adds.
 *   NOUNDO       If the host finds the contents gone, it leaves the claim that it has added.
 *   RAISELATE    The host raises the number of slots with claims after the claims.
 *   TAKEFIRST    A get takes the claim, then its hold.
 *   NOHOLD       A client that drops a claim does not hold the contents meanwhile.
 */
#define LIVE 2
#define SCANNING 3
#define WRITING 1

byte st = LIVE, gen = 1;	/* one word */
byte claims;			/* in the slot's row */
byte claimed;			/* in the header: the number of slots with claims */
byte hold[4];			/* of P, A, C, D */
bool lock;			/* the host's */
bool told;			/* C knows the token */
byte belief = 1;		/* ghost: clients that believe they hold the first contents */
short owed[3];			/* ghost: by generation, claims that have been granted */

inline take(ok) {
	atomic {
		if
		:: claims > 0 -> claims--; ok = true
		:: else -> ok = false
		fi
	}
}

/* The request: ok says whether a claim was added to contents g. */
inline add(g, ok) {
	atomic { !lock -> lock = true };
	ok = false;
	if
	:: gen == g && (st == LIVE || (st == SCANNING && claims > 0)) ->
#ifndef RAISELATE
		claimed = 1;
#endif
#ifdef LOOKFIRST
		if
		:: gen == g && st == LIVE -> ok = true
		:: else
		fi;
		if :: ok -> atomic { claims++; owed[g]++ } :: else fi;
#else
		atomic { before = claims; claims++ };
		atomic {
			if
			:: gen == g && (st == LIVE || (st == SCANNING && before > 0)) ->
				ok = true; owed[g]++
			:: else
			fi
		};
#ifndef NOUNDO
		if
		:: !ok -> atomic { if :: claims > 0 -> claims-- :: else -> owed[g]++ fi }
		:: else
		fi;
#endif
#endif
#ifdef RAISELATE
		claimed = 1;
#endif
		if :: claims == 0 -> claimed = 0 :: else fi
	:: else
	fi;
	lock = false
}

proctype Owner() {
	byte n, i;
	bool busy;

	do
	:: n < 3 ->
		n++;
		st = SCANNING;
		busy = false;
		i = 0;
		do
		:: i < 4 -> if :: hold[i] != 0 -> busy = true :: else fi; i++
		:: else -> break
		od;
		if :: claimed -> if :: claims > 0 -> busy = true :: else fi :: else fi;
		if
		:: busy -> st = LIVE
		:: else ->
			atomic {
				assert(gen == 2 || belief == 0);
				assert(owed[gen] <= 0);
				gen++; st = WRITING
			};
			if
			:: gen == 2 ->
				atomic { !lock -> lock = true };
				claimed = 1;
				atomic { claims++; owed[2]++ };
				lock = false;
				st = LIVE
			:: else -> break
			fi
		fi
	:: else -> break
	od
}

proctype Producer() {
	byte before;
	bool ok;

again:
	add(1, ok);
	if
	:: !ok -> goto again		/* its hold keeps the contents, so a scan is under way */
	:: else
	fi;
	told = true;
	atomic { belief--; hold[0]-- }
}

proctype Dropper() {
	bool ok;

#ifdef NOHOLD
	if
	:: gen == 1 -> take(ok); if :: ok -> owed[1]-- :: else fi
	:: else
	fi
#else
	hold[3]++;
again:
	if
	:: atomic { gen == 1 && st == LIVE -> belief++ }
	:: gen == 1 && st == SCANNING -> goto again
	:: gen != 1 -> hold[3]--; goto done
	fi;
	atomic { take(ok); if :: ok -> owed[1]-- :: else fi };
	belief--;
	hold[3]--;
#endif
done:
	skip
}

proctype Adder() {
	byte before;
	bool ok;

	add(1, ok);
	if :: ok -> run Dropper() :: else fi
}

proctype Consumer() {
	bool ok;

	told;
#ifdef TAKEFIRST
	take(ok);
	assert(ok);
	atomic { owed[1]-- };
#endif
	hold[2]++;
	if :: skip :: goto dies fi;
again:
	if
	:: atomic { gen == 1 && st == LIVE -> belief++ }
	:: gen == 1 && st == SCANNING -> goto again
	:: gen != 1 -> assert(false)	/* the contents have gone in spite of the claim */
	fi;
	if :: skip :: belief--; goto dies fi;
#ifndef TAKEFIRST
	atomic { take(ok); if :: ok -> owed[1]-- :: else fi };
#endif
	if :: skip :: belief--; goto dies fi;
	belief--;
dies:
	hold[2] = 0
}

/* The host sees that the claims have been taken. */
proctype Host() {
	atomic { !lock -> lock = true };
	if :: claims == 0 -> claimed = 0 :: else fi;
	lock = false
}

init {
	hold[0] = 1;
	atomic {
		run Owner(); run Producer(); run Adder(); run Consumer(); run Host()
	};
	_nr_pr == 1;
	assert(claims == owed[1] + owed[2]);
	assert(claims == 0 || claimed)
}

/* SPDX-License-Identifier: MIT */
/*
 * A handle that is counted in has one of the claims as its own.
 *
 * P holds the contents. Up to twice it sets two references aside, of which one is its own, then
 * forgets that handle, or releases it; it ends at any step, and the host ends it. C gets up to
 * twice, and keeps its holds; it takes claims without the host, as in the daemon's pools. The host
 * voids all claims once, at any time, or never. A, who knows nothing of all that, sets one more
 * aside, at any time. The host adds, voids and ends under its lock.
 *
 * What P has not forgotten ends with it (P2). Nothing is taken for its own that was set aside by A,
 * or left by P to whoever comes (P1).
 *
 * Each of these breaks it:
 *   NONOTE       the end of P takes nothing
 *   GONEKEEPS    what is void or taken stays noted when others are added
 *   LOOKEARLY    whether there were none is looked at before adding
 *   FORGETKEEPS  to forget says nothing in the hold
 *   STAYS        the hold says so still when the next handle is counted in
 *   CLEARFIRST   P clears that itself, before it asks the host
 */
byte claims;
bool noted;			/* the host's: one is P's own */
bool forgotten;			/* in P's hold */
bool lock;			/* the host's */
/* Ghosts: claims without names, told apart. own: P's, and its handle is there. */
byte own, others;
bool stolen;			/* what is not P's was taken for it */

/* One claim goes to C: whichever; P's own is the last. */
inline take_any() {
	atomic {
		if
		:: claims > 0 ->
			claims--;
			if :: others > 0 -> others-- :: else -> own = 0 fi
		:: else
		fi
	}
}

/* The claim that is P's own goes. */
inline take_own() {
	atomic {
		if
		:: claims > 0 ->
			claims--;
			if :: own == 1 -> own = 0 :: else -> stolen = true; others-- fi
		:: else
		fi
	}
}

inline add(n, mine) {
	atomic { !lock -> lock = true };
#ifdef LOOKEARLY
	none = claims == 0;
#endif
	atomic {
#ifndef LOOKEARLY
		none = claims == 0;
#endif
		claims = claims + n;
		others = others + n - mine;
		own = own + mine
	};
#ifndef GONEKEEPS
	if :: none -> noted = false :: else fi;
#endif
	if
	:: mine ->
		noted = true;
#ifndef STAYS
		forgotten = false
#endif
	:: else
	fi;
	lock = false
}

proctype P() {
	bool none;
	byte rounds;

	do
	:: rounds < 2 ->
		rounds++;
#ifdef CLEARFIRST
		forgotten = false;
#endif
		if :: skip :: goto ends fi;
		add(2, 1);
		if
		:: goto ends
		:: atomic {		/* forget */
			others = others + own;
			own = 0;
#ifndef FORGETKEEPS
			forgotten = true
#endif
		   }
		:: atomic { !lock -> lock = true };	/* release */
		   if :: noted -> noted = false; take_own() :: else fi;
		   lock = false
		fi
	:: goto ends
	:: rounds == 2 -> break
	od;
ends:
	/* Its end is served by the host. */
	atomic { !lock -> lock = true };
#ifndef NONOTE
	if :: noted && !forgotten -> take_own() :: else fi;
#endif
	noted = false;
	lock = false
}

proctype C() {
	if :: take_any() :: skip fi;
	if :: take_any() :: skip fi
}

proctype A() {
	bool none;

	add(1, 0)
}

proctype Voider() {
	if
	:: atomic { !lock -> lock = true };
	   atomic { claims = 0; own = 0; others = 0 };
	   lock = false
	:: skip
	fi
}

init {
	atomic { run P(); run C(); run A(); run Voider() };
	_nr_pr == 1;
	assert(!stolen);
	assert(claims == own + others);
	assert(own == 0)
}

/* SPDX-License-Identifier: MIT */
/*
 * A handle that is counted in: one of the claims belongs to that handle.
 *
 * P holds the contents. Up to twice it sets two claims aside, one of which belongs to its handle,
 * and then forgets the handle or releases it. P may end at any step, and the host serves its end. C
 * gets the contents up to twice, and keeps its holds. It takes claims without the host, as in the
 * daemon's pools. The host may void all claims once, at any time. A knows of none of this, and sets
 * one more claim aside, at any time. The host adds, voids and ends under its lock.
 *
 * If P has not forgotten its handle, the handle's claim ends with P (P2). No claim that A has set
 * aside, or that P has left for other clients, is taken for the handle's claim (P1).
 *
 * Each of these breaks the invariant:
 *   NONOTE       The end of P takes no claim.
 *   GONEKEEPS    A note of a claim that is void or taken stays when claims are added.
 *   LOOKEARLY    The host looks whether there are no claims some steps before it adds.
 *   FORGETKEEPS  When P forgets the handle, its hold does not say so.
 *   STAYS        The hold still says "forgotten" when the next handle is counted in.
 *   CLEARFIRST   P clears "forgotten" in its hold before it asks the host.
 */
byte claims;
bool noted;			/* the host's note: one claim is P's own */
bool forgotten;			/* a bit of P's hold */
bool lock;			/* the host's */
/* Ghosts: the model tells claims apart. own: P's claim, while P has the handle. */
byte own, others;
bool stolen;			/* another claim was taken for P's */

/* C takes one claim. Claims are alike, so the model takes P's own last. */
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

/* The host takes P's own claim. */
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

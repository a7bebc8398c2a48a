/* SPDX-License-Identifier: MIT */
/*
 * A handle that is counted in has one of the claims as its own.
 *
 * P holds the contents and sets two references aside, of which one is its own; then it forgets the
 * handle, or releases it, or ends at any step, and the host ends it. C gets up to twice, and keeps
 * its holds; it takes claims without the host, as in the daemon's pools. The host voids all claims
 * once, at any time, or never. A, who knows nothing of all that, sets one more aside, at any time.
 * The host adds, voids and ends under its lock.
 *
 * Nobody but C may take what A has set aside after P's own was void or taken (P1). If P has not
 * forgotten its handle, its own claim does not outlive it (P2); if it has, it stays.
 *
 * Each of these breaks it:
 *   NONOTE       the end of P takes nothing
 *   GONEKEEPS    what is void or taken stays noted when others are added
 *   LOOKEARLY    whether there were none is looked at before adding
 *   FORGETKEEPS  forget leaves the mark in the hold
 *   MARKLATE     set_ref_count marks the hold after adding
 *   CLEARFIRST   release clears the mark, then asks the host
 */
byte claims;
bool noted;			/* the host's: one is P's own */
bool mark;			/* in P's hold */
bool lock;			/* the host's */
bool forgot;			/* P has left its own to whoever comes */
/* Ghosts: claims without names, told apart. own: P's own is there. */
byte own, others;
bool stolen;			/* what is not P's was taken for it */

/* One claim goes to C: whichever; P's own is the last. */
inline take_any(got) {
	atomic {
		got = false;
		if
		:: claims > 0 ->
			claims--;
			got = true;
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
			if
			:: own == 1 && !forgot -> own = 0
			:: else -> stolen = true; if :: others > 0 -> others-- :: else -> own = 0 fi
			fi
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
	if :: mine -> noted = true :: else fi;
	lock = false
}

proctype P() {
	bool none;

#ifndef MARKLATE
	mark = true;
	if :: skip :: goto ends fi;
#endif
	add(2, 1);
#ifdef MARKLATE
	if :: skip :: goto ends fi;
	mark = true;
#endif
	if
	:: goto ends
	:: atomic {			/* forget: the mark is all that there is */
		forgot = true;
#ifndef FORGETKEEPS
		mark = false
#endif
	   }
	::
#ifdef CLEARFIRST
	   mark = false;
	   if :: skip :: goto ends fi;
#endif
	   atomic { !lock -> lock = true };
	   if :: noted -> noted = false; take_own() :: else fi;
	   lock = false;
	   if :: skip :: goto ends fi;
	   mark = false
	fi;
	if :: skip :: goto ends fi;
ends:
	/* Its end is served by the host. */
	atomic { !lock -> lock = true };
#ifndef NONOTE
	if :: noted && mark -> take_own() :: else fi;
#endif
	noted = false;
	mark = false;
	lock = false
}

proctype C() {
	bool got;

	if :: take_any(got) :: skip fi;
	if :: take_any(got) :: skip fi
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
	assert(forgot || own == 0)
}

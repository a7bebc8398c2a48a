/* SPDX-License-Identifier: MIT */
/*
 * I10: the owner of contents sets claims aside without the host.
 *
 * The claims word of the slot has a generation, `first`, and the number of claims. The owner has
 * two threads. The writer fills the slot twice. Each time it sets a claim aside for C, without the
 * host if it can, and drops its hold. The scanner scans the slot, and so frees it for the next
 * contents. Client A asks the host for a claim on the first contents, drops its hold, and takes the
 * claim back by another request. C comes for each claim that it was told of, or stays away. Claims
 * that the host has noted may time out at any moment. The owner may end at any step; its claims
 * last for some time after that. The host serves under its lock. Clients take claims without the
 * lock.
 *
 * C finds each claim that was set aside for it, unless the owner has ended. No claim is left at the
 * end, except claims for C by an owner that is alive, if C has stayed away.
 *
 * Each of these breaks the invariant:
 *   KEEPFIRST    The owner adds claims and leaves the generation of the word as it is.
 *   NOCOMPARE    At a timeout, the host does not compare the word with its note.
 *   TAKEOLD      When A takes its claim back, the host does not compare the word with its note.
 *   TWICE        The owner adds claims without the host a second time for one content.
 *   OVER         The owner adds claims without the host although the slot has claims.
 *   NOHOLD       The owner adds claims when it no longer holds the contents.
 *   CLAIMSFIRST  The scan looks at the claims, then at the holds.
 *   QUIET        The header does not say that owners add claims without the host.
 *   NOBOUND      When the owner ends, the host looks only at its note, not at the word.
 *   BLIND        The host adds to the word without a look at its generation.
 */
#define WRITING	1
#define LIVE	2
#define SCANNING 3
#define CONTENTS 2

byte st = WRITING, gen = 1;	/* one word */
byte first, claims;		/* one word */
bool hold[3];			/* of the owner, A, C */
bool lock;			/* the host's */
bool dead;			/* the owner has ended */
/* The host's note */
bool noted, endless, added;
byte nfirst;
/* Ghosts */
byte kept[5];			/* claims for C, by generation */
bool own;			/* A has a claim */
bool told[5];

#ifdef QUIET
#define CLAIMED	noted
#else
#define CLAIMED	true
#endif

/* C takes one claim. Claims are alike, so the model takes A's own last. */
inline take_any() {
	atomic {
		if
		:: claims > 0 ->
			claims--;
			if :: kept[gen] > 0 -> kept[gen]-- :: else -> own = false fi
		:: else
		fi
	}
}

/* If the word differs from the note, the owner has added claims, which have no timeout. */
inline settle() {
	atomic {
		if
		:: claims > 0 && !(noted && nfirst == first) ->
			noted = true; added = false; endless = !dead; nfirst = first
		:: else
		fi
	}
}

/* The claims in the note time out. */
inline expire() {
	atomic { !lock -> lock = true };
	if
	:: noted && !endless ->
		atomic {
			if
#ifdef NOCOMPARE
			:: true ->
#else
			:: nfirst == first || claims == 0 ->
#endif
				assert(dead || kept[gen] == 0);
				claims = 0; kept[gen] = 0; own = false;
				noted = false; added = false
#ifndef NOCOMPARE
			:: else
#endif
			fi
		};
		settle()
	:: else
	fi;
	lock = false
}

/* The owner adds a claim without the host. @good: it did. */
inline alone(good) {
	atomic {
		good = false;
		if
#ifdef OVER
		:: first != gen ->
#else
#ifdef TWICE
		:: claims == 0 ->
#else
		:: claims == 0 && first != gen ->
#endif
#endif
			claims++;
			kept[gen]++;
			good = true;
#ifndef KEEPFIRST
			first = gen
#endif
		:: else
		fi
	};
}

proctype Writer() {
	bool good;
	byte last;

	{
		do
		:: st == WRITING && gen != last && gen <= CONTENTS ->
			last = gen;
			hold[0] = true;
			st = LIVE;
#ifdef NOHOLD
			atomic { if :: !dead -> hold[0] = false :: else fi };
#endif
			alone(good);
			if :: good -> told[gen] = true :: else fi;
#ifdef TWICE
			if
			:: good -> alone(good)
			:: skip
			fi;
#endif
			atomic { if :: !dead -> hold[0] = false :: else fi }
		:: gen > CONTENTS -> break
		od
	} unless { dead }
}

proctype Scanner() {
	bool busy;

	{
		do
		:: st == LIVE ->
			st = SCANNING;
			busy = false;
#ifdef CLAIMSFIRST
			if :: CLAIMED -> busy = claims > 0 :: else fi;
#endif
			busy = busy || hold[0];
			busy = busy || hold[1];
			busy = busy || hold[2];
#ifndef CLAIMSFIRST
			if :: CLAIMED -> busy = busy || claims > 0 :: else fi;
#endif
			atomic {
				if
				:: busy -> st = LIVE
				:: else ->
					assert(kept[gen] == 0);
					st = WRITING; gen++
				fi
			}
		:: gen > CONTENTS -> break
		od
	} unless { dead }
}

/* A asks for a claim on the first contents, and takes it back. */
proctype A() {
	byte was;
	bool none;

	hold[1] = true;
	if :: gen != 1 || st != LIVE -> goto puts :: else fi;
	atomic { !lock -> lock = true };
	atomic { settle(); was = first; none = claims == 0 };
	if :: !noted || none -> noted = true; endless = false; added = false; nfirst = was
	:: else
	fi;
	atomic {
		if
#ifdef BLIND
		:: true ->
#else
		:: first == was ->
#endif
			if :: claims == 0 -> added = false :: else fi;
			claims++
		:: else -> lock = false; goto puts
		fi
	};
	atomic {
		if
		:: gen == 1 && (st == LIVE || claims > 1) -> own = true; added = true
		:: else -> if :: claims > 0 -> claims-- :: else fi	/* or C has taken it */
		fi;
		lock = false
	};
puts:
	hold[1] = false;
	atomic { !lock -> lock = true };
	settle();
	if
	:: noted && added ->
		atomic {
			if
#ifdef TAKEOLD
			:: claims > 0 ->
#else
			:: claims > 0 && nfirst == first ->
#endif
				claims--;
				assert(own);
				own = false
			:: else
			fi
		}
	:: else
	fi;
	lock = false
}

proctype C() {
	byte g = 1;

	do
	:: g <= CONTENTS ->
		if
		:: told[g] ->
			hold[2] = true;
			if
			:: gen == g && st == LIVE ->
				take_any();
				if :: take_any() :: skip fi	/* a second one */
			:: gen == g && st != LIVE && !dead -> hold[2] = false; goto next
			:: gen != g || dead -> assert(dead || kept[g] == 0)
			fi;
			hold[2] = false;
			g++
		:: gen > g || dead -> g++
		:: g++			/* C stays away */
		fi;
next:
		skip
	:: else -> break
	od
}

proctype Time() {
	expire();
	expire()
}

proctype End() {
	if
	:: atomic { !lock -> lock = true };
	   atomic { dead = true; hold[0] = false };
#ifndef NOBOUND
	   settle();
#endif
	   endless = false;
	   lock = false
	:: skip
	fi
}

init {
	atomic { run Writer(); run Scanner(); run A(); run C(); run Time(); run End() };
	_nr_pr == 1 || (st == LIVE && kept[gen] > 0 && _nr_pr == 3);
	expire();
	assert(claims == 0 || (!dead && claims == kept[gen]))
}

/* SPDX-License-Identifier: MIT */
/*
 * I10: the owner sets claims aside by itself, without the host.
 *
 * The word of the row has a generation, `first`, and the number of claims. The owner has two
 * threads. One writes contents, twice, sets a claim aside for C by itself if it can, and drops
 * its hold. The other scans, and so frees the slot for the next.
 * A, a further client, asks the host for a claim of its own in the first contents, ends, and the
 * host takes that. C comes for each claim that it was told of, and may stay away. The time of
 * what the host has noted may pass at any moment. The owner may end at any step; its claims last
 * for some time more. The host serves under its lock; clients take without it.
 *
 * C finds what was set aside for it, unless the owner has ended; and no claim is left at the end
 * but those that the owner, alive, has set aside for C, who has stayed away.
 *
 * Each of these breaks it:
 *   KEEPFIRST    the owner adds claims and leaves the generation of the word as it is
 *   NOCOMPARE    what time ends is not compared with what was noted
 *   TAKEOLD      nor is what ends with A
 *   TWICE        the owner adds by itself again in the same contents
 *   OVER         it adds although there are claims
 *   NOHOLD       it holds the contents no more when it adds
 *   CLAIMSFIRST  the scan looks at the claims, then at the holds
 *   QUIET        the header does not say that owners add by themselves
 *   NOBOUND      the end of the owner looks only at what was noted
 *   BLIND        the host adds to whatever is in the word
 */
#define WRITING	1
#define LIVE	2
#define SCANNING 3
#define CONTENTS 2

byte st = WRITING, gen = 1;	/* one word */
byte first, claims;		/* one word */
bool hold[3];			/* of the owner, A, C */
bool lock;			/* the host's */
bool dead;			/* the owner */
/* What the host notes */
bool noted, endless, counted;
byte nfirst;
/* Ghosts */
byte kept[5];			/* for C, by contents */
bool own;			/* A's */
bool told[5];

#ifdef QUIET
#define CLAIMED	noted
#else
#define CLAIMED	true
#endif

/* One claim goes to C: whichever; A's own is the last. */
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

/* The word says else than what was noted: the owner has added by itself, without end. */
inline settle() {
	atomic {
		if
		:: claims > 0 && !(noted && nfirst == first) ->
			noted = true; counted = false; endless = !dead; nfirst = first
		:: else
		fi
	}
}

/* The time of what was noted has passed. */
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
				noted = false; counted = false
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

/* The owner adds by itself: was it good? */
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

/* A asks for a claim of its own in the first contents, and ends. */
proctype A() {
	byte was;
	bool none;

	hold[1] = true;
	if :: gen != 1 || st != LIVE -> goto puts :: else fi;
	atomic { !lock -> lock = true };
	atomic { settle(); was = first; none = claims == 0 };
	if :: !noted || none -> noted = true; endless = false; counted = false; nfirst = was
	:: else
	fi;
	atomic {
		if
#ifdef BLIND
		:: true ->
#else
		:: first == was ->
#endif
			if :: claims == 0 -> counted = false :: else fi;
			claims++
		:: else -> lock = false; goto puts
		fi
	};
	atomic {
		if
		:: gen == 1 && (st == LIVE || claims > 1) -> own = true; counted = true
		:: else -> if :: claims > 0 -> claims-- :: else fi	/* or C has it */
		fi;
		lock = false
	};
puts:
	hold[1] = false;
ends:
	/* its end, which the host serves */
	atomic { !lock -> lock = true };
	if
	:: noted && counted ->
		atomic {
			counted = false;
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
				if :: take_any() :: skip fi	/* another one, too */
			:: gen == g && st != LIVE && !dead -> hold[2] = false; goto next
			:: gen != g || dead -> assert(dead || kept[g] == 0)
			fi;
			hold[2] = false;
			g++
		:: gen > g || dead -> g++
		:: g++			/* it stays away */
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

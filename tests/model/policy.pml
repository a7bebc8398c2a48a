/* SPDX-License-Identifier: MIT */
/*
 * The owner's policy (core/policy.h, lib/own/collect.c, lib/own/demote.c): which cursors it
 * remembers, which subscribers it demotes and for how long, and which publications it evicts.
 * entry_ring.pml checks the holds, and the steps within a scan.
 *
 * The owner has S slots and a ring of D entries. Subscriber L may lose the oldest publications. The
 * owner waits for subscriber W, which comes and goes at any time, and comes back as another
 * incarnation with the same id. These invariants hold:
 *   - A publication that a subscriber may receive has its slot (I3).
 *   - W loses a publication only if a demotion of this incarnation of W was in force, at the cursor
 *     that W had when the owner looked, or at a later one (P3).
 *   - A publication demotes W only if a buffer was acquired while W was not waited for, because W
 *     had not come yet or was demoted.
 *   - An acquire fails only if W is in the way, or if all slots are in hand (P9).
 *
 * Each of these breaks an invariant:
 *   NOINC      A demotion does not depend on the incarnation.
 *   NOCURSOR   A demotion does not end when the cursor moves.
 *   STALEROOM  The owner remembers room in the ring that depends on a demotion.
 *   QUIET      A publication overtakes W and does not demote it.
 *   NOHAND     The room in the ring does not account for buffers in hand.
 *   NOBARRIER  The owner reads the subscribers before other threads can see its tail.
 *   DEPTH      The owner never evicts the last publication.
 */
#ifndef S
#define S 2
#endif
#define D 2
#ifndef NPUB
#define NPUB 4
#endif
#define FREE 0
#define HAND 1
#define LIVE 2
#define NONE 99

byte st[S], pos[S];			/* pos: place + 1 */
byte slot_of[D], entry[D], tail;	/* entry: place + 1; 0: void */
byte seen_tail;				/* the tail that the host sees */
byte cursor_l, cursor_w = NONE;
bool sub_w;				/* W's bit */
byte inc = 1, note_inc, note_at = NONE;	/* W's incarnation; the owner's note */
byte hand;
byte passed, room_end;			/* the owner remembers these */
/*
 * Ghosts. stood: a demotion was in force during the owner's operation. early: a buffer was acquired
 * while W was not waited for. acquiring: the owner acquires. coming: W's cursor is not at the tail
 * yet. excused: W may find a loss.
 */
bool stood, early, acquiring, coming, excused;

#ifdef NOINC
#define SAMEINC (note_inc != 0)
#else
#define SAMEINC (note_inc == inc)
#endif
#ifdef NOCURSOR
#define DEMOTED(c) (SAMEINC && note_at <= (c))
#else
#define DEMOTED(c) (SAMEINC && note_at == (c))
#endif
#define TRULY (note_inc == inc && note_at == cursor_w)

/* Here at the latest, the store of the tail leaves the owner's store buffer. */
inline barrier() {
#ifndef NOBARRIER
	seen_tail = tail
#else
	skip
#endif
}

/* xm_read_waited: w is W's cursor if the owner waits for W, and else the tail. */
inline look_at_waited() {
	atomic {
		barrier(); waits = false; demoted = false; w = tail;
		if
		:: sub_w && cursor_w < tail && DEMOTED(cursor_w) -> demoted = true
		:: sub_w && !(cursor_w < tail && DEMOTED(cursor_w)) ->
			waits = true;
			if :: cursor_w < tail -> w = cursor_w :: else fi
		:: else
		fi;
		if :: sub_w && TRULY -> stood = true :: else fi;
		room_end = w + D;
#ifndef STALEROOM
		if :: demoted -> room_end = 0 :: else fi
#endif
	}
}

/* xm_passed reads the tail, and after a full barrier the subscribers and their cursors. */
inline look_at_passed() {
	atomic { barrier(); waits = sub_w };
	/* W may come here. */
	atomic {
		n = tail;
		if :: cursor_l < n -> n = cursor_l :: else fi;
		if :: waits && cursor_w < n -> n = cursor_w :: else fi;
		if :: n > passed -> passed = n :: else fi;
		n = 0; waits = false
	}
}

/* The owner demotes W if W has not received all below @place. @may: a demotion is allowed. */
inline demote(place, may) {
	atomic {
		if
		:: sub_w && cursor_w < place ->
			assert(may);
			note_inc = inc; note_at = cursor_w; stood = true
		:: else
		fi
	}
}

/* Place p goes. If W might receive it, a demotion was in force; W checks that, too. */
inline goes(p) {
	if
	:: sub_w && !coming && cursor_w <= p -> assert(stood); excused = true
	:: sub_w && coming && stood -> excused = true
	:: else
	fi
}

/* Find the oldest LIVE slot with a place below @from. If there is none, b is S. */
inline oldest_below(from) {
	atomic {
		b = S; n = 0;
		do
		:: n < S ->
			if
			:: st[n] == LIVE && (pos[n] - 1 < from || pos[n] - 1 + D < tail) &&
			   (b == S || pos[n] < pos[b]) -> b = n
			:: else
			fi; n++
		:: else -> break
		od; n = 0
	}
}

inline take() {
	atomic {
		n = 0;
		do
		:: n < S && st[n] == FREE -> break
		:: n < S && st[n] != FREE -> n++
		:: n == S -> break
		od;
		b = n; n = 0
	};
	if
	:: b < S -> st[b] = HAND
	:: else ->
		look_at_passed();
		oldest_below(passed);
		if
		:: b < S -> st[b] = HAND		/* collected; the entry stays */
		:: else ->
			look_at_waited();
#ifdef DEPTH
			if :: w == tail && tail > 0 -> w = tail - 1 :: else fi;
#endif
			oldest_below(w);
			if
			:: b < S -> atomic {
				if :: pos[b] - 1 + D >= tail -> goes(pos[b] - 1) :: else fi;
				if
				:: entry[(pos[b] - 1) % D] == pos[b] -> entry[(pos[b] - 1) % D] = 0
				:: else
				fi;
				st[b] = HAND
			   }
			:: else ->
				/* P9: W is in the way, or all slots are in hand. */
				assert(waits && w < tail || hand == S)
			fi
		fi
	fi
}

proctype Owner() {
	byte b, n, w, made;
	bool waits, demoted, refused;

	do
	:: made == NPUB -> break
	:: made < NPUB && hand < S ->			/* acquire */
		atomic { stood = sub_w && TRULY; acquiring = true };
		refused = false;
		if
		:: tail + hand >= room_end ->
			look_at_waited();
#ifdef NOHAND
			refused = waits && tail + 1 - w > D
#else
			refused = waits && tail + hand + 1 - w > D
#endif
		:: else
		fi;
		b = S;
		if :: !refused -> take() :: else fi;
		if
		:: b < S -> pos[b] = 0; atomic { hand++; early = early || stood }
		:: b == S ->			/* it failed: it sleeps, or the bound has passed */
			if :: skip :: demote(tail, true); room_end = 0 fi
		fi;
		b = 0; w = 0; waits = false; demoted = false; refused = false; acquiring = false
	:: made < NPUB && hand > 0 ->			/* publish */
		stood = sub_w && TRULY;
		if
		:: tail >= room_end ->
			look_at_waited();
			if
			:: waits && tail - w >= D ->
#ifndef QUIET
				demote(tail - D + 1, early || coming);
#endif
				room_end = 0
			:: else
			fi
		:: else
		fi;
		b = 0;
		do :: st[b] != HAND -> b++ :: else -> break od;
		atomic {
			/* The overwritten publication goes; a subscriber finds a newer one. */
			if :: tail >= D -> goes(tail - D) :: else fi;
			pos[b] = tail + 1; st[b] = LIVE;
			slot_of[tail % D] = b; entry[tail % D] = tail + 1;
			seen_tail = tail;	/* a full barrier follows this store */
			hand--
		};
		tail++;
		if :: seen_tail = tail :: skip fi;
		made++;
		b = 0; w = 0; waits = false; demoted = false
	od
}

/* Receive at @c. A readable entry has its slot. @may: the publication may be lost. */
inline receive(c, may) {
	atomic {
		if
		:: c < tail && entry[c % D] == c + 1 ->
			assert(st[slot_of[c % D]] == LIVE && pos[slot_of[c % D]] == c + 1);
			c++
		:: c < tail && entry[c % D] != c + 1 ->
			assert(may);
			c = (tail >= D && tail - D + 1 > c + 1 -> tail - D + 1 : c + 1)
		fi
	}
}

proctype L() {
	do
	:: cursor_l < tail -> receive(cursor_l, true)
	:: break			/* stopped */
	od
}

/* The host subscribes W: a cursor of 0, the bit, a full barrier, then the tail. */
proctype W() {
	byte t, lives;

	do
	:: lives < 2 ->
		lives++;
		cursor_w = 0;
		atomic {
			sub_w = true;
			coming = true;
			excused = false;
			early = hand > 0 || acquiring
		};
		t = seen_tail;
		atomic { cursor_w = t; t = 0; coming = false };
		do
		:: cursor_w < tail -> receive(cursor_w, excused)
		:: break		/* W ends, or, in its last life, is stopped */
		od;
		if
		:: lives < 2 -> cursor_w = NONE; atomic { sub_w = false; inc++ }
		:: else -> break
		fi
	:: break
	od
}

init { atomic { run Owner(); run L(); run W() } }

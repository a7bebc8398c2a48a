/* SPDX-License-Identifier: MIT */
/*
 * The owner's policy (core/policy.h, lib/own/collect.c, lib/own/demote.c): what it remembers of the
 * cursors, whom it demotes and until when, and what it evicts. Holds and the steps within a
 * scan are entry_ring.pml's.
 *
 * The owner has S slots and a ring of D. Subscriber L may lose the oldest; W is waited for,
 * comes and goes at any time, and comes back as another incarnation with the same id. What
 * must hold:
 *   - what a subscriber may receive has its slot (I3)
 *   - W loses a publication only if a demotion of this very W stood, at a cursor that it had
 *     when the owner looked or later (P3)
 *   - a publication demotes W only where a buffer was acquired while W was not waited for,
 *     because it had not come yet or was demoted
 *   - an acquire finds nothing only if W is in the way, or all slots are in hand (P9)
 *
 * Each of these breaks it:
 *   NOINC      a demotion does not depend on the incarnation
 *   NOCURSOR   it does not end when the cursor moves
 *   STALEROOM  the room in the ring is remembered although it relies on a demotion
 *   QUIET      a publication overtakes W and does not demote it
 *   NOHAND     the room does not count the buffers in hand
 *   NOBARRIER  the owner reads the subscribers before others can see its tail
 *   DEPTH      the last publication is never evicted
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
byte seen_tail;				/* the tail as the host sees it */
byte cursor_l, cursor_w = NONE;
bool sub_w;				/* W's bit */
byte inc = 1, note_inc, note_at = NONE;	/* W's incarnation; the owner's note */
byte hand;
byte passed, room_end;			/* what the owner remembers */
/*
 * Ghosts: a demotion stood during the owner's operation; a buffer was acquired while W was not
 * waited for; the owner acquires; W's cursor is not at the tail yet; W may find a loss.
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

/* The store of the tail leaves the owner's store buffer now at the latest. */
inline barrier() {
#ifndef NOBARRIER
	seen_tail = tail
#else
	skip
#endif
}

/* xm_read_waited: w is W's cursor if it is waited for, and else the tail. */
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

/* xm_passed: the tail, then, after a full barrier, the subscribers and their cursors. */
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

/* The owner demotes W if it has yet to receive something below @place. @may: it may do so. */
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

/* Place p goes, which W might receive: only if a demotion stood. W checks it too. */
inline goes(p) {
	if
	:: sub_w && !coming && cursor_w <= p -> assert(stood); excused = true
	:: sub_w && coming && stood -> excused = true
	:: else
	fi
}

/* Take the oldest LIVE slot with a place below @from; b is S if there is none. */
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
		:: b < S -> st[b] = HAND		/* collected: the entry is as it was */
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
				/* P9: who is waited for is in the way, or all are in hand. */
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
		:: b == S ->			/* refused: it sleeps, or the bound has passed */
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
			/* What is overwritten goes, and the subscriber finds a newer one. */
			if :: tail >= D -> goes(tail - D) :: else fi;
			pos[b] = tail + 1; st[b] = LIVE;
			slot_of[tail % D] = b; entry[tail % D] = tail + 1;
			seen_tail = tail;	/* this store has a full barrier of its own */
			hand--
		};
		tail++;
		if :: seen_tail = tail :: skip fi;
		made++;
		b = 0; w = 0; waits = false; demoted = false
	od
}

/* Receive at @c: what can be received has its slot. @may: it may have lost something. */
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

/* W subscribes as the host does it: a cursor of 0, the bit, a full barrier, the tail. */
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
		:: break		/* it ends; or, as the last one, it is stopped */
		od;
		if
		:: lives < 2 -> cursor_w = NONE; atomic { sub_w = false; inc++ }
		:: else -> break
		fi
	:: break
	od
}

init { atomic { run Owner(); run L(); run W() } }

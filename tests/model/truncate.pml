/* SPDX-License-Identifier: MIT */
/*
 * When the last slot of a payload has gone, its pages go (kmod/payload.c, kmod/keep.c,
 * daemon/payload.c). The payload has two slots, which belong to the host because
 * their owner has ended. A client may get a slot, reads the contents while it holds them, and puts
 * it. The host frees a slot that nobody holds. A request for the file has a reference to it while
 * it writes its answer, and the client that sent the request decides whether that ever ends. A work
 * item, or the process that lets the last slot go, truncates the file.
 *
 * Before that, an attach of the same file may be refused, and its slots are then given back.
 *
 * A holder reads the contents (an assertion). When nothing more happens and all slots are free, the
 * pages have gone (another assertion), unless no attach has succeeded; then they stay.
 *
 * Each of these breaks the invariant:
 *   FIRSTSLOT  The pages go with the first slot.
 *   ATEND      The pages go when the owner ends.
 *   LASTREF    The pages go with the last reference to the file.
 *   UNDONE     The pages also go when a refused attach gives its slots back.
 */
#define SLOTS 2
bool attached, ended, pages = true, asked_for;
bool used[SLOTS], held[SLOTS];
byte slots, refs;

/* The last slot has gone: the payload is no more. */
inline goes() {
#ifdef LASTREF
	refs--;
	if
	:: refs == 0 -> asked_for = true
	:: else
	fi
#else
	asked_for = true;
	refs--
#endif
}

active proctype owner() {
	/* The first attach is refused: its answer does not reach the owner. */
	if
	:: skip
	:: true ->
#ifdef UNDONE
		asked_for = true;
#endif
		skip
	fi;
	if
	:: true ->
		atomic {
			attached = true;
			used[0] = true;
			used[1] = true;
			slots = SLOTS;
			refs = 1
		}
		ended = true;
#ifdef ATEND
		asked_for = true;
#endif
		skip
	:: skip
	fi
}

active proctype client() {
	byte s;

	if
	:: s = 0
	:: s = 1
	fi;
	if
	:: atomic { used[s] -> held[s] = true };
		assert(pages);		/* it reads the contents */
		assert(pages);
		held[s] = false
	:: skip
	fi
}

/* A client that keeps its request under way for as long as it likes. */
active proctype request() {
	if
	:: atomic { slots > 0 -> refs++ };
		if
		:: true ->
end:			false		/* for ever */
		:: atomic {
				refs--;
#ifdef LASTREF
				if
				:: refs == 0 -> asked_for = true
				:: else
				fi
#endif
			}
		fi
	:: skip
	fi
}

active proctype host() {
	byte s;

	if
	:: ended
	:: timeout -> goto over
	fi;
	do
	:: s < SLOTS ->
		atomic {
			used[s] && !held[s] -> used[s] = false;
			slots--;
#ifdef FIRSTSLOT
			asked_for = true;
#endif
			if
			:: slots == 0 -> goes()
			:: else
			fi
		}
		s++
	:: s == SLOTS -> break
	od;
over:	skip
}

active proctype work() {
end:	asked_for;
	pages = false
}

active proctype judge() {
	timeout;
	if
	:: attached -> assert(slots > 0 || !pages)
	:: else -> assert(pages)
	fi
}

/* SPDX-License-Identifier: MIT */
/*
 * Allocation on demand, for a writer that polls. The words `makes` and `lacks` of its ring
 * (lib/own/demand.c, lib/own/cache.c) tell the daemon whether an acquire would succeed
 * (core/policy.c). poll_out.pml checks the descriptor itself.
 *
 * The writer may have four bytes, and wants all of them. It has two files of two bytes. The first
 * file has one buffer of one byte, which another client holds. The second file has two such
 * buffers: another client holds one, and the writer has the other in hand. A file is given back
 * when none of its buffers is used. Thread A acquires, and polls when its acquire fails. Thread B
 * collects, ages the cache, and gives up the buffer in hand. The other clients drop their holds. A
 * gets its buffer in the end: an invalid end state is a lost wake-up.
 *
 * Each of these breaks the invariant:
 *   FILES      `lacks` counts bytes of files, and freed bytes of buffers are subtracted from it.
 *   NOSAY      A collect does not lower `lacks`.
 *   NOGIVEN    A thread that gives up a buffer does not lower `lacks`.
 *   QUIET      A thread that gives up a buffer wakes no thread.
 *   WAKEFIRST  A thread that gives up a buffer wakes A, then lowers `lacks`.
 *   UNLOCKED   An acquire that fails stores `lacks` after it has dropped the lock.
 */
#define LIMIT	4
#define FREE	0
#define LIVE	1
#define HAND	2
mtype = { WAKE };
chan queue = [1] of { mtype };

byte state[3];				/* buffer 0 of file 1, buffers 1 and 2 of file 2 */
bool held[2];				/* another client holds buffer 0, 1 */
byte wanted, makes, lacks;		/* the words of the ring */
byte used, busy;			/* at the last look: bytes of files, of buffers */
bool refused, got;
bool armed, lock, poll_lock;
bool filled;				/* the descriptor is not writable */

inline take(l) { atomic { !l -> l = true } }
inline tell() { if :: nfull(queue) -> queue!WAKE :: full(queue) fi }
inline wake() {
	atomic { saw = armed; armed = false };
	if :: saw -> tell() :: else fi;
	saw = false
}

/*
 * Would an acquire succeed? This looks at the words, then at the slots. If no acquire has failed
 * yet, any buffer will do.
 */
#define UNUSED(s)	(state[s] == FREE || state[s] == LIVE && !held[s])
inline search(yes) {
	atomic { w = wanted; m = makes };
	l = lacks;
	freed = (state[0] == LIVE && !held[0] -> 1 : 0);
	atomic {
		freed = freed + (state[1] == LIVE && !held[1] -> 1 : 0);
		yes = (m > 0 && w <= m) || (l > 0 && freed >= l) ||
		      w == 0 && (UNUSED(0) || UNUSED(1) || state[2] == FREE);
		w = 0; m = 0; l = 0; freed = 0
	}
}

/* xl_poll_update */
inline settle() {
	take(poll_lock);
	search(yes);
	if
	:: yes -> if :: filled -> tell() :: else fi
	:: else ->
		filled = true;
		armed = true;
		search(yes);
		if :: yes -> tell() :: else fi
	fi;
	atomic { yes = false; poll_lock = false }
}

/* xl_cache_refresh: only others change what is held meanwhile, and only from held to not held. */
inline look() {
	if :: state[0] == LIVE && !held[0] -> state[0] = FREE; found = true :: else fi;
	if :: state[1] == LIVE && !held[1] -> state[1] = FREE; found = true :: else fi;
	atomic {
		busy = (state[0] == FREE -> 0 : 1);
		used = (state[0] == FREE -> 0 : 2);
		if
		:: state[1] == FREE && state[2] == FREE
		:: else ->
			used = used + 2;
			busy = busy + (state[1] == FREE -> 0 : 1) + (state[2] == FREE -> 0 : 1)
		fi
	}
}

inline say(need) {
	makes = LIMIT - used;
#ifdef FILES
	lacks = (need > LIMIT - used -> need - (LIMIT - used) : 0)
#else
	lacks = (need <= LIMIT - used -> 0 :
		 (need + busy > LIMIT -> need + busy - LIMIT : 1))
#endif
}

proctype A() {
	bool yes, found, saw;
	byte w, m, l, freed;

	do
	:: got -> break
	:: else ->
		!filled;
		take(lock);
		look();
		if
		:: used == 0 -> got = true
		:: else ->
#ifdef UNLOCKED
			lock = false;
#endif
			say(LIMIT);
			wanted = LIMIT; refused = true
		fi;
		found = false;
		lock = false;
		settle()
	od
}

proctype B() {
	bool yes, found, saw;
	byte w, m, l, freed, n;

	do
	:: break
	:: n < 1 ->				/* xmem_collect */
		n++;
		take(lock);
		look();
#ifndef NOSAY
		if :: found && refused -> say(LIMIT) :: else fi;
#endif
		lock = false;
		if :: found -> wake(); settle() :: else fi;
		found = false
	:: n < 1 ->				/* xl_cache_expire_slow, which wakes nobody */
		n++;
		take(lock);
		look();
		found = false;
		if :: refused -> say(LIMIT) :: else fi;
		lock = false
	od;
	take(lock);				/* xl_owned_give_up */
	state[2] = FREE;
#ifdef WAKEFIRST
	wake();
#endif
#ifndef NOGIVEN
	if
	:: lacks > 1 -> lacks--
	:: lacks == 1 -> makes = wanted; lacks = 0
	:: else
	fi;
#endif
	lock = false;
#ifndef WAKEFIRST
#ifndef QUIET
	wake();
#endif
#endif
	skip
}

/* Another client drops its hold. */
proctype Holder(byte h) {
	bool saw;

	held[h] = false;
	wake()
}

proctype Daemon() {
	mtype what;
	bool yes;
	byte w, m, l, freed;

end:	do
	:: queue?what ->
		if
		:: !filled -> goto end
		:: else
		fi;
		search(yes);
		if
		:: yes
		:: else -> armed = true; search(yes)
		fi;
		if :: yes -> filled = false :: else fi;
		yes = false
	od
}

init {
	atomic {
		state[0] = LIVE; state[1] = LIVE; state[2] = HAND;
		held[0] = true; held[1] = true;
		run A(); run B(); run Holder(0); run Holder(1); run Daemon()
	}
}

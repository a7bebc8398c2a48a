/* SPDX-License-Identifier: MIT */
/*
 * The daemon collects each slot that a client has let go, however few datagrams the client sends
 * (enum xmem_collects, lib/host/exchange.c, daemon/request.c). Two threads of the client each drop
 * the last hold of a slot, twice, and ask for its collection. A thread that finds no request under
 * way sends a datagram. Otherwise it notes that there is more to collect. The daemon serves the
 * datagrams. The channel has room for two, so the client never has to keep one back. In the end the
 * daemon has collected all slots.
 *
 * Each of these breaks the invariant:
 *   LOOKFIRST   The daemon looks at the slots, then changes the word.
 *   ONEONLY     After MORE, the daemon looks only at the slot that the datagram names.
 *   ASKFIRST    A thread asks for a slot's collection, then drops its hold.
 *   NOTSENT     A thread that notes more work, and finds no request under way, sends no datagram.
 */
#define NONE 0
#define ONE  1
#define MORE 2

byte word = NONE;
bool held[4] = true;
bool there[4] = true;			/* not collected yet */
chan post = [2] of { byte };
byte over, lock;			/* lock: posts_lock */

inline look(s) { if :: !held[s] -> there[s] = false :: else fi }

inline tell(s) {
	atomic { lock == 0 -> lock = 1 };
	if
	:: atomic { word == NONE -> word = ONE }; assert(nfull(post)); post ! s
	:: atomic { word != NONE -> skip };
		atomic { before = word; word = MORE };
		if
#ifndef NOTSENT
		:: before == NONE -> assert(nfull(post)); post ! s
		:: before != NONE
#else
		:: true
#endif
		fi
	fi;
	lock = 0
}

proctype Thread(byte first) {
	byte before, i;

	for (i : first .. first + 1) {
#ifdef ASKFIRST
		tell(i);
		held[i] = false
#else
		held[i] = false;
		tell(i)
#endif
	}
	over++
}

active proctype Daemon() {
	byte slot, before, i;

end:	do
	:: post ? slot ->
#ifdef LOOKFIRST
		before = word;
#else
		atomic { before = word; word = NONE };
#endif
		if
#ifndef ONEONLY
		:: before == MORE ->
			for (i : 0 .. 3) { look(i) }
		:: before != MORE -> look(slot)
#else
		:: true -> look(slot)
#endif
		fi;
#ifdef LOOKFIRST
		word = NONE
#endif
	:: over == 2 && empty(post) ->
		for (i : 0 .. 3) { assert(!there[i]) };
		break
	od
}

init { atomic { run Thread(0); run Thread(2) } }

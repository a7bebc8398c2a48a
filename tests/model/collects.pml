/* SPDX-License-Identifier: MIT */
/*
 * What a client of xmemd lets go is collected, however few datagrams say so (enum xmem_collects,
 * lib/host/exchange.c, daemon/request.c). Two threads of the client drop the last hold of a slot
 * each, twice, and then ask for it: the first one that finds nothing under way sends a datagram,
 * and all others note that there is more. The daemon serves the datagrams. The channel has room
 * for two, so that the client never has to keep one. In the end the daemon has collected all.
 *
 * Each of these breaks it:
 *   LOOKFIRST   the daemon looks at the slots, then changes the word
 *   ONEONLY     after MORE it looks at the one slot of the datagram
 *   ASKFIRST    a thread asks for a slot, then drops its hold
 *   NOTSENT     a thread that finds nothing under way when it notes that there is more sends none
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

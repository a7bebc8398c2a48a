/* SPDX-License-Identifier: MIT */
/*
 * I1 when the host resolves: it changes the SCANNING of a stopped owner back to LIVE for a client
 * that holds the slot. The scan that was under way then fails, whatever it has seen.
 *
 * There is one slot. Its owner scans twice; the state word has the scan's number. Two getters have
 * the slot resolved. With TWOSCANNERS another thread, or the host, may scan the slot as well; then
 * only the number tells one scan from the other.
 *
 * Each of these breaks the invariant:
 *   FORCED      The scan stores its verdict instead of a CAS.
 *   NONUMBER    (TWOSCANNERS) Scans of one generation have equal state words.
 *   ENTERPLAIN  (TWOSCANNERS) The scan marks the slot by a plain store.
 */
#define LIVE 2
#define SCANNING 3
#define WRITING 1

byte st = LIVE, gen = 1, number = 0;	/* one word */
byte hold[2], bel[2];
bool taken;				/* ghost: a process writes the contents */

#ifdef NONUMBER
#define SAME (st == SCANNING && gen == 1)
#else
#define SAME (st == SCANNING && gen == 1 && number == my)
#endif

proctype Walker() {
	byte n, my;
	bool ok, marked;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++; marked = false;
#ifdef ENTERPLAIN
		/* the owner's record of what it published */
		if :: st == LIVE && gen == 1 -> marked = true :: else fi;
		if :: marked -> atomic { st = SCANNING; gen = 1; number++; my = number } :: else fi;
#else
		atomic {
			if
			:: st == LIVE && gen == 1 ->
				st = SCANNING; number++; my = number; marked = true
			:: else
			fi
		};
#endif
		if
		:: marked ->
			ok = (hold[0] == 0);
			ok = ok && (hold[1] == 0);
			if
			:: ok ->
#ifdef FORCED
				atomic {
					assert(bel[0] == 0 && bel[1] == 0);
					st = WRITING; gen = 2; taken = true
				}
#else
				atomic {
					if
					:: SAME ->
						assert(bel[0] == 0 && bel[1] == 0);
						st = WRITING; gen = 2; taken = true
					:: else
					fi
				}
#endif
			:: else -> atomic { if :: SAME -> st = LIVE :: else fi }
			fi
		:: else
		fi
	od
}

proctype Getter(byte me) {
	byte n, seen;

	do
	:: n == 2 -> break
	:: n < 2 ->
		n++;
		hold[me]++;
again:
		if
		:: atomic { st == LIVE && gen == 1 -> bel[me] = 1; assert(!taken) };
			assert(!taken);
			bel[me] = 0
		:: atomic { st == SCANNING && gen == 1 -> seen = number };
			/* resolved if the word stays for 1 ms, and the getter holds */
			atomic {
				if
				:: st == SCANNING && gen == 1 && number == seen -> st = LIVE
				:: else
				fi
			};
			goto again
		:: gen != 1
		fi;
		hold[me]--
	od
}

init {
	atomic {
		run Walker();
#ifdef TWOSCANNERS
		run Walker();
#endif
		run Getter(0); run Getter(1)
	}
}

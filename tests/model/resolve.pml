/* SPDX-License-Identifier: MIT */
/*
 * I1 when the host resolves: the SCANNING of a stopped owner goes back to LIVE for a holder, and
 * the scan that was going on then fails, whatever it has seen.
 *
 * One slot; an owner that scans twice (the word bears the scan's number); two getters that have it
 * resolved. With TWOSCANNERS somebody else (a second thread, or the host) may scan the same slot:
 * then only the number tells one scan from the other.
 *
 * Each of these breaks it:
 *   FORCED      the scan stores its verdict instead of a CAS
 *   NONUMBER    with TWOSCANNERS: scans of one generation bear the same word
 *   ENTERPLAIN  with TWOSCANNERS: the scan marks by a plain store
 */
#define LIVE 2
#define SCANNING 3
#define WRITING 1

byte st = LIVE, gen = 1, number = 0;	/* one word */
byte hold[2], bel[2];
bool taken;				/* ghost: somebody writes there */

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
		/* the owner's own idea of what it published */
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
			/* resolved if the word is the same a millisecond later, and it holds */
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

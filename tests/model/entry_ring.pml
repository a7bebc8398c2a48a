/* SPDX-License-Identifier: MIT */
/*
 * Ring and scan. I1: the scan makes the entry void before it looks at the holds, and a receiver
 * takes its hold before its second look at the entry. I2: the scan looks at the cursors before the
 * holds. I3: a publication is in flight until its entry is void or overwritten. The owner may end
 * at every store: the host then repairs the ring, the owner is a zombie, and receivers get EPIPE.
 *
 * One owner has B slots and a ring of D entries. Subscriber 1 may lose publications. The owner
 * waits for subscriber 2. Every store of xm_scan, xm_publish and xm_receive is a step. The host
 * repairs a fresh copy of the ring (npos, ntail), and marks the owner as ZOMBIE before others see
 * that copy.
 *
 * Each of these breaks the invariant:
 *   NORECHECK   A receiver does not look at the entry a second time.
 *   NOVOID      The entry of an evicted slot stays readable.
 *   VOIDLATE    The entry becomes void after the scan has read the holds.
 *   HOLDSFIRST  The scan reads the holds before the cursors.
 *   OFF1        An entry counts as overwritten one publication too soon.
 *   NOFLIGHT    The scan does not look whether the slot is in flight.
 *   NOREPAIR    The host trusts the owner's tail.
 *   NORELOOK    A receiver returns EPIPE without a last look at the entry.
 *   DEADLAP     An entry of the previous lap means "nothing yet", even if the owner has ended.
 *   TAILFLIGHT  A position beyond the tail counts as in flight.
 *   ROB         The owner evicts a publication for which subscriber 2 must be waited for.
 */
#ifndef B
#define B 2
#endif
#ifndef D
#define D 2
#endif
#ifndef NPUB
#define NPUB 3
#endif
#define DEPTH 1			/* the last entry is never evicted */
#define V 64			/* XMEM_ENTRY_VOID */
#define FREE 0
#define WRITING 1
#define LIVE 2
#define SCANNING 3

byte st[B], gen[B], rp[B];			/* the owner's page; st and gen are one word */
byte pos[D], es[D], eg[D], tail;		/* its ring; es and eg may be read torn */
byte npos[D], ntail;				/* the repaired copy */
bool switched, zombie, odead;
byte hold[3 * B];				/* by client; the owner has none here */
byte cursor[3];
bool sub[3];
byte bel[3 * B];				/* ghost: the client believes it holds the slot */
byte made;					/* number of complete publications */
byte done;

#define POS(x) (switched -> npos[x] : pos[x])
#define TAIL (switched -> ntail : tail)
#define PLACE(p) ((p) & 63)

#ifdef OFF1
#define OVERWRITTEN(p, t) ((p) + D <= (t))
#else
#define OVERWRITTEN(p, t) ((p) + D < (t))
#endif
#ifdef TAILFLIGHT
#define INRING(p, t) (!OVERWRITTEN(p, t))
#else
#define INRING(p, t) ((p) < (t) && !OVERWRITTEN(p, t))
#endif

inline look_at_holds() {
	if :: hold[1 * B + b] != 0 -> ok = false :: else fi;
	if :: hold[2 * B + b] != 0 -> ok = false :: else fi
}

/* xm_scan of slot b, with tail t; it may evict if evict is set. The host scans its copy. */
inline scan(t, evict) {
	ok = true; flight = false; want = false;
#ifdef HOLDSFIRST
	look_at_holds();
#endif
	/* I2: cursors first. policy.pml checks cursors that are remembered from earlier. */
#ifndef NOFLIGHT
	if
	:: rp[b] != 0 && INRING(rp[b] - 1, t) && sub[1] && rp[b] - 1 >= cursor[1] -> flight = true
	:: else
	fi;
	if
	:: rp[b] != 0 && INRING(rp[b] - 1, t) && sub[2] && rp[b] - 1 >= cursor[2] -> want = true
	:: else
	fi;
#endif
#ifdef ROB
	if :: want && evict -> want = false; flight = true :: else fi;
#endif
	if
	:: want || (flight && !(evict && rp[b] - 1 + DEPTH < t)) -> ok = false
	:: else ->
		st[b] = SCANNING;
#ifdef VOIDLATE
		look_at_holds();
#endif
#ifndef NOVOID
		if
		:: flight && pos[PLACE(rp[b] - 1) % D] == rp[b] ->
			pos[PLACE(rp[b] - 1) % D] = rp[b] + V
		:: else
		fi;
#endif
#ifndef HOLDSFIRST
#ifndef VOIDLATE
		look_at_holds();
#endif
#endif
		if
		:: ok -> atomic {
			assert(bel[1 * B + b] == 0 && bel[2 * B + b] == 0);	/* P1 */
			gen[b]++; st[b] = WRITING
		   }
		:: else -> st[b] = LIVE
		fi
	fi
}

proctype Owner() {
	byte b, n;
	bool ok, flight, want;

	do
	:: n == NPUB -> break
	:: n < NPUB ->
		n++;
		if
		:: b = 0
		:: b = 1
#if B > 2
		:: b = 2
#endif
		fi;
		if
		:: st[b] == FREE -> d_step { gen[b]++; st[b] = WRITING; ok = true }
		:: st[b] == LIVE -> scan(tail, false)
		:: st[b] == LIVE -> scan(tail, true)
		fi;
		/* A publisher without room in its ring would sleep; here it gives up. */
		if
		:: ok && sub[2] && tail + 1 - cursor[2] > D -> break
		:: !ok -> skip
		:: else ->
			if :: skip :: break fi;			/* dies while writing */
			rp[b] = tail + 1;
			st[b] = LIVE;
			if :: skip :: break fi;			/* dies before the entry */
			pos[tail % D] = 0;
			if :: skip :: break fi;			/* dies with the entry open */
			es[tail % D] = b;
			eg[tail % D] = gen[b];
			atomic { pos[tail % D] = tail + 1; made++ };
			if :: skip :: break fi;			/* dies before the tail */
			tail++
		fi
	od;
	odead = true
}

/* Repair: the highest position in an entry is the tail; entries that do not fit become void. */
inline repair() {
	d_step {
		ntail = 0; b = 0;
		do
		:: b < D ->
			if
			:: PLACE(pos[b]) > ntail && (PLACE(pos[b]) - 1) % D == b ->
				ntail = PLACE(pos[b])
			:: else
			fi; b++
		:: else -> break
		od;
#ifdef NOREPAIR
		ntail = tail;
#endif
		b = 0;
		do
		:: b < D ->
			/* entry b is for one place of the last D: q - 1 */
			q = ntail;
			do :: q > 0 && (q - 1) % D != b -> q-- :: else -> break od;
			npos[b] = pos[b];
			if
			:: q == 0 || q + D <= ntail -> npos[b] = 0
			:: else -> if :: PLACE(pos[b]) != q -> npos[b] = q + V :: else fi
			fi;
			b++
		:: else -> break
		od; b = 0; q = 0
	}
}

proctype Host() {
	byte b, q;
	bool ok, flight, want;

	odead;
	repair();
	do
	:: b < B ->
		if
		:: st[b] == SCANNING -> st[b] = LIVE
		:: st[b] == WRITING -> st[b] = FREE
		:: else
		fi; b++
	:: else -> break
	od;
	zombie = true;
	switched = true;
#ifndef NOREPAIR
	assert(ntail == made);
#endif
	/* Reap now, and again when both subscribers have gone: then no slot stays. */
	b = 0;
	do
	:: b < B && st[b] == LIVE -> scan(ntail, false); if :: ok -> st[b] = FREE :: else fi; b++
	:: b < B && st[b] != LIVE -> b++
	:: b == B -> break
	od;
	done == 2;
	b = 0;
	do
	:: b < B && st[b] == LIVE -> scan(ntail, false); assert(ok); st[b] = FREE; b++
	:: b < B && st[b] != LIVE -> b++
	:: b == B -> break
	od
}

/* Move on to the oldest publication that is left. */
inline pass_by() {
	d_step {
		t = TAIL;
		t = (t >= D && t - D + 1 > i + 1 -> t - D + 1 : i + 1);
		lost = lost + t - i; i = t; p = 0; t = 0; z = false
	};
	cursor[me] = i;
	assert(me != 2)				/* subscriber 2 loses nothing */
}

proctype Sub(byte me) {
	byte i, s, g, p, t, lost, got;
	bool z;

again:	do
	:: p = POS(i % D);
	   if
	   :: p == i + 1 ->
		s = es[i % D]; g = eg[i % D];		/* two loads: may be torn */
		hold[me * B + s]++;
		if
#ifdef NORECHECK
		:: true ->
#else
		:: atomic { POS(i % D) == i + 1 ->
#endif
			/* with this hold the contents cannot go */
			assert(gen[s] == g && (st[s] == LIVE || st[s] == SCANNING));
			bel[me * B + s] = 1;
#ifndef NORECHECK
		   };
#endif
			cursor[me] = i + 1; i++; got++;
			assert(gen[s] == g);
			bel[me * B + s] = 0;
			d_step { hold[me * B + s]--; s = 0; g = 0; p = 0 }
#ifndef NORECHECK
		:: else -> d_step { hold[me * B + s]--; s = 0; g = 0; p = 0 }
#endif
		fi
	   :: else ->
		if
		:: PLACE(p) > i -> pass_by()		/* void, or newer */
		:: else ->
			z = zombie;
			if
			/* The entry is of the previous lap: EAGAIN, without a look at the tail. */
#ifdef DEADLAP
			:: p != 0 && PLACE(p) + D == i + 1 -> POS(i % D) != p; goto again
#else
			:: p != 0 && PLACE(p) + D == i + 1 && !z ->
				d_step { (POS(i % D) != p || zombie) -> p = 0 };
				goto again
#endif
			:: else
			fi;
			t = TAIL;
#ifndef NORELOOK
			p = POS(i % D);
#endif
			if
			/* EBUSY: look again */
			:: PLACE(p) > i -> d_step { p = 0; t = 0; z = false }
			/* it is being overwritten */
			:: PLACE(p) <= i && t >= i + D -> pass_by()
			:: PLACE(p) <= i && t < i + D && z && i >= t -> break
			:: else ->			/* EAGAIN */
				d_step {
					(POS(i % D) != p || zombie != z || TAIL != t) ->
					p = 0; t = 0; z = false
				}
			fi
		fi
	   fi
	/* It is killed. Its holds do not matter to the model's other processes. */
	:: true -> goto dies
	od;
	assert(got + lost == made);	/* P3: each is received or counted */
	goto drained;					/* subscribed, it pins nothing */
dies:
	sub[me] = false;
drained:
	atomic { done++ }
}

init {
	atomic { sub[1] = true; sub[2] = true; run Owner(); run Host(); run Sub(1); run Sub(2) }
}

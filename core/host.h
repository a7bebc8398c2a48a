/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host's bookkeeping: what the kernel module and the daemon do in the pages when a
 * client joins, attaches, subscribes and ends. It is pure, like protocol.h.
 *
 * The caller (kmod/, daemon/) provides the pages, the files, a lock and sleep, and knows
 * when a client has ended. It calls what changes a pool under one lock per pool, except
 * xm_arm, xm_disarm, and in the clients of the daemon xm_host_resolve, which only look
 * and compare-and-swap. xm_host_waiters, xm_host_fits and xm_host_describe only look and
 * need no lock; the sum of bytes that xm_host_describe gives may then be a mixture of
 * two moments. xm_host_layout, xm_host_query and xm_map_take touch no pool that is in use.
 */
#ifndef XM_HOST_H
#define XM_HOST_H

#include "protocol.h"

#define XM_MAX_ZOMBIES	8	/* rings of ended publishers that one subscriber may keep, but for
				 * those of publishers that waited for it */

/*
 * The ids of payloads begin behind this. In builds for tests they pass 2^32 at once, so whatever
 * has less than 64 bits for one is seen there; the second has none in its lower half.
 */
#if defined(XMEM_STEPS) || defined(XMEM_DEBUG)
#define XM_PAYLOAD_BEFORE	((1ULL << 32) - 2)
#else
#define XM_PAYLOAD_BEFORE	0ULL
#endif

/*
 * To whom is it due that a slot's claims last as long as they do? To nobody: it has none, or that
 * was the slot's owner, which has ended. Or to others that have ended.
 */
#define XM_KEEPER_NONE	0u
#define XM_KEEPER_ENDED	0xffffffffu

/* What the host notes of one slot with claims. It is in its private memory. */
struct xm_claim {
	u64 deadline_ns;			/* ~0: none */
	u64 first;				/* of the row's word, which counts them; beside
						 * another one this says nothing (I10) */
	u32 keeper;				/* 1 + the client that has made the deadline what
						 * it is, or XM_KEEPER_* */
	u64 adders[XMEM_CLIENT_WORDS];		/* bit set: that client has added some, and lives */
	u64 counted[XMEM_CLIENT_WORDS];		/* bit set: one of them is that client's own, until
						 * its hold says otherwise (XM_HOLD_FORGOTTEN) */
	u32 place;				/* 1 + its place in the heap; 0: it is not there */
	u32 heap;				/* the slot that is at this place of the heap */
};

/*
 * All slots with claims, as a heap by their deadlines: those of a slot end no later than those of
 * the two below it. In the daemon also some that have none any more.
 */
struct xm_claims {
	u32 count;
	u32 alone;				/* 1: owners may add by themselves; or 0 */
	struct xm_claim slot[];			/* [slots of the pool] */
};

struct xm_host {
	struct xm_map map;
	u64 incarnations;			/* the last one that was given */
	u64 last_payload;			/* the payload id that was given last */
	u64 first_tenancies;			/* a secret that says with which tenancy each slot
						 * begins; 0 until the first attach */
	u32 group_owner[XMEM_MAX_GROUPS];	/* client id, XMEM_OWNER_NONE or XMEM_OWNER_HOST */
	u32 group_tenant[XMEM_MAX_GROUPS];	/* the client that has the group, or had it last,
						 * until it is buried; else XMEM_OWNER_NONE */
	struct xm_claims *claims;		/* NULL until the first request for claims */
	u64 limbo_ns[XMEM_MAX_GROUPS];		/* when the last owner of the group ended; 0: it has
						 * no slots of ended owners */
	u32 user;				/* whose the pool is, as in struct xm_joiner */
	u32 user_of[XMEM_MAX_CLIENTS];		/* of the clients that are there */
	u32 group_user[XMEM_MAX_GROUPS];	/* of a group's owner, also if that has ended */
	bool one_user;				/* all clients are of one user: none of them says
						 * that it forwards something */
	u64 suspects[XMEM_MAX_GROUPS];		/* bitmaps of slots that this sweep looks at */
	u64 asked[XMEM_MAX_GROUPS];		/* and of those for the next one */
	u32 late_owner[XMEM_MAX_GROUPS];	/* of a group that is the host's: 1 + the client
						 * whose it was, if that is quarantined; or 0 */
	u64 quarantined[XMEM_CLIENT_WORDS];	/* bit set: that client has ended, maybe not what
						 * its process does on GPUs (I9) */
	u32 *born_ms;				/* [slots] when the tenancy of each began, or NULL:
						 * the host does not limit how many there are */
	u32 now_ms;				/* with born_ms: the host sets it before attach and
						 * renew; any clock whose milliseconds wrap */
};

/* May slots of the group be the host's? A writer that lives may have the others. */
static inline bool xm_has_limbo(const struct xm_host *host, u32 group)
{
	return host->group_owner[group] == XMEM_OWNER_HOST || host->limbo_ns[group];
}

/* In a bitmap that the host alone writes. */
static inline void xm_set_bit(u64 *words, u32 bit, bool on)
{
	u64 word = xm_load(&words[bit / 64]);

	word = on ? word | 1ULL << bit % 64 : word & ~(1ULL << bit % 64);
	xm_store_release(&words[bit / 64], word);
}

/*
 * Fill *header with the layout of a pool as @join asks for it, except owner_uid.
 * -EINVAL: a number is out of its range, or the name has a character that is not allowed.
 */
int xm_host_layout(const struct xmem_join_request *join, u64 page_bytes,
		   struct xmem_pool_header *header);

/*
 * Compute where every part begins from the capacities and strides that are in *header.
 * A part of xm_host_layout; tests make rows, cursors, entries and metadata longer.
 */
void xm_layout_place(struct xmem_pool_header *header, u64 page_bytes);

/*
 * Is this the header of a pool of @bytes that this version can use? It is for a client,
 * which knows only that a host has made the pool. -EPROTONOSUPPORT: no.
 */
int xm_layout_check(const struct xmem_pool_header *pool, u64 bytes);

/* Does an existing pool have what @join asks for? -ERANGE: one of its capacities is smaller. */
int xm_host_fits(const struct xm_map *map, const struct xmem_join_request *join);

/* Fill in what every host answers to a query; the host adds its own limits. */
void xm_host_query(struct xmem_query_request *request);

/*
 * Describe a pool for `pools`, except number, and who may join it. It reads only the host's words.
 */
void xm_host_describe(const struct xm_host *host, struct xmem_pools_request *request);

/*
 * Fill in the answer to `quota` but for quota, used and most: of that scope, under that name, of
 * no user, and not what has refused anything.
 */
void xm_quota_is(struct xmem_quota_request *request, u32 scope, const char *name);
/* The same, used and most too, if request->quota is a capacity of the pool. false: it is not. */
bool xm_host_quota(const struct xm_host *host, struct xmem_quota_request *request);

/* Begin with a header whose table is zeroed and at least groups_offset bytes long. */
void xm_host_init(struct xm_host *host, struct xmem_pool_header *pool);

/* Make the view of a mapping in which offset 0 is at @base and all parts follow @header. */
void xm_map_init(struct xm_map *map, void *base, const struct xmem_pool_header *header);

/*
 * The same for a client, which does not believe what it was told: @bytes are mapped at
 * @base, and join said that the caller is @client. The header is copied to *ret_header,
 * checked there and used from there, since others may write the page. -EPROTONOSUPPORT.
 */
int xm_map_take(struct xm_map *map, void *base, u64 bytes, u32 client,
		struct xmem_pool_header *ret_header);

/* ---- clients ---- */

/* An id for a new client, or -EUSERS. The caller gives it a zeroed area, then joins it. */
int xm_host_free_client(const struct xm_host *host);

/* Are @join's role, label and wait_bound_ns in order? Else -EINVAL. */
int xm_host_join_check(const struct xmem_join_request *join);

#define XM_NO_CLIENT	0xffffffffu

/* Who joins. */
struct xm_joiner {
	u32 pid, uid;		/* for all to see, or 0 */
	u32 sibling;		/* a client of the same process that lives, or XM_NO_CLIENT */
	u32 user;		/* whose it is: any number for each user; see xm_host */
};

/* The same check, then the client joins and @join's outputs are filled. */
int xm_host_join(struct xm_host *host, u32 client, struct xmem_join_request *join,
		 const struct xm_joiner *who);
/* A client becomes a writer. *ret_new: it was none, so waiters for writers are to be woken. */
int xm_host_writer(const struct xm_host *host, u32 me, bool *ret_new);

/*
 * Whose holds count where (holders.c); what they change only grows for as long as a client and an
 * owner are there, and the caller has the pool's lock. A client joins, before it is ALIVE.
 */
void xm_holders_join(struct xm_host *host, u32 client, u32 user);
/*
 * May @client hold from its join on what clients of @owners_user own? It may if its own user is
 * that one, or the pool's owner.
 */
bool xm_is_in_by_user(const struct xm_host *host, u32 client, u32 owners_user);
/* @me is about to follow @publisher: it may hold all that is, or may come to be, in that ring. */
void xm_holders_subscribe(const struct xm_host *host, u32 me, u32 publisher);
/* The group gets that owner, of whose slots nobody has a token yet; or the host, or nobody. */
void xm_holders_give(struct xm_host *host, u32 group, u32 owner);
/* The client is there no more, and so holds nothing. */
void xm_holders_leave(const struct xm_host *host, u32 client);

/* The request `grant`, with the errors of uapi.h. */
int xm_host_grant(const struct xm_host *host, u32 me, const struct xmem_grant_request *request);

/*
 * The row of the client that is asked for, or -EINVAL, -ENOENT. It fills incarnation; with
 * XMEM_CLIENT_LIMBO the caller fills limbo_bytes.
 */
int xm_host_client(const struct xm_host *host, struct xmem_client_request *request,
		   const struct xmem_client_row **ret);

/*
 * The errors are those that uapi.h names for the request. After either request the
 * caller wakes all slots_waiters: a cursor moved, and the publisher may sleep until one
 * does, and so may owners of what it has forwarded (I5). After an unsubscribe from a zombie,
 * or if xm_host_forwards says so, the caller reaps too.
 */
int xm_host_subscribe(struct xm_host *host, u32 me, struct xmem_subscribe_request *request);
int xm_host_unsubscribe(struct xm_host *host, u32 me,
			const struct xmem_unsubscribe_request *request);

/* Has @publisher's ring forwarded entries of slots that are the host's by now? */
bool xm_host_forwards(const struct xm_host *host, u32 publisher);

/*
 * A client has ended, and its process stores no more: it lets go of what it holds and stops to
 * follow, in its own area and under no lock, before the host has come to its end (xm_host_end). It
 * takes as long as the area is. The ring is repaired first: what stands in it complete may be
 * behind its tail, and nothing but the hold kept that (tests/model/let_go.pml). What it has
 * forwarded stays noted, and what its GPU has a pointer to stays held. true: it had something, and
 * the caller wakes all slots_waiters. *ret_holds: how much of it were holds.
 */
bool xm_client_lets_go(const struct xm_map *map, u32 client, u64 *ret_holds);

/*
 * A client has ended and can store no more (its pages are the host's own by now). Its
 * slots become the host's, its cursors and holds go, and its ring is repaired; the client
 * stays a zombie while that ring is in flight. The caller then makes other mappings see
 * these pages, reaps (xm_host_bury, xm_host_sweep, xm_host_idle_group) and wakes
 * everybody.
 *
 * Its holds of slots to which it has pointers of a GPU stay, and so does the client, until its
 * process has exited (I9); @opens: it has CUDA payloads open, so it stays anyhow. It also stays if
 * it has published what its GPU had yet to write, and then its groups go to nobody else.
 */
void xm_host_end(struct xm_host *host, u32 client, bool opens);

/* Is that client kept until its process has exited? */
static inline bool xm_host_is_quarantined(const struct xm_host *host, u32 client)
{
	return xm_bit(host->quarantined, client);
}

/*
 * The process of an ended client has exited, and its GPU does nothing for it any more: the rest
 * of its holds go. The caller closes what it has open, reaps and wakes everybody.
 */
void xm_host_exited(struct xm_host *host, u32 client);

/* What has become of a zombie. */
enum xm_buried {
	XM_BURIED_NOT = 0,		/* it is as before */
	XM_BURIED_RING,			/* only its ring has gone, which nobody follows any more */
	XM_BURIED,			/* it is forgotten, and its area may go */
};
/* Forget a zombie that nobody follows any more. It stays while it is quarantined. */
bool xm_host_can_bury(const struct xm_host *host, u32 client);
enum xm_buried xm_host_bury(struct xm_host *host, u32 client);

/* ---- slots ---- */

/*
 * The first slot from @slot on in a group of which @client is the tenant, or map.slots. Only these
 * groups have slots that @client owns, or of which it is the tenant.
 */
u32 xm_slot_of(const struct xm_host *host, u32 client, u32 slot);
#define xm_each_slot_of(host, client, s) \
	for ((s) = xm_slot_of(host, client, 0); (s) < (host)->map.slots; \
	     (s) = xm_slot_of(host, client, (s) + 1))

/* How many slots can @me attach without a further group? */
u32 xm_host_spare_slots(const struct xm_host *host, u32 me);

/*
 * A group without an owner with which @me has @count spare slots, or -ENOSPC. The caller gives
 * it zeroed pages, then to @me.
 */
int xm_host_free_group(const struct xm_host *host, u32 me, u32 count);
/* The owner of the group, as its first slot's row names it. */
u32 xm_host_said_owner(const struct xm_host *host, u32 group);
void xm_host_say_owner(const struct xm_host *host, u32 group);
/* @me: also XMEM_OWNER_HOST or XMEM_OWNER_NONE. Its row says so too. */
void xm_host_give_group(struct xm_host *host, u32 group, u32 me);

/* A payload, as the host that has it describes it to the core. */
struct xm_payload {
	u64 id;
	u32 traits;			/* XMEM_TRAIT_*, but for XMEM_TRAIT_ONCE */
	u64 bytes;
	const __u8 *device;		/* UUID of the GPU of a new CUDA payload, or NULL */
};

/*
 * Give request->count spare slots to @me. @random: from the caller's generator. -EDQUOT: the
 * device table is full; -ERANGE: the slots reach beyond the payload; -ENOSPC: @me has too few spare
 * slots, and with more of them it would succeed; -EALREADY: of these too many have begun a tenancy
 * in this millisecond, so ask again in the next one. With payload->device the number of the device
 * goes into payload->traits.
 */
int xm_host_attach(struct xm_host *host, u32 me, struct xm_payload *payload, u64 random,
		   struct xmem_attach_request *request);

/* What a new payload's traits are, as far as the flags of the attach say it. */
u32 xm_attach_traits(u32 flags);

/* Check the fields for which an attach is refused before the host looks at any file. -EINVAL. */
int xm_host_attach_check(const struct xmem_attach_request *request);

/* Do these seals (F_SEAL_*, as numbers of the kernel) make a file a payload? 0 or -ENOEXEC. */
int xm_seals_check(u32 seals, bool shared);
#define XM_SEAL_SEAL		0x0001u
#define XM_SEAL_SHRINK		0x0002u
#define XM_SEAL_GROW		0x0004u
#define XM_SEAL_WRITE		0x0008u
#define XM_SEAL_FUTURE_WRITE	0x0010u

/*
 * @me alone holds a slot whose payload is shared, and writes it in place; see uapi.h. After
 * PUBLISH, GIVE_UP and CANCEL the caller wakes the slot's owner, or if that is the host reclaims
 * the slot.
 */
int xm_host_upgrade(struct xm_host *host, u32 me, struct xmem_upgrade_request *request);

/*
 * Give back a FREE slot of @me, or all @slots slots of its payload: how many these were, and the
 * payload's id in *ret_payload; or -EINVAL, -EPERM, -EBUSY. The walk over the slots begins in the
 * group of the named one, and ends when it has seen @slots of them.
 */
int xm_host_detach(struct xm_host *host, u32 me, const struct xmem_slot_request *request,
		   u32 slots, u64 *ret_payload);

/* The id of the payload that @slot is in; 0: none, or there is no such slot. */
u64 xm_host_payload_of(const struct xm_host *host, u32 slot);

/*
 * The header says how many payload files there are, and how large they are. The host calls
 * these when one comes; when its owner has ended and others still use it; and when it goes,
 * after the rows of its slots have been freed. Each file has @bytes; @traits: XMEM_TRAIT_*;
 * @kept: its owner has ended. Memory of GPUs is counted in the device table; for its end there is
 * xm_cuda_goes.
 */
void xm_host_payload_comes(struct xm_host *host, u64 bytes, u32 traits);
void xm_host_payload_kept(struct xm_host *host, u64 bytes, u32 traits);
void xm_host_payload_goes(struct xm_host *host, u64 bytes, u32 traits, bool kept);

/* ---- CUDA payloads (cuda.c) ---- */

/* What a host notes of one beside its slots and its file. It is in its private memory. */
struct xm_cuda {
	u64 openers[XMEM_CLIENT_WORDS];	/* bit set: that client has it open (I8) */
	u64 bytes;
	u32 traits;			/* XMEM_TRAIT_*, with the number of the device */
	bool closing;			/* it has no slot any more */
	bool ended;			/* its owner has */
	__u8 device[XMEM_UUID_BYTES];
	__u8 handle[XMEM_HANDLE_BYTES];
	u64 opened_by[XMEM_MAX_CLIENTS];	/* of an opener: the number of the only request that
						 * has opened it; 0: there were several */
};

/*
 * Note what a new CUDA payload is, once its slots have been attached as @payload says. The caller
 * has filled *@cuda with zeroes: it is too large to be built on a kernel's stack.
 */
void xm_cuda_init(struct xm_cuda *cuda, const struct xm_payload *payload,
		  const struct xmem_attach_request *request);

/* Who asks for a payload. */
struct xm_asker {
	u32 client;
	u32 role;			/* enum xmem_role */
	u64 number;			/* of the request, which the client uses once; not 0 */
};

/*
 * Serve a `payload` request about a CUDA payload: check what the asker may, note an opener, and
 * fill the answer but for the descriptor, which the caller adds to that of an OPEN. 0 or -errno.
 * After a CLOSE the caller asks xm_cuda_is_closed.
 */
int xm_cuda_serve(struct xm_cuda *cuda, const struct xm_asker *asker,
		  struct xmem_payload_request *request);

/*
 * Has @client got it open by its request @number alone? If the client did not get that answer, it
 * has nothing open, and the caller says so by xm_cuda_left.
 */
bool xm_cuda_is_opened_by(const struct xm_cuda *cuda, u32 client, u64 number);

/* The same for a payload that is a file: is the request one for files? 0 or -EMEDIUMTYPE. */
int xm_payload_file_check(const struct xmem_payload_request *request);

/*
 * It has lost its last slot: the caller drops its file, and calls xm_host_payload_goes. It is
 * closing from now on.
 */
void xm_cuda_goes(struct xm_host *host, struct xm_cuda *cuda);

/* A client has ended, or if it is quarantined its process has exited: it has nothing open. */
void xm_cuda_left(struct xm_cuda *cuda, u32 client);

/*
 * Is it closing, and has nobody got it open any more? Then the device table and the header say so,
 * and the caller frees it and wakes its owner's slots_waiters. To be asked after all three of
 * xm_cuda_serve, xm_cuda_goes and xm_cuda_left, until the answer is yes.
 */
bool xm_cuda_is_closed(struct xm_host *host, const struct xm_cuda *cuda);

/* ---- ready words (ready.c) ---- */

/*
 * The GPU of the process that had a group writes none of its ready words any more, because the
 * process has exited or had nothing to write: end them in its page @group. Those that have not
 * reached what their contents need become XMEM_READY_ENDED, all others XMEM_READY_OVER. Not before,
 * for an older value could still be written over it, or who has gone on because of it could find
 * out too late that it was too early (tests/model/ready.pml).
 */
void xm_ready_end(const struct xm_map *map, void *group);

/* May there be a ready word in group @g that somebody waits for? Only where a slot is on a GPU. */
bool xm_ready_used(const struct xm_map *map, u32 g);

/*
 * The same for other pages of the group, which the GPU has written instead since its owner ended:
 * what it has reached there is reached. Before xm_host_exited.
 */
void xm_ready_end_old(const struct xm_map *map, u32 g, void *old);

/*
 * The pool ends, and nobody is left who could use its contents. The same for all groups whose
 * owners' processes have not exited, since nobody will be there to do it when they have.
 */
void xm_ready_end_all(struct xm_host *host);

/* ---- reclaiming (reclaim.c) ---- */

/*
 * Maybe nobody uses @slot any more: if it is the host's, the next sweep looks at it. Or at all
 * that are the host's.
 */
void xm_host_suspect(struct xm_host *host, u32 slot);
void xm_host_suspect_all(struct xm_host *host);

/* A sweep over the suspects while it runs. It begins zeroed, but for now_ns and ring_most. */
enum { XM_SWEEP_MARK, XM_SWEEP_HOLDS, XM_SWEEP_RINGS, XM_SWEEP_END };
struct xm_sweep {
	u32 stage;			/* which of these */
	u32 at;				/* group or client */
	bool rings;			/* there are rings to look at */
	u64 now_ns;			/* as of xm_host_limbo; 0: rings keep any number */
	u64 ring_most;			/* bytes that each ring may keep of old limbo (limbo.h) */
	u64 ring_kept;			/* that the one looked at last keeps */
	u64 ring_over;			/* 0, or how many it would keep with one that it may not */
};

/*
 * Go on with a sweep, by one group or one ring. Returns a slot that was freed, whose payload is in
 * *ret_payload; -EAGAIN: none this time; -ENOENT: that was all. Between the calls others may
 * have the lock, for any request; but no client ends or is buried before the sweep is over.
 */
int xm_host_sweep(struct xm_host *host, struct xm_sweep *sweep, u64 *ret_payload);

/* Take contents, owner and payload from a slot. Returns the payload that it had. */
u64 xm_free_slot(struct xm_host *host, u32 slot);

/*
 * Groups have become the host's at @now_ns. The header says of the first of those that are still
 * used when that was.
 */
void xm_host_limbo(struct xm_host *host, u64 now_ns);

/* Is it the host's, and has no slots? Then its pages may go, and after that it is nobody's. */
bool xm_host_idle_group(const struct xm_host *host, u32 group);
/* Is limbo_ns set although the group has no slot of an ended owner any more? */
bool xm_limbo_is_past(const struct xm_host *host, u32 group);
/* If so, clear it. */
void xm_host_limbo_went(struct xm_host *host, u32 group);
void xm_host_return_group(struct xm_host *host, u32 group);

/*
 * Resolve a slot for a holder: @word is what the state word was a while (1 ms) ago.
 * 0: the slot is LIVE; -EPERM: @me does not hold it; -EAGAIN: the word has changed.
 */
int xm_host_resolve(const struct xm_host *host, u32 me, u32 slot, u64 word);

/* Give a WRITING or FREE slot of @me the generations of its next tenancy. -EALREADY: see attach. */
int xm_host_renew(struct xm_host *host, u32 me, u64 random, struct xmem_slot_request *request);

/* ---- claims (claims.c) ---- */

/* How long is the zeroed memory that the caller gives to host->claims before the first request? */
size_t xm_claims_bytes(const struct xm_map *map);

/*
 * Do what a `claim` request asks for; its errors are in uapi.h. @now_ns: the time on the clock of
 * all deadlines; @privileged: the caller may void all claims. *pending is to be done after every
 * result: what looked used for a moment, or was voided, may be free now.
 */
int xm_host_claim(struct xm_host *host, u32 me, const struct xmem_claim_request *request,
		  u64 now_ns, bool privileged, struct xm_pending *pending);

/*
 * Void the claims of one slot whose time has passed. Returns the slot, about which the caller does
 * xm_claims_pending and then calls again; or -ENOENT: there is none, and *ret_deadline says when to
 * call again (~0: no need).
 */
int xm_host_expire_claims(struct xm_host *host, u64 now_ns, u64 *ret_deadline);

/*
 * From now on owners may add claims by themselves (xm_claim_alone, I10), as long as the pool lives:
 * for a host whose clients write the rows. host->claims is there.
 */
void xm_claims_share(struct xm_host *host);

/* @client ends, and its holds are still there: take those claims that are its own (P2). */
void xm_claims_leave(struct xm_host *host, u32 client);

/*
 * A client has ended: void the claims of one slot which were added by clients that have ended, if
 * none but the slot's owner is left to take them. Returns the slot as above, or -ENOENT. *at begins
 * with 0.
 */
int xm_host_orphaned_claims(struct xm_host *host, u32 *at);

/*
 * A client has ended: claims without end were its to ask for as their owner, so those of buffers
 * whose owner has ended last for XMEM_CLAIM_LONGEST_NS more at most. xm_host_expire_claims says
 * when the next ones end.
 */
void xm_host_bound_claims(struct xm_host *host, u64 now_ns);
/* The same for one group. false: no slot of any group has claims. */
bool xm_host_bound_group(struct xm_host *host, u32 group, u64 now_ns);

/*
 * Who keeps @slot by its claims: 1 + the client, or XM_KEEPER_*. @claims: those of the pool's host,
 * or NULL. It only looks, and needs no lock, but may then be late.
 */
u32 xm_claims_keeper(const struct xm_map *map, const struct xm_claims *claims, u32 slot);

/* A walk over all that is kept by claims of clients that have ended. */
struct xm_kept {
	u64 now_ns;			/* as that of a sweep */
	u64 most;			/* bytes that they may keep, all together */
	u64 bytes;			/* that they keep so far; begins with 0, as the next */
	u64 over;			/* how many it would be with the last slot that is voided */
	u32 slot;			/* the next one */
};
/*
 * Void the claims of one slot that is beyond that. What has been limbo for less than
 * XM_LIMBO_GRACE_NS is not counted. Returns the slot as xm_host_expire_claims does; -EAGAIN: a
 * group is done, and others may have the lock; -ENOENT: that was all.
 */
int xm_host_void_kept(struct xm_host *host, struct xm_kept *kept);

/* Who is to be woken, or told, after claims of @slot were voided? */
struct xm_pending xm_claims_pending(const struct xm_host *host, u32 slot);

/* The slot gets another tenancy, or none: forget its claims. */
void xm_claims_end(struct xm_host *host, u32 slot);

/* What a request does with a waiters word. */
enum xm_use { XM_ARM, XM_WAIT, XM_WAKE };

/*
 * The waiters word that a request names, or NULL and *err: there is no such word, or the caller
 * has no business with it. Whoever held something of a client may have let go of it, so all whose
 * holds count wake its slots' word; a ring is its publisher's, and the table the host's.
 */
u32 *xm_host_waiters(const struct xm_host *host, u32 me, const struct xmem_wait_request *request,
		     enum xm_use use, int *err);

/* ---- debugging ---- */

/* Test the invariants of the host's words. NULL, or what is wrong. Slow; under the lock. */
const char *xm_host_is_valid(const struct xm_host *host);

#endif

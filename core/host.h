/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host's bookkeeping: what the kernel module and the daemon do in the pages when a client
 * joins, attaches, subscribes and ends. It is pure, like protocol.h.
 *
 * The caller (kmod/, daemon/) provides the pages, the files, a lock for each pool and sleep, and it
 * knows when a client has ended. It holds the pool's lock for every function that changes the pool,
 * except xm_arm, xm_disarm and, in the clients of the daemon, xm_host_resolve: these only look and
 * compare-and-swap. xm_host_waiters, xm_host_fits and xm_host_describe only look and need no lock;
 * the sum of bytes that xm_host_describe gives may then mix two moments. xm_host_layout,
 * xm_host_query and xm_map_take touch no pool that is in use.
 */
#ifndef XM_HOST_H
#define XM_HOST_H

#include "protocol.h"

#define XM_MAX_ZOMBIES	8	/* rings of ended publishers that one subscriber may keep,
				 * besides the rings of publishers that waited for it */

/*
 * Strangers are subscribers whose user is neither the publisher's nor the pool's owner. The rings
 * of ended publishers that only strangers have yet to receive keep no more than this in all, but
 * the ring of the publisher that joined last always stays.
 */
#define XM_STRANGERS_BYTES	(64ULL << 20)
#define XM_STRANGERS_SHARE	4	/* of the pool's groups, and of its client ids; at least one
				 * of each */

/*
 * The ids of payloads begin after this. In test builds they soon pass 2^32, so that code which
 * keeps an id in fewer than 64 bits fails a test; the lower half of the second id is 0.
 */
#if defined(XMEM_STEPS) || defined(XMEM_DEBUG)
#define XM_PAYLOAD_BEFORE	((1ULL << 32) - 2)
#else
#define XM_PAYLOAD_BEFORE	0ULL
#endif

/* The host's record of one slot with claims, in its private memory. */
struct xm_claim {
	u64 deadline_ns;			/* ~0: none */
	u64 first;				/* the first generation in the row's word; if the
						 * row has another one, this struct says nothing
						 * about its claims (I10) */
	u64 adders[XMEM_CLIENT_WORDS];		/* bit set: that client lives and has added some */
};

/*
 * All slots with claims. In the daemon the list may also have slots that have lost their claims.
 */
struct xm_claims {
	u32 count;				/* slots in the list */
	u32 timed;				/* those whose claims have a deadline: the host has
						 * a tick while there are any */
	u32 alone;				/* 1: owners may use xm_claim_alone; or 0 */
	u64 listed[XMEM_MAX_GROUPS];		/* the list, a bitmap */
	struct xm_claim slot[];			/* [slots of the pool] */
};

/*
 * The time between two ticks, which void claims whose deadline has passed. Test builds do not wait
 * for it long.
 */
#if defined(XMEM_STEPS) || defined(XMEM_DEBUG)
#define XM_CLAIMS_TICK_NS	20000000ULL
#else
#define XM_CLAIMS_TICK_NS	1000000000ULL
#endif

/* The payloads of one client. */
struct xm_books {
	u64 incarnation;			/* of the client, until its end; else 0 */
	u64 file_bytes;				/* of the files that it has attached */
	u32 opens;				/* how many CUDA payloads it has open; also in
						 * quarantine */
};

struct xm_host {
	struct xm_map map;
	struct xm_books books[XMEM_MAX_CLIENTS];
	u64 incarnations;			/* the last incarnation that was given */
	u64 last_payload;			/* the last payload id that was given */
	u64 first_tenancies;			/* a secret; 0 until the first attach (slot.c) */
	u32 group_owner[XMEM_MAX_GROUPS];	/* client id, XMEM_OWNER_NONE or XMEM_OWNER_HOST */
	u32 group_tenant[XMEM_MAX_GROUPS];	/* client that has the group, or had it last,
						 * until it is buried; else XMEM_OWNER_NONE */
	struct xm_claims *claims;		/* NULL until the first request for claims */
	u64 limbo_ns[XMEM_MAX_GROUPS];		/* when the last owner of the group ended; 0: the
						 * group has no slot of an ended owner */
	u32 user;				/* user that owns the pool, as in xm_joiner */
	u32 user_of[XMEM_MAX_CLIENTS];		/* user of each client */
	u32 group_user[XMEM_MAX_GROUPS];	/* user of the group's owner, also after its end */
	bool one_user;				/* all clients belong to one user: none of them
						 * tells the host that it forwards */
	u64 suspects[XMEM_MAX_GROUPS];		/* bitmaps: slots in the sweep that runs */
	u64 asked[XMEM_MAX_GROUPS];		/* bitmaps: slots for the next sweep */
	u32 late_owner[XMEM_MAX_GROUPS];	/* if the host owns the group: 1 + its last
						 * owner, while that is quarantined; else 0 */
	u64 quarantined[XMEM_CLIENT_WORDS];	/* bit set: the client has ended, and its process
						 * may still use GPUs (I9) */
	u32 *born_ms;				/* [slots] when the tenancy of each began; NULL:
						 * the host does not limit tenancies */
	u32 now_ms;				/* the host sets it before attach and renew, from
						 * any clock in ms, which may wrap */
};

/* May the host own slots of this group? A living writer may own the other slots. */
static inline bool xm_has_limbo(const struct xm_host *host, u32 group)
{
	return host->group_owner[group] == XMEM_OWNER_HOST || host->limbo_ns[group];
}

/*
 * Fill *header with the layout of a pool as @join asks for it, except owner_uid. -EINVAL: a number
 * is out of range, or the name has a character that is not allowed.
 */
int xm_host_layout(const struct xmem_join_request *join, u64 page_bytes,
		   struct xmem_pool_header *header);

/*
 * Compute where every part begins, from the capacities and strides in *header. A part of
 * xm_host_layout that tests call with longer rows, cursors, entries and metadata.
 */
void xm_layout_place(struct xmem_pool_header *header, u64 page_bytes);

/*
 * Is this the header of a pool of @bytes that this version can use? For a client, which knows only
 * that a host has made the pool. -EPROTONOSUPPORT: no.
 */
int xm_layout_check(const struct xmem_pool_header *pool, u64 bytes);

/* Does an existing pool have the capacities that @join asks for? -ERANGE: one is smaller. */
int xm_host_fits(const struct xm_map *map, const struct xmem_join_request *join);

/* Fill in the part of a query's answer that is equal on all hosts; the host adds its own limits. */
void xm_host_query(struct xmem_query_request *request);

/* Fill in the answer to `pools`, except the number and the roles. Reads only the host's words. */
void xm_host_describe(const struct xm_host *host, struct xmem_pools_request *request);

/*
 * Fill in the answer to `quota`, except quota, used and most: a limit of that scope and name, of no
 * user, that has refused nothing.
 */
void xm_quota_is(struct xmem_quota_request *request, u32 scope, const char *name);
/* Fill in the whole answer to `quota` if it asks for a capacity of the pool; else return false. */
bool xm_host_quota(const struct xm_host *host, struct xmem_quota_request *request);

/* Fill in *map, but for the places of areas and groups. */
void xm_map_pool(struct xm_map *map, void *base, const struct xmem_pool_header *header);

/* Initialise *host for a header whose table is zeroed and at least groups_offset bytes long. */
void xm_host_init(struct xm_host *host, struct xmem_pool_header *pool);

/* Fill *map for a mapping in which offset 0 is at @base and all parts are where @header says. */
void xm_map_init(struct xm_map *map, void *base, const struct xmem_pool_header *header);

/*
 * Fill *map for a client, which does not trust what it was told: @bytes are mapped at @base, and
 * join said that the caller is @client. The header is copied to *ret_header, then checked and used
 * there, because others may write the page. -EPROTONOSUPPORT: the header is not valid.
 */
int xm_map_take(struct xm_map *map, void *base, u64 bytes, u32 client,
		struct xmem_pool_header *ret_header);

/* ---- clients ---- */

/* An id for a new client, or -EUSERS. The caller gives it a zeroed area, then lets it join. */
static inline int xm_host_free_client(const struct xm_host *host)
{
	u32 c;

	for (c = 0; c < host->map.clients; c++)
		if (xm_client_row(&host->map, c)->state == XMEM_CLIENT_NONE)
			return c;
	return -EUSERS;
}

/* Are the role, label and wait_bound_ns of @join valid? -EINVAL: no. */
int xm_host_join_check(const struct xmem_join_request *join);

#define XM_NO_CLIENT	0xffffffffu

/* The client that joins. */
struct xm_joiner {
	u32 pid, uid;		/* shown to all clients; 0: not known */
	u32 sibling;		/* a living client of its process, or XM_NO_CLIENT */
	u32 user;		/* its user, as any number that differs for each user */
};

/* Check @join (xm_host_join_check), let the client join, and fill in the outputs of @join. */
int xm_host_join(struct xm_host *host, u32 client, struct xmem_join_request *join,
		 const struct xm_joiner *who);
/*
 * The request `grant` with WRITER: a client becomes a writer. *ret_new: it was none before; the
 * caller wakes waiters for writers.
 */
int xm_host_writer(const struct xm_host *host, u32 me, const struct xmem_grant_request *request,
		   bool *ret_new);

/*
 * Whose holds count in which group (holders.c). These functions only add clients as long as a
 * client and an owner exist. xm_holders_join: a client joins; called before it is ALIVE.
 */
void xm_holders_join(struct xm_host *host, u32 client, u32 user);
/*
 * May @client hold what clients of @owners_user own, from its join on? It may if its own user is
 * @owners_user or the pool's owner.
 */
bool xm_is_in_by_user(const struct xm_host *host, u32 client, u32 owners_user);
/* @me is about to follow @publisher: it may hold all that is in that ring, now or later. */
void xm_holders_subscribe(const struct xm_host *host, u32 me, u32 publisher);
/*
 * @owner, a client, the host or nobody, gets the group; nobody has a token of a client's slots yet.
 */
void xm_holders_give(struct xm_host *host, u32 group, u32 owner);
/* The client no longer exists, so it holds nothing. */
void xm_holders_leave(const struct xm_host *host, u32 client);

/* The request `grant` with GRANT or FORWARD, with the errors of uapi.h. */
int xm_host_grant(const struct xm_host *host, u32 me, const struct xmem_grant_request *request);

/*
 * Find the row of the client that the request names, or -EINVAL, -ENOENT. Fills in incarnation.
 * With XMEM_CLIENT_LIMBO the caller fills in limbo_bytes.
 */
int xm_host_client(const struct xm_host *host, struct xmem_client_request *request,
		   const struct xmem_client_row **ret);

/*
 * Check an `evict` request of client @me. -EINVAL; -ESTALE: the other client has ended, as far as
 * the rows say.
 */
int xm_evict_check(const struct xm_map *map, u32 me, const struct xmem_evict_request *request);

/*
 * The requests `subscribe` and `unsubscribe`, with the errors of uapi.h. After either the caller
 * wakes all slots_waiters: a cursor has moved, and the publisher, or an owner of a buffer that the
 * publisher has forwarded, may be sleeping until one does (I5). The caller also reaps after an
 * unsubscribe from a zombie, and after any other if xm_host_forwards says so.
 */
int xm_host_subscribe(struct xm_host *host, u32 me, struct xmem_subscribe_request *request);
int xm_host_unsubscribe(struct xm_host *host, u32 me,
			const struct xmem_unsubscribe_request *request);

/* Does @publisher's ring forward slots that the host owns by now? */
bool xm_host_forwards(const struct xm_host *host, u32 publisher);

/*
 * A client has ended, and its process stores nothing any more: drop its holds and cursors, in its
 * own area. This needs no lock, and it runs before the host serves the end (xm_host_end). It takes
 * time in proportion to the size of the area. The ring is repaired first: complete entries may
 * stand behind the tail, and only the hold has kept their slots (tests/model/let_go.pml). The notes
 * of what the client has forwarded stay, and so do holds with a GPU pointer. true: the client had
 * something, and the caller wakes all slots_waiters. *ret_holds: how many holds were dropped.
 */
bool xm_client_release(const struct xm_map *map, u32 client, u64 *ret_holds);

/*
 * A client has ended and can store nothing any more (its pages belong to the host by now). The host
 * takes over its slots, its cursors and holds are dropped, and its ring is repaired. The client
 * stays a *zombie* while entries of that ring are in flight. The caller then makes other mappings
 * show these pages, reaps (xm_host_bury, xm_host_sweep, xm_host_idle_group) and wakes all waiters.
 *
 * The client is *quarantined* until its process has exited (I9) if it holds slots to which it has
 * GPU pointers: these holds stay. It is also quarantined if it has CUDA payloads open, or if it has
 * published contents that its GPU had yet to write; then its groups go to no other client.
 */
void xm_host_end(struct xm_host *host, u32 client);

/* Does that client stay until its process has exited? */
static inline bool xm_host_is_quarantined(const struct xm_host *host, u32 client)
{
	return xm_bit(host->quarantined, client);
}

/*
 * The process of a quarantined client has exited, and its GPU does nothing for it any more: drop
 * its remaining holds. The caller closes what the client has open, reaps and wakes all waiters.
 */
void xm_host_exited(struct xm_host *host, u32 client);

/*
 * The pool's owner needs an id: drop the oldest ring of a user's ended publishers that only
 * strangers keep. false: there is none. The caller reaps all.
 */
bool xm_host_drop_strangers(const struct xm_host *host, u32 user);

/* The result of xm_host_bury. */
enum xm_buried {
	XM_BURIED_NOT = 0,		/* nothing has changed */
	XM_BURIED_RING,			/* nobody follows its ring any more; only that is gone */
	XM_BURIED,			/* it is forgotten; its area may be freed */
};
/* Forget a zombie that nobody follows any more, unless it is quarantined. */
bool xm_host_can_bury(const struct xm_host *host, u32 client);
enum xm_buried xm_host_bury(struct xm_host *host, u32 client);

/* ---- slots ---- */

/*
 * The first slot from @slot on in a group whose tenant is @client, or map.slots. All slots that
 * @client owns, or whose tenant it is, are in such groups.
 */
u32 xm_slot_of(const struct xm_host *host, u32 client, u32 slot);
#define xm_each_slot_of(host, client, s) \
	for ((s) = xm_slot_of(host, client, 0); (s) < (host)->map.slots; \
	     (s) = xm_slot_of(host, client, (s) + 1))

/* How many slots can @me attach in groups that it has? @now: only those that need no wait. */
u32 xm_host_spare_slots(const struct xm_host *host, u32 me, bool now);

/*
 * Find a group without an owner with which @me has @count spare slots, or -ENOSPC. The caller gives
 * the group zeroed pages, and then gives it to @me.
 */
int xm_host_free_group(const struct xm_host *host, u32 me, u32 count);
/* The owner that the row of the group's first slot has to show; and writing it there. */
u32 xm_host_shown_owner(const struct xm_host *host, u32 group);
void xm_host_show_owner(const struct xm_host *host, u32 group);
/* Give the group to @me, also XMEM_OWNER_HOST or XMEM_OWNER_NONE, and show that in the rows. */
void xm_host_give_group(struct xm_host *host, u32 group, u32 me);

/* A payload, as the host describes it to the core. */
struct xm_payload {
	u64 id;
	u32 traits;			/* XMEM_TRAIT_*, without XMEM_TRAIT_ONCE */
	u64 bytes;
	const __u8 *device;		/* UUID of the GPU of a new CUDA payload, or NULL */
};

/*
 * Give request->count spare slots to @me. @random: from the caller's random generator. -EDQUOT: the
 * device table is full. -ERANGE: the slots reach beyond the payload. -ENOSPC: @me has too few spare
 * slots; with more it would succeed. -EALREADY: too many of its spare slots have begun a tenancy in
 * this millisecond; ask again in the next one. With payload->device the number of the device is
 * added to payload->traits.
 */
int xm_host_attach(struct xm_host *host, u32 me, struct xm_payload *payload, u64 random,
		   struct xmem_attach_request *request);

/* The traits of a new payload that the flags of an attach decide. */
u32 xm_attach_traits(u32 flags);

/*
 * Do the pages of a payload that was attached with these flags go with its last slot? @traits: its
 * traits. The host then punches one hole as long as the file.
 */
bool xm_attach_truncates(u32 flags, u32 traits);

/* Check those fields of an attach that need no look at a file. -EINVAL. */
int xm_host_attach_check(const struct xmem_attach_request *request);

/* Do these seals (the kernel's F_SEAL_*) permit a file as a payload? 0 or -ENOEXEC. */
int xm_seals_check(u32 seals, bool shared);
#define XM_SEAL_SEAL		0x0001u
#define XM_SEAL_SHRINK		0x0002u
#define XM_SEAL_GROW		0x0004u
#define XM_SEAL_WRITE		0x0008u
#define XM_SEAL_FUTURE_WRITE	0x0010u

/*
 * The request `upgrade`: @me is the only holder of a slot whose payload is shared, and writes the
 * slot in place (uapi.h). After PUBLISH, GIVE_UP and CANCEL the caller wakes the slot's owner; if
 * the owner is the host, the caller reclaims the slot.
 */
int xm_host_upgrade(struct xm_host *host, u32 me, struct xmem_upgrade_request *request);

/* Check a request about a slot: 0 or -EINVAL. The functions below take only checked requests. */
int xm_slot_check(const struct xm_map *map, const struct xmem_slot_request *request);

/*
 * Give back a FREE slot of @me, or all @slots slots of its payload. Returns how many were given
 * back, with the payload's id in *ret_payload; or -EPERM, -EBUSY. The walk over the slots begins in
 * the group of the named slot and ends when it has seen @slots of them.
 */
int xm_host_detach(struct xm_host *host, u32 me, const struct xmem_slot_request *request,
		   u32 slots, u64 *ret_payload);

/* The id of the payload of @slot; 0: it has none, or there is no such slot. */
u64 xm_host_payload_of(const struct xm_host *host, u32 slot);

/*
 * Update the number and bytes of payload files in the header. The host calls the first function
 * when @owner attaches a file; the second when it is dropped, after the rows of its slots have been
 * freed. @bytes: of the file; @traits: XMEM_TRAIT_*; @incarnation: of the owner. Memory of GPUs is
 * counted in the device table, and for its end there is xm_cuda_retire.
 */
void xm_host_payload_add(struct xm_host *host, u32 owner, u64 bytes, u32 traits);
void xm_host_payload_drop(struct xm_host *host, u32 owner, u64 incarnation, u64 bytes, u32 traits);

/* Has that client not ended yet (xm_host_end)? */
static inline bool xm_host_lives(const struct xm_host *host, u32 client, u64 incarnation)
{
	return host->books[client].incarnation == incarnation;
}

/* ---- CUDA payloads (cuda.c) ---- */

/* A host's record of a CUDA payload, besides its slots and its file, in its private memory. */
struct xm_cuda {
	u64 openers[XMEM_CLIENT_WORDS];	/* bit set: that client has it open (I8) */
	u64 bytes;
	u32 traits;			/* XMEM_TRAIT_*, with the number of the device */
	bool closing;			/* it has lost its last slot */
	bool ended;			/* its owner has ended */
	__u8 device[XMEM_UUID_BYTES];
	__u8 handle[XMEM_HANDLE_BYTES];
	u64 opened_by[XMEM_MAX_CLIENTS];	/* of each opener: the number of the one request
						 * that has opened it; 0: there were several */
};

/*
 * Fill in *@cuda for a new CUDA payload whose slots have been attached as @payload says. The caller
 * has zeroed *@cuda; the struct is too large for a kernel's stack.
 */
void xm_cuda_init(struct xm_cuda *cuda, const struct xm_payload *payload,
		  const struct xmem_attach_request *request);

/* The client that asks for a payload. */
struct xm_asker {
	u32 client;
	u32 role;			/* enum xmem_role */
	u64 number;			/* of the request, used once by the client; not 0 */
};

/*
 * Serve a `payload` request about a CUDA payload: check what the client may do, note it as an
 * opener, and fill in the answer except for the descriptor, which the caller adds to the answer of
 * an OPEN. Returns 0 or -errno. After a CLOSE the caller calls xm_cuda_is_closed.
 */
int xm_cuda_serve(struct xm_host *host, struct xm_cuda *cuda, const struct xm_asker *asker,
		  struct xmem_payload_request *request);

/*
 * Does @client have it open only by its request @number? If the answer to that request did not
 * reach the client, it has nothing open, and the caller calls xm_cuda_unopen.
 */
bool xm_cuda_is_opened_by(const struct xm_cuda *cuda, u32 client, u64 number);

/* Is a `payload` request about a payload that is a file valid? 0 or -EMEDIUMTYPE. */
int xm_payload_file_check(const struct xmem_payload_request *request);

/*
 * The payload has lost its last slot and is closing from now on. The caller drops its file and
 * calls xm_host_payload_drop.
 */
void xm_cuda_retire(struct xm_host *host, struct xm_cuda *cuda);

/* A client has ended and, if it was quarantined, its process has exited: it has nothing open. */
void xm_cuda_unopen(struct xm_host *host, struct xm_cuda *cuda, u32 client);

/*
 * Is it closing, and does no client have it open any more? Then the device table and the header are
 * updated, and the caller frees it and wakes its owner's slots_waiters. The caller asks after each
 * xm_cuda_serve, xm_cuda_retire and xm_cuda_unopen until the answer is yes.
 */
bool xm_cuda_is_closed(struct xm_host *host, const struct xm_cuda *cuda);

/* ---- ready words (ready.c) ---- */

/*
 * The GPU of the process that had a group writes none of its ready words any more, because the
 * process has exited or had nothing to write: end these words in the page @group. A word that has
 * not reached the value that its contents need becomes XMEM_READY_ENDED, every other
 * XMEM_READY_OVER. This must not happen earlier: the GPU could overwrite the word with an older
 * value, or a client that has gone on because of the word could learn too late that it was too
 * early (tests/model/ready.pml).
 */
void xm_ready_end(const struct xm_map *map, void *group);

/* May a client wait for a ready word in group @g? Only if one of its slots is on a GPU. */
bool xm_ready_used(const struct xm_map *map, u32 g);

/*
 * End the ready words in @old, an earlier page of group @g, which the GPU has written since its
 * owner ended: a value that it has reached there counts as reached. Called before xm_host_exited.
 */
void xm_ready_end_old(const struct xm_map *map, u32 g, void *old);

/*
 * The pool ends, and no client is left that could use its contents. End the ready words of all
 * groups whose owners' processes have not exited, because nobody will do so when they exit.
 */
void xm_ready_end_all(struct xm_host *host);

/*
 * The client ends: its groups become late. true: the GPU has yet to write contents of their slots
 * and then the ready words, so the client is quarantined.
 */
bool xm_mark_late(struct xm_host *host, u32 client);

/*
 * The groups of the client are late no longer: its process has exited, or had nothing to write.
 * Clients that wait for a ready word in these groups go on, and see the reason.
 */
void xm_clear_late(struct xm_host *host, u32 client);

/* ---- reclaiming (reclaim.c) ---- */

/*
 * Perhaps nobody uses @slot any more: if the host owns it, the next sweep looks at it. suspect_all:
 * at all slots that the host owns.
 */
void xm_host_suspect(struct xm_host *host, u32 slot);
void xm_host_suspect_all(struct xm_host *host);

/* A sweep over the suspects. It begins zeroed. */
enum { XM_SWEEP_MARK, XM_SWEEP_HOLDS, XM_SWEEP_RINGS, XM_SWEEP_END };
struct xm_sweep {
	u32 stage;			/* XM_SWEEP_* */
	u32 at;				/* group or client */
	bool rings;			/* it has to look at rings */
};

/*
 * Continue a sweep by one group or one ring. Returns a slot that was freed, with its payload in
 * *ret_payload; -EAGAIN: none in this step; -ENOENT: the sweep is over. Between the calls others
 * may take the lock, for any request; but no client ends or is buried before the sweep is over.
 */
int xm_host_sweep(struct xm_host *host, struct xm_sweep *sweep, u64 *ret_payload);

/* Take contents, owner and payload from a slot. Returns the id of its payload. */
u64 xm_free_slot(struct xm_host *host, u32 slot);

/*
 * The host has taken groups over at @now_ns. The header shows the time of the oldest one that is
 * still used.
 */
void xm_host_limbo(struct xm_host *host, u64 now_ns);

/*
 * Does the host own the group, and has it no slots? Then its pages may be freed, and after that the
 * group is given to nobody.
 */
bool xm_host_idle_group(const struct xm_host *host, u32 group);
/* Is limbo_ns set although the group has no slot of an ended owner any more? */
static inline bool xm_limbo_is_stale(const struct xm_host *host, u32 group)
{
	u32 s, first = group * XMEM_GROUP_SLOTS;

	if (!host->limbo_ns[group])
		return false;
	for (s = first; s < first + XMEM_GROUP_SLOTS; s++)
		if (xm_slot_row(&host->map, s)->owner == XMEM_OWNER_HOST)
			return false;
	return host->group_owner[group] != XMEM_OWNER_HOST;
}
/* If so, clear it. */
void xm_host_limbo_reset(struct xm_host *host, u32 group);

/*
 * Resolve a slot for a holder: @word is the state word that the slot had a while (1 ms) ago.
 * Returns 0: the slot is LIVE. -EPERM: @me does not hold it. -EAGAIN: the word has changed.
 */
int xm_host_resolve(const struct xm_host *host, u32 me, u32 slot, u64 word);

/*
 * Give a WRITING or FREE slot of @me the generations of its next tenancy. -EALREADY: as in
 * xm_host_attach.
 */
int xm_host_renew(struct xm_host *host, u32 me, u64 random, struct xmem_slot_request *request);

/* ---- claims (claims_host.c) ---- */

/*
 * The number of bytes of zeroed memory that the caller has to give to host->claims before the first
 * request.
 */
size_t xm_claims_bytes(const struct xm_map *map);

/*
 * Serve a `claim` request; its errors are in uapi.h. @now_ns: the time on the clock of all
 * deadlines; @privileged: the caller may void all claims. The caller does *pending after every
 * result: a slot that looked used for a moment, or whose claims were voided, may be free now.
 */
int xm_host_claim(struct xm_host *host, u32 me, const struct xmem_claim_request *request,
		  u64 now_ns, bool privileged, struct xm_pending *pending);

/*
 * A part of a tick: void the claims of one slot whose deadline has passed. *at begins with 0.
 * Returns the slot; the caller does xm_put_pending for it and calls again. -EAGAIN: it has
 * looked at 64 slots; others may take the lock, and the caller calls again. -ENOENT: the tick is
 * over, and if host->claims->timed is not 0, another one follows after XM_CLAIMS_TICK_NS.
 */
int xm_host_expire_claims(struct xm_host *host, u64 now_ns, u32 *at);

/*
 * From now on owners may add claims without the host (xm_claim_alone, I10), as long as the pool
 * lives. For a host whose clients can write the rows. host->claims exists.
 */
static inline void xm_claims_share(struct xm_host *host)
{
	host->claims->alone = 1;
	xm_store_release(&host->map.pool->claimed, host->claims->count + 1);
}

/* @client ends: it has added no claims any more, and keeps no slots by them. */
void xm_claims_leave(struct xm_host *host, u32 client);

/*
 * A client has ended: void the claims of one slot that were added by ended clients, if only the
 * slot's owner is left to take them. Other claims of slots whose owner has ended now last
 * XMEM_CLAIM_LONGEST_NS more at most. Returns what xm_host_expire_claims does.
 */
int xm_host_claims_left(struct xm_host *host, u64 now_ns, u32 *at);

/* The slot gets another tenancy, or none: void its claims. */
void xm_claims_end(struct xm_host *host, u32 slot);

/*
 * Check a request to arm, wait or wake, and find its waiters word, or NULL and *err: a field is
 * wrong, there is no such word, or the caller has no right to it. A client whose holds count may
 * have dropped a hold of another client's slot, so it may wake that client's slots_waiters. A
 * ring's word belongs to its publisher, the table's to the host.
 */
u32 *xm_host_waiters(const struct xm_host *host, u32 me, const struct xmem_wait_request *request,
		     int *err);

/* Check a kick, which names no word: 0 or -EINVAL. */
static inline int xm_kick_check(const struct xmem_wait_request *request)
{
	return request->kind || request->client || request->value || request->deadline_ns ||
	       request->kicks ? -EINVAL : 0;
}

/* ---- debugging ---- */

/*
 * Check the invariants of the host's words. Returns NULL, or says what is wrong. Slow; needs the
 * lock.
 */
const char *xm_host_is_valid(const struct xm_host *host);

#endif

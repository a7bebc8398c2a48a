/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* The pages of a pool. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_PAGES_H
#define XMEM_UAPI_PAGES_H

#include <linux/types.h>

#include "limits.h"

/* ------------------------------------------------------------------------
 * Pages. File offsets are the same for all clients of a pool:
 *
 *   0               pool table   header, rows of clients, slots, devices and groups; the host
 *                                writes them
 *   groups_offset   groups       state words, ready words and metadata; the slots' owner
 *                                writes them
 *   areas_offset    areas        cursors, ring, holds; each client writes its own
 *
 * All of it may be mapped shared and read-only. A client maps its area and the groups
 * that it owns read-write, each in a mapping of its own.
 */

/*
 * Features of a pool's layout. A client ignores a bit that it does not know in `compat`,
 * and must not use a pool that has such a bit in `incompat` (EPROTONOSUPPORT). This
 * version of the ABI defines none.
 */
#define XMEM_COMPAT_KNOWN	0ULL
#define XMEM_INCOMPAT_KNOWN	0ULL

/*
 * Rows, cursors, entries and metadata are found by the strides in the header, and never
 * by sizeof: a newer host makes them longer, and an older client does not look at what is
 * behind the fields that it knows. No stride is shorter than the struct of this header.
 * A state word (16 bytes), a hold (4 bytes) and a group's row (64 bytes) have a fixed size.
 */
struct xmem_pool_header {
	__u64 magic;			/* XMEM_MAGIC */
	__u32 abi;			/* XMEM_ABI of the host that made the pool */
	__u32 slots;			/* capacity; a multiple of XMEM_GROUP_SLOTS */
	__u64 compat;			/* features that a client may ignore */
	__u64 incompat;			/* features that a client has to know */
	__u32 clients;			/* capacity */
	__u32 ring_entries;		/* of each client's ring; a power of two */
	__u32 owner_uid;		/* daemon: of the creator; kernel: 0, see POOLS */
	__u32 client_row_stride;	/* bytes from one struct xmem_client_row to the next */
	__u32 slot_row_stride;		/* bytes from one struct xmem_slot_row to the next */
	__u32 cursor_stride;		/* bytes from one struct xmem_cursor to the next */
	__u32 entry_stride;		/* bytes from one struct xmem_entry to the next */
	__u32 metadata_stride;		/* bytes from one struct xmem_metadata to the next */
	__u64 clients_offset;		/* bytes from here to the first client row */
	__u64 slots_offset;		/* bytes from here to the first slot row */
	__u64 groups_offset;		/* bytes, page-aligned */
	__u64 group_stride;		/* bytes from one group to the next */
	__u64 metadata_offset;		/* bytes into a group: the first struct xmem_metadata */
	__u64 areas_offset;		/* bytes, page-aligned */
	__u64 area_stride;		/* bytes from one client's area to the next */
	__u64 ring_offset;		/* bytes into an area: struct xmem_ring */
	__u64 entries_offset;		/* bytes into an area: the ring's first entry */
	__u64 holds_offset;		/* bytes into an area; + (id % 16) * 256: __u32[slots] */
	__u64 total_bytes;		/* of all parts together */
	__u8  name[XMEM_NAME_BYTES];	/* NUL-terminated; empty: anonymous */
	__u32 payloads;			/* payloads with slots now: files, and memory of GPUs */
	__u32 reserved0[7];
	__u64 payload_bytes;		/* of all payload files, as the next two; memory of GPUs is
					 * counted in the device table */
	__u64 kept_bytes;		/* of those whose owner has ended, and which others use */
	__u64 huge_bytes;		/* of payload files in huge pages (hugetlb) */
	__u64 limbo_ns;			/* CLOCK_MONOTONIC of the host: when the first of the owners
					 * ended whose slots others still use; 0: there is none */
	__u64 ready_offset;		/* bytes into a group: a __u64 for each of its slots */
	__u64 devices_offset;		/* bytes from here to the first struct xmem_device_row */
	__u32 devices_stride;		/* bytes from one of them to the next */
	__u32 devices;			/* capacity: XMEM_MAX_DEVICES */
	__u64 group_rows_offset;	/* bytes from here to the first struct xmem_group_row */
	/* These have cache lines of their own: every wait for clients reads them. */
	/*
	 * Bit set: that client's holds count wherever they are: it is of the pool's owner's user.
	 * Holds of others count where `holders` of the slot's group says so, and they look there
	 * before each get by a token.
	 */
	__u64 counted[XMEM_CLIENT_WORDS];
	__u64 writers;			/* how many writers have joined so far */
	__u64 payloads_gone;		/* how many payloads have lost their last slot so far */
	__u32 host;			/* its low 30 bits are not 0 as long as the host lives;
					 * a futex (daemon): a client that finds them 0 wakes all
					 * there. 0 altogether: the pool has ended before
					 * (daemon) */
	__u32 pollers;			/* daemon: how many poll_fd it has given out; kernel: 0 */
	__u64 claimed;			/* how many slots have claims, or more: no fewer; 0: none,
					 * and in the daemon's pools no owner adds by itself */
	__u32 clients_waiters;		/* waiters word: until the client table changes */
	__u32 reserved2;
	__u64 payloads_closed;		/* how many CUDA payloads have lost their last slot so far,
					 * and their last opener */
	__u32 reserved3[12];
};

/* A waiters word: bit 0 says that a waiter sleeps, the other bits count the wake-ups. */
#define XMEM_WAITERS_ARMED	1u
#define XMEM_WAITERS_STEP	2u

#define XMEM_HOST_ALIVE		0x3fffffffu	/* of the header's host */

enum xmem_client_state {
	XMEM_CLIENT_NONE = 0,		/* the id is free */
	XMEM_CLIENT_ALIVE = 1,
	XMEM_CLIENT_ZOMBIE = 2,		/* it has ended; its ring is still in flight */
};

enum xmem_role {
	XMEM_ROLE_READER = 1,		/* may subscribe, receive, get, put */
	XMEM_ROLE_WRITER = 2,		/* may attach and publish too; it has a ring */
	XMEM_ROLE_EITHER = 3,		/* a reader that becomes a writer by XMEM_IOC_WRITER */
};

/* One client as all processes see it. Only the host writes it. */
struct xmem_client_row {
	__u64 incarnation;		/* number of this use of the id, from 1, never reused */
	__u32 state;			/* enum xmem_client_state */
	__u32 role;			/* enum xmem_role */
	__u32 pid;			/* daemon: as it sees it, for display only; kernel: 0, for
					 * nobody's number is everybody's: see CLIENT */
	__u32 uid;			/* likewise */
	__u64 wait_bound_ns;		/* its longest wait for subscribers; 0: it does not wait */
	__u8  label[XMEM_LABEL_BYTES];	/* the client's name for itself; NUL-terminated */
	__u64 process;			/* the same in all clients of one process that live, and in
					 * no other that lives */
	__u32 subscribing;		/* 1 + id of a client whose bit in `subscribers` may be
					 * set, and whose cursor is not there yet; 0: none */
	__u32 subscriber_changes;	/* how often `subscribers` has changed so far */
	__u64 subscribers[XMEM_CLIENT_WORDS];	/* bit set: that client follows this ring */
	__u64 waits[XMEM_CLIENT_WORDS];		/* bit set: the publisher waits for it too */
	__u32 ring_waiters;		/* waiters word: until this client publishes */
	__u32 slots_waiters;		/* waiters word: until a slot of this owner may be free, or
					 * its subscribers have changed */
	__u64 holders[XMEM_CLIENT_WORDS];	/* as in the rows of the groups that are its own,
						 * and of those that it gets */
	__u64 reserved1[3];
};

#define XMEM_OWNER_NONE	0xffffffffu	/* nothing is attached */
#define XMEM_OWNER_HOST	0xfffffffeu	/* the owner has ended; the host reclaims the slot */
#define XMEM_OWNER_LEFT	0xfffffffdu	/* only of a group: it is the host's, and writers of the
					 * pool's owner's user get its free slots */

/* One slot as all processes see it. Only the host writes it. */
struct xmem_slot_row {
	__u32 owner;			/* client id, or XMEM_OWNER_* */
	__u32 tenant;			/* client in whose ring it is published, or _NONE */
	__u64 payload;			/* id of the payload, from 1, never reused; 0: none */
	__u64 generation_first;		/* the first of this tenancy's generations, which end
					 * at the next multiple of 1 << XMEM_TENANCY_SHIFT; in
					 * its upper 16 bits the claims (daemon: clients take
					 * from them, and an owner that adds some by itself
					 * puts a later one of these generations here) */
	__u64 offset;			/* bytes into the payload file */
	__u64 length;			/* bytes */
	__u32 tenancies;		/* uses so far; after 2^24 - 1 the slot is worn out (P5) */
	__u32 traits;			/* XMEM_TRAIT_* of its payload */
	__u64 payload_bytes;		/* of the whole payload file */
	__u32 upgrader;			/* 1 + id of the client that writes it in place; 0: none */
	__u32 group_owner;		/* of the first slot of each group: 1 + whose it is, as in
					 * owner, so nobody's is 0; it stays when slots come free */
};

/*
 * The host's notes on a group of XMEM_GROUP_SLOTS slots. A hold counts only if its client could
 * have been given what it holds: a bit in `holders`. The bit stays until the client ends, or until
 * the group has come free as a whole and is given to another owner. In are
 *
 *   - clients of the pool's owner's user, and of the user of the slots' owner, when they join
 *   - clients that subscribe to the owner's ring, or to a ring in which the owner's buffers are
 *     forwarded, before their cursors are there
 *   - clients that the owner lets in by `grant`
 *
 * For the slots of an owner that has ended `holders` stays as it was; a client that forwards them
 * lets its subscribers in. A client that is not in holds nothing there, whatever it writes, and
 * gets nothing by a token. A client that the owner lets in stays in also when it unsubscribes.
 */
struct xmem_group_row {
	__u64 holders[XMEM_CLIENT_WORDS];
	__u64 stages[XMEM_CLIENT_WORDS];	/* bit set: that client has said by `grant` that it
						 * forwards slots of the group, so its subscribers
						 * are in `holders`, also later ones; daemon: all */
};

/*
 * One GPU. The host enters it when the first memory of it is attached, and it stays as long as
 * the pool; the first without a UUID ends the table.
 */
struct xmem_device_row {
	__u8  uuid[XMEM_UUID_BYTES];	/* all zero: no device */
	__u64 bytes;			/* of all CUDA payloads that have slots or are closing */
	__u64 closing_bytes;		/* of those that have no slot any more, and that clients
					 * still have open */
	__u64 reserved[4];
};

/* The traits of a payload. The host finds them out, or takes them from the attach. */
#define XMEM_TRAIT_SHARED	(1u << 0)	/* every writer of the pool may write it, when the
						 * protocol lets it */
#define XMEM_TRAIT_CONSTANT	(1u << 1)	/* F_SEAL_WRITE: nobody can write it any more */
#define XMEM_TRAIT_HUGE		(1u << 2)	/* a memfd in huge pages */
#define XMEM_TRAIT_ONCE		(1u << 3)	/* the slot is for one content, and then
						 * detached; no acquire gets it */
#define XMEM_TRAIT_DMABUF	(1u << 4)	/* kernel: its exporter may change it, or take
						 * it away, so that a look at it is SIGBUS */
#define XMEM_TRAIT_CUDA		(1u << 5)	/* memory of a GPU: nobody maps it, but the driver
						 * opens it */
#define XMEM_TRAIT_HANDLE	(1u << 6)	/* CUDA: it is its owner's allocation, and ends with
						 * its owner */
#define XMEM_TRAIT_READERS	(1u << 7)	/* CUDA: readers get it too, although who opens it
						 * can write it */
#define XMEM_TRAIT_DEVICE_SHIFT	24		/* the upper 8 bits: the number of the device, which
						 * is 1 + its row; 0: the CPU */

/*
 * The state word of a slot: generation << 16 | scan number << 3 | state.
 * A token is generation << 16 | slot.
 */
#define XMEM_GENERATION_BITS	48
/* The generations of one tenancy share the bits above these: 2^24 - 1 tenancies a slot. */
#define XMEM_TENANCY_SHIFT	24
#define XMEM_CLAIMS_SHIFT	48	/* of generation_first */
#define XMEM_MAX_CLAIMS		65535	/* of one slot */

enum xmem_slot_state {
	XMEM_SLOT_FREE = 0,		/* it has no contents */
	XMEM_SLOT_WRITING = 1,		/* only its owner uses it */
	XMEM_SLOT_LIVE = 2,		/* every client that has the token may hold it */
	XMEM_SLOT_SCANNING = 3,		/* as LIVE, and its owner looks for holders */
	XMEM_SLOT_UPGRADED = 4,		/* the client that alone held it writes it in place */
};

struct xmem_slot_word {
	__u64 state;			/* the state word */
	__u64 position;			/* 1 + place of its last publication; 0: none;
					 * XMEM_POSITION_IN_HAND */
};
#define XMEM_POSITION_IN_HAND	(1ULL << 63)	/* WRITING: the owner's program has it now */

/*
 * XMEM_GROUP_SLOTS slots of one owner: their state words. metadata_offset has the metadata, and
 * ready_offset a ready word for each: how far the owner's GPU has got with the slot. A GPU stream
 * or the owner's library writes it, and it only grows; the value that the contents need is
 * order_value in their metadata. When the owner has ended and its process has exited, the host
 * writes XMEM_READY_ENDED where that is not reached, and XMEM_READY_OVER into all others. So nobody
 * waits for ever, whatever the owner has said in the metadata.
 */
struct xmem_group {
	struct xmem_slot_word word[XMEM_GROUP_SLOTS];
};
#define XMEM_READY_OVER		(1ULL << 61)	/* more than any order_value */
#define XMEM_READY_ENDED	(1ULL << 62)	/* more than that */

/*
 * A client's notes about another one. position is its place in the ring of that client; demoted_*
 * say whether it, as a publisher, has demoted that client: it has, as long as that client's
 * incarnation and cursor are still these. Each has a cache line of its own.
 */
struct xmem_cursor {
	__u64 position;			/* next to receive, or XMEM_CURSOR_* */
	__u64 demoted_incarnation;	/* of the subscriber that was demoted; 0: none */
	__u64 demoted_at;		/* where its cursor stood */
	__u64 history;			/* not 0: this client has yet to receive what was published
					 * before it subscribed, so its descriptors are readable */
	__u64 reserved[4];
};
#define XMEM_CURSOR_NONE	0xffffffffffffffffULL	/* not subscribed */
/* The host has dropped the ring of an ended publisher; the other bits say where it ended. */
#define XMEM_CURSOR_DROPPED	(1ULL << 63)

/* One publication. The receiver polls its position. */
struct xmem_entry {
	__u64 position;			/* 1 + place, and XMEM_ENTRY_*; 0: being written */
	__u64 token;
	__u64 sequence;			/* the publisher's count */
	__u64 timestamp_ns;		/* CLOCK_MONOTONIC, from the publisher; 0: none */
	__u64 offset;			/* bytes into the slot's payload */
	__u64 length;			/* bytes */
	__u64 addressee;		/* MARKED: incarnation of the only subscriber that may get
					 * it; 0: all may; XMEM_ADDRESSEE_NOBODY: retracted */
	__u64 reserved;
};
#define XMEM_ENTRY_VOID		(1ULL << 63)	/* evicted or retracted */
#define XMEM_ENTRY_MARKED	(1ULL << 62)	/* forwarded, or for one subscriber alone: the entry
						 * proves nothing, but the slot's state word does */
#define XMEM_ADDRESSEE_NOBODY	(~0ULL)

/* A publisher's ring; its ring_entries entries are at entries_offset. */
struct xmem_ring {
	__u64 tail;			/* publications so far */
	__u64 demote_at_ns;		/* CLOCK_MONOTONIC: when the owner demotes those that it
					 * waits for; 0: it does not wait now */
	__u64 wanted;			/* bytes of the buffer that was last refused; 0: none was */
	__u64 mapped_bytes;		/* of the payload files that this client has mapped */
	__u64 wanted_label[XMEM_LABEL_BYTES / 8];	/* as bytes: of the writers that it wants
					 * to follow as one; a '*' at the end stands for any
					 * rest; all zero: any label */
	__u64 recall_at_ns;		/* CLOCK_MONOTONIC: when the owner looks again for slots
					 * that others have forwarded; 0: it waits for none */
	__u64 makes;			/* the owner can make a buffer of up to so many bytes now;
					 * 0: none, ~0: as far as it knows any */
	__u64 lacks;			/* it could make what it wants if so many bytes of its own
					 * buffers with contents came free; 0: not so */
	__u64 limbo_ns;			/* CLOCK_MONOTONIC: since when the owner has wanted back
					 * what others hold; 0: it does not miss any */
	__u64 lacks_slots;		/* not 0: it could make what it wants if the pool had a slot
					 * for it */
	__u64 wanted_device;		/* where `wanted`, `makes` and `lacks` are bytes: the
					 * number of the device; 0: the CPU */
	__u64 collects;			/* enum xmem_collects: the requests to collect that this
					 * client has sent and the daemon has not served yet */
	__u64 changes_seen;		/* subscriber_changes of this client's row, when its program
					 * last looked at its subscribers */
	__u64 awaits_writer;		/* threads of this client that wait for a writer to come */
	__u64 reserved;
};

/*
 * A client asks to collect one slot, and then asks no more until the daemon serves that: meanwhile
 * it only notes that there is more. The daemon changes the word to NONE, then looks at the slot, or
 * after MORE at all. So however many slots a client lets go, one datagram is under way. The module
 * needs no such word, because it serves each request at once.
 */
enum xmem_collects {
	XMEM_COLLECTS_NONE = 0,
	XMEM_COLLECTS_ONE = 1,
	XMEM_COLLECTS_MORE = 2,		/* and other slots, whichever they are */
};

#endif

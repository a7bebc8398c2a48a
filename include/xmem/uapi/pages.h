/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* The pages of a pool. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_PAGES_H
#define XMEM_UAPI_PAGES_H

#include <linux/types.h>

#include "limits.h"

/*
 * Every client of a pool sees these parts at these offsets:
 *
 *   0               pool table   header, rows of clients, slots, devices and groups; the host
 *                                writes them
 *   groups_offset   groups       state words, ready words and metadata; the slots' owner
 *                                writes them
 *   areas_offset    areas        cursors, ring, holds; each client writes its own
 *
 * A client may map all of it shared and read-only. It maps its area and the groups that it owns
 * read-write, each in a mapping of its own.
 */

/*
 * Features of a pool's layout. A client ignores an unknown bit in `compat`, and must not use a pool
 * with an unknown bit in `incompat` (EPROTONOSUPPORT). This version of the ABI defines none.
 */
#define XMEM_COMPAT_KNOWN	0ULL
#define XMEM_INCOMPAT_KNOWN	0ULL

/*
 * A program finds rows, cursors, entries and metadata by the strides in the header, and never by
 * sizeof: a newer host makes them longer, and an older client does not look behind the fields that
 * it knows. No stride is shorter than the struct of this header. A state word (16 bytes), a hold (4
 * bytes) and a group's row (64 bytes) have a fixed size.
 */
struct xmem_pool_header {
	__u64 magic;			/* XMEM_MAGIC */
	__u32 abi;			/* XMEM_ABI of the host that made the pool */
	__u32 slots;			/* capacity; a multiple of XMEM_GROUP_SLOTS */
	__u64 compat;			/* features that a client may ignore */
	__u64 incompat;			/* features that a client has to know */
	__u32 clients;			/* capacity */
	__u32 ring_entries;		/* of each client's ring; a power of two */
	__u32 owner_uid;		/* daemon: the creator's; kernel: 0, see the request
					 * pools */
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
	__u64 payload_bytes;		/* of all payload files; memory of GPUs is counted in the
					 * device table */
	__u64 kept_bytes;		/* of the payload files whose owner has ended and which
					 * clients use */
	__u64 huge_bytes;		/* of payload files in huge pages (hugetlb) */
	__u64 limbo_ns;			/* CLOCK_MONOTONIC of the host: when the first owner ended
					 * whose slots clients still use; 0: there is none */
	__u64 ready_offset;		/* bytes into a group: a __u64 for each of its slots */
	__u64 devices_offset;		/* bytes from here to the first struct xmem_device_row */
	__u32 devices_stride;		/* bytes from one struct xmem_device_row to the next */
	__u32 devices;			/* capacity: XMEM_MAX_DEVICES */
	__u64 group_rows_offset;	/* bytes from here to the first struct xmem_group_row */
	/*
	 * The fields from here on have cache lines of their own, because every wait for clients
	 * reads them.
	 *
	 * counted: a bit for each client whose user is the pool's owner. The holds of such a client
	 * count in every slot. The holds of another client count where `holders` of the slot's
	 * group says so, and it checks that before each get by a token.
	 */
	__u64 counted[XMEM_CLIENT_WORDS];
	__u64 writers;			/* writers that have joined so far */
	__u64 payloads_gone;		/* payloads that have lost their last slot so far */
	__u32 host;			/* its low 30 bits are not 0 while the host lives. Daemon: a
					 * futex; a client that finds these bits 0 wakes all waiters
					 * there; 0 altogether: the pool had ended before */
	__u32 pollers;			/* daemon: descriptors that it has given out by poll_fd;
					 * kernel: 0 */
	__u64 claimed;			/* slots with claims, or more than that; 0: there are none,
					 * and in the daemon's pools no owner adds claims by
					 * itself */
	__u32 clients_waiters;		/* waiters word: until the client table changes */
	__u32 reserved2;
	__u64 payloads_closed;		/* CUDA payloads that have lost their last slot and their
					 * last opener so far */
	__u32 reserved3[12];
};

/* A waiters word: bit 0 says that a waiter sleeps, and the other bits count the wake-ups. */
#define XMEM_WAITERS_ARMED	1u
#define XMEM_WAITERS_STEP	2u

#define XMEM_HOST_ALIVE		0x3fffffffu	/* of the header's host */

enum xmem_client_state {
	XMEM_CLIENT_NONE = 0,		/* the id is free */
	XMEM_CLIENT_ALIVE = 1,
	XMEM_CLIENT_ZOMBIE = 2,		/* it has ended, and its ring is still in flight */
};

enum xmem_role {
	XMEM_ROLE_READER = 1,		/* may subscribe, receive, get, put */
	XMEM_ROLE_WRITER = 2,		/* may also attach and publish; it has a ring */
	XMEM_ROLE_EITHER = 3,		/* a reader that becomes a writer by XMEM_IOC_WRITER */
};

/* One client, as all processes see it. Only the host writes it. */
struct xmem_client_row {
	__u64 incarnation;		/* number of this use of the id, from 1, never reused */
	__u32 state;			/* enum xmem_client_state */
	__u32 role;			/* enum xmem_role */
	__u32 pid;			/* daemon: as the daemon sees it, for display only; kernel:
					 * 0, because it differs between namespaces: the request
					 * client tells it */
	__u32 uid;			/* as pid */
	__u64 wait_bound_ns;		/* its longest wait for subscribers; 0: it does not wait */
	__u8  label[XMEM_LABEL_BYTES];	/* the client's name for itself; NUL-terminated */
	__u64 process;			/* a number that all living clients of one process have, and
					 * no other living client */
	__u32 subscribing;		/* 1 + id of a client whose bit in `subscribers` may be set
					 * before its cursor is there; 0: none */
	__u32 subscriber_changes;	/* changes of `subscribers` so far */
	__u64 subscribers[XMEM_CLIENT_WORDS];	/* bit set: that client follows this ring */
	__u64 waits[XMEM_CLIENT_WORDS];		/* bit set: the publisher waits for that client */
	__u32 ring_waiters;		/* waiters word: until this client publishes */
	__u32 slots_waiters;		/* waiters word: until a slot of this owner may be free, or
					 * its subscribers have changed */
	__u64 holders[XMEM_CLIENT_WORDS];	/* as in the rows of the groups that this client has
						 * or gets */
	__u64 reserved1[3];
};

#define XMEM_OWNER_NONE	0xffffffffu	/* nothing is attached */
#define XMEM_OWNER_HOST	0xfffffffeu	/* the owner has ended; the host reclaims the slot */
#define XMEM_OWNER_LEFT	0xfffffffdu	/* only of a group: the host has it, and writers of the
					 * pool's owner's user get its free slots */

/* One slot, as all processes see it. Only the host writes it. */
struct xmem_slot_row {
	__u32 owner;			/* client id, or XMEM_OWNER_* */
	__u32 tenant;			/* client in whose ring it is published, or
					 * XMEM_OWNER_NONE */
	__u64 payload;			/* id of the payload, from 1, never reused; 0: none */
	__u64 generation_first;		/* the first of this tenancy's generations, which end at the
					 * next multiple of 1 << XMEM_TENANCY_SHIFT. The upper 16
					 * bits are the claims (daemon: clients take them from
					 * there, and an owner that adds claims by itself stores a
					 * later one of these generations) */
	__u64 offset;			/* bytes into the payload file */
	__u64 length;			/* bytes */
	__u32 tenancies;		/* uses so far; after 2^24 - 1 the slot is worn out (P5) */
	__u32 traits;			/* XMEM_TRAIT_* of its payload */
	__u64 payload_bytes;		/* of the whole payload file */
	__u32 upgrader;			/* 1 + id of the client that writes it in place; 0: none */
	__u32 group_owner;		/* of the first slot of each group: 1 + the group's owner,
					 * so 0 means no owner; it stays when slots come free */
};

/*
 * The host's notes on a group of XMEM_GROUP_SLOTS slots. A client's hold counts only if the client
 * has a bit in `holders`, because only then could it have been given the slot. The bit stays until
 * the client ends, or until the whole group has come free and is given to another owner. These
 * clients have a bit:
 *
 *   - clients of the pool's owner's user, and of the user of the slots' owner, from their join on
 *   - clients that subscribe to the owner's ring, or to a ring in which the owner's buffers are
 *     forwarded, before their cursors are there
 *   - clients that the owner lets in by `grant`, even after they unsubscribe
 *
 * For the slots of an owner that has ended, `holders` stays as it was, and a client that forwards
 * them lets its subscribers in. A client without a bit holds nothing in the group, whatever it
 * writes, and gets nothing by a token.
 */
struct xmem_group_row {
	__u64 holders[XMEM_CLIENT_WORDS];
	__u64 stages[XMEM_CLIENT_WORDS];	/* bit set: that client has said by `grant` that it
						 * forwards slots of the group, so its present and
						 * later subscribers are in `holders`; daemon: all
						 * bits */
};

/*
 * One GPU. The host enters it when the first memory of it is attached, and it stays as long as the
 * pool. The first row without a UUID ends the table.
 */
struct xmem_device_row {
	__u8  uuid[XMEM_UUID_BYTES];	/* all zero: no device */
	__u64 bytes;			/* of all CUDA payloads that have slots or are closing */
	__u64 closing_bytes;		/* of CUDA payloads without slots that clients still have
					 * open */
	__u64 reserved[4];
};

/* The traits of a payload. The host finds them out, or takes them from the attach. */
#define XMEM_TRAIT_SHARED	(1u << 0)	/* every writer of the pool may write it, within the
						 * protocol */
#define XMEM_TRAIT_CONSTANT	(1u << 1)	/* F_SEAL_WRITE: no process can write it any more */
#define XMEM_TRAIT_HUGE		(1u << 2)	/* a memfd in huge pages */
#define XMEM_TRAIT_ONCE		(1u << 3)	/* the slot is for one content and is then detached;
						 * no acquire gets it */
#define XMEM_TRAIT_DMABUF	(1u << 4)	/* kernel: its exporter may change it, or take it
						 * away, and then an access is SIGBUS */
#define XMEM_TRAIT_CUDA		(1u << 5)	/* memory of a GPU: it is not mapped, and the driver
						 * opens it */
#define XMEM_TRAIT_HANDLE	(1u << 6)	/* CUDA: it is its owner's allocation, and ends with
						 * the owner */
#define XMEM_TRAIT_READERS	(1u << 7)	/* CUDA: readers get it too, although they can write
						 * it then */
#define XMEM_TRAIT_DEVICE_SHIFT	24		/* the upper 8 bits: the number of the device, 1 +
						 * its row; 0: the CPU */

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
	XMEM_SLOT_SCANNING = 3,		/* as LIVE, while its owner looks for holders */
	XMEM_SLOT_UPGRADED = 4,		/* its only holder writes it in place */
};

struct xmem_slot_word {
	__u64 state;			/* the state word */
	__u64 position;			/* 1 + place of its last publication; 0: none;
					 * XMEM_POSITION_IN_HAND */
};
#define XMEM_POSITION_IN_HAND	(1ULL << 63)	/* WRITING: the owner's program has acquired it */

/*
 * The state words of the XMEM_GROUP_SLOTS slots of one owner. Their metadata is at metadata_offset,
 * and their ready words are at ready_offset.
 *
 * A ready word says how far the owner's GPU has got with the slot. A GPU stream or the owner's
 * library writes it, and it only grows. The value that the contents need is order_value in their
 * metadata. When the owner has ended and its process has exited, the host writes XMEM_READY_ENDED
 * into the words that have not reached that value, and XMEM_READY_OVER into all others. So no
 * client waits for ever, whatever metadata the owner has written.
 */
struct xmem_group {
	struct xmem_slot_word word[XMEM_GROUP_SLOTS];
};
#define XMEM_READY_OVER		(1ULL << 61)	/* more than any order_value */
#define XMEM_READY_ENDED	(1ULL << 62)	/* more than that */

/*
 * A client's notes about another client. position is its place in that client's ring. demoted_* say
 * whether this client, as a publisher, has demoted that one: it has, as long as that client's
 * incarnation and cursor have these values. Each cursor has a cache line of its own.
 */
struct xmem_cursor {
	__u64 position;			/* next to receive, or XMEM_CURSOR_* */
	__u64 demoted_incarnation;	/* of the subscriber that was demoted; 0: none */
	__u64 demoted_at;		/* the position of its cursor then */
	__u64 history;			/* not 0: this client has yet to receive publications from
					 * before its subscription, so its descriptors are
					 * readable */
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
#define XMEM_ENTRY_MARKED	(1ULL << 62)	/* forwarded, or for one subscriber alone: the
						 * slot's state word proves the contents, the entry
						 * does not */
#define XMEM_ADDRESSEE_NOBODY	(~0ULL)

/* A publisher's ring; its ring_entries entries are at entries_offset. */
struct xmem_ring {
	__u64 tail;			/* publications so far */
	__u64 demote_at_ns;		/* CLOCK_MONOTONIC: when the owner demotes the subscribers
					 * that it waits for; 0: it does not wait now */
	__u64 vain;			/* slots_waiters as the owner's last acquire armed it before
					 * it looked in vain; 0: something has changed since, or no
					 * acquire has failed */
	__u64 mapped_bytes;		/* of the payload files that this client has mapped */
	__u64 wanted_label[XMEM_LABEL_BYTES / 8];	/* as bytes: of the writers that its joint
					 * subscription follows; a '*' at the end stands for any
					 * rest; all zero: any label */
	__u64 recall_at_ns;		/* CLOCK_MONOTONIC: when the owner next looks for slots that
					 * other clients have forwarded; 0: it waits for none */
	__u64 look_at_ns;		/* CLOCK_MONOTONIC: an acquire after this time may succeed
					 * although slots_waiters has not moved; 0: time changes
					 * nothing */
	__u64 reserved0;
	__u64 limbo_ns;			/* CLOCK_MONOTONIC: since when the owner has missed buffers
					 * that other clients hold; 0: it misses none */
	__u64 reserved1[2];
	__u64 collects;			/* enum xmem_collects: requests to collect that this client
					 * has sent and the daemon has not served yet */
	__u64 changes_seen;		/* subscriber_changes of this client's row when its program
					 * last looked at its subscribers */
	__u64 awaits_writer;		/* threads of this client that wait for a writer to join */
	__u64 reserved;
};

/*
 * A client asks the daemon to collect one slot, and asks no more until the daemon serves that
 * request. Meanwhile the client only notes that there are more slots. The daemon changes the word
 * to NONE, and then checks the slot, or all slots if the word was MORE. So however many slots a
 * client releases, only one datagram is under way. The module needs no such word, because it serves
 * each request at once.
 */
enum xmem_collects {
	XMEM_COLLECTS_NONE = 0,
	XMEM_COLLECTS_ONE = 1,
	XMEM_COLLECTS_MORE = 2,		/* and any number of other slots */
};

#endif

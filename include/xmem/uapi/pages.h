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

/**
 * struct xmem_pool_header - the beginning of the pool table
 * @magic: XMEM_MAGIC
 * @abi: XMEM_ABI of the host that made the pool
 * @slots: capacity; a multiple of XMEM_GROUP_SLOTS
 * @compat: features that a client may ignore
 * @incompat: features that a client has to know
 * @clients: capacity
 * @ring_entries: of each client's ring; a power of two
 * @owner_uid: daemon: the creator's; kernel: 0, see the request pools
 * @client_row_stride: bytes from one struct xmem_client_row to the next
 * @slot_row_stride: bytes from one struct xmem_slot_row to the next
 * @cursor_stride: bytes from one struct xmem_cursor to the next
 * @entry_stride: bytes from one struct xmem_entry to the next
 * @metadata_stride: bytes from one struct xmem_metadata to the next
 * @clients_offset: bytes from here to the first client row
 * @slots_offset: bytes from here to the first slot row
 * @groups_offset: bytes, page-aligned
 * @group_stride: bytes from one group to the next
 * @metadata_offset: bytes into a group: the first struct xmem_metadata
 * @areas_offset: bytes, page-aligned
 * @area_stride: bytes from one client's area to the next
 * @ring_offset: bytes into an area: struct xmem_ring
 * @entries_offset: bytes into an area: the ring's first entry
 * @holds_offset: bytes into an area; + (id % 16) * 256: __u32[slots]
 * @total_bytes: of all parts together
 * @name: NUL-terminated; empty: anonymous
 * @payloads: payloads with slots now: files, and memory of GPUs
 * @reserved0: 0
 * @payload_bytes: of all payload files; memory of GPUs is counted in the device table
 * @kept_bytes: of the payload files whose owner has ended and which clients use
 * @huge_bytes: of payload files in huge pages (hugetlb)
 * @limbo_ns: CLOCK_MONOTONIC of the host: the earliest end of an owner whose slots clients
 *   still use; 0: there is no such owner
 * @ready_offset: bytes into a group: a __u64 for each of its slots
 * @devices_offset: bytes from here to the first struct xmem_device_row
 * @devices_stride: bytes from one struct xmem_device_row to the next
 * @devices: capacity: XMEM_MAX_DEVICES
 * @group_rows_offset: bytes from here to the first struct xmem_group_row
 * @counted: a bit for each client whose user is the pool's owner. The holds of such a client count
 *   in every slot. The holds of another client count where @holders of the slot's group says so,
 *   and that client checks @holders before each get by a token
 * @writers: writers that have joined so far
 * @payloads_gone: payloads that have lost their last slot so far
 * @host: its low 30 bits are not 0 while the host lives. Daemon: a futex; a client that finds
 *   these bits 0 wakes all waiters there. If all of @host is 0, the pool had ended before
 * @pollers: daemon: descriptors that it has given out by poll_fd; kernel: 0
 * @claimed: the number of slots with claims, or a higher one; 0: there are none, and in the
 *   daemon's pools no owner adds claims by itself
 * @clients_waiters: waiters word: until the client table changes
 * @reserved2: 0
 * @payloads_closed: CUDA payloads that have lost their last slot and their last opener so far
 * @reserved3: 0
 *
 * A program finds rows, cursors, entries and metadata by the strides in the header, and never by
 * sizeof: a newer host makes them longer, and an older client does not look behind the fields that
 * it knows. No stride is shorter than the struct of this header. A state word (16 bytes), a hold (4
 * bytes) and a group's row (64 bytes) have a fixed size.
 */
struct xmem_pool_header {
	__u64 magic;
	__u32 abi;
	__u32 slots;
	__u64 compat;
	__u64 incompat;
	__u32 clients;
	__u32 ring_entries;
	__u32 owner_uid;
	__u32 client_row_stride;
	__u32 slot_row_stride;
	__u32 cursor_stride;
	__u32 entry_stride;
	__u32 metadata_stride;
	__u64 clients_offset;
	__u64 slots_offset;
	__u64 groups_offset;
	__u64 group_stride;
	__u64 metadata_offset;
	__u64 areas_offset;
	__u64 area_stride;
	__u64 ring_offset;
	__u64 entries_offset;
	__u64 holds_offset;
	__u64 total_bytes;
	__u8  name[XMEM_NAME_BYTES];
	__u32 payloads;
	__u32 reserved0[7];
	__u64 payload_bytes;
	__u64 kept_bytes;
	__u64 huge_bytes;
	__u64 limbo_ns;
	__u64 ready_offset;
	__u64 devices_offset;
	__u32 devices_stride;
	__u32 devices;
	__u64 group_rows_offset;
	/* Every wait for clients reads the next fields, which have cache lines of their own. */
	__u64 counted[XMEM_CLIENT_WORDS];
	__u64 writers;
	__u64 payloads_gone;
	__u32 host;
	__u32 pollers;
	__u64 claimed;
	__u32 clients_waiters;
	__u32 reserved2;
	__u64 payloads_closed;
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
	XMEM_ROLE_EITHER = 3,		/* a reader that becomes a writer by XMEM_OP_WRITER */
};

/**
 * struct xmem_client_row - one client, as all processes see it; only the host writes it
 * @incarnation: number of this use of the id, from 1, never reused
 * @state: enum xmem_client_state
 * @role: enum xmem_role
 * @pid: daemon: as the daemon sees it, for display only; kernel: 0, because it differs between
 *   namespaces: the request client tells it
 * @uid: as pid
 * @wait_bound_ns: its longest wait for subscribers; 0: it does not wait
 * @label: the client's name for itself; NUL-terminated
 * @process: a number that all living clients of one process have, and no other living client
 * @subscribing: 1 + id of a client whose bit in @subscribers may be set before its cursor is
 *   there; 0: none
 * @subscriber_changes: changes of @subscribers so far
 * @subscribers: bit set: that client follows this ring
 * @waits: bit set: the publisher waits for that client
 * @ring_waiters: waiters word: until this client publishes
 * @slots_waiters: waiters word: until a slot of this owner may be free, or its subscribers have
 *   changed
 * @holders: as in the rows of the groups that this client has or gets
 * @reserved1: 0
 */
struct xmem_client_row {
	__u64 incarnation;
	__u32 state;
	__u32 role;
	__u32 pid;
	__u32 uid;
	__u64 wait_bound_ns;
	__u8  label[XMEM_LABEL_BYTES];
	__u64 process;
	__u32 subscribing;
	__u32 subscriber_changes;
	__u64 subscribers[XMEM_CLIENT_WORDS];
	__u64 waits[XMEM_CLIENT_WORDS];
	__u32 ring_waiters;
	__u32 slots_waiters;
	__u64 holders[XMEM_CLIENT_WORDS];
	__u64 reserved1[3];
};

#define XMEM_OWNER_NONE	0xffffffffu	/* nothing is attached */
#define XMEM_OWNER_HOST	0xfffffffeu	/* the owner has ended; the host reclaims the slot */
#define XMEM_OWNER_LEFT	0xfffffffdu	/* only of a group: the host has it, and writers of the
					 * pool's owner's user get its free slots */

/**
 * struct xmem_slot_row - one slot, as all processes see it; only the host writes it
 * @owner: client id, or XMEM_OWNER_*
 * @tenant: client in whose ring it is published, or XMEM_OWNER_NONE
 * @payload: id of the payload, from 1, never reused; 0: none
 * @generation_first: the first of this tenancy's generations, which end at the next multiple of 1
 *   << XMEM_TENANCY_SHIFT. The upper 16 bits are the claims (daemon: clients take them from there,
 *   and an owner that adds claims by itself stores a later one of these generations)
 * @offset: bytes into the payload file
 * @length: bytes
 * @tenancies: uses so far; after 2^24 - 1 the slot is worn out (P5)
 * @traits: XMEM_TRAIT_* of its payload
 * @payload_bytes: of the whole payload file
 * @upgrader: 1 + id of the client that writes it in place; 0: none
 * @group_owner: of the first slot of each group: 1 + the group's owner, so 0 means no owner; it
 *   stays when slots come free
 */
struct xmem_slot_row {
	__u32 owner;
	__u32 tenant;
	__u64 payload;
	__u64 generation_first;
	__u64 offset;
	__u64 length;
	__u32 tenancies;
	__u32 traits;
	__u64 payload_bytes;
	__u32 upgrader;
	__u32 group_owner;
};

/**
 * struct xmem_group_row - the host's notes on a group of XMEM_GROUP_SLOTS slots
 * @holders: bit set: the holds of that client count in the group
 * @stages: bit set: that client has said by `grant` that it forwards slots of the group, so its
 *   present and later subscribers are in @holders; daemon: all bits
 *
 * A client's hold counts only if the client has a bit in @holders, because only then could it have
 * been given the slot. The bit stays until the client ends, or until the whole group has come free
 * and is given to another owner. These clients have a bit:
 *
 *   - clients of the pool's owner's user, and of the user of the slots' owner, from their join on
 *   - clients that subscribe to the owner's ring, or to a ring in which the owner's buffers are
 *     forwarded, before their cursors are there
 *   - clients that the owner lets in by `grant`, even after they unsubscribe
 *
 * For the slots of an owner that has ended, @holders stays as it was, and a client that forwards
 * them lets its subscribers in. A client without a bit holds nothing in the group, whatever it
 * writes, and gets nothing by a token.
 */
struct xmem_group_row {
	__u64 holders[XMEM_CLIENT_WORDS];
	__u64 stages[XMEM_CLIENT_WORDS];
};

/**
 * struct xmem_device_row - one GPU
 * @uuid: all zero: no device
 * @bytes: of all CUDA payloads that have slots or are closing
 * @closing_bytes: of CUDA payloads without slots that clients still have open
 * @reserved: 0
 *
 * The host enters the GPU when the first memory of it is attached, and it stays as long as the
 * pool. The first row without a UUID ends the table.
 */
struct xmem_device_row {
	__u8  uuid[XMEM_UUID_BYTES];
	__u64 bytes;
	__u64 closing_bytes;
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

/**
 * struct xmem_slot_word - what the owner writes about one slot
 * @state: the state word
 * @position: 1 + place of its last publication; 0: none; or XMEM_POSITION_IN_HAND
 */
struct xmem_slot_word {
	__u64 state;
	__u64 position;
};
#define XMEM_POSITION_IN_HAND	(1ULL << 63)	/* WRITING: the owner's program has acquired it */

/**
 * struct xmem_group - the state words of the XMEM_GROUP_SLOTS slots of one owner
 * @word: one of each slot
 *
 * The metadata of the slots is at metadata_offset, and their ready words are at ready_offset.
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

/**
 * struct xmem_cursor - a client's notes about another client
 * @position: next to receive, or XMEM_CURSOR_*
 * @demoted_incarnation: of the subscriber that was demoted; 0: none
 * @demoted_at: the position of its cursor then
 * @history: not 0: this client has yet to receive publications from before its subscription, so
 *   its descriptors are readable
 * @reserved: 0
 *
 * @position is the client's place in that client's ring. demoted_* say whether this client, as a
 * publisher, has demoted that one: it has, as long as that client's incarnation and cursor have
 * these values. Each cursor has a cache line of its own.
 */
struct xmem_cursor {
	__u64 position;
	__u64 demoted_incarnation;
	__u64 demoted_at;
	__u64 history;
	__u64 reserved[4];
};
#define XMEM_CURSOR_NONE	0xffffffffffffffffULL	/* not subscribed */
/* The host has dropped the ring of an ended publisher; the other bits say where it ended. */
#define XMEM_CURSOR_DROPPED	(1ULL << 63)

/**
 * struct xmem_entry - one publication; the receiver polls its position
 * @position: 1 + place, and XMEM_ENTRY_*; 0: being written
 * @token: of the contents
 * @sequence: the publisher's count
 * @timestamp_ns: CLOCK_MONOTONIC, from the publisher; 0: none
 * @offset: bytes into the slot's payload
 * @length: bytes
 * @addressee: MARKED: incarnation of the only subscriber that may get it; 0: all may;
 *   XMEM_ADDRESSEE_NOBODY: retracted
 * @reserved: 0
 */
struct xmem_entry {
	__u64 position;
	__u64 token;
	__u64 sequence;
	__u64 timestamp_ns;
	__u64 offset;
	__u64 length;
	__u64 addressee;
	__u64 reserved;
};
#define XMEM_ENTRY_VOID		(1ULL << 63)	/* evicted or retracted */
#define XMEM_ENTRY_MARKED	(1ULL << 62)	/* forwarded, or for one subscriber alone: the
						 * slot's state word proves the contents, the entry
						 * does not */
#define XMEM_ADDRESSEE_NOBODY	(~0ULL)

/**
 * struct xmem_ring - a publisher's ring; its ring_entries entries are at entries_offset
 * @tail: publications so far
 * @demote_at_ns: CLOCK_MONOTONIC: when the owner demotes the subscribers that it waits for; 0: it
 *   does not wait now
 * @vain: slots_waiters as the owner's last acquire armed it before it looked in vain; 0: something
 *   has changed since, or no acquire has failed
 * @mapped_bytes: of the payload files that this client has mapped
 * @wanted_label: as bytes: of the writers that its joint subscription follows; a '*' at the end
 *   stands for any rest; all zero: any label
 * @recall_at_ns: CLOCK_MONOTONIC: when the owner next looks for slots that other clients have
 *   forwarded; 0: it waits for none
 * @look_at_ns: CLOCK_MONOTONIC: an acquire after this time may succeed although slots_waiters has
 *   not moved; 0: time changes nothing
 * @reserved0: 0
 * @limbo_ns: CLOCK_MONOTONIC: since when the owner has missed buffers that other clients hold; 0:
 *   it misses none
 * @reserved1: 0
 * @collects: enum xmem_collects: requests to collect that this client has sent and the daemon has
 *   not served yet
 * @changes_seen: subscriber_changes of this client's row when its program last looked at its
 *   subscribers
 * @awaits_writer: threads of this client that wait for a writer to join
 * @reserved: 0
 */
struct xmem_ring {
	__u64 tail;
	__u64 demote_at_ns;
	__u64 vain;
	__u64 mapped_bytes;
	__u64 wanted_label[XMEM_LABEL_BYTES / 8];
	__u64 recall_at_ns;
	__u64 look_at_ns;
	__u64 reserved0;
	__u64 limbo_ns;
	__u64 reserved1[2];
	__u64 collects;
	__u64 changes_seen;
	__u64 awaits_writer;
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

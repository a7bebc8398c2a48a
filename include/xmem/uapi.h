/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * xmem: the interface between the host (xmem.ko or xmemd) and its clients.
 *
 * It describes first the pages, which every client maps and in which everything is
 * counted, then the requests. docs/design.md has the words and the promises, and
 * core/protocol.h the steps.
 *
 * Change log of the ABI:
 *   1  first light: pools, CPU payloads, rings, sleeping, end of a client
 *   2  structs that can grow: strides and feature words in the header, flags in every
 *      request, requests of any length from their minimum on, query, pools
 *   3  descriptors to poll, demotions and what an owner wants in its area, numbers of
 *      datagrams, whether the host lives
 *   4  claims, forwarding, addressed publications, writing in place, kinds of payload
 *   5  memory of GPUs: the device table, CUDA payloads, who has them open, ready words
 *   6  pids and uids are asked for, and not in the kernel's pages; processes in the rows; who may
 *      join: owner, group and mode of a pool, names of users, roles of descriptors; ids of
 *      payloads have 64 bits; clients can be ended by others, and pools closed to joins
 *   7  names of pools have up to 128 characters, and '/' among them
 */
#ifndef XMEM_UAPI_H
#define XMEM_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "metadata.h"

#define XMEM_ABI	7	/* the newest that this header describes */
#define XMEM_ABI_OLDEST	7	/* the oldest that a host built with it still serves */
#define XMEM_MAGIC	0x6c6f6f706d656d78ULL	/* "xmempool" */

/* Limits of the layout; a pool's own are in its header. */
#define XMEM_MAX_SLOTS		65536	/* a token has 16 bits for the slot */
#define XMEM_MAX_CLIENTS	256	/* XMEM_CLIENT_WORDS bitmaps of 64 */
#define XMEM_CLIENT_WORDS	4
#define XMEM_MAX_RING		4096	/* entries; a power of two, at least 4 */
#define XMEM_GROUP_SLOTS	64	/* slots that share pages, and so an owner */
#define XMEM_MAX_GROUPS		(XMEM_MAX_SLOTS / XMEM_GROUP_SLOTS)
#define XMEM_NAME_MAX		128	/* characters of a pool's name */
#define XMEM_NAME_BYTES		136	/* a pool's name, and NULs up to a multiple of 8 */
#define XMEM_LABEL_BYTES	16	/* a client's label with its NUL */
#define XMEM_MAX_DEVICES	16	/* GPUs of one pool */
#define XMEM_UUID_BYTES		16	/* of a GPU, as its driver gives it */
#define XMEM_HANDLE_BYTES	64	/* a name of memory of a GPU */
#define XMEM_MAX_DEVICE_BYTES (1ULL << 48)	/* of one allocation */

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

/* ------------------------------------------------------------------------
 * Requests: ioctls of an open /dev/xmem. The daemon takes the same structs as datagrams
 * (struct xmem_message).
 *
 * Every struct begins with its size and its flags, and can grow at its end, as
 * those of openat2() do:
 *
 *   - a shorter struct of an older caller is extended with zeros, down to the minimum that
 *     stands behind each request (XMEM_*_MIN);
 *   - a longer struct of a newer caller, up to 4096 bytes, is taken if the rest of it is
 *     zero;
 *   - the answer is cut to the caller's size; fields that the host does not know stay as the caller
 *     had them.
 *
 * The host refuses unknown flags and reserved fields that are not 0. A request that fails
 * changes nothing, with one exception: EFAULT of arm, renew, payload with CLOSE, evict and drain,
 * when another thread makes the struct unwritable while the host serves the request. Then the word
 * is armed, which costs one wake-up; or the slot has new generations, and its owner renews it again
 * to know them; or the payload is closed, and to close it again is ENOENT; or the client is
 * evicted, and to evict it again is ESTALE; or the pool is drained, and to drain it again evicts
 * who is left.
 *
 *   ENOTTY      the request is unknown
 *   E2BIG       bytes beyond what this host knows are not zero
 *   EINVAL      the size is below the minimum, a flag is unknown, a reserved field is not
 *               0, or a field is out of its range
 *   EFAULT      the struct is not readable or not writable
 *   ENOTCONN    the file is no client's, or its client has ended; attach, subscribe, claim,
 *               payload with OPEN (kernel): the client has not mapped its area, by which the
 *               host knows it
 *   EISCONN     join: the file is a client's
 *   EPROTONOSUPPORT  join: the host does not serve this ABI
 *   EPERM       the caller's mm is not the one that joined (narrow: by a client's file); join,
 *               access, evict, drain: that is the pool's owner's to do, or the group is not the
 *               caller's; or the client's role, or its part in the slot or ring, does not allow it
 *   EACCES      join, pool_fd, narrow: the caller has roles in the pool, but not that one;
 *               claim, grant: the caller's holds there do not count (struct xmem_group_row);
 *               payload: the file was attached with less access than is asked for, or a reader
 *               asks for a writable one, or for a GPU's without XMEM_TRAIT_READERS;
 *               attach: the descriptor is not open for reading, or to be shared and not
 *               for writing
 *   EEXIST      join: a pool of that name exists; subscribe: it is subscribed already
 *   ENOENT      join: the pool does not exist, or lets the caller in in no role; subscribe,
 *               payload, wait: the client or payload does not exist, or CLOSE: the caller has
 *               not got it open; pools, quota: there are no
 *               more
 *   EOWNERDEAD  payload: it goes with its owner, which has ended
 *   ESTALE      subscribe, evict, grant: that incarnation has ended; slot requests: the tenancy
 *               is another one
 *   ESHUTDOWN   join: the pool is drained
 *   EBADF       the descriptor is not open; join, narrow: it is not a pool's
 *   EMEDIUMTYPE attach: the file is not a memfd (shmem or hugetlb), nor, in the kernel and
 *               not to be shared, a dma-buf; with CUDA it is not a device file that the host
 *               takes; payload: a flag for files and a CUDA payload, or the other way round
 *   ENOEXEC     attach: the file lacks seals: F_SEAL_SHRINK, F_SEAL_GROW and
 *               F_SEAL_FUTURE_WRITE or F_SEAL_WRITE; a shared one lacks F_SEAL_SHRINK,
 *               F_SEAL_GROW and F_SEAL_SEAL, or is sealed against writing
 *   ERANGE      attach: the slots reach beyond the file's end, or the file has holes;
 *               join: the pool exists, and is smaller than is asked for, or allows more than
 *               limbo_bytes, or, if it is the caller's, lets in more than `mode` (see there)
 *   EUSERS      join: the pool's client table is full
 *   ENOSPC      attach: the pool has too few free slots; renew: the slot is worn out;
 *               upgrade: the slot's generations are used up until its owner renews them
 *   EDQUOT      a limit is reached, of the caller's user, of the host, of the pool or of the
 *               client; the request `quota` tells which
 *   EAGAIN      resolve: the word changed by itself; claim: see there; upgrade: the slot's
 *               owner, or its host, is scanning it
 *   EBUSY       detach: the slot has contents, or is being written; upgrade: another client
 *               holds it or may still receive it, or the caller holds it more than once;
 *               payload: it has no slot any more, and clients still have it open;
 *               attach: somebody has a lease of the file (F_SETLEASE), which would let
 *               others wait when they open it, or is running it as a program; payload: the
 *               same with WRITE, for the owner of what is not shared and, with the daemon,
 *               for writers of what is
 *   ETIMEDOUT   wait: the deadline passed
 *   EINTR       wait: a signal came (restarted where SA_RESTART says so)
 *   EOPNOTSUPP  subscribe: that ring does not wait for subscribers; upgrade: the slot's
 *               payload is not shared; join, access (daemon): its pools are one user's, so
 *               it has no other owner, no other group, and no mode for others; evict, drain with
 *               EVICT, join with limbo_bytes (daemon): it cannot take away mappings of a live
 *               process
 *   ENOMEM      there is not enough memory
 */
#define XMEM_IOC_TYPE	0xE8

/* query: describe this host. The caller need not have joined. */
struct xmem_query_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u32 abi;			/* out: XMEM_ABI of the host */
	__u32 abi_oldest;		/* out: the oldest that it still serves */
	__u64 compat;			/* out: the layout features of the pools that it makes */
	__u64 incompat;			/* out: the same for features a client has to know */
	__u32 max_slots;		/* out: of one pool, as the next three */
	__u32 max_clients;		/* out */
	__u32 max_ring_entries;		/* out */
	__u32 max_payloads;		/* out: payload files */
	__u32 group_slots;		/* out: an owner gets slots in groups of so many */
	__u32 max_pools;		/* out: of all users (kernel), or of this one (daemon) */
	__u32 pools;			/* out: how many the caller may see now */
	__u32 reserved;			/* must be 0 */
	__u8  version[16];		/* out: of the host's program; NUL-terminated */
};
#define XMEM_QUERY_MIN		8	/* up to flags */

/*
 * pools: the next pool that the caller may see. The caller need not have joined, and becomes
 * no user of the pool: one that ends meanwhile ends. It sees the pools that it may join, in one
 * role at least:
 *
 *   kernel   of the caller's network namespace, whichever user made them
 *   daemon   all of this daemon, which are its user's
 */
struct xmem_pools_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u64 number;			/* in: look above it, 0 for the first; out: the pool's,
					 * which no other pool gets while the host runs */
	__u8  name[XMEM_NAME_BYTES];	/* out; empty: anonymous */
	__u32 owner_uid;		/* out: of the creator, in the caller's user namespace; ~0:
					 * it has no number there (daemon: in the daemon's own) */
	__u32 slots;			/* out: capacity, as the next two */
	__u32 clients;			/* out */
	__u32 ring_entries;		/* out */
	__u32 alive;			/* out: clients that have joined and not ended */
	__u32 reserved;			/* must be 0 */
	__u64 attached_bytes;		/* out: of all attached slots together */
	__u64 payload_bytes;		/* out: of all payload files */
	__u64 kept_bytes;		/* out: of those whose owner has ended */
	__u32 payloads;			/* out: payload files */
	__u32 mode;			/* out: XMEM_MODE_* */
	__u32 gid;			/* out: of its group, as owner_uid */
	__u32 roles;			/* out: mask of those in which its mode lets the caller
					 * in */
};
#define XMEM_POOLS_MIN		16	/* up to number */

/*
 * The mode of a pool says who may join it: its owner, who made it, its group, and all others, by
 * bits that are those of a file. The first of these three that the caller is of decides, as with
 * files. CAP_DAC_OVERRIDE, in the user namespace in which the pool was made, allows all.
 *
 *   by name   The mode decides, at each join
 *   by file   A descriptor of pool_fd carries a mask of roles, and that decides: its holder got it
 *             from a process that might join. With XMEM_MODE_STRICT the mode decides as well
 *
 * A name belongs to the user who made the pool: two users' pools may have the same, and to join
 * another's is to name it, too (XMEM_JOIN_OWNER). A process without a role in a pool finds none
 * there (ENOENT); a process that has another role is told so (EACCES).
 */
#define XMEM_MODE_READ		04	/* XMEM_ROLE_READER; for the group << 3, the owner << 6 */
#define XMEM_MODE_WRITE		02	/* XMEM_ROLE_WRITER; only with READ, since writers read */
#define XMEM_MODE_STRICT	01000	/* a descriptor of the pool helps nobody whom the mode
					 * does not let in */
#define XMEM_MODE_KNOWN		(XMEM_MODE_STRICT | 0666)
#define XMEM_MODE_DEFAULT	0600

/*
 * NAMES: The name of a pool has up to XMEM_NAME_MAX characters of [A-Za-z0-9._/-] (EINVAL). The '/'
 * divides it into parts, as it divides a path. No part is empty or begins with a dot. So no part is
 * "." or "..", and the last character is no '/'. The first character may be a '/': "/camera" and
 * "camera" are two names. Programs write "USER:NAME" for another user's pool, because no user's
 * name has a ':'. A pool's name has no '!'. So two pools' names stay different if a program writes
 * '!' for '/' to make names of files of them.
 *
 * In place of a name, '@' and a number, as in "@17", stand for the pool that the request `pools`
 * lists with that number. That pool may have no name. Such a join has to ask for the role of a
 * reader and to set EXISTING (EINVAL). The pool's mode decides, as it does for a join by name.
 */

/*
 * join: become a client of a pool. The kernel answers with a descriptor of the client's own file,
 * by which it asks and maps from then on; an open /dev/xmem is for joining, and can do so again.
 * The daemon makes the connection itself the client, once.
 */
#define XMEM_JOIN_EXISTING	(1u << 0)	/* do not create the pool, but fail (ENOENT) */
#define XMEM_JOIN_EXCLUSIVE	(1u << 1)	/* create it, and fail if it exists (EEXIST), but
						 * not if it is drained, nor, in the kernel, if no
						 * client of its owner's lives: then it loses its
						 * name, whoever keeps it by what */
#define XMEM_JOIN_FD		(1u << 2)	/* join the pool of pool_fd; the name is empty */
#define XMEM_JOIN_OWNER		(1u << 4)	/* the pool of that name that owner_uid has made;
						 * another user's is never created (ENOENT), nor
						 * asked for with EXCLUSIVE (EPERM) */
#define XMEM_JOIN_GROUP		(1u << 5)	/* if it is created, gid is its group: one of the
						 * caller's, or any with CAP_CHOWN (EPERM) */
struct xmem_join_request {
	__u32 size;
	__u32 flags;			/* XMEM_JOIN_* */
	__u32 abi;			/* XMEM_ABI of the caller */
	__u32 role;			/* in: enum xmem_role; out: READER in place of EITHER, if
					 * the caller may only read */
	__u8  name[XMEM_NAME_BYTES];	/* see NAMES; empty: a new anonymous pool */
	__s32 pool_fd;			/* with XMEM_JOIN_FD; else it must be -1 */
	__s32 fd;			/* out: the client's file, close-on-exec; -1 (daemon) */
	/* Capacities. If the pool exists, it must have at least these (ERANGE). */
	__u32 slots;			/* rounded up to groups; 0: any, 1024 if it is created */
	__u32 clients;			/* 0: any, 64 if it is created */
	__u32 ring_entries;		/* a power of two; 0: any, 64 if it is created */
	__u32 client;			/* out: this client's id */
	__u64 wait_bound_ns;		/* longest wait for subscribers; 0: none, or a reader */
	__u8  label[XMEM_LABEL_BYTES];	/* NUL-terminated, printable */
	__u64 incarnation;		/* out */
	__u64 total_bytes;		/* out: length of the whole layout */
	__u32 reserved;			/* must be 0 */
	__u32 owner_uid;		/* in: with OWNER, in the caller's user namespace; else 0;
					 * out: the creator's; ~0: it has no number there */
	__u32 mode;			/* in: of a pool that is created; 0: XMEM_MODE_DEFAULT; with
					 * FD 0. If the caller's pool exists: 0, or it must not
					 * let in more than this, STRICT counted, nor have bits
					 * for another group than gid (ERANGE). out: the pool's */
	__u32 gid;			/* in: with GROUP; else 0, and the group is the caller's;
					 * out: the pool's, as owner_uid */
	__u32 roles;			/* in: 0; out: mask of those that the client may pass on
					 * by pool_fd */
	__u32 reserved1;
	__u64 limbo_bytes;		/* in: of a pool that is created: how many bytes of what
					 * ended clients have left one client may hold; a client
					 * that holds more is evicted (see there, LIMBO). Its ring
					 * keeps as much of what it has forwarded and nobody holds;
					 * the rest is lost to its subscribers. 0 or ~0: any number.
					 * The kernel's parameter max_limbo_bytes counts, too, if it
					 * is less. If the pool exists: 0, or it must not allow more
					 * (ERANGE) */
};
#define XMEM_JOIN_MIN		160	/* up to fd */

/*
 * pool_fd: a descriptor. A process that has it may join this pool in one of these roles, and
 * nothing else; narrow makes another of it, for fewer roles. A mask of roles has the bit
 * 1 << role (enum xmem_role) of each. One for writers alone lets nobody join as a reader (EACCES),
 * but a writer reads, too. A descriptor that was given cannot be taken back.
 */
#define XMEM_ROLES_ALL	((1u << XMEM_ROLE_READER) | (1u << XMEM_ROLE_WRITER))
struct xmem_pool_fd_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__s32 fd;			/* out; close-on-exec */
	__u32 reserved;			/* must be 0 */
	__u32 roles;			/* in: not more than the client may pass on (EACCES); 0: all
					 * of these; out: the descriptor's */
};
#define XMEM_POOL_FD_MIN	12	/* up to fd */

/*
 * narrow: from a descriptor of a pool a new one for fewer roles. The old one stays as it is, since
 * others may have it too. The caller need not have joined, nor be let in by the mode. By a client's
 * file only that client narrows (EPERM): the new descriptor counts for whose file it is made by.
 */
struct xmem_narrow_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__s32 pool_fd;			/* of pool_fd or narrow */
	__u32 roles;			/* not 0, and no more than that one's (EACCES) */
	__s32 fd;			/* out; close-on-exec */
	__u32 reserved;			/* must be 0 */
};
#define XMEM_NARROW_MIN		20	/* up to fd */

/*
 * access: change who may join from now on; without a flag only say it. For the pool's owner, and
 * CAP_SYS_ADMIN in the user namespace in which it was made (EPERM). Clients that have joined stay.
 */
#define XMEM_ACCESS_MODE	(1u << 0)	/* change the mode */
#define XMEM_ACCESS_GROUP	(1u << 1)	/* change the group, as with XMEM_JOIN_GROUP */
struct xmem_access_request {
	__u32 size;
	__u32 flags;			/* XMEM_ACCESS_* */
	__u32 mode;			/* in: with MODE, not 0; else 0; out: the pool's */
	__u32 gid;			/* in: with GROUP; else 0; out: the pool's, as in join */
	__u32 owner_uid;		/* in: 0; out: the pool's, as in join */
	__u32 reserved;			/* must be 0 */
};
#define XMEM_ACCESS_MIN		16	/* up to gid */

/*
 * attach: `count` FREE slots in one payload become the caller's. The payload is a file that all
 * can map, or with XMEM_ATTACH_CUDA memory of a GPU that the driver opens in each process:
 *
 *   fd, CUDA            what an exported descriptor stands for. `handle` is a name that the
 *                       exporter has made, by which it finds its own allocation again
 *   -1, CUDA | HANDLE   an allocation of the caller's: the driver's IPC handle is in `handle`
 *   fd, CUDA | HANDLE   a pointer into the memory pool whose descriptor fd is: `handle` is the
 *                       pointer, as the driver exports it
 *
 * Such a descriptor is a character device, one of those that the host lists.
 */
#define XMEM_ATTACH_SHARED	(1u << 0)	/* XMEM_TRAIT_SHARED; not with HANDLE. All flags but
						 * ONCE are for new payloads only */
#define XMEM_ATTACH_ONCE	(1u << 1)	/* XMEM_TRAIT_ONCE */
#define XMEM_ATTACH_CUDA	(1u << 2)	/* XMEM_TRAIT_CUDA */
#define XMEM_ATTACH_HANDLE	(1u << 3)	/* XMEM_TRAIT_HANDLE; only with CUDA */
#define XMEM_ATTACH_READERS	(1u << 4)	/* XMEM_TRAIT_READERS; only with CUDA */
struct xmem_attach_request {
	__u32 size;
	__u32 flags;			/* XMEM_ATTACH_* */
	__s32 fd;			/* a sealed memfd or a dma-buf, or with CUDA a device file,
					 * or -1; the host keeps a reference */
	__u32 count;			/* 1 to XMEM_GROUP_SLOTS */
	__u64 payload;			/* in: 0; or with fd -1 the id of a payload that gets more
					 * slots; out: the payload's id */
	__u64 offset;			/* bytes to the first slot; a multiple of 64 */
	__u64 stride;			/* bytes from slot to slot; a multiple of 64, >= length */
	__u64 length;			/* bytes of each slot; not 0 */
	__u16 slot[XMEM_GROUP_SLOTS];	/* out; the caller sets it to 0 */
	/* CUDA, but not with the id of a payload; else all of them are 0: */
	__u64 bytes;			/* of the whole allocation; 1 to XMEM_MAX_DEVICE_BYTES */
	__u8  device[XMEM_UUID_BYTES];	/* its GPU; not all zero */
	__u8  handle[XMEM_HANDLE_BYTES];	/* not all zero */
};
#define XMEM_ATTACH_MIN		48	/* up to length */

/*
 * payload: a descriptor of a payload file, read-only unless WRITE asks for a writable one. Only the
 * owner gets that, and only if it has attached the file so (EACCES). If the payload is shared,
 * every writer gets it. In the kernel a descriptor of a shared payload without WRITE can only be
 * mapped, for reading (in huge pages: MAP_SHARED only), for one of the memfd could be opened anew
 * for writing. It never waits for a lease of the file (F_SETLEASE): a caller that is to get a
 * writable one, and meets a lease, is told EBUSY.
 *
 * A CUDA payload is opened and closed: a process that opens it can write it, so a reader may open
 * it only with XMEM_TRAIT_READERS.
 *
 *   OPEN    The host notes that the caller has it open, before it answers: with the same open
 *           file as was attached, or -1 where there is none, and with the handle. Once more is
 *           the same. The caller closes what the driver opened before it says CLOSE. ENOENT: it
 *           has no slot any more
 *   CLOSE   The caller has it open no longer. A payload that a client has open at its end is closed
 *           when its process has exited. (Daemon: with `bytes` not 0 it undoes the OPEN whose
 *           message had this number: ENOENT if not that alone has opened it)
 *
 * Without either flag only the question is answered, without the handle. A CUDA payload that has
 * lost its last slot is *closing* until no client has it open; then payloads_closed grows, the
 * owner's slots_waiters are woken, and the owner may free the memory. While it is closing the
 * answer is EBUSY, and ENOENT after that. So an owner that has ended can let another client ask.
 */
#define XMEM_PAYLOAD_WRITE	(1u << 0)	/* at most one of these flags */
#define XMEM_PAYLOAD_OPEN	(1u << 1)
#define XMEM_PAYLOAD_CLOSE	(1u << 2)
struct xmem_payload_request {
	__u32 size;
	__u32 flags;			/* XMEM_PAYLOAD_* */
	__u64 payload;			/* its id */
	__s32 fd;			/* out; close-on-exec; -1: CUDA, and there is none */
	__u32 traits;			/* out: XMEM_TRAIT_* */
	__u64 bytes;			/* out: length of the file, or of the allocation */
	__u8  device[XMEM_UUID_BYTES];	/* out: CUDA, or all zero, as the next */
	__u8  handle[XMEM_HANDLE_BYTES];	/* out: with OPEN */
};
#define XMEM_PAYLOAD_MIN	20	/* up to fd */

/* subscribe: follow a ring from its next publication on. */
#define XMEM_SUBSCRIBE_WAIT	(1u << 0)	/* the publisher waits for it, within its bound */
#define XMEM_SUBSCRIBE_JOINT	(1u << 1)	/* one of the rings that the caller follows as one:
						 * see XMEM_POLL_JOINT */
struct xmem_subscribe_request {
	__u32 size;
	__u32 flags;			/* XMEM_SUBSCRIBE_* */
	__u32 publisher;		/* client id */
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* of that client; 0: any */
	__u64 position;			/* out: where the cursor stands */
};
#define XMEM_SUBSCRIBE_MIN	12	/* up to publisher */

/*
 * unsubscribe: follow that ring no longer.
 *
 * With ENDED or DROPPED it is about no ring, and publisher and incarnation are 0. ENDED: all
 * rings of one of the caller's subscriptions have ended, and that of a joint one with JOINT. The
 * descriptors that poll_fd has given for it, and for the client, are readable from now on, until
 * DROPPED says the same of a subscription that the program has dropped (ENOENT: of none). LASTS: a
 * joint subscription waits for writers also while it follows none. So a writer that joins makes the
 * descriptors for that subscription and for the client readable. LASTS and DROPPED: the program has
 * dropped that subscription (ENOENT: there is none).
 */
#define XMEM_UNSUBSCRIBE_ENDED		(1u << 0)
#define XMEM_UNSUBSCRIBE_DROPPED	(1u << 1)
#define XMEM_UNSUBSCRIBE_JOINT		(1u << 2)
#define XMEM_UNSUBSCRIBE_LASTS		(1u << 3)
struct xmem_unsubscribe_request {
	__u32 size;
	__u32 flags;			/* XMEM_UNSUBSCRIBE_* */
	__u32 publisher;
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* as with subscribe */
};
#define XMEM_UNSUBSCRIBE_MIN	12	/* up to publisher */

/*
 * arm, wait, wake: one waiters word. With OWN a wake is about no word, and kind and client are 0:
 * the waits of the caller's own threads end that began with the count of kicks that there was
 * before. So a thread arms, then looks whether it is to stop, then waits; and who wants it to stop
 * says so, then wakes with OWN.
 */
enum xmem_wait_kind {
	XMEM_WAIT_CLIENTS = 0,		/* the client table changes; client must be 0; only the
					 * host wakes it */
	XMEM_WAIT_RING = 1,		/* client publishes; only a subscriber may arm it, only
					 * client wake it */
	XMEM_WAIT_SLOTS = 2,		/* a slot of client may be free, or its subscribers have
					 * changed; only client may arm it and wait for it, only it
					 * and clients whose holds count wake it */
};
#define XMEM_WAKE_OWN	(1u << 0)	/* wake: no word, but the caller's own waits */
struct xmem_wait_request {
	__u32 size;
	__u32 flags;			/* wake: XMEM_WAKE_*; else must be 0 */
	__u32 kind;			/* enum xmem_wait_kind */
	__u32 client;
	__u32 value;			/* arm: out; wait: in, as arm returned it; wake: 0 */
	__u32 reserved;			/* must be 0 */
	__u64 deadline_ns;		/* wait: CLOCK_MONOTONIC, ~0: none; arm, wake: 0 */
	__u32 kicks;			/* arm: out; wait: in, as arm returned it, or 0: no kick
					 * ends it; wake: 0 */
	__u32 reserved1;
};
#define XMEM_WAIT_MIN		20	/* up to value */

/* resolve, collect, renew, detach: one slot. */
#define XMEM_DETACH_FILE	(1u << 0)	/* detach: all slots of its payload */
struct xmem_slot_request {
	__u32 size;
	__u32 flags;			/* detach: XMEM_DETACH_*; else must be 0 */
	__u32 slot;
	__u32 reserved;			/* must be 0 */
	__u64 generation;		/* resolve: in; renew: out, first of the range; else 0 */
};
#define XMEM_SLOT_MIN		12	/* up to slot */

/*
 * poll_fd: a descriptor for poll, select and epoll, level-triggered. It is readable as long as
 * one of the rings has a publication that this client can receive, or has ended, and the host
 * follows it for this client. That of XMEM_POLL_CLIENT is also writable, exactly as long as an
 * acquire of `wanted` bytes (struct xmem_ring) would succeed. That of XMEM_POLL_SUBSCRIBERS is
 * about the client's own ring: it is readable as long as changes_seen differs from
 * subscriber_changes. When the client ends, or the host, it is readable and hung up.
 *
 *   kernel   whoever polls it arms what is needed, where there is nothing yet. An owner that
 *            has made a slot free itself wakes its own slots_waiters if that is armed. A wake-up
 *            says only that it is time to look: poll, select and epoll do that themselves, but a
 *            poll by io_uring may complete where there is nothing (any more)
 *   daemon   the client arms the words and keeps the descriptor's state true; see lib/follow/poll.c
 */
enum xmem_poll_kind {
	XMEM_POLL_CLIENT = 0,		/* all rings that the client follows, and if one of them is
					 * XMEM_SUBSCRIBE_JOINT, what is said there too;
					 * publisher must be 0 */
	XMEM_POLL_RING = 1,		/* the ring of `publisher` */
	XMEM_POLL_JOINT = 2,		/* all rings with XMEM_SUBSCRIBE_JOINT, and writers that
					 * the client does not follow yet; publisher must be 0 */
	XMEM_POLL_SUBSCRIBERS = 3,	/* those that follow the client; publisher must be 0 */
};
struct xmem_poll_fd_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u32 kind;			/* enum xmem_poll_kind */
	__u32 publisher;		/* client id */
	__u64 incarnation;		/* of that client; else 0 */
	__s32 fd;			/* out; close-on-exec */
	__u32 reserved;			/* must be 0 */
};
#define XMEM_POLL_FD_MIN	28	/* up to fd */

/*
 * claim: references that are set aside for clients yet unknown. A slot with claims is in use.
 *
 *   add    `count` more; 0: only the time changes (ENOENT: there are none). A client that knows
 *          the generation may add to contents that are LIVE; with XMEM_CLAIM_OWN the owner may add
 *          to a slot that is WRITING, and its writer in place to one that is UPGRADED.
 *          EAGAIN: the owner is scanning the slot; get it, then try again. EPERM: a client that
 *          does not own the slot asks for more than XMEM_CLAIM_LONGEST_NS
 *          After the first `add` without end the daemon's owners add such claims without a
 *          request, once for each contents, while there are none (core/protocol.h, I10)
 *   take   `count` fewer. The caller holds the slot, owns it, or has added some (EPERM). ERANGE:
 *          there are not so many. The daemon's clients take without a request (core/claims.c)
 *   void   all of them. For the slot's owner, who has added some, and in the kernel the pool's
 *          owner and CAP_SYS_ADMIN (EPERM); ENOENT: there are none. count is 0
 *
 * With XMEM_CLAIM_OWN one of them is the caller's own (EBUSY: it has one, and the request is
 * without XMEM_CLAIM_AGAIN). That one ends with the caller, unless bit 29 of the caller's hold of
 * the slot is set: the caller sets it to leave its own to whoever comes, and an add with the flag
 * clears it. A take of one with the flag ends it before; a take of none only says that it is the
 * caller's no more. ENOENT: the caller has none, or it is void. If others take all that there are,
 * it is among them.
 *
 *   undo   (daemon) takes back what this client's last add has done, as far as nobody has taken it,
 *          if it was served, and its message had the number that is in `generation`; the other
 *          fields must be 0. It is for a client that has given up waiting for the answer
 *
 * Claims end also when their time has passed, and when all who have added some have ended and at
 * most the slot's owner is left. Where limbo_bytes bounds what a client may hold (join), claims of
 * what ended owners have left are held, see evict; and if they last as long as they do because of
 * clients that have ended, too, they are void as far as they keep more than one client may hold.
 * ESTALE: the slot has other contents, or none. ERANGE: there would be more than XMEM_MAX_CLAIMS.
 */
enum xmem_claim_op {
	XMEM_CLAIM_ADD = 0,
	XMEM_CLAIM_TAKE = 1,
	XMEM_CLAIM_VOID = 2,
	XMEM_CLAIM_UNDO = 3,
};
#define XMEM_CLAIM_OWN	(1u << 0)	/* add, take */
#define XMEM_CLAIM_AGAIN (1u << 1)	/* add, with OWN: the caller may have its own already */
struct xmem_claim_request {
	__u32 size;
	__u32 flags;			/* XMEM_CLAIM_* */
	__u32 op;			/* enum xmem_claim_op */
	__u32 slot;
	__u64 generation;		/* of the contents */
	__u32 count;
	__u32 reserved;			/* must be 0 */
	__u64 timeout_ns;		/* add: from now; 0: XMEM_CLAIM_DEFAULT_NS; ~0: no end. If
					 * there are claims already, the later end counts; else 0 */
};
#define XMEM_CLAIM_MIN		28	/* up to count */
#define XMEM_CLAIM_DEFAULT_NS	10000000000ULL
#define XMEM_CLAIM_LONGEST_NS	60000000000ULL

/*
 * upgrade: a writer that alone holds a slot whose payload is shared writes it in place, and the
 * slot gets its next generation. Without a flag that begins: LIVE -> UPGRADED. It ends by one of
 *
 *   PUBLISH  UPGRADED -> LIVE; the slot's metadata are those of the request
 *   GIVE_UP  UPGRADED -> FREE; the contents are gone. The end of the client does the same
 *   CANCEL   UPGRADED -> LIVE with the generation before: nothing has been written
 *
 * The caller's hold stays all the time. If it puts it, it counts as one that holds the slot all the
 * same, wherever the host says who does, or evicts whoever holds too much (see evict).
 */
#define XMEM_UPGRADE_PUBLISH	(1u << 0)
#define XMEM_UPGRADE_GIVE_UP	(1u << 1)
#define XMEM_UPGRADE_CANCEL	(1u << 2)
struct xmem_upgrade_request {
	__u32 size;
	__u32 flags;			/* none, or one of XMEM_UPGRADE_* */
	__u32 slot;
	__u32 reserved;			/* must be 0 */
	__u64 generation;		/* in: the present one; without a flag also out: the next */
	struct xmem_metadata metadata;	/* PUBLISH; else it is not looked at */
};
#define XMEM_UPGRADE_MIN	24	/* up to generation */

/*
 * quota: one limit, how much of it is in use, and the most that there may be. The caller need not
 * have joined; a file that has not is told of no limit of a pool or of a client.
 *
 * In the kernel the process that makes a file of /dev/xmem join pays for it: its user, and the
 * owners of all user namespaces that it is in, so that further uids do not help there. root, and
 * every process with CAP_SYS_RESOURCE in the initial user namespace, is counted like everybody, but
 * not refused because of a user's limits. The daemon is of one user, and its limits are that
 * user's.
 */
enum xmem_quota {
	/* Of a user. Kernel: user_max_* in /sys/module/xmem/parameters */
	XMEM_QUOTA_USER_POOLS = 0,	/* kernel: of which it has a file of a client, of poll_fd or
					 * pool_fd, whoever made them; one that has ended, too,
					 * and while a file of a driver is being released.
					 * REFUSED may be about as many folders in sysfs of
					 * its ended pools, which somebody is still reading */
	XMEM_QUOTA_USER_CLIENTS = 1,	/* also ended ones, likewise (kernel) */
	XMEM_QUOTA_USER_SLOTS = 2,	/* that have a payload, as the next two; kernel, as these
					 * are all but pools, clients and files */
	XMEM_QUOTA_USER_GROUPS = 3,	/* of slots: that writers have, or have left to others */
	XMEM_QUOTA_USER_FILES = 4,	/* payloads: files, and memory of GPUs */
	XMEM_QUOTA_USER_FILE_BYTES = 5,	/* of the files, each as often as it is attached */
	XMEM_QUOTA_USER_PAGE_BYTES = 6,	/* of tables, groups and areas */
	XMEM_QUOTA_USER_MAPPINGS = 7,	/* of these pages */
	/* Of a user, who is left no more of what all share than it leaves to all others: kernel */
	XMEM_QUOTA_SHARE_POOLS = 16,	/* of max_pools */
	XMEM_QUOTA_SHARE_PAGE_BYTES = 17,	/* of max_bytes */
	XMEM_QUOTA_SHARE_CLIENTS = 18,	/* of a pool that another user has made, as the next two */
	XMEM_QUOTA_SHARE_GROUPS = 19,
	XMEM_QUOTA_SHARE_FILES = 20,
	/* Of the host, for all users together */
	XMEM_QUOTA_POOLS = 32,		/* kernel: max_pools */
	XMEM_QUOTA_PAGE_BYTES = 33,	/* kernel: max_bytes */
	XMEM_QUOTA_CONNECTIONS = 34,	/* daemon; of a user, as all of the daemon */
	XMEM_QUOTA_POLLS = 35,		/* daemon: descriptors to poll */
	XMEM_QUOTA_DESCRIPTORS = 36,	/* daemon: that it has none left is all it knows */
	XMEM_QUOTA_PROCESS_CONNECTIONS = 37,	/* daemon: of the caller's process */
	/* Of the pool that the file has joined */
	XMEM_QUOTA_POOL_CLIENTS = 64,	/* its capacities: EUSERS, ENOSPC */
	XMEM_QUOTA_POOL_SLOTS = 65,
	XMEM_QUOTA_POOL_GROUPS = 66,
	XMEM_QUOTA_POOL_FILES = 67,	/* payload files; kernel: max_payloads */
	XMEM_QUOTA_POOL_DEVICE_FILES = 68,	/* kernel: max_device_files */
	XMEM_QUOTA_POOL_PAGE_BYTES = 69,	/* kernel: max_pool_bytes */
	XMEM_QUOTA_POOL_DEVICES = 70,	/* GPUs */
	/* Of the client */
	XMEM_QUOTA_CLIENT_MAPPINGS = 96,	/* kernel: 32, and one for each group */
	XMEM_QUOTA_CLIENT_POLLS = 97,	/* daemon: descriptors to poll */
	XMEM_QUOTA_CLIENT_LIMBO = 98,	/* kernel: bytes of what ended clients have left that this
					 * one holds; the pool's limbo_bytes and max_limbo_bytes */
};
enum xmem_quota_scope {
	XMEM_QUOTA_OF_USER = 0,
	XMEM_QUOTA_OF_HOST = 1,
	XMEM_QUOTA_OF_POOL = 2,
	XMEM_QUOTA_OF_CLIENT = 3,
};
/*
 * The limit by which the client of this file was last refused something; by a file of the device,
 * by which several may join, the calling thread's last join, if none was refused since then.
 * `quota` is 0. ENOENT: there is none.
 */
#define XMEM_QUOTA_REFUSED	(1u << 0)
struct xmem_quota_request {
	__u32 size;
	__u32 flags;			/* XMEM_QUOTA_REFUSED, or none */
	__u32 quota;			/* in: look from this number on; out: that of the limit,
					 * enum xmem_quota. ENOENT: there are no more */
	__u32 scope;			/* out: enum xmem_quota_scope */
	__u32 uid;			/* out: scope of a user: its uid, in the caller's user
					 * namespace; else ~0 */
	__u32 level;			/* out: REFUSED: the limit is the caller's own user's: 0;
					 * of an owner of the user namespaces that it is in: 1 and
					 * more, outwards */
	__u64 used;			/* out: how many there are now, or how many bytes */
	__u64 most;			/* out: how many there may be; ~0: any number */
	__u64 wanted;			/* out: REFUSED: how many there would have been; else 0 */
	__u32 reserved;			/* must be 0 */
	__u32 reserved1;		/* out: 0 */
	__u8  name[24];			/* out: kernel: the parameter of the module; else a word for
					 * it. NUL-terminated */
};
#define XMEM_QUOTA_MIN		12	/* up to quota */

/*
 * client: the identity of another client of the pool. ENOENT: it is not there, or not that one;
 * EINVAL: the pool has no such id.
 */
#define XMEM_CLIENT_LIMBO	(1u << 0)	/* say limbo_bytes, too: that takes a while */
struct xmem_client_request {
	__u32 size;
	__u32 flags;			/* XMEM_CLIENT_* */
	__u32 client;			/* client id */
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* in: of that client, or 0: any; out: its own */
	__u32 pid;			/* out: of its process, in the caller's pid namespace; 0:
					 * that does not have it, or it is no more. Daemon: as the
					 * daemon saw it when it joined */
	__u32 uid;			/* out: in its user namespace, as stat() gives it */
	__u64 limbo_bytes;		/* out: with LIMBO, else 0: bytes of the slots that it holds
					 * or writes in place and whose owner has ended, as far as
					 * its holds count, and of those that claims keep because
					 * of it; a slot that several hold counts for each */
};
#define XMEM_CLIENT_MIN		12	/* up to client */

/*
 * evict: end another client, as if its process had unmapped its area: its requests are ENOTCONN,
 * calls in which it slept or polled return, its holds, claims and subscriptions go, its slots are
 * the host's. Before these it loses all pages of the pool that it has mapped: it reads zeros there,
 * and nobody sees its stores, so it gets no signal. It need not run for that, and costs nobody
 * anything afterwards. Payloads that it has mapped stay mapped: contents that it held may be
 * replaced under its eyes; and pages that it has pinned (vmsplice) it can still read, until the
 * clients end whose they are. When the request is answered all this is done.
 *
 * The host evicts by itself every client that holds more bytes of limbo, slots whose owner has
 * ended, than the pool's limbo_bytes: when a client ends, whenever slots of ended ones are
 * reclaimed, and once a second while there is so much of it. It spares nobody, not the pool's owner
 * either, for the memory is the publisher's. Slots do not count in the first 5 seconds after the
 * end of their group's last owner. Slots with claims count for the client that has last made these
 * end later than they did, unless it was their owner.
 *
 * For the pool's owner, and CAP_SYS_ADMIN in the user namespace in which it was made (EPERM).
 * ESTALE: that incarnation has ended. The daemon cannot take away mappings of a live process:
 * EOPNOTSUPP.
 *
 * With WHY it ends nobody, and says why the client of this file was ended (the file's own mm may
 * ask, also when its client has ended); client, incarnation and reason are 0 then.
 */
enum xmem_reason {
	XMEM_REASON_NONE = 0,		/* nobody but the client itself has ended it, if it has */
	XMEM_REASON_EVICTED = 1,	/* by evict */
	XMEM_REASON_DRAINED = 2,	/* by drain */
	XMEM_REASON_LIMBO = 3,		/* it held more of what ended clients have left than one
					 * may (join, limbo_bytes); by the host, or by evict */
};
#define XMEM_EVICT_WHY	(1u << 0)
struct xmem_evict_request {
	__u32 size;
	__u32 flags;			/* XMEM_EVICT_* */
	__u32 client;			/* client id, not the caller's own (EINVAL) */
	__u32 reason;			/* in: EVICTED or LIMBO, for the client and for traces;
					 * WHY: 0; out: enum xmem_reason */
	__u64 incarnation;		/* of that client */
	__u32 reserved;			/* must be 0 */
	__u32 reserved1;
};
#define XMEM_EVICT_MIN		24	/* up to incarnation */

/*
 * drain: nobody joins the pool any more (ESHUTDOWN), by name or by a descriptor. Its clients go on;
 * with the last of them, and the last descriptor of the pool, it is gone, and then its name is
 * free. This cannot be undone; to drain once more is allowed. For whom evict is for.
 *
 * EVICT: all clients but those of the caller's mm are ended, with reason DRAINED, as by evict;
 * EOPNOTSUPP (daemon): nothing has changed.
 */
#define XMEM_DRAIN_EVICT	(1u << 0)
struct xmem_drain_request {
	__u32 size;
	__u32 flags;			/* XMEM_DRAIN_* */
	__u32 evicted;			/* in: 0; out: how many clients have been ended */
	__u32 reserved;			/* must be 0 */
};
#define XMEM_DRAIN_MIN		12	/* up to evicted */

/*
 * grant: holds of another client on the caller's slots count from now on, on the slots that the
 * caller has and on those that it gets later. It is for clients of other users that are given
 * tokens by a way of their own; subscribers do not need it. It lasts until either of the two ends,
 * and does nothing if it was so before. For writers (EPERM). ESTALE: that incarnation has ended.
 *
 * With FORWARDED the caller is about to forward a slot of another owner, which it holds (EPERM): it
 * is a stage of the slot's group, and all who follow its ring, now or later, may hold what that
 * owner has. A stage that does not say so is received only by those who may hold that anyway; to
 * others it is lost. It has to be said once for each group, and before the entry is complete.
 */
#define XMEM_GRANT_FORWARDED	(1u << 0)
struct xmem_grant_request {
	__u32 size;
	__u32 flags;			/* XMEM_GRANT_* */
	__u32 client;			/* client id; FORWARDED: 0 */
	__u32 slot;			/* FORWARDED: the slot; else 0 */
	__u64 incarnation;		/* of that client; FORWARDED: 0 */
	__u32 reserved;			/* must be 0 */
	__u32 reserved1;		/* must be 0 */
};
#define XMEM_GRANT_MIN		24	/* up to incarnation */

/*
 * writer: a client that has joined as EITHER is a writer from now on. The host wakes clients that
 * wait for writers. If the client is a writer already, nothing changes. EPERM: it is a reader.
 */
struct xmem_writer_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
};
#define XMEM_WRITER_MIN		8

#define XMEM_IOC_JOIN		_IO(XMEM_IOC_TYPE, 0x00)
#define XMEM_IOC_POOL_FD	_IO(XMEM_IOC_TYPE, 0x01)
#define XMEM_IOC_ATTACH		_IO(XMEM_IOC_TYPE, 0x02)
#define XMEM_IOC_PAYLOAD	_IO(XMEM_IOC_TYPE, 0x03)
#define XMEM_IOC_SUBSCRIBE	_IO(XMEM_IOC_TYPE, 0x04)
#define XMEM_IOC_UNSUBSCRIBE	_IO(XMEM_IOC_TYPE, 0x05)
#define XMEM_IOC_ARM		_IO(XMEM_IOC_TYPE, 0x06)
#define XMEM_IOC_WAIT		_IO(XMEM_IOC_TYPE, 0x07)
#define XMEM_IOC_WAKE		_IO(XMEM_IOC_TYPE, 0x08)
/* resolve: return a SCANNING slot that the caller holds to LIVE, for its owner has stopped. */
#define XMEM_IOC_RESOLVE	_IO(XMEM_IOC_TYPE, 0x09)
/*
 * collect: tell the host that the caller has put its last hold on a slot that is the host's. It is
 * reclaimed a moment later, if nobody else has it. Where holds of the caller do not count, the host
 * does nothing, which is no error.
 */
#define XMEM_IOC_COLLECT	_IO(XMEM_IOC_TYPE, 0x0a)
/* renew: give a WRITING or FREE slot of the caller a new range of generations. */
#define XMEM_IOC_RENEW		_IO(XMEM_IOC_TYPE, 0x0b)
/*
 * detach: give back a FREE slot of the caller, and with a payload's last slot the payload; with
 * XMEM_DETACH_FILE all slots of the payload that this one is in, or if one of them is not FREE
 * none (EBUSY).
 */
#define XMEM_IOC_DETACH		_IO(XMEM_IOC_TYPE, 0x0c)
#define XMEM_IOC_QUERY		_IO(XMEM_IOC_TYPE, 0x0d)
#define XMEM_IOC_POOLS		_IO(XMEM_IOC_TYPE, 0x0e)
#define XMEM_IOC_POLL_FD	_IO(XMEM_IOC_TYPE, 0x0f)
#define XMEM_IOC_CLAIM		_IO(XMEM_IOC_TYPE, 0x10)
#define XMEM_IOC_UPGRADE	_IO(XMEM_IOC_TYPE, 0x11)
#define XMEM_IOC_NARROW		_IO(XMEM_IOC_TYPE, 0x12)
#define XMEM_IOC_ACCESS		_IO(XMEM_IOC_TYPE, 0x13)
#define XMEM_IOC_QUOTA		_IO(XMEM_IOC_TYPE, 0x14)
#define XMEM_IOC_CLIENT		_IO(XMEM_IOC_TYPE, 0x15)
#define XMEM_IOC_EVICT		_IO(XMEM_IOC_TYPE, 0x16)
#define XMEM_IOC_DRAIN		_IO(XMEM_IOC_TYPE, 0x17)
#define XMEM_IOC_GRANT		_IO(XMEM_IOC_TYPE, 0x18)
#define XMEM_IOC_WRITER		_IO(XMEM_IOC_TYPE, 0x19)

/* ------------------------------------------------------------------------
 * /sys/class/xmem/poolN/{slots,clients,devices} (kernel): a struct xmem_shown, and then records,
 * one for each slot, client id or GPU that the pool has room for. They are for tools, and can be
 * read from any offset. A read gives at most a page, which has at least 4096 bytes; if it begins
 * and ends between two records, each of them is of one moment, but for holds: all the while that
 * they were counted the rest was so.
 */
struct xmem_shown {
	__u32 header_bytes;		/* from here to the first record */
	__u32 record_bytes;		/* from one record to the next: a newer host makes them
					 * longer, and an older tool does not look at the rest */
	__u32 records;			/* how many there are */
	__u32 abi;			/* XMEM_ABI of the host */
	__u64 reserved[14];
};

/* In flags, with which each record begins. */
#define XMEM_SHOWN_CHANGING	(1u << 0)	/* it changed whenever it was looked at: its
						 * values are of more than one moment */
#define XMEM_SHOWN_QUARANTINE	(1u << 1)	/* a client: it has ended, and its process may
						 * still use memory of a GPU */

/* One slot. Without an owner all else is 0. */
struct xmem_shown_slot {
	__u32 flags;			/* XMEM_SHOWN_* */
	__u32 owner;			/* client id, or XMEM_OWNER_* */
	__u32 state;			/* enum xmem_slot_state */
	__u32 traits;			/* XMEM_TRAIT_* */
	__u64 generation;		/* of the contents; it and the slot's number are their
					 * token */
	__u64 length;			/* bytes */
	__u64 payload;			/* id of the payload that it is in */
	__u64 holds;			/* of all clients together; its writer in place has one
					 * at least */
	__u64 holders[XMEM_CLIENT_WORDS];	/* bit set: that client has some. A slot in the
						 * ring of a publisher is in use without */
	__u32 claims;			/* references set aside for clients yet unknown */
	__u32 reserved0;
	__u64 reserved1[5];
};

/* One client id. Where it is free, all is 0. */
struct xmem_shown_client {
	__u32 flags;			/* XMEM_SHOWN_* */
	__u32 state;			/* enum xmem_client_state */
	__u32 role;			/* enum xmem_role */
	__u32 pid;			/* in the reader's PID namespace; 0: it is not in there */
	__u32 uid;			/* of the process when it joined, in the reader's user
					 * namespace */
	__u32 reserved0;
	__u64 incarnation;		/* number of this use of the id */
	__u64 holds;			/* of all slots, which are counted one after the other; one
					 * at least of each that it writes in place */
	__u8  label[XMEM_LABEL_BYTES];	/* the client's name for itself; NUL-terminated */
	__u64 limbo_bytes;		/* of the slots that it holds or writes in place, or claims
					 * keep because of it, and whose owner has ended */
	__u64 reserved1[8];
};

/* One GPU: the first record is that of device 1 in the traits of slots. */
struct xmem_shown_device {
	__u32 flags;			/* XMEM_SHOWN_* */
	__u32 reserved0;
	__u8  uuid[XMEM_UUID_BYTES];	/* all zero: none */
	__u64 bytes;			/* of all payloads on it that have slots or are closing */
	__u64 closing_bytes;		/* of those that have no slot any more */
	__u64 reserved1[11];
};

/* The daemon's datagrams, both ways; descriptors travel as SCM_RIGHTS. */
struct xmem_message {
	__u32 request;			/* XMEM_IOC_* */
	__s32 result;			/* reply: 0 or -errno; request: 0, or XMEM_NO_REPLY */
	__u64 number;			/* of the request, from its sender; the reply repeats it */
	/* followed by the request's struct */
};
#define XMEM_NO_REPLY	1		/* the sender wants no reply to this request */

#endif

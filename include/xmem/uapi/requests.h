/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* The rules and numbers of requests, and the requests about a host. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_REQUESTS_H
#define XMEM_UAPI_REQUESTS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "limits.h"

/*
 * Requests are ioctls of an open /dev/xmem. The daemon takes their structs as datagrams (struct
 * xmem_message).
 *
 * Every struct begins with its size and its flags, and can grow at its end like the structs of
 * openat2():
 *
 *   - The host extends a shorter struct of an older caller with zeros. It must have the minimum
 *     that stands behind each request (XMEM_*_MIN).
 *   - The host takes a longer struct of a newer caller, up to 4096 bytes, if the rest of it is
 *     zero.
 *   - The answer is cut to the caller's size. Fields that the host does not know stay as the
 *     caller had them.
 *
 * Structs of requests that do several things (wait, slot, claim, evict, grant) have an `op` behind
 * the flags. The host refuses unknown ops and flags, and reserved fields that are not 0. A request
 * that fails changes nothing, with one exception: EFAULT, when another thread makes the struct
 * unwritable while the host serves the request. Then the request has had its effect: new slots, a
 * subscription or an upgrade are the client's, and go with its file. But no descriptor is left, a
 * join without its descriptor ends, and memory of a GPU that was to be opened is not open.
 *
 * Errors:
 *
 *   ENOTTY      the request is unknown
 *   E2BIG       bytes beyond the fields that this host knows are not zero
 *   EINVAL      the size is below the minimum, a flag or op is unknown, a reserved field is
 *               not 0, or a field is out of its range
 *   EFAULT      the struct is not readable or not writable
 *   ENOTCONN    the file is no client's, or its client has ended; attach, subscribe, claim,
 *               payload with OPEN (kernel): the client has not mapped its area, by which the
 *               host knows it
 *   EISCONN     join: the file is a client's
 *   EPROTONOSUPPORT  join: the host does not serve this ABI
 *   EPERM       the file is a client's, and the caller's mm is not the one that joined; join,
 *               access, evict: only the pool's owner may do that, or the group is not the
 *               caller's; or the client's role, or its part in the slot or ring, does not allow
 *               it
 *   EACCES      join, pool_fd: the caller has roles in the pool, but not that one;
 *               join: /dev/xmem is open for reading only, and the role is writer;
 *               claim, grant: the caller's holds there do not count (struct xmem_group_row);
 *               payload: the file was attached with less access than is asked for, or a reader
 *               asks for a writable file, or for a GPU's without XMEM_TRAIT_READERS;
 *               attach: the descriptor is not open for reading, or is to be shared and not
 *               open for writing
 *   EEXIST      join: a pool of that name exists; subscribe: it is subscribed already
 *   ENOENT      join: the pool does not exist, or gives the caller no role; subscribe,
 *               payload, wait: the client or payload does not exist, or CLOSE: the caller has
 *               not got it open; pools, quota: there are no more
 *   EOWNERDEAD  payload: it ends with its owner, which has ended
 *   ESTALE      subscribe, evict, grant: that incarnation has ended; slot requests: the slot
 *               has another tenancy
 *   ESHUTDOWN   join: the pool is drained; join by a descriptor, pool_fd with NARROW (kernel):
 *               the pool is drained or has ended
 *   EBADF       the descriptor is not open; join, pool_fd: it is not a pool's
 *   EMEDIUMTYPE attach: the file is not a memfd (shmem or hugetlb), nor, in the kernel and
 *               not to be shared, a dma-buf; with CUDA it is not a device file that the host
 *               takes; payload: a flag for files and a CUDA payload, or the reverse
 *   ENOEXEC     attach: the file lacks seals: F_SEAL_SHRINK, F_SEAL_GROW and
 *               F_SEAL_FUTURE_WRITE or F_SEAL_WRITE; a shared one lacks F_SEAL_SHRINK,
 *               F_SEAL_GROW and F_SEAL_SEAL, or is sealed against writing
 *   ERANGE      attach: the slots reach beyond the file's end, or the file has holes;
 *               join: the pool exists, and is smaller than is asked for, or, if it is the
 *               caller's, admits more than `mode` (see there)
 *   EUSERS      join: the pool's client table is full
 *   ENOSPC      attach: the pool has too few free slots; renew: the slot is worn out;
 *               upgrade: the slot's generations are used up until its owner renews them
 *   EDQUOT      a limit of the caller's user, of the host, of the pool or of the client is
 *               reached; the request `quota` tells which
 *   EAGAIN      resolve: the word changed by itself; claim: see there; upgrade: the slot's
 *               owner, or its host, is scanning it
 *   EBUSY       detach: the slot has contents, or is being written; upgrade: another client
 *               holds it or may still receive it, or the caller holds it more than once;
 *               payload: it has no slot any more, and clients still have it open;
 *               attach: a process has a lease of the file (F_SETLEASE), which would delay
 *               every open of it, or runs it as a program; payload with WRITE: there is such
 *               a lease, for the owner of a payload that is not shared and, with the daemon,
 *               for writers of a shared one
 *   ETIMEDOUT   wait: the deadline passed
 *   EINTR       wait: a signal came (restarted where SA_RESTART says so)
 *   EOPNOTSUPP  subscribe: that ring does not wait for subscribers; upgrade: the slot's
 *               payload is not shared; arm, wait, resolve (daemon): the client does that
 *               itself; join, access (daemon): its pools are one user's, so it has no other
 *               owner, no other group, and no mode for others; evict (daemon): it cannot take
 *               away mappings of a live process
 *   ENOMEM      there is not enough memory
 */
#define XMEM_IOC_TYPE	0xE8

/**
 * struct xmem_query_request - the argument of XMEM_IOC_QUERY
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @abi: out: XMEM_ABI of the host
 * @abi_oldest: out: the oldest ABI that it still serves
 * @compat: out: features of its pools that a client may ignore
 * @incompat: out: features of its pools that a client has to know
 * @max_slots: out: of one pool
 * @max_clients: out: of one pool
 * @max_ring_entries: out: of one pool
 * @max_payloads: out: payload files of a pool; kernel: of a user
 * @group_slots: out: slots of a group, which one owner gets
 * @max_pools: out: of all users (kernel), or of this one (daemon)
 * @pools: out: those that the caller may see now
 * @reserved: must be 0
 * @version: out: of the host's program; NUL-terminated
 *
 * query: describe this host. The caller need not have joined.
 */
struct xmem_query_request {
	__u32 size;
	__u32 flags;
	__u32 abi;
	__u32 abi_oldest;
	__u64 compat;
	__u64 incompat;
	__u32 max_slots;
	__u32 max_clients;
	__u32 max_ring_entries;
	__u32 max_payloads;
	__u32 group_slots;
	__u32 max_pools;
	__u32 pools;
	__u32 reserved;
	__u8  version[16];
};
#define XMEM_QUERY_MIN		8	/* up to flags */

/**
 * struct xmem_pools_request - the argument of XMEM_IOC_POOLS
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @number: in: get the next pool above this number, 0 for the first; out: the pool's, never reused
 *   while the host runs
 * @name: out; empty: anonymous
 * @owner_uid: out: the creator's, in the caller's user namespace; ~0: it has no number there
 *   (daemon: in the daemon's namespace)
 * @slots: out: capacity
 * @clients: out: capacity
 * @ring_entries: out: capacity
 * @alive: out: clients that have joined and not ended
 * @reserved: must be 0
 * @attached_bytes: out: of all attached slots together
 * @payload_bytes: out: of all payload files
 * @kept_bytes: out: of the payload files whose owner has ended
 * @payloads: out: payload files
 * @mode: out: XMEM_MODE_*
 * @gid: out: its group's, as owner_uid
 * @roles: out: mask of the roles that its mode gives the caller
 *
 * pools: the next pool that the caller may see. The caller need not have joined. It does not become
 * a user of the pool: a pool that ends meanwhile ends. It sees the pools that it may join in at
 * least one role:
 *
 *   kernel   the pools of the caller's network namespace, of all users
 *   daemon   all pools of this daemon, which are its user's
 */
struct xmem_pools_request {
	__u32 size;
	__u32 flags;
	__u64 number;
	__u8  name[XMEM_NAME_BYTES];
	__u32 owner_uid;
	__u32 slots;
	__u32 clients;
	__u32 ring_entries;
	__u32 alive;
	__u32 reserved;
	__u64 attached_bytes;
	__u64 payload_bytes;
	__u64 kept_bytes;
	__u32 payloads;
	__u32 mode;
	__u32 gid;
	__u32 roles;
};
#define XMEM_POOLS_MIN		16	/* up to number */

#define XMEM_IOC_JOIN		_IO(XMEM_IOC_TYPE, 0x00)
#define XMEM_IOC_POOL_FD	_IO(XMEM_IOC_TYPE, 0x01)
#define XMEM_IOC_ATTACH		_IO(XMEM_IOC_TYPE, 0x02)
#define XMEM_IOC_PAYLOAD	_IO(XMEM_IOC_TYPE, 0x03)
#define XMEM_IOC_SUBSCRIBE	_IO(XMEM_IOC_TYPE, 0x04)
#define XMEM_IOC_UNSUBSCRIBE	_IO(XMEM_IOC_TYPE, 0x05)
#define XMEM_IOC_WAIT		_IO(XMEM_IOC_TYPE, 0x06)
#define XMEM_IOC_SLOT		_IO(XMEM_IOC_TYPE, 0x07)
#define XMEM_IOC_QUERY		_IO(XMEM_IOC_TYPE, 0x08)
#define XMEM_IOC_POOLS		_IO(XMEM_IOC_TYPE, 0x09)
#define XMEM_IOC_POLL_FD	_IO(XMEM_IOC_TYPE, 0x0a)
#define XMEM_IOC_CLAIM		_IO(XMEM_IOC_TYPE, 0x0b)
#define XMEM_IOC_UPGRADE	_IO(XMEM_IOC_TYPE, 0x0c)
#define XMEM_IOC_ACCESS		_IO(XMEM_IOC_TYPE, 0x0d)
#define XMEM_IOC_QUOTA		_IO(XMEM_IOC_TYPE, 0x0e)
#define XMEM_IOC_CLIENT		_IO(XMEM_IOC_TYPE, 0x0f)
#define XMEM_IOC_EVICT		_IO(XMEM_IOC_TYPE, 0x10)
#define XMEM_IOC_GRANT		_IO(XMEM_IOC_TYPE, 0x11)

/**
 * struct xmem_message - the head of a datagram from or to the daemon; the request's struct follows
 *   it
 * @request: XMEM_IOC_*
 * @result: reply: 0 or -errno; request: 0, or XMEM_NO_REPLY
 * @number: chosen by the sender of the request; the reply repeats it
 *
 * The daemon's datagrams, in both directions; descriptors travel as SCM_RIGHTS.
 */
struct xmem_message {
	__u32 request;
	__s32 result;
	__u64 number;
	/* followed by the request's struct */
};
#define XMEM_NO_REPLY	1		/* the sender wants no reply */

#endif

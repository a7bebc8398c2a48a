/* SPDX-License-Identifier: MIT */
/* Looking at hosts, pools, clients and slots. A part of xmem.h, whose general rules apply. */
#ifndef XMEM_INFO_H
#define XMEM_INFO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;

/* The numbers of a pool now. Other clients continue meanwhile, so the numbers need not add up. */
struct xmem_pool_info {
	size_t size;			/* in: sizeof(struct xmem_pool_info); out: valid bytes */
	uint32_t slots;			/* capacity */
	uint32_t attached;		/* slots with a buffer */
	uint32_t free;			/* of those: without contents */
	uint32_t writing;		/* being written, or kept by their owner for its next
					 * acquire */
	uint32_t live;			/* with contents */
	uint32_t held;			/* slots that at least one client holds */
	uint32_t limbo;			/* attached slots whose owner has ended */
	uint32_t clients;		/* that live */
	uint32_t zombies;		/* ended clients with publications in flight */
	uint32_t clients_max;		/* capacity */
	uint32_t ring_entries;		/* capacity of each writer's ring */
	uint32_t reserved;
	uint64_t holds;			/* references of all clients together */
	uint64_t bytes;			/* of all attached slots */
	uint64_t bytes_files;		/* of the files with these slots; since 0.3 */
	uint64_t bytes_kept;		/* of the files whose owner has ended; since 0.3 */
	uint64_t bytes_mapped;		/* of the files that this handle has mapped; since 0.3 */
	uint32_t payloads;		/* files and allocations of GPUs; since 0.3 */
	uint32_t reserved1;
	uint64_t stale_handles;		/* uses of dropped handles of buffers by this process, in
					 * all its pools; since 0.3 */
	uint64_t bytes_huge;		/* of files in huge pages (hugetlb); since 0.4 */
	uint64_t bytes_advised;		/* of this handle's files in ordinary pages for which the
					 * kernel was asked for huge pages; since 0.4 */
	uint64_t claims;		/* of all slots; since 0.4 */
	uint32_t claimed;		/* slots with claims; since 0.4 */
	uint32_t overdue;		/* slots that their owner wants back and others hold: struct
					 * xmem_limbo; since 0.4 */
	uint64_t bytes_limbo;		/* of the slots in limbo; since 0.4 */
	uint64_t limbo_age_ns;		/* time since the first of their owners ended, or a later
					 * owner of the group, if one has ended too; since 0.4 */
	uint64_t bytes_overdue;		/* of the overdue slots; since 0.4 */
	uint64_t overdue_age_ns;	/* time since an owner first missed one of them; since
					 * 0.4 */
	uint64_t bytes_cuda;		/* of memory of GPUs, counted as bytes of struct
					 * xmem_device_info; since 0.5 */
	uint64_t bytes_closing;		/* of that: has no buffers any more, but processes still
					 * have it open; since 0.5 */
};

/*
 * Get the numbers of a pool, from its pages.
 * @ret_info: its size field is set.
 * Returns: 0, -EINVAL, -ECHILD. Threads: any. Since: 0.1.
 */
int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_info);

enum xmem_client_role {
	XMEM_CLIENT_READER = 1,
	XMEM_CLIENT_WRITER = 2
};

/* One client of a pool. */
struct xmem_client_info {
	size_t size;			/* in: sizeof(struct xmem_client_info); out: valid bytes */
	uint32_t id;
	uint32_t role;			/* enum xmem_client_role */
	uint32_t alive;			/* 1; 0: it has ended, with publications in flight */
	uint32_t pid;			/* in this process's namespace, or as the daemon sees it; 0:
					 * not in this namespace */
	uint32_t uid;			/* in its user namespace; as pid */
	uint32_t slots;			/* attached slots that it owns */
	uint64_t incarnation;		/* number of this use of the id, never reused */
	uint64_t wait_bound_ns;		/* of its options */
	uint64_t holds;			/* references to all slots together */
	char label[16];			/* NUL-terminated */
	uint32_t follows;		/* publishers that it follows, with ended ones; since 0.2 */
	uint32_t followers;		/* clients that subscribe to it, which its
					 * xmem_subscriber_next gets; since 0.5 */
	uint64_t behind;		/* publications of all publishers that it has yet to
					 * receive; since 0.2 */
	uint64_t bytes_mapped;		/* of the files that it has mapped, as it reports itself;
					 * since 0.3 */
	uint64_t bytes_kept;		/* of ended owners' files with a buffer that it holds or has
					 * yet to receive; since 0.3 */
	uint32_t limbo;			/* slots that it holds and that are in limbo or overdue;
					 * since 0.4 */
	uint32_t awaits_writer;		/* threads that wait for a writer to follow, as it reports
					 * itself; since 0.5 */
	uint64_t bytes_limbo;		/* of the slots that `limbo` counts; since 0.4 */
	uint64_t bytes_ended;		/* of those, of ended owners: limbo_bytes of struct
					 * xmem_pool_options bounds this; since 0.5 */
};

/*
 * Get the properties of one client of a pool.
 * @client: its id, from 0 to clients_max - 1 of struct xmem_pool_info.
 * @ret_info: its size field is set.
 * Returns: 0; -ENOENT: no client has that id; -EINVAL: no client can have it; -ECHILD.
 * Threads: any. Since: 0.2.
 */
int xmem_pool_client_info(struct xmem_pool *pool, uint32_t client,
			  struct xmem_client_info *ret_info);

/* One client that subscribes to a writer. */
struct xmem_subscriber_info {
	size_t size;			/* in: sizeof(struct xmem_subscriber_info); out: valid
					 * bytes */
	uint32_t client;		/* its id, for xmem_pool_client_info */
	uint32_t waits;			/* 1: the writer waits for it (XMEM_SUBSCRIBE_WAITS) */
	uint64_t incarnation;		/* number of this use of the id, never reused */
	uint64_t behind;		/* publications of this writer that it has yet to receive */
	uint32_t demoted;		/* 1: it has exceeded wait_bound_ns, and the writer does not
					 * wait for it until it receives again */
	uint32_t reserved;
	char label[16];			/* NUL-terminated */
};

/*
 * Get the next client that subscribes to this writer. A loop gets all of them:
 *
 *	for (id = 0; !xmem_subscriber_next(pool, id, &info); id = info.client + 1)
 *
 * Such a client can receive everything that the writer publishes from now on, but it can end or
 * unsubscribe at any time.
 * @first: get the client with this id, or with the next higher one. 0: get the first one; this
 *	counts as a look (see xmem_subscribers_poll_fd).
 * @ret_info: its size field is set.
 * Returns: 0; -ENOENT: there are no more; -EPERM: this client is a reader; -EINVAL; -ENOTCONN: the
 * host has gone, or has ended this client; -ECHILD. Threads: any. Since: 0.5.
 */
int xmem_subscriber_next(struct xmem_pool *pool, uint32_t first,
			 struct xmem_subscriber_info *ret_info);

/*
 * Wait until clients subscribe to this writer. They can receive everything that it publishes after
 * that. So a program that publishes and then ends waits for its readers before it publishes.
 * @count: how many clients; 0: do not wait, only count them.
 * @timeout_ns: nanoseconds to wait; 0: do not wait, which counts as a look
 *	(xmem_subscribers_poll_fd).
 * Returns: how many there are, at least @count, or
 *	-EAGAIN	there are fewer, and the timeout is 0; the message says how many
 *	-ETIMEDOUT  too few have come in time; the message says how many there are
 *	-EPERM	this client is a reader
 *	-EINVAL	the timeout is negative, or @count is more than the pool's clients_max
 *	-ENOTCONN  the host has gone, or has ended this client
 *	-ECANCELED, -EINTR, -ECHILD
 * Threads: any. Since: 0.5.
 */
int xmem_wait_subscribers(struct xmem_pool *pool, uint32_t count, int64_t timeout_ns);

/*
 * Get a descriptor for poll, select and epoll that is about the clients that subscribe to this
 * writer. It is readable when some have come or gone since a thread of the program last looked: by
 * xmem_subscriber_next from 0 on, or by xmem_wait_subscribers with timeout 0. It is hung up like a
 * pool's, and never writable. While the daemon is stopped it reports nothing new.
 * Returns: as xmem_pool_poll_fd, and -EPERM: this client is a reader.
 * Ownership: the library's, valid as long as that of xmem_pool_poll_fd. Threads: any. Since: 0.5.
 */
int xmem_subscribers_poll_fd(struct xmem_pool *pool);

/* The use of a slot. */
enum xmem_slot_use {
	XMEM_USE_NONE = 0,		/* it has no buffer */
	XMEM_USE_FREE = 1,		/* a buffer without contents */
	XMEM_USE_WRITING = 2,		/* being written, or kept by its owner for its next
					 * acquire */
	XMEM_USE_LIVE = 3,		/* it has contents */
	XMEM_USE_LIMBO = 4		/* its owner has ended; it goes when no client holds it */
};

#define XMEM_NOBODY	0xffffffffu	/* in place of a client id: no client */

/* One slot of a pool. */
struct xmem_slot_info {
	size_t size;			/* in: sizeof(struct xmem_slot_info); out: valid bytes */
	uint32_t slot;
	uint32_t state;			/* enum xmem_slot_use */
	uint32_t owner;			/* client id, or XMEM_NOBODY */
	uint32_t device;		/* number of the GPU in the pool (xmem_pool_device_info); 0:
					 * the CPU; since 0.5 */
	uint64_t token;			/* of the contents; 0: there are none */
	uint64_t bytes;			/* of the whole buffer */
	uint64_t holds;			/* references of all clients together */
	uint64_t position;		/* 1 + sequence number of its last publication; 0: none */
	uint64_t payload;		/* number of the file; 0: none */
	uint64_t payload_bytes;		/* of the file; since 0.3 */
	uint32_t claims;		/* references that are set aside (claims.h); since 0.4 */
	uint32_t upgrader;		/* client that writes it in place, or XMEM_NOBODY;
					 * since 0.4 */
	uint32_t overdue;		/* 1: its owner wants it back, and others hold it: struct
					 * xmem_limbo; since 0.4 */
	uint32_t reserved;
};

/*
 * Get the properties of one slot of a pool.
 * @slot: from 0 to slots - 1 of struct xmem_pool_info.
 * @ret_info: its size field is set.
 * Returns: 0; -EINVAL: there is no such slot; -ECHILD.
 * Threads: any. Since: 0.2.
 */
int xmem_pool_slot_info(struct xmem_pool *pool, uint32_t slot, struct xmem_slot_info *ret_info);

/* A GPU in whose memory a pool has, or has had, buffers. */
struct xmem_device_info {
	size_t size;			/* in: sizeof(struct xmem_device_info); out: valid bytes */
	uint32_t device;		/* its number in the pool, as in metadata and slots */
	uint32_t reserved;
	uint8_t uuid[16];		/* as in struct xmem_cuda_device_info */
	uint64_t bytes;			/* of the pool's memory there: whole allocations, once for
					 * each attach, and whole blocks that small ones share */
	uint64_t bytes_closing;		/* of that: as in struct xmem_pool_info */
};

/*
 * Get the numbers of a pool's memory on one GPU. This needs no driver.
 * @device: the GPU's number in the pool, from 1 on without a gap.
 * @ret_info: its size field is set.
 * Returns: 0; -ENOENT: the pool has no GPU of that number; -EINVAL: no pool can have it; -ECHILD.
 * Threads: any. Since: 0.5.
 */
int xmem_pool_device_info(struct xmem_pool *pool, uint32_t device,
			  struct xmem_device_info *ret_info);

/*
 * Count the references that one client has of one slot: at least one if it writes the slot in
 * place.
 * Returns: the number; -ENOENT: no client has that id; -EINVAL: no client can have it, or there is
 * no such slot; -ECHILD. Threads: any. Since: 0.2.
 */
int64_t xmem_pool_holds(struct xmem_pool *pool, uint32_t client, uint32_t slot);

/* A description of the host. */
struct xmem_host_info {
	size_t size;			/* in: sizeof(struct xmem_host_info); out: valid bytes */
	uint32_t abi;			/* version of its protocol */
	uint32_t abi_oldest;		/* the oldest that it still serves */
	uint64_t features;		/* that a client has to know in order to use its pools */
	uint32_t max_slots;		/* of a pool */
	uint32_t max_clients;		/* of a pool */
	uint32_t max_ring_entries;	/* of a pool */
	uint32_t group_slots;		/* slots of a group, which one writer gets */
	uint32_t max_pools;
	uint32_t max_payloads;		/* files with contents, of a pool */
	uint32_t pools;			/* now */
	uint32_t reserved;
	char backend[16];		/* "kernel" or "daemon" */
	char version[16];		/* of the host's program; NUL-terminated */
};

/*
 * Get the properties of the host, without joining a pool or starting a daemon.
 * @ret_info: its size field is set.
 * Returns: 0; -ENODEV: no host is running; -EACCES, -EPERM, -ENAMETOOLONG: as xmem_pool_open;
 * -EDQUOT: the host has as many connections as it may have; -EINVAL: also: XMEM_BACKEND
 * (docs/environment.md) is wrong. Threads: any. Since: 0.2.
 */
int xmem_host_query(struct xmem_host_info *ret_info);

/* The owner of a limit. */
enum xmem_limit_scope {
	XMEM_LIMIT_OF_USER = 0,		/* of one user, in all pools */
	XMEM_LIMIT_OF_HOST = 1,		/* of all users together */
	XMEM_LIMIT_OF_POOL = 2,
	XMEM_LIMIT_OF_CLIENT = 3
};

/* One limit of the host, and how much of it is in use. */
struct xmem_limit_info {
	size_t size;			/* in: sizeof(struct xmem_limit_info); out: valid bytes */
	uint32_t number;		/* of the limit, never changes */
	uint32_t scope;			/* enum xmem_limit_scope */
	uint32_t uid;			/* of a user; else 0xffffffff */
	uint32_t in_bytes;		/* 1: the next two are bytes; 0: numbers of things */
	uint64_t used;
	uint64_t most;			/* UINT64_MAX: there is no limit */
	char name[24];			/* NUL-terminated. Kernel: the module's parameter, if it has
					 * one */
	char what[40];			/* the limited thing, in English */
};

/*
 * Get one of the host's limits, and its use. A request that reaches a limit fails with EDQUOT (or
 * ENOSPC or EUSERS, if the limit is a capacity of the pool), and its message has the limit, its
 * use, and the remedy. The call starts no daemon.
 * @pool: NULL: ask without joining; then limits of pools and clients are left out.
 * @number: get the limit with this number, or with the next higher one: 0 for the first, then one
 *	more than the last answer.
 * @ret_info: its size field is set.
 * Returns: 0; -ENOENT: there are no more, or no host is running; -ENOTCONN: the pool's host has
 * gone; -EACCES, -EPERM, -ENAMETOOLONG: as xmem_pool_open; -EDQUOT, -EINVAL: as xmem_host_query;
 * -ECHILD. Threads: any. Since: 0.5.
 */
int xmem_limit_next(struct xmem_pool *pool, uint32_t number, struct xmem_limit_info *ret_info);

/* One of the host's pools. */
struct xmem_pool_entry {
	size_t size;			/* in: sizeof(struct xmem_pool_entry); out: valid bytes */
	uint64_t number;		/* of the pool, never reused while the host runs */
	char name[136];			/* at most 128 characters; NUL-terminated; empty:
					 * anonymous */
	uint32_t owner_uid;		/* of its maker; UINT32_MAX: it has no number in this
					 * process's user namespace */
	uint32_t slots;			/* capacity */
	uint32_t clients_max;		/* capacity */
	uint32_t clients;		/* that live */
	uint32_t ring_entries;		/* capacity of each writer's ring */
	uint32_t reserved;
	uint64_t bytes;			/* of all attached slots */
	uint64_t bytes_files;		/* of the files with these slots; since 0.3 */
	uint64_t bytes_kept;		/* of the files whose owner has ended; since 0.3 */
	uint32_t payloads;		/* files; since 0.3 */
	uint32_t mode;			/* as in struct xmem_pool_options; since 0.5, as all that
					 * follow */
	uint32_t gid;			/* its group; UINT32_MAX as owner_uid */
	uint32_t roles;			/* XMEM_MAY_*: that the mode gives this process */
};

/*
 * Get the host's next pool that this process may join by its name, or that is its user's own,
 * without joining it. The call starts no daemon.
 * @after: the number of the pool before it; 0: get the first one.
 * @ret_entry: its size field is set.
 * Returns: 0; -ENOENT: there are no more, or no host is running; -EACCES, -EPERM, -ENAMETOOLONG: as
 * xmem_pool_open; -EDQUOT, -EINVAL: as xmem_host_query. Threads: any. Since: 0.2.
 */
int xmem_pool_next(uint64_t after, struct xmem_pool_entry *ret_entry);

#ifdef __cplusplus
}
#endif
#endif

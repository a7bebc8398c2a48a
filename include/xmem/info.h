/* SPDX-License-Identifier: MIT */
/* Looking at hosts, pools, clients and slots. A part of xmem.h. */
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
	uint32_t writing;		/* being written, or kept by their owner to write next */
	uint32_t live;			/* with contents */
	uint32_t held;			/* slots that at least one client holds */
	uint32_t limbo;			/* attached slots whose owner has ended */
	uint32_t clients;		/* living clients */
	uint32_t zombies;		/* ended clients with publications yet to be received */
	uint32_t clients_max;		/* capacity */
	uint32_t ring_entries;		/* capacity of each writer's ring */
	uint32_t reserved;
	uint64_t holds;			/* references of all clients together */
	uint64_t bytes;			/* of all attached slots */
	uint64_t bytes_files;		/* of their files; since 0.3, as all that follow */
	uint64_t bytes_kept;		/* of the files whose owner has ended */
	uint64_t bytes_mapped;		/* of the files that this handle has mapped */
	uint32_t payloads;		/* files and allocations of GPUs */
	uint32_t reserved1;
	uint64_t stale_handles;		/* uses of dropped buffers by this process in any pool */
	uint64_t bytes_huge;		/* of hugetlb files; since 0.4, as all that follow */
	uint64_t bytes_advised;		/* of this handle's files with MADV_HUGEPAGE */
	uint64_t claims;		/* of all slots */
	uint32_t claimed;		/* slots with claims */
	uint32_t overdue;		/* slots that are overdue: struct xmem_limbo */
	uint64_t bytes_limbo;		/* of the slots in limbo */
	uint64_t limbo_age_ns;		/* since the first of their owners ended */
	uint64_t bytes_overdue;		/* of the overdue slots */
	uint64_t overdue_age_ns;	/* since an owner first needed one of them */
	uint64_t bytes_cuda;		/* of memory of GPUs; since 0.5, as all that follow */
	uint64_t bytes_closing;		/* of that: without buffers, but still open in processes */
};

/* Get the numbers of a pool, from shared memory. Returns: 0, -EINVAL, -ECHILD. Since: 0.1. */
int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_info);

enum xmem_client_role {
	XMEM_CLIENT_READER = 1,
	XMEM_CLIENT_WRITER = 2
};

/* One client of a pool. It reports bytes_mapped and awaits_writer itself, so they may be wrong. */
struct xmem_client_info {
	size_t size;			/* in: sizeof(struct xmem_client_info); out: valid bytes */
	uint32_t id;
	uint32_t role;			/* enum xmem_client_role */
	uint32_t alive;			/* 1; 0: ended, with publications yet to be received */
	uint32_t pid;			/* in this process's namespace, or xmemd's; 0: not in it */
	uint32_t uid;			/* in this process's user namespace, or xmemd's */
	uint32_t slots;			/* attached slots that it owns */
	uint64_t incarnation;		/* number of this use of the id, never reused */
	uint64_t wait_bound_ns;		/* of its options */
	uint64_t holds;			/* references to all slots together */
	char label[16];			/* NUL-terminated */
	uint32_t follows;		/* publishers, also ended ones; since 0.2 */
	uint32_t followers;		/* clients that subscribe to it; since 0.5 */
	uint64_t behind;		/* publications that it has yet to receive; since 0.2 */
	uint64_t bytes_mapped;		/* of files that it has mapped; since 0.3 */
	uint64_t bytes_kept;		/* of ended owners' files that it uses; since 0.3 */
	uint32_t limbo;			/* slots that it holds, in limbo or overdue; since 0.4 */
	uint32_t awaits_writer;		/* threads that wait until a writer joins; since 0.5 */
	uint64_t bytes_limbo;		/* of the slots that `limbo` counts; since 0.4 */
	uint64_t bytes_ended;		/* part of them: those of ended owners; since 0.5 */
};

/*
 * Get the properties of the client with the id @client, from 0 to clients_max - 1. Returns: 0;
 * -ENOENT: no client has that id; -EINVAL: no client can have it; -ECHILD. Since: 0.2.
 */
int xmem_pool_client_info(struct xmem_pool *pool, uint32_t client,
			  struct xmem_client_info *ret_info);

/* One client that subscribes to a writer. */
struct xmem_subscriber_info {
	size_t size;			/* in: sizeof the struct; out: valid bytes */
	uint32_t client;		/* its id, for xmem_pool_client_info */
	uint32_t waits;			/* 1: the writer waits for it (XMEM_SUBSCRIBE_WAITS) */
	uint64_t incarnation;		/* number of this use of the id, never reused */
	uint64_t behind;		/* publications of this writer that it has yet to receive */
	uint32_t demoted;		/* 1: too slow, so not waited for until it receives again */
	uint32_t reserved;
	char label[16];			/* NUL-terminated */
};

/*
 * Get the next client that subscribes to this writer: the one with the id @first, or with the next
 * higher id. It can receive everything that the writer publishes from now on, unless it ends.
 * Returns: 0; -ENOENT: there are no more; -EPERM, -EINVAL, -ENOTCONN, -ECHILD. Since: 0.5.
 */
int xmem_subscriber_next(struct xmem_pool *pool, uint32_t first,
			 struct xmem_subscriber_info *ret_info);

/*
 * Wait until @count clients subscribe to this writer. They can receive everything that it publishes
 * after that. Returns: how many there are, at least @count, or -EAGAIN: there are fewer, and the
 * timeout is 0; -ETIMEDOUT: too few have come in time; -EINVAL: @count is more than the pool's
 * clients_max; -EPERM, -ENOTCONN, -ECANCELED, -EINTR, -ECHILD. Since: 0.5.
 */
int xmem_wait_subscribers(struct xmem_pool *pool, uint32_t count, int64_t timeout_ns);

/*
 * Get a descriptor for poll, select and epoll. It is readable when a client has subscribed to this
 * writer or unsubscribed since the last look: a call of xmem_subscriber_next with id 0, or of
 * xmem_wait_subscribers with timeout 0. Returns: as xmem_pool_poll_fd, and -EPERM. Ownership: the
 * library's, valid as long as that of xmem_pool_poll_fd. Since: 0.5.
 */
int xmem_subscribers_poll_fd(struct xmem_pool *pool);

/* The use of a slot. */
enum xmem_slot_use {
	XMEM_USE_NONE = 0,		/* it has no buffer */
	XMEM_USE_FREE = 1,		/* a buffer without contents */
	XMEM_USE_WRITING = 2,		/* being written, or kept by its owner to write next */
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
	uint32_t device;		/* number of the GPU in the pool; 0: the CPU; since 0.5 */
	uint64_t token;			/* of the contents; 0: there are none */
	uint64_t bytes;			/* of the whole buffer */
	uint64_t holds;			/* references of all clients together */
	uint64_t position;		/* 1 + sequence number of its last publication; 0: none */
	uint64_t payload;		/* number of the file; 0: none */
	uint64_t payload_bytes;		/* of the file; since 0.3 */
	uint32_t claims;		/* set aside (claims.h); since 0.4, as all that follow */
	uint32_t upgrader;		/* client that writes it in place, or XMEM_NOBODY */
	uint32_t overdue;		/* 1: it is overdue: struct xmem_limbo */
	uint32_t reserved;
};

/* Get the properties of slot @slot. Returns: 0; -EINVAL: no such slot; -ECHILD. Since: 0.2. */
int xmem_pool_slot_info(struct xmem_pool *pool, uint32_t slot, struct xmem_slot_info *ret_info);

/* A GPU in whose memory a pool has, or has had, buffers. */
struct xmem_device_info {
	size_t size;			/* in: sizeof(struct xmem_device_info); out: valid bytes */
	uint32_t device;		/* its number in the pool, as in metadata and slots */
	uint32_t reserved;
	uint8_t uuid[16];		/* as in struct xmem_cuda_device_info */
	uint64_t bytes;			/* of the pool's memory there: whole allocations */
	uint64_t bytes_closing;		/* of that: as in struct xmem_pool_info */
};

/*
 * Get the numbers of a pool's memory on the GPU that has the number @device in the pool, from 1 on.
 * Returns: 0; -ENOENT: the pool has no such GPU; -EINVAL: no pool can have it; -ECHILD. Since: 0.5.
 */
int xmem_pool_device_info(struct xmem_pool *pool, uint32_t device,
			  struct xmem_device_info *ret_info);

/*
 * Count the references that one client has of one slot. Returns: the number; -ENOENT: no client has
 * that id; -EINVAL: no client can have it, or there is no such slot; -ECHILD. Since: 0.2.
 */
int64_t xmem_pool_holds(struct xmem_pool *pool, uint32_t client, uint32_t slot);

/* A description of the host. */
struct xmem_host_info {
	size_t size;			/* in: sizeof(struct xmem_host_info); out: valid bytes */
	uint32_t abi;			/* version of its protocol */
	uint32_t abi_oldest;		/* the oldest that it still serves */
	uint64_t features;		/* bits: features that clients of its pools must know */
	uint32_t max_slots;		/* of a pool */
	uint32_t max_clients;		/* of a pool */
	uint32_t max_ring_entries;	/* of a pool */
	uint32_t group_slots;		/* a writer gets slots in groups of so many */
	uint32_t max_pools;
	uint32_t max_payloads;		/* files with contents, of a pool; kernel: of a user */
	uint32_t pools;			/* now */
	uint32_t reserved;
	char backend[16];		/* "kernel" or "daemon" */
	char version[16];		/* of the host's program; NUL-terminated */
};

/*
 * Get the properties of the host, without joining a pool or starting a daemon.
 * Returns: 0; -ENODEV: no host is running; -EACCES, -EPERM, -ENAMETOOLONG: as xmem_pool_open;
 * -EDQUOT; -EINVAL: also: XMEM_BACKEND (docs/environment.md) is wrong. Since: 0.2.
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
	char name[24];			/* NUL-terminated; kernel: the module's parameter, if any */
	char what[40];			/* the limited thing, in English */
};

/*
 * Get one of the host's limits, and its use, without starting a daemon: the limit with the number
 * @number, or with the next higher one.
 * @pool: NULL: ask without joining; then limits of pools and clients are left out.
 * Returns: 0; -ENOENT: there are no more, or no host is running; -ENOTCONN; -EACCES, -EPERM,
 * -ENAMETOOLONG: as xmem_pool_open; -EDQUOT, -EINVAL: as xmem_host_query; -ECHILD. Since: 0.5.
 */
int xmem_limit_next(struct xmem_pool *pool, uint32_t number, struct xmem_limit_info *ret_info);

/* One of the host's pools. */
struct xmem_pool_entry {
	size_t size;			/* in: sizeof(struct xmem_pool_entry); out: valid bytes */
	uint64_t number;		/* of the pool, never reused while the host runs */
	char name[136];			/* up to 128 characters and NUL; empty: anonymous */
	uint32_t owner_uid;		/* of its maker; UINT32_MAX: none in this user namespace */
	uint32_t slots;			/* capacity */
	uint32_t clients_max;		/* capacity */
	uint32_t clients;		/* that live */
	uint32_t ring_entries;		/* capacity of each writer's ring */
	uint32_t reserved;
	uint64_t bytes;			/* of all attached slots */
	uint64_t bytes_files;		/* of their files; since 0.3, as all that follow */
	uint64_t bytes_kept;		/* of the files whose owner has ended */
	uint32_t payloads;		/* files */
	uint32_t mode;			/* as in pool options; since 0.5, as all that follow */
	uint32_t gid;			/* its group; UINT32_MAX as owner_uid */
	uint32_t roles;			/* XMEM_MAY_* that the mode gives this process */
};

/*
 * Get the next pool of the host that this process may join by name, or that this user owns,
 * without joining it or starting a daemon. @after: the number from the last answer; 0: get the
 * first one. Returns: 0; -ENOENT: there are no more, or no host is running; -EACCES, -EPERM,
 * -ENAMETOOLONG: as xmem_pool_open; -EDQUOT, -EINVAL: as xmem_host_query. Since: 0.2.
 */
int xmem_pool_next(uint64_t after, struct xmem_pool_entry *ret_entry);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/*
 * xmemd, the host for machines on which no module can be loaded: its structs, and the functions of
 * each file. xmemd has one thread, one epoll loop and no lock. Each function below runs to its end
 * before the next event is handled, and none blocks.
 *
 * Layers. A file calls only files in the lines above its own or, in its own line, further left.
 *
 *   limits.c listen.c place.c       resource limits; the address, its lock, a passed socket;
 *                                   xmemd's cgroup, and notes about other xmemds
 *   steps.c                         failed checks of the core; steps that tests count
 *   wake.c memfd.c quota.c          wake-ups; new files; limits and their use
 *   alive.c access.c                the word that says whether xmemd lives; the right to join
 *   payload.c cuda.c                payload files; memory of GPUs, and the clients that have it
 *                                   open
 *   invariants.c                    the check of a pool's words, for tests
 *   poll.c                          descriptors that clients poll
 *   reap.c                          freeing what only ended clients have used
 *   claims.c                        claims, and the time after which they are void
 *   pool.c                          pools: their pages, how clients join and end
 *   revoke.c request.c              requests
 *   ends.c connection.c             connections: how they end; how they are accepted, and how
 *                                   requests are read and answered
 *   main.c                          the options, the loop, how xmemd starts and exits
 *
 * core/host.h has the bookkeeping in the pages, and lib/host/wire.h the datagrams.
 */
#ifndef XMEMD_H
#define XMEMD_H

#include <sys/types.h>

#include "lib/host/wire.h"
#include "core/host.h"
#include "core/poll.h"

#define XD_MAX_PAYLOADS	4096	/* payload files of one pool */
#define XD_PAYLOAD_LISTS	256
#define XD_DEVICE_FILES	16	/* device numbers in XMEM_DEVICE_FILES */

/* How many objects of each kind the daemon accepts; derived from RLIMIT_NOFILE. */
struct xd_limits {
	u32 descriptors;	/* that xmemd itself may have open */
	u32 pools;		/* each needs a descriptor, and one for each key */
	u32 connections;	/* each needs two descriptors */
	u32 per_process;	/* connections of one process */
	u32 payloads;		/* payload files of all pools */
	u32 polls;		/* descriptors that clients poll, in all */
	u32 polls_of_one;	/* descriptors that one client polls */
};

/* A limit that was reached, or none. */
struct xd_refusal {
	bool any;
	u32 quota;		/* enum xmem_quota */
	u64 used, most;
};

/* The device files whose descriptors stand for memory of a GPU. */
struct xd_device_files {
	u32 count;
	dev_t number[XD_DEVICE_FILES];
	bool memfd;		/* also memfds, for a driver without a device */
	bool dmabuf;		/* also dma-bufs, as which AMD's driver exports memory */
};

struct xd_payload {
	struct xd_payload *next;
	u64 id;
	u32 slots;		/* slots that name it; the file is closed with the last */
	int fd;			/* -1: CUDA, without a descriptor or closing */
	struct xm_cuda *cuda;	/* NULL: a file in memory of the CPU */
	int access;		/* O_RDONLY or O_RDWR: of the descriptor that was attached, not
				 * of fd */
	u32 traits;		/* XMEM_TRAIT_* */
	u64 bytes;
	u64 incarnation;	/* of the client that attached it */
	u32 owner;		/* its id */
	bool truncates;		/* its pages go with the last slot */
};

/* The progress of a reap, which frees what only ended clients have used (reap.c). */
struct xd_reap {
	enum { XD_REAP_NOT, XD_REAP_CLIENTS, XD_REAP_SLOTS, XD_REAP_GROUPS } stage;
	u32 at;			/* the next client or group */
	struct xm_sweep sweep;
	bool swept;		/* all slots have been swept once */
	bool more;		/* a ring has gone since the last sweep began */
	bool gone;		/* a ring or a slot has gone since this reap began */
};

struct xd_pool {
	struct xd_pool *next;
	struct xd_daemon *daemon;
	u64 number;			/* from 1, never reused */
	char name[XMEM_NAME_BYTES];	/* a private copy: clients can write the header's */
	int pages;			/* memfd of the whole layout */
	char *base;
	struct xmem_pool_header layout;	/* a private copy: clients can write all pages */
	u32 mode;			/* XMEM_MODE_* */
	bool drained;			/* nobody may join it any more */
	bool nameless;			/* nobody finds it: a new pool has its name */
	int key[XMEM_ROLES_ALL + 1];	/* by mask of roles: the memfd that gives the right to
					 * join in these roles; -1: never asked for */
	u32 clients;			/* connections that have joined and not ended */
	u32 ending;			/* connections of the pool whose `ending` is set */
	struct xd_reap reap;
	u32 payload_count;
	struct xd_payload *payloads[XD_PAYLOAD_LISTS];	/* by id */
	struct xd_poll *polls;
	u32 poll_count;
	struct xm_host host;
};

struct xd_connection {
	struct xd_connection *next;
	struct xd_connection **here;	/* the pointer in the list that points to this one */
	int socket;			/* -1: closed */
	int process;			/* pidfd of the peer */
	pid_t pid;
	struct xd_pool *pool;		/* NULL: it has not joined, or its pool has ended */
	struct xd_pool *left;		/* the pool that its client has left; the socket stays
					 * open until the pool is reaped, because the peer waits
					 * for the close */
	bool ended;			/* its client has ended, and is quarantined until the
					 * process exits or the pool ends */
	bool ending;			/* the client, or in quarantine the process, has ended, and
					 * xd_connection_end is yet to be called */
	u32 client;			/* its id in the pool */
	u32 role;
	u32 roles;			/* mask of the roles that it may pass on */
	u64 incarnation;
	struct xm_followed followed;
	u32 poll_count;			/* descriptors that it has been given to poll */
	struct xmem_claim_request added; /* the last request that has added claims */
	u64 added_number;		/* the number of its message; 0: there is none */
	struct xd_refusal refusal;	/* the last limit that it has met */
};

struct xd_daemon {
	int epoll;			/* all events: the listener, requests, ends */
	int ends;			/* closed sockets and ended processes; an epoll that is
					 * looked at first */
	u32 ending;			/* connections whose `ending` is set, and pools whose
					 * reap has begun */
	u64 last_turn;			/* the number of the pool in which an end was handled
					 * last */
	int listener;
	int socket_watch;		/* inotify: the listener's name may have changed; or -1 */
	bool unbound;			/* the address is lost; xmemd tries to bind it again */
	int spare;			/* a descriptor that is closed for a moment to refuse a
					 * peer */
	bool check;			/* XMEMD_CHECK: test the invariants after each request */
	bool activated;			/* the listener is a service manager's */
	int idle_ms;			/* exit after so long without connections; -1: never */
	struct xd_limits limits;
	struct xd_refusal refusal;	/* met by the request that is being served */
	struct xd_device_files device_files;
	u32 connection_count;
	u32 pool_count;
	u64 last_pool;			/* the number that was given last */
	u32 payload_count;
	u32 poll_count;
	int poll_timer;			/* fires at poll_deadline */
	u64 poll_deadline;		/* of CLOCK_MONOTONIC; 0: it is not set */
	int claims_timer;		/* of the tick that voids claims */
	bool claims_tick;		/* it is set */
	struct xd_connection *connections;
	struct xd_pool *pools;
};

/* One request while it is served. */
struct xd_call {
	struct xd_daemon *daemon;
	struct xd_connection *from;
	u32 code;		/* XMEM_IOC_* */
	union xm_request request;
	u64 number;		/* of its message */
	int fd;			/* that came with the request, or -1; code that keeps it stores
				 * -1 */
	int answer;		/* descriptor that is sent with the reply and then closed; -1:
				 * none */
};

/* ---- listening (listen.c) ---- */

/*
 * The listening socket: bound at this user's address, or passed by a starter. -EADDRINUSE: another
 * daemon runs already, or something else has the address.
 */
int xd_listen(void);
int xd_listen_passed(int fd);

/*
 * An inotify descriptor that is readable when the bound socket may have lost its name. -1: there is
 * none, or the socket is not in this user's folder.
 */
int xd_listen_watch(void);

/* Bind again if the socket has lost its name. The listener; -EEXIST: it has its name; -errno. */
int xd_listen_anew(void);

/* A text about the last error, or NULL. */
const char *xd_listen_why(void);

/* The descriptor of the address's lock, to be kept open; -1: the socket was passed. */
int xd_listen_lock(void);

/* xmemd exits: remove the address, so that no program finds it. */
void xd_listen_end(void);

/* ---- its place among others (place.c); both print to standard error ---- */

#define XD_NOTE	"xmemd: note: "	/* not an error: xmemd serves */

/* Leave the starter's cgroup if that is allowed. Print with what this xmemd still ends. */
void xd_place_leave(void);

/* Print where another xmemd of this user listens. This one listens with @listener. */
void xd_place_other(int listener);

/* ---- resource limits (limits.c) ---- */

/* Raise the soft limits. NULL, or the name of a hard limit that is too low to serve others. */
const char *xd_limits_raise(void);
void xd_limits_set(struct xd_limits *ret);

/* ---- connections (connection.c) ---- */

/* Accept the waiting peers, at most a batch of them. Returns how many there were. */
u32 xd_accept(struct xd_daemon *daemon);

/* Serve the datagram that has come. This may end @connection. */
void xd_connection_serve(struct xd_daemon *daemon, struct xd_connection *connection);

/* ---- how connections end (ends.c) ---- */

/*
 * The socket has been closed, or the process has ended. A connection without a pool ends at once.
 * The end of a client is noted, and waits for its turn.
 */
void xd_connection_note_end(struct xd_daemon *daemon, struct xd_connection *connection);

/* Handle one noted end, or go on with a reap. _all: until no end and no reap is left. */
void xd_connection_end_next(struct xd_daemon *daemon);
void xd_connection_end_all(struct xd_daemon *daemon);

/*
 * End the client. The connection is freed once its pool is reaped, or at once if it has no client.
 */
void xd_connection_end(struct xd_daemon *daemon, struct xd_connection *connection);

/* ---- requests (request.c) ---- */

/* Check a request of the peer and copy it into the call. 0 or -errno. */
int xd_take(struct xd_call *call, u32 request, const void *body, size_t length);

/*
 * Must all noted ends be handled before this request? They must if it is about all pools, or if a
 * limit is reached which they may relieve.
 */
bool xd_needs_all_ends(const struct xd_call *call);

/* Serve the request. 0: the struct and call->answer are the reply; or -errno. */
int xd_serve(struct xd_call *call);

/* ---- limits (quota.c) ---- */

/* How many connections has that process? */
u32 xd_connections_of(const struct xd_daemon *daemon, pid_t pid);

/* Note that the limit @quota (enum xmem_quota) is reached. Returns -EDQUOT. */
int xd_refuse(struct xd_daemon *daemon, u32 quota, u64 used, u64 most);

/* Is a limit reached that all pools share? */
bool xd_quota_reached(const struct xd_daemon *daemon);

/* A request of @from is answered with @err: remember which limit it has met, if any. */
void xd_quota_note(struct xd_daemon *daemon, struct xd_connection *from, int err);

/* Serve a request for limits. 0 or -errno. */
int xd_quota(struct xd_call *call);

/* ---- who may join (access.c) ---- */

/*
 * Check the fields of a join that are about access. 0; -EINVAL; -EOPNOTSUPP: one user's daemon does
 * not have that.
 */
int xd_access_check(const struct xmem_join_request *join);

/* The roles in which the mode lets the daemon's user in. */
u32 xd_access_roles(const struct xd_pool *pool);

/*
 * May a client join as @join says? *roles is the mask of its key's roles, if it has a key, and
 * becomes the mask of the roles that it has. 0, -EACCES, or -ESHUTDOWN: the pool is drained.
 */
int xd_access_permit(const struct xd_pool *pool, const struct xmem_join_request *join, u32 *roles);

/* Serve `access` and `pool_fd`. 0 or -errno. */
int xd_access_serve(struct xd_call *call);
int xd_pool_fd_serve(struct xd_call *call);

void xd_keys_init(struct xd_pool *pool);
void xd_keys_close(struct xd_pool *pool);
/* The pool of which @fd is a key, and the key's roles; or NULL. */
struct xd_pool *xd_pool_by_fd(struct xd_daemon *daemon, int fd, u32 *ret_roles);

/* ---- revoking (revoke.c) ---- */

/* Serve `evict`, `drain` and `grant`. 0 or -errno. */
int xd_evict_serve(struct xd_call *call);
int xd_grant_serve(struct xd_call *call);

/* ---- pools (pool.c) ---- */

struct xd_pool *xd_pool_by_name(struct xd_daemon *daemon, const char *name);
void xd_pool_take_name(struct xd_pool *pool);
u32 xd_pools_count(const struct xd_daemon *daemon);
/*
 * The pool with the least number above @number, or NULL. @named: skip pools that have lost their
 * name.
 */
struct xd_pool *xd_pool_after(struct xd_daemon *daemon, u64 number, bool named);

/* Create a pool as @join asks for it, without clients. 0 or -errno. */
int xd_pool_create(struct xd_daemon *daemon, const struct xmem_join_request *join,
		   struct xd_pool **ret_pool);

/* Make @from a client of the pool. 0 or -errno. */
int xd_pool_join(struct xd_pool *pool, struct xd_connection *from, struct xmem_join_request *join);

/*
 * @from's client has ended: drop its holds, claims and descriptors. After the last noted end a reap
 * begins. Afterwards from->pool is NULL, unless the client is quarantined until its process has
 * exited.
 */
void xd_pool_leave(struct xd_pool *pool, struct xd_connection *from);

/* The process of a quarantined client has exited: drop the memory of GPUs that it had open. */
void xd_pool_exited(struct xd_pool *pool, struct xd_connection *from);

/*
 * Free the pool if it has no clients. The connections of its clients in quarantine must be
 * forgotten before.
 */
void xd_pool_drop(struct xd_pool *pool);

/* Go on with the reap by a batch of steps. true: it is over, and all clients have been woken. */
bool xd_pool_reap_on(struct xd_pool *pool);

/* Are ends noted in this pool, or is it being reaped? */
static inline bool xd_pool_has_ends(const struct xd_pool *pool)
{
	return pool->ending || pool->reap.stage;
}

/* ---- freeing what the dead have left (reap.c) ---- */

#define XD_REAP_STEPS	32	/* a batch, after which other pools are served */

/*
 * Free the zombies, slots, groups and payloads that only ended clients have used. While ends are
 * noted it does nothing, because a reap follows the last of them.
 */
void xd_pool_reap(struct xd_pool *pool);

/* Free only what one put of @slot can have left unused. */
void xd_pool_collect(struct xd_pool *pool, u32 slot);

/* xd_pool_reap in steps. Between them no client of the pool is served, and none ends. */
void xd_reap_begin(struct xd_pool *pool);
/* One step, for one client, group or slot. false: it was the last one. */
bool xd_reap_step(struct xd_pool *pool);

/* ---- steps, checks (steps.c, invariants.c) ---- */

/* Count steps for a test, if XMEMD_STEPS names a file for that. */
void xd_count_steps(void);

/* Abort if the host's words make no sense. It does nothing unless daemon->check is set. */
void xd_pool_check(const struct xd_pool *pool);

/* ---- new files (memfd.c) ---- */

/* A memfd of @bytes with a fixed length, or -errno. @seals: further seals. */
int xd_new_memfd(const char *name, u64 bytes, int seals);

/* ---- waking (wake.c) ---- */

/*
 * Wake all clients that wait for publications: they may need to see that a writer has come or has
 * gone, or to close memory of a GPU that its owner wants back.
 */
void xd_wake_rings(struct xd_pool *pool);

/* Wake all owners that wait for slots. */
void xd_pool_wake_owners(struct xd_pool *pool);

/* Wake all sleepers on this waiters word, if there are any. */
void xd_wake(u32 *waiters);

/* Wake all sleepers of the pool, whatever the words say, except at ids that were never used. */
void xd_wake_everybody(struct xd_pool *pool);

/* ---- the word that says whether xmemd lives (alive.c) ---- */

/* Register the words' list with the kernel; once, in the process that serves. */
void xd_alive_begin(void);

/* Add the word of a new pool to the list; take out that of a pool which ends. */
void xd_alive_add(struct xd_pool *pool);
void xd_alive_remove(struct xd_pool *pool);

/* xmemd exits although it has clients: tell them. */
void xd_alive_end(struct xd_daemon *daemon);

/* The bytes in front of a pool's pages, in which its link is. */
#define XD_FRONT_BYTES	65536	/* a page of any machine */

/* ---- payloads (payload.c) ---- */

/*
 * Make a payload of @fd, without slots yet. If that succeeds, the payload owns @fd. @flags:
 * XMEM_ATTACH_*.
 * 0 or -errno.
 */
int xd_payload_new(struct xd_pool *pool, int fd, u64 incarnation, u32 flags,
		   struct xd_payload **ret_payload);
/*
 * A payload that has only an id and a file yet; @fd -1: no file. For xd_payload_new and
 * xd_cuda_new.
 */
int xd_payload_make(struct xd_pool *pool, int fd, u64 incarnation,
		    struct xd_payload **ret_payload);
struct xd_payload *xd_payload_find(const struct xd_pool *pool, u64 id);

/* @slots slots no longer name the payload. A payload that no slot names is freed. */
void xd_payload_put(struct xd_pool *pool, u64 id, u32 slots);
/*
 * @slots more slots name the payload, which enters the pool with the first ones. A payload without
 * slots is discarded instead.
 */
void xd_payload_use(struct xd_pool *pool, struct xd_payload *payload, u32 slots);
void xd_payload_discard(struct xd_payload *payload);
void xd_payload_drop_all(struct xd_pool *pool);

/* If all clients have closed a CUDA payload that is closing, free it and wake its owner. */
void xd_payload_closed(struct xd_pool *pool, struct xd_payload *payload);

/* Is /proc mounted? Files are opened again by their names there. */
bool xd_payload_can_open(void);

/* A new descriptor of the file, read-only or writable, or -errno. */
int xd_payload_open(const struct xd_payload *payload, bool writable);

/* ---- CUDA payloads (cuda.c) ---- */

/* Parse XMEM_DEVICE_FILES. false: it is no such list. */
bool xd_device_files_take(struct xd_device_files *files, const char *list);

/* As xd_payload_new, for the memory of a GPU that @request describes; @fd -1: no descriptor. */
int xd_cuda_new(struct xd_pool *pool, int fd, u64 incarnation,
		const struct xmem_attach_request *request, struct xd_payload **ret_payload);

/* Serve a request about a CUDA payload, which may be freed by it. 0 or -errno. */
int xd_cuda_serve(struct xd_call *call, struct xd_payload *payload);

/* Has that client CUDA payloads open? Count them all as closed by it. */
void xd_cuda_left(struct xd_pool *pool, u32 client);

/* NULL, or what is wrong with the device table. */
const char *xd_cuda_is_valid(const struct xd_pool *pool);

/* ---- descriptors that clients poll (poll.c) ---- */

u64 xd_now_ns(void);

/* Prepare the timer, whose events name daemon->poll_timer. 0 or -errno. */
int xd_polls_init(struct xd_daemon *daemon);

/* A descriptor for @from's client, as @request asks for it, or -errno. */
int xd_poll_new(struct xd_connection *from, const struct xmem_poll_fd_request *request);

/* The client of @from ends: processes that still poll its descriptors see a hang-up. */
void xd_polls_drop(struct xd_connection *from);

/*
 * Look at all descriptors of the pool, because something in it may have changed. A look that finds
 * nothing arms the words again, so call this after any word was disarmed.
 */
void xd_polls_look(struct xd_pool *pool);

/* The timer has fired. */
void xd_polls_expired(struct xd_daemon *daemon);

/* ---- claims (claims.c) ---- */

/* Prepare the timer, whose events name daemon->claims_timer. 0 or -errno. */
int xd_claims_init(struct xd_daemon *daemon);

/* Serve a request for claims. 0 or -errno. */
int xd_claim(struct xd_call *call);

/* A client of the pool has ended: void the claims that no client is left to take. */
void xd_claims_left(struct xd_pool *pool);

/* The timer has fired. */
void xd_claims_expired(struct xd_daemon *daemon);

#endif

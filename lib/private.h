/* SPDX-License-Identifier: MIT */
/*
 * The map of the library: its layers, its locks, and the structs that all layers share.
 *
 * Layers. A file calls only what is defined in the lines above its own or, in its own line, further
 * left; tests/check-layers.sh reads this table and checks it in the objects. Where a lower file must
 * call a higher one, the higher file sets a pointer: pool->destroy, hooks of a fork (base/fork.h),
 * and xl_remnants_due (payload/remnant.h).
 *
 *   base/ error.c structs.c         the thread's last error; structs of the API that grow
 *     fork.c files.c lock.c         forks, and descriptors that a child closes; locks
 *     process.c time.c name.c       this process and its pools; the clock; what a pool is called
 *     handle.c calls.c              handles of buffers; calls that use a pool's handle
 *   host/ wire.c address.c          how a datagram looks, and where xmemd listens
 *     datagram.c turn.c start.c     receiving one; turns to wait; starting xmemd
 *     exchange.c daemon.c kmod.c    the two hosts, behind the table of backend.h
 *     reach.c notify.c request.c    choosing a host; polled descriptors kept true; requests
 *     quota.c died.c role.c         which limit was reached; the host has ended; may one write?
 *     pages.c taken.c               reading the pool's pages; which clients have the slots
 *   cuda/ error.c driver.c own.c    the driver of NVIDIA's GPUs, opened when it is first needed
 *     device.c info.c               its devices and contexts
 *     memory.c take.c               memory of GPUs, of this process and of the program
 *   payload/ room.c idle.c memfd.c  free memory; idle private views; memory of the CPU
 *     remnant.c mapping.c cuda.c    what a pool's end needs; mapped files; memory of GPUs
 *     payload.c view.c              making files of buffers; private views
 *   gpu/ orders.c goal.c wait.c     contents on GPUs: what makes them complete; waiting for it
 *     ready.c mark.c                where a GPU finds ready words; words that the CPU writes
 *     order.c data.c                what streams write and wait for; where contents are
 *   own/ sizes.c lacks.c keep.c     a writer's slots: sizes; what its ring says; what stays
 *     owned.c demote.c collect.c    the lists; slow subscribers; finding used slots again
 *     cache.c once.c holders.c      giving files back; slots for one content; why none is free
 *     make.c limbo.c demand.c       making buffers; limbo; making them when they are needed
 *     find.c acquire.c              finding a slot; handing it out
 *     make_cuda.c preallocate.c     making buffers on GPUs; making buffers ahead
 *   hold/ token.c publisher.c       what a number names; whose contents they are
 *     forward.c inplace.c claims.c  passing on; writing in place; references for later clients
 *     buffer.c attach.c             get, clone, release; files of others as buffers
 *     attach_cuda.c release_on.c    memory of the program's GPU; dropping in a stream
 *     publish.c retract.c           publishing, and taking it back
 *   follow/ subscription.c kick.c   the memory of subscriptions; ending waits
 *     poll.c await.c wait.c         polled descriptors; no writer yet; waiting for rings
 *     label.c history.c follow.c    labels as topics; earlier publications; following a ring
 *     receive.c subscribe.c         receiving
 *     unsubscribe.c subscribers.c
 *   describe/ tensor.c image.c      what contents are, said and read back with all checks
 *     describe.c
 *     copy_cuda.c copy.c            copies into a buffer that is being written
 *   pool/ opening.c owner.c         how a pool was opened; the user in its name
 *     options.c host_info.c         checking options; looking at the host
 *     refused.c join.c bury.c       joining; GPU memory that outlives its pool
 *     pool.c reopen.c access.c      opening and closing; joining anew; who may join
 *     revoke.c info.c limits.c      ending clients; looking at a pool; the host's limits
 *     last_error.c                  what programs are told of the last error
 *   api.c                           the table of all public functions
 *
 * Locks. In this order: pool->slow or pool->subscribing, then pool->list, then a subscription's lock or
 * owned.lock, then pool->cuda_opening, then pool->lock. A request that may take the host long is
 * made under pool->slow, pool->subscribing or pool->cuda_opening only, or under no lock; under
 * owned.lock the host is only asked briefly (request.h). The register of memory of GPUs has a lock
 * in which nothing but the driver is called.
 */
#ifndef XMEM_PRIVATE_H
#define XMEM_PRIVATE_H

#include <poll.h>
#include <pthread.h>

#include "core/label.h"
#include "core/publish.h"
#include "lib/base/files.h"
#include "lib/base/lock.h"
#include "lib/follow/poll.h"
#include "lib/host/backend.h"
#include "lib/host/turn.h"
#include "xmem.h"

#define XMEM_API	__attribute__((visibility("default")))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Hot functions leave for these by tail calls, so that they need not save registers. */
#define XL_SLOW		__attribute__((noinline))
#define XL_COLD		__attribute__((noinline, cold))
#define XL_INLINE	inline __attribute__((always_inline))

/* ---- errors (error.c) ---- */

/* Make it the thread's last error and return -error. The fast one takes a constant message. */
int xl_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
int xl_fail_fast(int error, const char *message);

/* The thread's last error, a negative errno, or 0; and its message. */
int xl_last_error(void);
const char *xl_last_message(void);
void xl_error_clear(void);

#define XL_ERROR_BYTES	640

/* A thread's last error and errno, which what the program does in our call must not change. */
struct xl_error {
	int error, number, cuda;
	const char *message;
	char text[XL_ERROR_BYTES];
};

void xl_error_save(struct xl_error *ret);
void xl_error_restore(const struct xl_error *saved);

/* The thread's last CUresult that was an error, beside that; see xmem/cuda.h. */
extern __thread int xl_cuda_result __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* ---- the process (process.c) ---- */

/*
 * The number of this process among its forks. It is 0 until the process opens a pool or looks for
 * the driver of its GPUs, so also in a child that has done neither.
 */
extern u64 *xl_process __attribute__((visibility("hidden")));
/* The same, which is given now if there is none. 0: -ENOMEM, noted. */
u64 xl_process_number(void);

/* What get and acquire look at first. It is wiped in a child, so a pool has no slots there. */
struct xl_live {
	u32 *holds;			/* this client's, by slot */
	u64 slots;
	u64 writes;			/* this client may acquire and publish */
};

/* post: pool->process and pool->live are set. Returns 0, or -ENOMEM, noted. */
int xl_process_register(struct xmem_pool *pool);
void xl_process_unregister(struct xmem_pool *pool);
void xl_live_end(struct xmem_pool *pool);

/* ---- the slots that this client owns; rules: owned.h ---- */

/* One owned slot, in at most one list. */
struct xl_owned_slot {
	struct xm_own own;	/* what a scan has to know */
	struct xl_size *size;	/* NULL: this client does not own it */
	struct xl_mapping *file;	/* that it is in */
	struct xmem_metadata *metadata;
	struct xl_owned_slot *next;
	bool renewing;		/* a renewal was given up, and may be served at any time */
	u64 busy_ns;		/* since when it has been missed while BUSY; 0: it has not */
	bool held;		/* a client held it when it was looked at: */
	u8 holder;
};

/* First in, first out. */
struct xl_queue {
	struct xl_owned_slot *first;
	struct xl_owned_slot **last;	/* where the next one is to be linked */
};

/* The sizes of the buffers in one place: memory of the CPU, or of one device. */
struct xl_chain {
	struct xl_size *sizes;	/* the smallest first; the last is empty, and larger than all */
	struct xl_chain *next;	/* of another place */
	struct xl_gpu *gpu;	/* NULL: the CPU */
	int ordinal;		/* this process's number of it; -1 */
	u32 device;		/* its number in the pool, once something is attached; else 0 */
};

/* The owned slots of one size and kind; which is where, and when it moves: owned.h. */
struct xl_size {
	u64 bytes;
	struct xl_chain *chain;	/* that it is in; NULL: in none */
	bool shared;		/* others may write these in place; they follow the others */
	struct xl_size *larger;	/* the next one */
	struct xm_own **circle;	/* [mask + 1], which has room for all of them: */
	u32 mask;
	u32 ready;		/* from here on there are READY slots, */
	u32 live;		/* from here on LIVE ones, */
	u32 end;		/* and from here on none; all three only grow, but for ready */
	struct xl_queue free;
	struct xl_queue busy;
	u32 slots;
};

/* What is made on demand, and what is kept of it; words: demand.h. */
struct xl_demand {
	bool on;		/* atomic */
	bool by_default;	/* it ends with the first preallocation */
	u32 memory;		/* XMEM_MEMORY_* */
	u64 huge_page;		/* bytes of one; 0: they are not wanted, or there are none */
	u64 limit;		/* of the bytes below; ~0: not known yet */
	u64 cache_bytes;	/* of idle files that stay; 0: an eighth of the peak */
	u64 cache_ns;		/* how long they stay */
	u64 bytes;		/* of all files made on demand */
	u64 used;		/* of those that were not idle at the last look */
	u64 busy;		/* of the buffers in them that were not FREE or READY then */
	u64 peak;		/* the most that was used */
	bool no_slots;		/* nothing could be made: all slots of the pool are in use */
	int failed;		/* or for another reason than these and bytes: -errno; else 0 */
	u64 looked_ns;		/* when the last look was; atomic */
};

#define XL_CACHE_NS	10000000000ULL	/* by default */

struct xl_owned {
	struct xl_lock lock;	/* guards this struct; one owner operation at a time (I4) */
	struct xl_owned_slot *slot;	/* [slots of the pool] */
	struct xm_publisher_words words;	/* where this client's own words are */
	struct xl_chain cpu;	/* and behind it the chains of devices, which stay */
	struct xl_size *once;	/* slots for one content, of any size (attach.c); or NULL */
	u32 attached;		/* how many; also read without the lock */
	bool detaching;		/* some were posted to be detached; atomic */
	u64 promised;		/* publications so far, and buffers that handles have */
	u64 room_end;		/* so many may be promised before the ring is looked at again */
	u64 short_end;		/* the same for the short ways, or 0 */
	u64 passed;		/* nobody can still receive a publication below this place */
	u64 bound_place;	/* the tail when the bound began (demote.c) */
	u64 bound_bytes;	/* the most that was asked for in vain since, */
	const struct xl_chain *bound_chain;	/* and where */
	u64 culprit_at;		/* its cursor, which keeps `passed` low */
	u32 culprit;		/* client, or XMEM_OWNER_NONE */
	u32 slots;		/* that this client owns */
	u32 keep;		/* so many of the last publications stay for who comes later */
	u64 gaps_end;		/* from this place on nothing was sent, forwarded, taken back, or
				 * evicted (keep.c) */
	u32 renewals;		/* slots that are `renewing` */
	u64 wait_bound_ns;
	u64 recall_from;	/* since when it waits for what others forward (demote.c), or 0 */
	u64 recall_bytes;	/* the most that was asked for in vain since */
	u64 lent_bound;		/* the least bound of those that keep a slot so; ~0: none does */
	bool closed;		/* the pool's handle is: nothing is acquired any more */
	bool forwards;		/* this client has put what it holds into its ring */
	bool lent;		/* slots in BUSY may be kept by nothing but others' rings */
	struct xl_mapping *files;	/* that this client has made */
	struct xl_demand demand;
	const struct xl_chain *asked;	/* where the last acquire looked; the ring says it */
	bool refused;		/* the last acquire found nothing: the ring says what it wanted */
	bool none;		/* nothing of `none_bytes` is to be had as long as the waiters */
	u32 none_armed;		/* word is armed with this value (I5) */
	u64 none_bytes;
	const struct xl_chain *none_chain;
};

/* ---- payloads that are mapped; rules: payload/payload.h ---- */

/* What is known of a slot: the number of its payload, and where that is mapped. */
struct xl_place {
	u64 payload;
	char *base;
};

struct xl_mappings {			/* under pool->lock, but for places */
	struct xl_place *place;		/* [slots of the pool] */
	struct xl_place *device;	/* the same for GPUs; NULL: none was needed yet */
	struct xl_mapping **list;	/* by payload; so many, a power of two: */
	u32 lists;
	u32 count;			/* of mappings */
	u32 pass;			/* looks at all rows so far */
	u64 gone;			/* the header's payloads_gone at the last look */
	u64 bytes;			/* of all mappings */
	u64 advised;			/* of those that are `advised` */
	struct xl_mapping *dropped;	/* of GPUs, which nobody here uses any more */
	struct xl_mapping *closing;	/* and ours, which others may still have open */
	u64 closed;			/* the header's payloads_closed at the last look, */
	bool unsure;			/* when the host did not answer for all of them */
};

/* ---- clients of the past ---- */

/* A client for ever, its id may be another one's later: incarnation << 8 | id. */
static inline u64 xl_origin(u32 client, u64 incarnation)
{
	return incarnation << 8 | client;
}

static inline u32 xl_origin_client(u64 origin)
{
	return origin & (XMEM_MAX_CLIENTS - 1);
}

static inline u64 xl_origin_incarnation(u64 origin)
{
	return origin >> 8;
}

/* What a publisher called itself; rules: label.c. */
struct xl_known_label {
	u64 incarnation;
	struct xm_label label;
};

/* Whom to tell about limbo, and beyond what; under pool->lock, but `call` may be peeked at. */
struct xl_hook {
	u64 bytes;
	u32 count;
	bool above;		/* it has been told */
	xmem_limbo_function *call;
	void *user;
};

/* ---- pools and subscriptions ---- */

/* What a thread that drops or clones a handle has to do beside that: handle.h. */
#define XL_ENDING_FENCED	1u	/* a full barrier, because there is no membarrier */
#define XL_ENDING_CLOSED	2u	/* all shares are dropped: handles are counted */

/* How a pool was opened, for xmem_pool_reopen (reopen.c). */
struct xl_opening {
	struct xmem_pool_options options;	/* its label is NULL or the one here: */
	char label[XMEM_LABEL_BYTES];
	char name[XMEM_NAME_BYTES];	/* empty: it is anonymous */
	u32 owner;			/* user; ~0: it has no number here */
	int fd;				/* XMEM_OPEN_INHERIT: of the pool, for children; or -1 */
};

struct xmem_pool {
	u64 process;			/* what *xl_process was when the pool was opened */
	struct xl_live *live;
	u32 *holds;			/* the same as in live, for those who hold a slot */
	u32 me;
	u32 role;			/* enum xmem_role: EITHER until xl_check_role */

	/* These outlive the pool: a thread that has dropped the last handle looks here, and one
	 * that comes with a closed handle of the pool. */
	u32 ending;			/* XL_ENDING_*; atomic */
	struct xl_lock lock;		/* guards the fields down to the blank line */
	u64 out;			/* shares: the pool's handle and its subscriptions; once
					 * closed: handles of buffers in use */
	u32 waiting;			/* calls that calls.h counts; atomic, a futex */
	void (*destroy)(struct xmem_pool *pool);	/* by the last share */

	struct xm_map map;
	u32 *countings;			/* by slot: the last one (claims.c); NULL: none yet */
	struct xl_mappings mappings;	/* payload/payload.h says who guards it */
	u32 slow;			/* a turn: serialises what makes or gives back files */
	struct xl_lock cuda_opening;	/* serialises the opening of GPUs' memory */
	u32 subscribing;		/* a turn: serialises requests to follow rings */
	struct xl_lock list;		/* guards: */
	struct xmem_subscription *subscriptions;
	struct xmem_subscription *turn;	/* where receive_any looks first; NULL: at the first */
	struct xl_poller *pollers;	/* threads that wait in poll() */
	u64 ask_again_ns;		/* the host has not answered: it is not asked briefly until
					 * then; 0: it has. Atomic, as the next: */
	u64 ask_answers;		/* how many answers had come before */
	u64 following[XMEM_MAX_CLIENTS];	/* by publisher: the incarnation that is followed,
					 * as of the posts and answers so far; atomic */

	u32 cancels;			/* waits are over: see wait.h; these are atomic */
	u32 kicks;			/* counts xl_kick; a futex */
	u32 told_waiting;		/* not 0: the terminal knows that a writer is waited for */

	struct xl_hook hook;
	struct xl_owned owned;
	struct xl_polls polls;
	struct xl_opening opening;
	struct xmem_link link;
	struct xl_known_label labels[XMEM_MAX_CLIENTS];	/* by publisher; label.c */
	struct xl_orders *orders;	/* what streams write and wait for: gpu/order.h; or NULL */
	struct xl_remnant *remnant;	/* for what the pool's end must not free: pool/bury.h; or
					 * NULL; under `slow` */
	struct xmem_pool *next;		/* all pools of the process; under the fork lock */
};

/* pool->process once it has ended, until the struct serves another pool. No process has it. */
#define XL_NO_PROCESS	(~0ULL)

static inline bool xl_alive(const struct xmem_pool *pool)
{
	return likely(xm_load(&pool->process) == *xl_process);
}

/* Was it opened by another process, of which this one is a child? */
static inline bool xl_is_forked(const struct xmem_pool *pool)
{
	u64 process = xm_load(&pool->process);

	return process != *xl_process && process != XL_NO_PROCESS;
}

/* What was done may have changed what the pool's descriptors say: POLLIN, POLLOUT, or both. */
static inline void xl_poll_settle(struct xmem_pool *pool, int events)
{
	if (unlikely(__atomic_load_n(&pool->polls.settle, __ATOMIC_RELAXED)))
		xl_poll_settle_all(pool, events);
}

/* "pool camera", or "the anonymous pool", as messages call it (name.c). */
const char *xl_pool_name(const struct xmem_pool *pool, char *ret, size_t bytes);
#define XL_NAME_BYTES	(XMEM_NAME_BYTES + 8)

/* -ECHILD, noted. For a pool that is not alive: that, or -EBADF if it was closed. */
int xl_fail_forked(void);
int xl_fail_not_alive(const struct xmem_pool *pool);

/* Remember how @pool was opened; the options have been checked. 0 or -errno, not noted. */
int xl_opening_note(struct xmem_pool *pool, const struct xmem_pool_options *options);
/* Close the descriptor that children inherit; also in a child. */
void xl_opening_drop(struct xmem_pool *pool);

/* Drop one share of a pool; with the last one it is destroyed, once no handle is in use. */
void xl_pool_unshare(struct xmem_pool *pool);

#endif

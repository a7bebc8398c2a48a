/* SPDX-License-Identifier: MIT */
/*
 * The map of the library: its layers, its locks, and the structs that all layers share.
 *
 * Layers. A file calls only what is defined in the lines above its own or, in its own line, further
 * left; tests/check-layers.sh reads this table and checks it in the objects. Where a lower file
 * must call a higher one, the higher file sets a pointer: pool->share.destroy, hooks of a fork
 * (base/fork.h), and xl_remnants_due (payload/remnant.h).
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
 *     next.c receive.c any.c        taking the next publication; receiving it
 *     subscribe.c unsubscribe.c     the begin and the end of a subscription
 *     subscribers.c                 which clients follow this one
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
 * Locks. Each stands beside the fields that it guards, in the struct of its folder. In this order:
 *
 *   slow, follows.subscribing; follows.list; a subscription's lock, owned.lock; gpus.opening;
 *   mappings.lock, share.lock, labels.lock, gpus.lock, hook.lock, polls.lock
 *
 * A request that may take the host long is made under slow, follows.subscribing or gpus.opening
 * only, or under no lock; under owned.lock the host is only asked briefly (host/request.h). The
 * register of memory of GPUs has a lock in which nothing but the driver is called.
 */
#ifndef XMEM_PRIVATE_H
#define XMEM_PRIVATE_H

#include <poll.h>
#include <pthread.h>

#include "core/label.h"
#include "core/publish.h"
#include "lib/base/error.h"
#include "lib/base/files.h"
#include "lib/base/share.h"
#include "lib/follow/poll.h"
#include "lib/follow/state.h"
#include "lib/gpu/state.h"
#include "lib/host/backend.h"
#include "lib/host/state.h"
#include "lib/host/turn.h"
#include "lib/own/state.h"
#include "lib/payload/state.h"
#include "lib/pool/state.h"
#include "xmem.h"

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

struct xmem_pool {
	u64 process;			/* what *xl_process was when the pool was opened */
	struct xl_live *live;
	u32 *holds;			/* the same as in live, for those who hold a slot */
	u32 me;
	u32 role;			/* enum xmem_role: EITHER until xl_check_role */

	/* These outlive the pool: a thread that has dropped the last handle looks here, and one
	 * that comes with a closed handle of the pool. */
	struct xl_share share;
	struct xl_calls calls;

	struct xm_map map;
	struct xmem_link link;
	struct xl_asking asking;
	struct xl_polls polls;
	u32 slow;			/* a turn: serialises what makes or gives back files */
	struct xl_mappings mappings;
	struct xl_on_gpus gpus;
	struct xl_owned owned;
	struct xl_hook hook;
	u32 *countings;			/* by slot: the last one (hold/claims.c); NULL: none yet */
	struct xl_labels labels;
	struct xl_following follows;
	struct xl_opening opening;
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
static inline void xl_poll_update(struct xmem_pool *pool, int events)
{
	if (unlikely(__atomic_load_n(&pool->polls.settle, __ATOMIC_RELAXED)))
		xl_poll_update_all(pool, events);
}

/* "pool camera", or "the anonymous pool", as messages call it (name.c). */
const char *xl_pool_name(const struct xmem_pool *pool, char *ret, size_t bytes);
#define XL_NAME_BYTES	(XMEM_NAME_BYTES + 8)

/* -ECHILD, noted. For a pool that is not alive: that, or -EBADF if it was closed. */
int xl_fail_forked(void);
int xl_fail_not_alive(const struct xmem_pool *pool);

/* Remember how @pool was opened; the options have been checked. 0 or -errno, not noted. */
int xl_opening_save(struct xmem_pool *pool, const struct xmem_pool_options *options);
/* Close the descriptor that children inherit; also in a child. */
void xl_opening_drop(struct xmem_pool *pool);


#endif

/* SPDX-License-Identifier: MIT */
/*
 * The map of the library: its layers, its locks, and the structs that all layers have in common.
 * The fields of a single folder are in its state.h; its functions are in other headers there.
 *
 * Layers. A file calls only functions that are defined in the lines above its own or, in its own
 * line, further left. tests/check-layers.sh reads this table and checks the objects. Where a lower
 * file must call a higher one, the higher file sets a pointer: pool->share.destroy, hooks of a fork
 * (base/fork.h), and xl_remnants_due (payload/remnant.h).
 *
 *   base/ error.c structs.c         the thread's last error; structs of the API that grow
 *     fork.c files.c lock.c         forks, and descriptors that a child closes; locks
 *     calls.c process.c             counting calls that use a pool's handle; this process's pools
 *     time.c name.c handle.c        the clock; names in messages; handles of buffers
 *   host/ wire.c address.c          the format of datagrams; the address of xmemd
 *     datagram.c turn.c start.c     receiving a datagram; turns to wait; starting xmemd
 *     exchange.c daemon.c kmod.c    requests to xmemd; the two hosts, as tables of backend.h
 *     reach.c notify.c request.c    choosing a host; states of polled descriptors; requests
 *     quota.c died.c role.c         naming a reached limit; the host's end; the client's role
 *     pages.c taken.c               reading the pool's pages; naming the clients with slots
 *   cuda/ error.c hip.c driver.c    the GPUs' driver: its errors; AMD's; opening it
 *     own.c                         the library's own threads
 *     device.c info.c peers.c       devices and contexts; which GPUs reach the memory of others
 *     register.c memory.c take.c    memory of GPUs that this library or the program has made
 *   payload/ room.c idle.c memfd.c  free memory; idle private views; memory of the CPU
 *     remnant.c mapping.c cuda.c    leftovers of a pool; mapped files; memory of GPUs
 *     payload.c view.c              making the files of buffers; private views
 *   gpu/ orders.c goal.c wait.c     the order of contents on GPUs: when complete; waiting for it
 *     ready.c mark.c                where a GPU finds ready words; ready words that the CPU writes
 *     passed.c all.c                handles that are dropped when a stream has written a word;
 *                                   all streams of a GPU
 *     order.c data.c                what streams write and wait for; addresses of contents
 *   own/ sizes.c keep.c             sizes on demand; kept publications
 *     owned.c demote.c collect.c    the lists of slots; slow subscribers; collecting unused slots
 *     cache.c once.c holders.c      idle files; slots for one content; why no buffer is free
 *     make.c make_cuda.c limbo.c    making buffers, and those on GPUs; limbo
 *     demand.c find.c acquire.c     making buffers on demand; finding a slot; handing it out
 *     preallocate.c                 making buffers ahead
 *   hold/ token.c publisher.c       the contents that a number names; their publisher
 *     forward.c inplace.c claims.c  forwarding; writing in place; references for later clients
 *     buffer.c attach.c             get, clone, release; attaching files
 *     attach_cuda.c release_on.c    attaching memory of GPUs; releasing in a stream
 *     publish.c retract.c           publishing, and taking it back
 *   follow/ subscription.c kick.c   the memory of subscriptions; ending waits
 *     poll.c await.c wait.c         polled descriptors; waiting for a writer, and for rings
 *     label.c history.c follow.c    labels as topics; earlier publications; following a ring
 *     next.c receive.c any.c        taking the next publication; receiving it
 *     subscribe.c unsubscribe.c     the begin and the end of a subscription
 *     subscribers.c                 which clients follow this one
 *   describe/ tensor.c image.c      descriptions of contents, written and read with all checks
 *     strings.c describe.c
 *     copy_cuda.c copy.c            copies into a buffer that is being written
 *   pool/ opening.c owner.c         how a pool was opened; the user in its name
 *     options.c host_info.c         checking options; facts about the host
 *     refused.c join.c bury.c       joining a pool; GPU memory that outlives its pool
 *     pool.c reopen.c access.c      opening and closing; joining anew; which users may join
 *     revoke.c info.c limits.c      ending clients; facts about a pool; the host's limits
 *     last_error.c                  the last error, as programs read it
 *   service/ channel.c              messages between two clients of a service
 *     server.c caller.c             its two sides
 *   api.c                           the table of all public functions
 *
 * Locks. Each lock is beside the fields that it guards, in the struct of its folder:
 *
 *   slow                 one thread at a time makes payload files or gives them back
 *   follows.subscribing  one thread at a time asks the host to follow a ring
 *   follows.list         the list of subscriptions, and the threads that wait in poll()
 *   a subscription's     all fields of that subscription, and of its rings
 *   owned.lock           the slots that this client owns, and its ring
 *   mappings.lock        the mapped payloads, and those of GPUs that threads are opening, but not
 *                        the places of slots and views of handles
 *   share.lock           the count of shares, and the counted contents of handles
 *   labels.lock          changes of the remembered labels
 *   gpus.lock            the making of the structs for GPUs
 *   hook.lock            the program's hook for limbo
 *   polls.lock           the descriptors that are polled
 *
 * A thread takes them in this order, in which semicolons separate the levels:
 *
 *   slow, follows.subscribing; follows.list; a subscription's lock, owned.lock;
 *   mappings.lock, share.lock, labels.lock, gpus.lock, hook.lock, polls.lock
 *
 * A request that may take the host long is made under slow or follows.subscribing only, or under
 * no lock. Under owned.lock the host is only asked briefly (host/request.h).
 *
 * The driver is called under no lock and in no turn (xl_check_no_lock): its call may wait for a
 * stream that waits for another thread.
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
 * the driver of its GPUs, so it is also 0 in a child that has done neither.
 */
extern u64 *xl_process __attribute__((visibility("hidden")));
/* That number, after giving the process one if it has none. 0: -ENOMEM, noted. */
u64 xl_process_number(void);

/*
 * The words that get and acquire read first. They are wiped in a child, so a pool seems to have no
 * slots there.
 */
struct xl_live {
	u32 *holds;			/* this client's holds, by slot */
	u64 slots;
	u64 writes;			/* this client may acquire and publish */
};

/* post: pool->process and pool->live are set. Returns 0, or -ENOMEM, noted. */
int xl_process_register(struct xmem_pool *pool);
void xl_process_unregister(struct xmem_pool *pool);
void xl_live_end(struct xmem_pool *pool);

/*
 * Call that with each open pool of this process. The calls count as calls of the pool
 * (base/calls.h), so it is not closed meanwhile. Under no lock, and with cancellation off.
 */
void xl_each_pool(void (*call)(struct xmem_pool *pool, void *user), void *user);

/* ---- numbers of clients ---- */

/*
 * A number of one client that no other client ever has: incarnation << 8 | id. The id alone may be
 * a later client's.
 */
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
	u64 process;			/* the value of *xl_process when the pool was opened */
	struct xl_live *live;
	u32 *holds;			/* as live->holds, for calls that have a buffer */
	u32 me;
	u32 role;			/* enum xmem_role: EITHER until xl_check_role */

	/*
	 * These two outlive the pool: a thread that has dropped the last handle reads them, and so
	 * does a thread that comes with a closed handle of the pool.
	 */
	struct xl_share share;
	struct xl_calls calls;

	struct xm_map map;
	struct xmem_link link;
	struct xl_asking asking;
	struct xl_polls polls;
	u32 slow;			/* a turn: serialises making payload files and giving them
					 * back */
	struct xl_mappings mappings;
	struct xl_on_gpus gpus;
	struct xl_owned owned;
	struct xl_hook hook;
	struct xl_labels labels;
	struct xl_following follows;
	struct xl_opening opening;
	struct xmem_pool *next;		/* the list of all pools of the process; guarded by the fork
					 * lock */
};

/*
 * pool->process after the pool's end, until the struct serves another pool. No process has that
 * number.
 */
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

/*
 * The caller may have changed the states of the pool's polled descriptors, as to POLLIN, POLLOUT,
 * or both: update them.
 */
static inline void xl_poll_update(struct xmem_pool *pool, int events)
{
	if (unlikely(__atomic_load_n(&pool->polls.settle, __ATOMIC_RELAXED)))
		xl_poll_update_all(pool, events);
}

/* The pool's name in messages: "pool camera", or "the anonymous pool" (name.c). */
const char *xl_pool_name(const struct xmem_pool *pool, char *ret, size_t bytes);
#define XL_NAME_BYTES	(XMEM_NAME_BYTES + 8)

/*
 * xl_fail_forked notes -ECHILD. xl_fail_not_alive notes that too, or -EBADF if the pool was closed.
 */
int xl_fail_forked(void);
int xl_fail_not_alive(const struct xmem_pool *pool);

/* Record how @pool was opened. The options have been checked. 0 or -errno, not noted. */
int xl_opening_save(struct xmem_pool *pool, const struct xmem_pool_options *options);
/* Close the descriptor that children inherit. It may be called in a child. */
void xl_opening_drop(struct xmem_pool *pool);


#endif

/* SPDX-License-Identifier: MIT */
/* Requests to the host (request.c), and the clock of their deadlines (base/time.c). */
#ifndef XMEM_REQUEST_H
#define XMEM_REQUEST_H

#include "lib/private.h"

#define XL_HOST_NS	1000000000	/* how long to wait for a host that may be stopped */

u64 xl_now_ns(void);
u64 xl_deadline(int64_t timeout_ns);

/*
 * The states of the pool's polled descriptors depend on which rings the client follows
 * (follow/poll.c).
 */
static inline void xl_update_follow(struct xmem_pool *pool, unsigned int request,
				    const void *argument, int err)
{
	if (request == XMEM_IOC_SUBSCRIBE || request == XMEM_IOC_UNSUBSCRIBE)
		xl_poll_follow(pool, request, argument, err);
}

static inline int xl_request(struct xmem_pool *pool, unsigned int request, void *argument)
{
	int err = pool->link.backend->request(&pool->link, request, argument);

	xl_update_follow(pool, request, argument, err);
	return err;
}

/* Like xl_request, but only until @deadline_ns; see request_until in backend.h. */
static inline int xl_request_until(struct xmem_pool *pool, unsigned int request, void *argument,
				   u64 deadline_ns)
{
	int err = pool->link.backend->request_until(&pool->link, request, argument, deadline_ns);

	xl_update_follow(pool, request, argument, err);
	return err;
}

/*
 * Ask the host until xl_ask_until. -ETIMEDOUT: it has not answered, or asking is put off (see
 * below).
 */
int xl_request_briefly(struct xmem_pool *pool, unsigned int request, void *argument,
		       u64 deadline_ns);

static inline void xl_post(struct xmem_pool *pool, unsigned int request, const void *argument)
{
	pool->link.backend->post(&pool->link, request, argument);
	xl_update_follow(pool, request, argument, 0);
}

/* Post a request about a slot. @op: COLLECT, DETACH or DETACH_FILE. */
static inline void xl_post_slot(struct xmem_pool *pool, u32 op, u32 slot)
{
	struct xmem_slot_request request = { .size = sizeof(request), .op = op, .slot = slot };

	xl_post(pool, XMEM_IOC_SLOT, &request);
}

/* Make a SCANNING slot that this client holds LIVE again, if its owner does not go on. */
static inline int xl_resolve(struct xmem_pool *pool, u64 token)
{
	struct xmem_slot_request request = {
		.size = sizeof(request), .op = XMEM_OP_RESOLVE, .slot = xm_token_slot(token),
		.generation = xm_generation(token),
	};

	return xl_request(pool, XMEM_IOC_SLOT, &request);
}

/*
 * Asking briefly. A call that must not wait for a stopped host asks it until xl_ask_until, and
 * reports the result to xl_ask_record. After a timeout, asking is put off: for ten times xl_ask_ns,
 * such calls do not ask the host.
 */
extern u64 xl_ask_ns __attribute__((visibility("hidden")));	/* 100 ms; tests change it */

/*
 * The deadline of a brief request. @deadline_ns: the caller's; 0: the caller does not wait. The
 * result is xl_ask_ns from now, or the caller's deadline if that is earlier, but at least a fifth
 * of xl_ask_ns from now.
 */
u64 xl_ask_until(u64 deadline_ns);
/*
 * Like xl_ask_until, for a request that only needs the host's answer to succeed: memory to acquire,
 * a file to map. If the caller does not wait, the deadline is a second from now; if the host misses
 * it, asking is put off.
 */
u64 xl_ask_patiently(u64 deadline_ns);
void xl_ask_record(struct xmem_pool *pool, int err);

/* Is asking put off? It ends after its time, or when the host has answered after all. */
bool xl_is_still_put_off(struct xmem_pool *pool);

static inline bool xl_is_put_off(struct xmem_pool *pool)
{
	return unlikely(xm_load(&pool->asking.again_ns)) && xl_is_still_put_off(pool);
}

/* Until when may a call sleep that needs a request which is put off? */
static inline u64 xl_sleep_until(const struct xmem_pool *pool, u64 deadline_ns)
{
	u64 until = xm_load(&pool->asking.again_ns);

	return until && until < deadline_ns ? until : deadline_ns;
}

/* Wait until the host has served all posts, but only a moment for a host that does not answer. */
static inline void xl_drain_posts(struct xmem_pool *pool)
{
	if (pool->link.backend->drain)
		pool->link.backend->drain(&pool->link, XL_HOST_NS);
}

/*
 * The host may have been stopped, and may have served given-up requests since: undo them. Returns
 * how many answers have come so far.
 */
static inline u64 xl_catch_up(struct xmem_pool *pool)
{
	return pool->link.backend->catch_up ? pool->link.backend->catch_up(&pool->link) : 0;
}

/*
 * The process and user of a client, in this process's namespaces; with the daemon, in the daemon's.
 */
struct xl_ids {
	u32 pid, uid;
};
/* Both are 0 if the client has ended. Any lock may be held. */
void xl_client_ids(struct xmem_pool *pool, u32 client, u64 incarnation, struct xl_ids *ret);

/* A message for the error of a request. */
const char *xl_request_error(int err);

/*
 * May this client write? A client that may write, and is no writer yet, becomes one; for this the
 * call waits for the host within its @timeout_ns. Returns 0, or an error, noted. xl_check_writer
 * takes a pool's handle, or NULL, from a counted call (base/calls.h).
 */
int xl_check_role(struct xmem_pool *pool, int64_t timeout_ns);
int xl_check_writer(struct xmem_pool *pool, int64_t timeout_ns);

/* The result of arming, which a wait takes. */
struct xl_armed {
	u32 value;		/* of this client; 0: only wake-ups of the word end the wait */
	u32 kicks;		/* of this client; 0: only what wakes the word ends the wait */
};

/*
 * Arm a waiters word; wait on it until @deadline_ns, which is absolute (~0: no deadline); wake its
 * waiters. They return 0 or -errno.
 */
int xl_waiters_arm(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed *ret);
int xl_waiters_wait(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed armed,
		    u64 deadline_ns);
void xl_waiters_wake(struct xmem_pool *pool, u32 kind, u32 client);
/*
 * End the waits of this process's threads, except waits for slots, which the process may wake
 * itself.
 */
void xl_waiters_kick(struct xmem_pool *pool);

#endif

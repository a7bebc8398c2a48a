/* SPDX-License-Identifier: MIT */
/* Requests to the host, and the clock that their deadlines are on: request.c, time.c. */
#ifndef XMEM_REQUEST_H
#define XMEM_REQUEST_H

#include "lib/private.h"

#define XL_HOST_NS	1000000000	/* how long a host that may be stopped is waited for */

u64 xl_now_ns(void);
u64 xl_deadline(int64_t timeout_ns);

/* What the pool's descriptors say depends on whom the client follows (poll.c). */
static inline void xl_note_followed(struct xmem_pool *pool, unsigned int request,
				    const void *argument, int err)
{
	if (request == XMEM_IOC_SUBSCRIBE || request == XMEM_IOC_UNSUBSCRIBE)
		xl_poll_note(pool, request, argument, err);
}

static inline int xl_request(struct xmem_pool *pool, unsigned int request, void *argument)
{
	int err = pool->link.backend->request(&pool->link, request, argument);

	xl_note_followed(pool, request, argument, err);
	return err;
}

/* The same within a time; and without waiting, if nobody wants the result. See backend.h. */
static inline int xl_request_until(struct xmem_pool *pool, unsigned int request, void *argument,
				   u64 deadline_ns)
{
	int err = pool->link.backend->request_until(&pool->link, request, argument, deadline_ns);

	xl_note_followed(pool, request, argument, err);
	return err;
}

/* Ask until xl_ask_until. -ETIMEDOUT: it has not answered, or this is put off (see below). */
int xl_request_briefly(struct xmem_pool *pool, unsigned int request, void *argument,
		       u64 deadline_ns);

static inline void xl_post(struct xmem_pool *pool, unsigned int request, const void *argument)
{
	pool->link.backend->post(&pool->link, request, argument);
	xl_note_followed(pool, request, argument, 0);
}

/*
 * Asking briefly. A call that must not wait for a host that is stopped asks it until xl_ask_until,
 * and then says by xl_ask_note what has come of it. A host that has not answered is not asked for
 * ten times that long: this is put off.
 */
extern u64 xl_ask_ns __attribute__((visibility("hidden")));	/* 100 ms; tests change it */

/*
 * @deadline_ns: the caller's; 0: it does not wait. At most for xl_ask_ns, and no longer than the
 * caller's deadline, but for a fifth of xl_ask_ns in any case.
 */
u64 xl_ask_until(u64 deadline_ns);
/* What is there, but for the host: memory to acquire, a file to map. A second, though not again. */
u64 xl_ask_patiently(u64 deadline_ns);
void xl_ask_note(struct xmem_pool *pool, int err);

/* Until its time has come, or the host has answered after all. */
bool xl_is_still_put_off(struct xmem_pool *pool);

static inline bool xl_is_put_off(struct xmem_pool *pool)
{
	return unlikely(xm_load(&pool->asking.again_ns)) && xl_is_still_put_off(pool);
}

/* Until when may a call sleep that waits for what is put off? */
static inline u64 xl_sleep_until(const struct xmem_pool *pool, u64 deadline_ns)
{
	u64 until = xm_load(&pool->asking.again_ns);

	return until && until < deadline_ns ? until : deadline_ns;
}

/* Wait until the host has served what was posted; for one that may be stopped, only a moment. */
static inline void xl_settle_posts(struct xmem_pool *pool)
{
	if (pool->link.backend->settle)
		pool->link.backend->settle(&pool->link, XL_HOST_NS);
}

/*
 * The host may have been stopped, and have served since what was given up: undo that. Returns how
 * many answers have come so far.
 */
static inline u64 xl_catch_up(struct xmem_pool *pool)
{
	return pool->link.backend->catch_up ? pool->link.backend->catch_up(&pool->link) : 0;
}

/* Who a client is, in this process's namespaces; with the daemon, as that sees it. */
struct xl_who {
	u32 pid, uid;
};
/* 0 and 0: it is not there any more. Any lock may be held. */
void xl_client_who(struct xmem_pool *pool, u32 client, u64 incarnation, struct xl_who *ret);

/* What the error of a request means, in words. */
const char *xl_request_error(int err);

/*
 * May this client write? A client that may, and is no writer yet, becomes one; the call waits for
 * the host within its @timeout_ns. Returns 0, or an error, noted. The second is for a pool's
 * handle, or NULL; the call is counted (base/calls.h).
 */
int xl_check_role(struct xmem_pool *pool, const char *what, int64_t timeout_ns);
int xl_check_writer(struct xmem_pool *pool, const char *what, int64_t timeout_ns);

/* What arming says, and a wait wants. */
struct xl_armed {
	u32 value;		/* of the word */
	u32 kicks;		/* of this client; 0: only what wakes the word ends the wait */
};

/*
 * Arm a waiters word; wait on it until @deadline_ns, which is absolute (~0: no deadline);
 * wake its waiters. They return 0 or -errno.
 */
int xl_waiters_arm(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed *ret);
int xl_waiters_wait(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed armed,
		    u64 deadline_ns);
void xl_waiters_wake(struct xmem_pool *pool, u32 kind, u32 client);
/* End the waits of this process's threads, but for those for slots, which it may wake itself. */
void xl_waiters_kick(struct xmem_pool *pool);

#endif

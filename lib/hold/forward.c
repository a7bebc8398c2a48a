// SPDX-License-Identifier: MIT
/*
 * Forwarding: this client publishes contents that it holds in its own ring, whichever client owns
 * them. core/forward.c has the protocol. publish.c checks the options.
 */
#include <poll.h>
#include <string.h>

#include "lib/base/structs.h"
#include "lib/follow/wait.h"
#include "lib/hold/inplace.h"
#include "lib/hold/publish.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/holders.h"
#include "lib/own/owned.h"
#include "lib/payload/view.h"

/* ---- room in the ring; under owned->lock ---- */

/* Arm the waiters word, look again, sleep (I5). 0: look again; or -errno, also -ETIMEDOUT. */
static int sleep_for_room(struct xmem_pool *pool, u64 deadline, u32 cancels)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_armed armed;
	u64 bound;
	int err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &armed);

	if (err || xl_has_room(pool))
		return err;
	if (xl_wait_cancelled(&pool->calls, cancels))
		return -ECANCELED;
	bound = xl_demote_at(pool);
	xl_unlock(&owned->lock);
	err = xl_waiters_wait(pool, XMEM_WAIT_SLOTS, pool->me, armed,
			      bound < deadline ? bound : deadline);
	xl_lock(&owned->lock);
	return err == -ETIMEDOUT && bound < deadline ? 0 : err;
}

static int wait_for_room(struct xmem_pool *pool, int64_t timeout_ns, u32 cancels)
{
	u64 deadline = xl_deadline(timeout_ns);
	int err = timeout_ns && cancels & XL_CANCEL_ALWAYS ? -ECANCELED : 0;

	while (!err && !xl_has_room(pool))
		err = timeout_ns ? sleep_for_room(pool, deadline, cancels) :
				   xl_poll_for_room(pool);
	return err;
}

static XL_COLD int room_failed(struct xmem_pool *pool, int err)
{
	switch (-err) {
	case EAGAIN:
	case ETIMEDOUT:
		return xl_fail_no_room(pool, -err);
	case EINTR:
		return xl_fail_fast(EINTR, "a signal handler ran");
	case ECANCELED:
		return xl_fail_fast(ECANCELED, "xmem_cancel or xmem_pool_close has ended "
					       "the wait for room in the ring");
	case ENOTCONN:
		return xl_fail_fast(ENOTCONN, "the host has gone, or has ended this "
					       "client");
	}
	return xl_fail(-err, "wait for room in the ring: %s", strerror(-err));
}

/* ---- forwarding ---- */

/* Mostly one look: the host's permission lasts as long as the group has this owner. */
int xl_register_stage(struct xmem_pool *pool, u32 slot)
{
	struct xmem_grant_request request = {
		.size = sizeof(request), .op = XMEM_OP_FORWARD, .slot = slot,
	};
	int err;

	if (likely(xm_bit(xm_group_row(&pool->map, slot / XMEM_GROUP_SLOTS)->stages, pool->me)))
		return 0;
	err = xl_request(pool, XMEM_IOC_GRANT, &request);
	return err ? xl_fail(-err, "let the subscribers hold it: %s",
			     xl_request_error(err)) : 0;
}

/*
 * Put an entry into the ring, which has room. Returns whether a subscriber sleeps. Under
 * owned->lock.
 */
static bool forward_now(struct xmem_pool *pool, struct xm_publication what, u64 addressee)
{
	struct xl_owned *owned = &pool->owned;
	bool sleeps;
	u64 overwritten;

	owned->forwards = true;
	xl_leave_fast_path(owned);
	overwritten = xl_overwritten_token(pool);
	sleeps = xm_forward(&pool->map, pool->me, &owned->words, xl_tail(pool), &what, addressee);
	xl_keep_add_gap(owned, xl_tail(pool));
	owned->promised++;
	xl_owned_changed(owned);
	xl_put_overwritten(pool, overwritten);
	xl_record_forward(pool);
	return sleeps;
}

void xl_forward_reserved(struct xmem_pool *pool, const struct xm_publication *what, u64 addressee)
{
	struct xl_owned *owned = &pool->owned;
	bool sleeps;

	xl_lock(&owned->lock);
	owned->promised--;		/* forward_now counts it again */
	if (xl_tail(pool) >= owned->room_end)
		xl_make_room(pool);
	sleeps = forward_now(pool, *what, addressee);
	xl_unlock(&owned->lock);
	if (sleeps)
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	xl_owned_wake(pool);
}

static int forward(struct xmem_pool *pool, const struct xl_wish *wish)
{
	struct xl_owned *owned = &pool->owned;
	bool sleeps = false;
	int err;

	xl_lock(&owned->lock);
	err = wait_for_room(pool, wish->options.timeout_ns, xl_wait_begin(&pool->calls));
	if (!err)
		sleeps = forward_now(pool, wish->what, wish->addressee);
	else
		err = room_failed(pool, err);
	xl_unlock(&owned->lock);
	if (sleeps)
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	if (!err)
		xl_owned_wake(pool);
	else
		xl_poll_update(pool, POLLOUT);
	xl_wait_end(&pool->calls);
	return err;
}

int xl_forward(struct xmem_buffer *buffer, const struct xl_wish *wish, uint64_t *ret_token)
{
	int err = xl_register_stage(buffer->pool, buffer->slot);

	if (!err)
		err = forward(buffer->pool, wish);
	if (err)
		return err;
	if (ret_token)
		*ret_token = wish->what.token;
	return 0;
}

// SPDX-License-Identifier: MIT
/*
 * Forwarding: what this client holds comes into its own ring, whoever owns it. And sending: a
 * publication, forwarded or not, that one subscriber alone receives.
 */
#include <string.h>

#include "claims.h"
#include "died.h"
#include "handle.h"
#include "holders.h"
#include "inplace.h"
#include "owned.h"
#include "payload/view.h"
#include "request.h"
#include "structs.h"
#include "wait.h"

/* What the caller wants. */
struct wish {
	struct xm_publication what;
	u64 addressee;
	bool keep;
};

/* ---- options ---- */

/* Take the options, and fill in which part of the contents they mean. 0, or an error, noted. */
static int take_options(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
			struct wish *ret)
{
	struct xmem_publish_options o = { 0 };
	int err = xl_options_take("xmem_publish_options", options, &o, sizeof(o));
	struct xm_publication *what = &ret->what;
	u64 skipped;

	if (err)
		return err;
	if (o.flags & ~XMEM_PUBLISH_KEEP)
		return xl_fail(EINVAL, "xmem_publish_options: flags has 0x%x, which has no meaning",
			       o.flags & ~XMEM_PUBLISH_KEEP);
	if (o.reserved)
		return xl_fail_fast(EINVAL, "xmem_publish_options: reserved is not 0");
	xl_place_contents(buffer);
	*what = buffer->what;
	ret->keep = o.flags & XMEM_PUBLISH_KEEP;
	if (o.timestamp_ns)
		what->timestamp_ns = o.timestamp_ns;
	if (!o.offset && !o.length)
		return 0;
	skipped = o.offset - what->offset;
	if (o.offset < what->offset || skipped > what->length || o.length > what->length - skipped)
		return xl_fail(ERANGE, "forward: %llu bytes from %llu on; the contents are %llu "
				       "bytes from %llu on",
			       (unsigned long long)o.length, (unsigned long long)o.offset,
			       (unsigned long long)what->length, (unsigned long long)what->offset);
	what->offset = o.offset;
	what->length = o.length ? o.length : what->length - skipped;
	return 0;
}

/* ---- room in the ring; under owned->lock ---- */

/* Is there room for one more, perhaps once the bound for slow subscribers has passed? */
static bool has_room(struct xmem_pool *pool)
{
	if (!xl_ring_is_full(pool))
		return true;
	xl_note_full(pool);
	if (xl_demote_at(pool) > xl_now_ns())
		return false;
	xl_demote(pool);
	if (!xl_ring_is_full(pool))
		return true;
	xl_note_full(pool);
	return false;
}

/* Arm the waiters word, look again, sleep (I5). 0: look again; or -errno, also -ETIMEDOUT. */
static int sleep_for_room(struct xmem_pool *pool, u64 deadline, u32 cancels)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_armed armed;
	u64 bound;
	int err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &armed);

	if (err || has_room(pool))
		return err;
	if (xl_wait_cancelled(pool, cancels))
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

	while (!err && !has_room(pool))
		err = timeout_ns ? sleep_for_room(pool, deadline, cancels) : -EAGAIN;
	return err;
}

static XL_COLD int room_failed(struct xmem_pool *pool, int err)
{
	switch (-err) {
	case EAGAIN:
	case ETIMEDOUT:
		return xl_fail_no_room(pool, -err);
	case EINTR:
		return xl_fail_fast(EINTR, "forward: a signal handler ran");
	case ECANCELED:
		return xl_fail_fast(ECANCELED, "forward: xmem_cancel or xmem_pool_close has ended "
					       "the wait for room in the ring");
	case ENOTCONN:
		return xl_fail_fast(ENOTCONN, "forward: the host has gone, or has ended this "
					       "client");
	}
	return xl_fail(-err, "forward: wait for room in the ring: %s", strerror(-err));
}

/* ---- forwarding ---- */

/* The host has noted it for good, as long as the group has this owner: mostly one look. */
int xl_stage(struct xmem_pool *pool, u32 slot)
{
	struct xmem_grant_request request = {
		.size = sizeof(request), .flags = XMEM_GRANT_FORWARDED, .slot = slot,
	};
	int err;

	if (likely(xm_bit(xm_group_row(&pool->map, slot / XMEM_GROUP_SLOTS)->stages, pool->me)))
		return 0;
	err = xl_request(pool, XMEM_IOC_GRANT, &request);
	return err ? xl_fail(-err, "forward: let the subscribers hold it: %s",
			     xl_request_error(err)) : 0;
}

/* Into the ring, which has room. true: a subscriber sleeps. Under owned->lock. */
static bool forward_now(struct xmem_pool *pool, struct wish *wish)
{
	struct xl_owned *owned = &pool->owned;
	bool polls = xm_load(&pool->polls.pool), sleeps;
	u64 overwritten;

	owned->forwards = true;
	owned->short_end = 0;
	overwritten = xl_overwritten(pool);
	if (polls)
		xl_note_publishing(pool);
	sleeps = xm_forward(&pool->map, pool->me, &owned->words, xl_tail(pool), &wish->what,
			    wish->addressee);
	xl_keep_note_gap(owned, xl_tail(pool));
	owned->promised++;
	owned->none = false;
	xl_do_overwritten(pool, overwritten);
	xl_note_forwarded(pool);
	if (polls)
		xl_note_waiting(pool);
	return sleeps;
}

void xl_forward_promised(struct xmem_pool *pool, const struct xm_publication *what, u64 addressee)
{
	struct wish wish = { .what = *what, .addressee = addressee };
	struct xl_owned *owned = &pool->owned;
	bool sleeps;

	xl_lock(&owned->lock);
	owned->promised--;		/* forward_now counts it */
	if (xl_tail(pool) >= owned->room_end)
		xl_make_room(pool);
	sleeps = forward_now(pool, &wish);
	xl_unlock(&owned->lock);
	if (sleeps)
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	xl_owned_wake(pool);
	xl_poll_settle(pool, POLLOUT);
}

static void drop(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;

	xl_view_end(buffer);
	if (xm_load(&buffer->mode) & XL_CLAIMS)
		xl_claim_drop(buffer);
	xl_do(pool, xm_put(&pool->map, pool->me, buffer->slot));
	xl_handle_drop(pool, buffer);
}

static int forward(struct xmem_buffer *buffer, struct wish *wish, int64_t timeout_ns)
{
	struct xmem_pool *pool = buffer->pool;
	struct xl_owned *owned = &pool->owned;
	bool sleeps = false;
	int err;

	xl_lock(&owned->lock);
	err = wait_for_room(pool, timeout_ns, xl_wait_begin(pool));
	if (!err)
		sleeps = forward_now(pool, wish);
	else
		err = room_failed(pool, err);
	xl_unlock(&owned->lock);
	if (sleeps)
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	if (!err)
		xl_owned_wake(pool);
	xl_poll_settle(pool, POLLOUT);
	xl_wait_end(pool);
	return err;
}

/* The buffer is held for reading. @addressee: an incarnation, or 0. */
static int forward_to(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		      int64_t timeout_ns, uint64_t *ret_token, u64 addressee)
{
	struct wish wish = { .addressee = addressee };
	int err = take_options(buffer, options, &wish);

	if (!err)
		err = xl_stage(buffer->pool, buffer->slot);
	if (!err)
		err = forward(buffer, &wish, timeout_ns);
	if (err)
		return err;
	if (ret_token)
		*ret_token = wish.what.token;
	if (!wish.keep)
		drop(buffer);
	return 0;
}

/* What both calls refuse. 0, or an error, noted. */
static int check(struct xmem_pool *pool, const char *what, int64_t timeout_ns)
{
	int err = xl_check_role(pool, what, timeout_ns);

	if (err)
		return err;
	if (timeout_ns < 0)
		return xl_fail(EINVAL, "%s: a negative timeout", what);
	return xl_host_died(pool) ? xl_fail_died(pool) : 0;
}

XMEM_API int xmem_forward(struct xmem_buffer *handle, const struct xmem_publish_options *options,
			  int64_t timeout_ns, uint64_t *ret_token)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	int err;

	if (!buffer)
		return xl_no_buffer(handle, "forward");
	if (xm_load(&buffer->mode) & XL_WRITING)
		return xl_fail_fast(EPERM, "forward: it is still being written; publish it");
	err = check(buffer->pool, "forward", timeout_ns);
	return err ? err : forward_to(buffer, options, timeout_ns, ret_token, 0);
}

/* ---- sending ---- */

/* The incarnation of a subscriber of this client; 0: it is none, and the error is noted. */
static u64 find_subscriber(const struct xmem_pool *pool, u32 client)
{
	const struct xmem_client_row *row;
	u64 incarnation;

	if (client >= pool->map.clients) {
		xl_fail(EINVAL, "send: client is %u, but ids of the pool end at %u", client,
			pool->map.clients - 1);
		return 0;
	}
	row = xm_client_row(&pool->map, client);
	/* Its number, then the bit: one that has ended since has lost its bit before its id. */
	incarnation = xm_load_acquire(&row->incarnation);
	if (xm_load_acquire(&row->state) == XMEM_CLIENT_ALIVE && incarnation &&
	    xm_bit(xm_client_row(&pool->map, pool->me)->subscribers, client))
		return incarnation;
	xl_fail(ENOENT, "send: client %u is not there, or does not follow this one", client);
	return 0;
}

XMEM_API int xmem_send(struct xmem_buffer *handle, uint32_t client,
		       const struct xmem_publish_options *options, int64_t timeout_ns,
		       uint64_t *ret_token)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	u64 addressee;
	int err;

	if (!buffer)
		return xl_no_buffer(handle, "send");
	err = check(buffer->pool, "send", timeout_ns);
	if (err)
		return err;
	addressee = find_subscriber(buffer->pool, client);
	if (!addressee)
		return xmem_peek_last_error(NULL);
	if (xm_load(&buffer->mode) & XL_UPGRADED)
		err = xl_order_wait_until(buffer, timeout_ns);
	if (err)
		return err;
	if (xm_load(&buffer->mode) & XL_WRITING)
		return xl_publish_to(buffer, options, ret_token, addressee);
	return forward_to(buffer, options, timeout_ns, ret_token, addressee);
}

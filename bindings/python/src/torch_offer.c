// SPDX-License-Identifier: MIT
/*
 * References that are set aside for whoever gets a message. The host sets them aside, which takes a
 * request; taking them takes none. So a tensor that is sent once has one set aside, and one that is
 * sent again has several at a time: its *credits*, of which each message takes one.
 *
 * A reference that the owner of a buffer sets aside without end lasts while the owner lives, and 60
 * seconds after that, as the host sees to it. So do credits: what a message has taken of them is as
 * good as one that was made for it, and those that are left when this process is killed end then.
 * When this process drops the buffer, those that are left are taken back. Where messages are to
 * end after a time, each has one of its own, since the times of all of a buffer are one.
 */
#include "torch.h"

#define SECOND_NS	INT64_C(1000000000)
#define CREDITS		32		/* set aside at a time */
#define OTHERS_NS	(60 * SECOND_NS)	/* the longest time for buffers of others */

static int64_t in_flight_ns = XMEM_FOREVER;	/* atomic */

void xt_set_in_flight(int64_t timeout_ns)
{
	__atomic_store_n(&in_flight_ns, timeout_ns, __ATOMIC_RELAXED);
}

int64_t xt_in_flight(void)
{
	return __atomic_load_n(&in_flight_ns, __ATOMIC_RELAXED);
}

bool xt_hold_spend(struct xt_hold *hold)
{
	bool spent;

	if (xt_pool_is_gone(hold->pool))	/* nobody could read it: the long way says so */
		return false;
	pthread_mutex_lock(&xt_lock);
	spent = hold->credits && hold->buffer && xt_in_flight() == XMEM_FOREVER;
	if (spent)
		hold->credits--;
	pthread_mutex_unlock(&xt_lock);
	return spent;
}

static int64_t shorter(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The caller's message takes one of them at once. */
static int offer_many(struct xt_hold *hold)
{
	int err = xmem_offer(hold->buffer, CREDITS, XMEM_FOREVER);

	if (err)
		return err;
	pthread_mutex_lock(&xt_lock);
	hold->credits += CREDITS - 1;
	hold->ahead = true;
	pthread_mutex_unlock(&xt_lock);
	return 0;
}

/*
 * They are for a tensor that goes to and fro: one that is sent several times before anybody reads
 * it has no more set aside than that.
 */
static bool may_have_credits(const struct xt_hold *hold)
{
	return hold->own && hold->sent && xt_in_flight() == XMEM_FOREVER &&
	       (hold->ahead || !xmem_claims(xt_pool_handle(hold->pool), hold->token));
}

int xt_hold_offer(struct xt_hold *hold)
{
	int64_t timeout_ns = xt_in_flight();
	int err;

	if (!hold->buffer)
		return -ECHILD;
	if (xt_hold_spend(hold))
		return 0;
	if (may_have_credits(hold))
		return offer_many(hold);
	err = xmem_offer(hold->buffer, 1, hold->own ? timeout_ns : shorter(timeout_ns, OTHERS_NS));
	if (!err)
		__atomic_store_n(&hold->sent, true, __ATOMIC_RELAXED);
	return err;
}

void xt_hold_settle(struct xt_hold *hold)
{
	struct xmem_pool *pool = hold->pool->handle;

	if (!hold->credits || !hold->buffer)
		return;
	while (hold->credits && !xmem_drop_ref(pool, hold->token))
		hold->credits--;
	xmem_clear_last_error();
}

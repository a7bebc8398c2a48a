// SPDX-License-Identifier: MIT
/*
 * References that are set aside for whoever gets a message. The host sets them aside, which takes a
 * request; taking them takes none. So a tensor that is sent once has one set aside, and one that is
 * sent again has several at a time: its *credits*, of which each message takes one.
 *
 * A reference that the owner of a buffer sets aside lasts for ever, so that what is in flight stays
 * when the owner ends. Credits do not, because those that are left when this process is killed
 * would never be taken. While this process has the buffer nobody needs them, and when it drops
 * it those that are left are taken back, and those of messages in flight last for ever.
 */
#include "torch.h"

#include <time.h>

#define SECOND_NS	INT64_C(1000000000)
#define CREDITS		32		/* set aside at a time */
#define CREDIT_NS	(600 * SECOND_NS)	/* how long they last */
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

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Take a credit. In the second half of their time they are not used any more. */
static bool spend(struct xt_hold *hold)
{
	bool spent;

	pthread_mutex_lock(&xt_lock);
	spent = hold->credits && now_ns() < hold->credits_end_ns - CREDIT_NS / 2;
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
static int offer_many(struct xt_hold *hold, int64_t timeout_ns)
{
	int64_t end_ns = now_ns() + timeout_ns;
	int err = xmem_offer_for(hold->buffer, CREDITS, timeout_ns);

	if (err)
		return err;
	pthread_mutex_lock(&xt_lock);
	hold->credits += CREDITS - 1;
	hold->credits_end_ns = end_ns;
	pthread_mutex_unlock(&xt_lock);
	return 0;
}

/*
 * Claims that are there already may last for ever, and then all would: so there are none when the
 * first credits are made.
 */
static bool may_have_credits(struct xt_hold *hold)
{
	return hold->own && hold->sent && xt_in_flight() >= CREDIT_NS &&
	       (hold->credits_end_ns || !xmem_claims(xt_pool_handle(hold->pool), hold->token));
}

int xt_hold_offer(struct xt_hold *hold)
{
	int64_t timeout_ns = xt_in_flight();
	int err;

	if (!hold->buffer)
		return -ECHILD;
	if (spend(hold))
		return 0;
	if (may_have_credits(hold))
		return offer_many(hold, CREDIT_NS);
	err = xmem_offer_for(hold->buffer, 1, hold->own ? timeout_ns :
						       shorter(timeout_ns, OTHERS_NS));
	if (!err)
		__atomic_store_n(&hold->sent, true, __ATOMIC_RELAXED);
	return err;
}

void xt_hold_settle(struct xt_hold *hold)
{
	struct xmem_pool *pool = hold->pool->handle;
	bool there = hold->credits_end_ns && now_ns() < hold->credits_end_ns;

	if (!there || !hold->buffer)
		return;
	while (hold->credits && !xmem_drop_ref(pool, hold->token))
		hold->credits--;
	if (xmem_claims(pool, hold->token) > 0 &&
	    !xmem_offer_for(hold->buffer, 1, xt_in_flight()))
		xmem_drop_ref(pool, hold->token);
	xmem_clear_last_error();
}

// SPDX-License-Identifier: MIT
/*
 * References that are set aside for the receivers of messages. Setting one aside takes a request to
 * the host; taking one does not. So a tensor that is sent once has one reference set aside, and a
 * tensor that is sent again has several at a time: its *credits*, of which each message takes one.
 *
 * A reference that the owner of a buffer sets aside without a time lasts while the owner lives and
 * 60 seconds longer; the host sees to that. Credits last equally long: a message with a credit is
 * as good as one with a reference of its own, and the remaining credits end after this process is
 * killed. When this process drops the buffer, it takes the remaining credits back. If messages end
 * after a time (in_flight), each has a reference of its own, because all references of a buffer
 * have one common time.
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

	if (xt_pool_is_gone(hold->pool))	/* nobody could read the message: the slow path
						 * says so */
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

/* Set credits aside; the caller's message takes one of them at once. */
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
 * Credits are for a tensor that is sent and read repeatedly. A tensor that is sent several times
 * before a message is read has only one reference for each message.
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
